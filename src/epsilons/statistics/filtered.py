"""Statistics whose number of contributions is private: with a condition, groups, several rows or missing values.

How many rows meet a condition, fall into a group or have a value at all is nobody's to know. A sum is then taken as it
is, around zero; a mean and a variance release the number of rows as well and divide by it, one budget for both. On
arrays, NaN stands for a row that does not count (one group, one row per person).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from epsilons.arguments import check_bounds, check_name
from epsilons.errors import DataError
from epsilons.preferences import count_codes
from epsilons.statistics.base import (
    CHUNK,
    Additive,
    Moments,
    Part,
    as_doubles,
    as_numbers,
    doubt,
    sum_by_level,
)
from epsilons.statistics.histogram import Histogram
from epsilons.statistics.scope import Scope
from epsilons.statistics.total import STEPS, Mean
from epsilons.statistics.variance import HALF, MEAN_GUESS, Variance

#: A split of the budget is a multiple of 1/64, so that charges stay simple fractions.
_SPLITS = 64
#: A variance spends these parts on the sum, the squares and the number of rows: near the best for means about a quarter
#: of h from the centre (docs/theory.md, "filtered").
_VARIANCE_SHARES = (Fraction(3, 8), Fraction(3, 8), Fraction(1, 4))
#: How far, in units of h^2, an error of one row in the denominator moves such a variance.
_ROW_WEIGHT = 0.3


@dataclass(frozen=True)
class Filtered(Additive):
    """What they share: a scope."""

    scope: Scope

    @property
    def private_count(self) -> bool:  # type: ignore[override]
        return True

    @property
    def expected_rows(self) -> float:  # type: ignore[override]
        return self.scope.expected

    def _check_array(self) -> None:
        """On arrays a scope of one group and one row per person is all there is."""
        if self.scope.rows > 1 or self.scope.groups is not None:
            raise DataError("Arrays have one row per person and no groups.", hint="eps.Dataset")

    def _doubles(self, values: NDArray[Any]) -> NDArray[np.float64]:
        self._check_array()
        return as_doubles(as_numbers(values))

    def extremes(self) -> tuple[float, float]:
        return 0.0, float(self.scope.rows)


def _number(sum_: Fraction) -> int | float:
    return int(sum_) if sum_.denominator == 1 else float(sum_)


@dataclass(frozen=True)
class FilteredCount(Filtered):
    """How many rows count, or how many people have a row that does."""

    of: str = "rows"

    name: ClassVar[str] = "count"

    def __post_init__(self) -> None:
        check_name("of", self.of, ("people", "rows"))

    @property
    def counts(self) -> bool:  # type: ignore[override]
        """With one row per person, or one group of people, a sample of people is a thinned count."""
        return self.scope.rows == 1 or (self.of == "people" and not self.scope.moves)

    @property
    def parts(self) -> tuple[Part, ...]:
        reach = self.scope.people_reach() if self.of == "people" else self.scope.reach(0, 1)
        return (Part("count", self.scope.cells, reach),)

    def tally(self, values: NDArray[Any], codes: NDArray[np.uint8], levels: int) -> list[NDArray[np.int64]]:
        return [count_codes(codes[~np.isnan(self._doubles(values))], levels)[:, None]]

    def answer(self, sums: Sequence[Sequence[Fraction]], weight: Fraction, people: int) -> Any:
        return self.scope.shaped(_number(count) for count in sums[0])

    def moments(self, spread: float | None, density: float | None, location: float | None = None) -> Moments:
        most = 1 if self.of == "people" else self.scope.rows
        return _row_moments(self.scope.fraction, most, density)

    def extremes(self) -> tuple[float, float]:
        return 0.0, 1.0 if self.of == "people" else float(self.scope.rows)

    @property
    def units(self) -> tuple[float, ...]:
        return (1.0,)

    @property
    def keys(self) -> tuple[Hashable, ...] | None:
        return self.scope.groups

    def describe(self) -> str:
        return f"count of {self.of}"


@dataclass(frozen=True)
class FilteredHistogram(Filtered):
    """Rows per bin or category, in every group."""

    bins: Histogram

    name: ClassVar[str] = "histogram"

    @property
    def counts(self) -> bool:  # type: ignore[override]
        return self.scope.rows == 1

    @property
    def cells(self) -> int:
        """Bins of all groups together."""
        return self.scope.cells * self.bins.cells

    @property
    def parts(self) -> tuple[Part, ...]:
        rows = self.scope.rows
        return (Part("bins", self.cells, {"absent": rows, "replace": rows * min(2, self.cells)}),)

    def tally(self, values: NDArray[Any], codes: NDArray[np.uint8], levels: int) -> list[NDArray[np.int64]]:
        self._check_array()
        return self.bins.tally(values, codes, levels)

    def answer(self, sums: Sequence[Sequence[Fraction]], weight: Fraction, people: int) -> Any:
        return dict(zip(self.keys, (_number(count) for count in sums[0]), strict=True))

    @property
    def keys(self) -> tuple[Hashable, ...]:
        """The bins; with groups (group, bin)."""
        if self.scope.groups is None:
            return self.bins.keys
        return tuple(product(self.scope.groups, self.bins.keys))

    def moments(self, spread: float | None, density: float | None, location: float | None = None) -> Moments:
        return _row_moments(self.scope.fraction / max(self.bins.cells, 2), self.scope.rows, None)

    @property
    def units(self) -> tuple[float, ...]:
        return (1.0,)

    def describe(self) -> str:
        return f"histogram of {self.cells} bins"


@dataclass(frozen=True)
class FilteredSum(Filtered):
    """The sum over the rows that count: one number around zero, where a row reaches max(|a|, |b|).

    Releasing sum(x - c) and the number of rows instead would cost more: the best split of a budget between noises of
    sizes h and |c| gives (h^(2/3) + |c|^(2/3))^(3/2), which is at least h + |c| = max(|a|, |b|).
    """

    bounds: tuple[float, float]

    name: ClassVar[str] = "sum"

    def __post_init__(self) -> None:
        object.__setattr__(self, "bounds", check_bounds(self.bounds, self.name))

    @property
    def largest(self) -> float:
        """How far from zero a value can be."""
        return max(abs(bound) for bound in self.bounds)

    @property
    def ends(self) -> tuple[int, int]:
        """The grid points of the bounds."""
        low, high = self.steps(np.array(self.bounds))
        return int(low), int(high)

    def steps(self, numbers: NDArray[np.float64]) -> NDArray[np.int64]:
        """floor(2^30 x/largest + 1/2) of values that are numbers, put into the bounds."""
        clipped = np.clip(numbers, *self.bounds)
        return np.floor(clipped / (self.largest / STEPS) + 0.5).astype(np.int64)

    @property
    def parts(self) -> tuple[Part, ...]:
        return (Part("sum", self.scope.cells, self.scope.reach(*self.ends)),)

    def tally(self, values: NDArray[Any], codes: NDArray[np.uint8], levels: int) -> list[NDArray[np.int64]]:
        numbers = self._doubles(values)
        sums = np.zeros(levels, np.int64)
        for start in range(0, len(numbers), CHUNK):
            chunk, code = numbers[start : start + CHUNK], codes[start : start + CHUNK]
            there = ~np.isnan(chunk)
            sums += sum_by_level(self.steps(chunk[there]).astype(np.float64), code[there], levels)
        return [sums[:, None]]

    def answer(self, sums: Sequence[Sequence[Fraction]], weight: Fraction, people: int) -> Any:
        unit = Fraction(self.largest) / STEPS
        return self.scope.shaped(float(unit * sum_) for sum_ in sums[0])

    def moments(self, spread: float | None, density: float | None, location: float | None = None) -> Moments:
        low, high = self.bounds
        middle = (low + high) / 2 if location is None else min(max(location, low), high)
        deviation = (high - low) / 2 if spread is None else spread
        mean = self.scope.expected * middle
        square = self.scope.expected * (deviation**2 + middle**2) * (1 + self.scope.rows) / 2
        value = self.scope.expected * (high - low) / 4 if location is None else 0.0
        rows = doubt(self.scope.fraction, density) * (1 + self.scope.rows) / 2
        return Moments(mean, max(square - mean**2, 0.0), math.hypot(value, rows * middle))

    def extremes(self) -> tuple[float, float]:
        return self.scope.rows * min(self.bounds[0], 0.0), self.scope.rows * max(self.bounds[1], 0.0)

    @property
    def units(self) -> tuple[float, ...]:
        return (self.largest / STEPS,)

    @property
    def keys(self) -> tuple[Hashable, ...] | None:
        return self.scope.groups

    def describe(self) -> str:
        return f"sum in [{self.bounds[0]:g}, {self.bounds[1]:g}]"


@dataclass(frozen=True)
class FilteredMean(Filtered):
    """The mean over the rows that count, from sum(x - c), which a row moves by h, and the number of rows.

    `split` is the part of every epsilon that pays for the sum; `off` is a public guess of how far the mean lies from
    the centre, which decides how much an error in the number of rows matters.
    """

    bounds: tuple[float, float]
    split: Fraction
    off: float

    name: ClassVar[str] = "mean"
    averages: ClassVar[bool] = True

    @classmethod
    def of(cls, scope: Scope, bounds: Any, neighbors: str, location: float | None) -> FilteredMean:
        """With the budget split where the error is least.

        Noises A/l and B/(1-l) together are least at l = A^(2/3)/(A^(2/3) + B^(2/3)).
        """
        low, high = check_bounds(bounds, cls.name)
        half = (high - low) / 2
        off = half / 2 if location is None else min(abs(min(max(location, low), high) - (low + high) / 2), half)
        whole = cls(scope, (low, high), HALF, off)
        first, second = (part.reach[neighbors] for part in whole.parts)
        sizes = (half * first / STEPS) ** (2 / 3), (off * second) ** (2 / 3)
        best = round(_SPLITS * sizes[0] / (sizes[0] + sizes[1]))
        return cls(scope, (low, high), Fraction(min(max(best, 1), _SPLITS - 4), _SPLITS), off)

    @property
    def centred(self) -> Mean:
        """The statistic whose grid the values stand on."""
        return Mean(self.bounds)

    @property
    def parts(self) -> tuple[Part, ...]:
        cells = self.scope.cells
        return (
            Part("centred sum", cells, self.scope.reach(-STEPS, STEPS), self.split),
            Part("rows", cells, self.scope.reach(0, 1), 1 - self.split),
        )

    def tally(self, values: NDArray[Any], codes: NDArray[np.uint8], levels: int) -> list[NDArray[np.int64]]:
        there = ~np.isnan(self._doubles(values))
        return [*self.centred.tally(values, codes, levels), count_codes(codes[there], levels)[:, None]]

    def answer(self, sums: Sequence[Sequence[Fraction]], weight: Fraction, people: int) -> Any:
        centred = self.centred
        low, high = Fraction(self.bounds[0]), Fraction(self.bounds[1])
        means = []
        for sum_, rows in zip(sums[0], sums[1], strict=True):
            mean = centred.middle + centred.half * sum_ / STEPS / max(rows, Fraction(1))
            means.append(float(min(max(mean, low), high)))
        return self.scope.shaped(means)

    def moments(self, spread: float | None, density: float | None, location: float | None = None) -> Moments:
        """Of one person's part in the mean of those who count: the fewer count, the more each one matters."""
        half = (self.bounds[1] - self.bounds[0]) / 2
        deviation = half if spread is None else spread
        middle = (self.bounds[0] + self.bounds[1]) / 2
        return Moments(middle, deviation**2 / max(self.scope.fraction, 1e-9))

    def extremes(self) -> tuple[float, float]:
        return self.bounds

    @property
    def farthest(self) -> float:  # type: ignore[override]
        return self.bounds[1] - self.bounds[0]

    @property
    def astray(self) -> float:  # type: ignore[override]
        return math.hypot((self.bounds[1] - self.bounds[0]) / 2, self.off)

    @property
    def units(self) -> tuple[float, ...]:
        expected = max(self.scope.expected, 1e-9)
        return ((self.bounds[1] - self.bounds[0]) / 2 / STEPS / expected, self.off / expected)

    @property
    def centre(self) -> float:
        return float(self.centred.middle)

    @property
    def keys(self) -> tuple[Hashable, ...] | None:
        return self.scope.groups

    def describe(self) -> str:
        return f"mean in [{self.bounds[0]:g}, {self.bounds[1]:g}]"


@dataclass(frozen=True)
class FilteredVariance(Filtered):
    """The variance over the rows that count, from the two sums of `Variance` and the number of rows."""

    bounds: tuple[float, float]

    name: ClassVar[str] = "variance"
    averages: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "bounds", check_bounds(self.bounds, self.name))

    @property
    def centred(self) -> Variance:
        """The statistic whose grids the values stand on."""
        return Variance(self.bounds)

    @property
    def parts(self) -> tuple[Part, ...]:
        cells, scope = self.scope.cells, self.scope
        reaches = (scope.reach(-STEPS, STEPS), scope.reach(-STEPS // 2, STEPS // 2), scope.reach(0, 1))
        names = ("centred sum", "centred squares", "rows")
        return tuple(
            Part(name, cells, reach, share) for name, reach, share in zip(names, reaches, _VARIANCE_SHARES, strict=True)
        )

    def tally(self, values: NDArray[Any], codes: NDArray[np.uint8], levels: int) -> list[NDArray[np.int64]]:
        there = ~np.isnan(self._doubles(values))
        return [*self.centred.tally(values, codes, levels), count_codes(codes[there], levels)[:, None]]

    def answer(self, sums: Sequence[Sequence[Fraction]], weight: Fraction, people: int) -> Any:
        centred, found = self.centred, []
        for first, second, rows in zip(*sums, strict=True):
            found.append(centred.answer([[first], [second]], max(rows, Fraction(1)), people))
        return self.scope.shaped(found)

    def moments(self, spread: float | None, density: float | None, location: float | None = None) -> Moments:
        whole = self.centred.moments(spread, density, location)
        return Moments(whole.mean, whole.variance / max(self.scope.fraction, 1e-9), off=whole.off)

    def extremes(self) -> tuple[float, float]:
        return self.centred.extremes()

    @property
    def farthest(self) -> float:  # type: ignore[override]
        return self.centred.farthest

    @property
    def units(self) -> tuple[float, ...]:
        expected = max(self.scope.expected, 1e-9)
        square = float(self.centred.half) ** 2
        sizes = (2 * MEAN_GUESS * square / STEPS, square / STEPS, _ROW_WEIGHT * square)
        return tuple(size / expected for size in sizes)

    @property
    def centre(self) -> float:
        return self.centred.centre

    @property
    def keys(self) -> tuple[Hashable, ...] | None:
        return self.scope.groups

    def describe(self) -> str:
        return f"variance in [{self.bounds[0]:g}, {self.bounds[1]:g}]"


def _row_moments(fraction: float, most: int, density: float | None) -> Moments:
    """Of one person's number of rows that count, when people have 1 to `most` rows and count whole or not at all."""
    rows = (1 + most) / 2
    square = fraction * (rows**2 + (most**2 - 1) / 12)
    return Moments(fraction * rows, max(square - (fraction * rows) ** 2, 1e-9), rows * doubt(fraction, density))
