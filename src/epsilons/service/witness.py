"""The witness: keeps the heads of many ledgers, for all their clients, and signs what it says.

    GET  /v1/openapi.json           this list, as OpenAPI has it
    GET  /v1/key                    the key it signs with
    POST /v1/ledgers/{id}/read      the head of a ledger, and the row of a line if it is asked for
    POST /v1/ledgers/{id}/list      the rows before a number, newest first
    POST /v1/ledgers/{id}/heads     the next lines of a ledger, after the head that the sender knows

What is sent is signed by the ledger's own key, which the first head names; what is answered is signed by the witness,
with the sender's nonce. Heads are only ever added (`ledger.heads`). Nothing of people, questions or answers comes here:
numbers of lines, hashes, and a bound of what anybody was charged. Anyone who reaches the address can have the heads of
ledgers of their own kept.
"""

import asyncio
import json
import logging
import os
import re
from typing import Any

from epsilons.collection.sealing import keep_secret, read_secret
from epsilons.errors import EpsilonsError, ProtocolError
from epsilons.ledger.heads import HEADS_FORMAT, MOST_LINES, Heads, Line
from epsilons.ledger.journal import LARGEST_SUM
from epsilons.ledger.signed import SigningKey, read_signed
from epsilons.service.describing import PLACE, describe_service, describe_way, list_parts
from epsilons.service.in_flight import ErrorLog, InFlight, address_of
from epsilons.service.serving import Receive, Reply, Scope, Send, as_json, busy, live, problem, read_body

#: The name of the log, for whoever gives it a place.
LOG = "epsilons.witness"
MOST_BYTES, SECONDS = 1 << 20, 10.0
ROOM = 256, 24 << 20
_LEDGER = "/v1/ledgers/(?P<ledger>[0-9a-f]{32})"
_ROUTE = re.compile(f"{_LEDGER}/(read|list|heads)")
_HASH = re.compile("[0-9a-f]{64}")


def begin(heads: Heads, key_file: str | os.PathLike[str]) -> SigningKey:
    """The key of a store, which was born with it: a store that has forgotten its heads must not speak in its name."""
    with heads.database.write() as connection:
        known = connection.execute('SELECT format, "key" FROM identity').fetchone()
        if known is None and os.path.lexists(key_file):
            rule = "A store that has forgotten heads would take older ones."
            raise ProtocolError("This key belongs to another store.", rule=rule, suggest="a new key for a new store")
        if known is not None and not os.path.lexists(key_file):
            raise ProtocolError("The key of this store is missing.", suggest="the key that was made with it")
        key = SigningKey(keep_secret(key_file) if known is None else read_secret(key_file))
        if known is None:
            row = {"format": HEADS_FORMAT, "key": key.public}
            connection.execute("INSERT INTO identity VALUES (1, :format, :key)", row)
        elif (known[0], known[1]) != (HEADS_FORMAT, key.public):
            raise ProtocolError("This store belongs to another key, or release.", suggest="its own key")
    return key


class WitnessApp:
    """ASGI."""

    def __init__(self, heads: Heads, key: SigningKey) -> None:
        self._heads, self._key = heads, key
        self._room, self._errors = InFlight(*ROOM), ErrorLog(logging.getLogger(LOG))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await live(receive, send)
        elif scope["type"] == "http":
            with self._room.admit(address_of(scope)) as held:
                reply = busy() if held is None else await self._answer(scope, receive, held.reach)
                await reply.send(send)

    async def _answer(self, scope: Scope, receive: Receive, hold: Any) -> Reply:
        path, method = scope["path"], scope["method"]
        found = _ROUTE.fullmatch(path)
        wanted = "GET" if path in ("/v1/key", PLACE) else "POST" if found else None
        if wanted is None:
            return problem(404, "There is nothing here.")
        if method != wanted:
            return problem(405, "Method not allowed.", f"Allowed: {wanted}.", headers=(("allow", wanted),))
        headers = {name.lower(): value for name, value in scope["headers"]}
        body = await read_body(receive, headers, MOST_BYTES if found else 0, seconds=SECONDS, hold=hold)
        if isinstance(body, Reply):
            return body
        if found is None:
            return as_json(describe_ways() if path == PLACE else {"key": self._key.public})
        try:
            return await asyncio.to_thread(self._tell, found[1], found[2], body)
        except EpsilonsError as error:
            self._errors.note(f"503 POST {found[2]} {type(error).__name__}")
            return busy()
        except Exception as error:  # its text may quote what was sent or stored
            self._errors.note(f"500 POST {found[2]} {type(error).__name__}")
            return problem(500, "The witness failed.", "Nothing was acknowledged; the request may be sent again.")

    def _tell(self, ledger: str, route: str, body: bytes) -> Reply:
        try:
            content = json.loads(body)
        except (ValueError, RecursionError):
            return problem(400, "The request is not JSON.")
        key = content.get("key") if isinstance(content, dict) else None
        asked = read_signed(content, key) if isinstance(key, str) else None
        if asked is None or asked.get("ledger") != ledger or not isinstance(asked.get("nonce"), str):
            return problem(401, "The request is not signed for this ledger.", "told, signature and key (Ed25519).")
        told: dict[str, Any] = {"ledger": ledger, "nonce": asked["nonce"]}
        if route == "list":
            if not _is_number(asked.get("before")):
                return problem(422, "This is no number of a row.")
            told["rows"] = self._heads.list_before(ledger, asked["before"])
            return as_json(self._key.sign(told))
        try:
            if route == "read":
                line = asked.get("line")
                wanted = None if line is None else _read_line([*line, 0])[:2]
                told["head"], told["line"] = self._heads.read(ledger, wanted)
                return as_json(self._key.sign(told))
            after = None if asked["after"] is None else _read_line(asked["after"])
            lines = [_read_line(one) for one in asked["lines"]]
        except (KeyError, TypeError, ValueError):
            return problem(422, "These are no lines of a journal.", f"At most {MOST_LINES:,} of [number, hash, most].")
        loss = asked.get("loss", False)
        told["head"] = self._heads.add(ledger, after, lines, loss is True, str(key))
        return as_json(self._key.sign(told))


def describe_ways() -> dict[str, Any]:
    """The OpenAPI document. What is told is JSON in a text, so that what was signed is what is read."""
    text = {"type": "string"}
    signature, key = ({**text, "pattern": f"^[0-9a-f]{{{digits}}}$"} for digits in (128, 64))
    parts = {"told": text, "signature": signature, "key": key}
    signed = {"type": "object", "properties": parts, "required": list(parts), "additionalProperties": False}
    body = "application/json", {"$ref": "#/components/schemas/Signed"}
    ways = [
        ("GET", PLACE, describe_way("openapi", "This document.")),
        ("GET", "/v1/key", describe_way("key", "The key it signs with.")),
    ]
    of_a_ledger = {
        "read": "The head of a ledger, and a line if asked for.",
        "list": "The rows before one.",
        "heads": "Its next lines.",
    }
    for name, about in of_a_ledger.items():
        way = describe_way(name, about, list_parts(_LEDGER), body=body, who="Signed by the ledger's own key.")
        ways.append(("POST", f"{_LEDGER}/{name}", way))
    return describe_service("epsilons witness", ways, {"Signed": signed}, {})


def _is_number(given: Any, most: int = (1 << 63) - 1) -> bool:
    return type(given) is int and 0 <= given <= most


def _read_line(given: Any) -> Line:
    seq, digest, most = given
    numbers = _is_number(seq) and seq and _is_number(most, LARGEST_SUM)
    if not (numbers and isinstance(digest, str) and _HASH.fullmatch(digest)):
        raise ValueError("no line")
    return Line(seq, digest, most)
