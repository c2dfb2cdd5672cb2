"""Everyone's grid point and level, sorted by grid point: what order statistics work on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

#: A level's place in a key.
LEVEL_BITS = 8
#: A weight is at most 10^15 nano-epsilon, so 4,096 of them add up within 64 bits.
STRIDE = 1 << 12


@dataclass(frozen=True, eq=False)
class SortedCells:
    """Everyone's grid point and level, sorted by grid point."""

    keys: NDArray[np.int64]
    missing: NDArray[np.int64]
    levels: int

    @property
    def people(self) -> int:
        """How many have a value."""
        return len(self.keys)

    def with_missing(self, missing: NDArray[np.int64]) -> SortedCells:
        """The same people, and so many without a value."""
        return SortedCells(self.keys, missing, self.levels)

    @cached_property
    def totals(self) -> NDArray[np.int64]:
        """People with a value, per level."""
        totals: NDArray[np.int64] = self._prefixes[-1]
        return totals

    @cached_property
    def _prefixes(self) -> NDArray[np.int64]:
        """People per level before every 4,096th entry, and in all."""
        rows = [np.zeros(self.levels, np.int64)]
        for start in range(0, len(self.keys), STRIDE):
            rows.append(rows[-1] + self._count(start, start + STRIDE))
        return np.array(rows)

    def _count(self, start: int, stop: int) -> NDArray[np.int64]:
        return np.bincount(self.codes(start, stop), minlength=self.levels)

    def codes(self, start: int, stop: int) -> NDArray[np.int64]:
        """Levels of the entries from `start` to before `stop`."""
        return self.keys[start:stop] & ((1 << LEVEL_BITS) - 1)

    def cells(self, start: int, stop: int) -> NDArray[np.int64]:
        """Grid points of the entries from `start` to before `stop`."""
        return self.keys[start:stop] >> LEVEL_BITS

    def before(self, position: int) -> NDArray[np.int64]:
        """People per level among the first `position` entries."""
        row, rest = divmod(position, STRIDE)
        before: NDArray[np.int64] = self._prefixes[row] + self._count(position - rest, position)
        return before

    def start_of_cell(self, cell: int) -> int:
        """The position of the first entry at or right of a grid point."""
        return int(np.searchsorted(self.keys, cell << LEVEL_BITS))

    def _row_of_weight(self, weights: list[int], target: Fraction) -> int:
        """The last row of prefixes whose weight does not pass `target`."""
        low, high = 0, len(self._prefixes) - 1
        while low < high:
            middle = (low + high + 1) // 2
            if weigh(self._prefixes[middle], weights) > target:
                high = middle - 1
            else:
                low = middle
        return low

    def position_of_weight(self, weights: list[int], target: Fraction) -> int:
        """The first position at which the weight of all entries up to and including it passes `target`."""
        row = self._row_of_weight(weights, target)
        start = row * STRIDE
        rest = math.floor(target) - weigh(self._prefixes[row], weights)
        inside = np.cumsum(np.array(weights, np.int64)[self.codes(start, start + STRIDE)])
        found = int(np.count_nonzero(inside <= min(rest, int(np.iinfo(np.int64).max))))
        return min(start + found, len(self.keys) - 1)

    def with_missing_at(self, cell: int) -> SortedCells:
        """The same people, those without a value standing at a public grid point."""
        extra = np.repeat(cell << LEVEL_BITS | np.arange(self.levels), self.missing)
        if not len(extra):
            return self
        keys = np.sort(np.concatenate([self.keys, extra]))
        return SortedCells(keys, np.zeros(self.levels, np.int64), self.levels)


def weigh(counts: NDArray[np.int64], weights: list[int]) -> int:
    """The weight of so many people per level."""
    return sum(int(count) * weight for count, weight in zip(counts, weights, strict=True))
