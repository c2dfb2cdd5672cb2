"""One threshold for everyone, and how it is chosen; the mechanism that uses only people who granted that much."""

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, cast

import numpy as np

from epsilons.accuracy import FAMILIES
from epsilons.accuracy.weightings import Weightings
from epsilons.arguments.checks import THRESHOLDS, check_threshold
from epsilons.errors import PlanError
from epsilons.guarantee import NANO, to_epsilon
from epsilons.mechanisms.base import Weighing, register, weighting_of
from epsilons.preferences import Levels, to_nano
from epsilons.statistics.base import Floats, Question, Rest, Weighting

#: Thresholds tried where the best one is looked for.
_TRIED = 48


@dataclass(frozen=True)
class Thresholded(Weighing):
    """What threshold and sample share: one threshold for everyone, and whether totals are rescaled."""

    threshold: float | str = "best"
    rescale: bool = False
    #: Whether people are kept by coins.
    coins: ClassVar[bool] = False

    @abstractmethod
    def weigh_many(self, levels: Levels, thresholds: Floats) -> Weightings:
        """What is expected of people at each of several thresholds in nano-epsilon."""

    def at(self, question: Question, levels: Levels) -> int:
        """The threshold in nano-epsilon."""
        return resolve_threshold(self.threshold, levels, partial(self._best, question, levels))

    def epsilon(self, question: Question, levels: Levels) -> float:
        """The epsilon at which people are used: what weight one costs."""
        return float(weighting_of(self, question, levels).rate) / NANO

    @property
    def rest(self) -> Rest:
        """What becomes of what the threshold leaves out."""
        return Rest.RESCALED if self.rescale else Rest.OMITTED

    def options(self, question: Question, levels: Levels) -> dict[str, Any]:
        return {"threshold": self.epsilon(question, levels), "rescale": self.rescale}

    def _best(self, question: Question, levels: Levels) -> int:
        """The preference on the roster, or a number between two of them, with the least predicted error."""
        steps = max(1, len(levels.finite) // _TRIED)
        candidates = {*levels.finite[::steps], levels.largest, levels.mean}
        # Without coins a number below the next preference keeps the same people with more noise: preferences suffice.
        if len(levels.finite) > 1 and (self.coins or steps > 1):
            ratio = levels.largest / levels.smallest
            candidates |= {math.floor(levels.smallest * ratio ** (k / _TRIED)) for k in range(1, _TRIED)}
        # Where nothing can be predicted, the largest: it keeps the noise least.
        ordered = sorted(candidates, reverse=True)
        weightings = self.weigh_many(levels, np.array(ordered, float))
        return ordered[int(FAMILIES[question.statistic.family].predict_errors(question, levels, weightings).argmin())]


def resolve_threshold(threshold: Any, levels: Levels, best: Callable[[], int] | None = None) -> int:
    """A threshold in nano-epsilon, from public facts; the "best" is the largest, of least noise, without `best`."""
    if isinstance(threshold, str) and threshold in THRESHOLDS:
        if threshold == "best" and best is not None:
            return best()
        return levels.mean if threshold == "mean" else levels.largest
    threshold = float(check_threshold(threshold))
    low, high = to_epsilon(levels.smallest), to_epsilon(levels.largest)
    if not low <= threshold <= high:
        rule = f"It must lie between the strictest and the most open finite epsilon, {low:g} and {high:g}."
        raise PlanError(f"A threshold of {threshold:g} lies outside the preferences.", rule=rule)
    return cast(int, to_nano(threshold))


@register
@dataclass(frozen=True)
class Threshold(Thresholded):
    """Use only the people who granted at least a threshold, at that threshold.

    Definition: keep i if eps_i >= t, run a t-DP mechanism on those kept. t is "best" (default), "max",
                "mean" or a number.
    Theorem:    Jorgensen et al. 2015, section IV-A (baseline "Threshold").
    Guarantee:  eps_i-PDP, one person absent or replaced, as asked; no loss at all for those below t.
    Cost:       t charged to those kept, nothing to the rest.
    Error:      what is left out, at the publicly guessed density or spread, and the noise. Counts and sums stay as they
                are (too small) unless `rescale=True`, which assumes that preferences say nothing about values.
    """

    name: ClassVar[str] = "threshold"

    def weigh(self, question: Question, levels: Levels) -> Weighting:
        t = self.at(question, levels)
        return Weighting(tuple(1 if g is None or g >= t else 0 for g in levels.grants), 1, Fraction(t), self.rest)

    def weigh_many(self, levels: Levels, thresholds: Floats) -> Weightings:
        granted = np.array([np.inf if grant is None else grant / NANO for grant in levels.grants])
        return Weightings((granted >= thresholds[:, None] / NANO).astype(float), thresholds, 1, self.rest)

    def explain(self, question: Question, levels: Levels) -> str:
        t = question.tell_loss(weighting_of(self, question, levels).rate)
        return f"only people who granted enough to be charged {t}, all at that"
