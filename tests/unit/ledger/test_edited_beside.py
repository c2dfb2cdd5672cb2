"""Edits beside an open ledger: noticed at the next charge, not at the next opening."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

import epsilons.ledger
from epsilons.errors import LedgerError
from epsilons.ledger.ledger import Ledger
from support.ledgers import key, nano, person


@pytest.fixture
def book(lasting: str, tmp_path: Path) -> Iterator[Ledger]:
    made = epsilons.ledger.open(lasting, witness=tmp_path / "head")
    made.settle_terms("absent", 1)
    made.enroll([person("ann"), person("bob")], [nano("1"), nano("2")])
    made.verify(thorough=False)  # as whoever opens a dataset does
    yield made
    made.close()


def ask(book: Ledger, name: str, share: Fraction = Fraction(1, 10)) -> None:
    may = book.allowance(share)
    held = book.reserve(key(name), may.nano, epoch=may.epoch, kind="count")
    book.mark_read(held.number)
    book.store(held.number, b"1")


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE cohorts SET spent = 0",
        "UPDATE cohorts SET spent = spent - 1 WHERE id = 1",
        "UPDATE cohorts SET granted = granted * 2, ceiling = ceiling * 2 WHERE id = 2",
        "UPDATE cohorts SET people = people + 1 WHERE id = 1",
        "UPDATE cohorts SET state = 'withdrawn' WHERE id = 2",
        "UPDATE ledger SET floor = floor + 1",
        "UPDATE ledger SET allow_individual = 1",
        "UPDATE ledger SET losses = 3",
    ],
)
def test_an_edit_beside_an_open_ledger_is_noticed_at_the_next_charge(book: Ledger, edit: str) -> None:
    ask(book, "before")
    ask(book, "once more")
    with book._database.write() as connection:
        connection.execute(edit)
        lines = connection.execute("SELECT count(*) FROM journal").fetchone()[0]
    with pytest.raises(LedgerError, match="does not add up"):
        ask(book, "after")
    with book._database.read() as connection:
        assert connection.execute("SELECT count(*) FROM journal").fetchone()[0] == lines  # nothing was charged


def test_what_others_change_honestly_is_followed(book: Ledger, lasting: str, tmp_path: Path) -> None:
    other = epsilons.ledger.open(lasting, witness=tmp_path / "head")
    for turn in range(4):
        ask(other, f"theirs {turn}", Fraction(1, 100))
        other.set_grants([person(f"new {turn}"), person("ann")], [nano("1"), nano("1") + turn])
        other.withdraw([person(f"new {turn - 1}")])
        ask(book, f"ours {turn}", Fraction(1, 100))
        pending = other.allowance(Fraction(1, 100))
        held = other.reserve(key(f"back {turn}"), pending.nano, epoch=pending.epoch, kind="count")
        other.refund(held.number)
        ask(book, f"once more {turn}", Fraction(1, 100))
    assert book.verify().releases == 16
    other.close()
