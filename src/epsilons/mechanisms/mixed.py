"""Paper 4: every level answers for itself, and the answers are mixed."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from epsilons.guarantee import NANO, to_epsilon
from epsilons.mechanisms import surrogate
from epsilons.mechanisms.accuracy import equivalent_scale
from epsilons.mechanisms.base import NEEDS_PUBLIC_COUNT, Answer, Charges, Mechanism, register
from epsilons.mechanisms.errorbars import ErrorModel
from epsilons.mechanisms.lattice import Axis, product_distribution
from epsilons.mechanisms.outward import WeightCost, outward
from epsilons.mechanisms.relation import LevelAnswer, relation
from epsilons.noise.entropy import Entropy
from epsilons.noise.laplace import discrete_laplace, discrete_laplace_many
from epsilons.noise.segments import SegmentSampler
from epsilons.preferences import Levels
from epsilons.statistics.base import Additive, Moments
from epsilons.statistics.count import Count
from epsilons.statistics.order import Order, SortedCells
from epsilons.statistics.people import People
from epsilons.statistics.question import Question
from epsilons.statistics.total import Mean, Sum

Floats = NDArray[np.float64]


@register
@dataclass(frozen=True)
class Mixed(Mechanism):
    """Ask every level on its own, at its own epsilon, and mix the answers by their accuracy.

    Definition: level sums with Lap(r/eps_j) each, divided by the public n_j, mixed with weights proportional to
                n_j^2/(n_j sigma^2 + 2 r^2/eps_j^2) (public people: n_j/sigma^2). Quantiles: one exponential mechanism
                per level, mixed with the weights of the mean.
    Theorem:    Ferrando et al. 2021, section 2 (r corrected: half the width of the bounds around the centre, all of it
                when a person is replaced). Levels are public facts of the roster, so a person is in one answer only.
    Guarantee:  eps_i-PDP, one person absent or replaced, as asked.
    Cost:       eps_i charged to each person.
    Error:      each level's sampling and noise, weighted; assumes that preferences say nothing about values. Every
                level pays for a noise of its own, where `weighted` pays once; in return levels can be compared.
    """

    name: ClassVar[str] = "mixed"
    gist: ClassVar[str] = "each level answers for itself, then they are mixed"

    def refuses(self, question: Question, levels: Levels) -> str | None:
        statistic = question.statistic
        if statistic.private_count:
            return NEEDS_PUBLIC_COUNT
        quantile = isinstance(statistic, Order) and statistic.q not in (None, 0, 1)
        if quantile or isinstance(statistic, (Count, Sum, Mean)):
            return None
        return "it serves counts, sums, means and quantiles strictly between 0 and 1"

    def charge(self, question: Question, levels: Levels) -> Charges:
        return levels.grants

    # Weights and predictions -------------------------------------------------------------------------------------

    def shares(self, question: Question, levels: Levels) -> Floats:
        """The weight of each level's answer; they sum to one. Post-processing: floats do no harm."""
        precision = 1 / self._variances(question, levels, self._spread(question), self._mean_scales(question, levels))
        shares: Floats = precision / precision.sum()
        return shares

    def _spread(self, question: Question) -> float:
        """The public guess of one contribution's variance."""
        statistic = question.statistic
        if isinstance(statistic, Order):
            half = (statistic.bounds[1] - statistic.bounds[0]) / 2
            return (half if question.spread is None else question.spread) ** 2
        assert isinstance(statistic, Additive)
        low, high = statistic.extremes()
        guess = statistic.moments(question.spread, question.density, question.location)
        return max(guess.variance, 1e-12 * (high - low) ** 2)

    def _mean_scales(self, question: Question, levels: Levels) -> Floats:
        """The Laplace scale in each level's mean; 0 for public people."""
        statistic = question.statistic
        if isinstance(statistic, Order):
            reach = (statistic.bounds[1] - statistic.bounds[0]) / (2 if question.neighbors == "absent" else 1)
            return np.array([reach / to_epsilon(g) / n for g, n in zip(levels.grants, levels.sizes, strict=True)])
        assert isinstance(statistic, Additive)
        inverse = np.array(levels.finite, float) / (NANO * statistic.parts[0].reach[question.neighbors])
        scales = np.zeros(len(levels.grants))
        scales[: len(inverse)] = statistic.units[0] * equivalent_scale(inverse)  # public people come last
        scales /= np.array(levels.sizes, float)
        return scales

    def _variances(self, question: Question, levels: Levels, variance: float, scales: Floats) -> Floats:
        """Of each level's mean around the population's: sampling and noise."""
        return variance / np.array(levels.sizes, float) + 2 * scales**2

    def _inverse(self, question: Question, grant: int) -> Fraction:
        statistic = question.statistic
        assert isinstance(statistic, Additive)
        return Fraction(grant, NANO * statistic.parts[0].reach[question.neighbors])

    def predict_error(self, question: Question, levels: Levels) -> float | None:
        statistic, shares = question.statistic, self.shares(question, levels)
        if isinstance(statistic, Order):
            return surrogate.mixed_quantile_error(question, levels, shares)
        assert isinstance(statistic, Additive)
        moments = statistic.moments(question.spread, question.density, question.location)
        model = self._model(question, levels, moments, shares)
        return math.sqrt(model.normal**2 + sum(2 * scale**2 for scale in model.laplace))

    def worst_error(self, question: Question, levels: Levels) -> float | None:
        statistic, shares = question.statistic, self.shares(question, levels)
        if not isinstance(statistic, Additive):
            return None
        noise = 2 * float((shares**2 * self._mean_scales(question, levels) ** 2).sum())
        total = self._total(statistic, levels)
        return math.sqrt(self._worst_bias(statistic, levels, shares) ** 2 + total**2 * noise)

    def _worst_bias(self, statistic: Additive, levels: Levels, shares: Floats) -> float:
        """The largest error before noise over all values within bounds."""
        low, high = statistic.extremes()
        gaps = np.abs(shares - np.array(levels.sizes, float) / levels.people)
        return self._total(statistic, levels) * (high - low) / 2 * (float(gaps.sum()) + levels.left_out / levels.people)

    def error_model(self, question: Question, levels: Levels, moments: Moments) -> ErrorModel | None:
        statistic, shares = question.statistic, self.shares(question, levels)
        if not isinstance(statistic, Additive):
            return None
        model = self._model(question, levels, moments, shares)
        if question.assume == "nothing":
            return replace(model, normal=0.0, bound=self._worst_bias(statistic, levels, shares))
        return model

    def _model(self, question: Question, levels: Levels, moments: Moments, shares: Floats) -> ErrorModel:
        statistic = question.statistic
        assert isinstance(statistic, Additive)
        total = self._total(statistic, levels)
        sizes = np.array(levels.sizes, float)
        luck = moments.variance * max(0.0, float((shares**2 / sizes).sum()) - 1 / levels.people)
        laplace = total * shares * self._mean_scales(question, levels)
        population = total * math.sqrt(moments.variance / levels.people)
        return ErrorModel(tuple(float(s) for s in laplace if s > 0), total * math.sqrt(luck), population)

    def _total(self, statistic: Additive, levels: Levels) -> int:
        """What turns a mean into the answer: nothing for a mean, the number of people for totals."""
        return 1 if statistic.averages else levels.people

    # Draws -------------------------------------------------------------------------------------------------------

    def draw(self, question: Question, people: People, entropy: Entropy) -> Answer:
        answers, mixed = self._answers(question, people, entropy, 1)
        levels = people.levels
        value = float(mixed[0])
        seen = value / self._total(question.statistic, levels) if isinstance(question.statistic, Count) else None
        return Answer(value, self._details(question, levels, answers[:, 0], seen))

    def simulate(self, question: Question, people: People, entropy: Entropy, size: int) -> Floats:
        return self._answers(question, people, entropy, size)[1]

    def _answers(self, question: Question, people: People, entropy: Entropy, size: int) -> tuple[Floats, Floats]:
        """(each level's noisy answers, the mixed answers), `size` of them."""
        statistic, levels = question.statistic, people.levels
        shares = self.shares(question, levels)
        if isinstance(statistic, Order):
            rows = self._quantiles(question, people, entropy, size)
            low, high = statistic.bounds
            return rows, np.clip(shares @ rows, low, high)
        assert isinstance(statistic, Additive)
        sums = [int(s) for s in people.tally(statistic)[0][:, 0]]
        facts = zip(levels.grants, levels.sizes, sums, strict=True)
        means = np.array([self._level_means(question, *level, entropy, size) for level in facts])
        return means, self._total(statistic, levels) * (shares @ means)

    def _level_means(
        self, question: Question, grant: int | None, size: int, exact: int, entropy: Entropy, draws: int
    ) -> Floats:
        """The noisy mean of one level: its integer sum, an integer noise, divided by its public size."""
        statistic = question.statistic
        assert isinstance(statistic, Additive)
        if grant is None:
            noisy = np.full(draws, exact)
        elif draws == 1:
            noisy = np.array([exact + discrete_laplace(entropy, self._inverse(question, grant))], object)
        else:
            noisy = exact + discrete_laplace_many(entropy, self._inverse(question, grant), draws)
        means: Floats = noisy.astype(float) * (statistic.units[0] / size)
        return means if statistic.counts else statistic.centre + means

    def _samplers(self, question: Question, people: People) -> list[tuple[SegmentSampler | None, int]]:
        """For each level its exponential mechanism, or for public people the exact answer."""
        statistic, levels = question.statistic, people.levels
        assert isinstance(statistic, Order)
        assert statistic.q is not None
        cells = people.cells(statistic)
        codes = cells.codes(0, cells.people)
        found: list[tuple[SegmentSampler | None, int]] = []
        for code, grant in enumerate(levels.grants):
            own = SortedCells(cells.keys[codes == code], cells.missing, cells.levels)
            if grant is None:
                rank = statistic.rank(own.people) if own.people else 0
                found.append((None, int(own.cells(rank, rank + 1)[0]) if own.people else statistic.default_cell))
                continue
            weights = tuple(grant if level == code else 0 for level in range(len(levels.grants)))
            cost = WeightCost(weights, own.totals, statistic.q)
            unit = Fraction(1, 2 * NANO * statistic.q.denominator)
            found.append((SegmentSampler(outward(statistic, own, cost), unit), 0))
        return found

    def _quantiles(self, question: Question, people: People, entropy: Entropy, size: int) -> Floats:
        statistic = question.statistic
        assert isinstance(statistic, Order)
        rows = []
        for sampler, cell in self._samplers(question, people):
            drawn = [cell] * size if sampler is None else sampler.draw_many(entropy, size).tolist()
            rows.append([float(statistic.value(c)) for c in drawn])
        return np.array(rows)

    def _details(self, question: Question, levels: Levels, answers: Floats, seen: float | None) -> dict[str, Any]:
        """The levels' own noisy answers, and what they say about preferences and values: no extra charge."""
        shares = self.shares(question, levels)
        variance = self._spread(question) if seen is None else max(min(seen, 1.0) * (1 - min(seen, 1.0)), 1e-9)
        scales = self._mean_scales(question, levels)
        rows = [
            LevelAnswer(levels.name(g), n, float(a), float(w), variance / n, float(s))
            for g, n, a, w, s in zip(levels.grants, levels.sizes, answers, shares, scales, strict=True)
        ]
        details: dict[str, Any] = {"levels": [row.to_dict() for row in rows]}
        if isinstance(question.statistic, Additive):
            details["relation"] = relation(rows)
        return details

    def distribution(self, question: Question, people: People) -> tuple[NDArray[Any], Floats]:
        """Of the levels' own answers, which is all that is released."""
        statistic, levels = question.statistic, people.levels
        if isinstance(statistic, Order):
            pmfs = [s.probabilities() for s, _ in self._samplers(question, people) if s is not None]
            joint = np.array(0.0)
            with np.errstate(divide="ignore"):
                for _, chance in pmfs:
                    joint = joint[..., None] + np.log(chance)
            labels = np.empty(joint.size, dtype=object)
            labels[:] = list(itertools.product(*(place.tolist() for place, _ in pmfs)))
            return labels, joint.reshape(-1)
        assert isinstance(statistic, Additive)
        reach = statistic.parts[0].reach["absent"]
        private = [j for j, grant in enumerate(levels.grants) if grant is not None]
        axes = [Axis(reach, levels.sizes[j], self._inverse(question, levels.grants[j] or 0)) for j in private]
        sums = people.tally(statistic)[0][:, 0]
        return product_distribution(axes, [(1.0, [int(sums[j]) for j in private])])
