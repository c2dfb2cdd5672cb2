"""Cohorts stay few: neighbours become one, nobody has more left than before, and every account says what was added."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import epsilons.ledger
from epsilons.errors import BudgetExceeded, LedgerError
from epsilons.ledger import merging, recount
from epsilons.ledger.consent import Word
from epsilons.ledger.ledger import Ledger
from support.ledger_recount import balances
from support.ledgers import TERMS, Ask, application, key, nano, person


@pytest.fixture(autouse=True)
def _no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few people stand in few ways: merges happen as soon as there is one cohort too many."""
    monkeypatch.setattr(merging, "ROOM", 1)


def count(book: Ledger) -> int:
    return len(book.cohorts())


def lines(book: Ledger, kind: str) -> list[dict[str, Any]]:
    return [json.loads(str(line["body"])) for line in book.export() if line["kind"] == kind]


def standing(book: Ledger) -> dict[bytes, Any]:
    """Everyone's cohort."""
    cohorts, members = {one.id: one for one in book.cohorts()}, book.members()
    digests = (one.tobytes() for one in members.digests)
    return {who: cohorts[cohort] for who, cohort in zip(digests, members.cohorts.tolist(), strict=True)}


def test_those_who_spent_nearly_the_same_become_one_cohort(
    ledger: Ledger, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five days of one newcomer each, a question a day; the sixth is one too many. The least is lost by the nearest."""
    monkeypatch.setattr(merging, "MOST", 5)
    shares = [Fraction(1, 10), Fraction(1, 100), Fraction(1, 10), Fraction(1, 10), Fraction(1, 10)]
    for day, share in enumerate(shares):
        ledger.enroll([person(f"day {day}")], [nano("1")])
        ask(f"question {day}", share)
    assert count(ledger) == 5
    assert lines(ledger, "merge") == []
    before, epoch = {who: one.left for who, one in standing(ledger).items()}, ledger.epoch
    ledger.enroll([person("day 5")], [nano("1")])
    (merge,) = lines(ledger, "merge")
    # Down to seven eighths of five; day 1 and day 2 differ by a hundredth, all others by a tenth.
    assert count(ledger) == 4
    assert merge["moved"][0]["rounded"] == nano("0.01")
    assert ledger.epoch == epoch + 2
    after = {who: one.left for who, one in standing(ledger).items()}
    assert after[person("day 1")] == after[person("day 2")] == before[person("day 1")]
    assert all(after[who] <= left for who, left in before.items())
    told = ledger.statement(person("day 2"))
    assert (told.rounded, told.lowered, told.written_off) == (nano("0.01"), 0, 0)
    assert "0.01 more counts as spent" in str(told)
    assert sum(use.charge for use in told.uses) + told.rounded == told.spent
    assert ledger.statement(person("day 1")).rounded == 0
    assert balances(ledger.export()) == {c.id: (c.granted, c.spent, c.reserved, c.people) for c in ledger.cohorts()}
    assert ledger.verify().people == 6
    ask("after it", Fraction(1, 10))
    ledger.verify()


def test_grants_without_a_name_become_the_smaller_one_where_nothing_else_helps(
    ledger: Ledger, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merging, "MOST", 4)
    ledger.enroll([person(f"{n}") for n in range(4)], [nano("0.1"), nano("0.5"), nano("0.51"), None])
    ask("one")
    ledger.set_grants([person("own")], [nano("0.1")])
    assert count(ledger) == 4
    held = standing(ledger)
    assert held[person("2")] == held[person("1")]
    assert (held[person("2")].granted, held[person("2")].spent) == (nano("0.5"), nano("0.051"))
    assert [held[person(name)].granted for name in ("0", "3", "own")] == [nano("0.1"), None, nano("0.1")]
    told = ledger.statement(person("2"))
    assert (told.rounded, told.lowered) == (0, nano("0.01"))
    assert "0.01 less as granted" in str(told)
    assert ledger.statement(person("1")).rounded == nano("0.001")
    ledger.verify()


def test_levels_that_have_a_name_and_people_s_words_stay_apart(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where there are more of them than there should be: what was promised comes first."""
    monkeypatch.setattr(merging, "MOST", 2)
    levels = {f"level {n}": Word(nano("0.1") * n, f"level {n}") for n in range(1, 6)}
    ledger.register(application("wages", levels, terms=replace(TERMS, allow_individual=True)))
    assert count(ledger) == 5
    assert lines(ledger, "merge") == []


def test_newcomers_pay_for_nothing_where_people_stand_in_very_many_ways(
    ledger: Ledger, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Merging could not bring cohorts down to the number of these: it waits until there are four for each."""
    monkeypatch.setattr(merging, "MOST", 2)
    monkeypatch.setattr(merging, "ROOM", 4)
    words = [Word(nano("0.1") * n, f"level {n}") for n in range(1, 4)]
    for day in range(5):
        assert lines(ledger, "merge") == []
        assert count(ledger) == 3 * day
        ledger.say([person(f"{day} {n}") for n in range(3)], np.arange(3), words)
        assert [ledger.statement(person(f"{day} {n}")).rounded for n in range(3) if day < 4] == [0] * (3 * (day < 4))
        ask(f"question {day}")
    # Fifteen would be above four times three.
    assert lines(ledger, "merge")
    assert count(ledger) <= 12
    ledger.verify()


def test_charges_that_could_be_given_back_are_spent_by_a_merge(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """They would keep people apart; their answers can still be drawn."""
    monkeypatch.setattr(merging, "MOST", 2)
    ledger.enroll([person("ann")], [nano("1")])
    may = ledger.allowance(Fraction(1, 10))
    held = ledger.reserve(key("open"), may.nano, epoch=may.epoch, kind="count")
    ledger.enroll([person("bob"), person("cy")], [nano("1"), nano("2")])
    assert [(one.people, one.left) for one in ledger.cohorts()] == [(2, nano("0.9")), (1, nano("2"))]
    with pytest.raises(LedgerError, match="This charge stands"):
        ledger.refund(held.number)
    assert ledger.mark_read(held.number).state == "touched"
    assert ledger.store(held.number, b"42") == b"42"
    ledger.verify()


GRANTS: list[int | None] = [nano("0.1"), nano("0.5"), nano("0.7"), nano("1"), None]


@pytest.mark.parametrize("seed", range(3))
def test_any_history_keeps_everyone_within_their_own_account(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside an account for every single person, which knows no cohorts: spent at least as much, granted at most.

    A look at what is new comes to the same as a recount of everything, which is also made elsewhere.
    """
    monkeypatch.setattr(merging, "MOST", 9)
    luck = Random(seed)
    book = epsilons.ledger.open(f"sqlite:///{tmp_path}/people.ledger", witness=tmp_path / "head")
    book.settle_terms("absent", 1)
    spent: dict[bytes, int] = {}
    granted: dict[bytes, int | None] = {}
    withdrawn: set[bytes] = set()
    for day in range(40):
        step, grant = luck.random(), luck.choice(GRANTS)
        some = luck.sample(sorted(spent), min(len(spent), 2))
        if step < 0.5 or not spent:
            some = [person(f"{day} {n}") for n in range(luck.choice([1, 2, 5]))]
            book.enroll(some, [grant] * len(some))
            spent |= dict.fromkeys(some, 0)
            granted |= dict.fromkeys(some, grant)
        elif step < 0.8:
            book.set_grants(some, [grant] * len(some))
            granted |= dict.fromkeys(some, grant)
            withdrawn -= set(some)
        elif step < 0.9:
            book.withdraw(some)
            withdrawn |= set(some)
        try:
            may = book.allowance(Fraction(luck.choice([1, 3, 10]), 30))
            number = book.reserve(key(f"{day}"), may.nano, epoch=may.epoch, kind="count").number
        except BudgetExceeded:
            continue
        finally:
            held = standing(book)
        for who in held:
            spent[who] += may.nano.get(held[who].id, 0)
        if luck.random() < 0.8:
            book.mark_read(number)
        held = standing(book)
        assert held.keys() == spent.keys()
        for who, one in held.items():
            assert one.spent + one.reserved >= spent[who]
            assert (one.state == "withdrawn") == (who in withdrawn)
            if one.state == "active":
                assert (one.granted is None) == (granted[who] is None)
                assert (one.granted or 0) <= (granted[who] or 0)
        who = luck.choice(sorted(spent))
        told = book.statement(who)
        assert sum(use.charge for use in told.uses) + told.rounded == told.spent + told.reserved
        assert sum(use.charge for use in told.uses) == spent[who]
        assert told.written_off == 0
        if luck.random() < 0.3:
            book.verify(thorough=False)
    assert lines(book, "merge")
    assert count(book) <= 9
    assert book.verify(thorough=False) == book.verify()
    assert balances(book.export()) == {c.id: (c.granted, c.spent, c.reserved, c.people) for c in book.cohorts()}
    book.close()


@pytest.mark.parametrize("fault", ["rounded down", "a larger grant", "another's words"])
def test_a_merge_that_favours_somebody_is_refused(
    fault: str, ledger: Ledger, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted faults of the code that merges: the recount shares nothing with it."""
    monkeypatch.setattr(merging, "MOST", 2)
    if fault == "rounded down":
        monkeypatch.setattr(merging, "_together", lambda one, other: (one.granted, min(one.spent, other.spent), 0))
    elif fault == "a larger grant":
        together = merging._together
        most = lambda one, other: (max(one.granted, other.granted), *together(one, other)[1:])  # noqa: E731
        monkeypatch.setattr(merging, "_together", most)
    else:
        monkeypatch.setattr(merging, "_own_words", lambda row: ())
    ledger.enroll([person("ann"), person("bob")], [nano("1"), nano("1")])
    ask("one")
    if fault == "rounded down":
        ledger.enroll([person("cy"), person("di")], [nano("1"), nano("2")])
    else:
        ledger.set_grants([person("ann"), person("cy")], [nano("1" if fault == "another's words" else "2"), nano("3")])
    assert lines(ledger, "merge")
    with pytest.raises(LedgerError, match="merges people who did not stand alike"):
        ledger.verify()


def test_threads_find_a_person_who_was_put_elsewhere(ledger: Ledger) -> None:
    ledger.enroll([person("ann"), person("bob")], [nano("1"), nano("2")])
    with ledger._database.write() as connection:
        content = connection.execute("SELECT content FROM segments").fetchone()[0]
        connection.execute("UPDATE segments SET content = :content", {"content": content[:-1] + b"\1"})
        with pytest.raises(LedgerError, match="differs from the journal"):
            recount.verify(connection)
        connection.execute("UPDATE segments SET content = :content", {"content": content})
