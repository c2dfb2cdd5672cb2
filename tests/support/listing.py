"""A naive evaluation of every grid point, and random people for it: ties, gaps, public people, many levels, nobody."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from epsilons.noise.segments import Block
from epsilons.statistics.order import Order
from epsilons.statistics.outward import Cost, RankCost, WeightCost
from epsilons.summaries import arrays
from epsilons.summaries.cells import SortedCells


def runs_of(block: Block) -> Iterator[tuple[int, int]]:
    """(outcome, cost) for every outcome of a block."""
    columns = (block.first, block.direction, block.count, block.cost, block.slope)
    runs = np.broadcast_arrays(*(np.asarray(column, dtype=object) for column in columns))
    for first, direction, count, cost, slope in zip(*runs, strict=True):
        for i in range(count):
            yield int(first + direction * i), int(cost + slope * i)


def naive_costs(statistic: Order, cells: SortedCells, cost: Cost) -> dict[int, int]:
    """{grid point: cost} for every possible point, each from its own count of the people left of it and at it."""
    place, code = cells.cells(0, cells.people), cells.codes(0, cells.people)
    naive = {}
    for point in range(statistic.points):
        left = np.bincount(code[place < point], minlength=cells.levels)
        upto = np.bincount(code[place <= point], minlength=cells.levels)
        if isinstance(cost, RankCost):
            price = _rank_cost(cost, left, upto)
        else:
            assert isinstance(cost, WeightCost)
            price = _weight_cost(cost, left, upto)
        if price is not None:
            naive[point] = price
    return naive


def _rank_cost(cost: RankCost, left: np.ndarray, upto: np.ndarray) -> int | None:
    """The cheapest surplus people on either side, one by one; None if a public person would have to change."""
    right = cost.totals - upto
    total = 0
    for side, allowed in ((left, cost.rank), (right, int(cost.totals.sum()) - 1 - cost.rank)):
        surplus = int(side.sum()) - allowed
        people = [e for e, n in zip(cost.epsilons, side, strict=True) for _ in range(int(n))]  # cheapest first
        for epsilon in people[: max(surplus, 0)]:
            if epsilon is None:
                return None
            total += epsilon
    return total


def _weight_cost(cost: WeightCost, left: np.ndarray, upto: np.ndarray) -> int:
    whole, below, reach = (
        sum(int(n) * w for n, w in zip(counts, cost.weights, strict=True)) for counts in (cost.totals, left, upto)
    )
    score = max(below - cost.q * whole, cost.q * whole - reach)
    return int(score * cost.q.denominator)


def random_people(seed: int) -> tuple[Order, SortedCells, list[Cost]]:
    """A grid, people on it, and costs at several ranks and quantiles. Every third seed has public people."""
    random = np.random.default_rng(seed)
    points, people, levels = int(random.integers(2, 60)), int(random.integers(0, 40)), int(random.integers(1, 30))
    if seed % 4 == 0:
        points, people = 5, 30  # many ties
    elif seed % 4 == 1:
        points, people = 300, 6  # wide gaps
    statistic = Order((0.0, float(points - 1)), 1, q=Fraction(1, 2))
    values = random.integers(0, points, people).astype(float)
    codes = random.integers(0, levels, people).astype(np.uint8)
    cells = arrays.cells(statistic, values, codes, levels)
    prices = np.cumsum(random.integers(1, 10**8, levels)).tolist()
    epsilons: tuple[int | None, ...] = tuple(prices)
    if seed % 3 == 0:
        epsilons = (*prices[:-1], None)
    ranks = sorted({0, people // 2, people - 1}) if people else []
    costs: list[Cost] = [RankCost(epsilons, cells.totals, rank) for rank in ranks]
    costs += [WeightCost(tuple(prices), cells.totals, q) for q in map(Fraction, ("0", "1/2", "3/10", "0.901", "1"))]
    return statistic, cells, costs
