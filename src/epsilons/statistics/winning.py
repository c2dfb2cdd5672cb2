"""What it takes to make an option the most frequent one: the cheapest people whose values could be changed for it.

Jorgensen et al. 2015, Equation 5, for a mode: whoever does not name the option can be changed to name it, at their own
epsilon. To win with T voices an option needs T - n of them, and of every other option with more than T voices as many
as it has more. For a given T these are the cheapest of each such option, and then the cheapest of all the rest. How
many are needed of whom is linear in T and in whole numbers, so that the least cost is convex in T: a search by halves
finds it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from epsilons.summaries.cells import Integers


@dataclass(frozen=True, eq=False)
class Standing:
    """Who names what: people by level and option, in the last column those who name none. Public people never change.

    Levels come by their grants, the strictest first and public people last.
    """

    grants: tuple[int | None, ...]
    people: Integers

    def costs(self) -> list[int | None]:
        """Of every option, in nano-epsilon; None where public people leave it no way to win."""
        return [self._cost(option) for option in range(self.people.shape[1] - 1)]

    def _cost(self, option: int) -> int | None:
        finite = [grant for grant in self.grants if grant is not None]
        voices = self.people.sum(axis=0)
        own, voices[-1], others = int(voices[option]), 0, self.people[: len(finite)].copy()
        others[:, option] = 0
        before = np.cumsum(others, axis=0) - others
        there = others.sum(axis=0)

        def feasible(total: int) -> bool:
            needed = np.maximum(voices - total, 0)
            needed[option] = 0
            return bool((needed <= there).all()) and int(needed.sum()) <= total - own

        def price(total: int) -> int:
            needed = np.maximum(voices - total, 0)
            needed[option] = 0
            taken = np.minimum(np.maximum(needed - before, 0), others)
            rest, found = total - own - int(needed.sum()), 0
            for grant, forced, free in zip(finite, taken.sum(axis=1), (others - taken).sum(axis=1), strict=True):
                more = min(rest, int(free))
                rest, found = rest - more, found + grant * (int(forced) + more)
            return found

        low, high = own, own + int(there.sum())
        if not feasible(high):
            return None
        least = _first(low, high, feasible)
        return price(_first(least, high, lambda total: total == high or price(total) <= price(total + 1)))


def _first(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """The first whole number of a range from which on something holds, as it does at the end."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def cheapest(grants: Sequence[int | None], sizes: Sequence[int], budget: float) -> float:
    """How many people the budget, in nano-epsilon, pays for at most: the strictest first, parts of people included."""
    found = 0.0
    for grant, size in zip(grants, sizes, strict=True):
        if grant is None:
            break
        afforded = min(float(size), budget / grant)
        found, budget = found + afforded, budget - afforded * grant
    return found
