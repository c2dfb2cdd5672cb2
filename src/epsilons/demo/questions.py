"""What the demo asks, what every mechanism that can serve answers, and what the ledger says afterwards.

The best mechanism by the plan answers from the one ledger that counts. Every other mechanism asks a dataset with a
ledger of its own, as if it alone had been used: a demo may do that, for comparison.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

import epsilons as eps
from epsilons.accuracy.relation import holds
from epsilons.demo.people import GROUPS, Population
from epsilons.guarantee import to_epsilon
from epsilons.planner.budget import BudgetPlan

CONFIDENCE = 0.95
#: Every question may use a tenth of what each person granted.
QUESTION_SHARE = 0.1
#: So many questions are budgeted for.
BUDGETED = 200
WAGE_BOUNDS = (0, 2000)
WAGE_EDGES = tuple(range(0, 2001, 200))


@dataclass(frozen=True)
class DemoQuestion:
    """A statistic of a column or of the people who meet a condition, with public bounds and public guesses.

    `guess` steers weights and predictions: a round number that anyone could name without the data. A bad guess makes
    the prediction poorer, never the privacy.
    """

    name: str
    statistic: str
    text: str
    unit: str
    column: str | None
    truth: Callable[[Population], Any]
    arguments: dict[str, Any] = field(default_factory=dict)
    guess: dict[str, Any] = field(default_factory=dict)
    remark: str = ""
    form: str = "{:,.0f}"

    def ask(self, people: eps.Dataset, mechanism: str) -> eps.Release:
        """The answer, charged to the dataset's ledger."""
        call: Callable[..., eps.Release] = getattr(people, self.statistic)
        column = () if self.column is None else (self.column,)
        return call(*column, **self.arguments, **self.guess, share=QUESTION_SHARE, mechanism=mechanism)

    def plan(self, people: eps.Dataset) -> eps.Plan:
        """What every mechanism would cost; nothing is spent."""
        return people.plan(self.statistic, self.column, **self.arguments, **self.guess, share=QUESTION_SHARE)

    def show(self, amount: float | None) -> str:
        """An amount in the question's unit; a dash where there is none."""
        return "–" if amount is None else self.form.format(amount)


@dataclass(frozen=True)
class DemoAnswer:
    """One mechanism's answer beside the truth, which only a demo may look at."""

    release: eps.Release
    #: What the plan showed before it was asked; None where nothing can be predicted.
    predicted_error: float | None
    used: float
    true_error: float
    interval: Any

    @property
    def mechanism(self) -> str:
        return self.release.mechanism

    @property
    def charged(self) -> tuple[float, float]:
        """The lowest and the highest charge to people with a finite epsilon."""
        paid = [spent for granted, spent in self.release.charges.items() if math.isfinite(granted)]
        return min(paid), max(paid)


@dataclass(frozen=True)
class DemoResult:
    """A question with its truth, its plan, and the answers in the order of the plan: the best comes first."""

    question: DemoQuestion
    truth: Any
    plan: eps.Plan
    answers: tuple[DemoAnswer, ...]

    @property
    def best(self) -> DemoAnswer:
        """The answer of the mechanism that `mechanism="auto"` takes."""
        return self.answers[0]

    @property
    def praise(self) -> str:
        """What to call the best answer: nothing is best where nothing can be predicted."""
        return "the default" if self.best.predicted_error is None else "best by the plan"

    @property
    def remark(self) -> str:
        """What is to be known of the question, and when the errors beside its answers hold."""
        if self.best.predicted_error is None:
            return self.question.remark
        return f"{self.question.remark} Errors and intervals hold {holds(self.best.release.assumption)}."

    @property
    def is_number(self) -> bool:
        return not isinstance(self.truth, dict)

    def table(self) -> tuple[list[str], list[list[str]]]:
        """(heads, one row for each mechanism); the classes of a histogram stand elsewhere."""
        show = self.question.show
        heads = ["predicted\nerror", "true error\n(demo only)", "people\nused", "charged\n(epsilon)"]
        rows = []
        for answer in self.answers:
            value = [show(answer.release.value)] if self.is_number else []
            errors = [show(answer.predicted_error), show(answer.true_error)]
            charged = " to ".join(dict.fromkeys(f"{charge:.2g}" for charge in answer.charged))
            rows.append([answer.mechanism, *value, *errors, f"{answer.used:.0%}", charged])
        return ["mechanism", *(["answer"] if self.is_number else []), *heads], rows


def _wages(people: Population) -> Any:
    return np.clip(people.column("wage"), *WAGE_BOUNDS)


def _histogram(people: Population) -> dict[Hashable, int]:
    counts, _ = np.histogram(_wages(people), bins=np.array(WAGE_EDGES, float))
    return dict(zip(pairwise(map(float, WAGE_EDGES)), counts.tolist(), strict=True))


_WEEKLY: dict[str, Any] = {"unit": "dollars a week", "column": "wage", "guess": {"spread": 400.0}, "form": "${:,.2f}"}
QUESTIONS = (
    DemoQuestion(
        name="part-timers",
        statistic="count",
        text="How many people work part-time?",
        unit="people",
        column=None,
        truth=lambda people: int(np.count_nonzero(people.column("parttime") == "yes")),
        arguments={"where": "parttime = 'yes'"},
        guess={"density": 0.1},
        remark="Public guess given along: one person in ten.",
    ),
    DemoQuestion(
        name="mean wage",
        statistic="mean",
        text="What is the mean weekly wage?",
        truth=lambda people: float(_wages(people).mean()),
        arguments={"bounds": WAGE_BOUNDS},
        remark="Wages above the public bound of $2,000 count as $2,000. Public guess given along: a spread of $400.",
        **_WEEKLY,
    ),
    DemoQuestion(
        name="median wage",
        statistic="median",
        text="What is the median weekly wage?",
        truth=lambda people: round(float(np.sort(_wages(people))[len(people) // 2])),
        arguments={"bounds": WAGE_BOUNDS, "step": 1},
        remark="Answers lie between the public bounds $0 and $2,000, in steps of a dollar.",
        **_WEEKLY,
    ),
    DemoQuestion(
        name="longest schooling",
        statistic="max",
        text="How long is the longest schooling?",
        unit="years",
        column="education",
        truth=lambda people: int(people.column("education").max()),
        arguments={"bounds": (0, 24), "step": 1},
        remark="A maximum rests on very few people, so privacy blurs it more than anything else. By how much depends "
        "on the private values, so there is no honest prediction.",
    ),
    DemoQuestion(
        name="wages by class",
        statistic="histogram",
        text="How many people earn what?",
        unit="people per class of $200",
        column="wage",
        truth=_histogram,
        arguments={"edges": WAGE_EDGES, "outside": "clip"},
        remark="Errors are per class: the root of the mean squared error over all ten.",
    ),
)


def ask_all(population: Population, people: eps.Dataset) -> Iterator[DemoResult]:
    """Plan each question, then let every mechanism that can serve answer once, with the operating system's noise."""
    with ExitStack() as opened:
        others: dict[str, eps.Dataset] = {}
        for question in QUESTIONS:
            truth, plan, answers = question.truth(population), question.plan(people), []
            for row in plan.rows:
                if row is plan.best:
                    release = question.ask(people, "auto")
                else:
                    if row.mechanism not in others:
                        others[row.mechanism] = opened.enter_context(population.dataset(None))
                    release = question.ask(others[row.mechanism], row.mechanism)
                off, interval = _true_error(release.value, truth), _interval(release)
                answers.append(DemoAnswer(release, row.error, row.used, off, interval))
            yield DemoResult(question, truth, plan, tuple(answers))


def _true_error(value: Any, truth: Any) -> float:
    """How far an answer lies from the truth; over the classes of a histogram, the root of the mean square."""
    if isinstance(value, dict):
        return math.sqrt(sum((value[key] - truth[key]) ** 2 for key in truth) / len(truth))
    return float(abs(value - truth))


def _interval(release: eps.Release) -> Any:
    try:
        return release.interval(CONFIDENCE)
    except eps.PlanError:
        return None


@dataclass(frozen=True)
class GroupBalance:
    """One group: averages of what its people granted and have left, and how many questions that allows."""

    name: str
    people: int
    granted: float
    left: float
    questions: tuple[int, int]

    @property
    def part(self) -> float:
        return self.left / self.granted

    @property
    def more(self) -> str:
        return " to ".join(dict.fromkeys(map(str, self.questions)))


@dataclass(frozen=True)
class LedgerSummary:
    """The ledger after the last question, and whether the mean asked once more was the stored answer."""

    levels: dict[float, float]
    groups: tuple[GroupBalance, ...]
    entries: int
    same_again: bool
    #: After each release, what every group has spent of its grants, as a part.
    spending: tuple[tuple[float, ...], ...]
    #: What errors to expect if many questions are asked, under each kind of account.
    budget: BudgetPlan


def summarize_ledger(population: Population, people: eps.Dataset, mean: eps.Release) -> LedgerSummary:
    """Ask the mean again (the stored answer, for nothing), recount the journal, and see what is left."""
    again = QUESTIONS[1].ask(people, "auto")
    remaining, recount = people.remaining(), people.ledger.verify()
    left = remaining.epsilons
    more = {to_epsilon(granted): number for granted, number in remaining.questions.items()}
    groups = []
    for place, group in enumerate(GROUPS):
        granted = population.granted(place)
        questions = [more[epsilon] for epsilon in granted if epsilon in more]
        averages, span = (population.average(place), population.average(place, left)), (min(questions), max(questions))
        groups.append(GroupBalance(group.name, len(granted), *averages, span))
    parts = [{e: charged.get(e, 0.0) / e for e in left} for charged in (past.epsilons for past in people.history())]
    spending = np.cumsum([[population.average(place, part) for place in range(len(GROUPS))] for part in parts], axis=0)
    steps = tuple(map(tuple, spending.tolist()))
    budget = people.budget(BUDGETED)
    return LedgerSummary(left, tuple(groups), recount.entries, again.value == mean.value, steps, budget)
