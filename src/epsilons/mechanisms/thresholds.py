"""Which threshold: a number, the largest or the mean preference, or the one with the least predicted error."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from epsilons.errors import PlanError
from epsilons.guarantee import to_epsilon
from epsilons.preferences import Levels, to_nano
from epsilons.statistics.question import Question

_TRIED = 48


def resolve_threshold(mechanism: Any, question: Question, levels: Levels) -> int:
    """A threshold in nano-epsilon, from the roster and other public facts alone, within the finite preferences."""
    threshold = mechanism.threshold
    if threshold == "max":
        return levels.largest
    if threshold == "mean":
        return levels.mean
    if threshold == "best":
        return _best(mechanism, question, levels)
    if isinstance(threshold, (str, bool)) or not isinstance(threshold, (int, float)) or math.isnan(threshold):
        raise PlanError(f"Unknown threshold {threshold!r}.", hint='a number, "max", "mean" or "best"')
    low, high = to_epsilon(levels.smallest), to_epsilon(levels.largest)
    if not low <= threshold <= high:
        raise PlanError(
            f"A threshold of {threshold:g} lies outside the preferences.",
            rule=f"It must lie between the strictest and the most open finite epsilon, {low:g} and {high:g}.",
        )
    nano = to_nano(float(threshold))
    assert nano is not None
    return nano


@lru_cache(maxsize=64)
def _best(mechanism: Any, question: Question, levels: Levels) -> int:
    """The preference on the roster, or a number between two of them, with the least predicted error."""
    steps = max(1, len(levels.finite) // _TRIED)
    candidates = {*levels.finite[::steps], levels.largest, levels.mean}
    # Without coins a number below the next preference keeps the same people with more noise: preferences are enough.
    if len(levels.finite) > 1 and (mechanism.samples or steps > 1):
        ratio = levels.largest / levels.smallest
        candidates |= {math.floor(levels.smallest * ratio ** (k / _TRIED)) for k in range(1, _TRIED)}
    # Where nothing can be predicted, the largest: it keeps the noise least.
    ordered = sorted(candidates, reverse=True)
    column = np.array([[to_epsilon(nano)] for nano in ordered])
    errors = mechanism.errors_at(question, levels, mechanism.fractions_at(levels, column), np.array(ordered, float))
    return ordered[int(errors.argmin())]
