"""One attempt to answer a question of a table: plan, reserve, read and draw, through the one door.

An attempt is made for the roster and the budgets as they stand; where others are charged meanwhile, the next one plans
anew.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Generic, TypeVar

from epsilons.arguments.reading import AskOptions
from epsilons.dataset.facts import TableFacts
from epsilons.dataset.people import Preparation, TablePeople
from epsilons.dataset.question import TableQuestion, question_key
from epsilons.dataset.registry import Registry
from epsilons.errors import BudgetExceeded, PlanError
from epsilons.ledger.values import Cohort, allowance, list_active
from epsilons.mechanisms.base import Settings, judge_error
from epsilons.noise.entropy import system
from epsilons.planner.choose import choose
from epsilons.planner.plan import Plan, find_share
from epsilons.release import Release, exact_release, make_release
from epsilons.release.door import Request, Sketch, Spendable, pass_through
from epsilons.statistics.base import Question

#: No share is smaller than what leaves an open person a nano-epsilon.
_LEAST_SHARE = Fraction(1, 10**15)


class TooSmallShareError(PlanError):
    """It would charge nothing."""


class NothingToPlanError(PlanError):
    """Everyone is public, so there is nothing to choose and nothing to charge."""


Asked = TypeVar("Asked")


@dataclass(eq=False)
class Attempt(Generic[Asked]):
    """What is asked, and the table and ledger that it is put to."""

    asked: Asked
    facts: TableFacts
    version: str
    registry: Registry
    preparation: Preparation
    #: What the caller saw before and wants to get.
    planned: Plan | None = None

    @cached_property
    def cohorts(self) -> Sequence[Cohort]:
        """Who stands where; read once, since a charge is refused when that has changed."""
        return self.registry.ledger.cohorts()

    def key(self, identity: Mapping[str, Any], options: AskOptions, fresh: bool) -> bytes:
        """The digest that the ledger knows the question by."""
        return question_key(self.facts, self.version, self.preparation.epoch, identity, options.identity(), fresh)


class QuestionAttempt(Attempt[TableQuestion]):
    """One attempt at a statistic."""

    def release(self) -> Release:
        """The stored answer, or a new one. StalePlanError: plan again, nothing was charged."""
        asked, options = self.asked, self.asked.options
        request = Request(
            self.key(asked.identity(), options, options.fresh),
            self.preparation.epoch,
            asked.question.statistic.name,
            asked.describe(),
            options.privacy != "personalized",
            options.analyst,
        )
        return pass_through(self.registry.ledger, request, self.plan, self.resume, self.read)

    def plan(self) -> Sketch:
        """From public facts: how much everybody may be charged, and the mechanism that uses it."""
        options = self.asked.options
        _, spendable = spendable_for(self.asked.question, options, self.cohorts, self.registry)
        if self.asked.question.statistic.scope is None:
            self.asked.question.statistic.check_people(spendable.levels)
        if self.planned is not None and self.planned.levels != spendable.levels:
            rule = "A row of a plan gives what it shows, or nothing; nothing was charged."
            hint = "plan again, and ask then"
            raise PlanError("What people have left has changed since this plan was made.", rule=rule, suggest=hint)
        return sketch_of(self.asked.question, options.mechanism, Settings(**options.settings), spendable)

    def resume(self, text: str) -> Sketch:
        """The plan that was charged, out of the ledger."""
        return Sketch.from_text(text, self.asked.question, self.cohorts, self.registry.names)

    def read(self, sketch: Sketch) -> Release:
        """The only step that sees data."""
        asked, levels = self.asked, sketch.spendable.levels
        places = sketch.spendable.places(self.preparation.cohorts)
        people = TablePeople(self.preparation, asked.column, asked.where, asked.by, levels, places)
        if sketch.mechanism is None:
            return exact_release(asked.question, people, asked.notes, sketch.account)
        entropy = system() if asked.options.entropy is None else asked.options.entropy
        return make_release(sketch.mechanism, asked.question, people, entropy, sketch.why, asked.notes, sketch.account)


def spendable_for(
    question: Question, options: AskOptions, cohorts: Sequence[Cohort], registry: Registry
) -> tuple[Fraction, Spendable]:
    """(the share that a question takes, what everybody may then be charged)."""
    if options.unspent:
        cohorts = [replace(cohort, spent=0, reserved=0) for cohort in cohorts]
    share = options.share
    if share is None:
        assert options.error is not None
        settings = Settings(**options.settings)
        share = _reach_error(options.error, question, options.mechanism, settings, cohorts, registry.names)
    return share, spendable_at(share, cohorts, registry.names, options.part)


def spendable_at(
    share: Fraction, cohorts: Sequence[Cohort], names: Mapping[float, str], part: Fraction = Fraction(1)
) -> Spendable:
    """What each cohort may be charged; BudgetExceeded when nobody with a finite epsilon has anything left."""
    grants = [cohort.granted for cohort in list_active(cohorts) if cohort.granted]
    if grants and max(grants) * share < 1:
        raise TooSmallShareError("This share is too small.", rule="It is less than a nano-epsilon of anybody's grant.")
    return Spendable.of(allowance(cohorts, share, 0, part), cohorts, names)


def sketch_of(question: Question, name: str, settings: Settings, spendable: Spendable) -> Sketch:
    """The mechanism asked for, or the best of all for "auto"."""
    if spendable.levels.all_public:
        return Sketch(
            None, "Everyone on the roster chose public, so the exact answer is released.", question, spendable
        )
    mechanism, why = choose(name, question, spendable.levels, settings)
    return Sketch(mechanism, why, question, spendable)


def _reach_error(
    error: float,
    question: Question,
    name: str,
    settings: Settings,
    cohorts: Sequence[Cohort],
    names: Mapping[float, str],
) -> Fraction:
    """The smallest share of everybody's grant whose predicted error is at most `error`."""

    def predict(share: Fraction) -> float:
        try:
            spendable = spendable_at(share, cohorts, names)
        except (BudgetExceeded, TooSmallShareError):
            return math.inf
        sketch = sketch_of(question, name, settings, spendable)
        return 0.0 if sketch.mechanism is None else judge_error(sketch.mechanism, question, spendable.levels)

    spendable_at(Fraction(1), cohorts, names)
    # What is left differs from grant to grant, so shares are small more often than large.
    return find_share(error, question, predict, _LEAST_SHARE, 16)
