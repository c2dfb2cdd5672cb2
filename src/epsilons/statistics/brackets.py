"""What the interval of a quantile is made from: noisy weights of the cells around a first draw.

The cells end at cuts on either side of the first draw, each twice as far from it as the one before, out to the bounds.
A row is in one cell, so a noise for each cell costs no more than a noise for one of them. `accuracy/quantiles.py` makes
the interval of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from epsilons.guarantee import NANO
from epsilons.noise.laplace import discrete_laplace_many

if TYPE_CHECKING:
    from epsilons.noise.entropy import Entropy
    from epsilons.statistics.base import Weighting
    from epsilons.statistics.order import Order
    from epsilons.summaries.cells import SortedCells

Floats = NDArray[np.float64]

#: The nearest cut has this part of what one unit of weight would span if all of it were spread evenly.
_PART = 8
#: A cell so much heavier than its noise of scale 1 holds a value that many share: the first draw is not moved off it.
_HEAVY = 10.0
#: A height so many standard deviations of its noise from 0 shows that the first draw lies on the wrong side of its cut.
_CONTRADICTED = 3.0


@dataclass(frozen=True)
class Bracket:
    """A first draw, the cuts around it (grid points that end a cell) and the noisy weight of each cell in epsilon."""

    first: int
    cuts: tuple[int, ...]
    weights: tuple[float, ...]

    def heights(self, q: float) -> Floats:
        """The weight up to each cut less q of all: below 0 left of the quantile, above 0 right of it, but for noise."""
        upto = np.cumsum(self.weights)
        return np.asarray(upto[:-1] - q * upto[-1])

    def contradicted(self, q: float, own: int) -> bool:
        """Whether the cells show, by the cut on either side of the first draw's own cell, that it is far off."""
        upto, cells = np.arange(1, len(self.weights)), len(self.weights)
        reach = _CONTRADICTED * np.sqrt(2 * (upto * (1 - q) ** 2 + (cells - upto) * q**2))
        heights, enough = self.heights(q), reach < min(q, 1 - q) * certain_weight(self.weights)
        above, below = enough & (heights > reach), enough & (heights < -reach)
        return bool(above[:own][-1:].any() or below[own:][:1].any())


@dataclass(frozen=True)
class Split:
    """How an epsilon is split between the first draw and the cells: weights of both for one epsilon, from public facts.

    A row that joins or leaves moves the score by `score_reach` and one cell by 1; one that moves changes two cells.
    """

    first: Fraction
    cells: Fraction

    @classmethod
    def of(cls, statistic: Order, neighbors: str) -> Split:
        rows = 1 if statistic.scope is None else statistic.scope.rows
        part = statistic.for_interval if statistic.has_bracket else Fraction(0)
        reach = statistic.per_row(neighbors) * statistic.score_reach(neighbors)
        own = statistic.portion
        return cls(own * (1 - part) / reach, own * part / (rows * (1 if statistic.leaves(neighbors) else 2)))

    def cell_weights(self, weighting: Weighting) -> list[int]:
        """Of a row in its cell by level, in nano-epsilon, rounded down."""
        return round_losses(weighting, self.cells)

    def pull(self, q: float, cells: int) -> float:
        """How far the first draw goes towards where the cells say the quantile is: by the variances of both."""
        if not self.cells:
            return 0.0
        drawn = 8 / float(self.first) ** 2
        counted = cells * ((1 - q) ** 2 + q**2) / float(self.cells) ** 2
        return drawn / (drawn + counted)


def round_losses(weighting: Weighting, share: Fraction) -> list[int]:
    """A share of every level's exact loss, rounded down, in whole numbers: a draw asks several times."""
    part = weighting.rate * share / weighting.one
    up, down = part.numerator, part.denominator
    return [weight * up // down for weight in weighting.weights]


def nearest_cut(statistic: Order, weight: Fraction, people: int) -> int:
    """How far the nearest cut is from the first draw, in steps of the grid: nearer ones would only add noise.

    `weight` is everybody's epsilon that is used; what counts of it is no more than the number of people.
    """
    counted = min(weight, Fraction(people)) * Fraction(1 if statistic.scope is None else statistic.scope.expected)
    return max(1, math.floor(statistic.points / (_PART * max(Fraction(1), counted))))


def place_cuts(first: int, points: int, nearest: int) -> tuple[int, ...]:
    """Grid points that end a cell, ascending; with a nearest cut of 1 the first draw has a cell of its own."""
    away = [nearest << k for k in range((points // nearest).bit_length() + 1)]
    cuts = {first - far for far in away} | {first + far - 1 for far in away}
    return tuple(sorted(cut for cut in cuts if 0 <= cut < points - 1))


def weigh_cells(cells: SortedCells, cuts: Sequence[int], weights: Sequence[int]) -> list[int]:
    """The exact weight of each cell between cuts, in nano-epsilon."""
    upto = np.array([*(cells.before(cells.start_of_cell(cut + 1)) for cut in cuts), cells.totals], object)
    counted = (upto @ np.array(weights, object)).tolist()
    return [after - before for before, after in zip([0, *counted[:-1]], counted, strict=True)]


def draw_bracket(
    cells: SortedCells, first: int, points: int, nearest: int, weights: Sequence[int], entropy: Entropy
) -> Bracket:
    """The cells around a first draw, with a discrete Laplace noise of scale 1 epsilon for each."""
    cuts = place_cuts(first, points, nearest)
    exact = weigh_cells(cells, cuts, weights)
    noise = discrete_laplace_many(entropy, Fraction(1, NANO), len(exact)).tolist()
    return Bracket(first, cuts, tuple((w + k) / NANO for w, k in zip(exact, noise, strict=True)))


def certain_weight(weights: Sequence[float]) -> float:
    """Of all cells together: they may look heavier than they are, by their noise."""
    return sum(weights) - 1.5 * math.sqrt(2 * len(weights))


def rising(heights: Floats) -> Floats:
    """Heights that never fall, from noisy ones: halfway between the highest so far and the lowest to come."""
    return np.asarray((np.maximum.accumulate(heights) + np.minimum.accumulate(heights[::-1])[::-1]) / 2)


def settle(bracket: Bracket, q: float, points: int, pull: float) -> int:
    """The answer: the first draw, pulled to where the cells say the quantile is unless many share its value.

    A first draw that jumped over empty cells says nothing, once the cells show that the quantile is not near it.
    """
    if not bracket.cuts:
        return bracket.first
    heights, ends = bracket.heights(q), np.array(bracket.cuts) + 0.5
    own = int(np.searchsorted(bracket.cuts, bracket.first))
    if bracket.contradicted(q, own):
        whole = sum(bracket.weights)
        curve = rising(np.array([-q * whole, *heights, (1 - q) * whole]))
        return round(float(np.interp(0.0, curve, [0.0, *ends, points - 1])))
    if bracket.weights[own] > _HEAVY:
        return bracket.first
    crossing = float(np.interp(0.0, rising(heights), ends))
    return min(max(round(bracket.first + pull * (crossing - bracket.first)), 0), points - 1)
