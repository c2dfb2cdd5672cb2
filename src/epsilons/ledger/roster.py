"""People join, change their minds, withdraw and come back: always a move between cohorts, never a lost charge.

A person who moves takes along what was spent and what is reserved; the cohort they come to has exactly that past, and
is made if there is none. A cohort's grant never changes, so the history shows the grant that was in force.

Who moves where is decided by the rules of `consent`, for all people who stand alike and ask alike at once.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from epsilons.ledger import journal, segments
from epsilons.ledger.consent import PUBLIC_CODE, WITHDRAW_CODE, Decide, Standing, Term, Word, rank_openness
from epsilons.ledger.order import (
    Codes,
    Sorted,
    in_few_bytes,
    is_new,
    locate,
    look_up,
    pick,
    sort_by,
    split,
    tell_apart,
)
from epsilons.ledger.rosters import is_lost, read_public, read_term, write_rosters
from epsilons.ledger.statements import read_rosters
from epsilons.ledger.values import ACTIVE, WITHDRAWN, Enrolment
from epsilons.preferences import count_codes
from epsilons.storage.base import Connection

Group = dict[str, Any]
#: So many people are hashed at a time.
_PIECE = 1 << 16
#: What a cohort's line in the journal says when it is made.
MADE = ("id", "granted", "spent", "state", "ceiling", "level", "own", "datasets")


def read_standing(row: Mapping[str, Any]) -> Standing:
    """How people of a cohort stand."""
    code = PUBLIC_CODE if row["granted"] is None else int(row["granted"])
    code = WITHDRAW_CODE if row["state"] == WITHDRAWN else code
    return Standing(code, row["level"], bool(row["own"]), *_read_words(row["datasets"]))


@dataclass
class _Cohorts:
    """The cohorts that people are in, by what makes them alike: standing, spent, open reservations."""

    rows: dict[int, Any]
    open: dict[int, frozenset[tuple[int, int]]]
    newest: int
    index: dict[tuple[Any, ...], int] = field(default_factory=dict)
    made: list[dict[str, Any]] = field(default_factory=list)
    #: What newcomers may have been charged in parts that are lost; below 0: that is not known.
    floor: int = 0

    @classmethod
    def of(cls, connection: Connection) -> Self:
        rows = {row["id"]: row for row in connection.execute("SELECT * FROM cohorts WHERE people > 0")}
        pending = "SELECT number FROM reservations WHERE state = 'reserved'"
        charges = f"SELECT cohort, number, nano FROM charges WHERE nano > 0 AND number IN ({pending})"
        held: dict[int, set[tuple[int, int]]] = {}
        for cohort, number, nano in connection.execute(charges):
            held.setdefault(cohort, set()).add((number, nano))
        newest = find_newest(connection)
        (floor,) = connection.execute("SELECT floor FROM ledger").fetchone()
        cohorts = cls(rows, {cohort: frozenset(held.get(cohort, ())) for cohort in rows}, newest, floor=floor)
        for cohort in sorted(rows, reverse=True):
            cohorts.index[cohorts.standing(cohort), rows[cohort]["spent"], cohorts.open[cohort]] = cohort
        return cohorts

    def standing(self, cohort: int) -> Standing:
        return read_standing(self.rows[cohort])

    def only_spoke(self, cohort: int) -> bool:
        """Whether its people spoke for themselves, are on no roster, and were never charged."""
        row, now = self.rows[cohort], self.standing(cohort)
        return now.own and not now.said and row["spent"] + row["reserved"] == 0

    def find_target(self, origin: int | None, new: Standing) -> int:
        """Where people of this past go who stand so from now on."""
        granted = None if new.code == PUBLIC_CODE else new.code
        if origin is None:
            # Who joins after a loss may have been charged in the part that is lost.
            spent, held = max(self.floor, 0), frozenset[tuple[int, int]]()
        elif self.standing(origin).lost and not new.lost:
            spent, held = 0, self.open[origin]  # they consented anew
        else:
            spent, held = int(self.rows[origin]["spent"]), self.open[origin]
            if (term := read_term(self.rows[origin]["datasets"])) is not None:
                # A grant for good counts everything, and a period all that it reaches back to.
                spent += term.earlier - (0 if new.term is None else new.term.earlier)
        if new.lost:
            spent = max(spent, granted or 0)
        alike = (new, spent, held)
        if alike not in self.index:
            reserved = sum(nano for _, nano in held)
            number = self.newest = self.newest + 1
            made = {  # in the table's order
                "id": number, "granted": granted, "spent": spent, "reserved": reserved,
                "ceiling": max(granted or 0, spent + reserved), "people": 0,
                "state": WITHDRAWN if new.code == WITHDRAW_CODE else ACTIVE,
                "level": new.level, "own": int(new.own),
                "datasets": write_rosters(new.said, new.public, new.term, new.lost),
            }  # fmt: skip
            self.rows[number], self.open[number], self.index[alike] = made, held, number
            self.made.append(made)
        return self.index[alike]


@lru_cache(10_000)
def _read_words(datasets: str) -> tuple[tuple[tuple[int, str], ...], tuple[tuple[int, str], ...], Term | None, bool]:
    public = {number: journal.to_json(known) for number, known in read_public(datasets).items()}
    said, known = tuple(sorted(read_rosters(datasets).items())), tuple(sorted(public.items()))
    return said, known, read_term(datasets), is_lost(datasets)


def hash_people(people: Sorted, members: Codes | None = None) -> str:
    """One text for a set of people, who are sorted, or for some of them, of whom no copy is made at once."""
    made = hashlib.sha256()
    for start in range(0, len(people if members is None else members), _PIECE):
        here = slice(start, start + _PIECE)
        made.update(np.ascontiguousarray(people[here if members is None else members[here]]).view(np.uint8).data)
    return made.hexdigest()


@dataclass(frozen=True, eq=False)
class Request:
    """What is asked for: `words[asked[i]]` for `people[i]`, and who decides what becomes of it.

    With `everyone` it is a whole roster: those who are on the dataset's and not listed are off it from now on. `anew`:
    these people know that records were lost, and grant this from now on, whatever was spent before.
    """

    people: Sorted
    asked: NDArray[Any]
    words: Sequence[Word]
    decide: Decide
    dataset: int | None = None
    everyone: bool = False
    anew: bool = False

    def once(self) -> tuple[Sorted, Codes]:
        """Everyone once, sorted, with the strictest of what they ask for."""
        strictness = np.argsort(np.argsort([rank_openness(word.code) for word in self.words], kind="stable"))
        order = sort_by(self.people, pick(in_few_bytes(strictness, len(self.words)), self.asked))
        people, asked = self.people[order], in_few_bytes(self.asked[order], len(self.words))
        new = is_new(people)
        return (people, asked) if new.all() else (people[new], asked[new])


@dataclass(frozen=True, eq=False)
class Change:
    """What a request comes to, as the roster stands: whom it concerns, where they are (newcomers: 0), where they go."""

    people: Sorted
    origins: Codes
    targets: Codes
    groups: Sequence[Group]
    cohorts: _Cohorts
    enrolment: Enrolment
    anew: bool = False

    def count_standing(self, dataset: int) -> Counter[int]:
        """How many people would stand at which code on the roster of a dataset."""
        found: Counter[int] = Counter()
        for cohort, people in zip(*np.unique(self.targets, return_counts=True), strict=True):
            now = self.cohorts.standing(int(cohort))
            if dataset in dict(now.said):
                found[now.code] += int(people)
        return found

    def count_lowered(self) -> int:
        """How many people's own word comes down by a ceiling."""
        found = 0
        for group in (group for group in self.groups if group["origin"]):
            now, new = (self.cohorts.standing(group[end]) for end in ("origin", "target"))
            found += group["people"] * _is_lowered(now, new)
        return found

    def goes_as(self, other: Self) -> bool:
        """Whether everyone goes where they go in another one."""
        same = len(self.people) == len(other.people) and bool((self.people == other.people).all())
        return same and bool((self.targets == other.targets).all())


def plan_change(connection: Connection, request: Request) -> Change:
    """What a request would do; nothing is written."""
    people, asked = request.once()
    cohorts = _Cohorts.of(connection)
    if request.everyone:
        found, standing = segments.read_present(connection)
    else:
        found, standing = segments.find(connection, people)
    unlisted = found[locate(people, found) < 0]
    if len(unlisted):  # they ask for nothing: -1
        everyone = np.concatenate([people, unlisted])
        order = sort_by(everyone)
        people, asked = everyone[order], np.concatenate([asked, np.full(len(unlisted), -1, asked.dtype)])[order]
    origins = look_up(people, found, in_few_bytes(standing, cohorts.newest), 0)
    epoch = int(connection.execute("SELECT epoch FROM ledger").fetchone()[0])
    counts: Counter[str] = Counter()
    targets, groups = _decide_all(request, people, asked, origins, cohorts, counts)
    if request.dataset is not None:
        spoke = [cohort for cohort in cohorts.rows if cohorts.only_spoke(cohort)]
        back = _count_returned(connection, people[(asked >= 0) & np.isin(origins, spoke)]) if spoke else 0
        counts.update(joined=-back, known=back)
    done = Enrolment(epoch=epoch, **dict[str, Any](counts))
    return Change(people, origins, targets, groups, cohorts, done, request.anew)


def _count_returned(connection: Connection, people: Sorted) -> int:
    """How many of these, who are on no roster now, were on one, or enrolled, before they spoke or since."""
    past = segments.read_past(connection, people)
    some = "WHERE own = 0 OR datasets <> '{}'"
    both = f"SELECT id, own, datasets FROM cohorts {some} UNION ALL SELECT id, own, datasets FROM emptied {some}"
    # An own word has more than rosters beside it: the period of its grant, and that records were lost.
    listed = [number for number, own, datasets in connection.execute(both) if not own or read_rosters(datasets)]
    known = past.people[np.isin(past.cohorts, listed)]
    return int((locate(known[is_new(known)], people) >= 0).sum())


def carry_out(connection: Connection, at: str, change: Change) -> Enrolment:
    """Do it, in the transaction that it was planned in. The roster's epoch grows only when a person changes cohort."""
    if not change.groups:
        return change.enrolment
    epoch, moving = change.enrolment.epoch + 1, change.targets != change.origins
    joined = [group for group in change.groups if group["origin"] == 0]
    moved = [group for group in change.groups if group["origin"] > 0]
    carried = _write_cohorts(connection, change.cohorts, joined, moved)
    connection.execute("UPDATE ledger SET epoch = :epoch", {"epoch": epoch})
    made = [{key: one[key] for key in MADE} for one in change.cohorts.made]
    body = {"epoch": epoch, "made": made, "carried": carried, "joined": joined, "moved": moved}
    body |= {"anew": True} if change.anew else {}
    line, _ = journal.append(connection, "roster", at, body)
    which = slice(None) if moving.all() else moving  # a copy is as large as everybody
    people, targets = change.people[which], change.targets[which]
    segments.add(connection, segments.Entries.of(people, np.full(len(people), line, np.uint32), targets))
    return replace(change.enrolment, epoch=epoch)


def _decide_all(
    request: Request, people: Sorted, asked: Codes, origins: Codes, cohorts: _Cohorts, counts: Counter[str]
) -> tuple[Codes, list[Group]]:
    """Where everyone goes, and the groups that move together: from one cohort (newcomers: 0) to one other.

    People of a cohort who ask alike are decided about at once; what they say in other words may come to the same.
    """
    targets, together = list[int](), dict[tuple[int, int], list[int]]()
    wide = np.int64 if (cohorts.newest + 1) * (len(request.words) + 1) >= 1 << 31 else np.int32
    both = origins * wide(len(request.words) + 1)
    both += asked
    both += 1
    pairs, places = tell_apart(both)
    del both  # it is as large as everybody
    for place, (pair, size) in enumerate(zip(pairs.tolist(), count_codes(places, len(pairs)).tolist(), strict=True)):
        origin, which = divmod(pair, len(request.words) + 1)
        now = cohorts.standing(origin) if origin else None
        word = None if which == 0 else request.words[which - 1]
        new, waits = request.decide(now, word)
        new = new._replace(lost=not request.anew and (cohorts.floor < 0 if now is None else now.lost))
        if request.dataset is not None and word is not None:
            new = new.known_as(request.dataset, word.public)
            before = now and dict(now.public).get(request.dataset)
            counts["reclassed"] += size * (before is not None and before != word.public)
        counts["pending"] += size * waits
        counts["pending_own"] += size * (waits and now is not None and now.own)
        if now is not None and word is not None:
            # Who only spoke so far is no more known than whoever never did: anybody may speak for any id.
            fresh = request.dataset is not None and cohorts.only_spoke(origin)
            counts["joined" if fresh else "known"] += size
            stands = new.own and not waits and word.code != new.code
            counts["kept"] += size * (stands and not _is_lowered(now, new))
            counts["replaced"] += size * (now.own and not new.own and now.code != new.code)
        _count(counts, now, word, new, size)
        targets.append(origin if new == now else cohorts.find_target(origin or None, new))
        if new != now:
            together.setdefault((origin, targets[-1]), []).append(place)
    parties = np.full(len(pairs), len(together), np.min_scalar_type(len(together)))
    for number, some in enumerate(together.values()):
        parties[some] = number
    groups = [
        {"origin": origin, "target": target, "people": len(members), "digest": hash_people(people, members)}
        for (origin, target), members in zip(together, split(pick(parties, places), len(together) + 1), strict=False)
    ]
    return pick(in_few_bytes(targets), places), groups


def _is_lowered(now: Standing, new: Standing) -> bool:
    """Whether an own word comes down by a ceiling; by a level that means less, it keeps its name."""
    less = 0 < rank_openness(new.code) < rank_openness(now.code)
    return now.own and new.own and less and new.level is None


def _count(counts: Counter[str], now: Standing | None, asked: Word | None, new: Standing, people: int) -> None:
    """What happened to these people, for the report."""
    if now is None:
        gone = new.code == WITHDRAW_CODE
        counts["withdrawn" if gone else "joined"] += people
        counts["unknown"] += people * gone
        return
    before, after = rank_openness(now.code), rank_openness(new.code)
    if asked is None:
        counts["gone"] += people * (new.said != now.said)
        counts["tightened_elsewhere"] += people * (after < before)
        return
    counts["tightened"] += people * (0 < after < before)
    counts["loosened"] += people * (after > before)
    counts["withdrawn"] += people * (after == 0 < before)
    counts["unchanged"] += people * (asked.code == now.code == new.code)


def _write_cohorts(
    connection: Connection, cohorts: _Cohorts, joined: list[Group], moved: list[Group]
) -> list[list[int]]:
    """New cohorts with the open charges they carry, and everybody's new size; says what was carried."""
    carried = write_cohorts(connection, cohorts.made, cohorts.open)
    write_sizes(connection, [*joined, *moved])
    return carried


def write_cohorts(
    connection: Connection, made: Sequence[Mapping[str, Any]], held: Mapping[int, Iterable[tuple[int, int]]]
) -> list[list[int]]:
    """New cohorts, with the open charges that their people bring along: these are given back."""
    connection.insert_many("cohorts", [tuple(one.values()) for one in made])
    carried = sorted([n, one["id"], nano] for one in made for n, nano in held[one["id"]])
    connection.insert_many("charges", [(n, cohort, nano, 1, None) for n, cohort, nano in carried])
    return carried


def write_sizes(connection: Connection, groups: Sequence[Group]) -> None:
    """As many people fewer, and more, as these groups say; newcomers come from nowhere."""
    growth: Counter[int] = Counter()
    for group in groups:
        growth[group["target"]] += group["people"]
        growth[group["origin"]] -= group["people"]
    sizes = [{"id": cohort, "by": by} for cohort, by in growth.items() if cohort]
    connection.executemany("UPDATE cohorts SET people = people + :by WHERE id = :id", sizes)
    put_emptied_aside(connection)


def put_emptied_aside(connection: Connection) -> None:
    """Nobody comes back to a cohort that everybody left; it stays while a charge there may still be given back."""
    which = "FROM cohorts WHERE people = 0 AND reserved = 0"
    connection.execute(f"INSERT INTO emptied SELECT * {which}")
    connection.execute(f"DELETE {which}")


def find_newest(connection: Connection) -> int:
    """The largest number of a cohort so far."""
    both = "SELECT max(id) FROM cohorts UNION ALL SELECT max(id) FROM emptied"
    return max(newest or 0 for (newest,) in connection.execute(both))
