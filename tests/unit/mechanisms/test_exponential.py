"""Paper 1's exponential mechanism against its definition, by trying every data set there is."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

import epsilons as eps
from support.brute_force import Worlds, at_rank, exponential_pmf, ones, rank_cost
from support.lengths import short_and_long

PUBLIC = math.inf
#: n people: all alike, all different, ties among them, extremes, public people in several places.
ROSTERS: list[tuple[float, ...]] = [
    (0.5,),
    (PUBLIC,),
    (1.0, 1.0),
    (0.1, PUBLIC),
    (0.3, 0.3, 0.3),
    (0.1, 2.0, 0.7),
    (PUBLIC, 0.2, 1.0),
    (PUBLIC, 0.2, PUBLIC),
    (0.4, 0.4, 1.1, 0.4),
    (0.01, 0.5, PUBLIC, 3.0),
]
FIVE: list[tuple[float, ...]] = [(1.0,) * 5, (0.1, 1.0, 1.0, 0.5, 0.7), (0.2, PUBLIC, 0.9, 0.2, 1.3)]


def assert_same_law(
    found: tuple[np.ndarray, np.ndarray], outcomes: np.ndarray, costs: np.ndarray, case: object
) -> None:
    np.testing.assert_array_equal(found[0], outcomes)
    np.testing.assert_allclose(found[1], exponential_pmf(costs), rtol=0, atol=1e-12, err_msg=str(case))


@pytest.mark.parametrize("epsilons", [r for r in ROSTERS + FIVE if len(r) > 1 or math.isfinite(r[0])])
def test_count_follows_definition_10(epsilons: tuple[float, ...]) -> None:
    worlds = Worlds((0, 1), len(epsilons), ones)
    for data in worlds.data:
        costs = worlds.costs(data, np.array(epsilons))
        assert_same_law(eps.mechanisms.exponential.count_pmf(data, epsilons), worlds.outcomes, costs, data)


def assert_order_follows_definition(epsilons: tuple[float, ...], grid: Sequence[int], every: int = 1) -> None:
    """On one of so many data sets, others at every rank: `every` has no divisor in common with the size of the grid."""
    n, bounds = len(epsilons), (grid[0], grid[-1])
    for rank in range(n):
        worlds = Worlds(grid, n, at_rank(rank))
        for data in worlds.data[rank % every :: every]:
            found = eps.mechanisms.exponential.order_pmf(data, epsilons, rank=rank, bounds=bounds, step=1)
            assert_same_law(found, worlds.outcomes, worlds.costs(data, np.array(epsilons)), (data, rank))


@pytest.mark.parametrize("epsilons", [r for r in ROSTERS if len(r) <= 3 and any(map(math.isfinite, r))])
def test_every_rank_of_up_to_three_people_follows_definition_10(epsilons: tuple[float, ...]) -> None:
    """All data sets on five grid points, ties and all, every rank."""
    assert_order_follows_definition(epsilons, range(1, 6))


@pytest.mark.parametrize("every", short_and_long(3, 1))
@pytest.mark.parametrize("epsilons", [r for r in ROSTERS if len(r) == 4])
def test_every_rank_of_four_people_follows_definition_10(epsilons: tuple[float, ...], every: int) -> None:
    assert_order_follows_definition(epsilons, range(4), every)


@pytest.mark.parametrize("every", short_and_long(4, 1))
@pytest.mark.parametrize("epsilons", FIVE)
def test_every_rank_of_five_people_follows_definition_10(epsilons: tuple[float, ...], every: int) -> None:
    assert_order_follows_definition(epsilons, range(3), every)


@pytest.mark.soak
@pytest.mark.parametrize("epsilons", FIVE)
def test_every_rank_of_five_people_on_five_points_follows_definition_10(epsilons: tuple[float, ...]) -> None:
    assert_order_follows_definition(epsilons, range(5))


@pytest.mark.parametrize("epsilons", [(0.4, 0.4, 1.1, 0.4), (0.1, 0.9, 0.3, 2.0)])
def test_the_closed_form_is_definition_10(epsilons: tuple[float, ...]) -> None:
    """What larger tests use instead of all data sets is itself held to the definition."""
    for rank in range(4):
        worlds = Worlds(range(5), 4, at_rank(rank))
        for data in worlds.data[::3]:
            closed = [rank_cost(data, epsilons, rank, r) for r in worlds.outcomes]
            np.testing.assert_allclose(closed, worlds.costs(data, np.array(epsilons)), atol=1e-12)


def test_the_papers_example_of_a_median() -> None:
    """d(3)=d(4)=-1.5, d(5)=-.5, d(11)=-.6: costs show as logarithms of probability ratios."""
    outcomes, chances = eps.mechanisms.exponential.order_pmf(
        [3, 5, 6, 9, 11], [0.1, 1, 1, 0.5, 1], rank=2, bounds=(1, 12), step=1
    )
    scores = dict(zip(outcomes.tolist(), (2 * np.log(chances / chances.max())).tolist(), strict=True))
    assert scores[6] == 0
    expected = {3: -1.5, 4: -1.5, 5: -0.5, 11: -0.6}
    assert {r: scores[r] for r in expected} == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_median_min_and_max_are_the_ranks_of_the_paper(n: int) -> None:
    """min: k=0; max: k=n-1; median: k=floor(n/2); the k-th largest: n-k."""
    from epsilons.statistics import order

    bounds = (0, 9)
    assert order.median(bounds, 1).rank(n) == n // 2
    assert order.minimum(bounds, 1).rank(n) == 0
    assert order.maximum(bounds, 1).rank(n) == n - 1
    assert order.kth_largest(2, bounds, 1).rank(n) == n - 2


def test_public_people_rule_out_answers_that_only_they_could_make() -> None:
    """The maximum cannot lie below a public person's value, whoever else changes."""
    outcomes, chances = eps.mechanisms.exponential.order_pmf(
        [0, 2, 1], [0.5, PUBLIC, 1.0], rank=2, bounds=(0, 4), step=1
    )
    assert dict(zip(outcomes.tolist(), (chances > 0).tolist(), strict=True)) == {
        0: False,
        1: False,
        2: True,
        3: True,
        4: True,
    }
