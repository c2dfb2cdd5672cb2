"""`Dataset`: a table, its people, their preferences; the statistics as methods.

Every method that answers goes through the one door (`release.door`): the charge is durable before a row is read.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from epsilons.accuracy.relation import Relation
from epsilons.arguments.checks import check_bounds, check_truth
from epsilons.arguments.options import DEFAULT_SHARE, TABLES
from epsilons.arguments.reading import AskOptions, Call, check_call
from epsilons.arrays.algorithms import read_algorithm
from epsilons.calls import query_signature
from epsilons.dataset.answers import Answers
from epsilons.dataset.applying import Applied, ApplyAttempt
from epsilons.dataset.attempt import Attempt, NothingToPlanError, spendable_for
from epsilons.dataset.batch import Batch
from epsilons.dataset.facts import Description, TableFacts, label_version
from epsilons.dataset.levels import FROM_THE_ROSTER, counts_levels
from epsilons.dataset.methods import Questions
from epsilons.dataset.people import renew
from epsilons.dataset.question import TableQuestion, parse_question
from epsilons.dataset.registry import Registry
from epsilons.engines.base import NUMBER, TRUTH, open_table
from epsilons.engines.conditions import parse
from epsilons.errors import Argument, DataError, LedgerError, PlanError
from epsilons.ledger.balances import Remaining
from epsilons.ledger.ledger import Ledger
from epsilons.ledger.values import Enrolment, History, StalePlanError
from epsilons.noise.entropy import Entropy
from epsilons.planner.choose import PlanRow
from epsilons.planner.plan import Plan
from epsilons.preferences import Preferences
from epsilons.release import Release
from epsilons.release.door import asked_of
from epsilons.release.stored import StoredAnswers
from epsilons.statistics.base import Question
from epsilons.statistics.count import Count
from epsilons.summaries.sql import check_asked

#: How often a plan is made anew because others were charged meanwhile.
_TRIES = 100


class Dataset(Questions):
    """A table about people, each of whom said how private they want to be.

    `source` is a path (Parquet, CSV, JSON lines, a DuckDB file with `table=`; globs and lists of paths too), or a frame
    of pandas, polars or Arrow, or a DuckDB relation, or a Spark DataFrame; with `engine="spark"` the name of a table
    or a path that Spark reads. `person` names the column of ids, `preferences` say who asked for what. `ledger` is an
    address ("sqlite:///wages.ledger"), an open ledger, or None for one in memory. `types` declare the columns of a JSON
    file, and those of a CSV file that are no text. `bounds` are public bounds of columns, for questions that give none.
    `complete` names columns in which nothing is missing.

    >>> import epsilons as eps
    >>> import pyarrow as pa
    >>> table = pa.table({"id": [1, 2, 3], "wage": [20.0, 30.0, 40.0], "epsilon": [0.5, 1.0, 1.0]})
    >>> people = eps.Dataset(table, person="id", preferences=eps.Preferences.from_column("epsilon"))
    >>> answer = people.mean("wage", bounds=(0, 100), share=0.5)
    >>> people.remaining().epsilons
    {0.5: 0.25, 1.0: 0.5}
    """

    def __init__(
        self,
        source: Any,
        *,
        person: str,
        preferences: Preferences | Mapping[Any, float] | float,
        rows_per_person: int = 1,
        neighbors: str = "absent",
        ledger: str | Ledger | None = None,
        complete: Sequence[str] = (),
        version: str | None = None,
        allow_individual: bool = False,
        bounds: Mapping[str, tuple[float, float]] | None = None,
        types: Mapping[str, str] | None = None,
        table: str | None = None,
        threads: int | None = None,
        memory: str | None = None,
        engine: str | None = None,
    ) -> None:
        started = time.perf_counter()
        self._lock = threading.RLock()
        self._closed = False
        self._engine = open_table(source, engine, types=types, table=table, threads=threads, memory=memory)
        schema = self._engine.schema
        known = {schema.number(name).name: check_bounds(pair, "column") for name, pair in (bounds or {}).items()}
        if isinstance(complete, (str, bytes)) or not isinstance(complete, Sequence):
            raise DataError("Complete columns are given as a list.", suggest=Argument("complete", ["age"]))
        whole = frozenset(schema.find(name).name for name in complete)
        self._facts = TableFacts(schema, schema.find(person).name, neighbors, rows_per_person, whole, known)
        self._version, self._shown_version = label_version(version, self._engine.files)
        self._registry = Registry(self._engine, person, preferences, ledger)
        self._facts = replace(self._facts, **self._registry.preference_facts())
        self.ledger.settle_terms(neighbors, rows_per_person, allow_individual)
        self._enrolled = self._registry.enroll()
        self._preparation = self._registry.prepare(rows_per_person)
        self._seconds = time.perf_counter() - started

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
        share: float = DEFAULT_SHARE,
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
        counted = Question(Count(), self._facts.neighbors), None, condition, None, (), options
        applied = Applied(
            *counted, recipe, listed, aim, name, threshold, private_under, check_truth("rescale", rescale)
        )
        return self._answer(ApplyAttempt, applied)

    def key(self, column: str, word: str) -> Any:
        """A key written as text, in the type of its column: groups of a column of numbers are numbers."""
        kind = self._facts.schema.find(column)
        if kind.family == NUMBER:
            try:
                return float(word) if kind.floating or kind.scale else int(word)
            except ValueError:
                raise PlanError(f"{word!r} is not a number.", rule=f"Column {kind.name!r} holds numbers.") from None
        return word.strip().lower() in ("true", "1", "yes") if kind.family == TRUTH else word

    @classmethod
    def from_toml(cls, path: str | os.PathLike[str]) -> Dataset:
        """The dataset that a file such as people.toml declares; `epsilons init` writes one."""
        from epsilons.dataset.declared import arguments_of

        return cls(**arguments_of(path))

    @check_call("batch")
    def batch(self, share: float = DEFAULT_SHARE) -> Batch:
        """Several questions for one share, split where the error is least: `with people.batch(share=.2) as ask:`."""
        return Batch(self, share, self._facts)

    def sql(
        self,
        query: str,
        *,
        share: float = DEFAULT_SHARE,
        bounds: Mapping[str, tuple[float, float]] | None = None,
        keys: Mapping[str, Sequence[Hashable]] | None = None,
        **options: Any,
    ) -> Answers:
        """The part of SQL that maps to the statistics; several aggregates split one share.

        `bounds` are those of the columns, `keys` the groups of the columns of GROUP BY. Other options are those of
        every statistic (`assume`, `missing`, ...). A batch shows the plan first: `ask.sql(...)`, then `ask.plan()`.
        """
        batch = self.batch(share)
        batch.sql(query, bounds=bounds, keys=keys, **options)
        return batch.ask()

    sql.__signature__ = query_signature(Answers, DEFAULT_SHARE)  # type: ignore[attr-defined]

    def relation(self, column: str, *, share: float = 0.02, **options: Any) -> Relation:
        """How far levels' expected means can lie from everyone's: what later questions may take as `assume`, for free.

        Each level's own noisy mean is bought with a share of everybody's grant, as by `mean(..., mechanism="mixed")`;
        other options are those of a mean. Missing values stand at the centre of the bounds.
        """
        answer = self.mean(column, share=share, **Relation.question(options))
        return Relation.of(answer.details.get("levels", ()))

    def describe(self) -> Description:
        """Columns, people per level, bounds known, the ledger's state. Public facts; no charge."""
        with self._lock:
            self._refresh()
            return self._registry.describe(self._facts, self._shown_version, self._enrolled.pending, self._seconds)

    @property
    def ledger(self) -> Ledger:
        """People's accounts."""
        return self._registry.ledger

    def remaining(self) -> Remaining:
        """What everybody has left: `.levels`, of each the least as `.epsilons`; `.cohorts` and `.questions`."""
        return self.ledger.remaining()

    def history(self) -> History:
        """Every question that was charged, with the grants in force then."""
        return History(replace(past, description=asked_of(past.description)) for past in self.ledger.history())

    def answers(self) -> StoredAnswers:
        """Every answer that the ledger stored, by its number: free, newest last, also after the roster changed."""
        return StoredAnswers.of(self.ledger)

    def set_preferences(self, preferences: Any) -> Enrolment:
        """What people asked for themselves: {id: epsilon or name of a level}, or a table with ids and preferences."""
        return self._change(lambda: self._registry.set_preferences(preferences))

    def withdraw(self, people: Any) -> Enrolment:
        """These people (a list of ids) are not used any more; their accounts stay. `unknown` were not on the roster."""
        return self._change(lambda: self._registry.withdraw(people))

    def sync_preferences(self) -> Enrolment:
        """Take the preferences of the table as they stand now, looser ones too.

        Rows stay those of the version that was opened; another version is another dataset.
        """
        with self._lock:
            self._enrolled = self._change(self._registry.sync)
            return self._enrolled

    def _change(self, change: Callable[[], Enrolment]) -> Enrolment:
        """Who stands where, in the ledger and then beside the rows; refused at once if those are out of reach."""
        with self._lock:
            self._check_open()
            done = change()
            self._refresh()
        return done

    def close(self) -> None:
        """Let go of the table, and of the ledger if it was opened here."""
        with self._lock:
            self._closed = True
            self._engine.close()
            self._registry.close()

    def __enter__(self) -> Dataset:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def __str__(self) -> str:
        return str(self.describe())

    def _repr_html_(self) -> str:
        return self.describe()._repr_html_()

    def _ask(self, call: Call, planned: Plan | None = None) -> Release:
        """Check a call against the table, and put it to the door; with a plan only if it still holds."""
        return self._answer(Attempt, self._parse(call), planned)

    def _answer(self, kind: type[Attempt], asked: TableQuestion, planned: Plan | None = None) -> Release:
        """Plan anew as often as others were charged or people changed their minds meanwhile."""
        with self._lock:
            for _ in range(_TRIES):
                self._refresh()
                try:
                    attempt = kind(asked, self._facts, self._version, self._registry, self._preparation, planned)
                    return attempt.release()
                except StalePlanError:
                    continue
        raise LedgerError("The budgets keep changing; nothing was charged.", suggest="ask again when fewer others ask")

    def _parse(self, call: Call) -> TableQuestion:
        """The question, with whatever would be refused about it said before anybody is charged."""
        asked = parse_question(call, self._facts)
        if call.entry.model:
            return asked
        statistic = asked.question.statistic
        check_asked(self._preparation.prepared, statistic, asked.column)
        if call.options.privacy == "individual" and statistic.name in ("sum", "mean") and statistic.scope is None:
            what = f"Individual privacy for a {statistic.name} works on arrays."
            raise PlanError(what, rule="A table's summary does not say how far single people move it.")
        return asked

    def _plan(self, call: Call) -> Plan:
        """Every mechanism for a question, with what everybody has left."""
        asked, options = self._parse(call), call.options
        if counts_levels(asked, self._facts):
            raise NothingToPlanError("There is nothing to plan.", rule=FROM_THE_ROSTER)
        with self._lock:
            self._refresh()
            share, spendable = spendable_for(asked, self.ledger.cohorts(), self._registry.names)
        if spendable.levels.all_public:
            raise NothingToPlanError("There is nothing to plan.", rule="Everyone is public: answers are exact.")

        def ask_row(row: PlanRow, mechanism: str, data: Sequence[Any], named: Mapping[str, Any]) -> Release:
            """The row as it was shown, if what people have left is still the same."""
            if data or named:
                raise PlanError("A plan of a table is asked as it is.", rule="Values and options are known already.")
            pinned = replace(row.pin_options(options, mechanism), share=row.share, error=None)
            return self._ask(replace(call, options=pinned), plan)

        settings = options.settings
        plan = Plan.make(asked.question, spendable.levels, Fraction(1), settings, options.mechanism, ask_row)
        accounts = [spendable.account([charge for _, charge in row.account.losses]) for row in plan.rows]
        rows = [replace(row, account=one, share=share) for row, one in zip(plan.rows, accounts, strict=True)]
        plan = replace(plan, rows=tuple(rows), of_grants=share)
        return plan

    def _refresh(self) -> None:
        """After people changed their minds, here or elsewhere, the rows get their new cohorts."""
        self._check_open()
        if self._registry.ledger.epoch != self._preparation.epoch:
            self._preparation = renew(self._preparation, self.ledger.members())

    def _check_open(self) -> None:
        if self._closed:
            raise DataError("This dataset is closed.", rule="Nothing is charged for a table that cannot be read.")
        self._engine.check_ready()
