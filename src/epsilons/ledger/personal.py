"""What one person is told: their account, followed through every cohort they stood in, and whose word moved them."""

import json
import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

from epsilons.errors import LedgerError
from epsilons.ledger import segments, statements, values
from epsilons.ledger.balances import Anew, Redefined, Replaced, Statement, Use
from epsilons.ledger.rosters import count_earlier, find_consent, is_lost, read_term
from epsilons.ledger.values import Cohort
from epsilons.preferences import to_nano
from epsilons.storage.base import Connection, spread


def read_statement(connection: Connection, digest: bytes, seeded: int | None) -> Statement:
    """One person's account, followed through every cohort they stood in."""
    path = segments.trace(connection, digest)
    if not path:
        raise LedgerError("This person has no account here.", suggest="the id as it stands in the table")
    starts, places = zip(*path, strict=True)
    ends = [*starts[1:], 2**63 - 1]
    uses: list[Use] = []
    when_public: list[int] = []
    which, known = spread("cohort", set(places))
    stood_in = f"{statements.COHORTS} WHERE id IN ({which}) UNION ALL {statements.EMPTIED} WHERE id IN ({which})"
    by_id = {row["id"]: Cohort(*row) for row in connection.execute(stood_in, known)}
    during = "seq > :start AND seq < :end ORDER BY number"
    paid = f"""
    SELECT number, kind, at, nano FROM reservations JOIN charges USING (number)
    WHERE cohort = :cohort AND nano > 0 AND state <> 'refunded' AND {during}"""
    for start, end, place in zip(starts, ends, places, strict=True):
        granted, here = by_id[place].granted, {"start": start, "end": end}
        if granted is None:
            rosters, theirs = spread("dataset", statements.read_rosters(by_id[place].datasets))
            asked = f"{statements.SPENT} AND (dataset IS NULL OR dataset IN ({rosters})) AND {during}"
            found = connection.execute(f"SELECT number FROM reservations WHERE {asked}", {**theirs, **here})
            when_public += [number for (number,) in found]
        else:
            for number, kind, at, nano in connection.execute(paid, {"cohort": place, **here}):
                uses.append(Use(number, kind, at, nano, granted))
    stood = [(line, by_id[place]) for line, place in path]
    now, (line, since) = by_id[places[-1]], find_consent(stood)
    merges, anew = list(_find_merges(connection, path[since:])), _read_before(connection, uses, line)
    rounded, earlier = sum(nano for _, _, nano in merges), count_earlier(now.datasets)
    term, counted = read_term(now.datasets), now.spent + now.reserved + earlier
    # Earlier periods count with what was charged before a consent anew, all else begins there.
    counted += anew.charged if anew is not None and not earlier else 0
    more = max(0, counted - sum(use.charge for use in uses) - rounded)
    # What no question charged was in a part that is lost, or was granted for a period that is over and not used.
    lost = connection.execute("SELECT losses FROM ledger").fetchone()[0] > 0
    lapsed = 0 if lost or all(read_term(one.datasets) is None for _, one in stood) else more
    return Statement(
        granted=None if now.state == values.WITHDRAWN else now.granted,
        state=now.state,
        spent=now.spent,
        reserved=now.reserved,
        left=now.left,
        uses=tuple(uses),
        when_public=tuple(when_public),
        not_dp_since=statements.find_mark(connection, seeded),
        written_off=more - lapsed,
        anew=anew,
        lost=is_lost(now.datasets),
        rounded=rounded,
        lowered=sum((by_id[one].granted or 0) - (by_id[other].granted or 0) for one, other, _ in merges),
        # Without any dataset there are no rosters, and everyone in the ledger is asked about.
        on_roster=bool(statements.read_rosters(now.datasets)) or not statements.count(connection, "registrations", {}),
        replaced=(_find_lowered if now.own else _find_replaced)(connection, stood),
        redefined=tuple(_find_redefined(connection, stood)),
        measure=statements.read_measure(connection),
        term=term,
        lapsed=lapsed,
    )


def _read_before(connection: Connection, uses: Sequence[Use], line: int) -> Anew | None:
    """When a person consented anew, by a line of the journal (0: never), and what they had been charged before."""
    if not line:
        return None
    (at,) = connection.execute("SELECT at FROM journal WHERE seq = :line", {"line": line}).fetchone()
    newer = "SELECT coalesce(min(number), 0) FROM reservations WHERE seq > :line"
    first = connection.execute(newer, {"line": line}).fetchone()[0] or 2**63
    return Anew(at, sum(use.charge for use in uses if use.number < first))


def _find_replaced(connection: Connection, path: Sequence[tuple[int, Cohort]]) -> Replaced | None:
    """The last own word of a person, which is none any more, if a source has said something else."""
    ends = [(was, line, now) for (_, was), (line, now) in pairwise(path) if was.own and not now.own]
    if not ends or ends[-1][0].granted == ends[-1][2].granted:
        return None
    was, line, now = ends[-1]
    before, after = statements.read_rosters(was.datasets), statements.read_rosters(now.datasets)
    which, spoke = spread("dataset", [number for number, said in after.items() if before.get(number) != said])
    found = connection.execute(f"SELECT name FROM registrations WHERE dataset IN ({which})", spoke).fetchone()
    (at,) = connection.execute("SELECT at FROM journal WHERE seq = :line", {"line": line}).fetchone()
    return Replaced(was.granted, was.level, at, found and found["name"], measure=statements.read_measure(connection))


def _find_lowered(connection: Connection, path: Sequence[tuple[int, Cohort]]) -> Replaced | None:
    """An own word that holds only up to a ceiling, which a registration brought it down to."""
    last = path[-1][1]
    for (_, was), (line, now) in reversed([*pairwise(path)]):
        if was.own and now.own and now.level is None and now.granted == last.granted != was.granted:
            # What is done in one transaction has one time.
            made = "SELECT name, at, about FROM registrations WHERE at = (SELECT at FROM journal WHERE seq = :line)"
            for name, at, about in connection.execute(made, {"line": line}):
                ceiling = to_nano(json.loads(about).get("ceiling", math.inf))
                measure = statements.read_measure(connection)
                if ceiling is not None and measure.units(ceiling) == now.granted:
                    return Replaced(was.granted, was.level, at, name, now.granted, measure)
    return None


def _find_redefined(connection: Connection, path: Sequence[tuple[int, Cohort]]) -> Iterator[Redefined]:
    """How the level that a person has came to mean what it means, while they had it."""
    level = path[-1][1].level
    for (_, was), (line, now) in pairwise(path):
        if was.level == now.level == level is not None and was.granted != now.granted:
            # A registration that redefines a level moves those who have it, and writes its meaning on the next line.
            meant = "SELECT at, granted FROM levels JOIN journal USING (seq) WHERE name = :level AND seq = :line + 1"
            for at, granted in connection.execute(meant, {"level": level, "line": line}):
                if granted == now.granted:
                    yield Redefined(level, was.granted, granted, at, statements.read_measure(connection))


def _find_merges(connection: Connection, path: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int, int]]:
    """Of a person's moves those by which cohorts became one: from where, to where, and what was added to be alike."""
    steps = {line: (origin, target) for (_, origin), (line, target) in pairwise(path)}
    which, lines = spread("line", steps)
    found = f"SELECT seq, body FROM journal WHERE kind = 'merge' AND seq IN ({which}) ORDER BY seq"
    for line, body in connection.execute(found, lines):
        for group in json.loads(body)["moved"]:
            if (group["origin"], group["target"]) == steps[line]:
                yield *steps[line], group["rounded"]
