"""Backups that are put back, ledgers that move or are retired: no budget is spent twice by any of them."""

from __future__ import annotations

import shutil
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

import epsilons.ledger
from epsilons.errors import LedgerError
from epsilons.ledger import migrating, moving, tables
from epsilons.ledger.ledger import Ledger
from epsilons.storage.base import watchers
from epsilons.storage.sqlite import Sqlite
from support.ledger_copies import restore
from support.ledger_recount import balances
from support.ledgers import key, nano, person


class Site:
    """A ledger in a file, whose head a witness keeps in another."""

    def __init__(self, folder: Path, witness: str | None) -> None:
        self.folder, self.url = folder, f"sqlite:///{folder}/a.ledger"
        self.backup, self.witness = str(folder / "a.backup"), witness
        with closing(epsilons.ledger.open(self.url, witness=witness)) as book:
            book.settle_terms("absent", 1)
            book.enroll([person("ann"), person("bob")], [nano("1"), None])

    def open(self, name: str = "a", **more: Any) -> Ledger:
        return epsilons.ledger.open(f"sqlite:///{self.folder}/{name}.ledger", create=False, **more)

    def ask(self, name: str, share: Fraction = Fraction(1, 10)) -> None:
        with closing(self.open()) as book:
            may = book.allowance(share)
            held = book.reserve(key(name), may.nano, epoch=may.epoch, kind="count")
            book.mark_read(held.number)
            book.store(held.number, b"1")

    def back_up(self) -> int:
        with closing(self.open()) as book:
            return moving.back_up(book, self.backup)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture(params=["witness", "file"])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Site:
    return Site(tmp_path, f"sqlite:///{tmp_path}/w.store" if request.param == "witness" else None)


def test_a_restored_backup_costs_what_came_after_it(site: Site, tmp_path: Path) -> None:
    site.ask("before")
    assert site.back_up() > 3
    assert stat.S_IMODE((tmp_path / "a.backup").stat().st_mode) == 0o600
    site.ask("after", Fraction(2, 10))
    book, cost = restore(site.backup, site.url)
    with closing(book):
        if (tmp_path / "w.store").exists():
            assert cost == nano("0.2")
            assert book.remaining().nano == {nano("1"): nano("0.7")}
        else:
            assert cost == -1
            assert book.remaining().nano == {nano("1"): 0}
        recount = book.verify()
        assert balances(book.export()) == {c.id: (c.granted, c.spent, c.reserved, c.people) for c in recount.cohorts}
    # What it replaced is refused if it turns up again.
    shutil.copy(tmp_path / "a.ledger.replaced-1", tmp_path / "a.ledger")
    with pytest.raises(LedgerError, match="older than"):
        site.open()


@pytest.mark.parametrize("moved", [False, True])
def test_a_backup_of_an_older_release_costs_no_more(
    moved: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The witness knows its last line, and not the one by which it was brought up to date."""
    with monkeypatch.context() as older:
        older.setattr(tables, "FORMAT", 6)  # the next step, which makes a table that is there already, is left out
        site = Site(tmp_path, f"sqlite:///{tmp_path}/w.store")
        site.ask("before")
        site.back_up()
    monkeypatch.setitem(migrating._MIGRATIONS, 6, lambda _: {})
    site.ask("after", Fraction(2, 10))
    if moved:
        moving.move(site.url, f"{site.url}.new").close()
    book, cost = restore(site.backup, site.url)
    with closing(book):
        assert (cost, book.remaining().nano) == (nano("0.2"), {nano("1"): nano("0.7")})
        book.verify()
    with closing(site.open(witness=tmp_path / "of another client", adopt=True)) as book:
        assert [line["kind"] for line in book.export()][-2:] == ["migrate", "loss"]


def test_a_backup_of_the_newest_state_costs_nothing(site: Site) -> None:
    site.ask("before")
    site.back_up()
    book, cost = restore(site.backup, site.url)
    with closing(book):
        assert (cost, book.remaining().nano) == (None, {nano("1"): nano("0.9")})


def test_a_log_that_an_interrupted_restore_left_is_no_part_of_the_backup(site: Site, tmp_path: Path) -> None:
    site.ask("before")
    site.back_up()
    with closing(site.open()) as book:  # its log is not written back while it is open
        site.ask("after", Fraction(2, 10))
        assert (tmp_path / "a.ledger-wal").stat().st_size
        shutil.copy(tmp_path / "a.ledger-wal", tmp_path / "log")
        assert book.history()
    (tmp_path / "a.ledger").rename(tmp_path / "a.ledger.replaced-1")
    shutil.move(tmp_path / "log", tmp_path / "a.ledger-wal")
    book, cost = restore(site.backup, site.url)
    with closing(book):
        assert cost == (nano("0.2") if site.witness else -1)
        assert len(book.history()) == 1
        book.verify()
    assert (tmp_path / "a.ledger.replaced-2-wal").exists()


def test_words_are_lost_even_where_nothing_was_charged(site: Site) -> None:
    site.back_up()
    with closing(site.open()) as book:
        book.withdraw([person("ann")])
    book, cost = restore(site.backup, site.url)
    with closing(book):
        assert cost == (0 if site.witness else -1)
        assert [line["kind"] for line in book.export()][-1] == "loss"


def test_a_ledger_that_does_not_add_up_goes_on_from_its_backup(site: Site) -> None:
    site.ask("before")
    site.back_up()
    site.ask("after", Fraction(2, 10))
    with closing(site.open()) as book:
        with book._database.write() as connection:
            connection.execute("UPDATE cohorts SET spent = 0")
        with pytest.raises(LedgerError, match="does not add up"):
            book.verify()
    book, cost = restore(site.backup, site.url)
    with closing(book):
        assert cost
        assert (book.remaining().nano[nano("1")]) <= nano("0.7")
        book.verify()


def test_a_lost_file_is_restored(site: Site, tmp_path: Path) -> None:
    site.back_up()
    site.ask("after")
    for part in tmp_path.glob("a.ledger*"):
        part.unlink()
    book, cost = restore(site.backup, site.url)
    with closing(book):
        assert cost in (-1, nano("0.1"))
        book.verify()


def test_a_backup_of_another_ledger_is_not_put_there(site: Site, tmp_path: Path) -> None:
    other = f"sqlite:///{tmp_path}/other.ledger"
    with closing(epsilons.ledger.open(other)) as book:
        book.copy(str(tmp_path / "other.backup"))
    with pytest.raises(LedgerError, match="backup of another ledger"):
        moving.restore(str(tmp_path / "other.backup"), site.url)
    site.ask("goes on")


def test_after_a_move_the_old_copy_refuses(site: Site, tmp_path: Path) -> None:
    site.ask("before")
    shutil.copy(tmp_path / "a.ledger", tmp_path / "kept")
    with closing(moving.move(site.url, f"sqlite:///{tmp_path}/new/b.ledger")) as book:
        assert [line["kind"] for line in book.export()][-2:] == ["end", "arrive"]
        may = book.allowance(Fraction(1, 10))
        book.reserve(key("goes on"), may.nano, epoch=may.epoch, kind="count")
        book.verify()
    with pytest.raises(LedgerError, match="has moved"):
        site.open()
    # Nor is it a loss that can be accepted: the new one would be refused from then on.
    with pytest.raises(LedgerError, match="has moved"):
        site.open(accept_loss=True)
    epsilons.ledger.open(f"sqlite:///{tmp_path}/new/b.ledger", create=False).close()
    shutil.copy(tmp_path / "kept", tmp_path / "a.ledger")  # as it was before the move
    with pytest.raises(LedgerError, match=r"older than|diverged"):
        site.open()


def test_whoever_has_the_old_copy_open_changes_nothing_there(tmp_path: Path) -> None:
    """A client with a head of its own: nobody at the new place would know of an answer or a withdrawal."""
    site = Site(tmp_path, None)
    with closing(site.open(witness=tmp_path / "head of another", adopt=True)) as book:
        may = book.allowance(Fraction(1, 10))
        held, read = (book.reserve(key(name), may.nano, epoch=may.epoch, kind="count") for name in ("held", "read"))
        book.mark_read(read.number)
        with closing(moving.move(site.url, f"sqlite:///{tmp_path}/b.ledger")) as there:
            before = [*book.export()]
            changes: list[Callable[[], object]] = [
                lambda: book.withdraw([person("ann")]),
                lambda: book.enroll([person("cy")], [nano("1")]),
                lambda: book.reserve(key("new"), may.nano, epoch=may.epoch, kind="count"),
                lambda: book.mark_read(held.number),
                lambda: book.refund(held.number),
                lambda: book.store(read.number, b"1"),
                lambda: book.set_quota("office", questions=1),
                lambda: book.set_witness(f"sqlite:///{tmp_path}/w.store"),
            ]
            for change in changes:
                with pytest.raises(LedgerError, match="has moved"):
                    change()
            assert [*book.export()] == before
            there.mark_read(held.number)
            there.store(held.number, b"1")
            assert there.withdraw([person("ann")]).withdrawn == 1
            there.verify()


def test_a_ledger_that_is_lost_at_its_new_place_goes_on_from_the_old_copy(site: Site, tmp_path: Path) -> None:
    """As from any other backup."""
    site.ask("before")
    with closing(moving.move(site.url, f"sqlite:///{tmp_path}/b.ledger")) as book:
        may = book.allowance(Fraction(2, 10))
        book.mark_read(book.reserve(key("after"), may.nano, epoch=may.epoch, kind="count").number)
    for part in tmp_path.glob("b.ledger*"):
        part.unlink()
    book, cost = restore(str(tmp_path / "a.ledger"), f"sqlite:///{tmp_path}/c.ledger")
    with closing(book):
        bounded = (tmp_path / "w.store").exists()
        assert cost == (nano("0.2") if bounded else -1)
        assert book.remaining().nano == {nano("1"): nano("0.7") if bounded else 0}
        assert book.withdraw([person("ann")]).withdrawn == 1
        book.verify()
    with pytest.raises(LedgerError, match="has moved"):
        site.open()


def test_a_move_that_was_interrupted_is_finished_once(site: Site, tmp_path: Path) -> None:
    class EndsError(Exception):
        pass

    def end(place: str) -> None:
        if place == "enrolled":
            raise EndsError

    watchers.append(end)
    try:
        with pytest.raises(EndsError):
            moving.move(site.url, f"sqlite:///{tmp_path}/b.ledger")
    finally:
        watchers.remove(end)
    with pytest.raises(LedgerError, match="has moved"):
        site.open()
    for place in ("b", "c"):  # two copies of the old one
        shutil.copy(tmp_path / "a.ledger", tmp_path / f"kept {place}.ledger")
    moving.move(site.url, f"sqlite:///{tmp_path}/b.ledger").close()
    with pytest.raises(LedgerError, match=r"older than|diverged"):
        moving.move(f"sqlite:///{tmp_path}/kept c.ledger", f"sqlite:///{tmp_path}/c.ledger").close()
    site.open("b").close()


def test_a_retired_ledger_takes_no_more_questions(site: Site) -> None:
    site.ask("before")
    with closing(site.open()) as book:
        beside = site.open()
        moving.retire(book)
        moving.retire(book)
        for one in (book, beside):
            may = one.allowance(Fraction(1, 10))
            with pytest.raises(LedgerError, match="is retired"):
                one.reserve(key("after"), may.nano, epoch=may.epoch, kind="count")
        assert len(book.history()) == 1
        assert book.find(key("before")) is not None
        book.verify()
        beside.close()
    with pytest.raises(LedgerError, match="is retired"):
        moving.move(site.url, f"{site.url}.new")


def test_a_backup_where_nothing_can_be_written_is_to_be_copied_first(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A medium that is only read: root, who tests, may write to any folder."""
    site.back_up()
    with monkeypatch.context() as medium:
        medium.setattr(moving.os, "access", lambda *_: False)
        with pytest.raises(LedgerError, match="a copy of the backup in a folder of yours"):
            moving.restore(site.backup, site.url)
    assert not (tmp_path / "a.ledger.replaced-1").exists()


def test_what_cannot_be_put_back_leaves_the_ledger_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk is full; a backup is the ledger itself."""
    site = Site(tmp_path, None)
    site.ask("before")
    site.back_up()
    with monkeypatch.context() as patched:
        patched.setattr(Sqlite, "copy", Mock(side_effect=LedgerError("The disk is full.")))
        with pytest.raises(LedgerError, match="The disk is full"):
            moving.restore(site.backup, site.url)
    site.ask("after")
    restored, lost = moving.restore(str(tmp_path / "a.ledger"), site.url)
    with closing(restored):
        assert not lost
        assert [past.kind for past in restored.history()] == ["count"] * 2


def test_a_copy_takes_no_other_file_s_place(tmp_path: Path) -> None:
    with closing(epsilons.ledger.open(f"sqlite:///{tmp_path}/a.ledger")) as book:
        (tmp_path / "there").write_text("letters")
        with pytest.raises(LedgerError, match="there is there already"):
            book.copy(str(tmp_path / "there"))
        assert (tmp_path / "there").read_text() == "letters"
        with pytest.raises(LedgerError, match="Nothing can be written to"):
            book.copy(str(tmp_path / "nowhere" / "copy"))


def test_whoever_has_it_open_while_a_backup_is_put_back_charges_nothing_beside_it(site: Site, tmp_path: Path) -> None:
    """A client with a head of its own would go on with the file that was put aside, where nobody sees it."""
    site.back_up()
    more: dict[str, Any] = {} if site.witness else {"witness": tmp_path / "head of another", "adopt": True}
    with closing(site.open(**more)) as book:
        may = book.allowance(Fraction(1, 10))
        held, read = (book.reserve(key(name), may.nano, epoch=may.epoch, kind="count") for name in ("held", "read"))
        book.mark_read(read.number)
        moving.restore(site.backup, site.url, site.witness)[0].close()
        changes: list[Callable[[], object]] = [
            lambda: book.reserve(key("new"), may.nano, epoch=may.epoch, kind="count"),
            lambda: book.mark_read(held.number),
            lambda: book.store(read.number, b"1"),
            lambda: book.withdraw([person("ann")]),
        ]
        for change in changes:
            with pytest.raises(LedgerError, match="Another file stands where this ledger was opened"):
                change()
    with closing(sqlite3.connect(tmp_path / "a.ledger.replaced-1")) as aside:
        kinds = [kind for (kind,) in aside.execute("SELECT kind FROM journal ORDER BY seq")]
    assert kinds[-3:] == ["reserve", "reserve", "touch"]
    with closing(site.open()) as book:
        assert not book.history()
        book.verify()


def test_half_a_copy_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a disk is full, the next backup of that name is not refused for what is left of this one."""
    with closing(epsilons.ledger.open(f"sqlite:///{tmp_path}/a.ledger")) as book:
        with monkeypatch.context() as patched:
            patched.setattr(sqlite3, "connect", Mock(side_effect=sqlite3.OperationalError("disk is full")))
            with pytest.raises(LedgerError, match="refused or could not be reached"):
                book.copy(str(tmp_path / "copy"))
        book.copy(str(tmp_path / "copy"))
