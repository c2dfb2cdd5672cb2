"""How far an additive answer errs: bias, the luck of who chose which level, a sample's coins, and the noise.

All of it follows from public facts: what fraction of each person's contribution reaches the answer, what is put in
place of the rest, and what is publicly known of a contribution (`Facts`).
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Self, cast

import numpy as np

from epsilons.accuracy.gaussian import cut_square, gaussian_fraction, gaussian_model, mean_between
from epsilons.accuracy.intervals import ErrorBar, ErrorModel, FractionBar
from epsilons.accuracy.left_out import likely_square, most_missing
from epsilons.accuracy.weightings import Weightings
from epsilons.guarantee import NANO
from epsilons.preferences import Levels
from epsilons.statistics.additive import Additive, laplace_between
from epsilons.statistics.base import Answer, Floats, Question, Rest, Weighting, equivalent_scale
from epsilons.statistics.gaussian import equivalent_scales
from epsilons.statistics.moments import Moments

Bars = tuple[ErrorBar, ...] | None
#: The error of a number, or a dict with that of each; None where nothing honest can be said.
Errors = Any


def uneven(weights: Floats, sizes: Floats, left_out: int = 0) -> Any:
    """sum_i |w_i - median(w)| over everyone on the roster: of a weight for each level, or of rows of them.

    The largest sum of w_i d_i over distances d of the levels, each at most 1, that average to zero over the roster.
    """
    people = np.concatenate([[float(left_out)], sizes])
    held = np.concatenate([np.zeros((*weights.shape[:-1], 1)), weights], axis=-1).reshape(-1, len(people))
    order, rows = held.argsort(axis=-1), np.arange(len(held))
    place = (people[order].cumsum(axis=-1) >= people.sum() / 2).argmax(axis=-1)
    median = held[rows, order[rows, place]]
    return (np.abs(held - median[:, None]) @ people).reshape(weights.shape[:-1])[()]


class Facts:
    """What is publicly known before an answer, at the question's guesses and for so many people.

    `moments` are expected of one contribution, `low` to `high` is possible, and the answer is the total divided by
    `divisor`. Of each part: its unit on the scale of contributions, its reach in integers, its share of epsilon.
    """

    def __init__(self, question: Question, people: int) -> None:
        statistic = cast(Additive, question.statistic)
        self.statistic, self.moments, (self.low, self.high) = statistic, statistic.guess(question), statistic.extremes
        self.centre, self.max_error = statistic.centre, statistic.max_error
        self.origin, self.coin_origin = statistic.origin, statistic.coin_origin
        self.ones = statistic.one_each  # whether everyone is counted once or not at all
        self.divisor, self.limits = statistic.divisor(people), statistic.limits(people)
        self.width = float(self.limits[1] - self.limits[0])  # how far an answer, cut to what is possible, can be off
        self.made_up = list(filter(statistic.makes_up_for, Rest))
        self.related_means = statistic.related_means(question) if question.assume else ()
        parts = zip(statistic.parts, statistic.units, strict=True)
        self.parts = [(unit, part.reach[question.neighbors], float(part.share)) for part, unit in parts]


facts_of = lru_cache(maxsize=256)(Facts)  # every mechanism that is compared asks


@dataclass(frozen=True, eq=False)
class Effect:
    """What a weighting does to everybody's contribution, on the scale of the answer's total over people.

    `fractions` is the expected weight of a person by level (with `sampled` the chance of a coin); the weighted sum is
    multiplied by `factor`. `laplace` are the scales of the noise in the finished answer, `scales` those of each part in
    its own integers, per person's worth of weight, or such of `gaussian` noises as large. Several effects are rows.
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
    gaussian: bool

    @classmethod
    def of(cls, question: Question, levels: Levels, weighting: Weighting | Weightings) -> Self:
        """Of a weighting, or of several at once; remembered, since an answer is looked at before and after."""
        found = weighting.effects.get(question)
        if found is None:
            found = weighting.effects[question] = cls._of(question, levels, weighting)
        return cast(Self, found)

    @classmethod
    def _of(cls, question: Question, levels: Levels, weighting: Weighting | Weightings) -> Self:
        people, sizes, facts = levels.size, np.array(levels.sizes, float), facts_of(question, levels.size)
        one, rate = weighting.one, cast(Any, weighting.rate)
        rate = float(rate) if isinstance(rate, Fraction) else rate
        inverses = np.array([share * rate / (NANO * reach * one) for _, reach, share in facts.parts])
        fractions, sampled, steps = weighting.fractions, weighting.sampled, equivalent_scale(inverses)
        if normal := question.measure.delta is not None and not sampled:
            steps = equivalent_scales(question, rate, one)
        made_up = weighting.rest in facts.made_up
        factor: Any = people / np.maximum(fractions @ sizes, 1e-300) if made_up else 1.0 + 0.0 * rate
        scales = [factor / facts.divisor * step / one for step in steps]
        laplace = [part[0] * scale for part, scale in zip(facts.parts, scales, strict=True)]
        noise = tuple(laplace), tuple(scales)
        return cls(facts, sizes, people, levels.left_out, fractions, factor, *noise, sampled, weighting.rest, normal)

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
    def reached(self) -> float:
        """How much of everybody's contributions reaches the answer; `base` stands for the rest."""
        reached = max(float(self.multipliers @ self.sizes) / self.people, 1e-100)
        return 1.0 if abs(reached - 1) < 1e-9 else reached

    @cached_property
    def undone(self) -> tuple[float, float]:
        """(slope, shift): answer*slope + shift has no bias if preferences and values are unrelated."""
        slope = 1.0 if self.rest is Rest.CENTRED else 1 / self.reached
        return slope, self.facts.origin * (1 - slope)

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
    def drift(self) -> Any:
        """How far the answer is off at most if levels' expected means lie up to 1 from everyone's."""
        return uneven(self.multipliers, self.sizes, self.left_out) / self.facts.divisor


def _within(facts: Facts, moments: Moments, related: float) -> float:
    """The variance of a contribution within a level, where levels' means lie up to `related` spreads off."""
    if not facts.ones:
        return moments.variance
    # A level's own fraction of ones may be nearer to a half than everyone's.
    variance = max(moments.variance, 0.0)
    near = min(0.5, (1 - math.sqrt(max(1 - 4 * variance, 0.0))) / 2 + related * math.sqrt(variance))
    return near * (1 - near)


def bend(facts: Facts, far: Any) -> Any:
    """How far levels whose means lie off move an answer that takes a product of two means off.

    `far` is how far means are off at most, in spreads. Two means that are off by a and b take a*b off, whatever the
    levels' squared distances and products are: these are around everyone's means, the answer around its own.
    """
    spreads = [spread for _, spread in facts.related_means]
    return far**2 * spreads[0] * spreads[-1] if spreads else 0.0


class Accuracy(ABC):
    """The errors of one family of statistics."""

    #: Whether an answer says more of the worst that could be than public facts do, if nothing is assumed.
    worst_after: ClassVar[bool] = False

    @abstractmethod
    def predict_error(self, question: Question, levels: Levels, weighting: Weighting) -> float | None:
        """Expected RMSE against the roster's own statistic; None where it cannot be said without the data."""

    @abstractmethod
    def predict_errors(self, question: Question, levels: Levels, weightings: Weightings) -> Floats:
        """The expected RMSE of several weightings at once, in rows; infinite where it cannot be said."""

    def objective(self, question: Question, levels: Levels, weightings: Weightings) -> Floats:
        """What the best weights make least: their errors, before answers are cut to what is possible."""
        return self.predict_errors(question, levels, weightings)

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
        # How far levels may lie is told in the guessed spread; of ones, in that of as many as there are.
        told = (moments if facts.ones else facts.moments).variance
        far = moments.slope * question.assume * effect.drift if question.assume else 0.0
        off = far * math.sqrt(told) + bend(facts, far)
        bias = bias + off if math.isnan(moments.missing) else np.asarray(moments.missing)
        luck = _within(facts, moments, question.assume) * (gaps**2 @ effect.sizes + effect.left_out)
        before = bias**2 + luck / facts.divisor**2 + effect.coins(moments)
        if question.assume > 0:  # what is assumed may allow for more than values within bounds can do
            before = np.minimum(before, self.worst_before(effect))
        square = before + self.noise(effect, moments)
        return cast(Floats, np.minimum(np.sqrt(square), facts.max_error))

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
    """Of answers that are linear in one noisy vector, and cut to what is possible: counts, histograms, sums, means."""

    def worst_error(self, question: Question, levels: Levels, weighting: Weighting) -> float | None:
        effect = Effect.of(question, levels, weighting)
        return min(effect.facts.width, float(self.worst_errors(question, effect)))

    def objective(self, question: Question, levels: Levels, weightings: Weighting | Weightings) -> Floats:
        return super().predict_errors(question, levels, weightings)

    def predict_errors(self, question: Question, levels: Levels, weightings: Weighting | Weightings) -> Floats:
        """The mean of the values may well lie on either side of its guess, by as much as is doubted."""
        error, effect = super().predict_errors(question, levels, weightings), Effect.of(question, levels, weightings)
        moments, square = effect.facts.moments, error**2
        if not math.isinf(question.assume):
            means = {moments.mean - moments.location, moments.mean + moments.location}
            square = np.maximum(square - sum(cut_off(effect, mean) for mean in means) / len(means), 0.0)
        return cast(Floats, np.minimum(np.sqrt(square), effect.facts.width))

    def stated_error(
        self, question: Question, levels: Levels, weighting: Weighting, answer: Answer, predicted: Errors
    ) -> Errors:
        """At the contribution that each released number shows."""
        effect = Effect.of(question, levels, weighting)

        def expect(number: float) -> float:
            square = float(self.expected_errors(question, effect, _seen(question, effect, number, likely=True))) ** 2
            return min(effect.facts.width, math.sqrt(max(square - float(cut_off(effect, _shown(effect, number))), 0.0)))

        return answer.each(expect)

    def error_bars(self, question: Question, levels: Levels, weighting: Weighting, answer: Answer) -> Bars:
        effect, statistic = Effect.of(question, levels, weighting), cast(Additive, question.statistic)
        related = statistic.related(question)[1] if question.assume else 0.0
        nothing = math.isinf(question.assume) or effect.rest is Rest.CENTRED
        if nothing or (related and question.assume * related * effect.drift > effect.worst_bias):
            return tuple(_worst_bar(effect, _seen(question, effect, number)) for number in answer.numbers)
        if effect.facts.ones:
            return tuple([_fraction_bar(question, effect, one) for one in spreads_shown(question, effect, answer)])
        return tuple(_error_model(question, effect, _seen(question, effect, n), related) for n in answer.numbers)


def spreads_shown(question: Question, effect: Effect, answer: Answer) -> list[float]:
    """That of one person's part in each released count, in which distances are told; nothing if a guess decides."""
    return [math.sqrt(_seen(question, effect, n, likely=True).variance) for n in answer.numbers if effect.facts.ones]


def cut_off(effect: Effect, mean: float) -> Any:
    """How much of the mean square error is cut off with answers beyond what is possible, at a mean contribution.

    Of noise x of scale b, around an answer that is off by m before it and lies d above the least possible: the integral
    of (x - m)^2 - (d - m)^2 over x > d, with density exp(-x/b)/2b, is b (b + d - m) exp(-d/b); mirrored above.
    """
    facts, (scale,) = effect.facts, effect.laplace
    short = (effect.multipliers - 1) @ effect.sizes - effect.left_out
    mean = min(max(mean, facts.low), facts.high)
    off, b = (mean - effect.base) * short / facts.divisor, np.maximum(scale, 1e-300)
    answer = mean * effect.people / facts.divisor + off
    below, above = np.maximum(answer - facts.limits[0], 0.0), np.maximum(facts.limits[1] - answer, 0.0)
    if effect.gaussian:
        return cut_square(b, below, off) + cut_square(b, above, -off)
    return b * ((b + below - off) * np.exp(-below / b) + (b + above + off) * np.exp(-above / b))


def _shown(effect: Effect, number: float) -> float:
    """The possible mean contribution that a released number shows, also where it was drawn to the centre."""
    facts, base = effect.facts, effect.base
    return min(max(base + (number * facts.divisor / effect.people - base) / effect.reached, facts.low), facts.high)


def _likely(effect: Effect, number: float) -> float:
    """The mean contribution to expect where every possible one was as likely before its noise was seen."""
    facts, (scale,) = effect.facts, effect.laplace
    shown, width = _shown(effect, number), facts.high - facts.low
    b = min(max(float(scale) * facts.divisor / (effect.reached * effect.people), 1e-9 * width), 1e4 * width)
    between = mean_between if effect.gaussian else laplace_between
    return shown + between(b, shown - facts.low, facts.high - shown)


def _seen(question: Question, effect: Effect, number: float, likely: bool = False) -> Moments:
    """What a released number says about one person's contribution: at most, or what is likely."""
    facts, slope = effect.facts, 1 / effect.reached
    doubt = 0.0 if likely else math.sqrt(2) * math.hypot(*effect.laplace) * slope * facts.divisor / effect.people
    mean = (_likely if likely else _shown)(effect, number)
    seen = facts.statistic.learn(question, facts.moments, mean, doubt)
    if slope == 1 or not likely or math.isinf(question.assume):
        return seen
    return _leaving_out(question, effect, seen, _shown(effect, number))


def _leaving_out(question: Question, effect: Effect, seen: Moments, shown: float) -> Moments:
    """What a number says of what its weights leave out: of a total at most, else by how far it lies off the centre."""
    facts, base, people = effect.facts, effect.base, effect.people
    noise = float(effect.laplace[0]) * facts.divisor
    ends = (facts.low - base, facts.high - base)
    if ends[0] >= 0:
        told = math.sqrt(facts.moments.variance)

        def apart(mean: float) -> float:
            """How far levels may lie off: of ones by as many as there are."""
            return question.assume * (math.sqrt(max(mean * (1 - mean), 0.0)) if facts.ones else told)

        weights, sizes = np.append(effect.multipliers, 0.0), np.append(effect.sizes, float(effect.left_out))
        whole = math.hypot((shown - base) * effect.reached * people, math.sqrt(2) * noise)
        return replace(seen, missing=most_missing(weights, sizes, whole, ends, apart) / facts.divisor)
    # Whoever is in it lies off the centre by luck, too, which errors count by itself.
    luck = seen.variance * float(effect.multipliers**2 @ effect.sizes) / (effect.reached * people) ** 2
    off = likely_square(shown - base, noise / (effect.reached * people), ends, effect.gaussian)
    mean = base + math.copysign(math.sqrt(max(off - luck, 0.0)), shown - base)
    return replace(seen, mean=mean, slope=effect.undone[0])


def _worst_bar(effect: Effect, moments: Moments) -> ErrorModel:
    """If nothing is assumed about how preferences and values relate, all that weights leave out is a bound."""
    population = math.sqrt(moments.most * effect.people) / effect.facts.divisor
    found = (math.sqrt(effect.worst_coins()), population, float(effect.worst_bias))
    make = gaussian_model if effect.gaussian else ErrorModel
    return make(effect.laplace, *found, 1.0, 0.0, effect.grid, limits=effect.facts.limits)


def _error_model(question: Question, effect: Effect, moments: Moments, related: float) -> ErrorModel:
    """Around answer*slope + shift, with what related levels may add as a bound."""
    (slope, shift), divisor = effect.undone, effect.facts.divisor
    gaps = slope * effect.multipliers - 1
    luck = moments.most * float(gaps**2 @ effect.sizes + effect.left_out) / divisor**2
    normal = math.sqrt(luck + slope**2 * effect.coins(replace(moments, variance=moments.most)))
    population = math.sqrt(moments.most * effect.people) / divisor
    bound = slope * question.assume * related * float(effect.drift)
    laplace = tuple(slope * scale for scale in effect.laplace)
    make, limits = gaussian_model if effect.gaussian else ErrorModel, effect.facts.limits
    return make(laplace, normal, population, bound, slope, shift, slope * effect.grid, limits=limits)


def _fraction_bar(question: Question, effect: Effect, shown: float) -> FractionBar:
    """Of people who are each counted once or not at all: everything follows from the fraction of those who are."""
    slope, shift = effect.undone
    gaps = slope * effect.multipliers - 1
    noise, luck = slope * effect.laplace[0], float(gaps**2 @ effect.sizes + effect.left_out)
    ones, zeros = (slope**2 * float(effect.coins(Moments(mean, 0.0))) for mean in (1.0, 0.0))
    known = (effect.people, noise, luck, ones, question.assume, slope * float(effect.drift))
    bar = FractionBar(*known, slope, shift, slope * effect.grid, zeros, question.assume * shown)
    return gaussian_fraction(bar) if effect.gaussian else bar
