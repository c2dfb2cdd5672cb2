"""People join, change their minds, withdraw and come back: always a move between cohorts, never a lost charge.

A person who moves takes along what was spent and what is reserved; the cohort they come to has exactly that past, and
is made if there is none. A cohort's grant never changes, so the history shows the grant that was in force.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, bindparam, select, update

from epsilons.ledger import journal, tables
from epsilons.ledger.checks import PUBLIC_CODE, Sorted
from epsilons.ledger.values import ACTIVE, DIGEST_BYTES, RESERVED, WITHDRAWN, Enrolment
from epsilons.storage.base import Database

#: How a withdrawal is written beside grants; no grant is 0.
WITHDRAW_CODE = 0

Group = dict[str, Any]
Codes = NDArray[np.int64]
Mask = NDArray[np.bool_]
#: Which of the known people move: (what is in force, what they ask for) -> mask.
Policy = Callable[[Codes, Codes], Mask]

# Up to so many people are looked up one by one; for more, one pass over everybody is faster, in parts of so many rows.
_FEW, _PART = 500, 1 << 14


def rank_openness(codes: Codes) -> Codes:
    """Numbers that rise from the strictest code to the most open: withdrawn, grants, public."""
    return np.where(codes == PUBLIC_CODE, np.iinfo(np.int64).max, codes)


def only_tighten(now: Codes, asked: Codes) -> Mask:
    """What a preference column may do by itself: people become more private, and who withdrew stays away."""
    return np.less(rank_openness(asked), rank_openness(now))


def follow_column(now: Codes, asked: Codes) -> Mask:
    """What the column says, in both directions; but who withdrew comes back only by asking for it themselves."""
    return np.not_equal(asked, now) & np.not_equal(now, WITHDRAW_CODE)


def follow_person(now: Codes, asked: Codes) -> Mask:
    """What a person asked for themselves."""
    return np.not_equal(asked, now)


@dataclass
class _Cohorts:
    """The cohorts as they are, by what makes people alike: grant, state, spent, open reservations."""

    rows: dict[int, Any]
    open: dict[int, frozenset[tuple[int, int]]]
    index: dict[tuple[Any, ...], int] = field(default_factory=dict)
    made: list[dict[str, Any]] = field(default_factory=list)
    lost: bool = False

    @classmethod
    def of(cls, connection: Connection) -> Self:
        rows = {row["id"]: dict(row) for row in connection.execute(select(tables.cohorts)).mappings()}
        charges, live = tables.charges, tables.reservations
        pending = select(charges.c.cohort, charges.c.number, charges.c.nano)
        pending = pending.join(live, (live.c.number == charges.c.number) & (live.c.state == RESERVED))
        held: dict[int, set[tuple[int, int]]] = {}
        for cohort, number, nano in connection.execute(pending):
            held.setdefault(cohort, set()).add((number, nano))
        lost = connection.execute(select(tables.ledger.c.losses)).scalar_one() > 0
        cohorts = cls(rows, {cohort: frozenset(held.get(cohort, ())) for cohort in rows}, lost=lost)
        for cohort in sorted(rows, reverse=True):
            row = rows[cohort]
            cohorts.index[row["granted"], row["state"], row["spent"], cohorts.open[cohort]] = cohort
        return cohorts

    def code(self, cohort: int) -> int:
        row = self.rows[cohort]
        if row["state"] == WITHDRAWN:
            return WITHDRAW_CODE
        return PUBLIC_CODE if row["granted"] is None else int(row["granted"])

    def find_target(self, origin: int | None, code: int) -> int:
        """Where people of this past go who ask for this."""
        granted = None if code == PUBLIC_CODE else code
        state = WITHDRAWN if code == WITHDRAW_CODE else ACTIVE
        if origin is None:
            # Who joins after a loss may have been charged in the part that is lost.
            spent, held = (granted or 0) if self.lost else 0, frozenset[tuple[int, int]]()
        else:
            spent, held = int(self.rows[origin]["spent"]), self.open[origin]
        alike = (granted, state, spent, held)
        if alike not in self.index:
            reserved = sum(nano for _, nano in held)
            new = max(self.rows, default=0) + 1
            made = {
                "id": new, "granted": granted, "spent": spent, "reserved": reserved,
                "ceiling": max(granted or 0, spent + reserved), "people": 0, "state": state,
            }  # fmt: skip
            self.rows[new], self.open[new], self.index[alike] = made, held, new
            self.made.append(made)
        return self.index[alike]


def hash_people(people: Sorted) -> str:
    """One text for a set of people."""
    return hashlib.sha256(np.sort(people).tobytes()).hexdigest()


def list_digests(people: Sorted) -> Iterator[bytes]:
    """The digests, trailing zero bytes included; never all of them as objects, which take four times the room."""
    raw = people.tobytes()
    return (raw[at : at + DIGEST_BYTES] for at in range(0, len(raw), DIGEST_BYTES))


def change(
    database: Database, connection: Connection, at: str, people: Sorted, codes: Codes, policy: Policy
) -> Enrolment:
    """Carry out what people ask for in one transaction, and say what happened.

    The roster's epoch grows only when a person changes their cohort.
    """
    # Everyone once, sorted, with the strictest of what they ask for: the first that `unique` finds.
    order = np.lexsort((rank_openness(codes), people))
    people, first = np.unique(people[order], return_index=True)
    codes = codes[order][first]
    cohorts = _Cohorts.of(connection)
    found, standing = _find_people(database, connection, people)
    distinct, inverse = np.unique(standing, return_inverse=True)
    now = np.array([cohorts.code(cohort) for cohort in distinct.tolist()], dtype=np.int64)[inverse]
    asked = codes[found]
    moving = policy(now, asked)
    epoch = int(connection.execute(select(tables.ledger.c.epoch)).scalar_one())
    withdrawing, tighter = asked == WITHDRAW_CODE, rank_openness(asked) < rank_openness(now)
    unknown = int((codes[~found] == WITHDRAW_CODE).sum())
    counts = {
        "joined": int((~found).sum()) - unknown,
        "withdrawn": int((moving & withdrawing).sum()) + unknown,
        "tightened": int((moving & ~withdrawing & tighter).sum()),
        "loosened": int((moving & ~tighter).sum()),
        "pending": int((~moving & (asked != now)).sum()),
        "unchanged": int((asked == now).sum()),
        "unknown": unknown,
    }
    if found.all() and not moving.any():
        return Enrolment(epoch=epoch, **counts)

    seq = journal.head(connection)[0] + 1
    newcomers, movers = people[~found], people[found][moving]
    joined, joined_to = _group_people(newcomers, None, codes[~found], cohorts)
    moved, moved_to = _group_people(movers, standing[moving], asked[moving], cohorts)
    if joined:
        arrivals = zip(list_digests(newcomers), joined_to.tolist(), strict=True)
        database.insert_many(connection, tables.people, ((digest, cohort, seq) for digest, cohort in arrivals))
    if moved:
        targets = moved_to.tolist()
        pairs = zip(targets, list_digests(movers), strict=True)
        database.update_many(connection, tables.people.c.cohort, tables.people.c.digest, pairs)
        steps = zip(list_digests(movers), standing[moving].tolist(), targets, strict=True)
        database.insert_many(connection, tables.moves, ((digest, seq, *step) for digest, *step in steps))
    carried = _write_cohorts(database, connection, cohorts, joined, moved)
    connection.execute(update(tables.ledger).values(epoch=epoch + 1))
    made = [{key: one[key] for key in ("id", "granted", "spent", "state", "ceiling")} for one in cohorts.made]
    body = {"epoch": epoch + 1, "made": made, "carried": carried, "joined": joined, "moved": moved}
    journal.append(connection, "roster", at, body)
    return Enrolment(epoch=epoch + 1, **counts)


def _find_people(database: Database, connection: Connection, people: Sorted) -> tuple[Mask, Codes]:
    """Who is known, and the cohort of everyone who is (in the order of `people`)."""
    query = select(tables.people.c.digest, tables.people.c.cohort)
    if len(people) <= _FEW:
        query = query.where(tables.people.c.digest.in_(list(list_digests(people))))
    known, cohorts = read_members(database, connection, query)
    order = np.argsort(known)
    known, cohorts = known[order], cohorts[order]
    place = np.searchsorted(known, people)
    found = np.zeros(len(people), dtype=bool)
    inside = place < len(known)
    found[inside] = known[place[inside]] == people[inside]
    return found, cohorts[place[found]]


def read_members(database: Database, connection: Connection, query: Any) -> tuple[Sorted, Codes]:
    """Rows of (digest, number) as two arrays; part by part, since all rows as objects take ten times the room."""
    digests, numbers = bytearray(), [np.empty(0, np.int64)]
    with closing(connection.execute(query)) as found, database.driver_cursor(connection, found.cursor) as cursor:
        while rows := cursor.fetchmany(_PART):
            digests += b"".join([row[0] for row in rows])
            numbers.append(np.fromiter((row[1] for row in rows), dtype=np.int64, count=len(rows)))
    return np.frombuffer(digests, dtype=f"S{DIGEST_BYTES}"), np.concatenate(numbers)


def _group_people(people: Sorted, origins: Codes | None, codes: Codes, cohorts: _Cohorts) -> tuple[list[Group], Codes]:
    """People who come from one cohort (newcomers: none) and ask alike go together; also where each of them goes."""
    targets = np.empty(len(people), dtype=np.int64)
    groups = []
    places, place = np.unique(np.zeros(len(people), np.int64) if origins is None else origins, return_inverse=True)
    distinct, asked = np.unique(codes, return_inverse=True)
    pair = place * len(distinct) + asked
    order = np.argsort(pair, kind="stable")
    pairs, starts = np.unique(pair[order], return_index=True)
    for which, members in zip(pairs.tolist(), np.split(order, starts[1:]), strict=len(pairs) > 0):
        origin, code = int(places[which // len(distinct)]), int(distinct[which % len(distinct)])
        target = cohorts.find_target(None if origins is None else origin, code)
        targets[members] = target
        digest = hash_people(people[members])
        groups.append({"origin": origin, "target": target, "people": len(members), "digest": digest})
    return groups, targets


def _write_cohorts(
    database: Database, connection: Connection, cohorts: _Cohorts, joined: list[Group], moved: list[Group]
) -> list[list[int]]:
    """New cohorts with the open charges they carry, and everybody's new size; says what was carried."""
    columns = [column.name for column in tables.cohorts.columns]
    database.insert_many(connection, tables.cohorts, [tuple(made[name] for name in columns) for made in cohorts.made])
    carried = sorted([n, made["id"], nano] for made in cohorts.made for n, nano in cohorts.open[made["id"]])
    database.insert_many(connection, tables.charges, [(n, cohort, nano, 1) for n, cohort, nano in carried])
    growth: Counter[int] = Counter()
    for group in (*joined, *moved):
        growth[group["target"]] += group["people"]
    for group in moved:
        growth[group["origin"]] -= group["people"]
    table = tables.cohorts
    resize = update(table).where(table.c.id == bindparam("which")).values(people=table.c.people + bindparam("by"))
    connection.execute(resize, [{"which": cohort, "by": by} for cohort, by in growth.items()])
    return carried
