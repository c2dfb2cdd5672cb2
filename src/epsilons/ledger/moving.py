"""Backups, and what becomes of a ledger at the end of its stay: restored, moved, retired.

A backup is a copy that nobody opens as a ledger. Put back, it lacks what came after it: what that can have charged
counts as spent (`losses`), bounded where a witness knows the last line of the backup.

A ledger that moves is closed first, by a line of its journal, and copied then; only the copy goes on, by a line that
says so, and the head goes on with it. So the old one is refused by what it says itself, and by its head. Two copies
cannot both go on: the second has another line where the head points. Interrupted, the same move is finished by saying
it again. A ledger that is retired takes no more questions; what it says stays readable.
"""

import os
import shutil
from contextlib import closing
from pathlib import Path

from epsilons.errors import LedgerError
from epsilons.ledger import journal, losses
from epsilons.ledger import open as open_ledger
from epsilons.ledger.journal import now, write_time
from epsilons.ledger.ledger import Ledger
from epsilons.ledger.opening import Place, find_database
from epsilons.ledger.values import MOVED, RETIRED
from epsilons.storage import sqlite_path
from epsilons.storage.files import make_folder


def back_up(ledger: Ledger, path: str) -> int:
    """A copy of a ledger in a file, as it stands, for its owner alone; the last line that it has."""
    ledger.verify(thorough=False)
    ledger.copy(path)
    with closing(find_database(f"sqlite:///{path}", create=False)) as database, database.read() as connection:
        return journal.head(connection)[0]


def restore(backup: str, url: str, witness: Place = None) -> tuple[Ledger, int]:
    """Put a backup in the place of a ledger; the ledger, and what counts as spent of everyone's grant since then.

    -1: all of it; 0: nothing was lost. What stood there before is kept beside it.
    """
    path = _find_file(url)
    with closing(find_database(f"sqlite:///{backup}", create=False)) as database, database.read() as connection:
        (id,) = connection.execute("SELECT id FROM ledger").fetchone()
    if os.path.exists(path) and os.path.getsize(path):
        with closing(find_database(url, create=False)) as database, database.read() as connection:
            found = connection.execute("SELECT id FROM ledger").fetchone()
        if found is not None and found["id"] != id:
            raise LedgerError(
                "This is a backup of another ledger.", suggest="the backup of the ledger that stood there"
            )
        _put_aside(path)
    beside = f"{path}.restoring"
    Path(beside).unlink(missing_ok=True)
    with closing(find_database(f"sqlite:///{backup}", create=False)) as database:
        database.copy(beside)
    os.replace(beside, path)
    try:
        return open_ledger(url, witness=witness, create=False, accept_loss=True), _read_floor(url)
    except LedgerError as refused:
        if "nothing was lost" not in refused.what:
            raise
    return open_ledger(url, witness=witness, create=False), 0


def move(url: str, target: str, witness: Place = None) -> Ledger:
    """Take a ledger to another file; the ledger there. The old one is refused from then on."""
    path = _find_file(target)
    if os.path.exists(path):
        raise LedgerError("Something stands at the new place already.", suggest="another address")
    with closing(open_ledger(url, witness=witness, create=False, moved=True)) as ledger:
        ledger.verify()
        ledger.end(MOVED)
        make_folder(Path(path).absolute().parent)
        ledger.copy(path)
    with closing(find_database(target, create=False)) as database, database.write() as connection:
        connection.execute("UPDATE ledger SET state = NULL")
        journal.append(connection, "arrive", write_time(now), {})
    return open_ledger(target, witness=witness, create=False)


def retire(ledger: Ledger) -> None:
    """No question is charged here any more, for good."""
    ledger.verify()
    ledger.end(RETIRED)


def _find_file(url: str) -> str:
    path = sqlite_path(url)
    if path is None:
        rule = "A database of PostgreSQL is copied and put back by its own means (pg_dump, pg_restore)."
        hint = "afterwards `epsilons ledger adopt LEDGER --accept-loss`"
        raise LedgerError("This ledger is not in a file.", rule=rule, suggest=hint)
    return path


def _put_aside(path: str) -> None:
    """What stands there, with its log, under a name that is free."""
    number = next(n for n in range(1, 1 << 20) if not os.path.exists(f"{path}.replaced-{n}"))
    for part in ("", "-wal", "-shm"):
        if os.path.exists(path + part):
            shutil.move(path + part, f"{path}.replaced-{number}{part}")


def _read_floor(url: str) -> int:
    """What the newest loss counts for."""
    with closing(find_database(url, create=False)) as database, database.read() as connection:
        return losses.read_last(connection)
