"""The best threshold of an algorithm of one's own, rehearsed on old data."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import epsilons as eps
from epsilons.arrays.thresholds import assign_levels, find_best, list_thresholds
from epsilons.errors import DataError, PlanError
from epsilons.noise.laplace import discrete_laplace
from epsilons.preferences import roster_of
from epsilons.testing import seeded

STRICT_AND_OPEN = [0.05] * 900 + [2.0] * 100
OLD = [50.0, 60.0, 40.0, 70.0] * 250


def noisy_mean(bounds: float) -> Any:
    """A private mean: of a sum within bounds and a count, each at half of epsilon."""
    source = seeded(9)

    def mean(data: Any, epsilon: float) -> float:
        rate = Fraction(repr(epsilon)) / 2
        total = sum(data) + float(bounds) * discrete_laplace(source, rate)
        return total / max(1, len(data) + discrete_laplace(source, rate))

    return mean


def test_a_mean_of_alike_people_is_best_with_little_noise_and_a_count_with_everyone() -> None:
    """Where people are alike a few of them tell the mean: the largest threshold. A total needs all of them."""
    chosen: dict[str, Any] = {"threshold": "best", "like": OLD, "entropy": seeded(1)}
    mean = eps.personalize(noisy_mean(100), OLD, STRICT_AND_OPEN, truth=np.mean, **chosen)
    assert mean.details["threshold"] == 2.0
    assert [epsilon for epsilon, _ in mean.details["tried"]] == [0.05, 2.0]

    def count(data: Any, epsilon: float) -> int:
        return len(data) + discrete_laplace(seeded(2), Fraction(repr(epsilon)))

    length = eps.personalize(count, OLD, STRICT_AND_OPEN, truth=len, **chosen)
    assert length.details["threshold"] == 0.05
    assert length.charges == {0.05: 0.05, 2.0: 0.05}


def test_the_least_error_is_chosen_by_looking_at_all_of_them() -> None:
    levels = roster_of([0.1, 0.5, 1.0, 3.0]).levels
    errs = {100_000_000: 4.0, 500_000_000: 1.0, 1_000_000_000: 2.0, 3_000_000_000: 9.0}
    best, tried = find_best(levels, lambda threshold: [7 + errs[threshold], 7 - errs[threshold]], [7, 7])
    assert best == 500_000_000
    assert tried == [[0.1, 4.0], [0.5, 1.0], [1.0, 2.0], [3.0, 9.0]]
    assert find_best(levels, lambda _: {"a": 1.0}, {"a": 1.0})[0] == 3_000_000_000  # of equals the most open


def test_levels_are_given_in_proportion_and_by_lot() -> None:
    levels = roster_of([0.1] * 30 + [1.0] * 60 + [eps.PUBLIC] * 10).levels
    one, other = (assign_levels(levels, 1000, seeded(seed)) for seed in (1, 2))
    assert np.bincount(one).tolist() == np.bincount(other).tolist() == [300, 600, 100]
    assert (one != other).any()


def test_of_many_grants_some_are_tried() -> None:
    many = list_thresholds(roster_of([0.01 * k for k in range(1, 101)]).levels)
    assert len(many) == 12
    assert (many[0], many[-1]) == (10_000_000, 1_000_000_000)


def test_no_value_of_the_people_asked_is_rehearsed() -> None:
    seen: list[float] = []

    def watch(data: Any, epsilon: float) -> float:
        seen.extend(data)
        return math.nan if 77 in data else 0.0

    answer = eps.personalize(watch, [77.0] * 5, [1.0] * 5, threshold="best", like=[1.0, 2.0], truth=len)
    assert seen.index(77.0) > 0
    assert answer.details["tried"] == [[1.0, 2.0]]


def test_wrong_arguments_are_refused() -> None:
    def count(data: Any, epsilon: float) -> int:
        return len(data)

    wrong: list[dict[str, Any]] = [
        {"threshold": "best"},
        {"threshold": "best", "like": [1]},
        {"threshold": "best", "truth": len},
        {"threshold": "max", "like": [1], "truth": len},
        {"like": [1], "truth": len},
        {"threshold": "best", "like": [1], "truth": len, "person": [1, 1], "rows_per_person": 2},
    ]
    for given in wrong:
        with pytest.raises(PlanError):
            eps.personalize(count, [1, 2], 1.0, **given)
    with pytest.raises(DataError, match="no number"):
        eps.personalize(lambda data, epsilon: "x", [1, 2], 1.0, threshold="best", like=[1], truth=len)
