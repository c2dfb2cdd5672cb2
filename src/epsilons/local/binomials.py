"""Binomials for intervals and for the leakage of counts. Nothing here draws anything.

A count of answers is Bin(n, a) + Bin(N - n, b): n owners who have the option name it with probability a, the other
N - n with probability b < a. Sampling Privacy's difference of two rounds is the case b = 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

#: Beyond so many standard deviations a binomial has less mass than a double can show beside 1.
_INTERVAL_REACH = 12
_LARGEST_VARIANCE = 10**8
#: And beyond so many less than the smallest double: for deltas such as 1e-30.
FAR_REACH = 40


@lru_cache(maxsize=32)
def pmf_window(n: int, chance: float, reach: int = _INTERVAL_REACH) -> tuple[int, NDArray[np.float64]]:
    """(k0, P(X = k0), P(X = k0 + 1), ...) of X ~ Bin(n, chance), where it is not negligible.

    Built from the mode outwards by the ratio of neighbours and then normalised, so that no large logarithm cancels.
    """
    if n == 0 or chance <= 0:
        return 0, np.ones(1)
    if chance >= 1:
        return n, np.ones(1)
    spread = reach * math.sqrt(n * chance * (1 - chance)) + reach**2 / 2
    low, high = max(0, math.floor(n * chance - spread)), min(n, math.ceil(n * chance + spread))
    k = np.arange(low, high, dtype=np.float64)
    steps = np.log((n - k) / (k + 1)) + math.log(chance / (1 - chance))
    logs = np.concatenate([[0.0], np.cumsum(steps)])
    weights = np.exp(logs - logs.max())
    weights /= math.fsum(weights)
    weights.flags.writeable = False
    return low, weights


def at_least(seen: int, n: int, others: int, high: float, low: float) -> float:
    """P(Bin(n, high) + Bin(others, low) >= seen)."""
    return _tail(seen, n, others, high, low, lambda probabilities: np.cumsum(probabilities[::-1])[::-1], (1.0, 0.0))


def at_most(seen: int, n: int, others: int, high: float, low: float) -> float:
    """P(Bin(n, high) + Bin(others, low) <= seen)."""
    return _tail(seen, n, others, high, low, np.cumsum, (0.0, 1.0))


def _tail(
    seen: int,
    n: int,
    others: int,
    high: float,
    low: float,
    add_up: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    outside: tuple[float, float],
) -> float:
    """Sum over one binomial of its probability times the other's tail; `outside`: the tail left and right of it."""
    first, one = pmf_window(n, high)
    second, two = pmf_window(others, low)
    tails = add_up(two)
    places = seen - (first + np.arange(len(one))) - second
    found = tails[np.clip(places, 0, len(tails) - 1)]
    found = np.where(places < 0, outside[0], np.where(places >= len(tails), outside[1], found))
    return min(1.0, float(one @ found))


def possible_sizes(seen: int, population: int, high: float, low: float, level: float) -> tuple[int, int]:
    """The sizes n in 0..population of a group that a count of `seen` leaves open at this level, as an interval.

    n is left out when the count would be too large or too small for it with probability at most (1 - level)/2, in the
    exact law of the count (Clopper and Pearson's way, 1934). So it covers at least `level`, whatever n is. A count
    whose standard deviation passes 10,000 is as good as normal and is taken so.
    """
    miss = (1 - level) / 2
    if max(seen * (1 - high), population * low * (1 - low)) > _LARGEST_VARIANCE:
        return _normal_sizes(seen, population, high, low, NormalDist().inv_cdf(1 - miss))
    guess = (seen - population * low) / (high - low)
    spread = NormalDist().inv_cdf(1 - miss) * math.sqrt(max(1.0, population * low * (1 - low) + seen)) / (high - low)
    lower = _first(
        lambda n: at_least(seen, n, population - n, high, low) > miss, population, max(0, math.floor(guess - spread))
    )
    upper = _first(
        lambda n: at_most(seen, n, population - n, high, low) <= miss, population, max(0, math.ceil(guess + spread))
    )
    return min(lower, population), max(0, upper - 1)


def _normal_sizes(seen: int, population: int, high: float, low: float, z: float) -> tuple[int, int]:
    """The same with a normal law: the n with |seen - E(n)| <= z sd(n) + 1/2, between roots of two quadratics.

    E(n) = N low + n (high - low), and Var(n) = N low (1 - low) + n (high (1 - high) - low (1 - low)).
    """
    slope, alike = high - low, population * low * (1 - low)
    extra = high * (1 - high) - low * (1 - low)

    def root(shifted: float, sign: int) -> float:
        a, b, c = slope**2, -2 * slope * shifted - z**2 * extra, shifted**2 - z**2 * alike
        return (-b + sign * math.sqrt(max(0.0, b * b - 4 * a * c))) / (2 * a)

    above = seen - population * low
    lower, upper = math.floor(root(above - 0.5, -1)), math.ceil(root(above + 0.5, 1))
    return min(max(0, lower), population), min(max(0, upper), population)


def _first(holds: Callable[[int], bool], largest: int, guess: int) -> int:
    """The smallest n in 0..largest for which a condition holds that goes on holding; largest + 1 if none.

    Gallops from a guess, so that a good guess needs few looks.
    """
    guess = min(guess, largest)
    step = 1
    if holds(guess):
        known, low = guess, guess - 1
        while low >= 0 and holds(low):
            known, low, step = low, low - 2 * step, 2 * step
        low = max(low, -1)
    else:
        low, known = guess, guess + 1
        while known <= largest and not holds(known):
            low, known, step = known, known + 2 * step, 2 * step
        known = min(known, largest + 1)
    while known - low > 1:
        middle = (low + known) // 2
        if holds(middle):
            known = middle
        else:
            low = middle
    return known
