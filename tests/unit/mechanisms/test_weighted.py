"""The weights against a numeric optimum, and the weighted quantile against its formula."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import epsilons as eps
from epsilons.accuracy import FAMILIES
from epsilons.accuracy.additive import uneven
from epsilons.guarantee import NANO
from epsilons.mechanisms.base import Weighing, weighting_of
from epsilons.mechanisms.weighted import Weighted, saturation
from epsilons.preferences import roster_of
from epsilons.statistics import order
from epsilons.statistics.base import FINE, Question
from epsilons.statistics.count import Count
from epsilons.statistics.total import Mean, Sum
from support.brute_force import (
    best_related_weights,
    best_weights,
    exponential_pmf,
    quantile_score,
    related_bias,
    related_objective,
    weighted_objective,
)
from support.small_worlds import at_max

PUBLIC = math.inf
ROSTERS: list[tuple[float, ...]] = [
    (1.0, 1.0, 1.0),
    (0.1, 0.5, 2.0),
    (2.0, 3.0, 30.0),
    (0.5, 4.0, 4.0, 9.0),
    (1.0, 2.0, 5.0, 20.0, 21.0),
    (2.0, 3.0, 30.0, PUBLIC),
    (0.1, 0.5, PUBLIC, PUBLIC),
]


def people_weights(question: Question, epsilons: tuple[float, ...]) -> np.ndarray:
    """Each person's weight, with sum 1."""
    roster = roster_of(list(epsilons))
    weights = np.array(weighting_of(Weighted(), question, roster.levels).weights, float)[roster.codes]
    return weights / weights.sum()


@pytest.mark.parametrize("neighbors", ["absent", "replace"])
@pytest.mark.parametrize("epsilons", ROSTERS)
@pytest.mark.parametrize("spread", [None, 0.3, 1.0])
def test_weights_of_a_mean_are_the_numeric_optimum(
    epsilons: tuple[float, ...], spread: float | None, neighbors: str
) -> None:
    question = Question(Mean((0.0, 2.0)), neighbors, spread=spread)
    variance, reach = (0.5 if spread is None else spread) ** 2, 1.0 if neighbors == "absent" else 2.0
    ours, best = people_weights(question, epsilons), best_weights(np.array(epsilons), variance, reach)
    arguments = (np.array(epsilons), variance, reach)
    assert weighted_objective(ours, *arguments) == pytest.approx(weighted_objective(best, *arguments), rel=1e-7)
    np.testing.assert_allclose(ours, best, atol=2e-4)


@pytest.mark.parametrize("density", [None, 0.1, 0.02])
@pytest.mark.parametrize("epsilons", ROSTERS)
def test_weights_of_a_count_are_the_numeric_optimum(epsilons: tuple[float, ...], density: float | None) -> None:
    p = 0.5 if density is None else density
    ours = people_weights(Question(Count(), density=density), epsilons)
    arguments = (np.array(epsilons), p * (1 - p), 1.0)
    best = best_weights(*arguments)
    assert weighted_objective(ours, *arguments) == pytest.approx(weighted_objective(best, *arguments), rel=1e-7)


@pytest.mark.parametrize("related", [0.1, 0.3, 1.0])
@pytest.mark.parametrize("epsilons", [*ROSTERS[1:3], *ROSTERS[4:6]])
def test_no_weights_are_better_where_levels_may_differ(epsilons: tuple[float, ...], related: float) -> None:
    """And those of unrelated levels are worse wherever levels matter."""
    arguments = (np.array(epsilons), 0.25, 1.0, related)
    ours = people_weights(Question(Mean((0.0, 2.0)), assume=related), epsilons)
    best = related_objective(best_related_weights(*arguments), *arguments)
    assert related_objective(ours, *arguments) <= best * (1 + 1e-4)
    unrelated = people_weights(Question(Mean((0.0, 2.0))), epsilons)
    assert related_objective(unrelated, *arguments) >= related_objective(ours, *arguments) * (1 - 1e-9)


def test_the_worst_relation_is_a_linear_programme() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        sizes = rng.integers(1, 4, 4)
        weights, left_out = rng.choice([0.0, 0.2, 0.5, 1.0, 3.0], 4), int(rng.integers(0, 3))
        people = np.append(np.repeat(weights, sizes), np.zeros(left_out))
        assert uneven(weights, sizes.astype(float), left_out) == pytest.approx(related_bias(people))


@pytest.mark.parametrize("epsilons", ROSTERS[1:])
def test_the_predicted_error_is_the_objective(epsilons: tuple[float, ...]) -> None:
    """Of luck, of one noise and of the worst bias: found by a linear programme over all ways in which levels differ."""
    question = Question(Mean((0.0, 2.0)), assume=0.3)
    levels = roster_of(list(epsilons)).levels
    predicted = float(FAMILIES["linear"].objective(question, levels, weighting_of(Weighted(), question, levels)))
    expected = related_objective(people_weights(question, epsilons), np.array(epsilons), 0.25, 1.0, 0.3)
    assert predicted == pytest.approx(math.sqrt(expected), rel=1e-6)


@pytest.mark.parametrize("epsilons", ROSTERS[1:])
@pytest.mark.parametrize("right_side", [0.01, 1.0, 8.0, 32.0, 1e4])
def test_the_cap_is_the_root_of_its_equation(epsilons: tuple[float, ...], right_side: float) -> None:
    """sum e_i (tau - e_i)+ = right side; a root beyond the largest epsilon matters only where people are public."""
    finite = np.array([e for e in epsilons if math.isfinite(e)])
    tau = saturation(roster_of(list(epsilons)).levels, right_side) / NANO
    left_side = float((finite * np.maximum(tau - finite, 0)).sum())
    if tau < finite.max() or PUBLIC in epsilons:
        assert left_side == pytest.approx(right_side, rel=1e-6)
    else:
        assert tau == finite.max()
        assert left_side <= right_side * (1 + 1e-9)


@pytest.mark.parametrize("statistic", [Count(), Sum((0.0, 100.0)), order.median((0, 4), 1)])
@pytest.mark.parametrize("epsilons", ROSTERS)
def test_people_are_charged_their_epsilon_up_to_the_cap(statistic: object, epsilons: tuple[float, ...]) -> None:
    question, levels = Question(statistic), roster_of(list(epsilons)).levels  # type: ignore[arg-type]
    weighting = weighting_of(Weighted(), question, levels)
    tau = weighting.rate
    for grant, weight, charge in zip(
        levels.grants, weighting.weights, Weighted().charge(question, levels), strict=True
    ):
        if grant is None:
            assert (weight, charge) == (FINE, None)
        else:
            assert 0 <= min(Fraction(grant), tau) - Fraction(weight, FINE) * tau < 1
            assert charge == math.ceil(Fraction(weight, FINE) * tau) <= min(grant, math.ceil(tau))


@pytest.mark.parametrize("q", [0.5, 0.3, 0.9])
@pytest.mark.parametrize("epsilons", [r for r in ROSTERS if len(r) <= 4])
def test_the_quantile_follows_its_formula(epsilons: tuple[float, ...], q: float) -> None:
    """Density proportional to exp(-score/2) on all data sets, people who are missing left out."""
    grid, exact_q = range(4), Fraction(str(q))
    roster = roster_of(list(epsilons))
    losses = weighting_of(Weighted(), Question(order.quantile(q, (0, 3), 1)), roster.levels).losses()
    reach = max(exact_q, 1 - exact_q)  # how far a person who is absent moves the score
    weights = [Fraction(math.floor(losses[code] / reach), NANO) for code in roster.codes]
    everything = itertools.product((*grid, math.nan), repeat=len(epsilons))
    for data in itertools.islice(everything, 0, None, 1 if len(epsilons) < 4 else 7):
        present = [(x, w) for x, w in zip(data, weights, strict=True) if not math.isnan(x)]
        values, own = [x for x, _ in present], [w for _, w in present]
        scores = np.array([float(quantile_score(values, own, exact_q, r)) for r in grid])
        found = eps.mechanisms.weighted.quantile_pmf(data, epsilons, q, bounds=(0, 3), step=1)
        np.testing.assert_allclose(found[1], exponential_pmf(scores), rtol=0, atol=1e-12, err_msg=str(data))


@pytest.mark.parametrize(("neighbors", "cap"), [("replace", 9.0), ("absent", 4.2)])
def test_saturated_people_weigh_the_same_and_less_open_people_weigh_their_epsilon(neighbors: str, cap: float) -> None:
    """2(tau-2) + 3(tau-3) = 32 gives tau = 9: weights 2, 3, 9, and 9 for a public person; 8 where people are absent."""
    question = Question(order.median((0, 3), 1), neighbors)
    weights = people_weights(question, (2.0, 3.0, 30.0, PUBLIC))
    np.testing.assert_allclose(weights, np.array([2, 3, cap, cap]) / (5 + 2 * cap), rtol=1e-9)


def test_charges_are_the_exact_losses_rounded_up() -> None:
    """Weights are rounded down, so most losses are no whole number: the charge is the next one above."""
    for epsilons in ([0.1, 0.2, 0.7, 1.0], [0.013, 0.29, 1.7, math.inf]):
        levels = roster_of(np.repeat(epsilons, 50)).levels
        for name in ("weighted", "robust", "stretching", "minimum", "threshold"):
            mechanism, question = at_max(name, Count()), Question(Count())
            assert isinstance(mechanism, Weighing)
            losses = weighting_of(mechanism, question, levels).losses()
            charges = mechanism.charge(question, levels)
            expected = [None if g is None else math.ceil(loss) for g, loss in zip(levels.grants, losses, strict=True)]
            assert list(charges) == expected
