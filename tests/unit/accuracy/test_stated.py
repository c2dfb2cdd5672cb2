"""Errors once an answer is out: at what it makes likely, in the spread that distances are told in, and past heaps."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from epsilons.accuracy.additive import Effect, LinearAccuracy
from epsilons.accuracy.intervals import cut_noise
from epsilons.accuracy.quantiles import QuantileBar
from epsilons.guarantee import NANO
from epsilons.mechanisms.base import create, weighting_of
from epsilons.preferences import roster_of
from epsilons.release import make_release
from epsilons.statistics import brackets, order
from epsilons.statistics.additive import Additive
from epsilons.statistics.base import Answer, Floats, Question
from epsilons.statistics.brackets import Bracket, Split, nearest_cut, place_cuts, settle, weigh_cells
from epsilons.statistics.count import Count
from epsilons.statistics.total import Mean
from epsilons.statistics.variance import Variance
from epsilons.summaries.arrays import ArrayPeople
from epsilons.testing import seeded

BOUNDS = (0.0, 100.0)
ROSTER = roster_of(np.repeat([0.1, 0.5, 2.0], [10_000, 6_000, 4_000]))
#: Of people who granted the most alone: what levels may differ by is all that matters.
OPEN_ALONE = {"threshold": "max", "rescale": True}


def stated_and_told(statistic: Additive, values: Floats) -> tuple[float, float]:
    """(the stated error, what is assumed of levels' distances alone) where those who granted the most are asked."""
    question, mechanism = Question(statistic, assume=0.3), create("threshold", statistic, **OPEN_ALONE)
    found = make_release(mechanism, question, ArrayPeople.of(values, ROSTER), seeded(1), "")
    weighting = weighting_of(mechanism, question, ROSTER.levels)
    drift = float(Effect.of(question, ROSTER.levels, weighting).drift)
    return float(found.error), 0.3 * statistic.related(question)[1] * drift


@pytest.mark.parametrize("epsilon", [0.2, 1e-4, 1e-9])
@pytest.mark.parametrize("number", [0.0, 3.0, 40.0, 97.0, 100.0])
def test_a_count_varies_as_the_fraction_that_its_noise_leaves_likely(number: float, epsilon: float) -> None:
    """Few people and much noise: the fraction to expect is the mean over all fractions, by how likely the answer is."""
    roster = roster_of(np.full(100, epsilon))
    question, mechanism = Question(Count(), assume=0.0), create("minimum", Count())
    weighting = weighting_of(mechanism, question, roster.levels)
    effect = Effect.of(question, roster.levels, weighting)
    fractions = np.linspace(0.0, 1.0, 200_001)
    chance = np.exp(-np.abs(100 * fractions - number) / effect.laplace[0])
    expected = float((fractions * chance).sum() / chance.sum())
    seen: list[float] = []

    class Looking(LinearAccuracy):
        def expected_errors(self, question: Question, effect: Effect, moments: object) -> np.ndarray:  # type: ignore[override]
            seen.append(moments.mean)  # type: ignore[attr-defined]
            return np.array(1.0)

    Looking().stated_error(question, roster.levels, weighting, Answer(number), None)
    assert seen == [pytest.approx(expected, abs=1e-4)]


def test_distances_of_levels_count_in_the_spread_they_are_told_in() -> None:
    """Values at the bounds are spread twice as far as was guessed; what is assumed of levels' means stays as told."""
    error, told = stated_and_told(Mean(BOUNDS), np.where(np.arange(20_000) % 10 < 3, 100.0, 0.0))
    assert told < error < 1.1 * told


def test_squares_of_no_level_are_below_zero() -> None:
    """Those who are asked are near the mean, so that they hide less than nobody; of others they show nothing.

    Whoever is not asked may spread by as much more as is told, and levels' means bend the answer by (.3 * 25)^2.
    """
    statistic = Variance(BOUNDS)
    error, told = stated_and_told(statistic, np.random.default_rng(3).normal(50, 2, 20_000))
    assert told < error < told + 1.01 * 7.5**2
    # Where those who weigh less are a fortieth of the weight short, they hide no more than that part of what is told.
    close, question = roster_of(np.repeat([1.0, 0.9], 5000)), Question(statistic, assume=0.3)
    mechanism = create("stretching", statistic, rescale=True)
    values = np.random.default_rng(3).normal(50, 2, 10_000)
    found = make_release(mechanism, question, ArrayPeople.of(values, close), seeded(1), "").error
    drift = float(Effect.of(question, close.levels, weighting_of(mechanism, question, close.levels)).drift)
    assert found < 0.7 * 0.3 * statistic.related(question)[1] * drift


CUTS = sorted(50 + side * 2.5 * 2**place for side in (-1, 1) for place in range(4))

EDGES = np.array([0.0, *CUTS, 100.0])
HEAPS = 6.0 * np.histogram([9.0, 29.0, 49.0, 69.0, 89.0], EDGES)[0]


def error_of(weights: Floats) -> float:
    """Of a median at 50, with cells that are the wider, the farther out, where everyone's weight is public."""
    cells, whole = tuple(weights.tolist()), float(weights.sum())
    error = QuantileBar(BOUNDS, 0.001, 0.5, tuple(CUTS), cells, 0.1, 1.0, 0.5, 0.9, whole).error(50.0)
    assert error is not None
    return error


def test_the_error_of_a_median_knows_of_values_that_many_share() -> None:
    """Between two heaps every answer is as good: the same weight in heaps, twenty apart, makes a larger error."""
    even = 0.3 * np.diff(EDGES)
    assert error_of(HEAPS) > 1.5 * error_of(even)
    assert error_of(even + np.tile([0.9, -0.9, 0.0], 3)) < 1.2 * error_of(even)


def test_a_side_that_nothing_shows_leaves_no_error_unless_the_weight_is_public() -> None:
    """The interval of heaps ends at a bound, where the quantile may lie: that is farther than the error says."""
    bar = QuantileBar(BOUNDS, 0.001, 0.5, tuple(CUTS), tuple(HEAPS.tolist()), 0.1, 1.0, 0.5, 0.9)
    low, high = bar.interval(50.0, 0.95, False)
    assert (low == BOUNDS[0]) != (high == BOUNDS[1])
    assert bar.error(50.0) is None
    assert error_of(HEAPS) < 50


def jump_errors(part: str) -> tuple[float, float]:
    """(real, stated) root mean squares of a median over the exact law of its first draw, with cells as they are."""
    roster = roster_of(np.full(200, 0.25))
    statistic = order.median((0.0, 1200.0), 5.0).paying_for_interval(Fraction(part))
    question, mechanism = Question(statistic, assume=0.0), create("minimum", statistic)
    cells = ArrayPeople.of(np.random.default_rng(1).gamma(4, 5, 200), roster).cells(statistic)
    weighting, split = weighting_of(mechanism, question, roster.levels), Split.of(statistic, "absent")
    true = statistic.value(statistic.cell_at_rank(cells))
    nearest, real, stated = nearest_cut(statistic, Fraction(50), 200), 0.0, 0.0
    for first, chance in zip(*statistic.sampler(question, weighting, cells).probabilities(), strict=True):
        cuts = place_cuts(int(first), statistic.points, nearest)
        weights = np.array(weigh_cells(cells, cuts, split.cell_weights(weighting)), float) / NANO
        bracket = Bracket(int(first), cuts, tuple(weights.tolist()))
        value = statistic.value(settle(bracket, 0.5, statistic.points, split.pull(0.5, len(weights))))
        error = mechanism.stated_error(question, roster.levels, Answer(value, brackets=(bracket,)))
        real, stated = real + chance * (value - true) ** 2, stated + chance * float(error) ** 2
    return math.sqrt(real), math.sqrt(stated)


def test_a_median_that_jumped_says_how_far(monkeypatch: pytest.MonkeyPatch) -> None:
    """With little left for the first draw it lands far from all values once in a hundred times, and the cells show it.

    The answer is then where they say, and its error what they leave open; the draw is four times as far off.
    """
    real, stated = jump_errors("0.6")
    assert real < 1.5 * stated < 4 * real
    monkeypatch.setattr(QuantileBar, "_coarse", lambda *given: 0.0)
    assert real > 2.5 * jump_errors("0.6")[1]
    monkeypatch.setattr(brackets, "_CONTRADICTED", math.inf)
    assert jump_errors("0.6")[0] > 3 * real


def test_noise_in_answers_that_are_cut_is_that_of_the_worst_truth() -> None:
    random, width = np.random.default_rng(4), 10.0
    for scale in (0.5, 5.0, 100.0):
        noise = random.laplace(0, scale, 200_000)
        real = [np.mean((np.clip(truth + noise, 0, width) - truth) ** 2) for truth in np.linspace(0, width, 21)]
        assert cut_noise(scale, width) == pytest.approx(max(real), rel=0.03)
    assert cut_noise(1e9, width) == pytest.approx(width**2 / 2, rel=0.001)
    assert cut_noise(3.0, 0.0) == 0.0
