"""How far one person, or a few, could move an answer, given the data as they are: local and smooth sensitivities.

Everything here depends on private values: none of it may be shown, stored or logged.

For an order statistic at rank k of sorted grid points x_0 <= ... <= x_{n-1} (x_{-1} and x_n are the ends of the grid),
replacing a record below the rank can move the answer up to x_{k+1}, one above it down to x_{k-1}, the record at the
rank itself either way. The averaged median of an even number of values moves by half of what both its values move.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from epsilons.summaries.arrays import Floats
from epsilons.summaries.cells import SortedCells

# Local sensitivity, for individual privacy only (Soria-Comas et al. 2017). Neighbours replace one record by another; a
# missing person stands at a public value.


@dataclass(frozen=True)
class Local:
    """An exact answer in steps of `step` grid points, and each level's largest local sensitivity (0 without people)."""

    answer: int
    reach: tuple[int, ...]
    step: Fraction = Fraction(1)


class Ranked:
    """Sorted positions with public ends beyond them."""

    def __init__(self, values: Sequence[int], low: int, high: int, first: int = 0, people: int | None = None) -> None:
        self._values, self._low, self._high, self._first = values, low, high, first
        self._people = len(values) if people is None else people

    @classmethod
    def of(cls, cells: SortedCells, points: int) -> Ranked:
        """The sorted grid points of everyone."""
        return cls(cells.cells(0, cells.people), 0, points - 1)  # type: ignore[arg-type]

    def __getitem__(self, position: int) -> int:
        if 0 <= position < self._people:
            return int(self._values[position - self._first])
        return self._low if position < 0 else self._high


def rank_reaches(x: Ranked, rank: int) -> tuple[int, int, int]:
    """How far replacing one record moves the value at a rank: a record below it, the one at it, one above it."""
    up, down = x[rank + 1] - x[rank], x[rank] - x[rank - 1]
    return up, max(up, down), down


def order_local(cells: SortedCells, points: int, rank: int, averaged: bool) -> Local:
    """The local sensitivity of each level's people for an order statistic; `averaged`, of the two middle values."""
    x = Ranked.of(cells, points)
    if averaged:
        k = cells.people // 2 - 1
        return Local(x[k] + x[k + 1], _largest(cells, middle_spans(x, cells.people)), Fraction(1, 2))
    return Local(x[rank], _largest(cells, rank_spans(x, rank, cells.people)))


def rank_spans(x: Ranked, rank: int, people: int) -> list[tuple[int, int, int]]:
    """(first place, last but one, how far one of them moves the value at a rank): below it, at it, above it."""
    below, at, above = rank_reaches(x, rank)
    return [(0, rank, below), (rank, rank + 1, at), (rank + 1, people, above)]


def middle_spans(x: Ranked, people: int) -> list[tuple[int, int, int]]:
    """The same for the average of the two middle values, in half steps: below, lower middle, upper middle, above."""
    k = people // 2 - 1
    up, down = x[k + 2] - x[k], x[k + 1] - x[k - 1]
    lower, upper = max(up, x[k] - x[k - 1]), max(down, x[k + 2] - x[k + 1])
    return [(0, k, up), (k, k + 1, lower), (k + 1, k + 2, upper), (k + 2, people, down)]


def _largest(cells: SortedCells, spans: Sequence[tuple[int, int, int]]) -> tuple[int, ...]:
    """For each level the largest reach among the spans of positions in which it has people."""
    reach = np.zeros(cells.levels, np.int64)
    for start, stop, size in spans:
        there = cells.before(max(stop, start)) - cells.before(start) > 0
        reach[there] = np.maximum(reach[there], size)
    return tuple(int(r) for r in reach)


def group_rank_reach(x: Ranked, rank: int, size: int) -> int:
    """How far replacing `size` records moves the value at a rank."""
    return max(x[rank + size] - x[rank], x[rank] - x[rank - size])


def group_even_median_reach(x: Ranked, people: int, size: int) -> int:
    """Twice how far replacing `size` records moves the average of the two middle values."""
    k = people // 2 - 1
    return max(x[k + size] - x[k] + x[k + 1 + size] - x[k + 1], x[k] - x[k - size] + x[k + 1] - x[k + 1 - size])


#: The result differs from the true S by less than this fraction of it. Windows that matter have exponents below 80
#: (2^50 grid points against the least S), whose rounding is 80 * 2^-52; products and near ties add 2^-47 at most.
RELATIVE_ERROR = Fraction(1, 1 << 44)
LEAST = Fraction(1, 1 << 64)
#: A bound that is smooth for this beta is smooth for any larger one, and not noticeably wider.
LARGEST_BETA = Fraction(64)


def smooth_sensitivity(cells: NDArray[np.int64], rank: int, points: int, beta: Fraction) -> Fraction:
    """S(D) for the value at a 0-based rank of sorted grid points 0..points-1, to `RELATIVE_ERROR`; in grid points.

    Nissim, Raskhodnikova and Smith 2007, Definition 2.2: S(D) = max over data sets D' of exp(-beta d(D, D')) LS(D'),
    the least upper bound of the local sensitivity LS that changes by a factor of at most e^beta from one data set to a
    neighbour. For the value at rank k of sorted grid points x_0 <= ... <= x_{n-1}, padded with the grid's ends on both
    sides (their section 3.1 for the odd median; Soria-Comas et al. 2017, section 6.1.2):

        S(D) = max over windows i <= k <= j, i < j, of (x_j - x_i) exp(-beta (j - i - 1)).

    Why, also when n is not fixed. LS: a person who joins, leaves or moves shifts the value at rank k by one place at
    most, to x_{k-1} or x_{k+1}. Smoothness: take the best window of D. In the neighbour D' there is a window that is as
    wide or wider, one place longer at most, and around the new rank, since a person who leaves an end lets in the next
    one out; so S(D') >= e^-beta S(D). Both need of the new rank only that it stays, or moves by one the way n does,
    which holds for floor(q n) and for ranks counted from either end. With n fixed S is the definition's maximum itself;
    the tests hold it to all of this by enumeration.

    Beyond the definition, S is never less than 2^-64 grid points: the larger of a smooth bound and a constant is a
    smooth bound, and so the noise, however small, never vanishes on one data set and not on its neighbour.

    Found with floats, given as the exact fraction that the float is. Noise that is calibrated with it must leave
    room: against the true S the bound on LS is off by a factor of 1 - RELATIVE_ERROR at worst, and beta by twice that.

    >>> cells = np.array([0, 2, 3, 9, 9])
    >>> [round(float(smooth_sensitivity(cells, 2, 10, Fraction(beta))), 6) for beta in ("1/10", "2")]
    [7.368577, 6.0]
    """
    if not 0 <= rank < len(cells):
        raise ValueError("a rank is the place of a person")
    middle, beta = int(cells[rank]), min(beta, LARGEST_BETA)
    left = _side(middle - cells[: rank + 1][::-1], middle, beta)
    right = _side(cells[rank:] - middle, points - 1 - middle, beta)
    return max(Fraction(_widest(left, right) * math.exp(beta)), LEAST)


@dataclass(frozen=True, eq=False)
class _Side:
    """Ends of windows on one side: how far out in grid points, ascending, and exp(-beta places)."""

    reach: Floats
    weight: Floats

    def where(self, kept: NDArray[np.bool_]) -> _Side:
        """Some ends; of people at the same grid point only the nearest in rank matters."""
        reach, weight = self.reach[kept], self.weight[kept]
        first = np.append(True, reach[1:] != reach[:-1])[: len(reach)]
        return _Side(reach[first], weight[first])


def _side(reach: NDArray[np.int64], end: int, beta: Fraction) -> _Side:
    """Everybody on one side, then the grid's end; windows of exponent 80 are narrower than the least S on any grid."""
    places = min(len(reach), math.ceil(80 / beta) + 2)
    distance = np.append(reach[:places], end) if places == len(reach) else reach[:places]
    return _Side(distance.astype(np.float64), np.exp(-float(beta) * np.arange(len(distance))))


def _widest(left: _Side, right: _Side) -> float:
    """max over ends of (reach_left + reach_right) weight_left weight_right.

    Only ends that could be part of the best window stay: a weight is at most 1, so with right ends at best M =
    max(reach weight) a left end gives at most weight (M + reach); that must reach what some window is known to have.
    """
    if not len(left.reach) or not len(right.reach):
        return 0.0
    gains = left.reach * left.weight, right.reach * right.weight
    tops = float(gains[0].max()), float(gains[1].max())
    i, j = int(gains[0].argmax()), int(gains[1].argmax())
    together = float((left.reach[i] + right.reach[j]) * left.weight[i] * right.weight[j])
    first = max(tops[0] * float(right.weight[0]), tops[1] * float(left.weight[0]))
    best = max(first, together) * (1 - 1e-9)
    left = left.where(gains[0] + left.weight * tops[1] >= best)
    right = right.where(gains[1] + right.weight * tops[0] >= best)
    return max(first, together, _search(left, right))


def _search(left: _Side, right: _Side) -> float:
    """That maximum by divide and conquer on the best right end of a left end (Nissim et al. 2007, section 3.1).

    For two right ends the ratio (reach_left + r)/(reach_left + r') falls in reach_left if r > r', so the best right
    end only ever moves inwards as the left end moves outwards. For the same reason a near tie, decided wrongly by a
    rounding of one part in 2^52, costs the rows that rely on it no more than that. Rows of one level are done at once:
    log2(rows) levels look at rows + columns windows each.
    """
    rows, best = len(left.reach), 0.0
    chosen = np.zeros(rows + 1, np.int64)
    chosen[0] = len(right.reach) - 1
    step = 1 << max(rows - 1, 0).bit_length()
    while step:
        row = np.arange(step, rows + 1, 2 * step)  # counted from 1; multiples of 2*step are done
        if len(row):
            lowest = np.where(row + step <= rows, chosen[np.minimum(row + step, rows)], 0)
            sizes = chosen[row - step] - lowest + 1
            starts = np.cumsum(sizes) - sizes
            column = np.arange(int(sizes.sum())) - np.repeat(starts - lowest, sizes)
            values = (np.repeat(left.reach[row - 1], sizes) + right.reach[column]) * right.weight[column]
            most = np.maximum.reduceat(values, starts)
            hits = np.flatnonzero(values == np.repeat(most, sizes))
            chosen[row] = column[hits[np.searchsorted(hits, starts)]]
            best = max(best, float((most * left.weight[row - 1]).max()))
        step //= 2
    return best
