"""What a value adds to a sum: whole numbers on a public grid of bounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilons.summaries.people import as_doubles

#: Steps of the grid from the centre of the bounds to a bound.
STEPS = 1 << 30

Floats = NDArray[np.float64]


def unit_scale(numbers: NDArray[Any], bounds: tuple[float, float]) -> NDArray[np.float64]:
    """(x - c)/h in [-1, 1]; out of bounds goes to the bound, not a number goes to 0."""
    low, high = bounds
    with np.errstate(all="ignore"):
        clipped = np.clip(as_doubles(numbers), low, high)
        scaled = (clipped - (low / 2 + high / 2)) / (high / 2 - low / 2)
    np.nan_to_num(scaled, copy=False, nan=0.0, posinf=1.0, neginf=-1.0)
    return np.clip(scaled, -1.0, 1.0)


def end_steps(bounds: tuple[float, float]) -> tuple[float, float]:
    """The bounds themselves on that scale: -1 and 1 but for rounding."""
    centre, half = bounds[0] / 2 + bounds[1] / 2, bounds[1] / 2 - bounds[0] / 2
    return max((bounds[0] - centre) / half, -1.0), min((bounds[1] - centre) / half, 1.0)


def zero_steps(numbers: NDArray[Any], bounds: tuple[float, float]) -> Floats:
    """floor(2^30 x/largest + 1/2) of values put into the bounds: a grid around zero."""
    largest = max(abs(bound) for bound in bounds)
    with np.errstate(all="ignore"):
        steps: Floats = np.floor(np.clip(as_doubles(numbers), *bounds) / (largest / STEPS) + 0.5)
    return steps


@dataclass(frozen=True, eq=False)
class RowValues:
    """Some rows of a column, and what several sums need of them."""

    numbers: NDArray[Any]
    bounds: tuple[float, float]

    @cached_property
    def scaled(self) -> Floats:
        return unit_scale(self.numbers, self.bounds)

    @cached_property
    def missing(self) -> NDArray[np.bool_]:
        absent: NDArray[np.bool_] = np.isnan(as_doubles(self.numbers))
        return absent


#: What a row of a column may add to a sum, as whole numbers; a missing value adds nothing. `columns.ROW_STEPS` has the
#: same words for engines.
ROW_STEPS: dict[str, Callable[[RowValues], Floats]] = {
    "centred": lambda rows: np.floor(rows.scaled * STEPS + 0.5),
    "square": lambda rows: np.floor(np.where(rows.missing, 0.0, rows.scaled * rows.scaled - 0.5) * STEPS + 0.5),
    "zero": lambda rows: np.where(rows.missing, 0.0, zero_steps(rows.numbers, rows.bounds)),
    "rows": lambda rows: (~rows.missing).astype(np.float64),
}
