"""Many requests, one transaction: while one is being written to disk, the next ones gather.

A request is answered when the transaction that holds its reports has ended, so waiting for the disk is shared and an
acknowledgement still means that the report is durable.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from epsilons.collection.aggregator import Aggregator
from epsilons.collection.reports import Report

_MOST_AT_ONCE = 4_000

_Waiting = tuple[bytes, Sequence[Report], "asyncio.Future[list[str]]"]


class Intake:
    """The way of reports to an aggregator's store, by one thread."""

    def __init__(self, aggregator: Aggregator) -> None:
        self._aggregator = aggregator
        self._waiting: deque[_Waiting] = deque()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="intake")
        self._busy = False

    async def take(self, collection: bytes, reports: Sequence[Report]) -> list[str]:
        """What became of each report, once that is durable."""
        future: asyncio.Future[list[str]] = asyncio.get_running_loop().create_future()
        self._waiting.append((collection, reports, future))
        if not self._busy:
            self._busy = True
            # Kept in a name so that it is not collected while it runs.
            self._task = asyncio.create_task(self._work())
        return await future

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._waiting:
                some = self._next()
                offered = [report for _, reports, _ in some for report in reports]
                try:
                    outcomes = await loop.run_in_executor(self._thread, self._aggregator.take, some[0][0], offered)
                except Exception as error:
                    for _, _, future in some:
                        if not future.done():
                            future.set_exception(error)
                    continue
                start = 0
                for _, reports, future in some:
                    if not future.done():
                        future.set_result(outcomes[start : start + len(reports)])
                    start += len(reports)
        finally:
            self._busy = False

    def _next(self) -> list[_Waiting]:
        """The requests in front that belong to one collection."""
        some = [self._waiting.popleft()]
        size = len(some[0][1])
        while self._waiting and self._waiting[0][0] == some[0][0] and size < _MOST_AT_ONCE:
            some.append(self._waiting.popleft())
            size += len(some[-1][1])
        return some
