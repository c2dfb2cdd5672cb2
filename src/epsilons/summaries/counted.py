"""What a query says about the grid points of a column, as the sorted cells that the mechanisms work on.

Few (grid point, level) pairs are counted by the engine and stay counted: `CountedCells` has one entry per pair, not per
row, so a median of a hundred million rows needs no more memory than one of a million. Where there are more pairs than
an engine counts quickly, it hands out the pairs of all rows as they are, and they are sorted here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from epsilons.summaries.cells import LEVEL_BITS, STRIDE, SortedCells, weigh

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CellCounts:
    """How many rows stand at a grid point and level, sorted by both; `missing[level]` have no value."""

    cells: Integers
    codes: Integers
    counts: Integers
    missing: Integers

    def sorted_cells(self, places: Integers, levels: int) -> SortedCells:
        """As the arrays have it; a level here is level `places[level]` there, below 0: left out."""
        place = places[self.codes]
        kept = place >= 0
        keys = self.cells[kept] << LEVEL_BITS | place[kept]
        order = np.argsort(keys, kind="stable")
        return CountedCells(keys[order], self.counts[kept][order], moved(self.missing, places, levels), levels)


@dataclass(frozen=True, eq=False)
class CellRows:
    """One number per row, in no order: the grid point, -1 for none, times 2^shift, plus the level."""

    keys: NDArray[np.signedinteger]
    shift: int
    levels: int

    @cached_property
    def missing(self) -> Integers:
        """Rows without a value, per level."""
        counted = np.bincount(self.keys[self.keys < 0] & (1 << self.shift) - 1, minlength=self.levels)
        return counted[: self.levels]

    def sorted_cells(self, places: Integers, levels: int) -> SortedCells:
        """As `CellCounts.sorted_cells`."""
        keys = self.keys
        if self.missing.any():
            keys = keys[keys >= 0]
        if self.shift != LEVEL_BITS or not np.array_equal(places, np.arange(len(places))):
            place = places.astype(keys.dtype)[keys & (1 << self.shift) - 1]
            keys = (keys >> self.shift << LEVEL_BITS | place)[place >= 0]
        return SortedCells(np.sort(keys).astype(np.int64), moved(self.missing, places, levels), levels)


def moved(counts: Integers, places: Integers, levels: int) -> Integers:
    """Counts per level there, of counts per level here."""
    there = np.zeros(levels, np.int64)
    np.add.at(there, places[places >= 0], counts[places >= 0])
    return there


class CountedCells(SortedCells):
    """Sorted cells of which equal ones stand once: `runs[i]` stands for `counts[i]` rows."""

    def __init__(self, runs: Integers, counts: Integers, missing: Integers, levels: int) -> None:
        used = counts > 0
        for name, value in (("runs", runs[used]), ("counts", counts[used]), ("missing", missing), ("levels", levels)):
            object.__setattr__(self, name, value)

    runs: Integers
    counts: Integers

    @cached_property
    def keys(self) -> Integers:
        """One entry per row after all, for mechanisms that ask for each."""
        return np.repeat(self.runs, self.counts)

    @cached_property
    def _ends(self) -> Integers:
        """How many rows there are up to the end of each run, with a 0 before."""
        return np.concatenate([[0], np.cumsum(self.counts)])

    @property
    def people(self) -> int:
        return int(self._ends[-1])

    def with_missing(self, missing: Integers) -> SortedCells:
        return CountedCells(self.runs, self.counts, missing, self.levels)

    @cached_property
    def _prefixes(self) -> Integers:
        """Rows per level before every 4,096th run, and in all."""
        rows = [np.zeros(self.levels, np.int64)]
        for start in range(0, len(self.runs), STRIDE):
            rows.append(rows[-1] + self._count_runs(start, start + STRIDE))
        return np.array(rows)

    def _count_runs(self, start: int, stop: int) -> Integers:
        """Rows per level of some runs. Doubles hold them exactly: nobody has 2^53 rows."""
        levels = self.runs[start:stop] & ((1 << LEVEL_BITS) - 1)
        return np.bincount(levels, self.counts[start:stop], self.levels).astype(np.int64)

    def _expanded(self, start: int, stop: int) -> Integers:
        """One entry per row from `start` to before `stop`."""
        stop = min(stop, self.people)
        if start >= stop:
            return self.runs[:0]
        first = int(np.searchsorted(self._ends, start, "right")) - 1
        last = int(np.searchsorted(self._ends, stop, "left"))
        counts = self.counts[first:last].copy()
        counts[-1] -= self._ends[last] - stop
        counts[0] -= start - self._ends[first]
        return np.repeat(self.runs[first:last], counts)

    def codes(self, start: int, stop: int) -> Integers:
        return self._expanded(start, stop) & ((1 << LEVEL_BITS) - 1)

    def cells(self, start: int, stop: int) -> Integers:
        return self._expanded(start, stop) >> LEVEL_BITS

    def before(self, position: int) -> Integers:
        run = int(np.searchsorted(self._ends, position, "right")) - 1
        row, rest = divmod(run, STRIDE)
        counted: Integers = self._prefixes[row] + self._count_runs(run - rest, run)
        if run < len(self.runs):
            counted[self.runs[run] & ((1 << LEVEL_BITS) - 1)] += position - self._ends[run]
        return counted

    def start_of_cell(self, cell: int) -> int:
        return int(self._ends[np.searchsorted(self.runs, cell << LEVEL_BITS)])

    def position_of_weight(self, weights: list[int], target: Fraction) -> int:
        row = self._row_of_weight(weights, target)
        passed = weigh(self._prefixes[row], weights)
        for run in range(row * STRIDE, len(self.runs)):
            weight = weights[int(self.runs[run]) & ((1 << LEVEL_BITS) - 1)]
            whole = weight * int(self.counts[run])
            if passed + whole > target:
                return int(self._ends[run]) + math.floor((target - passed) / weight)
            passed += whole
        return self.people - 1

    def with_missing_at(self, cell: int) -> SortedCells:
        if not self.missing.any():
            return self
        keys = np.concatenate([self.runs, cell << LEVEL_BITS | np.arange(self.levels)])
        counts = np.concatenate([self.counts, self.missing])
        order = np.argsort(keys, kind="stable")
        return CountedCells(keys[order], counts[order], np.zeros(self.levels, np.int64), self.levels)
