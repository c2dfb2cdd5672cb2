"""`Dataset`: a table, its people, their preferences; the statistics as methods.

Every method that answers goes through the one door (`release.door`): the charge is durable before a row is read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

from epsilons.arguments.checks import check_truth
from epsilons.arguments.options import TABLES
from epsilons.arguments.reading import AskOptions, Call, check_call
from epsilons.arrays.algorithms import read_algorithm
from epsilons.dataset.applying import Applied, ApplyAttempt
from epsilons.dataset.asking import Asking
from epsilons.dataset.attempt import Attempt, NothingToPlanError, needs_rough_count, size_by_roster, spendable_for
from epsilons.dataset.batch import Batch
from epsilons.dataset.known import find_known
from epsilons.dataset.levels import FROM_THE_ROSTER, counts_levels, require_concerned
from epsilons.dataset.parts import PartedAttempt, list_parts, plan_groups
from epsilons.dataset.question import TableQuestion, parse_question, question_key
from epsilons.dataset.registered import Registered
from epsilons.dataset.rows import follow
from epsilons.dataset.strata import may_calibrate, stratify, take_calibrated
from epsilons.engines.conditions import parse
from epsilons.errors import Argument, DataError, LedgerError, PlanError
from epsilons.ledger.values import Enrolment, StalePlanError, list_active, not_individual
from epsilons.measure import Remainder
from epsilons.mechanisms.base import charges_of
from epsilons.noise.entropy import Entropy
from epsilons.planner.choose import PlanRow
from epsilons.planner.guesses import guessing_all
from epsilons.planner.plan import Plan
from epsilons.release import Release
from epsilons.statistics.base import Question
from epsilons.statistics.count import Count
from epsilons.summaries.sql import check_asked

#: How often a plan is made anew because others were charged meanwhile.
_TRIES = 100


class Dataset(Registered, Asking):
    """A table about people, each of whom said how private they want to be.

    A steward registers it once (`Dataset.register`), in a ledger that lasts; whoever asks opens it (`Dataset.open`).
    `Dataset(...)` itself is both at once for a notebook, with a ledger in memory, and says so on every answer.

    `source` is a path (Parquet, CSV, JSON lines, a DuckDB file with `table=`; globs and lists of paths too), or a frame
    of pandas, polars or Arrow, or a DuckDB relation, or a Spark DataFrame; with `engine="spark"` the name of a table
    or a path that Spark reads. `person` names the column of ids, `preferences` say who asked for what. `types` declare
    the columns of a JSON file, and those of a CSV file that are no text. `bounds` are public bounds of columns, for
    questions that give none, `keys` those of groups; `complete` names columns in which nothing is missing. Nobody has a
    larger epsilon than the `ceiling`, but for public people.

    >>> import epsilons as eps
    >>> import pyarrow as pa
    >>> table = pa.table({"id": [1, 2, 3], "wage": [20.0, 30.0, 40.0], "epsilon": [0.5, 1.0, 1.0]})
    >>> people = eps.Dataset(table, person="id", preferences=eps.Preferences.from_column("epsilon"), ledger="memory")
    >>> answer = people.mean("wage", bounds=(0, 100), share=0.5)
    >>> people.remaining().epsilons
    {0.5: 0.25, 1.0: 0.5}
    """

    @check_call("run")
    def apply(
        self,
        algorithm: Any,
        *,
        columns: Sequence[str],
        target: str | None = None,
        name: str | None = None,
        where: str | None = None,
        threshold: float | str | None = None,
        share: float | None = None,
        private_under: str | None = None,
        rescale: bool = False,
        fresh: bool = False,
        analyst: str | None = None,
        entropy: Entropy | None = None,
    ) -> Release:
        """Any private algorithm made personal by Sample: run on a random sample of people, likelier the more open.

        `algorithm` is what `eps.personalize` takes. It gets an array of one column, a matrix of several columns of
        numbers, an Arrow table otherwise; with `target` a pair (features, target). `name` says which algorithm it is,
        so that the same question is known again; without a name every run is asked anew and charged. The result must
        survive JSON (numbers, text, lists, dicts); that the algorithm failed is a result too. `rescale=True` divides
        totals by the expected part of people in the sample, as in `eps.personalize`.
        """
        if isinstance(columns, (str, bytes)):
            raise PlanError("Columns are given as a list.", suggest=Argument("columns", [str(columns)]))
        given = {"where": where, "share": share, "fresh": fresh, "analyst": analyst, "entropy": entropy}
        options, schema = AskOptions.of(given, TABLES), self._facts.schema
        recipe = read_algorithm(algorithm, private_under, self._facts.rows, self._facts.neighbors)
        if recipe.takes_chances:
            rule, hint = "A table's rows are handed over without them.", Argument("rescale", True)
            raise PlanError("The algorithm asks for the chances of its records.", rule=rule, suggest=hint)
        if target is not None and not isinstance(target, str):
            raise PlanError("The target is one column.", suggest=Argument("target", "wage"))
        listed = tuple(schema.askable(one).name for one in columns)
        if not listed:
            raise PlanError("No columns were named.", suggest=Argument("columns", ["wage"]))
        aim = None if target is None else schema.askable(target).name
        condition = None if where is None else parse(where, schema)
        # An algorithm has no content that could be compared: without a name every run is a question of its own.
        options = replace(options, fresh=options.fresh or name is None)
        measure = self._facts.measure
        options = replace(options, delta=measure.delta, share=options.share or self._facts.share)
        counted = Question(Count(), self._facts.neighbors, measure=measure), None, condition, None, (), options
        public = self._facts.on_roster & (frozenset() if condition is None else condition.columns)
        rescaled = check_truth("rescale", rescale)
        applied = Applied(
            *counted, recipe, listed, aim, name, threshold, private_under, rescaled, public=public
        )  # fmt: skip
        return self._answer(ApplyAttempt, applied)

    @check_call("batch")
    def batch(self, share: float | None = None) -> Batch:
        """Several questions for one share, split where the error is least: `with people.batch(share=.2) as ask:`."""
        return Batch(self, share, self._facts)

    def count_charged(self) -> int:
        """How many questions were charged so far, to anybody of the ledger."""
        return self.ledger.count("reservations")

    def _ask(self, call: Call, planned: Plan | None = None) -> Release:
        """Check a call against the table, and put it to the door; with a plan only if it still holds."""
        asked = self._parse(call)
        return self._answer(Attempt if asked.parted is None else PartedAttempt, asked, planned)

    def _answer(self, kind: type[Attempt], asked: TableQuestion, planned: Plan | None = None) -> Release:
        """Plan anew as often as others were charged or people changed their minds meanwhile."""
        with self._lock:
            for _ in range(_TRIES):
                self._refresh()
                try:
                    attempt = kind(asked, self._facts, self._registry, self._preparation, planned)
                    return attempt.release()
                except StalePlanError:
                    self.ledger.renew()  # what made it stale may be that a period has begun
        raise LedgerError("The budgets keep changing; nothing was charged.", suggest="ask again when fewer others ask")

    def _find(self, call: Call) -> Release | None:
        """The stored answer, if there is one: nothing is charged, read or waited for."""
        question = question_key(self._facts, self._parse(call))
        held = self.ledger.find(question, question)
        return None if held is None or held.answer is None else Release.from_dict(json.loads(held.answer))

    def _is_answered(self, call: Call) -> bool:
        return self._find(call) is not None

    def _parse(self, call: Call) -> TableQuestion:
        """The question, with whatever would be refused about it said before anybody is charged."""
        asked = parse_question(call, self._facts)
        if call.options.privacy != "personalized" and not ((terms := self.ledger.terms()) and terms.allow_individual):
            raise not_individual()  # before a plan shows a price, or a hint leads on to a question that is refused
        if call.entry.model:
            return asked
        check_asked(self._preparation.prepared, asked.question.statistic, asked.column)
        return asked

    def _plan(self, call: Call, past: bool) -> Plan:
        """Every mechanism for a question, with what everybody has left; with `past` by what past answers tell."""
        asked, options = self._parse(call), call.options
        if (asked.on_preference or asked.on_roster) and counts_levels(asked, self._facts):
            raise NothingToPlanError("There is nothing to plan.", rule=FROM_THE_ROSTER)
        if asked.parted is not None:
            parts = list_parts(asked, self._facts, self.ledger.cohorts(self._registry.dataset))
            return plan_groups(parts, call, partial(self._plan, past=False), self._ask)
        with self._lock:
            self._refresh()
            everyone = self.ledger.cohorts(self._registry.dataset)
            cohorts = require_concerned(asked, self._facts, everyone)
            asked, known = size_by_roster(asked, self._facts, cohorts)
            certain = {one.name for one in known}
            if past:
                stored = self.ledger.answers(dataset=self._registry.dataset)
                found = find_known(asked, self._facts, stored, sum(one.people for one in list_active(cohorts)))
                known += tuple(one for one in found if one.name not in certain)
                asked = replace(asked, question=guessing_all(asked.question, known))
            share, spendable = spendable_for(asked, cohorts, self._registry.names)
            spendable = spendable.among(everyone)
        if spendable.levels.all_public:
            whom = "Everyone" if len(cohorts) == len(everyone) else "Everyone whom it concerns"
            raise NothingToPlanError("There is nothing to plan.", rule=f"{whom} is public: answers are exact.")

        def ask_row(row: PlanRow, mechanism: str, data: Sequence[Any], named: Mapping[str, Any]) -> Release:
            """The row as it was shown, if what people have left is still the same."""
            if data or named:
                raise PlanError("A plan of a table is asked as it is.", rule="Values and options are known already.")
            pinned = replace(row.pin_options(options, mechanism), share=row.share, error=None)
            return self._ask(replace(call, options=pinned), plan)

        settings = options.settings
        rate = None if asked.question.rate is None else Remainder(*vars(asked.question.rate).values())
        plan = Plan.make(asked.question, spendable.levels, Fraction(1), settings, options.mechanism, ask_row, rate)
        paid = [charges_of(row.chosen, asked.question, spendable.levels) for row in plan.rows]
        accounts = [spendable.account(charges) for charges in paid]
        rows = [replace(row, account=one, share=share) for row, one in zip(plan.rows, accounts, strict=True)]
        if may_calibrate(asked, self._facts) and (fine := stratify(spendable, cohorts, self._facts)) is not None:
            rows = take_calibrated(rows, fine, asked.question)
        first = not certain and needs_rough_count(asked, cohorts, self._registry.names)
        plan = replace(plan, rows=tuple(rows), of_grants=share, counts_first=first, known=known)
        return plan

    def _change(self, change: Callable[[], Enrolment]) -> Enrolment:
        """Who stands where, in the ledger and then beside the rows; refused at once if those are out of reach."""
        with self._lock:
            self._refresh()
            done = change()
            self._refresh()
        return done

    def _refresh(self) -> None:
        """After people changed their minds, here or elsewhere, the rows get their new cohorts."""
        self._check_open()
        here = self._registry
        if here.renews:
            here.ledger.renew()
        epoch, newest = here.ledger.state(here.dataset)
        if newest != here.registration.number:
            what, hint = f"{self._facts.name!r} was registered anew since it was opened.", "open it again"
            raise DataError(what, rule="Nothing was charged.", suggest=hint)
        if epoch != self._preparation.epoch:
            written = self._preparation.labelled
            self._preparation = follow(written, here.ledger.moves(written.line), self._preparation)

    def _check_open(self) -> None:
        if self._closed:
            raise DataError("This dataset is closed.", rule="Nothing is charged for a table that cannot be read.")
        self._engine.check_ready()
