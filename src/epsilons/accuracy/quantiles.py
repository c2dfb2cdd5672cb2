"""Intervals and errors of quantiles, from the noisy cells that were released around a first draw.

With W(c) the weight up to a cut c and W all of it, G(c) = W(c) - qW is below 0 left of the quantile and not below 0
from it on. Its noise is known, and so is the spread of who weighs how much. A cut is shown to lie left of the quantile
where G(c) <= -z, with z the reach of noise and spread. Walking inwards from the bounds the first true hypothesis alone
decides whether the interval fails, however many cuts there are (docs/theory.md, "quantiles").
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from epsilons.accuracy.additive import uneven
from epsilons.accuracy.intervals import ErrorBar, laplace_quantile
from epsilons.guarantee import NANO
from epsilons.preferences import Levels
from epsilons.statistics.base import Floats, Question, Weighting
from epsilons.statistics.brackets import Bracket, Split, certain_weight, rising
from epsilons.statistics.order import Order

_FREQUENCIES = 1 << 8
#: Beyond this confidence the tail is followed by its slowest decay.
_RESOLVED = 0.9999
#: The odds of a gap against an even spread before its cells are looked at: anywhere, and between clearly denser cells,
#: which hold so much more than their noise of scale 1. Beyond e^50 odds are certain.
_GAPS, _CAMPS, _CLEAR, _FAR = 0.05, 4.0, 3.0, 50.0
#: Cells next to the first draw are at most so many times as wide as the narrowest; one that holds so many times what
#: noise, spread and slack may amount to does not show where in it the quantile is.
_NARROW, _BLIND = 2.5, 1.5
#: Equally likely places of a Laplace noise of scale 1.
_LAPLACE = laplace_quantile((np.arange(64) + 0.5) / 64)


@dataclass(frozen=True)
class QuantileBar(ErrorBar):
    """Of a quantile: cuts with the noisy weight of the cells between them, each with a Laplace noise of scale 1.

    `luck` and `population` are standard deviations of G at the quantile: of who weighs how much, and of who happened to
    be on the roster; `slack` is how far a relation of preferences and values can move it; `drawn` is the standard
    deviation that the answer's own draw adds, in the same unit of weight; `step` lies between two grid points. `whole`
    is the weight of all cells where everyone has a value for certain, so that it is public; `most` what it is at most:
    noise may make it look larger, and an error that is stated for that alone would be too small.
    """

    no_error: ClassVar[str] = "It is not clear how much lies on either side; the interval says what is certain."

    bounds: tuple[float, float]
    step: float
    q: float
    cuts: tuple[float, ...]
    weights: tuple[float, ...]
    luck: float
    population: float
    slack: float
    drawn: float
    whole: float | None = None
    most: float = math.inf

    def interval(self, value: float, confidence: float, population: bool) -> tuple[float, float]:
        """On the grid, and half a step more on either side: so far values may have been rounded to it."""
        (low, high), half = self._on_grid(value, confidence, population), self.step / 2
        return max(low - half, self.bounds[0]), min(high + half, self.bounds[1])

    def _on_grid(self, value: float, confidence: float, population: bool) -> tuple[float, float]:
        """Between the last cut that is shown to lie left of the quantile, and the first that is not left of it."""
        low, high = self.bounds
        reach = self._reach(confidence, population)
        heights = self._heights()
        for height, far, cut in zip(heights, reach, self.cuts, strict=True):
            if height > -far:
                break
            low = cut + self.step
        for height, far, cut in zip(heights[::-1], reach[::-1], self.cuts[::-1], strict=True):
            if height < far:
                break
            high = cut
        return min(low, high, value), max(low, high, value)

    def error(self, value: float) -> float | None:
        """The expected error: how far from the answer as much weight lies as noise and spread are worth.

        In two ways: as if the weight lay evenly as far as noise reaches, and as it is shown, cell by cell. Or, where
        that is more, how far the other side of a gap is that the cells may hide, or an end of a wide cell that hides
        where its values are. None where the cells could not show on both sides that the quantile lies within the
        bounds, unless a bound is as near as the error, or how much everyone weighs is public: how far off the answer is
        depends on values that were not seen.
        """
        low, high = self._on_grid(value, 0.95, population=False)
        reach = float(self._reach(0.95, population=False).max(initial=0.0))
        whole, certain = sum(self.weights), certain_weight(self.weights)
        whole, certain = (min(part, self.most) if self.whole is None else self.whole for part in (whole, certain))
        if (low, high) == self.bounds or min(self.q, 1 - self.q) * certain <= reach:
            return None
        curve = rising(np.array([-self.q * whole, *rising(self._heights()), (1 - self.q) * whole]))
        far = min(reach, min(self.q, 1 - self.q) * whole / 2)  # the other half may lie anywhere up to the bounds
        left, middle, right = (float(np.interp(height, curve, self._places)) for height in (-far, 0.0, far))
        sides = [away for end, away in ((low, middle - left), (high, right - middle)) if end not in self.bounds]
        rounding = self.step / math.sqrt(12)
        if not sides:  # one value at a bound, which nearly everybody has
            return math.hypot(high - low, rounding)
        off, side = math.hypot(self.luck, self.slack, self.drawn), sum(sides) / len(sides)
        drawn = math.hypot(self.luck, self.drawn) / math.sqrt(2) * _LAPLACE
        moved = np.concatenate([drawn - self.slack, drawn + self.slack])
        shown = float(np.mean((np.interp(moved, curve, self._places) - middle) ** 2))
        even = (off * side / far) ** 2
        gap = self._gap(value, (low, high), (left, right), far / max(side, self.step), off)
        coarse = self._coarse(value, np.searchsorted(curve, moved).clip(1, len(curve) - 1) - 1, reach)
        found = min(math.sqrt(max((even + shown) / 2, gap, coarse) + rounding**2), self.bounds[1] - self.bounds[0])
        if self.whole is not None:
            return found
        # On a side that nothing shows the quantile may lie anywhere, unless the bound itself is as near.
        unseen = [abs(value - end) for end, bound in zip((low, high), self.bounds, strict=True) if end == bound]
        return found if max(unseen, default=0.0) <= found else None

    def _coarse(self, value: float, cells: NDArray[np.intp], reach: float) -> float:
        """The mean square if the quantile is at either end of its cell, of cells that say nothing of their inside.

        Next to the first draw cells are narrow. If it jumped, the quantile is in a wide one far from it, which holds
        more than noise may amount to: nothing shows where in it the values are.
        """
        ends, fine = self._places, np.diff(self.cuts).min(initial=math.inf)
        blind = (np.diff(ends) > _NARROW * fine) & (np.array(self.weights) > _BLIND * reach)
        squares = ((ends[:-1] - value) ** 2 + (ends[1:] - value) ** 2) / 2
        return float(np.where(blind, squares, 0.0)[cells].mean())

    def _gap(
        self, value: float, within: tuple[float, float], seen: tuple[float, float], density: float, off: float
    ) -> float:
        """The mean square of how far the quantile is from the answer if it lies on either side of a gap, at most.

        Values may stand in two camps with nothing between them: every answer in the gap is as good, and noise alone
        decides for a side. Any run of cells within the interval may be such a gap. How likely it is follows from its
        cells' noise: beside cells that hold what their widths hold at an even `density`, as far as that was `seen`. It
        is likely from the start where the cells on both sides of it are clearly denser. And the quantile lies beyond
        it only if noise and spread (`off`) are worth the weight on the way there.
        """
        ends, weights = self._places, np.array(self.weights)
        inside = np.flatnonzero((ends[:-1] >= within[0] - self.step) & (ends[1:] <= within[1] + self.step))
        if len(inside) == 0:
            return 0.0
        widths, (first, last) = np.diff(ends), np.triu_indices(len(inside) + 1, 1)
        first, last = first + inside[0], last + inside[0]
        empty = np.abs(weights - density * widths) - np.abs(weights)
        empty = np.where((ends[:-1] >= seen[0]) & (ends[1:] <= seen[1]), empty, np.minimum(empty, 0.0))
        likely, held, there = (np.append(0.0, np.cumsum(part)) for part in (empty, weights, weights.clip(0.0)))
        dense = np.maximum((held[last] - held[first]) / (ends[last] - ends[first]), density)
        # Beyond the bounds there is no cell, so nothing is denser.
        more, wide = np.concatenate([[-np.inf], weights - _CLEAR, [-np.inf]]), np.concatenate([[0.0], widths, [0.0]])
        between = (more[first] > dense * wide[first]) & (more[last + 1] > dense * wide[last + 1])
        odds = np.where(between, _CAMPS, _GAPS) * np.exp(np.clip(likely[last] - likely[first], -_FAR, _FAR))
        here = float(np.interp(value, ends, there))
        way = np.maximum(0.0, np.maximum(there[first] - here, here - there[last]))
        squares = ((ends[first] - value) ** 2 + (ends[last] - value) ** 2) / 2
        return float((odds / (1 + odds) * np.exp(-way * math.sqrt(2) / max(off, 1e-9)) * squares).max())

    @property
    def _places(self) -> Floats:
        """Where cells end, from bound to bound."""
        return np.array([self.bounds[0], *(cut + self.step / 2 for cut in self.cuts), self.bounds[1]])

    def _heights(self) -> Floats:
        """G at each cut; with a public weight W by both sides of it, L and W - R, as much by each as it is certain."""
        upto, cells = np.cumsum(self.weights), len(self.weights)
        if self.whole is None:
            return np.asarray(upto[:-1] - self.q * upto[-1])
        return np.asarray(upto[:-1] + np.arange(1, cells) / cells * (self.whole - upto[-1]) - self.q * self.whole)

    def _reach(self, confidence: float, population: bool) -> Floats:
        normal = math.hypot(self.luck, self.population) if population else self.luck
        return self.slack + noise_reach(len(self.weights), self.q, normal, confidence, self.whole is not None)


@lru_cache(maxsize=256)
def noise_reach(cells: int, q: float, normal: float, confidence: float, public: bool = False) -> Floats:
    """For each cut j: z with P(|p*(j noises) - (1-p)*(the other noises) + normal| <= z) = confidence.

    p is 1-q, or 1-j/cells where the weight of all cells is public. The characteristic function
    (1 + p^2 t^2)^-j (1 + (1-p)^2 t^2)^-(cells-j) exp(-normal^2 t^2/2) is inverted for all cuts at once. Where the
    confidence is closer to 1 than that resolves, the tail falls no slower than that of twice the widest noise.
    """
    left = np.arange(1, cells)[:, None]
    p = 1 - left / cells if public else np.full_like(left, 1 - q, float)
    variance = 2 * (left * p**2 + (cells - left) * (1 - p) ** 2) + normal**2
    span = 20 * float(np.sqrt(variance.max(initial=1.0)))
    t = (np.arange(_FREQUENCIES) + 0.5) * math.pi / span
    sides = left * np.log1p((p * t) ** 2) + (cells - left) * np.log1p(((1 - p) * t) ** 2)
    phi = np.exp(-sides - (normal * t) ** 2 / 2)
    sure = min(confidence, _RESOLVED)
    inside, outside = np.zeros(cells - 1), np.full(cells - 1, span / 2)
    for _ in range(20):
        middle = (inside + outside) / 2
        within = 2 / span * (np.sin(middle[:, None] * t) * phi / t).sum(axis=1)
        inside, outside = np.where(within < sure, middle, inside), np.where(within < sure, outside, middle)
    widest = np.maximum(p, 1 - p)[:, 0]
    return np.asarray(outside + 2 * widest * math.log(max((1 - sure) / (1 - confidence), 1.0)))


@lru_cache(maxsize=16)
def bars_of(
    question: Question, levels: Levels, weighting: Weighting, brackets: tuple[Bracket, ...]
) -> tuple[QuantileBar, ...]:
    """The error bars of quantiles from what was released around each of them; a release asks for its error as well."""
    statistic = question.statistic
    assert isinstance(statistic, Order)
    split, q = Split.of(statistic, question.neighbors), float(statistic.q_asked)
    weights = np.array(split.cell_weights(weighting), float) / NANO
    made = []
    for bracket in brackets:
        cells = len(bracket.weights)
        drawn = math.sqrt(8 * (1 - split.pull(q, cells))) * float(split.cells / split.first)
        parts = _unknown(question, levels, weighting, weights, bracket)
        public = statistic.scope is None and weighting.coins is None
        most = float(weights @ np.array(levels.sizes, float))
        cuts = tuple(float(statistic.value(cut)) for cut in bracket.cuts)
        facts = (statistic.bounds, float(statistic.spacing), q, cuts, bracket.weights)
        rows = 1 if statistic.scope is None else statistic.scope.rows
        made.append(QuantileBar(*facts, *parts, drawn, most if public else None, rows * most))
    return tuple(made)


def _unknown(
    question: Question, levels: Levels, weighting: Weighting, weights: Floats, bracket: Bracket
) -> tuple[float, float, float]:
    """(luck, population, slack): what moves G at the quantile besides its noise, in the weight of cells.

    A person adds k rows of (1 if left of the quantile, else 0) - q, so at most `most` times their mean number of rows
    in mean square, which the cells show but for noise: two standard deviations of that are allowed for.
    """
    statistic = question.statistic
    assert isinstance(statistic, Order)
    q, most = float(statistic.q_asked), 1 if statistic.scope is None else statistic.scope.rows
    facts = weigh_people(levels, weighting, weights)
    rows = (sum(bracket.weights) + 2 * math.sqrt(2 * len(bracket.weights))) / max(facts.total, 1e-300)
    square = most * min(max(rows, 1e-9), most)
    spread = indicator_variance(q, question.assume)
    by_worst = most * facts.worst(q), most * max(q, 1 - q) * math.sqrt(facts.coins)
    by_spread = facts.drift(question.assume, q) * math.sqrt(square), math.sqrt(square * spread * facts.uneven)
    slack, luck = min(by_worst, by_spread, key=lambda pair: pair[0] + 2 * pair[1])
    everyone = square * spread * facts.squares
    return luck, math.sqrt(max(everyone - luck**2, 0.0)), slack


@dataclass(frozen=True)
class PeopleWeights:
    """What is expected of everybody's weight: how many have which, the sum, the sum of squares, what coins add to it.

    `uneven` is the sum of squares around the mean of all people, also of those who weigh nothing.
    """

    sizes: Floats
    weights: Floats
    squares: float
    coins: float

    @property
    def total(self) -> float:
        return float(self.sizes @ self.weights)

    @property
    def uneven(self) -> float:
        return max(self.squares - self.total**2 / float(self.sizes.sum()), 0.0)

    def drift(self, g: float, q: float) -> float:
        """How far the weight left of a quantile can be off if levels' expected parts there lie within g spreads."""
        return math.inf if math.isinf(g) else g * math.sqrt(q * (1 - q)) * float(uneven(self.weights, self.sizes))

    def worst(self, q: float) -> float:
        """The largest weight left of a quantile, less q of all, however values and weights relate."""
        order = np.argsort(self.weights)
        sizes, weights = self.sizes[order], self.weights[order]
        upto, places = np.concatenate([[0.0], np.cumsum(sizes * weights)]), np.concatenate([[0.0], np.cumsum(sizes)])
        least, most = (float(np.interp(part * places[-1], places, upto)) for part in (q, 1 - q))
        return max(q * self.total - least, (1 - q) * self.total - most)


def indicator_variance(q: float, g: float) -> float:
    """Of lying left of the quantile, for people of a level that lies as far from everyone's part q as g allows."""
    rare = min(q, 1 - q)
    part = 0.5 if math.isinf(g) else min(0.5, rare + g * math.sqrt(rare * (1 - rare)))
    return part * (1 - part)


def weigh_people(levels: Levels, weighting: Weighting, weights: Floats) -> PeopleWeights:
    """Everybody's weight, given that of one who counts by level; people who are left out weigh nothing."""
    staying = np.ones(len(weights)) if weighting.coins is None else weighting.coins.expected
    sizes = np.array([*levels.sizes, levels.left_out], float)
    counted = sizes[:-1] * staying * weights**2
    expected = np.array([*(staying * weights), 0.0])
    return PeopleWeights(sizes, expected, float(counted.sum()), float((counted * (1 - staying)).sum()))
