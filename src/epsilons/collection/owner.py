"""The owner's side: an answer becomes one sealed share per aggregator, before anything leaves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilons.collection.reports import SEED_BYTES, Report, explicit_place, split_vector, uniform_words
from epsilons.collection.sealing import ID_BYTES, SealingKey, purpose
from epsilons.collection.terms import Collection
from epsilons.errors import DataError
from epsilons.local.base import read_truths
from epsilons.noise import Entropy, system

#: [round][aggregator] -> the reports of some owners, in their order.
Reports = list[list[list[Report]]]
_WORDS_AT_ONCE = 1 << 20


class OwnerClient:
    """Makes reports for one collection, for one owner or for many.

    A report must be made once and kept until every aggregator has acknowledged it: sending the same bytes again is
    harmless, while a second report of the same answer counts, and costs the owner's epsilon, a second time.
    """

    def __init__(self, collection: Collection, *, entropy: Entropy | None = None) -> None:
        self.collection = collection
        self._entropy = system() if entropy is None else entropy
        self._keys = [SealingKey.from_text(place.key) for place in collection.aggregators]

    def report(self, answer: str, level: str | None = None) -> Reports:
        """One owner's reports: for each round, one per aggregator."""
        truth = self.collection.survey.truth(answer)
        if truth is None:
            raise DataError("This answer is none of the survey's.", rule="A label or a number.", suggest="an option")
        return self.reports([truth], self.collection.level(level))

    def reports(self, truths: Any, levels: Any = 0) -> Reports:
        """Many owners' reports: truths are 0 (none) or 1..options, levels the numbers of their levels."""
        answers, _ = read_truths(truths, len(self.collection.survey.options))
        chosen = np.broadcast_to(np.asarray(levels, dtype=np.int64), answers.shape)
        if len(chosen) and not 0 <= chosen.min() <= chosen.max() < len(self.collection.levels):
            raise DataError("A level is unknown.", rule=f"From 0 to {len(self.collection.levels) - 1}.", suggest="0")
        protocol = self.collection.survey.protocol
        rounds = (answers,) if protocol is None else protocol.respond(answers, entropy=self._entropy)
        made: Reports = [[[] for _ in self._keys] for _ in rounds]
        raw = self._entropy.bytes(ID_BYTES * len(answers))
        ids = [raw[start : start + ID_BYTES] for start in range(0, len(raw), ID_BYTES)]
        for number, outputs in enumerate(rounds, 1):
            for owner, vector in self._vectors(outputs):
                for place, report in enumerate(self._seal(vector, ids[owner], number, int(chosen[owner]))):
                    made[number - 1][place].append(report)
        return made

    def _vectors(self, outputs: NDArray[Any]) -> Iterator[tuple[int, NDArray[np.uint64]]]:
        """Each owner's answer with its proof, worked out for many at a time."""
        shape = self.collection.shape
        chunk = max(1, _WORDS_AT_ONCE // shape.words)
        for start in range(0, len(outputs), chunk):
            some = outputs[start : start + chunk].astype(np.int64)
            yield from enumerate(shape.prove(some, uniform_words(self._entropy, len(some))), start)

    def _seal(self, vector: NDArray[np.uint64], report: bytes, round_number: int, level: int) -> list[Report]:
        places = range(len(self._keys))
        purposes = [purpose(self.collection.id, place, round_number, level, report) for place in places]
        raw = self._entropy.bytes(SEED_BYTES * (len(purposes) - 1))
        seeds = [raw[start : start + SEED_BYTES] for start in range(0, len(raw), SEED_BYTES)]
        pieces = split_vector(vector, purposes, explicit_place(report, len(purposes)), seeds)
        return [
            Report(report, round_number, level, key.seal(piece, what_for))
            for key, piece, what_for in zip(self._keys, pieces, purposes, strict=True)
        ]
