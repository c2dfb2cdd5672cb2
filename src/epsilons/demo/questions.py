"""What the demo asks, and what every mechanism that can serve answers.

The best mechanism by the plan answers from the one ledger that counts. Every other one is asked of a dataset with books
of its own, as if it alone had been used: a demo may do that, for comparison.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

import epsilons as eps
from epsilons.demo.people import Population

CONFIDENCE = 0.95
#: Every question may use a tenth of what each person granted.
SHARE = 0.1
WAGE_BOUNDS = (0, 2000)
WAGE_EDGES = tuple(range(0, 2001, 200))
SCHOOL_BOUNDS = (0, 24)


@dataclass(frozen=True)
class Asked:
    """One question: a statistic of a column or of those who meet a condition, with public bounds and public guesses.

    `guess` steers weights and predictions: a round number that anybody could name without the data. Whoever guesses
    badly gets a poorer prediction, never less privacy.
    """

    name: str
    statistic: str
    words: str
    unit: str
    column: str | None
    truth: Callable[[Population], Any]
    arguments: dict[str, Any] = field(default_factory=dict)
    guess: dict[str, Any] = field(default_factory=dict)
    remark: str = ""
    sign: str = ""
    digits: int = 0

    def ask(self, people: eps.Dataset, mechanism: str, **options: Any) -> eps.Release:
        """The answer, charged to the dataset's ledger."""
        call: Callable[..., eps.Release] = getattr(people, self.statistic)
        column = () if self.column is None else (self.column,)
        return call(*column, **self.arguments, **self.guess, share=SHARE, mechanism=mechanism, **options)

    def plan(self, people: eps.Dataset) -> eps.Plan:
        """What every mechanism would cost; nothing is spent."""
        return people.plan(self.statistic, self.column, **self.arguments, **self.guess, share=SHARE)

    def show(self, amount: float | None) -> str:
        """An amount in the question's unit; a dash where there is none."""
        return "–" if amount is None else f"{self.sign}{amount:,.{self.digits}f}"


@dataclass(frozen=True)
class Answer:
    """One mechanism's answer beside the truth, which only a demo may look at."""

    release: eps.Release
    used: float
    reason: str
    true_error: float
    interval: Any

    @property
    def mechanism(self) -> str:
        """The mechanism's name."""
        return self.release.mechanism

    @property
    def charged(self) -> tuple[float, float]:
        """The least and the most that anybody with a finite epsilon paid."""
        paid = [spent for granted, spent in self.release.charges.items() if math.isfinite(granted)]
        return min(paid), max(paid)


@dataclass(frozen=True)
class Answered:
    """A question with its truth, its plan, and the answers in the order of the plan: the best comes first."""

    asked: Asked
    truth: Any
    plan: eps.Plan
    answers: tuple[Answer, ...]

    @property
    def best(self) -> Answer:
        """The answer of the mechanism that `mechanism="auto"` takes."""
        return self.answers[0]

    @property
    def praise(self) -> str:
        """What to call the best answer: nothing can be best where nothing can be predicted."""
        return "the default" if self.best.release.error is None else "best by the plan"


def _wages(people: Population) -> Any:
    return np.clip(people.column("wage"), *WAGE_BOUNDS)


def _histogram(people: Population) -> dict[Hashable, int]:
    counts, _ = np.histogram(_wages(people), bins=np.array(WAGE_EDGES, float))
    edges = [float(edge) for edge in WAGE_EDGES]
    return dict(zip(pairwise(edges), counts.tolist(), strict=True))


QUESTIONS = (
    Asked(
        name="part-timers",
        statistic="count",
        words="How many people work part-time?",
        unit="people",
        column=None,
        truth=lambda people: int(np.count_nonzero(people.column("parttime") == "yes")),
        arguments={"where": "parttime = 'yes'"},
        guess={"density": 0.1},
        remark="Public guess given along: one person in ten.",
    ),
    Asked(
        name="mean wage",
        statistic="mean",
        words="What is the mean weekly wage?",
        unit="dollars a week",
        column="wage",
        truth=lambda people: float(_wages(people).mean()),
        arguments={"bounds": WAGE_BOUNDS},
        guess={"spread": 400.0},
        remark="Wages above the public bound of $2,000 count as $2,000. Public guess given along: a spread of $400.",
        sign="$",
        digits=2,
    ),
    Asked(
        name="median wage",
        statistic="median",
        words="Which weekly wage do half of the people earn at most?",
        unit="dollars a week",
        column="wage",
        truth=lambda people: round(float(np.sort(_wages(people))[len(people) // 2])),
        arguments={"bounds": WAGE_BOUNDS, "step": 1},
        guess={"spread": 400.0},
        remark="Answers lie between the public bounds $0 and $2,000, in steps of a dollar.",
        sign="$",
        digits=2,
    ),
    Asked(
        name="longest schooling",
        statistic="max",
        words="What is the longest schooling anybody has?",
        unit="years",
        column="education",
        truth=lambda people: int(people.column("education").max()),
        arguments={"bounds": SCHOOL_BOUNDS, "step": 1},
        remark=(
            "A maximum rests on very few people, so privacy blurs it more than anything else, and nobody can honestly "
            "predict by how much: that depends on the private values."
        ),
    ),
    Asked(
        name="wages by class",
        statistic="histogram",
        words="How many people earn what?",
        unit="people per class of $200",
        column="wage",
        truth=_histogram,
        arguments={"edges": WAGE_EDGES, "outside": "clip"},
        remark="Errors are per class: the root of the mean squared error over all ten.",
    ),
)


class Comparison:
    """For each mechanism a dataset of the same people with a ledger in memory, as if only this one had been used."""

    def __init__(self, people: Population) -> None:
        self._people = people
        self._datasets: dict[str, eps.Dataset] = {}

    def dataset(self, mechanism: str) -> eps.Dataset:
        """The one of this mechanism."""
        if mechanism not in self._datasets:
            self._datasets[mechanism] = self._people.dataset(None)
        return self._datasets[mechanism]

    def close(self) -> None:
        """Let go of all of them."""
        for dataset in self._datasets.values():
            dataset.close()


def ask(question: Asked, population: Population, people: eps.Dataset, others: Comparison) -> Answered:
    """Plan, then let every mechanism that can serve answer once, with noise from the operating system."""
    truth, plan = question.truth(population), question.plan(people)
    answers = []
    for row in plan.rows:
        if row is plan.best:
            release = question.ask(people, "auto")
        else:
            release = question.ask(others.dataset(row.mechanism), row.mechanism)
        answers.append(Answer(release, row.used, row.reason, true_error(release.value, truth), _interval(release)))
    return Answered(question, truth, plan, tuple(answers))


def ask_all(population: Population, people: eps.Dataset) -> Iterator[Answered]:
    """Every question of the demo, one after the other."""
    others = Comparison(population)
    for question in QUESTIONS:
        yield ask(question, population, people, others)
    others.close()


def true_error(value: Any, truth: Any) -> float:
    """How far an answer lies from the truth; over the classes of a histogram, the root of the mean square."""
    if isinstance(value, dict):
        return math.sqrt(sum((value[key] - truth[key]) ** 2 for key in truth) / len(truth))
    return float(abs(value - truth))


def _interval(release: eps.Release) -> Any:
    try:
        return release.interval(CONFIDENCE)
    except eps.PlanError:
        return None
