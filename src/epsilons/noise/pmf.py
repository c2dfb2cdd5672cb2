"""Probabilities as floats, for teaching, tests and audits. No draw looks at them."""

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from epsilons.noise.entropy import as_ball, working_precision
from epsilons.noise.heavy import edge, tail

if TYPE_CHECKING:
    from flint import arb

_BITS = 128
# Far out, neighbouring tails agree in most of their digits.
_TAIL_BITS = 320


def list_probabilities(runs: Sequence[list[int]], unit: Fraction) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """All outcomes, ascending, and their probabilities, each correct to about 1e-16 of itself.

    `runs` are the columns of the runs: first, direction, count, cost, slope. Weights are relative to the cheapest
    outcome and computed once for each distinct cost.
    """
    outcomes, costs, sizes = [], [], []
    for start, sign, n, base, rise in zip(*runs, strict=True):
        outcomes.append(start + sign * np.arange(n, dtype=np.int64))
        if rise == 0:
            costs.append(base)
            sizes.append(n)
        else:
            costs.extend(range(base, base + n * rise, rise))
            sizes.extend([1] * n)
    chances = _chances(costs, sizes, unit)
    everything = np.concatenate(outcomes)
    order = np.argsort(everything, kind="stable")
    return everything[order], np.repeat(np.array(chances), sizes)[order]


def _chances(costs: list[int], sizes: list[int], unit: Fraction) -> list[float]:
    from flint import arb

    least = min(costs)
    with working_precision(_BITS):
        rate = as_ball(-unit)
        weights = {cost: (rate * (cost - least)).exp() for cost in set(costs)}
        total = sum((weights[cost] * size for cost, size in zip(costs, sizes, strict=True)), start=arb(0))
        chances = {cost: float(weight / total) for cost, weight in weights.items()}
    return [chances[cost] for cost in costs]


@lru_cache(1 << 12)
def _reach(distance: int, scale: Fraction, gamma: Fraction) -> "arb":
    """Half the chance to be so many points away or more, on either side; only at the precision of tails."""
    return tail(edge(distance, scale), gamma) * 0.5


def heavy_log_probabilities(centre: int, scale: Fraction, gamma: Fraction, points: int) -> NDArray[np.float64]:
    """Natural logarithms of what `heavy.draw_on_grid` draws each of the points 0..points-1 with."""
    from flint import arb

    logs = np.full(points, -np.inf)
    if scale == 0:
        logs[centre] = 0.0
        return logs
    sides = (centre, points - 1 - centre)
    with working_precision(_TAIL_BITS):
        reach = [_reach(h, scale, gamma) for h in range(1, max(sides) + 1)]
        middle = 1 - sum((reach[0] for side in sides if side > 0), start=arb(0))
        logs[centre] = float(middle.log())
        for step, side in zip((-1, 1), sides, strict=True):
            masses = [near - far for near, far in pairwise(reach[:side])] + reach[side - 1 : side]
            logs[[centre + step * h for h in range(1, side + 1)]] = [float(mass.log()) for mass in masses]
    return logs


def gaussian_log_normaliser(variance: Fraction) -> float:
    """log of the sum of exp(-k^2/(2 variance)) over all integers k: what the chances of `gaussian.py` divide by.

    By Poisson's summation it is sqrt(2 pi v) times the sum of exp(-2 pi^2 v j^2) over all integers j, of which wide
    noise needs the first alone, and narrow noise is summed as it stands.
    """
    from flint import arb

    with working_precision(_BITS):
        v, pi = as_ball(variance), arb.pi()
        wide = variance >= 1
        rate = 2 * pi * pi * v if wide else 1 / (2 * v)
        total = 1 + 2 * sum(((-rate * j * j).exp() for j in range(1, 10)), start=arb(0))
        return float(((2 * pi * v).sqrt() * total if wide else total).log())
