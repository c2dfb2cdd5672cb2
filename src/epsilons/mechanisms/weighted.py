"""One weighted sum with one noise: the most accurate answer if preferences say nothing about values."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, cast

import numpy as np

from epsilons.accuracy import FAMILIES
from epsilons.accuracy.weightings import Weightings
from epsilons.arguments.checks import refuse
from epsilons.errors import Argument
from epsilons.guarantee import NANO
from epsilons.mechanisms.base import Weighing, register, weighting_of
from epsilons.mechanisms.calibration import calibrate
from epsilons.mechanisms.exponential import fill_outcomes
from epsilons.preferences import LARGEST_EPSILON, Levels, roster_of
from epsilons.preferences.strata import Strata
from epsilons.statistics.base import FINE, Answer, Floats, Question, Rest, Weighting, proportional
from epsilons.statistics.order import Order, quantile
from epsilons.summaries.arrays import ArrayPeople

#: Caps tried at first where the best one is looked for.
_TRIED = 32


@register
@dataclass(frozen=True)
class Weighted(Weighing):
    """Weight each person by their epsilon up to a cap, and rescale.

    Definition: w_i proportional to min(eps_i, tau), sum w_i = 1, one noise of scale r * max w_i/eps_i; tau is the root
                of sum_i eps_i * (tau - eps_i)+ = 2 r^2/sigma^2 (at most the largest epsilon if nobody is
                public). Quantiles: density prop. to exp(-score/2), score(r) = max(W(<r) - qW, qW - W(<=r))
                at weights min(eps_i, tau)/r, right side 8 r^2/(q(1-q)), with r = max(q, 1-q) where a person may be
                absent and 1 where one is replaced.
    Theorem:    one weighted sum with w_i <= s*eps_i and noise of scale s*r is eps_i-PDP for everyone; the weights
                minimise sigma^2 sum w_i^2 + 2 (r max w_i/eps_i)^2 (docs/theory.md). The affine estimator of Fallah et
                al. 2022, Cummings et al. 2022, Chaudhuri and Courtade 2023; public people and quantiles are ours.
    Guarantee:  eps_i-PDP, one person absent or replaced, as asked.
    Cost:       min(eps_i, tau) charged to each person: those above the cap really get the cap's privacy.
    Error:      sigma^2 (sum w_i^2 - 1/n) against the roster's own mean, and the noise; assumes that preferences say
                nothing about values. sigma is a public guess and steers the weights, never the guarantee.
    """

    name: ClassVar[str] = "weighted"

    def refuses(self, question: Question, levels: Levels) -> str | None:
        if question.statistic.family == "order" and not cast(Order, question.statistic).between_ends:
            return "a weighted quantile lies strictly between 0 and 1"
        return super().refuses(question, levels)

    def weigh(self, question: Question, levels: Levels) -> Weighting:
        if isinstance(levels, Strata):
            return calibrate(question, levels)
        cap = saturation(levels, question.statistic.noise_to_spread(question))
        if question.assume > 0 or question.statistic.labels:  # whose error no formula makes least
            cap = best_cap(question, levels, cap)
        return proportional(levels, cap, Rest.RESCALED)

    def explain(self, question: Question, levels: Levels) -> str:
        cap = question.tell_loss(weighting_of(self, question, levels).rate)
        groups = ", each public group as it has people" if isinstance(levels, Strata) else ""
        return f"everyone by their epsilon, up to {cap}{groups}; one noise"

    def condition(self, question: Question, levels: Levels, answer: Answer | None = None) -> str:
        told = super().condition(question, levels, answer)
        return told.replace("everyone's", "everyone's in the same public group") if isinstance(levels, Strata) else told


def saturation(levels: Levels, right_side: float) -> int:
    """The cap tau in nano-epsilon: the root of sum_i e_i (tau - e_i)+ = right_side.

    The left side is piecewise linear and grows with tau, so one pass over the sorted levels finds the root. Without
    public people a root beyond the largest epsilon caps nobody, so that epsilon is taken. With them it matters: tau is
    the weight of public people, who limit no noise, and the best weight may well lie above every finite epsilon.
    """
    goal = Fraction(right_side) * NANO * NANO
    slope, offset = 0, 0
    for grant, size in zip(levels.finite, levels.sizes, strict=False):  # public people come last
        if slope and slope * grant - offset >= goal:
            break
        slope, offset = slope + grant * size, offset + grant * grant * size
    root = max(levels.smallest, math.floor((goal + offset) / slope))
    return min(root, LARGEST_EPSILON * NANO if None in levels.grants else levels.largest)


def best_cap(question: Question, levels: Levels, unrelated: int) -> int:
    """The cap tau in nano-epsilon of least predicted error where levels may differ: the lower, the less it matters.

    For a given noise the best weights are min(s*e_i, kappa), whatever the relation (docs/theory.md, "related"), so that
    one number is looked for: first among the levels and between them, then ever nearer to the best.
    """
    granted = np.array([np.inf if grant is None else float(grant) for grant in levels.grants])
    low, high = levels.smallest, LARGEST_EPSILON * NANO if None in levels.grants else levels.largest
    every = max(1, len(levels.finite) // _TRIED)
    caps = np.unique([unrelated, low, high, *levels.finite[::every], *np.geomspace(low, high, _TRIED)])
    accuracy = FAMILIES[question.statistic.family]
    for _ in range(3):
        tried = Weightings(np.minimum(1.0, granted / caps[:, None]), caps, FINE, Rest.RESCALED)
        best = int(accuracy.objective(question, levels, tried).argmin())
        found, ends = caps[best], (caps[max(best - 1, 0)], caps[min(best + 1, len(caps) - 1)])
        caps = np.unique([found, *np.geomspace(*ends, 9)])
    return min(max(int(found), low), high)


def quantile_pmf(
    values: Any, epsilons: Any, q: float, *, bounds: tuple[float, float], step: float | None = None
) -> tuple[Floats, Floats]:
    """Every grid point and its exact probability of being released as the weighted quantile.

    >>> outcomes, probabilities = quantile_pmf([3, 5, 6, 9, 11], [.1, 1, 1, .5, 1], .5, bounds=(1, 12), step=1)
    >>> int(outcomes[probabilities.argmax()])
    6
    """
    people, statistic, mechanism = ArrayPeople.of(values, roster_of(epsilons)), quantile(q, bounds, step), Weighted()
    question = Question(statistic)
    if (refusal := mechanism.refuses(question, people.levels)) is not None:
        raise refuse("q", q, f"{refusal.capitalize()}.", Argument("q", 0.5))
    weighting = weighting_of(mechanism, question, people.levels)
    return fill_outcomes(statistic.sampler(question, weighting, people.cells(statistic)), statistic.outcomes())
