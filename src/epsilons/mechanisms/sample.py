"""A random sample in which open people are likelier than strict ones."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from epsilons.errors import PlanError
from epsilons.guarantee import to_epsilon
from epsilons.mechanisms.base import Charges, register
from epsilons.mechanisms.linear import Linear, Weighting, lattice_distribution
from epsilons.mechanisms.thresholds import resolve_threshold
from epsilons.noise.entropy import Entropy
from epsilons.noise.exact import keep_chance
from epsilons.preferences import Levels
from epsilons.statistics.base import Additive
from epsilons.statistics.order import Order, SortedCells
from epsilons.statistics.people import ALWAYS, ArrayPeople, People
from epsilons.statistics.question import Question


@lru_cache(maxsize=64)
def _chances(grants: tuple[int | None, ...], t: int) -> list[int]:
    return [ALWAYS if g is None else keep_chance(g, t) for g in grants]


@register
@dataclass(frozen=True)
class Sample(Linear):
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

    threshold: float | str = "best"
    rescale: bool = False

    name: ClassVar[str] = "sample"
    samples: ClassVar[bool] = True
    _one: ClassVar[int] = 1

    def weigh(self, question: Question, levels: Levels) -> Weighting:
        """Everyone kept counts in full, at the threshold."""
        return Weighting((1,) * len(levels.grants), 1, Fraction(resolve_threshold(self, question, levels)))

    def chances(self, question: Question, levels: Levels) -> list[int]:
        """The chance of staying in the sample, per level, out of 2^64 and rounded down."""
        return _chances(levels.grants, resolve_threshold(self, question, levels))

    def charge(self, question: Question, levels: Levels) -> Charges:
        t = resolve_threshold(self, question, levels)
        return tuple(None if g is None else min(g, t) for g in levels.grants)

    def used(self, question: Question, levels: Levels) -> float:
        return float(self.fractions(question, levels) @ np.array(levels.sizes, float)) / levels.people

    def simulate(self, question: Question, people: People, entropy: Entropy, size: int) -> NDArray[np.float64]:
        return np.array([self.draw(question, people, entropy).value for _ in range(size)], float)

    def _weight(self, question: Question, levels: Levels) -> Fraction:
        chances = self.chances(question, levels)
        return Fraction(sum(c * n for c, n in zip(chances, levels.sizes, strict=True)), ALWAYS)

    def _tally(self, question: Question, people: People, entropy: Entropy) -> list[NDArray[np.int64]]:
        assert isinstance(question.statistic, Additive)
        return people.sampled_tally(question.statistic, self.chances(question, people.levels), entropy)

    def _cells(self, question: Question, people: People, entropy: Entropy) -> list[SortedCells]:
        assert isinstance(question.statistic, Order)
        return people.grouped_sampled_cells(question.statistic, self.chances(question, people.levels), entropy)

    def _rate(self, question: Question, levels: Levels) -> Fraction:
        return Fraction(resolve_threshold(self, question, levels))

    def fractions(self, question: Question, levels: Levels) -> NDArray[np.float64]:
        """The chances as floats, for predictions: (e^eps - 1)/(e^t - 1), written so that no exponential overflows."""
        return self.fractions_at(levels, to_epsilon(resolve_threshold(self, question, levels)))

    def fractions_at(self, levels: Levels, t: Any) -> NDArray[np.float64]:
        """The same at a threshold, or at each of a column of them."""
        epsilons = np.minimum([to_epsilon(g) for g in levels.grants], t)
        chances: NDArray[np.float64] = np.exp(epsilons - t) * np.expm1(-epsilons) / np.expm1(-t)
        return chances

    def _quantile_weights(self, question: Question, levels: Levels) -> tuple[list[float], list[float]]:
        t = to_epsilon(resolve_threshold(self, question, levels))
        return (self.fractions(question, levels) * levels.sizes).tolist(), [t] * len(levels.sizes)

    def distribution(self, question: Question, people: People) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """A mixture over every sample that can be drawn: 2^n of them."""
        if not isinstance(people, ArrayPeople) or len(people.values) > 12:
            raise PlanError("Too many samples to list.", rule="Exact distributions are for at most 12 people.")
        chances = [chance / ALWAYS for chance in self.chances(question, people.levels)]
        person = [chances[code] for code in people.roster.codes]
        samples = []
        for choice in itertools.product((False, True), repeat=len(person)):
            weight = math.prod(c if k else 1 - c for c, k in zip(person, choice, strict=True))
            if weight > 0:
                samples.append((weight, np.array(choice)))
        statistic, codes, count = question.statistic, people.roster.codes, len(people.levels.grants)
        if isinstance(statistic, Additive):
            mixture = [(w, statistic.tally(people.values[kept], codes[kept], count)) for w, kept in samples]
            weighting = self.weighting(question, people.levels)
            return lattice_distribution(question, weighting, mixture, people.levels.people)
        assert isinstance(statistic, Order)
        total = np.zeros(statistic.points)
        for weight, kept in samples:
            cells = statistic.summarize(people.values[kept], codes[kept], count)
            place, chance = self.sampler(question, people.levels, cells).probabilities()
            total[place] += weight * chance
        return statistic.outcomes(), np.log(total)

    def options(self, question: Question, levels: Levels) -> dict[str, Any]:
        return {"threshold": to_epsilon(resolve_threshold(self, question, levels)), "rescale": self.rescale}

    def explain(self, question: Question, levels: Levels) -> str:
        t = to_epsilon(resolve_threshold(self, question, levels))
        return f"a random sample, likelier the more was granted, at {t:.4g}"
