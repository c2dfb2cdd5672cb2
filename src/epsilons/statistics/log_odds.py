"""Log-odds from second moments: never a larger log-loss than that of a constant, whoever has which features.

People's log-odds are a + s z, where z is what a linear fit to the class (0 or 1) adds for them: mean 0, variance V and
covariance V with the class, between two public ends. The log-loss is the mean of f(a + s z) less p a + s V, with
f(x) = log(1 + e^x) and p the share of the class. A parabola that touches f at one point `at` and nowhere lies below it
between the ends of a + s z bounds the log-loss by these moments alone:

    f(x) <= f(at) + f'(at) (x - at) + c (x - at)^2/2 for x up to y or beyond, where c = c(at, y) is the mean of f''
    between at and y, with weights that fall evenly to 0 at y.

c grows with y up to y = -at and falls beyond it (docs/models.md has the proof), so that the curvature that serves all x
between two ends is that of the point next to -at. For each `at` the best a and s lie at at + (p - f'(at))/c and 1/c;
the narrower the ends are, the smaller c may be, down to p(1 - p), that of Newton's step. Where `at` is log(p/(1 - p))
and s = 0 the bound is a constant's own log-loss, so that the least bound is never above it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]

#: Where parabolas may touch, from the log-odds of a constant on.
_STEP = 1 / 8
_TOUCHING = np.arange(-128, 129) * _STEP
#: What is searched for is told on this grid, curvatures on its square.
_GRAIN = 2.0**-20
#: Curvatures are searched between these; none of log(1 + e^x) is larger than 1/4.
_LEAST, _LARGEST, _HALVINGS = 1e-20, 0.25, 50
#: Closer than this the mean of f'' is a sum over Gauss's nodes, since differences of f would leave few digits of it.
_CLOSE = 1.0
_NODES, _NODE_WEIGHTS = (each / 2 for each in np.polynomial.legendre.leggauss(8))
#: Normal places with their weights, for means over people's log-odds.
_PLACES, _PLACE_WEIGHTS = np.polynomial.hermite_e.hermegauss(20)


@dataclass(frozen=True)
class LogOdds:
    """The log-odds a + s z of people: `middle` is a, `steepness` s, and the parabola by which they were found."""

    middle: float
    steepness: float
    at: float
    curvature: float

    def log_loss(self, share: float, spread: float, shared: float) -> float:
        """At most so much for each person, where z has this variance and this covariance with the class."""
        from_at = self.middle - self.at
        square = self.curvature / 2 * (from_at**2 + self.steepness**2 * spread)
        touching = float(_soft(np.array(self.at))) + float(_chance(np.array(self.at))) * from_at
        return touching + square - share * self.middle - self.steepness * shared

    def slope_square(self, spread: float) -> float:
        """The mean square of how far a step of z moves a probability, if z is about normal."""
        odds = self.middle + self.steepness * math.sqrt(spread) * _PLACES
        moved = self.steepness * _chance(odds) * _chance(-odds)
        return float(moved**2 @ _PLACE_WEIGHTS / _PLACE_WEIGHTS.sum())


def constant_odds(share: float) -> LogOdds:
    """Those of everyone alike, with the step of Newton for whatever little they may differ by."""
    curvature = share * (1 - share)
    middle = math.log(share / (1 - share))
    return LogOdds(middle, 1 / curvature, middle, curvature)


def possible_part(share: float, spread: float, ends: tuple[float, float]) -> float:
    """The part of z that any people can have: within the ends lie the means of both classes, V/p and -V/(1 - p).

    Without noise all of it is.
    """
    low, high = ends
    means = share * high, (share - 1) * low, math.sqrt(share * (1 - share) * spread)
    return 1.0 if spread <= 0 else min(max(min(means), 0.0) / spread, 1.0)


@lru_cache(maxsize=64)
def find_log_odds(share: float, spread: float, ends: tuple[float, float]) -> LogOdds:
    """Those of the least bound, where z has variance `spread` and lies between the ends."""
    alike = constant_odds(share)
    if spread <= 0:
        return alike
    at = alike.middle + _TOUCHING
    bounds, curvatures = _least_bounds(at, share, spread, ends)
    best = min(max(int(bounds.argmin()), 1), len(at) - 2)
    # Between places of the grid the bound is nearly a parabola: its lowest point moves evenly with the sums.
    before, here, after = bounds[best - 1 : best + 2]
    part = (before - after) / max(before - 2 * here + after, 1e-300) / 2
    lowest: Floats = np.round((at[best : best + 1] + _STEP * min(max(float(part), -1.0), 1.0)) / _GRAIN) * _GRAIN
    nearer, curvature = _least_bounds(lowest, share, spread, ends)
    if not nearer[0] <= here:
        lowest, curvature = at[best : best + 1], curvatures[best : best + 1]
    touching, c = float(lowest[0]), float(curvature[0])
    return LogOdds(touching + (share - float(_chance(lowest)[0])) / c, 1 / c, touching, c)


def _least_bounds(at: Floats, share: float, spread: float, ends: tuple[float, float]) -> tuple[Floats, Floats]:
    """(the log-loss at most, the curvature) of the best parabola that touches at each of these places."""
    off = share - _chance(at)
    least, largest = np.full_like(at, _LEAST), np.full_like(at, _LARGEST)
    for _ in range(_HALVINGS):
        middle = np.sqrt(least * largest)
        low, high = (at + (off + end) / middle for end in ends)
        serves = _curvature(at, np.clip(-at, low, high)) <= middle
        least, largest = np.where(serves, least, middle), np.where(serves, middle, largest)
    # Up to a grid: a larger curvature serves as well, and a processor's last digits decide no coefficient.
    digits, powers = np.frexp(largest)
    curvatures = np.ldexp(np.ceil(digits / _GRAIN**2) * _GRAIN**2, powers)
    return _soft(at) - share * at - (off**2 + spread) / (2 * curvatures), curvatures


def _curvature(at: Floats, other: Floats) -> Floats:
    """c(at, other) = 2 (f(other) - f(at) - f'(at) (other - at))/(other - at)^2."""
    step = other - at
    inside = at[:, None] + (_NODES + 0.5) * step[:, None]
    near = _chance(inside) * _chance(-inside) @ (2 * (0.5 - _NODES) * _NODE_WEIGHTS)
    apart = np.where(np.abs(step) < _CLOSE, _CLOSE, step)
    far = 2 * (_soft(other) - _soft(at) - _chance(at) * step) / apart**2
    found: Floats = np.where(np.abs(step) < _CLOSE, near, far)
    return found


def _soft(odds: Floats) -> Floats:
    """log(1 + e^x)."""
    found: Floats = np.logaddexp(0.0, odds)
    return found


def _chance(odds: Floats) -> Floats:
    """1/(1 + e^-x), to the last digits also where it is small."""
    found: Floats = np.exp(-np.logaddexp(0.0, -odds))
    return found
