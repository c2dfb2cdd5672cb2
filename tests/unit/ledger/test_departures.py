"""Where whole cohorts went: held to a dictionary of everyone's place, however few are followed at once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import epsilons.ledger
from epsilons.errors import LedgerError
from epsilons.ledger import departures, journal, merging, recount, segments
from epsilons.ledger.consent import Word
from epsilons.ledger.departures import Departures, pack
from epsilons.ledger.ledger import Ledger
from epsilons.ledger.opening import find_database
from support.ledger_recount import balances
from support.ledgers import Ask, application, nano, person


@pytest.mark.parametrize("few", [0, 500])
def test_everyone_is_where_a_dictionary_says(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cohorts that were made later too, of which some are left by the line after."""
    monkeypatch.setattr(departures, "_FEW", few)
    luck = Random(few)
    for _ in range(20):
        stay, newest, rows = [1, 2, 3], 3, []
        places: dict[int, list[tuple[int, int]]] = {}  # of who came to a cohort: (line, where they are since)
        for line in range(1, 30):
            newest += 1
            gone = luck.sample(stay, luck.randrange(len(stay)))
            stay = [*(one for one in stay if one not in gone), newest]
            places |= {one: [(line - 1, one)] for one in stay if one not in places}
            if steps := {one: luck.choice(stay) for one in gone}:
                rows.append((line, pack(steps)))
                for path in places.values():
                    if path[-1][1] in steps:
                        path.append((line, steps[path[-1][1]]))
        left = Departures.of(rows)
        cohorts = np.array(sorted(places))
        assert left.follow(cohorts).tolist() == [places[one][-1][1] for one in cohorts.tolist()]
        for before in range(1, 31):
            then = [[now for line, now in places[one] if line < before or now == one][-1] for one in cohorts.tolist()]
            assert left.follow(cohorts, np.full(len(cohorts), before)).tolist() == then
            steps_of = [[step for step in places[one][1:] if step[0] < before] for one in cohorts.tolist()]
            assert [list(left.list_steps(one, before)) for one in cohorts.tolist()] == steps_of


@pytest.mark.parametrize("few", [0, 500])
def test_whoever_edits_them_gets_no_endless_walk(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(departures, "_FEW", few)
    left = Departures.of([(1, pack({1: 2, 7: 7})), (2, pack({2: 1}))])
    assert left.follow(np.array([1, 2, 3, 7])).tolist() == [1, 1, 3, 7]
    assert list(left.list_steps(1, 9)) == [(1, 2), (2, 1)]
    assert Departures.of([]).follow(np.array([-1, 5])).tolist() == [-1, 5]
    with pytest.raises(LedgerError, match="lost a piece"):
        Departures.of([(1, b"1234")])


class Day:
    """The clock: a day of November, or of a later month."""

    def __init__(self) -> None:
        self.month = 11

    def __call__(self) -> datetime:
        return datetime(2026 + (self.month - 1) // 12, (self.month - 1) % 12 + 1, 3, tzinfo=UTC)


@pytest.fixture
def day() -> Day:
    return Day()


#: A ledger in which months began and cohorts became one by an entry for everyone, as format 6 wrote it.
SIX = json.loads((Path(__file__).parents[2] / "support" / "ledger_format_6.json").read_text())
#: The past of six people there: lines, and cohorts that they came to by them.
PASTS = {
    0: [(4, 1), (7, 3), (11, 4), (16, 7), (25, 11), (30, 14)],
    1: [(4, 2), (15, 5), (20, 8), (25, 12)],
    2: [(4, 1), (7, 3), (16, 6), (24, 9), (29, 13), (30, 14)],
    3: [(4, 2), (34, 15)],
    4: [(4, 1), (7, 3), (16, 6), (25, 10)],
    5: [(4, 2)],
}


def test_a_ledger_of_format_6_goes_on(lasting: str, day: Day, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was entered then stays, what follows are departures; both are told, verified and recounted elsewhere."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    database = find_database(lasting, create=True)
    with database.write() as connection:
        database.make_tables(connection, SIX["tables"])
        for table, rows in SIX["rows"].items():
            plain = [[bytes.fromhex(one["hex"]) if isinstance(one, dict) else one for one in row] for row in rows]
            connection.insert_many(table, map(tuple, plain))
    database.close()

    def trace(book: Ledger, n: int) -> list[tuple[int, int]]:
        with book.reading() as connection:
            return segments.trace(connection, person(f"{n}"))

    day.month = 14
    with closing(epsilons.ledger.open(lasting, adopt=True, clock=day)) as book:
        book.verify()
        assert {n: trace(book, n) for n in PASTS} == PASTS
        for day.month in (15, 16):
            assert book.renew() == 4
            assert book.verify(thorough=False) == book.verify()
        with book.reading() as connection:
            assert len(segments.read_everything(connection).people) == sum(map(len, PASTS.values()))
        renewed = [line["seq"] for line in lines(book, "renew")]
        assert [line for line, _ in trace(book, 0)] == [*(line for line, _ in PASTS[0]), *renewed[-2:]]
        assert trace(book, 5) == PASTS[5]
        assert book.statement(person("0")).left == book.statement(person("2")).left
        held = {one.id: (one.granted, one.spent, one.reserved, one.people) for one in book.cohorts()}
        assert balances(book.export()) == held


@pytest.fixture
def book(day: Day, tmp_path: Path, ask_of: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    """Sixty people at three levels, of which two are renewed; months, merges and changes of mind have passed."""
    monkeypatch.setattr(merging, "MOST", 6)
    monkeypatch.setattr(merging, "ROOM", 1)
    made = epsilons.ledger.open(f"sqlite:///{tmp_path}/people.ledger", witness=tmp_path / "head", clock=day)
    words = [Word(nano("0.1") * n, f"level {n}") for n in (1, 2, 3)]
    about = {"person": "id", "rows_per_person": 1, "source": None, "renews": {"level 1": "month", "level 2": "month"}}
    made.register(application("wages", {f"{n}": words[n % 3] for n in range(60)}, about=about))
    for _ in range(4):
        day.month += 1
        made.renew()
        for n in range(3):
            ask_of(made)(f"{day.month} {n}", Fraction(1, 20))
            made.say([person(f"{day.month + n}")], np.array([n]), words)
    yield made
    made.close()


@pytest.fixture
def ask_of() -> Any:
    """A question to a ledger."""

    def asking(book: Ledger) -> Ask:
        def ask(name: str, share: Fraction) -> int:
            may = book.allowance(share)
            number = book.reserve(person(name) * 2, may.nano, epoch=may.epoch, kind="count").number
            book.mark_read(number)
            book.store(number, b"42")
            return number

        return ask

    return asking


def lines(book: Ledger, kind: str) -> list[dict[str, Any]]:
    return [line for line in book.export() if line["kind"] == kind]


def test_nobody_has_an_entry_of_a_month_or_a_merge(book: Ledger) -> None:
    """And yet a statement tells every step, and the recount, whole or from where it was, adds up."""
    with book.reading() as connection:
        assert segments.read_everything(connection).people.size == 60 + 12
    assert len(lines(book, "renew")) == 4
    assert lines(book, "merge")
    assert book.verify(thorough=False) == book.verify()
    with book.reading() as connection:
        for n in range(60):
            path = segments.trace(connection, person(f"{n}"))
            assert [line for line, _ in path] == sorted({line for line, _ in path})
            assert path[-1][1] == segments.find(connection, np.array([person(f"{n}")], "S16"))[1][0]
    renewed = {int(line["seq"]) for line in lines(book, "renew")}
    with book.reading() as connection:
        assert renewed <= {line for line, _ in segments.trace(connection, person("0"))}


def test_who_moved_since_a_line_is_known_by_its_hash(book: Ledger) -> None:
    """Also where whole cohorts went: by an edit of that nobody comes to another account."""
    book.verify()
    seq = book.registrations()[0].seq
    here = book.members()
    moves = book.moves(seq)
    stood = moves.left.follow(np.array([1, 2, 3]))
    assert {*stood.tolist(), *moves.cohorts.tolist()} == set(here.cohorts.tolist())
    assert not set(stood.tolist()) & {1, 2}  # their months are over
    with book._database.write() as connection:
        (line, content), *_ = departures.read_rows(connection, seq)
        numbers = np.frombuffer(content, "<u4").copy()
        numbers[-2:] = numbers[[-1, -2]]
        change = "UPDATE departures SET content = :content WHERE line = :line"
        connection.execute(change, {"content": numbers.tobytes(), "line": line})
    with pytest.raises(LedgerError, match="people differs from the journal"):
        book.moves(seq)


LAST = "line = (SELECT max(line) FROM departures)"


@pytest.mark.parametrize(
    "change",
    [
        f"DELETE FROM departures WHERE {LAST}",
        f"UPDATE departures SET line = line + 1 WHERE {LAST}",
        f"INSERT INTO departures SELECT line + 1, content FROM departures WHERE {LAST}",
        f"INSERT INTO departures SELECT -5, content FROM departures WHERE {LAST}",
    ],
)
def test_whoever_edits_where_cohorts_went_is_found_out(change: str, book: Ledger) -> None:
    def recounted() -> None:
        with book._database.write() as connection:
            assert connection.execute(change).rowcount == 1
            recount.verify(connection)

    with pytest.raises(LedgerError, match="departures differs"):
        recounted()


def planted(fault: str, body: dict[str, Any], former: list[int]) -> None:
    """A line about a month that begins, with a fault."""
    moved = body["moved"]
    origins = [group["origin"] for group in moved]
    match fault:
        case "fewer people":
            moved[0]["people"] -= 1
        case "back again" if former:
            moved[0]["target"] = former[0]
        case "into each other":
            moved[1]["target"] = origins[0]
        case "twice":
            moved.append(moved[0])
    former += origins


@pytest.mark.parametrize("fault", ["fewer people", "back again", "into each other", "twice"])
def test_a_cohort_is_left_by_everybody_and_for_good(fault: str, book: Ledger) -> None:
    """The lines are chained as they should be."""

    def recounted() -> None:
        with book._database.write() as connection:
            head, former = journal.START, list[int]()
            for line in connection.execute("SELECT * FROM journal ORDER BY seq").fetchall():
                body = json.loads(line["body"])
                if line["kind"] == "renew":
                    planted(fault, body, former)
                text = journal.to_json(body)
                head = journal.chain(head, line["seq"], line["kind"], line["at"], text)
                rewrite = "UPDATE journal SET body = :text, hash = :head WHERE seq = :seq"
                connection.execute(rewrite, {"seq": line["seq"], "text": text, "head": head})
            recount.verify(connection)

    with pytest.raises(LedgerError, match={"back again": "that everybody left"}.get(fault, "that people stay in")):
        recounted()
