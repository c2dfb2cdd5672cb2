"""Whatever is changed behind the ledger's back is seen: any column of any table, lines dropped, lines made up.

Every edit is made and judged inside one transaction, which is then taken back, so that all of them try one ledger.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import epsilons.ledger
from epsilons.errors import LedgerError
from epsilons.ledger import journal, recount, replay
from epsilons.ledger.consent import Word
from epsilons.ledger.journal import START, chain, to_json
from epsilons.ledger.ledger import Ledger
from epsilons.storage.base import Connection
from epsilons.storage.sqlite import Sqlite
from support.ledger_copies import TABLES, here, keys
from support.ledger_recount import balances
from support.ledger_servers import fresh
from support.ledgers import ABOUT, TERMS, application, key, nano, person

COLUMNS = [(table, column) for table in TABLES for column in TABLES[table]]

Edit = Callable[[Connection], None]


def busy(book: Ledger) -> None:
    """Every kind of line once: terms, joining, moving with an open charge, giving back, storing, a quota, datasets."""
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
    weekly = Word(nano("0.2"), "weekly")
    about = {**ABOUT, "renews": {"weekly": "week"}}
    book.register(application("hours", {"dan": weekly}, terms=terms, about=about, confirm=True))
    book._clock = lambda: journal.now() + timedelta(7)
    assert book.renew() == 1
    book._clock = journal.now


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
        lite = isinstance(book._database, Sqlite)
        if lite:
            connection.execute("PRAGMA ignore_check_constraints = ON")
        try:
            edit(connection)
            recount.verify(connection)
        finally:
            if lite:
                connection.execute("PRAGMA ignore_check_constraints = OFF")
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
    assert (done.releases, done.people) == (4, 4)
    assert done.entries == 21


def other(value: Any, kind: str, in_key: bool) -> Any:
    """Another value of the same type, near the one that stands there."""
    if kind == "INTEGER":
        return (value or 0) + (1000 if in_key else 1)
    if kind == "BLOB":
        there = value or b"\x00\x00"
        return bytes([there[0] ^ 1]) + there[1:]
    return (value or "") + " "


def edit(change: str, **values: Any) -> Edit:
    """A change of one row."""

    def make(connection: Connection) -> None:
        assert connection.execute(change, values).rowcount == 1

    return make


def test_any_edited_column_is_seen(book: Ledger) -> None:
    unseen = []
    for table, column in COLUMNS:
        with book._database.read() as connection:
            rows = connection.execute(f"SELECT * FROM {table} ORDER BY {', '.join(keys(table))}").fetchall()
        assert rows, (table, column)
        change = f"UPDATE {table} SET {column} = :changed WHERE {here(table)}"
        for row in (dict(rows[0]), dict(rows[-1])):
            changed = {**row, "changed": other(row[column], *TABLES[table][column])}
            try:
                seen(book, edit(change, **changed))
            except AssertionError as error:
                unseen.append((table, column, str(error)))
    assert len(COLUMNS) > 40
    assert unseen == []


@pytest.mark.parametrize("table", TABLES)
def test_a_missing_row_is_seen(book: Ledger, table: str) -> None:
    first = keys(table)[0]

    def delete(connection: Connection) -> None:
        which = f"(SELECT max({first}) FROM {table})"
        assert connection.execute(f"DELETE FROM {table} WHERE {first} = {which}").rowcount > 0

    assert seen(book, delete)


NOBODY = bytes.fromhex("00112233445566778899aabbccddeeff")
NEXT = "max(segment) + 1"


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("a person", "INSERT INTO segments VALUES (99, 0, :nobody, 3, 1, :entry)"),
        ("a person in turn", f"INSERT INTO segments SELECT {NEXT}, 0, :nobody, 3, 1, :entry FROM segments"),
        ("a cohort", "INSERT INTO cohorts VALUES (99, 5, 0, 0, 5, 0, 'active', NULL, 0, '{}')"),
        ("a cohort of the past", "INSERT INTO emptied VALUES (99, 5, 0, 0, 5, 0, 'active', NULL, 0, '{}')"),
        ("a cohort twice", "INSERT INTO emptied SELECT * FROM cohorts WHERE id = 2"),
        ("a charge", "INSERT INTO charges VALUES (1, 99, 5, 0, NULL)"),
        ("a move", f"INSERT INTO segments SELECT {NEXT}, 0, :ann, 3, 1, :moved FROM segments"),
        ("a null", "UPDATE cohorts SET granted = NULL WHERE id = 2"),
        ("an answer", "UPDATE reservations SET answer = :nobody WHERE number = 1"),
        ("a quota", "INSERT INTO quotas VALUES ('me', NULL, NULL, 0, 0)"),
        ("a loss undone", "UPDATE ledger SET losses = -1"),
    ],
)
def test_an_invented_row_is_seen(book: Ledger, what: str, change: str) -> None:
    # An entry: a digest, a line of the journal, a cohort.
    numbers = (3).to_bytes(4, "little") + (1).to_bytes(4, "little")
    given = {"nobody": NOBODY, "entry": NOBODY + numbers, "ann": person("ann"), "moved": person("ann") + numbers}
    given = {name: value for name, value in given.items() if f":{name}" in change}
    assert "does not add up" in seen(book, edit(change, **given)), what


def test_tables_that_act_by_themselves_are_seen(book: Ledger) -> None:
    lite = isinstance(book._database, Sqlite)
    drop = "BEGIN SELECT RAISE(IGNORE); END" if lite else "EXECUTE FUNCTION suppress_redundant_updates_trigger()"
    plants = [
        [f"CREATE TRIGGER quiet BEFORE UPDATE ON cohorts FOR EACH ROW {drop}"],
        ["ALTER TABLE quotas RENAME TO hidden", "CREATE VIEW quotas AS SELECT * FROM hidden"],
        *([] if lite else [["CREATE RULE quiet AS ON INSERT TO journal DO INSTEAD NOTHING"]]),
    ]

    def check(planted: list[str]) -> None:
        with book._database.write() as connection:
            for statement in planted:
                connection.execute(statement)
            book._database.check_tables(connection)

    for planted in plants:
        with pytest.raises(LedgerError, match="does not add up: its tables have triggers, rules or views"):
            check(planted)


def test_two_people_swapped_are_seen(book: Ledger) -> None:
    def swap(connection: Connection) -> None:
        part = connection.execute("SELECT * FROM segments WHERE entries > 1").fetchone()
        numbers, size = np.frombuffer(part["content"], "<u4").copy(), part["entries"]
        one, two = next((a, b) for a in range(-size, 0) for b in range(a, 0) if numbers[a] != numbers[b])
        numbers[[one, two]] = numbers[[two, one]]
        write(connection, part, numbers.tobytes())

    assert "differs from the journal" in seen(book, swap)


def write(connection: Connection, part: Any, content: bytes) -> None:
    """Something else into a part of a segment."""
    change = "UPDATE segments SET content = :content WHERE segment = :segment AND part = :part"
    connection.execute(change, {"content": content, "segment": part["segment"], "part": part["part"]})


def rewritten(change: Callable[[str, dict[str, Any]], dict[str, Any]]) -> Edit:
    """Somebody rewrites a line and then the whole chain after it."""

    def edit(connection: Connection) -> None:
        head = START
        for line in connection.execute("SELECT * FROM journal ORDER BY seq").fetchall():
            words = to_json(change(line["kind"], json.loads(line["body"])))
            head = chain(head, line["seq"], line["kind"], line["at"], words)
            rewrite = "UPDATE journal SET body = :words, hash = :head WHERE seq = :seq"
            connection.execute(rewrite, {"seq": line["seq"], "words": words, "head": head})

    return edit


def test_a_rewritten_chain_is_seen_by_the_recount(book: Ledger) -> None:
    def cheaper(kind: str, body: dict[str, Any]) -> dict[str, Any]:
        if kind == "reserve":
            body["charges"] = [[cohort, 1, level] for cohort, _, level in body["charges"]]
        return body

    words = seen(book, rewritten(cheaper))
    assert "differs from the journal" in words or "without what they had spent" in words


def test_an_overspent_journal_is_seen(book: Ledger) -> None:
    def dearer(kind: str, body: dict[str, Any]) -> dict[str, Any]:
        if kind == "reserve":
            body["charges"] = [[cohort, nano("3"), level] for cohort, _, level in body["charges"]]
        return body

    assert "more than was granted" in seen(book, rewritten(dearer))


def test_a_line_that_makes_no_sense_is_seen(book: Ledger) -> None:
    assert "cannot be read" in seen(book, rewritten(lambda kind, body: {} if kind == "reserve" else body))


def test_the_journal_alone_is_enough_to_recount_elsewhere(book: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A recount that shares no code with the package, from the exported lines, whatever the size of a page."""
    whole = list(book.export())
    for page in (1, 3, 6, len(whole)):
        monkeypatch.setattr("epsilons.ledger.telling._PAGE", page)
        assert list(book.export()) == whole
    assert balances(book.export()) == {c.id: (c.granted, c.spent, c.reserved, c.people) for c in book.cohorts()}


def test_an_edit_is_seen_from_outside_as_well(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/people.ledger"
    made = epsilons.ledger.open(url)
    busy(made)
    with made._database.write() as connection:
        connection.execute("UPDATE segments SET newest = newest + 1")
    made.close()
    again = epsilons.ledger.open(url)
    with pytest.raises(LedgerError, match="differs from the journal"):
        again.verify()
    again.close()


def test_opening_verifies_what_was_entered_since_and_a_recount_everything(tmp_path: Path) -> None:
    """A look at what is new takes no notice of older entries, finds every newer one, and is noted beside the head."""
    book = epsilons.ledger.open(f"sqlite:///{tmp_path}/people.ledger", witness=tmp_path / "head")
    busy(book)

    def notices(first: bool) -> bool:
        """Whether a look sees another cohort in the first of all entries, or in the last; a recount always does."""
        with book._database.read() as connection:
            part = connection.execute("SELECT * FROM segments ORDER BY newest").fetchall()[0 if first else -1]
        numbers, size = np.frombuffer(part["content"], "<u4").copy(), part["entries"]
        lines = numbers[-2 * size : -size]
        numbers[len(numbers) - size + int(lines.argmin() if first else lines.argmax())] += 1
        with book._database.write() as connection:
            write(connection, part, numbers.tobytes())
        with pytest.raises(LedgerError, match="people differs from the journal"):
            book.verify()
        try:
            book.verify(thorough=False)
        except LedgerError:
            return True
        else:
            return False
        finally:
            with book._database.write() as connection:
                write(connection, part, part["content"])

    assert notices(first=True)  # nothing was verified yet
    assert book.verify(thorough=False) == book.verify()
    assert not notices(first=True)
    book.withdraw([person("zoe"), person("cy")])
    assert notices(first=False)
    done = book.verify(thorough=False)
    assert json.loads((tmp_path / "head").read_text())["verified"] == done.entries
    with book._database.write() as connection:
        connection.execute("DELETE FROM segments")
    with pytest.raises(LedgerError, match="people differs from the journal"):  # however long ago they were verified
        book.verify(thorough=False)
    book.close()


@pytest.fixture
def noted(tmp_path: Path) -> Iterator[Ledger]:
    """A busy ledger that was verified, so that a look goes on from there."""
    book = epsilons.ledger.open(f"sqlite:///{tmp_path}/people.ledger", witness=tmp_path / "head")
    busy(book)
    book.verify()
    yield book
    book.close()


def followed(book: Ledger) -> int:
    """How many lines a look follows."""
    lines: list[int] = []
    book.verify(thorough=False, progress=lambda line, last: lines.append(line))
    return len(lines)


def test_a_look_follows_the_lines_that_are_new(noted: Ledger) -> None:
    assert followed(noted) == 0
    noted.mark_read(3)
    noted.enroll([person("di")], [nano("1")])
    assert followed(noted) == 2
    assert followed(noted) == 0
    assert noted.verify(thorough=False) == noted.verify()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE cohorts SET spent = spent - 1 WHERE id = (SELECT max(id) FROM cohorts WHERE spent > 0 AND people > 0)",
        "UPDATE cohorts SET people = people + 1 WHERE id = (SELECT max(id) FROM cohorts)",
        "UPDATE cohorts SET reserved = reserved - 1 WHERE id = (SELECT max(id) FROM cohorts WHERE people = 0)",
        "INSERT INTO cohorts VALUES (99, 5, 0, 0, 5, 1, 'active', NULL, 0, '{}')",
        "INSERT INTO emptied VALUES (99, 5, 0, 0, 5, 1, 'active', NULL, 0, '{}')",
        "DELETE FROM cohorts WHERE id = (SELECT max(id) FROM cohorts WHERE people > 0)",
        "INSERT INTO charges VALUES (99, 1, 5, 0, NULL)",
        "UPDATE charges SET nano = nano - 1 WHERE number = 4",
        "UPDATE reservations SET state = 'refunded' WHERE number = 3",
        "UPDATE registrations SET about = '{}' WHERE number = 1",
        "UPDATE levels SET granted = 7 WHERE name = 'strict'",
        "UPDATE ledger SET losses = 1",
        "DELETE FROM quotas",
    ],
)
def test_a_look_sees_whatever_can_still_be_charged(noted: Ledger, change: str) -> None:
    with noted._database.write() as connection:
        assert connection.execute(change).rowcount == 1
    with pytest.raises(LedgerError, match="does not add up"):
        noted.verify(thorough=False)


def test_an_old_answer_that_was_edited_does_not_leave_again(noted: Ledger) -> None:
    assert noted.find(key("stored")) is not None
    with noted._database.write() as connection:
        connection.execute("UPDATE reservations SET answer = :answer WHERE number = 1", {"answer": b"43"})
    for look in (lambda: noted.find(key("stored")), noted.answers, lambda: noted.answers(1)):
        with pytest.raises(LedgerError, match="not the one that was released"):
            look()


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("stored", "UPDATE reservations SET state = 'touched', answer = NULL WHERE number = 1"),
        ("stored", "UPDATE reservations SET seq = seq + 1 WHERE number = 1"),
        ("stored", "UPDATE reservations SET at = '' WHERE number = 1"),
        ("open", 'UPDATE reservations SET "key" = :key WHERE number = 1'),
        ("open", "UPDATE reservations SET state = 'touched' WHERE number = 3"),
        ("open", "UPDATE reservations SET description = 'sum' WHERE number = 3"),
        ("open", "UPDATE charges SET level = 7 WHERE number = 3 AND carried = 0"),
        ("open", "DELETE FROM journal WHERE seq = (SELECT seq + 1 FROM reservations WHERE number = 3)"),
    ],
)
def test_an_old_question_is_taken_up_only_as_the_journal_knows_it(noted: Ledger, name: str, change: str) -> None:
    """Also in a process that verified it before: no second answer is drawn for the price of the first."""
    may = noted.allowance(Fraction(1, 10))
    assert noted.find(key(name)) is not None
    with noted._database.write() as connection:
        if ":key" in change:
            connection.execute("UPDATE reservations SET state = 'refunded' WHERE number = 3")
        connection.execute(change, {"key": key(name)})
    for look in (
        lambda: noted.find(key(name)),
        lambda: noted.reserve(key(name), may.nano, epoch=may.epoch, kind="count"),
    ):
        with pytest.raises(LedgerError, match=r"does not add up|has diverged"):
            look()


def test_an_answer_forged_together_with_its_line_does_not_leave(noted: Ledger) -> None:
    """Nor with all hashes from there on: the head knows the last one."""
    forged = {"number": 1, "answer": hashlib.sha256(b"43").hexdigest()}
    with noted._database.write() as connection:
        connection.execute("UPDATE reservations SET answer = :answer WHERE number = 1", {"answer": b"43"})
        rewrite = "UPDATE journal SET body = :body WHERE kind = 'store'"
        assert connection.execute(rewrite, {"body": to_json(forged)}).rowcount == 1
    for chained in (False, True):
        if chained:
            with noted._database.write() as connection:
                rewritten(lambda kind, body: body)(connection)
        for look in (lambda: noted.find(key("stored")), noted.answers):
            with pytest.raises(LedgerError, match="has diverged"):
                look()


@pytest.fixture
def aged(noted: Ledger) -> Ledger:
    """Many lines later, and verified."""
    for number in range(200):
        noted.set_quota("office", nano=nano("5"), questions=number + 9)
    noted.verify(thorough=False)
    return noted


def test_an_old_answer_is_held_to_the_next_line_that_is_known(aged: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that it takes the same time however old it is."""
    lines = list[int]()
    monkeypatch.setattr(journal, "chain", lambda *line: lines.append(line[1]) or chain(*line))
    found = aged.find(key("stored"))
    assert found is not None
    assert found.answer == b"42"
    assert max(lines) == 64
    lines.clear()
    assert aged.find(key("open")) is not None  # it may still be given back, by any line
    assert max(lines) > 200
    lines.clear()
    aged._marks = {}
    assert aged.find(key("stored")) is not None
    assert max(lines) > 200


@pytest.mark.parametrize("chained", [False, True])
def test_an_old_answer_that_was_edited_does_not_pass_a_known_line(aged: Ledger, chained: bool) -> None:
    """Nor together with its line, nor with all hashes from there on."""
    forged = {"number": 1, "answer": hashlib.sha256(b"43").hexdigest()}
    assert aged.find(key("stored")) is not None
    with aged._database.write() as connection:
        connection.execute("UPDATE reservations SET answer = :answer WHERE number = 1", {"answer": b"43"})
        if chained:
            connection.execute("UPDATE journal SET body = :body WHERE kind = 'store'", {"body": to_json(forged)})
            rewritten(lambda kind, body: body)(connection)
    for look in (lambda: aged.find(key("stored")), lambda: aged.answers(1)):
        with pytest.raises(LedgerError, match="has diverged" if chained else "not the one that was released"):
            look()


def test_an_old_answer_of_a_copy_that_was_put_back_does_not_leave(aged: Ledger) -> None:
    """Also where the copy has the next known line: the last one is missing."""
    with aged._database.write() as connection:
        connection.execute("DELETE FROM journal WHERE seq > 150")
    for look in (lambda: aged.find(key("stored")), lambda: aged.answers(1)):
        with pytest.raises(LedgerError, match="has diverged"):
            look()


def test_lines_are_marked_ever_further_apart(aged: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    hashes = dict(aged._read(lambda connection: connection.execute("SELECT seq, hash FROM journal").fetchall()))
    assert aged._marks == {line: hashes[line] for line in range(64, len(hashes), 64)}
    monkeypatch.setattr(replay, "_MARKS", 2)
    aged.verify()
    assert aged._marks == {line: hashes[line] for line in range(128, len(hashes), 128)}


@pytest.mark.parametrize("what", ["gone", "edited", "torn", "of another kind", "of another line", "of another ledger"])
def test_a_note_that_the_head_does_not_know_is_not_believed(noted: Ledger, tmp_path: Path, what: str) -> None:
    """Everything is followed again then; a note beside an edited ledger helps nobody."""
    head, note = tmp_path / "head", tmp_path / "head.verified"
    text, known = note.read_text(), json.loads(head.read_text())
    first, _, rest = text.partition("\n")
    if what == "gone":
        note.unlink()
    elif what == "of another kind":
        text = f"{first}\n" + rest.replace(f'"kind":{replay._KIND}', '"kind":3')
    elif what == "of another line":
        text = f"{known['ledger']} {START}\n{rest}"
    elif what == "of another ledger":
        text = text.replace(known["ledger"], "0" * 32, 1)
    if what.startswith("of"):  # also if it has the hash that the head knows
        head.write_text(json.dumps({**known, "replay": hashlib.sha256(text.encode()).hexdigest()}))
    if what != "gone":
        note.write_text(
            {"edited": text.replace('"spent"', '"spend"').replace("1", "2"), "torn": text[:-9]}.get(what, text)
        )
    assert followed(noted) == known["seq"]
    assert noted.verify(thorough=False).entries == known["seq"]
    assert followed(noted) == 0  # a new one was written


def test_a_note_is_kept_for_its_owner_alone(noted: Ledger, tmp_path: Path) -> None:
    assert (tmp_path / "head.verified").stat().st_mode & 0o077 == 0
