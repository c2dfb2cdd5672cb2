"""The figure over all four papers: what is lost, and errors that are worked out and not drawn."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from epsilons.local.personal import PersonalResponse
from epsilons.mechanisms.base import create
from epsilons.mechanisms.local_sensitivity import LocalOrder
from epsilons.papers import together
from epsilons.papers.expectations import expect
from epsilons.papers.floors import median_floor
from epsilons.preferences import roster_of
from epsilons.statistics.base import Question
from epsilons.summaries.arrays import ArrayPeople
from epsilons.testing import seeded


def _people(values: np.ndarray) -> ArrayPeople:
    return ArrayPeople.of(values, roster_of(np.repeat([0.2, 1.0], [300, 101])))


def test_a_promise_is_worth_what_is_charged() -> None:
    people = _people(np.zeros(401))
    worths = {
        name: together.worth(create(name, together.COUNT.statistic, **options), together.COUNT, people.levels)
        for name, options in (("minimum", {}), ("threshold", {"threshold": "max"}), ("stretching", {}))
    }
    assert worths == pytest.approx({"minimum": 0.2, "threshold": 101 / 401, "stretching": 161 / 401})
    assert together.granted(people) == pytest.approx(161 / 401)


@pytest.mark.statistical
def test_what_is_worked_out_is_what_is_drawn() -> None:
    """1,000 draws: means within four standard errors, variances within 20%; a scale 30% off misses that."""
    random, entropy = np.random.default_rng(1), seeded(1)
    bits = _people(np.asarray(random.random(401) < 0.15, float))
    protocol = PersonalResponse(bits.roster)
    counted = [protocol.count(*protocol.respond(bits.values.astype(int), entropy=entropy)) for _ in range(1_000)]
    answers = [float(protocol.estimate(one, density=together.USERS.density).values[0]) for one in counted]
    numbers = _people(np.clip(random.normal(500, 200, 401).round(), 1, 1_000))
    asked = Question(together.MEDIAN.statistic, privacy="individual")
    medians = LocalOrder().simulate(asked, numbers, entropy, 1_000)
    for drawn, expected in ((answers, together.personal_response(bits)), (medians, together.individual(numbers))):
        assert np.mean(drawn) == pytest.approx(expected.mean, abs=4 * (expected.variance / 1_000) ** 0.5)
        assert np.var(drawn) == pytest.approx(expected.variance, rel=0.2)


def test_no_private_median_is_below_the_bound() -> None:
    """On some data; here by the law of `weighted`, on the data and on others in which people have moved."""
    values = np.sort(np.random.default_rng(2).normal(500, 200, 41).round())
    roster, mechanism = roster_of(np.full(41, 0.5)), create("weighted", together.MEDIAN.statistic)
    errors = []
    for k in range(8):
        for moved in (np.append(values[k:], np.full(k, 1_000.0)), np.append(values[: 41 - k], np.ones(k))):
            found = expect(mechanism, together.MEDIAN, ArrayPeople.of(moved, roster), seeded(1))
            errors.append(found.square(float(np.median(moved))) ** 0.5)
    assert 0.1 * max(errors) < median_floor(values, np.full(41, 0.5), together.BOUNDS) < max(errors)


def test_the_bound_of_medians_is_that_of_the_strictest_who_may_move() -> None:
    """Against every set of people of either side, one by one."""
    random = np.random.default_rng(3)
    values, epsilons = random.integers(1, 30, 7).astype(float), random.choice([0.1, 0.4, 1.0], 7)
    truth, best = np.median(values), 0.0
    for size in range(1, 5):
        for chosen in itertools.combinations(range(7), size):
            for end in (1.0, 40.0):
                moved = values.copy()
                moved[list(chosen)] = end
                loss = 2 * epsilons[list(chosen)].sum()
                best = max(best, abs(np.median(moved) - truth) / (2 * np.cosh(loss / 2)))
    assert median_floor(values, epsilons, (1.0, 40.0)) == pytest.approx(best)
