"""How far a number errs that levels gave each by itself, once public weights have mixed their means."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np

from epsilons.accuracy.additive import uneven
from epsilons.accuracy.gaussian import gaussian_model
from epsilons.accuracy.intervals import ErrorBar, ErrorModel, cut_noise
from epsilons.accuracy.relation import LevelAnswer, Relation, contradicts
from epsilons.preferences import Levels
from epsilons.statistics.additive import Additive
from epsilons.statistics.base import Answer, Floats, Question
from epsilons.statistics.moments import Moments
from epsilons.statistics.total import Mean


@dataclass(frozen=True, eq=False)
class MixedMeans:
    """What mixing does: each level's share of the answer, and the Laplace scale in each level's own mean."""

    question: Question
    levels: Levels
    shares: Floats
    scales: Floats

    @cached_property
    def statistic(self) -> Additive:
        return cast(Additive, self.question.statistic)

    @cached_property
    def sizes(self) -> Floats:
        return np.array(self.levels.sizes, float)

    @cached_property
    def total(self) -> int:
        """What turns a mean into the answer: nothing for a mean, the number of people for totals."""
        return self.levels.size // self.statistic.divisor(self.levels.size)

    @cached_property
    def noises(self) -> tuple[float, ...]:
        """The Laplace scales, or those of Gaussian noises as large, of the levels' noises in the answer."""
        return tuple(float(scale) for scale in self.total * self.shares * self.scales if scale > 0)

    @cached_property
    def drift(self) -> float:
        """How far a mean is off at most if levels' expected means lie up to 1 from everyone's."""
        weights = self.shares * self.levels.size / self.sizes
        return float(uneven(weights, self.sizes, self.levels.left_out)) / self.levels.size

    def error(self, moments: Moments) -> float:
        """RMSE of answers that are cut to what is possible."""
        low, high = self.statistic.limits(self.levels.size)
        luck, _, bound = self.off(moments)
        noise = cut_noise(math.hypot(*self.noises), high - low)
        return min(math.sqrt(luck**2 + bound**2 + noise), float(high - low))

    def worst_bias(self) -> float:
        """The largest error before noise over all values within bounds."""
        low, high = self.statistic.extremes
        left_out = float(np.abs(self.shares - self.sizes / self.levels.size).sum())
        return self.total * (high - low) / 2 * (left_out + self.levels.left_out / self.levels.size)

    def off(self, moments: Moments) -> tuple[float, float, float]:
        """All but the noise: (luck of who stands where, of who is on the roster, a bound on what relations may do)."""
        levels, worst = self.levels, self.worst_bias()
        population = self.total * math.sqrt(moments.variance / levels.size)
        if math.isinf(self.question.assume):  # whatever values people have, luck or not
            return 0.0, population, worst
        luck = moments.variance * max(0.0, float((self.shares**2 / self.sizes).sum()) - 1 / levels.size)
        # The spread in which distances are told, or of a count the one that goes with it.
        statistic = self.statistic
        told = math.sqrt(moments.variance) if statistic.one_each else statistic.related(self.question)[1]
        bound = self.question.assume * told * self.total * self.drift
        return self.total * math.sqrt(luck), population, min(bound, worst)

    def shown(self, number: float, part: float = 1.0) -> Moments:
        """What a released number says of one person's part, two errors nearer to the middle, or a part of that."""
        guessed = self.statistic.guess(self.question)
        luck, _, _ = self.off(guessed)
        doubt = math.hypot(luck, *(math.sqrt(2) * scale for scale in self.noises))
        return self.statistic.learn(self.question, guessed, number / self.total, part * doubt / self.total)

    def bars(self, answer: Answer) -> tuple[ErrorBar, ...]:
        limits, step = self.statistic.limits(self.levels.size), self._step()
        make = ErrorModel if self.question.measure.delta is None else gaussian_model
        noise = math.sqrt(2) * math.hypot(*self.noises)

        def bar(number: float) -> ErrorBar:
            moments = self.shown(number)
            errors = self.off(replace(moments, variance=self._vary_most(moments)))
            # Beside an error of several steps it does not matter that noises are whole.
            grid = step if math.hypot(noise, errors[0]) < 3 * step else 0.0
            return make(self.noises, *errors, 1.0, 0.0, grid, limits=limits)

        return tuple(map(bar, answer.numbers))

    def _vary_most(self, moments: Moments) -> float:
        """Of one person at most: of ones at any share from which related levels could have led to what was shown."""
        if not self.statistic.one_each or math.isinf(self.question.assume):
            return moments.most
        shown = share = (1 - math.sqrt(max(1 - 4 * moments.most, 0.0))) / 2
        for _ in range(60):  # towards a half, where a spread is that of more ones
            share = min(0.5, shown + self.question.assume * math.sqrt(share * (1 - share)) * self.drift)
        return share * (1 - share)

    def _step(self) -> float:
        """How far one step of a level's noise, which is whole, moves the answer at most."""
        steps = self.total * self.shares * self.statistic.units[0] / self.sizes
        return float(steps[: len(self.levels.finite)].max())  # public people come last


def levels_differ(
    question: Question, rows: Sequence[Mapping[str, Any]], left_out: int, among: int, means: Iterable[float]
) -> bool:
    """Whether levels differ more than was assumed in one of several means of rows, whichever of these it is."""
    found = (compare_rows(question, rows, float(mean), left_out) for mean in means)
    return all(contradicts(one, question.assume, among) for one in found)


def compare_rows(question: Question, rows: Sequence[Mapping[str, Any]], mean: float, left_out: int) -> Relation:
    """How far levels differ, if this is the mean: in (x - mean) of a person's rows, as a part of how many rows count.

    That is what is assumed of a mean of rows. Of each level sum(x - c) less (mean - c) times its number of rows tells
    it. (x - mean)^2 is no more than the straight line between its values at the bounds, and so what both sums leave
    possible of it, two errors up, bounds the luck. What is unknown of how many rows count makes all distances smaller.
    """
    statistic, names = cast(Mean, question.statistic), ("people", "sum", "rows", "sum_noise", "rows_noise")
    (low, high), half, scope = statistic.bounds, float(statistic.half), statistic.scope
    assert scope is not None
    people, sums, counts, sum_noise, rows_noise = np.array([[row[name] for name in names] for row in rows], float).T
    most = counts.sum() + 2 * float(np.hypot.reduce(rows_noise)) + left_out * scope.rows
    each, away = max(most / (people.sum() + left_out), 1e-9) * people, mean - float(statistic.middle)
    above, below = (np.maximum(half * counts + s + 2 * (half * rows_noise + sum_noise), 0.0) for s in (sums, -sums))
    square = scope.rows * ((high - mean) ** 2 * above + (mean - low) ** 2 * below) / (high - low)
    answers, noises = (sums - away * counts) / each, np.hypot(sum_noise, away * rows_noise) / each / math.sqrt(2)
    told = zip(rows, answers.tolist(), (square / each**2).tolist(), noises.tolist(), strict=True)
    found = [LevelAnswer(row["level"], row["people"], off, row["weight"], luck, b) for row, off, luck, b in told]
    return Relation(tuple(found), statistic.related(question)[1], left_out=left_out)
