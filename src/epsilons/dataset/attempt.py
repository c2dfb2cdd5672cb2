"""One attempt to answer a question of a table: plan, reserve, read and draw, through the one door.

An attempt is made for the roster and the budgets as they stand; where others are charged meanwhile, the next one plans
anew.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from epsilons.arguments.checks import LEAST_SHARE
from epsilons.dataset.facts import TableFacts
from epsilons.dataset.levels import count_levels, counts_levels
from epsilons.dataset.people import Preparation, TablePeople
from epsilons.dataset.question import TableQuestion, question_key
from epsilons.dataset.registry import Registry
from epsilons.errors import BudgetExceeded, PlanError
from epsilons.ledger.values import Cohort, allowance, list_active
from epsilons.mechanisms.base import find_error
from epsilons.noise.entropy import system
from epsilons.planner.choose import choose
from epsilons.planner.plan import Plan, find_share
from epsilons.release.answer import EVERYONE_PUBLIC, Release, exact_release, make_release
from epsilons.release.door import Request, Sketch, Spendable, pass_through


class TooSmallShareError(PlanError):
    """It would charge nothing."""


class NothingToPlanError(PlanError):
    """Everyone is public, so there is nothing to choose and nothing to charge."""


@dataclass(eq=False)
class Attempt:
    """What is asked, and the table and ledger that it is put to."""

    asked: TableQuestion
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

    @property
    def seeded(self) -> bool:
        """Whether the randomness is the caller's own, of whatever kind."""
        return self.asked.options.entropy is not None

    def release(self) -> Release:
        """The stored answer, or a new one. StalePlanError: plan again, nothing was charged."""
        asked, epoch, seeded = self.asked, self.preparation.epoch, self.seeded
        if asked.kind == "count" and counts_levels(asked, self.facts):
            return count_levels(asked, self.facts, self.registry.ledger)
        key = question_key(self.facts, self.version, epoch, asked)
        individual = asked.options.privacy != "personalized"
        request = Request(key, epoch, asked.kind, asked.describe(), individual, asked.options.analyst, seeded)
        return pass_through(self.registry.ledger, request, self.plan, self.resume, self.read)

    def plan(self) -> Sketch:
        """From public facts: how much everybody may be charged, and the mechanism that uses it."""
        statistic = self.asked.question.statistic
        _, spendable = spendable_for(self.asked, self.cohorts, self.registry.names)
        if statistic.scope is None:
            statistic.check_people(spendable.levels)
        if self.planned is not None and self.planned.levels != spendable.levels:
            what = "What people have left has changed since this plan was made."
            raise PlanError(what, rule="Nothing was charged.", suggest="plan again, and ask then")
        return _sketch(self.asked, spendable)

    def resume(self, text: str) -> Sketch:
        """The plan that was charged, out of the ledger."""
        return Sketch.from_text(text, self.asked.question, self.cohorts, self.registry.names)

    def read(self, sketch: Sketch) -> Release:
        """The only step that sees data."""
        asked, levels = self.asked, sketch.spendable.levels
        places = sketch.spendable.places(self.preparation.cohorts)
        people = TablePeople(self.preparation, asked.column, asked.where, asked.by, levels, places)
        if sketch.mechanism is None:
            return replace(exact_release(asked.question, people, asked.notes, sketch.account), where=asked.condition)
        facts = sketch.why, asked.notes, sketch.account
        entropy = system() if asked.options.entropy is None else asked.options.entropy
        made = make_release(sketch.mechanism, asked.question, people, entropy, *facts)
        return replace(made, where=asked.condition)


def spendable_for(
    asked: TableQuestion, cohorts: Sequence[Cohort], names: Mapping[float, str]
) -> tuple[Fraction, Spendable]:
    """(the share that a question takes, what everybody may then be charged)."""
    options = asked.options
    if options.unspent:
        cohorts = [replace(cohort, spent=0, reserved=0) for cohort in cohorts]
    share = _reach_error(asked, cohorts, names) if options.share is None else options.share
    return share, _spendable_at(share, cohorts, names, options.part)


def _spendable_at(
    share: Fraction, cohorts: Sequence[Cohort], names: Mapping[float, str], part: Fraction = Fraction(1)
) -> Spendable:
    """What each cohort may be charged; BudgetExceeded when nobody with a finite epsilon has anything left."""
    grants = [cohort.granted for cohort in list_active(cohorts) if cohort.granted]
    if grants and max(grants) * share < 1:
        raise TooSmallShareError("This share is too small.", rule="It is less than a nano-epsilon of anybody's grant.")
    return Spendable.of(allowance(cohorts, share, 0, part), cohorts, names)


def _sketch(asked: TableQuestion, spendable: Spendable) -> Sketch:
    """The mechanism asked for, or the best of all for "auto"."""
    if spendable.levels.all_public:
        return Sketch(None, EVERYONE_PUBLIC, asked.question, spendable)
    settings = asked.options.settings
    mechanism, why = choose(asked.options.mechanism, asked.question, spendable.levels, settings)
    return Sketch(mechanism, why, asked.question, spendable)


def _reach_error(asked: TableQuestion, cohorts: Sequence[Cohort], names: Mapping[float, str]) -> Fraction:
    """The smallest share of everybody's grant whose predicted error is at most the one asked for."""

    def predict(share: Fraction) -> float:
        try:
            spendable = _spendable_at(share, cohorts, names)
        except (BudgetExceeded, TooSmallShareError):
            return math.inf
        mechanism = _sketch(asked, spendable).mechanism
        error = 0.0 if mechanism is None else find_error(mechanism, asked.question, spendable.levels)
        return math.inf if error is None else error

    _spendable_at(Fraction(1), cohorts, names)
    assert asked.options.error is not None
    # What is left differs from grant to grant, so shares are small more often than large.
    return find_share(asked.options.error, asked.question, predict, LEAST_SHARE, 16)
