"""Soria-Comas et al. 2017, sections 6.2 and 6.3: maximum, second maximum and range queries. Figures of ours.

Errors are those of raw noise, at epsilon 1 where nothing else is said.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

import numpy as np

from epsilons.accuracy.count import count_floor
from epsilons.guarantee import NANO
from epsilons.mechanisms.base import create
from epsilons.mechanisms.exponential import ExponentialOrder
from epsilons.mechanisms.local_sensitivity import LocalCount, LocalOrder, LocalUnbounded
from epsilons.mechanisms.smooth_sensitivity import calibrate
from epsilons.papers.expectations import expect, law_of
from epsilons.papers.figures import Cell, Figure, Floats, Panel, Row, Scale
from epsilons.papers.idp.medians import draw_values, mean_of
from epsilons.papers.idp.noise import Heavy, Laplace
from epsilons.preferences import roster_of
from epsilons.statistics.base import Question
from epsilons.statistics.count import Count
from epsilons.statistics.histogram import Histogram
from epsilons.statistics.order import Order, kth_largest
from epsilons.statistics.sensitivity import smooth_sensitivity
from epsilons.statistics.unbounded import UnboundedOrder
from epsilons.summaries.arrays import ArrayPeople

EPSILON, PEOPLE = 1.0, 100
#: Upper ends of the domain, in means of a value; lower ends are 0.
TOPS = (20.0, 50.0, 100.0, 200.0, 500.0, 1_000.0, 2_000.0, 5_000.0, 10_000.0)
VALUES = {"a": "exponential", "b": "uniform"}
CURVES = (
    "global",
    "smooth-paper",
    "smooth-second",
    "smooth-sensitivity",
    "local-sensitivity",
    "local-second",
    "exponential",
    "bound",
)
_FINE, _LISTED = 1 << 34, 1 << 13


def largest(k: int, top: float, points: int) -> Order:
    """The k-th largest value of a domain from 0 on."""
    return kth_largest(k, (0.0, top), top / points)


def local_scale(people: ArrayPeople, statistic: Order) -> float:
    """The noise of individual privacy within a domain."""
    rate = LocalOrder().rate(Question(statistic, privacy="individual"), people)
    return 0.0 if rate is None else float(statistic.spacing / rate)


def second_scale(people: ArrayPeople) -> float:
    """The noise of individual privacy for the second largest value, without any domain."""
    statistic = UnboundedOrder(2)
    rate = LocalUnbounded().rate(Question(statistic, privacy="individual"), people)
    return 0.0 if rate is None else float(statistic.grid / rate)


def largest_noise(people: ArrayPeople, k: int, top: float, calibration: str = "paper") -> Heavy:
    """Noise for the smooth sensitivity of the k-th largest value."""
    statistic, beta = largest(k, top, _FINE), calibrate(calibration, 3, round(EPSILON * NANO)).beta
    cells = people.cells(statistic).cells(0, PEOPLE)
    reach = float(smooth_sensitivity(cells, PEOPLE - k, statistic.points, beta) * statistic.spacing)
    return Heavy.at(calibration, 3, EPSILON, reach)


def least_error(values: Floats, top: float) -> float:
    """No DP answer errs less both here and where k records are others, for the worst k (see `medians.least_error`).

    One record moves the maximum to the end of the domain; the k largest moved to 0 leave the next one.
    """
    ranked, k = np.sort(values)[::-1], np.arange(1, len(values))
    moved = np.append(top - ranked[0], ranked[0] - ranked[k])
    return float((moved / (1 + np.exp(EPSILON * np.append(1, k)))).max())


def error_from(noise: Heavy | Laplace, distance: float) -> float:
    """E|noise - distance| = E max(|noise|, distance): the error of an answer whose target lies so far away."""
    return noise.mean_size() + distance - noise.capped_size(distance)


def measure_maxima(distribution: str, cell: Cell, top: float) -> Iterator[Row]:
    """Mean absolute errors against the true maximum, whichever of the two largest values is asked for."""
    found: dict[str, list[float]] = {curve: [] for curve in CURVES}
    for _ in range(cell.size(300, 3)):
        values = draw_values(cell, distribution, PEOPLE)
        second, first = np.sort(values)[-2:].tolist()
        people = ArrayPeople.of(values, roster_of(np.full(PEOPLE, EPSILON)))
        asked = Question(largest(1, top, _LISTED), neighbors="replace")
        mechanism = ExponentialOrder()
        drawn, chances = law_of(mechanism.blocks(asked, people), mechanism.unit)
        found["global"].append(top / EPSILON)
        found["smooth-paper"].append(largest_noise(people, 1, top).mean_size())
        found["smooth-second"].append(error_from(largest_noise(people, 2, top), first - second))
        found["smooth-sensitivity"].append(largest_noise(people, 1, top, "tight").mean_size())
        found["local-sensitivity"].append(local_scale(people, largest(1, top, _FINE)))
        found["local-second"].append(error_from(Laplace(second_scale(people)), first - second))
        found["exponential"].append(float(np.abs(mechanism.outcomes(asked, drawn) - first) @ chances))
        found["bound"].append(least_error(values, top))
    for curve, errors in found.items():
        yield mean_of(curve, top, errors)


MAXIMUM = Figure(
    "maximum",
    "the maximum, and the second maximum in its place (section 6.2), epsilon 1",
    {
        letter: Panel(
            f"{PEOPLE} values, {distribution}, of mean {'1' if distribution == 'exponential' else '1/2'}",
            Scale("upper end of the domain", log=True),
            Scale("mean absolute error, in units of a value", log=True),
            CURVES,
            TOPS,
            partial(measure_maxima, distribution),
        )
        for letter, distribution in VALUES.items()
    },
)


# Range queries -------------------------------------------------------------------------------------------------------

EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0)
#: Of a histogram whose cells are answered together.
BINS = 10


def measure_ranges(cell: Cell, epsilon: float) -> Iterator[Row]:
    """The noise of one range, and of each range of a histogram: the same for all data."""
    people = ArrayPeople.of(np.arange(PEOPLE) % 2.0, roster_of(np.full(PEOPLE, epsilon)))
    histogram = Histogram(tuple(np.linspace(0, 1, BINS + 1).tolist()))
    for curve, statistic in (("local-sensitivity", Count()), ("local-histogram", histogram)):
        rate = LocalCount().rate(Question(statistic, privacy="individual"), people)
        assert rate is not None
        yield Row(curve, epsilon, 1 / (math.sqrt(2) * math.sinh(float(rate) / 2)))
    asked = Question(Count(), neighbors="replace")
    for name in ("minimum", "weighted"):
        dp = expect(create(name, asked.statistic), asked, people, cell.entropy)
        yield Row(name, epsilon, math.sqrt(dp.variance))
    yield Row("bound", epsilon, count_floor(people.levels))


RANGES = Figure(
    "ranges",
    "range queries (section 6.3): one record replaced",
    {
        "": Panel(
            f"one range, and each of the {BINS} ranges of a histogram",
            Scale("epsilon", log=True),
            Scale("RMSE of a count, in people", log=True),
            ("local-histogram", "local-sensitivity", "minimum", "weighted", "bound"),
            EPSILONS,
            measure_ranges,
            weight=0.1,
        )
    },
)
