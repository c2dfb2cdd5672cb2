"""An aggregator behind HTTP: patience, refusals, and replies of somebody who is not honest."""

from __future__ import annotations

import contextlib
import http.client
import json
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

import pytest

from epsilons.collection import Collection, HttpAggregator, OwnerClient, Place
from epsilons.collection import transport as module
from epsilons.collection.sealing import OpeningKey
from epsilons.errors import PlanError, ProtocolError
from epsilons.storage.exchange import Exchange
from support.collections_world import survey

COLLECTION = Collection.start(survey(2), [Place(f"http://a{n}", str(OpeningKey.fresh().public)) for n in range(2)])
REPORTS = OwnerClient(COLLECTION).reports([1, 2])[0][0]


def answering(monkeypatch: pytest.MonkeyPatch, *replies: Any) -> HttpAggregator:
    """An aggregator that gives these replies, one after the other; an exception is raised."""
    waiting = list(replies)

    def once(self: Exchange, method: str, path: str, body: bytes, *_: Any, **limits: Any) -> tuple[int, bytes]:
        reply = waiting.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply

    monkeypatch.setattr(Exchange, "ask", once)
    monkeypatch.setattr(module.time, "sleep", lambda _: None)
    return HttpAggregator("http://aggregator", patience=30, insecure=True)


ASKED: dict[str, Callable[[HttpAggregator], Any]] = {
    "key": lambda one: one.key(),
    "enter": lambda one: one.enter(COLLECTION.to_dict()),
    "status": lambda one: one.status(COLLECTION.id),
    "take": lambda one: one.take(COLLECTION.id, REPORTS),
}


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
@pytest.mark.parametrize("body", [b"", b"x", b"[]", b"{}", b"null", b'{"key": 1, "id": 2, "refused": 3, "reports": 4}',
                                  b'{"refused": [1], "id": "00", "reports": {"a": "b"}, "round": 1, "rounds": 1}',
                                  b"[" * 100_000])  # fmt: skip
def test_replies_that_are_not_usable(monkeypatch: pytest.MonkeyPatch, ask: Any, body: bytes) -> None:
    with pytest.raises(ProtocolError):
        ask(answering(monkeypatch, (200, body)))


def test_whatever_is_lost_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = [OSError(), http.client.RemoteDisconnected(), (503, b""), (500, b"x"), http.client.IncompleteRead(b"")]
    assert answering(monkeypatch, *lost, (200, b'{"key": "ab"}')).key() == "ab"


def test_patience_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 1_000, 5))
    monkeypatch.setattr(module.time, "monotonic", lambda: next(clock))
    with pytest.raises(ProtocolError, match="No answer from the aggregator at http://aggregator within 30 s"):
        answering(monkeypatch, *[OSError()] * 50).key()


def test_a_refusal_is_told_and_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    body = b'{"title": "The batch is too small.", "detail": "At least 100 reports."}'
    with pytest.raises(ProtocolError, match="too small"):
        answering(monkeypatch, (409, body)).check(COLLECTION.id, 0, bytes(32), b"")
    for strange in (b"x", b"[]", b"7", b"{}"):
        with pytest.raises(ProtocolError, match="status 409"):
            answering(monkeypatch, (409, strange)).take(COLLECTION.id, REPORTS)


def test_outcomes_are_per_report(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = (report.id.hex() for report in REPORTS)
    some = f'{{"stored": 1, "refused": [{{"id": "{two}", "reason": "closed"}}]}}'.encode()
    assert answering(monkeypatch, (200, some)).take(COLLECTION.id, REPORTS) == ["stored", "closed"]
    refused = [{"id": one, "reason": "replayed"}, {"id": two, "reason": "closed"}]
    none = json.dumps({"title": "No", "refused": refused}).encode()
    assert answering(monkeypatch, (409, none)).take(COLLECTION.id, REPORTS) == ["replayed", "closed"]


@pytest.mark.parametrize("body", [b"[" * 100_000, b"[]", b'{"title": ' + b"[" * 100_000])
def test_refusals_that_are_not_usable(monkeypatch: pytest.MonkeyPatch, body: bytes) -> None:
    with pytest.raises(ProtocolError, match="status 409"):
        answering(monkeypatch, (409, body)).key()


def test_a_refusal_fills_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    long = json.dumps({"title": "a" * 500_000, "detail": "b" * 500_000}).encode()
    with pytest.raises(ProtocolError) as refused:
        answering(monkeypatch, (409, long)).key()
    assert len(str(refused.value)) < 1_000


def test_a_reply_without_an_end_is_not_read_to_its_end() -> None:
    """Of an aggregator that would fill an owner's memory."""
    sent = 0

    class Endless(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            nonlocal sent
            self.send_response(200)
            self.end_headers()
            with contextlib.suppress(OSError):
                while sent < 64 << 20:
                    sent += self.wfile.write(b'"' + b"a" * (1 << 16))

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Endless) as server:
        thread = Thread(target=server.handle_request)
        thread.start()
        with pytest.raises(ProtocolError, match="not usable"):
            HttpAggregator(f"http://127.0.0.1:{server.server_port}", patience=2).key()
        thread.join()
    assert sent < 32 << 20


def test_a_key_that_comes_byte_by_byte_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever says its key so slowly is named as who says nothing is, and not after ten minutes."""
    over, told = Event(), list[str]()

    class Trickling(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            with contextlib.suppress(OSError):
                while not over.wait(0.05):
                    self.wfile.write(b" ")

        def log_message(self, *_: Any) -> None:
            pass

    monkeypatch.setattr(module, "_SECONDS_FOR_A_SIGN", 0.3)
    with ThreadingHTTPServer(("127.0.0.1", 0), Trickling) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        url, start = f"http://127.0.0.1:{server.server_port}", time.monotonic()
        with pytest.raises(ProtocolError, match=r"No answer from the aggregator at .* within 1 s"):
            HttpAggregator(url, patience=1, told=told.append).key()
        assert time.monotonic() - start < 10
        over.set()
        server.shutdown()
        thread.join()
    assert told == [f"No answer from the aggregator at {url} (it says nothing); trying for 1 s."]


#: The last ones could be taken for another host than the one that is spoken to.
BAD_ADDRESSES = (
    "", "aggregator", "ftp://x", "http://", "http://[::1", "https://x:port", "https://x:99999", "https://.",
    f"https://{'a' * 70}.org", "https://x?y", "https://x#y", "https://x y", "https://x\n", "https://x/\x1b[2J",
    "https://one.example.org@another", "https://one.example.org\\@another.org", "https://\u0430.org",
    "https://x/\u202egro.elpmaxe.eno",
)  # fmt: skip


@pytest.mark.parametrize("url", BAD_ADDRESSES)
def test_addresses(url: str) -> None:
    with pytest.raises(ProtocolError, match="no usable address"):
        HttpAggregator(url)
    with pytest.raises(ProtocolError, match="no usable address"):
        Collection.start(survey(2), [COLLECTION.aggregators[0], Place(url, COLLECTION.aggregators[1].key)])


@pytest.mark.parametrize("url", ["https://one.example.org", "https://[::1]:8701", "https://x.org:8701/under/here/"])
def test_addresses_that_are_usable(url: str) -> None:
    assert HttpAggregator(url).url == url


@pytest.mark.parametrize("patience", [-1, float("nan"), float("inf"), "soon"])
def test_patience_is_a_number_of_seconds(patience: Any) -> None:
    with pytest.raises(PlanError, match="a number of seconds"):
        HttpAggregator("https://x.org", patience=patience)
