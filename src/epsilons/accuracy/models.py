"""How far a model errs and how good it is, before it is fitted and after.

Before: from public facts and two stated guesses, that slopes have the usual size (`noisy_loss.WEIGHT_SQUARE`) and that
targets stray from the exact model by `spread`. After: by the noisy sums themselves.
"""

import math
from dataclasses import replace
from typing import Any, ClassVar, cast

from epsilons.accuracy.additive import Effect, Errors, SumAccuracy
from epsilons.preferences import Levels
from epsilons.statistics.base import Answer, Floats, Question, Weighting
from epsilons.statistics.moments import Moments
from epsilons.statistics.noisy_loss import INTERCEPT_SQUARE, WEIGHT_SQUARE
from epsilons.statistics.regression import MEAN_SQUARE, LinearRegression, Regression
from epsilons.summaries.models import MODEL_STEPS


class ModelAccuracy(SumAccuracy):
    """Of models: the root mean square between predictions and those of the exact model.

    A model is of those who count: noise weighs the more the fewer they are, and so does who of them has which weight.
    """

    worst_after: ClassVar[bool] = True

    def expected_errors(self, question: Question, effect: Effect, moments: Moments) -> Floats:
        return super().expected_errors(question, effect, replace(moments, variance=moments.variance / _part(effect)))

    def worst_before(self, effect: Effect) -> Any:
        return super().worst_before(effect) / _part(effect) ** 2

    def noise(self, effect: Effect, moments: Moments) -> Any:
        return super().noise(effect, moments) / _part(effect) ** 2

    def stated_error(
        self, question: Question, levels: Levels, weighting: Weighting, answer: Answer, predicted: Errors
    ) -> Errors:
        """What is not noise as before, with the relation's part; the noise by the sums that are out. None of nobody."""
        statistic, effect = cast(Regression, question.statistic), Effect.of(question, levels, weighting)
        assert answer.sums is not None
        loss = statistic.loss(question, answer.sums, weighting, levels)
        if not loss.somebody:
            return None
        moments = statistic.strayed(question, loss)
        nothing = math.isinf(question.assume)
        expected = float(
            self.worst_errors(question, effect) if nothing else self.expected_errors(question, effect, moments)
        )
        before = max(expected**2 - float(self.noise(effect, moments)), 0.0)
        return min(math.sqrt(before + statistic.prediction_error(loss)), statistic.max_error)

    def expectations(self, question: Question, levels: Levels, weighting: Weighting) -> dict[str, Any]:
        """R2, or the accuracy, that a model of this many people is expected to have, and that of an exact one."""
        statistic, effect = cast(Regression, question.statistic), Effect.of(question, levels, weighting)
        if not statistic.predicts:
            return {}
        features, scale = statistic.width - 1, float(effect.scales[0]) / MODEL_STEPS**2 / _part(effect)
        vector = 2 * (scale / (2 * statistic.kappa)) ** 2
        noise = (vector + 2 * (scale / 2) ** 2 * features * WEIGHT_SQUARE) / MEAN_SQUARE
        signal = MEAN_SQUARE * WEIGHT_SQUARE
        linear = isinstance(statistic, LinearRegression)
        stray = statistic.guess(question).variance / statistic.width / statistic.unit**2 if linear else 1.0
        # The intercept shrinks, too (`NoisyLoss.minimise`): it is never further off than one of which nothing is known.
        mean_off = vector * INTERCEPT_SQUARE / (INTERCEPT_SQUARE + vector)
        explained = features * signal / (1 + noise / signal) - mean_off
        total = features * signal + (stray if linear else 1.0 - features * signal)
        found, exact = explained / total, features * signal / total
        if linear:
            return {"r2": found, "r2_exact": exact}
        return {"accuracy": _tells(found), "accuracy_exact": _tells(exact)}


def _part(effect: Effect) -> float:
    """The part of people who are expected to count."""
    scope = effect.facts.statistic.scope
    return 1.0 if scope is None else scope.fraction


def _tells(r2: float) -> float:
    """The part of people whose class a normal score tells, of two classes of the same size."""
    r2 = min(max(r2, 0.0), 0.99)
    return (1 + math.erf(math.sqrt(r2 / (1 - r2) / 2))) / 2
