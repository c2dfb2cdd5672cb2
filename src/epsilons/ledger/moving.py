"""Backups, and what becomes of a ledger at the end of its stay: restored, moved, retired.

A backup is a copy that nobody opens as a ledger. Put back, it lacks what came after it: what that can have charged
counts as spent (`losses`), bounded where a witness knows the last line of the backup.

A ledger that moves is closed first, by a line of its journal, and copied then; only the copy goes on, by a line that
says so, and the head goes on with it. So the old one is refused by what it says itself, and by its head. Two copies
cannot both go on: the second has another line where the head points. Interrupted, the same move is finished by saying
it again. A ledger that is retired takes no more questions; what it says stays readable.
"""

import os
import tempfile
from contextlib import closing
from pathlib import Path

from epsilons.errors import LedgerError
from epsilons.ledger import journal, registration, tables
from epsilons.ledger import open as open_ledger
from epsilons.ledger.copying import copy_rows, copy_to_file
from epsilons.ledger.journal import now, write_time
from epsilons.ledger.ledger import Ledger
from epsilons.ledger.migrating import bring_up_to_date
from epsilons.ledger.opening import OWNER, Place, find_database
from epsilons.ledger.values import MOVED, RETIRED, NothingLostError
from epsilons.storage import sqlite_path
from epsilons.storage.base import Database, reach
from epsilons.storage.files import make_folder


def back_up(ledger: Ledger, path: str) -> int:
    """A copy of a ledger in a file, as it stands, for its owner alone; the last line that it has."""
    ledger.verify(thorough=False)
    ledger.copy(path)
    with closing(_open_file(path)) as database, database.read() as connection:
        return journal.head(connection)[0]


def restore(backup: str, url: str, witness: Place = None) -> tuple[Ledger, bool]:
    """Put a backup in the place of a ledger; the ledger, and whether anything was lost (`losses.read_last`).

    What stood there before is kept: beside the ledger, or where that is no file,
    beside the backup.
    """
    folder = os.path.dirname(os.path.abspath(backup))
    if not os.access(folder, os.W_OK | os.X_OK):
        what, rule = f"Nothing can be written beside {backup}.", "A database has its log beside it, also to be read."
        raise LedgerError(what, rule=rule, suggest="a copy of the backup in a folder of yours")
    path = sqlite_path(url)
    if path is None:
        _put_tables(backup, url)
    else:
        _put_file(backup, url, path)
    try:
        return open_ledger(url, witness=witness, create=False, accept_loss=True, moved=True), True
    except NothingLostError:
        return open_ledger(url, witness=witness, create=False), False


def move(url: str, target: str, witness: Place = None) -> Ledger:
    """Take a ledger to another file or database; the ledger there. The old one is refused from then on."""
    path = sqlite_path(target)
    if path is not None:
        make_folder(Path(path).absolute().parent)
    with closing(find_database(target, create=True)) as there, closing(find_database(url, create=False)) as here:
        stands, arrived = _find_id(there) is not None, _has_arrived(here, there)
    if arrived:  # and whoever was to hear of it was interrupted
        return open_ledger(target, witness=witness, create=False)
    if stands:
        raise LedgerError("Something stands at the new place already.", suggest="another address")
    with (
        closing(find_database(target, create=True)) as there,
        closing(open_ledger(url, witness=witness, create=False, moved=True)) as ledger,
    ):
        ledger.verify()
        ledger.end(MOVED)
        found = ledger.registrations(newest=True)
        # At once, so that whoever is interrupted finds there either nothing or all of it.
        with ledger.reading() as reading, there.write() as writing:
            there.make_tables(writing, tables.ALL)
            copy_rows(reading, writing)
            reach("arriving")
            writing.execute("UPDATE ledger SET state = NULL")
            changed = registration.keep_paths(writing, found, there.folder or "")
            journal.append(writing, "arrive", write_time(now), changed)
    return open_ledger(target, witness=witness, create=False)


def _has_arrived(here: Database, there: Database) -> bool:
    """Whether the one goes on where the other one ended."""
    with here.read() as ended, there.read() as other:
        if not (ended.has_table(OWNER.mark) and other.has_table(OWNER.mark)):
            return False
        seq, digest = journal.head(ended)
        goes_on = "SELECT 1 FROM journal WHERE seq = :next AND kind = 'arrive'"
        after = f"SELECT hash FROM journal WHERE seq = :seq AND EXISTS ({goes_on})"
        found = other.execute(after, {"seq": seq, "next": seq + 1}).fetchone()
        return found is not None and bool(found["hash"] == digest)


def retire(ledger: Ledger) -> None:
    """No question is charged here any more, for good."""
    ledger.verify()
    ledger.end(RETIRED)


def _put_file(backup: str, url: str, path: str) -> None:
    if os.path.exists(path) and os.path.getsize(path):
        with closing(find_database(url, create=False)) as there:
            _check_same(backup, there)
    beside = f"{path}.restoring"
    Path(beside).unlink(missing_ok=True)
    with closing(_open_file(backup)) as database:
        database.copy(beside)
    _put_aside(path)  # once there is something to put in its place
    os.replace(beside, path)


def _put_tables(backup: str, url: str) -> None:
    with closing(find_database(url, create=False)) as there, tempfile.TemporaryDirectory() as folder:
        stood = _check_same(backup, there)
        if stood:
            copy_to_file(there, _find_free(backup))
        # An older format is brought up to date first, and not in the backup itself.
        newer = os.path.join(folder, "ledger")
        with closing(_open_file(backup)) as database:
            database.copy(newer)
        with closing(_open_file(newer)) as database:
            bring_up_to_date(database, write_time(now), lambda _: None)
            with database.read() as reading, there.write() as writing:
                if stood:
                    for table in OWNER.tables:
                        writing.execute(f"DELETE FROM {table}")
                else:
                    there.make_tables(writing, tables.ALL)
                copy_rows(reading, writing)


def _check_same(backup: str, there: Database) -> bool:
    """Whether a ledger stands there; refused if it is another one than the backup's."""
    with closing(_open_file(backup)) as database:
        id = _find_id(database)
    found = _find_id(there)
    if id is None or found not in (None, id):
        raise LedgerError("This is a backup of another ledger.", suggest="the backup of the ledger that stood there")
    return found is not None


def _find_id(database: Database) -> str | None:
    with database.read() as connection:
        if not connection.has_table(OWNER.mark):
            return None
        found = connection.execute("SELECT id FROM ledger").fetchone()
        return None if found is None else str(found["id"])


def _open_file(path: str) -> Database:
    return find_database(f"sqlite:///{path}", create=False)


def _find_free(path: str) -> str:
    """A name for what was replaced."""
    names = (f"{path}.replaced-{n}" for n in range(1, 1 << 20))
    return next(name for name in names if not any(os.path.lexists(name + part) for part in ("", "-wal")))


def _put_aside(path: str) -> None:
    """What stands there, with its log, under a name that is free; also a log that was left alone."""
    aside = _find_free(path)
    for part in ("", "-wal", "-shm"):
        if os.path.exists(path + part):
            os.rename(path + part, aside + part)
