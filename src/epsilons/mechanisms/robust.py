"""One weighted sum with one noise, filled up with the centre: good however values and preferences relate."""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, cast

from epsilons.guarantee import NANO
from epsilons.mechanisms.base import Weighing, register
from epsilons.preferences import Levels
from epsilons.statistics.additive import Additive
from epsilons.statistics.base import Question, Rest, Weighting, proportional
from epsilons.statistics.gaussian import equivalent_reach


@register
@dataclass(frozen=True)
class Robust(Weighing):
    """Weight each person by their epsilon up to one, and put the public centre for what is left out.

    Definition: w_i = min(1, b*eps_i), answer sum w_i x_i + c * sum(1 - w_i) + noise of scale b*r; b minimises the worst
                bias squared plus the noise's variance.
    Theorem:    w_i <= b*eps_i with noise of scale b*r is eps_i-PDP for everyone (docs/theory.md). Chaudhuri and
                Courtade 2024, where preferences and values may be related; the term with c is ours.
    Guarantee:  eps_i-PDP, one person absent or replaced, as asked.
    Cost:       min(eps_i, 1/b) charged to each person.
    Error:      predicted at the publicly guessed density or spread; the worst case assumes nothing at all.
    """

    name: ClassVar[str] = "robust"
    gist: ClassVar[str] = "everyone by their epsilon, the public centre for the rest; one noise"
    families: ClassVar[tuple[str, ...]] = ("linear",)
    serves_only: ClassVar[str] = "it serves counts, sums, means and histograms"

    def weigh(self, question: Question, levels: Levels) -> Weighting:
        statistic = cast(Additive, question.statistic)
        reach = statistic.parts[0].reach[question.neighbors] * statistic.units[0]
        reach = reach if question.measure.delta is None else equivalent_reach(question)
        low, high = statistic.extremes
        gap = max(high - statistic.centre, statistic.centre - low)
        return proportional(levels, _best_top(levels.grants, levels.sizes, levels.left_out, reach / gap), Rest.CENTRED)


@lru_cache(maxsize=256)
def _best_top(grants: tuple[int | None, ...], sizes: tuple[int, ...], left_out: int, reach: float) -> int:
    """1/b in nano-epsilon: where (sum of (1 - w_i))^2 + 2 (reach * b)^2 is least.

    Between two neighbouring epsilons the left-out weight is linear in b, so the objective is a parabola there; its
    least point within each piece is known, and the best piece wins.
    """
    finite = [(g / NANO, n) for g, n in zip(grants, sizes, strict=True) if g is not None]
    best = (float("inf"), finite[-1][0])
    people, weight = float(left_out), 0.0
    for place, (epsilon, size) in enumerate(finite):
        people, weight = people + size, weight + size * epsilon
        low = 1 / finite[place + 1][0] if place + 1 < len(finite) else 1e-30
        high = 1 / epsilon
        stationary = people * weight / (weight**2 + 2 * reach**2)
        for b in (min(max(stationary, low), high), high):
            missed = max(people - b * weight, 0.0)
            best = min(best, (missed**2 + 2 * (reach * b) ** 2, 1 / b))
    return max(1, min(int(Fraction(best[1]) * NANO), 10**15))
