"""What the demo asks, and what every mechanism that can serve answers."""

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
WAGE_BOUNDS = (0, 2000)
WAGE_EDGES = tuple(range(0, 2001, 200))
SCHOOL_BOUNDS = (0, 24)


@dataclass(frozen=True)
class Asked:
    """One question: a statistic of a column, with public bounds and public guesses.

    `guess` steers weights and predictions: a round number that anybody could name without the data. Whoever guesses
    badly gets a poorer prediction, never less privacy.
    """

    name: str
    statistic: str
    words: str
    unit: str
    values: Callable[[Population], Any]
    truth: Callable[[Any], Any]
    arguments: dict[str, Any] = field(default_factory=dict)
    guess: dict[str, Any] = field(default_factory=dict)
    remark: str = ""
    sign: str = ""
    digits: int = 0

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
    return people.column("wage")


def _histogram(values: Any) -> dict[Hashable, int]:
    counts, _ = np.histogram(np.clip(values, *WAGE_BOUNDS), bins=np.array(WAGE_EDGES, float))
    edges = [float(edge) for edge in WAGE_EDGES]
    return dict(zip(pairwise(edges), counts.tolist(), strict=True))


QUESTIONS = (
    Asked(
        name="part-timers",
        statistic="count",
        words="How many people work part-time?",
        unit="people",
        values=lambda people: people.column("parttime") == "yes",
        truth=lambda values: int(np.count_nonzero(values)),
        guess={"density": 0.1},
        remark="Public guess given along: one person in ten.",
    ),
    Asked(
        name="mean wage",
        statistic="mean",
        words="What is the mean weekly wage?",
        unit="dollars a week",
        values=_wages,
        truth=lambda values: float(np.clip(values, *WAGE_BOUNDS).mean()),
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
        values=_wages,
        truth=lambda values: round(float(np.sort(values)[len(values) // 2])),
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
        values=lambda people: people.column("education"),
        truth=lambda values: int(values.max()),
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
        values=_wages,
        truth=_histogram,
        arguments={"edges": WAGE_EDGES, "outside": "clip"},
        remark="Errors are per class: the root of the mean squared error over all ten.",
    ),
)


def ask(question: Asked, people: Population) -> Answered:
    """Plan, then let every mechanism that can serve answer once, with noise from the operating system."""
    values = question.values(people)
    truth = question.truth(values)
    plan = eps.plan(question.statistic, people.epsilons, **question.arguments, **question.guess)
    answers = []
    for row in plan.rows:
        chosen: dict[str, Any] = {"mechanism": row.mechanism}
        if "threshold" in row.options:
            chosen["threshold"] = "best"
        call: Callable[..., eps.Release] = getattr(eps, question.statistic)
        release = call(values, people.epsilons, **question.arguments, **question.guess, **chosen)
        answers.append(Answer(release, row.used, row.reason, true_error(release.value, truth), _interval(release)))
    return Answered(question, truth, plan, tuple(answers))


def ask_all(people: Population) -> Iterator[Answered]:
    """Every question of the demo, one after the other."""
    for question in QUESTIONS:
        yield ask(question, people)


def true_error(value: Any, truth: Any) -> float:
    """How far an answer lies from the truth; over the classes of a histogram, the root of the mean square."""
    if isinstance(value, dict):
        return math.sqrt(sum((value[key] - truth[key]) ** 2 for key in truth) / len(truth))
    return float(abs(value - truth))


def together(answered: tuple[Answered, ...]) -> eps.Guarantee:
    """The promise that would remain if all answers of the demo were published about the same people."""
    releases = [answer.release for one in answered for answer in one.answers]
    promise = releases[0].guarantee
    for release in releases[1:]:
        promise = promise.compose(release.guarantee)
    return promise


def _interval(release: eps.Release) -> Any:
    try:
        return release.interval(CONFIDENCE)
    except eps.PlanError:
        return None
