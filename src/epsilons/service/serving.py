"""Around the routes: a server on a socket, and one durable transaction for many requests."""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from epsilons.collection.aggregator import Aggregator
from epsilons.collection.reports import Report
from epsilons.errors import Argument, PlanError

_MOST_AT_ONCE = 4_000

_Waiting = tuple[bytes, Sequence[Report], "asyncio.Future[list[str]]"]


class Intake:
    """Hands reports to an aggregator by one thread: while some are written to disk, the next ones gather.

    A request is answered when the transaction that holds its reports has ended, so waiting for the disk is shared and
    an acknowledgement still means that the report is durable.
    """

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


def serve(
    app: Any,
    host: str,
    port: int,
    *,
    certificate: str | None = None,
    certificate_key: str | None = None,
    ready: Callable[[str], None],
) -> None:
    """Listen until interrupted; port 0 takes any free one. `ready` gets the address once the socket is bound."""
    try:
        import uvicorn
    except ImportError:
        raise PlanError("A server needs uvicorn.", suggest="pip install 'epsilons[service]'") from None
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        raise PlanError(f"The port cannot be used: {error.strerror}.", suggest=("another ", Argument("port"))) from None
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="off",
        ssl_certfile=certificate,
        ssl_keyfile=certificate_key,
    )
    scheme = "https" if certificate else "http"
    name = f"[{host}]" if ":" in host else host
    # Connections wait in the socket's queue from here on, until the server takes them.
    listening.listen(1024)
    ready(f"{scheme}://{name}:{listening.getsockname()[1]}")
    uvicorn.Server(config).run(sockets=[listening])
