"""How far a choice falls short: how many rows, or how much of a total, the best option may have more, on average.

An exponential mechanism over K options whose chances are proportional to exp(u V) has max V - E[V] <= ln(K)/u: the
entropy of the draw over u (McSherry and Talwar 2007). That is of weighted voices V. What weights, coins and people who
are left out do to the voices of two options, the best one and the one drawn, comes on top: by luck at most
sqrt(2 ln 2K) standard errors for the worst of K options, and by what is assumed of the levels.
"""

import math
from dataclasses import replace
from typing import Any, cast

import numpy as np

from epsilons.accuracy.additive import Accuracy, Effect, Errors, uneven
from epsilons.accuracy.weightings import Weightings
from epsilons.guarantee import NANO
from epsilons.preferences import Levels
from epsilons.statistics.base import Answer, Floats, Question, Rest, Weighting
from epsilons.statistics.choice import Mode


class ChoiceAccuracy(Accuracy):
    """Of options by weighted voices."""

    def predict_error(self, question: Question, levels: Levels, weighting: Weighting) -> float | None:
        return float(self.predict_errors(question, levels, weighting)) if weighting.used(levels) else None

    def predict_errors(self, question: Question, levels: Levels, weightings: Weighting | Weightings) -> Floats:
        return self._errors(question, levels, weightings, question.assume)

    def worst_error(self, question: Question, levels: Levels, weighting: Weighting) -> float | None:
        return float(self._errors(question, levels, weighting, math.inf)) if weighting.used(levels) else None

    def stated_error(
        self, question: Question, levels: Levels, weighting: Weighting, answer: Answer, predicted: Errors
    ) -> Errors:
        """An option shows nothing of how many name it."""
        return answer.each(lambda option: predicted)

    def _errors(self, question: Question, levels: Levels, weightings: Any, assume: float) -> Floats:
        statistic = cast(Mode, question.statistic)
        # Which option is best does not change if all are multiplied: as if they were made up for what is left out.
        effect = Effect.of(question, levels, replace(weightings, rest=Rest.RESCALED, effects={}))
        short, moments = best_excess(question, np.asarray(weightings.rate, float) / NANO), effect.facts.moments
        worst = 2 * np.sqrt(effect.worst_bias**2 + effect.worst_coins())
        if math.isfinite(assume):
            spread, gaps = math.sqrt(moments.variance), effect.multipliers - 1
            luck = spread * np.sqrt(gaps**2 @ effect.sizes + effect.left_out) + np.sqrt(effect.coins(moments))
            far = assume * spread * uneven(effect.multipliers, effect.sizes, effect.left_out)
            worst = np.minimum(worst, 2 * (far + math.sqrt(2 * math.log(2 * statistic.bins)) * luck))
        low, high = statistic.extremes
        return cast(Floats, np.minimum(effect.factor * short + worst, levels.size * (high - low)))


def best_excess(question: Question, epsilon: Any) -> Any:
    """How many voices the best option may have more on average, in the units of errors, if weight one costs so much."""
    statistic = cast(Mode, question.statistic)
    reach = statistic.reach(question.neighbors) / statistic.row_reach * statistic.worth
    return math.log(statistic.bins) * reach / (float(statistic.portion(question)) * epsilon)
