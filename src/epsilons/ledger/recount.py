"""An independent recount: the journal alone says what every table must hold, and every table is compared with it.

What the journal says is worked out by `replay`. What was settled for good is compared as soon as that is known, the
rest at the end. Who starts from a condensed replay compares what later lines have changed, and all that is still alive;
from the first line on, everything.
"""

import hashlib
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import fields
from operator import attrgetter
from typing import Any

import numpy as np

from epsilons.errors import LedgerError
from epsilons.ledger import departures, journal, segments
from epsilons.ledger.order import is_new, number_apart, split
from epsilons.ledger.replay import COLUMNS, Asked, Replay, as_row
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
#: So many pieces of the roster are read before the first of them is compared.
_AHEAD = 4


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
        since, told, left = replay.line, dict[tuple[int, int, int], tuple[int, str]](), dict[int, bytes]()
        with closing(connection.stream(_LINES, {"line": since})) as lines:
            for line in lines:
                said, kind = replay.follow(*line), line[1]
                if kind in ("roster", "merge", "renew"):
                    _note_moves(replay.line, [*said.get("joined", ()), *said["moved"]], told, left)
                if len(replay.ended) >= _BATCH:
                    _compare_asked(connection, replay.ended)
                    replay.ended.clear()
                if progress is not None:
                    progress(replay.line, last)
        rows = departures.read_rows(connection)
        if {line: content for line, content in rows if line > since} != left:
            raise _differs("departures")
        kept = min((one["seq"] for one in replay.newest.values()), default=replay.line)
        people = _Roster(connection, since, kept, rows)
        people.compare(told)
        _compare_settled(connection, replay, [*replay.newest.values(), *replay.registered])
        _compare_asked(connection, [*replay.ended, *replay.open.values()])
        _compare_cohorts(connection, replay, whole)
        _compare_sizes(connection, replay, whole)
        if find_mark(connection, None) != replay.individual:
            raise _differs("reservations")
        for name, newest in replay.newest.items():
            replay.moved[name] = people.chain(replay.moved[name], max(since, newest["seq"]))
        replay.ended.clear()
        replay.registered.clear()
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
        raise does_not_add_up("something in it cannot be read") from None
    return replay


def _note_moves(
    line: int,
    groups: Sequence[dict[str, Any]],
    told: dict[tuple[int, int, int], tuple[int, str]],
    left: dict[int, bytes],
) -> None:
    """What a line says of people, as hashes, and of cohorts that everybody left at once, which have none."""
    named = [one for one in groups if "digest" in one]
    keys = [(line, one.get("origin", 0), one["target"]) for one in named]
    told |= zip(keys, ((one["people"], one["digest"]) for one in named), strict=True)
    if len(set(keys)) < len(keys):
        raise _differs("people")
    if len(named) < len(groups):
        left[line] = departures.pack({one["origin"]: one["target"] for one in groups if "digest" not in one})


def keep_up(connection: Connection, replay: Replay) -> None:
    """Follow the lines that are new, and compare all that a charge, or what people say, rests on but who stands where.

    In the transaction that charges, so that an edit beside it is noticed before it is honoured.
    """
    try:
        with closing(connection.stream(_LINES, {"line": replay.line})) as lines:
            for line in lines:
                replay.follow(*line)
        replay.ended.clear()
        replay.registered.clear()
        replay.accounts = {number: one for number, one in replay.accounts.items() if one.kept}
        _compare_settled(connection, replay, replay.newest.values())
        _compare_cohorts(connection, replay, whole=False)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
        raise does_not_add_up("something in it cannot be read") from None


def sum_up(replay: Replay) -> Recount:
    """What was counted."""
    living = sorted((one for one in replay.accounts.values() if one.people), key=lambda one: one.id)
    cohorts = tuple(Cohort(*_AS_COHORT(one)) for one in living)
    people = sum(one.people for one in living)
    return Recount(replay.line, replay.releases, people, replay.head, cohorts)


def _compare_settled(connection: Connection, replay: Replay, registered: Iterable[dict[str, Any]]) -> None:
    """Terms and epoch, what analysts may use, what names of levels mean, and what was registered."""
    _compare(connection, "ledger", [replay.about])
    _compare(connection, "quotas", replay.quotas.values())
    _compare(connection, "levels", replay.levels)
    _compare_registrations(connection, registered)


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
    """Those that people are in, or of which something is reserved; or all of them, also those that everybody left."""
    held, left = (f"SELECT {_COLUMNS} FROM {table}" for table in ("cohorts", "emptied"))
    everyone = replay.accounts.values()
    kept = f"{held} WHERE people > 0 OR reserved > 0", [one for one in everyone if one.kept]
    for query, expected in [kept, (f"{held} UNION ALL {left}", everyone)] if whole else [kept]:
        if Counter(map(tuple, connection.execute(query))) != Counter(map(as_row, expected)):
            raise _differs("cohorts")


def _compare_sizes(connection: Connection, replay: Replay, whole: bool) -> None:
    """No table has a row that the journal does not know: none beyond the last or, if all are compared, as many."""
    last = {
        ("cohorts", "id"): replay.cohorts,
        ("emptied", "id"): replay.cohorts,
        ("reservations", "number"): replay.releases,
        ("charges", "number"): replay.releases,
        ("registrations", "number"): replay.registrations,
    }
    for (table, key), newest in last.items():
        if (connection.execute(f"SELECT max({key}) FROM {table}").fetchone()[0] or 0) > newest:
            raise _differs(table)
    sizes = {"reservations": replay.releases, "charges": replay.charges, "registrations": replay.registrations}
    for table, number in sizes.items() if whole else ():
        if connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] != number:
            raise _differs(table)
    if connection.execute("SELECT coalesce(sum(entries), 0) FROM segments").fetchone()[0] != replay.entries:
        raise _differs("people")
    if connection.execute("SELECT count(*) FROM departures").fetchone()[0] != replay.departures:
        raise _differs("departures")


def _compare_registrations(connection: Connection, expected: Iterable[dict[str, Any]]) -> None:
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


class _Roster:
    """Who was entered on the roster after a line, by which lines, from which cohort to which.

    Entries are read some people at a time, and added up while the next ones are read. Only those that came after the
    line `kept` are kept.
    """

    def __init__(self, connection: Connection, since: int, kept: int, left: Sequence[departures.Row]) -> None:
        self._since, self._kept, self._after = since, kept, [segments.NOBODY]
        self._left, self._departures = left, departures.Departures.of(left)
        self._parties: dict[tuple[int, int, int], tuple[int, Any]] = {}
        with ThreadPoolExecutor(1) as pool:  # one, since what is hashed has an order
            waiting: deque[Future[None]] = deque()
            for entries in segments.read_changed(connection, since):
                waiting.append(pool.submit(self._add, entries))
                if len(waiting) > _AHEAD:
                    waiting.popleft().result()
            for one in waiting:
                one.result()

    def _add(self, entries: segments.Entries) -> None:
        people, lines, cohorts = entries
        first = is_new(people)
        if (~first[1:] & (lines[1:] <= lines[:-1])).any():
            raise does_not_add_up("a person's moves do not follow from each other")
        later = np.flatnonzero(lines > self._since)
        origins = np.zeros(len(people), np.int64)
        moved = later[~first[later]]
        # Where they came to by their entry before, or where everybody there has gone since.
        origins[moved] = self._departures.follow(cohorts[moved - 1], before=lines[moved])
        # Together who came by the same line from and to the same cohorts; they stay sorted.
        alike = number_apart(lines[later], origins[later], cohorts[later])
        for members in split(alike, int(alike.max()) + 1) if len(later) else ():
            which = later[members]
            one = which[0]
            key = int(lines[one]), int(origins[one]), int(cohorts[one])
            number, hashed = self._parties.get(key, (0, hashlib.sha256()))
            hashed.update(people[which].tobytes())
            self._parties[key] = number + len(which), hashed
        self._after.append(entries.only(lines > max(self._kept, self._since)))

    def compare(self, told: Mapping[tuple[int, int, int], tuple[int, str]]) -> None:
        """Everyone whom a line puts somewhere is there, and nobody else is."""
        if {key: (number, hashed.hexdigest()) for key, (number, hashed) in self._parties.items()} != told:
            raise _differs("people")

    def chain(self, known: str, line: int) -> str:
        """The hash of who came where after a line."""
        self._after = [segments.Entries.joined(self._after)]
        left = [one for one in self._left if one[0] > line]
        return segments.chain_moves(known, self._after[0].only(self._after[0].lines > line), left)
