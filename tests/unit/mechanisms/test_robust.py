"""The robust estimator's b against a numeric minimum."""

from __future__ import annotations

import math

import numpy as np
import pytest

from epsilons.guarantee import NANO
from epsilons.mechanisms.base import weighting_of
from epsilons.mechanisms.robust import Robust
from epsilons.preferences import roster_of
from epsilons.statistics.base import Question
from epsilons.statistics.count import Count
from epsilons.statistics.total import Mean, Sum
from support.brute_force import best_robust, robust_objective

ROSTERS = [
    (1.0,) * 3,
    (0.1, 0.5, 2.0),
    (0.01,) * 50 + (0.5,) * 30 + (3.0,) * 10,
    (0.2, 0.2, 5.0, 40.0),
    (0.3, 1.0, math.inf, math.inf),
    (0.05,) * 400 + (1.0,) * 100,
]


@pytest.mark.parametrize("epsilons", ROSTERS)
@pytest.mark.parametrize(
    ("question", "gap", "reach"),
    [
        (Question(Count()), 0.5, 1.0),
        (Question(Sum((0.0, 10.0))), 5.0, 5.0),
        (Question(Sum((0.0, 10.0)), "replace"), 5.0, 10.0),
        (Question(Mean((-3.0, 1.0))), 2.0, 2.0),
    ],
)
def test_b_minimises_worst_bias_squared_plus_noise(
    question: Question, gap: float, reach: float, epsilons: tuple[float, ...]
) -> None:
    weighting = weighting_of(Robust(), question, roster_of(list(epsilons)).levels)
    b = NANO / float(weighting.rate)
    ours = robust_objective(b, np.array(epsilons), gap, reach)
    assert ours == pytest.approx(best_robust(np.array(epsilons), gap, reach), rel=1e-7)


@pytest.mark.parametrize("epsilons", ROSTERS)
def test_weights_are_b_times_epsilon_up_to_one_and_public_people_count_in_full(epsilons: tuple[float, ...]) -> None:
    levels = roster_of(list(epsilons)).levels
    weighting = weighting_of(Robust(), Question(Count()), levels)
    for grant, weight in zip(levels.grants, weighting.weights, strict=True):
        expected = 1.0 if grant is None else min(1.0, grant / float(weighting.rate))
        assert weight / weighting.one == pytest.approx(expected, abs=1e-11)
        assert weight <= weighting.one


def test_without_noise_a_robust_count_fills_up_with_half_of_what_is_left_out() -> None:
    """sum w_i x_i + c sum(1 - w_i), c = 1/2."""
    from fractions import Fraction

    question, levels = Question(Count()), roster_of([0.1, 0.5, 2.0]).levels
    weighting = weighting_of(Robust(), question, levels)
    left_out = 3 - weighting.total(levels)
    answer = Count().finish(question, [[Fraction(1)]], weighting, levels)
    assert answer == pytest.approx(float(1 + left_out / 2))
