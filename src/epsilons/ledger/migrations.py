"""Older formats brought up to date, one numbered step after the other, when a ledger is opened.

A step from format n changes the tables and says what the journal must know of it. All steps of one opening and their
lines are one transaction: a ledger is of the old format or of the new one. The journal's older lines stay as they are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection, Table, inspect, select, text, update

from epsilons.errors import LedgerError
from epsilons.ledger import journal, tables
from epsilons.storage.base import Database


def bring_up_to_date(database: Database, at: str, check: Callable[[Connection], None]) -> None:
    """Take the steps that are missing; a ledger from the future is refused."""
    with database.read() as connection:
        if _format(connection) == tables.FORMAT:
            return
    with database.write() as connection:
        check(connection)
        for number in range(_format(connection), tables.FORMAT):
            known = STEPS[number](connection, database.schema)
            connection.execute(update(tables.ledger).values(format=number + 1))
            journal.append(connection, "migrate", at, {"format": number + 1, **known})


def _format(connection: Connection) -> int:
    found = int(connection.execute(select(tables.ledger.c.format)).scalar_one())
    if not 1 <= found <= tables.FORMAT:
        raise LedgerError(
            "This ledger was written by a newer release of epsilons.",
            rule=f"This release reads formats 1 to {tables.FORMAT}.",
            suggest="pip install --upgrade epsilons",
        )
    return found


def hash_salt(salt: bytes) -> str:
    """How the journal knows the salt: whoever reads the journal cannot look people up by it."""
    return hashlib.sha256(salt).hexdigest()


def _salt_losses_quotas(connection: Connection, schema: str | None) -> dict[str, Any]:
    """Format 2: a salt for people's digests, accepted losses, analysts and their quotas."""
    _add_column(connection, schema, tables.ledger, "salt")
    _add_column(connection, schema, tables.ledger, "losses")
    _add_column(connection, schema, tables.reservations, "analyst")
    prefix = "" if schema is None else f'"{schema}".'
    connection.execute(text(f"DROP INDEX {prefix}one_per_key"))
    next(index for index in tables.reservations.indexes if index.name == "one_per_key").create(connection)
    tables.quotas.create(connection)
    # In format 1 the id served as the salt: people who are known stay known.
    salt = bytes.fromhex(connection.execute(select(tables.ledger.c.id)).scalar_one())
    connection.execute(update(tables.ledger).values(salt=salt, losses=0))
    return {"salt": hash_salt(salt)}


def _add_column(connection: Connection, schema: str | None, table: Table, name: str) -> None:
    kind = table.c[name].type.compile(connection.dialect)
    prefix = "" if schema is None else f'"{schema}".'
    if name not in {column["name"] for column in inspect(connection).get_columns(table.name, schema=schema)}:
        connection.execute(text(f"ALTER TABLE {prefix}{table.name} ADD COLUMN {name} {kind}"))


STEPS: dict[int, Callable[[Connection, str | None], dict[str, Any]]] = {1: _salt_losses_quotas}
