"""Backups of a ledger, put back, and small edits behind its back; the same on every database."""

from __future__ import annotations

from random import Random
from typing import Any

from sqlalchemy import delete, insert, select, update

from epsilons.ledger import tables
from epsilons.ledger.opening import find_database
from epsilons.storage.base import Database

Copy = dict[str, list[dict[str, Any]]]


def copied(address: str) -> Copy:
    """All rows of all tables."""
    database = find_database(address, create=False)
    with database.read() as connection:
        found = {t.name: [dict(r) for r in connection.execute(select(t)).mappings()] for t in _tables()}
    database.close()
    return found


def put_back(address: str, copy: Copy) -> None:
    """The ledger is what it was when it was copied."""
    database = find_database(address, create=False)
    with database.write() as connection:
        for table in _tables():
            connection.execute(delete(table))
            if copy[table.name]:
                connection.execute(insert(table), copy[table.name])
    database.close()


def flip_a_bit(address: str, luck: Random) -> str:
    """One bit of one value of one row of one table, such that the tables take it; says where."""
    database = find_database(address, create=False)
    while True:
        table = luck.choice(_tables())
        column = luck.choice(list(table.columns))
        if place := _flipped(database, table, column, luck):
            database.close()
            return place


def _flipped(database: Database, table: Any, column: Any, luck: Random) -> str | None:
    from epsilons.errors import LedgerError

    order = list(table.primary_key.columns)
    with database.read() as connection:
        rows = connection.execute(select(table).order_by(*order)).mappings().all()
    row = luck.choice(rows) if rows else None
    if row is None or row[column.name] is None:
        return None
    try:
        with database.write() as connection:
            here = [one == row[one.name] for one in order]
            changed = update(table).where(*here).values({column.name: _other(row[column.name], luck)})
            return f"{table.name}.{column.name}" if connection.execute(changed).rowcount == 1 else None
    except LedgerError:
        return None


def _other(value: Any, luck: Random) -> Any:
    if isinstance(value, int):
        return value ^ (1 << luck.randrange(40))
    raw = bytearray(value if isinstance(value, bytes) else value.encode()) or bytearray(b" ")
    raw[luck.randrange(len(raw))] ^= 1 << luck.randrange(7 if isinstance(value, str) else 8)
    return bytes(raw) if isinstance(value, bytes) else raw.decode().replace("\x00", "\x01")


def _tables() -> list[Any]:
    return list(tables.metadata.sorted_tables)
