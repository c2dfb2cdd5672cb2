"""What minimum, threshold, stretching, weighted and robust share: a weight per level, and one noise.

Person i at level j counts with weight w_j. Weight one costs `rate`: if a person reaches r, noise of scale r/rate makes
the loss at level j exactly w_j * rate, which must not pass what the level granted. Weights are integers in units of
1/`one`, rounded down, so a weighted sum is an integer, its noise a discrete Laplace, and every loss an exact rational.

For order statistics the same losses serve as weights of a weighted quantile (`WeightCost`), drawn by the exponential
mechanism at a factor 1/2.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from epsilons.errors import PlanError
from epsilons.guarantee import NANO, to_epsilon
from epsilons.mechanisms import accuracy, surrogate
from epsilons.mechanisms.base import Answer, Charges, Mechanism
from epsilons.mechanisms.curvature import seen_variance_error
from epsilons.mechanisms.errorbars import ErrorModel
from epsilons.mechanisms.lattice import Axis, product_distribution
from epsilons.mechanisms.outward import Cost, RankCost, WeightCost, outward
from epsilons.noise.entropy import Entropy
from epsilons.noise.laplace import discrete_laplace, discrete_laplace_many
from epsilons.noise.segments import SegmentSampler
from epsilons.preferences import Levels
from epsilons.statistics.base import Additive, Moments, Part
from epsilons.statistics.filtered import FilteredVariance
from epsilons.statistics.order import Order, SortedCells
from epsilons.statistics.people import People
from epsilons.statistics.question import Question
from epsilons.statistics.variance import Variance

#: Fixed-point weights have this many steps to one.
ONE = 1 << 40


@dataclass(frozen=True)
class Weighting:
    """A weight per level in units of 1/`one`, and what weight one costs in nano-epsilon."""

    weights: tuple[int, ...]
    one: int
    rate: Fraction

    def losses(self) -> tuple[Fraction, ...]:
        """The exact loss of each level in nano-epsilon."""
        return tuple(Fraction(w, self.one) * self.rate for w in self.weights)

    def total(self, levels: Levels) -> Fraction:
        """How many people's worth of weight there is."""
        return Fraction(sum(w * n for w, n in zip(self.weights, levels.sizes, strict=True)), self.one)

    def inverse_scale(self, part: Part, neighbors: str) -> Fraction:
        """1/scale of the part's noise, in units of 1/`one` of its integers."""
        return part.share * self.rate / (NANO * part.reach[neighbors] * self.one)


def proportional(levels: Levels, top: int | Fraction) -> Weighting:
    """Weights min(1, e_j/top), rounded down; public people count in full. Weight one costs `top`."""
    rate = Fraction(top)
    up, down = ONE * rate.denominator, rate.numerator
    weights = [ONE if g is None else min(ONE, g * up // down) for g in levels.grants]
    return Weighting(tuple(weights), ONE, rate)


@lru_cache(maxsize=256)
def _weighting(mechanism: Linear, question: Question, levels: Levels) -> Weighting:
    return mechanism.weigh(question, levels)


class Linear(Mechanism):
    """A mechanism that gives each level a weight and adds one noise."""

    #: Whether an average divides by the weight behind it rather than by the roster's size.
    mean_of_the_weighted: ClassVar[bool] = True
    #: Whether what a weight leaves out is filled up with the public centre.
    fills_with_centre: ClassVar[bool] = False
    #: Whether people are kept by coins.
    samples: ClassVar[bool] = False
    rescale: bool = False
    #: The fixed-point unit of the weights: 1 where they are whole.
    _one: ClassVar[int] = ONE

    @abstractmethod
    def weigh(self, question: Question, levels: Levels) -> Weighting:
        """The weights and the rate, from public facts alone."""

    def weighting(self, question: Question, levels: Levels) -> Weighting:
        """The same, remembered: a release asks several times."""
        return _weighting(self, question, levels)

    def refuses(self, question: Question, levels: Levels) -> str | None:
        return None

    def charge(self, question: Question, levels: Levels) -> Charges:
        weighting = self.weighting(question, levels)
        # The losses rounded up, in whole numbers: fractions would take longer than the draw.
        up, down = weighting.rate.numerator, weighting.one * weighting.rate.denominator
        pairs = zip(levels.grants, weighting.weights, strict=True)
        return tuple(None if grant is None else -(-weight * up // down) for grant, weight in pairs)

    # Draws -------------------------------------------------------------------------------------------------------

    def draw(self, question: Question, people: People, entropy: Entropy) -> Answer:
        statistic, weighting = question.statistic, self.weighting(question, people.levels)
        if isinstance(statistic, Additive):
            parts = self._tally(question, people, entropy)
            sums = []
            for part, counts in zip(statistic.parts, parts, strict=True):
                inverse = weighting.inverse_scale(part, question.neighbors)
                exact = weighted_sums(counts, weighting)
                # A model has a hundred cells and more; for a few, one draw after the other is faster.
                if statistic.models:
                    noise = discrete_laplace_many(entropy, inverse, len(exact)).tolist()
                else:
                    noise = [discrete_laplace(entropy, inverse) for _ in exact]
                sums.append([Fraction(s + k, weighting.one) for s, k in zip(exact, noise, strict=True)])
            return Answer(self.finish(question, people.levels, sums), sums=sums)
        assert isinstance(statistic, Order)
        drawn = []
        for cells in self._cells(question, people, entropy):
            drawn.append(statistic.value(self.sampler(question, people.levels, cells).draw(entropy)))
        return Answer(drawn[0] if statistic.scope is None else statistic.scope.shaped(drawn))

    def simulate(self, question: Question, people: People, entropy: Entropy, size: int) -> NDArray[np.float64]:
        statistic, weighting = question.statistic, self.weighting(question, people.levels)
        if isinstance(statistic, Order):
            sampler = self.sampler(question, people.levels, self._cells(question, people, entropy)[0])
            cells = sampler.draw_many(entropy, size)
            return np.array([statistic.value(c) for c in range(statistic.points)], float)[cells]
        assert isinstance(statistic, Additive)
        if len(statistic.parts) > 1 or statistic.parts[0].cells > 1:
            raise PlanError("Only single numbers are simulated in bulk.")
        exact = weighted_sums(self._tally(question, people, entropy)[0], weighting)[0]
        noise = discrete_laplace_many(entropy, weighting.inverse_scale(statistic.parts[0], question.neighbors), size)
        zero, one = (self.finish(question, people.levels, [[Fraction(k)]]) for k in (0, 1))
        answers: NDArray[np.float64] = zero + (one - zero) * (noise + exact).astype(float) / weighting.one
        return answers

    def finish(self, question: Question, levels: Levels, sums: list[list[Fraction]]) -> Any:
        """The answer from noisy weighted sums: rescaled, filled up or left alone."""
        statistic = question.statistic
        assert isinstance(statistic, Additive)
        people, total = levels.people, self._weight(question, levels)
        if statistic.averages:
            divisor = total if self._divides_by_weight(statistic) else Fraction(people)
            return statistic.finished(sums, divisor, people, self._scales(question, levels))
        if self.rescale:
            scaled = [[s * people / total for s in part] for part in sums]
            return statistic.answer(scaled, Fraction(people), people)
        if self.fills_with_centre:
            filled = sums
            if statistic.counts:
                rest = Fraction(statistic.centre) * (people - total)
                filled = [[s + rest for s in part] for part in sums]
            return statistic.answer(filled, Fraction(people), people)
        return statistic.answer(sums, total, people)

    def _divides_by_weight(self, statistic: Additive) -> bool:
        """Whether an average divides by the weight behind it.

        A model does so by itself, and a private number of rows is weighted like the sum that it divides.
        """
        return self.mean_of_the_weighted or self.rescale or statistic.models or statistic.private_count

    def _scales(self, question: Question, levels: Levels) -> list[float]:
        """The Laplace scale of the noise in each part's weighted sums."""
        statistic, weighting = question.statistic, self.weighting(question, levels)
        assert isinstance(statistic, Additive)
        inverses = (float(weighting.inverse_scale(part, question.neighbors)) for part in statistic.parts)
        return [float(accuracy.equivalent_scale(inverse)) / weighting.one for inverse in inverses]

    def _weight(self, question: Question, levels: Levels) -> Fraction:
        return self.weighting(question, levels).total(levels)

    def _tally(self, question: Question, people: People, entropy: Entropy) -> list[NDArray[np.int64]]:
        assert isinstance(question.statistic, Additive)
        return people.tally(question.statistic)

    def _cells(self, question: Question, people: People, entropy: Entropy) -> list[SortedCells]:
        """One for each group; a single one where there are none."""
        assert isinstance(question.statistic, Order)
        return people.grouped_cells(question.statistic)

    def _cost(self, question: Question, levels: Levels, cells: SortedCells) -> tuple[Cost, Fraction]:
        """The cost per grid point and the weight of one unit of it in the exponent."""
        statistic = question.statistic
        assert isinstance(statistic, Order)
        # A person's rows share their loss, over all groups together.
        rows = statistic.per_row(question.neighbors)
        losses = [math.floor(loss / rows) for loss in self.weighting(question, levels).losses()]
        half = Fraction(1, 2 * NANO)
        if statistic.q is not None:
            return WeightCost(tuple(losses), cells.totals, statistic.q), half / statistic.q.denominator
        # Ranks counted from an end, over the people who are used, all at one epsilon: one person who joins, leaves
        # or moves changes the number of people to change by at most one.
        used = np.array([loss > 0 for loss in losses])
        totals = np.where(used, cells.totals, 0)
        return RankCost((max(losses),) * len(losses), totals, statistic.rank(max(int(totals.sum()), 1))), half

    def sampler(self, question: Question, levels: Levels, cells: SortedCells) -> SegmentSampler:
        statistic = question.statistic
        assert isinstance(statistic, Order)
        cells = self._only_used(question, levels, cells)
        cost, unit = self._cost(question, levels, cells)
        return SegmentSampler(outward(statistic, cells, cost), unit)

    def _only_used(self, question: Question, levels: Levels, cells: SortedCells) -> SortedCells:
        """The entries of people with any weight at all; the others must not even shape the segments."""
        weights = np.array([w > 0 for w in self.weighting(question, levels).weights])
        if weights.all():
            return cells
        return SortedCells(cells.keys[weights[cells.codes(0, cells.people)]], cells.missing, cells.levels)

    # Predictions -------------------------------------------------------------------------------------------------

    def predict_error(self, question: Question, levels: Levels) -> float | None:
        statistic = question.statistic
        if isinstance(statistic, Order):
            return surrogate.quantile_error(question, levels, *self._quantile_weights(question, levels))
        assert isinstance(statistic, Additive)
        moments = statistic.moments(question.spread, question.density, question.location)
        return accuracy.expected_error(self._effect(question, levels), statistic, levels, moments)

    def stated_error(self, question: Question, levels: Levels, answer: Answer) -> float | None:
        statistic = question.statistic
        if not isinstance(statistic, (Variance, FilteredVariance)) or answer.sums is None:
            return self.predict_error(question, levels)
        divisor = self._weight(question, levels) if self._divides_by_weight(statistic) else Fraction(levels.people)
        effect = self._effect(question, levels)
        return seen_variance_error(effect, question, levels, answer.sums, divisor)

    def worst_error(self, question: Question, levels: Levels) -> float | None:
        statistic = question.statistic
        if not isinstance(statistic, Additive):
            return None
        return accuracy.worst_error(self._effect(question, levels), statistic, levels)

    def error_model(self, question: Question, levels: Levels, moments: Moments) -> ErrorModel | None:
        statistic = question.statistic
        if not isinstance(statistic, Additive) or len(statistic.parts) > 1 or statistic.models:
            return None
        effect, nothing = self._effect(question, levels), question.assume == "nothing"
        return accuracy.error_model(effect, statistic, levels, moments, statistic.units[0], nothing)

    def fractions(self, question: Question, levels: Levels) -> NDArray[np.float64]:
        """The expected weight of a person, level by level."""
        weighting = self.weighting(question, levels)
        return np.array(weighting.weights, float) / weighting.one

    def _effect(self, question: Question, levels: Levels) -> accuracy.Effect:
        return self._effect_of(question, levels, self.fractions(question, levels), float(self._rate(question, levels)))

    def _effect_of(self, question: Question, levels: Levels, fractions: Any, rate: Any) -> accuracy.Effect:
        """Of these weights at this rate; of several at once where they come in rows."""
        statistic = question.statistic
        assert isinstance(statistic, Additive)
        factor: Any = 1.0 + 0.0 * rate
        if self.rescale or (statistic.averages and self._divides_by_weight(statistic)):
            factor = levels.people / np.maximum(fractions @ np.array(levels.sizes, float), 1e-300)
        per_person = factor / (levels.people if statistic.averages else 1)
        laplace, scales = [], []
        for part, unit in zip(statistic.parts, statistic.units, strict=True):
            inverse = float(part.share) * rate / (NANO * part.reach[question.neighbors] * self._one)
            scales.append(per_person * accuracy.equivalent_scale(inverse) / self._one)
            laplace.append(unit * scales[-1])
        denominator = None
        if statistic.averages and statistic.private_count:  # the last part is the number of rows
            denominator = scales[-1] / max(statistic.expected_rows, 1e-9)
        fills = self.fills_with_centre
        return accuracy.Effect(fractions, factor, tuple(laplace), self.samples, fills, denominator, tuple(scales))

    def errors_at(
        self, question: Question, levels: Levels, fractions: NDArray[np.float64], thresholds: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """The predicted error at each of several thresholds in nano-epsilon, of which `fractions` are the weights."""
        statistic = question.statistic
        if isinstance(statistic, Order):
            used, epsilons = fractions @ np.array(levels.sizes, float), thresholds / NANO
            return surrogate.quantile_errors(question, levels, used * epsilons, used * epsilons**2)
        assert isinstance(statistic, Additive)
        moments = statistic.moments(question.spread, question.density, question.location)
        effects = self._effect_of(question, levels, fractions, thresholds)
        return accuracy.expected_errors(effects, statistic, levels, moments)

    def _rate(self, question: Question, levels: Levels) -> Fraction:
        return self.weighting(question, levels).rate

    def _quantile_weights(self, question: Question, levels: Levels) -> tuple[list[float], list[float]]:
        """(people expected to be used, epsilon each is used at), per level."""
        weighting = self.weighting(question, levels)
        up, down = weighting.rate.numerator, weighting.one * weighting.rate.denominator
        used = [float(n) if w > 0 else 0.0 for n, w in zip(levels.sizes, weighting.weights, strict=True)]
        return used, [to_epsilon(w * up // down) for w in weighting.weights]

    # Exact distributions, for small inputs -----------------------------------------------------------------------

    def distribution(self, question: Question, people: People) -> tuple[NDArray[Any], NDArray[np.float64]]:
        statistic = question.statistic
        if isinstance(statistic, Order):
            sampler = self.sampler(question, people.levels, people.cells(statistic))
            cells, chances = sampler.probabilities()
            with np.errstate(divide="ignore"):
                return statistic.outcomes()[cells], np.log(chances)
        assert isinstance(statistic, Additive)
        weighting = self.weighting(question, people.levels)
        return lattice_distribution(question, weighting, [(1.0, people.tally(statistic))], people.levels.people)


def weighted_sums(counts: NDArray[np.int64], weighting: Weighting) -> list[int]:
    """Exact integer sums over levels, one per cell."""
    rows = counts.tolist()
    return [sum(w * row[cell] for w, row in zip(weighting.weights, rows, strict=True)) for cell in range(len(rows[0]))]


def lattice_distribution(
    question: Question, weighting: Weighting, mixture: list[tuple[float, list[NDArray[np.int64]]]], people: int
) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Log-probabilities of noisy weighted sums at points of their lattice, for a mixture of summaries."""
    statistic = question.statistic
    assert isinstance(statistic, Additive)
    axes: list[Axis] = []
    for part in statistic.parts:
        inverse = weighting.inverse_scale(part, question.neighbors)
        axes += [Axis(weighting.one * part.reach["absent"], people, inverse)] * part.cells
    centres = [(c, [s for counts in parts for s in weighted_sums(counts, weighting)]) for c, parts in mixture]
    return product_distribution(axes, centres)
