"""Registering a dataset: its source is read once, its people are enrolled, its rows become a snapshot.

The order keeps a registration whole. The source is read; the snapshot is written and checked; then, in one transaction
of the ledger, terms, levels and roster are settled and the snapshot's stamp is kept. What fails before that leaves the
ledger as it was, and what is left of a snapshot is swept by the next registration.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from epsilons.arguments.checks import check_bounds, check_real
from epsilons.arguments.options import DEFAULT_QUESTIONS
from epsilons.dataset.facts import TableFacts, find_origin, tell_changes, tell_preferences
from epsilons.dataset.question import plain_keys
from epsilons.dataset.registry import Registry, read_epsilons
from epsilons.dataset.rows import Preparation, find_cohorts, follow, prepare, stage
from epsilons.dataset.snapshot import open_snapshot, remove_snapshot, sweep_snapshots, write_snapshot
from epsilons.engines.base import TEXT, Column, Engine, Schema, open_table
from epsilons.errors import Argument, DataError, EpsilonsError, LedgerError, PreferenceError, Text
from epsilons.ledger.checks import check_terms
from epsilons.ledger.consent import PUBLIC_CODE
from epsilons.ledger.identity import normalise
from epsilons.ledger.ledger import Ledger
from epsilons.ledger.opening import find_places, state_folder
from epsilons.ledger.order import as_sorted
from epsilons.ledger.places import mark_content
from epsilons.ledger.registration import Application, Outlook, same_state
from epsilons.ledger.renewal import check_renews
from epsilons.ledger.values import Digests, Enrolment, Registration, Terms
from epsilons.measure import ZCDP, Measure, check_delta
from epsilons.noise.entropy import system
from epsilons.planner.budget import check_questions
from epsilons.preferences import LARGEST_EPSILON, Preferences, to_nano
from epsilons.storage import show_address, sqlite_path

if TYPE_CHECKING:
    from epsilons.dataset.preferences import PreferenceTable

#: The largest epsilon that a person may have, unless the steward says otherwise; public people have none. And the most
#: that a steward may say where accounts are concentrated, whose units then fit an integer of 64 bits.
CEILING, HIGHEST = 10.0, 1000.0
_EXAMPLES: Mapping[str, Any] = {"bounds": {"wage": (0, 100)}, "keys": {"region": ["north", "south"]}}
#: What an engine takes, beside the source.
_ENGINE = ("types", "table", "dialect", "threads", "memory")


@dataclass(frozen=True)
class Declared:
    """What the steward settles about a dataset, besides its source and its preferences."""

    name: str
    person: str
    version: str | None = None
    rows_per_person: int = 1
    neighbors: str = "absent"
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    keys: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    complete: Sequence[str] = ()
    public: Sequence[str] = ()
    ceiling: float = CEILING
    measure: str = "pure"
    delta: float | None = None
    renews: str | Mapping[str, str] | None = None
    questions: int = DEFAULT_QUESTIONS
    accounts: str = "cohort"
    allow_individual: bool = False
    types: Mapping[str, str] | None = None
    table: str | None = None
    threads: int | None = None
    memory: str | None = None
    engine: str | None = None
    dialect: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        check_label("name", self.name, "wages")
        if self.version is not None:
            check_label("version", self.version, "2026-11")
        if self.accounts != "cohort":
            what: Text = ("There is no other ", Argument("accounts"), ".")
            raise LedgerError(what, rule="Accounts are kept by cohort.", suggest=Argument("accounts", "cohort"))
        check_terms(self.neighbors, self.rows_per_person, self.allow_individual, self.counted)
        check_questions(self.questions)
        for name in ("bounds", "keys"):
            if not isinstance(getattr(self, name), Mapping):
                raise DataError((Argument(name), " is given by column."), suggest=Argument(name, _EXAMPLES[name]))
        try:
            good = 0 < check_real(self.ceiling) <= LARGEST_EPSILON
        except (TypeError, ValueError):
            good = False
        if not good:
            raise PreferenceError("The ceiling is no epsilon.", suggest=Argument("ceiling", CEILING))
        if self.delta is not None and self.ceiling > HIGHEST:
            rule = f"Concentrated accounts are for epsilons up to {HIGHEST:g}."
            raise PreferenceError("The ceiling is too high.", rule=rule, suggest=Argument("ceiling", CEILING))

    @property
    def counted(self) -> str:
        """The measure as terms have it; a delta and concentrated accounts go together."""
        if (self.measure == ZCDP) != (self.delta is not None):
            both = (Argument("measure", ZCDP), " and ", Argument("delta", 1e-6), ", or neither")
            raise LedgerError("Accounts that count rho have one delta, and only they.", suggest=both)
        return self.measure if self.delta is None else Measure(check_delta(self.delta)).to_text()

    def open_source(self, source: Any) -> Engine:
        """The table itself; nothing of it is read yet."""
        return open_table(source, self.engine, **{name: getattr(self, name) for name in _ENGINE})

    def about(self, schema: Schema, source: Any, wishes: Preferences) -> dict[str, Any]:
        """What the ledger keeps, checked against the table's columns, as plain values."""
        pairs = {schema.bounded(name).name: list(check_bounds(pair, "column")) for name, pair in self.bounds.items()}
        return {
            "person": schema.find(self.person).name,
            "rows_per_person": int(self.rows_per_person),
            "ceiling": check_real(self.ceiling),
            "questions": check_questions(self.questions),
            "bounds": pairs,
            "keys": dict(plain_keys(schema.askable(name), keys) for name, keys in self.keys.items()),
            "complete": sorted(schema.askable(name).name for name in _listed("complete", self.complete)),
            "public": sorted(schema.askable(name).name for name in _listed("public", self.public)),
            "origin": find_origin(source, self.engine in (None, "duckdb")),
            "table": self.table,
            "types": dict(self.types or {}),
            "dialect": dict(self.dialect or {}),
            **tell_preferences(wishes, schema),
            **({} if self.renews is None else {"renews": check_renews(self.renews, wishes.levels)}),
        }

    def source(self, files: Sequence[str], began: int | None = None) -> dict[str, Any] | None:
        """By what rows are known to be as they were: files, and how they are read; None if that cannot be told.

        It cannot be told of a file that was written after reading `began`.
        """
        stated = [[os.path.realpath(path), os.stat(path).st_size, os.stat(path).st_mtime_ns] for path in files]
        if began is not None and any(os.stat(path).st_mtime_ns >= began for path in files):
            return None
        written = {"dialect": dict(self.dialect)} if self.dialect else {}
        return {"files": stated, "types": dict(self.types or {}), "table": self.table, **written} if stated else None


class UnregisteredError(LedgerError):
    """A ledger does not know the dataset that it is asked for."""


def check_label(argument: str, given: Any, example: str) -> str:
    """A short text that people can quote."""
    if not isinstance(given, str) or not given.strip() or len(given) > 200 or not given.isprintable():
        rule = "A short text that people can quote."
        raise DataError((Argument(argument), " is not a label."), rule=rule, suggest=Argument(argument, example))
    return given


def _listed(argument: str, given: Any) -> Sequence[str]:
    if isinstance(given, (str, bytes)) or not isinstance(given, Sequence):
        raise DataError((Argument(argument), " is given as a list of columns."), suggest=Argument(argument, ["age"]))
    return given


@dataclass(frozen=True, eq=False)
class Opened:
    """A dataset that can be asked."""

    engine: Engine
    facts: TableFacts
    registry: Registry
    preparation: Preparation
    enrolment: Enrolment | None
    seconds: float


class Act(NamedTuple):
    """What the steward says to a registration: many may be new; so many may be loosened; levels mean this for all."""

    confirm: bool = False
    loosen: int | None = None
    redefine: bool = False


@dataclass(eq=False)
class Candidate:
    """A source that was read, once, for a ledger; registered only when that is said."""

    declared: Declared
    ledger: Ledger
    engine: Engine
    person: Column
    about: Mapping[str, Any]
    #: The files that it was read from, and by what their content is known again.
    files: Mapping[str, str]
    #: What everyone asked for, in the order of their digests.
    asked: PreferenceTable
    people: Digests
    preferences: Preferences
    terms: Terms
    started: float
    #: Whether the engine goes on holding what was read.
    kept: bool = False
    _ahead: tuple[Act, Outlook] | None = None

    def go_to(self, ledger: Ledger) -> None:
        """Be registered in another ledger: a new one that this one stood in for, or one that knows other digests."""
        before, self.ledger = self.ledger, ledger
        if (before.salt, before.digest) != (ledger.salt, ledger.digest):
            self._ahead = None
            self.asked, self.people = self.asked.sort(ledger.salt, ledger.digest)

    def foresee(self, act: Act) -> Outlook:
        """What registering would do, and what it would be refused for; nothing is written.

        It is worked out once: if the ledger changes afterwards, it finds that itself.
        """
        if self._ahead is not None and self._ahead[0] == act:
            return self._ahead[1]
        ahead, held = self.ledger.foresee(self._application({}, act)), self.ledger.find_registration(self.declared.name)
        objections = list(ahead.objections)
        # A ledger that does not know the dataset yet gives people a budget: another one may have done so before.
        if not act.confirm and held is None:
            try:
                find_places().refuse_second(self.ledger.id, self.declared.name, self.files)
            except LedgerError as refused:
                objections.insert(0, refused)
        levels, known = (read_epsilons(one, self.terms.counted) for one in (ahead.levels, ahead.before))
        before: dict[str, Any] = {"levels": known} if known else {}
        before |= {} if held is None else {**held.about, "levels": known, "version": held.version}
        unlabelled = {} if self.declared.version else {"version": self.version}
        changes = tell_changes(before, {**self.about, "levels": levels, **unlabelled})
        settled = *ahead.expected.settled, *(f"{told}; {follows}" for told, follows in changes)
        ahead = replace(ahead, expected=replace(ahead.expected, settled=settled), objections=tuple(objections))
        self._ahead = act, ahead
        return ahead

    def keep_in_memory(self, own: bool) -> Opened:
        """Registered in a ledger that is gone with this process; the rows stay in the engine."""
        made, done = self.ledger.register(self._application({}, Act(confirm=True)))
        registry = Registry(self.ledger, made, "in memory, gone with this process", own)
        facts = self.ledger.moves(0), self.declared.rows_per_person, self.ledger.salt
        prepared = prepare(self.engine, self.person, self.asked.ids, self.asked.held, self.people, *facts)
        self.kept = True
        return _opened(self.engine, registry, prepared, done, self.started)

    def register(self, place: str, act: Act) -> tuple[Registration, Enrolment]:
        """Registered for good: the snapshot is written and checked, then the ledger knows it, or nothing happened."""
        earlier, ahead = self.ledger.find_registration(self.declared.name), self.foresee(act)
        cohorts = find_cohorts(self.people, ahead.change.people, ahead.change.targets)
        folder = os.path.join(place, system().bytes(8).hex())
        facts = self.declared.rows_per_person, self.ledger.salt, folder
        asked = self.asked
        stamp = write_snapshot(self.engine, self.person, asked.ids, asked.held, self.people, cohorts, *facts)
        try:
            given = replace(self._application(dict(stamp), act), foreseen=ahead)
            made, done = self.ledger.register(given)
        except BaseException:
            # Where the registration stands all the same (its head could not be written), so must its rows.
            with suppress(EpsilonsError):
                if os.path.basename(folder) not in self._snapshots():
                    remove_snapshot(stamp, place)
            raise
        with suppress(EpsilonsError, OSError):  # it is registered, whatever can be tidied up and noted
            if earlier is not None:
                remove_snapshot(earlier.stamp, place)
            sweep_snapshots(place, self._snapshots)
            find_places().note_dataset(self.ledger.id, made.name, self.files)
        return made, replace(done, settled=ahead.expected.settled)

    def _snapshots(self) -> set[str]:
        """The folders of the newest registration of every dataset, by the random names that they have in any place."""
        return {os.path.basename(one.stamp["folder"]) for one in self.ledger.registrations(newest=True)}

    def _application(self, stamp: Mapping[str, Any], act: Act) -> Application:
        asked, declared = self.asked, self.declared
        measure = self.terms.counted
        named = {name: to_nano(float(epsilon)) for name, epsilon in self.preferences.levels.items()}
        words, places = asked.distinct_words()
        words = [word._replace(code=measure.coded(word.code)) for word in words]
        return Application(
            name=declared.name,
            version=self.version,
            about={**self.about, "rounding_loss": asked.rounding_loss},
            stamp=stamp,
            terms=self.terms,
            people=as_sorted(self.people),
            asked=places,
            words=words,
            levels={name: PUBLIC_CODE if nano is None else measure.coded(nano) for name, nano in named.items()},
            defaulted=asked.defaulted,
            unmatched=asked.unmatched,
            **act._asdict(),
        )

    @property
    def version(self) -> str:
        """The steward's label; without one, a number that grows with the states of the source."""
        if self.declared.version is not None:
            return self.declared.version
        mine = self.ledger.find_registration(self.declared.name)
        if mine and same_state(mine.about, self.about):
            return mine.version
        return str(self.ledger.count("registrations", name=self.declared.name) + 1)


@contextmanager
def read_candidate(
    source: Any, preferences: Any, declared: Declared, ledger: Ledger, read: Any = None
) -> Iterator[Candidate]:
    """Read a source, once, for as long as a block lasts (`keep_in_memory`: longer); `read` is `read_preferences`."""
    from epsilons.dataset.preferences import check_id_column, read_preferences  # with Arrow: questions do without
    from epsilons.dataset.public import read_public

    started, began = time.perf_counter(), time.time_ns()
    engine = declared.open_source(source)
    candidate: Candidate | None = None
    try:
        wishes = as_preferences(preferences)
        about = declared.about(engine.schema, source, wishes)
        person = check_id_column(engine, declared.person)
        before, files = (
            declared.source(engine.files),
            {os.path.realpath(one): mark_content(one) for one in engine.files},
        )
        stage(engine)
        about["source"] = before if before == declared.source(engine.files, began) else None
        held = ledger.terms()
        # A ledger of an older release knows people as their ids were written: in normal form, if all of them were so.
        older = held is not None and held.ids is None and ledger.epoch > 0
        normal = not older and (held is None or held.spelling != "as written")
        known = ledger.salt, ledger.digest, normal
        asked, people = (read or read_preferences)(engine, person, wishes, *known, ceiling=declared.ceiling)
        normal = normal or (older and asked.ids.equals(normalise(asked.ids)))
        # How private people are is known of the roster anyway, whatever their rows say of it.
        named = [name for name in about["public"] if name != about.get("preference")]
        asked = replace(asked, public=read_public(engine, person, named, asked.ids))
        about |= {"values": asked.public.list_values()} if named else {}
        terms = check_terms(declared.neighbors, None, declared.allow_individual, declared.counted)
        kind, spelling = "text" if person.family == TEXT else "number", "normal" if normal else "as written"
        terms = replace(terms, ids=kind, spelling=spelling)
        candidate = Candidate(declared, ledger, engine, person, about, files, asked, people, wishes, terms, started)
        yield candidate
    finally:
        if candidate is None or not candidate.kept:
            engine.close()


def find_registered(name: str, ledger: Ledger, address: str | None) -> Registry:
    """A dataset's people and terms, without its rows. A ledger with an address is closed with it."""
    found = ledger.find_registration(name)
    if found is None:
        known = ", ".join(one.name for one in ledger.registrations(newest=True)) or "none so far"
        rule = f"Registered in this ledger: {known}."
        hint = "Dataset.register(...), by the steward"
        raise UnregisteredError(f"No dataset is registered as {name!r}.", rule=rule, suggest=hint)
    return Registry(ledger, found, "open" if address is None else show_address(address), address is not None)


def open_registered(
    name: str, ledger: Ledger, address: str | None, enrolment: Enrolment | None = None, **options: Any
) -> Opened:
    """A dataset as it was registered; nothing is created, enrolled or read from its source.

    A ledger with an address was opened for this dataset, and is closed with it.
    """
    started = time.perf_counter()
    registry = find_registered(name, ledger, address)
    stamp: Any = registry.registration.stamp
    made = registry.registration
    written = open_snapshot(stamp, made.about["rows_per_person"], made.seq, **options)
    return _opened(written.engine, registry, follow(written, ledger.moves(made.seq)), enrolment, started)


def _opened(
    engine: Engine, registry: Registry, prepared: Preparation, enrolment: Enrolment | None, started: float
) -> Opened:
    about, terms, made = registry.registration.about, registry.ledger.terms(), registry.registration
    assert terms is not None
    named = read_epsilons(registry.ledger.levels(), registry.measure)
    cited = {"name": made.name, "version": made.version, "dataset": made.dataset, "lasting": registry.ledger.lasting}
    facts = TableFacts.of(engine.schema, about, terms.neighbors, levels=named, measure=registry.measure, **cited)
    return Opened(engine, facts, registry, prepared, enrolment, time.perf_counter() - started)


def as_preferences(given: Any) -> Preferences:
    """What a caller may write for preferences: them, {id: epsilon}, or one epsilon for everyone."""
    if isinstance(given, Preferences):
        return given
    if isinstance(given, Mapping):
        return Preferences(given)
    try:
        return Preferences({}, default=check_real(given))
    except TypeError:
        hint = (Argument("preferences", {"ann": 0.1}), ", or a column of epsilons or levels")
        raise PreferenceError("Preferences are missing or of an unknown kind.", suggest=hint) from None


def place_of_snapshots(ledger: Ledger, address: str | None, given: Any) -> str:
    """Where a ledger's snapshots are: beside it if it is a file, else in the user's state directory."""
    path = sqlite_path(address)
    if given is None:
        given = state_folder() / "snapshots" if path is None else f"{path}.snapshots"
    return os.path.join(os.path.abspath(str(given)), ledger.id)
