"""How far an additive answer errs: bias, the luck of who chose which level, a sample's coins, and the noise.

All of it follows from public facts: what fraction of each person's contribution reaches the answer, what is put in
place of the rest, and what is publicly expected of a contribution (`Moments`). Floats are good enough here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from epsilons.accuracy.base import Accuracy
from epsilons.accuracy.intervals import ErrorBar, ErrorModel
from epsilons.guarantee import NANO
from epsilons.preferences import Levels
from epsilons.statistics.additive import Additive, Moments
from epsilons.statistics.base import Answer
from epsilons.statistics.question import Question
from epsilons.statistics.weighting import Expected, Rest, Weighting, equivalent_scale

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Effect:
    """What a weighting does to everybody's contribution, on the scale of the answer's total over people.

    `fractions` is the expected weight of a person, level by level; `sampled` says that weights are coins. The weighted
    sum is multiplied by `factor`. `base` stands for what weights leave out. `laplace` are the scales of the noise in
    the finished answer, `scales` those of each part in its own integers, per person's worth of weight. Several effects
    at once are rows of `fractions`, with an array in place of each other number.
    """

    fractions: Floats
    factor: Any
    laplace: tuple[Any, ...]
    scales: tuple[Any, ...]
    sampled: bool
    rest: Rest

    @property
    def multipliers(self) -> Floats:
        """How much of a person's contribution reaches the answer, level by level."""
        return np.asarray(self.factor)[..., None] * self.fractions

    @classmethod
    def of(cls, question: Question, statistic: Additive, levels: Levels, expected: Expected) -> Effect:
        """Of a weighting; of several at once where they come in rows."""
        fractions, rate = expected.fractions, expected.rate
        factor: Any = 1.0 + 0.0 * rate
        if statistic.makes_up_for(expected.rest):
            factor = levels.people / np.maximum(fractions @ np.array(levels.sizes, float), 1e-300)
        per_person = factor / statistic.divisor(levels.people)
        laplace, scales = [], []
        for part, unit in zip(statistic.parts, statistic.units, strict=True):
            inverse = float(part.share) * rate / (NANO * part.reach[question.neighbors] * expected.one)
            scales.append(per_person * equivalent_scale(inverse) / expected.one)
            laplace.append(unit * scales[-1])
        return cls(fractions, factor, tuple(laplace), tuple(scales), expected.sampled, expected.rest)


class LinearAccuracy(Accuracy):
    """Of answers that are linear in one noisy vector: counts, histograms, sums, means."""

    def predict_many(self, question: Question, levels: Levels, expected: Expected) -> Floats:
        statistic = cast(Additive, question.statistic)
        effect = Effect.of(question, statistic, levels, expected)
        return self.expected_errors(effect, statistic, levels, statistic.guess(question))

    def expected_errors(self, effect: Effect, statistic: Additive, levels: Levels, moments: Moments) -> Floats:
        """RMSE against the roster's own statistic if preferences and values are unrelated and the guesses hold."""
        sizes = np.array(levels.sizes, float)
        gaps = effect.multipliers - 1
        offset = (moments.mean - _base(effect, statistic)) ** 2 + moments.location**2
        bias = offset * (gaps @ sizes - levels.left_out) ** 2
        luck = moments.variance * (gaps**2 @ sizes + levels.left_out)
        divisor = statistic.divisor(levels.people)
        before = (bias + luck) / divisor**2 + _coins(effect, statistic, levels, moments)
        errors: Floats = np.minimum(np.sqrt(before + self.noise(effect, statistic)), statistic.max_error)
        return errors

    def worst(self, question: Question, levels: Levels, weighting: Weighting) -> float | None:
        statistic = cast(Additive, question.statistic)
        effect = Effect.of(question, statistic, levels, weighting.expected)
        coins = _coins(effect, statistic, levels, _farthest(statistic))
        worst = math.sqrt(worst_bias(effect, statistic, levels) ** 2 + coins + float(self.noise(effect, statistic)))
        return min(worst, statistic.max_error)

    def noise(self, effect: Effect, statistic: Additive) -> Any:
        """The mean square of the noise in an answer, of independent Laplace noises: two squared scales each."""
        return sum(2 * scale**2 for scale in effect.laplace)

    def bars(
        self, question: Question, levels: Levels, weighting: Weighting, answer: Answer
    ) -> tuple[ErrorBar, ...] | None:
        statistic = cast(Additive, question.statistic)
        effect = Effect.of(question, statistic, levels, weighting.expected)
        before = _error_model(question, statistic, levels, effect, statistic.guess(question))
        values = answer.value.values() if isinstance(answer.value, dict) else [answer.value]
        return tuple(
            _error_model(question, statistic, levels, effect, seen_moments(question, number, before, levels.people))
            for number in values
        )


def seen_moments(question: Question, number: float, bar: ErrorModel, people: int) -> Moments:
    """What a released number says about one person's contribution, by its first error bar."""
    statistic = cast(Additive, question.statistic)
    mean = number * bar.slope + bar.shift
    mean = mean / (people / statistic.divisor(people))
    doubt = math.hypot(bar.normal, *(math.sqrt(2) * scale for scale in bar.laplace)) / people
    return statistic.seen(question, mean, doubt)


def worst_bias(effect: Effect, statistic: Additive, levels: Levels) -> float:
    """The largest error before noise over all values within bounds."""
    low, high = (edge - _base(effect, statistic) for edge in statistic.extremes())
    gaps = (effect.multipliers - 1) * np.array(levels.sizes, float)
    up, down = float(gaps[gaps > 0].sum()), float(gaps[gaps < 0].sum()) - levels.left_out
    return max(abs(up * high + down * low), abs(up * low + down * high)) / statistic.divisor(levels.people)


def _error_model(
    question: Question, statistic: Additive, levels: Levels, effect: Effect, moments: Moments
) -> ErrorModel:
    """What an error bar needs, given what people's contributions look like.

    If nothing is assumed about how preferences and values relate, all that weights leave out is a bound.
    """
    divisor = statistic.divisor(levels.people)
    sizes = np.array(levels.sizes, float)
    population = math.sqrt(moments.variance * levels.people) / divisor
    grid = effect.factor * statistic.units[0] / divisor
    if effect.rest is Rest.CENTRED or question.assume == "nothing":
        coins = math.sqrt(_coins(effect, statistic, levels, _farthest(statistic)))
        return ErrorModel(effect.laplace, coins, population, worst_bias(effect, statistic, levels), grid=grid)
    slope, shift = _unbias(effect, statistic, levels)
    gaps = slope * effect.multipliers - 1
    luck = moments.variance * float(gaps**2 @ sizes + levels.left_out) / divisor**2
    normal = math.sqrt(luck + slope**2 * _coins(effect, statistic, levels, moments))
    laplace = tuple(slope * scale for scale in effect.laplace)
    return ErrorModel(laplace, normal, population, 0.0, slope, shift, slope * grid)


def _unbias(effect: Effect, statistic: Additive, levels: Levels) -> tuple[float, float]:
    """(slope, shift) such that answer*slope + shift has no bias if preferences and values are unrelated."""
    reached = float(effect.multipliers @ np.array(levels.sizes, float)) / levels.people
    if abs(reached - 1) < 1e-9:
        return 1.0, 0.0
    return 1 / reached, statistic.origin * (1 - 1 / reached)


def _base(effect: Effect, statistic: Additive) -> float:
    """What stands for a contribution that is left out."""
    return statistic.centre if effect.rest is Rest.CENTRED else statistic.origin


def _farthest(statistic: Additive) -> Moments:
    """The contribution that a sample's coins move most."""
    base = statistic.coin_origin
    return Moments(base + max(abs(edge - base) for edge in statistic.extremes()), 0.0)


def _coins(effect: Effect, statistic: Additive, levels: Levels, moments: Moments) -> Any:
    """Expected variance of a sample's coins, on the answer's scale."""
    if not effect.sampled:
        return 0.0
    square = moments.variance + (moments.mean - statistic.coin_origin) ** 2
    spread = (effect.fractions * (1 - effect.fractions)) @ np.array(levels.sizes, float)
    return (effect.factor / statistic.divisor(levels.people)) ** 2 * square * spread
