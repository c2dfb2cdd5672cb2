"""An estimate from collected answers: how many owners have each option, how sure that is, what it gave away."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from epsilons.arguments.checks import ASSUMPTIONS, check_between, check_name
from epsilons.display import Sheet, Shown, show
from epsilons.errors import Argument, PlanError
from epsilons.local.leakage import Floats, Leakage, leakage_sheet

#: The lower ends of intervals, and the upper ones.
Ends = tuple[Floats, Floats]

_TALLEST_TABLE = 40


@dataclass(frozen=True, eq=False)
class Estimate(Shown):
    """`value` is the estimated number of owners per option 1..V: an array, or one number if there is one option.

    `error` is the standard error at that value. `interval(.95)` is (low, high), each of the shape of `value`; it covers
    each option's true number with at least that probability, not all options at once.
    """

    values: Floats
    errors: Floats
    respondents: int
    #: Worked out when asked for: a simulation of many estimates should not wait for it.
    leak: Callable[[], tuple[Leakage, ...]] = field(repr=False)
    bounds: Callable[[float], Ends] = field(repr=False)
    labels: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @cached_property
    def leakages(self) -> tuple[Leakage, ...]:
        """What the collection gave away, view by view."""
        return self.leak()

    @property
    def value(self) -> Any:
        return self._shaped(self.values)

    @property
    def error(self) -> Any:
        return self._shaped(self.errors)

    def interval(self, level: float = 0.95) -> tuple[Any, Any]:
        low, high = self.bounds(check_level(level))
        return self._shaped(low), self._shaped(high)

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Plain values that survive JSON; an infinite epsilon is null."""
        estimated = {"respondents": self.respondents, "level": level, "options": self._options(level)}
        return {**estimated, "leakage": [one.to_dict() for one in self.leakages], "notes": list(self.notes)}

    def table(self, level: float = 0.95) -> str:
        """The estimate, then the paper's claim beside the true leakage."""
        return "\n\n".join(map(str, self.sheets(level)))

    def sheets(self, level: float = 0.95) -> list[Sheet]:
        hidden, leaks = len(self.values) - _TALLEST_TABLE, leakage_sheet(self.leakages)
        below = [f"... and {hidden:,} more options."] if hidden > 0 else []
        title = f"Estimated from {self.respondents:,} owners"
        head, rows = ("option", "estimate", "error", f"{level:.4g} interval", ""), []
        for one in self._options(level)[:_TALLEST_TABLE]:
            numbers = (one["estimate"], one["error"], *one["interval"])
            value, error, low, high = (show(round(float(number), 1)) for number in numbers)
            rows.append((one["option"], value, error, f"{low} to {high}", ""))
        return [Sheet(title, head, rows, below), replace(leaks, notes=[*leaks.notes, *self.notes])]

    def _options(self, level: float) -> list[dict[str, Any]]:
        low, high = self.bounds(check_level(level))
        names = self.labels or (("yes",) if len(self.values) == 1 else range(1, len(self.values) + 1))
        columns = zip(names, *(one.tolist() for one in (self.values, self.errors, low, high)), strict=True)
        return [{"option": str(n), "estimate": v, "error": e, "interval": [a, b]} for n, v, e, a, b in columns]

    def _shaped(self, numbers: Floats) -> float | Floats:
        return float(numbers[0]) if len(numbers) == 1 else numbers.copy()


def check_level(level: Any) -> float:
    refusal = PlanError("This level is not usable.", rule="Between 0 and 1.", suggest=Argument("level", 0.95))
    return check_between(level, 0, 1, refusal)


def check_combination(assume: str, density: Any) -> float:
    """How levels are combined: a known assumption, and a density between 0 and 1, which is returned."""
    check_name("assume", assume, ASSUMPTIONS)
    refusal = PlanError("This density is not usable.", rule="Between 0 and 1.", suggest=Argument("density", 0.5))
    return check_between(density, 0, 1, refusal)


def split_variance(sizes: Floats, weights: Floats, assume: str) -> float:
    """What the split of an option's n owners over levels adds to the variance, per n (N - n), if it is by chance.

    `weights` are per owner and add up to 1 over all N owners. Where nothing is assumed they are equal, and it is 0.
    """
    people = float(sizes.sum())
    if assume != "unrelated" or people <= 1:
        return 0.0
    return max(0.0, float(sizes @ weights**2) - 1 / people) * people / (people - 1)


def solve_counts(values: Floats, people: float, fixed: float, extra: float, split: float, z: float) -> Ends:
    """The n with (value - n)^2 <= fixed + z^2 (extra n + split n (people - n)): between the roots of a quadratic."""
    a = 1 + z**2 * split
    b = -2 * values - z**2 * (extra + split * people)
    c = values**2 - fixed
    root = np.sqrt(np.maximum(0, b**2 - 4 * a * c))
    return np.clip((-b - root) / (2 * a), 0, people), np.clip((-b + root) / (2 * a), 0, people)
