"""What a database does for those who own tables in it; a back end is one small file that says how.

`write` runs one transaction alone: no other writer, in this process or another, is between its first read and its
commit, and once it has ended the change survives a crash. `read` sees one consistent state. Neither shows a message of
the database, which may quote what was stored.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar

from sqlalchemy import BigInteger, CheckConstraint, Column, Connection, Engine, Integer, Table
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from epsilons.errors import EpsilonsError

Refusal = Callable[[], EpsilonsError]
#: Told of every place that `reach` names. Tests end the process there; no setting from outside comes in here.
watchers: list[Callable[[str], None]] = []

# SQLite's own integers have 64 bits, and its strict tables know no other name for them.
Whole = BigInteger().with_variant(Integer(), "sqlite")


def required(**types: Any) -> list[Column[Any]]:
    return [Column(name, kind, nullable=False) for name, kind in types.items()]


def optional(**types: Any) -> list[Column[Any]]:
    return [Column(name, kind) for name, kind in types.items()]


def number(name: str, *checks: CheckConstraint) -> Column[Any]:
    """A whole number that is the primary key, or part of it."""
    return Column(name, Whole, *checks, primary_key=True, autoincrement=False)


@dataclass(frozen=True)
class Owner:
    """Who owns tables in a database: names and limits there, and the errors to raise.

    `name` is part of the lock by which writers of PostgreSQL take turns, `schema` is where the tables are unless the
    address names another, `patience` is how many seconds a writer of SQLite waits for its turn. The refusals make an
    error each: the database refuses, the connection broke, the address is none, psycopg is missing, the disk has no
    write-ahead log, the server does not wait for its disk, a database in memory was taken along by a fork, a file holds
    tables but not the one called `mark`.
    """

    name: str
    schema: str
    mark: str
    patience: int
    refused: Refusal
    broken: Refusal
    no_address: Refusal
    no_psycopg: Refusal
    no_log: Refusal
    no_sync: Refusal
    forked: Refusal
    foreign: Refusal
    pragmas: tuple[str, ...] = ()


class Database(ABC):
    """Transactions, and bulk operations that every back end does fast in its own way."""

    #: Where the tables stand inside the database, if it has such places.
    schema: str | None = None
    #: Whether the tables outlive this process.
    lasting = True
    #: What begins a transaction where the driver does not do it by itself, for writing and for reading.
    _begin: tuple[str, str] | None = None
    #: Options of the engine, for writing and for reading.
    _options: ClassVar[tuple[dict[str, Any], dict[str, Any]]] = ({}, {})

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        #: The one transaction of a rehearsal, and what ends it.
        self._rehearsal: Connection | None = None
        self._end = ExitStack()
        self._connect()

    def _connect(self) -> None:
        """Start an engine for this process; connections are made when they are needed."""
        self._process = os.getpid()
        #: What writers hold, and what readers hold.
        self._turns: tuple[AbstractContextManager[Any], AbstractContextManager[Any]] = (nullcontext(), nullcontext())
        self._engine = self._start()

    @abstractmethod
    def _start(self) -> Engine:
        """The engine; values are never part of an error's text or of a log line."""

    def _check_process(self) -> None:
        """Neither a connection nor a database in memory survives a fork."""
        if os.getpid() != self._process:
            if not self.lasting:
                raise self._owner.forked()
            self._engine.dispose(close=False)
            self._connect()

    def write(self) -> AbstractContextManager[Connection]:
        """One durable transaction with no other writer beside it; an exception takes all of it back."""
        return self._transact(0)

    def read(self) -> AbstractContextManager[Connection]:
        """One consistent view."""
        return self._transact(1)

    def rehearse(self) -> None:
        """Do everything from here on in one transaction, which is taken back when the database is closed.

        For a look at what a change would come to; other writers wait meanwhile.
        """
        self._rehearsal = self._end.enter_context(self.write())

    @contextmanager
    def _transact(self, kind: int) -> Iterator[Connection]:
        """`kind` is the place in the pairs above: 0 to write, 1 to read."""
        if self._rehearsal is not None:
            with self.hide_database_errors():
                yield self._rehearsal
            return
        self._check_process()
        engine = self._engine.execution_options(**self._options[kind])
        with self._turns[kind], self.hide_database_errors(), engine.begin() as connection:
            if self._begin is not None:
                connection.exec_driver_sql(self._begin[kind])
            yield connection

    @contextmanager
    def hide_database_errors(self) -> Iterator[None]:
        """Replace messages of the database, which may quote what was stored."""
        try:
            yield
        except SQLAlchemyError as error:
            lost = isinstance(error, DBAPIError) and error.connection_invalidated
            raise (self._owner.broken() if lost else self._owner.refused()) from None

    @contextmanager
    def driver_cursor(self, connection: Connection, cursor: Any = None) -> Iterator[Any]:
        """A cursor of the driver, for millions of rows: SQLAlchemy's own rows take three times as long."""
        driver: Any = connection.dialect.loaded_dbapi
        cursor = connection.connection.cursor() if cursor is None else cursor
        try:
            yield cursor
        except driver.Error:
            raise self._owner.refused() from None
        finally:
            cursor.close()

    @abstractmethod
    def make_schema(self, connection: Connection) -> None:
        """Get ready for new tables."""

    @abstractmethod
    def insert_many(self, connection: Connection, table: Table, rows: Iterable[tuple[Any, ...]]) -> None:
        """Add rows with a value for every column, in the table's order."""

    @abstractmethod
    def update_many(
        self, connection: Connection, column: Column[Any], key: Column[Any], pairs: Iterable[tuple[Any, Any]]
    ) -> None:
        """Set a column of the rows that a key finds: pairs of (value, key), both columns of one table."""

    @abstractmethod
    def forget(self) -> None:
        """Overwrite what was erased, where that is in our hands."""

    def close(self) -> None:
        """Let go of the connections; a database in memory is gone then, and so is what was rehearsed."""
        if self._rehearsal is not None:
            self._rehearsal.rollback()
            self._rehearsal = None
            self._end.close()
        self._engine.dispose()


def reach(place: str) -> None:
    """A named place between two steps of a change, where a crash must do no harm."""
    for told in watchers:
        told(place)
