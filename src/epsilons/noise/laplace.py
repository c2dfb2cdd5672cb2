"""Discrete Laplace noise: the difference of two geometric integers.

For independent G, G' with P(G = k) = (1 - q) q^k, q = exp(-s):

    P(G - G' = k) = (1 - q)^2 sum_{j>=0} q^(j + |k|) q^j = (1 - q)/(1 + q) q^|k|.

(Ghosh, Roughgarden, Sundararajan 2009, "Universally Utility-Maximizing Privacy Mechanisms", call it the
two-sided geometric.) Added to an integer statistic of sensitivity r it is s*r-differentially private. How
the geometrics are drawn without a float, and in a time that does not show them: `geometric.py`.
"""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from epsilons.noise.entropy import Entropy
from epsilons.noise.geometric import digits_of, geometric_many, two_geometrics


def discrete_laplace(entropy: Entropy, inverse_scale: Fraction) -> int:
    """One integer k with probability proportional to exp(-|k| * inverse_scale), exactly."""
    first, second = two_geometrics(entropy, digits_of(inverse_scale))
    return first - second


def discrete_laplace_many(
    entropy: Entropy, inverse_scale: Fraction, size: int
) -> NDArray[np.int64] | NDArray[np.object_]:
    """`size` independent draws: int64 for scales up to about 2^56, Python integers above."""
    plan = digits_of(inverse_scale)
    first = geometric_many(entropy, plan, size)
    # Both lie in 0..2^63-1 while they are int64, so the difference does as well.
    return first - geometric_many(entropy, plan, size)
