"""Made-up people: values, and who asks for which epsilon. Seeded, so that every run measures the same."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: Three levels as in Jorgensen et al. 2015: 54% strict, 37% moderate, 9% open.
THREE = (0.01, 0.2, 1.0)
SHARES = (0.54, 0.37, 0.09)


def generator(seed: int) -> np.random.Generator:
    """What everything here is drawn with; none of it is noise."""
    return np.random.default_rng(seed)


def epsilons_at(levels: NDArray[np.float64] | tuple[float, ...], people: int, random: np.random.Generator) -> Floats:
    """One epsilon per person, everyone at one of the levels and no level empty."""
    distinct = np.array(levels, float)
    shares = SHARES if len(distinct) == len(SHARES) else None
    chosen = random.choice(distinct, people, p=shares)
    chosen[: len(distinct)] = distinct[:people]
    random.shuffle(chosen)
    return chosen


def spread_levels(number: int) -> Floats:
    """So many distinct epsilons from .01 to 2."""
    return np.array(THREE) if number == len(THREE) else np.geomspace(0.01, 2, number).round(9)


def fresh_roster(number: int, people: int, random: np.random.Generator) -> Floats:
    """A roster never seen before: other levels, other people at each. Nothing remembered can serve for it."""
    return epsilons_at((spread_levels(number) * random.uniform(0.8, 1.25)).round(9), people, random)
