"""What is left after the questions: per group, and in questions like the last one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import epsilons as eps
from epsilons.demo.people import GROUPS, Population
from epsilons.demo.questions import QUESTIONS
from epsilons.guarantee import to_epsilon


@dataclass(frozen=True)
class Left:
    """One group: averages of what its people granted and have left, and how many questions that allows."""

    name: str
    people: int
    granted: float
    left: float
    questions: tuple[int, int]

    @property
    def spent(self) -> float:
        """What was charged, on average."""
        return self.granted - self.left

    @property
    def part(self) -> float:
        """What is left, as a part of what was granted."""
        return self.left / self.granted

    @property
    def more(self) -> str:
        """How many more questions like the last one, in words."""
        least, most = self.questions
        return f"{least}" if least == most else f"{least} to {most}"


@dataclass(frozen=True)
class Books:
    """The ledger after the last question, and what asking the mean once more cost."""

    levels: dict[float, float]
    groups: tuple[Left, ...]
    releases: int
    entries: int
    same_again: bool
    #: After each release, what every group has spent of its grants, as a part.
    spending: tuple[tuple[float, ...], ...]


def read_books(population: Population, people: eps.Dataset, mean: eps.Release) -> Books:
    """Ask the mean again (the stored answer, for nothing), recount the journal, and see what is left."""
    again = QUESTIONS[1].ask(people, "auto")
    remaining, recount = people.remaining(), people.ledger.verify()
    left = remaining.epsilons
    questions = {to_epsilon(granted): number for granted, number in remaining.questions.items()}
    groups = []
    for place, group in enumerate(GROUPS):
        granted = population.epsilons[population.groups == place].tolist()
        more = [questions[epsilon] for epsilon in granted if epsilon in questions]
        groups.append(
            Left(
                group.name,
                len(granted),
                float(np.mean(granted)),
                float(np.mean([left[epsilon] for epsilon in granted])),
                (min(more), max(more)),
            )
        )
    spending = _spending(population, people)
    return Books(left, tuple(groups), len(spending), recount.entries, again.value == mean.value, spending)


def _spending(population: Population, people: eps.Dataset) -> tuple[tuple[float, ...], ...]:
    """Charges are by grant; a group's part is the average over its people."""
    spent, steps = np.zeros(len(GROUPS)), []
    for past in people.history():
        charged = past.epsilons
        for place in range(len(GROUPS)):
            granted = population.epsilons[population.groups == place].tolist()
            spent[place] += np.mean([charged.get(epsilon, 0.0) / epsilon for epsilon in granted])
        steps.append(tuple(spent.tolist()))
    return tuple(steps)
