"""Everybody's value, shrunk in proportion to their epsilon."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from epsilons.mechanisms.base import register
from epsilons.mechanisms.linear import Linear, Weighting, proportional
from epsilons.preferences import Levels
from epsilons.statistics.order import Order
from epsilons.statistics.question import Question


@register
@dataclass(frozen=True)
class Stretching(Linear):
    """Weight each value by its owner's epsilon over the largest one.

    Definition: sum of (eps_i/eps_max) * x_i, plus noise of scale r/eps_max. A model multiplies two values of a
                person, each shrunk, so that its weights are (eps_i/eps_max)^2.
    Theorem:    Alaggan, Gambs, Kermarrec 2015 (heterogeneous DP), as used by Jorgensen et al. 2015, section V-A.
    Guarantee:  eps_i-PDP, one person absent or replaced, as asked.
    Cost:       eps_i charged to each person; for a model eps_i^2/eps_max, which is all they lose.
    Error:      what the weights leave out, at the publicly guessed density or spread, and the noise. The answer is too
                small (a mean: drawn to the centre) unless `rescale=True`, which assumes that preferences say nothing
                about values.
    """

    rescale: bool = False

    name: ClassVar[str] = "stretching"
    gist: ClassVar[str] = "every value shrunk in proportion to its epsilon"
    mean_of_the_weighted: ClassVar[bool] = False

    def refuses(self, question: Question, levels: Levels) -> str | None:
        return "it only serves sums" if isinstance(question.statistic, Order) else None

    def weigh(self, question: Question, levels: Levels) -> Weighting:
        shrunk = proportional(levels, levels.largest)
        degree = getattr(question.statistic, "degree", 1)
        weights = tuple(w**degree // shrunk.one ** (degree - 1) for w in shrunk.weights)
        return Weighting(weights, shrunk.one, shrunk.rate)
