"""Sums and means of bounded values, on an integer grid.

Where everybody's value is there (no scope), a value x in [a, b] becomes the whole number nearest to 2^30 * (x - c)/h,
with c=(a+b)/2 and h=(b-a)/2: one person then reaches at most 2^30 steps from absence and 2^31 steps from one bound to
the other. Missing people stand at the centre and so add nothing.

With a scope the number of rows is private. A sum is then taken as it is, around zero; a mean releases the number of
rows as well and divides by it, one budget for both.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np

from epsilons.arguments.checks import check_bounds
from epsilons.statistics.additive import Additive, Average, Part, Sums, doubt
from epsilons.statistics.base import Question, RowScope, Scope, Statistic
from epsilons.statistics.entry import BOUNDS, Entry
from epsilons.statistics.moments import Moments
from epsilons.summaries.arrays import STEPS, zero_steps
from epsilons.summaries.cells import Integers

#: A split of the budget is a multiple of 1/64, so that charges stay simple fractions.
_SPLITS = 64
#: How the sum of (x - c)/h and the number of rows follow from the two sums of a form, and their noises from the noises:
#: (one, other, whole) for (one * first + other * second)/whole.
CENTRED = {
    **dict.fromkeys(("split", "together"), ((1, 0, STEPS), (0, 1, 1))),
    "pair": ((1, -1, 2 * STEPS), (1, 1, 2 * STEPS)),
}


Reach = dict[str, int]


@dataclass(frozen=True)
class Bounded(Additive):
    """What sums, means and variances share: bounds, and parts to which rows add steps (`arrays.row_steps`, by name)."""

    bounds: tuple[float, float]
    scope: Scope | None = None

    summary: ClassVar[str] = "steps"  # type: ignore[misc]
    trusted: ClassVar[dict[str, str]] = {"spread": "values spread by about"}

    def __post_init__(self) -> None:
        object.__setattr__(self, "bounds", check_bounds(self.bounds, self.name))
        object.__setattr__(self, "span", self.bounds)

    @cached_property
    def middle(self) -> Fraction:
        """The public centre c of the bounds."""
        return (Fraction(self.bounds[0]) + Fraction(self.bounds[1])) / 2

    @cached_property
    def half(self) -> Fraction:
        """Half the width of the bounds, h."""
        return (Fraction(self.bounds[1]) - Fraction(self.bounds[0])) / 2

    @cached_property
    def extremes(self) -> tuple[float, float]:
        return self.bounds

    @cached_property
    def centre(self) -> float:  # type: ignore[override]
        return float(self.middle)

    def moments(self, spread: float | None, density: float | None, location: float | None = None) -> Moments:
        """Around the guessed mean, or around the centre, give or take half of h, which is the guessed spread, too."""
        deviation = float(self.half) / 2 if spread is None else spread
        if location is None:
            return Moments(self.centre, deviation**2, float(self.half) / 2)
        return Moments(min(max(location, self.bounds[0]), self.bounds[1]), deviation**2)

    def learn(self, question: Question, guessed: Moments, mean: float, doubt: float) -> Moments:
        """A spread that the caller guessed is taken at its word."""
        found, told = super().learn(question, guessed, mean, doubt), guessed.variance
        return found if question.spread is None else replace(found, variance=min(told, found.most), most=told)

    def describe(self) -> str:
        return f"{self.name} in [{self.bounds[0]:g}, {self.bounds[1]:g}]"


@dataclass(frozen=True)
class Sum(Bounded):
    """The sum over everyone on the roster; without a scope a missing person counts as the centre of the bounds.

    With a scope it is the sum over the rows that count: one number around zero, where a row reaches max(|a|, |b|).
    Releasing sum(x - c) and the number of rows instead would cost more: the best split of a budget between noises of
    sizes h and |c| gives (h^(2/3) + |c|^(2/3))^(3/2), which is at least h + |c| = max(|a|, |b|).
    """

    name: ClassVar[str] = "sum"

    @property
    def parts(self) -> tuple[Part, ...]:
        if self.scope is None:
            return (Part("centred sum", 1, Scope().reach(-STEPS, STEPS)),)
        low, high = zero_steps(np.array(self.bounds), self.bounds)
        ends = int(low), int(high)
        return (Part("sum", self.scope.cells, self.scope.reach(*ends), square=self.scope.square(*ends)),)

    def answer(self, sums: Sums, weight: Fraction, people: int) -> Any:
        if self.scope is None:
            return float(self.half * sums[0][0] / STEPS + self.middle * weight)
        unit = Fraction(max(map(abs, self.bounds))) / STEPS
        return self.scope.arrange(float(unit * sum_) for sum_ in sums[0])

    def moments(self, spread: float | None, density: float | None, location: float | None = None) -> Moments:
        if self.scope is None:
            return super().moments(spread, density, location)
        (low, high), expected, most = self.bounds, self.scope.expected, self.scope.rows
        middle = (low + high) / 2 if location is None else min(max(location, low), high)
        deviation = (high - low) / 4 if spread is None else spread
        mean, square = expected * middle, expected * (deviation**2 + middle**2) * (1 + most) / 2
        value = expected * (high - low) / 4 if location is None else 0.0
        rows = doubt(self.scope.fraction, density) * (1 + most) / 2
        return Moments(mean, max(square - mean**2, 0.0), math.hypot(value, rows * middle))

    def related(self, question: Question) -> tuple[str, float]:
        """Of rows that count, also how many of a level's do."""
        return "mean" if self.scope is None else "sum per person", super().related(question)[1]

    def learn(self, question: Question, guessed: Moments, mean: float, doubt: float) -> Moments:
        """Whether a row counts matters the more, the farther from zero the values are that the sum shows."""
        if self.scope is None:
            return super().learn(question, guessed, mean, doubt)
        found = Additive.learn(self, question, guessed, mean, doubt)
        shown = self.moments(question.spread, question.density, mean / max(self.scope.expected, 1e-9))
        return replace(found, variance=min(max(found.variance, shown.variance), found.most))

    @cached_property
    def extremes(self) -> tuple[float, float]:
        (low, high), scope = self.bounds, self.scope
        return self.bounds if scope is None else (scope.rows * min(low, 0.0), scope.rows * max(high, 0.0))

    @property
    def units(self) -> tuple[float, ...]:  # type: ignore[override]
        return ((float(self.half) if self.scope is None else max(map(abs, self.bounds))) / STEPS,)

    @cached_property
    def centre(self) -> float:  # type: ignore[override]
        return float(self.middle) if self.scope is None else 0.0


@dataclass(frozen=True)
class Mean(Average, Bounded):
    """The mean over everyone on the roster; without a scope a missing person counts as the centre of the bounds.

    With a scope it is the mean over the rows that count, from two noisy sums of them. Which two, and how a person's
    loss adds up, is the `form` (proofs in docs/theory.md, "filtered"):

    - "split": sum(x - c), which a row moves by h, and the number of rows; `split` of every epsilon pays for the sum;
    - "pair": sum(x - a) and sum(b - x), which a row moves by 2h together, each at all of epsilon;
    - "together": sum(x - c) and the number of rows, each at all of epsilon, the noise twice what a row moves.

    `off` is a public guess of how far the mean lies from the centre, which decides how much an error in the number of
    rows matters, and so which form is best.
    """

    split: Fraction = Fraction(1)
    off: float = 0.0
    form: str = "split"
    family: str = field(default="linear", init=False, repr=False, compare=False)

    name: ClassVar[str] = "mean"
    scoped: ClassVar[tuple[str, ...]] = ("split", "off", "form")
    later: ClassVar[tuple[str, ...]] = ("form",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scope is not None:
            object.__setattr__(self, "family", "ratio")

    @classmethod
    def over(cls, scope: Scope, bounds: Any, neighbors: str, location: float | None, gaussian: bool = False) -> Mean:
        """The form of least noise; that of a split, A/l and B/(1-l), is least at l = A^(2/3)/(A^(2/3) + B^(2/3)).

        Gaussian noises of a split, A r/l and B r/(1-l) with r^2 = l^2 + (1-l)^2, are least at l = A^(1/2)/(A^(1/2) +
        B^(1/2)), and then no larger than those of any other form.
        """
        low, high = check_bounds(bounds, cls.name)
        half = (high - low) / 2
        off = half / 2 if location is None else min(abs(min(max(location, low), high) - (low + high) / 2), half)
        reaches, expected = _reaches(scope), max(scope.expected, 1e-9)
        steps, rows, _ = (reach[neighbors] for reach in reaches)
        power = 1 / 2 if gaussian else 2 / 3
        first, second = (half * steps / STEPS) ** power, (off * rows) ** power
        split = Fraction(min(max(round(_SPLITS * first / (first + second)), 1), _SPLITS - 4), _SPLITS)

        def noise_size(form: str) -> float:
            parts, units = _list_parts(form, reaches, scope.cells, split), _list_units(form, half, off, expected)
            sizes = [part.reach[neighbors] * unit / float(part.share) for part, unit in zip(parts, units, strict=True)]
            return sum([size**2 for size in sizes])

        form = "split" if gaussian else min(("split", "together", "pair"), key=noise_size)
        return cls((low, high), scope, split if form == "split" else Fraction(1), off, form)

    def completed(self) -> Statistic | None:
        return None if super().completed() is None else Mean(self.bounds)

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        if self.scope is None:
            return (Part("centred sum", 1, Scope().reach(-STEPS, STEPS)),)
        return _list_parts(self.form, _reaches(self.scope), self.scope.cells, self.split)

    @property
    def summed(self) -> tuple[str, ...]:
        return ("centred sum",) if self.scope is None else ("centred sum", "rows")

    def make_parts(self, summed: list[Integers]) -> list[Integers]:
        """Of a pair: a row k steps from the centre is 2^30 + k steps above a, and 2^30 - k below b: always 2^31."""
        if self.form != "pair":
            return summed
        steps, rows = summed
        return [STEPS * rows + steps, STEPS * rows - steps]

    def answer(self, sums: Sums, weight: Fraction, people: int) -> Any:
        if self.scope is None:
            return float(self.middle + self.half * sums[0][0] / STEPS / weight)
        (low, high), means = map(Fraction, self.bounds), []
        for sum_, rows in self._centre(sums):
            means.append(float(min(max(self.middle + self.half * sum_ / max(rows, Fraction(1)), low), high)))
        return self.scope.arrange(means)

    def _centre(self, sums: Sums) -> list[list[Fraction]]:
        """[sum of (x - c)/h, number of rows] of each group."""
        pairs = zip(*sums, strict=True)
        return [[(one * a + other * b) / whole for one, other, whole in CENTRED[self.form]] for a, b in pairs]

    def rows_behind(self, sums: Sums) -> list[Fraction]:
        return [] if self.scope is None else [rows for _, rows in self._centre(sums)]

    def moments(self, spread: float | None, density: float | None, location: float | None = None) -> Moments:
        """With a scope, of one person's part in the mean of those who count: the fewer count, the more each matters."""
        if self.scope is None:
            return super().moments(spread, density, location)
        deviation = float(self.half) / 2 if spread is None else spread
        rows = max(self.scope.expected, 1e-9)
        return Moments(self.centre, deviation**2 / min(rows / self.scope.average, 1.0), off=self.off, rows=rows)

    @cached_property
    def max_error(self) -> float:  # type: ignore[override]
        return math.inf if self.scope is None else self.bounds[1] - self.bounds[0]

    @cached_property
    def units(self) -> tuple[float, ...]:  # type: ignore[override]
        half = float(self.half)
        if self.scope is None:
            return (half / STEPS,)
        return _list_units(self.form, half, self.off, max(self.scope.expected, 1e-9))


@lru_cache(maxsize=64)
def _reaches(scope: Scope) -> tuple[Reach, Reach, Reach]:
    """How far a person moves the centred sum, the number of rows, and the sums of x - a and b - x together."""
    return scope.reach(-STEPS, STEPS), scope.reach(0, 1), scope.pair_reach(2 * STEPS)


def _list_parts(form: str, reaches: tuple[Reach, Reach, Reach], cells: int, split: Fraction) -> tuple[Part, Part]:
    """The two sums of a form."""
    steps, rows, pair = reaches
    if form == "split":
        return Part("centred sum", cells, steps, split), Part("rows", cells, rows, 1 - split)
    if form == "pair":
        return Part("above", cells, pair), Part("below", cells, pair)
    twice = {neighbors: 2 * reach for neighbors, reach in rows.items()}
    total = Part("centred sum", cells, {neighbors: STEPS * reach for neighbors, reach in twice.items()})
    return total, Part("rows", cells, twice)


def _list_units(form: str, half: float, off: float, expected: float) -> tuple[float, float]:
    """What a step of each sum is worth in the mean, if so many rows of a person count on average."""
    if form == "pair":
        return (half - off) / (2 * STEPS) / expected, (half + off) / (2 * STEPS) / expected
    return half / STEPS / expected, off / expected


def bounded_entry(name: str, build: Callable[[Any, RowScope], Statistic], sql: str, **other: Any) -> Entry:
    """The entry of a statistic of values that are clipped to public bounds."""
    what = f"The {name} of values clipped to public bounds"
    told = {
        "doc": f"{what}.",
        "table_doc": f"{what}.",
        "help": f"The {name} of a column, its values clipped to public bounds.",
        "command": f"epsilons {name} people.toml wage --bounds 0,100 --share 0.05",
    }
    return Entry(name=name, build=build, arguments=(BOUNDS,), sql=(sql,), **(told | other))


_SUM = bounded_entry("sum", lambda given, over: Sum(given["bounds"], None if over.complete else over.scope), "Sum")
_MEAN = bounded_entry(
    "mean",
    lambda given, over: (
        Mean(given["bounds"])
        if over.complete
        else Mean.over(over.scope, given["bounds"], over.neighbors, over.location, over.gaussian)
    ),
    "Avg",
    examples="""\
>>> import epsilons as eps
>>> answer = eps.mean([20, 30, 40], [0.5, 1, 1], bounds=(0, 100), mechanism="minimum")
>>> answer.charges
{0.5: 0.5, 1.0: 0.5}
""",
    command="epsilons mean people.toml wage --bounds 0,100 --by region=north,south --share 0.05",
)
ENTRIES = (_SUM, _MEAN)
