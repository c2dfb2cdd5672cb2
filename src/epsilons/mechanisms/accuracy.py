"""How far an additive answer errs: bias, the luck of who chose which level, a sample's coins, and the noise.

All of it follows from public facts: what fraction of each person's contribution reaches the answer, what is put in
place of the rest, and what is publicly expected of a contribution (`Moments`). Floats are good enough here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilons.mechanisms.curvature import variance_errors, worst_variance_error
from epsilons.mechanisms.errorbars import ErrorModel
from epsilons.preferences import Levels
from epsilons.statistics.base import Additive, Moments
from epsilons.statistics.filtered import FilteredVariance
from epsilons.statistics.variance import Variance


@dataclass(frozen=True, eq=False)
class Effect:
    """What a mechanism does to everybody's contribution, on the scale of the answer's total over people.

    `fractions` is the expected weight of a person, level by level; `sampled` says that weights are coins. The weighted
    sum is multiplied by `factor`. With `fills`, the public centre takes the place of what weights leave out. `laplace`
    are the scales of the noise in the finished answer. Where the answer divides by a noisy number of rows, its noise is
    the last of them, and `denominator` the scale of that noise as a part of the number itself. `scales` are those of
    each part in its own integers, per person's worth of weight. Several effects at once are rows of `fractions`, with
    an array in place of each other number.
    """

    fractions: NDArray[np.float64]
    factor: Any
    laplace: tuple[Any, ...]
    sampled: bool = False
    fills: bool = False
    denominator: Any = None
    scales: tuple[Any, ...] = ()

    @property
    def multipliers(self) -> NDArray[np.float64]:
        """How much of a person's contribution reaches the answer, level by level."""
        return np.asarray(self.factor)[..., None] * self.fractions


def expected_error(effect: Effect, statistic: Additive, levels: Levels, moments: Moments) -> float:
    """RMSE against the roster's own statistic if preferences and values are unrelated and the public guesses hold."""
    return float(expected_errors(effect, statistic, levels, moments))


def expected_errors(effect: Effect, statistic: Additive, levels: Levels, moments: Moments) -> NDArray[np.float64]:
    """The same for several effects at once."""
    if isinstance(statistic, (Variance, FilteredVariance)):
        return variance_errors(effect, statistic, levels, moments)
    sizes = np.array(levels.sizes, float)
    gaps = effect.multipliers - 1
    offset = (moments.mean - _base(effect, statistic)) ** 2 + moments.location**2
    bias = offset * (gaps @ sizes - levels.left_out) ** 2
    luck = moments.variance * (gaps**2 @ sizes + levels.left_out)
    before = (bias + luck) / _divisor(statistic, levels) ** 2 + _coins(effect, statistic, levels, moments)
    errors: NDArray[np.float64] = np.minimum(np.sqrt(before + _noise(effect, statistic)), statistic.farthest)
    return errors


def worst_error(effect: Effect, statistic: Additive, levels: Levels) -> float:
    """RMSE for the worst values within bounds, however they relate to preferences."""
    if isinstance(statistic, (Variance, FilteredVariance)):
        return worst_variance_error(effect, statistic, levels)
    coins = _coins(effect, statistic, levels, _farthest(statistic))
    worst = math.sqrt(worst_bias(effect, statistic, levels) ** 2 + coins + float(_noise(effect, statistic)))
    return min(worst, statistic.farthest)


def worst_bias(effect: Effect, statistic: Additive, levels: Levels) -> float:
    """The largest error before noise over all values within bounds."""
    low, high = (edge - _base(effect, statistic) for edge in statistic.extremes())
    gaps = (effect.multipliers - 1) * np.array(levels.sizes, float)
    up, down = float(gaps[gaps > 0].sum()), float(gaps[gaps < 0].sum()) - levels.left_out
    return max(abs(up * high + down * low), abs(up * low + down * high)) / _divisor(statistic, levels)


def error_model(
    effect: Effect, statistic: Additive, levels: Levels, moments: Moments, step: float, nothing_assumed: bool
) -> ErrorModel:
    """What an error bar needs; `step` is the distance between possible weighted sums.

    If nothing is assumed about how preferences and values relate, all that weights leave out is a bound.
    """
    divisor = _divisor(statistic, levels)
    sizes = np.array(levels.sizes, float)
    population = math.sqrt(moments.variance * levels.people) / divisor
    grid = effect.factor * step / divisor
    if effect.fills or nothing_assumed:
        coins = math.sqrt(_coins(effect, statistic, levels, _farthest(statistic)))
        return ErrorModel(effect.laplace, coins, population, worst_bias(effect, statistic, levels), grid=grid)
    slope, shift = _unbias(effect, statistic, levels)
    gaps = slope * effect.multipliers - 1
    luck = moments.variance * float(gaps**2 @ sizes + levels.left_out) / divisor**2
    normal = math.sqrt(luck + slope**2 * _coins(effect, statistic, levels, moments))
    laplace = tuple(slope * scale for scale in effect.laplace)
    return ErrorModel(laplace, normal, population, 0.0, slope, shift, slope * grid)


def noise_variance(effect: Effect) -> Any:
    """Of independent Laplace noises: two squared scales each."""
    return sum(2 * scale**2 for scale in effect.laplace)


#: Laplace noise of scale 1 in as many equally likely parts as matter for a mean square.
_PARTS = (np.arange(1000) + 0.5) / 1000
_LAPLACE_NODES = np.where(_PARTS < 0.5, np.log(2 * _PARTS), -np.log(2 - 2 * _PARTS))


def _noise(effect: Effect, statistic: Additive) -> Any:
    """The mean square of the noise in an answer, which may be a ratio.

    With the number of rows off by a part t, every noise is divided by 1 + t: few rows now and then cost more than many
    rows save. An answer that is nothing but noise is cut off at one of its ends.
    """
    if effect.denominator is None:
        return noise_variance(effect)
    off = np.asarray(effect.denominator)[..., None] * _LAPLACE_NODES
    before = sum(2 * np.asarray(scale)[..., None] ** 2 for scale in effect.laplace[:-1])
    rows = np.asarray(effect.laplace[-1])[..., None] * _LAPLACE_NODES
    square = (before + rows**2) / np.maximum(1 + off, 1e-9) ** 2
    return (square / (1 + square / statistic.astray**2)).mean(axis=-1)


def equivalent_scale(inverse: Any) -> Any:
    """The scale of the Laplace noise with the same variance as the discrete one, 2a/(1-a)^2 with a=exp(-inverse)."""
    return np.where(inverse < 1e-4, 1 / inverse, np.exp(-inverse / 2) / -np.expm1(-inverse))[()]


def _unbias(effect: Effect, statistic: Additive, levels: Levels) -> tuple[float, float]:
    """(slope, shift) such that answer*slope + shift has no bias if preferences and values are unrelated."""
    reached = float(effect.multipliers @ np.array(levels.sizes, float)) / levels.people
    if abs(reached - 1) < 1e-9:
        return 1.0, 0.0
    return 1 / reached, statistic.centre * (1 - 1 / reached) if statistic.averages else 0.0


def _base(effect: Effect, statistic: Additive) -> float:
    """What stands for a contribution that is left out: the centre where the answer is centred, else nothing."""
    return statistic.centre if effect.fills or statistic.averages else 0.0


def _coin_base(statistic: Additive) -> float:
    """What a person adds to the sum when their coin leaves them out: sums are centred, counts are not."""
    return 0.0 if statistic.counts else statistic.centre


def _farthest(statistic: Additive) -> Moments:
    """The contribution that a sample's coins move most."""
    base = _coin_base(statistic)
    return Moments(base + max(abs(edge - base) for edge in statistic.extremes()), 0.0)


def _coins(effect: Effect, statistic: Additive, levels: Levels, moments: Moments) -> Any:
    """Expected variance of a sample's coins, on the answer's scale."""
    if not effect.sampled:
        return 0.0
    square = moments.variance + (moments.mean - _coin_base(statistic)) ** 2
    spread = (effect.fractions * (1 - effect.fractions)) @ np.array(levels.sizes, float)
    return (effect.factor / _divisor(statistic, levels)) ** 2 * square * spread


def _divisor(statistic: Additive, levels: Levels) -> int:
    return levels.people if statistic.averages else 1
