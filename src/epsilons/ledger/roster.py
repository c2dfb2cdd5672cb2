"""People join, change their minds, withdraw and come back: always a move between cohorts, never a lost charge.

A person who moves takes along what was spent and what is reserved; the cohort they come to has exactly that past, and
is made if there is none. A cohort's grant never changes, so the history shows the grant that was in force.

Who moves where is decided by the rules of `consent`, for all people who stand alike and ask alike at once.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from epsilons.ledger import journal
from epsilons.ledger.checks import Sorted
from epsilons.ledger.consent import PUBLIC_CODE, WITHDRAW_CODE, Decide, Standing, Word, rank_openness, waits
from epsilons.ledger.values import ACTIVE, DIGEST_BYTES, WITHDRAWN, Enrolment
from epsilons.storage.base import Connection, spread

Group = dict[str, Any]
Codes = NDArray[np.int64]
Mask = NDArray[np.bool_]
#: What a cohort's line in the journal says when it is made.
_MADE = ("id", "granted", "spent", "state", "ceiling", "level", "own", "datasets")

# Up to so many people are looked up one by one; for more, one pass over everybody is faster, in parts of so many rows.
_FEW, _PART = 500, 1 << 14


@dataclass
class _Cohorts:
    """The cohorts as they are, by what makes people alike: standing, spent, open reservations."""

    rows: dict[int, Any]
    open: dict[int, frozenset[tuple[int, int]]]
    index: dict[tuple[Any, ...], int] = field(default_factory=dict)
    made: list[dict[str, Any]] = field(default_factory=list)
    lost: bool = False

    @classmethod
    def of(cls, connection: Connection) -> Self:
        rows = {row["id"]: dict(row) for row in connection.execute("SELECT * FROM cohorts")}
        pending = "SELECT cohort, number, nano FROM charges JOIN reservations USING (number) WHERE state = 'reserved'"
        held: dict[int, set[tuple[int, int]]] = {}
        for cohort, number, nano in connection.execute(pending):
            held.setdefault(cohort, set()).add((number, nano))
        lost = connection.execute("SELECT losses FROM ledger").fetchone()[0] > 0
        cohorts = cls(rows, {cohort: frozenset(held.get(cohort, ())) for cohort in rows}, lost=lost)
        for cohort in sorted(rows, reverse=True):
            cohorts.index[cohorts.standing(cohort), rows[cohort]["spent"], cohorts.open[cohort]] = cohort
        return cohorts

    def standing(self, cohort: int) -> Standing:
        row = self.rows[cohort]
        code = PUBLIC_CODE if row["granted"] is None else int(row["granted"])
        code = WITHDRAW_CODE if row["state"] == WITHDRAWN else code
        said = tuple(sorted((int(number), text) for number, text in json.loads(row["datasets"]).items()))
        return Standing(code, row["level"], bool(row["own"]), said)

    def find_target(self, origin: int | None, new: Standing) -> int:
        """Where people of this past go who stand so from now on."""
        granted = None if new.code == PUBLIC_CODE else new.code
        if origin is None:
            # Who joins after a loss may have been charged in the part that is lost.
            spent, held = (granted or 0) if self.lost else 0, frozenset[tuple[int, int]]()
        else:
            spent, held = int(self.rows[origin]["spent"]), self.open[origin]
        alike = (new, spent, held)
        if alike not in self.index:
            reserved = sum(nano for _, nano in held)
            number = max(self.rows, default=0) + 1
            made = {  # in the table's order
                "id": number, "granted": granted, "spent": spent, "reserved": reserved,
                "ceiling": max(granted or 0, spent + reserved), "people": 0,
                "state": WITHDRAWN if new.code == WITHDRAW_CODE else ACTIVE,
                "level": new.level, "own": int(new.own), "datasets": json.dumps({str(d): text for d, text in new.said}),
            }  # fmt: skip
            self.rows[number], self.open[number], self.index[alike] = made, held, number
            self.made.append(made)
        return self.index[alike]


def hash_people(people: Sorted) -> str:
    """One text for a set of people."""
    return hashlib.sha256(np.sort(people).tobytes()).hexdigest()


def list_digests(people: Sorted) -> Iterator[bytes]:
    """The digests, trailing zero bytes included; never all of them as objects, which take four times the room."""
    raw = people.tobytes()
    return (raw[at : at + DIGEST_BYTES] for at in range(0, len(raw), DIGEST_BYTES))


@dataclass(frozen=True, eq=False)
class Request:
    """What is asked for: `words[asked[i]]` for `people[i]`, and who decides what becomes of it.

    With `everyone` it is a whole roster: those who are on the dataset's and not listed are off it from now on.
    """

    people: Sorted
    asked: NDArray[Any]
    words: Sequence[Word]
    decide: Decide
    dataset: int | None = None
    everyone: bool = False

    def once(self) -> tuple[Sorted, Codes]:
        """Everyone once, sorted, with the strictest of what they ask for: the first that `unique` finds."""
        strictness = np.argsort(np.argsort([rank_openness(word.code) for word in self.words], kind="stable"))
        order = np.lexsort((strictness[self.asked], self.people)) if len(self.people) else np.empty(0, np.int64)
        people, first = np.unique(self.people[order], return_index=True)
        return people, self.asked[order][first].astype(np.int64)


def change(connection: Connection, at: str, request: Request, preview: bool = False) -> Enrolment:
    """Carry out what people ask for in one transaction, and say what happened; a preview only says what would.

    The roster's epoch grows only when a person changes their cohort.
    """
    people, asked = request.once()
    cohorts = _Cohorts.of(connection)
    found, standing = _find_people(connection, people, request.everyone)
    unlisted = found[_locate(people, found) < 0]
    if len(unlisted):  # they ask for nothing: -1
        everyone = np.concatenate([people, unlisted])
        order = np.argsort(everyone, kind="stable")
        people, asked = everyone[order], np.concatenate([asked, np.full(len(unlisted), -1)])[order]
    place = _locate(found, people)
    origins = np.where(place >= 0, np.append(standing, 0)[place], 0)
    epoch = int(connection.execute("SELECT epoch FROM ledger").fetchone()[0])
    counts: Counter[str] = Counter()
    targets, groups = _decide_all(request, people, asked, origins, cohorts, counts)
    if preview or not groups:
        return Enrolment(epoch=epoch, **counts)

    seq = journal.head(connection)[0] + 1
    moving = (targets != origins) & (origins > 0)
    joined = [group for group in groups if group["origin"] == 0]
    moved = [group for group in groups if group["origin"] > 0]
    if joined:
        new = origins == 0
        arrivals = zip(list_digests(people[new]), targets[new].tolist(), strict=True)
        connection.insert_many("people", ((digest, cohort, seq) for digest, cohort in arrivals))
    if moved:
        _move(connection, seq, people[moving], origins[moving], targets[moving])
    carried = _write_cohorts(connection, cohorts, joined, moved)
    connection.execute("UPDATE ledger SET epoch = :epoch", {"epoch": epoch + 1})
    made = [{key: one[key] for key in _MADE} for one in cohorts.made]
    body = {"epoch": epoch + 1, "made": made, "carried": carried, "joined": joined, "moved": moved}
    journal.append(connection, "roster", at, body)
    return Enrolment(epoch=epoch + 1, **counts)


def _locate(known: Sorted, people: Sorted) -> Codes:
    """The place of each of these people among those who are known, both sorted; -1 for those who are not."""
    if len(known) == 0:
        return np.full(len(people), -1)
    place = np.minimum(np.searchsorted(known, people), len(known) - 1)
    return np.where(known[place] == people, place, -1)


def _decide_all(
    request: Request, people: Sorted, asked: Codes, origins: Codes, cohorts: _Cohorts, counts: Counter[str]
) -> tuple[Codes, list[Group]]:
    """Where everyone goes, and the groups that move together: from one cohort (newcomers: 0) to one other.

    People of a cohort who ask alike are decided about at once; what they say in other words may come to the same.
    """
    targets, together = origins.copy(), dict[tuple[int, int], list[Codes]]()
    pair = origins * (len(request.words) + 1) + asked + 1
    order = np.argsort(pair, kind="stable")
    pairs, starts = np.unique(pair[order], return_index=True)
    for both, members in zip(pairs.tolist(), np.split(order, starts[1:]), strict=len(pairs) > 0):
        origin, which = divmod(both, len(request.words) + 1)
        now = cohorts.standing(origin) if origin else None
        word = None if which == 0 else request.words[which - 1]
        new = request.decide(now, word)
        _count(counts, request.dataset, now, word, new, len(members))
        if new == now:
            continue
        target = cohorts.find_target(origin or None, new)
        targets[members] = target
        together.setdefault((origin, target), []).append(members)
    parties = {pair: people[np.concatenate(parts)] for pair, parts in together.items()}
    return targets, [
        {"origin": origin, "target": target, "people": len(party), "digest": hash_people(party)}
        for (origin, target), party in parties.items()
    ]


def _count(
    counts: Counter[str], dataset: int | None, now: Standing | None, asked: Word | None, new: Standing, people: int
) -> None:
    """What happened to these people, for the report."""
    if now is None:
        gone = new.code == WITHDRAW_CODE
        counts["withdrawn" if gone else "joined"] += people
        counts["unknown"] += people * gone
        return
    before, after = rank_openness(now.code), rank_openness(new.code)
    counts["tightened"] += people * (0 < after < before)
    counts["loosened"] += people * (after > before)
    counts["withdrawn"] += people * (after == 0 < before)
    if asked is None:
        counts["gone"] += people * (new.said != now.said)
        return
    counts["known"] += people
    pending = waits(dataset, now, asked, new)
    counts["pending"] += people * pending
    counts["unchanged"] += people * (asked.code == now.code == new.code)
    counts["kept"] += people * (new.own and not pending and asked.code != new.code)


def _move(connection: Connection, seq: int, people: Sorted, origins: Codes, targets: Codes) -> None:
    """Everyone goes to another cohort, and the step is kept."""
    steps = zip(list_digests(people), origins.tolist(), targets.tolist(), strict=True)
    connection.insert_many("moves", ((digest, seq, *step) for digest, *step in steps))
    if len(people) <= _FEW:
        pairs = zip(list_digests(people), targets.tolist(), strict=True)
        each = ({"digest": digest, "cohort": cohort} for digest, cohort in pairs)
        connection.executemany("UPDATE people SET cohort = :cohort WHERE digest = :digest", each)
    else:
        everyone = "UPDATE people SET cohort = moves.target FROM moves"
        connection.execute(f"{everyone} WHERE moves.digest = people.digest AND moves.seq = :seq", {"seq": seq})


def _find_people(connection: Connection, people: Sorted, everyone: bool) -> tuple[Sorted, Codes]:
    """Those of these people who are known, or with `everyone` all who are, sorted, and the cohort of each."""
    if len(people) <= _FEW and not everyone:
        names, these = spread("digest", list_digests(people))
        known, cohorts = read_members(connection, f"WHERE digest IN ({names})", these)
    else:
        known, cohorts = read_members(connection)
    order = np.argsort(known)
    known, cohorts = known[order], cohorts[order]
    listed = slice(None) if everyone else _locate(people, known) >= 0
    return known[listed], cohorts[listed]


def read_members(
    connection: Connection, which: str = "", values: Mapping[str, Any] | None = None
) -> tuple[Sorted, Codes]:
    """People and their cohorts as two arrays; part by part, since all rows as objects take ten times the room."""
    digests, numbers = bytearray(), [np.empty(0, np.int64)]
    with closing(connection.stream(f"SELECT digest, cohort FROM people {which}", values or {})) as cursor:
        while rows := cursor.fetchmany(_PART):
            digests += b"".join([row[0] for row in rows])
            numbers.append(np.fromiter((row[1] for row in rows), dtype=np.int64, count=len(rows)))
    return np.frombuffer(digests, dtype=f"S{DIGEST_BYTES}"), np.concatenate(numbers)


def _write_cohorts(
    connection: Connection, cohorts: _Cohorts, joined: list[Group], moved: list[Group]
) -> list[list[int]]:
    """New cohorts with the open charges they carry, and everybody's new size; says what was carried."""
    connection.insert_many("cohorts", [tuple(made.values()) for made in cohorts.made])
    carried = sorted([n, made["id"], nano] for made in cohorts.made for n, nano in cohorts.open[made["id"]])
    connection.insert_many("charges", [(n, cohort, nano, 1) for n, cohort, nano in carried])
    growth: Counter[int] = Counter()
    for group in (*joined, *moved):
        growth[group["target"]] += group["people"]
    for group in moved:
        growth[group["origin"]] -= group["people"]
    sizes = [{"id": cohort, "by": by} for cohort, by in growth.items()]
    connection.executemany("UPDATE cohorts SET people = people + :by WHERE id = :id", sizes)
    return carried
