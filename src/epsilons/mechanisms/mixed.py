"""Every level answers for itself, and the answers are mixed."""

import itertools
import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from epsilons.accuracy import order as order_accuracy
from epsilons.accuracy.additive import uneven
from epsilons.accuracy.gaussian import gaussian_model
from epsilons.accuracy.intervals import ErrorBar, ErrorModel, cut_noise
from epsilons.accuracy.relation import LevelAnswer, Relation
from epsilons.guarantee import NANO, to_epsilon
from epsilons.mechanisms.base import Mechanism, register
from epsilons.noise.entropy import Entropy
from epsilons.noise.segments import Block, SegmentSampler
from epsilons.preferences import Levels
from epsilons.statistics.additive import Additive, Counting, Laplace
from epsilons.statistics.base import Answer, Floats, Question, equivalent_scale
from epsilons.statistics.distributions import Axis, product_distribution
from epsilons.statistics.gaussian import Gaussian, equivalent_scales, squares
from epsilons.statistics.moments import Moments
from epsilons.statistics.order import Order
from epsilons.statistics.outward import WeightCost, outward
from epsilons.summaries import People
from epsilons.summaries.cells import SortedCells


class Mixed(Mechanism):
    """Ask every level on its own, at its own epsilon, and mix the answers by their accuracy.

    Levels are public facts of the roster, so a person is in one answer only. Every level pays for a noise of its own,
    where `weighted` pays once; in return levels can be compared.
    """

    name: ClassVar[str] = "mixed"
    serves_only: ClassVar[str] = "it serves counts, sums, means and quantiles strictly between 0 and 1"
    needs_public_count: ClassVar[bool] = True
    bounded_range: ClassVar[bool] = True
    gist: ClassVar[str] = "each level answers for itself, then they are mixed"

    def shares(self, question: Question, levels: Levels) -> Floats:
        """The weight of each level's answer; they sum to one. Post-processing: floats do no harm."""
        sampling = self.spread(question) / np.array(levels.sizes, float)
        precision = 1 / (sampling + 2 * self.mean_scales(question, levels) ** 2)
        return np.asarray(precision / precision.sum())

    @abstractmethod
    def spread(self, question: Question) -> float:
        """The public guess of one contribution's variance."""

    @abstractmethod
    def mean_scales(self, question: Question, levels: Levels) -> Floats:
        """The Laplace scale in each level's mean; 0 for public people."""

    @abstractmethod
    def level_answers(self, question: Question, people: People, entropy: Entropy, size: int) -> Floats:
        """Each level's own noisy answers, `size` of them."""

    @abstractmethod
    def mix(self, question: Question, levels: Levels, answers: Floats) -> Floats:
        """The mixed answers from the levels' own."""

    def draw(self, question: Question, people: People, entropy: Entropy) -> Answer:
        answers = self.level_answers(question, people, entropy, 1)
        value = float(self.mix(question, people.levels, answers)[0])
        return Answer(value, self.details(question, people.levels, answers[:, 0], value))

    def simulate(self, question: Question, people: People, entropy: Entropy, size: int) -> Floats:
        return self.mix(question, people.levels, self.level_answers(question, people, entropy, size))

    def details(self, question: Question, levels: Levels, answers: Floats, value: float) -> dict[str, Any]:
        """The levels' own noisy answers: no extra charge."""
        return {"levels": [row.to_dict() for row in self.level_rows(question, levels, answers)]}

    def level_rows(self, question: Question, levels: Levels, answers: Floats) -> list[LevelAnswer]:
        """Each level's answer with its weight and its errors."""
        shares, scales = self.shares(question, levels), self.mean_scales(question, levels)
        varied = self.level_variances(question, levels, answers)
        rows = zip(levels.grants, levels.sizes, answers, shares, varied, scales, strict=True)
        return [LevelAnswer(levels.name(g), n, float(a), float(w), v / n, float(s)) for g, n, a, w, v, s in rows]

    def level_variances(self, question: Question, levels: Levels, answers: Floats) -> list[float]:
        """Of each level the variance of one contribution, once its answer is out."""
        return [self.spread(question)] * len(answers)


@register
@dataclass(frozen=True)
class MixedMean(Mixed):
    """Ask every level for its mean, and mix the means by their accuracy: counts, sums and means.

    Definition: level sums with Lap(r/eps_j) each, divided by the public n_j, mixed with weights proportional to
                n_j^2/(n_j sigma^2 + 2 r^2/eps_j^2) (public people: n_j/sigma^2).
    Theorem:    Ferrando et al. 2021, section 2 (r corrected: half the width of the bounds around the centre, all of it
                when a person is replaced).
    Guarantee:  eps_i-PDP, one person absent or replaced, as asked.
    Cost:       eps_i charged to each person.
    Error:      each level's sampling and noise, weighted; assumes that preferences say nothing about values.
    """

    families: ClassVar[tuple[str, ...]] = ("linear",)
    statistics: ClassVar[tuple[str, ...] | None] = ("count", "sum", "mean")

    def spread(self, question: Question) -> float:
        statistic = cast(Additive, question.statistic)
        low, high = statistic.extremes
        return max(statistic.guess(question).variance, 1e-12 * (high - low) ** 2)

    def mean_scales(self, question: Question, levels: Levels) -> Floats:
        statistic = cast(Additive, question.statistic)
        grants = np.array(levels.finite, float)
        steps = equivalent_scale(grants / (NANO * statistic.parts[0].reach[question.neighbors]))
        if question.measure.delta is not None:
            (steps,) = equivalent_scales(question, grants, 1)
        noise = statistic.units[0] * steps
        scales: Floats = np.append(noise, [0.0] * (len(levels.grants) - len(noise)))  # public people come last
        return scales / np.array(levels.sizes, np.float64)

    def _law(self, question: Question, grant: int) -> Laplace | Gaussian:
        """Of the noise in the sum of a level."""
        statistic = cast(Additive, question.statistic)
        if question.measure.delta is not None:
            return Gaussian(squares(statistic, question.neighbors)[0] * Fraction(NANO, grant) ** 2)
        return Laplace(Fraction(grant, NANO * statistic.parts[0].reach[question.neighbors]))

    def _total(self, question: Question, levels: Levels) -> int:
        """What turns a mean into the answer: nothing for a mean, the number of people for totals."""
        return levels.size // cast(Additive, question.statistic).divisor(levels.size)

    def predict_error(self, question: Question, levels: Levels) -> float | None:
        return self._error(question, levels, cast(Additive, question.statistic).guess(question))

    def worst_error(self, question: Question, levels: Levels) -> float | None:
        return self.predict_error(replace(question, assume=math.inf, bought=None), levels)

    def stated_error(self, question: Question, levels: Levels, answer: Answer) -> float:
        """At the contribution that the answer shows, one error nearer to the middle."""
        return self._error(question, levels, self._shown(question, levels, answer, 0.5))

    def _error(self, question: Question, levels: Levels, moments: Moments) -> float:
        """RMSE of answers that are cut to what is possible."""
        low, high = cast(Additive, question.statistic).limits(levels.size)
        luck, _, bound = self._off(question, levels, moments)
        noise = cut_noise(math.hypot(*self._noises(question, levels)), high - low)
        return min(math.sqrt(luck**2 + bound**2 + noise), float(high - low))

    def _worst_bias(self, question: Question, levels: Levels, shares: Floats) -> float:
        """The largest error before noise over all values within bounds."""
        low, high = cast(Additive, question.statistic).extremes
        gaps = np.abs(shares - np.array(levels.sizes, float) / levels.size)
        left_out = float(gaps.sum()) + levels.left_out / levels.size
        return self._total(question, levels) * (high - low) / 2 * left_out

    def error_bars(self, question: Question, levels: Levels, answer: Answer) -> tuple[ErrorBar, ...] | None:
        moments = self._shown(question, levels, answer)
        errors, noises = (
            self._off(question, levels, replace(moments, variance=moments.most)),
            self._noises(question, levels),
        )
        limits = cast(Additive, question.statistic).limits(levels.size)
        make = ErrorModel if question.measure.delta is None else gaussian_model
        return (make(noises, *errors, limits=limits),)

    def _shown(self, question: Question, levels: Levels, answer: Answer, part: float = 1.0) -> Moments:
        """What the answer says of one person's part, two errors nearer to the middle, or a part of that."""
        statistic, total = cast(Additive, question.statistic), self._total(question, levels)
        guessed = statistic.guess(question)
        luck, _, _ = self._off(question, levels, guessed)
        doubt = math.hypot(luck, *(math.sqrt(2) * scale for scale in self._noises(question, levels)))
        return statistic.learn(question, guessed, answer.value / total, part * doubt / total)

    def _noises(self, question: Question, levels: Levels) -> tuple[float, ...]:
        """The Laplace scales, or those of Gaussian noises as large, of the levels' noises in the answer."""
        scales = self._total(question, levels) * self.shares(question, levels) * self.mean_scales(question, levels)
        return tuple(float(scale) for scale in scales if scale > 0)

    def _off(self, question: Question, levels: Levels, moments: Moments) -> tuple[float, float, float]:
        """All but the noise: (luck of who stands where, of who is on the roster, a bound on what relations may do)."""
        shares, total = self.shares(question, levels), self._total(question, levels)
        population = total * math.sqrt(moments.variance / levels.size)
        worst = self._worst_bias(question, levels, shares)
        if math.isinf(question.assume):  # whatever values people have, luck or not
            return 0.0, population, worst
        luck = moments.variance * max(0.0, float((shares**2 / np.array(levels.sizes, float)).sum()) - 1 / levels.size)
        sizes = np.array(levels.sizes, float)
        drift = uneven(shares * levels.size / sizes, sizes, levels.left_out)
        statistic = cast(Additive, question.statistic)
        # The spread in which distances are told, or of a count the one that goes with it.
        told = math.sqrt(moments.variance) if isinstance(statistic, Counting) else statistic.related(question)[1]
        bound = question.assume * told * total * float(drift) / levels.size
        return total * math.sqrt(luck), population, min(bound, worst)

    def level_answers(self, question: Question, people: People, entropy: Entropy, size: int) -> Floats:
        """The noisy mean of each level: its integer sum, an integer noise, divided by its public size."""
        levels, statistic, means = people.levels, cast(Additive, question.statistic), []
        exact = statistic.tally(people)[0][:, 0].tolist()
        for grant, there, total in zip(levels.grants, levels.sizes, exact, strict=True):
            noise: Any = np.zeros(size, int)
            if grant is not None and size == 1:
                noise = np.array(self._law(question, grant).draw(entropy, 1), object)
            elif grant is not None:
                noise = self._law(question, grant).draw_many(entropy, size)
            means.append((total + noise).astype(float) * (statistic.units[0] / there))
        return statistic.coin_origin + np.array(means)

    def mix(self, question: Question, levels: Levels, answers: Floats) -> Floats:
        mixed = self._total(question, levels) * (self.shares(question, levels) @ answers)
        return np.clip(mixed, *cast(Additive, question.statistic).limits(levels.size))

    def details(self, question: Question, levels: Levels, answers: Floats, value: float) -> dict[str, Any]:
        """The levels' own noisy answers, and what they say about preferences and values: no extra charge."""
        ones = min(value / self._total(question, levels), 1.0)
        variance = max(ones * (1 - ones), 1e-9) if question.statistic.name == "count" else self.spread(question)
        rows = self.level_rows(question, levels, answers)
        # What a condition of unrelated preferences adds: the guesses that are taken at their word.
        given = replace(question, assume=0.0, bought=None).condition().partition(", and ")[2]
        found = Relation(tuple(rows), math.sqrt(variance), given)
        return {"levels": [row.to_dict() for row in rows], "relation": found.to_dict()}

    def level_variances(self, question: Question, levels: Levels, answers: Floats) -> list[float]:
        """The largest that is possible at each level's own answer, give or take its noise and its people's luck.

        Else levels of values that spread more than was guessed would seem to differ. A spread that was given counts.
        """
        statistic = cast(Additive, question.statistic)
        low, high = statistic.extremes
        luck = (high - low) ** 2 / 4 / np.array(levels.sizes, float)
        doubts = np.sqrt(luck + 2 * self.mean_scales(question, levels) ** 2)
        guessed, seen = statistic.guess(question), zip(answers.tolist(), doubts.tolist(), strict=True)
        return [statistic.learn(question, guessed, answer, doubt).most for answer, doubt in seen]

    def condition(self, question: Question, levels: Levels, answer: Answer | None = None) -> str:
        """The levels' own answers may contradict what was assumed; then it says so."""
        seen = question.statistic.one_each and answer
        spreads = [math.sqrt(self._shown(question, levels, seen).most)] if seen else ()
        told = question.condition(spreads=spreads)
        if answer is None or math.isinf(question.assume):
            return told
        found = Relation.of(answer.details["levels"], answer.details["relation"])
        contradicted = found.contradicts(question.assume)
        return f"{told} (which the levels' own answers contradict)" if contradicted else told

    def distribution(self, question: Question, people: People) -> tuple[NDArray[Any], Floats]:
        """Of the levels' own answers, which is all that is released."""
        statistic, levels = cast(Additive, question.statistic), people.levels
        reach, private = statistic.parts[0].reach["absent"], zip(levels.finite, levels.sizes, strict=False)
        axes = [Axis(reach, size, self._law(question, grant)) for grant, size in private]  # public people come last
        return product_distribution(axes, [(1.0, statistic.tally(people)[0][: len(axes), 0].tolist())])


@register
@dataclass(frozen=True)
class MixedQuantile(Mixed):
    """Ask every level for its quantile, and mix them with the weights of the mean.

    Definition: one exponential mechanism per level at eps_j, mixed with weights proportional to
                n_j^2/(n_j sigma^2 + 2 r^2/eps_j^2) (public people: n_j/sigma^2).
    Theorem:    Ferrando et al. 2021, section 2; Jorgensen et al. 2015, Theorem 6, within each level.
    Guarantee:  eps_i-PDP, one person absent or replaced, as asked.
    Cost:       eps_i charged to each person.
    Error:      the levels' own distributions on a public stand-in, mixed.
    """

    families: ClassVar[tuple[str, ...]] = ("order",)

    def refuses(self, question: Question, levels: Levels) -> str | None:
        at_end = not cast(Order, question.statistic).between_ends
        return super().refuses(question, levels) or (self.serves_only if at_end else None)

    def spread(self, question: Question) -> float:
        low, high = cast(Order, question.statistic).bounds
        return ((high - low) / 4 if question.spread is None else question.spread) ** 2

    def mean_scales(self, question: Question, levels: Levels) -> Floats:
        low, high = cast(Order, question.statistic).bounds
        reach = (high - low) / (2 if question.neighbors == "absent" else 1)
        return np.array([reach / to_epsilon(g) / n for g, n in zip(levels.grants, levels.sizes, strict=True)])

    def predict_error(self, question: Question, levels: Levels) -> float | None:
        return order_accuracy.mixed_quantile_error(question, levels, self.shares(question, levels))

    def mix(self, question: Question, levels: Levels, answers: Floats) -> Floats:
        return np.clip(self.shares(question, levels) @ answers, *cast(Order, question.statistic).bounds)

    def level_answers(self, question: Question, people: People, entropy: Entropy, size: int) -> Floats:
        statistic = cast(Order, question.statistic)
        found = self._samplers(statistic, people)
        drawn = [[cell] * size if one is None else one.draw_many(entropy, size).tolist() for one, cell in found]
        return np.array([[float(statistic.value(cell)) for cell in cells] for cells in drawn])

    def level_blocks(self, statistic: Order, people: People) -> list[Iterator[Block] | int]:
        """For each level the answers of its exponential mechanism as segments, or for public people the exact one."""
        grants, cells = people.levels.grants, people.cells(statistic)
        codes = cells.codes(0, cells.people)
        found: list[Iterator[Block] | int] = []
        for code, grant in enumerate(grants):
            # Of one level, numbered 0: the other levels would only be zeros in every sum.
            own = SortedCells(cells.keys[codes == code] - code, cells.missing[code : code + 1], 1)
            if grant is None:
                found.append(statistic.cell_at_rank(own))
            else:
                found.append(outward(statistic.points, own, WeightCost((grant,), own.totals, statistic.q_asked)))
        return found

    def unit(self, statistic: Order) -> Fraction:
        """What one unit of cost is in the exponent."""
        return Fraction(1, 2 * NANO * statistic.q_asked.denominator)

    def _samplers(self, statistic: Order, people: People) -> list[tuple[SegmentSampler | None, int]]:
        unit, found = self.unit(statistic), self.level_blocks(statistic, people)
        return [(None, one) if isinstance(one, int) else (SegmentSampler(one, unit), 0) for one in found]

    def distribution(self, question: Question, people: People) -> tuple[NDArray[Any], Floats]:
        """Of the levels' own answers, which is all that is released."""
        samplers = self._samplers(cast(Order, question.statistic), people)
        pmfs = [sampler.probabilities() for sampler, _ in samplers if sampler is not None]
        joint = np.array(0.0)
        with np.errstate(divide="ignore"):
            for _, chance in pmfs:
                joint = joint[..., None] + np.log(chance)
        labels = np.empty(joint.size, dtype=object)
        labels[:] = list(itertools.product(*(place.tolist() for place, _ in pmfs)))
        return labels, joint.reshape(-1)
