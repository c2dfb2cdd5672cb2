"""PostgreSQL, for many processes on many machines.

Writers take turns by a lock that ends with their transaction, so that each sees what the one before it wrote; guards
in the statements and constraints of the tables hold even against a client that takes no lock. A commit waits for the
disk. A client that hangs in the middle of a change loses it, and the next one goes on.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from sqlalchemy import Column, Connection, Engine, Table, create_engine
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.schema import CreateSchema

from epsilons.storage.base import Database, Owner

#: How long a writer waits for its turn before it gives up, and how long it may stand still inside a change: less, so
#: that those who wait outlast one who hangs.
TURN_SECONDS, STILL_SECONDS = 300, 120
#: The server has a hundred connections for everybody; a process needs one for each thread that is at it.
CONNECTIONS = 2

# One statement, since each is a way to the server and back. The settings last as long as the transaction, so that they
# hold behind a pooler as well; the lock is named by the schema, so that two owners in one database do not share it.
_BEGIN = f"""
SELECT set_config('synchronous_commit', 'on', true),
       set_config('lock_timeout', '{TURN_SECONDS}s', true),
       set_config('idle_in_transaction_session_timeout', '{STILL_SECONDS}s', true),
       pg_advisory_xact_lock(hashtextextended(%(lock)s, 0)),
       current_setting('fsync')
"""


class Postgres(Database):
    """Tables in one schema of a PostgreSQL database."""

    schema: str
    _options: ClassVar = (
        {"isolation_level": "READ COMMITTED"},
        {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True},
    )

    def __init__(self, url: str, owner: Owner) -> None:
        self._url, self.schema = _split_address(url, owner)
        super().__init__(owner)

    def _start(self) -> Engine:
        try:
            import psycopg  # noqa: F401
        except ImportError:
            raise self._owner.no_psycopg() from None
        pool: dict[str, Any] = {"pool_size": CONNECTIONS, "max_overflow": CONNECTIONS, "pool_timeout": TURN_SECONDS}
        engine = create_engine(self._url, hide_parameters=True, pool_pre_ping=True, **pool)
        return engine.execution_options(schema_translate_map={None: self.schema})

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """One writer at a time, over all processes and machines."""
        with super().write() as connection:
            if connection is self._rehearsal:
                yield connection
                return
            lock = f"epsilons {self._owner.name} {self.schema}"
            *_, waits_for_disk = connection.exec_driver_sql(_BEGIN, {"lock": lock}).one()
            if waits_for_disk != "on":
                raise self._owner.no_sync()
            yield connection

    def rehearse(self) -> None:
        """A rehearsal may stand still for longer than a change."""
        super().rehearse()
        assert self._rehearsal is not None
        self._rehearsal.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = 0")

    def make_schema(self, connection: Connection) -> None:
        """The schema, unless a user with more rights made it already."""
        there = "SELECT 1 FROM pg_namespace WHERE nspname = %(schema)s"
        if connection.exec_driver_sql(there, {"schema": self.schema}).one_or_none() is None:
            connection.execute(CreateSchema(self.schema))

    def insert_many(self, connection: Connection, table: Table, rows: Iterable[tuple[Any, ...]]) -> None:
        """By COPY: a million rows in a few seconds."""
        self._copy(connection, f'"{self.schema}".{table.name}', rows)

    def update_many(
        self, connection: Connection, column: Column[Any], key: Column[Any], pairs: Iterable[tuple[Any, Any]]
    ) -> None:
        """By COPY to one side, then one UPDATE."""
        value, found = (kind.type.compile(connection.dialect) for kind in (column, key))
        connection.exec_driver_sql(f"CREATE TEMPORARY TABLE new (value {value}, key {found}) ON COMMIT DROP")
        self._copy(connection, "new", pairs)
        name = column.table.name
        change = f'UPDATE "{self.schema}".{name} SET {column.name} = new.value FROM new'
        connection.exec_driver_sql(f"{change} WHERE {name}.{key.name} = new.key")

    def _copy(self, connection: Connection, target: str, rows: Iterable[tuple[Any, ...]]) -> None:
        with self.driver_cursor(connection) as cursor, cursor.copy(f"COPY {target} FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)

    def forget(self) -> None:
        """PostgreSQL keeps what was erased until its own vacuum."""


def _split_address(url: str, owner: Owner) -> tuple[URL, str]:
    """The address for the driver, and the schema."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise owner.no_address() from None
    schema = parsed.query.get("schema", owner.schema)
    if not parsed.database or not isinstance(schema, str) or not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", schema):
        raise owner.no_address()
    return parsed.difference_update_query(["schema"]).set(drivername="postgresql+psycopg"), schema
