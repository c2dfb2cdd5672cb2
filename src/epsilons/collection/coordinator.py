"""The coordinator: drives a collection from its terms to the publication. It holds no secret and keeps no state.

It is trusted for correctness, not for privacy: it may leave reports out or publish other numbers, but an honest
aggregator gives it nothing beyond one noisy sum per level. Every step may be repeated, so a coordinator that was
interrupted starts again at the beginning and ends at the same publication.
"""

import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np

from epsilons.collection.aggregator import Aggregator
from epsilons.collection.proof import SHOWN, Words, add, in_range, round_challenge, to_integers
from epsilons.collection.publication import LevelSums, Publication
from epsilons.collection.reports import read_ids
from epsilons.collection.terms import Collection
from epsilons.collection.transport import HttpAggregator
from epsilons.errors import ProtocolError

_Answer = TypeVar("_Answer")
#: An aggregator, here or behind HTTP: both have the steps of a collection under the same names.
Remote = Aggregator | HttpAggregator


class Coordinator:
    """Drives one collection; `aggregators` stand in the order of the terms. `told` gets a line on each step."""

    def __init__(
        self, collection: Collection, aggregators: Sequence[Remote], *, told: Callable[[str], None] = lambda _: None
    ) -> None:
        if len(aggregators) != len(collection.aggregators):
            raise ProtocolError("Aggregators and terms do not match.", rule="One for each that the terms name.")
        self.collection, self._aggregators, self._told = collection, list(aggregators), told

    def enter(self) -> None:
        """Make the terms known to every aggregator, which opens round one."""
        document = self.collection.to_dict()
        for known in self._all(lambda aggregator: aggregator.enter(document)):
            if known != self.collection.id:
                raise ProtocolError("An aggregator understood other terms.", rule="One id everywhere.")

    def status(self) -> list[dict[str, Any]]:
        states = self._all(lambda aggregator: aggregator.status(self.collection.id))
        if any(set(state["reports"]) != {name for name, _ in self.collection.levels} for state in states):
            raise ProtocolError("An aggregator counts by other levels.", rule="Those of the terms.")
        return states

    def close(self, round_number: int) -> list[bytes]:
        """End a round everywhere; what each aggregator drew for its challenge."""
        return self._all(lambda aggregator: aggregator.close(self.collection.id, round_number))

    def publish(self) -> Publication:
        """Close every round, agree on the reports, check their proofs, add up, and put the sums together."""
        nonces = [nonce for number in range(1, self.collection.rounds + 1) for nonce in self.close(number)]
        batches = tuple(self._batch(level, nonces) for level in range(len(self.collection.levels)))
        publication = Publication(self.collection, batches)
        publication.check()
        return publication

    def _batch(self, level: int, nonces: Sequence[bytes]) -> LevelSums:
        name, nano = self.collection.levels[level]
        collection = self.collection.id
        self._told(f"level {name}: agreeing on reports")
        lists = [read_ids(body) for body in self._all(lambda a: a.present(collection, level))]
        common = set(lists[0]).intersection(*lists[1:])
        partial = len(set().union(*lists)) - len(common)
        # After an interruption some aggregator may have its sum already: the others add up the same reports.
        known = next((body for body in self._all(lambda a: a.accepted(collection, level)) if body is not None), None)
        if known is None:
            if len(common) < self.collection.minimum:
                return LevelSums(name, nano, 0, 0, partial, ())
            self._told(f"level {name}: checking {len(common):,} proofs")
            good = self._check(level, nonces, sorted(common))
            if len(good) < self.collection.minimum:
                return LevelSums(name, nano, 0, len(common) - len(good), partial, ())
            known = b"".join(good)
        ids = known
        self._told(f"level {name}: adding up")
        sums = self._all(lambda a: a.collect(collection, level, ids))
        count = len(read_ids(ids))
        rows = self._add(sums, self.collection.rounds, len(self.collection.cells))
        numbers = tuple(tuple(to_integers(row)) for row in rows)
        return LevelSums(name, nano, count, len(common) - count, partial, numbers)

    def _check(self, level: int, nonces: Sequence[bytes], ids: list[bytes]) -> list[bytes]:
        """The reports whose proofs hold in every round."""
        collection = self.collection.id
        # Drawn by all aggregators when the rounds closed, so that no owner could know it.
        challenge = hashlib.sha256(b"".join((b"epsilons challenge 1", collection, bytes((level,)), *nonces))).digest()
        shown = self._all(lambda a: a.check(collection, level, challenge, b"".join(ids)))
        words = self._add(shown, len(ids), SHOWN * self.collection.rounds)
        good = np.ones(len(ids), bool)
        for number in range(1, self.collection.rounds + 1):
            query = self.collection.shape.query(round_challenge(challenge, number))
            good &= query.accept(words[:, SHOWN * (number - 1) : SHOWN * number])
        return [report for report, holds in zip(ids, good.tolist(), strict=True) if holds]

    def _add(self, bodies: Sequence[bytes], rows: int, columns: int) -> Words:
        """What the aggregators sent, added up in the field."""
        whole = np.zeros((rows, columns), np.uint64)
        for body in bodies:
            if len(body) != 8 * rows * columns:
                raise ProtocolError("An aggregator's reply has the wrong length.")
            words = np.frombuffer(body, dtype="<u8").astype(np.uint64).reshape(rows, columns)
            if not in_range(words):
                raise ProtocolError("An aggregator's reply is out of the field's range.")
            whole = add(whole, words)
        return whole

    def _all(self, ask: Callable[[Remote], _Answer]) -> list[_Answer]:
        with ThreadPoolExecutor(len(self._aggregators)) as pool:
            return list(pool.map(ask, self._aggregators))
