"""How many people have a one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from epsilons.preferences import count_codes
from epsilons.statistics.base import CHUNK, Additive, Moments, Part, as_numbers, doubt


@dataclass(frozen=True)
class Count(Additive):
    """An entry counts if and only if it equals 1; anything else, missing or not a number, counts as 0.

    One person moves a count by at most 1, absent or replaced, so it is not centred (THEORY: "A count: r=1").
    """

    name: ClassVar[str] = "count"
    counts: ClassVar[bool] = True

    @property
    def parts(self) -> tuple[Part, ...]:
        return (Part("ones", 1, {"absent": 1, "replace": 1}),)

    def tally(self, values: NDArray[Any], codes: NDArray[np.uint8], levels: int) -> list[NDArray[np.int64]]:
        numbers = as_numbers(values)
        ones = np.zeros(levels, np.int64)
        for start in range(0, len(numbers), CHUNK):
            ones += count_codes(codes[start : start + CHUNK][numbers[start : start + CHUNK] == 1], levels)
        return [ones[:, None]]

    def answer(self, sums: Sequence[Sequence[Fraction]], weight: Fraction, people: int) -> Any:
        count = sums[0][0]
        return int(count) if count.denominator == 1 else float(count)

    def moments(self, spread: float | None, density: float | None, location: float | None = None) -> Moments:
        ones = 0.5 if density is None else density
        return Moments(ones, ones * (1 - ones), doubt(ones, density))

    def extremes(self) -> tuple[float, float]:
        return 0.0, 1.0

    @property
    def units(self) -> tuple[float, ...]:
        return (1.0,)

    @property
    def centre(self) -> float:
        return 0.5

    def describe(self) -> str:
        return "count of ones"
