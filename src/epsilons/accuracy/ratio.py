"""How far a mean over a private number of rows errs: one noisy number divided by another.

Before an answer: at the guessed number of rows. After it: at the released one, group by group. Where the released
number is less than three standard deviations of its noise nobody may count at all: then there is no error to state
(None), and the interval is all of the bounds. If nothing is assumed about who counts with which weight, the error is
that of the worst rows; after an answer None where that is the width of the bounds, which says nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, ClassVar, Self, cast

import numpy as np

from epsilons.accuracy.additive import Bars, Effect, Errors, SumAccuracy, facts_of
from epsilons.accuracy.gaussian import normal_noises
from epsilons.accuracy.intervals import GaussianRatioBar, LevelsRatioBar, RatioBar, laplace_quantile
from epsilons.preferences import Levels
from epsilons.statistics.additive import LEAST_PART
from epsilons.statistics.base import Answer, Floats, Question, Rest, Weighting
from epsilons.statistics.moments import Moments
from epsilons.statistics.total import CENTRED, Mean
from epsilons.summaries.arrays import STEPS

#: Equally likely places of two independent noises, a lattice of Fibonacci's numbers; and Laplace noises of scale 1.
_PLACES = ((np.outer((1, 610), np.arange(987)) % 987) + 0.5) / 987
_LAPLACE_PAIRS = laplace_quantile(_PLACES)
#: A mean of rows has no error where their noisy number is less than so many standard deviations of its noise.
CERTAIN = 3
#: So many of the largest noises are told apart; what the others add up to is as good as normal.
_TOLD_APART = 4


def find_least_weight(effect: Effect) -> Any:
    """The least weight that a person may have over the largest; 0 where somebody may have none."""
    weights = effect.multipliers.min(axis=-1) / np.maximum(effect.multipliers.max(axis=-1), 1e-300)
    return np.where((effect.sampled and effect.coin_spread > 0) | (effect.left_out > 0), 0.0, weights)


class RatioAccuracy(SumAccuracy):
    """Of means over a private number of rows: one noisy number over another."""

    worst_after: ClassVar[bool] = True

    def noise(self, effect: Effect, moments: Moments) -> Any:
        """The mean square error of the answer itself at evenly spread noises, cut off at the bounds."""
        half, places = effect.facts.max_error / 2, _normal_pairs() if effect.gaussian else _LAPLACE_PAIRS
        noises = [np.asarray(scale)[..., None] * noise for scale, noise in zip(effect.scales, places, strict=True)]
        rows, one_row = np.asarray(moments.rows)[..., None], np.asarray(effect.factor)[..., None] / effect.people
        off, (sum_off, rows_off) = moments.off / half, _centred(effect, *noises)
        found = np.clip((off * rows + sum_off) / np.maximum(rows + rows_off, one_row), -1.0, 1.0)
        return half**2 * ((found - off) ** 2).mean(axis=-1)

    def worst_before(self, effect: Effect) -> Any:
        """Rows of two weights, all of them at one bound or all at the other."""
        alike = np.sqrt(find_least_weight(effect))
        return (effect.facts.max_error * (1 - alike) / (1 + alike)) ** 2

    def worst_errors(self, question: Question, effect: Effect) -> Floats:
        """If as many rows count as was guessed, which may all be of the least weight."""
        statistic, moments = cast(Mean, question.statistic), effect.facts.moments
        rows = moments.rows * np.maximum(effect.multipliers.min(axis=-1), 1e-9)
        places = [replace(moments, off=statistic.max_error * place, rows=rows) for place in (0.0, 0.25, 0.5)]
        noise = np.max([self.noise(effect, place) for place in places], axis=0)
        error = np.minimum(np.sqrt(self.worst_before(effect) + noise), statistic.max_error)
        return cast(Floats, np.where(find_least_weight(effect) > 0, error, statistic.max_error))

    def stated_error(
        self, question: Question, levels: Levels, weighting: Weighting, answer: Answer, predicted: Errors
    ) -> Errors:
        return self.state(question, Effect.of(question, levels, weighting), answer)

    def state(self, question: Question, effect: Effect, answer: Answer) -> Errors:
        """Of each group from its own number of rows and mean; None where nobody may count."""
        scope = question.statistic.scope
        assert scope is not None
        return scope.arrange([self._stated(question, one) for one in _see(question, effect, answer)])

    def _stated(self, question: Question, seen: RowsSeen) -> float | None:
        effect, most = seen.effect, seen.statistic.max_error
        if not seen.certain:
            return None
        if math.isinf(question.assume):
            # Where some who count may weigh nothing, their mean may be anything.
            if find_least_weight(effect) == 0:
                return None
            error = math.sqrt(seen.shift**2 + self.noise(effect, seen.moments))
            return error if error < most else None
        return float(self.expected_errors(question, effect, seen.moments))

    def error_bars(self, question: Question, levels: Levels, weighting: Weighting, answer: Answer) -> Bars:
        return self.bars(question, Effect.of(question, levels, weighting), answer, 1 / weighting.one)

    def bars(self, question: Question, effect: Effect, answer: Answer, step: float) -> tuple[RatioBar, ...]:
        """One for each group; if nothing is assumed about who counts, whatever weights that differ can do."""
        return tuple([one.bar(question, step) for one in _see(question, effect, answer)])


@lru_cache(maxsize=1)
def _normal_pairs() -> Any:
    return normal_noises(_PLACES)


def _centred(effect: Effect, first: Any, second: Any) -> list[Any]:
    """(sum of (x - c)/h, number of rows) of the two sums of a mean; of their noises, the noises of these."""
    form = cast(Mean, effect.facts.statistic).form
    return [(one * first + other * second) / whole for one, other, whole in CENTRED[form]]


def _see(question: Question, effect: Effect, answer: Answer) -> list[RowsSeen]:
    """What the released sums say, group by group."""
    assert answer.sums is not None
    return [RowsSeen.of(question, effect, pair) for pair in zip(*answer.sums, strict=True)]


@dataclass(frozen=True, eq=False)
class RowsSeen:
    """What the two noisy sums of a mean of rows say: of everyone's (x - c)/h and of their rows, per person."""

    effect: Effect
    sum: float
    rows: float
    #: The standard deviation of the noise in the number of rows, and what is then known of a person's part: also the
    #: most that its variance may be.
    rows_noise: float
    moments: Moments
    most: float

    @classmethod
    @lru_cache(maxsize=64)
    def of(cls, question: Question, effect: Effect, pair: tuple[Fraction, ...]) -> RowsSeen:
        statistic, each = cast(Mean, question.statistic), float(effect.factor) / effect.people
        sum_, rows = (float(number) * each for number in _centred(effect, *pair))
        first, second = effect.scales
        noises = [_centred(effect, *alone) for alone in ((first, 0.0), (0.0, second))]
        rows_noise = math.sqrt(2) * math.hypot(*(noise for _, noise in noises))
        enough = max(rows, rows_noise, each)
        off = min(abs(sum_) / enough, 1.0)
        # Values with this mean, or one two errors nearer to the centre, have no more variance than this.
        doubt = math.sqrt(2) * math.hypot(*(one - off * other for one, other in noises)) / enough
        most = statistic.max_error**2 / 4 * (1 - max(off - 2 * doubt, 0.0) ** 2)
        guessed = (statistic.max_error / 4 if question.spread is None else question.spread) ** 2
        assert statistic.scope is not None
        likely = max(min(guessed, most), LEAST_PART * most if question.spread is None else 0.0)
        variance = likely / min(enough / statistic.scope.average, 1.0)
        known = replace(effect.facts.moments, variance=variance, off=off * statistic.max_error / 2, rows=enough)
        return cls(effect, sum_, rows, rows_noise, known, most if question.spread is None else guessed)

    @property
    def statistic(self) -> Mean:
        return cast(Mean, self.effect.facts.statistic)

    @property
    def certain(self) -> bool:
        """Whether somebody counts for certain."""
        return self.rows >= CERTAIN * self.rows_noise

    @property
    def shift(self) -> float:
        """How far weights that differ move this mean at most: the heavy rows at one bound, the others at the other."""
        p, alike = 0.5 + self.moments.off / self.statistic.max_error, float(find_least_weight(self.effect))
        return self.statistic.max_error * max(p - p * alike / (p * alike + 1 - p), p / (p + (1 - p) * alike) - p)

    def bar(self, question: Question, step: float) -> RatioBar:
        """The same in the units of the column, and of weights as they are; numbers of rows are a `step` apart."""
        effect, statistic, scope = self.effect, self.statistic, self.statistic.scope
        assert scope is not None
        half, weight = statistic.max_error / 2, effect.people / float(effect.factor)
        first, second = (float(scale) * weight for scale in effect.scales)
        paired = statistic.form == "pair"
        noise = (half * first / STEPS, second if not paired else 0.0)
        coins = effect.fractions * (1 - effect.fractions) if effect.sampled else 0.0
        average = weight / effect.people
        differ = float(((effect.fractions - average) ** 2 + coins) @ effect.sizes) + effect.left_out * average**2
        # Of one person: rows that count may all be alike, and there may be more of them than their noisy number.
        spread = math.sqrt(self.most * (self.rows_noise + max(self.rows, 0.0)) * scope.rows)
        luck, population = spread * math.sqrt(differ), spread * math.sqrt(effect.people) * average
        nothing = math.isinf(question.assume)
        # What is told of levels' means is allowed for also where the answer shows a smaller spread than was guessed.
        told = math.sqrt(effect.facts.moments.variance) * (self.rows_noise + max(self.rows, 0.0))
        apart = 0.0 if nothing else question.assume
        related = apart and apart * max(spread, told) * float(effect.drift) * weight
        kind: Callable[..., RatioBar] = GaussianRatioBar if effect.gaussian else RatioBar
        if isinstance(effect, LevelsEffect) and not effect.gaussian:
            kind = partial(LevelsRatioBar, parts=effect.parts, small=effect.small)
        return kind(
            statistic.bounds,
            half * self.sum * weight,
            self.rows * weight,
            *noise,
            luck=0.0 if nothing else luck,
            population=population,
            grid=0.0 if paired else step,
            bound=related,
            alike=float(find_least_weight(effect) if nothing else 1.0) if self.certain else 0.0,
            paired=paired,
        )


@dataclass(frozen=True, eq=False)
class LevelsEffect(Effect):
    """Of levels whose sums were weighted and added up: everyone of a level counts with its weight, on average 1.

    Each level has a noise of its own. `scales` and `laplace` are those of one Laplace noise of the variance that all of
    them have together; `parts` are the levels' own, as parts of it, the largest first, and `small` is what all smaller
    ones add up to, which is as good as normal.
    """

    parts: tuple[float, ...] = field(default=(), kw_only=True)
    small: float = field(default=0.0, kw_only=True)

    @classmethod
    def mixing(cls, question: Question, levels: Levels, shares: Floats, noises: Floats) -> Self:
        """Where a level's part of the answer is its share: for each of its people share * everyone/its people.

        `noises` are the scales of each part's noise, level by level.
        """
        facts, sizes, people = facts_of(question, levels.size), np.array(levels.sizes, float), levels.size
        weights = shares * people / sizes
        each = noises * weights / facts.divisor
        together = np.sqrt((each**2).sum(axis=1))
        scales = tuple(together.tolist())
        laplace = tuple(unit * scale for (unit, _, _), scale in zip(facts.parts, scales, strict=True))
        parts = np.sort(each[0] / max(together[0], 1e-300))[::-1]
        known = (facts, sizes, people, levels.left_out, weights, 1.0, laplace, scales, False, Rest.OMITTED)
        gaussian = question.measure.delta is not None
        apart = tuple(parts[:_TOLD_APART][parts[:_TOLD_APART] > 0].tolist())
        small = float(np.sqrt((parts[_TOLD_APART:] ** 2).sum()))
        return cls(*known, gaussian, parts=() if gaussian else apart, small=0.0 if gaussian else small)
