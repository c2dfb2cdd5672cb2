"""Sums and means of bounded values, on an integer grid around the public centre.

A value x in [a, b] becomes the whole number nearest to 2^30 * (x - c)/h, with c=(a+b)/2 and h=(b-a)/2: one person
then reaches at most 2^30 steps from absence and 2^31 steps from one bound to the other. Missing people stand at the
centre and so add nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from epsilons.arguments import check_bounds
from epsilons.statistics.base import (
    CHUNK,
    Additive,
    Moments,
    Part,
    as_doubles,
    as_numbers,
    sum_by_level,
)

STEPS = 1 << 30


@dataclass(frozen=True)
class Centred(Additive):
    """What sums and means share: bounds, and centred integer sums per level."""

    bounds: tuple[float, float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "bounds", check_bounds(self.bounds, self.name))

    @property
    def middle(self) -> Fraction:
        """The public centre c of the bounds."""
        return (Fraction(self.bounds[0]) + Fraction(self.bounds[1])) / 2

    @property
    def half(self) -> Fraction:
        """Half the width of the bounds, h."""
        return (Fraction(self.bounds[1]) - Fraction(self.bounds[0])) / 2

    @property
    def parts(self) -> tuple[Part, ...]:
        return (Part("centred sum", 1, {"absent": STEPS, "replace": 2 * STEPS}),)

    def tally(self, values: NDArray[Any], codes: NDArray[np.uint8], levels: int) -> list[NDArray[np.int64]]:
        numbers = as_numbers(values)
        sums = np.zeros(levels, np.int64)
        for start in range(0, len(numbers), CHUNK):
            scaled = unit_scale(numbers[start : start + CHUNK], self.bounds)
            sums += sum_by_level(np.floor(scaled * STEPS + 0.5), codes[start : start + CHUNK], levels)
        return [sums[:, None]]

    def steps(self, numbers: NDArray[Any]) -> NDArray[np.int64]:
        """Each value's place on the grid, from -2^30 to 2^30."""
        return np.floor(unit_scale(numbers, self.bounds) * STEPS + 0.5).astype(np.int64)

    def extremes(self) -> tuple[float, float]:
        return self.bounds

    @property
    def units(self) -> tuple[float, ...]:
        return (float(self.half) / STEPS,)

    @property
    def centre(self) -> float:
        return float(self.middle)

    def moments(self, spread: float | None, density: float | None, location: float | None = None) -> Moments:
        """Around the guessed mean; without a guess around the centre, give or take half of h."""
        deviation = float(self.half) if spread is None else spread
        if location is None:
            return Moments(self.centre, deviation**2, float(self.half) / 2)
        return Moments(min(max(location, self.bounds[0]), self.bounds[1]), deviation**2)

    def describe(self) -> str:
        return f"{self.name} in [{self.bounds[0]:g}, {self.bounds[1]:g}]"


@dataclass(frozen=True)
class Sum(Centred):
    """The sum over everyone on the roster; a missing person counts as the centre of the bounds."""

    name: ClassVar[str] = "sum"

    def answer(self, sums: Sequence[Sequence[Fraction]], weight: Fraction, people: int) -> Any:
        return float(self.half * sums[0][0] / STEPS + self.middle * weight)


@dataclass(frozen=True)
class Mean(Centred):
    """The mean over everyone on the roster; a missing person counts as the centre of the bounds."""

    name: ClassVar[str] = "mean"
    averages: ClassVar[bool] = True

    def answer(self, sums: Sequence[Sequence[Fraction]], weight: Fraction, people: int) -> Any:
        return float(self.middle + self.half * sums[0][0] / STEPS / weight)


def unit_scale(numbers: NDArray[Any], bounds: tuple[float, float]) -> NDArray[np.float64]:
    """(x - c)/h in [-1, 1]; out of bounds goes to the bound, not a number goes to 0."""
    low, high = bounds
    with np.errstate(all="ignore"):
        clipped = np.clip(as_doubles(numbers), low, high)
        scaled = (clipped - (low / 2 + high / 2)) / (high / 2 - low / 2)
    np.nan_to_num(scaled, copy=False, nan=0.0, posinf=1.0, neginf=-1.0)
    return np.clip(scaled, -1.0, 1.0)
