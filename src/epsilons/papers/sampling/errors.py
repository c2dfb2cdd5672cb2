"""Joy, Figures 4 to 7, and errors by population: what estimates of each protocol stay within.

The counts by group are facts of the breast-cancer data of Ljubljana: recurrences among 286 patients, by tumour size
and by age.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from statistics import NormalDist

import numpy as np

from epsilons.collection.publication import noise_quantile
from epsilons.local import RandomizedResponse, SamplingDeniability, SamplingPrivacy
from epsilons.local.base import ResponseProtocol
from epsilons.papers.expectations import Expected, expect_law
from epsilons.papers.figures import Cell, Figure, Panel, Row, Scale

#: Recurrences among the patients.
SIZES = dict(zip([f"{k}–{k + 4}" for k in range(0, 55, 5)], (1, 0, 1, 7, 16, 18, 25, 7, 6, 1, 3), strict=True))
AGES = dict(zip([f"{k}–{k + 9}" for k in range(20, 80, 10)], (0, 15, 27, 25, 17, 1), strict=True))
PATIENTS, CROWD = 286, 10_000

SAMPLING, RARER = SamplingPrivacy(sampling=0.45), SamplingPrivacy(sampling=0.25)
RESPONSE = RandomizedResponse(truth=0.8, yes=0.2)
#: The best coins at the epsilon that those have: no local protocol for a yes-or-no question errs less.
BEST = RandomizedResponse(epsilon=RESPONSE.epsilon)
#: Three aggregators of which one is honest, each with noise of its own.
AGGREGATORS, THEIRS = 3, 1.0

#: Figure 6 draws Sampling Privacy at 2 standard deviations, randomized response at the 99% of a normal, 2.576.
PRINTED = {"sampling-privacy": 2.0, "randomized-response": NormalDist().inv_cdf(0.995)}
_TWO_SIDED = NormalDist().inv_cdf(0.975)

#: The standard deviation of an estimate, from the true count and the crowd.
PROTOCOLS: Mapping[str, Callable[[float, float], float]] = {
    "sampling-privacy": SAMPLING.spread,
    "sampling-rarer": RARER.spread,
    "randomized-response": RESPONSE.spread,
    "bound-local": BEST.spread,
    "aggregators": lambda count, crowd: noise_deviation(),
}


def noise_deviation() -> float:
    """Of the sum of the aggregators' discrete Laplace noises."""
    return math.sqrt(AGGREGATORS / 2) / math.sinh(THEIRS / 2)


def noise_bound() -> float:
    """What 95% of that sum stay within."""
    return noise_quantile(((1.0, THEIRS),), AGGREGATORS, 0.95)


def bound_errors(count: float, crowd: float) -> dict[str, float]:
    """What 95% of all estimates stay within; binomials taken for normal."""
    errors = {curve: _TWO_SIDED * spread(count, crowd) for curve, spread in PROTOCOLS.items()}
    return errors | {"aggregators": noise_bound()}


# Bars ----------------------------------------------------------------------------------------------------------------


def bar(curve: str, truth: int, crowd: int, level: float | None) -> int:
    """A count and some standard deviations above it, rounded down: as printed, or at one level for all (normal)."""
    deviations = PRINTED[curve] if level is None else NormalDist().inv_cdf((1 + level) / 2)
    return math.floor(truth + deviations * PROTOCOLS[curve](truth, crowd))


def measure_bars(groups: Mapping[str, int], crowd: int, level: float | None, cell: Cell, group: str) -> Iterator[Row]:
    """One group's bars."""
    truth = groups[group]
    yield Row("truth", group, truth)
    for curve in PRINTED if level is None else (*PRINTED, "bound-local"):
        yield Row(curve, group, bar(curve, truth, crowd, level))
    yield Row("aggregators", group, math.floor(truth + noise_bound()))


def _bars(number: str, groups: Mapping[str, int], crowd: int, by: str) -> Figure:
    label = Scale("people with a recurrence: truth, upper bounds")
    return Figure(
        number,
        f"recurrences of breast cancer among {crowd:,} people, by {by}",
        {
            "a": Panel(
                f"{'as printed' if number == '6' else 'as in Figure 6'}: 2 and 2.576 deviations; aggregators at 95%",
                Scale(by),
                label,
                ("truth", *PRINTED, "aggregators"),
                tuple(groups),
                partial(measure_bars, groups, crowd, None),
                weight=0.1,
            ),
            "b": Panel(
                "all at 95%; aggregators at epsilon 1",
                Scale(by),
                label,
                ("truth", *PRINTED, "bound-local", "aggregators"),
                tuple(groups),
                partial(measure_bars, groups, crowd, 0.95),
                weight=0.1,
            ),
        },
        columns=1 if len(groups) > 6 else 2,
    )


_SIZE, _AGE = "tumour size in mm", "age"
FIGURE_4, FIGURE_5 = _bars("4", SIZES, PATIENTS, _SIZE), _bars("5", AGES, PATIENTS, _AGE)
FIGURE_6, FIGURE_7 = _bars("6", SIZES, CROWD, _SIZE), _bars("7", AGES, CROWD, _AGE)


# Crowds --------------------------------------------------------------------------------------------------------------

#: How many have a Yes while the crowd grows.
YES = 100
CROWDS = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
COUNTED: Mapping[str, ResponseProtocol] = {
    "sampling-privacy": SAMPLING,
    "randomized-response": RESPONSE,
    "sampling-deniability": SamplingDeniability(0.45, 0.8, 0.2),
}
#: The introduction's coins.
INTRODUCTION = RandomizedResponse(truth=0.85, yes=0.3)


def expect_estimate(protocol: ResponseProtocol, yes: int, crowd: int) -> Expected:
    """The estimate's law, by its first two moments: it adds up what one owner alone would be estimated as.

    So many owners of the same truth are as many independent draws of that truth's law (for two outcomes a binomial).
    """
    mean = variance = 0.0
    for truth, owners in ((1, yes), (0, crowd - yes)):
        law = protocol.law(truth)
        sent = [[np.bincount([output], minlength=protocol.outputs) for output in rounds] for rounds in law]
        alone = np.array([float(protocol.estimate(*counts).values[0]) for counts in sent])
        one = expect_law(alone, np.array([float(chance) for chance in law.values()]))
        mean, variance = mean + owners * one.mean, variance + owners * one.variance
    return Expected(mean, variance)


def measure_crowd(cell: Cell, crowd: int) -> Iterator[Row]:
    """Exactly, from the law of what every owner sends."""
    for curve, protocol in COUNTED.items():
        yield Row(curve, crowd, math.sqrt(expect_estimate(protocol, YES, crowd).square(YES)))
    yield Row("aggregators", crowd, noise_deviation())
    yield Row("bound-local", crowd, BEST.spread(YES, crowd))


def measure_introduction(cell: Cell, crowd: int) -> Iterator[Row]:
    """As printed, sqrt((1 - p1) p2 N), what the estimate has, and aggregators."""
    yield Row("printed", crowd, math.sqrt(0.15 * 0.3 * crowd))
    yield Row("randomized-response", crowd, INTRODUCTION.spread(YES, crowd))
    yield Row("aggregators", crowd, noise_deviation())


_PEOPLE = Scale(f"people asked, of whom {YES} have a Yes", log=True)

SCALING = Figure(
    "crowds",
    f"the error of a count of {YES} as the crowd grows",
    {
        "a": Panel(
            "sampling .45; coins .8 and .2; aggregators at epsilon 1",
            _PEOPLE,
            Scale("RMSE, in people", log=True),
            (*COUNTED, "bound-local", "aggregators"),
            CROWDS,
            measure_crowd,
            weight=0.1,
        ),
        "b": Panel(
            "the introduction: coins .85 and .3; aggregators at epsilon 1",
            _PEOPLE,
            Scale("standard deviation, in people", log=True),
            ("printed", "randomized-response", "aggregators"),
            CROWDS,
            measure_introduction,
            weight=0.1,
        ),
    },
)


# Places of every size ------------------------------------------------------------------------------------------------

COUNTS = (1, 10, 100, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)
CITIES = {"a": 10_000, "b": 140_000, "c": 1_000_000}


def measure_size(crowd: int, cell: Cell, count: int) -> Iterator[Row]:
    """Exactly: the deviations of the protocols."""
    if count <= crowd:
        yield from (Row(curve, count, error) for curve, error in bound_errors(count, crowd).items())


PLACES = Figure(
    "places",
    "errors that 95% of all estimates stay within, by how many are at a place; aggregators at epsilon 1",
    {
        letter: Panel(
            f"{crowd:,} asked",
            Scale("true number at the place", log=True),
            Scale("absolute error, in people", log=True),
            tuple(PROTOCOLS),
            COUNTS,
            partial(measure_size, crowd),
            weight=0.1,
        )
        for letter, crowd in CITIES.items()
    },
    columns=3,
)
