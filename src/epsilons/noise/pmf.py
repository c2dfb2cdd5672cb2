"""Probabilities as floats, for teaching, tests and audits. No draw looks at them."""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from epsilons.noise.exact import as_ball, working_precision

_BITS = 128


def list_probabilities(
    first: list[int],
    direction: list[int],
    count: list[int],
    cost: list[int],
    slope: list[int],
    *,
    unit: Fraction,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """All outcomes of the runs, ascending, and their probabilities, each correct to about 1e-16 of itself.

    Weights are relative to the cheapest outcome and computed once for each distinct cost.
    """
    outcomes, costs, sizes = [], [], []
    for start, sign, n, base, rise in zip(first, direction, count, cost, slope, strict=True):
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
