"""The journal: one line for every change, each chained to the one before by its hash. Lines are only ever added.

    hash_n = SHA-256(hash_{n-1}, n, kind, time, body)

Editing, dropping or swapping a line breaks the chain from there on.

The head of the chain is kept outside the database too (`Anchor`): it shows when an older copy of the ledger was put
back. A database may be ahead of its head (the process ended between the two writes); the head then catches up. One that
is older, or that has another line where the head points, was restored, forked or edited, and is refused.
"""

import contextlib
import datetime
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from epsilons.errors import Argument, EpsilonsError, LedgerError
from epsilons.ledger.kept import LEDGER, Kept
from epsilons.ledger.values import MOVED, NothingLostError, does_not_add_up, has_ended
from epsilons.storage.base import Connection, Database, reach
from epsilons.storage.files import hold_lock, read_own, replace_private

Clock = Callable[[], datetime.datetime]

START = "0" * 64
#: Sums of charges are not counted beyond this.
LARGEST_SUM = 1 << 62
#: The last line, and how the ledger ended if that is what it says.
_LAST = "SELECT seq, hash, CASE WHEN kind = 'end' THEN body END FROM journal ORDER BY seq DESC LIMIT 1"
_AFTER_A_MOVE = ("arrive", "migrate")


def now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def write_time(clock: Clock) -> str:
    return clock().astimezone(datetime.UTC).isoformat(timespec="microseconds")


def to_json(body: Mapping[str, Any]) -> str:
    """One text for one content."""
    return json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)


def chain(previous: str, seq: int, kind: str, at: str, body: str) -> str:
    """The hash of a line; the parts are written as JSON, so that no two lines read the same."""
    return hashlib.sha256(json.dumps([previous, seq, kind, at, body]).encode()).hexdigest()


def hash_salt(salt: bytes) -> str:
    """What the journal has instead of the salt: its readers cannot look people up."""
    return hashlib.sha256(salt).hexdigest()


def head(connection: Connection) -> tuple[int, str]:
    """The last line's number and hash."""
    return connection.execute("SELECT seq, hash FROM journal ORDER BY seq DESC LIMIT 1").fetchone() or (0, START)


def append(connection: Connection, kind: str, at: str, body: Mapping[str, Any]) -> tuple[int, str]:
    """Add a line. The primary key keeps two writers from adding the same one.

    Nothing follows where a ledger has moved away, whoever still has it open: nobody at the new place would know of it.
    """
    seq, previous, ended = connection.execute(_LAST).fetchone() or (0, START, None)
    if ended is not None and kind not in _AFTER_A_MOVE and json.loads(ended).get("state") == MOVED:
        raise has_ended(MOVED)
    text = to_json(body)
    digest = chain(previous, seq + 1, kind, at, text)
    line = {"seq": seq + 1, "kind": kind, "at": at, "body": text, "hash": digest}
    if connection.execute("INSERT INTO journal VALUES (:seq, :kind, :at, :body, :hash)", line).rowcount != 1:
        raise does_not_add_up(f"line {seq + 1} was not taken")
    return seq + 1, digest


def follow(
    connection: Connection,
    first: int,
    previous: str | None = None,
    head: "Head | None" = None,
    kept: Kept = LEDGER,
) -> Iterator[tuple[int, str, str, str, str]]:
    """The lines from a number on, link by link: (number, kind, time, body, hash), or a refusal where the chain breaks.

    `previous` is the hash of the line before them; where it is not known, the one that stands there will do: if it was
    edited, the next line does not follow from it. A head that comes later must be one of the lines.
    """
    if previous is None:
        before = connection.execute("SELECT hash FROM journal WHERE seq = :seq", {"seq": first - 1}).fetchone()
        previous = START if before is None else before["hash"]
    lines = "SELECT seq, kind, at, body, hash FROM journal WHERE seq >= :first ORDER BY seq"
    with contextlib.closing(connection.stream(lines, {"first": first})) as later:
        for number, (seq, kind, at, body, held) in enumerate(later, first):
            if seq != number or chain(previous, seq, kind, at, body) != held:
                raise _diverged(kept)
            yield seq, kind, at, body, held
            previous = held
            if head is not None and seq == head.seq and held == head.digest:
                head = None
    if head is not None and head.seq >= first:
        raise _diverged(kept)


def add_charges(most: int, kind: str, body: str) -> int:
    """What anybody was charged at most, with one more line."""
    if kind != "reserve":
        return most
    return min(most + max((nano for _, nano, *_ in json.loads(body)["charges"]), default=0), LARGEST_SUM)


def check_line(connection: Connection, head: "Head") -> None:
    """Refuse a journal that has not the line of a head."""
    line = connection.execute("SELECT hash FROM journal WHERE seq = :seq", {"seq": head.seq}).fetchone()
    if (START if head.seq == 0 else None if line is None else line["hash"]) != head.digest:
        raise _diverged(LEDGER)


class Head(NamedTuple):
    """The newest line that was seen: of which ledger, its number and its hash.

    `most` is what anybody was charged at most by the lines that whoever keeps the head has seen, those that were lost
    since included: the difference of two heads bounds what any person was charged between them. Up to the line
    `verified` everything was held to the journal; what it adds up to there is kept in a file beside the head, whose
    hash is `replay`. `marks` are hashes of earlier lines, by their numbers, as they were verified.
    """

    ledger: str
    seq: int
    digest: str
    most: int = 0
    verified: int = 0
    replay: str = ""
    marks: Mapping[int, str] = MappingProxyType({})


class Anchor:
    """A small file with the newest line that this machine has seen.

    `adopt` is the command that takes the ledger as it is, for hints.
    """

    def __init__(
        self, path: str | os.PathLike[str], adopt: str = "epsilons ledger adopt LEDGER", kept: Kept = LEDGER
    ) -> None:
        self._path, self._adopt, self._kept = Path(path).absolute(), adopt, kept

    def check(self, connection: Connection, ledger: str, also: str = "NULL") -> Any:
        """Raise unless the head is an ancestor of the chain; gives what a query asks `also`, in the same statement."""
        known = self.get()
        line, found = self._find(connection, known, also)
        if known.ledger != ledger or line != known.digest:
            raise self._lost()
        return found

    def get(self) -> Head:
        """The newest line that was seen; raises where none is known."""
        known = self.read()
        if known is None:
            raise self._kept.error(
                f"This {self._kept.name}'s head is not where it is kept.",
                rule=f"Only its head shows whether an older copy of the {self._kept.name} was put back.",
                suggest=f"the anchor of the machine it comes from, or `{self._adopt}` to take it as it is",
            )
        return known

    def find_lost(self, connection: Connection, ledger: str) -> Head | None:
        """The head that the ledger has lost, if any; refuses where nothing was lost."""
        known = self.read()
        if known is not None and known.ledger != ledger:
            raise LedgerError("The head that is kept here is another ledger's.", suggest="the ledger's own anchor")
        if known is not None and self._is_ancestor(connection, ledger, known):
            raise NothingLostError
        return known

    def get_lost(self, connection: Connection, ledger: str) -> Head | None:
        """The head, if it is not in the chain."""
        known = self.read()
        return known if known is not None and not self._is_ancestor(connection, ledger, known) else None

    def _is_ancestor(self, connection: Connection, ledger: str, known: Head) -> bool:
        return known.ledger == ledger and self._find(connection, known)[0] == known.digest

    @staticmethod
    def _find(connection: Connection, known: Head, also: str = "NULL") -> tuple[str | None, Any]:
        """The hash of this line as the journal has it, and what else is asked."""
        line = connection.execute(f"SELECT hash, {also} FROM journal WHERE seq = :seq", {"seq": known.seq}).fetchone()
        return (None, None) if line is None else (line[0], line[1])

    def _follow(self, connection: Connection, known: Head) -> Head:
        """The last line, reached link by link from a line that is known."""
        for seq, kind, _, body, digest in follow(connection, known.seq + 1, known.digest, kept=self._kept):
            known = known._replace(seq=seq, digest=digest, most=add_charges(known.most, kind, body))
        return known

    def advance(self, connection: Connection, ledger: str, least: int | None = None) -> None:
        """Catch up with the chain, link by link, durably; never backwards, and never to a line that does not follow.

        Returns early once the head has reached `least`: when several processes wait for their turn, the first one
        writes the head for all of them. A chain that ends before it has lost a line that was just committed.
        """
        with self._lock():
            known = self.read()
            if known is not None and least is not None and known.seq >= least:
                return
            newest = self._follow(connection, known or Head(ledger, 0, START))
            if least is not None and newest.seq < least:
                raise self._lost()
            if known is None or known.seq < newest.seq:
                self._write(newest)

    def refuse_if_known(self) -> None:
        """A new ledger must not take the place of one whose head is kept here: budgets would start anew."""
        if self.read() is not None:
            name = self._kept.name
            hint = f"the newest copy of that {name}, or another anchor for a new one"
            raise self._kept.wrong(f"The {name} whose head is kept here is gone.", rule=self._kept.anew, suggest=hint)

    def adopt(self, connection: Connection, ledger: str) -> None:
        """Take the chain as it is where no head is known. A head that is known is never overruled."""
        with self._lock():
            if self.read() is None:
                self._write(self._follow(connection, Head(ledger, 0, START)))

    def overrule(self, connection: Connection, ledger: str, lost: Head | None) -> None:
        """Take the chain as it is after the loss of this head was written down in it; another head stays."""
        with self._lock():
            known = self.read()
            if known == lost:
                self._write(Head(ledger, *head(connection), 0 if known is None else known.most))

    def note_verified(self, line: int, digest: str, text: str) -> None:
        """What the journal adds up to at this line, which is verified and has this hash.

        Whoever only opens the ledger goes on from there. A line that the head has not reached is not taken.
        """
        with self._lock():
            known = self.read()
            if known is not None and known.verified <= line <= known.seq:
                content = f"{known.ledger} {digest}\n{text}"
                replace_private(self._beside, content)
                self._write(known._replace(verified=line, replay=hashlib.sha256(content.encode()).hexdigest()))

    def read_verified(self, connection: Connection) -> str | None:
        """The text that was noted, if it is the one that the head knows, and of a line of this very chain."""
        known = self.read()
        if known is None or not known.verified:
            return None
        line = connection.execute("SELECT hash FROM journal WHERE seq = :seq", {"seq": known.verified}).fetchone()
        try:
            content = read_own(self._beside).decode()
        except (OSError, ValueError):
            return None
        first, _, text = content.partition("\n")
        same = line is not None and first == f"{known.ledger} {line['hash']}"
        return text if same and hashlib.sha256(content.encode()).hexdigest() == known.replay else None

    @property
    def _beside(self) -> Path:
        return self._path.with_name(self._path.name + ".verified")

    def read(self) -> Head | None:
        try:
            content = json.loads(read_own(self._path))
            seq, verified = content["seq"], content.get("verified", 0)
            if not (type(seq) is type(verified) is int and 0 <= verified <= seq < 1 << 63):
                raise ValueError("not the number of a line")
            most, told = int(content.get("most", 0)), str(content.get("replay", ""))
            return Head(str(content["ledger"]), seq, str(content["hash"]), most, verified, told)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise self._kept.error(
                f"This {self._kept.name}'s head, {self._path}, cannot be read.",
                rule=f"Only its head shows whether an older copy of the {self._kept.name} was put back.",
                suggest=f"put the file back, or move it away and run `{self._adopt}`",
            ) from None

    def _lost(self) -> EpsilonsError:
        undone = "counts everyone's grant as spent and undoes what people said since, withdrawals too"
        theirs = f"`{self._adopt} --accept-loss --yes`, which {undone}"
        return _diverged(self._kept, f"; if it is lost for good, {theirs if self._kept is LEDGER else self._kept.lost}")

    def _write(self, head: Head) -> None:
        told = {"ledger": head.ledger, "seq": head.seq, "hash": head.digest, "most": head.most}
        text = json.dumps({**told, "verified": head.verified, "replay": head.replay})
        replace_private(self._path, text, before=lambda: reach("anchoring"))

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        # Only POSIX systems have it; elsewhere a ledger works with witness=False.
        try:
            with hold_lock(self._path):
                yield
        except OSError:
            raise self._kept.error(
                f"This {self._kept.name}'s head cannot be written.",
                rule=self._kept.before,
                suggest=("a writable place for ", Argument("witness")),
            ) from None


class Keeper(Protocol):
    """Who keeps the head outside this machine (`witness.Outside`)."""

    def advance(self, database: Database, least: int) -> None: ...


@contextlib.contextmanager
def keep_head(
    database: Database,
    ledger: str,
    anchor: Anchor | None,
    find_outside: Callable[[Any], Keeper | None],
    inside: str,
    after: str,
    named: str | None = None,
) -> Iterator[Connection]:
    """One change: committed, then the head synced, then and only then known to the caller.

    Who keeps the head outside this machine is looked up before the change: nobody if the query `named` finds nothing.

    A test may end the process (see `reach`) `inside` the transaction, or just `after` it is durable.
    """
    with database.write() as connection:
        found = None
        if anchor is not None:
            found = anchor.check(connection, ledger, named or "NULL")
        elif named is not None:
            found = connection.execute(f"SELECT {named}").fetchone()[0]
        outside = None if found is None else find_outside(found)
        yield connection
        kept = anchor is not None or outside is not None
        mine = head(connection)[0] if kept else 0
        reach(inside)
    if kept:
        advance(database, ledger, anchor, outside, mine)
    reach(after)


def advance(database: Database, ledger: str, anchor: Anchor | None, outside: Keeper | None, least: int) -> None:
    """The head has reached this line wherever it is kept, when this returns."""
    if outside is not None:
        outside.advance(database, least)
    if anchor is not None:
        with database.read() as connection:
            anchor.advance(connection, ledger, least)


def _diverged(kept: Kept, lost: str = "") -> EpsilonsError:
    return kept.error(
        f"This {kept.name} is older than its last recorded state, or has diverged from it.",
        rule=kept.twice,
        suggest=f"{kept.newest}{lost}",
    )
