"""Order statistics on a public grid: median, quantile, minimum, maximum, k-th largest.

A value goes to the nearest point of the grid lo, lo+step, ..., hi; out of bounds goes to the end. The summary is the
sorted list of (grid point, level), one entry per person, in one integer each. How a missing person is treated is the
mechanism's affair: those that need a public number of people put them at `Order.default_cell`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from epsilons.arguments import check_bounds, check_rank, check_real, check_step, exact
from epsilons.errors import PlanError
from epsilons.preferences import count_codes
from epsilons.statistics.base import CHUNK, Statistic, as_doubles, as_numbers
from epsilons.statistics.scope import Scope

DEFAULT_STEPS = 65_536
MAX_POINTS = 1 << 50
#: Nearer to an end a quantile is the minimum or the maximum of any roster there is, and predictions underflow.
NEAREST_Q = 1e-9
#: A level's place in a key.
LEVEL_BITS = 8
#: A weight is at most 10^15 nano-epsilon, so 4,096 of them add up within 64 bits.
STRIDE = 1 << 12


@dataclass(frozen=True)
class Order(Statistic):
    """The value at a rank: a quantile `q`, or the k-th from one end (`from_low` or `from_high`, counted from 0)."""

    bounds: tuple[float, float]
    step: float | None = None
    q: Fraction | None = None
    from_low: int | None = None
    from_high: int | None = None
    label: str = "quantile"
    #: Set where the number of values is private: conditions, groups, several rows, missing values left out.
    scope: Scope | None = None

    family: ClassVar[str] = "order"

    def __post_init__(self) -> None:
        object.__setattr__(self, "bounds", check_bounds(self.bounds, self.label))
        if self.step is not None:
            object.__setattr__(self, "step", check_step(self.step))
        if self.points > MAX_POINTS:
            raise PlanError("The grid is too fine.", rule=f"At most {MAX_POINTS:,} points.", hint="a larger step")
        if self.points < 2:
            raise PlanError(
                "The grid has a single point.",
                rule="Answers lie on the grid lo, lo+step, ..., hi.",
                hint="a step smaller than the width of the bounds",
            )

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.label

    @cached_property
    def _low(self) -> Fraction:
        return exact(self.bounds[0])

    @cached_property
    def spacing(self) -> Fraction:
        if self.step is None:
            return (exact(self.bounds[1]) - self._low) / DEFAULT_STEPS
        return exact(self.step)

    @cached_property
    def points(self) -> int:
        """How many answers are possible."""
        return math.floor((exact(self.bounds[1]) - self._low) / self.spacing) + 1

    def value(self, cell: int | Fraction) -> float | int:
        """The answer at a grid point, or between two; whole where the grid is."""
        point = self._low + cell * self.spacing
        return (
            int(point) if self._low.denominator == self.spacing.denominator == point.denominator == 1 else float(point)
        )

    def outcomes(self) -> NDArray[np.float64]:
        """Every possible answer, ascending."""
        points: NDArray[np.float64] = float(self._low) + float(self.spacing) * np.arange(self.points, dtype=np.float64)
        return points

    @property
    def default_cell(self) -> int:
        """The grid point nearest to the centre of the bounds."""
        return min(round((exact(self.bounds[1]) - self._low) / 2 / self.spacing), self.points - 1)

    @property
    def private_count(self) -> bool:  # type: ignore[override]
        return self.scope is not None

    def per_row(self, neighbors: str) -> int:
        """By how much a person's loss exceeds that of one row in one answer."""
        return 1 if self.scope is None else self.scope.per_row(neighbors)

    def rank(self, people: int) -> int:
        """The rank asked for among so many values, 0-based; the paper's median is floor(n/2)."""
        if self.from_low is not None:
            return min(self.from_low, people - 1)
        if self.from_high is not None:
            return max(people - 1 - self.from_high, 0)
        assert self.q is not None
        return min(math.floor(self.q * people), people - 1)

    def summarize(self, values: NDArray[Any], codes: NDArray[np.uint8], levels: int) -> SortedCells:
        """Sorted (grid point, level) of everyone who has a value, and how many per level have none."""
        numbers = as_numbers(values)
        keys = np.empty(len(numbers), np.int64)
        missing = np.zeros(levels, np.int64)
        filled = 0
        for start in range(0, len(numbers), CHUNK):
            chunk = as_doubles(numbers[start : start + CHUNK])
            code = codes[start : start + CHUNK]
            absent = np.isnan(chunk)
            if absent.any():
                missing += count_codes(code[absent], levels)
                chunk, code = chunk[~absent], code[~absent]
            keys[filled : filled + len(chunk)] = self._cells(chunk) << LEVEL_BITS | code
            filled += len(chunk)
        keys = keys[:filled]
        keys.sort()
        return SortedCells(keys, missing, levels)

    def _cells(self, numbers: NDArray[np.float64]) -> NDArray[np.int64]:
        low, high = self.bounds
        place = np.floor((np.clip(numbers, low, high) - low) / float(self.spacing) + 0.5)
        return np.clip(place, 0, self.points - 1).astype(np.int64)

    def describe(self) -> str:
        what = f"quantile {float(self.q):g}" if self.label == "quantile" and self.q is not None else self.label
        return f"{what} in [{self.bounds[0]:g}, {self.bounds[1]:g}]"


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


def median(bounds: Any, step: float | None = None) -> Order:
    """The value of rank floor(n/2)."""
    return Order(bounds, step, q=Fraction(1, 2), label="median")


def quantile(q: float, bounds: Any, step: float | None = None) -> Order:
    """The value of rank floor(q*n)."""
    try:
        number = check_real(q)
    except TypeError:
        number = math.nan
    if not 0 <= number <= 1:
        raise PlanError(f"A quantile of {q!r} is not allowed.", rule="q is a number from 0 to 1.", hint="q=0.9")
    if not (NEAREST_Q <= number <= 1 - NEAREST_Q or number in (0, 1)):
        raise PlanError(
            f"A quantile of {q!r} is not allowed.",
            rule=f"q is 0, 1, or at least {NEAREST_Q:g} away from both.",
            hint="eps.min or eps.max",
        )
    return Order(bounds, step, q=q if isinstance(q, Fraction) else exact(q), label="quantile")


def minimum(bounds: Any, step: float | None = None) -> Order:
    """The smallest value."""
    return Order(bounds, step, from_low=0, label="min")


def maximum(bounds: Any, step: float | None = None) -> Order:
    """The largest value."""
    return Order(bounds, step, from_high=0, label="max")


def kth_largest(k: int, bounds: Any, step: float | None = None) -> Order:
    """The k-th largest value; k=1 is the maximum."""
    return Order(bounds, step, from_high=check_rank(k) - 1, label="kth_largest")
