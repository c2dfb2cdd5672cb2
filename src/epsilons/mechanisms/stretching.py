"""Everybody's value, shrunk in proportion to their epsilon."""

from dataclasses import dataclass
from typing import ClassVar, cast

from epsilons.mechanisms.base import Weighing, register
from epsilons.preferences import Levels
from epsilons.statistics.additive import Additive
from epsilons.statistics.base import Question, Rest, Weighting, proportional


@register
@dataclass(frozen=True)
class Stretching(Weighing):
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
    families: ClassVar[tuple[str, ...]] = ("linear", "ratio", "variance", "regression")
    serves_only: ClassVar[str] = "it only serves sums"

    def weigh(self, question: Question, levels: Levels) -> Weighting:
        statistic = cast(Additive, question.statistic)
        return statistic.stretch(proportional(levels, levels.largest, Rest.RESCALED if self.rescale else Rest.SHRUNK))
