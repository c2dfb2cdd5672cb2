"""Everyone's grid point and level, sorted by grid point: what order statistics work on.

Arrays give one entry per person (`SortedCells`). Few (grid point, level) pairs of a table are counted and stay counted:
`CountedCells` has one entry per pair, not per row, so a median of a hundred million rows has no more of them than one
of a million. Where there are more pairs than can be counted quickly, those of all rows are sorted here.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from copy import copy
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import cast

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
#: The grid point and, in the last 8 bits, the level; half as wide where the grid allows it, to sort in half the time.
Packed = NDArray[np.int32] | Integers

#: A level's place in a key.
LEVEL_BITS = 8
_LEVEL = (1 << LEVEL_BITS) - 1
#: A weight is at most 2*10^15 nano-epsilon (a quantile's, at reach 1/2), so 4,096 of them add up within 64 bits.
STRIDE = 1 << 12
#: Entries that are looked at together.
_PIECE = 64 * STRIDE


@dataclass(frozen=True, eq=False)
class SingleRows:
    """Rows that count and have a value, one by one: whose they are, at which level, in which group, and the value."""

    person: Integers
    level: Integers
    group: Integers
    values: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SortedCells:
    """One key per person, ascending: the grid point and, in its last 8 bits, the level."""

    keys: Packed
    missing: Integers
    levels: int

    @property
    def people(self) -> int:
        """How many have a value."""
        return len(self.keys)

    def with_missing(self, missing: Integers) -> SortedCells:
        """With so many people who have no value; what was counted of the others stays known."""
        made = copy(self)
        object.__setattr__(made, "missing", missing)
        return made

    @property
    def totals(self) -> Integers:
        """People with a value, per level."""
        return cast(Integers, self._prefixes[-1])

    @cached_property
    def _prefixes(self) -> Integers:
        """People per level before every 4,096th entry, and in all."""
        entries, levels = self._entries, self.levels
        found = np.zeros((-(-len(entries) // STRIDE) + 1, levels), np.int64)
        rows = np.arange(min(_PIECE, len(entries))) // STRIDE * levels
        for start in range(0, len(entries), _PIECE):
            codes = entries[start : start + _PIECE] & _LEVEL
            into = found[start // STRIDE + 1 :][: _PIECE // STRIDE]
            into[:] = self._count(rows[: len(codes)] + codes, start, into.size).reshape(into.shape)
        return np.cumsum(found, axis=0, out=found)

    @property
    def _entries(self) -> Packed:
        """What is counted, ascending."""
        return self.keys

    def _count(self, places: Integers, start: int, size: int) -> Integers:
        """People per place of the entries from `start` on."""
        return np.bincount(places, minlength=size)

    def _expand(self, start: int, stop: int) -> Packed:
        """The keys of the people from `start` to before `stop`."""
        return self.keys[start:stop]

    def codes(self, start: int, stop: int) -> Integers:
        """Levels of the people from `start` to before `stop`."""
        return (self._expand(start, stop) & _LEVEL).astype(np.int64, copy=False)

    def cells(self, start: int, stop: int) -> Integers:
        """Grid points of the people from `start` to before `stop`."""
        return (self._expand(start, stop) >> LEVEL_BITS).astype(np.int64, copy=False)

    def before(self, position: int) -> Integers:
        """People per level among the first `position`."""
        row, rest = divmod(position, STRIDE)
        return cast(Integers, self._prefixes[row] + self._count_from(position - rest, rest))

    def _count_from(self, start: int, number: int) -> Integers:
        """People per level of some entries."""
        return self._count(self._entries[start : start + number] & _LEVEL, start, self.levels)

    def _first_entry(self, cell: int) -> int:
        """The first entry at or right of a grid point."""
        # A number of the same width: for a wider one numpy would widen a copy of all entries.
        return int(np.searchsorted(self._entries, self._entries.dtype.type(cell << LEVEL_BITS)))

    def start_of_cell(self, cell: int) -> int:
        """The position of the first person at or right of a grid point."""
        return self._first_entry(cell)

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

    runs: Packed
    counts: Integers

    def __init__(self, runs: Packed, counts: Integers, missing: Integers, levels: int) -> None:
        used = counts > 0
        for name, value in (("runs", runs[used]), ("counts", counts[used]), ("missing", missing), ("levels", levels)):
            object.__setattr__(self, name, value)

    @cached_property
    def keys(self) -> Packed:
        """One entry per row after all, for mechanisms that ask for each."""
        return cast(Packed, np.repeat(self.runs, self.counts))

    @cached_property
    def _ends(self) -> Integers:
        """How many rows there are up to the end of each run, with a 0 before."""
        return np.concatenate([[0], np.cumsum(self.counts)])

    @property
    def people(self) -> int:
        return int(self._ends[-1])

    @property
    def _entries(self) -> Packed:
        return self.runs

    def _count(self, places: Integers, start: int, size: int) -> Integers:
        """Doubles hold the counts exactly: no table has 2^53 rows."""
        return np.bincount(places, self.counts[start : start + len(places)], size).astype(np.int64)

    def _expand(self, start: int, stop: int) -> Packed:
        stop = min(stop, self.people)
        if start >= stop:
            return self.runs[:0]
        first = int(np.searchsorted(self._ends, start, "right")) - 1
        last = int(np.searchsorted(self._ends, stop, "left"))
        counts = self.counts[first:last].copy()
        counts[-1] -= self._ends[last] - stop
        counts[0] -= start - self._ends[first]
        return cast(Packed, np.repeat(self.runs[first:last], counts))

    def before(self, position: int) -> Integers:
        run = int(np.searchsorted(self._ends, position, "right")) - 1
        row, rest = divmod(run, STRIDE)
        counted: Integers = self._prefixes[row] + self._count_from(run - rest, rest)
        if run < len(self.runs):
            counted[self.runs[run] & _LEVEL] += position - self._ends[run]
        return counted

    def start_of_cell(self, cell: int) -> int:
        return int(self._ends[self._first_entry(cell)])

    def position_of_weight(self, weights: list[int], target: Fraction) -> int:
        row, passed = self._row_of_weight(weights, target)
        first, rest = row * STRIDE, math.floor(target) - passed
        codes: list[int] = (self.runs[first : first + STRIDE] & _LEVEL).tolist()
        counts: list[int] = self.counts[first : first + STRIDE].tolist()
        for run, (code, count) in enumerate(zip(codes, counts, strict=True), first):
            if weights[code] * count > rest:
                return int(self._ends[run]) + rest // weights[code]
            rest -= weights[code] * count
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

    keys: Packed
    shift: int

    def sorted_cells(self, places: Integers, levels: int) -> SortedCells:
        """As `CellCounts.sorted_cells`. Sorted in one copy, those without a value first and those left out last."""
        last = np.iinfo(self.keys.dtype).max
        keys, where = self.keys.copy(), places.astype(self.keys.dtype)
        if self.shift != LEVEL_BITS or not np.array_equal(where, np.arange(len(where))):
            for start in range(0, len(keys), _PIECE):
                some = keys[start : start + _PIECE]
                place = where[some & (1 << self.shift) - 1]
                some[:] = np.where(place < 0, last, some >> self.shift << LEVEL_BITS | place)
        keys.sort()
        first, stop = np.searchsorted(keys, np.array([0, last], keys.dtype))
        return SortedCells(keys[first:stop], np.bincount(keys[:first] & _LEVEL, minlength=levels), levels)


def _at_places(counts: Integers, places: Integers, levels: int) -> Integers:
    """Counts per level there, of counts per level here."""
    there = np.zeros(levels, np.int64)
    np.add.at(there, places[places >= 0], counts[places >= 0])
    return there
