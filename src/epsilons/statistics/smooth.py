"""How far an order statistic could move: its smooth sensitivity on the grid of possible answers.

Nissim, Raskhodnikova and Smith 2007, Definition 2.2: S(D) = max over data sets D' of exp(-beta d(D, D')) LS(D'), the
least upper bound of the local sensitivity LS that changes by a factor of at most e^beta from one data set to a
neighbour. For the value at rank k of sorted grid points x_0 <= ... <= x_{n-1}, padded with the grid's ends on both
sides (their section 3.1 for the odd median; Soria-Comas et al. 2017, section 6.1.2):

    S(D) = max over windows i <= k <= j, i < j, of (x_j - x_i) exp(-beta (j - i - 1)).

Why, also when n is not fixed. LS: a person who joins, leaves or moves shifts the value at rank k by one place at most,
to x_{k-1} or x_{k+1}. Smoothness: take the best window of D. In the neighbour D' there is a window that is as wide or
wider, one place longer at most, and around the new rank, since a person who leaves an end lets in the next one out;
so S(D') >= e^-beta S(D). Both need of the new rank only that it stays, or moves by one the way n does, which holds for
floor(q n) and for ranks counted from either end. With n fixed S is the definition's maximum itself; the tests hold it
to all of this by enumeration.

Beyond the definition, S is never less than 2^-64 grid points: the larger of a smooth bound and a constant is a smooth
bound, and so the noise, however small, never vanishes on one data set and not on its neighbour.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: The result differs from the true S by less than this fraction of it. Windows that matter have exponents below 80
#: (2^50 grid points against the least S), whose rounding is 80 * 2^-52; products and near ties add 2^-47 at most.
RELATIVE_ERROR = Fraction(1, 1 << 44)
LEAST = Fraction(1, 1 << 64)
#: A bound that is smooth for this beta is smooth for any larger one, and not noticeably wider.
LARGEST_BETA = Fraction(64)


def smooth_sensitivity(cells: NDArray[np.int64], rank: int, points: int, beta: Fraction) -> Fraction:
    """S(D) for the value at a 0-based rank of sorted grid points 0..points-1, to `RELATIVE_ERROR`; in grid points.

    Found with floats, given as the exact fraction that the float is. Whoever calibrates noise with it must leave room:
    against the true S the bound on LS is off by a factor of 1 - RELATIVE_ERROR at worst, and beta by twice that.

    >>> cells = np.array([0, 2, 3, 9, 9])
    >>> [round(float(smooth_sensitivity(cells, 2, 10, Fraction(beta))), 6) for beta in ("1/10", "2")]
    [7.368577, 6.0]
    """
    if not 0 <= rank < len(cells):
        raise ValueError("a rank is the place of somebody")
    middle, beta = int(cells[rank]), min(beta, LARGEST_BETA)
    left = _side(middle - cells[: rank + 1][::-1], middle, beta)
    right = _side(cells[rank:] - middle, points - 1 - middle, beta)
    widest = _widest(left, right) * math.exp(beta)
    return max(Fraction(widest), LEAST)


def averaged_median_sensitivity(cells: NDArray[np.int64], points: int, beta: Fraction) -> Fraction:
    """S(D) for the mean of the two middle ones of an even number of grid points; as `smooth_sensitivity` otherwise.

    A change moves one of the two by one place, so windows span two places or more:

        S(D) = max over i <= k-1, j >= k, j - i >= 2, of (x_j - x_i)/2 exp(-beta (j - i - 2)),  k = n/2.
    """
    count = len(cells)
    if count == 0 or count % 2:
        raise ValueError("the middle two are of an even number of people")
    lower, upper = count // 2 - 1, count // 2
    middle, beta = int(cells[lower]), min(beta, LARGEST_BETA)
    # From the lower of the two leftwards, and from the upper rightwards, with the distance between them included.
    left = _side(middle - cells[:upper][::-1], middle, beta)
    right = _side(cells[upper:] - middle, points - 1 - middle, beta)
    # All windows but the one from the lower to the upper itself, which spans one place only.
    widest = max(_widest(left.beyond_first(), right), _widest(left, right.beyond_first()))
    return max(Fraction(widest * math.exp(beta) / 2), LEAST)


class _Side:
    """Ends of windows on one side: how far out in grid points, ascending, and exp(-beta places)."""

    def __init__(self, reach: Floats, weight: Floats) -> None:
        self.reach = reach
        self.weight = weight

    def beyond_first(self) -> _Side:
        return _Side(self.reach[1:], self.weight[1:])

    def where(self, kept: NDArray[np.bool_]) -> _Side:
        return _Side(self.reach[kept], self.weight[kept])


def _side(reach: NDArray[np.int64], end: int, beta: Fraction) -> _Side:
    """Everybody on one side, then the grid's end; without those too far away to matter whatever they have.

    A window of exponent 80 is narrower than the least S even if it spans 2^50 grid points.
    """
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
    left = _first_of_ties(left.where(gains[0] + left.weight * tops[1] >= best))
    right = _first_of_ties(right.where(gains[1] + right.weight * tops[0] >= best))
    return max(first, together, _search(left, right))


def _first_of_ties(side: _Side) -> _Side:
    """Of people at the same grid point only the nearest in rank matters."""
    kept = np.ones(len(side.reach), np.bool_)
    kept[1:] = side.reach[1:] != side.reach[:-1]
    return side.where(kept)


def _search(left: _Side, right: _Side) -> float:
    """The same maximum by divide and conquer on the best right end of a left end (Nissim et al. 2007, section 3.1).

    For two right ends the ratio (reach_left + r)/(reach_left + r') falls in reach_left if r > r', so the best right
    end only ever moves inwards as the left end moves outwards. For the same reason a near tie, decided wrongly by a
    rounding of one part in 2^52, costs the rows that rely on it no more than that. Rows of one level are done at once:
    log2(rows) levels look at rows + columns windows each.
    """
    rows, columns = len(left.reach), len(right.reach)
    chosen = np.zeros(rows + 1, np.int64)
    chosen[0] = columns - 1
    best = 0.0
    step = 1 << max(rows - 1, 0).bit_length()
    while step:
        row = np.arange(step, rows + 1, 2 * step)  # counted from 1; multiples of 2*step are done
        if len(row):
            highest = chosen[row - step]
            done = row + step <= rows
            lowest = np.where(done, chosen[np.minimum(row + step, rows)], 0)
            sizes = highest - lowest + 1
            starts = np.cumsum(sizes) - sizes
            column = np.arange(int(sizes.sum())) - np.repeat(starts - lowest, sizes)
            values = (np.repeat(left.reach[row - 1], sizes) + right.reach[column]) * right.weight[column]
            most = np.maximum.reduceat(values, starts)
            hits = np.flatnonzero(values == np.repeat(most, sizes))
            chosen[row] = column[hits[np.searchsorted(hits, starts)]]
            best = max(best, float((most * left.weight[row - 1]).max()))
        step //= 2
    return best
