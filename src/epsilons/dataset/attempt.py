"""One attempt to answer a question of a table: plan, reserve, read and draw, through the one door.

An attempt is made for the roster and the budgets as they stand; where others are charged meanwhile, the next one plans
anew.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from epsilons.arguments.checks import LEAST_SHARE
from epsilons.arguments.reading import AskOptions
from epsilons.dataset.facts import TableFacts
from epsilons.dataset.levels import (
    count_levels,
    counts_levels,
    cut_to_roster,
    find_concerned,
    know_fraction,
    require_concerned,
)
from epsilons.dataset.people import TablePeople
from epsilons.dataset.question import TableQuestion, question_key
from epsilons.dataset.registry import Registry
from epsilons.dataset.rows import Preparation
from epsilons.dataset.strata import CALIBRATED, is_better, may_calibrate, stratify
from epsilons.engines.trees import Comparison, Several
from epsilons.errors import BudgetExceeded, PlanError
from epsilons.ledger.renewal import tell_renewal
from epsilons.ledger.values import Cohort, Reservation, allowance, list_active
from epsilons.mechanisms.base import find_error
from epsilons.mechanisms.weighted import Weighted
from epsilons.noise.entropy import system
from epsilons.planner.choose import choose
from epsilons.planner.guesses import Known, guessing, guessing_all
from epsilons.planner.plan import Plan, find_share
from epsilons.release.answer import EVERYONE_PUBLIC, IN_MEMORY, Release, exact_release, make_release
from epsilons.release.door import Request, RoughCount, Sketch, Spendable, pass_through
from epsilons.statistics.base import Question, Scope
from epsilons.statistics.count import Count

#: The part of a question's price that a rough count of whom it concerns takes first; and where the question turns out
#: to take far more, so many times as much for the next one.
_ROUGH, _MORE = Fraction(1, 10), 4


class TooSmallShareError(PlanError):
    """It would charge nothing."""


class NothingToPlanError(PlanError):
    """Everyone is public, so there is nothing to choose and nothing to charge."""


@dataclass(eq=False)
class Attempt:
    """What is asked, and the table and ledger that it is put to."""

    asked: TableQuestion
    facts: TableFacts
    registry: Registry
    preparation: Preparation
    #: What the caller saw before and wants to get.
    planned: Plan | None = None

    @cached_property
    def cohorts(self) -> Sequence[Cohort]:
        """Who stands where; read once, since a charge is refused when that has changed."""
        return self.registry.ledger.cohorts(self.registry.dataset)

    @property
    def seeded(self) -> bool:
        """Whether the randomness is the caller's own, of whatever kind."""
        return self.asked.options.entropy is not None

    def release(self) -> Release:
        """The stored answer, or a new one. StalePlanError: plan again, nothing was charged."""
        asked, epoch, seeded = self.asked, self.preparation.epoch, self.seeded
        about = {"dataset": self.facts.name, "version": self.facts.version, **asked.about()}
        caveats = () if self.facts.lasting else (IN_MEMORY,)
        if self.facts.renews:
            caveats = (tell_renewal(self.facts.renews, self.facts.measure), *caveats)
        if (asked.on_preference or asked.on_roster) and counts_levels(asked, self.facts):
            return replace(count_levels(asked, self.facts, self.cohorts), **about).about(None, last=caveats)
        key, dataset = question_key(self.facts, asked), self.registry.dataset
        individual = asked.options.privacy != "personalized"
        asker = asked.options.analyst
        request = Request(key, dataset, epoch, asked.kind, asked.describe(), about, caveats, individual, asker, seeded)
        return pass_through(self.registry.ledger, request, self.plan, self.resume, self.read)

    def plan(self) -> Sketch:
        """From public facts: how much everybody may be charged, and the mechanism that uses it."""
        rough = None
        some = self.asked.concerns_levels or self.asked.public
        concerned = require_concerned(self.asked, self.facts, self.cohorts) if some else self.cohorts
        asked, known = size_by_roster(self.asked, self.facts, concerned)
        if not known and needs_rough_count(asked, concerned, self.registry.names):
            asked, rough = self._count_roughly()
        _, spendable = spendable_for(asked, concerned, self.registry.names)
        spendable = spendable.among(self.cohorts) if some else spendable
        if asked.question.statistic.family == "order":
            asked.question.statistic.check_people(spendable.levels)
        if self.planned is not None and self.planned.levels != spendable.levels:
            what = "What people have left has changed since this plan was made."
            raise PlanError(what, rule="Nothing was charged.", suggest="plan again, and ask then")
        if self.planned is not None and self.planned.known:
            # The row as it was shown; what was asked, and so its key, is the same without them.
            shown = replace(asked, question=self.planned.question)
            return replace(_sketch(shown, spendable), known=self.planned.known)
        made = replace(_sketch(asked, spendable), known=known)
        if self.facts.on_roster and made.mechanism is not None and may_calibrate(asked, self.facts):
            made = self._calibrate(made, concerned)
        if rough is None:
            return made
        told = "by a rough count that came first and is part of the price"
        return replace(made, why=f"{made.why} Sized for {rough.fraction:.3g} of the people, {told}.", rough=rough)

    def _calibrate(self, made: Sketch, concerned: Sequence[Cohort]) -> Sketch:
        """The sketch with weights that are calibrated by public columns, if those are expected to err less."""
        fine = stratify(made.spendable, concerned, self.facts)
        assert made.mechanism is not None
        best = find_error(made.mechanism, made.question, made.spendable.levels)
        if fine is None or best is None or not is_better(fine, made.question, best):
            return made
        chosen = Weighted()
        return replace(made, mechanism=chosen, why=f"{CALIBRATED} {chosen.explain(made.question, fine.levels)}.",
                       spendable=fine)  # fmt: skip

    def _count_roughly(self) -> tuple[TableQuestion, RoughCount]:
        """Buy a count of whom the question concerns, and size it by that: by one error of the count fewer people.

        The count takes a tenth of what the question would take if everyone counted. Where the question turns out to
        take far more, another count is bought with four times as much, up to a tenth of everything. Each is a question
        of its own at the door, reserved before data is read, and stored: a repeat finds it. What is decided here is
        decided from what was released.
        """
        scope, names = self.asked.question.statistic.scope, self.registry.names
        assert scope is not None
        paid = Counter[int | None]()
        share = _ROUGH * _reach_error(_sized(self.asked, 1 / scope.cells), self._read_concerned(), names)
        while True:
            share = min(max(share, LEAST_SHARE), _ROUGH)
            answer = replace(self, asked=rough_count(self.asked, self.facts, share), planned=None).release()
            paid.update({grant: loss or 0 for grant, loss in answer.guarantee.losses})
            cohorts, sure = self._read_concerned(), max(answer.value - answer.error, 1.0)
            rows = sum(cohort.people for cohort in list_active(cohorts)) * scope.average
            fraction = min(sure / rows, 1.0) / scope.cells
            sized, good = _sized(self.asked, fraction), share == _ROUGH or 2 * answer.error <= sure
            try:
                taken = _reach_error(sized, cohorts, names)
            except PlanError as error:
                if good:
                    first = f"A rough count came first and stays charged; it leaves {fraction:.3g} of the people."
                    raise PlanError(error.parts[0], rule=f"{first} {error.rule}", suggest=error.parts[2]) from None
            else:
                if good and share * _MORE >= taken * _ROUGH:
                    found = replace(sized, options=replace(sized.options, share=taken, error=None))
                    return found, RoughCount(fraction, tuple(paid.items()))
            share *= _MORE

    def _read_concerned(self) -> Sequence[Cohort]:
        """Whom the question concerns, with what they have left at this moment."""
        return require_concerned(self.asked, self.facts, self.registry.ledger.cohorts(self.registry.dataset))

    def resume(self, held: Reservation) -> Sketch:
        """The plan that was charged, out of the ledger."""
        return Sketch.of(held, self.asked.question, self.registry.names)

    def read(self, sketch: Sketch) -> Release:
        """The only step that sees data."""
        asked, levels = self.asked, sketch.spendable.levels
        places = sketch.spendable.places(self.preparation.cohorts)
        people = TablePeople(self.preparation, asked.column, asked.where, asked.by, levels, places)
        if sketch.mechanism is None:
            return exact_release(asked.question, people, asked.notes, sketch.account)
        facts = sketch.why, asked.notes, sketch.account
        entropy = system() if asked.options.entropy is None else asked.options.entropy
        made = make_release(sketch.mechanism, sketch.question, people, entropy, *facts)
        if asked.rows_by_preference == "no":
            return made
        concerned = {one.id for one in find_concerned(asked, self.facts, self.cohorts)} | sketch.spendable.place.keys()
        cohorts = [one for one in self.cohorts if one.id in concerned]
        return cut_to_roster(made, asked, self.facts, cohorts, self.registry.dataset)


def size_by_roster(
    asked: TableQuestion, facts: TableFacts, cohorts: Sequence[Cohort]
) -> tuple[TableQuestion, tuple[Known, ...]]:
    """(the question sized by whom it concerns, what of that is known) where the roster tells: nobody guesses then."""
    known = know_fraction(asked, facts, cohorts) if asked.rows_by_preference == "alone" else ()
    return replace(asked, question=guessing_all(asked.question, known)) if known else asked, known


def needs_rough_count(asked: TableQuestion, cohorts: Sequence[Cohort], names: Mapping[float, str]) -> bool:
    """Whether an error is to be reached that depends on how many meet a condition, and nobody said how many do."""
    options, scope = asked.options, asked.question.statistic.scope
    if options.error is None or options.density is not None or asked.where is None or scope is None:
        return False
    parts = (scope.fraction / 2, scope.fraction, min(2 * scope.fraction, 1.0))
    few, guessed, many = (_predict(_sized(asked, part), Fraction(1), cohorts, names) for part in parts)
    return max(few, many) > guessed


def rough_count(asked: TableQuestion, facts: TableFacts, share: Fraction) -> TableQuestion:
    """How many rows a question concerns, groups or not: those that meet its condition and, if need be, have a value."""
    told, where = asked.options, asked.where
    if where is not None and asked.column is not None and told.missing != "center":
        where = Several((where, Comparison(facts.schema.find(asked.column), "IS NOT NULL")), True)
    options = AskOptions(assume=told.assume, share=share, where=told.where, analyst=told.analyst, entropy=told.entropy)
    options = options if told.delta is None else replace(options, delta=told.delta)
    question = Question.of(Count(Scope(facts.rows), "rows"), options, facts.neighbors)
    levels, public = asked.concerns_levels, asked.public & (where.columns if where else frozenset())
    return TableQuestion(question, None, where, None, asked.notes[1:], options, concerns_levels=levels, public=public)


def _sized(asked: TableQuestion, fraction: float) -> TableQuestion:
    """The same question with a guess of the part of people who count."""
    return replace(asked, question=guessing(asked.question, "density", fraction))


def spendable_for(
    asked: TableQuestion, cohorts: Sequence[Cohort], names: Mapping[float, str]
) -> tuple[Fraction, Spendable]:
    """(the share that a question takes, what everybody may then be charged)."""
    options = asked.options
    if options.unspent:
        cohorts = [replace(cohort, spent=0, reserved=0) for cohort in cohorts]
    share = _reach_error(asked, cohorts, names) if options.share is None else options.share
    return share, _spendable_at(asked, share, cohorts, names, options.part)


def _spendable_at(
    asked: TableQuestion,
    share: Fraction,
    cohorts: Sequence[Cohort],
    names: Mapping[float, str],
    part: Fraction = Fraction(1),
) -> Spendable:
    """What each cohort may be charged; BudgetExceeded when nobody with a finite epsilon has anything left."""
    grants = [cohort.granted for cohort in list_active(cohorts) if cohort.granted]
    if grants and max(grants) * share < 1:
        raise TooSmallShareError("This share is too small.", rule="It is less than a nano-epsilon of anybody's grant.")
    rate = None if asked.options.delta is None else asked.question.rate
    return Spendable.of(allowance(cohorts, share, 0, part), cohorts, names, rate)


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
        return _predict(asked, share, cohorts, names)

    _spendable_at(asked, Fraction(1), cohorts, names)
    assert asked.options.error is not None
    # What is left differs from grant to grant, so shares are small more often than large.
    return find_share(asked.options.error, asked.question, predict, LEAST_SHARE, 16)


def _predict(asked: TableQuestion, share: Fraction, cohorts: Sequence[Cohort], names: Mapping[float, str]) -> float:
    """The error at a share of everybody's grant; infinite where none can be predicted, or nothing is left."""
    try:
        spendable = _spendable_at(asked, share, cohorts, names)
    except (BudgetExceeded, TooSmallShareError):
        return math.inf
    mechanism = _sketch(asked, spendable).mechanism
    error = 0.0 if mechanism is None else find_error(mechanism, asked.question, spendable.levels)
    return math.inf if error is None else error
