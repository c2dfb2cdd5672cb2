"""The gateway: data and ledger belong to one server, and who asks holds neither. An ASGI application.

A request finds its route (`routes`), shows a key (`keys`) or a cookie (`sessions`), and comes in if the route names its
role: a route without roles is open to nobody. Then its body is read, up to the size that its role may send (`limits`),
and the route handles it. What changes something is taken from no other site's pages.

What is logged of a request is its route, role, status, time and size: no name, no id, nothing that was asked.
"""

import asyncio
import hmac
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
from urllib.parse import parse_qsl, unquote

from epsilons.errors import EpsilonsError, ProtocolError
from epsilons.service.holdings import LANES, Holding
from epsilons.service.in_flight import address_of
from epsilons.service.keys import PERSON, STEWARD, Holder, Keys
from epsilons.service.limits import BODY_SECONDS, LIMITS, Rates
from epsilons.service.replies import Replies
from epsilons.service.serving import Receive, Reply, Scope, Send, live, problem, read_body, refuse
from epsilons.service.sessions import CSRF_HEADER, ENTRANCE, Sessions, is_from_elsewhere, is_secure, read_cookie
from epsilons.storage.base import Database

_T = TypeVar("_T")
_log = logging.getLogger("epsilons.gateway")


#: Threads for what is short. Questions wait for their turn without one, and are worked on in others.
_THREADS = 8
#: So deep are lists and objects of a body at most; those that are meant have five or six.
_DEEPEST = 32
#: So many fields a form of a page has at most.
_MOST_FIELDS = 100
#: With every reply. A page says itself what it may load.
_SAFE = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
_HTTPS_ONLY = ("strict-transport-security", "max-age=31536000")


@dataclass(frozen=True)
class Visit:
    """A request that was let in."""

    holder: Holder
    parts: tuple[str, ...]
    body: bytes
    headers: Mapping[bytes, bytes]
    scheme: str = "http"
    query: bytes = b""
    #: Where others find the server, where its file says so.
    address: str | None = None

    @property
    def fields(self) -> dict[str, str]:
        """What a form of a page sent: in the address, or as the body. Of a name that comes twice, the last one."""
        return _read_fields(self.body if self.body else self.query)

    @property
    def secure(self) -> bool:
        """Whether its cookie is sent over HTTPS alone."""
        return is_secure(self.scheme, self.headers)

    @property
    def origin(self) -> str:
        """Where others find the server: where its file says, or where this was sent to."""
        sent = f"{'https' if self.secure else 'http'}://{self.headers.get(b'host', b'').decode('latin-1')}"
        return self.address or sent

    def read(self, *required: str, optional: Mapping[str, Any] | None = None) -> list[Any]:
        """The parts of a body that is an object of these names: those required, then the others, or what they are."""
        document, left_out = self.document(), dict(optional or {})
        if not isinstance(document, dict) or not {*required} <= {*document} <= {*required, *left_out}:
            names = ", ".join([*required, *(f"perhaps {name}" for name in left_out)])
            raise ProtocolError("The body is another one than this way takes.", rule=f"A JSON object: {names}.")
        return [*(document[name] for name in required), *({**left_out, **document}[name] for name in left_out)]

    def document(self) -> Any:
        """The body as strict JSON; None if it is none, or one that is nested as no question is."""
        try:
            read = json.loads(self.body, parse_constant=_refuse_constant)
        except (ValueError, RecursionError):
            return None
        return None if _is_deep(read) else read


def _is_deep(read: Any) -> bool:
    """Whether something is nested deeper than may be: what works on it step by step would run out of steps."""
    inner = [read]
    for _ in range(_DEEPEST):
        parts = (one.values() if isinstance(one, dict) else one for one in inner if isinstance(one, (dict, list)))
        inner = [part for several in parts for part in several]
    return bool(inner)


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)


def _read_fields(sent: bytes) -> dict[str, str]:
    try:
        return dict(parse_qsl(sent.decode("latin-1"), keep_blank_values=True, max_num_fields=_MOST_FIELDS))
    except ValueError:
        raise ProtocolError("This form has too many fields.", rule=f"At most {_MOST_FIELDS}.") from None


Handle = Callable[["GatewayApp", Visit], Awaitable[Reply]]


@dataclass(frozen=True)
class Route:
    """A way in: `path` names each part that varies; `roles` may take it, or everyone if it is `open`.

    `body` is what it takes, by its name in the OpenAPI document, `query` the names that its address may have. A `page`
    is for people with a browser: it is shown, its forms repeat the word of a cookie among their fields, and who has
    neither key nor cookie is shown the way in.
    """

    name: str
    method: str
    path: str
    handle: Handle
    about: str
    roles: frozenset[str] = frozenset()
    open: bool = False
    body: str | None = None
    page: bool = False
    query: tuple[str, ...] = ()


#: A route, and the parts of the path that vary.
Found = tuple["Route", tuple[str, ...]]


class GatewayApp:
    """ASGI over these datasets and this store."""

    def __init__(
        self,
        holdings: Mapping[str, Holding],
        store: Database,
        routes: tuple[Route, ...],
        place: Path,
        address: str | None = None,
    ) -> None:
        """`place` is a folder that all workers share, `address` where others find the server."""
        self.holdings, self.routes, self.keys, self.replies = holdings, routes, Keys(store), Replies(store, place)
        self.sessions, self.rates, self.store, self.address = Sessions(store), Rates(), store, address
        #: How a refusal looks to somebody with a browser.
        self.show_refusal: Callable[[Reply, Holder | None], Reply] = lambda refused, _: refused
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

    @property
    def busy(self) -> int:
        """How many requests are worked on."""
        return self._busy.total()

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
            await _make_safe(reply, scope.get("scheme", "http")).send(send)
            took = time.monotonic() - began
            self.counts[route, role, reply.status] += 1
            self.seconds[route] += took
            _log.info("%s %s %d %.0f ms %d bytes", route, role or "-", reply.status, took * 1000, len(reply.body))

    async def _reply(self, scope: Scope, receive: Receive) -> tuple[str, str, Reply]:
        """(name of the route, role, reply)."""
        found = self._find_route(scope["raw_path"].decode("ascii", "replace"), scope["method"])
        name, role, holder = "none" if isinstance(found, Reply) else found[0].name, "", None
        headers, scheme = {name.lower(): value for name, value in scope["headers"]}, scope.get("scheme", "http")
        try:
            holder = await self._find_holder(headers, scheme)
            role = "" if holder is None else holder.role
            who = f"{role} {holder.name}" if holder else f" {address_of(scope)}"
            if wait := self.rates.take(who, LIMITS[role]):
                told = f"At most {LIMITS[role].rate:g} a second."
                refused = problem(429, "Too many requests.", told, headers=(("retry-after", str(wait)),))
                return name, role, self._show(found, refused, holder)
            if isinstance(found, Reply):
                return name, role, found
            route, parts = found
            if (away := _turn_away(route, holder, headers)) is not None:
                return name, role, self._show(found, away, holder)
            query = scope.get("query_string", b"")
            visit = Visit(holder or Holder(0, "", ""), parts, b"", headers, scheme, query, self.address)
            reply = await self._let_in(route, visit, who, receive)
        except EpsilonsError as error:
            reply = self._refuse(name, error, role)
        except Exception:
            reply = self.fail(name)
        return name, role, self._show(found, reply, holder)

    def _refuse(self, route: str, error: EpsilonsError, role: str) -> Reply:
        """A refusal; one that cannot be told is a fault as any other: else the server would log all of it."""
        try:
            return refuse(error, whole=role == STEWARD)
        except Exception:
            return self.fail(route)

    def _show(self, found: Found | Reply, reply: Reply, holder: Holder | None) -> Reply:
        """As a page, to those who asked for one."""
        page = not isinstance(found, Reply) and found[0].page
        return self.show_refusal(reply, holder) if page and reply.status >= 400 else reply

    def _find_route(self, path: str, method: str) -> Found | Reply:
        """The route, and the parts of the path that vary."""
        fits = ((route, re.fullmatch(route.path, path)) for route in reversed(self.routes))
        fitting = {route.method: (route, found) for route, found in fits if found}
        if not fitting:
            return problem(404, "There is nothing here.")
        if method not in fitting:
            allowed = ", ".join(fitting)
            return problem(405, "Method not allowed.", f"Allowed: {allowed}.", headers=(("allow", allowed),))
        route, found = fitting[method]
        parts = tuple(unquote(part) for part in found.groups())
        # No name has one, and a database may not even compare a text with it.
        return problem(404, "There is nothing here.") if "\0" in "".join(parts) else (route, parts)

    async def _find_holder(self, headers: Mapping[bytes, bytes], scheme: str) -> Holder | None:
        """Whose key was shown, or without one whose cookie."""
        if b"authorization" in headers:
            kind, _, key = headers[b"authorization"].decode("latin-1").partition(" ")
            return await self.work(self.keys.find, key.strip()) if kind.lower() == "bearer" else None
        cookie = read_cookie(headers, is_secure(scheme, headers))
        return await self.work(self.sessions.find, cookie) if cookie else None

    async def _let_in(self, route: Route, visit: Visit, who: str, receive: Receive) -> Reply:
        limits = LIMITS[visit.holder.role]
        if self._busy[who] >= limits.at_once:
            told = f"At most {limits.at_once} at a time."
            return problem(429, "Too many requests at once.", told, headers=(("retry-after", "1"),))
        self._busy[who] += 1
        try:
            most = limits.body if route.method != "GET" else 0
            body = await read_body(receive, visit.headers, most, seconds=BODY_SECONDS)
            if isinstance(body, Reply):
                return body
            visit = replace(visit, body=body)
            if route.page and (refused := _check_word(route, visit.holder, visit.fields.get("csrf", ""))) is not None:
                return refused
            return await route.handle(self, visit)
        finally:
            self._busy[who] -= 1
            if not self._busy[who]:
                del self._busy[who]


def _turn_away(route: Route, holder: Holder | None, headers: Mapping[bytes, bytes]) -> Reply | None:
    """Why a request does not come in; None if it does."""
    if route.method != "GET" and is_from_elsewhere(headers):
        return problem(403, "Another site's page sent this request.", "What changes something is sent from here.")
    if route.open:
        return None
    if holder is None and route.page and route.method == "GET":
        return Reply(303, b"", headers=(("location", ENTRANCE),))
    if holder is None:
        return problem(401, "This needs a key.", "Authorization: Bearer and a key; people come by their link.")
    if holder.role not in route.roles:
        return problem(403, "This key is for other things.", f"It is a key of role {holder.role}.")
    return None if route.page else _check_word(route, holder, headers.get(CSRF_HEADER, b"").decode("latin-1"))


def _check_word(route: Route, holder: Holder, shown: str) -> Reply | None:
    """Refuse what changes something and comes with a cookie alone.

    Not the way in: who comes by a link from elsewhere is shown it without the cookie that they may still have.
    """
    if (
        route.method == "GET"
        or route.open
        or holder.csrf is None
        or hmac.compare_digest(shown.encode(), holder.csrf.encode())
    ):
        return None
    told = "With a cookie, what changes something repeats the word that GET /v1/me tells, as X-CSRF-Token."
    told = "Open the page again, and send it from there." if route.page else told
    return problem(403, "The request does not show that it comes from this site.", told)


def _make_safe(reply: Reply, scheme: str) -> Reply:
    own = {name for name, _ in reply.headers}
    safe = [(name, value) for name, value in _SAFE.items() if name not in own]
    return replace(reply, headers=(*reply.headers, *safe, *([_HTTPS_ONLY] if scheme == "https" else [])))


def find_holding(app: GatewayApp, visit: Visit) -> Holding | Reply:
    """The dataset in the path; people know of their own alone."""
    found = app.holdings.get(visit.parts[0])
    own = visit.holder.role != PERSON or visit.parts[0] == visit.holder.dataset
    if found is not None and own:
        return found
    served = "" if visit.holder.role == PERSON else f"Served here: {', '.join(sorted(app.holdings))}."
    return problem(404, "There is no such dataset.", served)


def of_dataset(handle: Callable[[GatewayApp, Visit, Holding], Awaitable[Reply]]) -> Handle:
    """A way that is about the dataset in the path."""

    async def find(app: GatewayApp, visit: Visit) -> Reply:
        here = find_holding(app, visit)
        return here if isinstance(here, Reply) else await handle(app, visit, here)

    return find
