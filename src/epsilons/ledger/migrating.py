"""Ledgers of older formats are brought up to date.

A step from format n changes the tables and says what the journal must know of it. All steps of one opening and their
lines are one transaction: a ledger is of the old format or of the new one. The journal's older lines stay as they are.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from epsilons.errors import LedgerError
from epsilons.ledger import journal, losses, segments, tables
from epsilons.ledger.identity import BLAKE_2
from epsilons.ledger.roster import put_emptied_aside
from epsilons.ledger.values import DIGEST_BYTES, does_not_add_up
from epsilons.storage.base import Connection, Database


def bring_up_to_date(database: Database, at: str, check: Callable[[Connection], None]) -> None:
    """Take the steps that are missing; a ledger from the future is refused."""
    with database.read() as connection:
        if read_format(connection) == tables.FORMAT:
            return
    with database.write() as connection:
        check(connection)
        for number in range(read_format(connection), tables.FORMAT):
            known = _MIGRATIONS[number](connection)
            connection.execute("UPDATE ledger SET format = :format", {"format": number + 1})
            journal.append(connection, "migrate", at, {"format": number + 1, **known})


def read_format(connection: Connection) -> int:
    found = int(connection.execute("SELECT format FROM ledger").fetchone()[0])
    if found < 1:
        raise does_not_add_up()
    if found > tables.FORMAT:
        newer = "This ledger was written by a newer release of epsilons."
        rule = f"This release reads formats 1 to {tables.FORMAT}."
        raise LedgerError(newer, rule=rule, suggest="pip install --upgrade epsilons")
    return found


def _add_salt_losses_quotas(connection: Connection) -> dict[str, Any]:
    """Format 2: a salt for people's digests, accepted losses, analysts and their quotas."""
    for statement in (
        "ALTER TABLE ledger ADD COLUMN salt BLOB",
        "ALTER TABLE ledger ADD COLUMN losses INTEGER",
        "ALTER TABLE reservations ADD COLUMN analyst TEXT",
        "DROP INDEX one_per_key",
        tables.ONE_PER_KEY,
        tables.QUOTAS,
    ):
        connection.execute(statement)
    # In format 1 the id served as the salt: people who are known stay known.
    salt = bytes.fromhex(connection.execute("SELECT id FROM ledger").fetchone()[0])
    connection.execute("UPDATE ledger SET salt = :salt, losses = 0", {"salt": salt})
    return {"salt": journal.hash_salt(salt)}


def _add_registrations(connection: Connection) -> dict[str, Any]:
    """Format 3: datasets are registered; levels have names; people stand on the rosters of datasets."""
    for statement in (
        "ALTER TABLE ledger ADD COLUMN measure TEXT",
        "ALTER TABLE ledger ADD COLUMN ids TEXT",
        "ALTER TABLE ledger ADD COLUMN spelling TEXT",
        "ALTER TABLE cohorts ADD COLUMN level TEXT",
        "ALTER TABLE cohorts ADD COLUMN own INTEGER DEFAULT '0' NOT NULL",
        "ALTER TABLE cohorts ADD COLUMN datasets TEXT DEFAULT '{}' NOT NULL",
        "ALTER TABLE reservations ADD COLUMN dataset INTEGER",
        "ALTER TABLE reservations ADD COLUMN question BLOB",
        tables.LEVELS,
        tables.REGISTRATIONS,
        tables.BY_QUESTION,
        "UPDATE ledger SET measure = 'pure'",
    ):
        connection.execute(statement)
    return {"measure": "pure"}


def _gather_segments(connection: Connection) -> dict[str, Any]:
    """Format 4: who stands where is kept as columns, plans as rows; how people's digests are made is a term."""
    connection.execute(tables.SEGMENTS)
    first: dict[bytes, int] = {}
    entries: list[tuple[bytes, int, int]] = []
    for digest, line, origin, target in connection.execute("SELECT * FROM moves ORDER BY digest, seq"):
        first.setdefault(digest, origin)
        entries.append((digest, line, target))
    for digest, cohort, line in connection.execute("SELECT * FROM people"):
        entries.append((digest, line, first.get(digest, cohort)))
    if entries:
        people, lines, cohorts = zip(*entries, strict=True)
        digests = np.frombuffer(b"".join(people), f"S{DIGEST_BYTES}")
        segments.add(connection, segments.Entries.of(digests, np.array(lines), np.array(cohorts)))
    for statement in (
        "DROP TABLE people",
        "DROP TABLE moves",
        "ALTER TABLE ledger ADD COLUMN digest TEXT",
        "CREATE INDEX living ON cohorts (id) WHERE people > 0",
        tables.PENDING,
        tables.BY_NAME,
        # A column that may hold 0 from now on is written anew: SQLite cannot change what it was told of one.
        "CREATE TABLE former AS SELECT * FROM charges",
        "DROP TABLE charges",
        tables.CHARGES,
        "INSERT INTO charges SELECT number, cohort, nano, carried, NULL FROM former",
        "DROP TABLE former",
    ):
        connection.execute(statement)
    connection.execute("UPDATE ledger SET digest = :digest", {"digest": BLAKE_2})
    return {"digest": BLAKE_2}


def _put_emptied_aside(connection: Connection) -> dict[str, Any]:
    """Format 5: cohorts that everybody left have a table of their own."""
    connection.execute(tables.EMPTIED)
    connection.execute("DROP INDEX living")
    put_emptied_aside(connection)
    return {}


def _add_floors(connection: Connection) -> dict[str, Any]:
    """Format 6: losses are floors; who keeps the head is a term; what anybody was charged at most is counted."""
    for column in ("floor INTEGER", "witness TEXT", "state TEXT"):
        connection.execute(f"ALTER TABLE ledger ADD COLUMN {column}")
    (known,) = connection.execute("SELECT losses FROM ledger").fetchone()
    floor = losses.UNKNOWN if known else 0
    connection.execute("UPDATE ledger SET floor = :floor", {"floor": floor})
    if known:  # whoever moved to another grant since counted as having spent too little
        connection.execute("UPDATE reservations SET state = 'touched' WHERE state = 'reserved'")
        losses.spend_all(connection)
    return {"floor": floor}


def _add_departures(connection: Connection) -> dict[str, Any]:
    """Format 7: who stands in a cohort that everybody leaves at once has no entry of that."""
    connection.execute(tables.DEPARTURES)
    return {}


#: The step from each older format, which says what the journal must know of it.
_MIGRATIONS: dict[int, Callable[[Connection], dict[str, Any]]] = {
    1: _add_salt_losses_quotas,
    2: _add_registrations,
    3: _gather_segments,
    4: _put_emptied_aside,
    5: _add_floors,
    6: _add_departures,
}
