"""Answers that can be cited: what a release says of itself, and that every stored one is shown again."""

from __future__ import annotations

import datetime
import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

import epsilons as eps
from epsilons.errors import LedgerError
from epsilons.release.stored import StoredAnswers
from support.wages import dataset, wages

CITED = ("dataset", "version", "column", "where", "by", "at", "number")
NORTH = "region = 'north'"
#: Written to seconds, as a steward's clock may stand.
NOW = datetime.datetime(2026, 11, 16, 23, 59, 58, tzinfo=datetime.timezone(datetime.timedelta(hours=-5)))


def registered(**options: Any) -> eps.Dataset:
    """A dataset of wages with a name, as registration gives it."""
    options.setdefault("version", "2026-11")
    people = dataset(bounds={"wage": (0, 100), "age": (0, 120)}, **options)
    people._facts = replace(people._facts, name="wages")
    return people


def test_a_release_of_a_table_says_where_it_is_found_again() -> None:
    clock = eps.ledger.open(clock=lambda: NOW)
    people = registered(ledger=clock)
    people.count()
    answer = people.mean("wage", where=NORTH, by={"union": ["yes", "no"]})
    told = (answer.dataset, answer.version, answer.column, answer.where, answer.by, answer.at, answer.number)
    at = "2026-11-17T04:59:58.000000+00:00"
    assert told == ("wages", "2026-11", "wage", "\"region\" = 'north'", ("union",), at, 2)
    assert answer.citation == "wages, version 2026-11, release 2 of 2026-11-17, ledger in memory"
    first, last = str(answer).split("\n")
    assert first.startswith("mean in [0, 100] of wage where \"region\" = 'north' by union: {yes: ")
    assert last == answer.citation
    assert answer.citation in answer._repr_html_()


def test_what_was_said_is_stored_and_read_back() -> None:
    people = registered()
    answer = people.mean("wage", where=NORTH, by={"union": ["yes", "no"]})
    plain = json.loads(json.dumps(answer.to_dict()))
    assert {name: plain[name] for name in CITED} == {
        **{name: getattr(answer, name) for name in CITED},
        "by": ["union"],
    }
    assert eps.Release.from_dict(plain) == answer
    stored = json.loads(people.ledger.answers()[0].answer)
    assert {name: stored[name] for name in CITED} == {name: plain[name] for name in CITED}
    # The same question again: the same release, with the number and the date of its charge.
    assert people.mean("wage", where=NORTH, by={"union": ["yes", "no"]}) == answer


def test_batches_queries_models_and_algorithms_can_be_cited_too() -> None:
    people = registered()
    with people.batch(share=0.1) as ask:
        ask.mean("wage")
        old = ask.count(where="age >= 40")
    assert (old.dataset, old.column, old.where, old.number) == ("wages", "", '"age" >= 40', 2)
    found = people.sql("SELECT AVG(wage) AS wage, COUNT(*) FROM people WHERE age >= 50")
    assert [one.number for one in found.values()] == [3, 4]
    assert found["wage"].column == "wage"
    day = found["wage"].at[:10]
    assert f"wages, version 2026-11, release 3 of {day}, release 4 of {day}, ledger in memory." in " ".join(
        str(found).split()
    )
    model = people.linear_regression("wage", ["age"])
    assert (model.column, model.number) == ("wage", 5)
    applied = people.apply(lambda data, epsilon: 1.0, columns=["wage", "age"], where=NORTH)
    assert (applied.column, applied.where, applied.number) == ("wage, age", "\"region\" = 'north'", 6)
    assert len(people.answers()) == 6


def test_a_count_of_levels_is_about_the_dataset_and_has_no_number() -> None:
    people = registered()
    answer = people.count(by={"epsilon": [0.5, 1.0]})
    assert (answer.dataset, answer.by, answer.number, answer.at) == ("wages", ("epsilon",), None, "")
    assert answer.citation == "wages, version 2026-11, ledger in memory"
    assert len(people.answers()) == 0


def test_arrays_have_none_of_it() -> None:
    answer = eps.mean([1.0, 2.0, 3.0], 1.0, bounds=(0, 10))
    assert not set(CITED) & set(answer.to_dict())
    assert answer.citation == ""
    assert "\n" not in str(answer)
    assert eps.Release.from_dict(answer.to_dict()) == answer


def test_the_kth_largest_says_which() -> None:
    people = registered()
    assert people.kth_largest("wage", 3).statistic == "kth_largest 3 in [0, 100]"
    assert people.max("wage").statistic == "max in [0, 100]"


def test_stored_answers_are_shown_again_after_the_roster_changed() -> None:
    people = registered()
    first = people.mean("wage")
    second = people.count(where=NORTH)
    left = people.remaining().epsilons
    people.withdraw(["person 1"])
    people.set_level({"person 2": 0.6})
    left = people.remaining().epsilons
    again = people.answers()
    assert list(again) == [1, 2]
    assert [again[1], again[2]] == [first, second]
    assert again.questions == {1: "mean in [0, 100] of wage", 2: "count of people where \"region\" = 'north'"}
    assert people.remaining().epsilons == left
    assert len(people.history()) == 2
    text = str(again)
    assert max(map(len, text.splitlines())) <= 80
    assert "wages" in text
    low, high = second.interval()
    assert f"{eps.display.show(low)} to" in " ".join(text.split())
    assert eps.display.show(high) in text
    for number in again:
        assert f"of release {number} hold if {again[number].assumption}." in " ".join(text.split())


def without_citation(answer: bytes) -> bytes:
    """As the first version stored it: of the table only its condition, where there was one."""
    plain = json.loads(answer)
    return json.dumps({name: part for name, part in plain.items() if name not in CITED}).encode()


def test_answers_of_the_first_version_are_read_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    people, store = registered(), eps.ledger.ledger.Ledger.store
    with monkeypatch.context() as patch:
        patch.setattr(eps.ledger.ledger.Ledger, "store", lambda self, n, a: store(self, n, without_citation(a)))
        old = people.mean("wage")
    assert [getattr(old, name) for name in CITED] == ["", "", "", "", (), "", None]
    again = people.answers()[1]
    assert (again.number, again.value, again.dataset) == (1, old.value, "")
    assert again.at == people.history()[0].at
    assert {one.name for one in fields(eps.Release)} >= set(CITED)


def test_an_answer_that_cannot_be_read_hides_no_other(tmp_path: Path) -> None:
    people = registered()
    people.mean("wage")
    ledger = people.ledger
    held = ledger.reserve(bytes(32), {}, epoch=ledger.epoch, kind="count", description="of another program")
    ledger.mark_read(held.number)
    ledger.store(held.number, b"42")
    assert list(people.answers()) == [1]
    assert "not read: 2." in str(people.answers())
    with pytest.raises(LedgerError, match="Release 2 has no answer"):
        StoredAnswers.of(ledger, 2)
    with pytest.raises(LedgerError, match="no release of this number"):
        StoredAnswers.of(ledger, 3)


def test_two_datasets_of_one_ledger_are_told_apart() -> None:
    ledger = eps.ledger.open()
    first, second = registered(ledger=ledger), registered(ledger=ledger, source=wages(), version="2026-12")
    first.count()
    second.count()
    assert [(one.version, one.number) for one in second.answers().values()] == [("2026-12", 2)]
    assert list(StoredAnswers.of(ledger)) == [1, 2]
