"""List the answers of an order statistic outward from the likeliest, as segments of equal cost.

Between two neighbouring values that people have, every grid point has the same people to its left and to its right,
and so the same cost. Costs never fall on the way out from the rank asked for, so a draw needs to look only as far as
the remaining probability could still matter: what a draw costs depends on the epsilons, hardly on how many people.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilons.noise.segments import Block
from epsilons.summaries.cells import Integers as Counts
from epsilons.summaries.cells import SortedCells

#: int64, or Python integers where that is too small.
Costs = NDArray[Any]
_Segments = tuple[Counts, Counts, Counts, Counts]

_FIRST_BLOCK = 512
_MOST_ENTRIES = 1 << 22
_INT64_SAFE = 1 << 62


class Cost(ABC):
    """A cost per grid point that never falls on the way out from its cheapest point."""

    @abstractmethod
    def start(self, cells: SortedCells) -> int:
        """The position of an entry at the cheapest grid point that a person has."""

    @abstractmethod
    def at(self, left: Counts, upto: Counts) -> tuple[Costs, NDArray[np.bool_]]:
        """(costs, possible) for rows of people per level strictly left of a point, and at or left of it."""


@dataclass(frozen=True)
class RankCost(Cost):
    """The cost of Jorgensen et al. 2015, Definition 10: the cheapest people to change so that a point is at `rank`.

    cost(r) = the max(0, #{x<r} - k) smallest epsilons strictly left of r
            + the max(0, #{x>r} - (n-1-k)) smallest epsilons strictly right of r,
    for rank k, any n, ties, r among the values or not. Public people (None, last) cannot be changed.
    """

    epsilons: tuple[int | None, ...]
    totals: Counts
    rank: int

    def start(self, cells: SortedCells) -> int:
        return self.rank

    @cached_property
    def _people(self) -> int:
        return int(self.totals.sum())

    @cached_property
    def _prices(self) -> Costs:
        """Of those who are not public."""
        finite = [e for e in self.epsilons if e is not None]
        return np.array(finite, np.int64 if max(finite, default=0) * self._people < _INT64_SAFE else object)

    def at(self, left: Counts, upto: Counts) -> tuple[Costs, NDArray[np.bool_]]:
        right = self.totals - upto
        from_left, left_ok = self._cheapest(left, np.maximum(left.sum(axis=1) - self.rank, 0))
        from_right, right_ok = self._cheapest(right, np.maximum(right.sum(axis=1) - (self._people - 1 - self.rank), 0))
        return from_left + from_right, left_ok & right_ok

    def _cheapest(self, counts: Counts, number: Counts) -> tuple[Costs, NDArray[np.bool_]]:
        taken = np.minimum(np.maximum(number[:, None] - (counts.cumsum(axis=1) - counts), 0), counts)
        prices = self._prices
        possible = taken[:, len(prices) :].sum(axis=1) == 0
        return (taken[:, : len(prices)].astype(prices.dtype, copy=False) * prices).sum(axis=1), possible


@dataclass(frozen=True)
class WeightCost(Cost):
    """The weighted quantile's score, max(W(<r) - qW, qW - W(<=r)), times the denominator of q.

    Below 0 where so many have one value that the quantile is deep inside: the more, the surer the answer.
    A person of weight w who moves changes it by at most w. One who joins or leaves changes W(<r) - qW by -qw or
    (1-q)w, and qW - W(<=r) by the opposite: at most max(q, 1-q) w (docs/theory.md).
    """

    weights: tuple[int, ...]
    totals: Counts
    q: Fraction

    @cached_property
    def _whole(self) -> int:
        return sum(int(n) * w for n, w in zip(self.totals, self.weights, strict=True))

    @cached_property
    def _prices(self) -> Costs:
        bottom = self.q.denominator
        # Also for nobody at all: how many have a value, or were sampled, must not decide whether this fits.
        small = max(self._whole, *self.weights) * bottom < _INT64_SAFE
        return np.array([w * bottom for w in self.weights], np.int64 if small else object)

    def start(self, cells: SortedCells) -> int:
        return cells.position_of_weight(list(self.weights), self.q * self._whole)

    def at(self, left: Counts, upto: Counts) -> tuple[Costs, NDArray[np.bool_]]:
        prices, aim = self._prices, self.q.numerator * self._whole
        below = (left.astype(prices.dtype, copy=False) * prices).sum(axis=1)
        reach = (upto.astype(prices.dtype, copy=False) * prices).sum(axis=1)
        return np.maximum(below - aim, aim - reach), np.ones(len(below), bool)


def outward(points: int, cells: SortedCells, cost: Cost) -> Iterator[Block]:
    """Blocks of segments of a grid: first around the cheapest point, then alternately further right and left."""
    if cells.people == 0:
        flat, _ = cost.at(np.zeros((1, cells.levels), np.int64), np.zeros((1, cells.levels), np.int64))
        yield Block(first=[0], direction=1, count=[points], cost=[int(flat[0])], slope=[0], left_over=0, floor=0)
        return
    middle = cells.start_of_cell(int(cells.cells(position := cost.start(cells), position + 1)[0]))
    sides = [_Side(points, cells, cost, middle, rightward) for rightward in (True, False)]
    size = _FIRST_BLOCK
    while any(not side.done for side in sides):
        for side in sides:
            if side.done:
                continue
            first, count, price = side.next(size)
            to_come = [s for s in sides if not s.done]
            left_over, floor = sum(s.left_over for s in to_come), min((s.edge for s in to_come), default=0)
            yield Block(first, 1, count, price, 0, left_over, floor)
        size = min(2 * size, max(_FIRST_BLOCK, _MOST_ENTRIES // cells.levels))


def price_points(points: int, cells: SortedCells, cost: Cost) -> Costs:
    """What every point of a small grid costs, at once: where all of them are possible and all are wanted."""
    place = cells.cells(0, cells.people) * cells.levels + cells.codes(0, cells.people)
    here = np.bincount(place, minlength=points * cells.levels).reshape(points, cells.levels)
    upto = np.cumsum(here, axis=0)
    return cost.at(upto - here, upto)[0]


class _Side:
    """One direction of the listing: what remains of it and what its last point cost."""

    def __init__(self, points: int, cells: SortedCells, cost: Cost, middle: int, rightward: bool) -> None:
        self._points, self._cells, self._cost, self._rightward = points, cells, cost, rightward
        self._position, self._before = middle, cells.before(middle)
        #: The next grid point to list when going right; one past it when going left.
        self._frontier = int(cells.cells(middle, middle + 1)[0])
        #: Whether nothing with any probability is left, and a cost below which no unlisted point lies.
        self.done, self.edge = False, 0
        if not rightward:
            self._look_outward()

    @property
    def left_over(self) -> int:
        """Grid points of this side not listed yet."""
        return self._points - self._frontier if self._rightward else self._frontier

    def next(self, size: int) -> tuple[Counts, Counts, Costs]:
        """The next segments outward: (first point, number of points, cost), impossible ones left out."""
        first, count, left, upto = self._right(size) if self._rightward else self._left(size)
        price, possible = self._cost.at(left, upto)
        real = (count > 0) & possible
        self._look_outward()
        return first[real], count[real], price[real]

    def _look_outward(self) -> None:
        """Nothing unlisted is cheaper, or more possible, than the gap right after the entries listed so far."""
        price, possible = self._cost.at(self._before[None, :], self._before[None, :])
        self.edge = int(price[0])
        self.done = self.left_over == 0 or not possible[0]

    def _right(self, size: int) -> _Segments:
        """Occupied points from the frontier on, each followed by the empty points up to the next one."""
        cells, start = self._cells, self._position
        stop = min(start + size, cells.people)
        stop = cells.start_of_cell(int(cells.cells(stop - 1, stop)[0]) + 1)
        points, tally = self._count_points(start, stop)
        upto = self._before + np.cumsum(tally, axis=0)
        following = int(cells.cells(stop, stop + 1)[0]) if stop < cells.people else self._points
        self._position, self._before, self._frontier = stop, upto[-1], following
        return _with_gaps(points, following, upto - tally, upto)

    def _left(self, size: int) -> _Segments:
        """Occupied points left of the frontier, each followed by the empty points up to the next one."""
        cells, stop = self._cells, self._position
        if stop == 0:
            none = np.zeros((1, cells.levels), np.int64)
            count, self._frontier = self._frontier, 0
            return np.array([0]), np.array([count]), none, none
        start = cells.start_of_cell(int(cells.cells(max(stop - size, 0), stop)[0]))
        points, tally = self._count_points(start, stop)
        left, following = self._before - np.cumsum(tally[::-1], axis=0)[::-1], self._frontier
        self._position, self._before, self._frontier = start, left[0], int(points[0])
        return _with_gaps(points, following, left, left + tally)

    def _count_points(self, start: int, stop: int) -> tuple[Counts, Counts]:
        """The distinct grid points of the entries, and people per level at each."""
        place, levels = self._cells.cells(start, stop), self._cells.levels
        fresh = np.concatenate(([True], place[1:] != place[:-1]))
        points, row = place[fresh], np.cumsum(fresh) - 1
        flat = np.bincount(row * levels + self._cells.codes(start, stop), minlength=len(points) * levels)
        return points, flat.reshape(len(points), levels)


def _with_gaps(points: Counts, following: int, left: Counts, upto: Counts) -> _Segments:
    """Each point, and the empty ones after it up to the next: (first, count, people left of it, people up to it)."""
    first = points + 1
    gaps = np.concatenate((points[1:], [following])) - first
    return _weave(points, first), _weave(np.ones_like(points), gaps), _weave(left, upto), upto.repeat(2, axis=0)


def _weave(one: Counts, other: Counts) -> Counts:
    """The rows of both by turns."""
    woven = np.empty((2 * len(one), *one.shape[1:]), np.result_type(one, other))
    woven[::2], woven[1::2] = one, other
    return woven
