"""Which mechanism: the least predicted error under the stated assumption, and why."""

from __future__ import annotations

import math
from functools import lru_cache

from epsilons.arguments.checks import ASSUMPTIONS
from epsilons.mechanisms.base import Mechanism, Settings, predicted_error, serving, take_named, worst_error
from epsilons.planner.rows import PlanRow, make_row
from epsilons.preferences import Levels
from epsilons.statistics.base import Question

#: Where no error can be predicted: Sample keeps the most people at one epsilon; without any assumption PE does.
UNPREDICTED = {"unrelated": "sample", "nothing": "exponential"}

#: Where several do equally well, as where everyone granted the same: the plainest, and coins only where they help.
_PLAINEST, _LAST = "minimum", "sample"
#: Errors that agree in so many digits are the same: the rest is rounding.
_DIGITS = 9

DEFAULTS = Settings()


@lru_cache(maxsize=128)
def rank_mechanisms(question: Question, levels: Levels, settings: Settings = DEFAULTS) -> tuple[PlanRow, ...]:
    """Every mechanism that can serve, the best first; remembered, since rosters change less often than questions."""
    rows = [make_row(mechanism, question, levels) for mechanism in serving(question, levels, settings)]
    rows.sort(key=lambda row: _place(row.judged_by(question.assume), row.mechanism, question))
    return tuple(rows)


def _best(question: Question, levels: Levels, settings: Settings) -> tuple[Mechanism, str]:
    """The first row of the plan and why, without the charges and words of all the others."""
    known, key = levels.worked_out, ("best", question, settings)
    found: tuple[Mechanism, str] | None = known.get(key)
    if found is None:
        judged = [(_judge(mechanism, question, levels), mechanism) for mechanism in serving(question, levels, settings)]
        error, best = min(judged, key=lambda one: _place(one[0], one[1].name, question))
        known[key] = found = best, _why(error, best, question, levels)
    return found


def _place(error: float, name: str, question: Question) -> tuple[float, int, str]:
    if math.isinf(error):
        return error, int(name != UNPREDICTED[question.assume]), name
    return float(f"{error:.{_DIGITS}g}"), (name != _PLAINEST) + (name == _LAST), name


def _judge(mechanism: Mechanism, question: Question, levels: Levels) -> float:
    """The same as a row's `judged_by`."""
    judge = worst_error if question.assume == "nothing" else predicted_error
    error = judge(mechanism, question, levels)
    return math.inf if error is None else error


def choose(name: str, question: Question, levels: Levels, settings: Settings = DEFAULTS) -> tuple[Mechanism, str]:
    """(mechanism, why): the one asked for if it can serve, or the best of all for "auto"."""
    if name == "auto":
        return _best(question, levels, settings)
    return take_named(name, question, levels, settings)


def _why(error: float, best: Mechanism, question: Question, levels: Levels) -> str:
    reason = best.explain(question, levels)
    if math.isinf(error):
        return (
            f"No error can be predicted for a {question.statistic.name} without looking at the data; "
            f"{best.name!r} is the default: {reason}."
        )
    which = "worst-case" if question.assume == "nothing" else "predicted"
    return (
        f"Least {which} error of all, assuming that {ASSUMPTIONS[question.assume]}: {reason}."
        if question.assume == "unrelated"
        else f"Least {which} error of all; {ASSUMPTIONS[question.assume]}: {reason}."
    )
