"""The pages without a browser: every role against every page, made-up forms, what they load, what they tell whom."""

from __future__ import annotations

import itertools
import json
import random
import re
import shlex
import sys
import threading
from collections.abc import Iterator
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

import epsilons as eps
from epsilons.accuracy.relation import holds
from epsilons.display import _FEW_PEOPLE, show
from epsilons.guarantee import to_epsilon
from epsilons.preferences.odds import count_right
from epsilons.release import stored
from epsilons.remote.keys import make_key
from epsilons.service import clock
from epsilons.service.gateway import Route
from epsilons.service.keys import ROLES
from epsilons.service.pages import analyst, layout
from epsilons.service.pages.asking import FIELDS, STATISTICS
from epsilons.service.pages.steward import MOVE
from epsilons.service.pages.ways import PAGES
from epsilons.service.replies import name_job
from epsilons.service.routes import ROUTES
from support.gateways import Gateway, Seen
from support.page_worlds import LEVELS, SIZES, declare_levels

LOCAL = {"host": "127.0.0.1:8000"}
_ALL, _HOLD, _ASK = {"", *ROLES}, {"steward", "analyst", "person"}, {"steward", "analyst"}
#: {page: (who may take it, the form that it takes)}. A page that is not listed here fails the test.
ALLOWED: dict[str, tuple[set[str], dict[str, str] | None]] = {
    "home": (_HOLD, None), "entrance": (_ALL, None), "entering": (_ALL, {"key": "?"}), "exit": (_HOLD, {}),
    "asset": (_ALL, None), "my": ({"person"}, None), "choice": ({"person"}, {"choice": "level:standard"}),
    "catalogue": (_ASK, None), "columns": (_ASK, None), "question": (_ASK, None), "yes": (_ASK, {"statistic": "count"}),
    "waiting": (_ASK, None), "answers": (_ASK, None), "answer": (_ASK, None),
    "overview": ({"steward"}, None), "keyring": ({"steward"}, None), "care": ({"steward"}, None),
    "forge": ({"steward"}, {"name": "new", "role": "analyst"}), "revoking": ({"steward"}, {}),
    "limit": ({"steward"}, {"analyst": "steward", "questions": "9"}), "invite": ({"steward"}, {"person": "9"}),
    "renew": ({"steward"}, {}), "recount": ({"steward"}, {}), "whatif": ({"steward"}, None),
}  # fmt: skip
#: What an address may have behind ?.
QUERIES = {"question": FIELDS, "answer": FIELDS, "waiting": FIELDS, "whatif": (*FIELDS, *MOVE), "my": ("done",),
           "answers": ("before",), "care": ("done",), "keyring": ("done",)}  # fmt: skip
JUNK = ("", " ", "0", "-1", "1e308", "nan", "inf", "9" * 40, "9" * 5000, "\x00", "é" * 300, "<script>", "%00",
        "'; DROP TABLE x", "level:", "level:nobody", "epsilon:-1", "other", "mean", "wage", "region", "strict", "0,1,2",
        "\ud83d")  # fmt: skip


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(clock, "LEAST", 0.0)
        changed.setattr(clock, "EACH_QUESTION", 1e-3)
        made = Gateway(declare_levels(tmp_path_factory.mktemp("pages")))
        yield made
        made.close()


@pytest.fixture(scope="module")
def held(here: Gateway) -> dict[str, str]:
    return begin(here)


def begin(here: Gateway) -> dict[str, str]:
    """A key of each role; something was asked."""
    made = {role: here.keys.add(role, role) for role in ("steward", "analyst", "operator")}
    made["person"] = here.keys.add("a person", "person", "pay", 3)
    assert ask(here, made["analyst"], statistic="mean", column="wage", by="region").status == 303
    return made


@pytest.fixture
def alone(tmp_path: Path, here: Gateway) -> Iterator[tuple[Gateway, dict[str, str]]]:
    """The same for one test, which moves people or uses up what they have. Its clock is that of `here`."""
    made = Gateway(declare_levels(tmp_path))
    yield made, begin(made)
    made.close()


def send(
    here: Gateway, path: str, form: dict[str, str], key: str | None, headers: dict[str, str] | None = None
) -> Seen:
    """A form, as a browser sends it."""
    body = urlencode(form, errors="replace").encode()
    return here(
        "POST", path, body, key, headers={"content-type": "application/x-www-form-urlencoded", **(headers or {})}
    )


def look(here: Gateway, path: str, key: str | None, **query: str) -> str:
    seen = here("GET", path, key=key, query=urlencode(query))
    assert seen.status == 200, seen.body
    return seen.body.decode()


def hidden(page: str) -> dict[str, str]:
    """The hidden fields of a page's form that is sent."""
    return {name: unescape(value) for name, value in re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page)}


def ask(here: Gateway, key: str, **question: str) -> Seen:
    """The plan is looked at, and the yes is given."""
    return send(here, "/data/pay/ask", hidden(look(here, "/data/pay/ask", key, **question)), key)


def come_in(here: Gateway, key: str) -> dict[str, str]:
    """The cookie of a browser that came by a key or link, and the word that its forms repeat."""
    seen = send(here, "/enter", {"key": key}, None, LOCAL)
    assert seen.status == 303
    headers = {**LOCAL, "cookie": seen.headers["set-cookie"].partition(";")[0]}
    return {**headers, "csrf": here("GET", "/v1/me", headers=headers).document["csrf"]}


def path_of(route: Route, here: Gateway) -> str:
    if route.name == "revoking":
        here.keys.add(f"to end {len(here.keys.list())}", "operator")
    known = {"name": "pay", "file": layout._name_asset("page.css").rpartition("/")[2], "number": "1"}
    known |= {"job": name_job("analyst", "x")} | (
        {"number": str(len(here.keys.list()))} if route.name == "revoking" else {}
    )
    return re.sub(r"\(\?P<(\w+)>.*?\)(?=/|$)", lambda part: known[part[1]], route.path)


# Who may --------------------------------------------------------------------------------------------------------------


def test_every_role_against_every_page(here: Gateway, held: dict[str, str]) -> None:
    assert [route.name for route in PAGES if route.name not in ALLOWED] == [], "who may take it? Say so in ALLOWED"
    names = [route.name for route in (*ROUTES, *PAGES)]
    assert len({*names}) == len(names)
    assert all(route.page and name.isalnum() for route, name in zip(PAGES, names[len(ROUTES) :], strict=True))
    ended = here.keys.add("ended", "steward")
    here.keys.revoke(here.keys.list()[-1].number)
    cookies = {role: come_in(here, held[role]) for role in _HOLD}
    coming: list[tuple[str, str | None, dict[str, str]]] = [
        *((role, held[role], {}) for role in ROLES), *((role, None, cookies[role]) for role in sorted(_HOLD)),
        *(("", key, {}) for key in (None, "", make_key(), ended)), ("", None, {**LOCAL, "cookie": "epsilons=x.y"}),
    ]  # fmt: skip
    for route in (route for route in PAGES if route.name != "exit"):
        roles, form = ALLOWED[route.name]
        for role, key, headers in coming:
            sent = {name: value for name, value in headers.items() if name != "csrf"}
            path = path_of(route, here)
            if form is None:
                seen = here("GET", path, key=key, headers=sent)
            else:
                made = {**form, "csrf": headers.get("csrf", "")}
                made |= {"name": f"new {len(here.keys.list())}"} if route.name == "forge" else {}
                seen = send(here, path, made, key, sent)
            if role not in roles:
                wanted = {403} if role else {303} if route.method == "GET" else {401}
            else:
                # The questions and keys that are sent here are refused, and so is a job of nobody.
                wanted = {"entering": {401}, "yes": {400}, "waiting": {404}}.get(route.name, {200, 303})
            assert seen.status in wanted, (route.name, role, seen.status, seen.body)
            if role not in roles and seen.status == 303:
                assert seen.headers["location"] == "/enter"
            assert "default-src 'none'" in seen.headers["content-security-policy"]
            assert seen.headers["x-frame-options"] == "DENY"
            if seen.status not in (200, 303) or (seen.body and route.name != "asset"):
                assert seen.headers["content-type"] == "text/html; charset=utf-8", route.name


def test_a_form_without_the_word_changes_nothing(here: Gateway, held: dict[str, str]) -> None:
    """Of every form: without it, with another one's, and from another site."""
    people, others = here.app.holdings["pay"].people, {role: come_in(here, held[role]) for role in _HOLD}
    before = people.ledger.epoch, len(here.keys.list()), people.ledger.count("reservations"), people.ledger.quotas()
    for route in (route for route in PAGES if route.method == "POST" and not route.open):
        for role in ALLOWED[route.name][0]:
            mine = come_in(here, held[role])
            cookie = {name: value for name, value in mine.items() if name != "csrf"}
            path, form = (
                path_of(route, here) if route.name != "revoking" else "/keys/1/revocation",
                ALLOWED[route.name][1],
            )
            for word in ("", "x", others[role]["csrf"]):
                assert send(here, path, {**(form or {}), "csrf": word}, None, cookie).status == 403, (route.name, role)
            for elsewhere in ({"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}):
                sent = {**(form or {}), "csrf": mine["csrf"]}
                assert send(here, path, sent, None, {**cookie, **elsewhere}).status == 403
    after = people.ledger.epoch, len(here.keys.list()), people.ledger.count("reservations"), people.ledger.quotas()
    assert after == before
    assert send(here, "/enter", {"key": held["steward"]}, None, {**LOCAL, "sec-fetch-site": "cross-site"}).status == 403


def test_keys_of_operators_open_no_page_and_who_left_is_gone(here: Gateway, held: dict[str, str]) -> None:
    assert send(here, "/enter", {"key": held["operator"]}, None, LOCAL).status == 401
    for wrong in ("", "x", make_key(), held["steward"][:-1], "#", "é"):
        assert send(here, "/enter", {"key": wrong}, None, LOCAL).status == 401
    mine = come_in(here, held["analyst"])
    cookie = {name: value for name, value in mine.items() if name != "csrf"}
    assert here("GET", "/data", headers=cookie).status == 200
    left = send(here, "/leave", {"csrf": mine["csrf"]}, None, cookie)
    assert (left.status, "Max-Age=0" in left.headers["set-cookie"]) == (303, True)
    assert here("GET", "/data", headers=cookie).headers["location"] == "/enter"
    # A cookie ends with its key.
    extra = here.keys.add("extra", "analyst")
    mine = come_in(here, extra)
    here.keys.revoke(here.keys.list()[-1].number)
    assert here("GET", "/data", headers={name: mine[name] for name in ("host", "cookie")}).status == 303


def test_no_made_up_form_or_address_breaks_a_page(here: Gateway, held: dict[str, str]) -> None:
    """Figure 12: every page and form with every field as something that nobody means."""
    failed, tried = [], 0
    parts = ("%00", "%ff", "..", "x" * 3000, "-1", "0", "9" * 18, "other", "%F0%9F%98%80")
    for route in PAGES:
        key = held["person" if ALLOWED[route.name][0] == {"person"} else "steward"]
        form, path = ALLOWED[route.name][1], path_of(route, here)
        names = (
            QUERIES.get(route.name, ()) if form is None else {*form, *(FIELDS if route.name == "yes" else ()), "more"}
        )
        names = {*names, "mark", "once", "planned"} if route.name == "yes" else names
        if "(" in route.path:
            strange = (re.sub(r"\(\?P<\w+>.*?\)(?=/|$)", lambda _, part=part: part, route.path) for part in parts)
            cases: list[tuple[str, dict[str, str]]] = [(where, dict(form or {})) for where in strange]
        else:
            cases = []
        # Where it takes longer, some of all; over all fields every one of them comes up.
        every = {"choice": 1, "limit": 1, "forge": 1, "entering": 1, "question": 4, "yes": 4, "invite": 4}.get(
            route.name, 13
        )
        made = itertools.islice(itertools.product(sorted(names), JUNK), 0, None, every)
        cases += [(path, {**(form or {}), name: junk}) for name, junk in made]
        for where, given in cases:
            if route.method == "GET":
                seen = here("GET", where, key=key, query=urlencode(given, errors="replace"))
            else:
                seen = send(here, where, given, key)
            tried += 1
            failed += [(route.name, where[:60], str(given)[:80], seen.status)] if seen.status >= 500 else []
    assert failed == []
    assert tried > 300
    for raw in (b"\xff=\xff", b"&" * 99, b"a=1&" * 500, b"%", b"csrf"):
        assert here("POST", "/my", raw, held["person"]).status in (422, 303)


@pytest.mark.parametrize(
    ("path", "form", "told"),
    [
        ("links", {"person": "9" * 5000}, "This is no id."),  # Python reads no number of so many digits
        ("quotas", {"analyst": "analyst", "epsilon": "inf"}, "This is not a number."),
        ("quotas", {"analyst": "analyst", "epsilon": "nan"}, "This is not a number."),
        ("quotas", {"analyst": "analyst", "questions": "9" * 5000}, "This is not a whole number."),
    ],
)
def test_numbers_that_a_steward_mistypes_are_said_to_be_none(
    here: Gateway, held: dict[str, str], path: str, form: dict[str, str], told: str
) -> None:
    seen = send(here, f"/steward/pay/{path}", form, held["steward"])
    assert (seen.status, told in seen.body.decode()) == (422, True)


def test_a_link_opens_also_for_who_is_still_there(here: Gateway, held: dict[str, str]) -> None:
    """The page of a link that stands elsewhere comes without the cookie; what it sends comes with it."""
    cookie = here("POST", "/enter", f"key={held['analyst']}".encode(), headers=LOCAL).headers["set-cookie"]
    sent = f"key={held['person']}".encode()
    headers = {**LOCAL, "cookie": cookie.partition(";")[0]}
    seen = here("POST", "/enter", sent, headers=headers)
    assert (seen.status, seen.headers.get("location")) == (303, "/my")
    assert here("POST", "/enter", sent, headers={**headers, "sec-fetch-site": "cross-site"}).status == 403


def send_forms(here: Gateway, held: dict[str, str], times: int, seed: int) -> None:
    """So many pages and forms: fields that are meant, but for one or two of them."""
    drawn = random.Random(seed)
    meant = {
        "column": "wage", "q": "0.5", "k": "2", "cells": "", "by": "region", "share": "0.001", "low": "", "high": "",
        "from": "strict", "to": "open", "part": "20", "planned": "auto", "once": "x", "person": "3",
        "choice": "level:open",
    }  # fmt: skip
    takes = {route: QUERIES.get(route.name, tuple(ALLOWED[route.name][1] or ())) for route in PAGES}
    takes |= {route: (*FIELDS, "mark", "once", "planned") for route in PAGES if route.name == "yes"}
    routes = [route for route in PAGES for _ in range(12 if "statistic" in takes[route] else 1)]
    for _ in range(times):
        route = drawn.choice(routes)
        key = held["person" if ALLOWED[route.name][0] == {"person"} else "steward"]
        names = takes[route]
        given = {name: meant.get(name, "") for name in names} | {"statistic": drawn.choice(STATISTICS)}
        given |= {name: drawn.choice(JUNK) for name in drawn.sample(names, min(len(names), drawn.randint(0, 2)))}
        path, query = path_of(route, here), urlencode(given, errors="replace")
        seen = here("GET", path, key=key, query=query) if route.method == "GET" else send(here, path, given, key)
        assert seen.status < 500, (route.name, given, seen.body)


def test_forms_with_some_fields_made_up_break_no_page(here: Gateway, held: dict[str, str]) -> None:
    send_forms(here, held, 200, seed=23)


@pytest.mark.soak
@pytest.mark.figure("figure_12_pages")
def test_ten_thousand_made_up_forms(here: Gateway, held: dict[str, str], record_property: Any) -> None:
    send_forms(here, held, 10_000, seed=24)
    record_property("size", 10_000)


# What a page loads, and has -------------------------------------------------------------------------------------------


class Reader(HTMLParser):
    """Tags, attributes and whether every tag that is opened is closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))


def list_pages(here: Gateway, held: dict[str, str]) -> Iterator[tuple[str, str, str]]:
    """(role, address, text) of every page that somebody can look at."""
    question = {"statistic": "mean", "column": "wage", "by": "region"}
    moved = {**question, "from": "strict", "to": "open", "part": "20"}
    shown: list[tuple[str, str, dict[str, str]]] = [
        ("person", "/my", {}), ("analyst", "/data", {}), ("analyst", "/data/pay", {}), ("analyst", "/data/pay/ask", {}),
        ("analyst", "/data/pay/ask", question), ("analyst", "/data/pay/answers", {}),
        ("analyst", "/data/pay/answers/1", question), ("steward", "/steward", {}), ("steward", "/steward/pay", {}),
        ("steward", "/steward/pay/what-if", {}), ("steward", "/steward/pay/what-if", moved), ("steward", "/keys", {}),
    ]  # fmt: skip
    for role, path, query in shown:
        yield role, path, look(here, path, held[role], **query)


def test_a_page_loads_its_own_files_and_nothing_else(here: Gateway, held: dict[str, str]) -> None:
    for _, path, page in [*list_pages(here, held), ("", "/enter", look(here, "/enter", None))]:
        tags = Reader(page).seen
        for tag, has in tags:
            assert tag != "style", path
            assert not [name for name in has if name == "style" or name.startswith("on")], (path, tag)
            for name in ("src", "href", "action"):
                assert (has.get(name) or "/").startswith(("/", "#", "data:image/svg+xml", "data:,")), (path, has)
                assert not (has.get(name) or "/").startswith("//")
        scripts = [has for tag, has in tags if tag == "script"]
        assert [list(one) for one in scripts] == [["src", "defer"]]
        assert "<script>" not in page
    seen = here("GET", "/enter")
    policy = seen.headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "script-src 'self'; style-src 'self'" in policy
    files = re.findall(r'(?:href|src)="(/assets/[^"]+)"', seen.body.decode())
    assert len(files) == 2
    for file in files:
        got = here("GET", file)
        assert (got.status, "immutable" in got.headers["cache-control"]) == (200, True)
        assert "http" not in got.body.decode()
    assert here("GET", files[0].replace(".css", ".js")).status == 404


def test_every_page_has_its_json_and_its_pictures_a_table(here: Gateway, held: dict[str, str]) -> None:
    pictures = 0
    for role, path, page in list_pages(here, held):
        tags = Reader(page).seen
        named = [has["href"] for tag, has in tags if tag == "link" and has.get("rel") == "alternate"]
        assert named, path
        for address in map(str, named):
            assert [has for tag, has in tags if tag == "a" and has.get("href") == address], (path, address)
            where, _, query = address.partition("?")
            seen = here("GET", where, key=held[role], query=query)
            assert seen.status == 200, (path, address, seen.body)
            assert isinstance(seen.document, dict)
        for figure in re.findall(r"<figure.*?</figure>", page, re.DOTALL):
            assert "<table>" in figure
            (image,) = (has for tag, has in Reader(figure).seen if tag == "img")
            assert len(str(image["alt"])) > 40
            pictures += 1
    assert pictures == 3


def test_everything_that_others_wrote_is_escaped(here: Gateway, held: dict[str, str]) -> None:
    where = "region <> '<script>alert(1)</script>'"
    assert ask(here, held["analyst"], statistic="count", where=where, share="0.001").status == 303
    here.keys.add("<b>bold</b>", "analyst")
    send(here, "/steward/pay/quotas", {"analyst": "<i>thin</i>", "questions": "1"}, held["steward"])
    for role, path, page in list_pages(here, held):
        assert not re.search(r"<script>alert|<b>bold|<i>thin", page), (role, path)
    assert "&lt;script&gt;alert" in look(here, "/data/pay/answers", held["analyst"])
    assert "&lt;script&gt;alert" in look(here, "/my", held["person"])
    shown = look(here, "/data/pay/ask", held["analyst"], where="age > \u202e1\x1b")
    assert "\u202e" not in shown
    assert "\x1b" not in shown


def test_a_page_of_answers_reads_what_it_shows(
    alone: tuple[Gateway, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the newest to the first; the dataset waits while a page is made."""
    here, held = alone
    for age in range(20, 24):
        asked = ask(here, held["analyst"], statistic="count", where=f"age >= {age}", share="0.001")
        assert asked.status == 303, asked.body
    monkeypatch.setattr(analyst, "_PAGE", 2)
    read, numbers = stored.read_stored, list[int]()

    def note(one: Any) -> Any:
        numbers.append(one.number)
        return read(one)

    monkeypatch.setattr(stored, "read_stored", note)
    place: str | None = ""
    seen: list[list[int]] = []
    while place is not None:
        page = look(here, "/data/pay/answers", held["analyst"], before=place)
        seen.append([int(number) for number in re.findall(r'href="/data/pay/answers/(\d+)"', page)])
        earlier = re.search(r"/data/pay/answers\?before=(\d+)", page)
        place = None if earlier is None else earlier[1]
    assert seen == [[5, 4], [3, 2], [1]]
    assert sorted(numbers) == [1, 2, 3, 4, 5]


# What is told whom ----------------------------------------------------------------------------------------------------


def test_levels_of_few_people_share_a_line_on_pages_and_are_told_as_json(alone: tuple[Gateway, dict[str, str]]) -> None:
    here, held = alone
    assert SIZES["rare"] < _FEW_PEOPLE <= min(size for name, size in SIZES.items() if name != "rare")
    here.app.holdings["pay"].people.set_level({400: 0.3, 401: 0.31})  # two levels of one person each
    send(
        here, "/data/pay/ask", hidden(look(here, "/data/pay/ask", held["analyst"], statistic="count")), held["analyst"]
    )
    pages = [one for one in list_pages(here, held) if "answers/1" not in one[1]]  # there it was the only such level
    for role, path, page in pages:
        told = re.sub(r"<form.*?</form>", "", page, flags=re.DOTALL)  # what a person may choose is a form
        for few in ("rare", "0.31"):
            assert not re.search(rf">\s*{re.escape(few)}\s*<", told), (role, path, few)
    assert "3 other levels" in look(here, "/data/pay", held["analyst"])
    assert "3 other levels" in look(here, "/steward/pay", held["steward"])
    levels = here("GET", "/v1/datasets/pay/health", key=held["steward"]).document["state"]["levels"]
    assert {(one["epsilon"], one["people"]) for one in levels} >= {(0.7, 5), (0.3, 1), (0.31, 1)}


def test_a_person_s_page_is_their_own_and_no_other_page_is_about_a_person(
    alone: tuple[Gateway, dict[str, str]],
) -> None:
    here, held = alone
    people = here.app.holdings["pay"].people
    one, other = (here.keys.add(f"person {number}", "person", "pay", number) for number in (20, 21))
    people.set_level({402: 0.05})  # of levels on one line the least and the largest are told
    assert send(here, "/my", {"choice": "other", "epsilon": "0.3123"}, one).status == 303
    assert send(here, "/my", {"choice": "other", "epsilon": "0.3456"}, other).status == 303
    assert "Now: 0.3123" in look(here, "/my", one)
    assert "0.3456" not in look(here, "/my", one)
    for role, path, page in list_pages(here, held):
        assert "0.3123" not in page, (role, path)
    # The next charge goes by it, and withdrawing ends it.
    assert ask(here, held["analyst"], statistic="count", mechanism="stretching", share="0.5").status == 303
    assert people.statement(20).uses[-1].charge == 156_150_000
    assert send(here, "/my", {"choice": "withdraw"}, one).status == 303
    assert people.statement(20).state == "withdrawn"
    assert "Now: withdrawn" in look(here, "/my", one)
    assert people.statement(21).state == "active"
    for wrong in ("", "level:", "level:nobody", "other", "epsilon:x", "public"):
        assert send(here, "/my", {"choice": wrong}, other).status == 422, wrong
    assert people.statement(21).granted == 345_600_000


def test_cards_say_what_each_level_means(here: Gateway, held: dict[str, str]) -> None:
    page = look(here, "/my", held["person"])
    cards = re.findall(r'<label class="card">.*?</label>', page, re.DOTALL)
    assert len(cards) == len(LEVELS) + 2  # public, and not at all
    statement = here.app.holdings["pay"].people.statement(3)
    used = count_right(to_epsilon(statement.spent + statement.reserved))
    for (name, _), right in zip(sorted(LEVELS.items(), key=lambda one: one[1]), (53, 63, 67, 74), strict=True):
        (card,) = (one for one in cards if f'value="level:{name}"' in one)
        most = max(right, used)  # all answers there will ever be are no fewer than those there were
        assert f"at most {most} with all answers" in card
        assert card.count('class="more"') == most - 50


# Questions ------------------------------------------------------------------------------------------------------------


def test_every_statistic_of_the_form_is_planned_asked_shown_and_copied(here: Gateway, held: dict[str, str]) -> None:
    people = here.app.holdings["pay"].people
    for statistic in STATISTICS:
        question = {"statistic": statistic, "column": "wage", "other": "age", "share": "0.002", "where": "age >= 20"}
        question |= {"cells": "1, 2, 3, 4"} if statistic in ("mode", "top") else {}  # which have no bounds
        planned = here("GET", "/v1/datasets/pay/plan", key=held["analyst"], query=urlencode(question)).document
        page = look(here, "/data/pay/ask", held["analyst"], **question)
        best = planned["plan"]["rows"][0]
        assert f'<tr class="best"><th scope="row">{best["mechanism"]}</th>' in page
        charged = people.ledger.count("reservations")
        done = send(here, "/data/pay/ask", hidden(page), held["analyst"])
        assert done.status == 303, done.body
        assert people.ledger.count("reservations") == charged + 1
        where, _, query = done.headers["location"].partition("?")
        answer = here("GET", where, key=held["analyst"], query=query).body.decode()
        assert "Condition:" in answer
        # The same form again, and the same question over HTTP as copied: the stored answer, for nothing.
        assert send(here, "/data/pay/ask", hidden(page), held["analyst"]).headers["location"].startswith(where)
        curl = unescape(re.search(r'id="code-curl">(.*?)</code>', answer, re.DOTALL)[1])  # type: ignore[index]
        document = json.loads(shlex.split(curl.replace("\\\n", ""))[-1])
        assert document == planned["question"]
        again = here("POST", "/v1/datasets/pay/ask", document, held["analyst"], f"copy-{statistic}").document
        assert (again["stored"], f"/{again['release']['number']}" in where) == (True, True)
    assert people.ledger.count("reservations") == charged + 1


def test_what_is_left_is_counted_in_questions_like_this_one(here: Gateway, held: dict[str, str]) -> None:
    question = {"statistic": "mean", "column": "wage", "mechanism": "minimum", "share": "0.05"}
    page = look(here, "/data/pay/ask", held["analyst"], **question)
    planned = here("GET", "/v1/datasets/pay/plan", key=held["analyst"], query=urlencode(question)).document["plan"]
    rows = re.search(r"questions like this one that are left</caption>.*?<tbody>(.*?)</tbody>", page, re.DOTALL)
    strict = re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", rows[1].split("</tr>")[0])  # type: ignore[index]
    cohorts = here.app.holdings["pay"].people.remaining().cohorts
    (cost,) = (
        spent for row in planned["rows"] if row["mechanism"] == "minimum" for one, spent in row["charges"] if one == 0.1
    )
    charge, mine = round(cost * 10**9), [one for one in cohorts if one.granted == 100_000_000 and one.state == "active"]
    often = sum(one.people * ((one.left or 0) // charge) for one in mine) // sum(one.people for one in mine)
    assert (strict[0], strict[2], strict[4]) == ("strict", show(cost), str(often))


def test_a_plan_that_no_longer_holds_is_not_asked(alone: tuple[Gateway, dict[str, str]]) -> None:
    here, held = alone
    people = here.app.holdings["pay"].people
    page = look(here, "/data/pay/ask", held["analyst"], statistic="sum", column="wage", share="0.9", where="age >= 21")
    assert ask(here, held["analyst"], statistic="sum", column="wage", share="0.9", where="age >= 22").status == 303
    charged = people.ledger.count("reservations")
    refused = send(here, "/data/pay/ask", hidden(page), held["analyst"])
    assert refused.status == 422
    assert "What people have left has changed since this plan was made." in unescape(refused.body.decode())
    assert people.ledger.count("reservations") == charged
    # Nor is one without its mark.
    without = {**hidden(page), "mark": "", "once": "again"}
    assert send(here, "/data/pay/ask", without, held["analyst"]).status == 422


def test_what_if_shows_what_the_plan_itself_says(here: Gateway, held: dict[str, str]) -> None:
    query = {"statistic": "mean", "column": "wage", "share": "0.01", "from": "standard", "to": "open", "part": "50"}
    told = here("GET", "/v1/datasets/pay/what-if", key=held["steward"], query=urlencode(query)).document
    plan = here.app.holdings["pay"].people.plan("mean", "wage", share=0.01)
    moved = plan.what_if({"standard": ("open", 0.5)})
    assert told["errors"] == [[row.mechanism, row.error, moved[row.mechanism].error] for row in plan.rows]
    assert told["errors"][0][1] > told["errors"][0][2]
    for wrong in ({"part": "x"}, {"from": "nobody"}, {"part": "101"}):
        seen = here("GET", "/steward/pay/what-if", key=held["steward"], query=urlencode({**query, **wrong}))
        assert (seen.status, 'role="alert"' in seen.body.decode()) == (200, True)


def test_pages_say_when_an_error_is_expected_as_answers_do(here: Gateway, held: dict[str, str]) -> None:
    question = {"statistic": "mean", "column": "wage", "share": "0.01", "mechanism": "minimum"}
    page = unescape(look(here, "/data/pay/ask", held["analyst"], **question))
    assert '<p class="soft">however preferences and values relate.</p>' in page
    move = {**question, "from": "standard", "to": "open", "part": "50", "mechanism": "auto"}
    change = unescape(look(here, "/steward/pay/what-if", held["steward"], **move))
    held = holds(here.app.holdings["pay"].people.plan("mean", "wage", share=0.01).assumption)
    assert f"expected {held}." in change
    assert f'alt="Predicted errors before and after the change, {held}. ' in change


def test_budgets_over_time_are_what_the_ledger_says(here: Gateway, held: dict[str, str]) -> None:
    told = here("GET", "/v1/datasets/pay/health", key=held["steward"]).document
    people = here.app.holdings["pay"].people
    assert len(told["spending"]["moments"]) == len(people.history()) + 1
    for level in told["spending"]["levels"]:
        there = [
            one for one in people.ledger.cohorts() if one.granted == round(level["epsilon"] * 10**9) and one.people
        ]
        if there:
            most = max(one.spent + one.reserved for one in there)
            assert level["spent"][-1] >= most / there[0].granted - 1e-12  # type: ignore[operator]
    first = told["registrations"][-1]
    assert first["enrolment"]["joined"] == sum(SIZES.values())


# Charts ---------------------------------------------------------------------------------------------------------------


def test_charts_are_drawn_by_several_threads_and_leave_nobody_s_style_behind(
    here: Gateway, held: dict[str, str]
) -> None:
    import matplotlib

    from epsilons.service.pages.charts import draw_answer

    release, before = here.app.holdings["pay"].people.answers()[1], dict(matplotlib.rcParams)
    drawn: list[Any] = []
    threads = [threading.Thread(target=lambda: drawn.append(draw_answer(release))) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len({one.address for one in drawn}) == 1
    assert f", with 95% intervals, {holds(release.assumption)}. " in drawn[0].alt
    assert dict(matplotlib.rcParams) == before
    assert "matplotlib.pyplot" not in sys.modules or not sys.modules["matplotlib.pyplot"].get_fignums()


def test_without_matplotlib_the_table_stands_alone(
    here: Gateway, held: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    page = look(here, "/data/pay/answers/1", held["analyst"])
    assert "<img" not in page
    assert "<details open>" in page
    assert "north" in page


def test_an_answer_of_several_numbers_is_shown_with_all_its_intervals(here: Gateway, held: dict[str, str]) -> None:
    release = here.app.holdings["pay"].people.answers()[1]
    page = look(here, "/data/pay/answers/1", held["analyst"])
    for (low, high), value in zip(release.interval(0.95).values(), release.value.values(), strict=True):
        assert show(value) in page
        assert f"{show(low)} to {show(high)}" in page
    assert isinstance(release, eps.Release)
    assert list(itertools.islice(release.value, 2)) == ["north", "south"]
