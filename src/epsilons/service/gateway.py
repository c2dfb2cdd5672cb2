"""The gateway: data and ledger belong to one server, and who asks holds neither. An ASGI application.

A request finds its route (`routes`), shows a key (`keys`), and comes in if the route names its role: a route without
roles is open to nobody. Then its body is read, up to the size that its role may send, and the route handles it.

What is logged of a request is its route, role, status, time and size: no name, no id, nothing that was asked.
"""

import asyncio
import json
import logging
import re
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote

from epsilons.errors import EpsilonsError
from epsilons.service.holdings import LANES, Holding
from epsilons.service.keys import ANALYST, PERSON, STEWARD, Holder, Keys
from epsilons.service.replies import Replies
from epsilons.service.serving import Receive, Reply, Scope, Send, live, problem, read_body, refuse
from epsilons.storage.base import Database

_T = TypeVar("_T")
_log = logging.getLogger("epsilons.gateway")


@dataclass(frozen=True)
class Limits:
    """What a role may take up: bytes of a body, and requests of one name at a time."""

    body: int
    at_once: int


#: Whoever has no key is held to the last one.
LIMITS = {STEWARD: Limits(1 << 20, 16), ANALYST: Limits(1 << 18, 8), PERSON: Limits(1 << 12, 2), "": Limits(0, 64)}
#: Threads for what is short. Questions wait for their turn without one, and are worked on in others.
_THREADS = 8
_SAFE = (("cache-control", "no-store"), ("x-content-type-options", "nosniff"))


@dataclass(frozen=True)
class Visit:
    """A request that was let in."""

    holder: Holder
    parts: tuple[str, ...]
    body: bytes
    headers: Mapping[bytes, bytes]

    def document(self) -> Any:
        """The body as strict JSON; None if it is none."""
        try:
            return json.loads(self.body, parse_constant=_refuse_constant)
        except (ValueError, RecursionError):
            return None


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)


Handle = Callable[["GatewayApp", Visit], Awaitable[Reply]]


@dataclass(frozen=True)
class Route:
    """A way in: `path` has a group for each part that varies; `roles` may take it, or everyone if it is `open`."""

    name: str
    method: str
    path: str
    handle: Handle
    about: str
    roles: frozenset[str] = frozenset()
    open: bool = False


class GatewayApp:
    """ASGI over these datasets and this store."""

    def __init__(
        self, holdings: Mapping[str, Holding], store: Database, routes: tuple[Route, ...], place: Path
    ) -> None:
        """`place` is a folder that all workers share."""
        self.holdings, self.routes, self.keys, self.replies = holdings, routes, Keys(store), Replies(store, place)
        #: {(route, role, status): how many}, and seconds in all by route.
        self.counts: Counter[tuple[str, str, int]] = Counter()
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._busy: Counter[str] = Counter()
        #: Questions that are worked on, and whose they are.
        self._going_on: dict[asyncio.Task[Any], str] = {}
        for one in holdings.values():
            one.turns.begun = self._note_slot
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="gateway")
        self._lanes = ThreadPoolExecutor(max(LANES * len(holdings), 1), thread_name_prefix="question")

    async def work(self, call: Callable[..., _T], *arguments: Any) -> _T:
        """Do something short in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, call, *arguments)

    async def ask(self, call: Callable[..., _T], *arguments: Any) -> _T:
        """Do something that may read rows in a thread of its lane: what is short does not wait for it."""
        return await asyncio.get_running_loop().run_in_executor(self._lanes, call, *arguments)

    def go_on(self, holder: Holder, work: Coroutine[Any, Any, _T]) -> "asyncio.Task[_T]":
        """Work on somebody's question to its end, whether or not they wait for it."""
        task = asyncio.create_task(work)
        self._going_on[task] = holder.name
        task.add_done_callback(self._going_on.pop)
        return task

    def is_busy(self, holder: Holder) -> Reply | None:
        """A refusal where as many questions of a name are worked on as its role may have at a time."""
        most = LIMITS[holder.role].at_once
        if sum(name == holder.name for name in self._going_on.values()) < most:
            return None
        told = f"At most {most} questions at a time; nothing was charged."
        return problem(429, "Too many questions at once.", told, headers=(("retry-after", "1"),))

    async def _note_slot(self, several: list[Any], slot: float) -> None:
        await self.work(self.replies.note_slot, several, slot)

    def fail(self, route: str) -> Reply:
        """What is said of a fault of our own: its text may hold something private."""
        _log.error("%s failed", route)
        return problem(
            500, "The gateway failed.", "What was charged stands; the same request again goes on from there."
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await live(receive, send)
        elif scope["type"] == "http":
            began = time.monotonic()
            route, role, reply = await self._reply(scope, receive)
            await replace(reply, headers=(*reply.headers, *_SAFE)).send(send)
            took = time.monotonic() - began
            self.counts[route, role, reply.status] += 1
            self.seconds[route] += took
            _log.info("%s %s %d %.0f ms %d bytes", route, role or "-", reply.status, took * 1000, len(reply.body))

    async def _reply(self, scope: Scope, receive: Receive) -> tuple[str, str, Reply]:
        """(name of the route, role, reply)."""
        path, method = scope["raw_path"].decode("ascii", "replace"), scope["method"]
        fitting = [(route, found) for route in self.routes if (found := re.fullmatch(route.path, path))]
        if not fitting:
            return "none", "", problem(404, "There is nothing here.")
        chosen = [(route, found) for route, found in fitting if route.method == method]
        if not chosen:
            allowed = ", ".join(route.method for route, _ in fitting)
            return "none", "", problem(405, "Method not allowed.", f"Allowed: {allowed}.")
        route, found = chosen[0]
        headers, role = {name.lower(): value for name, value in scope["headers"]}, ""
        try:
            holder = await self._find_holder(headers)
            role = "" if holder is None else holder.role
            if not route.open and holder is None:
                return route.name, role, problem(401, "This needs a key.", "Authorization: Bearer and a key.")
            if not route.open and role not in route.roles:
                return route.name, role, problem(403, "This key is for other things.", f"It is a key of role {role}.")
            return route.name, role, await self._let_in(route, found, holder or Holder(0, "", ""), headers, receive)
        except EpsilonsError as error:
            return route.name, role, refuse(error)
        except Exception:
            return route.name, role, self.fail(route.name)

    async def _find_holder(self, headers: Mapping[bytes, bytes]) -> Holder | None:
        scheme, _, key = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        return await self.work(self.keys.find, key.strip()) if scheme.lower() == "bearer" else None

    async def _let_in(
        self, route: Route, found: "re.Match[str]", holder: Holder, headers: dict[bytes, bytes], receive: Receive
    ) -> Reply:
        limits = LIMITS[holder.role]
        who = f"{holder.role} {holder.name}"
        if self._busy[who] >= limits.at_once:
            told = f"At most {limits.at_once} at a time."
            return problem(429, "Too many requests at once.", told, headers=(("retry-after", "1"),))
        self._busy[who] += 1
        try:
            body = await read_body(receive, headers, limits.body if route.method != "GET" else 0)
            if isinstance(body, Reply):
                return body
            parts = tuple(unquote(part) for part in found.groups())
            return await route.handle(self, Visit(holder, parts, body, headers))
        finally:
            self._busy[who] -= 1
            if not self._busy[who]:
                del self._busy[who]
