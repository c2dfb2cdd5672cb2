"""Whatever is changed behind the ledger's back is seen: any column of any table, lines dropped, lines made up.

Every edit is made and judged inside one transaction, which is then taken back, so that all of them try one ledger.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Connection, Table, delete, func, insert, select, text, update

import epsilons.ledger
from epsilons.errors import LedgerError
from epsilons.ledger import recount, tables
from epsilons.ledger.consent import Word
from epsilons.ledger.journal import START, chain, to_json
from epsilons.ledger.ledger import Ledger
from support.ledger_recount import balances
from support.ledger_servers import fresh
from support.ledgers import TERMS, application, key, nano, person

TABLES = tables.metadata.sorted_tables
COLUMNS = [(table, column.name) for table in TABLES for column in table.columns]
NAMES = [f"{table.name}.{column}" for table, column in COLUMNS]

Edit = Callable[[Connection], None]


def busy(book: Ledger) -> None:
    """Every kind of line once: terms, joining, moving with an open charge, giving back, storing, a quota, a dataset."""
    book.settle_terms("absent", 1, allow_individual=True)
    book.set_quota("office", nano=nano("5"), questions=7)
    book.enroll([person("ann"), person("bob"), person("cy")], [nano("1"), nano("1"), None])
    for name in ("stored", "given back", "open"):
        may = book.allowance(Fraction(1, 10))
        words = {"kind": "count", "description": "count", "analyst": "office"}
        number = book.reserve(key(name), may.nano, epoch=may.epoch, **words).number
        if name == "stored":
            book.mark_read(number)
            book.store(number, b"42")
        if name == "given back":
            book.refund(number)
    strict = Word(nano("0.1"), "strict")
    terms = replace(TERMS, allow_individual=True)
    book.register(application("wages", dict.fromkeys(["ann", "bob", "cy"], strict), terms=terms))
    may = book.allowance(Fraction(1, 10), dataset=1)
    book.reserve(key("of a dataset"), may.nano, epoch=may.epoch, kind="count", dataset=1, asked=key("asked"))
    book.set_grants([person("ann")], [nano("2")])
    book.withdraw([person("bob")])


@pytest.fixture(scope="module", params=["memory", "sqlite", pytest.param("postgresql", marks=pytest.mark.integration)])
def book(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ledger]:
    places: dict[str, Callable[[], str | None]] = {
        "memory": lambda: None,
        "sqlite": lambda: f"sqlite:///{tmp_path_factory.mktemp('verify')}/people.ledger",
        "postgresql": lambda: fresh(request.getfixturevalue("postgres_server")),
    }
    made = epsilons.ledger.open(places[request.param]())
    busy(made)
    made.verify()
    yield made
    # All edits were taken back.
    made.verify()
    made.close()


def judged(book: Ledger, edit: Edit) -> None:
    """Edit and recount in one transaction, which never ends well."""
    with book._database.write() as connection:
        lite = connection.dialect.name == "sqlite"
        if lite:
            connection.execute(text("PRAGMA ignore_check_constraints = ON"))
        try:
            edit(connection)
            recount.verify(connection)
        finally:
            if lite:
                connection.execute(text("PRAGMA ignore_check_constraints = OFF"))
        raise AssertionError("nobody saw it")


def seen(book: Ledger, edit: Edit) -> str:
    """What is said of a ledger that somebody edited, by the tables themselves or by the recount."""
    with pytest.raises(LedgerError) as raised:
        judged(book, edit)
    return str(raised.value)


def test_an_honest_ledger_adds_up(ledger: Ledger) -> None:
    busy(ledger)
    done = ledger.verify()
    assert done.cohorts == ledger.cohorts()
    assert (done.releases, done.people) == (4, 3)
    assert done.entries == 17


def other(value: Any, column: Any) -> Any:
    """Another value of the same type, near the one that stands there."""
    if str(column.type) in ("BIGINT", "INTEGER"):
        return (value or 0) + (1000 if column.primary_key else 1)
    if str(column.type) == "BLOB":
        there = value or b"\x00\x00"
        return bytes([there[0] ^ 1]) + there[1:]
    return (value or "") + " "


def test_any_edited_column_is_seen(book: Ledger) -> None:
    unseen = []
    for (table, column), name in zip(COLUMNS, NAMES, strict=True):
        order = list(table.primary_key.columns)
        with book._database.read() as connection:
            rows = connection.execute(select(table).order_by(*order)).mappings().all()
        assert rows, name
        for row in (rows[0], rows[-1]):
            here = [one == row[one.name] for one in order]
            changed = update(table).where(*here).values({column: other(row[column], table.c[column])})

            def edit(connection: Connection, changed: Any = changed) -> None:
                assert connection.execute(changed).rowcount == 1

            try:
                seen(book, edit)
            except AssertionError as error:
                unseen.append((name, str(error)))
    assert len(COLUMNS) > 40
    assert unseen == []


@pytest.mark.parametrize("table", TABLES, ids=str)
def test_a_missing_row_is_seen(book: Ledger, table: Table) -> None:
    first = next(iter(table.primary_key.columns))
    last = select(func.max(first)).scalar_subquery() if str(first.type) != "BLOB" else None
    where = (first == last) if last is not None else (first == person("ann"))
    assert seen(book, lambda connection: assert_some(connection.execute(delete(table).where(where)).rowcount))


def assert_some(rows: int) -> None:
    # PostgreSQL's driver does not count what was inserted.
    assert rows != 0


def entry(who: bytes, line: int, cohort: int) -> dict[str, Any]:
    """A part of a segment with one entry, as it would be written."""
    numbers = line.to_bytes(4, "little") + cohort.to_bytes(4, "little")
    return {"first": who, "newest": line, "entries": 1, "content": who + numbers}


NOBODY = entry(bytes.fromhex("00112233445566778899aabbccddeeff"), 3, 1)
MOVED = entry(person("ann"), 900, 1)
NEXT = select(func.max(tables.segments.c.segment) + 1).scalar_subquery()


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("a person", insert(tables.segments).values(segment=99, part=0, **NOBODY)),
        ("a person in turn", insert(tables.segments).values(segment=NEXT, part=0, **NOBODY)),
        (
            "a cohort",
            insert(tables.cohorts).values(id=99, granted=5, spent=0, reserved=0, ceiling=5, people=0, state="active"),
        ),
        ("a charge", insert(tables.charges).values(number=1, cohort=99, nano=5, carried=0)),
        ("a move", insert(tables.segments).values(segment=NEXT, part=0, **MOVED)),
        ("a null", update(tables.cohorts).where(tables.cohorts.c.id == 2).values(granted=None)),
        ("an answer", update(tables.reservations).where(tables.reservations.c.number == 1).values(answer=b"\x00")),
        ("a quota", insert(tables.quotas).values(analyst="me", used_nano=0, used_questions=0)),
        ("a loss undone", update(tables.ledger).values(losses=-1)),
    ],
)
def test_an_invented_row_is_seen(book: Ledger, what: str, change: Any) -> None:
    assert seen(book, lambda connection: assert_some(connection.execute(change).rowcount)), what


def test_two_people_swapped_are_seen(book: Ledger) -> None:
    table = tables.segments

    def swap(connection: Connection) -> None:
        part = connection.execute(select(table).where(table.c.entries > 1)).first()
        numbers = np.frombuffer(part.content, "<u4").copy()
        one, two = next((a, b) for a in range(-part.entries, 0) for b in range(a, 0) if numbers[a] != numbers[b])
        numbers[[one, two]] = numbers[[two, one]]
        here = (table.c.segment == part.segment) & (table.c.part == part.part)
        connection.execute(update(table).where(here).values(content=numbers.tobytes()))

    assert "differs from the journal" in seen(book, swap)


def rewritten(change: Callable[[str, dict[str, Any]], dict[str, Any]]) -> Edit:
    """Somebody rewrites a line and then the whole chain after it."""

    def edit(connection: Connection) -> None:
        head, table = START, tables.journal
        for line in connection.execute(select(table).order_by(table.c.seq)).all():
            words = to_json(change(line.kind, json.loads(line.body)))
            head = chain(head, line.seq, line.kind, line.at, words)
            connection.execute(update(table).where(table.c.seq == line.seq).values(body=words, hash=head))

    return edit


def test_a_rewritten_chain_is_seen_by_the_recount(book: Ledger) -> None:
    def cheaper(kind: str, body: dict[str, Any]) -> dict[str, Any]:
        if kind == "reserve":
            body["charges"] = [[cohort, 1] for cohort, _ in body["charges"]]
        return body

    words = seen(book, rewritten(cheaper))
    assert "differs from the journal" in words or "without what they had spent" in words


def test_an_overspent_journal_is_seen(book: Ledger) -> None:
    def dearer(kind: str, body: dict[str, Any]) -> dict[str, Any]:
        if kind == "reserve":
            body["charges"] = [[cohort, nano("3")] for cohort, _ in body["charges"]]
        return body

    assert "more than was granted" in seen(book, rewritten(dearer))


def test_a_line_that_makes_no_sense_is_seen(book: Ledger) -> None:
    assert "cannot be read" in seen(book, rewritten(lambda kind, body: {} if kind == "reserve" else body))


def test_the_journal_alone_is_enough_to_recount_elsewhere(book: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A recount that shares no code with the package, from the exported lines, whatever the size of a page."""
    whole = list(book.export())
    for page in (1, 3, 6, len(whole)):
        monkeypatch.setattr("epsilons.ledger.ledger._PAGE", page)
        assert list(book.export()) == whole
    assert balances(book.export()) == {c.id: (c.granted, c.spent, c.reserved, c.people) for c in book.cohorts()}


def test_an_edit_is_seen_from_outside_as_well(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/people.ledger"
    made = epsilons.ledger.open(url)
    busy(made)
    with made._database.write() as connection:
        connection.execute(text("UPDATE segments SET newest = newest + 1"))
    made.close()
    again = epsilons.ledger.open(url)
    with pytest.raises(LedgerError, match="differs from the journal"):
        again.verify()
    again.close()


def test_opening_verifies_what_was_entered_since_and_a_recount_everything(tmp_path: Path) -> None:
    """A look at what is new takes no notice of older entries, finds every newer one, and is noted beside the head."""
    book = epsilons.ledger.open(f"sqlite:///{tmp_path}/people.ledger", anchor=tmp_path / "head")
    busy(book)

    def write(part: Any, content: bytes) -> None:
        table = tables.segments
        here = (table.c.segment == part.segment) & (table.c.part == part.part)
        with book._database.write() as connection:
            connection.execute(update(table).where(here).values(content=content))

    def notices(first: bool) -> bool:
        """Whether a look sees another cohort in the first of all entries, or in the last; a recount always does."""
        with book._database.read() as connection:
            parts = connection.execute(select(tables.segments).order_by(tables.segments.c.newest)).all()
        part = parts[0 if first else -1]
        numbers = np.frombuffer(part.content, "<u4").copy()
        lines = numbers[-2 * part.entries : -part.entries]
        numbers[len(numbers) - part.entries + int(lines.argmin() if first else lines.argmax())] += 1
        write(part, numbers.tobytes())
        with pytest.raises(LedgerError, match="people differs from the journal"):
            book.verify()
        try:
            book.verify(thorough=False)
        except LedgerError:
            return True
        else:
            return False
        finally:
            write(part, part.content)

    assert notices(first=True)  # nothing was verified yet
    assert book.verify(thorough=False) == book.verify()
    assert not notices(first=True)
    book.withdraw([person("zoe"), person("cy")])
    assert notices(first=False)
    done = book.verify(thorough=False)
    assert json.loads((tmp_path / "head").read_text())["verified"] == done.entries
    book.close()
