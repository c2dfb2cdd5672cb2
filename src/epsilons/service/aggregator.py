"""An aggregator's routes, as a plain ASGI application.

    GET  /v1/key                                      its key and whether it is there at all
    PUT  /v1/collections/{id}                     *   take part in a collection (its terms, JSON)
    GET  /v1/collections/{id}                     *   open round, number of reports
    POST /v1/collections/{id}/reports                 reports of owners
    POST /v1/collections/{id}/rounds/{n}/close    *   end a round
    GET  /v1/collections/{id}/levels/{n}/present  *   ids present in every round
    GET  /v1/collections/{id}/levels/{n}/accepted *   ids that were added up
    POST /v1/collections/{id}/levels/{n}/check    *   32 bytes of challenge, then ids: words of their proofs
    POST /v1/collections/{id}/levels/{n}/collect  *   ids: the noisy sum

Those with * want the coordinator's token. Whatever is refused leaves nothing behind. Nothing is logged about requests.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import re
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

from epsilons.collection.aggregator import CHALLENGE_BYTES, Aggregator
from epsilons.collection.reports import MOST_REPORTS, REASONS, STORED, read_reports
from epsilons.errors import EpsilonsError
from epsilons.service.intake import Intake
from epsilons.service.problems import MEDIA_TYPE, problem, problem_of

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

#: The largest bodies taken: of owners, and of the coordinator, whose lists of ids may be long.
MOST_REPORT_BYTES = 16 << 20
MOST_BYTES = 256 << 20
_OCTETS = "application/octet-stream"
_JSON = "application/json"


@dataclass(frozen=True)
class Reply:
    """What goes back."""

    status: int
    body: bytes
    media_type: str = _OCTETS


@dataclass(frozen=True)
class Route:
    """A way in: `handle` gets the application, the parts of the path and the body."""

    method: str
    path: re.Pattern[str]
    handle: Callable[[AggregatorApp, list[str], bytes], Awaitable[Reply]]
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
        fitting = [(route, found) for route in ROUTES if (found := route.path.fullmatch(scope["path"]))]
        if not fitting:
            return _problem(404, "There is nothing here.")
        chosen = [(route, found) for route, found in fitting if route.method == scope["method"]]
        if not chosen:
            return _problem(405, "This is no way to ask here.", f"Allowed: {fitting[0][0].method}.")
        route, found = chosen[0]
        headers = {name.lower(): value for name, value in scope["headers"]}
        if route.token and not self._is_coordinator(headers):
            return _problem(401, "This is for the coordinator.", "Authorization: Bearer and the token.")
        try:
            body = await _read(receive, headers, route.most)
        except _GoneError:
            return _problem(400, "The request ended too early.")
        if body is None:
            return _problem(413, "The request is too large.", f"At most {route.most:,} bytes.")
        try:
            return await route.handle(self, list(found.groups()), body)
        except EpsilonsError as error:
            status, text = problem_of(error)
            return Reply(status, text, MEDIA_TYPE)
        except Exception:
            # Whatever it was, its text may hold something private.
            return _problem(
                500, "The aggregator failed.", "Nothing was acknowledged; the same request may be sent again."
            )

    def _is_coordinator(self, headers: dict[bytes, bytes]) -> bool:
        said = headers.get(b"authorization", b"")
        return hmac.compare_digest(said, b"Bearer " + self._token.encode())


class _GoneError(Exception):
    """The sender went away in the middle of a request: half a list of ids must not pass for a list."""


async def _read(receive: Receive, headers: dict[bytes, bytes], most: int) -> bytes | None:
    """The body; None as soon as it is known to be too large."""
    told = headers.get(b"content-length", b"0")
    if not told.isdigit() or int(told) > most:
        return None
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _GoneError
        part = message.get("body", b"")
        size += len(part)
        if size > most:
            return None
        parts.append(part)
        if not message.get("more_body"):
            return b"".join(parts)


async def _live(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": message["type"] + ".complete"})
        if message["type"] == "lifespan.shutdown":
            return


# Routes ---------------------------------------------------------------------------------------------------------------


async def _key(app: AggregatorApp, parts: list[str], body: bytes) -> Reply:
    return _json({"key": app.aggregator.key})


async def _enter(app: AggregatorApp, parts: list[str], body: bytes) -> Reply:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return _problem(400, "The terms are not JSON.")
    # Only the id that was asked for: a coordinator that computes another one is told so before anything is stored.
    from epsilons.collection.terms import Collection

    if Collection.from_dict(document).id.hex() != parts[0]:
        return _problem(422, "These are the terms of another collection.", "The id is the hash of the terms.")
    return _json({"id": (await asyncio.to_thread(app.aggregator.enter, document)).hex()})


async def _status(app: AggregatorApp, parts: list[str], body: bytes) -> Reply:
    return _json(await asyncio.to_thread(app.aggregator.status, bytes.fromhex(parts[0])))


async def _take(app: AggregatorApp, parts: list[str], body: bytes) -> Reply:
    reports = read_reports(body)
    if not reports:
        return _problem(
            400,
            "This is no list of reports.",
            f"At most {MOST_REPORTS:,} reports one after the other, each with its head and length.",
        )
    outcomes = await app.intake.take(bytes.fromhex(parts[0]), reports)
    refused = [
        {"id": report.id.hex(), "reason": outcome}
        for report, outcome in zip(reports, outcomes, strict=True)
        if outcome != STORED
    ]
    if len(refused) == len(reports):
        reason = REASONS[refused[0]["reason"]]
        return _problem(409, "No report was taken.", reason, stored=0, refused=refused)
    return _json({"stored": len(reports) - len(refused), "refused": refused})


async def _close(app: AggregatorApp, parts: list[str], body: bytes) -> Reply:
    return Reply(200, await asyncio.to_thread(app.aggregator.close, bytes.fromhex(parts[0]), int(parts[1])))


async def _present(app: AggregatorApp, parts: list[str], body: bytes) -> Reply:
    return Reply(200, await asyncio.to_thread(app.aggregator.present, bytes.fromhex(parts[0]), int(parts[1])))


async def _accepted(app: AggregatorApp, parts: list[str], body: bytes) -> Reply:
    found = await asyncio.to_thread(app.aggregator.accepted, bytes.fromhex(parts[0]), int(parts[1]))
    return Reply(204, b"") if found is None else Reply(200, found)


async def _check(app: AggregatorApp, parts: list[str], body: bytes) -> Reply:
    challenge, ids = body[:CHALLENGE_BYTES], body[CHALLENGE_BYTES:]
    shown = await asyncio.to_thread(app.aggregator.check, bytes.fromhex(parts[0]), int(parts[1]), challenge, ids)
    return Reply(200, shown)


async def _collect(app: AggregatorApp, parts: list[str], body: bytes) -> Reply:
    return Reply(200, await asyncio.to_thread(app.aggregator.collect, bytes.fromhex(parts[0]), int(parts[1]), body))


_ID = "/v1/collections/([0-9a-f]{64})"
_LEVEL = _ID + "/levels/([0-9]{1,3})"

ROUTES = (
    Route("GET", re.compile("/v1/key"), _key, token=False, most=0),
    Route("PUT", re.compile(_ID), _enter),
    Route("GET", re.compile(_ID), _status, most=0),
    Route("POST", re.compile(_ID + "/reports"), _take, token=False, most=MOST_REPORT_BYTES),
    Route("POST", re.compile(_ID + "/rounds/([0-9]{1,3})/close"), _close, most=0),
    Route("GET", re.compile(_LEVEL + "/present"), _present, most=0),
    Route("GET", re.compile(_LEVEL + "/accepted"), _accepted, most=0),
    Route("POST", re.compile(_LEVEL + "/check"), _check),
    Route("POST", re.compile(_LEVEL + "/collect"), _collect),
)


def _json(document: Any) -> Reply:
    return Reply(200, json.dumps(document).encode(), _JSON)


def _problem(status: int, title: str, detail: str = "", **more: Any) -> Reply:
    return Reply(status, problem(status, title, detail, **more), MEDIA_TYPE)
