"""A question: a statistic, and the public facts and assumptions that go with it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from epsilons.errors import PlanError
from epsilons.guarantee import NEIGHBORS
from epsilons.statistics.base import Statistic

ASSUMPTIONS = {
    "unrelated": "people's preferences say nothing about their values",
    "nothing": "nothing is assumed about how preferences and values relate",
}


@dataclass(frozen=True)
class Question:
    """What is asked, against which neighbours it is protected, and what is publicly expected of the values.

    `spread` and `density` are public guesses of the standard deviation and of the fraction of ones. They steer
    weights and predicted errors, never the guarantee.
    """

    statistic: Statistic
    neighbors: str = "absent"
    assume: str = "unrelated"
    spread: float | None = None
    density: float | None = None

    def __post_init__(self) -> None:
        if self.neighbors not in NEIGHBORS:
            raise PlanError(f"Unknown neighbors={self.neighbors!r}.", hint='neighbors="absent" or neighbors="replace"')
        if self.assume not in ASSUMPTIONS:
            raise PlanError(f"Unknown assume={self.assume!r}.", hint='assume="unrelated" or assume="nothing"')
        if self.spread is not None and not (self.spread > 0 and math.isfinite(self.spread)):
            raise PlanError(
                f"spread={self.spread!r} is not allowed.",
                rule="The spread is a public guess of the standard deviation, a positive number.",
            )
        if self.density is not None and not 0 <= self.density <= 1:
            raise PlanError(
                f"density={self.density!r} is not allowed.",
                rule="The density is a public guess of the fraction of ones, from 0 to 1.",
            )
