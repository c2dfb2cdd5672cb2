"""A ledger that somebody edited, column by column, and the small files beside it: refused, and never a traceback."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import epsilons as eps
from epsilons.errors import EpsilonsError, LedgerError
from epsilons.ledger.journal import Anchor, now
from epsilons.ledger.ledger import Ledger
from epsilons.release.door import asked_of
from epsilons.storage.sqlite import Sqlite
from support.ledger_copies import TABLES

HEADS = {
    "a line beyond every ledger": '{"ledger": "a", "seq": 1180591620717411303424, "hash": "b"}',
    "an endless number": '{"ledger": "a", "seq": Infinity, "hash": "b"}',
    "verified beyond its end": '{"ledger": "a", "seq": 1, "hash": "b", "verified": 2}',
    "a truth": '{"ledger": "a", "seq": true, "hash": "b"}',
    "a list": "[]",
    "deep": "[" * 100_000,
    "no text": "\ud800",
}
VALUES = (None, "", "x", -1, 2**70, "{", "[1]", b"\0")
CELLS = [(table, column) for table in TABLES for column in TABLES[table]]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A registered dataset with an answer, a quota, a change of mind and a week that began, beside what knows it."""
    place = tmp_path_factory.mktemp("edited")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(place / "state"))
        with register(place, "1") as people:
            people.ledger.set_quota("office", questions=7)
            people.count(share=0.1)
            people.set_level({3: "open"})
            people.ledger._clock = lambda: now() + timedelta(7)
            assert people.ledger.renew() == 20
        yield place


@pytest.fixture
def copied(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same, to be edited, on a machine that knows it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    shutil.copytree(home, tmp_path, dirs_exist_ok=True)
    return tmp_path


def address(place: Path) -> str:
    return f"sqlite:///{place}/people.ledger"


def register(place: Path, version: str) -> eps.Dataset:
    levels = eps.Preferences.from_levels("privacy", {"strict": 0.5, "open": 1.0})
    table = pa.table({"id": range(20), "privacy": ["strict", "open"] * 10})
    facts: dict[str, Any] = {"person": "id", "preferences": levels, "version": version, "renews": "week"}
    return eps.Dataset.register(table, name="people", ledger=address(place), **facts)


def read_all(book: Ledger) -> list[Any]:
    """Everything that a ledger tells, without verifying it first."""
    looks = (
        book.terms, book.levels, book.registrations, book.cohorts, book.members, book.remaining, book.history,
        book.answers, book.quotas, lambda: book.moves(1), lambda: book.cohorts(1), lambda: book.remaining(1),
        lambda: book.statement(book.members().digests[0].tobytes()), lambda: book.withdraw([bytes(16)]),
    )  # fmt: skip
    told = []
    for look in looks:
        with suppress(EpsilonsError):
            told.append(look())
    return told


@pytest.mark.parametrize(("table", "column"), CELLS)
def test_whatever_stands_in_a_column(
    table: str, column: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asking is refused, of what is past a recount; whoever reads without verifying meets no other error than ours."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for value in VALUES:
        shutil.copytree(home, tmp_path, dirs_exist_ok=True)
        with closing(sqlite3.connect(tmp_path / "people.ledger")) as connection, connection:
            connection.execute("PRAGMA ignore_check_constraints = ON")
            try:
                edit = f"UPDATE {table} SET {column} = :value WHERE {column} IS NOT :value"
                changed = connection.execute(edit, {"value": value}).rowcount
            except (sqlite3.Error, OverflowError):
                changed = 0  # the table itself refuses it
        if not changed:
            continue
        try:
            with eps.Dataset.open("people", ledger=address(tmp_path)) as people:
                if table == "emptied":  # what is past: a recount sees it, opening does not
                    people.ledger.verify()
        except LedgerError:
            pass
        else:
            pytest.fail(f"opened with {table}.{column} = {value!r}")
        with suppress(EpsilonsError), closing(eps.ledger.open(address(tmp_path), create=False)) as book:
            read_all(book)


@pytest.mark.parametrize("file", ["head", "places"])
@pytest.mark.parametrize("text", [*HEADS.values(), '{"a": {"places": [[]], "datasets": [], "sources": []}}', None])
def test_whatever_stands_beside_the_ledger(file: str, text: str | None, copied: Path) -> None:
    """None: a pipe, which nobody writes to."""
    folder = copied / "state/epsilons/ledgers"
    path = folder / "places" if file == "places" else next(folder.glob("*.json"))
    path.unlink()
    os.mkfifo(path) if text is None else path.write_bytes(text.encode(errors="surrogatepass"))
    with pytest.raises(LedgerError, match="cannot be read"):
        eps.Dataset.open("people", ledger=address(copied))


def test_a_pipe_is_no_ledger_and_no_snapshot(copied: Path) -> None:
    (nonce,) = copied.glob("people.ledger.snapshots/*/*/nonce")
    nonce.unlink()
    os.mkfifo(nonce)
    with pytest.raises(eps.DataError, match="not the registered one"):
        eps.Dataset.open("people", ledger=address(copied))
    os.mkfifo(copied / "pipe.ledger")
    with pytest.raises(LedgerError, match="something else than a ledger"):
        eps.ledger.open(f"sqlite:///{copied}/pipe.ledger")


def test_an_id_of_a_ledger_leads_nowhere_else(tmp_path: Path) -> None:
    eps.ledger.open(address(tmp_path)).close()
    with closing(sqlite3.connect(tmp_path / "people.ledger")) as connection, connection:
        connection.execute("UPDATE ledger SET id = '../elsewhere'")
    with pytest.raises(LedgerError, match="edited or damaged"):
        eps.ledger.open(address(tmp_path), adopt=True, witness=None)


def test_nobody_who_was_renamed_in_the_roster_has_a_new_budget(copied: Path) -> None:
    """Whoever asks may not see it; registering, which would take that person for a newcomer, does."""
    with eps.Dataset.open("people", ledger=address(copied)) as people:
        people.verify()
        digest = people._registry.find_people([5])[0].tobytes()
    with closing(sqlite3.connect(copied / "people.ledger")) as connection, connection:
        for segment, part, content in connection.execute("SELECT segment, part, content FROM segments").fetchall():
            renamed = content.replace(digest, bytes(16))
            change = "UPDATE segments SET content = ? WHERE segment = ? AND part = ?"
            connection.execute(change, (renamed, segment, part))
    with pytest.raises(LedgerError, match="does not add up"):
        register(copied, "2")


PLANTED = {
    "a line is dropped": "CREATE TRIGGER a BEFORE INSERT ON journal BEGIN SELECT RAISE(IGNORE); END",
    "a charge is undone": "CREATE TRIGGER b AFTER UPDATE ON cohorts BEGIN UPDATE cohorts SET spent = OLD.spent; END",
    "a view": "ALTER TABLE cohorts RENAME TO hidden; CREATE VIEW cohorts AS SELECT * FROM hidden",
    "a row that conflicts": "CREATE TABLE other (x INTEGER PRIMARY KEY ON CONFLICT IGNORE)",
}


@pytest.mark.parametrize("plant", PLANTED.values(), ids=PLANTED)
def test_tables_that_act_by_themselves_are_refused(plant: str, copied: Path) -> None:
    """At opening, by a recount, and by whoever had it open before and changes anything."""
    with eps.Dataset.open("people", ledger=address(copied)) as people:
        with closing(sqlite3.connect(copied / "people.ledger")) as connection:
            connection.executescript(plant)
        for act in (lambda: people.count(share=0.2), people.ledger.verify):
            with pytest.raises(LedgerError, match="triggers, rules or views"):
                act()
    with pytest.raises(LedgerError, match="triggers, rules or views"):
        eps.ledger.open(address(copied))


def test_a_line_that_was_not_taken_lets_nobody_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever made it vanish: seen in the transaction, or by the head, which does not advance beyond the chain."""
    monkeypatch.setattr(Sqlite, "check_tables", lambda self, connection: None)
    with closing(eps.ledger.open(address(tmp_path), witness=tmp_path / "head")) as book:
        with closing(sqlite3.connect(tmp_path / "people.ledger")) as connection:
            connection.executescript(PLANTED["a line is dropped"])
        with pytest.raises(LedgerError, match="line 2 was not taken"):
            book.set_quota("office", questions=1)
        with book._database.read() as connection, pytest.raises(LedgerError, match="has diverged"):
            Anchor(tmp_path / "head").advance(connection, book.id, 2)


@pytest.mark.parametrize("what", ["where parts end", "where people are"])
def test_nobody_comes_back_by_an_edit_after_the_roster_was_verified(what: str, copied: Path) -> None:
    """Who withdrew stays away: what changed since a dataset was registered is known by its hash, however old it is."""
    with eps.Dataset.open("people", ledger=address(copied)) as people:
        people.withdraw([4, 5])
        people.verify()
        people.set_level({6: "open"})
        people.verify()
    for _ in range(2):
        eps.Dataset.open("people", ledger=address(copied)).close()
    with closing(sqlite3.connect(copied / "people.ledger")) as connection, connection:
        if what == "where parts end":
            connection.execute("UPDATE segments SET newest = 0")
        else:
            (cohort,) = connection.execute("SELECT min(id) FROM cohorts WHERE state = 'withdrawn'").fetchone()
            for segment, part, size, content in connection.execute(
                "SELECT segment, part, entries, content FROM segments"
            ):
                cohorts = np.frombuffer(content, "<u4")[-size:]
                back = np.where(cohorts == cohort, 1, cohorts).astype("<u4").tobytes()
                change = "UPDATE segments SET content = ? WHERE segment = ? AND part = ?"
                connection.execute(change, (content[: -4 * size] + back, segment, part))
    with pytest.raises(LedgerError, match="table of people differs from the journal"):
        eps.Dataset.open("people", ledger=address(copied))


def test_the_mark_of_individual_privacy_is_not_erased(tmp_path: Path) -> None:
    with closing(eps.ledger.open(address(tmp_path), witness=tmp_path / "head")) as book:
        book.settle_terms("absent", 1, allow_individual=True)
        book.enroll([bytes(16)], [10**9])
        for number in (1, 2):
            epoch = book.epoch
            book.reserve(bytes([number]) * 32, {1: 10**8}, epoch=epoch, kind="median", individual=number == 1)
            book.mark_read(number)
            book.store(number, b"1")
        book.verify()
        assert book.verify(thorough=False).releases == 2
        with book._database.write() as connection:
            connection.execute("UPDATE reservations SET individual = 0")
        with pytest.raises(LedgerError, match="reservations differs"):
            book.verify(thorough=False)


def test_a_question_as_deep_as_a_well_is_shown_as_it_stands() -> None:
    assert asked_of("[" * 100_000) == "[" * 100_000
