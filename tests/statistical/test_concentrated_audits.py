"""Draws of answers with Gaussian noise do not refute what is charged in rho; a deviation 5% small is refuted.

Of a shift by m standard deviations every event has Phi^-1(p) - Phi^-1(q) <= m (Dong, Roth, Su 2019,
arXiv:1905.02383v3, section 2.2), and rho = m^2/2; on a fine grid nearly so. The event is chosen on one half of the
draws and held on the other, by exact binomial bounds, of confidence .999 together. Draws are seeded, so a run that
passed passes again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import beta

from epsilons.auditing import ABSENT
from epsilons.mechanisms.base import create
from epsilons.statistics.base import Question
from epsilons.statistics.total import Mean
from epsilons.summaries.arrays import ArrayPeople
from epsilons.testing import seeded
from support.concentrated import MEASURE, Case, with_deviation
from support.small_worlds import Pair

pytestmark = pytest.mark.statistical

MEAN = Mean((0.0, 10.0))
#: At such grants rho is about 1, so that a million draws tell a deviation of 95%.
OPEN = (8.0, 9.0, 9.0)
PAIRS = {
    "a bound against nobody": ("absent", Pair((10, 5, 5), (ABSENT, 5, 5))),
    "from bound to bound": ("replace", Pair((0, 5, 5), (10, 5, 5))),
}
LONG = [pytest.mark.soak, pytest.mark.figure("figure_3_draws")]
WORST = [
    *(("weighted", what, 50_000) for what in PAIRS),
    *(pytest.param(name, what, 1_000_000, marks=LONG) for what in PAIRS
      for name in ("minimum", "weighted", "robust", "stretching", "threshold")),
]  # fmt: skip


def case_of(name: str, what: str) -> Case:
    question = Question(MEAN, PAIRS[what][0], measure=MEASURE)
    return Case("mean", create(name, MEAN), question, OPEN)


def least_shift(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """By how many standard deviations these draws lie apart, at least."""
    half = len(one) // 2
    away = 1 if one[:half].mean() > other[:half].mean() else -1
    # The middle between both tells most: both chances are far from 0 and 1.
    cut = (away * one[:half].mean() + away * other[:half].mean()) / 2
    inside = [int((away * draws[half:] > cut).sum()) for draws in (one, other)]
    size, risk = len(one) - half, 0.0005
    low = beta.ppf(risk, inside[0], size - inside[0] + 1)
    high = beta.ppf(1 - risk, inside[1] + 1, size - inside[1])
    return NormalDist().inv_cdf(float(low)) - NormalDist().inv_cdf(float(high))


def audit(case: Case, pair: Pair, draws: int) -> tuple[float, float]:
    """(the least shift by draws, the shift that is charged)."""
    entropy, roster = seeded(17), case.roster
    one, other = (
        case.mechanism.simulate(case.question, ArrayPeople.of(values, roster), entropy, draws)
        for values in (pair.data, pair.neighbour)
    )
    rho = case.rhos[roster.codes[pair.person]]
    assert rho is not None
    return least_shift(one, other), math.sqrt(2 * rho)


@pytest.mark.parametrize(("name", "what", "draws"), WORST)
def test_draws_do_not_refute_what_is_charged_in_rho(
    name: str, what: str, draws: int, record_property: Callable[[str, Any], None]
) -> None:
    found, charged = audit(case_of(name, what), PAIRS[what][1], draws)
    assert found <= charged
    assert found > 0.93 * charged, "the pair puts no strain on the mechanism"
    record_property("size", 1)


@pytest.mark.parametrize("what", PAIRS)
def test_a_standard_deviation_5_percent_small_is_refuted_by_draws(what: str) -> None:
    planted = with_deviation(case_of("minimum", what), Fraction(95, 100))
    found, charged = audit(planted, PAIRS[what][1], 60_000)
    assert found > charged


def test_a_replacement_counted_as_twice_rho_is_refuted_by_draws() -> None:
    """Absent at rho is replace at 4 rho: the draws of a swap lie twice as far apart as those of an absence."""
    case = case_of("minimum", "a bound against nobody")
    found, charged = audit(case, Pair((0, 5, 5), (10, 5, 5)), 60_000)
    assert math.sqrt(2) * charged < found <= 2 * charged


def test_a_pair_that_is_no_pair_is_told_apart() -> None:
    """The check itself: of equal draws it says nothing, of shifted ones nearly all."""
    normal = np.random.default_rng(5).normal(size=(2, 200_000))
    assert least_shift(normal[0], normal[1]) < 0
    assert 0.95 < least_shift(normal[0] + 1, normal[1]) < 1
