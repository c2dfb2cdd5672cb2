"""The head outside the database: an older copy, a fork or an edited ledger is refused."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

import epsilons.ledger
from epsilons.errors import LedgerError
from epsilons.ledger.book import Ledger
from ledgers import key, nano, person


class Place:
    """A ledger's file and its head."""

    def __init__(self, folder: Path) -> None:
        self.file, self.head = folder / "people.ledger", folder / "state" / "head.json"
        self.books: list[Ledger] = []

    def open(self, **more: bool) -> Ledger:
        self.books.append(epsilons.ledger.open(f"sqlite:///{self.file}", anchor=self.head, **more))
        return self.books[-1]

    def close(self) -> None:
        while self.books:
            self.books.pop().close()

    def copy(self, name: str) -> Path:
        self.close()
        kept = self.file.with_name(name)
        shutil.copy(self.file, kept)
        return kept

    def put_back(self, kept: Path) -> None:
        self.close()
        for rest in ("-wal", "-shm"):
            self.file.with_name(self.file.name + rest).unlink(missing_ok=True)
        shutil.copy(kept, self.file)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    here = Place(tmp_path)
    book = here.open()
    book.settle_terms("absent", 1)
    book.enroll([person("ann")], [nano("1")])
    yield here
    here.close()


def charge(book: Ledger, name: str) -> int:
    return book.reserve(key(name), {1: nano("0.1")}, epoch=1, kind="count").number


def test_the_head_follows_every_change(place: Place) -> None:
    book = place.open()
    charge(book, "one")
    seen = json.loads(place.head.read_text())
    assert (seen["ledger"], seen["seq"], seen["hash"]) == (book.id, book.verify().entries, book.verify().head)
    charge(place.open(), "two")
    charge(book, "three")
    assert place.open().verify().releases == 3


def test_an_older_copy_is_refused(place: Place) -> None:
    kept = place.copy("backup")
    charge(place.open(), "one")
    place.put_back(kept)
    for adopt in (False, True):
        with pytest.raises(LedgerError, match="behind its head or beside it"):
            place.open(adopt=adopt)


def test_an_older_copy_is_refused_while_running(place: Place) -> None:
    kept = place.copy("backup")
    charge(place.open(), "one")
    place.close()
    head = place.head.read_text()
    place.head.unlink()
    place.put_back(kept)
    book = place.open(adopt=True)
    place.head.write_text(head)
    with pytest.raises(LedgerError, match="behind its head"):
        charge(book, "two")


def test_a_fork_is_refused(place: Place) -> None:
    kept = place.copy("backup")
    charge(place.open(), "one")
    head = place.head.read_text()
    place.head.unlink()
    place.put_back(kept)
    fork = place.open(adopt=True)
    for name in ("two", "three", "four"):
        charge(fork, name)
    place.close()
    place.head.write_text(head)
    with pytest.raises(LedgerError, match="behind its head or beside it"):
        place.open()


def test_a_database_ahead_of_its_head_is_fine(place: Place) -> None:
    head = place.head.read_text()
    charge(place.open(), "one")
    place.close()
    place.head.write_text(head)
    book = place.open()
    assert json.loads(place.head.read_text())["seq"] == book.verify().entries


def test_a_moved_ledger_is_refused_until_it_is_adopted(place: Place) -> None:
    place.close()
    place.head.unlink()
    with pytest.raises(LedgerError, match="not where it is kept"):
        place.open()
    place.open(adopt=True)
    assert place.open().verify().people == 1


def test_a_new_ledger_does_not_take_the_place_of_a_lost_one(place: Place) -> None:
    place.close()
    place.file.unlink()
    with pytest.raises(LedgerError, match="gone"):
        place.open()


def test_an_edited_line_under_the_head_is_refused(place: Place) -> None:
    charge(place.open(), "one")
    place.close()
    connection = sqlite3.connect(place.file)
    connection.execute("UPDATE journal SET hash = 'x' || substr(hash, 2) WHERE seq = (SELECT max(seq) FROM journal)")
    connection.commit()
    connection.close()
    with pytest.raises(LedgerError):
        place.open()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"seq": 1}', '{"ledger": "x", "seq": 1, "hash": "y"}'])
def test_a_broken_head_is_refused(place: Place, content: str) -> None:
    place.close()
    place.head.write_text(content)
    with pytest.raises(LedgerError):
        place.open()


def test_memory_has_no_anchor(tmp_path: Path) -> None:
    with pytest.raises(LedgerError):
        epsilons.ledger.open(None, anchor=tmp_path / "head")
