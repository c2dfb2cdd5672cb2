"""Jorgensen et al. 2015, Figure 2: medians.

The paper's mechanisms are as the paper has them: a person who changes moves the score of an answer by one. `weighted`
and what `auto` takes use what the library knows besides: one who is absent moves it by a half. The bound is that of
these data and all data near them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from epsilons.arguments.options import DEFAULT_ASSUME
from epsilons.mechanisms.base import Mechanism, create
from epsilons.papers.expectations import expect
from epsilons.papers.figures import Cell, Figure, Panel, Row, Scale, root_mean_square
from epsilons.papers.floors import median_floor
from epsilons.papers.pdp.counts import MECHANISMS
from epsilons.papers.pdp.settings import CONSERVATIVE, DEVIATION, MIDDLE, RANKED, RUNS, STRICTEST, Sweep
from epsilons.planner.choose import choose
from epsilons.preferences import roster_of
from epsilons.statistics.base import Question
from epsilons.statistics.order import median
from epsilons.summaries.arrays import ArrayPeople

MEASURED = ("minimum", "threshold", "sample", "sample-mean", "exponential", "weighted", "auto")
CURVES = (*MEASURED, "worst-case")
BOUNDS = (1.0, 1_000.0)
_OURS = median(BOUNDS, 1)
_PAPERS = replace(_OURS, imputes=True)


def measure_medians(sweep: Sweep, cell: Cell, x: float) -> Iterator[Row]:
    """One point: other people with other preferences in every run."""
    users = sweep.users(x, RANKED)
    asked = {curve: Question(_OURS if curve == "weighted" else _PAPERS) for curve in MEASURED}
    asked["auto"] = Question(_OURS, assume=DEFAULT_ASSUME)
    made: dict[str, Mechanism] = {}
    for curve in MEASURED[:-1]:
        name, options = MECHANISMS[curve]
        made[curve] = create(name, asked[curve].statistic, **options)
    squares: dict[str, list[float]] = {curve: [] for curve in CURVES}
    for run in range(cell.size(RUNS, 2)):
        values, epsilons = users.numbers(cell.random), users.epsilons(cell.random)
        people = ArrayPeople.of(values, roster_of(epsilons))
        if "auto" not in made:  # from public facts that hardly change from run to run
            made["auto"] = choose("auto", asked["auto"], people.levels)[0]
        truth = float(np.median(values))
        squares["worst-case"].append(median_floor(values, epsilons, BOUNDS) ** 2)
        for curve, mechanism in made.items():
            # Its weights take as long as everything else, and its errors differ little from run to run.
            if curve == "auto" and run % 10:
                continue
            squares[curve].append(expect(mechanism, asked[curve], people, cell.entropy).square(truth))
    for curve, found in squares.items():
        yield root_mean_square(curve, x, found)


def _panel(title: str, sweep: Sweep) -> Panel:
    y = Scale("RMSE of the median; values are 1 to 1,000", log=True)
    return Panel(title, Scale(sweep.label), y, CURVES, sweep.values, partial(measure_medians, sweep), weight=9)


FIGURE_2 = Figure(
    "2",
    f"medians of {RANKED:,} people",
    {
        "a": _panel("how far values spread", DEVIATION),
        "b": _panel("how many are conservative", CONSERVATIVE),
        "c": _panel("how strict the strictest are", STRICTEST),
        "d": _panel("how open conservatives may be", MIDDLE),
    },
)
