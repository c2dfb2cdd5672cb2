"""How far a mean errs whose number of rows is private: a noisy sum divided by a noisy count.

With S the noisy centred sum and N the noisy number of rows, S - (theta - c) N is pure noise at the true mean theta: the
noise of the sum, less (theta - c) times the noise of the count, and the luck of who counts with which weight. The
interval holds every theta at which that difference is no larger than noise of this size would be (Fieller 1954, with
Laplace noise). So it is honest also where few or no rows count; at worst it is all of the bounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from epsilons.accuracy.additive import Effect, LinearAccuracy
from epsilons.accuracy.intervals import ErrorBar, chance_within
from epsilons.preferences import Levels
from epsilons.statistics.base import Answer, Question, Weighting, equivalent_scale
from epsilons.statistics.total import STEPS, Mean

_HALVINGS = 20
#: Laplace noise of scale 1 in as many equally likely parts as matter for a mean square.
_PARTS = (np.arange(1000) + 0.5) / 1000
_LAPLACE_NODES = np.where(_PARTS < 0.5, np.log(2 * _PARTS), -np.log(2 - 2 * _PARTS))


@dataclass(frozen=True)
class RatioBar:
    """A noisy sum of (x - centre), a noisy number of rows, and how far both err.

    `sum_scale` and `rows_scale` are the Laplace scales; `luck` and `population` standard deviations of the difference
    S - (theta - c) N that come from who counts with which weight, and from who is on the roster at all; `grid` is the
    step between possible numbers of rows.
    """

    bounds: tuple[float, float]
    sum: float
    rows: float
    sum_scale: float
    rows_scale: float
    luck: float
    population: float
    grid: float

    def interval(self, value: float, confidence: float, population: bool) -> tuple[float, float]:
        """Every mean within the bounds that the noisy sum and number of rows do not contradict."""
        low, high = self.bounds
        value = min(max(value, low), high)
        normal = math.hypot(self.luck, self.population) if population else self.luck
        return self._end(value, low, confidence, normal), self._end(value, high, confidence, normal)

    def _end(self, inside: float, outside: float, confidence: float, normal: float) -> float:
        if self._possible(outside, confidence, normal):
            return outside
        for _ in range(_HALVINGS):
            middle = (inside + outside) / 2
            if self._possible(middle, confidence, normal):
                inside = middle
            else:
                outside = middle
        return outside

    def _possible(self, mean: float, confidence: float, normal: float) -> bool:
        away = mean - sum(self.bounds) / 2
        scales = (self.sum_scale, abs(away) * self.rows_scale)
        coarse = abs(away) * self.grid if self.rows_scale < 3 * self.grid else 0.0
        return chance_within(scales, normal, abs(self.sum - away * self.rows) - coarse) <= confidence

    def to_dict(self) -> dict[str, Any]:
        """Plain values that survive JSON."""
        return {**self.__dict__, "bounds": list(self.bounds)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> RatioBar:
        """The inverse of `to_dict`."""
        return cls(**{**data, "bounds": tuple(data["bounds"])})


class RatioAccuracy(LinearAccuracy):
    """Of means over a private number of rows: the last part is that number."""

    def noise(self, question: Question, effect: Effect) -> Any:
        """With the number of rows off by a part t, every noise is divided by 1 + t.

        Few rows now and then cost more than many rows save. An answer that is nothing but noise is cut off at one of
        its ends.
        """
        denominator = effect.scales[-1] / effect.facts.expected_rows
        off = np.asarray(denominator)[..., None] * _LAPLACE_NODES
        before = sum(2 * np.asarray(scale)[..., None] ** 2 for scale in effect.laplace[:-1])
        rows = np.asarray(effect.laplace[-1])[..., None] * _LAPLACE_NODES
        square = (before + rows**2) / np.maximum(1 + off, 1e-9) ** 2
        return (square / (1 + square / effect.facts.clipped_rmse**2)).mean(axis=-1)

    def bars(
        self, question: Question, levels: Levels, weighting: Weighting, answer: Answer
    ) -> tuple[ErrorBar, ...] | None:
        """One bar for each group; None where weights differ and nothing may be assumed about who counts."""
        statistic = cast(Mean, question.statistic)
        assert statistic.scope is not None
        assert answer.sums is not None
        fractions, sizes = weighting.fractions, np.array(levels.sizes, float)
        average = float(fractions @ sizes) / levels.people
        coins = fractions * (1 - fractions) if weighting.coins is not None else np.zeros(len(sizes))
        uneven = float(((fractions - average) ** 2 + coins) @ sizes) + levels.left_out * average**2
        if question.assume == "nothing" and uneven > 0:
            return None
        low, high = statistic.bounds
        half = (high - low) / 2
        deviation = half if question.spread is None else question.spread
        scales = []
        for part in statistic.parts:
            inverse = float(weighting.inverse_scale(part.share, part.reach[question.neighbors]))
            scales.append(float(equivalent_scale(inverse)) / weighting.one)
        bars = []
        for sum_, rows in zip(*answer.sums, strict=True):
            # Rows that count, per person of average weight; rows of one person may all be alike.
            each = max(float(rows), 0.0) / max(average * levels.people, 1e-300) * statistic.scope.rows
            bars.append(
                RatioBar(
                    bounds=statistic.bounds,
                    sum=half * float(sum_) / STEPS,
                    rows=float(rows),
                    sum_scale=half * scales[0] / STEPS,
                    rows_scale=scales[1],
                    luck=deviation * math.sqrt(each * uneven),
                    population=deviation * math.sqrt(each * levels.people) * average,
                    grid=1 / weighting.one,
                )
            )
        return tuple(bars)
