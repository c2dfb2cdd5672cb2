"""The answer of a function of one's own as whole steps of a public grid: one number, or several."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilons.arguments.checks import LARGEST_NUMBER, check_truth, check_unbounded_step, check_whole, exact, refuse
from epsilons.arrays.claimed import call_quietly
from epsilons.errors import Argument, PlanError


@dataclass(frozen=True)
class Gridded:
    """A function, the step between its answers, how many numbers it gives (None: one, not in a list).

    `whole` says that answers and how far people move them are multiples of the step: then nothing is rounded.
    """

    function: Callable[[Any], Any]
    grid: Fraction
    size: int | None
    whole: bool

    @classmethod
    def read(cls, function: Any, step: Any, size: Any, whole: Any) -> Gridded:
        """From what the caller gave."""
        if not callable(function):
            raise PlanError((Argument("function"), " cannot be called."), suggest="max, or any function of the values")
        if size is not None:
            size = check_whole(size, refusal=refuse("size", size, "A whole number from 1.", Argument("size", 3)))
        return cls(function, exact(check_unbounded_step(step)), size, check_truth("whole", whole))

    def steps(self, reach: Fraction, euclidean: bool = False) -> int:
        """How many steps apart answers may be that lie so far apart: rounding moves each number by one at most.

        Apart is the sum of what all numbers move (L1), or the root of the sum of squares (L2), rounded up.
        """
        if reach == 0:
            return 0
        count = self.size or 1
        apart = math.isqrt(count - 1) + 1 if euclidean else count
        return math.ceil(reach / self.grid) + (0 if self.whole else apart)

    def places(self, people: NDArray[Any], loudly: bool = False, instead: int | None = None) -> list[int]:
        """The answer as whole steps, cut at 10^30; where the function fails, `instead`, or an error of one text."""
        shape = () if self.size is None else (self.size,)

        def read(given: Any) -> list[int] | None:
            found = np.asarray(given if shape else float(given), np.float64)
            if found.shape != shape or not np.isfinite(found).all():
                return None
            cut = np.clip(found, -LARGEST_NUMBER, LARGEST_NUMBER).reshape(-1)
            return [round(Fraction(number) / self.grid) for number in cut.tolist()]

        what = "a finite number" if self.size is None else f"{self.size} finite numbers"
        # A copy, so that a function that sorts in place does not move the caller's values.
        failed = None if instead is None else [instead] * (self.size or 1)
        found = call_quietly(lambda: self.function(people.copy()), read, what, loudly, failed)
        if found is None:
            raise ValueError(f"not {what}")
        return list(found)

    def values(self, places: Sequence[int]) -> Any:
        """Answers from whole steps."""
        found = [float(place * self.grid) for place in places]
        return found[0] if self.size is None else found
