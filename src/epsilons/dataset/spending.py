"""How much of everybody's budget a question may use, and which mechanism uses it best. Public facts only."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

from epsilons.errors import BudgetExceeded, PlanError
from epsilons.ledger.values import Cohort, allowance, present
from epsilons.mechanisms.base import Settings
from epsilons.planner.choose import choose
from epsilons.planner.rows import make_row
from epsilons.release.sketch import Sketch, Spendable
from epsilons.statistics.question import Question

_HALVINGS = 40
_CLOSE = 100_000
#: No share is smaller than what leaves an open person a nano-epsilon.
_LEAST_SHARE = Fraction(1, 10**15)


class TooSmallShareError(PlanError):
    """It would charge nobody anything."""


class NothingToPlanError(PlanError):
    """Everyone is public, so there is nothing to choose and nothing to charge."""


def spendable_at(
    share: Fraction, cohorts: Sequence[Cohort], names: Mapping[float, str], part: Fraction = Fraction(1)
) -> Spendable:
    """What each cohort may be charged; BudgetExceeded when nobody with a finite epsilon has anything left."""
    grants = [cohort.granted for cohort in present(cohorts) if cohort.granted]
    if grants and max(grants) * share < 1:
        raise TooSmallShareError("This share is too small.", rule="It is less than a nano-epsilon of anybody's grant.")
    return Spendable.of(allowance(cohorts, share, 0, part), cohorts, names)


def sketch_of(question: Question, name: str, settings: Settings, spendable: Spendable) -> Sketch:
    """The mechanism asked for, or the best of all for "auto"."""
    if spendable.levels.all_public:
        return Sketch(
            None, "Everyone on the roster chose public, so the exact answer is released.", question, spendable
        )
    mechanism, why = choose(name, question, spendable.levels, settings)
    return Sketch(mechanism, why, question, spendable)


def reaching(
    error: float,
    question: Question,
    name: str,
    settings: Settings,
    cohorts: Sequence[Cohort],
    names: Mapping[float, str],
) -> Fraction:
    """The smallest share of everybody's grant whose predicted error is at most `error`."""

    def predicted(share: Fraction) -> float:
        try:
            spendable = spendable_at(share, cohorts, names)
        except (BudgetExceeded, TooSmallShareError):
            return math.inf
        sketch = sketch_of(question, name, settings, spendable)
        if sketch.mechanism is None:
            return 0.0
        return make_row(sketch.mechanism, question, spendable.levels).judged_by(question.assume)

    spendable_at(Fraction(1), cohorts, names)
    whole = predicted(Fraction(1))
    if math.isinf(whole):
        raise PlanError(f"No error can be predicted for a {question.statistic.name}.", hint="share= instead")
    if whole > error:
        raise PlanError(
            f"An error of {error:g} is out of reach.",
            rule=f"All that everybody has left gives {whole:.4g}.",
            hint=f"error={whole * 1.01:.3g}",
        )
    low, best = Fraction(0), Fraction(1)
    for _ in range(_HALVINGS):
        # Shares are small numbers more often than large ones: halve their size, not their distance.
        middle = best / 16 if low == 0 else (low + best) / 2
        middle = middle.limit_denominator(10**15)
        if middle < _LEAST_SHARE or (low and best - low < best / _CLOSE):
            break
        if predicted(middle) <= error:
            best = middle
        else:
            low = middle
    return best
