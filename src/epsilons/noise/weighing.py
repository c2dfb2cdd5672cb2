"""Masses of runs of outcomes as integers with a known slack; and the chance of staying in a sample.

The mass of a run is exp(-cost u) times n (flat), or times (1 - q^n)/(1 - q) with q = exp(-slope u): the costs rise by
`slope` from one outcome to the next, and the weights fall by q. Each mass is scaled by 2^fraction_bits and rounded down
exactly, so every sum of them is an integer L with L <= true sum <= L + slack, and nothing later depends on the
precision of an interval.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING

from epsilons.guarantee import NANO
from epsilons.noise.entropy import ALWAYS, as_ball, certain_floor, floor_dyadic, working_precision

if TYPE_CHECKING:
    from flint import arb

_GUARD_BITS = 32


class Scales:
    """Weighs runs relative to an outcome of cost `reference`, whose weight is 2^fraction_bits."""

    def __init__(self, unit: Fraction, reference: int, fraction_bits: int) -> None:
        self._unit, self._reference, self._bits = unit, reference, fraction_bits
        # Equal costs share one exponential: between tied values a whole stretch of cells costs the same.
        self._weights: dict[int, int] = {}
        self._steps: dict[int, arb] = {}
        self.lows: list[int] = []
        self.slacks: list[int] = []

    def add(self, costs: Iterable[int], counts: Iterable[int], slopes: Iterable[int]) -> None:
        """Weigh further runs and append to `lows` and `slacks`, both cumulative.

        Slack: a flat run takes its weight, less than 1 too low, n times; a falling run is rounded once.
        """
        lows, slacks = [], []
        known, falling, weigh = self._weights, self._falling, self._weigh
        with working_precision(self._bits + _GUARD_BITS):
            rate, one = self._units()
            for cost, count, slope in zip(costs, counts, slopes, strict=True):
                if slope and count > 1:
                    lows.append(falling(rate, one, cost, count, slope))
                    slacks.append(1)
                    continue
                low = known.get(cost)
                if low is None:
                    low = known[cost] = weigh(rate, one, cost)
                lows.append(low * count)
                slacks.append(count)
        for sums, new in ((self.lows, lows), (self.slacks, slacks)):
            sums += list(accumulate(new, initial=sums[-1] if sums else 0))[1:]

    def upper(self, cost: int) -> int:
        """No less than the scaled weight of an outcome of this cost."""
        with working_precision(self._bits + _GUARD_BITS):
            return self._weigh(*self._units(), cost) + 1

    def _units(self) -> tuple[arb, arb]:
        """The logarithm of a weight per cost, and the weight of the reference, at the current precision."""
        from flint import arb

        return as_ball(-self._unit), arb((1, self._bits))

    def _weigh(self, rate: arb, one: arb, cost: int) -> int:
        excess = cost - self._reference
        low = certain_floor((rate * excess).exp() * one)
        return floor_dyadic(lambda: (as_ball(-self._unit) * excess).exp(), self._bits) if low is None else low

    def _falling(self, rate: arb, one: arb, cost: int, count: int, slope: int) -> int:
        excess = cost - self._reference
        step = self._steps.get(slope)
        if step is None:
            step = self._steps[slope] = (rate * slope).expm1()
        low = certain_floor((rate * excess).exp() * (rate * (slope * count)).expm1() / step * one)
        return floor_dyadic(lambda: self._mass(excess, count, slope), self._bits) if low is None else low

    def _mass(self, excess: int, count: int, slope: int) -> arb:
        rate = as_ball(-self._unit)
        return (rate * excess).exp() * (rate * (slope * count)).expm1() / (rate * slope).expm1()


@lru_cache(1 << 12)
def keep_chance(epsilon_nano: int, threshold_nano: int) -> int:
    """Chance, out of 2^64, that Sample keeps a person of epsilon e at threshold t.

    (exp(e) - 1) / (exp(t) - 1) for e < t, else 1 (Jorgensen et al. 2015, Definition 9), rounded down: a person is never
    kept more often than their epsilon allows. For e >= t the result is 2^64, which does not fit a word; `bernoulli` and
    `binomial` take it as certainty.
    """
    if epsilon_nano < 0 or threshold_nano <= 0:
        raise ValueError("an epsilon is not negative and a threshold is positive")
    if epsilon_nano >= threshold_nano:
        return ALWAYS
    if epsilon_nano == 0:
        return 0
    epsilon, threshold = Fraction(epsilon_nano, NANO), Fraction(threshold_nano, NANO)
    return floor_dyadic(lambda: as_ball(epsilon).expm1() / as_ball(threshold).expm1())
