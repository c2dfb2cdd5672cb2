"""An estimate from collected answers: how many owners have each option, how sure that is, what it gave away."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from epsilons.accuracy.additive import uneven
from epsilons.arguments.checks import check_between, check_related
from epsilons.display import Sheet, Shown, show
from epsilons.errors import Argument, PlanError
from epsilons.local.leakage import Floats, Leakage, leakage_sheet

#: The lower ends of intervals, and the upper ones.
Ends = tuple[Floats, Floats]

_TALLEST_TABLE = 40
#: How many limits of weights are tried, and how often the end of an interval is halved in on.
_LIMITS, _HALVINGS = 25, 50


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


def check_combination(assume: Any, density: Any) -> tuple[float, float]:
    """How levels are combined: (how far apart they may lie, in spreads; a density between 0 and 1)."""
    refusal = PlanError("This density is not usable.", rule="Between 0 and 1.", suggest=Argument("density", 0.5))
    return check_related(assume), check_between(density, 0, 1, refusal)


@dataclass(frozen=True, eq=False)
class Combination:
    """Levels of so many owners each, combined by weights per owner that add up to 1 over all of them.

    `related` says that no level's expected share of an option is further from everyone's share p than so many spreads
    sqrt(p(1 - p)) (docs/theory.md, "related"). An estimated share may then be off by `drift` times that, and the split
    of an option's owners over levels is luck.
    """

    sizes: Floats
    weights: Floats
    related: float

    @classmethod
    def best(cls, sizes: Floats, noise: Floats, related: float, density: float, most: Floats | None = None) -> Self:
        """The weights of the least error at this density, each at most `most`; from public facts only.

        `noise` is the variance of what one owner of a level adds to a share, besides the luck of having it. If levels
        say nothing of answers the best weights are inverse to both; if nothing is assumed all are alike. Between them
        some levels in the middle are: where the sum of squares and of deviations from the median is least, a weight
        is the median, or its precision times one factor if that is less, or times a smaller one if that is more.
        """
        people, luck = float(sizes.sum()), density * (1 - density)
        if math.isinf(related):
            return cls(sizes, np.full(len(sizes), 1 / people), related)
        precise = 1 / (noise + luck)
        tried = precise[None]
        if related:
            limits = np.geomspace(precise.min(), precise.max(), _LIMITS)
            first, last = np.triu_indices(_LIMITS)
            tried = np.clip(1.0, precise / limits[last][:, None], precise / limits[first][:, None])
        tried = tried / (tried @ sizes)[:, None]
        if most is not None:
            for place in np.flatnonzero((tried > most).any(axis=1)):
                tried[place] = _fill(tried[place], most, sizes)
        bias = related * math.sqrt(luck) * uneven(tried, sizes)
        return cls(sizes, tried[(tried**2 @ (sizes * (noise + luck)) + bias**2).argmin()], related)

    @cached_property
    def people(self) -> float:
        return float(self.sizes.sum())

    @cached_property
    def drift(self) -> float:
        """How far levels that lie apart move a share, for each unit of distance; nothing where all count alike."""
        return 0.0 if math.isinf(self.related) else float(uneven(self.weights, self.sizes))

    def split(self, counts: Floats) -> Floats:
        """The variance that luck in who stands at which level adds to estimated counts.

        A level whose own share is nearer to 1/2 than everyone's has more of it.
        """
        uneven_weights = max(0.0, float(self.sizes @ self.weights**2) - 1 / self.people)
        share = np.minimum(counts, self.people - counts) / self.people
        near = np.minimum(share + self._apart(counts) / self.people, 0.5)
        found: Floats = uneven_weights * self.people**3 / max(self.people - 1, 1) * near * (1 - near)
        return found

    def bias(self, counts: Floats) -> Floats:
        """How far levels that lie apart may move estimated counts."""
        return self.drift * self._apart(counts)

    def _apart(self, counts: Floats) -> Floats:
        related = self.related if math.isfinite(self.related) else 0.0
        found: Floats = related * np.sqrt(np.maximum(counts * (self.people - counts), 0.0))
        return found

    def ends(self, values: Floats, reach: Callable[[Floats], Floats]) -> Ends:
        """Every count that an estimate does not contradict: it is within `reach` of it, but for related levels."""
        centre = np.clip(values, 0.0, self.people)

        def possible(counts: Floats) -> Any:
            return np.abs(centre - counts) <= reach(counts) + self.bias(counts)

        found = []
        for end in (np.zeros_like(centre), np.full_like(centre, self.people)):
            inside, outside = centre, end
            for _ in range(_HALVINGS):
                middle = (inside + outside) / 2
                held = possible(middle)
                inside, outside = np.where(held, middle, inside), np.where(held, outside, middle)
            found.append(np.where(possible(end), end, outside))
        return found[0], found[1]

    def condition(self, values: Floats) -> tuple[str, ...]:
        """What errors and intervals take for granted, as a note; nothing where all owners count alike."""
        if self.drift < 1e-12:
            return ()
        if not self.related:
            return ("Levels are combined as if they said nothing about answers.",)
        spreads = self._apart(np.clip(values, 0.0, self.people)) / self.people
        ends = dict.fromkeys(f"{end:.3g}" for end in (spreads.min(), spreads.max()))
        each = ", each by its own number" if len(values) > 1 else ""
        far = f"no level's expected share is further than {' to '.join(ends)} from everyone's{each}"
        return (f"Errors and intervals hold if {far}.",)


def _fill(base: Floats, most: Floats, sizes: Floats) -> Floats:
    """min(scale*base, most) with sum(sizes*weights) = 1: the levels that meet their cap first are fixed first."""
    weights, free, room = most.copy(), np.ones(len(base), bool), 1.0
    for place in np.argsort(most / base):
        scale = room / float(sizes[free] @ base[free])
        if scale * base[place] <= most[place]:
            weights[free] = scale * base[free]
            break
        free[place], room = False, room - sizes[place] * most[place]
    return weights
