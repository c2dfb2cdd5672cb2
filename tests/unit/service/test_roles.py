"""Who may do what at a gateway: every role against every route, links and cookies, other sites, limits."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

import epsilons as eps
from epsilons.remote.keys import make_key
from epsilons.service import clock, limits, routes, sessions
from epsilons.service.gateway import GatewayApp, Route, Visit
from epsilons.service.holdings import LANES
from epsilons.service.keys import ROLES
from epsilons.service.limits import Limits, Rates
from epsilons.service.pages import ways as page_ways
from epsilons.service.pages.ways import PAGES
from epsilons.service.replies import name_job
from epsilons.service.routes import ROUTES
from epsilons.service.serving import Reply, as_json
from support.gateways import Gateway, Seen, declare, write_older

PLACE = "/v1/datasets/wages"
COUNT = {"statistic": "count", "arguments": {"where": "age >= 30", "share": 0.01}}
LOCAL = {"host": "127.0.0.1:8000"}

_ALL, _HOLD, _ASK = {"", *ROLES}, {"steward", "analyst", "person"}, {"steward", "analyst"}
#: {route: (who may take it, a body that it takes)}. A route that is not listed here fails the test.
ALLOWED: dict[str, tuple[set[str], Any]] = {
    "health": (_ALL, None), "openapi": (_ALL, None),
    "enter": (_ALL, {"link": "?"}), "leave": ({"person"}, None),
    "metrics": ({"steward", "operator"}, None),
    "me": (_HOLD, None), "datasets": (_HOLD, None), "dataset": (_HOLD, None),
    "releases": (_HOLD, None), "release": (_HOLD, None),
    "remaining": (_ASK, None), "plan": (_ASK, COUNT), "planned": (_ASK, None), "ask": (_ASK, COUNT),
    "job": ({"analyst"}, None),  # stewards have jobs of their own, and do not find this one
    "account": ({"person"}, None), "level": ({"person"}, {"level": 0.25}), "leaving": ({"person"}, {}),
    "register": ({"steward"}, {}), "levels": ({"steward"}, {"levels": [["person 9", 0.25]]}),
    "withdrawals": ({"steward"}, {"people": ["person 8"]}), "ledger": ({"steward"}, None),
    "history": ({"steward"}, None), "budgets": ({"steward"}, None), "change": ({"steward"}, None),
    "verify": ({"steward"}, {}), "quotas": ({"steward"}, None),
    "quota": ({"steward"}, {"epsilon": 0.5, "questions": 3}),
    "link": ({"steward"}, {"person": "person 7"}), "keys": ({"steward"}, None),
    "key": ({"steward"}, {"name": "new", "role": "analyst"}), "revoke": ({"steward"}, None),
}  # fmt: skip
#: The job is the question of the fixture `held`.
PARTS_OF_PATHS = {"name": "wages", "analyst": "small%20office", "job": name_job("analyst", "first")}


@pytest.fixture(scope="module")
def held(here: Gateway) -> dict[str, str]:
    """A key of each role."""
    made = {role: here.keys.add(role, role) for role in ("steward", "analyst", "operator")}
    made["person"] = here.keys.add("a person", "person", "wages", "person 3")
    here.keys.add("small office", "analyst")
    assert here("POST", f"{PLACE}/ask", COUNT, made["analyst"], "first").status == 200
    return made


def give_link(here: Gateway, person: str) -> str:
    """What stands behind # in a personal link."""
    people = here.app.holdings["wages"].people
    return here.app.sessions.issue(people._registry, "wages", person).path.partition("#")[2]


def come_in(here: Gateway, link: str) -> dict[str, str]:
    """The headers of a browser that came by a link: its cookie, and the word that it repeats."""
    seen = here("POST", "/v1/session", {"link": link}, headers=LOCAL)
    assert seen.status == 200, seen.body
    cookie = seen.headers["set-cookie"].partition(";")[0]
    return {**LOCAL, "cookie": cookie, "x-csrf-token": seen.document["csrf"]}


def walk(here: Gateway, route: Route, once: str, key: str | None = None, headers: dict[str, str] | None = None) -> Seen:
    """A request that the route answers, for whoever may take it."""
    path = re.sub(r"\(\?P<(\w+)>.*?\)(?=/|$)", lambda part: PARTS_OF_PATHS.get(part[1], "1"), route.path)
    body = ALLOWED[route.name][1]
    if route.name == "enter":
        body = {"link": give_link(here, "person 20")}
    if route.name == "key":
        body = {"name": once, "role": "analyst"}
    if route.name == "revoke":
        here.keys.add(f"to end {once}", "analyst")
        path = f"/v1/keys/{here.keys.list()[-1].number}"
    return here(route.method, path, body, key, once, headers)


def test_every_role_against_every_route(here: Gateway, held: dict[str, str]) -> None:
    assert [route.name for route in ROUTES if route.name not in ALLOWED] == [], "who may take it? Say so in ALLOWED"
    ended = here.keys.add("ended", "steward")
    here.keys.revoke(here.keys.list()[-1].number)
    ended_link = come_in(here, give_link(here, "person 10"))
    here.keys.revoke(here.keys.list()[-1].number)
    link = give_link(here, "person 11")  # is no key
    person, other = (come_in(here, give_link(here, name)) for name in ("person 12", "person 13"))
    coming: list[tuple[str, str | None, dict[str, str] | None]] = [
        *((role, held[role], None) for role in ROLES), ("person", None, person), ("person", None, other),
        *(("", key, None) for key in (None, "", "é", make_key(), ended, link, held["steward"][:-1])),
        ("", None, ended_link), ("", None, {**LOCAL, "cookie": "epsilons=x.y"}),
        ("", None, {**LOCAL, "cookie": f"epsilons={make_key()}." + "0" * 64}),
        ("", make_key(), person),  # a wrong key is not made good by a cookie
    ]  # fmt: skip
    for route in ROUTES:
        if route.name == "leave":
            continue
        for place, (role, key, headers) in enumerate(coming):
            seen = walk(here, route, f"{route.name}-{place}", key, headers)
            wanted = 200 if role in ALLOWED[route.name][0] else 403 if role else 401
            wanted = 404 if (route.name, role) == ("job", "steward") else wanted
            assert seen.status == wanted, (route.name, role, place, seen.body)
            for name in ("cache-control", "content-security-policy", "referrer-policy", "x-frame-options"):
                assert seen.headers[name]
    (leaving,) = (route for route in ROUTES if route.name == "leave")
    for place, (role, key, headers) in enumerate(coming):
        wanted = 204 if role == "person" else 403 if role else 401
        assert walk(here, leaving, f"leave-{place}", key, headers).status == wanted
    assert here("GET", "/v1/me", headers=person).status == 401, "who left is gone"


def test_a_route_that_names_no_role_is_open_to_nobody(
    here: Gateway, held: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def handle(app: GatewayApp, visit: Visit) -> Reply:
        return as_json("let in")

    forgotten = Route("none", "GET", "/v1/new", handle, "Somebody forgot who may.")
    monkeypatch.setattr(here.app, "routes", (*here.app.routes, forgotten))
    assert [here("GET", "/v1/new", key=key).status for key in (None, *held.values())] == [401, *[403] * 4]


def test_a_job_is_its_own_holder_s_alone(here: Gateway, held: dict[str, str]) -> None:
    other, question = here.keys.add("another office", "analyst"), {**COUNT, "arguments": {"where": "age >= 33"}}
    for name, key in (("steward", held["steward"]), ("analyst", held["analyst"])):
        fresh = {**question, "arguments": {**question["arguments"], "share": 0.01, "fresh": True}}
        asked = here("POST", f"{PLACE}/ask", fresh, key, "mine")
        job = f"/v1/jobs/{name_job(name, 'mine')}"
        assert (asked.status, here("GET", job, key=key).body) == (200, asked.body)
        strangers = [one for one in (other, *held.values()) if one != key]
        assert {here("GET", job, key=one).status for one in strangers} == {403, 404}
        assert here("GET", job, key=other).status == 404
        assert here("GET", job, key=other).body == here("GET", f"/v1/jobs/{'0' * 32}", key=other).body


def test_a_person_sees_their_own_account_and_nobody_else_s(here: Gateway, held: dict[str, str]) -> None:
    people = here.app.holdings["wages"].people
    one, other = (come_in(here, give_link(here, name)) for name in ("person 30", "person 31"))
    assert here("PUT", f"{PLACE}/account/level", {"level": 0.123}, headers=one).status == 200
    assert here("PUT", f"{PLACE}/account/level", {"level": 0.321}, headers=other).status == 200
    assert here("GET", f"{PLACE}/account", headers=one).document["granted"] == 0.123
    assert here("GET", f"{PLACE}/account", headers=other).document["granted"] == 0.321
    assert (people.statement("person 30").granted, people.statement("person 31").granted) == (123_000_000, 321_000_000)
    # The next charge follows it.
    question = {"statistic": "count", "arguments": {"where": "age >= 31", "share": 0.1, "mechanism": "stretching"}}
    assert here("POST", f"{PLACE}/ask", question, held["analyst"], "follows").status == 200
    told = here("GET", f"{PLACE}/account", headers=one).document
    assert told["uses"][-1]["granted"] == 0.123
    assert told["spent"] <= 0.123
    assert here("POST", f"{PLACE}/account/withdrawal", {}, headers=one).document["state"] == "withdrawn"
    assert here("GET", f"{PLACE}/account", headers=other).document["state"] == "active"
    # Nobody has a way to name somebody else: the account is that of the cookie or key.
    for path in ("/account/person 31", "/account?person=person%2031", "/people/person%2031", "/statement/person%2031"):
        for key in held.values():
            assert here("GET", PLACE + path, key=key).status == 404
    shown = here("GET", "/v1/keys", key=held["steward"]).body.decode()
    assert "person 3" not in shown
    for wrong in (1e999, "nothing", -1, 0, None, [], {}, True):
        assert here("PUT", f"{PLACE}/account/level", {"level": wrong}, headers=other).status == 422, wrong
    assert people.statement("person 31").granted == 321_000_000


def test_whoever_names_a_wrong_dataset_is_told_which_there_are_but_for_people(
    here: Gateway, held: dict[str, str]
) -> None:
    named = here("GET", "/v1/datasets", key=held["analyst"]).document["datasets"]
    told = here("GET", "/v1/datasets/nothing", key=held["analyst"])
    assert (told.status, told.document["detail"]) == (404, f"Served here: {', '.join(named)}.")
    person = come_in(here, give_link(here, "person 30"))
    assert "detail" not in here("GET", "/v1/datasets/nothing/account", headers=person).document
    # Nor those whose own dataset is not served any more.
    former = here.keys.add("formerly here", "person", "nothing", "person 30")
    for path in ("", "/account", "/releases"):
        told = here("GET", f"/v1/datasets/nothing{path}", key=former)
        assert (told.status, "detail" in told.document) == (404, False)


def test_a_link_is_shown_once_expires_and_ends_with_the_next_one(
    here: Gateway, held: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = here("POST", f"{PLACE}/links", {"person": "person 40", "days": 1}, held["steward"], headers=LOCAL).document
    assert made["link"].startswith("http://127.0.0.1:8000/enter#eps_")
    link = made["link"].partition("#")[2]
    kept = b"".join(file.read_bytes() for file in here.folder.glob("gateway.store*"))
    assert link.encode() not in kept
    first = come_in(here, link)
    assert first["cookie"].partition("=")[2].partition(".")[0].encode() not in kept
    listed = here("GET", "/v1/keys", key=held["steward"]).document["keys"][-1]
    assert (listed["kind"], listed["expires"], listed["number"]) == ("link", made["expires"], made["number"])
    assert here("GET", f"{PLACE}/account", headers=first).status == 200
    # The same person, however the id is written: the former link and its cookie end.
    again = give_link(here, " Person 40 ")
    assert here("GET", f"{PLACE}/account", headers=first).status == 401
    assert here("POST", "/v1/session", {"link": link}, headers=LOCAL).status == 401
    second = come_in(here, again)
    assert here("GET", "/v1/me", headers=second).status == 200
    later = sessions.now(sessions._COOKIE)
    monkeypatch.setattr(sessions, "now", lambda *_: later)
    assert here("GET", "/v1/me", headers=second).status == 401, "the cookie has expired"
    assert come_in(here, again), "the link has not"
    monkeypatch.setattr(sessions, "now", lambda *_: "2999-01-01")
    assert here("POST", "/v1/session", {"link": again}, headers=LOCAL).status == 401
    monkeypatch.undo()
    for wrong in ({"person": "nobody"}, {"person": "person 40", "days": 0}, {"person": "person 40", "days": 1000}):
        assert here("POST", f"{PLACE}/links", wrong, held["steward"]).status in (409, 422)
    again = give_link(here, "person 40")
    many = [come_in(here, again) for _ in range(12)]
    there = [here("GET", "/v1/me", headers=one).status for one in many]
    assert there.count(200) == sessions._MOST_COOKIES


def test_links_and_code_lead_to_where_the_server_is_found(
    here: Gateway, held: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A steward who comes through a tunnel gives people the address that they can reach."""
    sent = {"host": "localhost:9000"}
    asked = here("GET", "/data/wages/ask", key=held["analyst"], headers=sent, query="statistic=count").body.decode()
    assert "http://localhost:9000/v1/datasets/wages/ask" in asked
    monkeypatch.setattr(here.app, "address", "https://stats.example.org")
    link = here("POST", f"{PLACE}/links", {"person": "person 45"}, held["steward"], headers=sent).document["link"]
    assert link.startswith("https://stats.example.org/enter#eps_")
    asked = here("GET", "/data/wages/ask", key=held["analyst"], headers=sent, query="statistic=count").body.decode()
    assert "https://stats.example.org/v1/datasets/wages/ask" in asked
    assert "localhost" not in asked


def test_cookies_are_for_this_site_alone(here: Gateway) -> None:
    link = give_link(here, "person 41")
    for headers, secure in (
        (LOCAL, False),
        ({"host": "stats.example.org"}, True),
        ({"host": "[::1]:80"}, False),
        ({"host": "["}, True),
    ):
        told = here("POST", "/v1/session", {"link": link}, headers=headers).headers["set-cookie"]
        assert all(part in told for part in ("HttpOnly", "SameSite=Strict", "Path=/"))
        assert ("Secure" in told, told.startswith("__Host-epsilons=")) == (secure, secure)


def test_what_changes_something_is_taken_from_this_site_s_pages_alone(here: Gateway, held: dict[str, str]) -> None:
    mine = come_in(here, give_link(here, "person 42"))
    path, body = f"{PLACE}/account/level", {"level": 0.2}
    without = {name: value for name, value in mine.items() if name != "x-csrf-token"}
    another = come_in(here, give_link(here, "person 43"))["x-csrf-token"]
    for headers in (
        without,
        {**mine, "x-csrf-token": ""},
        {**mine, "x-csrf-token": "é"},
        {**mine, "x-csrf-token": another},
    ):
        assert here("PUT", path, body, headers=headers).status == 403
    elsewhere = [
        {"origin": "https://evil.example"}, {"origin": "null"}, {"origin": ""}, {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"}, {"sec-fetch-site": "cross-site", "origin": "http://127.0.0.1:8000"},
    ]  # fmt: skip
    for more in elsewhere:
        assert here("PUT", path, body, headers={**mine, **more}).status == 403, more
        # Nobody is let in as somebody else either.
        link = {"link": give_link(here, "person 44")}
        assert here("POST", "/v1/session", link, headers={**LOCAL, **more}).status == 403
    for more in ({"origin": "http://127.0.0.1:8000"}, {"sec-fetch-site": "same-origin"}, {}):
        assert here("PUT", path, body, headers={**mine, **more}).status == 200
    assert here("GET", f"{PLACE}/account", headers=without).status == 200
    # A key is sent by no browser on its own, and needs no such word.
    assert here("PUT", path, body, held["person"]).status == 200
    # Every route that changes something and takes a cookie asks for it, by the table itself.
    for route in ROUTES:
        if route.method != "GET" and "person" in route.roles:
            assert walk(here, route, f"csrf-{route.name}", headers=without).status == 403


def test_a_steward_acts_over_http_as_by_command(here: Gateway, held: dict[str, str]) -> None:
    steward, people = held["steward"], here.app.holdings["wages"].people
    done = here("POST", f"{PLACE}/registration", {}, steward).document
    assert (done["dataset"], done["joined"]) == ("wages", 0)
    assert here("POST", f"{PLACE}/levels", {"levels": [["person 50", 0.01]]}, steward).document["tightened"] == 1
    assert people.statement("person 50").granted == 10_000_000
    assert here("POST", f"{PLACE}/withdrawals", {"people": ["person 51"]}, steward).document["withdrawn"] == 1
    assert here("POST", f"{PLACE}/verification", {}, steward).document["snapshots"] == {"wages": True}
    history = here("GET", f"{PLACE}/history", key=steward).document["history"]
    assert history[0]["analyst"] == "analyst"
    assert here("GET", f"{PLACE}/ledger", key=steward).document["withdrawn"] >= 1
    office = here("POST", "/v1/keys", {"name": "office", "role": "analyst"}, steward).document["key"]
    assert here("PUT", f"{PLACE}/quotas/office", {"epsilon": None, "questions": 0}, steward).status == 200
    question = {"statistic": "count", "arguments": {"where": "age >= 32", "share": 0.01}}
    refused = here("POST", f"{PLACE}/ask", question, office, "over")
    assert (refused.status, refused.document["kind"]) == (429, "QuotaError")
    assert here("PUT", f"{PLACE}/quotas/office", {"epsilon": 0.001, "questions": None}, steward).status == 200
    assert here("POST", f"{PLACE}/ask", question, office, "over").status == 429
    assert here("PUT", f"{PLACE}/quotas/office", {"epsilon": 1, "questions": 1}, steward).status == 200
    assert here("POST", f"{PLACE}/ask", question, office, "over").status == 200
    (quota,) = (
        one for one in here("GET", f"{PLACE}/quotas", key=steward).document["quotas"] if one["analyst"] == "office"
    )
    assert (quota["used_questions"], quota["epsilon"]) == (1, 1.0)
    number = here.keys.list()[-1].number
    ended = here("DELETE", f"/v1/keys/{number}", key=steward).document
    assert (ended["name"], ended["revoked"][:2]) == ("office", "20")
    assert here("GET", "/v1/me", key=office).status == 401
    # Ended again it tells when it was. A name whose keys have ended can still be relieved of its quota.
    with here.store.write() as connection:
        connection.execute(f"UPDATE keys SET revoked = '2026-01-01' WHERE number = {number}")
    assert here("DELETE", f"/v1/keys/{number}", key=steward).document["revoked"] == "2026-01-01"
    lifted = {"epsilon": None, "questions": None}
    assert here("PUT", f"{PLACE}/quotas/office", lifted, steward).status == 200


def test_quotas_and_keys_are_for_those_who_exist_by_names_that_can_be_told_apart(
    here: Gateway, held: dict[str, str]
) -> None:
    steward, ledger = held["steward"], here.app.holdings["wages"].people.ledger
    before = ledger.quotas(), len(here.keys.list())
    for name in ("nobody", "ofice", "a%20person", "operator", "small%20office%20"):
        seen = here("PUT", f"{PLACE}/quotas/{name}", {"epsilon": 1, "questions": 1}, steward)
        assert (seen.status, seen.document["title"]) == (404, "There is no key of this name."), name
    odd = ["", " ", " office", "office ", "two  spaces", "a\nb", "a\x00", "\ud800", "x" * 101, "e\u0301", "\uff4fffice"]
    odd += ["a\u202eb", "a\u200bb", "a\u00a0b"]  # turned around, invisible, another space
    for name in odd:
        assert here("POST", "/v1/keys", {"name": name, "role": "analyst"}, steward).status == 422, repr(name)
    for person in ("nobody", "person 1000", 3):
        body = {"name": "somebody", "role": "person", "dataset": "wages", "person": person}
        seen = here("POST", "/v1/keys", body, steward)
        linked = here("POST", f"{PLACE}/links", {"person": person}, steward)
        # No more than a link tells a steward.
        assert seen.status in (409, 422)
        assert (seen.status, seen.body) == (linked.status, linked.body)
    assert (ledger.quotas(), len(here.keys.list())) == before
    ledger.set_quota("by command", questions=1)  # which knows of no keys
    assert here("PUT", f"{PLACE}/quotas/by%20command", {"epsilon": None, "questions": None}, steward).status == 200
    for name in ("statistics office", "Büro 7", "統計局", "a/b", "ann@office"):
        assert here("POST", "/v1/keys", {"name": name, "role": "analyst"}, steward).status == 200


def test_what_is_told_of_charges_waits_for_the_end_of_a_turn(here: Gateway, held: dict[str, str]) -> None:
    """While a turn lasts its charges are in the ledger: whoever saw them would know how far it is."""
    ways = [("GET", f"{PLACE}/account", None, "person"), ("GET", f"{PLACE}/remaining", None, "analyst")]
    ways += [("GET", f"{PLACE}/{way}", None, "steward") for way in ("ledger", "history", "quotas")]
    ways += [("POST", f"{PLACE}/verification", {}, "steward")]
    ways += [("PUT", f"{PLACE}/quotas/small%20office", {"epsilon": None, "questions": None}, "steward")]

    async def during(method: str, path: str, body: Any, role: str) -> tuple[bool, int]:
        async with here.app.holdings["wages"].turns.short():
            sent = asyncio.create_task(here.send(method, path, body, held[role]))
            done, _ = await asyncio.wait([sent], timeout=0.1)
        return not done, (await sent).status

    assert {way[1]: here.run(during(*way)) for way in ways} == {way[1]: (True, 200) for way in ways}


def test_what_is_registered_over_http_is_asked_at_once_in_every_lane_and_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock, "LEAST", 0.0)
    file = declare(tmp_path)
    one, beside = Gateway(file), Gateway(file)  # share files as two workers do
    analyst, steward = one.keys.add("analyst", "analyst"), one.keys.add("steward", "steward")
    for worker in (one, beside):
        seen = [worker("POST", f"{PLACE}/ask", COUNT, analyst, f"{number}") for number in range(3)]
        assert {reply.document["release"]["version"] for reply in seen} == {"1"}
        assert len(worker.app.holdings["wages"]._replies) == 1
    write_older(tmp_path)
    assert one("POST", f"{PLACE}/registration", {}, steward).document["version"] == "2"
    holding = one.app.holdings["wages"]
    assert [holding.lane(number)._facts.version for number in range(LANES)] == ["2"] * LANES
    assert holding._replies == {}
    assert beside("POST", f"{PLACE}/ask", COUNT, analyst, "new").document["release"]["version"] == "2"
    other = beside.app.holdings["wages"]
    assert [other.lane(number)._facts.version for number in range(LANES)] == ["2"] * LANES
    assert one("POST", f"{PLACE}/ask", COUNT, analyst, "again").document["stored"] is True
    one.close()
    beside.close()


def test_what_a_steward_mistypes_is_refused_in_one_shape_and_changes_nothing(
    here: Gateway, held: dict[str, str]
) -> None:
    people = here.app.holdings["wages"].people
    before = people.ledger.epoch, len(here.keys.list()), people.ledger.quotas()
    wrong: dict[str, list[Any]] = {
        "levels": [{}, {"levels": 1}, {"levels": []}, {"levels": [1]}, {"levels": [["a"]]}, {"levels": [[[], 1]]},
                   {"levels": [["person 1", 0.1], ["person 1", 0.2]]}, {"levels": [[1.5, 1]]},
                   {"levels": [["person 1", []]]},
                   {"levels": [["person 1", 1e999]]}, {"levels": [["person 1", "secret"]]}, {"levels": [[1, 0.1]]}],
        "withdrawals": [{}, {"people": "person 1"}, {"people": []}, {"people": [None]}, {"people": [{}]},
                        {"people": [2**70]}],
        "registration": [[], {"confirm": "yes"}, {"loosen": "x"}, {"loosen": -1}, {"redefine": 1}, {"force": True},
                         b"{"],
        "verification": [[], {"x": 1}],
        "links": [{}, {"person": []}, {"person": "person 1", "days": "x"}, {"person": None}, {"person": 1.5}],
        "quotas/small%20office": [{}, {"epsilon": 1}, {"epsilon": -1, "questions": 1}, {"epsilon": "x", "questions": 1},
                          {"epsilon": 1e999, "questions": 1}, {"epsilon": 1, "questions": 1.5},
                          {"epsilon": 1, "questions": -1},
                          {"epsilon": 1e300, "questions": 1}, {"epsilon": True, "questions": 1}],
    }  # fmt: skip
    for way, bodies in wrong.items():
        for body in bodies:
            seen = here("PUT" if "quotas" in way else "POST", f"{PLACE}/{way}", body, held["steward"])
            assert seen.status in (409, 422), (way, body, seen.body)
            assert seen.headers["content-type"] == "application/problem+json"
    for body in ({}, {"name": 1, "role": "analyst"}, {"name": "x", "role": 1}, {"name": "x", "role": []},
                 {"name": "x", "role": "person"}, {"name": "x", "role": "person", "dataset": "wages", "person": {}},
                 {"name": "", "role": "analyst"}):  # fmt: skip
        assert here("POST", "/v1/keys", body, held["steward"]).status in (409, 422), body
    for link in (1, None, [], "x", "é", "eps_" * 100):
        assert here("POST", "/v1/session", {"link": link}).status == 401
    assert here("DELETE", "/v1/keys/999999", key=held["steward"]).status == 422
    assert (people.ledger.epoch, len(here.keys.list()), people.ledger.quotas()) == before


#: Parts of a path, and values of a body, that nobody means.
PARTS = (
    "%00",
    "%ff",
    "..",
    "%2e%2e%2f",
    "wages%20",
    "x" * 5000,
    "%F0%9F%98%80",
    "-1",
    "0",
    "9" * 18,
    "'; DROP TABLE keys",
)
JUNK: tuple[Any, ...] = (
    None, True, -1, 0, 2**63, 1e308, 0.5, "", "\x00", "\ud800", "x" * 2000, [], [[]], [None],
    [["person 1", None]], {}, {"a": {}},
)  # fmt: skip


GOOD = {
    "link": "x", "level": 0.25, "levels": [["person 21", 0.25]], "people": ["person 22"], "epsilon": 1, "questions": 1,
    "person": "person 23", "name": "some name", "role": "analyst", "sql": "SELECT COUNT(*) FROM people",
}  # fmt: skip


def test_nothing_that_is_sent_makes_the_gateway_fail(here: Gateway, held: dict[str, str]) -> None:
    """Cases made from the document: every way, strange parts of paths, and every part of a body as something else."""
    document, failed = here("GET", "/v1/openapi.json").document, []
    schemas = document["components"]["schemas"]
    for path, ways in document["paths"].items():
        for method, about in ways.items():
            key = held["person"] if "role person." in about["description"] else held["steward"]
            sent: list[tuple[str, Any]] = []
            if "{" in path:
                sent += [(re.sub(r"\{\w+\}", lambda _, part=part: part, path), None) for part in PARTS]
            plain = re.sub(r"\{number\}", "1", path.replace("{name}", "wages").replace("{analyst}", "small%20office"))
            if (taken := about.get("requestBody")) is not None:
                schema = schemas[taken["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]]
                parts = schema.get("properties", {"sql": {}, "arguments": {}, "statistic": {}, "questions": {}})
                whole = {name: GOOD[name] for name in schema.get("required", ["sql"])}
                sent += [(plain, junk) for junk in JUNK]
                sent += [(plain, {**whole, name: junk}) for name in parts for junk in JUNK]
            for place, (where, body) in enumerate(sent):
                seen = here(method.upper(), where, body, key, f"junk-{about['operationId']}-{place}")
                failed += [(method, where[:80], str(body)[:80], seen.body)] if seen.status >= 500 else []
    assert failed == []


@pytest.mark.parametrize("depth", [40, 400, 950, 20_000])
def test_what_is_nested_without_end_is_no_document(here: Gateway, held: dict[str, str], depth: int) -> None:
    """Less than Python's own limit is not little: what is refused is walked through, and written as JSON again."""
    for opening, closing in (("[", "]"), ('{"a":', "}")):
        deep = opening * depth + "1" + closing * depth
        for body in (deep, f'{{"statistic":"count","arguments":{{"share":{deep}}}}}', f'{{"questions":{deep}}}'):
            for way in ("ask", "plan"):
                seen = here("POST", f"{PLACE}/{way}", body.encode(), held["analyst"], f"deep-{depth}")
                assert seen.status == 422, (way, body[:50], seen.body[:200])
        link = f'{{"person":{deep},"days":{deep}}}'.encode()
        assert here("POST", f"{PLACE}/links", link, held["steward"]).status == 422


def test_requests_a_second_are_limited_by_role_and_name(
    here: Gateway, held: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(here.app, "rates", Rates(lambda: now[0]))
    for role in ("analyst", ""):
        monkeypatch.setitem(limits.LIMITS, role, Limits(1 << 10, 8, rate=0.5, burst=3))
    path = "/v1/datasets"
    assert [here("GET", path, key=held["analyst"]).status for _ in range(4)] == [200, 200, 200, 429]
    refused = here("GET", path, key=held["analyst"])
    assert refused.headers["retry-after"] == "2"
    assert here("GET", path, key=held["steward"]).status == 200
    assert [here("GET", path, key=make_key()).status for _ in range(4)] == [401, 401, 401, 429]
    assert here("GET", "/health").status == 429, "wrong keys and none are counted together, by address"
    now[0] = 2.0
    assert [here("GET", path, key=held["analyst"]).status for _ in range(2)] == [200, 429]
    now[0] = 1000.0
    assert [here("GET", path, key=held["analyst"]).status for _ in range(4)] == [200, 200, 200, 429]
    # Also where there is nothing, or where it is not done so.
    now[0] = 2000.0
    assert [here("GET", "/nothing", key=held["analyst"]).status for _ in range(4)] == [404, 404, 404, 429]
    assert [here("DELETE", path).status for _ in range(4)] == [405, 405, 405, 429]


def test_names_that_were_idle_longest_are_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_MOST_NAMES", 10)
    now = iter(range(1000))
    rates, one = Rates(lambda: float(next(now)) / 1000), Limits(0, 1, rate=1, burst=1)
    waits = [rates.take(f"name {number}", one) for number in range(25)]
    assert waits == [0] * 25
    assert len(rates._left) <= 10
    assert rates.take("name 24", one) == 1


def test_the_document_says_what_every_way_takes(here: Gateway) -> None:
    document = here("GET", "/v1/openapi.json").document
    listed = {
        one["operationId"]: (path, method, one)
        for path, ways in document["paths"].items()
        for method, one in ways.items()
    }
    assert set(listed) == {route.name for route in ROUTES} == set(ALLOWED)
    schemas = document["components"]["schemas"]
    for route in ROUTES:
        path, method, one = listed[route.name]
        assert method == route.method.lower()
        named = [part["name"] for part in one["parameters"] if part["in"] == "path"]
        assert named == re.findall(r"\{(\w+)\}", path)
        assert bool(one["security"]) is not route.open
        body = ALLOWED[route.name][1]
        assert ("requestBody" in one) == (body is not None), route.name
        if body is not None and route.body != "Question":
            schema = schemas[one["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]]
            assert {*schema["required"]} <= {*body} <= {*schema["properties"]}
            assert schema["additionalProperties"] is False


def test_health_says_when_the_store_is_gone(here: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    assert here("GET", "/health").document == {"status": "ok"}

    def fail() -> Any:
        raise eps.ProtocolError("The store is gone.")

    monkeypatch.setattr(here.app.store, "read", fail)
    seen = here("GET", "/health")
    assert (seen.status, seen.document) == (503, {"status": "failing"})


def test_metrics_are_prometheus_text_without_names(here: Gateway, held: dict[str, str]) -> None:
    here("GET", "/secret-path/person 3", key=held["person"])
    seen = here("GET", "/metrics", key=held["operator"])
    assert seen.headers["content-type"].startswith("text/plain; version=0.0.4")
    line = r'(# (HELP|TYPE) epsilons_\w+ [\w ,.]+|epsilons_\w+(\{(\w+="[a-z0-9]+",?)+\})? [0-9.]+)'
    assert all(re.fullmatch(line, one) for one in seen.body.decode().splitlines())
    routes = {route.name for route in (*ROUTES, *PAGES)} | {"none"}
    assert set(re.findall(r'route="(\w+)"', seen.body.decode())) <= routes
    assert set(re.findall(r'role="(\w+)"', seen.body.decode())) <= {"none", *ROLES}


#: Who the lists at the heads of files, and the table of the page, speak of.
WHO = {"everyone": {""}, "any key": _HOLD, "asks": _ASK, "person": {"person"}, "steward": {"steward"},
       "operator, steward": {"steward", "operator"}}  # fmt: skip


@pytest.mark.parametrize("listed", [routes, page_ways])
def test_the_list_at_the_head_of_a_file_is_what_the_routes_say(listed: Any) -> None:
    """It is what people read who ask themselves who may do what."""
    told = re.findall(r"^    (GET|POST|PUT|DELETE) +(\S+) +(\w+(?:,? \w+)?)  +\S", listed.__doc__, re.MULTILINE)
    found = {(method, path): WHO[who] for method, path, who in told}
    there = listed.ROUTES if listed is routes else listed.PAGES
    template = re.compile(r"\(\?P<(\w+)>[^()]*\)")
    assert found == {
        (one.method, template.sub(r"{\1}", one.path)): {""} if one.open else set(one.roles) for one in there
    }
    assert len(told) == len(there)
