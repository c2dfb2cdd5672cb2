"""How far a variance errs: it bends with its noise, and is cut off at 0 and at h^2.

A variance is h^2 (m2 - m1^2), made of two noisy means. The farther the mean lies from the centre of the bounds, the
more the noise of m1 matters (2 |m1| times itself), and where noise is large its square does too; near the ends the
answer is cut off. So the answer itself is computed at evenly spread noises: before an answer around what is publicly
expected of the values, after it around what its own noisy sums show. How the squares of values vary follows from a beta
law with that mean and spread; intervals allow for whatever the bounds allow.
"""

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar, cast

import numpy as np

from epsilons.accuracy.additive import Bars, Effect, Errors, SumAccuracy, bend
from epsilons.accuracy.gaussian import mean_between, normal_noises
from epsilons.accuracy.intervals import ErrorBar, laplace_quantile, normal_quantile
from epsilons.accuracy.ratio import CERTAIN, find_least_weight
from epsilons.preferences import Levels
from epsilons.statistics.additive import laplace_between
from epsilons.statistics.base import Answer, Floats, Question, Weighting
from epsilons.statistics.moments import Moments
from epsilons.statistics.variance import SQUARE, Variance
from epsilons.summaries.arrays import STEPS

_NODES = 2048
#: Distances of the mean from the centre, in units of h, among which the worst is looked for.
_MEANS = (0.0, 0.25, 0.5, 0.75, 0.9, 0.97, 0.99)
_SQUARE = float(SQUARE)


class VarianceAccuracy(SumAccuracy):
    """Of variances, over everyone or over a private number of rows."""

    worst_after: ClassVar[bool] = True

    def expected_errors(self, question: Question, effect: Effect, moments: Moments) -> Floats:
        square = effect.facts.max_error
        first = moments.off / math.sqrt(square)
        true = min(moments.mean / square, 1 - first**2)
        far = question.assume * np.asarray(effect.drift)
        told = far * math.sqrt(effect.facts.moments.variance) / square
        bias = np.minimum(told, _possible(question, effect, moments, true)) + bend(effect.facts, far) / square
        varied = _varied(effect, moments.variance, first, true)
        noise = _errors(effect, first, true, varied, moments.rows)
        return cast(Floats, square * np.minimum(np.hypot(bias, noise), 1.0))

    def worst_errors(self, question: Question, effect: Effect) -> Floats:
        """Weights and people are two laws on the values, a distance T apart in total variation.

        With everybody at one bound but for the T that only one of the laws sees, at the other, their variances differ
        by 4T(1-T) h^2, and by h^2 from T=1/2 on. Among rows that count T may be (1 - sqrt(k))/(1 + sqrt(k)), where k is
        the least weight over the largest.
        """
        statistic, rows = cast(Variance, question.statistic), effect.facts.moments.rows
        # The largest mean square of what a coin takes away: everyone at a bound; filtered, an eighth p(1-p) at one.
        coin = (1 + _SQUARE) ** 2 if statistic.scope is None else 1 / max(statistic.scope.fraction, 1e-9)
        varied = coin * _coins(effect)
        places = [(first, part * (1 - first**2)) for first in _MEANS for part in (0.0, 0.5, 1.0)]
        noise = np.max([_errors(effect, first, true, varied, rows) for first, true in places], axis=0)
        return cast(Floats, statistic.max_error * np.minimum(np.hypot(_apart(effect), noise), 1.0))

    def stated_error(
        self, question: Question, levels: Levels, weighting: Weighting, answer: Answer, predicted: Errors
    ) -> Errors:
        """The error of variances that are out, at the mean, the spread and the rows that their own noisy sums show.

        Whatever the caller guessed is kept. A variance that looks smaller than its error is taken to be as large as
        that: a few noises that happen to cancel must not make the error collapse. Where nobody may count there is no
        error to state, or, if nothing is assumed, the largest that is possible.
        """
        effect, nothing = Effect.of(question, levels, weighting), math.isinf(question.assume)
        if nothing and effect.facts.statistic.scope is None:
            return predicted
        found: list[float | None] = []
        for mean, spread, rows in _each(effect, answer):
            if rows < CERTAIN * _rows_noise(effect):
                found.append(effect.facts.max_error if nothing else None)
            elif nothing:
                noise = _errors(effect, abs(mean), spread, _coins(effect) / rows, rows)
                found.append(effect.facts.max_error * min(math.hypot(float(_apart(effect)), float(noise)), 1.0))
            else:
                found.append(self._stated(question, effect, mean, spread, rows))
        errors = iter(found)
        return answer.each(lambda _: next(errors))

    def _stated(self, question: Question, effect: Effect, mean: float, spread: float, rows: float) -> float:
        mean, spread = _likely(effect, mean, spread, rows)
        moments = _seen(question, effect, mean, spread, rows)
        error = float(self.expected_errors(question, effect, moments))
        if question.spread is not None or error <= spread * effect.facts.max_error:
            return error
        moments = _seen(question, effect, mean, error / effect.facts.max_error, rows)
        return max(error, float(self.expected_errors(question, effect, moments)))

    def error_bars(self, question: Question, levels: Levels, weighting: Weighting, answer: Answer) -> Bars:
        """Around what the noisy sums show; if nothing is assumed, with whatever weights that differ can do."""
        effect, nothing, bars = Effect.of(question, levels, weighting), math.isinf(question.assume), []
        square, noise = effect.facts.max_error, _rows_noise(effect)
        slope = 1 if effect.facts.statistic.scope is not None else effect.undone[0]
        scales = tuple(float(scale) * slope / STEPS for scale in effect.scales)
        for mean, spread, rows in _each(effect, answer):
            enough = max(rows, noise)
            spread_seen = max(spread, math.sqrt(2) * sum(scales) / enough)
            seen = _seen(question, effect, mean, spread_seen, enough + noise)
            bound = float(_apart(effect)) * square
            if not nothing:
                far = question.assume * float(effect.drift) * slope
                bound = min(far * _related(effect, seen) + bend(effect.facts, far), bound)
                # Those who weigh little may spread so much more than the answer shows, and so does their luck.
                seen = _seen(question, effect, mean, spread_seen + bound / square, enough + noise)
            luck = math.sqrt(_varied(effect, seen.most, abs(mean), spread))
            if rows < CERTAIN * noise:
                bound = square
            population = math.sqrt(seen.most / effect.people)
            sums = (mean * enough, (spread + mean**2) * enough, rows)
            one_row = float(effect.factor) / effect.people if effect.facts.statistic.scope is not None else 0.0
            luck = 0.0 if nothing and not effect.sampled else luck * square * slope
            kind = GaussianVarianceBar if effect.gaussian else VarianceBar
            bars.append(kind(square, sums, scales, luck, population, bound, one_row))
        return tuple(bars)


@dataclass(frozen=True)
class VarianceBar(ErrorBar):
    """Of a variance from noisy sums of u, of u^2 and of rows (or a public number of them), per person.

    The sums less their noises give the variance, whatever it is: the interval holds what all but the outermost of the
    possible noises give, with luck of a standard deviation of `luck`, that of who is on the roster at all, and a
    `bound` on what else is unknown; `square` is the largest variance there is. Where noises leave less than `one_row`,
    nothing is known.
    """

    square: float
    sums: tuple[float, ...]
    scales: tuple[float, ...]
    luck: float
    population: float
    bound: float
    one_row: float
    gaussian: ClassVar[bool] = False

    def interval(self, value: float, confidence: float, population: bool) -> tuple[float, float]:
        """Every variance that the noisy sums do not contradict."""
        noises, luck = _nodes(self.gaussian)
        first, squares, *rest = (scale * noise for scale, noise in zip(self.scales, noises, strict=False))
        rows = self.sums[2] - (squares + rest[0] if rest else 0.0)
        count = np.maximum(rows, max(self.one_row, 1e-300))
        mean = np.clip((self.sums[0] - first) / count, -1.0, 1.0)
        found = self.square * ((self.sums[1] - squares) / count - mean**2)
        found = found + (math.hypot(self.luck, self.population) if population else self.luck) * luck
        unknown = np.broadcast_to(rows <= self.one_row, found.shape) if rest else np.zeros(found.shape, np.bool_)
        outer = (1 - confidence) / 2
        low = np.quantile(np.where(unknown, 0.0, found), outer) - self.bound
        high = np.quantile(np.where(unknown, self.square, found), 1 - outer) + self.bound
        return float(min(max(low, 0.0), self.square)), float(min(max(high, 0.0), self.square))


@dataclass(frozen=True)
class GaussianVarianceBar(VarianceBar):
    """The same of sums with Gaussian noise."""

    gaussian: ClassVar[bool] = True


def _each(effect: Effect, answer: Answer) -> list[tuple[float, float, float]]:
    """(m1, m2 - m1^2, rows per person) of each group, as its noisy sums show them: of the weight that is there."""
    statistic, weight = cast(Variance, effect.facts.statistic), float(effect.fractions @ effect.sizes)
    assert answer.sums is not None
    found = []
    for group in zip(*answer.sums, strict=True):
        mean, squares, rows = map(float, statistic.means(group, weight))
        mean = min(max(mean, -1.0), 1.0)
        found.append((mean, min(max(squares - mean**2, 0.0), 1 - mean**2), rows / weight))
    return found


def _likely(effect: Effect, mean: float, spread: float, rows: float) -> tuple[float, float]:
    """(m1, m2 - m1^2) to expect where every possible one was as likely before their noises were seen.

    Noise that is as large as the bounds are wide shows a mean at a bound, and so no spread at all.
    """
    between = mean_between if effect.gaussian else laplace_between
    first, squares, *rest = (float(scale) / STEPS / rows for scale in effect.scales)
    likely = mean + between(first, 1 + mean, 1 - mean)
    room, off = 1 - likely**2, math.hypot(squares, *rest, 2 * likely * first, first**2)
    spread = min(spread, room)
    return likely, spread + between(off, spread, room - spread) if room > 0 else 0.0


def _seen(question: Question, effect: Effect, mean: float, spread: float, rows: float) -> Moments:
    """What is known of a person's square, at what was seen unless the caller guessed it."""
    statistic = cast(Variance, effect.facts.statistic)
    half, (low, high) = math.sqrt(statistic.max_error), statistic.bounds
    off = (
        half * abs(mean)
        if question.location is None
        else abs(min(max(question.location, low), high) - sum(statistic.bounds) / 2)
    )
    deviation = half * math.sqrt(spread) if question.spread is None else question.spread
    return replace(statistic.shaped(deviation, off, rows), seen=question.spread is None)


def _related(effect: Effect, moments: Moments) -> float:
    """The spread in which the assumption counts how far levels differ: as guessed, or more if more was seen.

    Never less: what was seen may be that of the one level that weighs most.
    """
    guess = effect.facts.moments
    return math.sqrt(max(moments.variance, guess.variance * guess.rows / moments.rows))


def _rows_noise(effect: Effect) -> float:
    """The standard deviation of the noise in the number of rows per person: none where that number is public."""
    if effect.facts.statistic.scope is None:
        return 0.0
    return math.sqrt(2) * math.hypot(*(float(scale) for scale in effect.scales[1:])) / STEPS


def _possible(question: Question, effect: Effect, moments: Moments, true: float) -> Any:
    """How far an answer may be off, in units of h^2, since no level's squares are below zero.

    At most the heaviest people have all of them, or none. Where nothing but an answer v tells how large they are,
    those who weigh less than others may have some that it does not show: of a part L of the people's weight that is
    not there, each up to the true variance t and as much as is told more. Then t - v <= L (t + told).
    """
    heaviest = effect.multipliers.max(axis=-1)
    if not moments.seen:
        return true * np.maximum(heaviest - 1, 1.0)
    told = question.assume * math.sqrt(effect.facts.moments.variance) / effect.facts.max_error
    less = np.maximum(1 - effect.multipliers, 0.0) @ effect.sizes + effect.left_out
    left = np.minimum(less / effect.people, 1 - 1e-9)
    hidden = left * (true + told) / (1 - left)
    return np.maximum(true * (1 - 1 / np.maximum(heaviest, 1.0)), hidden)


def _apart(effect: Effect) -> Any:
    """How far apart the variances of all and of those who weigh can be, in units of h^2."""
    if effect.facts.statistic.scope is None:
        weight = effect.multipliers * effect.sizes
        shares = weight / np.maximum(weight.sum(axis=-1, keepdims=True), 1e-300)
        apart = np.maximum(shares - effect.sizes / effect.people, 0.0).sum(axis=-1)
    else:
        least = np.sqrt(find_least_weight(effect))
        apart = (1 - least) / (1 + least)
    apart = np.minimum(apart, 0.5)
    return 4 * apart * (1 - apart)


def _coins(effect: Effect) -> Any:
    """The variance of a mean over people when each person's part is 1 and coins leave people out."""
    return (effect.factor / effect.people) ** 2 * effect.coin_spread if effect.sampled else 0.0


def _varied(effect: Effect, variance: float, first: float, true: float) -> Any:
    """What comes from who has which weight, and from coins, in units of h^4: normal, and added as it is."""
    uneven = (effect.multipliers - 1) ** 2 @ effect.sizes + effect.left_out
    each = variance / effect.facts.max_error**2
    # A person whom a coin leaves out takes away u^2 - s - 2 m1 u = (u - m1)^2 - m1^2 - s, and if their rows leave the
    # number of rows as well, (u - m1)^2 less its mean.
    coin = each if effect.facts.statistic.scope is not None else each + (true - first**2 - _SQUARE) ** 2
    return each * uneven / effect.people**2 + coin * _coins(effect)


def _errors(effect: Effect, first: float, true: float, varied: Any, expected: float) -> Floats:
    """RMSE in units of h^2 where the mean lies `first` from the centre and the variance is `true`, in units of h."""
    noises, luck = _nodes(effect.gaussian)
    scales = [np.asarray(scale)[..., None] / STEPS for scale in effect.scales]
    mean_off, squares_off, *rest = (scale * noise for scale, noise in zip(scales, noises, strict=False))
    if rest:
        # Sums and the number of rows are weighted alike, so that weights matter to the noise alone.
        one_row = np.asarray(effect.factor)[..., None] / effect.people
        rows = np.maximum(expected + squares_off + rest[0], one_row)
        mean = (expected * first + mean_off) / rows
        squares = (expected * (true + first**2) + squares_off) / rows
    else:
        reached = ((effect.multipliers @ effect.sizes) / effect.people)[..., None]
        mean = reached * first + mean_off
        squares = reached * (true + first**2 - _SQUARE) + _SQUARE + squares_off
    answers = np.clip(squares - mean**2 + np.sqrt(varied)[..., None] * luck, 0.0, 1.0)
    return cast(Floats, np.sqrt(((answers - true) ** 2).mean(axis=-1)))


@cache
def _nodes(gaussian: bool) -> tuple[Floats, Floats]:
    """(three noises of scale 1, a standard normal one): evenly spread points of their joint law.

    The points are the multiples, modulo one, of powers of 1/x with x^5 = x + 1: they fill four dimensions evenly.
    """
    root = 1.0
    for _ in range(60):
        root = (1 + root) ** (1 / 5)
    places = (0.5 + np.outer(root ** -np.arange(1.0, 5.0), np.arange(1, _NODES + 1))) % 1
    places = np.clip(places, 1e-12, 1 - 1e-12)
    noises = normal_noises(places[:3]) if gaussian else laplace_quantile(places[:3])
    return noises, np.array([normal_quantile(place) for place in places[3]])
