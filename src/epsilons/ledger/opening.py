"""How a ledger is opened: made if there is none, brought up to date if it is old, held to its head if it has one."""

from __future__ import annotations

import datetime
import os
import uuid
from collections.abc import Callable
from typing import Literal, NamedTuple

from sqlalchemy import Connection, insert, inspect, select

from epsilons.errors import LedgerError
from epsilons.ledger import journal, losses, migrations, tables
from epsilons.ledger.anchor import Anchor
from epsilons.ledger.database import Database
from epsilons.ledger.place import usual_anchor
from epsilons.noise import entropy

SALT_BYTES = 16

Clock = Callable[[], datetime.datetime]
#: Where the head of the chain is kept: a path, None for the usual place, False for nowhere.
Place = str | os.PathLike[str] | Literal[False] | None


def now() -> datetime.datetime:
    """The clock on the wall."""
    return datetime.datetime.now(datetime.UTC)


def words(clock: Clock) -> str:
    """The time as it is written down."""
    return clock().astimezone(datetime.UTC).isoformat(timespec="microseconds")


class Opened(NamedTuple):
    """What a ledger knows about itself once it is open."""

    id: str
    salt: bytes
    anchor: Anchor | None


def opened(database: Database, at: str, *, anchor: Place, create: bool, adopt: bool, accept_loss: bool) -> Opened:
    """Open the ledger in this database."""
    with database.read() as connection:
        there = _is_there(database, connection)
    if not there:
        if not create:
            raise LedgerError("There is no ledger here.", hint="the address it was created with")
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
        database.make_room(connection)
        tables.metadata.create_all(connection)
        name, salt = uuid.uuid4().hex, entropy.system().bytes(SALT_BYTES)
        about = {"one": 1, "id": name, "format": tables.FORMAT, "epoch": 0, "salt": salt, "losses": 0}
        connection.execute(insert(tables.ledger), about)
        line = {"id": name, "format": tables.FORMAT, "salt": migrations.salt_words(salt)}
        journal.append(connection, "open", at, line)
        head = _head(database, anchor, name)
        if head is not None:
            head.refuse_if_known()
            head.adopt(connection, name)


def _accept_loss(database: Database, at: str, head: Anchor | None, name: str) -> None:
    if head is None:
        raise LedgerError("Nobody knows whether this ledger has lost anything.", rule="It has no head.", hint="anchor=")
    migrations.bring_up_to_date(database, at, lambda _: None)
    with database.write() as connection:
        losses.accept(connection, at, head.lost(connection, name))
    with database.read() as connection:
        head.overrule(connection, name)
