"""The variance of bounded values, from noisy sums of u=(x-c)/h in [-1, 1] and of its square.

The parts are sum(u) and sum(u^2 - s), and a person moves both at once: no u has a|u| + b|u^2 - s| > 1, so that one
epsilon pays for a step of the first at a and of the second at b together (docs/theory.md, "variance"). The answer is
h^2 * clip(m2 - m1^2, 0, 1) with m1 and m2 the two noisy means. a=0.7 is best when the mean lies about a quarter of h
from the centre.

With a scope the number of rows is private: sum(u) has a share of every epsilon, and the rest of it pays for sum(u^2)
and sum(1 - u^2) together, which a row moves by 1 between them; their sum is the number of rows.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil
from typing import Any, ClassVar

from epsilons.statistics.additive import Average, Part, Sums
from epsilons.statistics.base import Question, Scope
from epsilons.statistics.moments import Moments
from epsilons.statistics.total import Bounded, bounded_entry
from epsilons.summaries.arrays import STEPS
from epsilons.summaries.cells import Integers

#: The public guess of the mean's distance from the centre, in units of h, for which the parts are calibrated.
MEAN_GUESS = 0.25
#: s - 1/2 in steps, rounded up: what is taken off u^2 - 1/2, to which rows add up.
_SHIFT = ceil(Fraction("0.24952") * STEPS)
#: s itself: what stands for the square of a person of whom nothing is known.
SQUARE = Fraction(1, 2) + Fraction(_SHIFT, STEPS)
#: a and b: what a step of each sum costs, of an epsilon that buys 2^30 of them.
_COSTS = {"absent": (Fraction("0.7"), Fraction("1.1977")), "replace": (Fraction("0.3"), Fraction("0.666"))}
#: With a scope this part goes to the sum: near the best for means about a quarter of h from the centre.
_SHARE = Fraction(5, 12)
#: How far, in units of h^2, an error of one row in the denominator moves such a variance.
_ROW_WEIGHT = 0.1875


@dataclass(frozen=True)
class Variance(Average, Bounded):
    """The variance over everyone on the roster (divided by n); a missing person adds nothing. With a scope, of rows."""

    name: ClassVar[str] = "variance"
    family: ClassVar[str] = "variance"  # type: ignore[misc]
    trusted: ClassVar[dict[str, str]] = {**Bounded.trusted, "location": "have a mean of about"}

    def identity(self) -> str:
        """Not that of the first version, which split every epsilon among the sums and drew otherwise."""
        return f"{super().identity()} of joint sums"

    @property
    def parts(self) -> tuple[Part, ...]:
        if self.scope is None:
            names, reaches = ("centred sum", "squares"), _COSTS.items()
            return tuple(
                Part(name, 1, {neighbors: ceil(STEPS / costs[place]) for neighbors, costs in reaches})
                for place, name in enumerate(names)
            )
        total = Part("centred sum", self.scope.cells, self.scope.reach(-STEPS, STEPS), _SHARE)
        pair = self.scope.pair_reach(STEPS)
        return total, *[Part(name, self.scope.cells, pair, 1 - _SHARE) for name in ("squares", "rest of squares")]

    @property
    def joint_square(self) -> Fraction:
        """With a scope the sum by itself, and the pair together: each at its share at most."""
        return Fraction(1) if self.scope is None else _SHARE**2 + (1 - _SHARE) ** 2

    @property
    def summed(self) -> tuple[str, ...]:
        return "centred sum", "centred squares", "rows"

    def make_parts(self, summed: list[Integers]) -> list[Integers]:
        """A row's u^2 - 1/2 is k steps from 0; u^2 is k + 2^29 of 2^30, and 1 - u^2 the rest of them."""
        first, squares, rows = summed
        if self.scope is None:
            return [first, squares - _SHIFT * rows]
        return [first, STEPS // 2 * rows + squares, STEPS // 2 * rows - squares]

    def means(self, sums: tuple[Any, ...], weight: Any) -> tuple[Any, Any, Any]:
        """(m1, m2, number of rows) from the noisy sums of one group; without a scope that number is the weight."""
        if self.scope is None:
            return sums[0] / STEPS / weight, sums[1] / STEPS / weight + SQUARE, weight
        rows = (sums[1] + sums[2]) / STEPS
        count = max(rows, Fraction(1))
        return sums[0] / STEPS / count, sums[1] / STEPS / count, rows

    def answer(self, sums: Sums, weight: Fraction, people: int) -> Any:
        groups = [self.means(group, weight) for group in zip(*sums, strict=True)]
        spread = (min(max(squares - mean**2, Fraction(0)), Fraction(1)) for mean, squares, _ in groups)
        return (self.scope or Scope()).arrange(float(self.half**2 * one) for one in spread)

    def rows_behind(self, sums: Sums) -> list[Fraction]:
        return [] if self.scope is None else [self.means(group, 1)[2] for group in zip(*sums, strict=True)]

    def moments(self, spread: float | None, density: float | None, location: float | None = None) -> Moments:
        """Of (x - mu)^2 at the guessed spread and location; see `shaped`."""
        (low, high), half = self.bounds, float(self.half)
        off = MEAN_GUESS * half if location is None else abs(min(max(location, low), high) - float(self.middle))
        rows = 1.0 if self.scope is None else max(self.scope.expected, 1e-9)
        return self.shaped(half / 2 if spread is None else spread, off, rows)

    def shaped(self, deviation: float, off: float, rows: float) -> Moments:
        """Of (x - mu)^2 where values follow the beta law on the bounds with this spread and distance from the centre.

        Its fourth moment is that of normal values where they are concentrated, of skewed ones near a bound (a gamma
        law), of two points where they lie at the bounds. Whatever the law, (x - mu)^2 has no more variance than
        sigma^2 (d^2 - sigma^2), with d the distance of the mean from the farther bound: `most`. A person's rows are
        taken to be alike, since nothing public tells that they are not: up to a root of their number too much.
        """
        half = float(self.half)
        off = min(off, half)
        p, square = (1 + off / half) / 2, min(deviation**2, half**2 - off**2)
        two_points = p * (1 - p)
        least = max(square, 1e-12 * half**2) / (2 * half) ** 2
        size = max(two_points / least - 1, 0.0)
        skewed = (1 - 2 * p) ** 2 * (size + 1) / max(two_points, 1e-12) - (size + 2)
        beta = square**2 * max(2 + 6 * skewed / ((size + 2) * (size + 3)), 0.0)
        most = max(square * ((half + off) ** 2 - square), 0.0)
        fraction = 1.0 if self.scope is None else min(2 * rows / (1 + self.scope.rows), 1.0)
        return Moments(square, min(beta, most) / fraction, off=off, most=most / fraction, rows=rows)

    @cached_property
    def extremes(self) -> tuple[float, float]:
        return 0.0, self.max_error

    @property
    def units(self) -> tuple[float, ...]:  # type: ignore[override]
        """An error d in m1 moves the answer by 2*m1*h^2*d, an error in m2 by h^2 times itself."""
        mean, square = 2 * MEAN_GUESS * self.max_error / STEPS, self.max_error / STEPS
        if self.scope is None:
            return mean, square
        expected = max(self.scope.expected, 1e-9)
        return tuple([size / expected for size in (mean, (1 - _ROW_WEIGHT) * square, _ROW_WEIGHT * square)])

    def related(self, question: Question) -> tuple[str, float]:
        return "squared distance from the mean", super().related(question)[1]

    def related_means(self, question: Question) -> tuple[tuple[str, float], ...]:
        half = float(self.half)
        return (("mean", half / 2 if question.spread is None else min(question.spread, half)),)

    @cached_property
    def max_error(self) -> float:  # type: ignore[override]
        return float(self.half) ** 2

    @cached_property
    def centre(self) -> float:  # type: ignore[override]
        return self.max_error * float(SQUARE)


ENTRY = bounded_entry(
    "variance",
    lambda given, over: Variance(given["bounds"], None if over.complete else over.scope),
    "VariancePop",
    doc="The variance (divided by n) of values clipped to public bounds.",
    table_doc="The variance (divided by the number of values) of values clipped to public bounds.",
)
ENTRIES = (ENTRY,)
