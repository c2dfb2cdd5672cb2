"""Gaussian noise in sums of people's contributions: its variance, and how it is drawn.

Of a concentrated account a person of weight w, who moves the parts of a statistic by the vectors d_k, loses

    rho = w^2/2 * sum_k |d_k|^2/variance_k,

the squared L2 reach over the variance (Canonne, Kamath, Steinke 2020, Corollary 12: whole numbers). What L1 allows, L2
allows as well: parts at `share`/`reach`, of which no person moves the sum of steps by more than 1, have a sum of
squares of 1 at most. Where every part is paid for by itself, its steps are `share` at most, and the sum of the squares
of all shares is what they amount to; where a part says its own `square`, that counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from epsilons.measure import NANO
from epsilons.noise.gaussian import discrete_gaussian, discrete_gaussian_many
from epsilons.noise.pmf import gaussian_log_normaliser

if TYPE_CHECKING:
    from epsilons.noise.entropy import Entropy
    from epsilons.statistics.additive import Additive
    from epsilons.statistics.base import Question, Weighting

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Gaussian:
    """A discrete Gaussian noise, by its variance."""

    variance: Fraction

    def draw(self, entropy: Entropy, cells: int) -> list[int]:
        """One draw after the other: many at once share the work of equal values, which would tell how many are."""
        return [discrete_gaussian(entropy, self.variance) for _ in range(cells)]

    draw_vector = draw

    def draw_many(self, entropy: Entropy, size: int) -> Any:
        """For simulations."""
        return discrete_gaussian_many(entropy, self.variance, size)

    def log_chances(self, distance: Floats) -> Floats:
        """Natural logarithms of the chances of whole numbers so far from 0."""
        return -(distance**2) / (2 * float(self.variance)) - gaussian_log_normaliser(self.variance)

    @property
    def scale(self) -> float:
        """That of continuous Laplace noise of the same variance."""
        return math.sqrt(self.variance / 2)


def squares(statistic: Additive, neighbors: str) -> list[Fraction]:
    """Of each part the variance at which weight 1 has a loss of rho = 1/2."""
    parts, whole = statistic.parts, statistic.joint_square
    reaches = [part.reach[neighbors] ** 2 if part.square is None else part.square[neighbors] for part in parts]
    return [whole * reach / part.share**2 for part, reach in zip(parts, reaches, strict=True)]


def laws_of(statistic: Additive, neighbors: str, weighting: Weighting) -> list[Gaussian]:
    """Of the noise in each part, at what weight one costs."""
    return [Gaussian(weighting.variance(square)) for square in squares(statistic, neighbors)]


def noise_size(statistic: Additive, neighbors: str) -> float:
    """Half the variance of the noise of one person's worth of weight, on the scale of the answer's sum."""
    pairs = zip(squares(statistic, neighbors), statistic.units, strict=True)
    return sum([float(square) * unit**2 for square, unit in pairs]) / 2


def equivalent_reach(question: Question) -> float:
    """Of a statistic of one part: the reach at which Laplace noise would be as large, on the scale of the sum."""
    statistic: Any = question.statistic
    return math.sqrt(noise_size(statistic, question.neighbors))


def equivalent_scales(question: Question, rate: Any, one: int) -> Floats:
    """Of each part, in units of 1/one: the scale of Laplace noise of the same variance, at what weight one costs."""
    statistic: Any = question.statistic
    sizes = [math.sqrt(square / 2) for square in squares(statistic, question.neighbors)]
    return np.array([size * NANO * one / rate for size in sizes])
