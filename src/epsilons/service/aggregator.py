"""An aggregator's routes, as a plain ASGI application, and the server that runs it.

    GET  /v1/openapi.json                             this list, as OpenAPI has it
    GET  /v1/key                                      its key and whether it is there at all
    PUT  /v1/collections/{id}                     *   take part in a collection (its terms, JSON)
    GET  /v1/collections/{id}                     *   open round, number of reports
    POST /v1/collections/{id}/reports                 reports of owners
    POST /v1/collections/{id}/rounds/{n}/close    *   end a round
    GET  /v1/collections/{id}/levels/{n}/present  *   ids present in every round
    GET  /v1/collections/{id}/levels/{n}/accepted *   ids that were added up
    POST /v1/collections/{id}/levels/{n}/check    *   32 bytes of challenge, then ids: words of their proofs
    POST /v1/collections/{id}/levels/{n}/collect  *   ids: the noisy sum

Those with * want the coordinator's token. A refused request leaves nothing behind. Only failures are logged, by
their kind. Errors have one shape: RFC 9457, application/problem+json.
"""

import asyncio
import hmac
import json
import logging
import re
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from epsilons.collection import reports as wire
from epsilons.collection.aggregator import CHALLENGE_BYTES, Aggregator
from epsilons.collection.terms import Collection
from epsilons.errors import EpsilonsError
from epsilons.service.describing import PLACE, describe_service, describe_way, list_parts
from epsilons.service.in_flight import ErrorLog, Held, InFlight, address_of
from epsilons.service.serving import Receive, Reply, Scope, Send, as_json, busy, live, problem, read_body
from epsilons.storage.stores import UnusableStoreError

#: The name of the log, for whoever gives it a place.
LOG = "epsilons.aggregator"
Handle = Callable[["AggregatorApp", list[Any], bytes], Awaitable["Reply"]]
_BYTES, _JSON = "application/octet-stream", "application/json"

#: The largest bodies taken, and the seconds in which they arrive: of owners, and of the coordinator, whose lists of ids
#: may be long.
MOST_REPORT_BYTES, REPORT_SECONDS = 8 << 20, 30.0
MOST_BYTES, COORDINATOR_SECONDS = 256 << 20, 600.0
#: How many requests at a time, and how many bytes of them: anybody's, and the coordinator's.
OWNERS_ROOM = 256, 24 << 20
COORDINATORS_ROOM = 16, 512 << 20
#: Any other error of ours is the sender's: 422.
_STATUS: dict[type, int] = {wire.UnknownCollectionError: 404, wire.OutOfOrderError: 409, wire.UnavailableError: 503}
#: The most reports that one transaction takes up.
_MOST_AT_ONCE = 4_000
_Waiting = tuple[bytes, Sequence[wire.Report], "asyncio.Future[list[str]]"]


@dataclass(frozen=True)
class Route:
    """A way in: `handle` gets the application, the collection's id and numbers in the path, and the body."""

    method: str
    path: str
    handle: Handle
    about: str
    token: bool = True
    most: int = MOST_BYTES
    seconds: float = COORDINATOR_SECONDS
    #: The media types of what it takes, if it takes something, and of its reply.
    takes: str | None = None
    gives: str = _BYTES

    @property
    def name(self) -> str:
        """For the log: the last word of the path, without ids."""
        return f"{self.method} {self.path.rsplit('/', 1)[1]}" if self.path != _ID else f"{self.method} collection"


class AggregatorApp:
    """ASGI; `token` is what the coordinator shows."""

    def __init__(self, aggregator: Aggregator, token: str) -> None:
        self.aggregator, self.intake, self._token = aggregator, Intake(aggregator), token
        self._owners, self._coordinators = InFlight(*OWNERS_ROOM), InFlight(*COORDINATORS_ROOM)
        self._errors = ErrorLog(logging.getLogger(LOG))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await live(receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        fitting = [(route, found) for route in ROUTES if (found := re.fullmatch(route.path, scope["path"]))]
        chosen = [(route, found) for route, found in fitting if route.method == scope["method"]]
        if not chosen:
            allowed = ", ".join(route.method for route, _ in fitting)
            nothing = problem(405, "Method not allowed.", f"Allowed: {allowed}.")
            await (nothing if fitting else problem(404, "There is nothing here.")).send(send)
            return
        route, found = chosen[0]
        headers = {name.lower(): value for name, value in scope["headers"]}
        shown, wanted = headers.get(b"authorization", b""), b"Bearer " + self._token.encode()
        if route.token and not hmac.compare_digest(shown, wanted):
            await problem(401, "This is for the coordinator.", "Authorization: Bearer and the token.").send(send)
            return
        # Held until the reply has left, so that what a request needs is bounded from its first byte to its last.
        room, address = (self._coordinators, None) if route.token else (self._owners, address_of(scope))
        with room.admit(address) as held:
            reply = busy() if held is None else await self._reply(route, found.groups(), headers, receive, held)
            if reply.status in (408, 503):
                self._errors.note(f"{reply.status} {route.name}")
            await reply.send(send)

    async def _reply(
        self, route: Route, groups: tuple[str, ...], headers: dict[bytes, bytes], receive: Receive, held: Held
    ) -> Reply:
        body = await read_body(receive, headers, route.most, seconds=route.seconds, hold=held.reach)
        if isinstance(body, Reply):
            return body
        try:
            parts = [bytes.fromhex(part) if number == 0 else int(part) for number, part in enumerate(groups)]
            return await route.handle(self, parts, body)
        except UnusableStoreError:  # its text may name files; nothing will change by asking again
            self._errors.note(f"409 {route.name} UnusableStoreError")
            return problem(409, "This aggregator's store is refused.", "Its operator learns why when it starts again.")
        except EpsilonsError as error:
            hint: dict[str, Any] = {"hint": error.hint} if error.hint else {}
            return problem(_STATUS.get(type(error), 422), error.what, error.rule, code=error.code, **hint)
        except Exception as error:
            # Its text may hold something private.
            self._errors.note(f"500 {route.name} {type(error).__name__}")
            return problem(500, "The aggregator failed.", "Nothing was acknowledged; the request may be sent again.")


# Intake ---------------------------------------------------------------------------------------------------


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


# Routes ---------------------------------------------------------------------------------------------------------------


def _ask(call: Callable[[Aggregator, list[Any], bytes], Any]) -> Handle:
    """Ask the aggregator in a thread."""

    async def handle(app: AggregatorApp, parts: list[Any], body: bytes) -> Reply:
        found = await asyncio.to_thread(call, app.aggregator, parts, body)
        if isinstance(found, dict):
            return as_json(found)
        return Reply(204, b"") if found is None else Reply(200, found)

    return handle


async def _enter(app: AggregatorApp, parts: list[Any], body: bytes) -> Reply:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return problem(400, "The terms are not JSON.")
    # Only the id that was asked for: a coordinator that computes another one is told so before anything is stored.
    if Collection.from_dict(document).id != parts[0]:
        return problem(422, "These are the terms of another collection.", "The id is the hash of the terms.")
    return as_json({"id": (await asyncio.to_thread(app.aggregator.enter, document)).hex()})


async def _take(app: AggregatorApp, parts: list[Any], body: bytes) -> Reply:
    reports = wire.read_reports(body)
    if not reports:
        rule = f"At most {wire.MOST_REPORTS:,} reports one after the other, each with its head and length."
        return problem(400, "This is not a list of reports.", rule)
    outcomes = zip(reports, await app.intake.take(parts[0], reports), strict=True)
    refused = [{"id": report.id.hex(), "reason": why} for report, why in outcomes if why != wire.STORED]
    if len(refused) == len(reports):
        return problem(409, "No report was taken.", wire.REASONS[refused[0]["reason"]], stored=0, refused=refused)
    return as_json({"stored": len(reports) - len(refused), "refused": refused})


async def _tell_key(app: AggregatorApp, parts: list[Any], body: bytes) -> Reply:
    """Without a thread: it shows that the aggregator is there, also while all of them are at work."""
    return as_json({"key": app.aggregator.key})


async def _describe(app: AggregatorApp, parts: list[Any], body: bytes) -> Reply:
    return as_json(describe_routes())


def describe_routes() -> dict[str, Any]:
    """The OpenAPI document."""
    ways = []
    for route in ROUTES:
        kind = {"type": "object"} if route.takes == _JSON else {"type": "string", "format": "binary"}
        told = describe_way(
            route.name.replace(" ", "-"), route.about, list_parts(route.path), gives=route.gives,
            who="For the coordinator." if route.token else "For everyone.",
            body=None if route.takes is None else (route.takes, kind), security=[{"token": []}] if route.token else [],
        )  # fmt: skip
        ways.append((route.method, route.path, told))
    return describe_service("epsilons aggregator", ways, {}, {"token": {"type": "http", "scheme": "bearer"}})


_ID = "/v1/collections/(?P<collection>[0-9a-f]{64})"
_LEVEL = _ID + "/levels/(?P<level>[0-9]{1,3})"
_CLOSE = _ID + "/rounds/(?P<round>[0-9]{1,3})/close"
_OPEN: dict[str, Any] = {"token": False, "most": 0, "seconds": REPORT_SECONDS, "gives": _JSON}
_REPORTS = {**_OPEN, "most": MOST_REPORT_BYTES, "takes": _BYTES}

ROUTES = (
    Route("GET", PLACE, _describe, "This document.", **_OPEN),
    Route("GET", "/v1/key", _tell_key, "Its key.", **_OPEN),
    Route("PUT", _ID, _enter, "Take part in a collection, by its terms.", takes=_JSON, gives=_JSON),
    Route("GET", _ID, _ask(lambda one, at, _: one.status(*at)), "Open round, number of reports.", most=0, gives=_JSON),
    Route("POST", _ID + "/reports", _take, "Reports of owners, one after the other.", **_REPORTS),
    Route("POST", _CLOSE, _ask(lambda one, at, _: one.close(*at)), "End a round.", most=0),
    Route("GET", _LEVEL + "/present", _ask(lambda one, at, _: one.present(*at)), "Ids present in every round.", most=0),
    Route("GET", _LEVEL + "/accepted", _ask(lambda one, at, _: one.accepted(*at)), "Ids that were added up.", most=0),
    Route(
        "POST", _LEVEL + "/check",
        _ask(lambda one, at, b: one.check(at[0], at[1], b[:CHALLENGE_BYTES], b[CHALLENGE_BYTES:])),
        "32 bytes of challenge, then ids: words of their proofs.", takes=_BYTES,
    ),
    Route(
        "POST", _LEVEL + "/collect", _ask(lambda one, at, ids: one.collect(at[0], at[1], ids)),
        "Ids: the noisy sum.", takes=_BYTES,
    ),
)  # fmt: skip
