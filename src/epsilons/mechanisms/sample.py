"""A random sample in which open people are likelier than strict ones."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, cast

import numpy as np

from epsilons.accuracy.weightings import Weightings
from epsilons.guarantee import NANO
from epsilons.mechanisms.base import register, weighting_of
from epsilons.mechanisms.threshold import Thresholded
from epsilons.noise.entropy import ALWAYS
from epsilons.noise.weighing import keep_chance
from epsilons.preferences import Levels
from epsilons.statistics.base import Floats, Question, Weighting


@dataclass(frozen=True)
class Coins:
    """A person with grant e stays in a sample at threshold t with probability (exp(e) - 1)/(exp(t) - 1), at most 1."""

    grants: tuple[int | None, ...]
    t: int

    @cached_property
    def chances(self) -> tuple[int, ...]:
        """By level, out of 2^64 and rounded down: what draws use."""
        return tuple(ALWAYS if grant is None else keep_chance(grant, self.t) for grant in self.grants)

    @cached_property
    def expected(self) -> Floats:
        """By level, in floats: what predictions use."""
        return expected_to_stay(self.grants, self.t / NANO)


def expected_to_stay(grants: Sequence[int | None], t: Any) -> Floats:
    """(e^eps - 1)/(e^t - 1) at a threshold, or at each of a column, written so that no exponential overflows."""
    epsilons = np.minimum([math.inf if grant is None else grant / NANO for grant in grants], t)
    return cast(Floats, np.exp(epsilons - t) * np.expm1(-epsilons) / np.expm1(-t))


@register
@dataclass(frozen=True)
class Sample(Thresholded):
    """Keep each person with a chance set by their epsilon, then answer at a threshold.

    Definition: keep i with probability (e^eps_i - 1)/(e^t - 1) if eps_i < t, else 1; run a t-DP mechanism on those
                kept. t is "best" (default), "max", "mean" or a number.
    Theorem:    Jorgensen et al. 2015, Theorem 5. Under "replace" the inner mechanism is t-private both when a person is
                removed and when one is replaced; Sample is then eps_i-private under both.
    Guarantee:  eps_i-PDP, one person absent or replaced, as asked. Coins are fresh for every answer.
    Cost:       min(eps_i, t) charged to each person.
    Error:      what the sample leaves out, its coins, and the noise, at the publicly guessed density or spread. Counts
                and sums stay as they are (too small) unless `rescale=True`, which assumes that preferences say nothing
                about values. A mean divides by the expected size of the sample; the real size is private.
    """

    name: ClassVar[str] = "sample"
    coins: ClassVar[bool] = True
    bounded_range: ClassVar[bool] = False

    def weigh(self, question: Question, levels: Levels) -> Weighting:
        rest, t = self.rest, self.at(question, levels)
        return Weighting((1,) * len(levels.grants), 1, Fraction(t), rest, Coins(levels.grants, t))

    def weigh_many(self, levels: Levels, thresholds: Floats) -> Weightings:
        staying = expected_to_stay(levels.grants, thresholds[:, None] / NANO)
        return Weightings(staying, thresholds, 1, self.rest, sampled=True)

    def explain(self, question: Question, levels: Levels) -> str:
        t = question.tell_loss(weighting_of(self, question, levels).rate)
        return f"a random sample, likelier the more was granted, at {t}"
