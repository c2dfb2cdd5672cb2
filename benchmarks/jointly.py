"""What calibrating sums together gains: errors of the same answers, drawn at the same charges, before and after.

Counts that are centred, means of rows from a pair of sums, variances whose sums are calibrated together. Errors are
root mean squares over draws of `minimum` at epsilon 0.5, so that nothing but the noise differs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from page import print_or_write

from epsilons.mechanisms.base import create
from epsilons.preferences import roster_of
from epsilons.statistics.additive import Additive, Part
from epsilons.statistics.base import Question, Scope
from epsilons.statistics.count import Count
from epsilons.statistics.total import Mean
from epsilons.statistics.variance import Variance
from epsilons.summaries.arrays import STEPS, ArrayPeople
from epsilons.summaries.cells import Integers
from epsilons.testing import seeded

PAGE = Path(__file__).parents[1] / "docs" / "theory.md"
START, END = "<!-- jointly: written by `make bench-jointly ARGS=--write` -->", "<!-- end of jointly -->"
PEOPLE, BOUNDS, HALVES = 2000, (0.0, 100.0), Fraction(1, 2)
HEAD = ("question", "neighbours", "before", "after", "gain")
Line = tuple[str, str, float, float]


@dataclass(frozen=True)
class HalvedVariance(Variance):
    """As it was: u at one half of epsilon and u^2 - 1/2 at the other; of rows 3/8, 3/8 and 1/4 with their number."""

    @property
    def parts(self) -> tuple[Part, ...]:
        scope, shares = self.scope or Scope(), (HALVES, HALVES)
        if self.scope is not None:
            shares = (Fraction(3, 8), Fraction(3, 8), Fraction(1, 4))  # type: ignore[assignment]
        reaches = (scope.reach(-STEPS, STEPS), scope.reach(-STEPS // 2, STEPS // 2), scope.reach(0, 1))
        named = zip(("centred sum", "centred squares", "rows"), reaches, shares, strict=False)
        return tuple(Part(name, 1, reach, share) for name, reach, share in named)

    def make_parts(self, summed: list[Integers]) -> list[Integers]:
        return summed[: len(self.parts)]

    def means(self, sums: tuple[Any, ...], weight: Any) -> tuple[Any, Any, Any]:
        count = weight if self.scope is None else max(sums[2], Fraction(1))
        return sums[0] / STEPS / count, sums[1] / STEPS / count + HALVES, count


def rmse(statistic: Additive, neighbors: str, values: Any, truth: float, draws: int) -> float:
    """Of an answer at epsilon 0.5, over so many draws."""
    people, question = ArrayPeople.of(values, roster_of([0.5] * PEOPLE)), Question(statistic, neighbors, 0.0)
    mechanism, entropy = create("minimum", statistic), seeded(1)
    found = [mechanism.draw(question, people, entropy).value for _ in range(draws)]
    return float(np.sqrt(np.mean((np.array(found) - truth) ** 2)))


def measure(draws: int) -> Iterator[Line]:
    """(question, neighbours, error before, error after)."""
    random = np.random.default_rng(2)
    ones = (random.random(PEOPLE) < 0.3).astype(int)
    pair = (rmse(Count(centred=centred), "absent", ones, ones.sum(), draws) for centred in (False, True))
    yield "a complete count", "absent", *pair
    counting = random.random(PEOPLE) < 0.3
    for away in (0.0, 0.1, 0.2, 0.5, 1.0):
        at = 50 + 50 * away
        values = np.where(counting, np.clip(random.normal(at, 5, PEOPLE), *BOUNDS), np.nan)
        truth = float(np.nanmean(values))
        for neighbors, form in (("absent", "pair"), ("replace", "together")):
            shared = _split(neighbors, at)
            made = (shared, Mean(BOUNDS, Scope(), Fraction(1), 50 * away, form))
            errors = (rmse(one, neighbors, values, truth, draws) for one in made)
            yield f"a mean of rows {away:g} h from the centre, against a split that knows it", neighbors, *errors
    for scope, what in ((None, "a variance"), (Scope(), "a variance of rows")):
        values = np.clip(random.normal(60, 20, PEOPLE), *BOUNDS)
        values = values if scope is None else np.where(counting, values, np.nan)
        truth = float(np.nanvar(values))
        for neighbors in ("absent", "replace"):
            made_of = (HalvedVariance(BOUNDS, scope), Variance(BOUNDS, scope))
            yield what, neighbors, *(rmse(one, neighbors, values, truth, draws) for one in made_of)


def _split(neighbors: str, location: float) -> Mean:
    """The best split for a known location, whether or not another form has less noise."""
    off = abs(location - 50)
    first, second = (reach[neighbors] for reach in (Scope().reach(-STEPS, STEPS), Scope().reach(0, 1)))
    sizes = (50 * first / STEPS) ** (2 / 3), (off * second) ** (2 / 3)
    share = min(max(round(64 * sizes[0] / sum(sizes)), 1), 60)
    return Mean(BOUNDS, Scope(), Fraction(share, 64), off)


def tabulate(quick: bool) -> list[str]:
    """The table, line by line."""
    lines = [f"| {' | '.join(HEAD)} |", "|---|---|---|---|---|"]
    for question, neighbors, before, after in measure(20 if quick else 4000):
        lines.append(f"| {question} | `{neighbors}` | {before:.3g} | {after:.3g} | {after / before - 1:+.0%} |")
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print, or write into the page."""
    return print_or_write(arguments, __doc__, PAGE, (START, END), tabulate)


if __name__ == "__main__":
    sys.exit(main())
