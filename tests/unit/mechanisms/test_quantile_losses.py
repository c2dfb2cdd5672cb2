"""Quantiles, where a person who is absent is left out and moves the score by max(q, 1-q) of their weight.

The losses are enumerated at that limit, which is reached, and beyond it, where each wrong extension is refuted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest

from epsilons.auditing import ABSENT, Verdict, enumerate_losses
from epsilons.mechanisms.base import Mechanism
from epsilons.mechanisms.minimum import Minimum
from epsilons.mechanisms.sample import Sample
from epsilons.mechanisms.threshold import Threshold
from epsilons.mechanisms.weighted import Weighted
from epsilons.noise.segments import SegmentSampler
from epsilons.preferences import roster_of
from epsilons.statistics.base import Question, Weighting
from epsilons.statistics.brackets import Split, draw_bracket
from epsilons.statistics.order import Order
from epsilons.summaries.arrays import ArrayPeople
from epsilons.summaries.cells import SortedCells
from epsilons.testing import seeded
from support.small_worlds import audit_exactly, charged

#: A long grid, so that nearly all of the probability lies on one side of the people.
BOUNDS, STEP = (0.0, 400.0), 1.0
DOMAIN = (0.0, 200.0, 400.0, ABSENT)


@dataclass(frozen=True)
class SharpUnderReplace(Order):
    """The limit of people who are absent, also for people who are replaced."""

    def score_reach(self, neighbors: str) -> Fraction:
        return super().score_reach("absent")


@dataclass(frozen=True)
class SharpThoughImputed(Order):
    """Missing people stand at the centre, so that one who is absent moves there."""

    def sampler(self, question: Question, weighting: Weighting, cells: SortedCells) -> SegmentSampler:
        return super().sampler(question, weighting, cells.with_missing_at(self.default_cell))


@dataclass(frozen=True)
class NoReach(Order):
    """Weights as if nobody moved the score by more than q of their weight."""

    def score_reach(self, neighbors: str) -> Fraction:
        return min(self.q_asked, 1 - self.q_asked)


def verdict(
    mechanism: Mechanism,
    neighbors: str,
    q: Fraction,
    kind: type[Order] = Order,
    epsilons: tuple[float, ...] = (2.0, 2.0, 2.0),
) -> Verdict:
    return audit_exactly(mechanism, Question(kind(BOUNDS, STEP, q=q), neighbors), epsilons, DOMAIN)


def ratio(found: Verdict) -> float:
    assert found.worst is not None
    return found.worst.ratio


HALF, QUARTER = Fraction(1, 2), Fraction(1, 4)


@pytest.mark.parametrize("mechanism", [Weighted(), Minimum(), Threshold("max"), Sample("max")], ids=lambda m: m.name)
@pytest.mark.parametrize("q", [HALF, QUARTER, Fraction(9, 10)])
def test_the_limit_holds_and_is_nearly_reached(mechanism: Mechanism, q: Fraction) -> None:
    """One person at one end, so many at the other that the quantile is there, and nearly all probability between."""
    people, ends = math.ceil(1 / min(q, 1 - q)) + 1, BOUNDS if q <= HALF else BOUNDS[::-1]
    question, roster = Question(Order(BOUNDS, STEP, q=q)), roster_of([0.2] * people)
    # Everyone at the same epsilon: the sample then keeps all of them.
    found = enumerate_losses(
        lambda values: mechanism.distribution(question, ArrayPeople.of(values, roster)),
        [(ends[0], *[ends[1]] * (people - 1))],
        charged(mechanism, question, roster),
        log=True,
    )
    assert found.holds
    assert ratio(found) > 0.98


@pytest.mark.parametrize("mechanism", [Weighted(), Sample("max")], ids=lambda m: m.name)
def test_the_limit_holds_for_people_who_differ(mechanism: Mechanism) -> None:
    for neighbors in ("absent", "replace"):
        assert verdict(mechanism, neighbors, HALF, epsilons=(0.5, 1.0, 2.0)).holds
        assert verdict(mechanism, neighbors, QUARTER, epsilons=(0.5, 1.0, math.inf)).holds


@pytest.mark.parametrize(
    ("mechanism", "neighbors", "kind", "least"),
    [
        (Weighted(), "replace", SharpUnderReplace, 1.55),
        (Minimum(), "replace", SharpUnderReplace, 1.55),
        (Sample("max"), "replace", SharpUnderReplace, 1.55),
        (Weighted(), "absent", SharpThoughImputed, 1.38),
    ],
    ids=["replace", "replace, minimum", "replace, sample", "imputed"],
)
def test_wrong_extensions_of_the_limit_are_refuted(
    mechanism: Mechanism, neighbors: str, kind: type[Order], least: float
) -> None:
    found = verdict(mechanism, neighbors, HALF, kind)
    assert not found.holds
    assert ratio(found) > least
    assert verdict(mechanism, neighbors, HALF).holds


@pytest.mark.parametrize("mechanism", [Weighted(), Minimum(), Threshold("max"), Sample("max")], ids=lambda m: m.name)
def test_whoever_stands_at_the_centre_is_charged_for_moving_there(mechanism: Mechanism) -> None:
    """`missing="center"`: by the limit of people who are left out it would be refuted, as `SharpThoughImputed` is."""
    asked = Question(Order(BOUNDS, STEP, q=HALF, imputes=True))
    assert audit_exactly(mechanism, asked, (1.0, 2.0, 2.0), DOMAIN).holds
    paid = replace(asked, statistic=Order((0.0, 2.0), 1, q=QUARTER, for_interval=Fraction(2, 5), imputes=True))
    found = audit_exactly(mechanism, paid, (0.5, 1.0), (0.0, 1.0, 2.0, ABSENT))
    assert found.holds, str(found)


def test_a_forgotten_max_is_refuted() -> None:
    assert not verdict(Weighted(), "absent", QUARTER, NoReach).holds


# With an interval: the first draw and the noisy cells around it, together --------------------------------------------


def with_interval(part: str, neighbors: str = "absent", q: Fraction = HALF) -> Question:
    return Question(Order((0.0, 1.0), 1, q=q, for_interval=Fraction(part)), neighbors)


@pytest.mark.parametrize("neighbors", ["absent", "replace"])
@pytest.mark.parametrize("mechanism", [Weighted(), Minimum(), Sample("max")], ids=lambda m: m.name)
def test_the_first_draw_and_the_cells_cost_no_more_than_is_charged(mechanism: Mechanism, neighbors: str) -> None:
    for part, q in (("0.4", HALF), ("0.7", QUARTER)):
        found = audit_exactly(mechanism, with_interval(part, neighbors, q), (0.5, 1.0), (0.0, 1.0, ABSENT))
        assert found.holds, str(found)
        assert ratio(found) > 0.6


@pytest.mark.parametrize(
    "instead",
    [
        lambda split: replace(split, cells=split.cells * Fraction(11, 10)),
        lambda split: replace(split, first=split.first / Fraction(6, 10)),
        lambda split: replace(split, first=split.first * 2),
    ],
    ids=["noise of the cells 10% small", "the first draw takes all of it", "no max(q, 1-q)"],
)
def test_too_small_a_noise_beside_an_interval_is_refuted(
    instead: Callable[[Split], Split], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Two people at a bound each: what one of them adds to the score and to a cell are both at their largest.
    asked, given = with_interval("0.9" if instead(Split(HALF, HALF)).cells != HALF else "0.4"), Split.of
    assert audit_exactly(Minimum(), asked, (3.0, 3.0), (0.0, 1.0, ABSENT)).holds
    monkeypatch.setattr(Split, "of", lambda *arguments: instead(given(*arguments)))
    assert not audit_exactly(Minimum(), asked, (3.0, 3.0), (0.0, 1.0, ABSENT)).holds


def test_every_cell_has_a_noise_of_its_own_and_every_answer_new_ones() -> None:
    nobody = SortedCells(np.zeros(0, np.int64), np.zeros(1, np.int64), 1)
    drawn = [draw_bracket(nobody, 500, 1000, 4, [1], entropy) for entropy in [seeded(1)] * 2]
    noises = [noise for bracket in drawn for noise in bracket.weights]
    assert len(set(noises)) == len(noises) == 2 * (len(drawn[0].cuts) + 1)


def test_a_question_without_an_interval_keeps_its_identity() -> None:
    plain = Order((0.0, 10.0), 1, q=HALF, label="median")
    stored = "Order(bounds=(0.0, 10.0), step=1.0, q=Fraction(1, 2), from_low=None, from_high=None, label='median', "
    assert plain.identity() == f"{stored}scope=None)"
    assert plain.paying_for_interval(Fraction(0)).identity() == plain.identity()
    paid = [plain.paying_for_interval(Fraction(part)).identity() for part in ("0.4", "0.5")]
    assert len({plain.identity(), replace(plain, imputes=True).identity(), *paid}) == 4
