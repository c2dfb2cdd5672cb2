"""The statistics again, one person at a time and in fractions, for comparison; and values that nobody wishes for."""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

STEPS = 1 << 30


def number(value: Any) -> Fraction | float | None:
    """A number as a fraction, an infinity as a float, anything else as missing."""
    if isinstance(value, (bool, np.bool_)):
        return Fraction(int(value))
    if isinstance(value, (int, np.integer)) and not isinstance(value, np.timedelta64):
        return Fraction(int(value))
    if isinstance(value, (float, np.floating)):
        if math.isnan(value):
            return None
        return float(value) if math.isinf(value) else Fraction(float(value))
    return None


def unit(value: Any, bounds: tuple[float, float]) -> Fraction | None:
    """(x - c)/h within [-1, 1]; None for a missing value."""
    found = number(value)
    if found is None:
        return None
    low, high = (Fraction(bound) for bound in bounds)
    clipped = low if found < low else high if found > high else Fraction(found)
    return (2 * clipped - low - high) / (high - low)


def per_level(people: Sequence[Any], codes: Sequence[int], levels: int) -> list[list[Any]]:
    found: list[list[Any]] = [[] for _ in range(levels)]
    for value, code in zip(people, codes, strict=True):
        found[code].append(value)
    return found


HOSTILE = [
    math.nan, -math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, 0.5, -1e300, 1e300, 5e-324, 1.0000000000000002,
    2**53 + 1, 2**63 - 1, -(2**63), 2**64, 10**400, -(10**400), True, False, None, "1", "", "<script>", b"1", 1j,
    (), [], [1], {}, object(), np.float32(1), np.float16(math.inf), np.int8(-1), np.uint64(2**64 - 1), np.bool_(True),
    np.complex128(1 + 2j), np.timedelta64(1, "D"), np.timedelta64(1, "ns"), np.datetime64("2020-01-01"),
    np.datetime64("NaT"),
]  # fmt: skip
