"""What a database does for those who own tables in it; a back end is one small file that says how.

`write` runs one transaction alone: no other writer, in this process or another, is between its first read and its
commit, and once it has ended the change survives a crash. `read` sees one consistent state. Neither shows a message of
the database, which may quote what was stored.

Statements are plain SQL that both databases understand, written where they are used.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, cast

from epsilons.errors import EpsilonsError

Refusal = Callable[[], EpsilonsError]
#: Told of every place that `reach` names. Tests end the process there; no setting from outside comes in here.
watchers: list[Callable[[str], None]] = []
#: What reading raises where somebody else has written: no number, no JSON, a name or a place that nothing has.
_MALFORMED = (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError)
#: Connections of the process that this one was forked from. They are its own: even closing them here would harm it.
_inherited: list[list[Any]] = []


@dataclass(frozen=True)
class Owner:
    """Who owns tables in a database: names and limits there, and the errors to raise.

    `name` is part of the lock by which writers of PostgreSQL take turns, `schema` is where the tables are unless the
    address names another, `patience` is how many seconds a writer of SQLite waits for its turn. The refusals make an
    error each: the database refuses, the connection broke, another file stands at its path, the address is none,
    psycopg is missing, the disk has no write-ahead log, the server does not wait for its disk, a database in memory was
    taken along by a fork, a file holds tables but not the one called `mark`, what stands in the tables was not written
    by their owner, something was added to the `tables` that acts by itself. `exposed` makes the error for a file that
    others can read, from its parts.
    """

    name: str
    schema: str
    mark: str
    tables: tuple[str, ...]
    patience: int
    refused: Refusal
    broken: Refusal
    replaced: Refusal
    no_address: Refusal
    no_psycopg: Refusal
    no_log: Refusal
    no_sync: Refusal
    forked: Refusal
    foreign: Refusal
    edited: Refusal
    altered: Refusal
    pragmas: tuple[str, ...] = ()
    exposed: Callable[..., EpsilonsError] | None = None


class Connection(Protocol):
    """One transaction: a connection as drivers have it, and what both databases do fast in their own way.

    `:name` in a statement stands for a value; types of columns are written as SQLite writes them. Rows are read by
    names or places.
    """

    def execute(self, sql: str, values: Mapping[str, Any] = ..., /) -> Any:
        """A cursor over the rows, or with the number of rows that changed (`rowcount`)."""

    def executemany(self, sql: str, rows: Iterable[Mapping[str, Any]], /) -> Any:
        """The same change for each of these values."""

    def stream(self, sql: str, values: Mapping[str, Any] = ..., /) -> Any:
        """A cursor over more rows than there is room for, by places alone; to be closed."""

    def insert_many(self, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Add rows with a value for every column, in the table's order: a million in a few seconds."""

    def has_table(self, name: str) -> bool: ...


def name_tables(statements: Iterable[str]) -> tuple[str, ...]:
    """The tables that these statements make."""
    words = (statement.split() for statement in statements)
    return tuple(name for _, kind, name, *_ in words if kind == "TABLE")


def spread(name: str, items: Iterable[Any]) -> tuple[str, dict[str, Any]]:
    """A list for a statement: what stands in `IN (...)`, and its values."""
    values = {f"{name}_{number}": item for number, item in enumerate(items)}
    return ", ".join(f":{one}" for one in values) or "NULL", values


class Database(ABC):
    """Transactions, and the connections of this process on which they run."""

    #: Whether the tables outlive this process.
    lasting = True
    #: The folder that its file lies in, links followed; None if it has none.
    folder: str | None = None
    #: The path of its file, if it has one, and which file was opened there (device, inode).
    _file: str | None = None
    _opened: tuple[int, int] | None = None
    #: How many idle connections are kept.
    _kept: ClassVar = 4
    #: What the driver raises.
    _error: type[Exception]
    #: What begins a transaction, for reading and for writing.
    _begin: tuple[str, str]
    #: Finds what acts by itself when tables are read or changed: triggers, rules, views in their place.
    _acting: str

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        #: The one transaction of a rehearsal, and what ends it.
        self._rehearsal: Connection | None = None
        self._end = ExitStack()
        self._start()

    def _start(self) -> None:
        """Begin anew in this process; connections are made when they are needed."""
        self._process = os.getpid()
        self._idle: list[Any] = []
        #: What readers hold, and what writers hold.
        self._turns: tuple[AbstractContextManager[Any], AbstractContextManager[Any]] = (nullcontext(), nullcontext())

    @abstractmethod
    def _connect(self) -> Any:
        """A new connection of the driver, which begins no transaction by itself."""

    def _enter(self, driver: Any, begin: str) -> Connection:
        """Begin a transaction; a writer is alone from here on."""
        driver.execute(begin)
        self._check_file()
        return cast(Connection, driver)

    def _check_file(self) -> None:
        """What is written to a file that was put aside, or removed, is seen by nobody else."""
        if self._file is None:
            return
        try:
            found = os.stat(self._file)
        except OSError:
            raise self._owner.replaced() from None
        there = (found.st_dev, found.st_ino)
        if self._opened not in (None, there):
            raise self._owner.replaced()
        self._opened = there

    def _is_cut(self, driver: Any) -> bool:
        """Whether the server has gone."""
        return False

    def write(self) -> AbstractContextManager[Connection]:
        """One durable transaction with no other writer beside it; an exception takes all of it back."""
        return self._transact(1)

    def read(self) -> AbstractContextManager[Connection]:
        """One consistent view."""
        return self._transact(0)

    @contextmanager
    def _transact(self, kind: int) -> Iterator[Connection]:
        """`kind` is the place in the pairs above: 0 to read, 1 to write."""
        try:
            if self._rehearsal is not None:
                yield self._rehearsal
                return
            self._check_process()
            with self._turns[kind], self._lend(self._begin[kind]) as (driver, connection):
                if kind:
                    self.check_tables(connection)
                yield connection
                driver.commit()
        except self._error:
            raise self._owner.refused() from None
        except _MALFORMED as malformed:  # kept as its cause: it may be a mistake of our own
            raise self._owner.edited() from malformed

    def check_tables(self, connection: Connection) -> None:
        """Refuse tables that do something else than they are told: no line of any code of ours would show it."""
        which, names = spread("table", self._owner.tables)
        if connection.execute(self._acting.format(tables=which), names).fetchone() is not None:
            raise self._owner.altered()

    def _check_process(self) -> None:
        """Neither a connection nor a database in memory survives a fork."""
        if os.getpid() != self._process:
            if not self.lasting:
                raise self._owner.forked()
            self.close()
            self._start()

    def rehearse(self) -> None:
        """Do everything from here on in one transaction, which is taken back when the database is closed.

        For a look at what a change would come to; other writers wait meanwhile.
        """
        self._end.enter_context(self._turns[1])
        _, self._rehearsal = self._end.enter_context(self._lend(self._begin[1]))

    @contextmanager
    def _lend(self, begin: str) -> Iterator[tuple[Any, Connection]]:
        """A connection on which something has begun; it is given back, and what was not committed taken back.

        Messages of the database are replaced, since they may quote what was stored.
        """
        driver = connection = None
        try:
            while connection is None:
                known, driver = self._take_idle(), None
                driver = known or self._connect()
                try:
                    connection = self._enter(driver, begin)
                except self._error:
                    # It may have been cut off while it was idle: nothing has begun.
                    if known is None or not self._is_cut(known):
                        raise
            yield driver, connection
        except self._error:
            lost = driver is not None and self._is_cut(driver)
            raise (self._owner.broken() if lost else self._owner.refused()) from None
        finally:
            if driver is not None:
                self._give_back(driver)

    def _take_idle(self) -> Any:
        with suppress(IndexError):
            return self._idle.pop()

    def _give_back(self, driver: Any) -> None:
        with suppress(self._error):
            driver.rollback()
        if self._is_cut(driver) or len(self._idle) >= self._kept:
            driver.close()
        else:
            self._idle.append(driver)

    def make_tables(self, connection: Connection, statements: Iterable[str]) -> None:
        """Tables and their indexes, where there are none yet."""
        for statement in statements:
            connection.execute(statement)

    def copy(self, path: str) -> None:
        """All of it, as it stands, in a new file of its owner's alone; where it is no file, that is refused."""
        raise self._owner.refused()

    @abstractmethod
    def forget(self) -> None:
        """Overwrite what was erased, where that is in our hands."""

    def close(self) -> None:
        """Let go of the connections; a database in memory is gone then, and so is what was rehearsed."""
        self._rehearsal = None
        self._end.close()
        idle, self._idle = self._idle, []
        if os.getpid() != self._process:
            _inherited.append(idle)
            return
        for driver in idle:
            driver.close()


def reach(place: str) -> None:
    """A named place between two steps of a change, where a crash must do no harm."""
    for told in watchers:
        told(place)
