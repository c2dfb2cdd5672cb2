"""Takes reports to every aggregator at the same time, each at its own pace, and remembers what became of them."""

from __future__ import annotations

import queue
import threading
from collections import Counter
from collections.abc import Sequence

from epsilons.collection.reports import STORED, Report
from epsilons.collection.terms import Collection, Place
from epsilons.collection.transport import HttpAggregator
from epsilons.errors import EpsilonsError, ProtocolError

#: So many batches wait for a slow aggregator before whoever makes them waits as well.
_WAITING = 8


class Courier:
    """A thread per aggregator. `send` returns at once; `finish` when everything is acknowledged or refused.

    Before anything is sent, each aggregator is asked for its key: an address that answers with another key than the
    terms name gets nothing.
    """

    def __init__(self, collection: Collection, *, patience: float = 60.0) -> None:
        self._collection, self._patience = collection, patience
        #: For each aggregator: how many reports were stored, or refused for which reason.
        self.outcomes: list[Counter[str]] = [Counter() for _ in collection.aggregators]
        self._queues: list[queue.Queue[Sequence[Report] | None]] = [
            queue.Queue(_WAITING) for _ in collection.aggregators
        ]
        self._failures: list[EpsilonsError] = []
        self._threads = [
            threading.Thread(target=self._carry, args=(number, place), daemon=True)
            for number, place in enumerate(collection.aggregators)
        ]
        for thread in self._threads:
            thread.start()

    def send(self, reports: Sequence[Sequence[Report]]) -> None:
        """One list of reports per aggregator."""
        for waiting, some in zip(self._queues, reports, strict=True):
            waiting.put(some)

    def acknowledged(self) -> int:
        """How many reports every aggregator has stored so far, at the least."""
        return min(counts[STORED] for counts in self.outcomes)

    def finish(self) -> list[Counter[str]]:
        """Wait for everything that was sent; what became of it, per aggregator."""
        for waiting in self._queues:
            waiting.put(None)
        for thread in self._threads:
            thread.join()
        if self._failures:
            raise self._failures[0]
        return self.outcomes

    def _carry(self, number: int, place: Place) -> None:
        aggregator = HttpAggregator(place.url, patience=self._patience)
        failed = False
        while (some := self._queues[number].get()) is not None:
            if failed:
                # What is still handed in is left lying, so that nobody waits for a queue that is full.
                continue
            try:
                if not self.outcomes[number]:
                    _check_key(aggregator, place)
                self.outcomes[number].update(aggregator.take(self._collection.id, some))
            except EpsilonsError as failure:
                self._failures.append(failure)
                failed = True
        aggregator.shut()


def _check_key(aggregator: HttpAggregator, place: Place) -> None:
    if aggregator.key() != place.key:
        raise ProtocolError(
            "An aggregator has another key than the terms say.",
            rule="Shares go only to whom the terms name.",
            suggest="ask whoever handed out the collection's file",
        )
