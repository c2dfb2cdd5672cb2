"""For tests only: repeatable randomness. A release drawn from it says that it is not private."""

import hashlib

from epsilons.noise.entropy import Entropy

__all__ = ["seeded"]


def seeded(seed: int) -> Entropy:
    """Entropy that repeats itself: the same seed gives the same draws, so nothing drawn from it is private.

    >>> seeded(7).bits(16) == seeded(7).bits(16)
    True
    >>> seeded(7).private
    False
    """
    return Entropy(hashlib.sha256(b"epsilons seeded entropy %d" % seed).digest())
