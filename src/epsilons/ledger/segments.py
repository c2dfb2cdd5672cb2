"""Who stands where, as columns: sorted segments of (digest, line, cohort) instead of a row for every person.

Whoever joins or moves is an entry: their digest, the line of the journal that says so, the cohort that they come to. An
entry never changes and is never dropped. Of a person's entries the last one holds; all of them are their past. The
journal has, for every line, who came to which cohort, as a hash of their digests: entries are held to it by `recount`.
Where everybody in a cohort goes over to another, nobody has an entry: that is a fact of the cohort (`departures`).

A change of the roster adds a segment, sorted by digest and line. Segments that are not much larger are merged into it,
so that there are few of them, whatever has changed how often, and an entry is copied about as often as everything has
doubled. A segment is kept in parts, so that one person is found by reading one part of each.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from epsilons.ledger import departures
from epsilons.ledger.departures import Departures, Row
from epsilons.ledger.journal import START
from epsilons.ledger.order import (
    Codes,
    Sorted,
    as_numbers,
    is_new,
    locate,
    never_fall,
    pick,
    sort_by,
    tell_apart,
)
from epsilons.ledger.values import DIGEST_BYTES, does_not_add_up
from epsilons.storage.base import Connection

#: So many entries are in a part; fewer in the last one.
PART = 1 << 16
#: Up to so many people are looked up in the parts where they would be; for more, everybody is sorted once.
_FEW = 50_000
#: Parts with so many entries, together, are read to see whom they are about.
_SOME = 1 << 20
#: After every line of any journal.
_NEVER = 2**63
_WIDTH = f"S{DIGEST_BYTES}"
_NUMBER = np.dtype("<u4")
_ENTRY_BYTES = DIGEST_BYTES + 2 * _NUMBER.itemsize
_PARTS = "SELECT segment, part, first, newest, entries, content FROM segments"
_ADD = "INSERT INTO segments VALUES (:segment, :part, :first, :newest, :entries, :content)"


class Entries(NamedTuple):
    """Sorted by digest and line."""

    people: Sorted
    lines: NDArray[np.uint32]
    cohorts: NDArray[np.uint32]

    @classmethod
    def of(cls, people: Sorted, lines: NDArray[Any], cohorts: NDArray[Any]) -> Self:
        """In whatever order."""
        order = sort_by(people, lines)
        return cls(people[order], *(column[order].astype(_NUMBER, copy=False) for column in (lines, cohorts)))

    @classmethod
    def joined(cls, several: Sequence[Self]) -> Self:
        """All entries of several, which may be about the same people."""
        some = [one for one in several if len(one.people)] or [several[0]]
        return some[0] if len(some) == 1 else cls.of(*map(np.concatenate, zip(*some, strict=True)))

    def only(self, which: NDArray[np.bool_] | slice) -> Self:
        if not isinstance(which, slice) and which.all():
            return self
        return self._replace(people=self.people[which], lines=self.lines[which], cohorts=self.cohorts[which])

    def in_order(self) -> bool:
        """Whether they are sorted, as everything that looks anybody up takes for granted."""
        keys = as_numbers(self.people), as_numbers(self.people, 1), self.lines
        return never_fall(keys, slice(None, -1), slice(1, None))

    def last(self, left: Departures) -> tuple[Sorted, Codes]:
        """Everyone once, and the cohort that they are in."""
        held = np.roll(is_new(self.people), -1)  # the first is new, so that the last holds
        came, places = tell_apart(self.cohorts[held])
        return self.people[held], pick(left.follow(came), places)


NOBODY = Entries(np.empty(0, _WIDTH), np.empty(0, _NUMBER), np.empty(0, _NUMBER))


def add(connection: Connection, new: Entries) -> None:
    """Who came where by a change, sorted; segments at most twice as large become one with theirs."""
    sizes = "SELECT segment, sum(entries) AS size FROM segments GROUP BY segment ORDER BY segment DESC"
    merged, number = [new], 1
    for segment, size in connection.execute(sizes).fetchall():
        if size > 2 * sum(len(one.people) for one in merged):
            number = segment + 1
            break
        which = {"segment": segment}
        merged.append(_read(connection, "segment = :segment", which))
        connection.execute("DELETE FROM segments WHERE segment = :segment", which)
    for row in _split(number, Entries.joined(merged)):
        connection.execute(_ADD, row)


def _split(segment: int, entries: Entries) -> Iterator[dict[str, Any]]:
    """The rows of a segment; all entries of a person are in one part."""
    starts, at = [], 0
    new = is_new(entries.people)
    while at < len(new):
        starts.append(at)
        at += PART
        while at < len(new) and not new[at]:
            at += 1
    for part, (start, end) in enumerate(zip(starts, [*starts[1:], len(new)], strict=True)):
        people, lines, cohorts = (column[start:end] for column in entries)
        content = people.tobytes() + lines.astype(_NUMBER).tobytes() + cohorts.astype(_NUMBER).tobytes()
        about = {"segment": segment, "part": part, "first": people[:1].tobytes(), "newest": int(lines.max())}
        yield {**about, "entries": end - start, "content": content}


def read_everything(connection: Connection) -> Entries:
    """Every entry that was ever made."""
    return _read(connection, "segment > 0", {})


def chain_moves(known: str, entries: Entries, left: Sequence[Row]) -> str:
    """One hash of who came where, line by line, after what is known: later lines go on from it."""
    order = np.argsort(entries.lines, kind="stable")
    people, lines, cohorts = (column[order] for column in entries)
    edges = [0, *(np.flatnonzero(lines[1:] != lines[:-1]) + 1).tolist(), len(lines)]
    said = [(line, b"cohorts", content) for line, content in left]
    for start, end in pairwise(edges if len(lines) else ()):
        said.append((int(lines[start]), people[start:end].tobytes(), cohorts[start:end].astype(_NUMBER).tobytes()))
    for line, who, where in sorted(said):
        known = hashlib.sha256(known.encode() + who + line.to_bytes(8, "little") + where).hexdigest()
    return known


def read_moves(
    connection: Connection, line: int, known: tuple[int, str] | None
) -> tuple[Sorted, Codes, Departures] | None:
    """Who was entered by later lines, and where they are; and which cohorts were left by these.

    Refused if that is not what is known of it, up to a line, as a hash; None if lines after that one have more of it.
    """
    found, left = read_since(connection, line), departures.read_rows(connection, line)
    if known is not None:
        last, verified = known
        if chain_moves(START, found.only(found.lines <= last), [one for one in left if one[0] <= last]) != verified:
            raise does_not_add_up("the table of people differs from the journal")
        if (found.lines > last).any() or any(one[0] > last for one in left):
            return None
    followed = Departures.of(left)
    return *found.last(followed), followed


def read_since(connection: Connection, line: int) -> Entries:
    """What was entered by later lines of the journal; only parts that have such entries are read."""
    _check_places(connection)
    found = _read(connection, "newest > :line", {"line": line})
    return found.only(found.lines > line)


def _check_places(connection: Connection) -> None:
    """Every part stands where it must and is as long as it says: as much as shows without reading them all."""
    place, end = (0, 0), b""
    about = "SELECT segment, part, first, entries, length(content) FROM segments ORDER BY segment, part"
    for segment, part, first, size, length in connection.execute(about):
        place = (place[0] + 1, 0) if part == 0 else (place[0], place[1] + 1)
        whole = (segment, part, length) == (*place, size * _ENTRY_BYTES) and len(first) == DIGEST_BYTES
        if not whole or (part > 0 and first <= end):
            raise does_not_add_up("the roster has lost a piece")
        end = first


def read_present(connection: Connection) -> tuple[Sorted, Codes]:
    """Everyone, sorted, and the cohort of each."""
    return read_everything(connection).last(departures.read(connection))


def find(connection: Connection, people: Sorted) -> tuple[Sorted, Codes]:
    """Those of these people, who are sorted, that are known, and the cohort of each."""
    known, cohorts = read_past(connection, people).last(departures.read(connection))
    here = locate(people, known) >= 0
    return known[here], cohorts[here]


def read_changed(connection: Connection, line: int) -> Iterator[Entries]:
    """All entries of those who were entered by later lines of the journal, and of others perhaps.

    They are told some people at a time, in order, and everything that was ever entered of them at once.
    """
    _check_places(connection)
    newer = "SELECT coalesce(sum(entries), 0) FROM segments WHERE newest > :line"
    if line > 0 and connection.execute(newer, {"line": line}).fetchone()[0] <= _SOME:
        changed = read_since(connection, line).people
        if len(changed) <= _FEW:
            yield _find_few(connection, changed)
            return
    parts: dict[int, list[tuple[int, bytes, int, int]]] = {}
    listed = "SELECT segment, part, first, newest, entries FROM segments ORDER BY segment, part"
    for segment, *about in connection.execute(listed):
        parts.setdefault(segment, []).append(tuple(about))
    readers = [_Reader(_read_parts(connection, segment, some)) for segment, some in parts.items()]
    longest = max(parts.values(), key=len, default=[])
    for end in [*(first for _, first, *_ in longest[1:]), None]:
        yield Entries.joined([NOBODY, *(reader.read_until(end) for reader in readers)])


def _read_parts(
    connection: Connection, segment: int, parts: Sequence[tuple[int, bytes, int, int]]
) -> Iterator[Entries]:
    """Of one segment, one after the other, if each is what is said of it: (part, first, newest, entries)."""
    end = b""
    for part, first, newest, size in parts:
        which = "SELECT content FROM segments WHERE segment = :segment AND part = :part"
        here = unpack(connection.execute(which, {"segment": segment, "part": part}).fetchone()[0], size)
        if (first, newest) != (here.people[:1].tobytes(), int(here.lines.max())) or first <= end or not here.in_order():
            raise does_not_add_up("the table of people differs from the journal")
        end = here.people[-1:].tobytes()
        yield here


class _Reader:
    """A segment that is read as far as it is asked for."""

    def __init__(self, parts: Iterator[Entries]) -> None:
        self._parts, self._rest = parts, NOBODY

    def read_until(self, end: bytes | None) -> Entries:
        """The next entries, of people who come before this one; or all that are left."""
        taken = [NOBODY]
        while True:
            size = len(self._rest.people)
            cut = size if end is None else int(np.searchsorted(self._rest.people, end))
            taken.append(self._rest.only(slice(None, cut)))
            self._rest = self._rest.only(slice(cut, None))
            following = None if cut < size else next(self._parts, None)
            if following is None:
                return Entries(*map(np.concatenate, zip(*taken, strict=True)))
            self._rest = following


def read_past(connection: Connection, people: Sorted) -> Entries:
    """All entries of these people, who are sorted, and of others perhaps."""
    return _find_few(connection, people) if len(people) <= _FEW else read_everything(connection)


def trace(connection: Connection, digest: bytes) -> list[tuple[int, int]]:
    """One person's past: (line of the journal, cohort), in order; nothing for those who are not known."""
    found, left = _find_few(connection, np.frombuffer(digest, _WIDTH)), departures.read(connection)
    lines, cohorts = found.lines.tolist(), found.cohorts.tolist()
    steps = zip(lines, cohorts, [*lines[1:], _NEVER], strict=False)
    return [step for line, cohort, end in steps for step in ((line, cohort), *left.list_steps(cohort, end))]


def _find_few(connection: Connection, people: Sorted) -> Entries:
    """All entries of a few people, out of the one part of each segment where they would be."""
    segments: dict[int, tuple[list[int], list[bytes]]] = {}
    for segment, part, first in connection.execute("SELECT segment, part, first FROM segments ORDER BY segment, part"):
        parts, firsts = segments.setdefault(segment, ([], []))
        parts.append(part)
        firsts.append(first)
    found = [NOBODY]
    for segment, (parts, firsts) in segments.items():
        places = np.searchsorted(np.array(firsts, _WIDTH), people, side="right") - 1
        for place in np.unique(places[places >= 0]).tolist():
            which = {"segment": segment, "part": parts[place]}
            here = _read(connection, "segment = :segment AND part = :part", which)
            found.append(_only_of(here, people[places == place]))
    return Entries.joined(found)


def _only_of(entries: Entries, people: Sorted) -> Entries:
    """The entries of these people, who are sorted as well; looked up as numbers, of which few agree in 64 bits."""
    among, asked = as_numbers(entries.people), as_numbers(people)
    edges = np.zeros(len(among) + 1, np.int64)
    np.add.at(edges, np.searchsorted(among, asked, "left"), 1)
    np.add.at(edges, np.searchsorted(among, asked, "right"), -1)
    near = entries.only(np.cumsum(edges[:-1]) > 0)
    return near.only(np.isin(near.people, people))


def _read(connection: Connection, which: str, values: Mapping[str, Any]) -> Entries:
    """The entries of these parts, sorted: parts of one segment follow each other."""
    segments: dict[int, list[Entries]] = {}
    with closing(connection.stream(f"{_PARTS} WHERE {which} ORDER BY segment, part", values)) as parts:
        for segment, *_, size, content in parts:
            segments.setdefault(segment, []).append(unpack(content, size))
    whole = [Entries(*map(np.concatenate, zip(*parts, strict=True))) for parts in segments.values()]
    return Entries.joined(whole) if whole else NOBODY


def unpack(content: bytes, size: int) -> Entries:
    """The entries of a part, which has so many."""
    if len(content) != size * _ENTRY_BYTES:
        raise does_not_add_up("the roster has lost a piece")
    numbers = np.frombuffer(content, _NUMBER, 2 * size, size * DIGEST_BYTES)
    return Entries(np.frombuffer(content, _WIDTH, size), numbers[:size], numbers[size:])
