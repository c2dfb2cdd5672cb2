"""The people of Jorgensen et al. 2015, Table I: made up, and the same for every experiment that asks for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: Shares of conservative and of moderate users; the others are liberal.
CONSERVATIVE, MODERATE = 0.54, 0.37


@dataclass(frozen=True)
class Users:
    """Three groups of users, and binary or normal values that say nothing about the groups."""

    people: int = 1_000
    density: float = 0.15
    deviation: float = 200.0
    conservative: float = CONSERVATIVE
    moderate: float = MODERATE
    strictest: float = 0.01
    middle: float = 0.2
    liberal: float = 1.0

    def epsilons(self, random: np.random.Generator) -> Floats:
        """Groups at random; conservative and moderate epsilons uniform and rounded to hundredths; liberal ones 1."""
        order = random.permutation(self.people)
        strict, fair = round(self.conservative * self.people), round(self.moderate * self.people)
        epsilons = np.full(self.people, self.liberal)
        epsilons[order[:strict]] = random.uniform(self.strictest, self.middle, strict).round(2)
        epsilons[order[strict : strict + fair]] = random.uniform(self.middle, self.liberal, fair).round(2)
        return cast(Floats, np.maximum(epsilons, 0.01))

    def bits(self, random: np.random.Generator) -> Floats:
        """A one with the chance of the density."""
        return np.asarray(random.random(self.people) < self.density, float)

    def numbers(self, random: np.random.Generator) -> Floats:
        """Whole numbers around 500, cut to 1 and 1,000."""
        return np.clip(random.normal(500, self.deviation, self.people).round(), 1, 1_000)
