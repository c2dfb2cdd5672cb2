"""How far quantiles err: their own distribution on a public stand-in for the people.

The stand-in has everybody's values spread as publicly guessed, alike at every level: a normal curve around the centre
of the bounds (or the guessed location) with standard deviation `spread`.
"""

import math
from fractions import Fraction
from functools import lru_cache
from typing import cast

import numpy as np

from epsilons.accuracy.additive import Accuracy, Bars
from epsilons.accuracy.count import price_curve
from epsilons.accuracy.intervals import normal_quantile
from epsilons.accuracy.quantiles import QuantileBar, bars_of
from epsilons.guarantee import NANO, to_epsilon
from epsilons.preferences import Levels
from epsilons.statistics.base import Answer, Floats, Question, Weighting, Weightings
from epsilons.statistics.brackets import Split, nearest_cut, place_cuts
from epsilons.statistics.order import Order

#: Points on either side of the answer.
_POINTS = 600


class OrderAccuracy(Accuracy):
    """Of weighted quantiles; ranks counted from an end depend on the data alone, so nothing is said of them."""

    def predict_error(self, question: Question, levels: Levels, weighting: Weighting) -> float | None:
        used, weights = weighting.used_at(levels)
        whole = sum(n * w for n, w in zip(used, weights, strict=True))
        if not cast(Order, question.statistic).between_ends or whole == 0:
            return None
        squares = sum(n * w * w for n, w in zip(used, weights, strict=True))
        return float(_quantile_errors(question, levels, np.array([whole]), np.array([squares]))[0])

    def predict_errors(self, question: Question, levels: Levels, weightings: Weightings) -> Floats:
        used = weightings.fractions @ np.array(levels.sizes, float)
        if not cast(Order, question.statistic).between_ends:
            return np.full(len(used), np.inf)
        epsilons = weightings.rate / NANO
        return _quantile_errors(question, levels, used * epsilons, used * epsilons**2)

    def error_bars(self, question: Question, levels: Levels, weighting: Weighting, answer: Answer) -> Bars:
        return None if answer.brackets is None else bars_of(question, levels, weighting, answer.brackets)

    def stated_error(
        self, question: Question, levels: Levels, weighting: Weighting, answer: Answer, predicted: float | None
    ) -> float | None:
        """From the cells that were released; without them nobody knows how many match a condition."""
        bars = self.error_bars(question, levels, weighting, answer)
        if bars is None:
            return predicted if question.statistic.scope is None else None
        values = answer.value.values() if isinstance(answer.value, dict) else [answer.value]
        errors = [cast(QuantileBar, bar).error(float(value)) for bar, value in zip(bars, values, strict=True)]
        known = [error for error in errors if error is not None]
        return math.sqrt(sum(error**2 for error in known) / len(known)) if len(known) == len(errors) else None


def _quantile_errors(question: Question, levels: Levels, whole: Floats, squares: Floats) -> Floats:
    """RMSE of weighted quantiles, each given by the sums of its weights and of their squares over the people used."""
    statistic = cast(Order, question.statistic)
    q = float(statistic.q_asked)
    points, widths, share, density, answer = _stand_in(question, q)
    gap = np.abs(share - q) / 2
    split = Split.of(statistic, question.neighbors)
    per_person, uneven, luck = _counted(statistic, float(split.first))
    spread = np.zeros(len(whole))
    for chance, shift in luck:
        counted = np.maximum(1 + shift * np.sqrt(squares / whole**2 * uneven), 0.05)
        weight = widths * np.exp(-(whole * per_person * counted)[:, None] * (gap - gap.min()))
        spread += chance * (weight @ (points - answer) ** 2 / weight.sum(axis=1))
    if statistic.has_bracket:
        cuts = [nearest_cut(statistic, Fraction(float(total)), levels.size) for total in whole]
        cells = [len(place_cuts(statistic.points // 2, statistic.points, nearest)) + 1 for nearest in cuts]
        spread *= 1 - np.array([split.pull(q, number) for number in cells])
    sampling = q * (1 - q) / density**2 * np.maximum(0.0, squares / whole**2 - 1 / levels.size) * uneven
    return cast(Floats, np.sqrt(spread + sampling + _grid_rounding(statistic)))


def _counted(statistic: Order, first: float) -> tuple[float, float, tuple[tuple[float, float], ...]]:
    """(how much of a person's weight is expected to count, the variance of that for one person, relative, nodes).

    `first` is the weight of a row for one epsilon. People have 1 to m rows, which are alike and count all or none, as
    `Scope` guesses. Nodes are (chance, standard deviations off) of how much weight happens to count: few rows cost more
    than many save.
    """
    if statistic.scope is None:
        return first, 1.0, ((1.0, 0.0),)
    most, root = statistic.scope.rows, math.sqrt(10)
    mean, square = (1 + most) / 2, (1 + most) * (1 + 2 * most) / 6
    per_person = max(statistic.scope.expected, 1e-9) * first
    far, near, tail, side = math.sqrt(5 + root), math.sqrt(5 - root), (7 - 2 * root) / 60, (7 + 2 * root) / 60
    nodes = ((tail, -far), (side, -near), (8 / 15, 0.0), (side, near), (tail, far))  # Gauss and Hermite's five points
    return per_person, square / mean**2 / max(statistic.scope.fraction, 1e-9), nodes


def mixed_quantile_error(question: Question, levels: Levels, shares: Floats) -> float:
    """RMSE of one exponential mechanism per level, mixed with these shares."""
    statistic = cast(Order, question.statistic)
    q = float(statistic.q_asked)
    points, widths, share, density, answer = _stand_in(question, q)
    luck = q * (1 - q) / density**2
    total = -luck / levels.size
    for grant, size, mixed in zip(levels.grants, levels.sizes, shares, strict=True):
        # Public people add no noise.
        score = None if grant is None else size * to_epsilon(grant) * np.abs(share - q)
        noise = 0.0 if score is None else _second_moment(points - answer, widths, score / 2)
        total += float(mixed) ** 2 * (luck / size + noise)
    return math.sqrt(max(total, 0.0) + _grid_rounding(statistic))


def rank_error(question: Question, levels: Levels) -> float | None:
    """RMSE of the exponential mechanism of Jorgensen et al. 2015 for a quantile: its cost on the stand-in."""
    statistic = cast(Order, question.statistic)
    if not statistic.between_ends:
        return None
    q = float(statistic.q_asked)
    points, widths, share, _, answer = _stand_in(question, q)
    cost = _cheapest(levels, share, share - q) + _cheapest(levels, 1 - share, q - share)
    if np.isinf(cost).all():  # so many are public that the stand-in's own people leave no answer possible
        return None
    return math.sqrt(_second_moment(points - answer, widths, cost / 2) + _grid_rounding(statistic))


def _cheapest(levels: Levels, fraction: Floats, needed: Floats) -> Floats:
    """The cost of changing the cheapest `needed` (share of the roster) among a fraction of every level."""
    people, (reach, cost) = levels.size * np.maximum(needed, 0.0), price_curve(levels, fraction)
    steps = np.diff(reach, axis=1)
    taken = np.clip(people[:, None] - reach[:, :-1], 0.0, steps)
    slope = np.divide(np.diff(cost, axis=1), steps, out=np.zeros_like(steps), where=steps > 0)
    impossible = people > reach[:, -1] * (1 + 1e-12) + 1e-9
    return np.where(impossible, np.inf, (taken * slope).sum(axis=1))


def _stand_in(question: Question, q: float) -> tuple[Floats, Floats, Floats, float, float]:
    """(points, widths, share of people below, density at the answer, answer) of a normal curve within the bounds."""
    statistic = cast(Order, question.statistic)
    half = (statistic.bounds[1] - statistic.bounds[0]) / 2
    middle = sum(statistic.bounds) / 2 if question.location is None else question.location
    return _normal_curve(statistic.bounds, middle, half if question.spread is None else question.spread, q)


@lru_cache(maxsize=64)
def _normal_curve(
    bounds: tuple[float, float], middle: float, deviation: float, q: float
) -> tuple[Floats, Floats, Floats, float, float]:
    low, high = bounds
    centre, half = min(max(middle, low), high), (high - low) / 2
    answer = min(max(centre + deviation * normal_quantile(q), low), high)
    offsets = np.geomspace(1e-9, 2.0, _POINTS) * half
    corners = np.unique(np.clip(np.concatenate([answer - offsets, [answer], answer + offsets]), low, high))
    points, widths = (corners[1:] + corners[:-1]) / 2, np.diff(corners)
    share = np.array([0.5 * math.erfc((centre - p) / deviation / math.sqrt(2)) for p in points])
    height = math.exp(-(((answer - centre) / deviation) ** 2) / 2) / math.sqrt(2 * math.pi) / deviation
    return points, widths, share, height, answer


def _second_moment(distance: Floats, widths: Floats, exponent: Floats) -> float:
    weight = widths * np.exp(-(exponent - exponent.min()))
    return float((weight * distance**2).sum() / weight.sum())


def _grid_rounding(statistic: Order) -> float:
    return ((statistic.bounds[1] - statistic.bounds[0]) / (statistic.points - 1)) ** 2 / 12
