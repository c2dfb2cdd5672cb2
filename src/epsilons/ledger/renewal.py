"""Grants by period: what was granted for a year or a month holds anew in the next one, and only for who chose that.

A level may be one of a period ("0.1 a year"), which is part of what its name means and never changes: whoever chooses
the level chooses that. A cohort of such a level says for which period its grant is, and how much earlier periods count
for. When the next period begins, its people go to a cohort of that period in which nothing is spent; what they did not
use lapses, and counts as spent in all. So everything released in a period, given all that was released before, keeps
to the grant, for all records of a person, and k periods add up to k grants.

Periods are those of the calendar, in UTC. They only go forward: a clock that goes back renews nothing, and nothing is
renewed twice for a period that was reached. Charges that are open stay with their people, in the new period. Where the
newest records of a ledger are lost, periods that began meanwhile may have been used up in them: all of them count.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from epsilons.errors import Argument, PreferenceError
from epsilons.ledger import departures, journal
from epsilons.ledger.consent import PERIODS, Term, count_over, find_first_day, name_period
from epsilons.ledger.journal import write_time
from epsilons.ledger.roster import MADE, Group, find_newest, write_cohorts, write_sizes
from epsilons.ledger.rosters import is_lost, read_public, read_term, write_rosters
from epsilons.ledger.statements import WITH_TERMS, read_epoch, read_rosters
from epsilons.measure import Measure
from epsilons.storage.base import Connection

#: What is promised where grants are renewed.
ADDS_UP = "What holds for a period holds for all records of a person, older ones too; k periods add up to k times "


def check_renews(given: Any, levels: Mapping[str, float]) -> dict[str, str]:
    """The period of each level that has one: of those that are named, or of all that are finite."""
    finite = [name for name, epsilon in levels.items() if epsilon != float("inf")]
    told = dict.fromkeys(finite, given) if isinstance(given, str) else given
    good = isinstance(told, Mapping) and all(isinstance(one, str) and one in PERIODS for one in told.values())
    if not good or not told or not set(told) <= set(finite):
        rule = f"A period is one of {', '.join(PERIODS)}, for levels that have a name and an epsilon."
        hint = Argument("renews", dict.fromkeys(finite[:1] or ["open"], "year"))
        raise PreferenceError((Argument("renews"), " is no period of a level."), rule=rule, suggest=hint)
    return dict(told)


def tell_renewal(renews: Mapping[str, str], measure: Measure) -> str:
    """Which levels are renewed when, and what follows, as sentences."""
    # What so many rho are worth in epsilon may be more than so many times as much, where there is little of it.
    adds_up = f"{ADDS_UP}{'that' if measure.delta is None else 'its rho'}."
    told = ", ".join(f"{name} each {period}" for name, period in sorted(renews.items()))
    return f"Grants that are renewed, unspent or not: {told} of the calendar (UTC). {adds_up}"


def read_labels(connection: Connection, at: str) -> dict[str, str]:
    """The period that everyone is in who joins now: never one before those that people are in already.

    Whatever their kind: in whose year it is January already, nobody is in last year. Else a clock that went back would
    put into that year what counts as spent, and this one would be granted beside what was charged in its months.
    """
    told = [read_term(datasets) for (datasets,) in connection.execute(f"SELECT DISTINCT datasets {WITH_TERMS}")]
    begun = [find_first_day(term.period, term.label).isoformat() for term in told if term is not None]
    return {period: name_period(period, max([at, *begun])) for period in PERIODS}


def is_due(connection: Connection, at: str) -> bool:
    """Whether a period has begun for which somebody's grant is not renewed yet."""
    found = connection.execute(f"SELECT DISTINCT datasets {WITH_TERMS}")
    return any(_is_over(read_term(datasets), at) for (datasets,) in found)


def _is_over(term: Term | None, at: str) -> bool:
    return term is not None and name_period(term.period, at) > term.label


class Renewing:
    """What a ledger does when a period begins."""

    def renew(self: Any) -> int:  # a Ledger, which is made of this
        """Renew what was granted by period, where the next one has begun; how many people that concerns."""
        if not self._read(lambda connection: is_due(connection, write_time(self._clock))):
            return 0
        with self._writing("enrolling", "enrolled") as connection:
            return begin_periods(connection, write_time(self._clock))


@dataclass
class _Anew:
    """Cohorts of the period that has begun, by what makes people alike."""

    newest: int
    lost: bool = False
    index: dict[tuple[Any, ...], int] = field(default_factory=dict)
    made: list[dict[str, Any]] = field(default_factory=list)
    open: dict[int, frozenset[tuple[int, int]]] = field(default_factory=dict)

    def find(self, row: Mapping[str, Any], at: str, held: frozenset[tuple[int, int]]) -> int:
        """Where people of a cohort go."""
        before = read_term(row["datasets"])
        assert before is not None
        label = name_period(before.period, at)
        counts = count_over(before, label, row["granted"], row["spent"], self.lost)
        after = Term(before.period, label, before.earlier + counts)
        told = read_public(row["datasets"]).items()
        public = [(number, journal.to_json(known)) for number, known in told]
        said, lost = list(read_rosters(row["datasets"]).items()), is_lost(row["datasets"])
        datasets = write_rosters(said, public, after, lost)
        alike = (row["granted"], row["level"], row["own"], datasets, held)
        if alike not in self.index:
            self.newest += 1
            reserved = sum(nano for _, nano in held)
            fresh = {"id": self.newest, "spent": 0, "reserved": reserved, "people": 0, "datasets": datasets}
            self.made.append({**row, **fresh, "ceiling": max(row["granted"], reserved)})
            self.index[alike], self.open[self.newest] = self.newest, held
        return self.index[alike]


def begin_periods(connection: Connection, at: str, lost: bool = False) -> int:
    """Everyone whose period is over goes to a cohort of the one that has begun; how many they are.

    `lost`: newer records than these are lost, in which people may have been charged in any period since.
    """
    rows = [dict(row) for row in connection.execute(f"SELECT * {WITH_TERMS} ORDER BY id")]
    due = [row for row in rows if _is_over(read_term(row["datasets"]), at)]
    if not due:  # somebody else was quicker
        return 0
    held = dict(_read_open(connection))
    anew = _Anew(find_newest(connection), lost)
    steps = {row["id"]: anew.find(row, at, frozenset(held.get(row["id"], ()))) for row in due}
    moved: list[Group] = [{"origin": row["id"], "target": steps[row["id"]], "people": row["people"]} for row in due]
    carried = write_cohorts(connection, anew.made, anew.open)
    write_sizes(connection, moved)
    epoch = read_epoch(connection) + 1
    connection.execute("UPDATE ledger SET epoch = :epoch", {"epoch": epoch})
    made = [{key: one[key] for key in MADE} for one in anew.made]
    body = {"epoch": epoch, "made": made, "carried": carried, "moved": moved, **({"lost": True} if lost else {})}
    line, _ = journal.append(connection, "renew", at, body)
    departures.add(connection, line, steps)
    return sum(row["people"] for row in due)


def _read_open(connection: Connection) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """What each cohort still has reserved: (question, nano-epsilon)."""
    pending = "SELECT number FROM reservations WHERE state = 'reserved'"
    charges = f"SELECT cohort, number, nano FROM charges WHERE nano > 0 AND number IN ({pending}) ORDER BY cohort"
    found: dict[int, list[tuple[int, int]]] = {}
    for cohort, number, nano in connection.execute(charges):
        found.setdefault(cohort, []).append((number, nano))
    yield from found.items()
