"""One aggregator: takes sealed shares, adds them up once, and adds its own noise.

The order of a collection, each step repeatable, none reversible:

    enter     the terms become known here; reports of round one are taken
    take      a report is stored before it is acknowledged; its id is never taken a second time
    close     a round takes no more reports; a nonce is drawn, of which the challenge will be made
    present   the ids of those who took part in every round
    check     for one list of ids and one challenge per level: three words of each report's proof
    collect   for one list of ids per level: the sum of their shares plus this aggregator's noise, stored before it is
              sent; the shares are erased with it

Whoever asks, and whatever the other aggregators do, an honest aggregator shows at most one challenge's words and one
noisy sum per level, of no fewer reports than the minimum. That is all that its part of the promise rests on.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from sqlalchemy import Connection, func, insert, select, update

from epsilons.collection.field import Words, add, in_range, to_words, total
from epsilons.collection.proof import round_challenge
from epsilons.collection.refusals import MalformedError, OutOfOrderError, UnknownCollectionError
from epsilons.collection.reports import CLOSED, REPLAYED, STORED, UNKNOWN_OWNER, UNREADABLE, Report, join_ids, split_ids
from epsilons.collection.sealing import ID_BYTES, SEALED_BYTES, OpeningKey, purpose
from epsilons.collection.shares import SEED_BYTES, explicit_place, read_share
from epsilons.collection.store import FORMAT, Store, batches, closings, collections, identity, reports
from epsilons.collection.terms import LEAST_BATCH, Collection
from epsilons.errors import ProtocolError
from epsilons.guarantee import NANO
from epsilons.noise import Entropy, discrete_laplace_many, system
from epsilons.storage.base import reach

CHALLENGE_BYTES = 32
_WORDS_AT_ONCE = 1 << 21


class Aggregator:
    """`minimum` is this aggregator's own floor: collections with smaller batches are not taken."""

    def __init__(
        self,
        store: Store,
        key: OpeningKey,
        *,
        minimum: int = LEAST_BATCH,
        entropy: Callable[[], Entropy] = system,
    ) -> None:
        self._store, self._key, self._minimum, self._entropy = store, key, minimum, entropy
        self._known: dict[bytes, tuple[int, Collection, int]] = {}
        self.key = str(key.public)
        with store.write() as connection:
            found = connection.execute(select(identity.c.format, identity.c.key)).one_or_none()
            if found is None:
                connection.execute(insert(identity), {"one": 1, "format": FORMAT, "key": self.key})
            elif (found.format, found.key) != (FORMAT, self.key):
                raise ProtocolError(
                    "This store belongs to another aggregator.",
                    rule="One key, one store.",
                    suggest="the key it began with",
                )

    # The collection ---------------------------------------------------------------------------------------------------

    def enter(self, document: Any) -> bytes:
        """Take part in a collection; its id. A second time is no change."""
        collection = Collection.from_dict(document)
        if self.key not in [place.key for place in collection.aggregators]:
            raise MalformedError("This aggregator is not part of the collection.", rule="Its key is listed there.")
        if collection.minimum < self._minimum:
            raise MalformedError(
                "The minimum is too small for this aggregator.", rule=f"At least {self._minimum:,} reports a batch."
            )
        with self._store.write() as connection:
            if self._find(connection, collection.id) is None:
                last = connection.execute(select(func.max(collections.c.number))).scalar()
                row = {"number": (last or 0) + 1, "id": collection.id, "round": 1}
                connection.execute(insert(collections), row | {"terms": json.dumps(collection.to_dict())})
        return collection.id

    def status(self, collection: bytes) -> dict[str, Any]:
        """The open round (beyond the last one: closed) and how many reports it has, per level."""
        number, terms, _ = self._terms(collection)
        with self._store.read() as connection:
            current = self._round(connection, number)
            shown = min(current, terms.rounds)
            here = (reports.c.collection == number) & (reports.c.round == shown)
            query = select(reports.c.level, func.count()).where(here).group_by(reports.c.level)
            found = {int(level): int(count) for level, count in connection.execute(query)}
        return {
            "round": current,
            "rounds": terms.rounds,
            "reports": {name: found.get(level, 0) for level, (name, _) in enumerate(terms.levels)},
        }

    # Owners -----------------------------------------------------------------------------------------------------------

    def take(self, collection: bytes, offered: Sequence[Report]) -> list[str]:
        """What became of each report. When this returns, those that are `STORED` survive anything but the disk's end.

        A report that is stored already, byte for byte, is acknowledged again, so that a lost reply does no harm.
        """
        number, terms, place = self._terms(collection)
        shares = [self._open(terms, place, report) for report in offered]
        digests = [hashlib.sha256(report.sealed).digest() for report in offered]
        outcomes: list[str] = []
        rows: list[dict[str, Any]] = []
        with self._store.write() as connection:
            current = self._round(connection, number)
            taken = {
                (n, row.id): (row.digest, row.level)
                for n in range(1, terms.rounds + 1)
                for row in self._rows_of(connection, number, n, {report.id for report in offered})
            }
            for report, share, digest in zip(offered, shares, digests, strict=True):
                place_taken = report.round_number, report.id
                outcome = _judge(report, share, digest, current, taken)
                if outcome == STORED and place_taken not in taken:
                    taken[place_taken] = digest, report.level
                    row = {"collection": number, "round": report.round_number, "id": report.id}
                    rows.append(row | {"level": report.level, "digest": digest, "share": share})
                outcomes.append(outcome)
            if rows:
                connection.execute(insert(reports), rows)
            reach("taking")
        reach("taken")
        return outcomes

    def _open(self, terms: Collection, place: int, report: Report) -> bytes | None:
        """The share in a report, or None. What its length and words must be is public."""
        if not (1 <= report.round_number <= terms.rounds and report.level < len(terms.levels)):
            return None
        words = terms.shape.words
        explicit = explicit_place(report.id, len(terms.aggregators)) == place
        if len(report.sealed) != SEALED_BYTES + (8 * words if explicit else SEED_BYTES):
            return None
        share = self._key.open(report.sealed, _purpose(terms, place, report.round_number, report.level, report.id))
        if share is not None and explicit and not in_range(np.frombuffer(share, dtype="<u8").astype(np.uint64)):
            return None
        return share

    # The coordinator --------------------------------------------------------------------------------------------------

    def close(self, collection: bytes, round_number: int) -> bytes:
        """Take no more reports of a round, and open the next one if there is one; the round's nonce."""
        number, terms, _ = self._terms(collection)
        if not 1 <= round_number <= terms.rounds:
            raise UnknownCollectionError("There is no such round.", rule=f"From 1 to {terms.rounds}.")
        with self._store.write() as connection:
            current = self._round(connection, number)
            if round_number > current:
                raise OutOfOrderError("This round is not open yet.", rule="Rounds close in their order.")
            here = (closings.c.collection == number) & (closings.c.round == round_number)
            if round_number < current:
                return bytes(connection.execute(select(closings.c.nonce).where(here)).scalar_one())
            nonce = self._entropy().bytes(CHALLENGE_BYTES)
            connection.execute(insert(closings), {"collection": number, "round": round_number, "nonce": nonce})
            connection.execute(update(collections).where(collections.c.number == number).values(round=current + 1))
            reach("closing")
        reach("closed")
        return nonce

    def present(self, collection: bytes, level: int) -> bytes:
        """The ids of a level's owners who took part in every round, in order."""
        number, terms, _ = self._terms(collection, level)
        with self._store.read() as connection:
            self._check_closed(connection, number, terms)
            return join_ids(sorted(self._everywhere(connection, number, terms, level)))

    def accepted(self, collection: bytes, level: int) -> bytes | None:
        """The ids that were added up; None if that is still to come."""
        number, _, _ = self._terms(collection, level)
        with self._store.read() as connection:
            batch = self._batch(connection, number, level)
            return None if batch is None or batch.accepted is None else bytes(batch.accepted)

    def check(self, collection: bytes, level: int, challenge: bytes, ids: bytes) -> bytes:
        """Three words of each report's proof per round, in the order of the ids. One challenge per level."""
        number, terms, place = self._terms(collection, level)
        if len(challenge) != CHALLENGE_BYTES:
            raise MalformedError("This is no challenge.", rule=f"{CHALLENGE_BYTES} bytes.")
        asked = hashlib.sha256(challenge + ids).digest()
        with self._store.write() as connection:
            self._check_closed(connection, number, terms)
            batch = self._batch(connection, number, level)
            if batch is None:
                self._read_ids(connection, number, terms, level, ids)
                row = {"collection": number, "level": level, "challenge": challenge, "asked": asked}
                connection.execute(insert(batches), row)
            elif bytes(batch.asked) != asked or batch.sums is not None:
                raise OutOfOrderError("This batch was checked already.", rule="One challenge for each batch, ever.")
            reach("checking")
        reach("checked")
        wanted = set(_ids(ids))
        with self._store.read() as connection:
            shown = []
            for n in range(1, terms.rounds + 1):
                query = terms.shape.query(round_challenge(challenge, n))
                parts = [query.show(rows) for rows in self._shares(connection, number, terms, place, n, level, wanted)]
                shown.append(np.concatenate(parts))
        return np.concatenate(shown, axis=1).astype("<u8").tobytes()

    def collect(self, collection: bytes, level: int, ids: bytes) -> bytes:
        """The noisy sum of one list of reports; one list per level, and the same bytes ever after."""
        number, terms, place = self._terms(collection, level)
        with self._store.read() as connection:
            batch = self._batch(connection, number, level)
            if batch is None:
                raise OutOfOrderError("This batch was not checked.", rule="Proofs come before sums.")
            if batch.sums is not None:
                return _same(batch, ids)
            wanted = self._read_ids(connection, number, terms, level, ids)
            sums = [
                _add_up(self._shares(connection, number, terms, place, n, level, wanted), terms.shape.words)
                for n in range(1, terms.rounds + 1)
            ]
        published = np.stack(sums)[:, terms.cells.start : terms.cells.stop]
        noisy = add(published, self._noise(terms, level, published.size).reshape(published.shape))
        answer = noisy.astype("<u8").tobytes()
        with self._store.write() as connection:
            batch = self._batch(connection, number, level)
            if batch.sums is not None:
                # Somebody else was faster: what they stored is what leaves, and this noise is forgotten.
                return _same(batch, ids)
            here = (batches.c.collection == number) & (batches.c.level == level)
            connection.execute(update(batches).where(here).values(accepted=ids, sums=answer))
            here = (reports.c.collection == number) & (reports.c.level == level)
            connection.execute(update(reports).where(here).values(share=None))
            reach("collecting")
        reach("collected")
        self._store.forget()
        return answer

    def _noise(self, terms: Collection, level: int, size: int) -> Words:
        """This aggregator's own noise, enough for the level's epsilon without anybody else's.

        One answer moves one published cell by 1 ("absent"), or two cells ("replace"): THEORY, section 3.
        """
        nano = terms.levels[level][1]
        if nano is None:
            return np.zeros(size, np.uint64)
        cells_moved = 2 if terms.neighbors == "replace" else 1
        return to_words(discrete_laplace_many(self._entropy(), Fraction(nano, NANO * cells_moved), size).tolist())

    # Rows -------------------------------------------------------------------------------------------------------------

    def _terms(self, collection: bytes, level: int = 0) -> tuple[int, Collection, int]:
        """(number, terms, this aggregator's place)."""
        if collection not in self._known:
            with self._store.read() as connection:
                found = self._find(connection, collection)
            if found is None:
                raise UnknownCollectionError(
                    "This collection is not known here.", suggest="the coordinator opens it first"
                )
            terms = Collection.from_dict(json.loads(found.terms))
            self._known[collection] = found.number, terms, [p.key for p in terms.aggregators].index(self.key)
        known = self._known[collection]
        if not 0 <= level < len(known[1].levels):
            raise UnknownCollectionError("There is no such level.", rule=f"From 0 to {len(known[1].levels) - 1}.")
        return known

    def _find(self, connection: Connection, collection: bytes) -> Any:
        query = select(collections.c.number, collections.c.terms).where(collections.c.id == collection)
        return connection.execute(query).one_or_none()

    def _round(self, connection: Connection, number: int) -> int:
        return int(connection.execute(select(collections.c.round).where(collections.c.number == number)).scalar_one())

    def _batch(self, connection: Connection, number: int, level: int) -> Any:
        query = select(batches).where((batches.c.collection == number) & (batches.c.level == level))
        return connection.execute(query).one_or_none()

    def _check_closed(self, connection: Connection, number: int, terms: Collection) -> None:
        if self._round(connection, number) <= terms.rounds:
            raise OutOfOrderError("The collection is still open.", rule="Every round closes first.")

    def _rows_of(self, connection: Connection, number: int, round_number: int, ids: set[bytes]) -> Iterator[Any]:
        listed = sorted(ids)
        for start in range(0, len(listed), 500):
            here = (reports.c.collection == number) & (reports.c.round == round_number)
            query = select(reports.c.id, reports.c.digest, reports.c.level)
            yield from connection.execute(query.where(here & reports.c.id.in_(listed[start : start + 500])))

    def _everywhere(self, connection: Connection, number: int, terms: Collection, level: int) -> set[bytes]:
        found: set[bytes] | None = None
        for n in range(1, terms.rounds + 1):
            here = (reports.c.collection == number) & (reports.c.round == n) & (reports.c.level == level)
            ids = {bytes(row.id) for row in connection.execute(select(reports.c.id).where(here))}
            found = ids if found is None else found & ids
        return found or set()

    def _read_ids(self, connection: Connection, number: int, terms: Collection, level: int, ids: bytes) -> set[bytes]:
        """A batch as asked for: every id present in every round, and enough of them."""
        wanted = set(_ids(ids))
        if len(wanted) < terms.minimum:
            raise OutOfOrderError("The batch is too small.", rule=f"At least {terms.minimum:,} reports.")
        if not wanted <= self._everywhere(connection, number, terms, level):
            raise OutOfOrderError("A report is not here.", rule="Only owners present everywhere count.")
        return wanted

    def _shares(
        self, connection: Connection, number: int, terms: Collection, place: int, n: int, level: int, wanted: set[bytes]
    ) -> Iterator[Words]:
        """The wanted reports' shares of one round in the order of their ids, some rows at a time."""
        here = (reports.c.collection == number) & (reports.c.round == n) & (reports.c.level == level)
        query = select(reports.c.id, reports.c.share).where(here).order_by(reports.c.id)
        words, some = terms.shape.words, []
        for row in connection.execution_options(yield_per=1000).execute(query):
            report = bytes(row.id)
            if report not in wanted:
                continue
            if row.share is None:
                raise OutOfOrderError("This batch was collected already.", rule="Each batch is collected once.")
            share = read_share(bytes(row.share), _purpose(terms, place, n, level, report), words)
            if share is None:
                raise ProtocolError("A stored share is damaged.", rule="The store was changed from outside.")
            some.append(share)
            if len(some) * words >= _WORDS_AT_ONCE:
                yield np.stack(some)
                some = []
        if some:
            yield np.stack(some)


def _purpose(terms: Collection, place: int, round_number: int, level: int, report: bytes) -> bytes:
    return purpose(terms.id, place, round_number, level, report)


def _judge(
    report: Report, share: bytes | None, digest: bytes, current: int, taken: dict[tuple[int, bytes], tuple[bytes, int]]
) -> str:
    known = taken.get((report.round_number, report.id))
    if known is not None:
        return STORED if known[0] == digest else REPLAYED
    if share is None or len(report.id) != ID_BYTES:
        return UNREADABLE
    if report.round_number != current:
        return CLOSED
    if report.round_number > 1:
        before = taken.get((report.round_number - 1, report.id))
        if before is None or before[1] != report.level:
            return UNKNOWN_OWNER
    return STORED


def _ids(ids: bytes) -> list[bytes]:
    found = split_ids(ids)
    if found is None:
        raise MalformedError("These are no ids.", rule=f"{ID_BYTES} bytes each, distinct and in order.")
    return found


def _same(batch: Any, ids: bytes) -> bytes:
    if bytes(batch.accepted) != ids:
        raise OutOfOrderError("This batch was collected already.", rule="Each batch is collected once.")
    return bytes(batch.sums)


def _add_up(parts: Iterable[Words], words: int) -> Words:
    whole = np.zeros(words, np.uint64)
    for rows in parts:
        whole = add(whole, total(rows))
    return whole
