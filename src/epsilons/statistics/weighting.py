"""Who weighs how much: what a mechanism decides and a family of statistics draws and predicts by.

Person i at level j counts with weight w_j, in full or by a coin. Weight one costs `rate`: if a person reaches r, noise
of scale r/rate makes the loss at level j exactly w_j * rate, which must not pass what the level granted. Weights are
integers in units of 1/`one`, rounded down, so a weighted sum is an integer, its noise a discrete Laplace, and every
loss an exact rational.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilons.guarantee import NANO, to_epsilon
from epsilons.noise.exact import ALWAYS, keep_chance
from epsilons.preferences import Levels

#: Fixed-point weights have this many steps to one.
FINE = 1 << 40


class Rest(Enum):
    """What becomes of the weight that people's own weights leave out."""

    #: Totals stay too small; an average is that of the weight that is there.
    OMITTED = "omitted"
    #: Totals are scaled up to everyone; an average is that of the weight that is there.
    RESCALED = "rescaled"
    #: Values were shrunk: totals stay too small, an average is drawn to the centre.
    SHRUNK = "shrunk"
    #: The public centre takes its place.
    CENTRED = "centred"


@dataclass(frozen=True)
class Coins:
    """A person with grant e stays in a sample at threshold t with probability (exp(e) - 1)/(exp(t) - 1), at most 1."""

    grants: tuple[int | None, ...]
    t: int

    @cached_property
    def chances(self) -> tuple[int, ...]:
        """By level, out of 2^64 and rounded down: what draws use."""
        return tuple(ALWAYS if grant is None else keep_chance(grant, self.t) for grant in self.grants)

    @cached_property
    def expected(self) -> NDArray[np.float64]:
        """By level, in floats: what predictions use."""
        return expected_to_stay(self.grants, self.t / NANO)


def expected_to_stay(grants: Sequence[int | None], t: Any) -> NDArray[np.float64]:
    """(e^eps - 1)/(e^t - 1) at a threshold, or at each of a column, written so that no exponential overflows."""
    epsilons = np.minimum([math.inf if grant is None else grant / NANO for grant in grants], t)
    chances: NDArray[np.float64] = np.exp(epsilons - t) * np.expm1(-epsilons) / np.expm1(-t)
    return chances


@dataclass(frozen=True, eq=False)
class Weighting:
    """A weight per level in units of 1/`one`, and what weight one costs in nano-epsilon.

    With `coins` a person counts only if a coin says so.
    """

    weights: tuple[int, ...]
    one: int
    rate: Fraction
    rest: Rest = Rest.OMITTED
    coins: Coins | None = None

    @property
    def sampled(self) -> bool:
        """Whether coins decide who counts."""
        return self.coins is not None

    @property
    def chances(self) -> tuple[int, ...] | None:
        """Of staying in the sample, where there is one."""
        return None if self.coins is None else self.coins.chances

    def losses(self) -> tuple[Fraction, ...]:
        """The exact loss of each level in nano-epsilon, of people whose coin says yes where there are coins."""
        return tuple(Fraction(w, self.one) * self.rate for w in self.weights)

    def charges(self, levels: Levels) -> tuple[int | None, ...]:
        """The losses rounded up, in whole numbers: fractions would take longer than the draw."""
        up, down = self.rate.numerator, self.one * self.rate.denominator
        pairs = zip(levels.grants, self.weights, strict=True)
        return tuple(None if grant is None else -(-weight * up // down) for grant, weight in pairs)

    def total(self, levels: Levels) -> Fraction:
        """How many people's worth of weight there is, or is expected where there are coins."""
        if self.coins is not None:
            return Fraction(sum(c * n for c, n in zip(self.coins.chances, levels.sizes, strict=True)), ALWAYS)
        return Fraction(sum(w * n for w, n in zip(self.weights, levels.sizes, strict=True)), self.one)

    def inverse_scale(self, share: Fraction, reach: int) -> Fraction:
        """1/scale of the noise that a share of everybody's loss pays for, in units of 1/`one` of whole numbers."""
        return share * self.rate / (NANO * reach * self.one)

    @property
    def fractions(self) -> NDArray[np.float64]:
        """The expected weight of a person by level, in floats: for predictions."""
        return np.array(self.weights, float) / self.one if self.coins is None else self.coins.expected

    def used(self, levels: Levels) -> float:
        """The share of people whose values can move the answer (expected, where there are coins)."""
        people, _ = self.used_at(levels)
        return sum(people) / levels.people

    def used_at(self, levels: Levels) -> tuple[list[float], list[float]]:
        """(people expected to be used, epsilon each is used at), per level."""
        up, down = self.rate.numerator, self.one * self.rate.denominator
        staying = [1.0] * len(self.weights) if self.coins is None else self.coins.expected.tolist()
        facts = zip(levels.sizes, self.weights, staying, strict=True)
        people = [float(size) * stays if weight > 0 else 0.0 for size, weight, stays in facts]
        return people, [to_epsilon(weight * up // down) for weight in self.weights]


@dataclass(frozen=True, eq=False)
class Weightings:
    """Several weightings at once, in floats: rows of expected weights by level, and what weight one costs in each."""

    fractions: NDArray[np.float64]
    rate: NDArray[np.float64]
    one: int
    rest: Rest
    sampled: bool = False


def proportional(levels: Levels, top: int | Fraction, rest: Rest) -> Weighting:
    """Weights min(1, e_j/top), rounded down; public people count in full. Weight one costs `top`."""
    rate = Fraction(top)
    up, down = FINE * rate.denominator, rate.numerator
    weights = [FINE if g is None else min(FINE, g * up // down) for g in levels.grants]
    return Weighting(tuple(weights), FINE, rate, rest)


def equivalent_scale(inverse: Any) -> Any:
    """The scale of the Laplace noise with the same variance as the discrete one, 2a/(1-a)^2 with a=exp(-inverse)."""
    return np.where(inverse < 1e-4, 1 / inverse, np.exp(-inverse / 2) / -np.expm1(-inverse))[()]
