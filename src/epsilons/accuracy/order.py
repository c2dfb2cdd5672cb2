"""How far quantiles err: their own distribution on a public stand-in for the people.

The stand-in has everybody's values spread as publicly guessed, alike at every level: a normal curve around the centre
of the bounds (or the guessed location) with standard deviation `spread`.
"""

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, cast

import numpy as np

from epsilons.accuracy.additive import Accuracy, Bars, Errors, uneven
from epsilons.accuracy.count import price_curve
from epsilons.accuracy.intervals import normal_quantile
from epsilons.accuracy.quantiles import PeopleWeights, QuantileBar, bars_of, indicator_variance, weigh_people
from epsilons.accuracy.weightings import Weightings
from epsilons.guarantee import NANO, to_epsilon
from epsilons.preferences import Levels
from epsilons.statistics.base import Answer, Floats, Question, Weighting
from epsilons.statistics.brackets import Split, nearest_cut, place_cuts
from epsilons.statistics.order import Order
from epsilons.statistics.quantiles import Quantiles

#: Points on either side of the answer.
_POINTS = 600


class OrderAccuracy(Accuracy):
    """Of weighted quantiles; ranks counted from an end depend on the data alone, so nothing is said of them."""

    #: The cells show how far values lie apart that the most related preferences could confuse.
    worst_after: ClassVar[bool] = True

    def predict_error(self, question: Question, levels: Levels, weighting: Weighting) -> float | None:
        if not cast(Order, question.statistic).between_ends or not weighting.used(levels):
            return None
        epsilons = np.array([to_epsilon(math.floor(loss)) for loss in weighting.losses()])
        return float(_quantile_errors(question, levels, [weigh_people(levels, weighting, epsilons)])[0])

    def predict_errors(self, question: Question, levels: Levels, weightings: Weightings) -> Floats:
        if not cast(Order, question.statistic).between_ends:
            return np.full(len(weightings.fractions), np.inf)
        sizes, found = np.array([*levels.sizes, levels.left_out], float), []
        for fractions, rate in zip(weightings.fractions, weightings.rate / NANO, strict=True):
            squares = fractions * rate**2 * (1.0 if weightings.sampled else fractions)
            found.append(PeopleWeights(sizes, np.append(fractions * rate, 0.0), float(sizes[:-1] @ squares), 0.0))
        return _quantile_errors(question, levels, found)

    def worst_error(self, question: Question, levels: Levels, weighting: Weighting) -> float | None:
        """That of people who all granted the same: nothing can be related. Of others it depends on their values."""
        alike = len(levels.grants) == 1 and not levels.left_out
        return self.predict_error(replace(question, assume=0.0, bought=None), levels, weighting) if alike else None

    def error_bars(self, question: Question, levels: Levels, weighting: Weighting, answer: Answer) -> Bars:
        return None if answer.brackets is None else bars_of(question, levels, weighting, answer.brackets)

    def stated_error(
        self, question: Question, levels: Levels, weighting: Weighting, answer: Answer, predicted: Errors
    ) -> Errors:
        """From the cells that were released; without them nobody knows how many match a condition."""
        bars, scope = self.error_bars(question, levels, weighting, answer), question.statistic.scope
        if bars is None:
            return predicted if scope is None or scope.only_missing else answer.each(lambda number: None)
        each = iter(bars)
        return answer.each(lambda number: cast(QuantileBar, next(each)).error(float(number)))


_ALONE = OrderAccuracy()


class QuantilesAccuracy(OrderAccuracy):
    """Of several quantiles: each by itself at its part of every epsilon; beforehand the largest error among them."""

    def _each(self, question: Question) -> list[Question]:
        return [replace(question, statistic=one) for one in cast(Quantiles, question.statistic).each]

    def predict_error(self, question: Question, levels: Levels, weighting: Weighting) -> float | None:
        return _largest([_ALONE.predict_error(one, levels, weighting) for one in self._each(question)])

    def predict_errors(self, question: Question, levels: Levels, weightings: Weightings) -> Floats:
        found = [_ALONE.predict_errors(one, levels, weightings) for one in self._each(question)]
        return np.asarray(np.max(found, axis=0))

    def error_bars(self, question: Question, levels: Levels, weighting: Weighting, answer: Answer) -> Bars:
        """In the order of the answer: those of a group after those of the group before it."""
        if answer.brackets is None:
            return None
        asked = self._each(question)
        made = [
            bars_of(one, levels, weighting, tuple(answer.brackets[place :: len(asked)]))
            for place, one in enumerate(asked)
        ]
        return tuple(bar for group in zip(*made, strict=True) for bar in group)

    def stated_error(
        self, question: Question, levels: Levels, weighting: Weighting, answer: Answer, predicted: Errors
    ) -> Errors:
        known = question.statistic.scope is None or question.statistic.scope.only_missing
        if answer.brackets is not None or not known:
            return super().stated_error(question, levels, weighting, answer, predicted)
        find = _ALONE.worst_error if math.isinf(question.assume) else _ALONE.predict_error
        each = itertools.cycle([find(one, levels, weighting) for one in self._each(question)])
        return answer.each(lambda number: next(each))


def _largest(errors: list[float | None]) -> float | None:
    return None if None in errors else max(cast(list[float], errors))


def _quantile_errors(question: Question, levels: Levels, people: list[PeopleWeights]) -> Floats:
    """RMSE of weighted quantiles, each given by everybody's weight."""
    statistic = cast(Order, question.statistic)
    q, split = float(statistic.q_asked), Split.of(statistic, question.neighbors)
    whole, squares = np.array([one.total for one in people]), np.array([one.squares for one in people])
    per_person, mixed_rows, luck = _counted(statistic, float(split.first))
    matching = 1.0 if statistic.scope is None else max(statistic.scope.fraction, 1e-9)
    off, kept, total = np.zeros(len(people)), np.ones(len(people)), np.zeros(len(people))
    if question.assume > 0:
        drift = [min(one.drift(question.assume, q), one.worst(q)) / max(one.total, 1e-300) for one in people]
        off = np.minimum(np.array(drift) / math.sqrt(matching), 1.0)
    if statistic.has_bracket:
        cuts = [nearest_cut(statistic, Fraction(float(weight)) * statistic.portion, levels.size) for weight in whole]
        cells = [len(place_cuts(statistic.points // 2, statistic.points, nearest)) + 1 for nearest in cuts]
        kept -= np.array([split.pull(q, number) for number in cells])
    for likely, (points, widths, share, density, answer) in _stand_ins(question, q):
        gap = np.abs(share - q) / 2
        spread = np.zeros(len(people))
        for chance, shift in luck:
            counted = np.maximum(1 + shift * np.sqrt(squares / whole**2 * mixed_rows), 0.05)
            weight = widths * np.exp(-(whole * per_person * counted)[:, None] * (gap - gap.min()))
            spread += chance * (weight @ (points - answer) ** 2 / weight.sum(axis=1))
        variance = indicator_variance(q, question.assume) / density**2 * mixed_rows
        sampling = variance * np.maximum(0.0, squares / whole**2 - 1 / levels.size)
        bias = np.max([np.abs(np.interp(q + side * off, share, points) - answer) for side in (-1, 1)], axis=0)
        total += likely * (spread * kept + sampling + np.where(off > 0, bias, 0.0) ** 2)
    return cast(Floats, np.sqrt(total + _grid_rounding(statistic)))


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
    """RMSE of one exponential mechanism per level, mixed with these shares: what all levels are off adds up."""
    statistic = cast(Order, question.statistic)
    q, total = float(statistic.q_asked), 0.0
    sizes = np.array(levels.sizes, float)
    related = question.assume if math.isfinite(question.assume) else 0.0
    drift = related * math.sqrt(q * (1 - q)) * float(uneven(shares / sizes, sizes, levels.left_out))
    for likely, (points, widths, share, density, answer) in _stand_ins(question, q):
        luck, bias = q * (1 - q) / density**2, 0.0
        variance = -luck / levels.size
        for grant, size, mixed in zip(levels.grants, levels.sizes, shares, strict=True):
            # Public people add no noise.
            score = np.zeros(1) if grant is None else size * to_epsilon(grant) * np.abs(share - q) / 2
            weight = np.zeros(1) if grant is None else widths * np.exp(-(score - score.min()))
            mean = 0.0 if grant is None else float(weight @ (points - answer) / weight.sum())
            square = 0.0 if grant is None else float(weight @ (points - answer) ** 2 / weight.sum())
            bias += float(mixed) * mean
            variance += float(mixed) ** 2 * (luck / size + square - mean**2)
        related_bias = abs(bias) + (drift / density if drift else 0.0)
        total += likely * (min(related_bias, points[-1] - points[0]) ** 2 + max(variance, 0.0))
    return math.sqrt(total + _grid_rounding(statistic))


def rank_error(question: Question, levels: Levels) -> float | None:
    """RMSE of the exponential mechanism of Jorgensen et al. 2015 for a quantile: its cost on the stand-in."""
    statistic = cast(Order, question.statistic)
    if not statistic.between_ends:
        return None
    q, total = float(statistic.q_asked), 0.0
    for likely, (points, widths, share, _, answer) in _stand_ins(question, q):
        cost = _cheapest(levels, share, share - q) + _cheapest(levels, 1 - share, q - share)
        if np.isinf(cost).all():  # so many are public that the stand-in's own people leave no answer possible
            return None
        weight = widths * np.exp(-(cost - cost.min()) / 2)
        total += likely * float(weight @ (points - answer) ** 2 / weight.sum())
    return math.sqrt(total + _grid_rounding(statistic))


def _cheapest(levels: Levels, fraction: Floats, needed: Floats) -> Floats:
    """The cost of changing the cheapest `needed` (share of the roster) among a fraction of every level."""
    people, (reach, cost) = levels.size * np.maximum(needed, 0.0), price_curve(levels, fraction[:, None])
    steps = np.diff(reach, axis=1)
    taken = np.clip(people[:, None] - reach[:, :-1], 0.0, steps)
    slope = np.divide(np.diff(cost, axis=1), steps, out=np.zeros_like(steps), where=steps > 0)
    impossible = people > reach[:, -1] * (1 + 1e-12) + 1e-9
    return np.where(impossible, np.inf, (taken * slope).sum(axis=1))


_StandIn = tuple[Floats, Floats, Floats, float, float]


def _stand_ins(question: Question, q: float) -> list[tuple[float, _StandIn]]:
    """(chance, (points, widths, share of people below, density at the answer, answer)) of curves within the bounds.

    Without a guess values spread over half of what the bounds allow, and may well lie a quarter of the bounds off their
    centre: an answer that is drawn to the centre must not look right for that.
    """
    statistic = cast(Order, question.statistic)
    half, centre = (statistic.bounds[1] - statistic.bounds[0]) / 2, sum(statistic.bounds) / 2
    deviation = half / 2 if question.spread is None else question.spread
    if question.location is not None:
        return [(1.0, _normal_curve(statistic.bounds, question.location, deviation, q))]
    places = ((0.25, centre - half / 2), (0.5, centre), (0.25, centre + half / 2))
    return [(chance, _normal_curve(statistic.bounds, place, deviation, q)) for chance, place in places]


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


def _grid_rounding(statistic: Order) -> float:
    return ((statistic.bounds[1] - statistic.bounds[0]) / (statistic.points - 1)) ** 2 / 12
