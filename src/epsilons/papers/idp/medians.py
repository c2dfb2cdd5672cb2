"""Soria-Comas et al. 2017, Figure 2: medians of 10, 100 and 1,000 values, by epsilon.

The numbers of values are even: the median is the average of the two in the middle, and its sensitivities are those of
that average. Where the paper restricts the domain it takes it from the data themselves, which is not private. Noise is
integrated out, as it is ("raw") and with answers cut to the domain.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import numpy as np

from epsilons.guarantee import NANO
from epsilons.mechanisms.exponential import ExponentialOrder
from epsilons.mechanisms.local_sensitivity import LocalOrder
from epsilons.mechanisms.smooth_sensitivity import calibrate
from epsilons.papers.expectations import law_of
from epsilons.papers.figures import Cell, Figure, Floats, Panel, Row, Scale
from epsilons.papers.idp.noise import Heavy, Laplace
from epsilons.preferences import roster_of
from epsilons.statistics.base import Question
from epsilons.statistics.order import Order, median
from epsilons.statistics.sensitivity import smooth_sensitivity
from epsilons.summaries.arrays import ArrayPeople

EPSILONS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
SIZES = (10, 100, 1_000)
DISTRIBUTIONS = ("uniform", "normal", "exponential")
PANELS = dict(zip("abcdefghi", [(d, n) for d in DISTRIBUTIONS for n in SIZES], strict=True))
CURVES = (
    "smooth-paper",
    "smooth-paper-cut",
    "local-sensitivity",
    "local-cut",
    "smooth-sensitivity",
    "exponential",
    "bound",
)
#: Grids so fine that they are as good as none: for gaps between values, and for the laws of whole answers.
_FINE, _LISTED = 1 << 34, 1 << 13


def draw_values(cell: Cell, distribution: str, size: int) -> Floats:
    """So many values of one of the paper's distributions: U[0, 1], N(0, 1), Exp(1)."""
    match distribution:
        case "uniform":
            return cell.random.random(size)
        case "normal":
            return cell.random.standard_normal(size)
        case _:
            return cell.random.standard_exponential(size)


class Sample(NamedTuple):
    """Some people's values on a grid between the ends of their domain."""

    people: ArrayPeople
    statistic: Order

    @classmethod
    def draw(cls, cell: Cell, distribution: str, size: int, epsilon: float) -> Sample:
        values = np.sort(draw_values(cell, distribution, size))
        bounds = (0.0, 1.0) if distribution == "uniform" else (float(values[0]), float(values[-1]))
        return cls.of(values, bounds, epsilon)

    @classmethod
    def of(cls, values: Floats, bounds: tuple[float, float], epsilon: float, points: int = _FINE) -> Sample:
        step = (bounds[1] - bounds[0]) / points
        return cls(ArrayPeople.of(values, roster_of(np.full(len(values), epsilon))), median(bounds, step))

    @property
    def cells(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return self.people.cells(self.statistic).cells(0, self.people.levels.size)

    @property
    def truth(self) -> float:
        return float(np.median(self.people.values))

    @property
    def room(self) -> tuple[float, float]:
        """From the median to the ends of the domain."""
        low, high = self.statistic.bounds
        return self.truth - low, high - self.truth


def local_noise(sample: Sample) -> Laplace:
    """Individual privacy, by the mechanism of this library: the scale of its noise."""
    question, mechanism = Question(sample.statistic, privacy="individual"), LocalOrder()
    rate, step = mechanism.rate(question, sample.people), mechanism.here(question, sample.people).step
    return Laplace(0.0 if rate is None else float(step * sample.statistic.spacing / rate))


def smooth_noise(sample: Sample, calibration: str, gamma: int, epsilon: float) -> Heavy:
    """Noise for the averaged median's smooth sensitivity."""
    beta = calibrate(calibration, gamma, round(epsilon * NANO)).beta
    reach = averaged_sensitivity(sample.cells, sample.statistic.points, beta) * float(sample.statistic.spacing)
    return Heavy.at(calibration, gamma, epsilon, reach)


def averaged_sensitivity(cells: np.ndarray[tuple[int], np.dtype[np.int64]], points: int, beta: Fraction) -> float:
    """The smooth sensitivity of the average of the two values in the middle, of an even number.

    Half of the widest window x_j - x_i around both, times exp(-beta (j - i - 2)), i + 2 <= j. With the lower of the two
    left out these are the windows around the upper one, and the other way round: those that reach only one of the two
    are narrower than one of the same weight that reaches both.
    """
    k = len(cells) // 2 - 1
    ways = [smooth_sensitivity(np.delete(cells, out), k, points, beta) for out in (k, k + 1)]
    return float(max(ways)) / 2


def cut_error(noise: Heavy | Laplace, sample: Sample) -> float:
    """The expected absolute error of an answer that is cut to the domain."""
    return sum(noise.capped_size(distance) for distance in sample.room) / 2


def exponential_error(sample: Sample, epsilon: float) -> float:
    """Of the exponential mechanism, for the upper value in the middle: its own law, cell by cell."""
    coarse = Sample.of(sample.people.values, sample.statistic.bounds, epsilon, _LISTED)
    mechanism, question = ExponentialOrder(), Question(coarse.statistic, neighbors="replace")
    drawn, chances = law_of(mechanism.blocks(question, coarse.people), mechanism.unit)
    return float(np.abs(mechanism.outcomes(question, drawn) - sample.truth) @ chances)


def least_error(sample: Sample, epsilon: float) -> float:
    """What some data set that differs in k records costs any epsilon-DP answer, for the worst k.

    Two data sets k records apart whose medians are d apart: the expected absolute errors of an answer that is epsilon-
    DP add up to 2d/(1 + e^(k epsilon)) or more, so one of the two is d/(1 + e^(k epsilon)) or more (Asi and Duchi 2020,
    "Near instance-optimality in differential privacy", have the same up to constants). Personal losses would add up in
    place of k epsilon.
    """
    values, (low, high) = np.asarray(sample.people.values), sample.statistic.bounds
    k = len(values) // 2 - 1
    steps = np.arange(1, min(len(values), int(40 / epsilon)) + 1)
    padded = np.concatenate([np.full(len(steps), low), values, np.full(len(steps) + 1, high)])
    at = len(steps) + k
    shifts = [np.abs((padded[at + s] + padded[at + 1 + s]) / 2 - sample.truth) for s in (steps, -steps)]
    return float((np.maximum(*shifts) / (1 + np.exp(steps * epsilon))).max())


def measure_medians(distribution: str, size: int, cell: Cell, epsilon: float) -> Iterator[Row]:
    """Every curve at one epsilon, on the same data sets."""
    found: dict[str, list[float]] = {curve: [] for curve in CURVES}
    for _ in range(cell.size(300, 3)):
        sample = Sample.draw(cell, distribution, size, epsilon)
        local = local_noise(sample)
        paper, tight = (smooth_noise(sample, calibration, 3, epsilon) for calibration in ("paper", "tight"))
        found["local-sensitivity"].append(local.mean_size())
        found["local-cut"].append(cut_error(local, sample))
        found["smooth-paper"].append(paper.mean_size())
        found["smooth-paper-cut"].append(cut_error(paper, sample))
        found["smooth-sensitivity"].append(cut_error(tight, sample))
        found["exponential"].append(exponential_error(sample, epsilon))
        found["bound"].append(least_error(sample, epsilon))
    for curve, errors in found.items():
        yield mean_of(curve, epsilon, errors)


def mean_of(curve: str, x: float, errors: list[float]) -> Row:
    """An average over data sets, with its standard error."""
    return Row(curve, x, float(np.mean(errors)), float(np.std(errors, ddof=1)) / len(errors) ** 0.5)


FIGURE_2 = Figure(
    "2",
    "the absolute error of medians; tight noise and PE stay within the range",
    {
        letter: Panel(
            f"{distribution}, {size:,} values",
            Scale("epsilon"),
            Scale("mean absolute error, in units of a value", log=True),
            CURVES,
            EPSILONS,
            partial(measure_medians, distribution, size),
            weight=5,
        )
        for letter, (distribution, size) in PANELS.items()
    },
    columns=3,
)


# Other tails ---------------------------------------------------------------------------------------------------------

#: From 8 on the paper's scale is not private.
GAMMAS = (2, 3, 4, 5, 6, 7)
TAILS = {"a": ("normal", 10), "b": ("normal", 100), "c": ("normal", 1_000), "d": ("exponential", 1_000)}
TAIL_CURVES = ("smooth-paper-95", "smooth-paper-mean", "smooth-paper-cut", "smooth-sensitivity")


def measure_gamma(distribution: str, size: int, cell: Cell, epsilon: float) -> Iterator[Row]:
    """Every gamma on the same data sets; means over those. At gamma 2 raw noise has no mean."""
    samples = [Sample.draw(cell, distribution, size, epsilon) for _ in range(cell.size(300, 3))]
    for gamma in GAMMAS:
        pairs = [(smooth_noise(sample, "paper", gamma, epsilon), sample) for sample in samples]
        wide = Heavy(gamma, 1.0).half_width(0.95)
        yield mean_of("smooth-paper-95", gamma, [wide * noise.scale for noise, _ in pairs])
        if gamma > 2:
            yield mean_of("smooth-paper-mean", gamma, [noise.mean_size() for noise, _ in pairs])
        yield mean_of("smooth-paper-cut", gamma, [cut_error(*pair) for pair in pairs])
        tight = [cut_error(smooth_noise(sample, "tight", gamma, epsilon), sample) for sample in samples]
        yield mean_of("smooth-sensitivity", gamma, tight)


GAMMA = Figure(
    "gamma",
    "smooth sensitivity with lighter and heavier tails, epsilon 1",
    {
        letter: Panel(
            f"{distribution}, {size:,} values",
            Scale("gamma: the density falls like 1/|x|^gamma"),
            Scale("absolute error, in units of a value", log=True),
            TAIL_CURVES,
            (1.0,),
            partial(measure_gamma, distribution, size),
            weight=5,
        )
        for letter, (distribution, size) in TAILS.items()
    },
)
