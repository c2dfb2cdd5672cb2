"""What a database does for those who own tables in it; a back end is one small file that says how.

`write` runs one transaction alone: no other writer, in this process or another, is between its first read and its
commit, and once it has ended the change survives a crash. `read` sees one consistent state. Neither shows a message of
the database, which may quote what was stored.

Statements are plain SQL that both databases understand, written where they are used.
"""

import os
import re
from abc import ABC, abstractmethod
from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any, ClassVar

from epsilons.errors import EpsilonsError

Refusal = Callable[[], EpsilonsError]
#: Told of every place that `reach` names. Tests end the process there; no setting from outside comes in here.
watchers: list[Callable[[str], None]] = []
#: Connections of the process that this one was forked from. They are its own: even closing them here would harm it.
_inherited: list[list[Any]] = []


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


@cache
def _row_type(*names: str) -> Any:
    return namedtuple("Row", names, rename=True)


class Connection:
    """One transaction.

    `:name` in a statement stands for a value, and for all values of a list: `id IN (:ids)`. Types of columns are
    written as SQLite writes them. Rows are tuples with names.
    """

    #: Finds a table by its name.
    _table: ClassVar = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = :name"

    def __init__(self, driver: Any, owner: Owner, cursors: ExitStack) -> None:
        self._driver, self._owner, self._cursors = driver, owner, cursors

    def rows(self, sql: str, **values: Any) -> list[Any]:
        """All rows."""
        cursor = self._execute(self._driver.cursor(), sql, values)
        return list(map(_row_type(*(column[0] for column in cursor.description))._make, cursor))

    def row(self, sql: str, **values: Any) -> Any:
        """The first row, or None."""
        return next(iter(self.rows(sql, **values)), None)

    def value(self, sql: str, **values: Any) -> Any:
        """The first value of a row that must be there."""
        found = self.row(sql, **values)
        if found is None:
            raise self._owner.refused()
        return found[0]

    def run(self, sql: str, **values: Any) -> int:
        """Change something; how many rows that concerned."""
        return int(self._execute(self._driver.cursor(), sql, values).rowcount)

    def many(self, sql: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """The same change for each of these values."""
        self._driver.cursor().executemany(self._spell(sql), rows)

    def insert(self, table: str, **row: Any) -> None:
        """Add a row; what is not named is null, or its default."""
        self.run(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join(f':{name}' for name in row)})", **row)

    def insert_many(self, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Add rows with a value for every column, in the table's order: a million in about a second."""
        rest = iter(rows)
        for first in rest:  # with which all the others go
            places = ", ".join("?" * len(first))
            self._driver.cursor().executemany(f"INSERT INTO {table} VALUES ({places})", chain([first], rest))

    def stream(self, sql: str, **values: Any) -> Any:
        """The driver's cursor over plain tuples, for more rows than there is room for; open until the end."""
        return self._execute(self._cursors.enter_context(closing(self._make_cursor())), sql, values)

    def has_table(self, name: str) -> bool:
        return self.row(self._table, name=name) is not None

    def _make_cursor(self) -> Any:
        """A cursor that fetches rows as they are asked for."""
        return self._driver.cursor()

    def _spell(self, sql: str) -> str:
        """The statement as this database writes it."""
        return sql

    def _execute(self, cursor: Any, sql: str, values: dict[str, Any]) -> Any:
        for name, items in [pair for pair in values.items() if isinstance(pair[1], list)]:
            each = {f"{name}_{number}": item for number, item in enumerate(items)}
            sql = re.sub(rf":{name}\b", ", ".join(f":{one}" for one in each) or "NULL", sql)
            values = {**values, **each}
        cursor.execute(self._spell(sql), values)
        return cursor


class Database(ABC):
    """Transactions, and the connections of this process on which they run."""

    #: Whether the tables outlive this process.
    lasting = True
    #: How many idle connections are kept.
    _kept: ClassVar = 4
    _connection: ClassVar[type[Connection]] = Connection
    #: What the driver raises.
    _error: type[Exception]

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        #: The one transaction of a rehearsal, and what ends it.
        self._rehearsal: Connection | None = None
        self._end = ExitStack()
        self._begin_anew()

    def _begin_anew(self) -> None:
        """Start in this process; connections are made when they are needed."""
        self._process = os.getpid()
        self._idle: list[Any] = []

    @abstractmethod
    def _connect(self) -> Any:
        """A new connection of the driver, which begins no transaction by itself."""

    @abstractmethod
    def _begin(self, driver: Any, writing: bool) -> None:
        """Begin a transaction; a writer is alone from here on."""

    @abstractmethod
    def _turn(self, writing: bool) -> AbstractContextManager[Any]:
        """What a thread of this process holds meanwhile."""

    def _is_cut(self, driver: Any) -> bool:
        """Whether the server has gone."""
        return False

    def write(self) -> AbstractContextManager[Connection]:
        """One durable transaction with no other writer beside it; an exception takes all of it back."""
        return self._transact(True)

    def read(self) -> AbstractContextManager[Connection]:
        """One consistent view."""
        return self._transact(False)

    @contextmanager
    def _transact(self, writing: bool) -> Iterator[Connection]:
        if self._rehearsal is not None:
            try:
                yield self._rehearsal
            except self._error:
                raise self._owner.refused() from None
            return
        self._check_process()
        with self._turn(writing), self._lend(lambda driver: self._begin(driver, writing)) as driver:
            with ExitStack() as cursors:
                yield self._connection(driver, self._owner, cursors)
            driver.commit()

    def _check_process(self) -> None:
        """Neither a connection nor a database in memory survives a fork."""
        if os.getpid() != self._process:
            if not self.lasting:
                raise self._owner.forked()
            self.close()
            self._begin_anew()

    def rehearse(self) -> None:
        """Do everything from here on in one transaction, which is taken back when the database is closed.

        For a look at what a change would come to; other writers wait meanwhile.
        """
        self._end.enter_context(self._turn(True))
        driver = self._end.enter_context(self._lend(lambda driver: self._begin(driver, True)))
        self._rehearsal = self._connection(driver, self._owner, self._end.enter_context(ExitStack()))

    @contextmanager
    def _lend(self, begin: Callable[[Any], None]) -> Iterator[Any]:
        """A connection on which something has begun; it is given back, and what was not committed taken back.

        Messages of the database are replaced, since they may quote what was stored.
        """
        driver = None
        try:
            while driver is None:
                known = self._take_idle()
                driver = known or self._connect()
                try:
                    begin(driver)
                except self._error:
                    if known is None or not self._is_cut(known):
                        raise
                    # It was cut off while it was idle: nothing has begun.
                    driver = None
            yield driver
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
            connection.run(statement)

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
