"""A mechanism's expected answer on one data set, and its variance: its own randomness, integrated out.

Answers are taken before they are cut to what is possible, as the papers take them: a count of 1,000 people at epsilon
.01 then errs by 141. Where coins decide who is used and nothing can be listed, the coins alone are drawn.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from epsilons.mechanisms.base import Mechanism, Weighing, weighting_of
from epsilons.mechanisms.exponential import Exponential
from epsilons.mechanisms.mixed import MixedMean, MixedQuantile
from epsilons.noise.entropy import ALWAYS, Entropy
from epsilons.noise.segments import Block
from epsilons.statistics.additive import Additive, weighted_sums
from epsilons.statistics.base import Floats, Question, equivalent_scale
from epsilons.statistics.order import Order
from epsilons.statistics.outward import price_points
from epsilons.summaries.arrays import ArrayPeople
from epsilons.summaries.cells import LEVEL_BITS, SortedCells
from epsilons.summaries.models import merge_levels

#: Answers are affine in the noisy sum; two of them so far apart give the slope without a loss of digits.
_FAR = 1 << 30


def law_of(blocks: Iterable[Block], unit: Fraction) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """All outcomes, in the order of the runs, and their probabilities in plain floats: for experiments with many laws.

    `SegmentSampler.probabilities` is exact to the last digit, and takes five times as long.
    """
    parts = []
    for block in blocks:
        columns = (block.direction, block.count, block.cost, block.slope)
        parts.append(np.broadcast_arrays(np.asarray(block.first), *map(np.asarray, columns)))
    first, direction, count, cost, slope = (np.concatenate(column) for column in zip(*parts, strict=True))
    runs = np.repeat(np.arange(len(count)), count.astype(np.int64))
    inside = np.arange(len(runs)) - np.repeat(np.cumsum(count) - count, count.astype(np.int64)).astype(np.int64)
    # The differences are whole numbers, exact whatever their size.
    dear = float(unit) * (cost - cost.min())[runs].astype(float) + float(unit) * inside * slope[runs].astype(float)
    weights = np.exp(dear.min() - dear)
    return (first[runs] + direction[runs] * inside).astype(np.int64), weights / weights.sum()


class Expected(NamedTuple):
    """An answer's mean and variance over the mechanism's own randomness."""

    mean: float
    variance: float

    def square(self, truth: float) -> float:
        """The expected squared error."""
        return self.variance + (self.mean - truth) ** 2


def expect(mechanism: Mechanism, question: Question, people: ArrayPeople, entropy: Entropy) -> Expected:
    """Of any mechanism that answers with one number; `entropy` is used where coins decide about an order statistic."""
    match mechanism, question.statistic.family:
        case MixedMean(), _:
            return _expect_mixed_mean(mechanism, question, people)
        case MixedQuantile(), _:
            return _expect_mixed_quantile(mechanism, question, people)
        case Exponential(), _:
            drawn, chances = law_of(mechanism.blocks(question, people), mechanism.unit)
            return expect_law(mechanism.outcomes(question, drawn), chances)
        case Weighing(), "linear":
            return _expect_sum(mechanism, question, people)
        case Weighing(), "order":
            return _expect_quantile(mechanism, question, people, entropy)
        case _:
            outcomes, logs = mechanism.distribution(question, people)
            return expect_law(outcomes, np.exp(logs))


def expect_law(outcomes: NDArray[Any], chances: Floats) -> Expected:
    """Of a listed distribution."""
    values = np.asarray(outcomes, float)
    mean = float(values @ chances)
    return Expected(mean, float((values - mean) ** 2 @ chances))


def _expect_sum(mechanism: Weighing, question: Question, people: ArrayPeople) -> Expected:
    """Of a count, sum or mean by weights or coins: one weighted sum with one noise.

    The coins' variance is sum p(1 - p) x^2, each x counted from where a coin leaves people out.
    """
    weighting = weighting_of(mechanism, question, people.levels)
    statistic = cast(Additive, question.statistic)
    ends = [statistic.finish(question, [[Fraction(k)]], weighting, people.levels) for k in (0, _FAR)]
    zero, step = float(ends[0]), (float(ends[1]) - float(ends[0])) / _FAR / weighting.one
    part, counts = statistic.parts[0], statistic.tally(people)[0]
    inverse = float(weighting.inverse_scale(part.share, part.reach[question.neighbors]))
    noise = 2 * float(equivalent_scale(inverse)) ** 2
    if weighting.coins is None:
        return Expected(zero + step * weighted_sums(counts, weighting.weights)[0], step**2 * noise)
    stays = weighting.coins.expected
    squares = ((people.values - statistic.coin_origin) / statistic.units[0]) ** 2
    coins = np.bincount(people.roster.codes, squares, len(stays)) @ (stays * (1 - stays))
    return Expected(zero + step * float(counts[:, 0] @ stays), step**2 * (float(coins) + noise))


def _expect_mixed_mean(mechanism: MixedMean, question: Question, people: ArrayPeople) -> Expected:
    """Of levels that answer for themselves."""
    statistic, levels = cast(Additive, question.statistic), people.levels
    shares, scales = mechanism.shares(question, levels), mechanism.mean_scales(question, levels)
    means = statistic.coin_origin + statistic.tally(people)[0][:, 0] * statistic.units[0] / np.array(levels.sizes)
    unit = float(mechanism.mix(question, levels, np.ones((len(levels.sizes), 1)))[0])
    return Expected(unit * float(shares @ means), unit**2 * 2 * float(shares**2 @ scales**2))


def _expect_quantile(mechanism: Weighing, question: Question, people: ArrayPeople, entropy: Entropy) -> Expected:
    """Of an order statistic by weights, given the coins where coins decide who is used. Everyone has a value.

    Levels of one weight are made one, since every level costs time.
    """
    weighting, statistic = weighting_of(mechanism, question, people.levels), cast(Order, question.statistic)
    if weighting.coins is None:
        merged, weights = merge_levels(people, weighting.weights)
        cells = merged.cells(statistic)
    else:
        stays = [min(int(chance * ALWAYS), ALWAYS) for chance in weighting.coins.expected]
        (kept,) = people.sampled_cells(statistic, stays, entropy)
        cells, weights = SortedCells(kept.keys >> LEVEL_BITS << LEVEL_BITS, np.zeros(1, np.int64), 1), (weighting.one,)
    cost, unit = statistic.cost(question, replace(weighting, weights=weights, coins=None, effects={}), cells)
    prices = price_points(statistic.points, cells, cost)
    chances = np.exp(-float(unit) * (prices - prices.min()).astype(float))
    return expect_law(statistic.outcomes(), chances / chances.sum())


def _expect_mixed_quantile(mechanism: MixedQuantile, question: Question, people: ArrayPeople) -> Expected:
    """Of levels that each have an exponential mechanism of their own."""
    statistic, shares = cast(Order, question.statistic), mechanism.shares(question, people.levels)
    points = statistic.outcomes()
    laws = []
    for found in mechanism.level_blocks(statistic, people):
        if isinstance(found, int):
            laws.append(Expected(float(points[found]), 0.0))
        else:
            place, chances = law_of(found, mechanism.unit(statistic))
            laws.append(expect_law(points[place], chances))
    return Expected(float(shares @ [law.mean for law in laws]), float(shares**2 @ [law.variance for law in laws]))
