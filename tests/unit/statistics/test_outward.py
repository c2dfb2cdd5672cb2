"""The lazy listing of answers against a naive evaluation of every grid point."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from epsilons.guarantee import NANO
from epsilons.noise.segments import SegmentSampler
from epsilons.statistics import order
from epsilons.statistics import outward as room
from epsilons.statistics.order import Order
from epsilons.statistics.outward import Cost, RankCost, WeightCost, outward
from epsilons.summaries import arrays
from epsilons.summaries.cells import SortedCells
from support.brute_force import exponential_pmf, rank_cost
from support.listing import naive_costs, random_people, runs_of

PUBLIC = math.inf


def cells_of(statistic: Order, values: list[float], codes: list[int], levels: int) -> SortedCells:
    return arrays.cells(statistic, np.array(values, float), np.array(codes, np.uint8), levels)


@pytest.mark.parametrize("block", [1, 2, 3, 512])
@pytest.mark.parametrize("seed", range(12))
def test_blocks_list_every_possible_answer_once_at_its_cost(
    seed: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "_FIRST_BLOCK", block)
    statistic, cells, costs = random_people(seed)
    for cost in costs:
        listed: dict[int, int] = {}
        for part in outward(statistic.points, cells, cost):
            for point, price in runs_of(part):
                assert point not in listed
                listed[point] = price
        assert listed == naive_costs(statistic, cells, cost)


@pytest.mark.parametrize("block", [1, 2, 512])
@pytest.mark.parametrize("seed", range(12))
def test_floors_and_left_overs_are_true_after_every_block(
    seed: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a draw relies on when it stops early: nothing unlisted is cheaper, and there is no more of it than said."""
    monkeypatch.setattr(room, "_FIRST_BLOCK", block)
    statistic, cells, costs = random_people(seed)
    for cost in costs:
        rest = naive_costs(statistic, cells, cost)
        everywhere = statistic.points == len(rest)
        for part in outward(statistic.points, cells, cost):
            listed = dict(runs_of(part))
            rest = {point: price for point, price in rest.items() if point not in listed}
            assert len(rest) <= part.left_over
            assert min(rest.values(), default=math.inf) >= part.floor
            if everywhere:
                assert len(rest) == part.left_over
        assert part.left_over == 0
        assert not rest


@pytest.mark.parametrize("seed", range(6))
def test_probabilities_of_a_lazy_listing_are_those_of_the_naive_one(seed: int) -> None:
    statistic, cells, costs = random_people(seed)
    for cost in costs:
        unit = Fraction(1, 2 * NANO)
        outcomes, chances = SegmentSampler(outward(statistic.points, cells, cost), unit).probabilities()
        naive = naive_costs(statistic, cells, cost)
        assert outcomes.tolist() == sorted(naive)
        expected = exponential_pmf(np.array([naive[r] for r in sorted(naive)], float) / NANO)
        np.testing.assert_allclose(chances, expected, rtol=0, atol=1e-12)


def test_thousands_of_people_over_several_blocks() -> None:
    """More people than one block holds, at ranks in the middle and at both ends, one level public."""
    random = np.random.default_rng(4)
    statistic = order.median((0.0, 2000.0), 1)
    values, codes = random.integers(0, 2001, 1600).astype(float), random.integers(0, 3, 1600).astype(np.uint8)
    cells = arrays.cells(statistic, values, codes, 3)
    for grants in ((10**6, 2 * 10**6, 5 * 10**6), (10**6, 2 * 10**6, None)):
        for rank in (0, 7, 800, 1599):
            cost = RankCost(grants, cells.totals, rank)
            listed = dict(run for part in outward(statistic.points, cells, cost) for run in runs_of(part))
            assert listed == naive_costs(statistic, cells, cost)


def test_the_rank_cost_of_a_listing_is_the_closed_form() -> None:
    values, epsilons, rank = [3, 5, 6, 9, 11, 5, 5], [0.1, 1, 1, 0.5, 1, 0.1, 0.5], 3
    statistic = order.Order((1.0, 12.0), 1, from_low=rank)
    grants = (10**8, 5 * 10**8, 10**9)
    codes = [grants.index(round(e * NANO)) for e in epsilons]
    cells = cells_of(statistic, values, codes, 3)
    cost = RankCost(grants, cells.totals, rank)
    listed = dict(run for part in outward(statistic.points, cells, cost) for run in runs_of(part))
    for point, price in listed.items():
        assert price == round(rank_cost(values, epsilons, rank, point + 1) * NANO)


def test_nobody_leaves_every_answer_equally_likely() -> None:
    statistic = order.median((0.0, 9.0), 1)
    cells = cells_of(statistic, [math.nan, math.nan], [0, 1], 2)
    costs: list[Cost] = [RankCost((5, 7), cells.totals, 0), WeightCost((5, 7), cells.totals, Fraction(1, 2))]
    for cost in costs:
        (only,) = outward(statistic.points, cells, cost)
        assert (only.left_over, dict(runs_of(only))) == (0, dict.fromkeys(range(10), 0))


@pytest.mark.parametrize(("rank", "possible"), [(0, range(3)), (1, range(2, 8)), (2, range(7, 10))])
def test_public_people_confine_the_answers(rank: int, possible: range) -> None:
    """Public values 2 and 7 and one private person: the minimum is at most 2, the maximum at least 7."""
    statistic = order.Order((0.0, 9.0), 1, from_low=rank)
    for value in (0.0, 2.0, 5.0, 7.0, 9.0):
        cells = cells_of(statistic, [value, 2.0, 7.0], [0, 1, 1], 2)
        cost = RankCost((10, None), cells.totals, rank)
        listed = [run for part in outward(statistic.points, cells, cost) for run in runs_of(part)]
        assert sorted(point for point, _ in listed) == list(possible)


@pytest.mark.parametrize("start", [0.0, 9.0])
def test_costs_beyond_64_bits_are_listed_as_they_are(start: float) -> None:
    statistic = order.median((0.0, 9.0), 1)
    cells = cells_of(statistic, [start] * 9 + [5.0], [0] * 9 + [1], 2)
    cost = RankCost((10**15, 10**18), cells.totals, 5)
    wide = WeightCost((10**15, 10**15 - 1), cells.totals, Fraction(123456789, 10**9 + 7))
    for each in (cost, wide):
        listed = dict(run for part in outward(statistic.points, cells, each) for run in runs_of(part))
        assert listed == naive_costs(statistic, cells, each)
    assert max(naive_costs(statistic, cells, wide).values()) > 2**63
