"""An independent recount: the journal alone says what every table must hold, and every table is compared with it.

What the journal says is worked out by `replay`. What was settled for good is compared as soon as that is known, the
rest at the end. Who starts from a condensed replay compares what later lines have changed, and all that is still alive;
from the first line on, everything.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import fields
from operator import attrgetter
from typing import Any

import numpy as np

from epsilons.errors import LedgerError
from epsilons.ledger import journal, segments
from epsilons.ledger.order import is_new
from epsilons.ledger.replay import COLUMNS, Asked, Replay, as_row
from epsilons.ledger.roster import hash_people
from epsilons.ledger.statements import find_mark
from epsilons.ledger.values import Cohort, Recount, does_not_add_up
from epsilons.storage.base import Connection, spread

#: Told how many lines of how many were followed.
Progress = Callable[[int, int], None]
_LINES = "SELECT seq, kind, at, body, hash FROM journal WHERE seq > :line ORDER BY seq"
_COLUMNS = ", ".join(COLUMNS)
_AS_COHORT = attrgetter(*(each.name for each in fields(Cohort)))
#: So many questions are compared at once.
_BATCH = 100
#: So many threads compare rosters beside the one that follows the journal.
_THREADS = 4


def resume(text: str | None) -> Replay | None:
    """A replay that was condensed, if there is one that this release reads."""
    try:
        return None if text is None else Replay.of(text)
    except (ValueError, KeyError, TypeError):
        return None


def verify(connection: Connection, start: Replay | None = None, progress: Progress | None = None) -> Replay:
    """Recount the lines after those of a condensed replay, or all of them; raises LedgerError at the first difference.

    What the replay is based on was verified already, and is not read again.
    """
    replay = Replay() if start is None else start
    whole, last = replay.line == 0, journal.head(connection)[0]
    try:
        people = _People(connection, replay.line)
        compared: dict[int, Future[None]] = {}
        with ThreadPoolExecutor(_THREADS) as pool, closing(connection.stream(_LINES, {"line": replay.line})) as lines:
            for line in lines:
                said, kind = replay.follow(*line), line[1]
                if kind in ("roster", "merge"):
                    groups = [*said.get("joined", ()), *said["moved"]]
                    compared[replay.line] = pool.submit(people.compare, replay.line, groups)
                if len(replay.ended) >= _BATCH:
                    _compare_asked(connection, replay.ended)
                    replay.ended.clear()
                if progress is not None:
                    progress(replay.line, last)
        for one in compared.values():
            one.result()
        people.compare_rest(list(compared))
        _compare(connection, "ledger", [replay.about])
        _compare(connection, "quotas", replay.quotas.values())
        _compare(connection, "levels", replay.levels)
        _compare_registrations(connection, [*replay.newest.values(), *replay.registered])
        _compare_asked(connection, [*replay.ended, *replay.open.values()])
        _compare_cohorts(connection, replay, whole)
        _compare_sizes(connection, replay, whole)
        if find_mark(connection, None) != replay.individual:
            raise _differs("reservations")
        for name, newest in replay.newest.items():
            replay.moved[name] = people.chain(replay.moved[name], newest["seq"])
        replay.ended.clear()
        replay.registered.clear()
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
        raise does_not_add_up("something in it cannot be read") from None
    return replay


def sum_up(replay: Replay) -> Recount:
    """What was counted."""
    living = sorted((one for one in replay.accounts.values() if one.people), key=lambda one: one.id)
    cohorts = tuple(Cohort(*_AS_COHORT(one)) for one in living)
    people = sum(one.people for one in living)
    return Recount(replay.line, replay.releases, people, replay.head, cohorts)


def _compare(connection: Connection, table: str, expected: Iterable[dict[str, Any]]) -> None:
    rows = connection.execute(f"SELECT * FROM {table}").fetchall()
    names = rows[0].keys() if rows else ()
    # The journal has a digest in place of bytes (the salt, here).
    held = {tuple(journal.hash_salt(value) if isinstance(value, bytes) else value for value in row) for row in rows}
    if held != {tuple(row[name] for name in names) for row in expected}:
        raise _differs(table)


def _differs(table: str) -> LedgerError:
    return does_not_add_up(f"the table of {table} differs from the journal")


def _compare_cohorts(connection: Connection, replay: Replay, whole: bool) -> None:
    """Those that people are in, and those of which something is reserved; or all of them."""
    rows = connection.execute(f"SELECT {_COLUMNS} FROM cohorts{'' if whole else ' WHERE people > 0'}")
    expected = {as_row(one) for one in replay.accounts.values() if whole or one.people}
    if {tuple(row) for row in rows} != expected:
        raise _differs("cohorts")
    for one in replay.accounts.values():
        if one.reserved and not one.people:
            row = connection.execute(f"SELECT {_COLUMNS} FROM cohorts WHERE id = :id", {"id": one.id}).fetchone()
            if row is None or tuple(row) != as_row(one):
                raise _differs("cohorts")


def _compare_sizes(connection: Connection, replay: Replay, whole: bool) -> None:
    """No table has a row that the journal does not know: as many of them, or, at a glance, none beyond the last."""
    expected = {
        ("cohorts", "id"): (replay.cohorts, len(replay.accounts)),
        ("reservations", "number"): (replay.releases, replay.releases),
        ("charges", "number"): (None, replay.charges),
        ("registrations", "number"): (replay.registrations, replay.registrations),
    }
    for (table, key), (newest, number) in expected.items():
        found = connection.execute(f"SELECT {'count(*)' if whole else f'max({key})'} FROM {table}").fetchone()[0]
        if (found or 0) != number if whole else (found or 0) > (replay.releases if newest is None else newest):
            raise _differs(table)
    if connection.execute("SELECT coalesce(sum(entries), 0) FROM segments").fetchone()[0] != replay.entries:
        raise _differs("people")


def _compare_registrations(connection: Connection, expected: Sequence[dict[str, Any]]) -> None:
    """The journal has digests of what was settled."""
    for one in expected:
        found = connection.execute("SELECT * FROM registrations WHERE number = :number", {"number": one["number"]})
        row = found.fetchone()
        held = {} if row is None else dict(row)
        held |= {name: hashlib.sha256(held[name].encode()).hexdigest() for name in ("about", "stamp") if held}
        if held != one:
            raise _differs("registrations")


def _compare_asked(connection: Connection, several: Sequence[Asked]) -> None:
    """Questions, as they ended or stand, and what they charged."""
    for start in range(0, len(several), _BATCH):
        expected = {one.row["number"]: one for one in several[start : start + _BATCH]}
        which, numbers = spread("number", expected)
        paid: dict[int, dict[int, tuple[int, ...]]] = {number: {} for number in expected}
        charges = f"SELECT number, cohort, nano, carried, level FROM charges WHERE number IN ({which})"
        for number, cohort, *rest in connection.execute(charges, numbers):
            paid[number][cohort] = tuple(rest)
        if any(paid[number] != one.charges for number, one in expected.items()):
            raise _differs("charges")
        rows = connection.execute(f"SELECT * FROM reservations WHERE number IN ({which})", numbers).fetchall()
        if len(rows) != len(expected):
            raise _differs("reservations")
        for row in rows:
            one = expected[row["number"]]
            bare = {name: None if row[name] is None else row[name].hex() for name in ("key", "question")}
            if {name: row[name] for name in one.row} | bare != one.row:
                raise _differs("reservations")
            if (None if row["answer"] is None else hashlib.sha256(row["answer"]).hexdigest()) != one.answer:
                raise does_not_add_up("a stored answer is not the one that was released")


def _read_segments(connection: Connection) -> Iterator[segments.Entries]:
    """Every part, if it is what it says, and stands where it must."""
    place, end = (0, 0), b""
    with closing(connection.stream(segments.ALL)) as parts:
        for segment, part, first, newest, size, content in parts:
            here = segments.unpack(content, size)
            place = (place[0] + 1, 0) if part == 0 else (place[0], place[1] + 1)
            start, last = here.people[:1].tobytes(), int(here.lines.max())
            if (segment, part, first, newest) != (*place, start, last) or (part > 0 and start <= end):
                raise _differs("people")
            end = here.people[-1:].tobytes()
            yield here


class _People:
    """What was entered on the roster after a line, by the lines that say so, from which cohort to which."""

    def __init__(self, connection: Connection, since: int) -> None:
        if since == 0:
            entries = segments.Entries.joined([segments.NOBODY, *_read_segments(connection)])
        else:
            entries = segments.read_past(connection, segments.read_since(connection, since).people)
        people, lines, cohorts = entries
        first = is_new(people)
        if (~first[1:] & (lines[1:] <= lines[:-1])).any():
            raise does_not_add_up("a person's moves do not follow from each other")
        origins = np.where(first, 0, np.append(cohorts[:1], cohorts[:-1]))
        later = np.flatnonzero(lines > since)
        # Together who came by the same line from and to the same cohorts; they stay sorted.
        order = later[np.lexsort((cohorts[later], origins[later], lines[later]))]
        self._people, self._lines = people[order], lines[order]
        self._marks = np.stack([origins[order], cohorts[order]])

    def compare(self, line: int, groups: Sequence[dict[str, Any]]) -> None:
        """Everyone whom a line puts somewhere is there, and nobody else by that line."""
        start, end = np.searchsorted(self._lines, [line, line + 1])
        marks = self._marks[:, start:end]
        starts = np.flatnonzero(np.append([True] * int(end > start), (marks[:, 1:] != marks[:, :-1]).any(axis=0)))
        parties = np.split(self._people[start:end], starts[1:]) if end > start else []
        told = zip(marks[:, starts].T.tolist(), parties, strict=True)
        found = {tuple(mark): (len(party), hash_people(party)) for mark, party in told}
        expected = {(one.get("origin", 0), one["target"]): (one["people"], one["digest"]) for one in groups}
        if found != expected or len(expected) != len(groups):
            raise _differs("people")

    def chain(self, known: str, line: int) -> str:
        """The hash of who came where after a line."""
        which = slice(int(np.searchsorted(self._lines, line, "right")), None)
        return segments.chain_moves(
            known, segments.Entries.of(self._people[which], self._lines[which], self._marks[1, which])
        )

    def compare_rest(self, lines: Sequence[int]) -> None:
        """Nobody was entered by a line that says nothing of it."""
        if not np.isin(self._lines, lines).all():
            raise _differs("people")
