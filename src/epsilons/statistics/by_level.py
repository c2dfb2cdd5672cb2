"""Sums that every level releases by itself, each with the noise that its own epsilon pays for.

Levels are public facts of the roster and a person stands at one of them, so each level's parts are one answer of a
mechanism at one epsilon for everyone, and nobody loses more than they granted by all of them (docs/theory.md, "mixed").
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from numpy.typing import NDArray

from epsilons.measure import NANO
from epsilons.noise.entropy import Entropy
from epsilons.preferences import Levels
from epsilons.statistics.additive import Additive, Laplace
from epsilons.statistics.base import Floats, Question
from epsilons.statistics.distributions import Axis, NoisySums, product_distribution
from epsilons.statistics.gaussian import Gaussian, squares
from epsilons.summaries import People

#: Of each level that is not public, and of each part, the law of the noise.
Laws = list[list[Laplace | Gaussian]]


def level_laws(question: Question, levels: Levels) -> Laws:
    """By what each level granted."""
    statistic: Any = question.statistic
    parts, neighbors = statistic.parts, question.neighbors
    if question.measure.delta is not None:
        moved = squares(statistic, neighbors)
        return [[Gaussian(square * Fraction(NANO, grant) ** 2) for square in moved] for grant in levels.finite]
    rates = [part.share / (NANO * part.reach[neighbors]) for part in parts]
    return [[Laplace(rate * grant) for rate in rates] for grant in levels.finite]


def draw_level_sums(statistic: Additive, laws: Laws, people: People, entropy: Entropy) -> list[list[list[int]]]:
    """sums[part][level][cell], each with its noise; public people come last, and have none."""
    sums: list[list[list[int]]] = [part.tolist() for part in statistic.tally(people)]
    for level, own in enumerate(laws):
        for part, law in zip(sums, own, strict=True):
            noise = law.draw(entropy, len(part[level]))
            part[level] = [exact + off for exact, off in zip(part[level], noise, strict=True)]
    return sums


def noisy_level_sums(statistic: Additive, laws: Laws, people: People) -> NoisySums:
    """All that is released: of every level, part and group, but public people."""
    tallied = statistic.tally(people)
    each = [law for own in laws for part, law in zip(statistic.parts, own, strict=True) for _ in range(part.cells)]
    exact = [number for level in range(len(laws)) for part in tallied for number in part[level].tolist()]
    return NoisySums(tuple(each), ((1.0, tuple(exact)),))


def level_distribution(statistic: Additive, levels: Levels, sums: NoisySums) -> tuple[NDArray[Any], Floats]:
    """Of the levels' own sums."""
    private = levels.sizes[: len(levels.finite)]
    facts = [(part, size) for size in private for part in statistic.parts for _ in range(part.cells)]
    axes = [Axis(part.reach["absent"], size, law) for (part, size), law in zip(facts, sums.laws, strict=True)]
    return product_distribution(axes, sums.mixture)


def combine(statistic: Additive, sums: list[list[list[int]]], weights: Floats) -> list[list[Fraction]]:
    """combined[part][cell]: levels added up with a public weight for each."""
    exact = [Fraction(weight) for weight in weights.tolist()]
    return [
        [sum((w * row[cell] for w, row in zip(exact, levels, strict=True)), Fraction(0)) for cell in range(part.cells)]
        for part, levels in zip(statistic.parts, sums, strict=True)
    ]
