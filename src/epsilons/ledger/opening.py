"""Opening a ledger: created where there is none, brought up to date if it is old, checked against its head.

Older formats: a step from format n changes the tables and says what the journal must know of it. All steps of one
opening and their lines are one transaction: a ledger is of the old format or of the new one. The journal's older lines
stay as they are.
"""

import os
import re
import shlex
import sys
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from epsilons.errors import Argument, LedgerError, Text
from epsilons.ledger import journal, losses, segments, tables, witness
from epsilons.ledger.identity import BLAKE_2, SHA_256
from epsilons.ledger.journal import Anchor, Head
from epsilons.ledger.places import SCHEMA, Places
from epsilons.ledger.renewal import begin_periods
from epsilons.ledger.roster import put_emptied_aside
from epsilons.ledger.values import DIGEST_BYTES, MOVED, NoLedgerError, UnusableLedgerError, does_not_add_up, has_ended
from epsilons.ledger.witness import Outside
from epsilons.noise import entropy
from epsilons.storage import open_database, show_address, sqlite_path
from epsilons.storage.base import Connection, Database, Owner, name_tables

SALT_BYTES = 16
_FILE = Argument("ledger", "sqlite:///people.ledger")
#: Where the head of the chain is kept: a path, None for the usual place, False for nowhere.
Place = str | os.PathLike[str] | Literal[False] | None


def _refusal(what: str, **more: Text) -> Callable[[], LedgerError]:
    return partial(UnusableLedgerError, what, **more)


OWNER = Owner(
    name="ledger",
    schema=SCHEMA,
    mark="ledger",
    tables=name_tables(tables.ALL),
    patience=120,
    refused=_refusal(
        "The ledger's database refused or could not be reached; nothing was changed.",
        rule="A change is made as a whole or not at all.",
        suggest="check that the database exists, is writable and is not held by a long transaction",
    ),
    broken=_refusal(
        "The connection to the ledger's database broke; the last change was made as a whole or not at all.",
        rule="What was charged stays charged.",
        suggest="ask again: a question that was charged resumes at no further charge",
    ),
    no_address=_refusal(
        "There is no ledger at such an address.",
        rule="After the database of PostgreSQL may stand ?schema= and a name in small letters.",
        suggest=(_FILE, " or ", Argument("ledger", "postgresql://user:password@host/database")),
    ),
    no_psycopg=_refusal("A ledger in PostgreSQL needs psycopg.", suggest="pip install 'epsilons[postgres]'"),
    no_log=_refusal("This disk cannot hold a ledger.", rule="SQLite's write-ahead log does not work there."),
    no_sync=_refusal(
        "This server does not wait for the disk.",
        rule="A charge must survive a crash of the server.",
        suggest="fsync = on in the server's settings",
    ),
    forked=_refusal(
        "A ledger in memory belongs to the process that opened it.",
        rule="Two copies would each spend the whole budget.",
        suggest=("a file that processes can share: ", _FILE),
    ),
    foreign=_refusal(
        "This file holds something else than a ledger; nothing in it was changed.",
        rule="A ledger has a file of its own.",
        suggest=("the address that the ledger was created with, or a new file: ", _FILE),
    ),
    edited=does_not_add_up,
    altered=partial(does_not_add_up, "its tables have triggers, rules or views that no release of epsilons makes"),
)


def _no_ledger(url: str | None) -> NoLedgerError:
    hint = "the address it was created with; a steward makes one by `epsilons register`"
    where = "here" if url is None else f"at {show_address(url)}"
    return NoLedgerError(f"There is no ledger {where}.", suggest=hint)


def find_database(url: str | None, *, create: bool, place: str | None = None) -> Database:
    """The database of an address; None is the memory of this process. `place` is the address if it is remembered."""
    if url is None:
        from epsilons.storage.sqlite import Sqlite

        return Sqlite(None, OWNER)
    path = sqlite_path(url)
    if path is not None and not (os.path.exists(path) and os.path.getsize(path)):
        if place is not None:
            find_places().refuse_if_gone(place)
        if not create:
            raise _no_ledger(url)
    return open_database(url, OWNER)


def open_ledger(
    database: Database,
    url: str | None,
    place: str | None,
    at: str,
    *,
    anchor: Place,
    address: str | None,
    create: bool,
    salt: bytes | None,
    adopt: bool,
    accept_loss: bool,
    look: bool,
    moved: bool,
) -> tuple[str, bytes, str, Anchor | None, Outside | None]:
    """Open the ledger in this database: its id, its salt, the kind of its digests, and where its head is kept.

    `anchor` is the place of the head in this machine's files, `address` that of a witness.
    """
    with database.read() as connection:
        database.check_tables(connection)
        there = connection.has_table(OWNER.mark)
    if not there:
        if place is not None:
            find_places().refuse_if_gone(place)
        if not create:
            raise _no_ledger(place)
        known = salt or entropy.system().bytes(SALT_BYTES)
        _create(database, at, partial(_find_head, anchor, url), known, address)
    with database.read() as connection:
        found = connection.execute("SELECT id FROM ledger").fetchone()
        # It names the file of the head: no path comes in here by a ledger that somebody sent.
        if found is None or not re.fullmatch("[0-9a-f]{32}", found["id"]):
            raise does_not_add_up()
        name = str(found["id"])
        if place is not None:
            find_places().remember(place, name, note=False)
        head, outside = _find_head(anchor, url, name), _find_outside(connection, name, address)
    try:
        return _open_checked(database, place, at, name, head, outside, adopt, accept_loss, look, moved)
    except BaseException:
        if outside is not None:
            outside.close()
        raise


def _open_checked(
    database: Database, place: str | None, at: str, name: str, head: Anchor | None, outside: Outside | None,
    adopt: bool, accept_loss: bool, look: bool, moved: bool,
) -> tuple[str, bytes, str, Anchor | None, Outside | None]:  # fmt: skip
    if accept_loss:
        _accept_loss(database, at, head, outside, name)
    if outside is not None:
        outside.check(database)
    with database.read() as connection:
        # What a witness says is worth more than what this machine has not seen.
        if head is not None and (adopt or outside is not None) and not look:
            head.adopt(connection, name)

    def check(connection: Connection) -> None:
        if head is not None:
            head.check(connection, name)

    if look:
        with database.read() as connection:
            older = _read_format(connection) < tables.FORMAT
        if older:
            database.rehearse()
    _bring_up_to_date(database, at, check)
    with database.read() as connection:
        check(connection)
        if place is not None and not look:  # a copy that is refused is not where the ledger stands
            find_places().remember(place, name)
        last = journal.head(connection)[0]
        if head is not None and not look:
            head.advance(connection, name)
        salt, kind, state = connection.execute("SELECT salt, digest, state FROM ledger").fetchone()
        if state == MOVED and not (moved or look):
            raise has_ended(state)
    if outside is not None and not look:
        outside.advance(database, last)
    return name, bytes(salt), kind, head, outside


def _find_outside(connection: Connection, name: str, address: str | None) -> Outside | None:
    """The witness that the ledger names, which is no matter of who opens it."""
    settled, salt = None, b""
    if _read_format(connection) >= 6:
        settled, salt = connection.execute("SELECT witness, salt FROM ledger").fetchone()
    found = witness.find_witness(settled, name, bytes(salt))
    if address is not None and (found is None or not witness.is_same(address, found.address)):
        held = "none" if found is None else found.address
        what, rule = f"This ledger's witness is {held}.", "It is a term of the ledger, the same for all its clients."
        raise LedgerError(what, rule=rule, suggest=f"`epsilons ledger witness {address} LEDGER`, to settle it")
    return None if found is None else Outside(found)


def _create(
    database: Database, at: str, find_head: Callable[[str], Anchor | None], salt: bytes, address: str | None
) -> None:
    settled = None if address is None else witness.settle(address)
    with database.write() as connection:
        if connection.has_table(OWNER.mark):
            return
        database.make_tables(connection, tables.ALL)
        name = uuid.uuid4().hex
        row = {"id": name, "format": tables.FORMAT, "salt": salt, "digest": SHA_256}
        new = "INSERT INTO ledger (one, id, format, epoch, salt, losses, measure, digest, floor)"
        connection.execute(f"{new} VALUES (1, :id, :format, 0, :salt, 0, 'pure', :digest, 0)", row)
        line = {**row, "measure": "pure", "salt": journal.hash_salt(salt), "floor": 0}
        journal.append(connection, "open", at, line)
        if settled is not None:
            set_witness(connection, at, name, salt, settled).close()
        head = find_head(name)
        if head is not None:
            head.refuse_if_known()
            head.adopt(connection, name)


def set_witness(connection: Connection, at: str, name: str, salt: bytes, settled: str) -> Outside:
    """Write down who keeps the head, as `witness.settle` has it, and let them begin."""
    found = witness.find_witness(settled, name, salt)
    assert found is not None
    connection.execute("UPDATE ledger SET witness = :witness", {"witness": settled})
    journal.append(connection, "witness", at, {"witness": settled})
    outside = Outside(found)
    try:
        outside.begin(connection)
    except BaseException:
        outside.close()
        raise
    return outside


def _find_head(anchor: Place, url: str | None, name: str) -> Anchor | None:
    """Where the head is kept: usually in the user's state directory."""
    if anchor is False or url is None:
        return None
    elsewhere = [] if anchor is None else ["--witness", os.fspath(anchor)]
    adopt = shlex.join(["epsilons", "ledger", "adopt", show_address(url), *elsewhere])
    return Anchor(find_places().folder / f"{name}.json" if anchor is None else anchor, adopt)


def find_places() -> Places:
    """What this user knows of ledgers, beside their heads."""
    return Places(state_folder() / "ledgers")


def state_folder() -> Path:
    """Where this user's programs keep what outlives them and is no document (freedesktop.org)."""
    state = Path(os.environ.get("XDG_STATE_HOME", ""))
    if not state.is_absolute():
        try:
            home = Path.home()
        except RuntimeError:
            missing = "This user has no home directory to keep the ledger's head in."
            raise LedgerError(missing, suggest=Argument("witness")) from None
        state = home / ("Library/Application Support" if sys.platform == "darwin" else ".local/state")
    return state / "epsilons"


def _accept_loss(database: Database, at: str, head: Anchor | None, outside: Outside | None, name: str) -> None:
    if head is None and outside is None:
        unknown = "It is unknown whether this ledger has lost anything."
        raise LedgerError(unknown, rule="It has no head.", suggest=Argument("witness"))
    _bring_up_to_date(database, at, lambda _: None)
    with database.write() as connection:
        known, lost, bound = None, None, losses.UNKNOWN
        if outside is not None:
            known, here = outside.find_lost(connection)
            bound = losses.bound_loss(connection, here, None if known is None else known.most)
            lost = None if known is None else Head(name, known.seq, known.digest)
        elif head is not None:
            lost = head.find_lost(connection, name)
        begin_periods(connection, at, lost=True)  # the present one may have been used up in what is lost
        losses.write_off(connection, at, lost, bound)
    with database.read() as connection:
        if outside is not None:
            outside.overrule(connection, known)
        if head is not None:
            head.overrule(connection, name)


def _bring_up_to_date(database: Database, at: str, check: Callable[[Connection], None]) -> None:
    """Take the steps that are missing; a ledger from the future is refused."""
    with database.read() as connection:
        if _read_format(connection) == tables.FORMAT:
            return
    with database.write() as connection:
        check(connection)
        for number in range(_read_format(connection), tables.FORMAT):
            known = _MIGRATIONS[number](connection)
            connection.execute("UPDATE ledger SET format = :format", {"format": number + 1})
            journal.append(connection, "migrate", at, {"format": number + 1, **known})


def _read_format(connection: Connection) -> int:
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


#: The step from each older format, which says what the journal must know of it.
_MIGRATIONS: dict[int, Callable[[Connection], dict[str, Any]]] = {
    1: _add_salt_losses_quotas,
    2: _add_registrations,
    3: _gather_segments,
    4: _put_emptied_aside,
    5: _add_floors,
}
