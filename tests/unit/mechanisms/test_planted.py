"""An audit that cannot catch planted bugs is no audit: the honest claim passes, the broken one is refuted."""

from __future__ import annotations

import math

import numpy as np
import pytest

from epsilons.auditing import ABSENT, all_datasets
from epsilons.mechanisms.base import Mechanism
from epsilons.mechanisms.exponential import ExponentialCount, ExponentialOrder
from epsilons.preferences import roster_of
from epsilons.statistics import order
from epsilons.statistics.base import Question
from epsilons.summaries.arrays import ArrayPeople
from support.planted import ALIKE, BITS, COUNT, MIXED, PLANTS, Plant, SampleTwice, Tampered, TamperedCount
from support.small_worlds import audit_exactly


@pytest.mark.parametrize("plant", PLANTS, ids=str)
def test_exact_checks_accept_the_honest_mechanism_and_refute_the_planted_bug(plant: Plant) -> None:
    assert plant.honest.holds()
    assert not plant.broken.holds()


def test_there_are_at_least_twenty_planted_bugs_with_names_of_their_own() -> None:
    assert len({plant.name for plant in PLANTS}) == len(PLANTS) >= 20


@pytest.mark.parametrize(
    ("honest", "tampered", "question"),
    [
        (ExponentialOrder(), Tampered(), Question(order.median((0.0, 4.0), 1))),
        (ExponentialCount(), TamperedCount(), COUNT),
    ],
    ids=["median", "count"],
)
def test_the_tampered_mechanism_is_honest_before_anybody_tampers(
    honest: Mechanism, tampered: Mechanism, question: Question
) -> None:
    """So a plant that changes one joint of it differs from the real mechanism in that joint alone."""
    roster = roster_of(list(MIXED))
    for values in all_datasets((0.0, 1.0, 3.0, ABSENT), 3):
        people = ArrayPeople.of(values, roster)
        for one, other in zip(*(m.distribution(question, people) for m in (honest, tampered)), strict=True):
            np.testing.assert_array_equal(one, other)


def test_one_coin_for_two_releases_costs_what_theory_says() -> None:
    """e=.1, t=1 twice from one sample: .330 instead of .2."""
    keep = math.expm1(0.1) / math.expm1(1)
    verdict = audit_exactly(SampleTwice("max", reuse=True), COUNT, (0.1, 1.0), BITS)
    assert verdict.worst is not None
    assert verdict.worst.loss == pytest.approx(math.log1p(keep * math.expm1(2)), abs=1e-6)
    assert verdict.worst.loss == pytest.approx(0.330, abs=5e-4)


def test_dropping_missing_people_puts_a_loss_on_others_of_many_times_their_epsilon() -> None:
    plant = next(p for p in PLANTS if p.name.startswith("missing people dropped"))
    broken = plant.broken
    verdict = audit_exactly(broken.mechanism, broken.question, broken.epsilons, broken.domain)
    assert verdict.worst is not None
    assert verdict.worst.ratio > 5


def test_the_worst_pair_of_a_wrong_alpha_names_the_strict_person() -> None:
    plant = next(p for p in PLANTS if p.name.startswith("alpha"))
    broken = plant.broken
    verdict = audit_exactly(broken.mechanism, broken.question, broken.epsilons, broken.domain)
    assert verdict.worst is not None
    assert verdict.worst.person == 0
    assert plant.honest.epsilons != ALIKE
