"""What every back end must do: refuse by itself, take all of a change back, bring old ledgers up to date."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import epsilons.ledger
from epsilons.errors import LedgerError
from epsilons.ledger.consent import Word
from epsilons.ledger.ledger import Ledger
from epsilons.ledger.opening import find_database
from epsilons.ledger.values import Terms
from support.layouts import WRITTEN, in_any_order, layout
from support.ledger_recount import balances
from support.ledger_servers import fresh
from support.ledgers import application, key, nano, person

OLD = json.loads((Path(__file__).parents[2] / "support" / "ledger_format_1.json").read_text())


OVERSPENDS = [
    "UPDATE cohorts SET spent = granted + 1 WHERE id = 1",
    "UPDATE cohorts SET reserved = -1 WHERE id = 1",
    "UPDATE cohorts SET people = -1 WHERE id = 1",
    "UPDATE cohorts SET spent = 'much' WHERE id = 1",
    "INSERT INTO charges VALUES (1, 1, 0, 0)",
    "INSERT INTO reservations SELECT number + 1, key, state, seq, kind, individual, epoch, at, description, "
    "answer, analyst, dataset, question FROM reservations",
]


def test_the_tables_themselves_refuse_an_overspend(ledger: Ledger) -> None:
    ledger.enroll([person("ann")], [nano("1")])
    ledger.reserve(key("one"), {1: 1}, epoch=1, kind="count")
    for change in OVERSPENDS:
        with (
            pytest.raises(LedgerError, match="nothing was changed") as refusal,
            ledger._database.write() as connection,
        ):
            connection.execute(change)
        assert refusal.value.__cause__ is None
        ledger.verify()


def test_a_row_that_does_not_fit_is_refused_in_our_words(ledger: Ledger) -> None:
    rows = [(1, 0, b"secret", 1, 1, b""), (1, 1, b"other", "many", 1, b"")]
    with pytest.raises(LedgerError, match="nothing was changed") as refusal, ledger._database.write() as connection:
        connection.insert_many("segments", iter(rows))
    assert "secret" not in str(refusal.value)
    assert "many" not in str(refusal.value)
    assert len(ledger.members().cohorts) == 0


def test_an_exception_takes_everything_back(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger.enroll([person("ann")], [nano("1")])

    def broken(*_given: Any) -> Any:
        raise RuntimeError("in the middle")

    before = ledger.verify()
    with monkeypatch.context() as patch:
        patch.setattr("epsilons.ledger.journal.append", broken)
        for change in (
            lambda: ledger.reserve(key("one"), {1: 1}, epoch=1, kind="count"),
            lambda: ledger.set_grants([person("ann"), person("bob")], [nano("2"), nano("1")]),
        ):
            with pytest.raises(RuntimeError):
                change()
    assert ledger.verify() == before
    assert ledger.cohorts() == before.cohorts


# Formats ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def old(lasting: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of a ledger of format 1, as the release that knew no other wrote it."""
    # All of them are the same ledger, so each needs a machine of its own.
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    database = find_database(lasting, create=True)
    with database.write() as connection:
        database.make_tables(connection, OLD["sqlite" if lasting.startswith("sqlite") else "postgresql"])
        for table, rows in OLD["rows"].items():
            plain = [[bytes.fromhex(one["hex"]) if isinstance(one, dict) else one for one in row] for row in rows]
            connection.insert_many(table, map(tuple, plain))
    database.close()
    return lasting


def test_an_old_ledger_is_brought_up_to_date(old: str) -> None:
    book = epsilons.ledger.open(old, adopt=True)
    done = book.verify()
    assert (done.releases, done.people) == (3, 3)
    # What format 1 used as the salt of its digests still is one.
    assert book.salt == bytes.fromhex(book.id)
    assert [past.state for past in book.history()] == ["stored", "refunded", "reserved"]
    held = book.find(key("open"))
    assert held is not None
    book.mark_read(held.number)
    assert book.store(held.number, b"43") == b"43"
    book.set_quota("office", questions=1)
    with pytest.raises(LedgerError):
        book.reserve(key("stored"), {}, epoch=book.epoch, kind="count", analyst=" ")
    may = book.members()
    assert len(may.cohorts) == 3
    assert list(balances(book.export())) == [cohort.id for cohort in book.cohorts()]
    book.verify()
    book.close()
    again = epsilons.ledger.open(old)
    assert again.verify().entries == done.entries + 3
    again.close()


def test_a_look_at_an_old_ledger_reads_it_as_a_new_one_and_leaves_it_old(old: str) -> None:
    def look() -> list[str]:
        with closing(find_database(old, create=False)) as database:
            return layout(database)

    before = look()
    with closing(epsilons.ledger.open(old, witness=False, look=True)) as book:
        assert book.verify().people == 3
        assert (book.registrations(), len(book.cohorts())) == ((), len(balances(book.export())))
        terms = Terms("absent", allow_individual=True, ids="text", spelling="normal")
        asked = application("wages", {"zoe": Word(nano("1"))}, terms=terms)
        assert book.foresee(asked).expected.joined == 1
    assert look() == before
    with closing(find_database(old, create=False)) as database, database.read() as connection:
        assert connection.execute("SELECT format FROM ledger").fetchone()[0] == 1
    epsilons.ledger.open(old, adopt=True).close()
    assert look() != before


def test_a_new_ledger_is_laid_out_as_ever(lasting: str) -> None:
    """The format on disk, word by word, as the release that settled it wrote it."""
    epsilons.ledger.open(lasting).close()
    with closing(find_database(lasting, create=False)) as database:
        assert layout(database) == WRITTEN["ledger"]["sqlite" if lasting.startswith("sqlite") else "postgresql"]


def test_an_old_ledger_then_looks_like_a_new_one(old: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    epsilons.ledger.open(old, adopt=True).close()
    new = f"sqlite:///{tmp_path}/new.ledger"
    if old.startswith("postgresql"):
        new = fresh(request.getfixturevalue("postgres_server"))
    epsilons.ledger.open(new).close()
    with closing(find_database(old, create=False)) as one, closing(find_database(new, create=False)) as two:
        assert in_any_order(one) == in_any_order(two)


def test_an_old_ledger_that_was_put_back_is_not_brought_up_to_date(old: str, tmp_path: Path) -> None:
    head = tmp_path / "head"
    known = {"ledger": OLD["rows"]["ledger"][0][1], "seq": 10_000, "hash": "0" * 64}
    head.write_text(json.dumps(known))
    with pytest.raises(LedgerError, match="has diverged"):
        epsilons.ledger.open(old, witness=head)
    database = find_database(old, create=False)
    with database.read() as connection:
        assert connection.execute("SELECT format FROM ledger").fetchone()[0] == 1
    database.close()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("DELETE FROM ledger", "does not add up"),
        ("UPDATE ledger SET format = 0", "does not add up"),
        ("UPDATE ledger SET format = format + 1", "newer release of epsilons"),
    ],
)
def test_a_ledger_without_its_row_or_from_the_future_is_refused(lasting: str, change: str, said: str) -> None:
    book = epsilons.ledger.open(lasting)
    with book._database.write() as connection:
        connection.execute(change)
    book.close()
    with pytest.raises(LedgerError, match=said):
        epsilons.ledger.open(lasting)


def test_a_migration_that_breaks_off_changes_nothing(old: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_given: Any) -> Any:
        raise RuntimeError("in the middle")

    with monkeypatch.context() as patch:
        patch.setattr("epsilons.ledger.journal.append", broken)
        with pytest.raises(RuntimeError):
            epsilons.ledger.open(old, adopt=True)
    book = epsilons.ledger.open(old)
    book.verify()
    book.close()
