"""One figure over all four papers: the same people, every mechanism's error against what its promise is worth.

The people are those of Jorgensen et al. 2015. What a promise is worth is the epsilon that people lose at most, on
average over all of them, to an observer who sees all that leaves their hands or the curator's; where that is infinite
(individual DP, Sampling Privacy), points stand in the margin on the right. A curve is one mechanism, with everyone's
epsilon multiplied by the same factors; protocols without personal epsilons have the average for all.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from epsilons.accuracy.count import count_floor
from epsilons.arguments.options import DEFAULT_ASSUME
from epsilons.guarantee import NANO
from epsilons.local.personal import PersonalResponse
from epsilons.mechanisms.base import Mechanism, charges_of, create
from epsilons.mechanisms.local_sensitivity import LocalOrder
from epsilons.papers.drawing import line_of
from epsilons.papers.expectations import Expected, expect, expect_law
from epsilons.papers.figures import Cell, Figure, Panel, Paper, Row, Scale, Table, root_mean_square
from epsilons.papers.floors import median_floor
from epsilons.papers.population import Users
from epsilons.papers.sampling.errors import AGGREGATORS, RESPONSE, SAMPLING
from epsilons.planner.choose import choose
from epsilons.preferences import Levels, roster_of
from epsilons.statistics.base import Question
from epsilons.statistics.count import Count
from epsilons.statistics.order import median
from epsilons.summaries.arrays import ArrayPeople

if TYPE_CHECKING:
    from matplotlib.axes import Axes

USERS = Users(people=1_001)
BOUNDS = (1.0, 1_000.0)
COUNT = Question(Count(), density=USERS.density)
MEDIAN = Question(median(BOUNDS, 1.0), spread=USERS.deviation)
#: By how much everyone's epsilon is multiplied.
FACTORS = (0.1, 0.3, 1.0, 3.0, 10.0)

#: (mechanism, options) by curve.
Mechanisms = dict[str, tuple[str, dict[str, Any]]]
BOTH: Mechanisms = {
    "minimum": ("minimum", {}),
    "threshold": ("threshold", {"threshold": "max"}),
    "sample": ("sample", {"threshold": "max"}),
    "sample-mean": ("sample", {"threshold": "mean"}),
    "exponential": ("exponential", {}),
    "mixed": ("mixed", {}),
    "weighted": ("weighted", {}),
}
COUNTS: Mechanisms = BOTH | {"stretching": ("stretching", {}), "robust": ("robust", {})}
MEDIANS: Mechanisms = BOTH | {"smooth-sensitivity": ("smooth-sensitivity", {"inside": "threshold", "threshold": "max"})}


def worth(mechanism: Mechanism, question: Question, levels: Levels) -> float:
    """What people are charged, on average: no more can be lost."""
    return float(np.average(np.array(charges_of(mechanism, question, levels), float), weights=levels.sizes)) / NANO


def measure_mechanisms(
    cell: Cell, question: Question, mechanisms: Mechanisms, everyone: list[ArrayPeople]
) -> Iterator[Row]:
    """A point for each of them, and for what the library chooses."""
    asked = {
        curve: (create(name, question.statistic, **given), question) for curve, (name, given) in mechanisms.items()
    }
    related = replace(question, assume=DEFAULT_ASSUME)
    # From public facts that hardly change from one data set to the next.
    asked["auto"] = choose("auto", related, everyone[0].levels)[0], related
    truths = [float(question.statistic.exact(people)[0]) for people in everyone]
    for curve, (mechanism, own) in asked.items():
        found = [expect(mechanism, own, people, cell.entropy) for people in everyone]
        worths = [worth(mechanism, own, people.levels) for people in everyone]
        squares = [one.square(truth) for one, truth in zip(found, truths, strict=True)]
        yield root_mean_square(curve, float(np.mean(worths)), squares)


def measure_counts(cell: Cell, factor: float) -> Iterator[Row]:
    """A count, by a curator and by people themselves."""
    random = cell.random
    everyone = [
        ArrayPeople.of(USERS.bits(random), roster_of(factor * USERS.epsilons(random))) for _ in range(cell.size(200, 3))
    ]
    yield from measure_mechanisms(cell, COUNT, COUNTS, everyone)
    epsilon = float(np.mean([granted(people) for people in everyone]))
    squares = [personal_response(people).square(float(np.sum(people.values))) for people in everyone]
    yield root_mean_square("personal-response", epsilon, squares)
    yield Row("aggregators", epsilon, math.sqrt(AGGREGATORS / 2) / math.sinh(epsilon / 2))
    yield Row("bound", epsilon, count_floor(roster_of(np.full(USERS.people, epsilon)).levels))
    if factor == 1:
        ones = USERS.density * USERS.people
        yield Row("randomized-response", RESPONSE.epsilon, RESPONSE.spread(ones, USERS.people))
        yield Row("sampling-privacy", math.inf, SAMPLING.spread(ones, USERS.people))


def measure_medians(cell: Cell, factor: float) -> Iterator[Row]:
    """A median, by a curator."""
    random = cell.random
    everyone = [
        ArrayPeople.of(USERS.numbers(random), roster_of(factor * USERS.epsilons(random)))
        for _ in range(cell.size(60, 1))
    ]
    yield from measure_mechanisms(cell, MEDIAN, MEDIANS, everyone)
    squares = [individual(people).square(float(np.median(people.values))) for people in everyone]
    yield root_mean_square("local-sensitivity", math.inf, squares)
    epsilon = float(np.mean([granted(people) for people in everyone]))
    # Whoever has which epsilon: the k strictest have no more than k times the average.
    floors = [median_floor(np.asarray(one.values), np.full(USERS.people, epsilon), BOUNDS) for one in everyone]
    yield Row("bound", epsilon, float(np.mean(floors)))


def granted(people: ArrayPeople) -> float:
    """Everyone's epsilon, on average."""
    return float(np.average(np.array(people.levels.grants, float), weights=people.levels.sizes)) / NANO


def personal_response(people: ArrayPeople) -> Expected:
    """Of a count by people who answer at their own epsilons: every answer is a coin of known chances."""
    protocol = PersonalResponse(people.roster)
    size, ones = np.array(people.levels.sizes, float), np.bincount(people.roster.codes, people.values)
    weights = protocol.weights(assume="unrelated", density=USERS.density) * len(people.values)
    truth = np.array([1.0 if one is None else float(one.truth) for one in protocol.protocols])
    low = (1 - truth) / 2
    high = truth + low
    variances = (ones * high * (1 - high) + (size - ones) * low * (1 - low)) / truth**2
    return Expected(float(weights @ ones), float(weights**2 @ variances))


def individual(people: ArrayPeople) -> Expected:
    """Of a median with individual privacy."""
    mechanism, asked = LocalOrder(), Question(MEDIAN.statistic, privacy="individual")
    steps, logs = mechanism.distribution(asked, people)
    step = mechanism.here(asked, people).step
    return expect_law(mechanism.outcomes(asked, steps.astype(float), step), np.exp(logs))


# Drawn ---------------------------------------------------------------------------------------------------------------


def draw_worth(letter: str, axes: Axes, table: Table) -> None:
    """Curves over the epsilon that is lost, and a margin for those who lose more than any."""
    curves = {row.curve: table.curve(letter, row.curve) for row in table.rows[letter]}
    places = [float(x) for curve in curves.values() for x in curve.x if math.isfinite(float(x))]
    edge, margin = 2 * max(places), 5 * max(places)
    for name, curve in curves.items():
        x = np.array(curve.x, float)
        axes.errorbar(np.where(np.isfinite(x), x, margin), curve.values, **line_of(name))
    axes.axvspan(edge, 2.2 * margin, color="0.9", zorder=0)
    axes.set_xlim(0.6 * min(places), 2.2 * margin)
    axes.text(margin, 0.02, "no finite\nepsilon", transform=axes.get_xaxis_transform(), ha="center", size=8)


FIGURE = Figure(
    "errors",
    "every mechanism's error against what its promise is worth, for the same 1,001 people",
    {
        "a": Panel(
            "a count, 15% of them",
            Scale("epsilon that people lose at most, on average", log=True),
            Scale("RMSE, in people", log=True),
            (*COUNTS, "auto", "personal-response", "randomized-response", "sampling-privacy", "aggregators", "bound"),
            FACTORS,
            measure_counts,
            weight=4,
            draw=partial(draw_worth, "a"),
        ),
        "b": Panel(
            "a median of values from 1 to 1,000, spread 200",
            Scale("epsilon that people lose at most, on average", log=True),
            Scale("RMSE, in units of a value", log=True),
            (*MEDIANS, "auto", "local-sensitivity", "bound"),
            FACTORS,
            measure_medians,
            weight=8,
            draw=partial(draw_worth, "b"),
        ),
    },
)

PAPER = Paper("together", "All four papers", (FIGURE,))
