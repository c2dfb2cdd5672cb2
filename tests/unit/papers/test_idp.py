"""Soria-Comas et al. 2017: noise, sensitivities of averaged medians, bounds, and verdicts that need no simulation."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from epsilons.mechanisms.local_sensitivity import LocalOrder
from epsilons.papers.claims import Finding, Tables, Verdict
from epsilons.papers.figures import Cell, Table
from epsilons.papers.idp import claims, maxima, medians
from epsilons.papers.idp.noise import NOISES, TABLE_1, Heavy, Laplace
from epsilons.statistics.base import Question
from epsilons.testing import seeded


def test_table_1_exactly() -> None:
    panel = TABLE_1.panels[""]
    table = Table({"": [row for curve in panel.settings for row in panel.measure(Cell("table 1"), curve)]})
    widths = [table.value("", curve, "95%") for curve in ("local-sensitivity", "smooth-paper-2", "smooth-paper")]
    assert widths == pytest.approx([math.log(20), 8 * math.tan(0.475 * math.pi), 34.217865], rel=1e-7)
    assert claims.table_1({"table-1": table}).verdict is Verdict.HOLDS
    assert claims.noise_must_be_large({"table-1": table}).verdict is Verdict.OTHER_CONSTANT


@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
def test_noise_has_the_sizes_that_its_density_has(noise: Heavy | Laplace) -> None:
    x = np.sinh(np.linspace(0, 25, 20_001))
    density = 2 * np.array([noise.density(float(at)) for at in x])
    assert np.trapezoid(density, x) == pytest.approx(1, rel=1e-4)
    within = x <= noise.half_width(0.9)
    assert np.trapezoid(density[within], x[within]) == pytest.approx(0.9, rel=2e-3)
    assert noise.capped_size(7.0) == pytest.approx(np.trapezoid(density * np.minimum(x, 7), x), rel=1e-4)
    if math.isfinite(noise.mean_size()):
        assert noise.mean_size() == pytest.approx(np.trapezoid(density * x, x), rel=1e-3)


def test_an_averaged_medians_smooth_sensitivity_is_the_definition() -> None:
    """Four values on five points: the maximum over all data sets, by enumeration."""
    points, beta = 5, Fraction(1, 3)
    every = list(itertools.product(range(points), repeat=4))

    def answer(values: tuple[int, ...]) -> float:
        return sum(sorted(values)[1:3]) / 2

    def local(values: tuple[int, ...]) -> float:
        moved = ((*values[:k], new, *values[k + 1 :]) for k in range(4) for new in range(points))
        return max(abs(answer(one) - answer(values)) for one in moved)

    locals_ = {values: local(values) for values in every if tuple(sorted(values)) == values}
    array = np.array(every)
    reach = np.array([locals_[tuple(sorted(values))] for values in every])
    for values in locals_:
        apart = (array != np.array(values)).sum(axis=1)
        smooth = float((np.exp(-float(beta) * apart) * reach).max())
        assert medians.averaged_sensitivity(np.array(values), points, beta) == pytest.approx(smooth)


@pytest.mark.statistical
def test_errors_without_draws_are_those_of_draws() -> None:
    """10,000 draws: within 5%; noise of a scale 30% off misses it."""
    values = np.sort(medians.draw_values(Cell("draws"), "normal", 10))
    sample = medians.Sample.of(values, (values[0], values[-1]), 0.5, points=1 << 16)
    noise = medians.local_noise(sample)
    drawn = LocalOrder().simulate(Question(sample.statistic, privacy="individual"), sample.people, seeded(1), 10_000)
    expected = medians.cut_error(noise, sample)
    assert np.abs(drawn - sample.truth).mean() == pytest.approx(expected, rel=0.05)
    assert medians.cut_error(Laplace(1.3 * noise.scale), sample) > 1.1 * expected
    raw = np.random.default_rng(1).laplace(0, 2, 100_000)
    assert maxima.error_from(Laplace(2.0), 3.0) == pytest.approx(np.abs(raw - 3).mean(), rel=0.02)


def test_no_private_median_is_below_the_bound() -> None:
    """On some data k records away; here for the exponential mechanism, by its law."""
    sample = medians.Sample.draw(Cell("bound"), "uniform", 10, 1.0)
    values = np.asarray(sample.people.values)
    others = [np.sort(np.append(values[k:], np.ones(k))) for k in range(6)]
    others += [np.sort(np.append(values[: len(values) - k], np.zeros(k))) for k in range(1, 6)]
    errors = [medians.exponential_error(medians.Sample.of(one, (0.0, 1.0), 1.0), 1.0) for one in others]
    assert 0 < medians.least_error(sample, 1.0) < max(errors)


@pytest.mark.parametrize(
    ("check", "verdict"),
    [
        (claims.same_guarantee, Verdict.FAILS),
        (claims.composes, Verdict.HOLDS),
        (claims.no_group_guarantee, Verdict.HOLDS),
        (claims.printed_beta, Verdict.OTHER_CONSTANT),
        (claims.histogram_sensitivity, Verdict.FAILS),
        (claims.local_is_smaller, Verdict.HOLDS),
    ],
)
def test_verdicts_that_need_no_simulation(check: Callable[[Tables], Finding], verdict: Verdict) -> None:
    assert check({}).verdict is verdict
