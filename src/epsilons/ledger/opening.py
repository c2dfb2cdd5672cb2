"""Opening a ledger: created where there is none, brought up to date if it is old, checked against its head."""

import os
import re
import shlex
import sys
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal

from epsilons.errors import Argument, LedgerError, Text
from epsilons.ledger import journal, losses, tables, witness
from epsilons.ledger.identity import SHA_256
from epsilons.ledger.journal import Anchor, Head
from epsilons.ledger.migrating import bring_up_to_date, read_format
from epsilons.ledger.places import SCHEMA, Places
from epsilons.ledger.renewal import begin_periods
from epsilons.ledger.statements import read_ending
from epsilons.ledger.values import MOVED, NoLedgerError, UnusableLedgerError, does_not_add_up, has_ended
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
    replaced=_refusal(
        "Another file stands where this ledger was opened, or none.",
        rule="Two copies would each spend the whole budget; what was charged stays charged.",
        suggest="open it anew",
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
        # Before anything else is looked at: its head went on with the new one, which a loss accepted here would end.
        if not (moved or look) and read_format(connection) >= 6 and read_ending(connection) == MOVED:
            raise has_ended(MOVED)
        if place is not None:
            find_places().remember(place, name, note=False)
        head = _find_head(anchor, url, name)
    if accept_loss:
        _accept_loss(database, at, head, name, address)
    with database.read() as connection:
        outside = _find_outside(connection, name, address)
    try:
        return _open_checked(database, place, at, name, head, outside, adopt, look)
    except BaseException:
        if outside is not None:
            outside.close()
        raise


def _open_checked(
    database: Database, place: str | None, at: str, name: str, head: Anchor | None, outside: Outside | None,
    adopt: bool, look: bool,
) -> tuple[str, bytes, str, Anchor | None, Outside | None]:  # fmt: skip
    if outside is not None:
        outside.check(database, None if head is None else head.read())
    with database.read() as connection:
        # What a witness says is worth more than what this machine has not seen, or saw before it was lost.
        if head is not None and (adopt or outside is not None) and not look:
            head.adopt(connection, name)
        lost = None if head is None else head.get_lost(connection, name)
        counted = lost is not None and outside is not None and outside.knows(lost)
        if head is not None and counted and not look:
            head.overrule(connection, name, lost)

    def check(connection: Connection) -> None:
        if head is not None and not (counted and look):
            head.check(connection, name)

    if look:
        with database.read() as connection:
            older = read_format(connection) < tables.FORMAT
        if older:
            database.rehearse()
    bring_up_to_date(database, at, check)
    with database.read() as connection:
        check(connection)
        if place is not None and not look:  # a copy that is refused is not where the ledger stands
            find_places().remember(place, name)
        last = journal.head(connection)[0]
        if head is not None and not look:
            head.advance(connection, name)
        salt, kind = connection.execute("SELECT salt, digest FROM ledger").fetchone()
    if outside is not None and not look:
        outside.advance(database, last)
    return name, bytes(salt), kind, head, outside


def _find_outside(connection: Connection, name: str, address: str | None) -> Outside | None:
    """The witness that the ledger names, which is no matter of who opens it."""
    settled, salt = None, b""
    if read_format(connection) >= 6:
        settled, salt = connection.execute("SELECT witness, salt FROM ledger").fetchone()
    return witness.find_outside(settled, name, bytes(salt), address)


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
    outside = Outside(found)
    try:
        # With a line that stands, since the one that is written now may yet be taken back.
        outside.begin(connection)
        connection.execute("UPDATE ledger SET witness = :witness", {"witness": settled})
        journal.append(connection, "witness", at, {"witness": settled})
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


def _accept_loss(database: Database, at: str, head: Anchor | None, name: str, address: str | None) -> None:
    """Write off what is lost. Where another witness is named than the ledger's, that one is lost as well."""
    bring_up_to_date(database, at, lambda _: None)
    with database.read() as connection:
        settled, salt = connection.execute("SELECT witness, salt FROM ledger").fetchone()
    if settled is not None and address is not None and not witness.is_same(address, witness.read_settled(settled)[0]):
        anew = witness.settle(address)
        _write_off(database, at, head, None, name, gone=True)
        with database.write() as connection:
            set_witness(connection, at, name, bytes(salt), anew).close()
        return
    outside = witness.find_outside(settled, name, bytes(salt), address)
    if head is None and outside is None:
        unknown = "It is unknown whether this ledger has lost anything."
        raise LedgerError(unknown, rule="It has no head.", suggest=Argument("witness"))
    try:
        _write_off(database, at, head, outside, name)
    finally:
        if outside is not None:
            outside.close()


def _write_off(
    database: Database, at: str, head: Anchor | None, outside: Outside | None, name: str, gone: bool = False
) -> None:
    """`gone`: its witness is, so that nobody knows whether anything was lost."""
    with database.write() as connection:
        known, bound, seen = None, losses.UNKNOWN, None if head is None else head.read()
        (since, _), lost = losses.find_last(connection), seen
        if outside is not None:
            known, here = outside.find_lost(connection)
            bound = losses.bound_loss(connection, here, None if known is None else known.most)
            lost = None if known is None else Head(name, known.seq, known.digest)
        elif head is not None and not gone:
            lost = head.find_lost(connection, name)
        if read_ending(connection) == MOVED:  # the old copy of one that is lost at its new place
            connection.execute("UPDATE ledger SET state = NULL")
            journal.append(connection, "arrive", at, {})
        begin_periods(connection, at, lost=True)  # the present one may have been used up in what is lost
        loss = losses.write_off(connection, at, lost, since, bound)
    if outside is not None:
        outside.overrule(loss, known)
    with database.read() as connection:
        if head is not None:
            head.overrule(connection, name, seen)
