"""Where an aggregator keeps its shares: SQLite or PostgreSQL. A transaction that has ended survives a crash.

One writer at a time, also among several processes: SQLite by BEGIN IMMEDIATE, PostgreSQL by a lock that ends with the
transaction. Names and types of the tables are the format on disk: `FORMAT` grows with any change to them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Connection,
    Engine,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    create_engine,
    event,
)
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.schema import CreateSchema

from epsilons.errors import ProtocolError
from epsilons.local.aggregator.refusals import UnavailableError

FORMAT = 1
PATIENCE_SECONDS = 60
_SECONDS_TO_FORGET = 2
_SCHEMA = "aggregator"

metadata = MetaData()
_Whole = BigInteger().with_variant(Integer(), "sqlite")

identity = Table(
    "identity",
    metadata,
    Column("one", _Whole, CheckConstraint("one = 1"), primary_key=True, autoincrement=False),
    Column("format", _Whole, nullable=False),
    Column("key", Text, nullable=False),
)

# `round` is the round that takes reports; beyond the last one the collection is closed.
collections = Table(
    "collections",
    metadata,
    Column("number", _Whole, primary_key=True, autoincrement=False),
    Column("id", LargeBinary, nullable=False, unique=True),
    Column("terms", Text, nullable=False),
    Column("round", _Whole, nullable=False),
)

# What each closing round drew: the challenge of its proofs is made of it, so owners could not know it before.
closings = Table(
    "closings",
    metadata,
    Column("collection", _Whole, primary_key=True, autoincrement=False),
    Column("round", _Whole, primary_key=True, autoincrement=False),
    Column("nonce", LargeBinary, nullable=False),
)

# `share` is erased once the batch is added up; the id stays, so that nothing can be sent again.
reports = Table(
    "reports",
    metadata,
    Column("collection", _Whole, primary_key=True, autoincrement=False),
    Column("round", _Whole, primary_key=True, autoincrement=False),
    Column("id", LargeBinary, primary_key=True),
    Column("level", _Whole, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("share", LargeBinary),
)
Index("reports_by_level", reports.c.collection, reports.c.round, reports.c.level)

# One row per batch, and so at most one challenge and one sum, ever.
batches = Table(
    "batches",
    metadata,
    Column("collection", _Whole, primary_key=True, autoincrement=False),
    Column("level", _Whole, primary_key=True, autoincrement=False),
    Column("challenge", LargeBinary, nullable=False),
    Column("asked", LargeBinary, nullable=False),
    Column("accepted", LargeBinary),
    Column("sums", LargeBinary),
    CheckConstraint("(accepted IS NULL) = (sums IS NULL)", name="sums_belong_to_a_batch"),
)


class Store:
    """An aggregator's tables, by address: "sqlite:///one.store" or "postgresql://.../database?schema=one"."""

    def __init__(self, url: str) -> None:
        self._engine, self._schema = _start(url)
        with self.write() as connection:
            if self._schema is not None:
                _make_schema(connection, self._schema)
            metadata.create_all(connection)

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """One durable transaction with no other writer beside it; an exception takes all of it back."""
        with _one_voice(), self._engine.execution_options(alone=True).begin() as connection:
            if self._schema is not None:
                connection.exec_driver_sql(
                    "SELECT set_config('synchronous_commit', 'on', true), "
                    "pg_advisory_xact_lock(hashtextextended('epsilons aggregator ' || %(schema)s, 0))",
                    {"schema": self._schema},
                )
            yield connection

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """One consistent view."""
        options: dict[str, Any] = {"alone": False}
        if self._schema is not None:
            options["isolation_level"] = "REPEATABLE READ"
        with _one_voice(), self._engine.execution_options(**options).begin() as connection:
            yield connection

    def forget(self) -> None:
        """Overwrite what was erased where it may remain: SQLite's log. PostgreSQL keeps it until its vacuum."""
        if self._schema is None:
            with _one_voice():
                connection = self._engine.raw_connection()
                try:
                    cursor = connection.cursor()
                    # Not for long: whoever reads meanwhile is not kept waiting, and the next checkpoint does it, too.
                    cursor.execute(f"PRAGMA busy_timeout = {_SECONDS_TO_FORGET * 1000}")
                    cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                    cursor.execute(f"PRAGMA busy_timeout = {PATIENCE_SECONDS * 1000}")
                    cursor.close()
                finally:
                    connection.close()

    def close(self) -> None:
        """Let go of the connections."""
        self._engine.dispose()


def _start(url: str) -> tuple[Engine, str | None]:
    """The engine, and PostgreSQL's schema."""
    if url.startswith("sqlite:///") and len(url) > len("sqlite:///"):
        engine = create_engine(
            URL.create("sqlite", database=url.removeprefix("sqlite:///")),
            connect_args={"timeout": PATIENCE_SECONDS, "check_same_thread": False},
            hide_parameters=True,
        )
        event.listen(engine, "connect", _prepare)
        event.listen(engine, "begin", _begin)
        return engine, None
    try:
        parsed = make_url(url)
        schema = parsed.query.get("schema", _SCHEMA)
    except (ArgumentError, ValueError):
        raise _no_address() from None
    usable = isinstance(schema, str) and re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", schema)
    if not parsed.drivername.startswith("postgresql") or not parsed.database or not usable:
        raise _no_address()
    try:
        engine = create_engine(
            parsed.difference_update_query(["schema"]).set(drivername="postgresql+psycopg"),
            hide_parameters=True,
            pool_size=2,
            max_overflow=2,
            pool_pre_ping=True,
        )
    except ImportError:
        raise ProtocolError("PostgreSQL needs psycopg.", hint="pip install 'epsilons[postgres]'") from None
    return engine.execution_options(schema_translate_map={None: schema}), str(schema)


def _make_schema(connection: Connection, schema: str) -> None:
    there = "SELECT 1 FROM pg_namespace WHERE nspname = %(schema)s"
    if connection.exec_driver_sql(there, {"schema": schema}).one_or_none() is None:
        connection.execute(CreateSchema(schema))


def _prepare(connection: Any, _record: Any) -> None:
    # The driver must not begin transactions by itself: `_begin` says which kind.
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {PATIENCE_SECONDS * 1000}")
    cursor.execute("PRAGMA journal_mode = WAL")
    cursor.execute("PRAGMA synchronous = FULL")
    # Erased shares are overwritten, not just forgotten.
    cursor.execute("PRAGMA secure_delete = ON")
    cursor.close()


def _begin(connection: Connection) -> None:
    alone = connection.get_execution_options().get("alone", True)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if alone else "BEGIN")


@contextmanager
def _one_voice() -> Iterator[None]:
    """No message of a database reaches anyone: it may quote what was stored."""
    try:
        yield
    except SQLAlchemyError:
        raise UnavailableError(
            "The aggregator's database refused or could not be reached; nothing was changed.",
            rule="A change is made as a whole or not at all.",
            hint="the same request again",
        ) from None


def _no_address() -> ProtocolError:
    return ProtocolError(
        "There is no store at such an address.",
        rule="sqlite:///file, or postgresql://user:password@host/database, then perhaps ?schema= and a name.",
        hint="sqlite:///one.store",
    )
