"""PostgreSQL, for many processes on many machines.

Writers take turns by a lock that ends with their transaction, so that each sees what the one before it wrote; the guard
in the UPDATE that charges and the constraints of the tables hold even against a client that takes no lock. A commit
waits for the disk. A client that hangs in the middle of a change loses it, and the next one goes on.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Engine, Table, create_engine
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.schema import CreateSchema

from epsilons.errors import LedgerError
from epsilons.ledger.database import one_voice, past_the_toolkit

#: How long a writer waits for its turn before it gives up, and how long it may stand still inside a change: less, so
#: that those who wait outlast one who hangs.
TURN_SECONDS, STILL_SECONDS = 300, 120
#: The server has a hundred connections for everybody; a process needs one for each thread that is at it.
CONNECTIONS = 2
#: The schema that the tables stand in unless the address names another by `?schema=`.
SCHEMA = "epsilons"

# One statement, since each is a way to the server and back. The settings last as long as the transaction, so that they
# hold behind a pooler as well; the lock is named by the schema, so that two ledgers in one database do not wait for
# each other.
_BEGIN = f"""
SELECT set_config('synchronous_commit', 'on', true),
       set_config('lock_timeout', '{TURN_SECONDS}s', true),
       set_config('idle_in_transaction_session_timeout', '{STILL_SECONDS}s', true),
       pg_advisory_xact_lock(hashtextextended('epsilons ledger ' || %(schema)s, 0)),
       current_setting('fsync')
"""


class Postgres:
    """A ledger's tables in one schema of a PostgreSQL database."""

    lasting = True

    def __init__(self, url: str) -> None:
        self._url, self._schema = _parts(url)
        self.schema: str | None = self._schema
        self._process = os.getpid()
        self._engine = self._start()

    def _start(self) -> Engine:
        try:
            import psycopg  # noqa: F401
        except ImportError:
            raise LedgerError(
                "A ledger in PostgreSQL needs psycopg.", hint="pip install 'epsilons[postgres]'"
            ) from None
        # Values are never part of an error's text or of a log line.
        engine = create_engine(
            self._url,
            hide_parameters=True,
            pool_size=CONNECTIONS,
            max_overflow=CONNECTIONS,
            pool_timeout=TURN_SECONDS,
            pool_pre_ping=True,
        )
        return engine.execution_options(schema_translate_map={None: self._schema})

    def _own(self) -> Engine:
        """The engine of this process: no connection survives a fork."""
        if os.getpid() != self._process:
            self._engine.dispose(close=False)
            self._engine, self._process = self._start(), os.getpid()
        return self._engine

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """One writer at a time, over all processes and machines."""
        engine = self._own().execution_options(isolation_level="READ COMMITTED")
        with one_voice(), engine.begin() as connection:
            *_, waits_for_disk = connection.exec_driver_sql(_BEGIN, {"schema": self._schema}).one()
            if waits_for_disk != "on":
                raise LedgerError(
                    "This server does not wait for the disk.",
                    rule="A charge must survive a crash of the server.",
                    hint="fsync = on in the server's settings",
                )
            yield connection

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """One consistent view."""
        options = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        with one_voice(), self._own().execution_options(**options).begin() as connection:
            yield connection

    def make_room(self, connection: Connection) -> None:
        """The schema, unless somebody with more rights made it already."""
        there = "SELECT 1 FROM pg_namespace WHERE nspname = %(schema)s"
        if connection.exec_driver_sql(there, {"schema": self._schema}).one_or_none() is None:
            connection.execute(CreateSchema(self._schema))

    def insert_many(self, connection: Connection, table: Table, rows: Iterable[tuple[Any, ...]]) -> None:
        """By COPY: a million rows in a few seconds."""
        _copy(connection, f'"{self._schema}".{table.name}', rows)

    def assign_cohorts(self, connection: Connection, pairs: Iterable[tuple[int, bytes]]) -> None:
        """By COPY to one side, then one UPDATE."""
        connection.exec_driver_sql("CREATE TEMPORARY TABLE wished (cohort bigint, digest bytea) ON COMMIT DROP")
        _copy(connection, "wished", pairs)
        connection.exec_driver_sql(
            f'UPDATE "{self._schema}".people SET cohort = wished.cohort FROM wished WHERE people.digest = wished.digest'
        )

    def close(self) -> None:
        """Let go of the connections."""
        self._engine.dispose()


def _copy(connection: Connection, target: str, rows: Iterable[tuple[Any, ...]]) -> None:
    with past_the_toolkit(connection) as cursor, cursor.copy(f"COPY {target} FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)


def _parts(url: str) -> tuple[URL, str]:
    """The address for the driver, and the schema."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise _no_address() from None
    schema = parsed.query.get("schema", SCHEMA)
    if not parsed.database or not isinstance(schema, str) or not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", schema):
        raise _no_address()
    return parsed.difference_update_query(["schema"]).set(drivername="postgresql+psycopg"), schema


def _no_address() -> LedgerError:
    return LedgerError(
        "There is no ledger at such an address.",
        rule="postgresql://user:password@host/database, then perhaps ?schema= and a name in small letters.",
        hint='"postgresql://localhost/wages"',
    )
