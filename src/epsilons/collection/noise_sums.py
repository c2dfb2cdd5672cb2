"""How far the noise of several aggregators and levels goes: the law of a weighted sum of discrete Laplace draws.

For printing intervals only; no draw uses it.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

#: Points per standard deviation, and how many standard deviations on each side.
_FINE = 400
_WIDE = 40


@lru_cache(maxsize=256)
def quantile(scales: tuple[tuple[float, float], ...], draws: int, level: float) -> float:
    """The smallest x with P(|S| <= x) >= level, rounded up by less than a hundredth of S's standard deviation.

    S adds up, for each (weight, inverse scale), `draws` independent discrete Laplace draws times the weight.
    """
    kept = [(weight, scale) for weight, scale in scales if weight > 0 and scale < 700]
    spread = math.sqrt(sum(draws * weight**2 / (2 * math.sinh(scale / 2) ** 2) for weight, scale in kept))
    if not spread:
        return 0.0
    step, half = spread / _FINE, _FINE * _WIDE
    size = 1 << (2 * half).bit_length()
    product = np.ones(size // 2 + 1, np.complex128)
    for weight, scale in kept:
        masses = np.zeros(size)
        cells = _masses(weight, scale, step, half)
        masses[: half + 1], masses[size - half :] = cells[half:], cells[:half]
        product *= np.fft.rfft(masses) ** draws
    law = np.maximum(np.fft.irfft(product, size), 0)
    inside = np.cumsum(law[: half + 1]) + np.concatenate([[0.0], np.cumsum(law[: size - half - 1 : -1])])[: half + 1]
    place = int(np.searchsorted(inside, level * law.sum()))
    # Every draw was moved to a grid point, by half a step at most; these moves add up like independent errors.
    return (place + math.sqrt(len(kept) * draws)) * step


def _masses(weight: float, scale: float, step: float, half: int) -> NDArray[np.float64]:
    """The chance that weight * draw lies in each cell of the grid -half*step, ..., half*step."""
    edges = np.floor((np.arange(-half, half + 2) - 0.5) * step / weight)
    q = math.exp(-scale)
    # F(k) = 1 - q^(k+1)/(1+q) for k >= 0 and q^(-k)/(1+q) below; symmetric tails keep every difference exact enough.
    with np.errstate(under="ignore"):
        below = np.where(
            edges >= 0,
            1 - np.exp(-scale * (np.maximum(edges, 0) + 1)) / (1 + q),
            np.exp(scale * np.minimum(edges, 0)) / (1 + q),
        )
    masses: NDArray[np.float64] = np.diff(below)
    return masses
