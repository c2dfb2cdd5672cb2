"""Ledgers of the first version, which knew neither registrations nor names of levels: taken over, nothing forgotten."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import epsilons as eps
from epsilons import ledger as ledgers
from epsilons.cli import app
from epsilons.dataset.preview import Preview, look_over
from epsilons.errors import BudgetExceeded, LedgerError, PreferenceError
from epsilons.ledger.journal import Anchor
from epsilons.ledger.opening import find_database, find_places

#: Two ledgers as the release that knew formats 1 and 2 wrote them, of twenty people each: p00 to p19, or P00 to P19.
#: A count at half of everyone's epsilon and a mean at a quarter were asked.
OLD = json.loads((Path(__file__).parents[2] / "support" / "ledger_format_2.json").read_text())
LEVELS = {"strict": 0.5, "open": 2.0}


@pytest.fixture
def address(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    # All of them are the same ledger, so each needs a machine of its own.
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    found = write_old(tmp_path, getattr(request, "param", "normal"))
    ledgers.open(found, adopt=True).close()
    return found


def write_old(tmp_path: Path, kind: str = "normal") -> str:
    with closing(sqlite3.connect(tmp_path / "old.ledger")) as connection, connection:
        for statement in OLD["sqlite"]:
            connection.execute(statement)
        for table, rows in OLD[kind].items():
            for row in rows:
                values = [bytes.fromhex(value["hex"]) if isinstance(value, dict) else value for value in row]
                connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", values)
    return f"sqlite:///{tmp_path}/old.ledger"


def people(shape: str = "p{:02}", known: int = 20) -> pa.Table:
    """The table that it was made with; of its people `known`, and others in the place of the rest."""
    ids = [shape.format(number if number < known else number + 100) for number in range(20)]
    levels = ["strict" if number % 4 == 0 else "open" for number in range(20)]
    return pa.table({"id": ids, "level": levels, "wage": [5.0 * number for number in range(20)]})


def register(address: str, table: pa.Table, **more: Any) -> eps.Dataset:
    told: dict[str, Any] = {"bounds": {"wage": (0, 100)}, "complete": ["wage"], "version": "2026-11", **more}
    preferences = eps.Preferences.from_levels("level", LEVELS)
    return eps.Dataset.register(table, name="wages", person="id", preferences=preferences, ledger=address, **told)


def test_the_first_registration_takes_it_over_and_nothing_is_forgotten(address: str) -> None:
    with closing(ledgers.open(address, create=False)) as book:
        assert book.verify().releases == 2
        assert (book.terms().ids, book.levels()) == (None, {})
        before = {row.tobytes(): book.statement(row.tobytes()).spent for row in book.members().digests}
    with register(address, people()) as found:
        assert found.enrolment is not None
        assert (found.enrolment.known, found.enrolment.joined) == (20, 0)
        terms = found.ledger.terms()
        assert terms is not None
        assert (terms.ids, terms.spelling) == ("text", "normal")
        assert found.ledger.levels() == {"strict": 500_000_000, "open": 2_000_000_000}
        assert {cohort.level for cohort in found.ledger.cohorts() if cohort.people} == set(LEVELS)
        after = {row.tobytes(): found.ledger.statement(row.tobytes()).spent for row in found.ledger.members().digests}
        assert after == before
        found.ledger.verify()


def test_old_answers_stay_listed_and_the_same_question_is_charged(
    address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.main(["ledger", "answers", address, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 2
    with register(address, people()) as found:
        assert sorted(found.answers()) == [1, 2]
        assert float(found.answers()[1].value) == pytest.approx(19.91, abs=0.01)
        left = found.remaining().epsilons
        assert left == {0.5: 0.125, 2.0: 0.5}
        found.count(share=0.125)
        assert found.remaining().epsilons != left
        assert sorted(found.answers()) == [1, 2, 3]
        found.sum("wage", share=1)
        with pytest.raises(BudgetExceeded):
            found.mean("wage", share=0.25)
        found.ledger.verify()
    assert app.main(["ledger", "answers", "1", address]) == 0
    assert "19.91" in capsys.readouterr().out
    assert app.main(["ledger", "verify", address]) == 0
    assert "Snapshots as registered: wages." in capsys.readouterr().out


def test_a_table_of_other_people_is_refused(address: str) -> None:
    for known in (0, 10, 17):
        with pytest.raises(LedgerError, match="knows nine in ten people"):
            register(address, people(known=known), confirm=True)
    with register(address, people(known=18)) as found:
        assert found.enrolment is not None
        assert (found.enrolment.known, found.enrolment.joined, found.enrolment.gone) == (18, 2, 0)


@pytest.mark.parametrize("address", ["as written"], indirect=True)
def test_ids_that_were_not_in_normal_form_stay_as_they_were_written(address: str) -> None:
    with register(address, people("P{:02}")) as found:
        terms = found.ledger.terms()
        assert terms is not None
        assert terms.spelling == "as written"
        assert found.remaining().epsilons == {0.5: 0.125, 2.0: 0.5}
        assert found.statement("P03").granted == 2_000_000_000
        with pytest.raises(LedgerError, match="no account"):
            found.statement("p03")
        found.set_level({"P03": "strict"})
    with register(address, people("P{:02}"), version="2") as found:
        assert found.enrolment is not None
        assert (found.enrolment.known, found.enrolment.joined, found.enrolment.kept) == (20, 0, 1)
    with pytest.raises(LedgerError, match="20 are new to this ledger"):
        register(address, people("p{:02}"), version="3")


@pytest.mark.parametrize("address", ["as written"], indirect=True)
def test_ids_of_an_older_ledger_in_another_spelling_are_other_people(address: str) -> None:
    with pytest.raises(LedgerError, match="knows nine in ten people"):
        register(address, people("p{:02}"), confirm=True)
    register(address, people("P{:02}")).close()


def test_a_ledger_that_knows_nobody_yet_takes_the_normal_form(tmp_path: Path) -> None:
    new = f"sqlite:///{tmp_path}/new.ledger"
    with closing(ledgers.open(new)) as book:
        book.settle_terms("absent")
    with register(new, people("P{:02}")) as found:
        assert found.statement(" p03 ").granted == 2_000_000_000


def test_numbers_are_not_the_ids_of_texts(address: str) -> None:
    table = people().set_column(0, "id", pa.array(range(20)))
    with pytest.raises((LedgerError, PreferenceError), match="knows nine in ten people"):
        register(address, table, confirm=True)


def test_a_look_shows_what_registering_would_do_to_an_older_ledger_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    address = write_old(tmp_path)

    def look(table: pa.Table) -> Preview:
        preferences = eps.Preferences.from_levels("level", LEVELS)
        return look_over(table, name="wages", person="id", preferences=preferences, ledger=address)

    with pytest.raises(LedgerError, match="adopt"):  # registering is refused as well
        look(people())
    # Known to this user, by a release that knew no newer format.
    with closing(find_database(address, create=False)) as database, database.read() as connection:
        ledger, places = connection.execute("SELECT id FROM ledger").fetchone()[0], find_places()
        places.remember(address, ledger)
        Anchor(places.folder / f"{ledger}.json").adopt(connection, ledger)
    before = contents(tmp_path)
    seen = look(people())
    assert (seen.enrolment.known, seen.enrolment.joined, seen.refused) == (20, 0, ())
    (told,) = look(people(known=10)).refused
    assert "knows nine in ten people" in told
    assert contents(tmp_path) == before
    with register(address, people()) as found:
        assert found.enrolment is not None
        assert found.enrolment.known == 20
    assert contents(tmp_path) != before


def contents(folder: Path) -> tuple[list[str], dict[Path, bytes]]:
    """Everything that a ledger holds, and every file that this user keeps of it."""
    with closing(sqlite3.connect(folder / "old.ledger")) as connection:
        held = list(connection.iterdump())
    return held, {path: path.read_bytes() for path in (folder / "state").rglob("*") if path.is_file()}
