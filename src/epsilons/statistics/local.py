"""How far one person, or a few, could move an answer, given the data as they are: local sensitivities.

For individual privacy only (Soria-Comas et al. 2017). Everything here depends on private values: none of it may be
shown, stored or logged. Neighbours replace one record by another; a missing person stands at a public value.

For an order statistic at rank k of sorted values x_0 <= ... <= x_{n-1} (x_{-1} and x_n are the ends of the grid),
replacing a record below the rank can move the answer up to x_{k+1}, one above it down to x_{k-1}, the record at the
rank itself either way. The averaged median of an even number of values moves by half of what both its values move.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from epsilons.summaries.cells import SortedCells
from epsilons.summaries.steps import STEPS

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Local:
    """An exact answer in whole steps of `step` grid points, and each level's largest local sensitivity in such steps.

    A level without people has reach 0.
    """

    answer: int
    reach: tuple[int, ...]
    step: Fraction = Fraction(1)


class Ranked:
    """Sorted positions with public ends beyond them."""

    def __init__(self, values: Sequence[int], low: int, high: int, first: int = 0, people: int | None = None) -> None:
        self._values, self._low, self._high, self._first = values, low, high, first
        self._people = len(values) if people is None else people

    def __getitem__(self, position: int) -> int:
        if position < 0:
            return self._low
        if position >= self._people:
            return self._high
        return int(self._values[position - self._first])


def ranked(cells: SortedCells, points: int) -> Ranked:
    """The sorted grid points of everyone."""
    return Ranked(cells.cells(0, cells.people), 0, points - 1)  # type: ignore[arg-type]


def rank_reaches(x: Ranked, rank: int) -> tuple[int, int, int]:
    """How far replacing one record moves the value at a rank: a record below it, the one at it, one above it."""
    up, down = x[rank + 1] - x[rank], x[rank] - x[rank - 1]
    return up, max(up, down), down


def even_median_reaches(x: Ranked, people: int) -> tuple[int, int, int, int]:
    """Twice the same for the average of the two middle values: below, lower middle, upper middle, above."""
    k = people // 2 - 1
    up, down = x[k + 2] - x[k], x[k + 1] - x[k - 1]
    return up, max(up, x[k] - x[k - 1]), max(down, x[k + 2] - x[k + 1]), down


def order_local(cells: SortedCells, points: int, rank: int, averaged: bool) -> Local:
    """The local sensitivity of each level's people for an order statistic."""
    x = ranked(cells, points)
    if averaged:
        k = cells.people // 2 - 1
        below, lower, upper, above = even_median_reaches(x, cells.people)
        spans = [(0, k, below), (k, k + 1, lower), (k + 1, k + 2, upper), (k + 2, cells.people, above)]
        return Local(x[k] + x[k + 1], _largest(cells, spans), Fraction(1, 2))
    below, at, above = rank_reaches(x, rank)
    spans = [(0, rank, below), (rank, rank + 1, at), (rank + 1, cells.people, above)]
    return Local(x[rank], _largest(cells, spans))


def _largest(cells: SortedCells, spans: Sequence[tuple[int, int, int]]) -> tuple[int, ...]:
    """For each level the largest reach among the spans of positions in which it has anybody."""
    reach = np.zeros(cells.levels, np.int64)
    for start, stop, size in spans:
        there = cells.before(max(stop, start)) - cells.before(start) > 0
        reach[there] = np.maximum(reach[there], size)
    return tuple(int(r) for r in reach)


def count_reach(cells: int, people: int, size: int = 1) -> int:
    """How far replacing `size` records moves counts, in L1: by 1 each in one range, by 2 each between several.

    The same for all data, so that these answers' noise says nothing (some histograms move less: whoever is in no bin
    can only join one).
    """
    return min(size, people) * (1 if cells == 1 else 2)


def sum_reaches(steps: Counts, codes: NDArray[np.uint8], levels: int) -> tuple[int, ...]:
    """How far replacing one record moves a centred sum, by level: to the farther bound from its extreme values."""
    lowest, highest = np.full(levels, STEPS), np.full(levels, -STEPS)
    np.minimum.at(lowest, codes, steps)
    np.maximum.at(highest, codes, steps)
    return tuple(int(max(STEPS - low, high + STEPS)) for low, high in zip(lowest, highest, strict=True))


def group_rank_reach(x: Ranked, rank: int, size: int) -> int:
    """How far replacing `size` records moves the value at a rank."""
    return max(x[rank + size] - x[rank], x[rank] - x[rank - size])


def group_even_median_reach(x: Ranked, people: int, size: int) -> int:
    """Twice how far replacing `size` records moves the average of the two middle values."""
    k = people // 2 - 1
    return max(x[k + size] - x[k] + x[k + 1 + size] - x[k + 1], x[k] - x[k - size] + x[k + 1] - x[k + 1 - size])


def group_sum_reach(steps: Counts, size: int) -> int:
    """How far replacing `size` records moves a centred sum: those farthest from one bound all go there."""
    ordered = np.sort(steps)
    size = min(size, len(ordered))
    up = int((STEPS - ordered[:size]).sum())
    down = int((ordered[len(ordered) - size :] + STEPS).sum())
    return max(up, down)
