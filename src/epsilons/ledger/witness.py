"""Who keeps a ledger's head outside this machine, and how every client is held to it; a store's of an aggregator, too.

The head in this user's files (`journal.Anchor`) shows a rollback to this user alone. A witness shows it to everybody:
one head for a ledger, which only goes forward. Its address is a term of the ledger, written in its journal with the key
that it signs with, so that no client can leave it out.

    https://, http://   the service `epsilons witness`: signed heads, of as many ledgers as come   (`signed`)
    postgresql://       a table in another PostgreSQL, to which clients may only add rows          (`heads`)
    sqlite:///          the same in a file, for clients of one machine

Order of a change: commit here, then the head at the witness, then data is read. A witness that cannot be reached stops
new charges; what was charged stays charged, and the same question goes on from there.

A witness sees no journal, and takes what a client of the ledger hands it: also from one that put back an older copy,
and made up lines to follow it. So whoever opens the ledger looks, from the last line that it has seen itself, whether
every row of the witness is a line of the journal, or was lost and is counted there as spent (`losses`).
"""

import json
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from epsilons.errors import Argument, EpsilonsError
from epsilons.ledger import journal, losses
from epsilons.ledger.heads import MOST_LINES, Heads, Line, Row
from epsilons.ledger.journal import Head
from epsilons.ledger.kept import LEDGER, Kept
from epsilons.ledger.values import NothingLostError, does_not_add_up
from epsilons.storage import show_address, split_address, sqlite_path
from epsilons.storage.base import Connection, Database, reach, spread
from epsilons.storage.stores import UnusableStoreError

#: How addresses of tables begin.
_TABLES = ("postgresql://", "postgres://", "sqlite:///")


class Witness(Protocol):
    """Keeps the head of one ledger."""

    address: str

    def read(self, asked: tuple[int, str] | None = None) -> tuple[Row | None, Row | None]:
        """The head, and the row of this line, by its number and hash; None where it is not known."""
        ...

    def list_before(self, number: int) -> list[Row]:
        """The rows before one, newest first; some of them."""
        ...

    def add(self, after: Line | None, lines: Sequence[Line], loss: bool = False) -> Line | None:
        """The head as it stands then: the last of these lines, unless another was added after `after`."""
        ...

    def close(self) -> None: ...


def is_address(given: object) -> bool:
    """Whether this is the address of a witness, and no path."""
    return isinstance(given, str) and given.startswith(("http://", "https://", *_TABLES))


def is_same(one: str, other: str) -> bool:
    """Whether two addresses are of one witness."""
    paths = [sqlite_path(each) for each in (one, other)]
    return one == other or (None not in paths and len({os.path.abspath(str(path)) for path in paths}) == 1)


def settle(address: str, kept: Kept = LEDGER) -> str:
    """What the ledger keeps of a witness, as JSON: its address, and the key that it signs with."""
    if not is_address(address):
        hint = (Argument("witness", "https://witness.example.org"), ", or postgresql://host/database")
        raise kept.wrong("There is no witness at such an address.", suggest=hint)
    if (path := sqlite_path(address)) is not None:
        return journal.to_json({"address": f"sqlite:///{os.path.abspath(path)}"})
    if address.startswith(_TABLES):
        named, options = split_address(address) or ({"password": ""}, {})
        if named["password"] or "password" in options:
            rule = f"The address is kept in the {kept.name}, for every client to see."
            raise kept.wrong("This address holds a password.", rule=rule, suggest="the password in ~/.pgpass")
        return journal.to_json({"address": address})
    from epsilons.ledger.signed import ask_key

    return journal.to_json({"address": address, "key": ask_key(address, kept)})


def find_witness(settled: str | None, ledger: str, salt: bytes, kept: Kept = LEDGER) -> Witness | None:
    """The witness that a ledger names; `salt` is a secret of its clients, who sign by it."""
    if settled is None:
        return None
    address, key = read_settled(settled)
    if address.startswith(_TABLES):
        return TableWitness(address, ledger, kept)
    from epsilons.ledger.signed import SignedWitness

    return SignedWitness(address, str(key), ledger, salt, kept)


def read_settled(settled: str) -> tuple[str, str | None]:
    """The address and the key of a witness, as `settle` has them."""
    try:
        known = json.loads(settled)
        return str(known["address"]), known.get("key")
    except (ValueError, KeyError, TypeError, AttributeError):
        raise does_not_add_up() from None


def find_outside(
    settled: str | None, ledger: str, salt: bytes, address: str | None, kept: Kept = LEDGER
) -> "Outside | None":
    """The head that the witness keeps which a ledger names; refused if whoever opens it names another one."""
    found = find_witness(settled, ledger, salt, kept)
    if address is not None and (found is None or not is_same(address, found.address)):
        held = "none" if found is None else found.address
        what, rule = f"This {kept.name}'s witness is {held}.", f"It is a term of the {kept.name}, for all its clients."
        raise kept.wrong(what, rule=rule, suggest=kept.settling.format(address=address))
    return None if found is None else Outside(found, kept, settled)


class TableWitness:
    """Rows in another database."""

    def __init__(self, address: str, ledger: str, kept: Kept = LEDGER) -> None:
        self.address, self._ledger, self._kept = address, ledger, kept
        with self._reached():
            self._heads = Heads(address)

    def read(self, asked: tuple[int, str] | None = None) -> tuple[Row | None, Row | None]:
        with self._reached():
            return self._heads.read(self._ledger, asked)

    def list_before(self, number: int) -> list[Row]:
        with self._reached():
            return self._heads.list_before(self._ledger, number)

    def add(self, after: Line | None, lines: Sequence[Line], loss: bool = False) -> Line | None:
        with self._reached():
            return self._heads.add(self._ledger, after, lines, loss)

    def close(self) -> None:
        self._heads.close()

    @contextmanager
    def _reached(self) -> Iterator[None]:
        """Name a database that refuses, or is not there, as a service would be named."""
        try:
            yield
        except UnusableStoreError as error:
            what = f"The witness at {show_address(self.address)} cannot be used. {error.what}"
            raise self._kept.unreached(what) from None


class Outside:
    """The head that a witness keeps, and the chain of this ledger held to it."""

    def __init__(self, witness: Witness, kept: Kept = LEDGER, settled: str | None = None) -> None:
        self._witness, self._kept, self._turn = witness, kept, threading.Lock()
        #: What the ledger keeps of its witness.
        self.settled = settled
        #: The newest line that is known to stand at the witness.
        self._known: Line | None = None

    def close(self) -> None:
        self._witness.close()

    def check(self, database: Database, seen: Head | None = None) -> Line:
        """The witness's head; refused unless what it knows since the line that was `seen` is in the chain, or counted.

        Without such a line, or where the witness does not know it, that is all that it knows.
        """
        # Asked first, and only then looked at: what it knows was committed before.
        head, line = self._witness.read(None if seen is None else (seen.seq, seen.digest))
        if head is None:
            raise self._unknown()
        with database.read() as connection:
            if not self._is_counted(connection, head, line):
                raise self._behind()
        self._known = head.line
        return head.line

    def knows(self, line: Head) -> bool:
        """Whether this was a line of the ledger once: if it is none now, and the head is, its loss was counted."""
        return self._witness.read((line.seq, line.digest))[1] is not None

    def begin(self, connection: Connection) -> None:
        """Let the witness know of a ledger that it did not know."""
        self._known = self._witness.add(None, [Line(*journal.head(connection), 0)])
        head, _ = self._witness.read()
        if self._known is None or head is None:
            raise self._refused()
        if not self._is_counted(connection, head):
            raise self._behind()

    def advance(self, database: Database, least: int) -> None:
        """Hand over what was added to the chain, link by link; the head has reached `least` when this returns.

        Another client may be quicker, with lines of this chain, or of another, which is refused.
        """
        with self._turn:
            known = self._known or self.check(database)
            while True:
                with database.read() as connection:  # newer than what the witness knows
                    self._hold(connection, known)
                    if known.seq >= least:
                        return
                    lines = list(self._follow(connection, known))
                if not lines or lines[-1].seq < least:
                    raise self._behind()
                reach("witnessing")
                told = self._witness.add(known, lines[-MOST_LINES:])
                if told is None or told == known:
                    raise self._refused()
                known = self._known = told

    def find_lost(self, connection: Connection) -> tuple[Line | None, int | None]:
        """The head that the ledger has lost, and `most` at the last line that is left, as far as they are known.

        Refuses where nothing was lost. A witness that does not know the ledger has lost its own store.
        """
        head, line = self._witness.read(losses.find_last(connection))
        if head is not None and self._is_counted(connection, head):
            raise NothingLostError
        known = line is not None and self._is_counted(connection, line)
        return None if head is None else head.line, line.most if line is not None and known else None

    def overrule(self, loss: tuple[int, str], lost: Line | None) -> None:
        """The head after a loss was accepted and written down; what was lost still counts."""
        line = Line(*loss, 0 if lost is None else lost.most)
        self._known = self._witness.add(lost, [line], loss=True)
        if self._known != line:
            raise self._behind()

    def _is_counted(self, connection: Connection, head: Row, seen: Row | None = None) -> bool:
        """Whether every row up to this one is a line of the journal, or is counted there as lost; `seen` was, before.

        Rows are followed from the newest one. Before one that says a loss, or that goes back, those are passed over
        that came after the line which that loss goes on from.
        """
        if not _stands(connection, head):
            return False
        earlier, left = list[Row](), None
        while head.number > (1 if seen is None else seen.number):
            if not earlier:
                earlier = self._witness.list_before(head.number)
                standing = _find_standing(connection, earlier)
            if not earlier or earlier[0].number != head.number - 1:
                return False
            row = earlier.pop(0)
            if left is None and (head.loss or row.seq >= head.seq):
                loss = losses.read_loss(connection, head.line)
                if loss is None:
                    return False
                counts, since = loss
                if counts < 0:  # everything
                    return True
                _, left = self._witness.read(since)
                if left is None or left.number >= head.number or head.most - left.most > counts:
                    return False
            if left == row:
                left = None
            if row.most > head.most or (left is None and row not in standing):
                return False
            head = row
        return True

    def _hold(self, connection: Connection, head: Line) -> None:
        if not _stands(connection, head):
            raise self._behind()

    def _follow(self, connection: Connection, known: Line) -> Iterator[Line]:
        most = known.most
        for seq, kind, _, body, digest in journal.follow(connection, known.seq + 1, known.digest, kept=self._kept):
            most = journal.add_charges(most, kind, body)
            yield Line(seq, digest, most)

    def _unknown(self) -> EpsilonsError:
        return self._kept.error(
            f"The witness at {self._witness.address} does not know this {self._kept.name}.",
            rule=f"Only its head shows whether an older copy of the {self._kept.name} was put back.",
            suggest=f"the witness with its own store; if that is lost for good, {self._kept.alone}",
        )

    def _refused(self) -> EpsilonsError:
        return self._kept.error(
            f"The witness at {self._witness.address} did not take this {self._kept.name}'s head.",
            rule=self._kept.before,
            suggest=f"whether it keeps the head of another {self._kept.name} under this id",
        )

    def _behind(self) -> EpsilonsError:
        witness, name = self._witness.address, self._kept.name
        return self._kept.error(
            f"This {name} is older than its witness at {witness} knows it, or has diverged from what it knows.",
            rule=self._kept.twice,
            suggest=f"{self._kept.newest}; if it is lost for good, {self._kept.lost}",
        )


def _stands(connection: Connection, head: Line | Row) -> bool:
    line = connection.execute("SELECT hash FROM journal WHERE seq = :seq", {"seq": head.seq}).fetchone()
    return line is not None and bool(line["hash"] == head.digest)


def _find_standing(connection: Connection, rows: Sequence[Row]) -> set[Row]:
    """Those that are lines of the journal."""
    which, values = spread("seq", {row.seq for row in rows})
    found = dict(map(tuple, connection.execute(f"SELECT seq, hash FROM journal WHERE seq IN ({which})", values)))
    return {row for row in rows if found.get(row.seq) == row.digest}
