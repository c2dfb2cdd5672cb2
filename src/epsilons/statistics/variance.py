"""The variance of bounded values, from two centred sums.

With u=(x-c)/h in [-1, 1] the parts are sum(u), where one person reaches 1, and sum(u^2 - 1/2), where one person
reaches 1/2 (twice that when replaced); each is paid by half of every epsilon. The answer is h^2 * clip(m2 - m1^2, 0, 1)
with m1 and m2 the two noisy means. Halves are the best split when the mean lies about a quarter of h from the centre.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from epsilons.statistics.base import CHUNK, Moments, Part, as_numbers, sum_by_level
from epsilons.statistics.total import STEPS, Centred, unit_scale

HALF = Fraction(1, 2)
#: The public guess of the mean's distance from the centre, in units of h, that goes with the split in halves.
MEAN_GUESS = 0.25


@dataclass(frozen=True)
class Variance(Centred):
    """The variance over everyone on the roster (divided by n); a missing person adds nothing to either sum."""

    name: ClassVar[str] = "variance"
    averages: ClassVar[bool] = True

    @property
    def parts(self) -> tuple[Part, ...]:
        return (
            Part("centred sum", 1, {"absent": STEPS, "replace": 2 * STEPS}, HALF),
            Part("centred squares", 1, {"absent": STEPS // 2, "replace": STEPS}, HALF),
        )

    def tally(self, values: NDArray[Any], codes: NDArray[np.uint8], levels: int) -> list[NDArray[np.int64]]:
        numbers = as_numbers(values)
        first, second = np.zeros(levels, np.int64), np.zeros(levels, np.int64)
        for start in range(0, len(numbers), CHUNK):
            chunk = numbers[start : start + CHUNK]
            code = codes[start : start + CHUNK]
            scaled = unit_scale(chunk, self.bounds)
            squares = np.where(_missing(chunk), 0.0, scaled * scaled - 0.5)
            first += sum_by_level(np.floor(scaled * STEPS + 0.5), code, levels)
            second += sum_by_level(np.floor(squares * STEPS + 0.5), code, levels)
        return [first[:, None], second[:, None]]

    def answer(self, sums: Sequence[Sequence[Fraction]], weight: Fraction, people: int) -> Any:
        first = sums[0][0] / STEPS / weight
        second = sums[1][0] / STEPS / weight + HALF
        return float(self.half**2 * min(max(second - first**2, Fraction(0)), Fraction(1)))

    def moments(self, spread: float | None, density: float | None, location: float | None = None) -> Moments:
        """Of (x - mu)^2 for normal values: mean sigma^2, variance 2 sigma^4 (at most h^4/4); and how far off mu is."""
        half = float(self.half)
        deviation = half / 2 if spread is None else spread
        off = MEAN_GUESS * half
        if location is not None:
            off = abs(min(max(location, self.bounds[0]), self.bounds[1]) - float(self.middle))
        return Moments(deviation**2, min(2 * deviation**4, half**4 / 4), off=off)

    def extremes(self) -> tuple[float, float]:
        return 0.0, float(self.half) ** 2

    @property
    def units(self) -> tuple[float, ...]:
        """An error d in m1 moves the answer by 2*m1*h^2*d, an error in m2 by h^2 times itself."""
        square = float(self.half) ** 2
        return (2 * MEAN_GUESS * square / STEPS, square / STEPS)

    @property
    def farthest(self) -> float:  # type: ignore[override]
        return float(self.half) ** 2

    @property
    def centre(self) -> float:
        return float(self.half) ** 2 / 2


def _missing(chunk: NDArray[Any]) -> NDArray[np.bool_]:
    missing: NDArray[np.bool_] = np.isnan(chunk) if chunk.dtype.kind == "f" else np.zeros(len(chunk), bool)
    return missing
