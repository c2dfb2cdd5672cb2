"""Soria-Comas et al. 2017, Figure 1 and Table 1: the noise of one answer, if every sensitivity is 1."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from epsilons.guarantee import NANO
from epsilons.mechanisms.smooth_sensitivity import calibrate
from epsilons.noise.heavy import tail
from epsilons.papers.figures import Cell, Figure, Floats, Panel, Row, Scale


class Heavy(NamedTuple):
    """Noise with a density proportional to 1/(1 + |x/scale|^gamma)."""

    gamma: int
    scale: float

    @classmethod
    def at(cls, calibration: str, gamma: int, epsilon: float, sensitivity: float = 1.0) -> Heavy:
        """Calibrated as the paper has it ("paper"), or as this library has it ("tight")."""
        return cls(gamma, sensitivity / float(calibrate(calibration, gamma, round(epsilon * NANO)).alpha))

    def density(self, x: float) -> float:
        """Of the noise: the integral of 1/(1 + |z|^g) is 2 (pi/g)/sin(pi/g)."""
        top = self.gamma * math.sin(math.pi / self.gamma) / (2 * math.pi)
        return top / self.scale / (1 + abs(x / self.scale) ** self.gamma)

    def half_width(self, level: float) -> float:
        """The noise is no larger with this probability."""
        low, high = 0.0, 1.0
        while _tail(high, self.gamma) > 1 - level:
            low, high = high, 2 * high
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if _tail(middle, self.gamma) > 1 - level else (low, middle)
        return high * self.scale

    def mean_size(self) -> float:
        """E|noise|: infinite for gamma 2."""
        ratio = math.sin(math.pi / self.gamma) / math.sin(2 * math.pi / self.gamma) if self.gamma > 2 else math.inf
        return ratio * self.scale

    def capped_size(self, most: float) -> float:
        """E min(|noise|, most)."""
        distances, means = _capped(self.gamma)
        return self.scale * float(np.interp(most / self.scale, distances, means))


class Laplace(NamedTuple):
    """Noise of iDP: a Laplace density."""

    scale: float

    def density(self, x: float) -> float:
        return math.exp(-abs(x) / self.scale) / (2 * self.scale)

    def half_width(self, level: float) -> float:
        return -self.scale * math.log(1 - level)

    def mean_size(self) -> float:
        return self.scale

    def capped_size(self, most: float) -> float:
        return -self.scale * math.expm1(-most / self.scale) if self.scale else 0.0


def _tail(z: float, gamma: int) -> float:
    return float(tail(Fraction(z), Fraction(gamma)))


@lru_cache(maxsize=8)
def _capped(gamma: int) -> tuple[Floats, Floats]:
    """(z, E min(|Z|, z)), so near each other that straight lines between them are exact to seven digits."""
    u = np.linspace(0, 30, 60_001)
    z = np.sinh(u)
    density = gamma * math.sin(math.pi / gamma) / math.pi / (1 + z**gamma) * np.cosh(u)

    def integrate(values: Floats) -> Floats:
        return np.asarray(np.append(0.0, np.cumsum((values[1:] + values[:-1]) / 2)) * (u[1] - u[0]))

    beyond = integrate(density[::-1])[::-1]
    return z, integrate(density * z) + z * beyond


#: By curve: the noise at epsilon 1 and sensitivity 1.
NOISES: dict[str, Heavy | Laplace] = {
    "local-sensitivity": Laplace(1.0),
    "smooth-paper-2": Heavy.at("paper", 2, 1.0),
    "smooth-paper": Heavy.at("paper", 3, 1.0),
    "smooth-tight-2": Heavy.at("tight", 2, 1.0),
    "smooth-sensitivity": Heavy.at("tight", 3, 1.0),
}


def measure_density(cell: Cell, curve: str) -> Iterator[Row]:
    """One curve of Figure 1."""
    for x in np.linspace(-15, 15, 121):
        yield Row(curve, float(x), NOISES[curve].density(float(x)))


def measure_width(cell: Cell, curve: str) -> Iterator[Row]:
    """One column of Table 1, and the same for other levels."""
    for level in (0.5, 0.95, 0.99):
        yield Row(curve, f"{level:.0%}", NOISES[curve].half_width(level))


FIGURE_1 = Figure(
    "1",
    "the noise of iDP and of smooth sensitivity, epsilon 1, sensitivities 1",
    {
        "": Panel(
            "the noise's density",
            Scale("noise, in sensitivities"),
            Scale("density", log=True),
            tuple(NOISES),
            tuple(NOISES),
            measure_density,
            weight=0.1,
        )
    },
)

TABLE_1 = Figure(
    "table-1",
    "how large the noise is, epsilon 1, sensitivities 1",
    {
        "": Panel(
            "half of an interval around the answer",
            Scale("how much of the noise lies within"),
            Scale("noise, in sensitivities", log=True),
            tuple(NOISES),
            tuple(NOISES),
            measure_width,
            weight=0.1,
        )
    },
)
