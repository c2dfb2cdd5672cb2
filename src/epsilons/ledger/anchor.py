"""The head of the chain, kept outside the database: it shows when an older copy of the ledger was put back.

A database may be ahead of its head (the process ended between the two writes); the head then catches up. One that is
behind it, or that has another line where the head points, was restored, forked or edited, and is refused.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import Connection, select

from epsilons.errors import LedgerError
from epsilons.ledger import journal, tables
from epsilons.ledger.faults import reach


class Anchor:
    """A small file with the ledger's id and the number and hash of the newest line it has seen."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path).absolute()

    def check(self, connection: Connection, ledger: str) -> None:
        """Raise unless the head is an ancestor of the chain."""
        known = self._read()
        if known is None:
            raise LedgerError(
                "This ledger's head is not where it is kept.",
                rule="Without its head nobody can tell whether an older copy of the ledger was put back.",
                hint="the anchor of the machine it comes from, or adopt the ledger as it is",
            )
        name, seq, digest = known
        line = select(tables.journal.c.hash).where(tables.journal.c.seq == seq)
        if name != ledger or connection.execute(line).scalar_one_or_none() != digest:
            raise LedgerError(
                "This ledger is behind its head or beside it.",
                rule="A ledger that was restored, forked or edited would spend budgets twice.",
                hint="the newest copy of the ledger",
            )

    def advance(self, connection: Connection, ledger: str) -> None:
        """Catch up with the chain, durably; never backwards."""
        with self._alone():
            seq, digest = journal.head(connection)
            known = self._read()
            if known is None or known[1] < seq:
                self._write(ledger, seq, digest)

    def refuse_if_known(self) -> None:
        """A new ledger must not take the place of one whose head is kept here: budgets would start anew."""
        if self._read() is not None:
            raise LedgerError(
                "The ledger whose head is kept here is gone.",
                rule="A new ledger in its place would let everyone's budget start anew.",
                hint="the newest copy of that ledger, or another anchor for a new one",
            )

    def adopt(self, connection: Connection, ledger: str) -> None:
        """Take the chain as it is where no head is known. A head that is known is never overruled."""
        with self._alone():
            if self._read() is None:
                self._write(ledger, *journal.head(connection))

    def _read(self) -> tuple[str, int, str] | None:
        try:
            content = json.loads(self._path.read_text())
            return str(content["ledger"]), int(content["seq"]), str(content["hash"])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError):
            raise LedgerError("This ledger's head cannot be read.", hint="the file named by anchor=") from None

    def _write(self, ledger: str, seq: int, digest: str) -> None:
        beside = self._path.with_name(self._path.name + ".new")
        with beside.open("w") as file:
            json.dump({"ledger": ledger, "seq": seq, "hash": digest}, file)
            file.flush()
            os.fsync(file.fileno())
        reach("anchoring")
        beside.replace(self._path)
        folder = os.open(self._path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        # Only POSIX systems have it; elsewhere a ledger works without an anchor.
        import fcntl

        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.with_name(self._path.name + ".lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield
        except OSError:
            raise LedgerError(
                "This ledger's head cannot be written.",
                rule="No data is read before the head is safe; what was charged stays charged.",
                hint="a writable place for anchor=",
            ) from None
