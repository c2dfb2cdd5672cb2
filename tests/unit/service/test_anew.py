"""After a loss of records people consent anew, over HTTP and on their page: told what it means, and asked twice."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

import epsilons as eps
from epsilons.service import clock
from support.gateways import Gateway, declare

PLACE = "/v1/datasets/wages"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gateway]:
    """A gateway over a ledger that was put back: what came after the copy is lost."""
    monkeypatch.setattr(clock, "LEAST", 0.0)
    monkeypatch.setattr(clock, "EACH_QUESTION", 1e-3)
    file = declare(tmp_path)
    ledger, copy = tmp_path / "wages.ledger", tmp_path / "copy"
    with eps.Dataset.open("wages", ledger=f"sqlite:///{ledger}") as people:
        people.ledger.copy(str(copy))
        people.count(share=0.25)
    shutil.copyfile(copy, ledger)
    eps.ledger.open(f"sqlite:///{ledger}", accept_loss=True).close()
    made = Gateway(file)
    yield made
    made.close()


@pytest.fixture
def person(here: Gateway) -> str:
    return here.keys.add("ann", "person", "wages", "person 3")


def account(here: Gateway, key: str) -> Any:
    return here("GET", f"{PLACE}/account", key=key).document


def send(here: Gateway, key: str, **form: str) -> Any:
    return here("POST", "/my", urlencode(form).encode(), key)


def test_an_account_says_what_consenting_anew_means(here: Gateway, person: str) -> None:
    told = account(here, person)
    assert told["lost"] is True
    assert told["left"] == 0
    text = " ".join(told["consent"])
    for words in ("Records of this dataset's ledger were lost", "may have been used", "comes on top", "You need not"):
        assert words in text
    # A level alone counts as spent.
    assert here("PUT", f"{PLACE}/account/level", {"level": 0.4}, person).document["left"] == 0
    assert here("PUT", f"{PLACE}/account/level", {"level": 0.4, "anew": False}, person).document["left"] == 0
    for no_yes in ("yes", 1, None, [True]):
        assert here("PUT", f"{PLACE}/account/level", {"level": 0.4, "anew": no_yes}, person).status == 422
    now = here("PUT", f"{PLACE}/account/level", {"level": 0.4, "anew": True}, person).document
    assert (now["granted"], now["left"]) == (0.4, 0.4)
    assert not {"lost", "consent"} & {*now}
    assert "What was used before counts besides" in " ".join(now["sentences"])
    # Nobody else consented.
    other = here.keys.add("bob", "person", "wages", "person 4")
    assert account(here, other)["lost"] is True


def test_a_steward_hands_on_what_people_said(here: Gateway, person: str) -> None:
    steward = here.keys.add("city", "steward")
    assert here("POST", f"{PLACE}/levels", {"levels": [["person 3", 0.4]]}, steward).status == 200
    assert account(here, person)["left"] == 0
    assert here("POST", f"{PLACE}/levels", {"levels": [["person 3", 0.4]], "anew": "yes"}, steward).status == 422
    assert here("POST", f"{PLACE}/levels", {"levels": [["person 3", 0.4]], "anew": True}, steward).status == 200
    assert account(here, person)["left"] == 0.4


def test_on_their_page_people_are_told_and_asked_twice(here: Gateway, person: str) -> None:
    page = unescape(here("GET", "/my", key=person).body.decode())
    for sentence in account(here, person)["consent"]:
        assert sentence in page
    assert "So far, whoever guesses" not in page, "nobody knows what the lost records held"
    assert "What was used before records were lost comes besides." in page
    assert "100% used</strong>: records were lost, so all that you allow counts as used." in page
    assert "used</strong>: at most" not in page, "nobody knows that it was no more"
    before = account(here, person)
    asked = send(here, person, choice="other", epsilon="0,3")
    assert asked.status == 200
    assert account(here, person) == before, "nothing is changed by the first click"
    page = asked.body.decode()
    assert "Consent anew?" in page
    assert "a number of your own: 0,3" in page
    form = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page.partition('id="anew"')[2]))
    assert send(here, person, **{name: unescape(value) for name, value in form.items()}).status == 303
    now = account(here, person)
    assert (now["granted"], now["left"]) == (0.3, 0.3)
    page = here("GET", "/my", key=person, query="done=anew").body.decode()
    assert "You consented anew." in page
    assert "Consent anew?" not in page
    assert "So far, whoever guesses" not in page, "what was used before counts besides"
    # From here on a choice is one click, as ever.
    assert send(here, person, choice="other", epsilon="0.2").status == 303


def test_what_promises_no_more_than_before_needs_no_second_yes(here: Gateway, person: str) -> None:
    assert send(here, person, choice="withdraw").status == 303
    assert account(here, person)["state"] == "withdrawn"
    assert send(here, person, choice="level:public").status == 303
    # And what cannot be read is refused as it always was.
    for wrong in ({"choice": "other", "epsilon": "much"}, {"choice": ""}, {"choice": "level:nowhere", "anew": "yes"}):
        assert send(here, person, **wrong).status == 422


def test_another_site_cannot_consent(here: Gateway) -> None:
    """By a cookie without its word nothing is said."""
    steward = here.keys.add("city", "steward")
    link = here("POST", f"{PLACE}/links", {"person": "person 3"}, steward).document["link"].partition("#")[2]
    seen = here("POST", "/v1/session", {"link": link})
    cookie = {"cookie": dict(seen.headers)["set-cookie"].partition(";")[0]}
    form = urlencode({"choice": "other", "epsilon": "0.3", "anew": "yes"}).encode()
    assert here("POST", "/my", form, headers=cookie).status == 403
    body = {"level": 0.3, "anew": True}
    assert here("PUT", f"{PLACE}/account/level", body, headers=cookie).status == 403
