"""The gateway without a network: requests that are repeated, refusals, what is logged and shown."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import epsilons as eps
from epsilons.dataset.documents import Asked
from epsilons.remote.problems import read_problem
from epsilons.service import clock, gateway, holdings, limits, routes
from epsilons.service.holdings import Holding
from epsilons.service.replies import name_job
from epsilons.service.routes import ROUTES
from epsilons.service.serving import as_json, refuse
from epsilons.statistics.catalogue import CATALOGUE
from support.gateways import Gateway, Seen, register_again

ASK = "/v1/datasets/wages/ask"
COUNT = {"statistic": "count", "arguments": {"where": "age >= 30", "share": 0.01}}


@pytest.fixture(scope="module")
def held(here: Gateway) -> dict[str, str]:
    """A key of each role."""
    made = {role: here.keys.add(role, role) for role in ("steward", "analyst")}
    return {**made, "person": here.keys.add("a person", "person", "wages", "person 3")}


def charged(here: Gateway) -> int:
    return here.app.holdings["wages"].people.ledger.count("reservations")


def refused(reply: Seen, status: int) -> dict[str, Any]:
    assert reply.status == status
    assert reply.headers["content-type"] == "application/problem+json"
    document: dict[str, Any] = reply.document
    assert document["status"] == status
    assert document["title"]
    return document


def test_people_see_their_own_dataset_and_account_alone(here: Gateway, held: dict[str, str]) -> None:
    own = here("PUT", "/v1/datasets/wages/account/level", {"level": 0.3}, held["person"])
    assert own.document["granted"] == 0.3
    people = here.app.holdings["wages"].people
    assert people.statement("person 3").granted == 300_000_000
    assert people.statement("person 4").granted == 500_000_000
    elsewhere = here.keys.add("another", "person", "somewhere", "person 3")
    for path in ("", "/account", "/releases", "/releases/1"):
        refused(here("GET", f"/v1/datasets/wages{path}", key=elsewhere), 404)
    assert here("GET", "/v1/datasets", key=elsewhere).document == {"datasets": []}
    refused(here("PUT", "/v1/datasets/wages/account/level", {"level": 0.3, "person": "person 4"}, held["person"]), 422)


def test_the_same_request_is_charged_once_and_gets_the_same_bytes(here: Gateway, held: dict[str, str]) -> None:
    question = {"statistic": "count", "arguments": {"where": "age >= 40", "share": 0.01, "fresh": True}}
    before = charged(here)
    replies = [here("POST", ASK, question, held["analyst"], "again") for _ in range(5)]
    assert {reply.status for reply in replies} == {200}
    assert len({reply.body for reply in replies}) == 1
    assert charged(here) == before + 1
    # Another key is another request, of one's own: fresh, so it pays; so is the same key of somebody else.
    assert here("POST", ASK, question, held["analyst"], "other").body != replies[0].body
    assert here("POST", ASK, question, held["steward"], "again").body != replies[0].body
    assert charged(here) == before + 3
    refused(here("POST", ASK, COUNT, held["analyst"], "again"), 422)
    for wrong in (None, "", " ", "x" * 201, "a b"):
        refused(here("POST", ASK, question, held["analyst"], wrong), 400)
    assert charged(here) == before + 3


def test_a_request_that_is_worked_on_is_not_worked_on_twice(here: Gateway, held: dict[str, str]) -> None:
    question = {"statistic": "count", "arguments": {"where": "age >= 50", "share": 0.01, "fresh": True}}
    before = charged(here)

    async def at_once() -> list[Seen]:
        return await asyncio.gather(*(here.send("POST", ASK, question, held["analyst"], "at-once") for _ in range(4)))

    replies = here.run(at_once())
    assert sorted(reply.status for reply in replies) == [200, 409, 409, 409]
    assert charged(here) == before + 1
    assert here("POST", ASK, question, held["analyst"], "at-once").status == 200
    assert charged(here) == before + 1


def test_what_a_server_died_over_is_taken_up_again(here: Gateway, held: dict[str, str]) -> None:
    question = {"statistic": "count", "arguments": {"where": "age >= 60", "share": 0.01, "fresh": True}}
    people, before = here.app.holdings["wages"].people, charged(here)
    answer = here("POST", ASK, question, held["analyst"], "died").document["release"]
    # As it stands when a server dies after the answer was stored, and before it left.
    with here.store.write() as connection:
        connection.execute("UPDATE requests SET reply = NULL, status = NULL, server = 'another' WHERE key = 'died'")
    assert here("POST", ASK, question, held["analyst"], "died").document["release"] == answer
    assert charged(here) == before + 1
    assert people.answers()[answer["number"]].to_dict() == answer


def test_a_reply_that_cannot_be_kept_is_given_all_the_same(
    here: Gateway, held: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked again, it goes on from what the ledger has: the request is not taken for one that is worked on."""
    question = {"statistic": "count", "arguments": {"where": "age >= 61", "share": 0.01, "fresh": True}}
    before, write = charged(here), here.store.write

    def refuse_later() -> Any:
        if charged(here) > before:
            raise eps.LedgerError("The store is locked.")
        return write()

    monkeypatch.setattr(here.store, "write", refuse_later)
    answer = here("POST", ASK, question, held["analyst"], "unkept")
    assert answer.status == 200
    monkeypatch.undo()
    again = here("POST", ASK, question, held["analyst"], "unkept")
    assert (again.status, again.document["release"]) == (200, answer.document["release"])
    assert charged(here) == before + 1


def test_a_document_holds_so_many_questions_at_most(here: Gateway, held: dict[str, str]) -> None:
    many = {"questions": [COUNT] * 257}
    for path in (ASK, "/v1/datasets/wages/plan"):
        assert "at most 256" in str(refused(here("POST", path, many, held["analyst"], "many"), 422))


def test_a_body_that_does_not_arrive_is_waited_for_no_longer(
    here: Gateway, held: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "BODY_SECONDS", 0.05)
    sent: list[Any] = []

    async def half() -> None:
        async def receive() -> Any:
            return await asyncio.Event().wait()

        async def send(message: Any) -> None:
            sent.append(message)

        headers = [(b"content-length", b"500"), (b"authorization", b"Bearer " + held["analyst"].encode())]
        scope = {"type": "http", "method": "POST", "raw_path": ASK.encode(), "headers": headers}
        await asyncio.wait_for(here.app(scope, receive, send), 5)

    here.run(half())
    assert sent[0]["status"] == 408


def test_an_answer_is_not_shown_before_its_turn_has_ended(here: Gateway, held: dict[str, str]) -> None:
    question = {"statistic": "count", "arguments": {"where": "age >= 33", "share": 0.01}}
    key, turns = held["analyst"], here.app.holdings["wages"].turns
    number = here("POST", ASK, question, key, "shown").document["release"]["number"]
    where = f"/v1/datasets/wages/releases/{number}"
    assert here("GET", where, key=key).status == 200
    turns.sign.shown = number - 1
    try:
        refused(here("GET", where, key=key), 404)
        listed = here("GET", "/v1/datasets/wages/releases", key=key).document["releases"]
        assert [one["number"] for one in listed][-1] == number - 1

        async def repeat() -> tuple[bool, Seen]:
            """Whether the same question, sent under another key, waits for the turn; and its reply then."""
            async with turns.short():
                turns.sign.shown = number - 1
                asked = asyncio.create_task(here.send("POST", ASK, question, key, "while-it-lasts"))
                done, _ = await asyncio.wait([asked], timeout=0.2)
            return not done, await asked

        waits, reply = here.run(repeat())
        assert waits
        assert reply.document["release"]["number"] == number
    finally:
        turns.sign.shown = None


def test_a_stored_answer_waits_for_nobody(here: Gateway, held: dict[str, str]) -> None:
    here("POST", ASK, COUNT, held["analyst"], "stored-before")

    async def during() -> Seen:
        async with here.app.holdings["wages"].turns.short():
            return await asyncio.wait_for(here.send("POST", ASK, COUNT, held["analyst"], "stored-now"), 60)

    assert here.run(during()).document["stored"] is True


def test_a_stored_answer_that_was_held_to_the_journal_is_remembered(
    here: Gateway, held: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = here("POST", ASK, COUNT, held["analyst"], "remembered-1")
    holding, most = here.app.holdings["wages"], 2 * len(first.body) + 100
    monkeypatch.setattr(holdings, "REMEMBERED", most)
    with monkeypatch.context() as changed:
        changed.setattr(Asked, "find", lambda asked: 1 / 0)
        assert here("POST", ASK, COUNT, held["steward"], "remembered-2").body == first.body
        fresh = {**COUNT, "arguments": {**COUNT["arguments"], "fresh": True}}
        refused(here("POST", ASK, fresh, held["analyst"], "remembered-3"), 500)
    for age in (41, 42, 43):
        other = {"statistic": "count", "arguments": {"where": f"age >= {age}", "share": 0.01}}
        assert [here("POST", ASK, other, held["analyst"], f"{n}-{age}").status for n in (1, 2)] == [200, 200]
        kept = sum(len(reply.body) for reply in holding._replies.values())
        assert kept == holding._remembered <= most
    assert len(holding._replies) == 2
    # A large one takes no more room than many small ones: it is not kept at all.
    monkeypatch.setattr(holdings, "REMEMBERED", 100)
    assert here("POST", ASK, other, held["analyst"], "large").status == 200
    holding.remember(b"large", as_json({"value": "x" * 200}))
    assert (holding._replies, holding._remembered) == ({}, 0)


def test_what_may_have_read_rows_leaves_when_its_slot_ends_and_nothing_else_waits(
    here: Gateway, held: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    def waited(body: Any, once: str, way: str = "ask") -> tuple[int, list[int]]:
        """(status, hours that it was held for), of slots that last an hour for each question."""
        slept.clear()
        seen = here("POST", f"/v1/datasets/wages/{way}", body, held["analyst"], once)
        return seen.status, [round(seconds / 3600) for seconds in slept]

    monkeypatch.setattr(clock.asyncio, "sleep", sleep)
    monkeypatch.setattr(Holding, "slot", lambda holding, questions: 3600.0 * questions)
    question = {"statistic": "count", "arguments": {"where": "age >= 35", "share": 0.01}}
    other = {"statistic": "count", "arguments": {"where": "age >= 36"}}
    batch = {"questions": [other, {"sql": "SELECT AVG(wage), AVG(age) FROM people"}], "share": 0.01}
    assert waited(question, "slot-1", "plan") == (200, [])
    assert waited(question, "slot-1") == (200, [1])
    assert waited(question, "slot-1") == (200, [])
    assert waited(question, "slot-2") == (200, [])
    assert waited(batch, "slot-3") == (200, [3])
    assert waited(batch, "slot-4") == (200, [])
    assert waited({"statistic": "mean", "arguments": {"column": "nothing"}}, "slot-5") == (422, [])
    # Also what fails once rows may have been read, however it fails.
    for failure, status in ((eps.DataError("The engine failed."), 422), (ValueError("failed"), 500)):

        def fail(asked: Asked, failure: Exception = failure) -> Any:
            raise failure

        monkeypatch.setattr(Asked, "ask", fail)
        assert waited({"statistic": "count", "arguments": {"where": "age >= 37"}}, "slot-6") == (status, [1])


def test_a_long_question_is_a_job_that_tells_how_far_it_is(
    here: Gateway, held: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    question = {"statistic": "count", "arguments": {"where": "age >= 41", "share": 0.01, "fresh": True}}
    key, before, go_on, told = held["analyst"], charged(here), asyncio.Event(), []

    async def sleep(seconds: float) -> None:
        await go_on.wait()

    async def follow() -> Seen:
        async def send(*arguments: Any, **named: Any) -> Seen:
            told.append(await here.send(*arguments, **named))
            return told[-1]

        first = await send("POST", ASK, question, key, "job", headers={"prefer": "respond-async"})
        refused(await send("POST", ASK, question, key, "job", headers={"prefer": "respond-async"}), 409)
        place = first.headers["location"]
        while (await send("GET", place, key=key)).document["state"] != "working":
            await asyncio.get_running_loop().run_in_executor(None, lambda: None)
        assert told[-1].document["of"] == 3600
        refused(await here.send("GET", place, key=held["steward"]), 404)
        go_on.set()
        while (await send("GET", place, key=key)).status == 202:
            await asyncio.get_running_loop().run_in_executor(None, lambda: None)
        assert {one.status for one in told[:-1] if one.status != 409} == {202}
        return told[-1]

    monkeypatch.setattr(clock.asyncio, "sleep", sleep)
    monkeypatch.setattr(Holding, "slot", lambda holding, questions: 3600.0)
    answer = here.run(follow())
    assert (answer.status, answer.document["stored"], charged(here)) == (200, False, before + 1)
    for prefer in ("respond-async", "wait=1, respond-async"):
        assert here("POST", ASK, question, key, "job", headers={"prefer": prefer}).body == answer.body
    assert charged(here) == before + 1
    # A refusal stays findable; the request itself, sent again, is looked at anew.
    wrong = {"questions": [{"statistic": "mean", "arguments": {"column": "nothing"}}]}
    seen = here("POST", ASK, wrong, key, "wrong", headers={"prefer": "respond-async, wait=60"})
    assert refused(seen, 422) == refused(here("GET", f"/v1/jobs/{name_job('analyst', 'wrong')}", key=key), 422)
    refused(here("POST", ASK, wrong, key, "wrong"), 422)


def test_questions_at_a_time_and_in_the_queue_are_limited(
    here: Gateway, held: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those that nobody waits for. What is refused is not noted, and costs nothing."""
    before = charged(here)
    ages = range(50, 56)
    asked = [{"statistic": "count", "arguments": {"where": f"age >= {age}.5", "share": 0.01}} for age in ages]

    async def send() -> list[Seen]:
        async with here.app.holdings["wages"].turns.short():
            return [
                await here.send("POST", ASK, one, held["analyst"], f"limit-{age}", headers={"prefer": "respond-async"})
                for age, one in zip(ages, asked, strict=True)
            ]

    async def end() -> None:
        await asyncio.gather(*here.app._going_on)

    with monkeypatch.context() as changed:
        changed.setitem(limits.LIMITS, "analyst", limits.Limits(1 << 18, 2))
        assert [one.status for one in here.run(send())] == [202, 202, 429, 429, 429, 429]
        here.run(end())
    with monkeypatch.context() as changed:
        changed.setattr(clock, "WAITING", 1)
        seen = here.run(send())
        # The first two are stored by now; of the others one waits.
        assert [one.status for one in seen] == [200, 200, 202, 503, 503, 503]
        assert int(seen[-1].headers["retry-after"]) >= 1
        here.run(end())
    assert charged(here) == before + 3


def test_a_question_that_waits_ends_with_its_key(here: Gateway, held: dict[str, str]) -> None:
    """Whoever revokes a key does not pay for what it still had in the queue."""
    key, other = (here.keys.add(f"revoked {number}", "analyst") for number in range(2))
    numbers = {one.name: one.number for one in here.keys.list()}
    asked = [{"statistic": "count", "arguments": {"where": f"age >= {age}", "share": 0.01}} for age in (71, 72)]
    before = charged(here)

    async def during() -> list[Seen]:
        async with here.app.holdings["wages"].turns.short():
            sent = [
                asyncio.create_task(here.send("POST", ASK, one, whose, "waits"))
                for one, whose in zip(asked, (key, other), strict=True)
            ]
            await asyncio.wait(sent, timeout=0.2)
            here.keys.revoke(numbers["revoked 0"])
        return [await one for one in sent]

    ended, answered = here.run(during())
    assert "Nothing was charged." in refused(ended, 401)["detail"]
    assert answered.status == 200
    assert charged(here) == before + 1


def test_who_plans_much_keeps_nobody_from_their_page(
    here: Gateway, held: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits for a turn waits for one plan at most, however many were asked for before."""
    plan = Asked.plan

    def slowly(asked: Asked, past: bool) -> dict[str, Any]:
        time.sleep(0.1)
        return plan(asked, past)

    async def during() -> list[int]:
        async with here.app.holdings["wages"].turns.short():
            path = "/v1/datasets/wages"
            plans = [asyncio.create_task(here.send("POST", f"{path}/plan", COUNT, held["analyst"])) for _ in range(5)]
            await asyncio.wait(plans, timeout=0.2)
            page = asyncio.create_task(here.send("GET", f"{path}/account", key=held["person"]))
            await asyncio.wait([page], timeout=0.2)
        assert (await page).status == 200
        before = sum(one.done() for one in plans)
        return [before, *[(await one).status for one in plans]]

    monkeypatch.setattr(Asked, "plan", slowly)
    assert here.run(during()) == [1, *[200] * 5]


def test_who_lists_many_answers_keeps_nobody_waiting(
    here: Gateway, held: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where requests are taken thousands of answers are not written."""
    question = {"statistic": "count", "arguments": {"where": "age >= 44", "share": 0.01}}
    assert here("POST", ASK, question, held["analyst"], "one").status == 200
    write, threads = routes._write_release, set[str]()

    def note(*arguments: Any) -> Any:
        threads.add(threading.current_thread().name)
        return write(*arguments)

    monkeypatch.setattr(routes, "_write_release", note)
    assert here("GET", "/v1/datasets/wages/releases", key=held["analyst"]).document["releases"]
    assert all(name.startswith("gateway_") for name in threads), threads


def test_quotas_go_by_the_name_of_the_key(here: Gateway) -> None:
    key, ledger = here.keys.add("small office", "analyst"), here.app.holdings["wages"].people.ledger
    ledger.set_quota("small office", questions=1)
    asked = [{"statistic": "count", "arguments": {"where": f"age >= {age}", "share": 0.01}} for age in (21, 22)]
    assert here("POST", ASK, asked[0], key, "1").status == 200
    document = refused(here("POST", ASK, asked[1], key, "2"), 429)
    assert (document["code"], document["kind"]) == ("ledger", "QuotaError")
    assert ledger.history()[-1].analyst == "small office"
    document = refused(here("POST", ASK, {**COUNT, "arguments": {"analyst": "office"}}, key, "3"), 422)
    assert document["title"] == "A server takes no 'analyst'."


def test_what_is_logged_names_neither_people_nor_questions(
    here: Gateway, held: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    secrets = ["person 3", "12345.678", "secret'); DROP", held["analyst"], held["person"], "a person"]
    bodies: list[Any] = [
        {"statistic": "count", "arguments": {"where": "wage >= 12345.678", "share": 0.01}},
        {"statistic": "count", "arguments": {"where": "union = 'secret''); DROP'", "share": 0.01}},
        {"statistic": "count", "arguments": {"where": "id = 'person 3'", "share": 0.01}},
        {"statistic": "secret'); DROP"},
        b"{secret'); DROP",
    ]
    for place, body in enumerate(bodies):
        here("POST", ASK, body, held["analyst"], f"logged-{place}")
    here("GET", "/v1/datasets/wages/account", key=held["person"])
    here("GET", "/v1/datasets/secret'); DROP", key=held["person"])
    logged = [record.getMessage() for record in caplog.records if record.name == "epsilons.gateway"]
    assert len(logged) == len(bodies) + 2
    assert all(re.fullmatch(r"[a-z]+ [a-z-]+ \d{3} \d+ ms \d+ bytes", line) for line in logged)
    assert not [word for word in secrets if word in caplog.text]
    shown = here("GET", "/metrics", key=held["steward"]).body.decode()
    assert not [word for word in secrets if word in shown]


def test_a_failure_says_nothing_of_its_cause(
    here: Gateway, held: dict[str, str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(asked: Asked) -> Any:
        raise ValueError("could not convert 'ann'")

    monkeypatch.setattr(Asked, "find", fail)
    document = refused(here("POST", ASK, COUNT, held["analyst"], "fails"), 500)
    assert "ann'" not in json.dumps(document) + caplog.text
    monkeypatch.undo()
    assert here("POST", ASK, COUNT, held["analyst"], "fails").status == 200
    # Nor does a refusal that cannot be told: outside of the gateway it would stand in the server's log, with its trace.
    monkeypatch.setattr(gateway, "refuse", lambda error, whole: fail(error))
    document = refused(here("GET", "/v1/datasets/wages/plan", key=held["analyst"], query="statistic=ann"), 500)
    assert "ann'" not in json.dumps(document) + caplog.text


def test_bodies_and_requests_at_once_are_limited_by_role(
    here: Gateway, held: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    large = b" " * (limits.LIMITS["analyst"].body + 1)
    refused(here("POST", ASK, large, held["analyst"], "large"), 413)
    assert here("POST", ASK, large, held["steward"], "large").status == 422
    refused(here("GET", "/health", b"x"), 413)
    monkeypatch.setitem(limits.LIMITS, "analyst", limits.Limits(1 << 10, 2))

    async def several() -> list[int]:
        async with here.app.holdings["wages"].turns.short():
            path = "/v1/datasets/wages"
            waiting = [asyncio.create_task(here.send("GET", path, key=held["analyst"])) for _ in range(2)]
            await asyncio.wait(waiting, timeout=0.2)
            third = await here.send("GET", path, key=held["analyst"])
            other = await here.send("GET", "/v1/me", key=held["steward"])
        return [third.status, other.status, *[(await one).status for one in waiting]]

    assert here.run(several()) == [429, 200, 200, 200]


#: Nothing of it is a question; each is to be refused in one shape, and to charge nobody.
HOSTILE: list[Any] = [
    b"", b"null", b"[]", b"{", b"\xff", b"NaN", b"[" * 5_000, b'{"statistic": "mean", "arguments": {"share": NaN}}',
    {}, {"statistic": 1}, {"statistic": []}, {"statistic": "mean", "sql": "SELECT 1"}, {"statistic": "count", "x": 1},
    {"sql": 1}, {"sql": "SELECT * FROM people"}, {"sql": "SELECT COUNT(*) FROM read_csv('/etc/passwd')"},
    {"sql": "SELECT COUNT(*) FROM people; DROP TABLE people"}, {"sql": "SELECT AVG(wage) FROM people", "arguments": []},
    {"questions": []}, {"questions": 1}, {"questions": [1]}, {"questions": [{}]}, {"questions": [COUNT], "share": "x"},
    {"questions": [{"questions": [COUNT]}]}, {"questions": [{"statistic": "count", "planned": {}, "arguments": 3}]},
    {"sql": "SELECT COUNT(*) FROM people", "arguments": {"query": "x"}},
    {"statistic": "count", "planned": {"mark": 1}}, {"statistic": "count", "arguments": {"planned": 1}},
    {"statistic": "count", "planned": {"mark": "x", "past": True, "mechanism": "x"}},
    *({"statistic": "mean", "arguments": {"column": "wage", **arguments}} for arguments in (
        {"share": -1}, {"share": 10**400}, {"share": True}, {"share": [1]}, {"share": {"float": "nan"}},
        {"bounds": "x"}, {"bounds": [1, 0]}, {"bounds": [0, 10**400]}, {"bounds": {"float": "inf"}},
        {"by": 3}, {"by": {"region": "north"}}, {"by": {"region": [[["a"]]]}}, {"by": {"region": [None]}},
        {"by": {"nothing": [1]}}, {"where": 1}, {"where": "age >= (SELECT 1)"}, {"where": "age >= 1 --"},
        {"where": "\x00"}, {"where": "(" * 3000}, {"where": "pragma_version() = 1"},
        {"assume": {"relation": "x"}}, {"assume": {"relation": 10**30}}, {"assume": {"relation": [1]}},
        {"assume": {"date": "x"}}, {"assume": {"x": "y"}}, {"mechanism": {"fraction": "1/0"}},
        {"threshold": {"decimal": "sNaN"}}, {"fresh": "yes"}, {"entropy": 1}, {"analyst": "x"}, {"self": 1},
        {"statistic": 1}, {"spread": 1e999}, {"column": ["wage"]}, {"column": {"tuple": "x"}}, {"name": "x"},
    )),
    {"statistic": "histogram", "arguments": {"column": "wage", "edges": [0, {"float": "nan"}]}},
    {"statistic": "histogram", "arguments": {"column": "wage", "edges": {"x": 1}}},
    {"statistic": "quantile", "arguments": {"column": "wage", "q": "x"}},
    {"statistic": "kth_largest", "arguments": {"column": "wage", "k": -1}},
    {"statistic": "linear_regression", "arguments": {"target": "wage", "features": {"age": 1}}},
    {"statistic": "logistic_regression", "arguments": {"target": "union", "features": ["age"], "classes": [[1], {}]}},
]  # fmt: skip


def test_what_is_no_question_is_refused_in_one_shape(here: Gateway, held: dict[str, str]) -> None:
    before, otherwise = charged(here), []
    for place, body in enumerate(HOSTILE):
        for way in ("ask", "plan"):
            seen = here("POST", f"/v1/datasets/wages/{way}", body, held["steward"], f"hostile-{place}")
            otherwise += [] if seen.status == 422 and refused(seen, 422) else [(way, body, seen.body)]
    assert otherwise == []
    assert charged(here) == before


def test_only_a_release_that_tells_a_relation_of_everyone_is_taken_for_one(here: Gateway, held: dict[str, str]) -> None:
    """What levels tell of a part of the rows, or of a median, is no distance of everyone's means."""
    mean = {"column": "wage", "bounds": [0, 100], "share": 0.01}
    mixed = {**mean, "mechanism": "mixed"}
    others: list[tuple[str, dict[str, Any]]] = [
        ("mean", {"where": "age >= 1"}),
        ("sum", {"where": "age >= 1"}),
        ("sum", {"by": {"region": ["north", "south"]}}),
        ("median", {"missing": "center"}),
    ]
    for place, (name, more) in enumerate(others):
        asked = {"statistic": name, "arguments": {**mixed, **more}}
        found = here("POST", ASK, asked, held["analyst"], f"no-relation-{place}").document["release"]
        before, assume = charged(here), {"assume": {"relation": found["number"]}, "missing": "center"}
        for way in ("ask", "plan"):
            body = {"statistic": "mean", "arguments": {**mean, **assume}}
            seen = here("POST", f"/v1/datasets/wages/{way}", body, held["analyst"], f"taken-{place}")
            assert "found no relation" in refused(seen, 422)["title"]
        assert charged(here) == before


def test_an_error_is_the_same_on_the_other_side() -> None:
    hint = ("try ", eps.errors.Argument("bounds", (0, 100)), " or ", eps.errors.Argument("by", {"a": [1, ...]}))
    for error in (
        eps.PlanError("What.", rule="Rule.", suggest=hint), eps.BudgetExceeded("Nothing left."),
        eps.ledger.QuotaError("Used up."), eps.DataError(("The ", eps.errors.Argument("column")), suggest="x"),
    ):  # fmt: skip
        read = read_problem(json.loads(refuse(error).body), 422)
        assert (type(read), read.parts, str(read)) == (type(error), error.parts, str(error))
    for plain in (None, [], {}, {"title": "T", "code": "plan"}, {"title": "T", "kind": "x", "parts": 3}):
        assert isinstance(read_problem(plain, 500), eps.EpsilonsError)


def test_the_document_names_every_route(here: Gateway) -> None:
    document = here("GET", "/v1/openapi.json").document
    listed = {one["operationId"]: one for ways in document["paths"].values() for one in ways.values()}
    assert set(listed) == {route.name for route in ROUTES}
    assert all("(" not in path for path in document["paths"])
    assert "/v1/datasets/{name}/releases/{number}" in document["paths"]
    titles = {one.get("title") for one in document["components"]["schemas"]["Question"]["oneOf"]}
    assert titles >= set(CATALOGUE)
    assert [one["name"] for one in listed["ask"]["parameters"]] == ["name", "Idempotency-Key", "Prefer"]
    assert "/v1/jobs/{job}" in document["paths"]
    assert [name for name, one in listed.items() if "202" in one["responses"]] == ["ask", "job"]


def test_there_is_nothing_elsewhere(here: Gateway, held: dict[str, str], tmp_path: Path) -> None:
    for path in ("/v1", "/v1/datasets/", "/v1/datasets/a/b/c", "/v1/datasets/wages/releases/x", "/v1/../v1/me"):
        refused(here("GET", path, key=held["steward"]), 404)
    refused(here("GET", "/v1/datasets/other", key=held["steward"]), 404)
    refused(here("GET", "/v1/datasets/wages/releases/999999", key=held["steward"]), 404)
    for way, allowed in (("/v1/datasets", "GET"), ("/v1/keys/1", "DELETE"), ("/v1/session", "DELETE, POST")):
        seen = here("PUT", way, key=held["steward"])
        assert refused(seen, 405)["detail"] == f"Allowed: {allowed}."
        assert seen.headers["allow"] == allowed
    # A database need not take such a text, not even to find that it knows none like it.
    for method, way in (("PUT", "datasets/wages/quotas/%00"), ("GET", "datasets/wag%00es")):
        assert refused(here(method, f"/v1/{way}", key=held["steward"]), 404)["title"] == "There is nothing here."


def test_a_dataset_that_is_registered_anew_is_opened_anew(here: Gateway, held: dict[str, str]) -> None:
    """The last test of this file: from here on the dataset is another version."""
    file = here.folder / "wages.toml"
    declared = file.read_text()
    for served, other in (('name = "wages"', 'name = "other"'), ("wages.ledger", "other.ledger")):
        file.write_text(declared.replace(served, other))
        refused(here("POST", "/v1/datasets/wages/registration", {"confirm": True}, held["steward"]), 409)
    file.write_text(declared)
    before = here("POST", ASK, COUNT, held["analyst"], "version-1").document["release"]
    register_again(here.folder)
    after = here("POST", ASK, COUNT, held["analyst"], "version-2").document
    assert (before["version"], after["release"]["version"], after["stored"]) == ("1", "2", False)
    listed = here("GET", "/v1/datasets/wages/releases", key=held["analyst"]).document["releases"]
    assert {one["release"]["version"] for one in listed} == {"1", "2"}
    assert here("GET", "/v1/datasets/wages", key=held["analyst"]).document["version"] == "2"
