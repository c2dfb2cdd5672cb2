"""An aggregator's routes, as a plain ASGI application, and the server that runs it.

    GET  /v1/key                                      its key and whether it is there at all
    PUT  /v1/collections/{id}                     *   take part in a collection (its terms, JSON)
    GET  /v1/collections/{id}                     *   open round, number of reports
    POST /v1/collections/{id}/reports                 reports of owners
    POST /v1/collections/{id}/rounds/{n}/close    *   end a round
    GET  /v1/collections/{id}/levels/{n}/present  *   ids present in every round
    GET  /v1/collections/{id}/levels/{n}/accepted *   ids that were added up
    POST /v1/collections/{id}/levels/{n}/check    *   32 bytes of challenge, then ids: words of their proofs
    POST /v1/collections/{id}/levels/{n}/collect  *   ids: the noisy sum

Those with * want the coordinator's token. A refused request leaves nothing behind. Nothing is logged about requests.
Errors have one shape: RFC 9457, application/problem+json.
"""

import asyncio
import hmac
import json
import re
import socket
from collections import deque
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from epsilons.collection import reports as wire
from epsilons.collection.aggregator import CHALLENGE_BYTES, Aggregator
from epsilons.collection.terms import Collection
from epsilons.errors import Argument, EpsilonsError, PlanError

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Handle = Callable[["AggregatorApp", list[Any], bytes], Awaitable["Reply"]]

#: The largest bodies taken: of owners, and of the coordinator, whose lists of ids may be long.
MOST_REPORT_BYTES = 16 << 20
MOST_BYTES = 256 << 20
#: Any other error of ours is the sender's: 422.
_STATUS: dict[type, int] = {wire.UnknownCollectionError: 404, wire.OutOfOrderError: 409, wire.UnavailableError: 503}
#: The most reports that one transaction takes up.
_MOST_AT_ONCE = 4_000
_Waiting = tuple[bytes, Sequence[wire.Report], "asyncio.Future[list[str]]"]


@dataclass(frozen=True)
class Reply:
    status: int
    body: bytes
    media_type: str = "application/octet-stream"


@dataclass(frozen=True)
class Route:
    """A way in: `handle` gets the application, the collection's id and numbers in the path, and the body."""

    method: str
    path: str
    handle: Handle
    token: bool = True
    most: int = MOST_BYTES


class AggregatorApp:
    """ASGI; `token` is what the coordinator shows."""

    def __init__(self, aggregator: Aggregator, token: str) -> None:
        self.aggregator, self.intake, self._token = aggregator, Intake(aggregator), token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _live(receive, send)
        elif scope["type"] == "http":
            reply = await self._reply(scope, receive)
            headers = [(b"content-type", reply.media_type.encode()), (b"content-length", b"%d" % len(reply.body))]
            if reply.status in (401, 413):
                # What is left of the request is not read, so the connection cannot be used again.
                headers += [(b"connection", b"close")]
            if reply.status == 401:
                headers += [(b"www-authenticate", b"Bearer")]
            await send({"type": "http.response.start", "status": reply.status, "headers": headers})
            await send({"type": "http.response.body", "body": reply.body})

    async def _reply(self, scope: Scope, receive: Receive) -> Reply:
        fitting = [(route, found) for route in ROUTES if (found := re.fullmatch(route.path, scope["path"]))]
        if not fitting:
            return _problem(404, "There is nothing here.")
        chosen = [(route, found) for route, found in fitting if route.method == scope["method"]]
        if not chosen:
            return _problem(405, "Method not allowed.", f"Allowed: {', '.join(route.method for route, _ in fitting)}.")
        route, found = chosen[0]
        headers = {name.lower(): value for name, value in scope["headers"]}
        shown, wanted = headers.get(b"authorization", b""), b"Bearer " + self._token.encode()
        if route.token and not hmac.compare_digest(shown, wanted):
            return _problem(401, "This is for the coordinator.", "Authorization: Bearer and the token.")
        body = await _read(receive, headers, route.most)
        if isinstance(body, Reply):
            return body
        try:
            parts = [bytes.fromhex(part) if number == 0 else int(part) for number, part in enumerate(found.groups())]
            return await route.handle(self, parts, body)
        except EpsilonsError as error:
            hint = {"hint": error.hint} if error.hint else {}
            return _problem(_STATUS.get(type(error), 422), error.what, error.rule, code=error.code, **hint)
        except Exception:
            # Its text may hold something private.
            return _problem(500, "The aggregator failed.", "Nothing was acknowledged; the request may be sent again.")


async def _read(receive: Receive, headers: dict[bytes, bytes], most: int) -> bytes | Reply:
    """The body, or why there is none: said as soon as it is known to be too large."""
    told, too_large = headers.get(b"content-length", b"0"), f"At most {most:,} bytes."
    if not told.isdigit() or int(told) > most:
        return _problem(413, "The request is too large.", too_large)
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":  # half a list of ids must not pass for a list
            return _problem(400, "The request ended too early.")
        part = message.get("body", b"")
        size += len(part)
        if size > most:
            return _problem(413, "The request is too large.", too_large)
        parts.append(part)
        if not message.get("more_body"):
            return b"".join(parts)


async def _live(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": message["type"] + ".complete"})
        if message["type"] == "lifespan.shutdown":
            return


# Intake and server ---------------------------------------------------------------------------------------------------


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

    async def take(self, collection: bytes, reports: Sequence[wire.Report]) -> list[str]:
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
                some = [self._waiting.popleft()]
                size = len(some[0][1])
                while self._waiting and self._waiting[0][0] == some[0][0] and size < _MOST_AT_ONCE:
                    some.append(self._waiting.popleft())
                    size += len(some[-1][1])
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


def serve(app: AggregatorApp, host: str, port: int, ready: Callable[[str], None], **https: str | None) -> None:
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
    quiet: dict[str, Any] = {"log_level": "warning", "access_log": False, "server_header": False, "lifespan": "off"}
    config = uvicorn.Config(app, **quiet, ssl_certfile=https["certificate"], ssl_keyfile=https["certificate_key"])
    scheme = "https" if https["certificate"] else "http"
    name = f"[{host}]" if ":" in host else host
    # Connections wait in the socket's queue from here on, until the server takes them.
    listening.listen(1024)
    ready(f"{scheme}://{name}:{listening.getsockname()[1]}")
    uvicorn.Server(config).run(sockets=[listening])


# Routes ---------------------------------------------------------------------------------------------------------------


def _ask(call: Callable[[Aggregator, list[Any], bytes], Any]) -> Handle:
    """Ask the aggregator in a thread."""

    async def handle(app: AggregatorApp, parts: list[Any], body: bytes) -> Reply:
        found = await asyncio.to_thread(call, app.aggregator, parts, body)
        if isinstance(found, dict):
            return _json(found)
        return Reply(204, b"") if found is None else Reply(200, found)

    return handle


async def _enter(app: AggregatorApp, parts: list[Any], body: bytes) -> Reply:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return _problem(400, "The terms are not JSON.")
    # Only the id that was asked for: a coordinator that computes another one is told so before anything is stored.
    if Collection.from_dict(document).id != parts[0]:
        return _problem(422, "These are the terms of another collection.", "The id is the hash of the terms.")
    return _json({"id": (await asyncio.to_thread(app.aggregator.enter, document)).hex()})


async def _take(app: AggregatorApp, parts: list[Any], body: bytes) -> Reply:
    reports = wire.read_reports(body)
    if not reports:
        rule = f"At most {wire.MOST_REPORTS:,} reports one after the other, each with its head and length."
        return _problem(400, "This is not a list of reports.", rule)
    outcomes = zip(reports, await app.intake.take(parts[0], reports), strict=True)
    refused = [{"id": report.id.hex(), "reason": why} for report, why in outcomes if why != wire.STORED]
    if len(refused) == len(reports):
        return _problem(409, "No report was taken.", wire.REASONS[refused[0]["reason"]], stored=0, refused=refused)
    return _json({"stored": len(reports) - len(refused), "refused": refused})


_ID = "/v1/collections/([0-9a-f]{64})"
_LEVEL = _ID + "/levels/([0-9]{1,3})"

ROUTES = (
    Route("GET", "/v1/key", _ask(lambda one, *_: {"key": one.key}), token=False, most=0),
    Route("PUT", _ID, _enter),
    Route("GET", _ID, _ask(lambda one, at, _: one.status(*at)), most=0),
    Route("POST", _ID + "/reports", _take, token=False, most=MOST_REPORT_BYTES),
    Route("POST", _ID + "/rounds/([0-9]{1,3})/close", _ask(lambda one, at, _: one.close(*at)), most=0),
    Route("GET", _LEVEL + "/present", _ask(lambda one, at, _: one.present(*at)), most=0),
    Route("GET", _LEVEL + "/accepted", _ask(lambda one, at, _: one.accepted(*at)), most=0),
    Route(
        "POST",
        _LEVEL + "/check",
        _ask(lambda one, at, b: one.check(at[0], at[1], b[:CHALLENGE_BYTES], b[CHALLENGE_BYTES:])),
    ),
    Route("POST", _LEVEL + "/collect", _ask(lambda one, at, ids: one.collect(at[0], at[1], ids))),
)


def _json(document: Any) -> Reply:
    return Reply(200, json.dumps(document).encode(), "application/json")


def _problem(status: int, title: str, detail: str = "", **more: Any) -> Reply:
    document = {"type": "about:blank", "title": title, "status": status, **({"detail": detail} if detail else {})}
    return Reply(status, json.dumps(document | more, ensure_ascii=False).encode(), "application/problem+json")
