"""Absent people are handled as each mechanism promises: at a public value, or not at all."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import epsilons as eps
from epsilons.preferences import roster_of
from epsilons.statistics import order
from epsilons.statistics.base import Question
from epsilons.summaries import arrays
from epsilons.summaries.arrays import ArrayPeople
from support.small_worlds import GRID, WORLDS, laws, served_pairs

NAN = math.nan
ADDITIVE = [pair for pair in served_pairs() if pair[1] in ("count", "sum", "mean", "variance", "histogram")]


def assert_same_law(mechanism: Any, question: Question, epsilons: tuple[float, ...], one: Any, other: Any) -> None:
    roster = roster_of(list(epsilons))
    first, second = (mechanism.distribution(question, ArrayPeople.of(data, roster)) for data in (one, other))
    assert list(first[0]) == list(second[0])
    np.testing.assert_allclose(first[1], second[1], atol=1e-12)


#: Where a missing person stands in a sum of contributions: as if they had this value. (h/sqrt(2) from the centre adds
#: nothing to the variance's second sum, but something to its first, so there nobody's value stands for them.)
STAND_INS = {"count": 0.0, "sum": 0.5, "mean": 0.5, "histogram": 7.0}


@pytest.mark.parametrize(("name", "kind"), [pair for pair in ADDITIVE if pair[1] in STAND_INS])
def test_a_missing_person_counts_as_nothing_or_as_the_centre(name: str, kind: str) -> None:
    """Counts and histograms do not count them; in sums and means they stand at the public centre."""
    low, *_ = WORLDS[kind][1]
    for question, epsilons, mechanism in laws(name, kind):
        assert_same_law(mechanism, question, epsilons, (1.0, NAN, low), (1.0, STAND_INS[kind], low))


def test_a_missing_person_adds_nothing_to_either_sum_of_a_variance() -> None:
    statistic = WORLDS["variance"][0]
    sums = arrays.tally(statistic, np.array([NAN, 2.0]), np.array([0, 1], np.uint8), 2)  # type: ignore[attr-defined]
    assert [part[0, 0] for part in sums] == [0, 0, 0]
    assert all(part[1, 0] != 0 for part in sums)


@pytest.mark.parametrize("kind", ["median", "quantile", "min", "max", "kth_largest"])
def test_the_exponential_mechanism_puts_a_missing_person_at_the_grid_point_nearest_the_centre(kind: str) -> None:
    for question, epsilons, mechanism in laws("exponential", kind):
        assert_same_law(mechanism, question, epsilons, (4.0, NAN, 0.0), (4.0, 2.0, 0.0))
        assert_same_law(mechanism, question, epsilons, (NAN, NAN, NAN), (2.0, 2.0, 2.0))


@pytest.mark.parametrize(("bounds", "step", "centre"), [((0, 4), 1, 2), ((0, 10), 4, 4), ((-1, 2), 0.25, 0.5)])
def test_the_stand_in_is_on_the_grid(bounds: tuple[float, float], step: float, centre: float) -> None:
    statistic = order.median(bounds, step)
    assert statistic.value(statistic.default_cell) == centre


def test_the_weighted_quantile_leaves_missing_people_out() -> None:
    """Their weight counts on neither side, unlike that of somebody who stands in the middle."""
    epsilons = (0.5, 1.0, 2.0, 0.7)
    with_gap = eps.mechanisms.weighted.quantile_pmf([0, NAN, 4, 1], epsilons, 0.5, bounds=GRID, step=1)[1]
    without = eps.mechanisms.weighted.quantile_pmf([0, 4, 1], (0.5, 2.0, 0.7), 0.5, bounds=GRID, step=1)[1]
    centred = eps.mechanisms.weighted.quantile_pmf([0, 2, 4, 1], epsilons, 0.5, bounds=GRID, step=1)[1]
    np.testing.assert_allclose(with_gap, without, atol=1e-9)
    assert np.abs(with_gap - centred).max() > 0.01


@pytest.mark.parametrize("kind", ["median", "min", "max", "kth_largest"])
def test_with_everybody_missing_every_grid_point_is_as_likely(kind: str) -> None:
    """Mechanisms that leave missing people out know nothing then."""
    for name in ("minimum", "threshold", "sample"):
        for question, epsilons, mechanism in laws(name, kind):
            law = mechanism.distribution(question, ArrayPeople.of((NAN, NAN, NAN), roster_of(list(epsilons))))[1]
            np.testing.assert_allclose(np.exp(law), 1 / 5, atol=1e-12)


def test_only_a_mechanism_that_imputes_says_so() -> None:
    """Under "replace" a stand-in is one more value, so the promise covers absence; for the others it need not."""
    imputing = {name for name, kind in eps.mechanisms.base.list_mechanisms().items() if kind.imputes}
    assert imputing == {"exponential", "smooth-sensitivity"}
