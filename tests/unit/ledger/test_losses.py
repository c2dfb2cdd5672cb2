"""A loss is a floor under every account: whatever the lost part may have charged, nobody is charged it twice."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import epsilons.ledger
from epsilons.errors import BudgetExceeded, LedgerError
from epsilons.ledger import journal, losses
from epsilons.ledger.consent import PUBLIC_CODE, WITHDRAW_CODE, Word
from epsilons.ledger.ledger import Ledger
from epsilons.ledger.rosters import is_lost
from support.ledger_copies import copied, put_back
from support.ledger_recount import balances
from support.ledgers import ABOUT, application, key, nano, person

ANN = [person("ann")]


class Restored:
    """A ledger that was put back to an older copy, and whose loss was accepted; `real` is what Ann really lost."""

    def __init__(self, folder: Path, grant: int | None, meanwhile: Callable[[Ledger], Any]) -> None:
        self.address, self.head = f"sqlite:///{folder}/a.ledger", folder / "head"
        book = self.open()
        book.settle_terms("absent", 1)
        book.enroll([person("bob")], [nano("1")])
        if grant != WITHDRAW_CODE:
            book.enroll(ANN, [grant])
        kept = copied(self.address)
        meanwhile(book)
        self.real = ask(book, "in the lost part")
        book.close()
        put_back(self.address, kept)
        with pytest.raises(LedgerError, match="diverged"):
            self.open()
        self.book = self.open(accept_loss=True)

    def open(self, **more: Any) -> Ledger:
        return epsilons.ledger.open(self.address, witness=self.head, **more)


def ask(book: Ledger, name: str) -> int:
    """Everything that anybody has left, and what of it Ann pays."""
    try:
        may = book.allowance(Fraction(1))
    except BudgetExceeded:
        return 0
    number = book.reserve(key(name), may.nano, epoch=may.epoch, kind="count").number
    book.mark_read(number)
    book.store(number, b"1")
    members = book.members()
    cohort = {d.tobytes(): int(c) for d, c in zip(members.digests, members.cohorts, strict=True)}.get(ANN[0], 0)
    return may.nano.get(cohort, 0)


def move(book: Ledger, how: str, grant: int | None) -> None:
    if how == "source":
        book.enroll(ANN, [grant], loosen=True)
    elif how == "own word":
        book.set_grants(ANN, [grant])
    else:
        book.withdraw(ANN)
        book.set_grants(ANN, [grant])


HOWS = ("source", "own word", "back again")


@pytest.mark.parametrize(("before", "how"), [*product([None, nano("0.1"), nano("0.5"), nano("2"), 0], HOWS)])
def test_nobody_is_charged_twice_however_they_move(tmp_path: Path, before: int | None, how: str) -> None:
    """Public -> .5 after a restore, a newcomer (0), and every other way there: the .5 was spent in the lost part."""
    here = Restored(tmp_path, before, lambda book: book.set_grants(ANN, [nano("0.5")]))
    assert here.real == nano("0.5")
    again = 0
    for turn, grant in enumerate([nano("0.5"), None, nano("0.5"), nano("0.6"), nano("0.5")]):
        move(here.book, how, grant)
        again += ask(here.book, f"{turn}")
    assert again == 0
    told = balances(here.book.export())
    recount = here.book.verify()
    assert told == {c.id: (c.granted, c.spent, c.reserved, c.people) for c in recount.cohorts}


def test_who_consents_anew_knows_of_the_loss(tmp_path: Path) -> None:
    here = Restored(tmp_path, nano("1"), lambda book: None)
    book = here.book
    assert "every level they choose counts as spent" in str(book.statement(ANN[0]))
    book.set_grants(ANN, [nano("1")], anew=True)
    assert ask(book, "anew") == nano("1")
    assert ask(book, "more") == 0
    told = book.statement(ANN[0])
    assert (told.spent, told.left, told.lost) == (nano("1"), 0, False)
    assert told.anew is not None
    assert "Granted anew on" in str(told)
    # Bob said nothing; a second loss is a floor again.
    assert [is_lost(c.datasets) for c in book.cohorts()] == [True, False]
    book.set_grants([person("cy")], [nano("1")], anew=True)
    assert [c.left for c in book.cohorts()] == [0, 0, nano("1")]
    book.close()
    here.head.unlink()
    book = here.open(accept_loss=True)
    assert [is_lost(c.datasets) for c in book.cohorts()] == [True, True, True]
    book.set_grants(ANN, [nano("2")])
    assert ask(book, "at last") == 0
    assert balances(book.export())
    book.verify()


def test_a_grant_by_period_holds_anew_in_the_next_one_alone(tmp_path: Path) -> None:
    """What was granted for a later period cannot have been charged in the lost part; any other grant can."""
    at = [datetime(2026, 11, 1, tzinfo=UTC)]
    address, head = f"sqlite:///{tmp_path}/a.ledger", tmp_path / "head"

    def opened(**more: Any) -> Ledger:
        return epsilons.ledger.open(address, witness=head, clock=lambda: at[0], **more)

    def choose(word: Word, anew: bool = False) -> None:
        book.say(ANN, np.zeros(1, np.int64), [word], anew=anew)

    book = opened()
    yearly, strict = Word(nano("1"), "yearly"), Word(nano("2"), "strict")
    words = {"ann": yearly, "bob": Word(PUBLIC_CODE, "public"), "cy": strict}
    book.register(application("wages", words, about={**ABOUT, "renews": {"yearly": "year"}}))
    book.close()
    head.unlink()
    book = opened(accept_loss=True)
    assert ask(book, "2026") == 0
    at[0] = datetime(2027, 1, 1, tzinfo=UTC)
    book.renew()
    choose(strict)
    assert ask(book, "for good") == 0
    choose(yearly)
    assert ask(book, "back again") == 0
    at[0] = datetime(2028, 1, 1, tzinfo=UTC)
    book.renew()
    assert ask(book, "2028") == nano("1")
    choose(strict, anew=True)
    assert ask(book, "anew") == nano("2")
    assert balances(book.export())
    assert book.verify().releases == 2
    book.close()


# Where it is known how much the lost part can have charged ----------------------------------------------------------


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Ledger]:
    made = epsilons.ledger.open(f"sqlite:///{tmp_path}/b.ledger", witness=tmp_path / "b.head")
    made.settle_terms("absent", 1)
    made.enroll([*ANN, person("bob"), person("cy")], [nano("1"), nano("0.2"), None])
    yield made
    made.close()


def write_off(book: Ledger, bound: int) -> None:
    with book._writing("", "") as connection:
        losses.write_off(connection, journal.write_time(book._clock), None, journal.head(connection)[0], bound)


def test_a_bounded_loss_costs_everyone_so_much(book: Ledger) -> None:
    bound = nano("0.3")
    write_off(book, bound)
    assert {c.granted: (c.spent, c.left) for c in book.cohorts()} == {
        nano("1"): (bound, nano("0.7")),
        nano("0.2"): (bound, 0),
        None: (bound, None),
    }
    book.enroll([person("dora")], [nano("0.5")])  # a newcomer
    book.set_grants([person("cy")], [nano("0.4")])  # who was public
    book.set_grants([person("bob")], [nano("0.5")])
    assert {c.granted: c.left for c in book.cohorts()} == {
        nano("1"): nano("0.7"),
        nano("0.5"): nano("0.2"),
        nano("0.4"): nano("0.1"),
    }
    assert "Records were lost, so 0.3 more counts as spent." in str(book.statement(person("dora")))
    write_off(book, nano("0.1"))
    book.enroll([person("eve")], [nano("0.5")])
    assert "so 0.4 more counts as spent" in str(book.statement(person("eve")))
    recount = book.verify()
    assert balances(book.export()) == {c.id: (c.granted, c.spent, c.reserved, c.people) for c in recount.cohorts}
    write_off(book, losses.UNKNOWN)
    assert all(not c.left for c in book.cohorts())
    book.verify()


def test_what_anybody_was_charged_at_most_is_counted(book: Ledger, tmp_path: Path) -> None:
    def most() -> int:
        return int(json.loads((tmp_path / "b.head").read_text())["most"])

    assert most() == 0
    first = book.allowance(Fraction(1, 10))
    book.refund(book.reserve(key("1"), first.nano, epoch=first.epoch, kind="count").number)
    assert most() == nano("0.1")  # what was given back may have been read in a part that is lost
    ask(book, "2")
    assert most() == nano("1.1")
    with book._database.read() as connection:
        assert losses.bound_loss(connection, nano("0.1"), nano("1.0")) == nano("0.9")
        assert losses.bound_loss(connection, nano("0.1"), nano("1.1")) == losses.UNKNOWN  # as much as anybody granted
        for here, newest in ((None, 5), (5, None), (6, 5), (0, journal.LARGEST_SUM)):
            assert losses.bound_loss(connection, here, newest) == losses.UNKNOWN
    assert journal.add_charges(journal.LARGEST_SUM, "reserve", '{"charges":[[1,5,0]]}') == journal.LARGEST_SUM


# What the recount would miss without the floor ----------------------------------------------------------------------


@pytest.mark.parametrize("planted", ["a move", "a newcomer", "consent"])
def test_the_recount_sees_who_is_let_off(tmp_path: Path, planted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code that forgets a floor, or lifts it without consent, writes lines that do not add up."""
    from epsilons.ledger import roster

    here = Restored(tmp_path, None, lambda book: book.set_grants(ANN, [nano("0.5")]))
    find = roster._Cohorts.find_target

    def forgetful(self: Any, origin: int | None, new: Any) -> int:
        which = {"a move": origin is not None, "a newcomer": origin is None, "consent": True}[planted]
        return find(self, origin, new._replace(lost=False) if which else new)

    monkeypatch.setattr(roster._Cohorts, "find_target", forgetful)
    if planted == "a newcomer":
        here.book.enroll([person("new")], [nano("0.5")])
    else:
        here.book.set_grants(ANN, [nano("0.5")])
    assert max(c.left or 0 for c in here.book.cohorts()) == nano("0.5")
    with pytest.raises(LedgerError, match="does not add up"):
        here.book.verify()
    with pytest.raises((AssertionError, KeyError)):
        balances(here.book.export())


def test_the_floor_is_in_the_journal(tmp_path: Path) -> None:
    here = Restored(tmp_path, nano("1"), lambda book: None)
    assert [json.loads(line["body"])["floor"] for line in here.book.export() if line["kind"] == "loss"] == [-1]
