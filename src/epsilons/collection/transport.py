"""An aggregator behind HTTP, as its users see it: the same methods, and patience.

Every request may be repeated without harm, so one that got no answer is sent again, at growing intervals, until
`patience` seconds have passed: an aggregator that is killed and started again is just slow.
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from epsilons.collection.reports import STORED, Report, write_reports
from epsilons.errors import ProtocolError

_FIRST_WAIT = 0.05
_LONGEST_WAIT = 1.0
_SECONDS_FOR_A_REPLY = 600


class HttpAggregator:
    """`token` is the coordinator's; owners need none. One instance belongs to one thread."""

    def __init__(self, url: str, *, token: str | None = None, patience: float = 60.0) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ProtocolError("An aggregator has no usable address.", suggest="https://one.example.org")
        self.url, self._parts, self._patience = url, parts, patience
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._connection: http.client.HTTPConnection | None = None

    def key(self) -> str:
        """The key that owners seal to, as the aggregator itself says."""
        return str(_entry(self._ask("GET", "/v1/key"), "key", str))

    def enter(self, document: Any) -> bytes:
        """Take part in a collection."""
        from epsilons.collection.terms import Collection

        collection = Collection.from_dict(document).id
        reply = self._ask("PUT", _path(collection), json.dumps(document).encode())
        if _entry(reply, "id", str) != collection.hex():
            raise ProtocolError("An aggregator understood other terms.", rule="One id everywhere.")
        return collection

    def status(self, collection: bytes) -> dict[str, Any]:
        """The open round and how many reports it has."""
        reply = self._ask("GET", _path(collection))
        counts = _entry(reply, "reports", dict)
        if not all(isinstance(count, int) for count in counts.values()):
            raise _unusable()
        return {"round": _entry(reply, "round", int), "rounds": _entry(reply, "rounds", int), "reports": counts}

    def take(self, collection: bytes, offered: Sequence[Report]) -> list[str]:
        """What became of each report; it is durable there when this returns."""
        body = self._ask("POST", f"{_path(collection)}/reports", write_reports(offered), outcomes=True)
        listed = _entry(body, "refused", list)
        try:
            refused = {str(item["id"]): str(item["reason"]) for item in listed}
        except (KeyError, TypeError):
            raise _unusable() from None
        return [refused.get(report.id.hex(), STORED) for report in offered]

    def close(self, collection: bytes, round_number: int) -> bytes:
        """End a round."""
        return self._ask("POST", f"{_path(collection)}/rounds/{round_number}/close")

    def present(self, collection: bytes, level: int) -> bytes:
        """Ids present in every round."""
        return self._ask("GET", f"{_path(collection)}/levels/{level}/present")

    def accepted(self, collection: bytes, level: int) -> bytes | None:
        """Ids that were added up; None if that is still to come."""
        return self._ask("GET", f"{_path(collection)}/levels/{level}/accepted") or None

    def check(self, collection: bytes, level: int, challenge: bytes, ids: bytes) -> bytes:
        """Words of the reports' proofs."""
        return self._ask("POST", f"{_path(collection)}/levels/{level}/check", challenge + ids)

    def collect(self, collection: bytes, level: int, ids: bytes) -> bytes:
        """The noisy sum."""
        return self._ask("POST", f"{_path(collection)}/levels/{level}/collect", ids)

    def shut(self) -> None:
        """Let go of the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _ask(self, method: str, path: str, body: bytes = b"", *, outcomes: bool = False) -> bytes:
        give_up, wait = time.monotonic() + self._patience, _FIRST_WAIT
        while True:
            try:
                status, reply = self._once(method, path, body)
            except (OSError, http.client.HTTPException):
                status, reply = 503, b""
                self.shut()
            if status < 500:
                break
            if time.monotonic() + wait > give_up:
                raise ProtocolError(
                    "An aggregator does not answer.",
                    rule=f"{self._patience:.0f} seconds were enough.",
                    suggest="start it",
                )
            time.sleep(wait)
            wait = min(2 * wait, _LONGEST_WAIT)
        if status < 300:
            return reply
        try:
            document = json.loads(reply)
            title, detail = str(document["title"]), str(document.get("detail", ""))
        except (ValueError, KeyError, TypeError):
            document, title, detail = {}, f"An aggregator refused with status {status}.", ""
        if outcomes and isinstance(document, dict) and "refused" in document:
            return reply
        raise ProtocolError(title, rule=detail)

    def _once(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        if self._connection is None:
            kind = http.client.HTTPSConnection if self._parts.scheme == "https" else http.client.HTTPConnection
            self._connection = kind(self._parts.hostname or "", self._parts.port, timeout=_SECONDS_FOR_A_REPLY)
        self._connection.request(method, self._parts.path.rstrip("/") + path, body, self._headers)
        reply = self._connection.getresponse()
        content = reply.read()
        if reply.getheader("Connection") == "close":
            self.shut()
        return reply.status, content


def _entry(body: bytes, name: str, kind: type) -> Any:
    """One entry of a JSON reply, from somebody who need not be honest."""
    try:
        found = json.loads(body)[name]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _unusable() from None
    if not isinstance(found, kind):
        raise _unusable()
    return found


def _unusable() -> ProtocolError:
    return ProtocolError("An aggregator's reply is not usable.", suggest="ask whoever runs it")


def _path(collection: bytes) -> str:
    return f"/v1/collections/{collection.hex()}"
