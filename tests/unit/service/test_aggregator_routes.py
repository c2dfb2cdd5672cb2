"""An aggregator's routes: what is refused is said in one shape and leaves nothing behind."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from epsilons.collection.reports import write_reports
from epsilons.service import aggregator as routes
from epsilons.service.aggregator import ROUTES, AggregatorApp
from support.collections_world import World, dump, fill, paper_survey, sqlite_urls, survey

TOKEN = "5" * 64


class Client:
    """Speaks ASGI to the application, without a network."""

    def __init__(self, app: AggregatorApp) -> None:
        self.app = app

    async def ask(
        self, method: str, path: str, body: bytes = b"", token: str | None = TOKEN, parts: list[bytes] | None = None,
        headers: list[tuple[bytes, bytes]] | None = None, gone: bool = False,
    ) -> tuple[int, dict[str, str], bytes]:  # fmt: skip
        sent: list[Any] = []
        waiting = parts or [body]
        queue: list[Any] = [
            {"type": "http.request", "body": part, "more_body": number < len(waiting) - 1 or gone}
            for number, part in enumerate(waiting)
        ]
        queue += [{"type": "http.disconnect"}] if gone else []

        async def receive() -> Any:
            return queue.pop(0)

        async def send(message: Any) -> None:
            sent.append(message)

        shown = [(b"authorization", f"Bearer {token}".encode())] if token is not None else []
        shown += [(b"content-length", str(len(body)).encode())] if parts is None and headers is None else headers or []
        await self.app({"type": "http", "method": method, "path": path, "headers": shown}, receive, send)
        told = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        return sent[0]["status"], told, sent[1]["body"]

    def __call__(self, *arguments: Any, **options: Any) -> tuple[int, dict[str, str], bytes]:
        return asyncio.run(self.ask(*arguments, **options))


@pytest.fixture
def here(tmp_path: Path) -> Iterator[tuple[World, Client]]:
    world = World(survey(3), sqlite_urls(tmp_path, 2))
    yield world, Client(AggregatorApp(world.aggregators[0], TOKEN))
    world.close()


def refused(world: World, reply: tuple[int, dict[str, str], bytes], status: int, before: Any) -> dict[str, Any]:
    assert reply[0] == status
    assert reply[1]["content-type"] == "application/problem+json"
    document: dict[str, Any] = json.loads(reply[2])
    assert document["status"] == status
    assert document["title"]
    assert dump(world.stores[0]) == before
    return document


def path(world: World, rest: str = "") -> str:
    return f"/v1/collections/{world.collection.id.hex()}{rest}"


def test_a_whole_collection(here: tuple[World, Client]) -> None:
    world, client = here
    assert json.loads(client("GET", "/v1/key", token=None)[2]) == {"key": world.aggregators[0].key}
    assert client("PUT", path(world), json.dumps(world.collection.to_dict()).encode())[0] == 200
    (reports,) = world.client.reports([1] * 12)
    status, _, body = client("POST", path(world, "/reports"), write_reports(reports[0]), token=None)
    assert (status, json.loads(body)) == (200, {"stored": 12, "refused": []})
    assert json.loads(client("GET", path(world))[2])["reports"] == {"everyone": 12}
    assert len(client("POST", path(world, "/rounds/1/close"))[2]) == 32
    ids = client("GET", path(world, "/levels/0/present"))[2]
    assert len(ids) == 12 * 16
    assert client("GET", path(world, "/levels/0/accepted"))[0] == 204
    assert len(client("POST", path(world, "/levels/0/check"), bytes(32) + ids)[2]) == 12 * 24
    sums = client("POST", path(world, "/levels/0/collect"), ids)
    assert (sums[0], len(sums[2])) == (200, 3 * 8)
    assert client("POST", path(world, "/levels/0/collect"), ids)[2] == sums[2]
    assert client("GET", path(world, "/levels/0/accepted"))[2] == ids


def test_without_the_token_nothing_but_owners_ways_is_open(here: tuple[World, Client]) -> None:
    world, client = here
    before = dump(world.stores[0])
    closed = 0
    for route in ROUTES:
        where = fill(route, world.collection.id, 1)
        for token in (None, "", TOKEN[:-1], TOKEN + "5", "é"):
            if route.token:
                reply = client(route.method, where, b"{}", token=token)
                refused(world, reply, 401, before)
                assert reply[1]["www-authenticate"] == "Bearer"
                closed += 1
    assert closed == 7 * 5


def test_there_is_nothing_elsewhere(here: tuple[World, Client]) -> None:
    world, client = here
    before = dump(world.stores[0])
    for where in ("/", "/v1", "/v1/key/", "/v1/collections/xyz", path(world, "/levels/1000/check"), path(world, "/x")):
        refused(world, client("GET", where), 404, before)
    document = refused(world, client("DELETE", path(world)), 405, before)
    assert (document["title"], document["detail"]) == ("Method not allowed.", "Allowed: PUT, GET.")
    refused(world, client("GET", path(world, "/reports")), 405, before)
    unknown = "/v1/collections/" + "0" * 64
    refused(world, client("GET", unknown), 404, before)
    refused(world, client("POST", unknown + "/reports", write_reports(world.client.reports([1])[0][0])), 404, before)
    refused(world, client("GET", path(world, "/levels/7/present")), 404, before)


def test_oversized_requests(here: tuple[World, Client], monkeypatch: pytest.MonkeyPatch) -> None:
    world, client = here
    before = dump(world.stores[0])
    where = path(world, "/reports")
    body = write_reports(world.client.reports([1] * 3)[0][0])
    small = [replace(one, most=64 if one.path.endswith("reports") else one.most) for one in ROUTES]
    monkeypatch.setattr(routes, "ROUTES", small)
    # Said beforehand, said wrongly, or not said at all.
    refused(world, client("POST", where, body, token=None), 413, before)
    refused(world, client("POST", where, token=None, parts=[body[:50], body[50:]], headers=[]), 413, before)
    refused(world, client("POST", where, token=None, headers=[(b"content-length", b"-1")]), 413, before)
    refused(world, client("POST", where, token=None, headers=[(b"content-length", b"9" * 30)]), 413, before)
    refused(world, client("GET", "/v1/key", b"x", token=None), 413, before)


def test_malformed_reports(here: tuple[World, Client]) -> None:
    world, client = here
    before = dump(world.stores[0])
    where = path(world, "/reports")
    body = write_reports(world.client.reports([1, 2])[0][0])
    for broken in (b"", b"x", body[:-1], body + b"x", body[1:], bytes(22 * 3), b"{}"):
        status, _, _ = reply = client("POST", where, broken, token=None)
        refused(world, reply, status, before)
        assert status in (400, 409)
    # One that cannot be opened is named; the other one is stored.
    one, two = world.client.reports([1, 2])[0][0]
    twisted = type(one)(one.id, one.round_number, one.level, one.sealed[::-1])
    document = refused(world, client("POST", where, write_reports([twisted]), token=None), 409, before)
    assert document["refused"] == [{"id": one.id.hex(), "reason": "unreadable"}]
    status, _, body = client("POST", where, write_reports([twisted, two]), token=None)
    assert status == 200
    assert json.loads(body) == {"stored": 1, "refused": document["refused"]}


def test_malformed_terms(here: tuple[World, Client]) -> None:
    world, client = here
    before = dump(world.stores[0])
    document = world.collection.to_dict()
    refused(world, client("PUT", path(world), b"{"), 400, before)
    refused(world, client("PUT", path(world), b"[" * 100_000), 400, before)
    for change in ({"minimum": 9}, {"format": 7}, {"aggregators": []}, {"survey": {}}, {"minimum": 11}):
        refused(world, client("PUT", path(world), json.dumps(document | change).encode()), 422, before)
    for text in (b"1", b"null", b'"x"', b"[]", b"{}"):
        refused(world, client("PUT", path(world), text), 422, before)


def test_out_of_order(tmp_path: Path) -> None:
    world = World(paper_survey(3), sqlite_urls(tmp_path, 2))
    client = Client(AggregatorApp(world.aggregators[0], TOKEN))
    first, second = world.client.reports([1] * 12)
    client("POST", path(world, "/reports"), write_reports(first[0]))
    before = dump(world.stores[0])
    ids = b"".join(sorted(report.id for report in first[0]))
    refused(world, client("POST", path(world, "/reports"), write_reports(second[0])), 409, before)
    refused(world, client("POST", path(world, "/rounds/2/close")), 409, before)
    refused(world, client("POST", path(world, "/rounds/3/close")), 404, before)
    refused(world, client("POST", path(world, "/rounds/0/close")), 404, before)
    refused(world, client("GET", path(world, "/levels/0/present")), 409, before)
    refused(world, client("POST", path(world, "/levels/0/check"), bytes(32) + ids), 409, before)
    refused(world, client("POST", path(world, "/levels/0/collect"), ids), 409, before)
    client("POST", path(world, "/rounds/1/close"))
    before = dump(world.stores[0])
    late = world.client.reports([1])[0][0]
    refused(world, client("POST", path(world, "/reports"), write_reports(late)), 409, before)
    world.close()


def test_a_request_that_ends_too_early_is_none(here: tuple[World, Client]) -> None:
    """Half a list of ids would use up the one challenge of its batch."""
    world, client = here
    world.send([1] * 24)
    world.coordinator.close(1)
    before = dump(world.stores[0])
    ids = world.aggregators[0].present(world.collection.id, 0)
    reply = client("POST", path(world, "/levels/0/check"), bytes(32) + ids[: 16 * 12], gone=True)
    refused(world, reply, 400, before)


def test_a_failure_says_nothing_of_its_cause(here: tuple[World, Client], monkeypatch: pytest.MonkeyPatch) -> None:
    world, client = here
    before = dump(world.stores[0])

    def fails(*_: Any) -> Any:
        raise ValueError("something private")

    monkeypatch.setattr(world.aggregators[0], "take", fails)
    monkeypatch.setattr(world.aggregators[0], "status", fails)
    body = write_reports(world.client.reports([1])[0][0])
    for reply in (client("POST", path(world, "/reports"), body), client("GET", path(world))):
        assert "private" not in json.dumps(refused(world, reply, 500, before))


def test_requests_that_wait_share_a_transaction(here: tuple[World, Client], monkeypatch: pytest.MonkeyPatch) -> None:
    world, client = here
    sizes: list[int] = []
    take = world.aggregators[0].take

    def counted(collection: bytes, offered: Any) -> list[str]:
        sizes.append(len(offered))
        return take(collection, offered)

    monkeypatch.setattr(world.aggregators[0], "take", counted)
    reports = world.client.reports([1] * 40)[0][0]

    async def all_at_once() -> list[Any]:
        return await asyncio.gather(
            *(client.ask("POST", path(world, "/reports"), write_reports([report])) for report in reports)
        )

    replies = asyncio.run(all_at_once())
    assert {reply[0] for reply in replies} == {200}
    assert sum(sizes) == 40
    assert len(sizes) < 20
    assert len(dump(world.stores[0])["reports"]) == 40
