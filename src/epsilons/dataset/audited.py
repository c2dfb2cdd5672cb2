"""Audits of the whole way through a dataset: table, ledger, draw; and of a transcript that follows its own answers.

Every draw opens a small made-up table with a ledger of its own and asks, so there are few of them: such an audit sees
what leaks openly, an answer without noise or a charge that is not made, and not a scale that is some percent small.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from epsilons.auditing.claims import Claim, audit_claim
from epsilons.auditing.report import Audit
from epsilons.dataset.table import Dataset
from epsilons.errors import BudgetExceeded

#: Three people at three levels, and values on both sides of every condition below.
GRANTS = {0: 0.5, 1: 1.0, 2: 2.0}
DOMAIN = (0.0, 4.0)
_NOTE = "Tables and transcripts were drawn {draws:,} times on each side: that shows open leaks, not small ones."


def ask_count(people: Any) -> float:
    """One question with a condition, for all that everybody granted."""
    return float(people.count(where="x >= 2", share=1.0).value)


def ask_adaptively(people: Any) -> float:
    """An analyst whose questions follow the answers, until nothing is left; all answers as one number.

    Answers are added up with weights that keep them apart, so that an interval of the sum is an event of the whole.
    """
    seen = [float(people.count(where="x >= 2", share=0.4).value)]
    if seen[0] >= 1.5:
        seen.append(float(people.sum("x", bounds=DOMAIN, share=0.4).value) / DOMAIN[1])
    else:
        seen.append(float(people.count(where="x < 2", share=0.4).value))
    try:
        while len(seen) < 6:
            seen.append(float(people.count(where="x >= 2", share=1.0, fresh=True).value))
    except BudgetExceeded:
        pass
    return sum(seen)


WAYS: dict[str, Callable[[Any], float]] = {
    "count on a table": ask_count,
    "adaptive transcript through a ledger": ask_adaptively,
}


def answer_once(ask: Callable[[Any], float], data: tuple[Any, ...]) -> float:
    """A table of its own with these values, a ledger in memory, and what is asked; infinite if a grant was passed."""
    import pyarrow as pa

    there = [(person, value) for person, value in enumerate(data) if value is not None]
    ids, values = [person for person, _ in there], [value for _, value in there]
    table = pa.table({"id": pa.array(ids, pa.int64()), "x": pa.array(values, pa.float64())})
    with Dataset(table, person="id", preferences=GRANTS, ledger="memory") as people:
        answer = ask(people)
        left = people.remaining().epsilons
    return answer if all(one >= -1e-12 for one in left.values()) else math.inf


def audit_tables(draws: int, confidence: float = 0.999, ways: dict[str, Callable[[Any], float]] = WAYS) -> Audit:
    """Whether anybody loses more than they granted by a question on a table, or by a whole transcript."""
    granted, found = tuple(GRANTS.values()), Audit((), (_NOTE.format(draws=draws),))
    for name, ask in ways.items():

        def draw(data: tuple[Any, ...], size: int, ask: Callable[[Any], float] = ask) -> list[float]:
            return [answer_once(ask, data) for _ in range(size)]

        claim = Claim(f"{name}, absent", granted, granted, "absent", DOMAIN, draw=draw)
        found += Audit(tuple(audit_claim(claim, draws, confidence, pairs=2, levels=1)))
    return found
