"""How far a variance errs: it bends with its noise, and is cut off at 0 and at h^2.

A variance is h^2 (m2 - m1^2), made of two noisy means. The farther the mean lies from the centre of the bounds, the
more the noise of m1 matters (2 |m1| times itself), and where noise is large its square does too; near the ends the
answer is cut off. So the answer itself is computed at evenly spread noises, around what is publicly expected of the
values.
"""

import math
from fractions import Fraction
from functools import cache
from typing import Any, cast

import numpy as np

from epsilons.accuracy.additive import Effect, Errors, SumAccuracy, laplace_quantile
from epsilons.accuracy.intervals import normal_quantile
from epsilons.preferences import Levels
from epsilons.statistics.additive import Moments
from epsilons.statistics.base import Answer, Floats, Question, Weighting
from epsilons.statistics.variance import Variance
from epsilons.summaries.arrays import STEPS

_NODES = 2048
#: Distances of the mean from the centre, in units of h, among which the worst is looked for.
_MEANS = (0.0, 0.25, 0.5, 0.75, 0.9, 0.97, 0.99)


class VarianceAccuracy(SumAccuracy):
    """Of variances, over everyone or over a private number of rows; without error bars, since they bend."""

    def expected_errors(self, question: Question, effect: Effect, moments: Moments) -> Floats:
        statistic, square = cast(Variance, question.statistic), effect.facts.max_error
        first = moments.off / math.sqrt(square)
        true = min(moments.mean / square, 1 - first**2)
        # Squares that differ from level to level, and through the mean that they are taken around.
        bias = question.assume * np.asarray(effect.drift) * math.sqrt(moments.variance) / square
        # Who has which weight, and coins: normal, and small enough to be added as they are.
        uneven = (effect.multipliers - 1) ** 2 @ effect.sizes + effect.left_out
        each = moments.variance / square**2
        # A person whom a coin leaves out takes away u^2 - 1/2 - 2 m1 u = (u - m1)^2 - m1^2 - 1/2, and if their rows
        # leave the number of rows as well, (u - m1)^2 less its mean.
        coin = each if statistic.private_count else each + (true - first**2 - 0.5) ** 2
        varied = each * uneven / effect.people**2 + coin * _coins(effect)
        noise = _errors(effect, statistic, first, true, varied)
        return square * np.minimum(np.hypot(bias, noise), 1.0)

    def worst_errors(self, question: Question, effect: Effect) -> Floats:
        """Weights and people are two laws on the values, a distance T apart in total variation.

        With everybody at one bound but for the T that only one of the laws sees, at the other, their variances differ
        by 4T(1-T) h^2, and by h^2 from T=1/2 on.
        """
        statistic, weight = cast(Variance, question.statistic), effect.multipliers * effect.sizes
        shares = weight / np.maximum(weight.sum(axis=-1, keepdims=True), 1e-300)
        apart = np.minimum(np.maximum(shares - effect.sizes / effect.people, 0.0).sum(axis=-1), 0.5)
        # The largest mean square of what a coin takes away: everyone at a bound; filtered, an eighth p(1-p) at one.
        coin = 2.25 if statistic.scope is None else 1 / max(statistic.scope.fraction, 1e-9)
        varied = coin * _coins(effect)
        places = [(first, part * (1 - first**2)) for first in _MEANS for part in (0.0, 0.5, 1.0)]
        noise = np.max([_errors(effect, statistic, first, true, varied) for first, true in places], axis=0)
        return cast(Floats, statistic.max_error * np.minimum(np.hypot(4 * apart * (1 - apart), noise), 1.0))

    def stated_error(
        self, question: Question, levels: Levels, weighting: Weighting, answer: Answer, predicted: Errors
    ) -> Errors:
        """The error of variances that are out, at the mean and the spread that their own noisy sums show.

        Whatever the caller guessed is kept. A variance that looks smaller than its error is taken to be as large as
        that: a few noises that happen to cancel must not make the error collapse.
        """
        if math.isinf(question.assume):
            return predicted
        statistic, effect = cast(Variance, question.statistic), Effect.of(question, levels, weighting)
        assert answer.sums is not None
        low, high = statistic.bounds
        half, square = (high - low) / 2, statistic.max_error
        weight, found = statistic.weight_behind(weighting, levels), []
        for first, second, *rows in zip(*answer.sums, strict=True):
            count = max(rows[0], Fraction(1)) if rows else weight
            mean = min(max(float(first / STEPS / count), -1.0), 1.0)
            seen = square * min(max(float(second / STEPS / count) + 0.5 - mean**2, 0.0), 1.0)
            where = (low + high) / 2 + half * mean if question.location is None else question.location
            moments = statistic.moments(question.spread, question.density, where)
            error = float(self.expected_errors(question, effect, moments))
            if question.spread is None:
                moments = statistic.moments(math.sqrt(max(seen, error)), question.density, where)
                error = float(self.expected_errors(question, effect, moments))
            found.append(error)
        errors = iter(found)
        return answer.each(lambda _: next(errors))


def _coins(effect: Effect) -> Any:
    """The variance of a mean over people when each person's part is 1 and coins leave people out."""
    return (effect.factor / effect.people) ** 2 * effect.coin_spread if effect.sampled else 0.0


def _errors(effect: Effect, statistic: Variance, first: float, true: float, varied: Any) -> Floats:
    """RMSE in units of h^2 where the mean lies `first` from the centre and the variance is `true`, in units of h."""
    noises, luck = _nodes()
    scales = [np.asarray(scale)[..., None] for scale in effect.scales]
    mean_off, squares_off = (scale / STEPS * noise for scale, noise in zip(scales[:2], noises[:2], strict=True))
    if statistic.scope is not None:
        # Sums and the number of rows are weighted alike, so that weights matter to the noise alone.
        expected = effect.facts.expected_rows
        one_row = np.asarray(effect.factor)[..., None] / effect.people / expected
        rows = np.maximum(1 + scales[2] / expected * noises[2], one_row)
        mean = (first + mean_off / expected) / rows
        squares = (true + first**2 - 0.5 + squares_off / expected) / rows + 0.5
    else:
        reached = ((effect.multipliers @ effect.sizes) / effect.people)[..., None]
        mean = reached * first + mean_off
        squares = reached * (true + first**2 - 0.5) + 0.5 + squares_off
    answers = np.clip(squares - mean**2 + np.sqrt(varied)[..., None] * luck, 0.0, 1.0)
    return cast(Floats, np.sqrt(((answers - true) ** 2).mean(axis=-1)))


@cache
def _nodes() -> tuple[Floats, Floats]:
    """(three Laplace noises of scale 1, a standard normal one): evenly spread points of their joint law.

    The points are the multiples, modulo one, of powers of 1/x with x^5 = x + 1: they fill four dimensions evenly.
    """
    root = 1.0
    for _ in range(60):
        root = (1 + root) ** (1 / 5)
    places = (0.5 + np.outer(root ** -np.arange(1.0, 5.0), np.arange(1, _NODES + 1))) % 1
    places = np.clip(places, 1e-12, 1 - 1e-12)
    return laplace_quantile(places[:3]), np.array([normal_quantile(place) for place in places[3]])
