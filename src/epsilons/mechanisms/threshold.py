"""Only people who granted enough."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from epsilons.guarantee import NANO, to_epsilon
from epsilons.mechanisms.base import register
from epsilons.mechanisms.sample import Thresholded
from epsilons.preferences import Levels
from epsilons.statistics.base import Floats, Question, Weighting, Weightings


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

    threshold: float | str = "best"
    rescale: bool = False

    name: ClassVar[str] = "threshold"

    def weigh(self, question: Question, levels: Levels) -> Weighting:
        t = self.at(question, levels)
        return Weighting(tuple(1 if g is None or g >= t else 0 for g in levels.grants), 1, Fraction(t), self.rest)

    def weigh_many(self, levels: Levels, thresholds: Floats) -> Weightings:
        granted = np.array([np.inf if grant is None else grant / NANO for grant in levels.grants])
        return Weightings((granted >= thresholds[:, None] / NANO).astype(float), thresholds, 1, self.rest)

    def explain(self, question: Question, levels: Levels) -> str:
        t = to_epsilon(self.at(question, levels))
        return f"only people who granted at least {t:.4g}, at {t:.4g}"
