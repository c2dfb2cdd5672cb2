"""Figures 6 and 12 at a gateway: one request, sent again and again; requests made up from its own description."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from epsilons.service import clock
from epsilons.service.keys import ROLES
from epsilons.service.replies import name_job
from support.gateways import Gateway, Seen, declare

ASK = "/v1/datasets/wages/ask"
#: What may stand where something else is expected.
VALUES = (None, True, 0, -1, 1e308, 10**40, "", "wage", "age >= 30", "'; DROP TABLE people --", "\x00", "é" * 99, [],
          {}, [[]], {"float": "nan"}, {"date": "x"}, [0, 100], {"wage": [0, 1]}, 0.01, "count", "auto")  # fmt: skip


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gateway]:
    monkeypatch.setattr(clock, "LEAST", 0.0)
    monkeypatch.setattr(clock, "EACH_QUESTION", 1e-6)  # a slot of nothing has no doubling
    made = Gateway(declare(tmp_path))
    yield made
    made.close()


def repeat(here: Gateway, times: int) -> None:
    """In bursts, as a client does that hears nothing; now and then its worker has died, and nothing is known of it."""
    key, ledger = here.keys.add("office", "analyst"), here.app.holdings["wages"].people.ledger
    question = {"statistic": "count", "arguments": {"where": "age >= 40", "share": 0.01, "fresh": True}}
    answers: set[bytes] = set()

    async def burst() -> list[Seen]:
        return await asyncio.gather(*(here.send("POST", ASK, question, key, "the-same") for _ in range(8)))

    for sent in range(0, times, 8):
        if sent % 80 == 40:
            with here.store.write() as connection:
                lost = "UPDATE requests SET reply = NULL, status = NULL, server = 'gone'"
                connection.execute(lost if sent % 160 == 40 else "DELETE FROM requests")
        replies = here.run(burst())
        assert {reply.status for reply in replies} <= {200, 409}
        answers |= {re.sub(rb'"stored": \w+', b"", reply.body) for reply in replies if reply.status == 200}
    assert len(answers) == 1
    assert ledger.count("reservations") == 1


def test_a_request_that_is_repeated_is_charged_once(here: Gateway) -> None:
    repeat(here, 400)


@pytest.mark.soak
@pytest.mark.figure("figure_6")
def test_ten_thousand_repeats(here: Gateway, record_property: Any) -> None:
    repeat(here, 10_000)
    record_property("size", 10_000)


def make_up(here: Gateway, seed: int, times: int) -> set[int]:
    """Requests to every way of the description, by everyone, with entries that it names and values that fit or not."""
    drawn, document = random.Random(seed), here("GET", "/v1/openapi.json").document
    keys = [None, here.keys.add("s", "steward"), here.keys.add("a", "analyst")]
    keys += [here.keys.add("p", "person", "wages", "person 3"), here.keys.add("o", "operator")]
    assert len(keys) == len(ROLES) + 1
    ways = [(path, method) for path, ways in document["paths"].items() for method in ways]
    kinds = document["components"]["schemas"]["Question"]["oneOf"]
    statuses = set()

    def question() -> Any:
        kind = drawn.choice(kinds)
        made = {name: about.get("const", drawn.choice(VALUES)) for name, about in kind["properties"].items()}
        known = kind["properties"].get("arguments", {}).get("properties", {})
        named = drawn.sample(sorted(known), min(len(known), drawn.randrange(5)))
        made["arguments"] = {name: drawn.choice(VALUES) for name in named}
        left_out = [name for name in made if drawn.random() < 0.3 and name not in kind["required"]]
        return {name: value for name, value in made.items() if name not in left_out}

    for number in range(times):
        path, method = drawn.choice(ways)
        name = drawn.choice(["wages", "wages", "wages", "other", "%00", "%2e%2e"])
        path = path.replace("{name}", name).replace("{number}", drawn.choice(["1", "0", "x", "9" * 18]))
        path = path.replace("{analyst}", "a").replace("{job}", drawn.choice(["x", "0" * 32, name_job("a", "again")]))
        bodies = [drawn.choice(VALUES), {"questions": [question(), question()]}, {"level": drawn.choice(VALUES)}]
        body = question() if drawn.random() < 0.6 else drawn.choice(bodies)
        once = drawn.choice([f"made-up-{seed}-{number}", "again", "", None])
        headers = {"prefer": drawn.choice(["", "respond-async, wait=9", "wait=x", "respond-async;"])}
        sent = None if method == "get" else body
        seen = here(method.upper(), path, sent, drawn.choice(keys), once, headers)
        assert seen.status not in (500, 503), (method, path, body, seen.body)
        kind = {"/metrics": "text/plain"}.get(path, "application/json")
        kind = kind if seen.status < 300 else "application/problem+json"
        assert seen.status == 204 or seen.headers["content-type"].startswith(kind)
        assert kind.startswith("text/") or seen.status == 204 or isinstance(seen.document, dict)
        statuses.add(seen.status)
    return statuses


def test_no_made_up_request_breaks_the_gateway(here: Gateway) -> None:
    assert make_up(here, 1, 600) >= {200, 401, 403, 404, 422}


@pytest.mark.soak
@pytest.mark.figure("figure_12_gateway")
def test_ten_thousand_made_up_requests(here: Gateway, record_property: Any) -> None:
    assert make_up(here, 2, 10_000) >= {200, 401, 403, 404, 422}
    record_property("size", 10_000)
