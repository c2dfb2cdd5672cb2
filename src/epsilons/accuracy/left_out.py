"""How much a released number leaves out where weights leave something out: what the number itself still allows."""

from collections.abc import Callable

import numpy as np

from epsilons.accuracy.intervals import bisect
from epsilons.statistics.base import Floats

_POINTS = 201
#: Noise that lies so many scales off says nothing any more.
_FAR = 15.0


def most_missing(
    weights: Floats, sizes: Floats, shown: float, ends: tuple[float, float], apart: Callable[[float], float]
) -> float:
    """The most that a total differs from a weighted one that was `shown`, on either side.

    People's means lie between the ends, and those of each level no further than `apart` from everyone's, of which it
    is told. The less a level weighs, the less of it shows: the largest total has the lightest people as high as can be.
    """
    order, people = np.argsort(weights), float(sizes.sum())
    weight, size = weights[order], sizes[order]

    def beyond(low: float, high: float, seen: float, apart: Callable[[float], float]) -> float:
        def least(mean: float) -> float:
            """The least that a mean of everyone would show."""
            far = apart(mean)
            floor, roof = max(low, mean - far), min(high, mean + far)
            part = (mean - floor) / (roof - floor) if roof > floor else 0.0
            raised = np.clip(part * people - (np.cumsum(size) - size), 0.0, size)
            return float(weight @ (size * floor + raised * (roof - floor)))

        alike = min(max(seen / max(float(weight @ size), 1e-300), low), high)
        most = high if least(high) <= seen else bisect(alike, high, lambda mean: least(mean) <= seen, 30)[0]
        return most * people - seen

    low, high = ends
    return max(abs(beyond(low, high, shown, apart)), abs(beyond(-high, -low, -shown, lambda mean: apart(-mean))))


def likely_square(shown: float, scale: float, ends: tuple[float, float], gaussian: bool) -> float:
    """The mean square of a number of which noise of this scale shows so much, all possible ones as likely before.

    Its variance counts a third more: where noise hides everything, this is two thirds of what can be, squared, and so
    no truth has more than 1.5 times its root.
    """
    low, high = ends
    scale = max(scale, 1e-9 * (high - low))
    near = np.linspace(max(low, shown - _FAR * scale), min(high, shown + _FAR * scale), _POINTS)
    off = np.abs(near - shown) / scale
    chance = np.exp(-(off**2) / 4 if gaussian else -off)
    chance /= chance.sum()
    mean = float(chance @ near)
    return mean**2 + 4 / 3 * float(chance @ (near - mean) ** 2)
