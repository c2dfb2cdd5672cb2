"""Which threshold: a number, the largest or the mean preference, or the one with the least predicted error."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from epsilons.accuracy import FAMILIES
from epsilons.errors import PlanError
from epsilons.guarantee import to_epsilon
from epsilons.mechanisms.base import Weighing
from epsilons.preferences import Levels, to_nano
from epsilons.statistics.question import Question
from epsilons.statistics.weighting import Rest, Weightings

_TRIED = 48


class Thresholded(Weighing):
    """What threshold and sample share: one threshold for everyone, and whether totals are rescaled."""

    threshold: float | str
    rescale: bool
    #: Whether people are kept by coins.
    coins: ClassVar[bool] = False

    @abstractmethod
    def weigh_many(self, levels: Levels, thresholds: NDArray[np.float64]) -> Weightings:
        """What is expected of people at each of several thresholds in nano-epsilon."""

    def at(self, question: Question, levels: Levels) -> int:
        """The threshold in nano-epsilon."""
        return resolve_threshold(self.threshold, levels, lambda: _best(self, question, levels))

    @property
    def rest(self) -> Rest:
        """What becomes of what the threshold leaves out."""
        return Rest.RESCALED if self.rescale else Rest.OMITTED

    def options(self, question: Question, levels: Levels) -> dict[str, Any]:
        return {"threshold": to_epsilon(self.at(question, levels)), "rescale": self.rescale}


def resolve_threshold(threshold: Any, levels: Levels, best: Callable[[], int]) -> int:
    """A threshold in nano-epsilon, from the roster and other public facts alone, within the finite preferences."""
    if threshold == "max":
        return levels.largest
    if threshold == "mean":
        return levels.mean
    if threshold == "best":
        return best()
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


def _best(mechanism: Thresholded, question: Question, levels: Levels) -> int:
    """The best threshold, remembered."""
    known, key = levels.worked_out, ("threshold", mechanism, question)
    if key not in known:
        known[key] = _find_best(mechanism, question, levels)
    found: int = known[key]
    return found


def _find_best(mechanism: Thresholded, question: Question, levels: Levels) -> int:
    """The preference on the roster, or a number between two of them, with the least predicted error."""
    steps = max(1, len(levels.finite) // _TRIED)
    candidates = {*levels.finite[::steps], levels.largest, levels.mean}
    # Without coins a number below the next preference keeps the same people with more noise: preferences are enough.
    if len(levels.finite) > 1 and (mechanism.coins or steps > 1):
        ratio = levels.largest / levels.smallest
        candidates |= {math.floor(levels.smallest * ratio ** (k / _TRIED)) for k in range(1, _TRIED)}
    # Where nothing can be predicted, the largest: it keeps the noise least.
    ordered = sorted(candidates, reverse=True)
    weightings = mechanism.weigh_many(levels, np.array(ordered, float))
    errors = FAMILIES[question.statistic.family].predict_many(question, levels, weightings)
    return ordered[int(errors.argmin())]
