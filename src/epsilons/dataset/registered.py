"""How a dataset comes to be: registered by its steward, opened by whoever asks, or both at once for a notebook.

What people say, and what is known of them, goes to the ledger from here; questions are in `table`.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any, Self

from epsilons import ledger as ledgers
from epsilons.arguments.checks import check_truth
from epsilons.arguments.options import DEFAULT_QUESTIONS
from epsilons.dataset.facts import Description
from epsilons.dataset.registering import (
    CEILING,
    Act,
    Declared,
    Opened,
    open_registered,
    place_of_snapshots,
    read_candidate,
)
from epsilons.dataset.snapshot import check_place, verify_snapshots
from epsilons.errors import Argument, LedgerError
from epsilons.ledger.balances import Remaining, Statement
from epsilons.ledger.ledger import Ledger
from epsilons.ledger.values import Enrolment, History, NoLedgerError, StalePlanError
from epsilons.preferences import Preferences
from epsilons.release.door import asked_of
from epsilons.release.stored import StoredAnswers

#: So often a source is read again where the roster changed while it was read.
_TRIES = 5


class Registered:
    """A dataset in its ledger: what was settled, its people, and their words."""

    #: Carries out what changes the roster, and brings the rows up to date with it.
    _change: Callable[[Callable[[], Enrolment]], Enrolment]
    _refresh: Callable[[], None]

    def __init__(
        self,
        source: Any,
        *,
        person: str,
        preferences: Preferences | Mapping[Any, float] | float,
        ledger: str | Ledger | None = None,
        name: str | None = None,
        rows_per_person: int = 1,
        neighbors: str = "absent",
        complete: Sequence[str] = (),
        version: str | None = None,
        allow_individual: bool = False,
        bounds: Mapping[str, tuple[float, float]] | None = None,
        keys: Mapping[str, Sequence[Any]] | None = None,
        public: Sequence[str] = (),
        ceiling: float = CEILING,
        measure: str = "pure",
        delta: float | None = None,
        questions: int = DEFAULT_QUESTIONS,
        types: Mapping[str, str] | None = None,
        table: str | None = None,
        threads: int | None = None,
        memory: str | None = None,
        engine: str | None = None,
        dialect: Mapping[str, str] | None = None,
    ) -> None:
        kept = _ledger_in_memory(ledger)
        called = f"table {kept.count('registrations') + 1}" if name is None else name
        declared = Declared(
            called, person, version, rows_per_person, neighbors, bounds or {}, keys or {}, complete, public, ceiling,
            measure, delta, questions=questions, allow_individual=allow_individual, types=types, table=table,
            threads=threads, memory=memory, engine=engine, dialect=dialect,
        )  # fmt: skip
        with read_candidate(source, preferences, declared, kept) as candidate:
            self._take(candidate.keep_in_memory(own=not isinstance(ledger, Ledger)))

    @classmethod
    def register(
        cls,
        source: Any,
        *,
        name: str,
        person: str,
        ledger: str | Ledger,
        preferences: Preferences | Mapping[Any, float] | float,
        rows_per_person: int = 1,
        neighbors: str = "absent",
        bounds: Mapping[str, tuple[float, float]] | None = None,
        keys: Mapping[str, Sequence[Any]] | None = None,
        public: Sequence[str] = (),
        complete: Sequence[str] = (),
        version: str | None = None,
        measure: str = "pure",
        delta: float | None = None,
        renews: str | Mapping[str, str] | None = None,
        questions: int = DEFAULT_QUESTIONS,
        ceiling: float = CEILING,
        accounts: str = "cohort",
        allow_individual: bool = False,
        snapshots: str | os.PathLike[str] | None = None,
        confirm: bool = False,
        loosen: int | None = None,
        redefine: bool = False,
        types: Mapping[str, str] | None = None,
        table: str | None = None,
        threads: int | None = None,
        memory: str | None = None,
        engine: str | None = None,
        dialect: Mapping[str, str] | None = None,
    ) -> Self:
        """Settle a dataset in its ledger, an act of the steward, and open it; `enrolment` says what happened to people.

        The source is read once, into a private snapshot, and may be deleted afterwards. Registered again, newcomers
        join, stricter preferences hold at once, who is gone pays no more. More than a tenth of newcomers, or nobody
        known, needs `confirm=True`; larger epsilons for people who are known need `loosen=` and their number. In a
        ledger of several datasets, levels that mean something else need `redefine=True`, and then mean it in all.
        `snapshots` is the folder for the copies, beside the ledger unless given. `renews` says of which period a level
        is ("year" for all of them, or {"yearly": "year"}): who has chosen it is asked anew in the next one.

        source: A file (Parquet, CSV, JSON lines, Excel), a frame, a relation of DuckDB, an address of PostgreSQL.
        name: What the dataset is called in the ledger.
        person: The column of ids.
        ledger: Where accounts are kept: sqlite:///wages.ledger, an address of PostgreSQL, or an open ledger.
        preferences: Who asked for what: eps.Preferences, {id: epsilon}, or one epsilon for all.
        rows_per_person: So many rows of one person are used at most.
        neighbors: Compared with data without a person (absent), or with others (replace); for the life of the ledger.
        bounds: {column: (least, largest)}: public facts, never read from the data.
        keys: {column: the groups that BY and GROUP BY may name}.
        public: Columns that all may know of everybody.
        complete: Columns in which nothing is missing, by your word.
        version: The state of the data; another one for other rows.
        measure: In what accounts count: pure (epsilon) or zcdp (rho); for the life of the ledger.
        delta: Of accounts that count rho.
        renews: The period after which a level is granted anew: for all of them, or {level: period}.
        questions: How many are planned for: one that names no share takes the share of one of them.
        ceiling: No finite epsilon is above it.
        accounts: How accounts are kept: by cohorts of people who are alike.
        allow_individual: Whether questions may ask for individual or group privacy, which are not DP.
        snapshots: The folder of private copies; beside the ledger unless given.
        confirm: Your word that many newcomers, or a new ledger, are meant.
        loosen: How many known people may get a larger epsilon, as the refusal says.
        redefine: Whether levels that mean something else now mean it in every dataset of the ledger.
        types: {column: int, float, text, bool, date or time} of CSV files and JSON lines.
        table: A sheet of a workbook, a table of a database.
        threads: How many the engine may use.
        memory: How much the engine may use, such as 2GB, before it writes to disk.
        engine: duckdb or spark; by the source unless given.
        dialect: How text is written: separator, encoding, decimal, thousands, dates, times.

        >>> import tempfile
        >>> import epsilons as eps
        >>> import pyarrow as pa
        >>> wages = pa.table({"id": range(300), "wage": [31.0, 45.0, 52.0] * 100})
        >>> about = {"name": "wages", "person": "id", "preferences": 0.5, "bounds": {"wage": (0, 100)}}
        >>> folder = tempfile.TemporaryDirectory()  # a place that lasts, in earnest
        >>> people = eps.Dataset.register(wages, ledger=f"sqlite:///{folder.name}/wages.ledger", **about)
        >>> people.mean("wage", share=0.1).charges
        {0.5: 0.05}
        >>> people.close()
        >>> folder.cleanup()
        """
        declared = Declared(
            name, person, version, rows_per_person, neighbors, bounds or {}, keys or {}, complete, public, ceiling,
            measure, delta, renews, questions, accounts, allow_individual, types, table, threads, memory, engine,
            dialect,
        )  # fmt: skip
        act = Act(check_truth("confirm", confirm), loosen, check_truth("redefine", redefine))
        with ExitStack() as opened:
            book, address = opened.enter_context(_opening(ledger, stand_in=True))
            check_place(place_of_snapshots(book, address, snapshots))
            done, tries = None, 0
            while done is None:
                with read_candidate(source, preferences, declared, book) as candidate:
                    # What is refused is refused before anything is made or written.
                    for refused in candidate.foresee(act).objections:
                        raise refused
                    if not book.lasting:
                        book.close()
                        book, address = opened.enter_context(_opening(ledger, create=book))
                        candidate.go_to(book)
                    try:
                        _, done = candidate.register(place_of_snapshots(book, address, snapshots), act)
                    except StalePlanError:  # people were charged or changed their minds meanwhile: read again
                        if (tries := tries + 1) == _TRIES:
                            raise
            book.verify(thorough=False)  # who asks first need not
            return cls._of(open_registered(name, book, address, done, threads=threads, memory=memory))

    @classmethod
    def open(cls, name: str, *, ledger: str | Ledger, threads: int | None = None, memory: str | None = None) -> Self:
        """A dataset that was registered. Asks nothing of its source; creates, enrols and loosens nothing."""
        with _opening(ledger) as (book, address):
            return cls._of(open_registered(name, book, address, threads=threads, memory=memory))

    @classmethod
    def _of(cls, opened: Opened) -> Self:
        made = cls.__new__(cls)
        made._take(opened)
        return made

    def _take(self, opened: Opened) -> None:
        self._lock, self._closed = threading.RLock(), False
        self._engine, self._facts, self._registry = opened.engine, opened.facts, opened.registry
        self._preparation, self._seconds = opened.preparation, opened.seconds
        #: What registering did to people; None where a dataset was only opened.
        self.enrolment = opened.enrolment

    @classmethod
    def from_toml(cls, path: str | os.PathLike[str]) -> Self:
        """The dataset that a file such as people.toml declares, as it was registered; `epsilons init` writes one."""
        from epsilons.dataset.declared import check_as_registered, open_declared

        found = open_declared(path, cls.open, cls)
        if found.ledger.lasting:
            try:
                check_as_registered(path, found._registry, found._facts.schema, found._facts.levels)
            except BaseException:
                found.close()
                raise
        return found

    def describe(self) -> Description:
        """Columns, people per level, bounds known, the ledger's state. Public facts; no charge."""
        with self._lock:
            self._refresh()
            return self._registry.describe(self._facts, self._seconds)

    @property
    def ledger(self) -> Ledger:
        """People's accounts."""
        return self._registry.ledger

    def remaining(self) -> Remaining:
        """What everybody has left: `.levels`, of each the least as `.epsilons`; `.cohorts` and `.questions`."""
        return self._registry.remaining()

    def history(self) -> History:
        """Every question about this dataset that was charged, with the grants in force then."""
        past = self.ledger.history(self._registry.dataset)
        return History(replace(one, description=asked_of(one.description)) for one in past)

    def answers(self) -> StoredAnswers:
        """Every answer that the ledger stored, by its number: free, newest last, also after the roster changed."""
        return StoredAnswers.of(self.ledger, dataset=self._registry.dataset)

    def verify(self) -> dict[str, bool]:
        """Recount the ledger and hash its datasets' newest snapshots; an error if anything differs from what was kept.

        {dataset: whether its snapshot could be reached from here}.
        """
        self.ledger.verify()
        return verify_snapshots(self.ledger.registrations(newest=True))

    def set_level(self, levels: Mapping[Any, Any], *, anew: bool = False) -> Enrolment:
        """What people say themselves, {id: name of a level, or epsilon}.

        It stands until they say otherwise, or a source says something new about them: something stricter at once,
        something looser by an act of the steward that names how many people it concerns. Where records of the ledger
        were lost, every level counts as spent until these people, who were told of the loss, consent `anew`.
        """
        return self._change(lambda: self._registry.set_level(levels, anew=anew))

    def withdraw(self, people: Any) -> Enrolment:
        """These people (a list of ids) are not used any more; their accounts stay. `unknown` were not on the roster."""
        return self._change(lambda: self._registry.withdraw(people))

    def statement(self, person: Any) -> Statement:
        """One person's account, by id: what their data was used for, at most how much that cost, and what is left."""
        return self._registry.statement(person)

    def set_preferences(self, preferences: Any) -> Enrolment:
        """The former name of `set_level`."""
        warnings.warn("set_preferences is now called set_level", DeprecationWarning, stacklevel=2)
        return self.set_level(preferences)

    def sync_preferences(self) -> Enrolment | None:
        """A source's preferences are taken when it is registered; this only says what became of them."""
        told = "sync_preferences does nothing: register the source again, with loosen= for larger epsilons"
        warnings.warn(told, DeprecationWarning, stacklevel=2)
        return self.enrolment

    def close(self) -> None:
        """Let go of the table, and of the ledger if it was opened here."""
        with self._lock:
            self._closed = True
            self._engine.close()
            self._registry.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


def _ledger_in_memory(given: Any) -> Ledger:
    """What a dataset of a notebook is kept by; anything that lasts is opened by other names."""
    if isinstance(given, Ledger) and not given.lasting:
        return given
    if given == "memory":
        return ledgers.open()
    what = "A dataset in a ledger that lasts is registered once, and then opened."
    rule = "Dataset(...) keeps charges in memory, where they are forgotten with the process, and has to be told so."
    hint = (Argument("ledger", "memory"), "; or Dataset.register(...) by the steward, and Dataset.open(...) to ask")
    raise LedgerError(what, rule=rule, suggest=hint)


@contextmanager
def _opening(ledger: Any, create: bool | Ledger = False, stand_in: bool = False) -> Iterator[tuple[Ledger, str | None]]:
    """(the ledger, its address if it was opened here); closed again if what follows fails.

    Where there is none yet, one in memory may stand in for it, which knows nobody either.
    """
    if isinstance(ledger, Ledger) and ledger.lasting:
        yield ledger, None
        return
    if not isinstance(ledger, str) or ledger == "memory":
        what, hint = "A registered dataset has a ledger that lasts.", Argument("ledger", "sqlite:///people.ledger")
        raise LedgerError(what, suggest=hint)
    try:
        book = ledgers.open(ledger, create=create)
    except NoLedgerError:
        if not stand_in:
            raise
        book = ledgers.open()
    try:
        # What was edited is found before anybody is charged by it; who was renamed, before they are taken for new.
        book.verify(thorough=stand_in)
        yield book, ledger
    except BaseException:
        book.close()
        raise
