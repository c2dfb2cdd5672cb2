"""Error bars from public facts: how an answer errs, and the interval that follows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_FREQUENCIES = 1 << 15
_ROWS = 512


@dataclass(frozen=True)
class ErrorModel:
    """How an answer errs: everything an error bar needs, on the scale of the answer.

    `laplace` are the scales of independent Laplace noises, `normal` the standard deviation of what depends on who
    happened to choose which level, `population` that of who happened to be on the roster, and `bound` a hard limit on
    what else is unknown. `slope` and `shift` undo what a mechanism does to an answer on purpose: answer*slope + shift
    estimates the statistic without that bias. `grid` is the step between possible answers. `table` lists (error,
    probability of an error up to it) where no formula serves.
    """

    laplace: tuple[float, ...] = ()
    normal: float = 0.0
    population: float = 0.0
    bound: float = 0.0
    slope: float = 1.0
    shift: float = 0.0
    grid: float = 0.0
    table: tuple[tuple[float, float], ...] = ()

    def interval(self, value: float, confidence: float, population: bool) -> tuple[float, float]:
        """Where the statistic lies, with at least about this confidence under the stated assumption."""
        centre = value * self.slope + self.shift
        normal = math.hypot(self.normal, self.population) if population else self.normal
        if self.table:
            low, high = self._table_range(confidence)
            extra = _half_width((), normal, confidence)
            return centre - math.hypot(high, extra), centre + math.hypot(low, extra)
        half = self.bound + self._half_width(normal, confidence)
        return centre - half, centre + half

    def _half_width(self, normal: float, confidence: float) -> float:
        half = _half_width(self.laplace, normal, confidence)
        if self.laplace and self.grid and max(self.laplace) < 3 * self.grid:
            if normal > 0:
                return half + self.grid
            if len(self.laplace) == 1:
                return self.grid * _discrete_half_width(self.laplace[0] / self.grid, confidence)
        return half

    def _table_range(self, confidence: float) -> tuple[float, float]:
        """(how far the answer may lie below the truth, how far above), each missed with half the remaining chance."""
        error, upto = np.array(self.table).T
        tail = (1 - confidence) / 2
        below = error[min(int(np.searchsorted(upto, tail)), len(error) - 1)]
        above = error[min(int(np.searchsorted(upto, 1 - tail)), len(error) - 1)]
        return max(-float(below), 0.0), max(float(above), 0.0)

    def to_dict(self) -> dict[str, Any]:
        """Plain values that survive JSON."""
        return {**self.__dict__, "laplace": list(self.laplace), "table": [list(row) for row in self.table]}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> ErrorModel:
        """The inverse of `to_dict`."""
        table = tuple((row[0], row[1]) for row in data["table"])
        return cls(**{**data, "laplace": tuple(data["laplace"]), "table": table})


def condense(error: Floats, chance: Floats) -> tuple[tuple[float, float], ...]:
    """A table of (error, probability up to it) with at most 512 rows, spread evenly in probability."""
    upto = np.cumsum(chance)
    rows = np.unique(np.searchsorted(upto, np.linspace(0, upto[-1], _ROWS)).clip(0, len(error) - 1))
    return tuple((float(error[row]), float(upto[row])) for row in rows)


def _half_width(laplace: tuple[float, ...], normal: float, confidence: float) -> float:
    """z with P(|sum of the Laplace noises + normal| <= z) = confidence.

    A single Laplace or a single normal has a formula; otherwise the characteristic function
    prod 1/(1 + b^2 t^2) * exp(-s^2 t^2/2) is inverted, P(|X| <= z) = 2/pi * integral of sin(tz)/t * phi(t) over t > 0.
    """
    scales = [b for b in laplace if b > 0]
    if not scales:
        return normal * _normal_two_sided(confidence)
    if len(scales) == 1 and normal == 0:
        return scales[0] * -math.log1p(-confidence)
    size = math.sqrt(sum(2 * b * b for b in scales) + normal**2)
    step = math.pi / (60 * size)
    t = (np.arange(_FREQUENCIES) + 0.5) * step
    phi = np.exp(-((normal * t) ** 2) / 2)
    for b in scales:
        phi /= 1 + (b * t) ** 2
    low, high = 0.0, 40 * size
    for _ in range(40):
        middle = (low + high) / 2
        covered = 2 / math.pi * float(np.sum(np.sin(t * middle) / t * phi)) * step
        low, high = (middle, high) if covered < confidence else (low, middle)
    return high


def _discrete_half_width(scale: float, confidence: float) -> int:
    """The least whole k with P(|K| <= k) >= confidence, for the discrete Laplace of that standard deviation/sqrt(2)."""
    # scale^2 = a/(1-a)^2 solved for a
    a = 1 + (1 - math.sqrt(1 + 4 * scale**2)) / (2 * scale**2) if scale > 1e-6 else 0.0
    if a <= 0:
        return 0
    return max(0, math.ceil(math.log((1 - confidence) * (1 + a) / 2) / math.log(a) - 1 - 1e-9))


def _normal_two_sided(confidence: float) -> float:
    low, high = 0.0, 40.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if math.erf(middle / math.sqrt(2)) < confidence else (low, middle)
    return high
