"""Aggregators behind HTTP: one of them with the methods of `Aggregator`, and a courier of reports to all of them.

Every request may be repeated without harm, so one that got no answer is sent again, at growing intervals, until
`patience` seconds have passed: an aggregator that is killed and started again is just slow.
"""

from __future__ import annotations

import http.client
import json
import queue
import threading
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from epsilons.collection.reports import STORED, Report, write_reports
from epsilons.collection.terms import Collection, Place, check_address
from epsilons.errors import EpsilonsError, ProtocolError

_FIRST_WAIT = 0.05
_LONGEST_WAIT = 1.0
_SECONDS_FOR_A_REPLY = 600
#: So many batches wait for a slow aggregator before the sender waits as well.
_WAITING = 8


class HttpAggregator:
    """`token` is the coordinator's; owners need none. One instance belongs to one thread."""

    def __init__(self, url: str, *, token: str | None = None, patience: float = 60.0) -> None:
        check_address(url)
        self.url, self._parts, self._patience = url, urlsplit(url), patience
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._connection: http.client.HTTPConnection | None = None

    def key(self) -> str:
        """The key that owners seal to, as the aggregator itself says."""
        return str(_entry(self._ask("GET", "/v1/key"), "key", str))

    def enter(self, document: Any) -> bytes:
        """Take part in a collection."""
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
                    f"No answer from the aggregator at {self.url} within {self._patience:g} s.",
                    suggest="check that it is running",
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
    """One entry of a JSON reply; its sender need not be honest."""
    try:
        found = json.loads(body)[name]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _unusable() from None
    if not isinstance(found, kind):
        raise _unusable()
    return found


def _unusable() -> ProtocolError:
    return ProtocolError("An aggregator's reply is not usable.", suggest="ask its operator")


def _path(collection: bytes) -> str:
    return f"/v1/collections/{collection.hex()}"


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
                # What is still handed in is dropped, so that no sender waits for a queue that is full.
                continue
            try:
                if not self.outcomes[number] and aggregator.key() != place.key:
                    raise ProtocolError(
                        f"The aggregator at {place.url} has another key than the terms say.",
                        rule="Shares go only to aggregators that the terms name.",
                        suggest="ask for the collection's file again",
                    )
                self.outcomes[number].update(aggregator.take(self._collection.id, some))
            except EpsilonsError as failure:
                self._failures.append(failure)
                failed = True
        aggregator.shut()
