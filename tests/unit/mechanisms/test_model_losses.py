"""Exact losses of regression under every mechanism, in rational numbers; planted bugs must be refuted."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pytest

from epsilons.guarantee import NANO
from epsilons.mechanisms.base import Charges, Weighing, create, weighting_of
from epsilons.mechanisms.sample import Sample
from epsilons.mechanisms.stretching import Stretching
from epsilons.mechanisms.weighted import Weighted
from epsilons.noise.entropy import ALWAYS
from epsilons.preferences import Levels, roster_of
from epsilons.statistics.additive import Part, weighted_sums
from epsilons.statistics.base import Question, Rest, Weighting, proportional
from epsilons.statistics.logistic import LogisticRegression
from epsilons.statistics.regression import LinearRegression, Regression
from epsilons.summaries import arrays
from epsilons.summaries.arrays import Rows
from epsilons.summaries.models import MODEL_STEPS as STEPS
from support.small_worlds import at_max

LINEAR = LinearRegression(("a", "b"), ((-1.0, 1.0),) * 2, (-1.0, 1.0))
LOGISTIC = LogisticRegression(("a", "b"), ((-1.0, 1.0),) * 2, (-1, 1))
ROSTERS = ((0.7, 0.7), (0.05, 0.2, 1.0), (0.3, math.inf, 1.5))
SUMS = ("minimum", "threshold", "stretching", "weighted")
ABSENT = (math.nan,) * 3


def rows_of(statistic: Regression) -> list[tuple[float, ...]]:
    return list(itertools.product((-1.0, 0.0, 1.0), (-1.0, 1.0), (-1.0, 1.0)))


def pairs(statistic: Regression, neighbors: str) -> list[tuple[tuple[float, ...], tuple[float, ...]]]:
    """A person's row and what may stand in its place; "replace" allows a missing row too."""
    others = [ABSENT] if neighbors == "absent" else [*rows_of(statistic), ABSENT]
    return [(row, other) for row in rows_of(statistic) for other in others if row != other]


def worst_ratios(mechanism: Weighing, question: Question, epsilons: tuple[float, ...]) -> list[Fraction]:
    """Loss over charge for everyone with a finite epsilon: exactly inverse scale * weight * L1 distance of the sums.

    A discrete Laplace in each cell attains that loss at every outcome beyond both sums in all cells.
    """
    statistic, roster = question.statistic, roster_of(list(epsilons))
    assert isinstance(statistic, Regression)
    weighting, part = weighting_of(mechanism, question, roster.levels), statistic.parts[0]
    inverse = weighting.inverse_scale(part.share, part.reach[question.neighbors])
    charges = mechanism.charge(question, roster.levels)
    ratios = []
    for person, epsilon in enumerate(epsilons):
        if math.isinf(epsilon):
            continue
        charge = charges[roster.codes[person]]
        assert charge is not None
        assert charge <= round(epsilon * NANO)
        worst, sums = Fraction(0), {}
        for own in (*rows_of(statistic), ABSENT):
            data = np.array([own if i == person else (0.5, -1.0, 1.0) for i in range(len(epsilons))])
            rows = Rows(data[:, :-1], data[:, -1])
            counts = arrays.tally(statistic, rows, roster.codes, len(roster.levels.grants))[0]
            sums[own] = weighted_sums(counts, weighting.weights)
        for row, other in pairs(statistic, question.neighbors):
            distance = sum(abs(a - b) for a, b in zip(sums[row], sums[other], strict=True))
            worst = max(worst, distance * inverse)
        ratios.append(worst * NANO / charge if charge else (Fraction(0) if worst == 0 else Fraction(10**9)))
    return ratios


WHOLE = replace(LINEAR, complete=True), replace(LOGISTIC, complete=True)


@pytest.mark.parametrize(
    "statistic", [LINEAR, LOGISTIC, *WHOLE], ids=lambda s: f"{s.name}{'-complete' if s.complete else ''}"
)
@pytest.mark.parametrize("neighbors", ["absent", "replace"])
@pytest.mark.parametrize("name", SUMS)
def test_nobody_loses_more_than_they_are_charged(name: str, neighbors: str, statistic: Regression) -> None:
    for epsilons in ROSTERS:
        ratios = worst_ratios(at_max(name, statistic), Question(statistic, neighbors), epsilons)  # type: ignore[arg-type]
        assert max(ratios) <= 1
        assert max(ratios) > 0.9  # the audit sees nearly all of what is lost


# Planted bugs --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WrongReach(LinearRegression):
    """The 2 of 2yx forgotten."""

    @property
    def parts(self) -> tuple[Part, ...]:
        d = self.width
        return (replace(super().parts[0], reach=dict.fromkeys(("absent", "replace"), (d * d + d) * STEPS**2)),)


@dataclass(frozen=True)
class CountedThoughPrivate(LinearRegression):
    """The reach with a public number of people, where their number is released with noise."""

    @property
    def parts(self) -> tuple[Part, ...]:
        return (replace(super().parts[0], reach=WHOLE[0].parts[0].reach),)


@dataclass(frozen=True)
class ReplacedAsAbsent(LinearRegression):
    @property
    def parts(self) -> tuple[Part, ...]:
        part = super().parts[0]
        return (replace(part, reach=dict.fromkeys(part.reach, part.reach["absent"])),)


@dataclass(frozen=True)
class TenPercentSmall(LinearRegression):
    @property
    def parts(self) -> tuple[Part, ...]:
        part = super().parts[0]
        return (replace(part, reach={k: v * 10 // 11 for k, v in part.reach.items()}),)


@dataclass(frozen=True)
class Unclipped(LinearRegression):
    """Targets beyond the bounds are not cut."""

    summary: ClassVar[str] = "unclipped"  # type: ignore[misc]


def multiply_unclipped(statistic: Any, rows: Any, codes: Any, levels: int, _: Any) -> list[Any]:
    """Products of targets half as large again as their bounds, of features within (-1, 1)."""
    z = np.column_stack([np.ones(len(codes)), rows.features, 1.5 * np.asarray(rows.target, float)]) * STEPS
    z[np.isnan(z).any(axis=1)] = 0
    sums = np.array([z[codes == level].T @ z[codes == level] for level in range(levels)]).astype(np.int64)
    return [statistic.centre_cells(np.stack([factor * sums[:, k, j] for factor, j, k in statistic.terms], axis=1))]


arrays.SUMMARIES["unclipped"] = multiply_unclipped


class InterceptNotShrunk(Stretching):
    """Features and target shrunk, the column of ones not: its cells still count in full."""

    def weigh(self, question: Question, levels: Levels) -> Weighting:
        shrunk = proportional(levels, levels.largest, Rest.SHRUNK)
        return replace(shrunk, weights=(shrunk.one,) * len(shrunk.weights))

    def charge(self, question: Question, levels: Levels) -> Charges:
        return levels.grants


class WeightedPastTheCap(Weighted):
    """Everybody in full at the largest epsilon, charged by what they granted."""

    def weigh(self, question: Question, levels: Levels) -> Weighting:
        return Weighting((1,) * len(levels.grants), 1, Fraction(levels.largest))

    def charge(self, question: Question, levels: Levels) -> Charges:
        return levels.grants


def of(kind: type[LinearRegression]) -> LinearRegression:
    return kind(LINEAR.names, LINEAR.bounds, LINEAR.target_bounds)


BUGS: dict[str, tuple[Weighing, Regression, str]] = {
    "a model's 2 forgotten": (create("minimum", LINEAR), of(WrongReach), "absent"),  # type: ignore[dict-item]
    "a model's people counted": (create("weighted", LINEAR), of(CountedThoughPrivate), "absent"),  # type: ignore[dict-item]
    "a model's replaced person": (create("weighted", LINEAR), of(ReplacedAsAbsent), "replace"),  # type: ignore[dict-item]
    "a model's scale 10% small": (create("stretching", LINEAR), of(TenPercentSmall), "absent"),  # type: ignore[dict-item]
    "a model's targets not cut": (at_max("threshold", LINEAR), of(Unclipped), "absent"),  # type: ignore[dict-item]
    "a model's intercept not shrunk": (InterceptNotShrunk(), LINEAR, "absent"),
    "a model's cap passed": (WeightedPastTheCap(), LOGISTIC, "replace"),
}


@pytest.mark.parametrize("bug", BUGS)
def test_planted_bugs_are_refuted(bug: str) -> None:
    mechanism, statistic, neighbors = BUGS[bug]
    assert max(worst_ratios(mechanism, Question(statistic, neighbors), (0.2, 1.0))) > 1


# Sample: a mixture over who was kept ---------------------------------------------------------------------------------

SMALL = LinearRegression(("a",), ((-1.0, 1.0),), (-1.0, 1.0))


def sample_losses(
    chances: Sequence[int], epsilon: float, statistic: Regression, neighbors: str, epsilons: tuple[float, ...]
) -> list[float]:
    """Each person's largest loss over their rows, the others' rows, and outcomes within and beyond all sums.

    With d = 2 there are five cells. Outcomes are listed in steps of one person's unit: far corners, where a loss is
    largest, are among them.
    """
    roster = roster_of(list(epsilons))
    unit = STEPS**2
    rate = epsilon / (statistic.parts[0].reach[neighbors] / unit)
    grid = np.array(list(itertools.product((-8, -2, 0, 2, 8), repeat=len(statistic.terms))), float)
    corners = [(1.0, 1.0), (-1.0, 1.0), (0.0, -1.0), (math.nan, math.nan)]

    def law(data: list[tuple[float, ...]]) -> np.ndarray:
        total = np.full(len(grid), 0.0)
        for kept in itertools.product((False, True), repeat=len(data)):
            weight = 1.0
            for person, stays in enumerate(kept):
                chance = chances[roster.codes[person]] / ALWAYS
                weight *= chance if stays else 1 - chance
            if weight > 0:
                mask = np.array(kept)
                rows = Rows(np.array(data)[mask, :-1], np.array(data)[mask, -1])
                sums = arrays.tally(statistic, rows, roster.codes[mask], len(chances))[0].sum(axis=0) / unit
                total += weight * np.exp(-rate * np.abs(grid - sums).sum(axis=1))
        return np.log(total)

    worst = []
    for person in range(len(epsilons)):
        largest = 0.0
        for rows in itertools.product(corners[:3], repeat=len(epsilons)):
            data = list(rows)
            for other in corners[3:] if neighbors == "absent" else corners:
                changed = [other if i == person else row for i, row in enumerate(data)]
                largest = max(largest, float(np.abs(law(data) - law(changed)).max()))
        worst.append(largest)
    return worst


@pytest.mark.parametrize("neighbors", ["absent", "replace"])
@pytest.mark.parametrize("threshold", ["max", "mean"])
def test_sample_keeps_everybodys_epsilon(threshold: str, neighbors: str) -> None:
    epsilons, question = (0.3, 1.2), Question(SMALL, neighbors)
    levels = roster_of(list(epsilons)).levels
    mechanism = Sample(threshold)
    t = float(mechanism.options(question, levels)["threshold"])
    chances = weighting_of(mechanism, question, levels).chances
    assert chances is not None
    losses = sample_losses(chances, t, SMALL, neighbors, epsilons)
    charges = [c / NANO for c in mechanism.charge(question, levels) if c is not None]
    assert all(loss <= charge * (1 + 1e-9) for loss, charge in zip(losses, charges, strict=True))
    assert any(loss > 0.9 * charge for loss, charge in zip(losses, charges, strict=True))


def test_sampling_in_proportion_is_refuted() -> None:
    """e/t instead of (exp(e) - 1)/(exp(t) - 1)."""
    losses = sample_losses([ALWAYS // 4, ALWAYS], 1.2, SMALL, "absent", (0.3, 1.2))
    assert losses[0] > 0.3 * 1.01
