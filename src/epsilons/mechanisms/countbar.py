"""Error bars for paper 1's exponential count: which true counts would have made this answer likely enough."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from epsilons.mechanisms.errorbars import normal_two_sided
from epsilons.mechanisms.surrogate import count_distribution, worst_count_reach
from epsilons.preferences import Levels

_HALVINGS = 24


@dataclass(frozen=True)
class CountBar:
    """The exponential count's error depends on the count itself, so its interval is an inverted test.

    A true count x is kept if an answer at least as far out as the one released has a chance of at least half of what
    is left, (1-confidence)/2, on the public stand-in with x ones spread evenly over the levels. `population` is the
    standard deviation of who happened to be on the roster.
    """

    grants: tuple[int | None, ...]
    sizes: tuple[int, ...]
    population: float
    #: Whether nothing is assumed about where the ones are: then the law that dominates all others is used.
    nothing_assumed: bool = False

    def interval(self, value: float, confidence: float, population: bool) -> tuple[float, float]:
        """Where the count of the people on the roster lies."""
        people, tail = sum(self.sizes), (1 - confidence) / 2
        value = float(value)
        if self.nothing_assumed:
            reach = worst_count_reach(Levels(self.grants, self.sizes), confidence)
            low, high = max(value - reach, 0.0), min(value + reach, float(people))
        else:
            low = self._edge(0.0, value, value, tail, below=True)
            high = self._edge(float(people), value, value, tail, below=False)
        if population:
            extra = normal_two_sided(confidence) * self.population
            return value - math.hypot(value - low, extra), value + math.hypot(high - value, extra)
        return low, high

    def _edge(self, outside: float, inside: float, answer: float, tail: float, *, below: bool) -> float:
        """The furthest count on one side that the answer does not contradict."""
        if self._chance(outside, answer, below) >= tail:
            return outside
        for _ in range(_HALVINGS):
            middle = (outside + inside) / 2
            if self._chance(middle, answer, below) >= tail:
                inside = middle
            else:
                outside = middle
        return inside

    def _chance(self, count: float, answer: float, below: bool) -> float:
        """Of an answer at least this far above (or below) a true count."""
        people = sum(self.sizes)
        error, chance = count_distribution(Levels(self.grants, self.sizes), min(max(count / people, 0.0), 1.0))
        gap = answer - count
        return float(chance[error >= gap - 0.5].sum() if below else chance[error <= gap + 0.5].sum())

    def to_dict(self) -> dict[str, Any]:
        """Plain values that survive JSON."""
        return {**self.__dict__, "grants": list(self.grants), "sizes": list(self.sizes)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> CountBar:
        """The inverse of `to_dict`."""
        return cls(tuple(data["grants"]), tuple(data["sizes"]), data["population"], data["nothing_assumed"])
