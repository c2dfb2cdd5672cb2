"""Everyone's grid point and level, sorted by grid point: what order statistics work on.

Arrays give one entry per person (`SortedCells`). Few (grid point, level) pairs of a table are counted and stay counted:
`CountedCells` has one entry per pair, not per row, so a median of a hundred million rows has no more of them than one
of a million. Where there are more pairs than can be counted quickly, those of all rows are sorted here.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import cast

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

#: A level's place in a key.
LEVEL_BITS = 8
_LEVEL = (1 << LEVEL_BITS) - 1
#: A weight is at most 2*10^15 nano-epsilon (a quantile's, at reach 1/2), so 4,096 of them add up within 64 bits.
STRIDE = 1 << 12


@dataclass(frozen=True, eq=False)
class SortedCells:
    """One key per person, ascending: the grid point and, in its last 8 bits, the level."""

    keys: Integers
    missing: Integers
    levels: int

    @property
    def people(self) -> int:
        """How many have a value."""
        return len(self.keys)

    def with_missing(self, missing: Integers) -> SortedCells:
        """With so many people who have no value."""
        return SortedCells(self.keys, missing, self.levels)

    @property
    def totals(self) -> Integers:
        """People with a value, per level."""
        return cast(Integers, self._prefixes[-1])

    @cached_property
    def _prefixes(self) -> Integers:
        """People per level before every 4,096th entry, and in all."""
        rows = [np.zeros(self.levels, np.int64)]
        for start in range(0, self._entries, STRIDE):
            rows.append(rows[-1] + self._count(start, start + STRIDE))
        return np.array(rows)

    @property
    def _entries(self) -> int:
        return len(self.keys)

    def _count(self, start: int, stop: int) -> Integers:
        """People per level of some entries."""
        return np.bincount(self.codes(start, stop), minlength=self.levels)

    def _expand(self, start: int, stop: int) -> Integers:
        """The keys of the people from `start` to before `stop`."""
        return self.keys[start:stop]

    def codes(self, start: int, stop: int) -> Integers:
        """Levels of the people from `start` to before `stop`."""
        return self._expand(start, stop) & _LEVEL

    def cells(self, start: int, stop: int) -> Integers:
        """Grid points of the people from `start` to before `stop`."""
        return self._expand(start, stop) >> LEVEL_BITS

    def before(self, position: int) -> Integers:
        """People per level among the first `position`."""
        row, rest = divmod(position, STRIDE)
        return cast(Integers, self._prefixes[row] + self._count(position - rest, position))

    def start_of_cell(self, cell: int) -> int:
        """The position of the first person at or right of a grid point."""
        return int(np.searchsorted(self.keys, cell << LEVEL_BITS))

    def _row_of_weight(self, weights: list[int], target: Fraction) -> tuple[int, int]:
        """(row, its weight) of the last row of prefixes whose weight does not pass `target`."""
        rows, most = range(len(self._prefixes)), math.floor(target)
        row = bisect_right(rows, most, key=lambda row: _weigh(self._prefixes[row], weights)) - 1
        return row, _weigh(self._prefixes[row], weights)

    def position_of_weight(self, weights: list[int], target: Fraction) -> int:
        """The first position at which the weight of all people up to and including it passes `target`."""
        row, passed = self._row_of_weight(weights, target)
        start, rest = row * STRIDE, math.floor(target) - passed
        inside = np.cumsum(np.array(weights, np.int64)[self.codes(start, start + STRIDE)])
        found = int(np.count_nonzero(inside <= min(rest, int(np.iinfo(np.int64).max))))
        return min(start + found, len(self.keys) - 1)

    def with_missing_at(self, cell: int) -> SortedCells:
        """With those who have no value standing at a public grid point."""
        extra = np.repeat(cell << LEVEL_BITS | np.arange(self.levels), self.missing)
        if not len(extra):
            return self
        return SortedCells(np.sort(np.concatenate([self.keys, extra])), np.zeros(self.levels, np.int64), self.levels)


def _weigh(counts: Integers, weights: list[int]) -> int:
    """The weight of so many people per level."""
    return sum(int(count) * weight for count, weight in zip(counts, weights, strict=True))


class CountedCells(SortedCells):
    """Sorted cells of which equal ones stand once: `runs[i]` stands for `counts[i]` rows."""

    runs: Integers
    counts: Integers

    def __init__(self, runs: Integers, counts: Integers, missing: Integers, levels: int) -> None:
        used = counts > 0
        for name, value in (("runs", runs[used]), ("counts", counts[used]), ("missing", missing), ("levels", levels)):
            object.__setattr__(self, name, value)

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

    @property
    def _entries(self) -> int:
        return len(self.runs)

    def _count(self, start: int, stop: int) -> Integers:
        """Rows per level of some runs. Doubles hold them exactly: no table has 2^53 rows."""
        return np.bincount(self.runs[start:stop] & _LEVEL, self.counts[start:stop], self.levels).astype(np.int64)

    def _expand(self, start: int, stop: int) -> Integers:
        stop = min(stop, self.people)
        if start >= stop:
            return self.runs[:0]
        first = int(np.searchsorted(self._ends, start, "right")) - 1
        last = int(np.searchsorted(self._ends, stop, "left"))
        counts = self.counts[first:last].copy()
        counts[-1] -= self._ends[last] - stop
        counts[0] -= start - self._ends[first]
        return np.repeat(self.runs[first:last], counts)

    def before(self, position: int) -> Integers:
        run = int(np.searchsorted(self._ends, position, "right")) - 1
        row, rest = divmod(run, STRIDE)
        counted: Integers = self._prefixes[row] + self._count(run - rest, run)
        if run < len(self.runs):
            counted[self.runs[run] & _LEVEL] += position - self._ends[run]
        return counted

    def start_of_cell(self, cell: int) -> int:
        return int(self._ends[np.searchsorted(self.runs, cell << LEVEL_BITS)])

    def position_of_weight(self, weights: list[int], target: Fraction) -> int:
        row, passed = self._row_of_weight(weights, target)
        for run in range(row * STRIDE, len(self.runs)):
            weight = weights[int(self.runs[run]) & _LEVEL]
            added = weight * int(self.counts[run])
            if passed + added > target:
                return int(self._ends[run]) + math.floor((target - passed) / weight)
            passed += added
        return self.people - 1

    def with_missing_at(self, cell: int) -> SortedCells:
        if not self.missing.any():
            return self
        keys = np.concatenate([self.runs, cell << LEVEL_BITS | np.arange(self.levels)])
        counts = np.concatenate([self.counts, self.missing])
        order = np.argsort(keys, kind="stable")
        return CountedCells(keys[order], counts[order], np.zeros(self.levels, np.int64), self.levels)


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
        return CountedCells(keys[order], self.counts[kept][order], _at_places(self.missing, places, levels), levels)


@dataclass(frozen=True, eq=False)
class CellRows:
    """One number per row, in no order: the grid point, -1 for none, times 2^shift, plus the level."""

    keys: NDArray[np.signedinteger]
    shift: int
    levels: int

    @cached_property
    def missing(self) -> Integers:
        """Rows without a value, per level."""
        return np.bincount(self.keys[self.keys < 0] & (1 << self.shift) - 1, minlength=self.levels)[: self.levels]

    def sorted_cells(self, places: Integers, levels: int) -> SortedCells:
        """As `CellCounts.sorted_cells`."""
        keys = self.keys[self.keys >= 0] if self.missing.any() else self.keys
        if self.shift != LEVEL_BITS or not np.array_equal(places, np.arange(len(places))):
            place = places.astype(keys.dtype)[keys & (1 << self.shift) - 1]
            keys = (keys >> self.shift << LEVEL_BITS | place)[place >= 0]
        return SortedCells(np.sort(keys).astype(np.int64), _at_places(self.missing, places, levels), levels)


def _at_places(counts: Integers, places: Integers, levels: int) -> Integers:
    """Counts per level there, of counts per level here."""
    there = np.zeros(levels, np.int64)
    np.add.at(there, places[places >= 0], counts[places >= 0])
    return there
