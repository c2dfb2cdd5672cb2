"""How far an additive answer errs: bias, the luck of who chose which level, a sample's coins, and the noise.

All of it follows from public facts: what fraction of each person's contribution reaches the answer, what is put in
place of the rest, and what is publicly known of a contribution (`Facts`).
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, Self, cast

import numpy as np

from epsilons.accuracy.intervals import ErrorBar, ErrorModel, FractionBar
from epsilons.accuracy.relation import uneven
from epsilons.guarantee import NANO
from epsilons.preferences import Levels
from epsilons.statistics.additive import Additive, Counting, Moments
from epsilons.statistics.base import Answer, Floats, Question, Rest, Weighting, Weightings, equivalent_scale

Bars = tuple[ErrorBar, ...] | None
#: The error of a number, or a dict with that of each; None where nothing honest can be said.
Errors = Any
#: No stated error may be more than so many times too small, whatever spread the values have.
TOO_SMALL = 1.45


class Facts:
    """What is publicly known before an answer, at the question's guesses and for so many people.

    `moments` are expected of one contribution, `low` to `high` is possible, and the answer is the total divided by
    `divisor`. Of each part: its unit on the scale of contributions, its reach in integers, its share of epsilon.
    """

    def __init__(self, question: Question, people: int) -> None:
        statistic = cast(Additive, question.statistic)
        self.moments, (self.low, self.high) = statistic.guess(question), statistic.extremes()
        self.centre, self.origin, self.coin_origin = statistic.centre, statistic.origin, statistic.coin_origin
        self.max_error, self.statistic = statistic.max_error, statistic
        self.spread_within = statistic.spread_within
        self.expected_rows = 1.0 if statistic.scope is None else max(statistic.scope.expected, 1e-9)
        self.divisor, self.limits = statistic.divisor(people), statistic.limits(people)
        self.made_up = list(filter(statistic.makes_up_for, Rest))
        parts = zip(statistic.parts, statistic.units, strict=True)
        self.parts = [(unit, part.reach[question.neighbors], float(part.share)) for part, unit in parts]


#: Remembered, since every mechanism that is compared asks.
facts_of = lru_cache(maxsize=256)(Facts)


@dataclass(frozen=True, eq=False)
class Effect:
    """What a weighting does to everybody's contribution, on the scale of the answer's total over people.

    `fractions` is the expected weight of a person by level (with `sampled` the chance of a coin); the weighted sum is
    multiplied by `factor`. `laplace` are the scales of the noise in the finished answer, `scales` those of each part in
    its own integers, per person's worth of weight. Several effects at once are rows, with an array for each number.
    """

    facts: Facts
    sizes: Floats
    people: int
    left_out: int
    fractions: Floats
    factor: Any
    laplace: tuple[Any, ...]
    scales: tuple[Any, ...]
    sampled: bool
    rest: Rest

    @classmethod
    def of(cls, question: Question, levels: Levels, weighting: Weighting | Weightings) -> Self:
        """Of a weighting, or of several at once."""
        people, sizes, one = levels.size, np.array(levels.sizes, float), weighting.one
        facts = facts_of(question, people)
        rate: Any = float(weighting.rate) if isinstance(weighting.rate, Fraction) else weighting.rate
        inverses = np.array([share * rate / (NANO * reach * one) for _, reach, share in facts.parts])
        fractions, sampled, steps = weighting.fractions, weighting.sampled, equivalent_scale(inverses)
        made_up = weighting.rest in facts.made_up
        factor: Any = people / np.maximum(fractions @ sizes, 1e-300) if made_up else 1.0 + 0.0 * rate
        scales = [factor / facts.divisor * step / one for step in steps]
        laplace = [part[0] * scale for part, scale in zip(facts.parts, scales, strict=True)]
        noise = tuple(laplace), tuple(scales)
        return cls(facts, sizes, people, levels.left_out, fractions, factor, *noise, sampled, weighting.rest)

    @cached_property
    def multipliers(self) -> Floats:
        """How much of a person's contribution reaches the answer, level by level."""
        return np.asarray(self.factor)[..., None] * self.fractions

    @property
    def coin_spread(self) -> Any:
        """The variance of how many people coins keep."""
        return (self.fractions * (1 - self.fractions)) @ self.sizes

    @property
    def base(self) -> float:
        """What stands for a contribution that is left out."""
        return self.facts.centre if self.rest is Rest.CENTRED else self.facts.origin

    @property
    def grid(self) -> Any:
        """The step between possible answers."""
        return self.factor * self.facts.parts[0][0] / self.facts.divisor

    @cached_property
    def undone(self) -> tuple[float, float]:
        """(slope, shift): answer*slope + shift has no bias if preferences and values are unrelated."""
        reached = max(float(self.multipliers @ self.sizes) / self.people, 1e-300)
        return (
            (1.0, 0.0)
            if abs(reached - 1) < 1e-9 or self.rest is Rest.CENTRED
            else (1 / reached, self.facts.origin * (1 - 1 / reached))
        )

    def coins(self, moments: Moments) -> Any:
        """Expected variance of a sample's coins, on the answer's scale."""
        if not self.sampled:
            return 0.0
        square = moments.variance + (moments.mean - self.facts.coin_origin) ** 2
        return (self.factor / self.facts.divisor) ** 2 * square * self.coin_spread

    def worst_coins(self) -> Any:
        """The variance of coins for the contribution that they move most."""
        base, ends = self.facts.coin_origin, (self.facts.low, self.facts.high)
        return self.coins(Moments(base + max(abs(end - base) for end in ends), 0.0))

    @property
    def worst_bias(self) -> Any:
        """The largest error before noise over all values within bounds."""
        low, high = (edge - self.base for edge in (self.facts.low, self.facts.high))
        gaps = (self.multipliers - 1) * self.sizes
        up, down = np.maximum(gaps, 0.0).sum(axis=-1), np.minimum(gaps, 0.0).sum(axis=-1) - self.left_out
        return np.maximum(np.abs(up * high + down * low), np.abs(up * low + down * high)) / self.facts.divisor

    @cached_property
    def alike(self) -> Any:
        """The least weight that a person may have over the largest; 0 where somebody may have none."""
        weights = self.multipliers.min(axis=-1) / np.maximum(self.multipliers.max(axis=-1), 1e-300)
        chosen = self.coin_spread > 0 if self.sampled else False
        return np.where(chosen | (self.left_out > 0), 0.0, weights)

    @cached_property
    def drift(self) -> Any:
        """How far the answer is off at most if levels' expected means lie up to 1 from everyone's."""
        return uneven(self.multipliers, self.sizes, self.left_out) / self.facts.divisor


class Accuracy(ABC):
    """The errors of one family of statistics."""

    @abstractmethod
    def predict_error(self, question: Question, levels: Levels, weighting: Weighting) -> float | None:
        """Expected RMSE against the roster's own statistic; None where it cannot be said without the data."""

    @abstractmethod
    def predict_errors(self, question: Question, levels: Levels, weightings: Weightings) -> Floats:
        """The expected RMSE of several weightings at once, in rows; infinite where it cannot be said."""

    def worst_error(self, question: Question, levels: Levels, weighting: Weighting) -> float | None:
        """The RMSE for the worst values people could have, however these relate to their preferences."""
        return None

    def stated_error(
        self, question: Question, levels: Levels, weighting: Weighting, answer: Answer, predicted: Errors
    ) -> Errors:
        """The expected error once an answer is out: what its noisy sums say about the values is public by then."""
        return predicted

    def error_bars(self, question: Question, levels: Levels, weighting: Weighting, answer: Answer) -> Bars:
        """An error bar for each number of an answer; None where nobody can honestly give one."""
        return None

    def expectations(self, question: Question, levels: Levels, weighting: Weighting) -> dict[str, Any]:
        """What else can be expected of an answer: how good a model will be."""
        return {}


class SumAccuracy(Accuracy):
    """Of answers made from noisy sums."""

    def predict_error(self, question: Question, levels: Levels, weighting: Weighting) -> float | None:
        return float(self.predict_errors(question, levels, weighting))

    def predict_errors(self, question: Question, levels: Levels, weightings: Weighting | Weightings) -> Floats:
        effect = Effect.of(question, levels, weightings)
        if math.isinf(question.assume):
            return self.worst_errors(question, effect)
        return self.expected_errors(question, effect, effect.facts.moments)

    def expected_errors(self, question: Question, effect: Effect, moments: Moments) -> Floats:
        """RMSE against the roster's own statistic under the question's assumption, if the guesses hold."""
        gaps, facts = effect.multipliers - 1, effect.facts
        offset = math.hypot(moments.mean - effect.base, moments.location)
        bias = offset * np.abs(gaps @ effect.sizes - effect.left_out) / facts.divisor
        bias = bias + question.assume * math.sqrt(moments.variance) * effect.drift
        luck = facts.spread_within(moments, question.assume) * (gaps**2 @ effect.sizes + effect.left_out)
        before = bias**2 + luck / facts.divisor**2 + effect.coins(moments)
        square = np.minimum(before, self.worst_before(effect)) + self.noise(effect, moments)
        return cast(Floats, np.minimum(np.sqrt(square), facts.max_error))

    def likely_error(self, question: Question, effect: Effect, moments: Moments, most: float) -> float:
        """The error at what is guessed of the spread, but no less than a part of that at the largest possible one."""
        guessed = float(self.expected_errors(question, effect, moments))
        largest = float(self.expected_errors(question, effect, replace(moments, variance=most)))
        return max(guessed, largest / TOO_SMALL)

    def worst_error(self, question: Question, levels: Levels, weighting: Weighting) -> float | None:
        return float(self.worst_errors(question, Effect.of(question, levels, weighting)))

    def worst_errors(self, question: Question, effect: Effect) -> Floats:
        """RMSE for the worst values within bounds, however they relate to preferences."""
        square = self.worst_before(effect) + self.noise(effect, effect.facts.moments)
        return cast(Floats, np.minimum(np.sqrt(square), effect.facts.max_error))

    def worst_before(self, effect: Effect) -> Any:
        """The mean square of all that is not noise, for the worst values within bounds."""
        return effect.worst_bias**2 + effect.worst_coins()

    def noise(self, effect: Effect, moments: Moments) -> Any:
        """The mean square of the noise in an answer: independent Laplace noises, two squared scales each."""
        return sum(2 * scale**2 for scale in effect.laplace)


class LinearAccuracy(SumAccuracy):
    """Of answers that are linear in one noisy vector: counts, histograms, sums, means."""

    def stated_error(
        self, question: Question, levels: Levels, weighting: Weighting, answer: Answer, predicted: Errors
    ) -> Errors:
        """At the contribution that each released number shows; if nothing is assumed, the worst there could be."""
        if math.isinf(question.assume):
            return predicted
        effect = Effect.of(question, levels, weighting)

        def expect(number: float) -> float:
            # An interval allows for two errors of what a number shows; an expected error is taken at one.
            moments = _seen(question, effect, number, part=0.5)
            error = self.likely_error(question, effect, moments, moments.bound)
            lost = _cut_off(float(self.noise(effect, moments)), number, effect.facts.limits)
            return math.sqrt(max(error**2 - lost, 0.0))

        return answer.each(expect)

    def error_bars(self, question: Question, levels: Levels, weighting: Weighting, answer: Answer) -> Bars:
        effect, statistic = Effect.of(question, levels, weighting), cast(Additive, question.statistic)
        alike = isinstance(statistic, Counting) and statistic.one_each
        related = statistic.related(question)[1]
        nothing = math.isinf(question.assume) or effect.rest is Rest.CENTRED
        if nothing or question.assume * related * effect.drift > effect.worst_bias:
            return tuple(_worst_bar(effect, _seen(question, effect, number)) for number in answer.numbers)
        if alike:
            return (_fraction_bar(question, effect),) * len(answer.numbers)
        return tuple(_error_model(question, effect, _seen(question, effect, n), related) for n in answer.numbers)


def _seen(question: Question, effect: Effect, number: float, part: float = 1.0) -> Moments:
    """What a released number says about one person's contribution, at a part of how far its noise leaves it open."""
    slope, shift = effect.undone
    doubt = math.sqrt(sum(2 * scale**2 for scale in effect.laplace)) * slope
    return learn(question, number * slope + shift, part * doubt, effect.people)


def _cut_off(noise: float, number: float, limits: tuple[float, float]) -> float:
    """How much of the mean square of Laplace noise is lost where answers beyond what is possible are cut off.

    Of scale b, at a distance d from a limit: integral of (x^2 - d^2) exp(-x/b)/2b over x > d = b (b + d) exp(-d/b).
    """
    scale = math.sqrt(noise / 2)
    away = (max(number - limits[0], 0.0), max(limits[1] - number, 0.0))
    return sum(scale * (scale + d) * math.exp(-d / scale) for d in away) if scale > 0 else 0.0


def learn(question: Question, number: float, doubt: float, people: int) -> Moments:
    """What a released number, give or take `doubt`, says about one person's contribution."""
    scale = facts_of(question, people).divisor / people
    return cast(Additive, question.statistic).learn(question, number * scale, doubt * scale)


def _worst_bar(effect: Effect, moments: Moments) -> ErrorModel:
    """If nothing is assumed about how preferences and values relate, all that weights leave out is a bound."""
    population = math.sqrt(moments.bound * effect.people) / effect.facts.divisor
    found = (math.sqrt(effect.worst_coins()), population, float(effect.worst_bias))
    return ErrorModel(effect.laplace, *found, grid=effect.grid, limits=effect.facts.limits)


def _error_model(question: Question, effect: Effect, moments: Moments, related: float) -> ErrorModel:
    """Around answer*slope + shift, with what related levels may add as a bound."""
    (slope, shift), divisor = effect.undone, effect.facts.divisor
    gaps = slope * effect.multipliers - 1
    moments = replace(moments, variance=moments.bound)
    luck = moments.variance * float(gaps**2 @ effect.sizes + effect.left_out) / divisor**2
    normal = math.sqrt(luck + slope**2 * effect.coins(moments))
    population = math.sqrt(moments.variance * effect.people) / divisor
    bound = slope * question.assume * related * float(effect.drift)
    laplace = tuple(slope * scale for scale in effect.laplace)
    return ErrorModel(laplace, normal, population, bound, slope, shift, slope * effect.grid, effect.facts.limits)


def _fraction_bar(question: Question, effect: Effect) -> FractionBar:
    """Of people who are each counted once or not at all: everything follows from the fraction of those who are."""
    slope, shift = effect.undone
    gaps = slope * effect.multipliers - 1
    return FractionBar(
        people=effect.people,
        noise=slope * effect.laplace[0],
        luck=float(gaps**2 @ effect.sizes + effect.left_out),
        coins=slope**2 * float(effect.coins(Moments(1.0, 0.0))),
        related=question.assume,
        drift=slope * float(effect.drift),
        slope=slope,
        shift=shift,
        grid=slope * effect.grid,
        zeros=slope**2 * float(effect.coins(Moments(0.0, 0.0))),
    )
