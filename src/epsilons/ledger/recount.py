"""An independent recount: the journal alone says what every table must hold, and every table is compared with it.

Nothing here is shared with the code that charges but how rosters and groups of people are written: balances are added
up again from the journal's lines.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from epsilons.errors import LedgerError
from epsilons.ledger import journal, segments
from epsilons.ledger.order import is_new
from epsilons.ledger.roster import hash_people
from epsilons.ledger.statements import read_rosters
from epsilons.ledger.values import LOST, REFUNDED, RESERVED, STORED, TOUCHED, Cohort, Recount, does_not_add_up
from epsilons.storage.base import Connection

#: What cohorts were before levels had names and datasets had rosters.
_UNNAMED = {"level": None, "own": 0, "datasets": "{}"}


@dataclass
class Replay:
    """What the tables must hold after the lines read so far."""

    about: dict[str, Any] = field(default_factory=dict)
    cohorts: dict[int, dict[str, Any]] = field(default_factory=dict)
    reservations: dict[int, dict[str, Any]] = field(default_factory=dict)
    charges: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    answers: dict[int, str] = field(default_factory=dict)
    joined: dict[tuple[int, int], tuple[int, str]] = field(default_factory=dict)
    moved: dict[tuple[int, int, int], tuple[int, str]] = field(default_factory=dict)
    live: set[str] = field(default_factory=set)
    payers: dict[int, list[int]] = field(default_factory=dict)
    quotas: dict[str, dict[str, Any]] = field(default_factory=dict)
    levels: list[dict[str, Any]] = field(default_factory=list)
    registrations: list[dict[str, Any]] = field(default_factory=list)

    def line(self, seq: int, kind: str, at: str, body: dict[str, Any]) -> None:
        match kind:
            case "open":
                self.about = {
                    "one": 1, "id": body["id"], "format": body["format"], "epoch": 0,
                    "neighbors": None, "rows_per_person": None, "allow_individual": None,
                    "salt": body.get("salt"), "losses": 0,
                    "measure": body.get("measure"), "ids": None, "spelling": None, "digest": body.get("digest"),
                }  # fmt: skip
            case "migrate":
                if body["format"] != self.about["format"] + 1:
                    raise does_not_add_up(f"line {seq} skips a format")
                self.about |= body
            case "terms":
                if self.about["neighbors"] is not None:
                    raise does_not_add_up("the terms were settled twice")
                self.about |= body
            case "unit":
                if self.about["ids"] is not None:
                    raise does_not_add_up("the unit was settled twice")
                self.about |= body
            case "levels":
                self.levels += [{"name": n, "seq": seq, "granted": code} for n, code in body["levels"].items()]
            case "register":
                self._register(seq, at, body)
            case "roster":
                self._roster(seq, body)
            case "reserve":
                self._reserve(seq, at, body)
            case "touch" | "refund":
                number, spent = body["number"], kind == "touch"
                self._set_state(number, RESERVED, TOUCHED if spent else REFUNDED)
                for cohort in self.payers.get(number, ()):
                    nano, _ = self.charges[number, cohort]
                    self.cohorts[cohort]["reserved"] -= nano
                    self.cohorts[cohort]["spent"] += nano if spent else 0
                if not spent:
                    self.live.remove(self.reservations[number]["key"])
                    self._count(number, -1)
            case "quota":
                self._analyst(body["analyst"]).update(nano=body["nano"], questions=body["questions"])
            case "loss":
                self._lose(seq, body)
            case "store":
                self._set_state(body["number"], TOUCHED, STORED)
                self.answers[body["number"]] = body["answer"]
            case _:
                raise does_not_add_up(f"line {seq} is of no known kind")

    def _register(self, seq: int, at: str, body: dict[str, Any]) -> None:
        first = next((one["dataset"] for one in self.registrations if one["name"] == body["name"]), body["number"])
        in_turn = body["number"] == len(self.registrations) + 1 and body["epoch"] == self.about["epoch"]
        if not in_turn or body["dataset"] != first:
            raise does_not_add_up(f"line {seq} registers out of turn")
        self.registrations.append({**body, "seq": seq, "at": at})

    def _roster(self, seq: int, body: dict[str, Any]) -> None:
        if body["epoch"] != self.about["epoch"] + 1:
            raise does_not_add_up(f"line {seq} skips a change of the roster")
        self.about["epoch"] = body["epoch"]
        for made in body["made"]:
            if made["id"] in self.cohorts:
                raise does_not_add_up(f"line {seq} makes a cohort twice")
            self.cohorts[made["id"]] = {**_UNNAMED, **made, "reserved": 0, "people": 0}
        for number, cohort, nano in body["carried"]:
            self._pay(number, cohort, nano, carried=1)
            self.cohorts[cohort]["reserved"] += nano
        for group in body["joined"]:
            target = self.cohorts[group["target"]]
            if target["spent"] != ((target["granted"] or 0) if self.about["losses"] else 0):
                raise does_not_add_up(f"line {seq} lets newcomers join people with a past")
            self.joined[seq, group["target"]] = (group["people"], group["digest"])
            target["people"] += group["people"]
        for group in body["moved"]:
            origin, target = self.cohorts[group["origin"]], self.cohorts[group["target"]]
            if (origin["spent"], origin["reserved"]) != (target["spent"], target["reserved"]):
                raise does_not_add_up(f"line {seq} moves people without what they had spent")
            self.moved[seq, group["origin"], group["target"]] = (group["people"], group["digest"])
            origin["people"] -= group["people"]
            target["people"] += group["people"]

    def _reserve(self, seq: int, at: str, body: dict[str, Any]) -> None:
        number = body["number"]
        in_turn = number == len(self.reservations) + 1 and body["epoch"] == self.about["epoch"]
        if not in_turn or body["key"] in self.live:
            raise does_not_add_up(f"line {seq} charges out of turn")
        self.live.add(body["key"])
        if body["individual"] and not self.about["allow_individual"]:
            raise does_not_add_up(f"line {seq} breaks the terms")
        self.reservations[number] = {
            **{name: body[name] for name in ("number", "key", "kind", "individual", "epoch", "description")},
            "state": RESERVED, "seq": seq, "at": at,
            **{name: body.get(name) for name in ("analyst", "dataset", "question")},
        }  # fmt: skip
        for cohort, nano in body["charges"]:
            account = self.cohorts[cohort]
            if body.get("dataset") is not None and body["dataset"] not in read_rosters(account["datasets"]):
                raise does_not_add_up(f"line {seq} charges people of another dataset")
            account["reserved"] += nano
            if nano <= 0 or account["granted"] is None or account["spent"] + account["reserved"] > account["granted"]:
                raise does_not_add_up(f"line {seq} charges more than was granted")
            self._pay(number, cohort, nano, carried=0)
        self._count(number, 1)

    def _lose(self, seq: int, body: dict[str, Any]) -> None:
        """The worst is assumed of what was lost: everything granted is spent, every open question is closed."""
        self.about["losses"] += 1
        if body["losses"] != self.about["losses"]:
            raise does_not_add_up(f"line {seq} skips a loss")
        for account in self.cohorts.values():
            account["spent"] = max(account["spent"] + account["reserved"], account["granted"] or 0)
            account["reserved"] = 0
        for held in self.reservations.values():
            if held["state"] in (RESERVED, TOUCHED):
                held["state"] = LOST
                self.live.remove(held["key"])

    def _analyst(self, name: str) -> dict[str, Any]:
        nothing = {"analyst": name, "nano": None, "questions": None, "used_nano": 0, "used_questions": 0}
        return self.quotas.setdefault(name, nothing)

    def _count(self, number: int, sign: int) -> None:
        """A question counts against its analyst's quota with the largest charge it made."""
        name = self.reservations[number]["analyst"]
        if name is not None:
            paid = [self.charges[number, cohort] for cohort in self.payers.get(number, ())]
            largest = max((nano for nano, carried in paid if not carried), default=0)
            self._analyst(name)["used_nano"] += sign * largest
            self._analyst(name)["used_questions"] += sign

    def _set_state(self, number: int, before: str, after: str) -> None:
        if self.reservations[number]["state"] != before:
            raise does_not_add_up(f"release {number} was settled out of turn")
        self.reservations[number]["state"] = after

    def _pay(self, number: int, cohort: int, nano: int, carried: int) -> None:
        if (number, cohort) in self.charges:
            raise does_not_add_up(f"release {number} charges a cohort twice")
        self.charges[number, cohort] = (nano, carried)
        self.payers.setdefault(number, []).append(cohort)


def verify(connection: Connection, since: int = 0) -> Recount:
    """Recount everything; raises LedgerError at the first difference.

    Of the roster only what was entered after the line `since`: what came before was verified already.
    """
    try:
        replay, head, lines = Replay(), journal.START, 0
        journal_lines = "SELECT seq, kind, at, body, hash FROM journal ORDER BY seq"
        with closing(connection.stream(journal_lines)) as found:
            for seq, kind, at, body, held in found:
                lines += 1
                if seq != lines or journal.chain(head, seq, kind, at, body) != held:
                    raise does_not_add_up(f"the chain breaks at line {lines}")
                head = held
                replay.line(seq, kind, at, json.loads(body))
        _compare(connection, "ledger", [replay.about])
        _compare(connection, "quotas", replay.quotas.values())
        _compare(connection, "levels", replay.levels)
        _compare_registrations(connection, replay)
        _compare(connection, "cohorts", replay.cohorts.values())
        charged = [{"number": n, "cohort": c, "nano": v, "carried": k} for (n, c), (v, k) in replay.charges.items()]
        _compare(connection, "charges", charged)
        _compare_reservations(connection, replay)
        _compare_people(connection, replay, since)
        people = sum(row["people"] for row in replay.cohorts.values())
        final = tuple(Cohort(*(row[each.name] for each in fields(Cohort))) for row in replay.cohorts.values())
        return Recount(entries=lines, releases=len(replay.reservations), people=people, head=head, cohorts=final)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
        raise does_not_add_up("something in it cannot be read") from None


def _compare(connection: Connection, table: str, expected: Iterable[dict[str, Any]]) -> None:
    rows = connection.execute(f"SELECT * FROM {table}").fetchall()
    names = rows[0].keys() if rows else ()
    # The journal has a digest in place of bytes (the salt, here).
    held = {tuple(journal.hash_salt(value) if isinstance(value, bytes) else value for value in row) for row in rows}
    if held != {tuple(row[name] for name in names) for row in expected}:
        raise _differs(table)


def _differs(table: str) -> LedgerError:
    return does_not_add_up(f"the table of {table} differs from the journal")


def _compare_registrations(connection: Connection, replay: Replay) -> None:
    """The journal has digests of what was settled."""
    held = [dict(row) for row in connection.execute("SELECT * FROM registrations ORDER BY number")]
    for row in held:
        row |= {name: hashlib.sha256(row[name].encode()).hexdigest() for name in ("about", "stamp")}
    if held != replay.registrations:
        raise _differs("registrations")


def _compare_reservations(connection: Connection, replay: Replay) -> None:
    held = [dict(row) for row in connection.execute("SELECT * FROM reservations ORDER BY number")]
    if [row["number"] for row in held] != sorted(replay.reservations):
        raise _differs("reservations")
    for row in held:
        expected = replay.reservations[row["number"]]
        bare = {name: None if row[name] is None else row[name].hex() for name in ("key", "question")}
        if {name: row[name] for name in expected} | bare != expected:
            raise _differs("reservations")
        answer = None if row["answer"] is None else hashlib.sha256(row["answer"]).hexdigest()
        if answer != replay.answers.get(row["number"]):
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


def _compare_people(connection: Connection, replay: Replay, since: int) -> None:
    """Everyone is where the journal's groups put them, followed entry by entry."""
    if since == 0:
        entries = segments.Entries.joined([segments.NOBODY, *_read_segments(connection)])
    else:
        entries = segments.read_past(connection, segments.read_since(connection, since).people)
    entered = sum(size for size, _ in (*replay.joined.values(), *replay.moved.values()))
    if connection.execute("SELECT coalesce(sum(entries), 0) FROM segments").fetchone()[0] != entered:
        raise _differs("people")
    people, lines, cohorts = entries
    first = is_new(people)
    if (~first[1:] & (lines[1:] <= lines[:-1])).any():
        raise does_not_add_up("a person's moves do not follow from each other")
    origins = np.where(first, 0, np.append(cohorts[:1], cohorts[:-1]))
    # Together who came by the same line from and to the same cohorts; they stay sorted.
    order = np.lexsort((cohorts, origins, lines))
    marks = np.stack([column[order] for column in (lines, origins, cohorts)])
    starts = np.flatnonzero(np.append([True] * (len(order) > 0), (marks[:, 1:] != marks[:, :-1]).any(axis=0)))
    parties = np.split(people[order], starts[1:]) if len(order) else []
    told = zip(marks[:, starts].T.tolist(), parties, strict=True)
    found = {tuple(mark): (len(party), hash_people(party)) for mark, party in told}
    joined = {(line, target): known for (line, origin, target), known in found.items() if origin == 0}
    moved = {mark: known for mark, known in found.items() if mark[1] > 0}
    for held, expected in ((joined, replay.joined), (moved, replay.moved)):
        later = [{mark: known for mark, known in one.items() if mark[0] > since} for one in (held, expected)]
        if later[0] != later[1]:
            raise _differs("people")
