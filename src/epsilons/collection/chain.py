"""The journal of an aggregator's store: a line for every change, and its head kept outside the store.

A store that was put back has forgotten what it answered: it would add up the same reports again, under fresh noise, and
show another challenge's words of their proofs. So a store is held to its head as a ledger is, by the same rule and the
same witnesses (`epsilons.ledger.witness`), and nothing leaves before the head is safe: no acknowledgement, no nonce, no
words, no sum. There is no way to go on with an older store. One that is lost ends its collections; a new one has a new
key, which nobody has sealed anything to.

The witness of a store is settled before it takes part in anything, so no copy of it knows of none.
"""

import hashlib
import json
from collections import Counter
from contextlib import AbstractContextManager, closing
from typing import Any

from epsilons.collection.reports import UnavailableError
from epsilons.collection.sealing import OpeningKey
from epsilons.errors import ProtocolError
from epsilons.ledger import journal, witness
from epsilons.ledger.journal import Anchor, now, write_time
from epsilons.ledger.kept import Kept
from epsilons.ledger.opening import Place, state_folder
from epsilons.ledger.witness import Outside
from epsilons.storage.base import Connection, Database
from epsilons.storage.stores import UnusableStoreError

_NAME, _SECRET = b"epsilons store of an aggregator 1", b"epsilons head of a store 1"
STORE = Kept(
    name="store",
    wrong=ProtocolError,
    error=UnusableStoreError,
    silent=UnavailableError,
    twice="A store that was restored, forked or edited would add up the same reports again, under fresh noise.",
    before="Nothing leaves before the head is safe.",
    anew="A new store in its place would take the same reports again.",
    newest="the newest copy of the store",
    lost="a new store with a new key: the collections of this one cannot be published any more",
    alone="a new store with a new key, and another witness",
    settling="a new store with a new key, which takes its witness before anything else",
)


class Chain:
    """The lines of one store, and who keeps its head: the file `anchor`, and the witness `outside`."""

    def __init__(self, database: Database, name: str, anchor: Anchor | None, outside: Outside | None) -> None:
        self._database, self._name, self._anchor, self._outside = database, name, anchor, outside

    @classmethod
    def begin(cls, connection: Connection, key: OpeningKey, place: Place, about: dict[str, Any]) -> str | None:
        """The first line of a new store, which says what it is; what is settled of its witness."""
        name = _name(key)
        settled = witness.settle(str(place), STORE) if witness.is_address(place) else None
        connection.execute("DELETE FROM journal")
        cls.add(connection, "open", {**about, "witness": settled})
        outside = witness.find_witness(settled, name, key.derive(_SECRET), STORE)
        if outside is not None:
            with closing(Outside(outside, STORE)) as keeping:
                keeping.begin(connection)
        if (anchor := _find_anchor(place, name)) is not None:
            anchor.refuse_if_known()
            anchor.adopt(connection, name)
        return settled

    @classmethod
    def open(cls, database: Database, key: OpeningKey, settled: str | None, place: Place, adopt: bool) -> "Chain":
        """The journal of a store that stands; refused if it is older than its head, or not what its lines say."""
        name = _name(key)
        address = str(place) if witness.is_address(place) else None
        outside = witness.find_outside(settled, name, key.derive(_SECRET), address, STORE)
        anchor = _find_anchor(place, name)
        made = cls(database, name, anchor, outside)
        try:
            if outside is not None:
                outside.check(database, None if anchor is None else anchor.read())
            with database.read() as connection:
                if anchor is not None:
                    if adopt or outside is not None:
                        anchor.adopt(connection, name)
                    anchor.check(connection, name)
                _hold_to_lines(connection)
            made.secure()
        except BaseException:
            made.close()
            raise
        return made

    @staticmethod
    def add(connection: Connection, kind: str, about: dict[str, Any]) -> None:
        """A line, in the transaction of the change that it tells of."""
        journal.append(connection, kind, write_time(now), about)

    def writing(self, inside: str, after: str) -> AbstractContextManager[Connection]:
        """One change; when this has ended it is durable, and its line is safe outside the store."""
        return journal.keep_head(self._database, self._name, self._anchor, lambda _: self._outside, inside, after, "1")

    def secure(self) -> None:
        """All lines that stand are safe outside the store, so that what they tell of may leave, also once more."""
        with self._database.read() as connection:
            if self._anchor is not None:
                self._anchor.check(connection, self._name)
            last = journal.head(connection)[0]
        journal.advance(self._database, self._name, self._anchor, self._outside, last)

    def close(self) -> None:
        if self._outside is not None:
            self._outside.close()


def _name(key: OpeningKey) -> str:
    """By which the head is known: two stores under one key have one head, and only one of them goes on."""
    return hashlib.sha256(_NAME + str(key.public).encode()).hexdigest()[:32]


def _find_anchor(place: Place, name: str) -> Anchor | None:
    if place is False:
        return None
    usual = state_folder() / "aggregators" / f"{name}.json"
    path = usual if place is None or witness.is_address(place) else place
    return Anchor(path, "epsilons collect aggregator --adopt", STORE)


def _hold_to_lines(connection: Connection) -> None:
    """Refuse tables that are not what the lines add up to: one of them alone may have been put back."""
    told: dict[str, dict[Any, Any]] = {"collections": {}, "closings": {}, "reports": Counter(), "batches": {}}
    for _, kind, _, body, _ in journal.follow(connection, 1, journal.START, kept=STORE):
        match kind, json.loads(body):
            case "enter", {"number": number, "id": id}:
                told["collections"][number] = (id, 1)
            case "take", {"number": number, "round": n, "reports": count}:
                told["reports"][number, n] += count
            case "close", {"number": number, "round": n, "nonce": nonce}:
                told["collections"][number] = (told["collections"][number][0], n + 1)
                told["closings"][number, n] = nonce
            case "check", {"number": number, "level": level, "asked": asked}:
                told["batches"][number, level] = (asked, None)
            case "collect", {"number": number, "level": level, "sums": sums}:
                told["batches"][number, level] = (told["batches"][number, level][0], sums)
    found: dict[str, dict[Any, Any]] = {
        "collections": {
            number: (bytes(id).hex(), n)
            for number, id, n in connection.execute("SELECT number, id, round FROM collections")
        },
        "closings": {
            (number, n): bytes(nonce).hex()
            for number, n, nonce in connection.execute("SELECT collection, round, nonce FROM closings")
        },
        "reports": {
            (number, n): count
            for number, n, count in connection.execute(
                "SELECT collection, round, count(*) FROM reports GROUP BY collection, round"
            )
        },
        "batches": {
            (number, level): (bytes(asked).hex(), None if sums is None else hash_sums(accepted, sums))
            for number, level, asked, accepted, sums in connection.execute(
                "SELECT collection, level, asked, accepted, sums FROM batches"
            )
        },
    }
    if found != told:
        raise UnusableStoreError(
            "The store's history does not add up.",
            rule="Every change is a line of its journal: this store was edited or damaged.",
            suggest=f"{STORE.newest}; if it is lost for good, {STORE.lost}",
        )


def hash_sums(accepted: bytes, sums: bytes) -> str:
    """What the journal has of a batch that was added up."""
    return hashlib.sha256(len(accepted).to_bytes(8, "big") + accepted + sums).hexdigest()
