"""Where things stand: the database behind an address, and the head of a ledger's chain on this machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from epsilons.errors import LedgerError
from epsilons.ledger.database import Database

_SQLITE, _POSTGRES = "sqlite:///", ("postgresql://", "postgres://", "postgresql+psycopg://")


def database_at(url: str | None, *, create: bool) -> Database:
    """The database of an address; None is the memory of this process."""
    from epsilons.ledger.sqlite import Sqlite

    if url is None:
        return Sqlite(None)
    if isinstance(url, str) and url.startswith(_POSTGRES):
        from epsilons.ledger.postgres import Postgres

        return Postgres(url)
    if not isinstance(url, str) or not url.startswith(_SQLITE) or len(url) == len(_SQLITE):
        raise LedgerError(
            "There is no ledger at such an address.",
            hint='"sqlite:///people.ledger", "postgresql://host/database" or None',
        )
    path = url.removeprefix(_SQLITE)
    if not create and not os.path.exists(path):
        raise LedgerError("There is no ledger here.", hint="the address it was created with")
    return Sqlite(path)


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
        raise LedgerError("This user has no home directory to keep the ledger's head in.", hint="anchor=") from None
    if sys.platform == "darwin":
        return home / "Library" / "Application Support"
    return home / ".local" / "state"
