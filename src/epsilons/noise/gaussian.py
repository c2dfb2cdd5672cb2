"""Discrete Gaussian noise: integers k with a chance proportional to exp(-k^2/(2 sigma^2)), sigma^2 an exact fraction.

Added to an integer statistic that one person moves by at most r it is r^2/(2 sigma^2)-zCDP, and so is a vector of such
noises for an L2 reach of r (Canonne, Kamath, Steinke 2020, "The Discrete Gaussian for Differential Privacy", Theorem 4
and Corollary 12 of arXiv:2004.00010v6).

The draw is their Algorithm 3: a discrete Laplace Y of scale t = floor(sigma) + 1 is kept with probability

    exp(-(|Y| - sigma^2/t)^2 / (2 sigma^2)),

else drawn again. The product of both chances is proportional to exp(-Y^2/(2 sigma^2)), since the terms that are linear
in |Y| cancel. Y comes from `laplace.py`; the coin is one word against the first 64 bits of its chance, deeper only
where they agree.

Every attempt reads the same number of words, and how many attempts it takes (1.3 on average) is independent of the
value that is kept, as ever where all attempts are alike and the first that passes is taken. So the time does not depend
on the value drawn. (The coins in the paper's own Algorithm 1 take longer for larger exponents.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from epsilons.noise.coins import break_tie
from epsilons.noise.entropy import ALWAYS, Entropy, as_ball, floor_dyadic
from epsilons.noise.laplace import Digits, Whole, digits_of, discrete_laplace_many, geometrics

if TYPE_CHECKING:
    from flint import arb

_WORD = 64


def discrete_gaussian(entropy: Entropy, variance: Fraction) -> int:
    """One integer k with probability proportional to exp(-k^2/(2 variance)), exactly."""
    plan = _attempts_at(variance)
    while True:
        first, second = geometrics(entropy, plan.digits, 2)
        proposed = first - second
        word, threshold = entropy.bits(_WORD), plan.threshold(abs(proposed))
        if word < threshold if word != threshold else break_tie(entropy, plan.chance(abs(proposed))):
            return proposed


def discrete_gaussian_many(entropy: Entropy, variance: Fraction, size: int) -> Whole:
    """`size` independent draws, just as exact, for simulations and audits: equal values share their chance."""
    plan, missing = _attempts_at(variance), size
    found: list[NDArray[Any]] = [np.empty(0, np.int64)]
    while missing:
        proposed = discrete_laplace_many(entropy, plan.digits.inverse_scale, missing)
        distances, place = np.unique(np.abs(proposed), return_inverse=True)
        thresholds = [plan.threshold(int(distance)) for distance in distances]
        limits = np.array([min(threshold, ALWAYS - 1) for threshold in thresholds], np.uint64)[place]
        certain = np.array([threshold == ALWAYS for threshold in thresholds], bool)[place]
        words = entropy.words(missing)
        passed = (words < limits) | certain
        for index in np.flatnonzero((words == limits) & ~certain):
            passed[index] = break_tie(entropy, plan.chance(int(abs(proposed[index]))))
        found.append(proposed[passed])
        missing -= int(passed.sum())
    return np.concatenate(found)


@dataclass(frozen=True)
class _Attempts:
    """What every attempt at one variance needs: the digits of its discrete Laplace, and the chance to keep a value."""

    variance: Fraction
    digits: Digits

    def chance(self, distance: int) -> Callable[[], arb]:
        """The real number with which a value so far from 0 is kept.

        With variance p/q and Y of scale t it is exp(-(|Y| q t - p)^2 / (2 p q t^2)).
        """
        p, q, t = self.variance.numerator, self.variance.denominator, self.digits.inverse_scale.denominator
        exponent = Fraction((distance * q * t - p) ** 2, 2 * p * q * t * t)
        return lambda: as_ball(-exponent).exp()

    def threshold(self, distance: int) -> int:
        """The first 64 bits of that chance; 2^64 where it is 1."""
        return floor_dyadic(self.chance(distance), _WORD)


@lru_cache(maxsize=1024)
def _attempts_at(variance: Fraction) -> _Attempts:
    if variance <= 0:
        raise ValueError("a variance is positive")
    from flint import fmpz

    scale = int(fmpz(variance.numerator // variance.denominator).isqrt()) + 1
    return _Attempts(variance, digits_of(Fraction(1, scale)))
