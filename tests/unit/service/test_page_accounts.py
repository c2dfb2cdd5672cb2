"""What pages say of accounts that are not plain epsilons for good, of public columns, and of odd names."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from html import unescape
from urllib.parse import parse_qsl, quote, urlencode

import pytest

from epsilons.guarantee import to_epsilon
from epsilons.measure import Measure
from epsilons.preferences.odds import count_right, tell_odds
from epsilons.service import clock
from epsilons.service.holdings import UnservedError
from epsilons.service.pages import analyst, person
from epsilons.service.replies import name_job
from support.gateways import Gateway
from support.page_worlds import ACCOUNTS, HOSTILE, declare_accounts

_QUESTION = {"statistic": "mean", "column": "wage", "share": "0.1"}


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """Everything was asked once."""
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(clock, "LEAST", 0.0)
        changed.setattr(clock, "EACH_QUESTION", 1e-3)
        made = Gateway(declare_accounts(tmp_path_factory.mktemp("accounts")))
        made.keys.add("city", "steward")
        yield made
        made.close()


@pytest.fixture(scope="module")
def held(here: Gateway) -> dict[str, str]:
    made = {role: here.keys.add(f"the {role}", role) for role in ("steward", "analyst")}
    for name in ACCOUNTS:
        page = look(here, f"/data/{quote(name, safe='')}/ask", made["analyst"], **_QUESTION)
        form = re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page)
        body = urlencode({field: unescape(value) for field, value in form}).encode()
        assert here("POST", f"/data/{quote(name, safe='')}/ask", body, made["analyst"]).status == 303
        made[name] = here.keys.add(f"a person of {name}", "person", name, "p1")
    return made


def look(here: Gateway, path: str, key: str, **query: str) -> str:
    seen = here("GET", path, key=key, query=urlencode(query))
    assert seen.status == 200, seen.body
    return seen.body.decode()


def rows_of(page: str, caption: str) -> list[list[str]]:
    """The cells of a table."""
    body = re.search(re.escape(caption) + r"</caption>.*?<tbody>(.*?)</tbody>", page, re.DOTALL)
    assert body is not None
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL) for row in body[1].split("</tr>")]
    return [[unescape(cell) for cell in row] for row in rows if row]


def test_a_person_with_a_concentrated_account_is_told_epsilons(here: Gateway, held: dict[str, str]) -> None:
    statement, measure = here.app.holdings["rho"].people.statement("p1"), Measure(1 / 10**6)
    page = look(here, "/my", held["rho"])
    assert '<h2 id="now">Now: standard</h2>' in page
    assert re.findall(r"<small>ε ([^<]*)</small>", page) == ["0.1", "0.5", "1"]
    assert page.count("holds now") == 1
    assert "<strong>10% used</strong> of what you allowed, by its rho" in page
    assert "It cost you at most 10% of the rho of 0.5." in page
    lost = to_epsilon(statement.measure.epsilon(statement.spent))
    assert lost > 0.1, "a tenth of the rho is more than a tenth of the epsilon"
    assert f"right about at most {count_right(lost, 1e-6)} of them" in page
    assert measure.delta is not None


def test_odds_with_a_delta_hold_what_any_guess_can_reach() -> None:
    """Held to two outcomes' own chances: the best guess against the worst pair that epsilon and delta allow."""
    for epsilon in (0.01, 0.1, 1.0, 3.0):
        for delta in (0.0, 1e-6, 0.01):
            # delta tells all; on the rest randomized response reaches e^epsilon.
            rest = (1 - delta) * math.exp(epsilon) / (1 + math.exp(epsilon))
            assert count_right(epsilon, delta) >= 100 * (delta + rest) - 1e-9
            assert count_right(epsilon, delta) <= 100 * (delta + rest) + 1 + 1e-9
    assert "with all answers of one month. Every month may tell as much again." in tell_odds(1, "absent", 0, "month")


def test_what_is_charged_and_left_is_told_in_rho(here: Gateway, held: dict[str, str]) -> None:
    page = look(here, "/data/rho/ask", held["analyst"], **_QUESTION, mechanism="minimum")
    assert "Yes, ask it: ρ " in page
    left = rows_of(page, "Cost, and questions like this one that are left")
    assert [row[0] for row in left] == ["strict", "standard", "open"]
    assert all(re.fullmatch(r"[\d.e-]+ \((10|[0-9.]+)%\)", row[2]) for row in left), "rho, and its part of a grant"
    assert all(int(row[4].replace(",", "")) >= 1 for row in left)
    assert "What people were charged at most, in rho" in look(here, "/data/rho/answers/1", held["analyst"])
    told = "Charges and what is left are in rho, which adds up where epsilons do not; in brackets: of the grant."
    assert told in look(here, "/data/rho", held["analyst"])
    steward = look(here, "/steward/rho", held["steward"])
    assert told in steward
    assert "epsilon used</th>" in steward, "quotas are told in epsilon, whatever is counted"
    assert "least left, rho" in steward
    used = re.search(r">rho</a>.*?has spent (\d+)% of what they allowed", look(here, "/steward", held["steward"]), re.S)
    assert used is not None
    assert used[1] == "10"
    assert [row[0] for row in rows_of(steward, "levels of few people together")] == ["strict", "standard", "open"]
    assert "standard: 10%" in steward, "the chart has a line for each level, by its name"
    facts = here("GET", "/v1/datasets/rho", key=held["analyst"]).document
    assert facts["measure"] == "zcdp delta 1/1000000"
    health = here("GET", "/v1/datasets/rho/health", key=held["steward"]).document
    assert [one["epsilon"] for one in health["spending"]["levels"]] == [0.1, 0.5, 1.0]


def test_grants_by_period_and_public_columns_are_told(here: Gateway, held: dict[str, str]) -> None:
    page = look(here, "/my", held["yearly"])
    assert re.findall(r"<small>ε ([^<]*)</small>", page) == ["0.1", "0.5 each year", "1 each month"]
    assert page.count("with all answers there will ever be") == 1, "of the level that is for good"
    assert "with all answers of one year. Every year may tell as much again." in page
    assert re.search(r"of the epsilon 0\.5 that you allowed for 20\d\d\.", page)
    told = "Grants that are renewed, unspent or not: open each month, standard each year of the calendar (UTC)."
    assert told in look(here, "/data/yearly", held["analyst"])
    steward = look(here, "/steward/yearly", held["steward"])
    assert told in steward
    assert "Public, as the roster is: region." in steward
    assert here("GET", "/v1/datasets/yearly", key=held["analyst"]).document["renews"]["open"] == "month"


def test_who_was_public_is_not_told_that_little_is_known(here: Gateway, held: dict[str, str]) -> None:
    people = here.app.holdings["yearly"].people
    key = here.keys.add("another person", "person", "yearly", "p4")
    people.set_level({"p4": "public"})
    people.count(share=0.01)
    people.set_level({"p4": "strict"})
    page = look(here, "/my", key)
    assert "Asked while public, with nothing promised" in page
    assert "So far, whoever guesses" not in page


def test_a_level_promises_no_less_than_was_used_already(here: Gateway, held: dict[str, str]) -> None:
    """Of all answers there will ever be, those that were given are some; more than a level allows is not hidden."""
    people = here.app.holdings["spent"].people
    key = here.keys.add("somebody who became strict", "person", "spent", "p5")
    people.set_level({"p5": "standard"})
    people.count(share=0.4, where="wage > 1")
    people.set_level({"p5": "strict"})
    statement = people.statement("p5")
    lost = to_epsilon(statement.measure.epsilon(statement.spent))
    assert lost > 0.1
    page = unescape(look(here, "/my", key))
    assert tell_odds(0.1, "absent", 1e-6) not in page
    assert tell_odds(lost, "absent", 1e-6) + " So much was used already: your data would be in no" in page
    assert "more than you allow now was used before you chose it" in page


def test_names_that_nobody_means_stay_text_and_addresses_lead_somewhere(here: Gateway, held: dict[str, str]) -> None:
    name, analyst, steward = "odd & é/%41", held["analyst"], held["steward"]
    place = quote(name, safe="")
    question = {"statistic": "mean", "column": HOSTILE, "by": "select", "keys": "south", "share": "0.1"}
    move = {"from": "strict", "to": HOSTILE, "part": "20"}
    pages = {
        "/data": analyst, f"/data/{place}": analyst, f"/data/{place}/answers": analyst, f"/steward/{place}": steward,
        "/my": held[name], "/steward": steward, f"/data/{place}/ask?{urlencode(question)}": analyst,
        f"/steward/{place}/what-if?{urlencode({**question, **move})}": steward,
    }  # fmt: skip
    for path, key in pages.items():
        path, _, query = path.partition("?")
        seen = here("GET", path, key=key, query=query)
        page = seen.body.decode()
        assert seen.status == 200, page
        assert "<img src=x" not in page
        assert 'class="refused"' not in page, page
        for address in re.findall(r' href="(/[^"]*)"', page):
            path, _, query = unescape(address).partition("?")
            assert here("GET", path, key=key, query=query).status == (303 if path == "/" else 200), address


def test_a_quota_that_was_not_set_is_not_said_to_be(here: Gateway, held: dict[str, str]) -> None:
    form = urlencode({"analyst": "nobody", "questions": "3"}).encode()
    seen = here("POST", "/steward/rho/quotas", form, held["steward"])
    assert seen.status == 404
    assert "There is no key of this name." in seen.body.decode()
    assert "The quota is set." not in seen.body.decode()
    assert here("POST", "/steward/rho/quotas", form.replace(b"nobody", b"city"), held["steward"]).status == 303


@pytest.mark.parametrize("wrong", ["nan", "inf", "1e400", "2.5", "0", "-3"])
def test_a_rank_that_is_none_is_refused(here: Gateway, held: dict[str, str], wrong: str) -> None:
    asked = urlencode({"statistic": "kth_largest", "column": "wage", "k": wrong})
    assert here("GET", "/v1/datasets/rho/plan", key=held["analyst"], query=asked).status == 422
    assert 'role="alert"' in look(here, "/data/rho/ask", held["analyst"], **dict(parse_qsl(asked)))


def test_days_are_keys_of_a_form(here: Gateway, held: dict[str, str]) -> None:
    for more in (
        {"by": "day"},
        {"by": "region", "keys": "north", "and_by": "day"},
        {"by": "day", "keys": "2026-01-01"},
    ):
        page = look(here, "/data/rho/ask", held["analyst"], **_QUESTION, **more)
        assert "Yes, ask it" in page, more


def test_what_is_wrong_with_the_server_is_told_to_stewards_alone(
    here: Gateway, held: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page shows a refusal of what was sent, and no fault of a file or a ledger."""

    def fail(*_: object) -> None:
        raise UnservedError("secret.toml is not TOML.")

    for module, name in ((analyst, "_plan"), (analyst, "read_question"), (person, "say_levels")):
        monkeypatch.setattr(module, name, fail)
    monkeypatch.setattr(analyst.StoredAnswers, "of", fail)
    form = urlencode({"choice": "level:strict"}).encode()
    seen = [
        here("GET", "/data/rho/ask", key=held["analyst"]), here("POST", "/data/rho/ask", b"a=1", held["analyst"]),
        here("GET", "/data/rho/answers/1", key=held["analyst"]), here("POST", "/my", form, held["rho"]),
    ]  # fmt: skip
    assert [one.status for one in seen] == [503] * 4
    assert not any(b"TOML" in one.body for one in seen)
    assert b"secret.toml is not TOML." in here("GET", "/data/rho/ask", key=held["steward"]).body


def test_a_batch_that_was_asked_from_code_has_a_page_of_its_job(here: Gateway, held: dict[str, str]) -> None:
    questions = [{"statistic": "count", "arguments": {"where": f"wage > {number}"}} for number in range(3)]
    sent = {"questions": questions, "share": 0.1}
    assert here("POST", "/v1/datasets/spent/ask", sent, held["analyst"], "batch").status == 200
    seen = here("GET", f"/data/spent/jobs/{name_job('the analyst', 'batch')}", key=held["analyst"])
    assert (seen.status, seen.headers["location"]) == (303, "/data/spent/answers")


def test_who_asks_sees_their_own_quota(here: Gateway, held: dict[str, str]) -> None:
    assert "Your quota" not in look(here, "/data/yearly/ask", held["analyst"], **_QUESTION)
    here.app.holdings["yearly"].people.ledger.set_quota("the analyst", nano=500_000_000, questions=9)
    page = look(here, "/data/yearly/ask", held["analyst"], **_QUESTION)
    assert re.search(r"Your quota: 0\.\d+ of 0\.5 epsilon and 1 of 9 questions used\.", page)
    told = here("GET", "/v1/datasets/yearly/remaining", key=held["analyst"]).document["quota"]
    assert (told["questions"], told["used_questions"]) == (9, 1)
    assert "Your quota" not in look(here, "/data/yearly/ask", held["steward"], **_QUESTION)


def test_answers_in_rho_are_shown_also_where_somebody_is_public(here: Gateway, held: dict[str, str]) -> None:
    people = here.app.holdings["spent"].people
    people.set_level({"p8": "public"})
    number = people.count(share=0.01, where="wage >= 1").number
    page = look(here, f"/data/spent/answers/{number}", held["analyst"])
    assert ["public", "0"] in rows_of(page, "What people were charged at most, in rho")
    assert "charged, rho" in str(people.answers()[number or 0].sheets()[1])
