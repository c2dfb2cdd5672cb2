"""Ferrando et al. 2021, Figure 1 and section 2: the variance of means, over data and noise.

The paper leaves the range of the data open. At [-50, 50], ten standard deviations, Sample at .25 has the variance of
the mix, as in the paper; `RANGES` shows what other ranges give.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from epsilons.mechanisms.base import create, find_error
from epsilons.papers.expectations import Expected, expect
from epsilons.papers.figures import Cell, Figure, Panel, Row, Scale, total_variance
from epsilons.preferences import roster_of
from epsilons.statistics.base import Question
from epsilons.statistics.total import Mean
from epsilons.summaries.arrays import ArrayPeople

SPREAD, RANGE = 5.0, 50.0
EPSILONS = (10.0, 0.05, 0.1, 0.01, 0.25, 0.15)
SIZES = (100, 500, 1_000, 5_000, 10_000)
#: By panel: the least epsilon, what the paper calls the optimum, the mean over groups, the largest epsilon.
THRESHOLDS = {"a": 0.01, "b": 0.25, "c": 1.76, "d": 10.0}
#: How many stand at epsilon 10.
OPEN = (100, 200, 500, 1_000, 2_000, 5_000, 10_000)
CURVES = ("sample-given", "mixed", "sample-best", "weighted", "floor")


def _measure_means(cell: Cell, n: int, reach: float, threshold: float, x: float, trials: int) -> Iterator[Row]:
    """Every mechanism on the same data: n people at epsilon 10, and the paper's five other groups."""
    levels, mean = np.repeat(EPSILONS, (n, *SIZES)), Mean((-reach, reach))
    question, roster = Question(mean, spread=SPREAD), roster_of(levels)
    mechanisms = {
        "sample-given": create("sample", mean, threshold=threshold),
        "mixed": create("mixed", mean),
        "sample-best": create("sample", mean, threshold="best"),
        "weighted": create("weighted", mean),
    }
    found: dict[str, list[Expected]] = {name: [] for name in mechanisms}
    for _ in range(trials):
        people = ArrayPeople.of(np.clip(cell.random.normal(0, SPREAD, len(levels)), -reach, reach), roster)
        for name, mechanism in mechanisms.items():
            found[name].append(expect(mechanism, question, people, cell.entropy))
    for name, answers in found.items():
        yield total_variance(name, x, *np.array(answers).T)
    yield Row("floor", x, SPREAD**2 / len(levels))


def measure_threshold(threshold: float, cell: Cell, n: int) -> Iterator[Row]:
    """One point of Figure 1."""
    return _measure_means(cell, n, RANGE, threshold, n, cell.size(1_000, 20))


_VARIANCE = Scale("variance of the mean, in squared units of a value", log=True)
_NAMES = {"a": "the least epsilon", "b": "the paper's optimum", "c": "the mean over groups", "d": "the largest epsilon"}

FIGURE_1 = Figure(
    "1",
    "the variance of means, for each threshold of Sample",
    {
        letter: Panel(
            f"t = {threshold:g}, {_NAMES[letter]}",
            Scale("people at epsilon 10 (n)", log=True),
            _VARIANCE,
            CURVES,
            OPEN,
            partial(measure_threshold, threshold),
            weight=4,
        )
        for letter, threshold in THRESHOLDS.items()
    },
)


# Other ranges ------------------------------------------------------------------------------------------------------

#: From five standard deviations on: hardly a value is cut off.
REACHES = (25.0, 35.0, 50.0, 70.0, 100.0, 140.0, 200.0)


def measure_range(n: int, cell: Cell, reach: float) -> Iterator[Row]:
    """Figure 1(b) at another range of the data."""
    return _measure_means(cell, n, reach, 0.25, reach, cell.size(200, 10))


def measure_best(cell: Cell, n: int) -> Iterator[Row]:
    """The threshold of least variance, from public facts."""
    roster = roster_of(np.repeat(EPSILONS, (n, *SIZES)))
    for reach in REACHES:
        mean = Mean((-reach, reach))
        made: Any = create("sample", mean, threshold="best")
        yield Row(f"best-{n}", reach, made.epsilon(Question(mean, spread=SPREAD), roster.levels))


_REACH = Scale("r, if values lie in [−r, r]; their spread is 5", log=True)

RANGES = Figure(
    "ranges",
    "Sample at .25 and the mix, by the range that the paper leaves open",
    {
        **{
            letter: Panel(f"n = {n:,}, t = 0.25", _REACH, _VARIANCE, CURVES, REACHES, partial(measure_range, n))
            for letter, n in {"a": 100, "b": 1_000, "c": 10_000}.items()
        },
        "d": Panel(
            "the threshold of least variance",
            _REACH,
            Scale("threshold (epsilon)", log=True),
            ("best-100", "best-1000", "best-10000"),
            (100, 1_000, 10_000),
            measure_best,
            weight=0.1,
        ),
    },
)


# One public and one private group ------------------------------------------------------------------------------------

PRIVATE = (100, 200, 300, 400, 500, 600, 700, 800, 900)
CROWD = 1_000


def measure_two_groups(epsilon: float, cell: Cell, private: int) -> Iterator[Row]:
    """Of 1,000 people so many are private: the least variance of Sample over all thresholds, and of others.

    The library takes thresholds from within the preferences, here one; the paper's estimator is written out.
    """
    levels, mean = roster_of(np.repeat([epsilon, math.inf], [private, CROWD - private])).levels, Mean((-RANGE, RANGE))
    question, everyone = Question(mean, spread=SPREAD), SPREAD**2 / CROWD
    errors = {name: find_error(create(name, mean), question, levels) or math.nan for name in ("mixed", "weighted")}
    mixed, weighted = (error**2 + everyone for error in errors.values())
    thresholds = np.geomspace(epsilon / 10, 20, 2_000)
    kept = CROWD - private + private * np.minimum(1.0, np.expm1(epsilon) / np.expm1(thresholds))
    sample = (SPREAD**2 * kept + 2 * (RANGE / thresholds) ** 2) / kept**2
    yield Row("sample-best", private, float(sample.min()) / mixed)
    yield Row("mixed", private, 1.0)
    yield Row("weighted", private, weighted / mixed)


TWO_GROUPS = Figure(
    "two-groups",
    "Sample at its best threshold, if one group is public",
    {
        letter: Panel(
            f"the private group at epsilon {epsilon:g}",
            Scale(f"private people of {CROWD:,}"),
            Scale("variance, in variances of the mix"),
            ("sample-best", "mixed", "weighted"),
            PRIVATE,
            partial(measure_two_groups, epsilon),
            weight=0.1,
        )
        for letter, epsilon in {"a": 0.1, "b": 1.0}.items()
    },
)


# Groups of one ------------------------------------------------------------------------------------------------------

SINGLES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


def measure_singles(cell: Cell, groups: int) -> Iterator[Row]:
    """The noise in the mean of so many people, each a group, with epsilons that hardly differ."""
    epsilons, mean = 0.5 + 1e-6 * np.arange(groups), Mean((-RANGE, RANGE))
    people, question = ArrayPeople.of(np.zeros(groups), roster_of(epsilons)), Question(mean, spread=SPREAD)
    options: dict[str, dict[str, Any]] = {"mixed": {}, "sample-given": {"threshold": 0.5}, "weighted": {}}
    for name, given in options.items():
        mechanism = create(name.removesuffix("-given"), mean, **given)
        yield Row(name, groups, expect(mechanism, question, people, cell.entropy).variance)


GROUPS = Figure(
    "groups",
    "the noise of groups of one",
    {
        "": Panel(
            "epsilons from 0.5 on, a millionth apart; Sample at t = 0.5",
            Scale("groups (k), one person each", log=True),
            Scale("variance of the noise, in squared units of a value", log=True),
            ("mixed", "sample-given", "weighted"),
            SINGLES,
            measure_singles,
            weight=0.1,
        )
    },
)
