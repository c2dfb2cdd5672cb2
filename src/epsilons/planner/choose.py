"""Which mechanism: the least predicted error under the stated assumption, and why."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from epsilons.errors import PlanError
from epsilons.mechanisms.base import Mechanism, create, registered
from epsilons.planner.rows import PlanRow, candidates, make_row
from epsilons.preferences import Levels
from epsilons.statistics.question import ASSUMPTIONS, Question

#: Where no error can be predicted: Sample keeps the most people at one epsilon; without any assumption PE does.
UNPREDICTED = {"unrelated": "sample", "nothing": "exponential"}


@lru_cache(maxsize=128)
def rank_mechanisms(
    question: Question, levels: Levels, threshold: Any = None, rescale: bool | None = None
) -> tuple[PlanRow, ...]:
    """Every mechanism that can serve, the best first; remembered, since rosters change less often than questions."""
    rows = [make_row(mechanism, question, levels) for mechanism in candidates(question, levels, threshold, rescale)]
    fallback = UNPREDICTED[question.assume]
    rows.sort(key=lambda row: (row.judged_by(question.assume), row.mechanism != fallback, row.mechanism))
    return tuple(rows)


def choose(
    name: str, question: Question, levels: Levels, threshold: Any = None, rescale: bool | None = None
) -> tuple[Mechanism, str]:
    """(mechanism, why): the one asked for if it can serve, or the best of all for "auto"."""
    if name == "auto":
        best = rank_mechanisms(question, levels, threshold, rescale)[0]
        return best.chosen, _why(best, question)
    mechanism = create(name, threshold=threshold, rescale=rescale)
    refusal = mechanism.refuses(question, levels)
    if refusal is not None:
        able = [n for n in registered() if create(n).refuses(question, levels) is None]
        raise PlanError(
            f"{name!r} cannot serve a {question.statistic.name}: {refusal}.",
            hint=f'one of {", ".join(sorted(able))}, or "auto"',
        )
    return mechanism, f"Asked for by name: {mechanism.explain(question, levels)}."


def _why(best: PlanRow, question: Question) -> str:
    error = best.judged_by(question.assume)
    if math.isinf(error):
        return (
            f"No error can be predicted for a {question.statistic.name} without looking at the data; "
            f"{best.mechanism!r} is the default: {best.reason}."
        )
    which = "worst-case" if question.assume == "nothing" else "predicted"
    return (
        f"Least {which} error of all, assuming that {ASSUMPTIONS[question.assume]}: {best.reason}."
        if question.assume == "unrelated"
        else f"Least {which} error of all; {ASSUMPTIONS[question.assume]}: {best.reason}."
    )
