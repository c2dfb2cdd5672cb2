"""Least epsilons and rhos, by brute force over all events of small laws and by formulas of wide ones."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from epsilons.auditing import divergence
from epsilons.auditing.divergence import gaussian_epsilon, gaussian_rho, least_epsilon, least_rho
from epsilons.auditing.views import last_bits, list_views


def by_all_events(p: list[float], q: list[float], delta: float) -> float:
    """The largest log((P[E] - delta)/Q[E]) over all events and both directions."""
    worst = 0.0
    for one, other in ((p, q), (q, p)):
        for event in itertools.product((0, 1), repeat=len(p)):
            likely, unlikely = np.dot(event, one) - delta, np.dot(event, other)
            if likely > 1e-15:
                worst = max(worst, math.inf if unlikely == 0 else math.log(likely / unlikely))
    return worst


def test_the_least_epsilon_of_listed_laws_is_that_of_all_events() -> None:
    random = np.random.default_rng(4)
    for size, delta in itertools.product((2, 3, 6), (0.0, 1e-6, 0.03, 0.3)):
        p, q = random.dirichlet(np.ones(size)), random.dirichlet(np.ones(size))
        found = least_epsilon(np.log(p), np.log(q), delta)
        assert found == pytest.approx(by_all_events(p.tolist(), q.tolist(), delta), rel=1e-6, abs=1e-6)
    with np.errstate(divide="ignore"):
        p, q = np.log([0.5, 0.5, 0.0]), np.log([0.5, 0.49, 0.01])
    assert least_epsilon(p, q, 0.005) == math.inf
    assert least_epsilon(p, q, 0.02) < 0.03
    assert least_rho(p, q) == math.inf


def small_law(variance: float, centre: int) -> np.ndarray:
    logs = -((np.arange(-80, 81) - centre) ** 2) / (2 * variance)
    return np.asarray(logs - math.log(np.exp(logs).sum()))


@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-12])
def test_narrow_gaussians_are_as_their_listed_laws(delta: float) -> None:
    for variance, move in ((0.25, 1), (2.0, 1), (9.0, 2)):
        one, other = small_law(variance, 0), small_law(variance, move)
        exact = least_epsilon(one, other, delta)
        found = gaussian_epsilon(((move, Fraction(variance)),), delta)
        assert 0.995 * exact - 1e-9 <= found <= exact * (1 + 1e-6) + 1e-9
        assert least_rho(one, other) == pytest.approx(float(gaussian_rho([(move, Fraction(variance))])), rel=1e-6)
    plane = [(small_law(4.0, a)[:, None] + small_law(9.0, b)[None, :]).reshape(-1) for a, b in ((0, 0), (1, -2))]
    both = gaussian_epsilon(((1, Fraction(4)), (-2, Fraction(9))), delta)
    exact = least_epsilon(*plane, delta)
    assert 0.98 * exact <= both <= exact * (1 + 1e-6)


def continuous(shift: float, delta: float) -> float:
    """Balle and Wang 2018, arXiv:1805.06530v2, Theorem 8."""

    def beyond(e: float) -> float:
        return float(norm.cdf(shift / 2 - e / shift) - math.exp(e) * norm.cdf(-shift / 2 - e / shift)) - delta

    return float(brentq(beyond, 0, 300)) if beyond(0) > 0 else 0.0


@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-15])
def test_wide_gaussians_are_as_the_continuous_one(delta: float) -> None:
    for shift, deviation in ((0.05, 10**4), (0.22, 2**60), (3.0, 2**60)):
        move = round(shift * deviation)
        found = gaussian_epsilon(((move, Fraction(deviation) ** 2),), delta)
        exact = continuous(move / deviation, delta)
        assert 0.999 * exact <= found <= exact * (1 + 1e-5)
        parts = gaussian_epsilon(((move, 4 * Fraction(deviation) ** 2),) * 4, delta)
        assert 0.99 * exact <= parts <= exact * (1 + 1e-5)


def test_sums_and_integrals_of_tails_bracket_the_same_chances() -> None:
    variance = Fraction(1999) ** 2
    summed, integrated = divergence._summed_tail(variance), divergence._integrated_tail(variance)
    for least in (1, 100, 1998, 2000, 6000, 14_000):
        (a, b), (c, d) = summed(least), integrated(least)
        assert max(a, c) <= min(b, d)
        assert d - c <= 1e-5 * d
    assert divergence.tail_of(variance)(0)[1] > 0.5 > divergence.tail_of(variance)(1)[0]


def test_last_bits_are_those_of_the_binary_fraction() -> None:
    numbers = [1.0, -3.0, 0.5, 1 + 2**-52, 2.0**-60, 6.0, 0.0, math.inf]
    assert last_bits(np.array(numbers)).tolist() == [0, 0, -1, -52, -60, 1, 2000, 2000]
    for number in np.random.default_rng(2).normal(size=200).tolist():
        assert 2.0 ** last_bits(np.array([number]))[0] * Fraction(number).denominator >= 1
        assert last_bits(np.array([number]))[0] == -math.log2(Fraction(number).denominator)


def test_outcomes_are_looked_at_in_several_ways() -> None:
    bit = "the power of two of the last bit"
    assert [view.name for view in list_views([1, 2], [3, 4])] == ["", bit]
    assert [view.name for view in list_views([0.5, math.nan], [1.0, 2.0])] == ["", bit, "its form"]
    words = list_views([1, "a"], [2, (3,)])
    assert [side.tolist() for side in (words[0].see([1, "a"]), words[0].see([2, (3,)]))] == [
        ["1", "'a'"],
        ["2", "(3,)"],
    ]
    several = list_views([(0.0, 1.5), (0.5, 2.0)], [(4.0, 1.5), (4.5, 2.0)])
    assert [view.name for view in several][1:4] == ["number 1", "number 2", "a sum of all numbers"]
    assert several[3].see([(0.0, 1.0), "raised"]).shape == (2,)
    assert several[1].tell("X = 3") == "X = 3 for X = number 1"
