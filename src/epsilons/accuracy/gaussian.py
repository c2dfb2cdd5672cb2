"""What Gaussian noise changes in errors and intervals; `scale` is that of the Laplace noise of the same variance."""

import math
from typing import Any

import numpy as np

from epsilons.accuracy.intervals import ErrorModel, FractionBar, normal_quantile

_ROOT = math.sqrt(2)


def gaussian_model(
    noises: tuple[float, ...], normal: float, population: float, bound: float, *undone: float, **other: Any
) -> ErrorModel:
    """An error bar whose noise is normal as well; on a coarse grid it may lie a step further than its quantile."""
    slope, shift, grid = undone or (1.0, 0.0, 0.0)
    deviation = _ROOT * math.hypot(*noises)
    coarse = grid if deviation < 3 * grid else 0.0
    return ErrorModel((), math.hypot(normal, deviation), population, bound + coarse, slope, shift, 0.0, **other)


def gaussian_fraction(bar: FractionBar) -> FractionBar:
    """The noise as coins: its variance is the same whether somebody is counted or not."""
    variance = 2 * bar.noise**2
    held = {**vars(bar), "noise": 0.0, "coins": bar.coins + variance, "zeros": bar.zeros + variance}
    return FractionBar(**held | ({} if bar.noise * _ROOT < 3 * bar.grid else {"grid": 0.0}))


def cut_square(scale: Any, distance: Any, off: Any) -> Any:
    """How much of the mean square error is cut off beyond a distance, around an answer that is off before its noise.

    The integral of (x - m)^2 - (d - m)^2 over x > d, with x normal of deviation s: s (d - 2m) f(d/s) +
    (s^2 - d^2 + 2md) Q(d/s), with f the density and Q the tail of a standard normal.
    """
    s = np.maximum(_ROOT * scale, 1e-300)
    z = np.minimum(distance / s, 1e3)
    density = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    return s * (distance - 2 * off) * density + (s**2 - distance**2 + 2 * off * distance) * _tail(z)


def mean_between(scale: float, below: float, above: float) -> float:
    """The mean of normal noise, given that it lies between -below and above."""
    s = _ROOT * scale
    low, high = below / s, above / s
    inside = 1 - float(_tail(low)) - float(_tail(high))
    density = [math.exp(-(end**2) / 2) / math.sqrt(2 * math.pi) for end in (low, high)]
    return s * (density[0] - density[1]) / max(inside, 1e-300) if low + high > 1e-3 else (above - below) / 2


def normal_noises(places: Any) -> Any:
    """Independent normal noises with the variance of Laplace noise of scale 1, in equally likely places."""
    return _ROOT * np.array([[normal_quantile(place) for place in row] for row in places.tolist()])


@np.vectorize
def _tail(z: float) -> float:
    return math.erfc(z / _ROOT) / 2
