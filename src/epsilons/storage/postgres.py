"""PostgreSQL, for many processes on many machines.

Writers take turns by a lock that ends with their transaction, so that each sees what the one before it wrote; guards
in the statements and constraints of the tables hold even against a client that takes no lock. A commit waits for the
disk. A client that hangs in the middle of a change loses it, and the next one goes on.
"""

import re
import threading
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from itertools import count
from typing import Any, ClassVar

from epsilons.storage import base, split_address
from epsilons.storage.base import Database, Owner

#: How long a writer waits for its turn before it gives up, and how long it may stand still inside a change: less, so
#: that those who wait outlast one who hangs.
TURN_SECONDS, STILL_SECONDS = 300, 120
#: The server has a hundred connections for everybody; a process has twice as many at most, and keeps so many.
CONNECTIONS = 2
#: A server that does not answer is given up, and so is one that is gone without a word, seconds after it was; an
#: address may say otherwise, by the same names.
_DEADLINES = {
    "connect_timeout": "30",
    "keepalives_idle": "30", "keepalives_interval": "10", "keepalives_count": "3", "tcp_user_timeout": "60000",
}  # fmt: skip

# Sent at once, since each message is a way to the server and back. The settings last as long as the transaction, so
# that they hold behind a pooler as well; the lock is named by the schema, so that two owners in one database do not
# share it.
_READ = 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL search_path = "{schema}"'
_WRITE = f"""
BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL search_path = "{{schema}}";
SELECT set_config('synchronous_commit', 'on', true),
       set_config('lock_timeout', '{TURN_SECONDS}s', true),
       set_config('idle_in_transaction_session_timeout', '{STILL_SECONDS}s', true),
       pg_advisory_xact_lock(hashtextextended('epsilons {{owner}} {{schema}}', 0)),
       current_setting('fsync')
"""

# Policies of rows, triggers of constraints aside, rules, and what is no plain table.
_ACTING = """
SELECT 1 FROM pg_class AS one
WHERE relnamespace = current_schema()::regnamespace AND relname IN ({tables}) AND (
    relkind <> 'r' OR relrowsecurity
    OR EXISTS (SELECT 1 FROM pg_trigger WHERE tgrelid = one.oid AND NOT tgisinternal)
    OR EXISTS (SELECT 1 FROM pg_rewrite WHERE ev_class = one.oid)
)"""

#: What this database writes otherwise than SQLite; its tables are strict without being told so.
_OTHERWISE = re.compile(r"(?<!:):(?P<value>\w+)|%|\bINTEGER\b|\bBLOB\b|(?<=\)) (WITHOUT ROWID, )?STRICT$")
_WORDS = {"%": "%%", "INTEGER": "BIGINT", "BLOB": "BYTEA"}
_numbers = count(1)


@lru_cache(500)
def _spell(sql: str) -> str:
    named = "%({})s".format
    return _OTHERWISE.sub(lambda it: named(it["value"]) if it["value"] else _WORDS.get(it[0], ""), sql.strip())


@cache
def _row_type(names: tuple[str, ...]) -> type[tuple[Any, ...]]:
    """Rows that are read by names or places, as SQLite's are."""
    places: dict[Any, int] = {name: place for place, name in enumerate(names)}

    class Row(tuple[Any, ...]):
        def __getitem__(self, at: Any) -> Any:
            return super().__getitem__(places.get(at, at))

        def keys(self) -> tuple[str, ...]:
            return names

    return Row


def _name_rows(cursor: Any) -> Any:
    return _row_type(tuple(column.name for column in cursor.description or ()))


class Connection:
    """A connection of psycopg, with statements turned for it."""

    def __init__(self, driver: Any) -> None:
        self._driver = driver

    def execute(self, sql: str, values: Mapping[str, Any] | None = None) -> Any:
        return self._driver.cursor(row_factory=_name_rows).execute(_spell(sql), values or {})

    def executemany(self, sql: str, rows: Iterable[Mapping[str, Any]]) -> None:
        self._driver.cursor().executemany(_spell(sql), rows)

    def stream(self, sql: str, values: Mapping[str, Any] | None = None) -> Any:
        """By a cursor of the server's."""
        cursor = self._driver.cursor(f"stream_{next(_numbers)}")
        cursor.itersize = 1000
        return cursor.execute(_spell(sql), values or {})

    def insert_many(self, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """By COPY."""
        with self._driver.cursor().copy(f"COPY {table} FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)

    def has_table(self, name: str) -> bool:
        return bool(self.execute("SELECT to_regclass(:name) IS NOT NULL", {"name": name}).fetchone()[0])


class _Room:
    """Held by a thread that has a connection; the others wait."""

    def __init__(self, owner: Owner) -> None:
        self._owner, self._free = owner, threading.BoundedSemaphore(2 * CONNECTIONS)

    def __enter__(self) -> None:
        if not self._free.acquire(timeout=TURN_SECONDS):
            raise self._owner.refused()

    def __exit__(self, *_error: object) -> None:
        self._free.release()


class Postgres(Database):
    """Tables in one schema of a PostgreSQL database."""

    _kept: ClassVar = CONNECTIONS
    _acting = _ACTING

    def __init__(self, url: str, owner: Owner) -> None:
        self._keywords, self.schema = _split_address(url, owner)
        try:
            import psycopg
        except ImportError:
            raise owner.no_psycopg() from None
        self._driver, self._error = psycopg, psycopg.Error
        self._begin = (_READ.format(schema=self.schema), _WRITE.format(schema=self.schema, owner=owner.name))
        super().__init__(owner)

    def _start(self) -> None:
        super()._start()
        self._turns = (_Room(self._owner),) * 2

    def _connect(self) -> Any:
        driver = self._driver.connect(self._driver.conninfo.make_conninfo(**self._keywords), autocommit=True)
        # It stands in a pool, our own: so it may end with the program, or be inherited by a fork, without a warning.
        driver._pool = self
        return driver

    def _is_cut(self, driver: Any) -> bool:
        return bool(driver.closed)

    def _enter(self, driver: Any, begin: str) -> Connection:
        """One writer at a time, over all processes and machines."""
        cursor = driver.execute(begin, prepare=False)
        while cursor.nextset():
            pass
        if cursor.description and cursor.fetchone()[-1] != "on":
            raise self._owner.no_sync()
        return Connection(driver)

    def rehearse(self) -> None:
        """A rehearsal may stand still for longer than a change."""
        super().rehearse()
        assert self._rehearsal is not None
        self._rehearsal.execute("SET LOCAL idle_in_transaction_session_timeout = 0")

    def make_tables(self, connection: base.Connection, statements: Iterable[str]) -> None:
        """In their schema, which a user with more rights may have made already."""
        there = connection.execute("SELECT 1 WHERE to_regnamespace(:schema) IS NOT NULL", {"schema": self.schema})
        if there.fetchone() is None:
            connection.execute(f'CREATE SCHEMA "{self.schema}"')
        super().make_tables(connection, statements)

    def forget(self) -> None:
        """PostgreSQL keeps what was erased until its own vacuum."""


def _split_address(url: str, owner: Owner) -> tuple[dict[str, str], str]:
    """What the driver is told, and the schema."""
    named, options = split_address(url) or ({"dbname": ""}, {})
    schema = options.pop("schema", owner.schema)
    if not named["dbname"] or not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", schema):
        raise owner.no_address()
    return {**_DEADLINES, **{name: value for name, value in named.items() if value}, **options}, schema
