"""Predicted errors of variances against measured ones: near the centre and far off it, filtered or not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from epsilons.mechanisms.base import Mechanism, create
from epsilons.preferences import roster_of
from epsilons.statistics.base import Additive
from epsilons.statistics.filtered import FilteredVariance
from epsilons.statistics.people import ArrayPeople
from epsilons.statistics.question import Question
from epsilons.statistics.scope import Scope
from epsilons.statistics.variance import Variance
from epsilons.testing import seeded

pytestmark = pytest.mark.statistical

BOUNDS = (0.0, 100.0)
EPSILONS = np.repeat([0.05, 0.2, 1.0, np.inf], [600, 400, 160, 40])
#: Of those who meet the condition of a filtered variance.
FRACTION = 0.5

MECHANISMS: dict[str, dict[str, Any]] = {
    "minimum": {},
    "weighted": {},
    "sample": {"threshold": "best"},
    "threshold": {},
    "stretching": {"rescale": True},
}
STATISTICS: dict[str, Additive] = {
    "all": Variance(BOUNDS),
    "filtered": FilteredVariance(Scope(fraction=FRACTION), BOUNDS),
}
#: (location, spread, by how much every epsilon is multiplied)
SETTINGS = [(50.0, 10.0, 1.0), (20.0, 8.0, 1.0), (80.0, 10.0, 4.0), (20.0, 8.0, 0.2), (35.0, 20.0, 1.0)]


def measured(mechanism: Mechanism, question: Question, epsilons: Any, datasets: int, seed: int) -> float:
    """RMSE against each data set's own variance, of normal data that are what the guesses say."""
    random, entropy, roster = np.random.default_rng(seed), seeded(seed), roster_of(epsilons)
    filtered = isinstance(question.statistic, FilteredVariance)
    squares = []
    for _ in range(datasets):
        values = np.clip(random.normal(question.location, question.spread, len(epsilons)), *BOUNDS)
        if filtered:
            values = np.where(random.random(len(epsilons)) < FRACTION, values, np.nan)
        answer = mechanism.draw(question, ArrayPeople.of(values, roster), entropy).value
        squares.append((answer - np.nanvar(values)) ** 2)
    return math.sqrt(np.mean(squares))


def predicted(mechanism: Mechanism, question: Question, epsilons: Any) -> float:
    error = mechanism.predict_error(question, roster_of(epsilons).levels)
    assert error is not None
    return error


@pytest.mark.parametrize("over", STATISTICS)
@pytest.mark.parametrize("name", MECHANISMS)
def test_predicted_error_of_a_variance_is_within_15_percent(name: str, over: str) -> None:
    mechanism = create(name, **MECHANISMS[name])
    for location, spread, factor in SETTINGS:
        question = Question(STATISTICS[over], location=location, spread=spread)
        epsilons = EPSILONS * factor
        real = measured(mechanism, question, epsilons, 500, 3)
        assert predicted(mechanism, question, epsilons) == pytest.approx(real, rel=0.15), (location, factor)


@pytest.mark.parametrize("over", STATISTICS)
def test_a_prediction_that_ignores_where_the_mean_lies_would_be_caught(over: str) -> None:
    """The planted bug: the mean a quarter of h from the centre, whatever was guessed."""
    mechanism = create("minimum")
    question = Question(STATISTICS[over], location=20.0, spread=8.0)
    blind = Question(STATISTICS[over], spread=8.0)
    real = measured(mechanism, question, EPSILONS, 500, 4)
    assert predicted(mechanism, question, EPSILONS) == pytest.approx(real, rel=0.15)
    assert predicted(mechanism, blind, EPSILONS) != pytest.approx(real, rel=0.15)


@pytest.mark.parametrize("neighbors", ["absent", "replace"])
def test_a_prediction_without_the_factor_two_of_laplace_would_be_caught(neighbors: str) -> None:
    """The planted bug: noise of variance b^2 instead of 2 b^2, as people have with epsilons a root of two larger."""
    mechanism = create("minimum")
    question = Question(STATISTICS["all"], neighbors, location=30.0, spread=20.0)
    real = measured(mechanism, question, EPSILONS, 1000, 5)
    assert predicted(mechanism, question, EPSILONS) == pytest.approx(real, rel=0.15)
    assert predicted(mechanism, question, EPSILONS * math.sqrt(2)) != pytest.approx(real, rel=0.15)


def test_a_variance_of_skewed_values_at_one_epsilon() -> None:
    """Values far below the centre of generous bounds, as incomes and durations are."""
    import epsilons as eps

    values = np.random.default_rng(0).gamma(4, 5, 3000).clip(*BOUNDS)
    guesses = {"location": 20.0, "spread": 10.0}
    stated = eps.variance(values, [0.05] * 3000, bounds=BOUNDS, mechanism="minimum", **guesses).error
    question = Question(STATISTICS["all"], **guesses)  # type: ignore[arg-type]
    people, entropy = ArrayPeople.of(values, roster_of([0.05] * 3000)), seeded(6)
    answers = [create("minimum").draw(question, people, entropy).value for _ in range(1000)]
    assert stated == pytest.approx(math.sqrt(np.mean((np.array(answers) - values.var()) ** 2)), rel=0.15)
