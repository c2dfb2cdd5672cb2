"""How a database itself describes the tables in it, to be compared with what releases have written so far."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from epsilons.storage.base import Database
from epsilons.storage.sqlite import Sqlite

#: {ledger or store: {sqlite or postgresql: lines}}, as the tables were made when the format was settled.
WRITTEN: dict[str, dict[str, list[str]]] = json.loads(Path(__file__).with_suffix(".json").read_text())

_COLUMNS = """
SELECT relname || '.' || attname || ' ' || format_type(atttypid, atttypmod) || CASE WHEN attnotnull THEN ' NOT NULL'
    ELSE '' END || coalesce(' DEFAULT ' || pg_get_expr(adbin, adrelid), '') AS line
FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
WHERE relnamespace = current_schema::regnamespace AND relkind = 'r' AND attnum > 0 ORDER BY relname, attnum"""
_RULES = """
SELECT conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid) AS line FROM pg_constraint
WHERE connamespace = current_schema::regnamespace AND contype <> 'n'"""
_INDEXES = """
SELECT replace(indexdef, current_schema || '.', '') AS line FROM pg_indexes
WHERE schemaname = current_schema"""


def layout(database: Database) -> list[str]:
    """Tables, columns, rules and indexes, a line each; in SQLite the statements that made them."""
    with database.read() as connection:
        if isinstance(database, Sqlite):
            made = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name")
            return [" ".join(row["sql"].split()) for row in made]
        columns, *others = (
            [row["line"] for row in connection.execute(query)] for query in (_COLUMNS, _RULES, _INDEXES)
        )
        return [*columns, *(line for lines in others for line in sorted(lines))]


def in_any_order(database: Database) -> Any:
    """The same where columns were added later: their order, and the rest, which SQLite then writes elsewhere."""
    lines = layout(database)
    if not isinstance(database, Sqlite):
        return lines
    with database.read() as connection:
        made = [line.split()[2] for line in lines if line.startswith("CREATE TABLE")]
        order = {name: [row["name"] for row in connection.execute(f"PRAGMA table_info({name})")] for name in made}
    return order, [sorted(part.strip(" )") for part in line.split(",")) for line in lines]
