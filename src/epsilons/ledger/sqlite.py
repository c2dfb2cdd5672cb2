"""SQLite, in a file shared by processes or in the memory of one.

A writer holds the write lock from its first statement on (BEGIN IMMEDIATE), so what it read cannot change under it;
the write-ahead log lets readers go on meanwhile; synchronous=FULL makes a commit wait for the disk.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Engine, StaticPool, Table, create_engine, event
from sqlalchemy.engine import URL

from epsilons.errors import LedgerError
from epsilons.ledger.database import one_voice, past_the_toolkit

#: How long a writer waits for its turn before it gives up.
PATIENCE_SECONDS = 120


class Sqlite:
    """A ledger's tables in one SQLite database; `path=None` keeps them in this process's memory."""

    schema: str | None = None

    def __init__(self, path: str | None) -> None:
        self.lasting = path is not None
        self._path = None if path is None else os.path.abspath(path)
        self._turn = threading.RLock()
        self._process = os.getpid()
        self._engine = self._start()

    def _start(self) -> Engine:
        # Values are never part of an error's text or of a log line.
        if self._path is None:
            # One connection for all threads: they take turns by the lock.
            engine = create_engine(
                "sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False}, hide_parameters=True
            )
        else:
            engine = create_engine(
                URL.create("sqlite", database=self._path),
                connect_args={"timeout": PATIENCE_SECONDS},
                hide_parameters=True,
                pool_size=4,
                max_overflow=60,
            )
        event.listen(engine, "connect", _prepare)
        event.listen(engine, "begin", _begin)
        return engine

    def _own(self) -> Engine:
        """The engine of this process: neither a connection nor a ledger in memory survives a fork."""
        if os.getpid() != self._process:
            if self._path is None:
                raise LedgerError(
                    "A ledger in memory belongs to the process that opened it.",
                    rule="Two copies would each spend the whole budget.",
                    hint='a file that processes can share: epsilons.ledger.open("sqlite:///people.ledger")',
                )
            self._engine.dispose(close=False)
            self._turn = threading.RLock()
            self._engine, self._process = self._start(), os.getpid()
        return self._engine

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """One writer at a time, over all processes."""
        engine = self._own()
        with self._turn, one_voice(), engine.execution_options(alone=True).begin() as connection:
            yield connection

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """One consistent view; a ledger in memory has one connection, so readers wait for the writer there."""
        engine = self._own()
        if self._path is None:
            with self._turn, one_voice(), engine.begin() as connection:
                yield connection
        else:
            with one_voice(), engine.execution_options(alone=False).begin() as connection:
                yield connection

    def make_room(self, connection: Connection) -> None:
        """A file has room for one ledger."""

    def insert_many(self, connection: Connection, table: Table, rows: Iterable[tuple[Any, ...]]) -> None:
        """Straight to the driver: a million rows in about a second."""
        places = ", ".join("?" * len(table.columns))
        with past_the_toolkit(connection) as cursor:
            cursor.executemany(f"INSERT INTO {table.name} VALUES ({places})", rows)

    def assign_cohorts(self, connection: Connection, pairs: Iterable[tuple[int, bytes]]) -> None:
        """Straight to the driver as well."""
        with past_the_toolkit(connection) as cursor:
            cursor.executemany("UPDATE people SET cohort = ? WHERE digest = ?", pairs)

    def close(self) -> None:
        """Let go of the connections; a ledger in memory is gone then."""
        self._engine.dispose()


def _prepare(connection: Any, _record: Any) -> None:
    # The driver must not begin transactions by itself: `_begin` says which kind.
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {PATIENCE_SECONDS * 1000}")
    _use_write_ahead_log(cursor)
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.close()


def _use_write_ahead_log(cursor: Any) -> None:
    """Switching the file over does not wait for its turn by itself when several processes start at once."""
    give_up = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            mode = cursor.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > give_up:
                raise
            time.sleep(0.01)
            continue
        if mode not in ("wal", "memory"):
            raise LedgerError("This disk cannot hold a ledger.", rule="SQLite's write-ahead log does not work there.")
        return


def _begin(connection: Connection) -> None:
    alone = connection.get_execution_options().get("alone", True)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if alone else "BEGIN")
