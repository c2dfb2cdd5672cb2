"""Uniform integers below a bound, by rejection."""

import numpy as np
from numpy.typing import NDArray

from epsilons.noise.entropy import Entropy


def uniform(entropy: Entropy, bound: int) -> int:
    """Exactly uniform on 0..bound-1: draw just enough bits to reach bound - 1, again if they reach further.

    Every value is equally likely in each attempt, so also in the accepted one; an attempt is accepted with
    probability above 1/2, independently of the value accepted.
    """
    width = (bound - 1).bit_length()
    while True:
        value = entropy.bits(width)
        if value < bound:
            return value


def uniform_many(entropy: Entropy, bounds: NDArray[np.int64]) -> NDArray[np.int64]:
    """`uniform` once for every bound."""
    masks = low_masks(bounds)
    values = np.zeros(len(bounds), dtype=np.int64)
    # A bound of 1 leaves nothing to draw.
    pending = np.flatnonzero(bounds > 1)
    while len(pending):
        values[pending] = entropy.words(len(pending)).view(np.int64) & masks[pending]
        pending = pending[values[pending] >= bounds[pending]]
    return values


def low_masks(bounds: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each bound the mask of the bits that reach bound - 1, found by smearing its top bit downwards."""
    masks = bounds - 1
    for shift in (1, 2, 4, 8, 16, 32):
        masks = masks | (masks >> shift)
    return masks
