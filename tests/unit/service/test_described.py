"""Figure 12 by somebody else's reading of the OpenAPI documents: schemathesis makes what they allow, and what not.

A document is right as far as this shows: what it names can be made up and sent. What schemathesis cannot do is done
elsewhere: sign as a ledger (tests/property/test_witness_requests.py), and change a report or a list of ids that would
be right (tests/property/test_aggregator_requests.py).
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from epsilons.ledger.heads import Heads, Line
from epsilons.ledger.signed import SigningKey
from epsilons.service import clock
from epsilons.service.aggregator import AggregatorApp
from epsilons.service.routes import ROUTES
from epsilons.service.witness import WitnessApp, begin
from support.collections_world import World, dump, sqlite_urls, survey
from support.described import Reply, Sent, attack
from support.gateways import Gateway, declare

#: What the document leaves open: a dataset that is there, a name that has a key, a job's form.
KNOWN = {"name": "wages", "analyst": "office", "job": "0" * 32, "number": 1}
TOKEN = "5" * 64


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gateway]:
    monkeypatch.setattr(clock, "LEAST", 0.0)
    monkeypatch.setattr(clock, "EACH_QUESTION", 0.0)
    made = Gateway(declare(tmp_path))
    yield made
    made.close()


def attack_gateway(here: Gateway, examples: int, **how: Any) -> Counter[tuple[str, int]]:
    """Everyone sends in turn."""
    roles = itertools.cycle(
        [here.keys.add("office", "analyst"), here.keys.add("city", "steward"), None,
         here.keys.add("ann", "person", "wages", "person 3"), here.keys.add("watch", "operator")]
    )  # fmt: skip

    def send(sent: Sent) -> Reply:
        headers = {name: value for name, value in sent.headers.items() if name != "Authorization"}
        once = headers.pop("Idempotency-Key", None) or f"described-{sent.number}"
        shown = {name.lower(): value for name, value in headers.items()}
        return here(sent.method, sent.path, sent.body, next(roles), once, shown, sent.query)

    return attack(here("GET", "/v1/openapi.json").document, send, examples, KNOWN, **how)


def call(app: Any, sent: Sent, token: str | None = None) -> Reply:
    """One request to a service, without a socket."""
    told: list[Any] = []
    body = sent.body or b""

    async def receive() -> Any:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        told.append(message)

    headers = [(b"content-length", b"%d" % len(body))]
    headers += [] if token is None else [(b"authorization", f"Bearer {token}".encode())]
    scope = {"type": "http", "method": sent.method, "path": sent.path, "headers": headers}
    asyncio.run(app(scope, receive, send))
    return told[0]["status"], {name.decode(): value.decode() for name, value in told[0]["headers"]}, told[1]["body"]


def read_document(app: Any) -> Any:
    return json.loads(call(app, Sent(0, "GET", "/v1/openapi.json", "", None, {}))[2])


def attack_aggregator(folder: Path, examples: int, **how: Any) -> Counter[tuple[str, int]]:
    """A collection that is half through; of four requests three show the coordinator's token."""
    world = World(survey(2, {"low": 0.5, "high": 1.0}), sqlite_urls(folder, 2))
    world.send([1] * 12)
    world.coordinator.close(1)
    app = AggregatorApp(world.aggregators[0], TOKEN)
    document = read_document(app)
    closed = {
        (path, method) for path, ways in document["paths"].items() for method, way in ways.items() if way["security"]
    }
    assert len(closed) == 7

    def send(sent: Sent) -> Reply:
        token = TOKEN if sent.number % 4 else ("x" * 64 if sent.number % 8 else None)
        before = None if token == TOKEN else dump(world.stores[0])
        reply = call(app, sent, token)
        assert before is None or dump(world.stores[0]) == before, "only the coordinator changes anything here"
        return reply

    known = {"collection": world.collection.id.hex(), "level": "0", "round": "1"}
    found = attack(document, send, examples, known, **how)
    world.close()
    return found


def attack_witness(folder: Path, examples: int, **how: Any) -> Counter[tuple[str, int]]:
    """Whatever is sent, a ledger's head stays: nobody has its key."""
    heads = Heads(f"sqlite:///{folder}/witness.store")
    app = WitnessApp(heads, begin(heads, folder / "witness.key"))
    ledger, first = "1" * 32, Line(1, "0" * 64, 0)
    assert heads.add(ledger, None, [first], key=SigningKey(b"1" * 32).public)
    found = attack(read_document(app), lambda sent: call(app, sent), examples, {"ledger": ledger}, **how)
    head, _ = heads.read(ledger)
    assert head is not None
    assert head.line == first
    heads.close()
    return found


def test_what_the_document_allows_and_what_it_does_not_is_never_a_fault(here: Gateway) -> None:
    found = attack_gateway(here, 6, derandomize=True)
    assert {status for _, status in found} >= {200, 204, 401, 403, 404, 422}
    taken = {name for name, status in found if status < 300}
    assert len(taken) > len(ROUTES) // 2, "what it allows can be done"


def test_the_same_of_an_aggregator(tmp_path: Path) -> None:
    found = attack_aggregator(tmp_path, 6, derandomize=True)
    assert {status for _, status in found} >= {200, 204, 400, 401, 404, 422}


def test_the_same_of_a_witness(tmp_path: Path) -> None:
    found = attack_witness(tmp_path, 20, derandomize=True)
    assert {status for _, status in found} >= {200, 401, 404}


@pytest.mark.soak
@pytest.mark.figure("figure_12_gateway")
def test_ten_thousand_described_requests(here: Gateway, record_property: Any) -> None:
    sent = attack_gateway(here, 200).total()
    assert sent >= 10_000
    record_property("size", sent)


@pytest.mark.soak
@pytest.mark.figure("figure_12_aggregator")
def test_ten_thousand_described_requests_to_an_aggregator(tmp_path: Path, record_property: Any) -> None:
    sent = attack_aggregator(tmp_path, 640).total()
    assert sent >= 10_000
    record_property("size", sent)


@pytest.mark.soak
@pytest.mark.figure("figure_12_witness")
def test_described_requests_to_a_witness(tmp_path: Path, record_property: Any) -> None:
    """Beside the ten thousand of tests/property/test_witness_requests.py, most of which are signed."""
    sent = attack_witness(tmp_path, 1_000).total()
    assert sent >= 3_000
    record_property("size", sent)
