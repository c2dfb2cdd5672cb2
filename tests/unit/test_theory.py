"""The statements of docs/theory.md, held to brute force, exact laws and a numeric optimiser.

What the mechanisms' own tests already show (losses by enumeration, Definition 10, the exact draws) is not repeated.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize

from epsilons.accuracy.count import CountBar, count_floor
from epsilons.accuracy.intervals import ErrorModel, FractionBar
from epsilons.guarantee import NANO
from epsilons.mechanisms.base import Mechanism, Weighing, create, list_mechanisms, weighting_of
from epsilons.mechanisms.exponential import count_pmf, order_pmf
from epsilons.mechanisms.sample import Sample
from epsilons.mechanisms.weighted import Weighted, saturation
from epsilons.noise.entropy import ALWAYS
from epsilons.preferences import Levels, roster_of
from epsilons.statistics.additive import Additive, Average
from epsilons.statistics.base import Answer, Question
from epsilons.statistics.count import Count
from epsilons.statistics.total import Mean, Sum
from epsilons.summaries.arrays import ArrayPeople
from support.brute_force import Worlds, at_rank, best_weights, ones, quantile_score, rank_cost, weighted_objective
from support.settings import PaperOne
from support.small_worlds import at_max

PUBLIC = math.inf
Floats = NDArray[np.float64]


def some_epsilons(rng: np.random.Generator, people: int, public: int = 0) -> list[float]:
    """Epsilons over four orders of magnitude, some people public."""
    finite = np.exp(rng.uniform(math.log(0.01), math.log(20), people - public)).round(3) + 0.001
    return [*finite.tolist(), *[PUBLIC] * public]


# --- weights -----------------------------------------------------------------------------------------------------


def root(epsilons: Sequence[float], right_side: float) -> float:
    """tau of sum over finite i of e_i (tau - e_i)+ = right_side, by bisection."""
    finite = np.array([e for e in epsilons if math.isfinite(e)])
    return float(
        optimize.brentq(
            lambda tau: float((finite * np.maximum(tau - finite, 0)).sum()) - right_side,
            finite.min(),
            finite.max() + right_side / finite.sum() + 1,
            xtol=1e-14,
        )
    )


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("public", [0, 2])
def test_weights_up_to_tau_meet_the_conditions_and_are_the_optimum(seed: int, public: int) -> None:
    rng = np.random.default_rng(seed)
    epsilons = np.array(some_epsilons(rng, 6, public))
    variance, reach = float(rng.uniform(0.1, 3)), float(rng.uniform(0.3, 3))
    tau = root(epsilons.tolist(), 2 * reach**2 / variance)
    weights = np.minimum(epsilons, tau)
    weights /= weights.sum()
    largest = float((weights / epsilons).max())
    # 2 sigma^2 w_i + kappa_i = nu and 4 r^2 M = sum kappa_i e_i, with kappa_i >= 0 only where w_i = M e_i.
    nu = 2 * variance * largest * tau
    kappa = nu - 2 * variance * weights
    finite = np.isfinite(epsilons)
    assert (kappa >= -1e-9).all()
    np.testing.assert_allclose(kappa[~finite], 0, atol=1e-9)
    limits, own = epsilons[finite], weights[finite]
    np.testing.assert_allclose(kappa[finite] * (largest * limits - own), 0, atol=1e-9)
    assert 4 * reach**2 * largest == pytest.approx(float(kappa[finite] @ limits), rel=1e-7, abs=1e-12)
    numeric = weighted_objective(best_weights(epsilons, variance, reach), epsilons, variance, reach)
    assert weighted_objective(weights, epsilons, variance, reach) <= numeric * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("public", [0, 1, 4])
def test_the_mechanism_takes_these_weights_public_people_included(seed: int, public: int) -> None:
    epsilons = np.array(some_epsilons(np.random.default_rng(seed), 6, public))
    roster = roster_of(epsilons.tolist())
    weighting = weighting_of(Weighted(), Question(Mean((0.0, 2.0)), spread=1.0), roster.levels)
    weights = np.array(weighting.weights, float)[roster.codes]
    tau = root(epsilons.tolist(), 2.0)
    best = np.minimum(epsilons, tau)
    np.testing.assert_allclose(weights / weights.sum(), best / best.sum(), rtol=1e-6)


def test_a_cap_at_the_largest_finite_epsilon_is_wrong_where_people_are_public_and_empty_elsewhere() -> None:
    epsilons = np.array([0.1] + [PUBLIC] * 9)
    best, capped = (np.minimum(epsilons, tau) / np.minimum(epsilons, tau).sum() for tau in (20.1, 0.1))
    assert saturation(roster_of(epsilons.tolist()).levels, 2.0) == pytest.approx(20.1 * NANO)
    assert best[1] / best[0] == pytest.approx(201)
    assert weighted_objective(capped, epsilons, 1, 1) > 10 * weighted_objective(best, epsilons, 1, 1)
    private = np.array([0.1, 0.3])
    assert root(private.tolist(), 2.0) > 0.3
    np.testing.assert_array_equal(np.minimum(private, 0.3), np.minimum(private, root(private.tolist(), 2.0)))


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("public", [0, 3])
def test_weighted_never_errs_more_than_mixed_or_a_sample_at_any_threshold(seed: int, public: int) -> None:
    rng = np.random.default_rng(seed)
    epsilons = np.repeat(some_epsilons(rng, 5, min(public, 1)), rng.integers(1, 30, 5)).tolist()
    levels = roster_of(epsilons).levels
    question = Question(Mean((0.0, 2.0)), spread=float(rng.uniform(0.1, 1)))
    weighted = Weighted().predict_error(question, levels)
    assert weighted is not None
    finite = [g / NANO for g in levels.finite]
    samples = [Sample(t) for t in np.linspace(finite[0], finite[-1], 7).tolist()]
    for other in (create("mixed", question.statistic), *samples):
        error = other.predict_error(question, levels)
        assert error is not None
        assert weighted <= error * (1 + 1e-6)


@pytest.mark.parametrize("distance", [0.02, 0.1, 0.25, 0.6, 1.0])
def test_the_best_split_of_a_variance_and_that_halves_are_best_at_a_quarter(distance: float) -> None:
    def noise(share: float) -> float:
        return (2 * distance / share) ** 2 + (0.5 / (1 - share)) ** 2

    best = optimize.minimize_scalar(noise, bounds=(1e-6, 1 - 1e-6), method="bounded", options={"xatol": 1e-10}).x
    assert best / (1 - best) == pytest.approx((4 * distance) ** (2 / 3), rel=1e-5)
    if distance == 0.25:
        assert best == pytest.approx(0.5, abs=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_shares_of_a_mix_are_the_least_variance(seed: int) -> None:
    levels = roster_of(some_epsilons(np.random.default_rng(seed), 5, 1) * 3).levels
    question, mixed = Question(Mean((-1.0, 1.0)), spread=0.4), create("mixed", Mean((-1.0, 1.0)))
    sizes = np.array(levels.sizes, float)
    noise = np.array([0.0 if g is None else NANO / g for g in levels.grants])
    variances = 0.4**2 / sizes + 2 * (noise / sizes) ** 2
    shares = mixed.shares(question, levels)  # type: ignore[attr-defined]
    assert float((shares**2 * variances).sum()) == pytest.approx(1 / float((1 / variances).sum()), rel=1e-6)
    expected = float((shares**2 * variances).sum()) - 0.4**2 / levels.size
    assert mixed.predict_error(question, levels) == pytest.approx(math.sqrt(expected), rel=1e-6)


# --- scores and costs --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("q", [Fraction(1, 2), Fraction(3, 10), Fraction(9, 10)])
@pytest.mark.parametrize("seed", range(8))
def test_a_score_moves_by_a_person_s_weight_and_by_less_when_they_only_join_or_leave(q: Fraction, seed: int) -> None:
    rng = np.random.default_rng(seed)
    people = int(rng.integers(0, 6))
    values, weights = rng.integers(0, 5, people).tolist(), [Fraction(int(w), 7) for w in rng.integers(1, 40, people)]
    weight = Fraction(int(rng.integers(1, 60)), 11)
    furthest = {"join": Fraction(0), "move": Fraction(0)}
    for x in range(-1, 6):
        alone = quantile_score(values, weights, q, x)
        placed = [quantile_score([*values, y], [*weights, weight], q, x) for y in range(5)]
        furthest["join"] = max(furthest["join"], *(abs(score - alone) for score in placed))
        furthest["move"] = max(furthest["move"], max(placed) - min(placed))
    assert furthest["join"] <= max(q, 1 - q) * weight
    assert furthest["move"] <= weight


def test_both_bounds_on_a_score_are_reached() -> None:
    values, weights, q = [0, 0, 0, 4, 4, 4], [Fraction(1)] * 6, Fraction(3, 10)
    alone = quantile_score(values, weights, q, 5)
    left, right = (quantile_score([*values, y], [*weights, Fraction(1)], q, 5) for y in (4, 6))
    assert left - right == 1
    assert left - alone == 1 - q


def changes(values: Sequence[int], from_low: int | None, from_high: int | None, x: int, points: int) -> int:
    """The least number of present people to change so that x has the rank, by trying everything; 0 of nobody."""
    n = len(values)
    if n == 0:
        return 0
    assert (from_low is None) != (from_high is None)
    rank = min(from_low, n - 1) if from_low is not None else max(n - 1 - (from_high or 0), 0)
    tried = itertools.product(range(points), repeat=n)
    return min(sum(a != b for a, b in zip(t, values, strict=True)) for t in tried if sorted(t)[rank] == x)


@pytest.mark.parametrize(("from_low", "from_high"), [(0, None), (1, None), (2, None), (None, 0), (None, 1), (None, 2)])
def test_the_number_of_people_to_change_moves_by_one_also_when_people_join_or_leave(
    from_low: int | None, from_high: int | None
) -> None:
    points = 4
    counts = {
        (values, x): changes(values, from_low, from_high, x, points)
        for n in range(5)
        for values in itertools.combinations_with_replacement(range(points), n)
        for x in range(points)
    }
    steps = set()
    for (values, x), count in counts.items():
        if len(values) < 4:
            joined = [tuple(sorted((*values, y))) for y in range(points)]
            steps |= {abs(counts[more, x] - count) for more in joined}
            steps |= {abs(counts[a, x] - counts[b, x]) for a, b in itertools.combinations(joined, 2)}
    assert steps == {0, 1}


def test_personal_prices_would_make_a_dropped_person_lose_any_multiple_of_their_epsilon() -> None:
    two = order_pmf([2, 2], [2, 2], rank=1, bounds=(0, 4), step=1)[1]
    multiples = []
    for epsilon in (0.05, 0.01, 0.001):
        three = order_pmf([0, 2, 2], [epsilon, 2, 2], rank=1, bounds=(0, 4), step=1)[1]
        multiples.append(abs(math.log(three[0] / two[0])) / epsilon)
    assert [round(m) for m in multiples] == [16, 79, 792]


@pytest.mark.parametrize("epsilons", [(0.1, 1.0, 2.0), (0.3, 0.3, 5.0), (0.2, PUBLIC, 1.0)])
def test_definition_10_moves_by_a_person_s_epsilon(epsilons: tuple[float, ...]) -> None:
    prices = np.array(epsilons)
    for world in (Worlds((0, 1), 3, ones), *(Worlds((0, 1, 2, 3), 3, at_rank(k)) for k in range(3))):
        costs = {tuple(data): world.costs(data, prices) for data in world.data}
        for data, cost in costs.items():
            for person, value in itertools.product(range(3), sorted({row[0] for row in costs})):
                if math.isinf(epsilons[person]):
                    continue
                other = costs[(*data[:person], value, *data[person + 1 :])]
                assert (np.isinf(cost) == np.isinf(other)).all()
                there = np.isfinite(cost)
                assert (np.abs(cost[there] - other[there]) <= epsilons[person] + 1e-12).all()


@pytest.mark.parametrize("epsilons", [(0.1, 1.0, 2.0, 0.4), (0.3, 0.3, 5.0, PUBLIC)])
def test_costs_never_fall_on_the_way_out(epsilons: tuple[float, ...]) -> None:
    """By Definition 10 itself, over every data set, rank and direction."""
    grid = range(4)
    for rank in range(4):
        world = Worlds(grid, 4, at_rank(rank))
        for data in world.data:
            cost, middle = world.costs(data, np.array(epsilons)), int(np.sort(data)[rank])
            for side in (cost[middle:], cost[middle::-1]):
                assert all(b >= a - 1e-12 for a, b in itertools.pairwise(side))


@pytest.mark.parametrize("seed", range(20))
def test_scores_fall_then_rise(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values, weights = rng.integers(0, 9, 7).tolist(), [Fraction(int(w)) for w in rng.integers(1, 30, 7)]
    q = Fraction(int(rng.integers(1, 10)), 10)
    scores = [quantile_score(values, weights, q, x) for x in range(-1, 10)]
    lowest = scores.index(min(scores))
    assert scores[:lowest] == sorted(scores[:lowest], reverse=True)
    assert scores[lowest:] == sorted(scores[lowest:])


def test_the_d_values_of_the_paper() -> None:
    values, epsilons = [3, 5, 6, 9, 11], [0.1, 1, 1, 0.5, 1]
    chance = order_pmf(values, epsilons, rank=2, bounds=(1, 12), step=1)[1]
    for r, d in {3: -1.5, 4: -1.5, 5: -0.5, 6: 0.0, 11: -0.6}.items():
        assert -rank_cost(values, epsilons, 2, r) == pytest.approx(d)
        assert 2 * math.log(chance[r - 1] / chance[6 - 1]) == pytest.approx(d)


@pytest.mark.parametrize("seed", range(6))
def test_a_count_is_two_geometric_runs_per_level(seed: int) -> None:
    rng = np.random.default_rng(seed)
    grants, sizes, weights = [0.2, 0.7, 1.5], rng.integers(1, 5, 3), {0: 1.0}
    have = [int(rng.integers(0, size + 1)) for size in sizes]
    for sign in (1, -1):
        place, cost = 0, 0.0
        for grant, size, mine in zip(grants, sizes.tolist(), have, strict=True):
            run = size - mine if sign > 0 else mine
            q = math.exp(-grant / 2)
            masses = [math.exp(-(cost + grant * (i + 1)) / 2) for i in range(run)]
            assert sum(masses) == pytest.approx(math.exp(-(cost + grant) / 2) * (1 - q**run) / (1 - q))
            weights |= {place + sign * (i + 1): mass for i, mass in enumerate(masses)}
            place, cost = place + sign * run, cost + grant * run
    values = [x for size, mine in zip(sizes.tolist(), have, strict=True) for x in [1] * mine + [0] * (size - mine)]
    outcomes, chance = count_pmf(values, np.repeat(grants, sizes))
    expected = np.array([weights[int(o) - sum(have)] for o in outcomes])
    np.testing.assert_allclose(chance, expected / expected.sum(), atol=1e-12)


# --- worst cases and what nobody can beat ------------------------------------------------------------------------


def exponential_error(bits: Sequence[int], epsilons: Sequence[float]) -> float:
    """The exact RMSE of the exponential count."""
    sides = [np.sort([e for b, e in zip(bits, epsilons, strict=True) if b == bit]) for bit in (0, 1)]
    cost = np.concatenate([np.cumsum(side[np.isfinite(side)]) for side in sides])
    distance = np.concatenate([np.arange(1, np.isfinite(side).sum() + 1) for side in sides])
    weight = np.exp(-cost / 2)
    return math.sqrt(float((weight * distance**2).sum()) / (1 + float(weight.sum())))


@pytest.mark.parametrize("seed", range(40))
def test_the_worst_case_of_an_exponential_count_is_bounded_by_two_cheapest_sides(seed: int) -> None:
    rng = np.random.default_rng(seed)
    people = int(rng.integers(2, 8))
    epsilons = some_epsilons(rng, people, int(rng.integers(0, 2)))
    finite = np.sort([e for e in epsilons if math.isfinite(e)])
    weight, distance = np.exp(-np.cumsum(finite) / 2), np.arange(1, len(finite) + 1)
    bound = math.sqrt(2 * float((weight * distance**2).sum()) / (1 + 2 * float(weight.sum())))
    worst = max(exponential_error(bits, epsilons) for bits in itertools.product((0, 1), repeat=people))
    assert worst <= bound * (1 + 1e-12)
    assert bound <= math.sqrt(2) * worst * (1 + 1e-12)


def expected_count(mechanism: Mechanism, question: Question, people: ArrayPeople) -> tuple[float, float]:
    """(expectation, variance) of a linear mechanism's count, from its weights, its coins and its noise."""
    assert isinstance(mechanism, Weighing)
    statistic, levels = question.statistic, people.levels
    assert isinstance(statistic, Additive)
    weighting, part = weighting_of(mechanism, question, levels), statistic.parts[0]
    keep = [1.0] * len(levels.grants)
    if weighting.chances is not None:
        keep = [c / ALWAYS for c in weighting.chances]
    zero, one = (float(statistic.finish(question, [[Fraction(k)]], weighting, levels)) for k in (0, 1))
    tally = people.tally(statistic)[0][:, 0]
    parts = [(w / weighting.one, k, int(n)) for w, k, n in zip(weighting.weights, keep, tally, strict=True)]
    inverse = float(weighting.inverse_scale(part.share, part.reach[question.neighbors])) * weighting.one
    ratio = math.exp(-inverse / weighting.one)
    noise = 2 * ratio / (1 - ratio) ** 2 / weighting.one**2 if ratio < 1 - 1e-9 else 2 / inverse**2
    coins = sum(w * w * k * (1 - k) * n for w, k, n in parts)
    return zero + (one - zero) * sum(w * k * n for w, k, n in parts), (one - zero) ** 2 * (coins + noise)


@pytest.mark.parametrize("seed", range(12))
def test_no_count_errs_less_than_the_floor_or_more_than_its_worst_error(seed: int) -> None:
    rng = np.random.default_rng(seed)
    people = int(rng.integers(1, 7))
    epsilons = some_epsilons(rng, people, int(rng.integers(0, people)))
    roster, question = roster_of(epsilons), Question(Count())
    floor = count_floor(roster.levels)
    everything = [np.array(bits, float) for bits in itertools.product((0, 1), repeat=people)]
    for name in list_mechanisms():
        mechanism = at_max(name, question.statistic)
        if mechanism.refuses(question, roster.levels) is not None:
            continue
        claimed = mechanism.worst_error(question, roster.levels)
        assert claimed is not None
        assert claimed >= floor * (1 - 1e-9)
        if isinstance(mechanism, Weighing):
            laws = [(bits, expected_count(mechanism, question, ArrayPeople.of(bits, roster))) for bits in everything]
            worst = max(math.sqrt((mean - bits.sum()) ** 2 + variance) for bits, (mean, variance) in laws)
            assert floor * (1 - 1e-9) <= worst
            # Answers are cut to what is possible, so none is off by more than everyone.
            assert min(worst, people) <= claimed * (1 + 1e-6)
        elif name == "exponential":
            worst = max(exponential_error(bits.astype(int).tolist(), epsilons) for bits in everything)
            assert floor <= worst * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_two_laws_within_a_loss_cannot_be_told_apart_better(seed: int) -> None:
    """The step of the proof: sum of p p'/(p+p') >= 1/(2 cosh^2(E/2)), reached by randomized response."""
    rng = np.random.default_rng(seed)
    loss = float(rng.uniform(0.01, 6))
    tilt = rng.uniform(-loss, loss, 8) / 2
    base = rng.random(8)
    one, other = base * np.exp(tilt), base * np.exp(-tilt)
    one, other = one / one.sum(), other / other.sum()
    loss = float(np.abs(np.log(one / other)).max())
    assert float((one * other / (one + other)).sum()) >= 1 / (2 * math.cosh(loss / 2) ** 2)
    truth = 1 / (1 + math.exp(-loss))
    assert 2 * truth * (1 - truth) == pytest.approx(1 / (2 * math.cosh(loss / 2) ** 2))


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("statistic", [Count(), Sum((-3.0, 5.0))])
def test_the_worst_error_of_robust_is_reached_at_a_bound_and_is_convex_in_b(seed: int, statistic: Additive) -> None:
    rng = np.random.default_rng(seed)
    epsilons = some_epsilons(rng, 5, int(rng.integers(0, 3)))
    roster, question, robust = roster_of(epsilons), Question(statistic), create("robust", statistic)
    assert isinstance(robust, Weighing)
    low, high = statistic.extremes
    gap, reach = (high - low) / 2, statistic.parts[0].reach["absent"] * statistic.units[0]

    def objective(b: float) -> float:
        left_out = sum(1 - min(1.0, b * e) for e in epsilons)
        return (gap * left_out) ** 2 + 2 * (b * reach) ** 2

    b = NANO / float(weighting_of(robust, question, roster.levels).rate)
    for x in np.geomspace(1e-3, 1e3, 61):
        assert objective(b) <= objective(x) * (1 + 1e-6)
        assert objective((b + x) / 2) <= (objective(b) + objective(x)) / 2 * (1 + 1e-12)
    claimed = robust.worst_error(question, roster.levels)
    assert claimed == pytest.approx(math.sqrt(objective(b)), rel=1e-6)
    corners = [sum((1 - min(1.0, b * e)) * (0.5 * (low + high) - x) for e, x in zip(epsilons, values, strict=True))
               for values in itertools.product((low, high), repeat=5)]  # fmt: skip
    assert max(corners) ** 2 + 2 * (b * reach) ** 2 == pytest.approx(objective(b))


# --- sample ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_the_theorem_of_sample_under_both_relations(seed: int) -> None:
    """Any three chances that an inner mechanism may give: with a value, with another one, without the person."""
    rng = np.random.default_rng(seed)
    for _ in range(2000):
        t = float(rng.uniform(0.01, 4))
        epsilon = float(rng.uniform(0.001, t))
        keep = math.expm1(epsilon) / math.expm1(t)
        base = float(rng.uniform(0.001, 0.01))
        with_one, with_other, without = (base * math.exp(u) for u in rng.choice([0, t, rng.uniform(0, t)], 3))
        one, other = (keep * p + (1 - keep) * without for p in (with_one, with_other))
        for p, q in ((one, without), (without, one), (one, other)):
            assert p <= math.exp(epsilon) * q * (1 + 1e-12)


def test_what_a_sample_costs_once_twice_and_reused() -> None:
    """All the noise in the far tail, where a geometric answer loses exactly t each time."""
    epsilon, t = 0.1, 1.0
    keep = math.expm1(epsilon) / math.expm1(t)
    once, reused = (math.log1p(keep * math.expm1(k * t)) for k in (1, 2))
    assert once == pytest.approx(epsilon)
    assert reused == pytest.approx(0.330, abs=5e-4)
    assert reused > 1.6 * 2 * once


def test_example_1_of_the_paper() -> None:
    """200 people, a tenth ones, 65% of them at .1: 152 at t=1, 100 at t=.2, by the formula and by the mechanism."""
    roster = roster_of([0.1] * 130 + [1.0] * 70)
    values = np.array([1] * 13 + [0] * 117 + [1] * 7 + [0] * 63, float)
    for t, squared in ((1.0, 152), (0.2, 100)):
        keep = math.expm1(0.1) / math.expm1(t)
        formula = 13 * keep * (1 - keep) + (13 * (keep - 1)) ** 2 + 2 / t**2
        assert round(formula) == squared
        mean, variance = expected_count(Sample(t), Question(Count()), ArrayPeople.of(values, roster))
        # The discrete noise has a slightly smaller variance than the continuous one of the paper.
        discrete = 1 / (2 * math.sinh(t / 2) ** 2)
        assert (mean - 20) ** 2 + variance == pytest.approx(formula - 2 / t**2 + discrete, rel=1e-9)


# --- error bars --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("people", "epsilon"), [(30, 0.3), (12, 1.0), (9, 4.0)])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_the_inverted_test_of_a_count_covers_every_true_count(people: int, epsilon: float, confidence: float) -> None:
    bar = CountBar((round(epsilon * NANO),), (people,), 1.0)
    spans = [bar.interval(float(y), confidence, False) for y in range(people + 1)]
    for x in range(people + 1):
        outcomes, chance = count_pmf([1] * x + [0] * (people - x), [epsilon] * people)
        covered = [spans[int(y)][0] - 1e-3 <= x <= spans[int(y)][1] + 1e-3 for y in outcomes]
        assert float(chance[covered].sum()) >= confidence


@pytest.mark.parametrize("statistic", [Count(), Sum((0.0, 1.0)), Mean((0.0, 1.0))])
def test_a_debiased_answer_is_right_on_average_over_who_chose_which_level(statistic: Additive) -> None:
    epsilons, values = [0.2, 0.5, 1.0, 1.0], [1.0, 0.0, 0.0, 1.0]
    roster, question = roster_of(epsilons), Question(statistic)
    for name in ("threshold", "stretching", "sample"):
        mechanism = at_max(name, statistic)
        (model,) = mechanism.error_bars(question, roster.levels, Answer(0.5)) or ()
        assert isinstance(model, ErrorModel | FractionBar)
        answers = [
            expected_count(mechanism, question, ArrayPeople.of(np.array(order), roster))[0]
            for order in itertools.permutations(values)
        ]
        estimate = float(np.mean(answers)) * model.slope + model.shift
        assert estimate == pytest.approx(0.5 if isinstance(statistic, Average) else 2.0, rel=1e-6)


# --- what the papers report --------------------------------------------------------------------------------------


def test_the_first_figure_of_the_paper_on_mixing() -> None:
    """n=100, reach 50: mixed 2.96, the best sample 2.53, weighted 2.32, everyone public 1.50 (thousandths)."""
    sizes, epsilons = np.array([100, 100, 500, 1000, 5000, 10000]), np.array([10, 0.05, 0.1, 0.01, 0.25, 0.15])
    variance, reach = 25.0, 50.0

    def sample(t: float) -> float:
        keep = np.where(epsilons < t, np.expm1(epsilons) / np.expm1(t), 1.0)
        return float(variance * (keep @ sizes) + 2 * (reach / t) ** 2) / float(keep @ sizes) ** 2

    thresholds = np.geomspace(0.01, 10, 4001)
    best = thresholds[int(np.argmin([sample(t) for t in thresholds]))]
    mixed = 1 / float((1 / (variance / sizes + 2 * (reach / epsilons / sizes) ** 2)).sum())
    pairs = sorted((round(e * NANO), n) for e, n in zip(epsilons, sizes.tolist(), strict=True))
    levels = Levels(tuple(g for g, _ in pairs), tuple(n for _, n in pairs))
    weighted = Weighted().predict_error(Question(Mean((-50.0, 50.0)), spread=5.0), levels)
    assert weighted is not None
    found = [mixed, sample(best), weighted**2 + variance / sizes.sum(), variance / sizes.sum()]
    assert [round(1000 * v, 2) for v in found] == [2.96, 2.53, 2.32, 1.5]
    assert best == pytest.approx(0.15, abs=0.002)
    question = Question(Mean((-50.0, 50.0)), spread=5.0)
    predicted = create("mixed", question.statistic).predict_error(question, levels)
    assert predicted == pytest.approx(math.sqrt(mixed - variance / sizes.sum()), rel=1e-6)


def test_minimum_passes_the_exponential_count_at_about_six_hundredths() -> None:
    rng = np.random.default_rng(1)
    gap = {}
    for strictest in (0.05, 0.08):
        paper = PaperOne(strictest=strictest, middle=0.5)
        squares = []
        for _ in range(12):
            epsilons, bits = paper.epsilons(rng), paper.bits(rng)
            squares.append(exponential_error(bits.astype(int).tolist(), epsilons.tolist()) ** 2)
        levels = roster_of([strictest] + [1.0] * 999).levels
        minimum = create("minimum", Count()).predict_error(Question(Count()), levels)
        assert minimum is not None
        assert minimum == pytest.approx(math.sqrt(2) / strictest, rel=1e-3)
        gap[strictest] = minimum - math.sqrt(np.mean(squares))
    assert gap[0.05] > 1
    assert gap[0.08] < -2
