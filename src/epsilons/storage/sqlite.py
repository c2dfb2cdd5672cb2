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
from itertools import chain
from typing import Any
from urllib.parse import quote

from epsilons.storage.base import Database, Owner
from epsilons.storage.files import check_private, write_private

# The file has one owner, so nothing else belongs there. A clause ON CONFLICT can drop a row in silence as well.
_ACTING = """
SELECT 1 FROM sqlite_master
WHERE type IN ('trigger', 'view') OR lower(sql) LIKE '%conflict%' OR lower(sql) LIKE '%virtual%'"""
# Short, so that readers are not kept waiting: the next checkpoint overwrites what this one could not.
_SECONDS_TO_FORGET = 2


class Connection(sqlite3.Connection):
    """The driver's own, which fetches rows as they are asked for."""

    stream = sqlite3.Connection.execute

    def insert_many(self, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
        rest = iter(rows)
        for first in rest:  # with which all the others go
            self.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(first))})", chain([first], rest))

    def has_table(self, name: str) -> bool:
        found = self.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = :name", {"name": name})
        return found.fetchone() is not None


class Sqlite(Database):
    """Tables in one SQLite database; `path=None` keeps them in this process's memory, on one connection."""

    _error = sqlite3.Error
    _begin = ("BEGIN", "BEGIN IMMEDIATE")
    _acting = _ACTING

    def __init__(self, path: str | None, owner: Owner) -> None:
        self.lasting = path is not None
        self._path = ":memory:" if path is None else os.path.abspath(path)
        if self.lasting:
            self._file = self._path
            _take_file(self._path, owner)
            self.folder = os.path.dirname(os.path.realpath(self._path))
        super().__init__(owner)

    def _start(self) -> None:
        super()._start()
        # Threads take turns here, not in SQLite's busy loop; in memory they have one connection, so readers wait too.
        turn = threading.RLock()
        self._turns = (nullcontext() if self.lasting else turn, turn)

    def _connect(self) -> Connection:
        self._check_file()  # so that nothing is made anew in its place
        options: dict[str, Any] = {"isolation_level": None, "check_same_thread": False, "factory": Connection}
        driver: Connection = sqlite3.connect(self._path, timeout=self._owner.patience, **options)
        driver.row_factory = sqlite3.Row
        try:
            self._use_write_ahead_log(driver)
            for pragma in ("synchronous = FULL", *self._owner.pragmas):
                driver.execute(f"PRAGMA {pragma}")
        except BaseException:
            driver.close()
            raise
        return driver

    def _use_write_ahead_log(self, driver: sqlite3.Connection) -> None:
        """Switching the file over does not wait for its turn by itself when several processes start at once."""
        give_up = time.monotonic() + self._owner.patience
        while True:
            try:
                mode = driver.execute("PRAGMA journal_mode = WAL").fetchone()[0]
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > give_up:
                    raise
                time.sleep(0.01)
            else:
                break
        if mode not in ("wal", "memory"):
            raise self._owner.no_log()

    def copy(self, path: str) -> None:
        """All of it, as it stands, in a new file of its owner's alone."""
        self._check_process()
        try:
            write_private(path, "")
            try:
                with closing(self._connect()) as driver, closing(sqlite3.connect(path)) as there:
                    there.execute("PRAGMA synchronous = FULL")
                    driver.backup(there)
            except BaseException:  # half a copy is none
                os.unlink(path)
                raise
        except (OSError, sqlite3.Error):
            raise self._owner.refused() from None

    def forget(self) -> None:
        """Empty the write-ahead log, where what was erased may remain."""
        self._check_process()
        with self._lend(f"PRAGMA busy_timeout = {_SECONDS_TO_FORGET * 1000}") as (driver, _):
            driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            driver.execute(f"PRAGMA busy_timeout = {self._owner.patience * 1000}")


def _take_file(path: str, owner: Owner) -> None:
    """Make the file for its owner alone (its log gets the same mode), or look, and no more than look, what it holds."""
    try:
        write_private(path, "")
        return
    except FileExistsError:
        pass
    except OSError:
        raise owner.refused() from None
    if not os.path.isfile(path):  # a pipe would be waited for
        raise owner.foreign()
    try:
        with closing(sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True, timeout=owner.patience)) as connection:
            tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    except sqlite3.Error as error:
        other = error.sqlite_errorcode == sqlite3.SQLITE_NOTADB
        raise (owner.foreign() if other else owner.refused()) from None
    if tables and owner.mark not in tables:
        raise owner.foreign()
    if owner.exposed is not None:
        for part in ("", "-wal", "-shm"):
            check_private(path + part, owner.exposed)
