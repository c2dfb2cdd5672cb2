"""Who stands where, as columns: held to a dictionary of everyone's past, in segments and parts of any size."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np
import pytest

import epsilons.ledger
from epsilons.errors import LedgerError
from epsilons.ledger import order, roster, segments
from epsilons.ledger.segments import Entries
from support.ledgers import person

PEOPLE = [person(f"person {number}") for number in range(40)]


@pytest.fixture(params=[1, 3, 1 << 16])
def connection(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setattr(segments, "PART", request.param)
    book = epsilons.ledger.open()
    with book._database.write() as opened:
        yield opened
    book.close()


def as_entries(changes: dict[bytes, int], line: int) -> Entries:
    people = np.frombuffer(b"".join(changes), "S16")
    return Entries.of(people, np.full(len(people), line), np.array(list(changes.values())))


def as_dict(found: tuple[Any, Any]) -> dict[bytes, int]:
    people = [one.tobytes() for one in found[0].view(np.uint8).reshape(-1, 16)]
    assert people == sorted(people)
    return dict(zip(people, found[1].tolist(), strict=True))


@pytest.mark.parametrize("few", [0, 500])
def test_everyone_s_past_is_that_of_a_dictionary(connection: Any, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "_FEW", few)
    monkeypatch.setattr(segments, "_SOME", few)
    luck, past = Random(few), dict[bytes, list[tuple[int, int]]]()
    for line in range(1, 40):
        changes = {who: luck.randrange(1, 9) for who in luck.sample(PEOPLE, luck.choice([1, 1, 1, 2, 5, 20]))}
        segments.add(connection, as_entries(changes, line))
        for who, cohort in changes.items():
            past.setdefault(who, []).append((line, cohort))
    present = {who: steps[-1][1] for who, steps in past.items()}
    assert as_dict(segments.read_present(connection)) == present
    asked = sorted([*luck.sample(PEOPLE, 7), person("a stranger")])
    found = segments.find(connection, np.frombuffer(b"".join(asked), "S16"))
    assert as_dict(found) == {who: present[who] for who in asked if who in present}
    for who in [*PEOPLE, person("a stranger")]:
        assert segments.trace(connection, who) == past.get(who, [])
    for line in (0, 10, 38, 39):
        later = segments.read_since(connection, line)
        steps = zip((one.ljust(16, b"\0") for one in later.people.tolist()), later.lines.tolist(), strict=True)
        assert sorted(steps) == sorted((who, at) for who, all_ in past.items() for at, _ in all_ if at > line)
        changed: dict[bytes, list[tuple[int, int]]] = {}
        for piece in segments.read_changed(connection, line):
            there = [one.ljust(16, b"\0") for one in piece.people.tolist()]
            assert not there or min(there) > max(changed, default=b"")  # some people after others
            for who, *step in zip(there, piece.lines.tolist(), piece.cohorts.tolist(), strict=True):
                changed.setdefault(who, []).append(tuple(step))
        assert list(changed) == sorted(changed)
        assert changed.items() <= past.items()
        assert {who for who, all_ in past.items() if all_[-1][0] > line} <= changed.keys()


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int32, np.int64])
def test_numbers_are_told_apart_piece_by_piece(kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the difference of two of them is none of their kind."""
    monkeypatch.setattr(order, "_PIECE", 7)
    info = np.iinfo(np.int8 if kind is np.int8 else np.uint8)
    numbers = np.random.default_rng(3).integers(info.min, info.max + 1, 100).astype(kind)
    for some in (numbers, numbers[:8], numbers[:0]):
        distinct, places = np.unique(some, return_inverse=True)
        found = order.tell_apart(some)
        assert [one.tolist() for one in found] == [distinct.tolist(), places.tolist()]
        assert found[1].itemsize == 1


def test_rows_that_are_alike_have_a_number_of_their_own() -> None:
    columns = np.random.default_rng(2).integers(-2, 3, (3, 200)) * np.array([[1], [7], [1 << 40]])
    distinct, numbers = np.unique(columns, axis=1, return_inverse=True)
    assert order.number_apart(*columns).tolist() == numbers.reshape(-1).tolist()
    assert len(distinct.T) < 100
    assert order.number_apart(np.zeros(0, int)).tolist() == []


def count_segments(connection: Any) -> int:
    return int(connection.execute("SELECT count(DISTINCT segment) FROM segments").fetchone()[0])


def test_there_are_few_segments_and_entries_are_copied_rarely(connection: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand changes of one person after a large one: about as many segments as doublings."""
    written, split = [], segments._split

    def counted(number: int, entries: Entries) -> Any:
        written.append(len(entries.people))
        return split(number, entries)

    monkeypatch.setattr(segments, "_split", counted)
    monkeypatch.setattr(segments, "PART", 1 << 16)
    everyone = {person(f"one of many {number}"): 1 for number in range(2000)}
    segments.add(connection, as_entries(everyone, 1))
    for line in range(2, 502):
        segments.add(connection, as_entries({PEOPLE[line % 40]: line}, line))
        assert count_segments(connection) <= 8
    assert sum(written[1:]) <= 500 * 9


def test_digests_that_agree_in_their_first_half_are_told_apart() -> None:
    """And so are those that end in zero bytes, which texts of a fixed width would lose."""
    base = bytes(range(1, 9))
    alike = sorted(base + end for end in (bytes(8), b"\x01" + bytes(7), bytes(7) + b"\x01", b"\xff" * 8))
    known = np.frombuffer(b"".join(alike), "S16")
    assert order.locate(known, known).tolist() == [0, 1, 2, 3]
    assert order.locate(known[[0, 2]], known).tolist() == [0, -1, 1, -1]
    shuffled = known[[2, 0, 3, 1]]
    assert shuffled[order.sort_by(shuffled)].tolist() == known.tolist()
    assert order.is_new(np.repeat(known, 2)).tolist() == [True, False] * 4
    assert order.locate(known[:0], known).tolist() == [-1] * 4
    assert order.locate(known, known[:0]).tolist() == []


def test_pieces_that_are_sorted_each_are_merged_by_digest_and_then_by_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where later pieces are about earlier lines, where people agree in 64 bits, and where nothing is sorted."""
    random = np.random.default_rng(7)
    known = np.frombuffer(b"".join([*PEOPLE, *(PEOPLE[0][:8] + bytes([end]) * 8 for end in range(1, 5))]), "S16")
    for runs, pieces, rising in itertools.product((0, 64), (1, 2, 5), (True, False)):
        monkeypatch.setattr(order, "_RUNS", runs)
        made = []
        for piece in range(pieces):
            people = known[random.integers(0, len(known), 60)]
            lines = random.integers(0, 9, 60) + 10 * (piece if rising else pieces - piece)
            sorted_ = np.lexsort((lines, people))
            made.append((people[sorted_], lines[sorted_]))
        people, lines = map(np.concatenate, zip(*made, strict=True))
        for places in (np.arange(len(people)), random.permutation(len(people))):
            some, at = people[places], lines[places]
            found, expected = order.sort_by(some, at), np.lexsort((at, some))
            assert some[found].tolist() == some[expected].tolist()
            assert at[found].tolist() == at[expected].tolist()


def test_a_part_out_of_order_does_not_add_up() -> None:
    """Neighbours of two cohorts in each other's place leave every cohort's people in order; they would not be found."""
    book = epsilons.ledger.open()
    book.settle_terms("absent", 1)
    book.enroll(PEOPLE, [10**9 + number % 2 for number in range(40)])
    book.verify()
    with book._database.write() as connection:
        (size, content), *_ = connection.execute("SELECT entries, content FROM segments").fetchall()
        people, lines, cohorts = (column.copy() for column in segments.unpack(content, size))
        place = int(np.flatnonzero(cohorts[2:] != cohorts[1:-1])[0]) + 1
        for column in (people, lines, cohorts):
            column[[place, place + 1]] = column[[place + 1, place]]
        assert not Entries(people, lines, cohorts).in_order()
        changed = people.tobytes() + lines.tobytes() + cohorts.tobytes()
        connection.execute("UPDATE segments SET content = :content", {"content": changed})
    with pytest.raises(LedgerError, match="people differs from the journal"):
        book.verify()
    book.close()


def test_entries_are_in_order_by_digest_and_then_by_line() -> None:
    alike = np.frombuffer(b"".join([b"a" * 16, b"a" * 16, b"a" * 15 + b"b"]), "S16")
    numbers = np.array([1, 2, 1], np.uint32)
    assert Entries(alike, numbers, numbers).in_order()
    assert not Entries(alike, numbers[[1, 0, 2]], numbers).in_order()
    assert not Entries(alike[[2, 0, 1]], numbers, numbers).in_order()


def test_what_is_done_piece_by_piece_is_what_is_done_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking up, splitting by few places or many, hashing some people, seeing that people stand in order."""
    monkeypatch.setattr(order, "_PIECE", 7)
    monkeypatch.setattr(roster, "_PIECE", 7)
    random = np.random.default_rng(5)
    people = np.sort(np.frombuffer(random.bytes(16 * 50), "S16"))
    for count in (1, 3, 16, 17, 40):
        places = random.integers(0, count, 50).astype(np.uint8)
        members = [np.flatnonzero(places == place).tolist() for place in range(count)]
        assert [some.tolist() for some in order.split(places, count)] == members
        values = random.integers(-9, 9, count)
        assert order.pick(values, places).tolist() == values[places].tolist()
        for some in (np.flatnonzero(places == 0), np.arange(0)):
            assert roster.hash_people(people, some) == hashlib.sha256(people[some].tobytes()).hexdigest()
    assert roster.hash_people(people) == hashlib.sha256(people.tobytes()).hexdigest()
    assert order.sort_by(people) == slice(None)
    for place in range(49):  # also where one piece ends and the next begins
        swapped = people.copy()
        swapped[[place, place + 1]] = people[[place + 1, place]]
        assert swapped[order.sort_by(swapped)].tolist() == people.tolist()


@pytest.mark.parametrize(("largest", "size"), [(0, 1), (127, 1), (128, 2), (32_767, 2), (32_768, 4), (1 << 31, 8)])
def test_few_bytes_hold_the_largest_number_and_minus_one(largest: int, size: int) -> None:
    held = order.in_few_bytes([-1, 0, largest])
    assert held.tolist() == [-1, 0, largest]
    assert held.itemsize == order.in_few_bytes(np.zeros(3, int), largest).itemsize == size
