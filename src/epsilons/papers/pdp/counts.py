"""Jorgensen et al. 2015, Figure 1 and Example 1: counts.

The paper's mechanisms are as the paper has them. Beside them: `weighted` and `robust` with nothing known about the
density, what `auto` takes if levels may differ by .3 spreads, and the bound below which no mechanism stays on all data.
On some data a mechanism may err less than that bound; on others it then errs more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from epsilons.accuracy.count import count_floor
from epsilons.arguments.options import DEFAULT_ASSUME
from epsilons.mechanisms.base import Mechanism, create
from epsilons.papers.expectations import Expected, expect
from epsilons.papers.figures import Cell, Figure, Panel, Row, Scale, root_mean_square
from epsilons.papers.pdp.settings import CONSERVATIVE, COUNTED, DENSITY, MIDDLE, RUNS, STRICTEST, Sweep
from epsilons.planner.choose import choose
from epsilons.preferences import roster_of
from epsilons.statistics.base import Question
from epsilons.statistics.count import Count
from epsilons.summaries.arrays import ArrayPeople

#: Curves that are one mechanism with options; the paper's first.
MECHANISMS: dict[str, tuple[str, dict[str, Any]]] = {
    "minimum": ("minimum", {}),
    "threshold": ("threshold", {"threshold": "max"}),
    "sample": ("sample", {"threshold": "max"}),
    "sample-mean": ("sample", {"threshold": "mean"}),
    "stretching": ("stretching", {}),
    "exponential": ("exponential", {}),
    "weighted": ("weighted", {}),
    "robust": ("robust", {}),
}
_ASKED = Question(Count())
_BY_DEFAULT = Question(Count(), assume=DEFAULT_ASSUME)


def measure_counts(sweep: Sweep, cell: Cell, x: float) -> Iterator[Row]:
    """One point: other people with other preferences in every run."""
    users = sweep.users(x, COUNTED)
    made: dict[str, Mechanism] = {
        curve: create(name, _ASKED.statistic, **options) for curve, (name, options) in MECHANISMS.items()
    }
    squares: dict[str, list[float]] = {curve: [] for curve in (*made, "auto", "worst-case")}
    chosen: Mechanism | None = None
    for _ in range(cell.size(RUNS, 3)):
        people = ArrayPeople.of(users.bits(cell.random), roster_of(users.epsilons(cell.random)))
        truth = float(people.values.sum())
        for curve, mechanism in made.items():
            squares[curve].append(expect(mechanism, _ASKED, people, cell.entropy).square(truth))
        # From public facts that hardly change from run to run.
        chosen = chosen or choose("auto", _BY_DEFAULT, people.levels)[0]
        squares["auto"].append(expect(chosen, _BY_DEFAULT, people, cell.entropy).square(truth))
        squares["worst-case"].append(count_floor(people.levels) ** 2)
    for curve, found in squares.items():
        yield root_mean_square(curve, x, found)


def _panel(title: str, sweep: Sweep) -> Panel:
    measure, curves = partial(measure_counts, sweep), (*MECHANISMS, "auto", "worst-case")
    y = Scale(f"RMSE of the count, in people of {COUNTED:,}", log=True)
    return Panel(title, Scale(sweep.label), y, curves, sweep.values, measure, weight=6)


FIGURE_1 = Figure(
    "1",
    f"counts of {COUNTED:,} people",
    {
        "a": _panel("the data's density", DENSITY),
        "b": _panel("how many are conservative", CONSERVATIVE),
        "c": _panel("how strict the strictest are", STRICTEST),
        "d": _panel("how open conservatives may be", MIDDLE),
    },
)


# Example 1 -----------------------------------------------------------------------------------------------------------

#: Of 200 people 65% grant .1 and the others 1; a tenth of either has a one.
EXAMPLE_SIZES, EXAMPLE_EPSILONS, EXAMPLE_ONES = (130, 70), (0.1, 1.0), (13, 7)
#: From just above the least epsilon, where nobody is left out, to the largest.
EXAMPLE_THRESHOLDS = (0.11, 0.13, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)


def measure_example(cell: Cell, threshold: float) -> Iterator[Row]:
    """The expected squared error at one threshold: what sampling loses, the noise, and both."""
    ones = [np.arange(size) < count for size, count in zip(EXAMPLE_SIZES, EXAMPLE_ONES, strict=True)]
    roster = roster_of(np.repeat(EXAMPLE_EPSILONS, EXAMPLE_SIZES))
    people, truth = ArrayPeople.of(np.concatenate(ones).astype(float), roster), float(sum(EXAMPLE_ONES))

    def asked(name: str, **options: Any) -> Expected:
        return expect(create(name, _ASKED.statistic, **options), _ASKED, people, cell.entropy)

    whole = asked("sample", threshold=threshold)
    stays = min(1.0, math.expm1(EXAMPLE_EPSILONS[0]) / math.expm1(threshold))
    coins = EXAMPLE_ONES[0] * stays * (1 - stays)
    yield Row("example-coins", threshold, coins + (whole.mean - truth) ** 2)
    yield Row("example-noise", threshold, whole.variance - coins)
    yield Row("example-total", threshold, whole.square(truth))
    for name in ("exponential", "weighted", "robust"):
        yield Row(name, threshold, asked(name).square(truth))


EXAMPLE_1 = Figure(
    "example-1",
    "the threshold of Sample, for 200 people of whom 65% are conservative",
    {
        "": Panel(
            "a tenth of them has a one; epsilons 0.1 and 1",
            Scale("threshold (epsilon)", log=True),
            Scale("expected squared error of the count", log=True),
            ("example-total", "example-coins", "example-noise", "exponential", "weighted", "robust"),
            EXAMPLE_THRESHOLDS,
            measure_example,
            weight=0.1,
        )
    },
)
