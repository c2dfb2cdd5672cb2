"""Edits beside an open ledger: noticed at the next charge, not at the next opening."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import epsilons.ledger
from epsilons.errors import LedgerError
from epsilons.ledger import departures, segments
from epsilons.ledger.consent import Word
from epsilons.ledger.ledger import Ledger
from epsilons.storage.base import Connection
from support.ledgers import application, key, nano, person

#: What names of levels mean; ann has the first, bob the second.
LEVELS = [Word(nano("1"), "strict"), Word(nano("2"), "open")]


@pytest.fixture
def book(lasting: str, tmp_path: Path) -> Iterator[Ledger]:
    made = epsilons.ledger.open(lasting, witness=tmp_path / "head")
    made.register(application("wages", {"ann": LEVELS[0], "bob": LEVELS[1], "cy": LEVELS[0], "di": LEVELS[1]}))
    made.set_quota("office", questions=7)
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
        "UPDATE levels SET granted = 5 * granted WHERE name = 'open'",
        "UPDATE registrations SET about = '{}'",
        "UPDATE quotas SET questions = NULL",
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


def come_back(connection: Connection, line: int) -> None:
    """Who withdrew is entered by this line where ann is."""
    segments.add(connection, segments.Entries.of(np.array([person("cy")], "S16"), np.array([line]), np.array([1])))


def go_over(connection: Connection, line: int) -> None:
    """Everybody at the stricter level goes over to the looser one."""
    departures.add(connection, line, {1: 2})


@pytest.mark.parametrize("edit", [come_back, go_over])
@pytest.mark.parametrize("later", [0, 1_000])
def test_nobody_stands_elsewhere_by_an_edit_beside_an_open_ledger(
    edit: Callable[[Connection, int], None], later: int, book: Ledger, lasting: str, tmp_path: Path
) -> None:
    """Nor by a line that is newer than what was verified here, or that there is not."""
    seq = book.registrations()[0].seq
    book.withdraw([person("cy")])
    other = epsilons.ledger.open(lasting, witness=tmp_path / "head")
    for name in ("di", "new"):
        other.withdraw([person(name)])
        stood = other.members()
        everywhere = {digest.tobytes(): cohort for digest, cohort in zip(stood.digests, stood.cohorts, strict=True)}
        moved = book.moves(seq)
        assert {who: everywhere[who] for who in map(person, ("cy", "di", name))} == dict(
            zip(moved.people.tolist(), moved.cohorts.tolist(), strict=True)
        )
    other.close()
    with book._database.write() as connection:
        (line,) = connection.execute("SELECT max(seq) FROM journal").fetchone()
        edit(connection, line + later)
    with pytest.raises(LedgerError, match="differs from the journal"):
        book.moves(seq)
