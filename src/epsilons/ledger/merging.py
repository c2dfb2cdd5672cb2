"""Cohorts stay few, whatever the years bring: where there are too many, neighbours become one.

Newcomers and changes of mind make cohorts every day, and every question keeps them apart. A question reads and charges
all of them, so there are at most `MOST`, or `ROOM` for each way to stand that no merge can put together with another:
where there are very many of these, merging would cost everyone much and make cohorts hardly fewer. Above that, people
who stand alike are put together: those who have spent a little less count as having spent as much as those beside them,
and nobody has more left than before. First those with one grant and level; where that is not enough, neighbouring
grants that have no name, and the smaller one holds.

What is lost is what people have left, as a part of what they granted. The merges that lose least are made first. A line
of the journal says which cohort went where and how much was added, and a person's statement says so, too.

Charges that could still be given back would keep cohorts apart: they are spent from here on.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import Any

from epsilons.ledger import departures, journal
from epsilons.ledger.roster import MADE, Group, find_newest, write_sizes
from epsilons.ledger.rosters import change_earlier, count_earlier
from epsilons.ledger.statements import read_epoch, spend
from epsilons.storage.base import Connection

#: So many cohorts have people at most, or so many for each way to stand that stays apart, if that is more.
MOST, ROOM = 4096, 4
#: Down to this part of them, so that not every change of the roster merges again.
_DOWN_TO = Fraction(7, 8)


@dataclass(eq=False)
class _Party:
    """People who become one cohort: with the smallest of their grants (None: public) and the largest spending."""

    granted: int | None
    spent: int
    earlier: int  # what earlier periods count for
    people: int
    rows: list[dict[str, Any]] = field(default_factory=list)
    #: The next one in a chain of neighbours, and the one before; a party that has become part of another is gone.
    after: "_Party | None" = None
    before: "_Party | None" = None
    gone: bool = False

    def loses(self, granted: int | None, spent: int, earlier: int) -> tuple[float, int]:
        """What its people lose if they stand so: of what is left, as parts of their grants; then, of what was spent."""
        lost = max(0, (self.granted or 0) - self.spent) - max(0, (granted or 0) - spent)
        more = self.people * (spent - self.spent + earlier - self.earlier)
        return self.people * lost / max(self.granted or 0, 1), more

    def loss_with(self, other: "_Party") -> tuple[float, int]:
        together = _together(self, other)
        (mine, spent), (theirs, more) = self.loses(*together), other.loses(*together)
        return mine + theirs, spent + more

    def take(self, other: "_Party") -> None:
        """The next one becomes part of this one."""
        self.granted, self.spent, self.earlier = _together(self, other)
        self.people += other.people
        self.rows += other.rows
        other.gone, self.after = True, other.after
        if other.after is not None:
            other.after.before = self


def _together(one: _Party, other: _Party) -> tuple[int | None, int, int]:
    granted = None if one.granted is None or other.granted is None else min(one.granted, other.granted)
    return granted, max(one.spent, other.spent), max(one.earlier, other.earlier)


def merge_cohorts(connection: Connection, at: str) -> None:
    """Where too many cohorts have people, make them fewer, in the transaction that made them."""
    if connection.execute("SELECT count(*) FROM cohorts WHERE people > 0").fetchone()[0] <= MOST:
        return
    rows = connection.execute("SELECT * FROM cohorts WHERE people > 0").fetchall()
    most = max(MOST, ROOM * len({_same_words(row) or _same_grant(row) for row in rows}))
    if len(rows) <= most:
        return
    for (number,) in connection.execute("SELECT number FROM reservations WHERE state = 'reserved'").fetchall():
        spend(connection, number)
        journal.append(connection, "touch", at, {"number": number})
    rows = [dict(row) for row in connection.execute("SELECT * FROM cohorts WHERE people > 0 ORDER BY id")]
    parties = [_Party(row["granted"], row["spent"], _earlier(row), row["people"], [row]) for row in rows]
    parties = _merge_neighbours(parties, _same_grant, int(most * _DOWN_TO))
    # A grant is lowered only where it must be; what a source says, which it will say again, last of all.
    parties = _merge_neighbours(parties, _own_words, most)
    parties = _merge_neighbours(parties, _same_words, most)
    merged = [party for party in parties if len(party.rows) > 1]
    if merged:
        _carry_out(connection, at, merged)


def _same_grant(row: Mapping[str, Any]) -> tuple[Any, ...] | None:
    return *(row[name] for name in ("state", "own", "level", "granted")), change_earlier(row["datasets"], 0)


def _earlier(row: Mapping[str, Any]) -> int:
    return count_earlier(row["datasets"])


def _own_words(row: Mapping[str, Any]) -> tuple[Any, ...] | None:
    return _same_words(row) if row["own"] else None


def _same_words(row: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """Grants that have a name stay as they are: a level may be redefined, and then means something else."""
    named = row["level"] is not None or row["granted"] is None or row["state"] != "active"
    return None if named else (row["own"], change_earlier(row["datasets"], 0))


def _merge_neighbours(
    parties: list[_Party], alike: Callable[[Mapping[str, Any]], tuple[Any, ...] | None], goal: int
) -> list[_Party]:
    """Neighbours among those who are alike become one, least loss first, until there are few enough."""
    chains: dict[Any, list[_Party]] = defaultdict(list)
    for party in parties:
        mark = alike(party.rows[0])
        if mark is not None:
            chains[mark].append(party)
    pairs: list[tuple[tuple[float, int], int, _Party, _Party, int]] = []
    for chain in chains.values():
        chain.sort(key=lambda one: (one.granted or 0, one.spent, one.earlier))
        for before, after in pairwise(chain):
            before.after, after.before = after, before
            pairs.append((before.loss_with(after), len(pairs), before, after, before.people + after.people))
    heapify(pairs)
    number, turn = len(parties), len(pairs)
    while pairs and number > goal:
        _, _, one, other, people = heappop(pairs)
        if one.gone or other.gone or one.after is not other or one.people + other.people != people:
            continue
        one.take(other)
        number -= 1
        for left, right in ((one.before, one), (one, one.after)):
            if left is not None and right is not None:
                turn += 1
                heappush(pairs, (left.loss_with(right), turn, left, right, left.people + right.people))
    for party in parties:
        party.before = party.after = None
    return [party for party in parties if not party.gone]


def _carry_out(connection: Connection, at: str, merged: Iterable[_Party]) -> None:
    """Everyone of a party goes to the largest of its cohorts that stands as all of them will, or to a new one."""
    epoch, newest = read_epoch(connection) + 1, find_newest(connection)
    made: list[dict[str, Any]] = []
    groups: list[Group] = []
    for party in merged:
        stands = party.granted, party.spent, party.earlier
        fit = [row for row in party.rows if (row["granted"], row["spent"], _earlier(row)) == stands]
        target = max(fit, key=lambda row: row["people"], default=None)
        if target is None:
            newest += 1
            ceiling = max(party.granted or 0, party.spent)
            target = {**party.rows[0], "id": newest, "granted": party.granted, "spent": party.spent, "ceiling": ceiling}
            target["datasets"] = change_earlier(target["datasets"], party.earlier)
            made.append({**target, "reserved": 0, "people": 0})
        counts = party.spent + party.earlier
        others = [row for row in party.rows if row["id"] != target["id"]]
        for row in others:
            about = {"origin": row["id"], "target": target["id"], "people": row["people"]}
            groups.append({**about, "rounded": counts - row["spent"] - _earlier(row)})
    groups.sort(key=lambda group: group["origin"])
    connection.insert_many("cohorts", [tuple(one.values()) for one in made])
    write_sizes(connection, groups)
    connection.execute("UPDATE ledger SET epoch = :epoch", {"epoch": epoch})
    body = {"epoch": epoch, "made": [{key: one[key] for key in MADE} for one in made], "moved": groups}
    line, _ = journal.append(connection, "merge", at, body)
    departures.add(connection, line, {group["origin"]: group["target"] for group in groups})
