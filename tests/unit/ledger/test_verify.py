"""Whatever is changed behind the ledger's back is seen: any column of any table, lines dropped, lines made up."""

from __future__ import annotations

import json
import sqlite3
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import epsilons.ledger
from epsilons.errors import LedgerError
from epsilons.ledger import tables
from epsilons.ledger.book import Ledger
from epsilons.ledger.journal import START, canonical, chained
from ledgers import key, nano, person

COLUMNS = [(table.name, column.name) for table in tables.metadata.sorted_tables for column in table.columns]
NAMES = [f"{table}.{column}" for table, column in COLUMNS]


def busy(book: Ledger) -> None:
    """Every kind of line once: terms, joining, moving with an open charge, giving back, storing."""
    book.settle_terms("absent", 1, allow_individual=True)
    book.enroll([person("ann"), person("bob"), person("cy")], [nano("1"), nano("1"), None])
    for name in ("stored", "given back", "open"):
        may = book.allowance(Fraction(1, 10))
        number = book.reserve(key(name), may.nano, epoch=may.epoch, kind="count", description="count").number
        if name == "stored":
            book.touched(number)
            book.store(number, b"42")
        if name == "given back":
            book.refund(number)
    book.set_grants([person("ann")], [nano("2")])
    book.withdraw([person("bob")])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    book = epsilons.ledger.open(f"sqlite:///{tmp_path}/people.ledger")
    busy(book)
    book.verify()
    book.close()
    return tmp_path / "people.ledger"


def tampered(path: Path, *statements: str) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        for statement in statements:
            connection.execute(statement)
    connection.close()


def refused(path: Path) -> str:
    try:
        book = epsilons.ledger.open(f"sqlite:///{path}")
    except LedgerError as error:
        return str(error)
    with pytest.raises(LedgerError) as raised:
        book.verify()
    book.close()
    return str(raised.value)


def test_an_honest_ledger_adds_up(ledger: Ledger) -> None:
    busy(ledger)
    done = ledger.verify()
    assert done.cohorts == ledger.cohorts()
    assert (done.releases, done.people) == (3, 3)
    assert done.entries == 11


def flipped(column: Any) -> str:
    """Another value of the same type, near the one that stands there."""
    name = column.name
    kind = str(column.type)
    if kind in ("BIGINT", "INTEGER"):
        return f"coalesce({name}, 0) + {1000 if column.primary_key else 1}"
    if kind == "BLOB":
        return f"CAST(x'00' || substr(coalesce({name}, x'0000'), 2) AS BLOB)"
    return f"coalesce({name}, '') || ' '"


@pytest.mark.parametrize(("table", "column"), COLUMNS, ids=NAMES)
def test_any_edited_column_is_seen(path: Path, table: str, column: str) -> None:
    edit = flipped(tables.metadata.tables[table].c[column])
    connection = sqlite3.connect(path)
    identity = [c.name for c in tables.metadata.tables[table].primary_key.columns]
    rows = connection.execute(f"SELECT {', '.join(identity)} FROM {table} ORDER BY {', '.join(identity)}").fetchall()
    connection.close()
    assert rows
    original = path.read_bytes()
    for row in (rows[0], rows[-1]):
        path.write_bytes(original)
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA ignore_check_constraints = ON")
        where = " AND ".join(f"{name} = ?" for name in identity)
        done = connection.execute(f"UPDATE {table} SET {column} = {edit} WHERE {where}", row).rowcount
        connection.commit()
        connection.close()
        assert done == 1
        assert refused(path)


@pytest.mark.parametrize("table", [table.name for table in tables.metadata.sorted_tables])
def test_a_missing_row_is_seen(path: Path, table: str) -> None:
    first = next(iter(tables.metadata.tables[table].primary_key.columns)).name
    tampered(path, f"DELETE FROM {table} WHERE {first} = (SELECT max({first}) FROM {table})")
    assert refused(path)


@pytest.mark.parametrize(
    ("what", "statement"),
    [
        ("a person", "INSERT INTO people VALUES (x'00112233445566778899aabbccddeeff', 1, 3)"),
        ("a cohort", "INSERT INTO cohorts VALUES (99, 5, 0, 0, 5, 0, 'active')"),
        ("a charge", "INSERT INTO charges VALUES (1, 99, 5, 0)"),
        ("a move", "INSERT INTO moves VALUES (x'00112233445566778899aabbccddeeff', 3, 1, 2)"),
        ("a null", "UPDATE cohorts SET granted = NULL WHERE id = 2"),
        ("two people swapped", "UPDATE people SET cohort = (SELECT max(cohort) + min(cohort) FROM people) - cohort"),
        ("an answer", "UPDATE reservations SET answer = x'00' WHERE state = 'stored'"),
    ],
)
def test_an_invented_row_is_seen(path: Path, what: str, statement: str) -> None:
    tampered(path, statement)
    assert refused(path), what


def rewritten(path: Path, change: Any) -> None:
    """Somebody rewrites a line and then the whole chain after it."""
    connection = sqlite3.connect(path)
    head = START
    for seq, kind, at, body in connection.execute("SELECT seq, kind, at, body FROM journal ORDER BY seq").fetchall():
        words = canonical(change(kind, json.loads(body)))
        head = chained(head, seq, kind, at, words)
        connection.execute("UPDATE journal SET body = ?, hash = ? WHERE seq = ?", (words, head, seq))
    connection.commit()
    connection.close()


def test_a_rewritten_chain_is_seen_by_the_recount(path: Path) -> None:
    def cheaper(kind: str, body: dict[str, Any]) -> dict[str, Any]:
        if kind == "reserve":
            body["charges"] = [[cohort, 1] for cohort, _ in body["charges"]]
        return body

    rewritten(path, cheaper)
    assert "differs from the journal" in refused(path) or "does not add up" in refused(path)


def test_an_overspent_journal_is_seen(path: Path) -> None:
    def dearer(kind: str, body: dict[str, Any]) -> dict[str, Any]:
        if kind == "reserve":
            body["charges"] = [[cohort, nano("3")] for cohort, _ in body["charges"]]
        return body

    rewritten(path, dearer)
    assert "more than was granted" in refused(path)


def test_a_line_that_makes_no_sense_is_seen(path: Path) -> None:
    rewritten(path, lambda kind, body: {} if kind == "reserve" else body)
    assert "cannot be read" in refused(path)
