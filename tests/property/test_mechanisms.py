"""Random rosters and values: the fast code against the slow definitions, and no loss above any charge."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import epsilons as eps
from epsilons.auditing import ABSENT
from epsilons.guarantee import NANO
from epsilons.mechanisms.base import create, list_mechanisms, weighting_of
from epsilons.mechanisms.weighted import Weighted
from epsilons.preferences import roster_of
from epsilons.statistics import order
from epsilons.statistics.base import Question
from epsilons.statistics.count import Count
from support.brute_force import exponential_pmf, quantile_score, rank_cost
from support.lengths import examples
from support.small_worlds import WORLDS, at_max, audit_exactly

#: Whole milli-epsilons, so that sums of a few are exact to far below the tolerance.
EPSILONS = st.one_of(st.integers(1, 3000).map(lambda k: k / 1000), st.sampled_from([0.5, 1.0, math.inf]))


@st.composite
def people(draw: st.DrawFn, most: int = 30, width: int = 12) -> tuple[list[float], list[float]]:
    """(values on 0..width, epsilons), with ties, gaps and a public person now and then; somebody is private."""
    epsilons = draw(st.lists(EPSILONS, min_size=1, max_size=most).filter(lambda es: any(map(math.isfinite, es))))
    values = draw(st.lists(st.integers(0, width).map(float), min_size=len(epsilons), max_size=len(epsilons)))
    return values, epsilons


def finite_cost(values: list[float], epsilons: list[float], rank: int, r: float) -> float:
    cost = rank_cost(values, epsilons, rank, r)
    return math.inf if math.isnan(cost) else cost


@examples(75)
@given(people(), st.floats(0, 1))
def test_any_rank_of_any_people_follows_the_closed_form(
    given_people: tuple[list[float], list[float]], place: float
) -> None:
    values, epsilons = given_people
    rank = min(math.floor(place * len(values)), len(values) - 1)
    found = eps.mechanisms.exponential.order_pmf(values, epsilons, rank=rank, bounds=(0, 12), step=1)[1]
    costs = np.array([finite_cost(values, epsilons, rank, r) for r in range(13)])
    np.testing.assert_allclose(found, exponential_pmf(costs), rtol=0, atol=1e-12)


@examples(50)
@given(people(width=1))
def test_any_count_follows_the_cheapest_changes(given_people: tuple[list[float], list[float]]) -> None:
    values, epsilons = given_people
    ones = sorted(e for x, e in zip(values, epsilons, strict=True) if x == 1)
    zeros = sorted(e for x, e in zip(values, epsilons, strict=True) if x != 1)
    true = len(ones)
    costs = np.array([math.fsum(zeros[: r - true] if r > true else ones[: true - r]) for r in range(len(values) + 1)])
    found = eps.mechanisms.exponential.count_pmf(values, epsilons)[1]
    np.testing.assert_allclose(found, exponential_pmf(costs), rtol=0, atol=1e-12)


@examples(50)
@given(people(), st.sampled_from([0.5, 0.3, 0.25, 0.99, 0.001]))
def test_any_weighted_quantile_follows_its_formula(given_people: tuple[list[float], list[float]], q: float) -> None:
    values, epsilons = given_people
    roster = roster_of(epsilons)
    losses = weighting_of(Weighted(), Question(order.quantile(q, (0, 12), 1)), roster.levels).losses()
    reach = max(Fraction(str(q)), 1 - Fraction(str(q)))
    weights = [Fraction(math.floor(losses[code] / reach), NANO) for code in roster.codes]
    scores = np.array([float(quantile_score(values, weights, Fraction(str(q)), r)) for r in range(13)])
    found = eps.mechanisms.weighted.quantile_pmf(values, epsilons, q, bounds=(0, 12), step=1)[1]
    np.testing.assert_allclose(found, exponential_pmf(scores), rtol=0, atol=1e-12)


@examples(60)
@given(
    st.sampled_from(sorted(list_mechanisms())),
    st.sampled_from(sorted(WORLDS)),
    st.sampled_from(["absent", "replace"]),
    st.lists(EPSILONS, min_size=1, max_size=3).filter(lambda es: any(map(math.isfinite, es))),
)
def test_no_roster_makes_anybody_lose_more_than_their_charge(
    name: str, kind: str, neighbors: str, epsilons: list[float]
) -> None:
    statistic, domain = WORLDS[kind]
    question, mechanism = Question(statistic, neighbors), at_max(name, statistic)
    if mechanism.refuses(question, roster_of(epsilons).levels) is None:
        verdict = audit_exactly(mechanism, question, tuple(epsilons), domain)
        assert verdict.holds, str(verdict)


@examples(30)
@given(
    st.sampled_from(["threshold", "sample"]),
    st.lists(st.integers(10, 2000).map(lambda k: k / 1000), min_size=2, max_size=3),
    st.floats(0, 1),
)
def test_no_threshold_makes_anybody_lose_more_than_their_charge(name: str, epsilons: list[float], place: float) -> None:
    threshold = min(epsilons) + place * (max(epsilons) - min(epsilons))
    mechanism = create(name, Count(), threshold=min(max(threshold, min(epsilons)), max(epsilons)))
    verdict = audit_exactly(mechanism, Question(Count()), tuple(epsilons), (0.0, 1.0, ABSENT))
    assert verdict.holds, str(verdict)
