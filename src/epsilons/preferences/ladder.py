"""The fixed ladder to which more than 256 distinct preferences are rounded down, and how."""

import math
from decimal import Decimal
from functools import cache

import numpy as np
from numpy.typing import NDArray

from epsilons.guarantee import NANO

#: So many epsilons stay in the processor's cache while their rungs are looked up.
_IN_CACHE = 1 << 15


def _ladder() -> tuple[int, ...]:
    """At most 255 rungs in nano-epsilon: 199 over [.01, 10), where people choose, and 28 over each of the far ends.

    Rungs are geometric and cut to three digits so that they can be read; neighbours in the middle are 3.5% apart.
    """
    rungs = set()
    for low, high, count in (("1e-9", "0.01", 28), ("0.01", "10", 199), ("10", "1e6", 28)):
        ratio: Decimal = (Decimal(high) / Decimal(low)) ** (Decimal(1) / count)
        for k in range(count):
            whole = int(Decimal(low) * ratio**k * NANO)
            unit: int = 10 ** max(0, len(str(whole)) - 3)
            rungs.add(whole // unit * unit)
    return tuple(sorted(rungs))


LADDER = _ladder()


def round_down(epsilons: NDArray[np.float64]) -> tuple[NDArray[np.uint8], float]:
    """(the place of everyone's rung, of public people the one after the last; the sum of the parts of epsilons lost).

    Public people count there as if they lost all of theirs.
    """
    rungs, (shift, first) = _epsilons(), _near_rungs()
    above = np.append(rungs[1:], math.nan)  # nothing is at or above NaN
    kept = np.append(rungs[:-1], 0.0)
    codes, lost = np.empty(len(epsilons), np.uint8), 0.0
    for start in range(0, len(epsilons), _IN_CACHE):
        chunk = epsilons[start : start + _IN_CACHE]
        near = (chunk.view(np.uint64) >> shift).view(np.intp)
        code = first.take(near, mode="clip")
        code += chunk >= above.take(code)
        codes[start : start + len(chunk)] = code
        lost += float(np.sum(1 - kept.take(code) / chunk))
    return codes, lost


def _epsilons() -> NDArray[np.float64]:
    """The rungs, and the one of public people."""
    return np.array([rung / NANO for rung in LADDER] + [math.inf])


@cache
def _near_rungs() -> tuple[np.uint64, NDArray[np.intp]]:
    """(s, the last rung that is not above the numbers whose bits begin with all but s bits, or else one before it).

    Positive doubles are ordered as their bits. So many bits are looked at that no two rungs begin with the same.
    """
    bits = _epsilons().view(np.uint64)
    shift = next(s for s in range(63, 0, -1) if len(np.unique(bits >> np.uint64(s))) == len(bits))
    starts = np.arange(int(bits[-1] >> np.uint64(shift)) + 1, dtype=np.uint64) << np.uint64(shift)
    return np.uint64(shift), np.maximum(np.searchsorted(bits, starts, side="right") - 1, 0)
