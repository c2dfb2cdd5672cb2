"""Backups of a ledger, put back, and small edits behind its back; the same on every database."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from random import Random
from typing import Any

from epsilons.errors import LedgerError
from epsilons.ledger import losses, moving, tables
from epsilons.ledger.ledger import Ledger
from epsilons.ledger.opening import find_database
from epsilons.storage.base import Database

Copy = dict[str, list[tuple[Any, ...]]]


def describe() -> dict[str, dict[str, tuple[str, bool]]]:
    """{table: {column: (its type, whether it is part of the primary key)}}, as SQLite describes it."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for statement in tables.ALL:
            connection.execute(statement)
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {
            name: {
                column: (kind, part > 0)
                for _, column, kind, _, _, part in connection.execute(f"PRAGMA table_info({name})")
            }
            for name in names
        }


#: What a ledger's tables are.
TABLES = describe()


def keys(table: str) -> list[str]:
    """The columns of a table's primary key."""
    return [name for name, (_, part) in TABLES[table].items() if part]


def here(table: str) -> str:
    """A condition that finds a row by its primary key."""
    return " AND ".join(f"{name} = :{name}" for name in keys(table))


def copied(address: str) -> Copy:
    """All rows of all tables."""
    database = find_database(address, create=False)
    with database.read() as connection:
        found = {
            table: [tuple(row) for row in connection.execute(f"SELECT * FROM {table}").fetchall()] for table in TABLES
        }
    database.close()
    return found


def put_back(address: str, copy: Copy) -> None:
    """The ledger is what it was when it was copied."""
    database = find_database(address, create=False)
    with database.write() as connection:
        for table, rows in copy.items():
            connection.execute(f"DELETE FROM {table}")
            connection.insert_many(table, rows)
    database.close()


def restore(backup: str, url: str) -> tuple[Ledger, int | None]:
    """The ledger that a backup was put in the place of, and what counts as spent since; None: nothing was lost."""
    book, lost = moving.restore(backup, url)
    with book.reading() as connection:
        return book, losses.read_last(connection) if lost else None


def flip_a_bit(address: str, luck: Random) -> str:
    """One bit of one value of one row of one table, such that the tables take it; says where."""
    database = find_database(address, create=False)
    while True:
        table = luck.choice(list(TABLES))
        column = luck.choice(list(TABLES[table]))
        if place := _flipped(database, table, column, luck):
            database.close()
            return place


def _flipped(database: Database, table: str, column: str, luck: Random) -> str | None:
    with database.read() as connection:
        rows = connection.execute(f"SELECT * FROM {table} ORDER BY {', '.join(keys(table))}").fetchall()
    row = dict(luck.choice(rows)) if rows else None
    if row is None or row[column] is None:
        return None
    try:
        with database.write() as connection:
            change = f"UPDATE {table} SET {column} = :changed WHERE {here(table)}"
            changed = connection.execute(change, {**row, "changed": _other(row[column], luck)}).rowcount
            return f"{table}.{column}" if changed == 1 else None
    except LedgerError:
        return None


def _other(value: Any, luck: Random) -> Any:
    if isinstance(value, int):
        return value ^ (1 << luck.randrange(40))
    raw = bytearray(value if isinstance(value, bytes) else value.encode()) or bytearray(b" ")
    raw[luck.randrange(len(raw))] ^= 1 << luck.randrange(7 if isinstance(value, str) else 8)
    return bytes(raw) if isinstance(value, bytes) else raw.decode().replace("\x00", "\x01")
