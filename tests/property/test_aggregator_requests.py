"""Generated requests to every route of an aggregator, by everybody: none fails, and none without the token gets in."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsilons.collection.reports import write_reports
from epsilons.service.aggregator import ROUTES, AggregatorApp
from support.collections_world import World, dump, fill, sqlite_urls, survey
from support.lengths import examples

TOKEN = "5" * 64


class Here:
    """A collection that is half through: 12 reports at one level, closed, nothing shown yet."""

    def __init__(self, folder: Any) -> None:
        self.world = World(survey(2, {"low": 0.5, "high": 1.0}), sqlite_urls(folder, 2))
        self.world.send([1] * 12)
        self.world.coordinator.close(1)
        self.app = AggregatorApp(self.world.aggregators[0], TOKEN)
        self.ids = self.world.aggregators[0].present(self.world.collection.id, 0)
        self.reports = write_reports(self.world.client.reports([1, 2])[0][0])
        self.terms = json.dumps(self.world.collection.to_dict()).encode()

    def ask(self, method: str, path: str, token: bytes | None, body: bytes) -> tuple[int, bytes, bytes]:
        sent: list[Any] = []

        async def receive() -> Any:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        headers = [(b"content-length", b"%d" % len(body))]
        headers += [] if token is None else [(b"authorization", b"Bearer " + token)]
        asyncio.run(self.app({"type": "http", "method": method, "path": path, "headers": headers}, receive, send))
        kind = dict(sent[0]["headers"])[b"content-type"]
        return sent[0]["status"], kind, sent[1]["body"]


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Here]:
    made = Here(tmp_path_factory.mktemp("requests"))
    yield made
    made.world.close()


@st.composite
def requests(draw: st.DrawFn) -> tuple[Any, str, int, bytes | None, str, bytes]:
    """A route, a method, the number in its path, a token, and how a body that would be right is changed."""
    route = draw(st.sampled_from(ROUTES))
    method = draw(st.sampled_from([route.method] * 6 + ["GET", "PUT", "POST", "DELETE", "HEAD", "\x00"]))
    token = draw(st.sampled_from([TOKEN.encode()] * 6 + [None, b"", TOKEN[:-1].encode(), b"\xff" * 64]))
    body = draw(st.sampled_from(["ids", "challenge", "reports", "terms", "none", "any"]))
    return route, method, draw(st.sampled_from([0, 1, 2, 255, 999])), token, body, draw(st.binary(max_size=200))


@examples(300)
@given(asked=requests(), cut=st.integers(0, 400), twist=st.tuples(st.integers(0, 10_000), st.integers(1, 255)))
def test_no_request_fails_and_none_gets_in_without_the_token(
    here: Here, asked: tuple[Any, str, int, bytes | None, str, bytes], cut: int, twist: tuple[int, int]
) -> None:
    route, method, number, token, kind, noise = asked
    challenge = bytes(32) + here.ids
    right = {"ids": here.ids, "challenge": challenge, "reports": here.reports, "terms": here.terms, "none": b""}
    body = bytearray(right.get(kind, noise)[: cut * 5 or None])
    if body and twist[0] < 5_000:
        body[twist[0] % len(body)] ^= twist[1]
    identity = here.world.collection.id if cut % 5 else bytes(32)
    path = fill(route, identity, number)
    closed = method == route.method and route.token and token != TOKEN.encode()
    before = dump(here.world.stores[0]) if closed else None
    status, media, reply = here.ask(method, path, token, bytes(body))
    assert status != 500
    assert status in (200, 204, 400, 401, 404, 405, 409, 413, 422)
    if status >= 400:
        assert media == b"application/problem+json"
        assert json.loads(reply)["status"] == status
    if closed:
        assert status == 401
        assert dump(here.world.stores[0]) == before


def test_a_route_that_fails_would_be_seen(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> Any:
        raise IndexError

    monkeypatch.setattr(here.world.aggregators[0], "present", fails)
    path = f"/v1/collections/{here.world.collection.id.hex()}/levels/0/present"
    assert here.ask("GET", path, TOKEN.encode(), b"")[0] == 500
