"""Backups and moves between files and PostgreSQL: the same ledger wherever it lives, and no budget spent twice."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import epsilons.ledger
from epsilons.errors import LedgerError
from epsilons.ledger import copying, moving
from epsilons.ledger.opening import find_database
from epsilons.storage.base import watchers
from support.ledger_copies import copied, restore
from support.ledger_recount import balances
from support.ledger_servers import fresh
from support.ledgers import key, nano, person

pytestmark = pytest.mark.integration
Place = Callable[[str], str]


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def place(postgres_server: str, tmp_path: Path) -> Place:
    """An address where nothing stands, of either kind."""
    made: dict[str, str] = {}
    return lambda name: made.setdefault(
        name, fresh(postgres_server) if name.startswith("server") else f"sqlite:///{tmp_path}/{name}.ledger"
    )


def begin(url: str, witness: str | None = None) -> None:
    with closing(epsilons.ledger.open(url, witness=witness)) as book:
        book.settle_terms("absent", 1)
        book.enroll(
            [person("ann"), person("bob"), *map(person, map(str, range(50)))], [nano("1"), None, *[nano("2")] * 50]
        )


def ask(url: str, name: str, share: Fraction = Fraction(1, 10)) -> None:
    with closing(epsilons.ledger.open(url, create=False)) as book:
        may = book.allowance(share)
        held = book.reserve(key(name), may.nano, epoch=may.epoch, kind="count")
        book.mark_read(held.number)
        book.store(held.number, b"\x00\xff1")


def back_up(url: str, path: Path) -> None:
    with closing(epsilons.ledger.open(url, create=False)) as book:
        moving.back_up(book, str(path))


def check(book: Any) -> None:
    recount = book.verify()
    assert balances(book.export()) == {c.id: (c.granted, c.spent, c.reserved, c.people) for c in recount.cohorts}


@pytest.mark.parametrize(("before", "after"), [("file", "server"), ("server", "file"), ("server", "server 2")])
def test_a_ledger_moves_between_databases(before: str, after: str, place: Place) -> None:
    begin(place(before))
    ask(place(before), "before")
    rows = copied(place(before))
    with closing(moving.move(place(before), place(after))) as book:
        check(book)
        assert book.find(key("before")).answer == b"\x00\xff1"
        assert book.remaining().nano[nano("1")] == nano("0.9")
        assert [line["kind"] for line in book.export()][-2:] == ["end", "arrive"]
    there = copied(place(after))
    for table in rows.keys() - {"journal", "ledger"}:
        assert sorted(there[table], key=repr) == sorted(rows[table], key=repr), table
    ask(place(after), "after")
    with pytest.raises(LedgerError, match="has moved"):
        ask(place(before), "again")
    with pytest.raises(LedgerError, match="stands at the new place"):
        moving.move(place(after), place(after))


#: Before the old one says so, before its head knows, before the copy stands, and before the head knows of the new one.
POINTS = [("enrolling", 1), ("anchoring", 2), ("enrolled", 1), ("arriving", 1), ("anchoring", 3)]


@pytest.mark.parametrize(("point", "nth"), POINTS)
def test_an_interrupted_move_is_finished_by_the_same_command(point: str, nth: int, place: Place) -> None:
    class EndsError(Exception):
        pass

    told: list[str] = []

    def end(reached: str) -> None:
        told.append(reached)
        if reached == point and told.count(point) == nth:
            raise EndsError

    begin(place("file"))
    ask(place("file"), "before")
    watchers.append(end)
    try:
        with pytest.raises(EndsError):
            moving.move(place("file"), place("server"))
    finally:
        watchers.remove(end)
    if point != "enrolling":
        with pytest.raises(LedgerError, match="has moved"):
            ask(place("file"), "again")
    with closing(moving.move(place("file"), place("server"))) as book:
        check(book)


@pytest.mark.parametrize("witness", [True, False])
@pytest.mark.parametrize(("before", "after"), [("server", "server"), ("server", "file"), ("file", "server")])
def test_a_backup_is_put_back_wherever(before: str, after: str, witness: bool, place: Place, tmp_path: Path) -> None:
    """It costs what came after it; nothing else than its own ledger is replaced."""
    begin(place(before), f"sqlite:///{tmp_path}/w.store" if witness else None)
    ask(place(before), "before")
    back_up(place(before), tmp_path / "a.backup")
    assert (tmp_path / "a.backup").stat().st_mode & 0o777 == 0o600
    ask(place(before), "after", Fraction(2, 10))
    newest = copied(place(before))
    book, cost = restore(str(tmp_path / "a.backup"), place(after))
    with closing(book):
        check(book)
        assert cost == (nano("0.4") if witness else -1)
        assert book.remaining().nano[nano("1")] == (nano("0.5") if witness else 0)
    if before == after:  # what stood there is kept
        assert copied(f"sqlite:///{tmp_path}/a.backup.replaced-1") == newest
    else:
        with pytest.raises(LedgerError, match=r"older than|diverged"):
            ask(place(before), "again")
    begin(place("server other"))
    with pytest.raises(LedgerError, match="backup of another ledger"):
        moving.restore(str(tmp_path / "a.backup"), place("server other"))
    ask(place("server other"), "goes on")


def test_a_backup_of_the_newest_state_costs_nothing(place: Place, tmp_path: Path) -> None:
    begin(place("server"))
    ask(place("server"), "before")
    back_up(place("server"), tmp_path / "a.backup")
    book, cost = restore(str(tmp_path / "a.backup"), place("server"))
    with closing(book):
        assert (cost, book.remaining().nano[nano("1")]) == (None, nano("0.9"))
        moving.retire(book)
    with pytest.raises(LedgerError, match="is retired"):
        ask(place("server"), "again")


def test_a_backup_of_an_older_format_is_brought_up_to_date_on_its_way(place: Place, tmp_path: Path) -> None:
    old, backup = (
        json.loads((Path(__file__).parents[2] / "support" / "ledger_format_1.json").read_text()),
        tmp_path / "a",
    )
    with closing(find_database(f"sqlite:///{backup}", create=True)) as database, database.write() as connection:
        database.make_tables(connection, old["sqlite"])
        for table, rows in old["rows"].items():
            plain = [[bytes.fromhex(one["hex"]) if isinstance(one, dict) else one for one in row] for row in rows]
            connection.insert_many(table, map(tuple, plain))
    book, cost = restore(str(backup), place("server"))
    with closing(book):
        assert cost == -1  # no head is known here
        assert (book.verify().releases, book.verify().people) == (3, 3)
    with closing(find_database(f"sqlite:///{backup}", create=False)) as database, database.read() as connection:
        assert connection.execute("SELECT format FROM ledger").fetchone()[0] == 1


def test_a_copy_that_fails_leaves_no_file(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begin(place("server"))
    path = tmp_path / "a.backup"
    path.touch()
    with closing(epsilons.ledger.open(place("server"), create=False)) as book:
        with pytest.raises(LedgerError):
            book.copy(str(path))
        path.unlink()
        monkeypatch.setattr(copying, "copy_rows", lambda *_: json.loads("{"))
        with pytest.raises(LedgerError):
            book.copy(str(path))
        assert not path.exists()


def test_ledgers_of_different_formats_are_not_mixed(place: Place) -> None:
    begin(place("server"))
    begin(place("file"))
    with (
        closing(find_database(place("server"), create=False)) as one,
        closing(find_database(place("file"), create=False)) as two,
    ):
        with two.write() as connection:
            connection.execute("ALTER TABLE quotas ADD COLUMN more INTEGER")
        with two.read() as reading, one.write() as writing, pytest.raises(LedgerError, match="different formats"):
            copying.copy_rows(reading, writing)
    ask(place("server"), "goes on")
