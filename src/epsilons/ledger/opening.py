"""How a ledger is opened: made if there is none, brought up to date if it is old, held to its head if it has one.

Accepting a loss: the newest records are gone for good, so the worst is assumed of what they held. Everybody's grant
counts as fully spent. Questions that were under way are closed, since their answers may have left already and a second
answer would be a second release. Newcomers may have been charged in the part that is lost, and count as fully spent
too. What people grant beyond that, by their own word, is new.
"""

from __future__ import annotations

import os
import sys
import uuid
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

from sqlalchemy import Connection, case, insert, inspect, select, update

from epsilons.errors import LedgerError
from epsilons.ledger import journal, migrations, tables
from epsilons.ledger.journal import Anchor, Head
from epsilons.ledger.values import LOST, RESERVED, TOUCHED
from epsilons.noise import entropy
from epsilons.storage import open_database, sqlite_path
from epsilons.storage.base import Database, Owner

SALT_BYTES = 16
#: Where the head of the chain is kept: a path, None for the usual place, False for nowhere.
Place = str | os.PathLike[str] | Literal[False] | None

OWNER = Owner(
    name="ledger",
    schema="epsilons",
    patience=120,
    refused=partial(
        LedgerError,
        "The ledger's database refused or could not be reached; nothing was changed.",
        rule="A change is made as a whole or not at all.",
        suggest="check that the database exists, is writable and is not held by a long transaction",
    ),
    broken=partial(
        LedgerError,
        "The connection to the ledger's database broke; the last change was made as a whole or not at all.",
        rule="What was charged stays charged.",
        suggest="ask again: a question that was charged resumes at no further charge",
    ),
    no_address=partial(
        LedgerError,
        "There is no ledger at such an address.",
        suggest='"sqlite:///people.ledger", "postgresql://host/database" or None',
    ),
    no_postgres_address=partial(
        LedgerError,
        "There is no ledger at such an address.",
        rule="postgresql://user:password@host/database, then perhaps ?schema= and a name in small letters.",
        suggest='"postgresql://localhost/wages"',
    ),
    no_psycopg=partial(
        LedgerError, "A ledger in PostgreSQL needs psycopg.", suggest="pip install 'epsilons[postgres]'"
    ),
    no_log=partial(
        LedgerError, "This disk cannot hold a ledger.", rule="SQLite's write-ahead log does not work there."
    ),
    no_sync=partial(
        LedgerError,
        "This server does not wait for the disk.",
        rule="A charge must survive a crash of the server.",
        suggest="fsync = on in the server's settings",
    ),
    forked=partial(
        LedgerError,
        "A ledger in memory belongs to the process that opened it.",
        rule="Two copies would each spend the whole budget.",
        suggest='a file that processes can share: epsilons.ledger.open("sqlite:///people.ledger")',
    ),
)


def find_database(url: str | None, *, create: bool) -> Database:
    """The database of an address; None is the memory of this process."""
    if url is None:
        from epsilons.storage.sqlite import Sqlite

        return Sqlite(None, OWNER)
    path = sqlite_path(url)
    if path is not None and not create and not os.path.exists(path):
        raise LedgerError("There is no ledger here.", suggest="the address it was created with")
    return open_database(url, OWNER)


class Opened(NamedTuple):
    """What a ledger knows about itself once it is open."""

    id: str
    salt: bytes
    anchor: Anchor | None


def open_ledger(database: Database, at: str, *, anchor: Place, create: bool, adopt: bool, accept_loss: bool) -> Opened:
    """Open the ledger in this database."""
    with database.read() as connection:
        there = _is_there(database, connection)
    if not there:
        if not create:
            raise LedgerError("There is no ledger here.", suggest="the address it was created with")
        _create(database, at, anchor)
    with database.read() as connection:
        name = str(connection.execute(select(tables.ledger.c.id)).scalar_one())
        head = _head(database, anchor, name)
        if head is not None and adopt:
            head.adopt(connection, name)
    if accept_loss:
        _accept_loss(database, at, head, name)

    def check(connection: Connection) -> None:
        if head is not None:
            head.check(connection, name)

    migrations.bring_up_to_date(database, at, check)
    with database.read() as connection:
        check(connection)
        if head is not None:
            head.advance(connection, name)
        salt = bytes(connection.execute(select(tables.ledger.c.salt)).scalar_one())
    return Opened(name, salt, head)


def _is_there(database: Database, connection: Connection) -> bool:
    return inspect(connection).has_table(tables.ledger.name, schema=database.schema)


def _head(database: Database, anchor: Place, name: str) -> Anchor | None:
    if anchor is False or (anchor is None and not database.lasting):
        return None
    return Anchor(usual_anchor(name) if anchor is None else anchor)


def _create(database: Database, at: str, anchor: Place) -> None:
    with database.write() as connection:
        if _is_there(database, connection):
            return
        database.make_schema(connection)
        tables.metadata.create_all(connection)
        name, salt = uuid.uuid4().hex, entropy.system().bytes(SALT_BYTES)
        about = {"one": 1, "id": name, "format": tables.FORMAT, "epoch": 0, "salt": salt, "losses": 0}
        connection.execute(insert(tables.ledger), about)
        line = {"id": name, "format": tables.FORMAT, "salt": migrations.hash_salt(salt)}
        journal.append(connection, "open", at, line)
        head = _head(database, anchor, name)
        if head is not None:
            head.refuse_if_known()
            head.adopt(connection, name)


def _accept_loss(database: Database, at: str, head: Anchor | None, name: str) -> None:
    if head is None:
        raise LedgerError(
            "Nobody knows whether this ledger has lost anything.", rule="It has no head.", suggest="anchor="
        )
    migrations.bring_up_to_date(database, at, lambda _: None)
    with database.write() as connection:
        _write_off(connection, at, head.lost(connection, name))
    with database.read() as connection:
        head.overrule(connection, name)


def _write_off(connection: Connection, at: str, lost: Head | None) -> None:
    """Write everything off, as a line of the journal that names the head that was lost."""
    cohorts, past = tables.cohorts, tables.reservations
    gone = cohorts.c.spent + cohorts.c.reserved
    connection.execute(
        update(cohorts).values(spent=case((cohorts.c.granted > gone, cohorts.c.granted), else_=gone), reserved=0)
    )
    connection.execute(update(past).where(past.c.state.in_((RESERVED, TOUCHED))).values(state=LOST))
    losses = int(connection.execute(select(tables.ledger.c.losses)).scalar_one()) + 1
    connection.execute(update(tables.ledger).values(losses=losses))
    about = None if lost is None else {"seq": lost.seq, "hash": lost.digest}
    journal.append(connection, "loss", at, {"losses": losses, "head": about})


def usual_anchor(ledger: str) -> Path:
    """Where the head of a ledger is kept unless somebody says otherwise: the user's state directory, by its id."""
    return _state_directory() / "epsilons" / "ledgers" / f"{ledger}.json"


def _state_directory() -> Path:
    """What belongs to a user and must outlive a restart but is no document (freedesktop.org's base directories)."""
    named = os.environ.get("XDG_STATE_HOME", "")
    if os.path.isabs(named):
        return Path(named)
    try:
        home = Path.home()
    except RuntimeError:
        raise LedgerError("This user has no home directory to keep the ledger's head in.", suggest="anchor=") from None
    if sys.platform == "darwin":
        return home / "Library" / "Application Support"
    return home / ".local" / "state"
