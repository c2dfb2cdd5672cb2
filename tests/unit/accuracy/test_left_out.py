"""What a number leaves out: the largest total that it allows, and how far from a centre what noise hides may lie."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import epsilons as eps
from epsilons.accuracy.left_out import likely_square, most_missing
from epsilons.testing import seeded


@pytest.mark.parametrize("assume", [0.1, 0.3, 1.0])
@pytest.mark.parametrize("shown", [0.5, 3.0, 6.0])
def test_no_levels_that_show_as_much_have_more(shown: float, assume: float) -> None:
    """Every mean of each of three levels, in steps of 1/40: none that fits leaves out more, and one nearly as much."""
    weights, sizes, steps = np.array([0.05, 0.5, 1.0]), np.array([10.0, 6.0, 4.0]), np.linspace(0, 1, 41)

    def apart(mean: float) -> float:
        return assume * math.sqrt(mean * (1 - mean))

    found = most_missing(weights, sizes, shown, (0.0, 1.0), apart)
    means = np.array(list(itertools.product(steps, repeat=3)))
    totals = means @ sizes
    every = totals / sizes.sum()
    fits = np.abs(means - every[:, None]).max(axis=1) <= assume * np.sqrt(every * (1 - every)) + 1e-9
    fits &= np.abs(means @ (weights * sizes) - shown) < 0.12
    assert fits.any()
    most = float((totals - means @ (weights * sizes))[fits].max())
    assert found == pytest.approx(most, abs=1.0)


def test_nothing_left_out_is_nothing_missing() -> None:
    assert most_missing(np.ones(2), np.array([3.0, 5.0]), 4.0, (0.0, 1.0), lambda mean: 0.5) == pytest.approx(0.0)


@pytest.mark.parametrize("gaussian", [False, True])
def test_what_noise_hides_is_two_thirds_of_what_can_be(gaussian: bool) -> None:
    assert math.sqrt(likely_square(0.0, 1e4, (-50.0, 50.0), gaussian)) == pytest.approx(100 / 3, rel=0.02)
    assert math.sqrt(likely_square(20.0, 1e-3, (-50.0, 50.0), gaussian)) == pytest.approx(20.0, rel=0.02)


@pytest.mark.parametrize("place", [0.0, 30.0, 100.0])
def test_a_number_that_says_nothing_states_neither_too_little_nor_everything(place: float) -> None:
    """At a thousandth of small grants the error was 50, half of the bounds, wherever the values lie."""
    values, grants = np.full(400, place), np.where(np.arange(400) % 2 == 0, 0.02, 0.2)
    entropy, asked = seeded(5), {"bounds": (0, 100), "complete": True, "mechanism": "robust", "share": 0.001}
    answers = [eps.mean(values, grants, entropy=entropy, **asked) for _ in range(60)]
    real = math.sqrt(np.mean([(answer.value - place) ** 2 for answer in answers]))
    assert real / 1.5 <= np.mean([answer.error for answer in answers]) <= 2 * real
