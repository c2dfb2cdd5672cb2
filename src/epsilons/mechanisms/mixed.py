"""Every level answers for itself, and the answers are mixed."""

import itertools
import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from epsilons.accuracy import order as order_accuracy
from epsilons.accuracy.additive import facts_of
from epsilons.accuracy.intervals import ErrorBar
from epsilons.accuracy.mixed import MixedMeans, levels_differ
from epsilons.accuracy.ratio import LevelsEffect, RatioAccuracy
from epsilons.accuracy.relation import LevelAnswer, Relation, contradicts
from epsilons.errors import PlanError
from epsilons.guarantee import NANO, to_epsilon
from epsilons.mechanisms.base import Mechanism, register, remember
from epsilons.noise.entropy import Entropy
from epsilons.noise.segments import Block, SegmentSampler
from epsilons.preferences import Levels
from epsilons.statistics.additive import Additive, level_scales
from epsilons.statistics.base import Answer, Floats, Question, Scope
from epsilons.statistics.by_level import (
    Laws,
    combine,
    draw_level_sums,
    level_distribution,
    level_laws,
    noisy_level_sums,
)
from epsilons.statistics.distributions import NoisySums
from epsilons.statistics.order import Order
from epsilons.statistics.outward import WeightCost, outward
from epsilons.statistics.total import CENTRED, Mean
from epsilons.summaries import People
from epsilons.summaries.cells import SortedCells

_RATIO = RatioAccuracy()
CONTRADICTED = " (which the levels' own answers contradict)"


def list_levels(answer: Answer) -> list[list[dict[str, Any]]]:
    """What levels released by themselves, for each number of an answer."""
    told = answer.details["levels"]
    return told if isinstance(answer.value, dict) else [told]


class Mixed(Mechanism):
    """Ask every level on its own, at its own epsilon, and mix the answers by their accuracy.

    Levels are public facts of the roster, so a person is in one answer only. Every level pays for a noise of its own,
    where `weighted` pays once; in return levels can be compared.
    """

    name: ClassVar[str] = "mixed"
    serves_only: ClassVar[str] = (
        "it serves counts, sums and means, and of a public number of values quantiles strictly between 0 and 1"
    )
    bounded_range: ClassVar[bool] = True
    gist: ClassVar[str] = "each level answers for itself, then they are mixed"

    def shares(self, question: Question, levels: Levels) -> Floats:
        """The weight of each level's answer; they sum to one. Post-processing: floats do no harm."""
        return self.share_out(question, levels, self.mean_scales(question, levels))

    def share_out(self, question: Question, levels: Levels, scales: Floats) -> Floats:
        """By the Laplace scale in each level's mean."""
        precision = 1 / (self.spread(question, levels) / np.array(levels.sizes, float) + 2 * scales**2)
        return np.asarray(precision / precision.sum())

    @abstractmethod
    def spread(self, question: Question, levels: Levels) -> float:
        """The public guess of one contribution's variance."""

    @abstractmethod
    def mean_scales(self, question: Question, levels: Levels) -> Floats:
        """The Laplace scale in each level's mean; 0 for public people."""


class MixedAnswers(Mixed):
    """Levels that answer with a number each."""

    @abstractmethod
    def level_answers(self, question: Question, people: People, entropy: Entropy) -> Floats:
        """Each level's own noisy answer, a column for each group."""

    @abstractmethod
    def many_answers(self, question: Question, people: People, entropy: Entropy, size: int) -> Floats:
        """Each level's own noisy answers where there are no groups, `size` columns of them."""

    @abstractmethod
    def mix(self, question: Question, levels: Levels, answers: Floats) -> Floats:
        """The mixed answers from the levels' own."""

    def draw(self, question: Question, people: People, entropy: Entropy) -> Answer:
        answers = self.level_answers(question, people, entropy)
        mixed = self.mix(question, people.levels, answers).tolist()
        value = (question.statistic.scope or Scope()).arrange(mixed)
        return Answer(value, self.details(question, people.levels, answers, value))

    def simulate(self, question: Question, people: People, entropy: Entropy, size: int) -> Floats:
        return self.mix(question, people.levels, self.many_answers(question, people, entropy, size))

    def details(self, question: Question, levels: Levels, answers: Floats, value: Any) -> dict[str, Any]:
        """The levels' own noisy answers, a list of them for each group if there are any: no extra charge."""
        told = [[row.to_dict() for row in self.level_rows(question, levels, column)] for column in answers.T]
        return {"levels": told if isinstance(value, dict) else told[0]}

    def level_rows(self, question: Question, levels: Levels, answers: Floats) -> list[LevelAnswer]:
        """Each level's answer with its weight and its errors."""
        shares, scales = self.shares(question, levels), self.mean_scales(question, levels)
        varied = self.level_variances(question, levels, answers)
        rows = zip(levels.grants, levels.sizes, answers, shares, varied, scales, strict=True)
        return [LevelAnswer(levels.name(g), n, float(a), float(w), v / n, float(s)) for g, n, a, w, v, s in rows]

    def level_variances(self, question: Question, levels: Levels, answers: Floats) -> list[float]:
        """Of each level the variance of one contribution, once its answer is out."""
        return [self.spread(question, levels)] * len(answers)


class MixedSums(Mixed):
    """Levels that add up what their people contribute."""

    def spread(self, question: Question, levels: Levels) -> float:
        facts = facts_of(question, levels.size)
        return max(facts.moments.variance, 1e-12 * (facts.high - facts.low) ** 2)

    def mean_scales(self, question: Question, levels: Levels) -> Floats:
        return self.add_parts(question, levels, level_scales(question, levels))

    def add_parts(self, question: Question, levels: Levels, noises: Floats) -> Floats:
        """From the scale of each part's noise, level by level."""
        units = np.array(cast(Additive, question.statistic).units)
        return np.asarray(np.hypot.reduce(units[:, None] * noises, axis=0) / np.array(levels.sizes, np.float64))

    def laws(self, question: Question, levels: Levels) -> Laws:
        """Of the noise in what each level releases."""
        return level_laws(question, levels)

    def noisy_sums(self, question: Question, people: People) -> NoisySums:
        laws = self.laws(question, people.levels)
        return noisy_level_sums(cast(Additive, question.statistic), laws, people)

    def distribution(self, question: Question, people: People) -> tuple[NDArray[Any], Floats]:
        """Of the levels' own sums, which is all that is released."""
        sums = self.noisy_sums(question, people)
        return level_distribution(cast(Additive, question.statistic), people.levels, sums)


@register
@dataclass(frozen=True)
class MixedMean(MixedSums, MixedAnswers):
    """Ask every level for its mean, and mix the means by their accuracy: counts, sums and means.

    Definition: level sums with Lap(r/eps_j) each, divided by the public n_j, mixed with weights proportional to
                n_j^2/(n_j sigma^2 + 2 r^2/eps_j^2) (public people: n_j/sigma^2). Of counts and sums of rows the mean
                is that of what each person on the roster adds, nothing if none of their rows count; r is then what one
                person moves in all groups together.
    Theorem:    Ferrando et al. 2021, section 2 (r corrected: half the width of the bounds around the centre, all of it
                when a person is replaced).
    Guarantee:  eps_i-PDP, one person absent or replaced, as asked.
    Cost:       eps_i charged to each person.
    Error:      each level's sampling and noise, weighted; assumes that preferences say nothing about values.
    """

    families: ClassVar[tuple[str, ...]] = ("linear",)
    statistics: ClassVar[tuple[str, ...] | None] = ("count", "sum", "mean")

    def errors(self, question: Question, levels: Levels, planned: Question | None = None) -> MixedMeans:
        """What the shares, which another question's guesses may have planned, and the levels' noises do."""
        return MixedMeans(
            question, levels, self.shares(planned or question, levels), self.mean_scales(question, levels)
        )

    def predict_error(self, question: Question, levels: Levels) -> float | None:
        return self.errors(question, levels).error(cast(Additive, question.statistic).guess(question))

    def worst_error(self, question: Question, levels: Levels) -> float | None:
        return self.predict_error(replace(question, assume=math.inf, bought=None), levels)

    def predict_if(self, truth: Question, question: Question, levels: Levels) -> float | None:
        return self.errors(truth, levels, question).error(cast(Additive, truth.statistic).guess(truth))

    def stated_error(self, question: Question, levels: Levels, answer: Answer) -> Any:
        """At the contribution that each number shows, one error nearer to the middle."""
        errors = self.errors(question, levels)
        return answer.each(lambda number: errors.error(errors.shown(number, 0.5)))

    def error_bars(self, question: Question, levels: Levels, answer: Answer) -> tuple[ErrorBar, ...] | None:
        return self.errors(question, levels).bars(answer)

    def level_answers(self, question: Question, people: People, entropy: Entropy) -> Floats:
        laws = self.laws(question, people.levels)
        (sums,) = draw_level_sums(cast(Additive, question.statistic), laws, people, entropy)
        return self._means(question, people.levels, np.array([[float(number) for number in level] for level in sums]))

    def many_answers(self, question: Question, people: People, entropy: Entropy, size: int) -> Floats:
        counts = cast(Additive, question.statistic).tally(people)[0]
        if counts.shape[1] > 1:
            raise PlanError("Only single numbers are simulated in bulk.")
        noises = [law.draw_many(entropy, size) for (law,) in self.laws(question, people.levels)]
        noises += [np.zeros(size, int)] * (len(counts) - len(noises))  # of public people, who come last
        noisy = [(exact + noise).astype(float) for exact, noise in zip(counts[:, 0].tolist(), noises, strict=True)]
        return self._means(question, people.levels, np.array(noisy))

    def _means(self, question: Question, levels: Levels, noisy: Floats) -> Floats:
        """Of each level, from its noisy sums in rows: divided by its public size."""
        statistic, sizes = cast(Additive, question.statistic), np.array(levels.sizes, float)
        return statistic.coin_origin + noisy * (statistic.units[0] / sizes)[:, None]

    def mix(self, question: Question, levels: Levels, answers: Floats) -> Floats:
        mixed = self.errors(question, levels).total * (self.shares(question, levels) @ answers)
        return np.clip(mixed, *cast(Additive, question.statistic).limits(levels.size))

    def details(self, question: Question, levels: Levels, answers: Floats, value: Any) -> dict[str, Any]:
        """The levels' own noisy answers, and of everyone's values what they say about preferences: no extra charge."""
        told = super().details(question, levels, answers, value)
        if question.statistic.scope is not None:
            return told
        ones = min(value / self.errors(question, levels).total, 1.0)
        variance = max(ones * (1 - ones), 1e-9) if question.statistic.name == "count" else self.spread(question, levels)
        # What a condition of unrelated preferences adds: the guesses that are taken at their word.
        given = replace(question, assume=0.0, bought=None).condition().partition(", and ")[2]
        low, high = cast(Additive, question.statistic).extremes
        rows = tuple(self.level_rows(question, levels, answers[:, 0]))
        found = Relation(rows, math.sqrt(variance), given, left_out=levels.left_out, width=high - low)
        return {**told, "relation": found.to_dict()}

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
        seen = answer.numbers if question.statistic.one_each and answer else ()
        spreads = [math.sqrt(self.errors(question, levels).shown(number).most) for number in seen]
        told = question.condition(spreads=spreads)
        if answer is None or math.isinf(question.assume):
            return told
        listed = list_levels(answer)
        spreads, left_out = spreads or [question.statistic.related(question)[1]] * len(listed), levels.left_out
        told_of = zip(listed, spreads, strict=True)
        found = [Relation.of(rows, {"spread": spread, "left_out": left_out}) for rows, spread in told_of]
        return f"{told}{CONTRADICTED}" if any(contradicts(one, question.assume, len(found)) for one in found) else told


@register
@dataclass(frozen=True)
class MixedRatio(MixedSums):
    """Ask every level for the sum and the number of its rows, mix each of them, and divide once.

    Definition: of each level the two noisy sums of a mean of rows, at eps_j; a person of level j counts in both with
                the weight beta_j n/n_j, beta_j proportional to n_j^2/(n_j sigma^2 + 2 r^2/eps_j^2) (public people:
                n_j/sigma^2). 2 r^2/eps_j^2 is the variance of the noise in sum(x - mean), sigma^2 that of what one
                person adds to it, both publicly guessed.
    Theorem:    Ferrando et al. 2021, section 2, of both sums at once; for a private number of rows it is ours
                (docs/theory.md, "mixed").
    Guarantee:  eps_i-PDP, one person absent or replaced, as asked.
    Cost:       eps_i charged to each person.
    Error:      that of one noisy number over another (Fieller 1954), with every level's noise in both. No level's own
                mean is taken: it may have no rows.
    """

    families: ClassVar[tuple[str, ...]] = ("ratio",)
    statistics: ClassVar[tuple[str, ...] | None] = ("mean",)

    def effect(self, question: Question, levels: Levels, planned: Question | None = None) -> LevelsEffect:
        """What the weights, which another question's guesses may have planned, and the levels' noises do."""

        def mix() -> LevelsEffect:
            noises = level_scales(question, levels)
            scales = self.mean_scales(planned, levels) if planned else self.add_parts(question, levels, noises)
            shares = self.share_out(planned or question, levels, scales)
            return LevelsEffect.mixing(question, levels, shares, noises)

        return remember(levels, ("mixed effect", self, question, planned), mix)

    def predict_error(self, question: Question, levels: Levels) -> float | None:
        return self.predict_if(question, question, levels)

    def predict_if(self, truth: Question, question: Question, levels: Levels) -> float | None:
        effect = self.effect(truth, levels, None if truth is question else question)
        if math.isinf(truth.assume):
            return float(_RATIO.worst_errors(truth, effect))
        return float(_RATIO.expected_errors(truth, effect, effect.facts.moments))

    def worst_error(self, question: Question, levels: Levels) -> float | None:
        return float(_RATIO.worst_errors(question, self.effect(question, levels)))

    def stated_error(self, question: Question, levels: Levels, answer: Answer) -> Any:
        return _RATIO.state(question, self.effect(question, levels), answer)

    def condition(self, question: Question, levels: Levels, answer: Answer | None = None) -> str:
        """The levels' own rows may contradict what was assumed, whichever mean the interval leaves possible."""
        told = question.condition()
        if answer is None or math.isinf(question.assume):
            return told
        listed, bars = list_levels(answer), self.error_bars(question, levels, answer) or ()
        for rows, bar, number in zip(listed, bars, answer.numbers, strict=True):
            differ = partial(levels_differ, question, rows, levels.left_out, len(listed))
            if differ([number]) and differ(np.linspace(*bar.interval(number, 1 - 0.01 / len(listed), False), 9)):
                return f"{told}{CONTRADICTED}"
        return told

    def error_bars(self, question: Question, levels: Levels, answer: Answer) -> tuple[ErrorBar, ...] | None:
        """Numbers of rows are multiples of each level's weight."""
        effect = self.effect(question, levels)
        private = effect.fractions[: len(levels.finite)]  # public people come last
        return _RATIO.bars(question, effect, answer, float(private.max(initial=0.0)))

    def draw(self, question: Question, people: People, entropy: Entropy) -> Answer:
        statistic, levels = cast(Mean, question.statistic), people.levels
        sums = draw_level_sums(statistic, self.laws(question, levels), people, entropy)
        mixed = combine(statistic, sums, self.effect(question, levels).fractions)
        value = statistic.answer(mixed, Fraction(levels.size), levels.size)
        told = self._tell(question, levels, np.array(sums, float))
        return Answer(value, {"levels": told if isinstance(value, dict) else told[0]}, sums=mixed)

    def _tell(self, question: Question, levels: Levels, sums: Floats) -> list[list[dict[str, Any]]]:
        """What each level released of each group: its noisy sum of x - c and number of rows, and how far these err."""
        statistic, shares = cast(Mean, question.statistic), self.shares(question, levels).tolist()
        turned = np.array([[one / whole, other / whole] for one, other, whole in CENTRED[statistic.form]])
        turned[0] *= float(statistic.half)
        seen = np.tensordot(turned, sums, 1).transpose(2, 1, 0).tolist()
        noises = np.sqrt(2 * turned**2 @ level_scales(question, levels) ** 2).T.tolist()
        public = [
            {
                "level": levels.name(grant),
                "people": size,
                "weight": share,
                "sum_noise": noise[0],
                "rows_noise": noise[1],
            }
            for grant, size, share, noise in zip(levels.grants, levels.sizes, shares, noises, strict=True)
        ]
        return [[{**one, "sum": s, "rows": n} for one, (s, n) in zip(public, group, strict=True)] for group in seen]

    def simulate(self, question: Question, people: People, entropy: Entropy, size: int) -> Floats:
        raise PlanError("Only single numbers are simulated in bulk.")


@register
@dataclass(frozen=True)
class MixedQuantile(MixedAnswers):
    """Ask every level for its quantile, and mix them with the weights of the mean.

    Definition: one exponential mechanism per level at eps_j, mixed with weights proportional to
                n_j^2/(n_j sigma^2 + 2 r^2/eps_j^2) (public people: n_j/sigma^2).
    Theorem:    Ferrando et al. 2021, section 2; Jorgensen et al. 2015, Theorem 6, within each level.
    Guarantee:  eps_i-PDP, one person absent or replaced, as asked.
    Cost:       eps_i charged to each person.
    Error:      the levels' own distributions on a public stand-in, mixed.
    """

    families: ClassVar[tuple[str, ...]] = ("order",)
    needs_public_count: ClassVar[bool] = True

    def refuses(self, question: Question, levels: Levels) -> str | None:
        at_end = not cast(Order, question.statistic).between_ends
        return super().refuses(question, levels) or (self.serves_only if at_end else None)

    def spread(self, question: Question, levels: Levels) -> float:
        low, high = cast(Order, question.statistic).bounds
        return ((high - low) / 4 if question.spread is None else question.spread) ** 2

    def mean_scales(self, question: Question, levels: Levels) -> Floats:
        low, high = cast(Order, question.statistic).bounds
        reach = (high - low) / (2 if question.neighbors == "absent" else 1)
        return np.array([reach / to_epsilon(g) / n for g, n in zip(levels.grants, levels.sizes, strict=True)])

    def predict_error(self, question: Question, levels: Levels) -> float | None:
        return self.predict_if(question, question, levels)

    def predict_if(self, truth: Question, question: Question, levels: Levels) -> float | None:
        return order_accuracy.mixed_quantile_error(truth, levels, self.shares(question, levels))

    def mix(self, question: Question, levels: Levels, answers: Floats) -> Floats:
        return np.clip(self.shares(question, levels) @ answers, *cast(Order, question.statistic).bounds)

    def level_answers(self, question: Question, people: People, entropy: Entropy) -> Floats:
        return self.many_answers(question, people, entropy, 1)

    def many_answers(self, question: Question, people: People, entropy: Entropy, size: int) -> Floats:
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
