"""Audits of the whole way through a dataset: table, ledger, draw; and of a transcript that follows its own answers.

Every draw opens a small made-up table with a ledger of its own and asks, so there are few of them: such an audit sees
what leaks openly, an answer without noise or a charge that is not made, and not a scale that is some percent small.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from epsilons.auditing.attack import audit_claim
from epsilons.auditing.claims import Claim
from epsilons.auditing.report import Audit
from epsilons.dataset.table import Dataset
from epsilons.errors import BudgetExceeded

#: Three people at three levels, and values on both sides of every condition below.
GRANTS = {0: 0.5, 1: 1.0, 2: 2.0}
DOMAIN = (0.0, 4.0)
#: Of a concentrated account.
DELTA = Fraction(1, 10**6)
_NOTE = "Tables and transcripts were drawn {draws:,} times on each side: that shows open leaks, not small ones."
_MOST_ANSWERS = 6


def ask_count(people: Any) -> float:
    """One question with a condition, for all that everybody granted."""
    return float(people.count(where="x >= 2", share=1.0).value)


def ask_in_sql(people: Any) -> tuple[float, float]:
    """Two aggregates of one query: a batch, which splits everybody's epsilon between them."""
    query = "SELECT COUNT(*) AS people, SUM(x) AS total FROM people WHERE x >= 2"
    answers = people.sql(query, bounds={"x": DOMAIN}, share=1.0)
    return float(answers["people"].value), float(answers["total"].value) / DOMAIN[1]


def ask_adaptively(people: Any) -> tuple[float, ...]:
    """An analyst whose questions follow the answers, until nothing is left: how many there were, and all of them."""
    seen = [float(people.count(where="x >= 2", share=0.4).value)]
    if seen[0] >= 1.5:
        seen.append(float(people.sum("x", bounds=DOMAIN, share=0.4).value) / DOMAIN[1])
    else:
        seen.append(float(people.count(where="x < 2", share=0.4).value))
    try:
        while len(seen) < _MOST_ANSWERS:
            seen.append(float(people.count(where="x >= 2", share=1.0, fresh=True).value))
    except BudgetExceeded:
        pass
    return (float(len(seen)), *seen, *[0.0] * (_MOST_ANSWERS - len(seen)))


@dataclass(frozen=True)
class Way:
    """What is asked of a table, and the delta of its ledger's account if it counts rho."""

    ask: Callable[[Any], Any]
    delta: Fraction | None = None


WAYS: dict[str, Way] = {
    "count on a table": Way(ask_count),
    "SQL on a table": Way(ask_in_sql),
    "adaptive transcript through a ledger": Way(ask_adaptively),
    "adaptive transcript in rho": Way(ask_adaptively, DELTA),
}


def answer_once(way: Way, data: tuple[Any, ...]) -> tuple[Any, bool]:
    """(what comes out of a table with these values and a ledger of its own, whether nobody spent more than granted)."""
    import pyarrow as pa

    there = [(person, value) for person, value in enumerate(data) if value is not None]
    ids, values = [person for person, _ in there], [value for _, value in there]
    table = pa.table({"id": pa.array(ids, pa.int64()), "x": pa.array(values, pa.float64())})
    account = {} if way.delta is None else {"measure": "zcdp", "delta": float(way.delta)}
    with Dataset(table, person="id", preferences=GRANTS, ledger="memory", **account) as people:  # type: ignore[arg-type]
        answer = way.ask(people)
        left = people.remaining().epsilons
    return answer, all(one >= -1e-12 for one in left.values())


def audit_tables(draws: int, confidence: float = 0.999, ways: dict[str, Way] = WAYS) -> Audit:
    """Whether anybody loses more than they granted by a question on a table, or by a whole transcript."""
    granted, found = tuple(GRANTS.values()), Audit((), (_NOTE.format(draws=draws),))
    for name, way in ways.items():
        kept = [True]

        def draw(data: tuple[Any, ...], size: int, way: Way = way, kept: list[bool] = kept) -> list[Any]:
            drawn = [answer_once(way, data) for _ in range(size)]
            kept[0] &= all(within for _, within in drawn)
            return [answer for answer, _ in drawn]

        claim = Claim(f"{name}, absent", granted, granted, "absent", DOMAIN, draw=draw, delta=way.delta)
        findings = audit_claim(claim, draws, confidence, pairs=2, levels=1)
        if not kept[0]:  # which needs no draws to be a fault
            findings = [replace(one, holds=False, event="more was spent than granted") for one in findings]
        found += Audit(tuple(findings))
    return found
