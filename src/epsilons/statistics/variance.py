"""The variance of bounded values, from two centred sums.

With u=(x-c)/h in [-1, 1] the parts are sum(u), where one person reaches 1, and sum(u^2 - 1/2), where one person
reaches 1/2 (twice that when replaced); each is paid by half of every epsilon. The answer is h^2 * clip(m2 - m1^2, 0, 1)
with m1 and m2 the two noisy means. Halves are the best split when the mean lies about a quarter of h from the centre.

With a scope the number of rows is private: it is released as well, and both sums are divided by it.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

from epsilons.statistics.additive import Average, Moments, Part, Sums
from epsilons.statistics.base import Question, Scope
from epsilons.statistics.total import Bounded, bounded_entry
from epsilons.summaries.arrays import STEPS

HALF = Fraction(1, 2)
#: The public guess of the mean's distance from the centre, in units of h, that goes with the split in halves.
MEAN_GUESS = 0.25
#: With a scope these parts go to the sum, the squares and the number of rows: near the best for means about a quarter
#: of h from the centre (docs/theory.md, "filtered").
_SHARES = (Fraction(3, 8), Fraction(3, 8), Fraction(1, 4))
#: How far, in units of h^2, an error of one row in the denominator moves such a variance.
_ROW_WEIGHT = 0.3


@dataclass(frozen=True)
class Variance(Average, Bounded):
    """The variance over everyone on the roster (divided by n); a missing person adds nothing. With a scope, of rows."""

    name: ClassVar[str] = "variance"
    family: ClassVar[str] = "variance"  # type: ignore[misc]

    @property
    def parts(self) -> tuple[Part, ...]:
        scope, shares = (Scope(), (HALF, HALF)) if self.scope is None else (self.scope, _SHARES)
        reaches = (scope.reach(-STEPS, STEPS), scope.reach(-STEPS // 2, STEPS // 2), scope.reach(0, 1))
        named = zip(("centred sum", "centred squares", "rows"), reaches, shares, strict=False)
        return tuple(Part(name, scope.cells, reach, share) for name, reach, share in named)

    def answer(self, sums: Sums, weight: Fraction, people: int) -> Any:
        if self.scope is None:
            return self._value(sums[0][0], sums[1][0], weight)
        groups = zip(*sums, strict=True)
        return self.scope.arrange(self._value(one, two, max(rows, Fraction(1))) for one, two, rows in groups)

    def _value(self, first: Fraction, second: Fraction, weight: Fraction) -> float:
        mean, squares = first / STEPS / weight, second / STEPS / weight + HALF
        return float(self.half**2 * min(max(squares - mean**2, Fraction(0)), Fraction(1)))

    def moments(self, spread: float | None, density: float | None, location: float | None = None) -> Moments:
        """Of (x - mu)^2 for normal values: mean sigma^2, variance 2 sigma^4 (at most h^4/4); and how far off mu is."""
        (low, high), half = self.bounds, float(self.half)
        deviation = half / 2 if spread is None else spread
        off = MEAN_GUESS * half if location is None else abs(min(max(location, low), high) - float(self.middle))
        counting = 1.0 if self.scope is None else max(self.scope.fraction, 1e-9)
        return Moments(deviation**2, min(2 * deviation**4, half**4 / 4) / counting, off=off)

    def extremes(self) -> tuple[float, float]:
        return 0.0, self.max_error

    @property
    def units(self) -> tuple[float, ...]:  # type: ignore[override]
        """An error d in m1 moves the answer by 2*m1*h^2*d, an error in m2 by h^2 times itself."""
        sizes = (2 * MEAN_GUESS * self.max_error / STEPS, self.max_error / STEPS, _ROW_WEIGHT * self.max_error)
        return sizes[:2] if self.scope is None else tuple([size / max(self.scope.expected, 1e-9) for size in sizes])

    def related(self, question: Question) -> tuple[str, float]:
        return "squared distance from the mean", super().related(question)[1]

    @cached_property
    def max_error(self) -> float:  # type: ignore[override]
        return float(self.half) ** 2

    @cached_property
    def centre(self) -> float:  # type: ignore[override]
        return self.max_error / 2


ENTRY = bounded_entry(
    "variance",
    lambda given, over: Variance(given["bounds"], None if over.complete else over.scope),
    "VariancePop",
    doc="The variance (divided by n) of values clipped to public bounds.",
    table_doc="The variance (divided by the number of values) of values clipped to public bounds.",
)
ENTRIES = (ENTRY,)
