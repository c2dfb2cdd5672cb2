"""Concentrated accounts: over all small data sets nobody loses more rho than they are charged."""

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import epsilons as eps
from epsilons.arrays.asking import prepare
from epsilons.errors import PlanError
from epsilons.measure import ANY_LOSS, FEMTO, epsilon_of
from epsilons.mechanisms.base import charges_of, create, list_mechanisms
from epsilons.statistics import order
from epsilons.statistics.base import Question, Scope
from epsilons.statistics.count import Count
from epsilons.statistics.histogram import Histogram
from epsilons.statistics.noisy_loss import squared_reach
from epsilons.statistics.total import Mean
from epsilons.summaries.arrays import ArrayPeople
from support.concentrated import (
    MEASURE,
    Case,
    as_another,
    cases,
    largest_divergence,
    largest_part,
    renyi,
    with_deviation,
)
from support.small_worlds import ROSTERS

MECHANISMS = sorted(list_mechanisms())
SUMS = ("count", "sum", "mean", "variance", "histogram")
ORDERED = ("median", "quantile", "min", "max", "kth_largest", "mode", "top")
#: Less than the square of a standard deviation 5% small.
TIGHT = 0.95**2 + 0.01


@pytest.mark.parametrize("name", MECHANISMS)
def test_noisy_sums_cost_what_is_charged_in_exact_fractions(name: str) -> None:
    found = [(case, largest_part(case)) for case in cases(name, SUMS)]
    for case, part in found:
        assert part is None or part <= 1, f"{case}: {float(part)}"
    # Where one person reaches as far as the statistic says, nothing is given away: a wrong deviation would show.
    tight = [part for case, part in found if case.kind != "variance" and part]
    assert not tight or max(tight) > 1 - Fraction(1, 10**6)


@pytest.mark.parametrize("part", [0.1, 0.2, 0.4, 0.6])
def test_who_draws_no_cells_spends_all_of_a_loss_on_the_draw(part: float) -> None:
    """Whatever part of a loss was meant for an interval: `mixed` has no use for it."""
    asked: dict[str, Any] = {"bounds": (0, 4), "step": 1, "mechanism": "mixed", "neighbors": "replace"}
    asked |= {"delta": 0.01, "complete": True, "for_interval": part}
    charged, worst = 0, 0.0

    def law(data: list[float]) -> Any:
        nonlocal charged
        made = prepare("median", data, 1.0, asked)
        charged = made.question.rate.cost(charges_of(made.mechanism, made.question, made.people.levels)[0])
        return made.mechanism.distribution(made.question, made.people)[1]

    for low, high, more in itertools.product((0.0, 2.0), (2.0, 4.0), range(5)):
        rest = [low] * more + [high] * (4 - more)
        laws = [law([value, *rest]) for value in (0.0, 2.0, 4.0)]
        pairs = itertools.permutations(laws, 2)
        worst = max(worst, *(renyi(*pair, order) / order for pair in pairs for order in (1.001, 1.1, 2.0)))
    assert 0.4 < worst * FEMTO / charged <= 1


@pytest.mark.parametrize("kind", ["count", "sum", "mean", "histogram"])
def test_a_standard_deviation_5_percent_small_is_caught(kind: str) -> None:
    for name in ("minimum", "weighted", "robust", "threshold"):
        for case in cases(name, [kind], ROSTERS[:2]):
            planted = largest_part(with_deviation(case, Fraction(95, 100)))
            assert planted is not None
            assert planted > 1


@pytest.mark.parametrize("name", MECHANISMS)
def test_order_statistics_have_a_bounded_range(name: str) -> None:
    worst = [largest_divergence(case) for case in cases(name, ("median", "min"), ROSTERS[1:2])]
    assert max(worst, default=0.0) <= 1 + 1e-9


@pytest.mark.soak
@pytest.mark.figure("figure_3_concentrated")
@pytest.mark.parametrize("name", MECHANISMS)
def test_nobody_loses_more_rho_than_is_charged(name: str, record_property: Callable[..., Any]) -> None:
    parts = [part for case in cases(name, SUMS) if (part := largest_part(case)) is not None]
    worst = [largest_divergence(case) for case in cases(name, ORDERED)]
    assert max(parts, default=Fraction(0)) <= 1
    assert max(worst, default=0.0) <= 1 + 1e-9
    record_property("size", len(parts) + len(worst))


def test_a_range_counted_at_half_its_loss_is_caught() -> None:
    """A planted bug: e^2/16 for e^2/8."""
    (case,) = [case for case in cases("minimum", ["median"], [(0.7, 0.7, 0.7)]) if case.question.neighbors == "replace"]

    class Cheap(type(case.question.statistic)):  # type: ignore[misc]
        loss_factor = Fraction(1, 32)

    assert largest_divergence(case) <= 1
    planted = replace(case.question, statistic=as_another(case.question.statistic, Cheap))
    assert largest_divergence(replace(case, question=planted)) > 1


@pytest.mark.parametrize("kind", ["count", "histogram"])
@pytest.mark.parametrize("neighbors", ["absent", "replace"])
def test_the_whole_law_on_the_integers(kind: str, neighbors: str) -> None:
    """Of counts at one strength, where noise is on the integers: D_a at several a, and (epsilon, delta) itself."""
    statistic = Count() if kind == "count" else Histogram(categories=("a", "b"))
    case = Case(kind, create("minimum", statistic), Question(statistic, neighbors, measure=MEASURE), (2.0, 2.0))
    (law,) = statistic.laws(case.question, case.mechanism.weigh(case.question, case.levels))  # type: ignore[attr-defined]
    cells = np.arange(-150, 151)
    still, moved = (law.log_chances(np.abs(cells - away).astype(float)) for away in (0, 1))
    # Histogram, replaced: one bin loses a person and another gains one, two independent noises.
    times = 2 if kind == "histogram" and neighbors == "replace" else 1
    rho = float(case.rhos[0] or 0)
    for alpha in (1.01, 1.5, 2.0, 8.0, 64.0):
        lost = times * renyi(still, moved, alpha)
        assert lost <= alpha * rho * (1 + 1e-9)
        assert lost > TIGHT * alpha * rho or alpha > 8  # a deviation 5% small would not pass
    joint = [still, moved]
    if times == 2:
        joint = [(a[:, None] + b[None, :]).reshape(-1) for a, b in ((still, moved), (moved, still))]
    epsilon = epsilon_of(math.ceil(rho * FEMTO), MEASURE.delta or Fraction(1)) / 1e9
    assert epsilon == pytest.approx(2.0, rel=1e-6)
    assert np.maximum(np.exp(joint[0]) - math.exp(epsilon) * np.exp(joint[1]), 0).sum() <= 1e-6


def test_the_interval_of_a_median_is_paid_for() -> None:
    """Two fifths of a loss on cells, three on the draw: .6^2/8 + .4^2/2 = 1/8, as much as the draw alone."""
    alone = order.median((0, 4), 1)
    paying = alone.paying_for_interval(Fraction(2, 5))
    assert alone.loss_factor == paying.loss_factor == Fraction(1, 8)
    assert alone.paying_for_interval(Fraction(1, 2)).loss_factor == Fraction(1, 32) + Fraction(1, 8)
    assert Count().loss_factor == ANY_LOSS


@pytest.mark.parametrize("neighbors", ["absent", "replace"])
def test_groups_rows_and_filtered_means(neighbors: str) -> None:
    """The squared reach that parts say, against everything that one person with two rows can do in three groups."""
    scope, rows = Scope(2, ("a", "b", "c")), [(group, value) for group in range(3) for value in (-1, 0, 1)]
    vectors = []
    for kept in [[], *([row] for row in rows), *([one, other] for one in rows for other in rows)]:
        sums, counts = np.zeros(3), np.zeros(3)
        for group, value in kept:
            sums[group] += value
            counts[group] += 1
        vectors.append((sums, counts))
    pairs = [(a, b) for a in vectors for b in (vectors if neighbors == "replace" else vectors[:1])]
    assert scope.square(-1, 1)[neighbors] == max(float(((a[0] - b[0]) ** 2).sum()) for a, b in pairs)
    assert scope.square(0, 1)[neighbors] == max(float(((a[1] - b[1]) ** 2).sum()) for a, b in pairs)
    most = max(float((((a[1] > 0) * 1 - (b[1] > 0) * 1) ** 2).sum()) for a, b in pairs)
    assert Count(scope, "people").parts[0].square[neighbors] == most  # type: ignore[index]
    mean = Mean.over(scope, (0.0, 10.0), neighbors, None, gaussian=True)
    assert mean.form == "split"
    from epsilons.statistics.gaussian import squares

    first, second = (float(square) for square in squares(mean, neighbors))
    reach = 1 << 30
    lost = max(
        float(((a[0] - b[0]) ** 2).sum() * reach**2 / first + ((a[1] - b[1]) ** 2).sum() / second) for a, b in pairs
    )
    assert lost <= 1 + 1e-12


@pytest.mark.parametrize("complete", [False, True])
@pytest.mark.parametrize(("d", "kappa"), [(2, 1), (3, 1), (2, 2), (3, 2)])
def test_models_reach_no_further_than_their_corners(d: int, kappa: int, complete: bool) -> None:
    """The squared L2 reach of a model's cells over a fine grid of rows, and over pairs of them."""
    terms, found = [(j, k) for j in range(d) for k in range(j, d)], []
    for *features, t in itertools.product((-1.0, -0.5, 0.0, 1.0), repeat=d):
        x = np.array([1.0, *features])
        cells = [x[j] * x[k] * (1 if j == k else 2) - 0.5 * (complete and j == k) for j, k in terms]
        found.append([*(cells[1:] if complete else cells), *(2 * kappa * t * x), (t * t - 1) * (kappa == 1)])
    vectors = np.array(found)
    said = squared_reach(d, kappa, complete, 2)
    largest = float((vectors**2).sum(axis=1).max())
    assert largest <= said["absent"] / 4
    assert largest > 0.9 * said["absent"] / 4
    apart = ((vectors[:, None, :] - vectors[None, :, :]) ** 2).sum(axis=2).max()
    assert apart <= said["replace"] / 4


def test_samples_and_smooth_sensitivity_do_not_serve_order_statistics() -> None:
    for name in ("sample", "smooth-sensitivity"):
        with pytest.raises(PlanError, match="exponential mechanisms alone"):
            eps.median([1, 2, 3] * 50, 1.0, bounds=(0, 4), step=1, complete=True, mechanism=name, delta=1e-6)


def test_a_sample_of_a_sum_keeps_pure_noise() -> None:
    """Its coins amplify pure losses alone, which cost half their square."""
    (case, *_) = cases("sample", ["count"], [(0.2, 0.5, 1.0)])
    logs = [case.mechanism.distribution(case.question, ArrayPeople.of(data, case.roster))[1]
            for data in ([1.0, 1.0, 1.0], [1.0, 1.0, 0.0])]  # fmt: skip
    assert float(np.abs(logs[0] - logs[1]).max()) <= (2 * float(case.rhos[2] or 0)) ** 0.5 * (1 + 1e-9)


@pytest.mark.parametrize("privacy", ["individual", "group"])
def test_weaker_privacies_have_no_delta(privacy: str) -> None:
    with pytest.raises(PlanError, match="delta"):
        eps.count([1, 0], 1.0, privacy=privacy, delta=1e-6)
