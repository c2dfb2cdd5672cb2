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
from types import TracebackType
from typing import Any, Unpack

from epsilons.dataset import models
from epsilons.dataset.answers import Answers
from epsilons.dataset.applying import Applied, apply_through
from epsilons.dataset.asking import Meaning, Terms, Wording, understand
from epsilons.dataset.batch import Batch
from epsilons.dataset.description import Description
from epsilons.dataset.identity import question_key
from epsilons.dataset.options import DEFAULT_SHARE, ROWS, Manner, Options, divided, known
from epsilons.dataset.people import TablePeople
from epsilons.dataset.registry import Registry
from epsilons.dataset.spending import NothingToPlanError, reaching, sketch_of, spendable_at
from epsilons.dataset.version import version_of
from epsilons.engines.base import NUMBER, TRUTH, open_table
from epsilons.errors import DataError, LedgerError, PlanError
from epsilons.guarantee import to_epsilon
from epsilons.ledger.ledger import Ledger
from epsilons.ledger.values import Cohort, Enrolment, Past, Remaining, StalePlanError
from epsilons.noise.entropy import Entropy, system
from epsilons.planner.plan import Plan
from epsilons.preferences import Preferences
from epsilons.release import Release, exact_release, make_release
from epsilons.release.door import Request, pass_through
from epsilons.release.sketch import Sketch, asked_of
from epsilons.statistics.base import check_bounds
from epsilons.statistics.queries import check_asked
from epsilons.statistics.question import Question

#: How often a plan is made anew because others were charged meanwhile.
_TRIES = 100

Bounds = tuple[float, float] | None


class Dataset:
    """A table about people, each of whom said how private they want to be.

    `source` is a path (Parquet, CSV, JSON lines, a DuckDB file with `table=`; globs and lists of paths too), or a frame
    of pandas, polars or Arrow, or a DuckDB relation, or a Spark DataFrame; with `engine="spark"` the name of a table
    or a path that Spark reads. `person` names the column of ids. `preferences` say who asked for
    what. `ledger` is an address such as "sqlite:///wages.ledger", an open ledger, or None for one in memory, which is
    gone with this object. `types` declares columns of CSV and JSON files, which are text otherwise. `bounds` are public
    bounds of columns, for questions that give none. `complete` names columns in which nothing is missing.

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
        whole = frozenset(schema.find(name).name for name in _listed(complete))
        self._terms = Terms(schema, schema.find(person).name, neighbors, rows_per_person, whole, known)
        self._version = version_of(version, self._engine.files)
        self._registry = Registry(self._engine, person, preferences, ledger)
        self._registry.settle(neighbors, rows_per_person, allow_individual)
        self._enrolled = self._registry.enroll()
        self._preparation = self._registry.prepare(rows_per_person)
        self._seconds = time.perf_counter() - started

    # Statistics -----------------------------------------------------------------------------------------------------

    def count(self, column: str | None = None, *, of: str | None = None, **options: Unpack[Options]) -> Release:
        """How many people, or rows (`of="rows"`), meet the condition; of a column, those whose value is 1."""
        return self._ask(Wording("count", column, of=of), options)

    def sum(self, column: str, *, bounds: Bounds = None, **options: Unpack[Options]) -> Release:
        """The sum of values clipped to public bounds."""
        return self._ask(Wording("sum", column, bounds), options)

    def mean(self, column: str, *, bounds: Bounds = None, **options: Unpack[Options]) -> Release:
        """The mean of values clipped to public bounds."""
        return self._ask(Wording("mean", column, bounds), options)

    def variance(self, column: str, *, bounds: Bounds = None, **options: Unpack[Options]) -> Release:
        """The variance (divided by the number of values) of values clipped to public bounds."""
        return self._ask(Wording("variance", column, bounds), options)

    def median(
        self, column: str, *, bounds: Bounds = None, step: float | None = None, **options: Unpack[Options]
    ) -> Release:
        """The median, on a public grid of possible answers (65,536 steps unless `step` is given)."""
        return self._ask(Wording("median", column, bounds, step), options)

    def quantile(
        self, column: str, q: float, *, bounds: Bounds = None, step: float | None = None, **options: Unpack[Options]
    ) -> Release:
        """The value below which a fraction `q` lies, on a public grid of possible answers."""
        return self._ask(Wording("quantile", column, bounds, step, q=q), options)

    def min(
        self, column: str, *, bounds: Bounds = None, step: float | None = None, **options: Unpack[Options]
    ) -> Release:
        """The smallest value, on a public grid of possible answers."""
        return self._ask(Wording("min", column, bounds, step), options)

    def max(
        self, column: str, *, bounds: Bounds = None, step: float | None = None, **options: Unpack[Options]
    ) -> Release:
        """The largest value, on a public grid of possible answers."""
        return self._ask(Wording("max", column, bounds, step), options)

    def kth_largest(
        self, column: str, k: int = 2, *, bounds: Bounds = None, step: float | None = None, **options: Unpack[Options]
    ) -> Release:
        """The k-th largest value (k=1 is the maximum), on a public grid of possible answers."""
        return self._ask(Wording("kth_largest", column, bounds, step, k=k), options)

    def histogram(
        self,
        column: str,
        *,
        edges: Sequence[float] | None = None,
        categories: Sequence[Hashable] | None = None,
        outside: str = "drop",
        **options: Unpack[Options],
    ) -> Release:
        """Rows per bin [edge, next edge), or per category; outside is dropped, or clipped with `outside="clip"`."""
        return self._ask(Wording("histogram", column, edges=edges, categories=categories, outside=outside), options)

    def linear_regression(
        self,
        target: str,
        features: Sequence[str],
        *,
        bounds: Mapping[str, tuple[float, float]] | None = None,
        **options: Unpack[Options],
    ) -> Release:
        """Least squares of a column on others, with an intercept; `bounds` are public bounds of all these columns."""
        where, by = options.get("where"), options.get("by")
        return self._pass(options, lambda: models.linear(target, features, bounds, where, by, self._terms))

    def logistic_regression(
        self,
        target: str,
        features: Sequence[str],
        *,
        bounds: Mapping[str, tuple[float, float]] | None = None,
        classes: Sequence[Any] = (0, 1),
        **options: Unpack[Options],
    ) -> Release:
        """Log-odds of the second of two public classes of a column, linear in other columns."""
        where, by = options.get("where"), options.get("by")
        return self._pass(options, lambda: models.logistic(target, features, bounds, classes, where, by, self._terms))

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
        fresh: bool = False,
        analyst: str | None = None,
        entropy: Entropy | None = None,
    ) -> Release:
        """Any private algorithm made personal by Sample: run on a random sample of people, likelier the more open.

        `algorithm` is what `eps.personalize` takes. It gets an array of one column, a matrix of several columns of
        numbers, an Arrow table otherwise; with `target` a pair (features, target). `name` says which algorithm it is,
        so that the same question is known again; without a name every run is asked anew and charged. The result must
        survive JSON (numbers, words, lists, dicts); that the algorithm failed is a result too.
        """
        if isinstance(columns, (str, bytes)):
            raise PlanError("Columns are given as a list.", hint=f'columns=["{columns!s}"]')
        asked = Applied(algorithm, tuple(columns), target, name, where, threshold, private_under)
        manner = Manner.of({"share": share, "fresh": fresh, "analyst": analyst, "entropy": entropy})
        with self._lock:
            return self._until_it_fits(lambda: self._apply(asked, manner))

    def _apply(self, asked: Applied, manner: Manner) -> Release:
        prepared, registry = self._preparation, self._registry
        return apply_through(asked, manner, self._terms, self._version.label, prepared, registry.ledger, registry.names)

    # Before spending ------------------------------------------------------------------------------------------------

    def plan(self, statistic: str, column: str | None = None, **arguments: Any) -> Plan:
        """What every mechanism would cost and how far it would err, with what everybody has left. Free.

        `arguments` are those of the statistic's method.
        """
        wording, options = divided(statistic, column, arguments)
        manner = Manner.of(options)
        with self._lock:
            self._refresh()
            question, _ = self._question(wording, manner)
            cohorts = manner.looked_at(self._registry.cohorts())
            share = self._share(manner, question, cohorts)
            spendable = spendable_at(share, cohorts, self._registry.names, manner.part)
        if spendable.levels.all_public:
            raise NothingToPlanError("There is nothing to plan.", rule="Everyone is public: answers are exact.")
        plan = Plan.make(question, spendable.levels, Fraction(1), manner.settings)
        rows = []
        for row in plan.rows:
            charges = spendable.by_grant(row.chosen.charge(question, spendable.levels))
            shown = {to_epsilon(granted): to_epsilon(charge or 0) for granted, charge in charges.items()}
            rows.append(replace(row, charges=shown))
        return replace(plan, rows=tuple(rows), of_grants=share)

    def key(self, column: str, word: str) -> Any:
        """A key written as a word, in the type of its column: groups of a column of numbers are numbers."""
        kind = self._terms.schema.find(column)
        if kind.family == NUMBER:
            try:
                return float(word) if kind.floating or kind.scale else int(word)
            except ValueError:
                raise PlanError(f"{word!r} is not a number.", rule=f"Column {kind.name!r} holds numbers.") from None
        if kind.family == TRUTH:
            return word.strip().lower() in ("true", "1", "yes")
        return word

    @classmethod
    def from_toml(cls, path: str | os.PathLike[str]) -> Dataset:
        """The dataset that a file such as people.toml declares; `epsilons init` writes one."""
        from epsilons.dataset.declared import arguments_of

        return cls(**arguments_of(path))

    def batch(self, share: float = DEFAULT_SHARE) -> Batch:
        """Several questions for one share, split where the error is least: `with people.batch(share=.2) as ask:`."""
        return Batch(self, share, self._terms)

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

    def describe(self) -> Description:
        """Columns, people per level, bounds known, the ledger's state. Public facts; no charge."""
        with self._lock:
            self._refresh()
            return self._registry.describe(self._terms, self._version.words, self._enrolled.pending, self._seconds)

    # The books ------------------------------------------------------------------------------------------------------

    @property
    def ledger(self) -> Ledger:
        """The books."""
        return self._registry.ledger

    def remaining(self) -> Remaining:
        """What everybody has left: `.epsilons`, `.cohorts`, `.questions`."""
        return self.ledger.remaining()

    def history(self) -> tuple[Past, ...]:
        """Every question that was charged, with the grants in force then."""
        return tuple(replace(past, description=asked_of(past.description)) for past in self.ledger.history())

    def set_preferences(self, wishes: Any) -> Enrolment:
        """What people said themselves: {id: epsilon or name of a level}, or a table with their ids and wishes."""
        return self._change(lambda: self._registry.set_preferences(wishes))

    def withdraw(self, people: Any) -> Enrolment:
        """These people (a list of ids) are not used any more; their accounts stay. `unknown` were not on the roster."""
        return self._change(lambda: self._registry.withdraw(people))

    def sync_preferences(self) -> Enrolment:
        """Take the wishes of the table as they stand now, looser ones too.

        Rows stay those of the version that was opened; another version is another dataset.
        """
        with self._lock:
            self._enrolled = self._change(self._registry.sync)
            return self._enrolled

    def _change(self, change: Callable[[], Enrolment]) -> Enrolment:
        """Who stands where, in the books and then beside the rows; refused at once if those are out of reach."""
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __str__(self) -> str:
        return str(self.describe())

    def _repr_html_(self) -> str:
        return self.describe()._repr_html_()

    # One question ---------------------------------------------------------------------------------------------------

    def _ask(self, wording: Wording, options: Options) -> Release:
        wording = replace(wording, **{name: options[name] for name in ROWS if name in options})  # type: ignore[literal-required]
        return self._pass(options, lambda: wording)

    def _pass(self, options: Options, asked: Callable[[], Wording | Meaning]) -> Release:
        manner = Manner.of(known(options))
        with self._lock:
            return self._until_it_fits(lambda: self._answer(asked(), manner))

    def _until_it_fits(self, attempt: Callable[[], Release]) -> Release:
        """Plan anew as often as others were charged meanwhile."""
        for _ in range(_TRIES):
            self._refresh()
            try:
                return attempt()
            except StalePlanError:
                continue
        raise LedgerError(
            "The budgets keep changing; nothing was charged.",
            rule="A charge is made only if it fits what everyone has left at that moment.",
            hint="ask again when fewer others ask",
        )

    def _answer(self, asked: Wording | Meaning, manner: Manner) -> Release:
        question, meaning = self._question(asked, manner)
        registry, preparation = self._registry, self._preparation
        individual = manner.privacy != "personalized"
        key = question_key(
            self._terms, self._version.label, preparation.epoch, meaning.identity(), manner.identity(), manner.fresh
        )
        request = Request(key, preparation.epoch, question.statistic.name, meaning.words, individual, manner.analyst)

        known: list[Cohort] = []

        def plan() -> Sketch:
            known[:] = cohorts = registry.cohorts()
            share = self._share(manner, question, cohorts)
            spendable = spendable_at(share, cohorts, registry.names, manner.part)
            return sketch_of(question, manner.mechanism, manner.settings, spendable)

        def resume(text: str) -> Sketch:
            # Who is in which cohort changes with the epoch only, and a charge is refused when that has changed.
            return Sketch.from_text(text, question, known or registry.cohorts(), registry.names)

        def read(sketch: Sketch) -> Release:
            levels, places = sketch.spendable.levels, sketch.spendable.places(preparation.cohorts)
            people = TablePeople(preparation, meaning.column, meaning.where, meaning.by, levels, places)
            if sketch.mechanism is None:
                return exact_release(question, people, meaning.notes)
            entropy = system() if manner.entropy is None else manner.entropy
            return make_release(sketch.mechanism, question, people, entropy, sketch.why, meaning.notes)

        return pass_through(registry.ledger, request, plan, resume, read)

    def _question(self, asked: Wording | Meaning, manner: Manner) -> tuple[Question, Meaning]:
        if isinstance(asked, Meaning):
            return manner.question(asked.statistic, self._terms.neighbors), asked
        meaning = understand(asked, self._terms, manner.density, manner.location)
        question = manner.question(meaning.statistic, self._terms.neighbors)
        check_asked(self._preparation.prepared, meaning.statistic, meaning.column)
        if (
            manner.privacy == "individual"
            and meaning.statistic.name in ("sum", "mean")
            and not meaning.statistic.private_count
        ):
            raise PlanError(
                f"Individual privacy for a {meaning.statistic.name} works on arrays.",
                rule="A table's summary does not say how far single people move it.",
                hint="a count, a histogram or an order statistic",
            )
        return question, meaning

    def _share(self, manner: Manner, question: Question, cohorts: Sequence[Any]) -> Fraction:
        if manner.error is None:
            assert manner.share is not None
            return manner.share
        names = self._registry.names
        return reaching(manner.error, question, manner.mechanism, manner.settings, cohorts, names)

    def _refresh(self) -> None:
        """After people changed their minds, here or elsewhere, the rows get their new cohorts."""
        self._check_open()
        self._preparation = self._registry.renewed(self._preparation)

    def _check_open(self) -> None:
        if self._closed:
            raise DataError("This dataset is closed.", rule="Nothing is charged for a table that cannot be read.")
        self._engine.check_ready()


def _listed(complete: Any) -> Sequence[str]:
    if isinstance(complete, (str, bytes)) or not isinstance(complete, Sequence):
        raise DataError("Complete columns are given as a list.", hint='complete=["age"]')
    return complete
