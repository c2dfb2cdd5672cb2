"""SQLite, in a file shared by processes or in the memory of one.

A writer holds the write lock from its first statement on (BEGIN IMMEDIATE), so what it read cannot change under it;
the write-ahead log lets readers go on meanwhile; synchronous=FULL makes a commit wait for the disk.
"""

import os
import sqlite3
import threading
import time
from collections.abc import Iterable
from contextlib import closing, nullcontext
from functools import cache
from typing import Any
from urllib.parse import quote

from sqlalchemy import Column, Connection, Dialect, Engine, Pool, QueuePool, StaticPool, Table, create_engine, event
from sqlalchemy.engine import URL
from sqlalchemy.util import LRUCache

from epsilons.storage.base import Database, Owner
from epsilons.storage.files import write_private

# Short, so that readers are not kept waiting: the next checkpoint overwrites what this one could not.
_SECONDS_TO_FORGET = 2


@cache
def _share_dialect() -> tuple[Dialect, LRUCache[Any, Any]]:
    """For all databases of this process, so that each statement is compiled once and not for every one of them."""
    engine = create_engine("sqlite://")
    engine.connect().close()  # The dialect asks SQLite what it can do.
    engine.dispose()
    return engine.dialect, LRUCache(500)


class Sqlite(Database):
    """Tables in one SQLite database; `path=None` keeps them in this process's memory."""

    _begin = ("BEGIN IMMEDIATE", "BEGIN")

    def __init__(self, path: str | None, owner: Owner) -> None:
        self.lasting = path is not None
        self._path = None if path is None else os.path.abspath(path)
        if self._path is not None:
            _take_file(self._path, owner)
        super().__init__(owner)

    def _connect(self) -> None:
        super()._connect()
        # Threads take turns here, not in SQLite's busy loop; in memory they have one connection, so readers wait too.
        turn = threading.RLock()
        self._turns = (turn, nullcontext() if self.lasting else turn)

    def _start(self) -> Engine:
        dialect, compiled = _share_dialect()

        def connect() -> Any:
            path = ":memory:" if self._path is None else self._path
            return sqlite3.connect(path, timeout=self._owner.patience, check_same_thread=False)

        pool: Pool = StaticPool(connect, dialect=dialect)
        if self.lasting:
            pool = QueuePool(connect, pool_size=4, max_overflow=60, dialect=dialect)
        event.listen(pool, "connect", self._prepare)
        engine = Engine(pool, dialect, URL.create("sqlite", database=self._path), hide_parameters=True)
        return engine.execution_options(compiled_cache=compiled)

    def _prepare(self, connection: Any, _record: Any) -> None:
        # The driver must not begin transactions by itself: `write` and `read` say which kind.
        connection.isolation_level = None
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout = {self._owner.patience * 1000}")
        self._use_write_ahead_log(cursor)
        for pragma in ("synchronous = FULL", *self._owner.pragmas):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    def _use_write_ahead_log(self, cursor: Any) -> None:
        """Switching the file over does not wait for its turn by itself when several processes start at once."""
        give_up = time.monotonic() + self._owner.patience
        while True:
            try:
                mode = cursor.execute("PRAGMA journal_mode = WAL").fetchone()[0]
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > give_up:
                    raise
                time.sleep(0.01)
            else:
                break
        if mode not in ("wal", "memory"):
            raise self._owner.no_log()

    def make_schema(self, connection: Connection) -> None:
        """A file has room for the tables of one owner."""

    def insert_many(self, connection: Connection, table: Table, rows: Iterable[tuple[Any, ...]]) -> None:
        """Straight to the driver: a million rows in about a second."""
        places = ", ".join("?" * len(table.columns))
        with self.driver_cursor(connection) as cursor:
            cursor.executemany(f"INSERT INTO {table.name} VALUES ({places})", rows)

    def update_many(
        self, connection: Connection, column: Column[Any], key: Column[Any], pairs: Iterable[tuple[Any, Any]]
    ) -> None:
        """Straight to the driver as well."""
        with self.driver_cursor(connection) as cursor:
            cursor.executemany(f"UPDATE {column.table.name} SET {column.name} = ? WHERE {key.name} = ?", pairs)

    def forget(self) -> None:
        """Empty the write-ahead log, where what was erased may remain."""
        self._check_process()
        with self.hide_database_errors(), closing(self._engine.raw_connection()) as connection:
            cursor = connection.cursor()
            cursor.execute(f"PRAGMA busy_timeout = {_SECONDS_TO_FORGET * 1000}")
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            cursor.execute(f"PRAGMA busy_timeout = {self._owner.patience * 1000}")
            cursor.close()


def _take_file(path: str, owner: Owner) -> None:
    """Make the file for its owner alone (its log gets the same mode), or look, and no more than look, what it holds."""
    try:
        write_private(path, "")
        return
    except FileExistsError:
        pass
    except OSError:
        raise owner.refused() from None
    try:
        with closing(sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True, timeout=owner.patience)) as connection:
            tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    except sqlite3.Error as error:
        other = error.sqlite_errorcode == sqlite3.SQLITE_NOTADB
        raise (owner.foreign() if other else owner.refused()) from None
    if tables and owner.mark not in tables:
        raise owner.foreign()
