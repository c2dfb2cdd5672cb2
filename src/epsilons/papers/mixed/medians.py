"""Ferrando et al. 2021, Figure 2: medians of a standard normal, by the share of strict people.

The paper leaves the range open; here it is [-5, 5], in steps of .01. Errors are against the median of the same people.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from epsilons.mechanisms.base import create
from epsilons.papers.expectations import expect
from epsilons.papers.figures import Cell, Figure, Panel, Row, Scale, root_mean_square
from epsilons.papers.floors import median_floor
from epsilons.preferences import roster_of
from epsilons.statistics.base import Question
from epsilons.statistics.order import median
from epsilons.summaries.arrays import ArrayPeople

PEOPLE, BOUNDS = 1_001, (-5.0, 5.0)
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
#: By panel: the epsilons of strict and of open people.
SETTINGS = {"a": (0.1, 1.0), "b": (0.01, 10.0)}
MECHANISMS = {"exponential": "exponential", "mixed": "mixed", "sample-best": "sample", "weighted": "weighted"}


def measure_medians(epsilons: tuple[float, float], cell: Cell, share: float) -> Iterator[Row]:
    """One point: so many of 1,001 people are strict."""
    everyone = np.where(np.arange(PEOPLE) < round(share * PEOPLE), *epsilons)
    roster, statistic = roster_of(everyone), median(BOUNDS, 0.01)
    question = Question(statistic, spread=1.0)
    mechanisms = {curve: create(name, statistic) for curve, name in MECHANISMS.items()}
    squares: dict[str, list[float]] = {curve: [] for curve in (*mechanisms, "worst-case")}
    for _ in range(cell.size(500, 8)):
        values = np.clip(cell.random.normal(0, 1, PEOPLE), *BOUNDS)
        people, truth = ArrayPeople.of(values, roster), float(np.median(values))
        for curve, mechanism in mechanisms.items():
            squares[curve].append(expect(mechanism, question, people, cell.entropy).square(truth))
        squares["worst-case"].append(median_floor(values, everyone, BOUNDS) ** 2)
    for curve, found in squares.items():
        yield root_mean_square(curve, share, found)


FIGURE_2 = Figure(
    "2",
    "medians of 1,001 draws of a standard normal",
    {
        letter: Panel(
            f"strict people at {strict:g}, open people at {loose:g}",
            Scale("share of strict people"),
            Scale("RMSE, in standard deviations of a value", log=True),
            (*MECHANISMS, "worst-case"),
            SHARES,
            partial(measure_medians, (strict, loose)),
            weight=10,
        )
        for letter, (strict, loose) in SETTINGS.items()
    },
)
