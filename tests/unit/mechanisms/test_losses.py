"""Exact enumeration: over all small data sets nobody loses more than they are charged."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from epsilons.auditing import ABSENT
from epsilons.guarantee import NANO, to_epsilon
from epsilons.mechanisms.base import Mechanism, Weighing, list_mechanisms, weighting_of
from epsilons.preferences import roster_of
from epsilons.statistics.additive import Additive
from epsilons.statistics.base import Question
from epsilons.statistics.count import Count
from epsilons.statistics.histogram import Histogram
from epsilons.summaries.arrays import ArrayPeople
from epsilons.testing import seeded
from support.lengths import short_and_long
from support.small_worlds import (
    FOURS,
    NEIGHBORS,
    ROSTERS,
    WORLDS,
    audit_by_the_package,
    audit_exactly,
    laws,
    served_pairs,
    serving,
    variants,
)

MECHANISMS = sorted(list_mechanisms())
WEIGHING = [name for name in MECHANISMS if issubclass(list_mechanisms()[name], Weighing)]


def same_noise_under_replace(
    mechanism: Mechanism, question: Question, epsilons: tuple[float, ...], domain: tuple[float, ...]
) -> bool:
    """Whether charges and laws are the same under both relations, as they are for counts and order statistics."""
    roster, other = roster_of(list(epsilons)), replace(question, neighbors="replace")
    if mechanism.charge(question, roster.levels) != mechanism.charge(other, roster.levels):
        return False
    for values in (domain[:3], domain[-1:-4:-1]):
        laws = (mechanism.distribution(q, ArrayPeople.of(values, roster))[1] for q in (question, other))
        if not np.array_equal(*laws):
            return False
    return True


def some_laws(name: str, kind: str, everything: bool) -> list[tuple[Question, tuple[float, ...], Mechanism]]:
    """In the short run every fifth of the rosters, relations and thresholds; for the next statistic, others."""
    found = list(laws(name, kind))
    return found if everything else found[served_pairs().index((name, kind)) % 5 :: 5]


@pytest.mark.parametrize("everything", short_and_long(False, True))
@pytest.mark.parametrize(("name", "kind"), served_pairs())
def test_nobody_loses_more_than_they_are_charged(name: str, kind: str, everything: bool) -> None:
    for question, epsilons, mechanism in some_laws(name, kind, everything):
        if question.neighbors == "absent" and same_noise_under_replace(mechanism, question, epsilons, WORLDS[kind][1]):
            continue  # then the enumeration under "replace", whose values include absence, has these pairs too
        verdict = audit_exactly(mechanism, question, epsilons, WORLDS[kind][1])
        assert verdict.worst is not None
        assert verdict.holds, f"{mechanism} {question} {epsilons}: {verdict}"


@pytest.mark.soak
@pytest.mark.figure("figure_3_enumeration")
@pytest.mark.parametrize("name", MECHANISMS)
def test_nobody_of_three_or_four_people_loses_more_than_they_are_charged(
    name: str, record_property: Callable[[str, Any], None]
) -> None:
    """Every statistic, option, roster and relation, and no short cut between relations."""
    pairs = 0
    for kind in (kind for mechanism, kind in served_pairs() if mechanism == name):
        for question, epsilons, mechanism in laws(name, kind, ROSTERS + FOURS):
            verdict = audit_exactly(mechanism, question, epsilons, WORLDS[kind][1])
            assert verdict.holds, f"{mechanism} {question} {epsilons}: {verdict}"
            pairs += verdict.pairs
    record_property("size", pairs)


@pytest.mark.parametrize("every", short_and_long(2, 1))
@pytest.mark.parametrize("name", MECHANISMS)
def test_the_enumeration_of_these_tests_finds_what_the_package_s_own_auditor_finds(name: str, every: int) -> None:
    """For people alike, whose laws are worked out once for all their orders, and for people who differ; the honest
    mechanism and one that is charged a tenth less."""
    kind = next(kind for mechanism, kind in served_pairs() if mechanism == name)
    domain, rosters = WORLDS[kind][1], ((0.7, 0.7, 0.7), (0.05, 1.5, 1.5))
    audited_by_both = [law for law in laws(name, kind) if law[1] in rosters]
    for question, epsilons, mechanism in audited_by_both[::every]:
        by_level = map(to_epsilon, mechanism.charge(question, roster_of(list(epsilons)).levels))
        cheaper: Any = _Charging(mechanism, tuple(0.9 * charge for charge in by_level))
        for audited in (mechanism, cheaper):
            quick = audit_exactly(audited, question, epsilons, domain)
            slow = audit_by_the_package(audited, question, epsilons, domain)
            assert quick.worst is not None
            assert slow.worst is not None
            assert quick.holds is slow.holds
            assert quick.worst.loss == pytest.approx(slow.worst.loss, rel=1e-9)
            assert quick.worst.ratio == pytest.approx(slow.worst.ratio, rel=1e-9)


def test_every_registered_mechanism_serves_something_here() -> None:
    assert {name for name, _ in served_pairs()} == set(list_mechanisms())


@pytest.mark.parametrize("name", MECHANISMS)
def test_four_people_lose_no_more_than_three(name: str) -> None:
    epsilons = (0.1, 0.6, 0.6, 1.3)
    for neighbors in NEIGHBORS:
        question = Question(Count(), neighbors)
        for mechanism in variants(name, question.statistic, epsilons):
            if mechanism.refuses(question, roster_of(list(epsilons)).levels) is None:
                verdict = audit_exactly(mechanism, question, epsilons, (0.0, 1.0, ABSENT))
                assert verdict.holds, f"{mechanism}: {verdict}"


@pytest.mark.parametrize("name", MECHANISMS)
def test_nobody_is_charged_more_than_they_granted(name: str) -> None:
    for _, question, epsilons, mechanism in serving(name):
        levels = roster_of(list(epsilons)).levels
        for grant, charge in zip(levels.grants, mechanism.charge(question, levels), strict=True):
            if grant is None:
                assert charge is None
            else:
                assert charge is not None
                assert 0 <= charge <= grant


@pytest.mark.parametrize("name", WEIGHING)
def test_the_loss_implied_by_weights_and_noise_is_within_the_charge_to_the_last_digit(name: str) -> None:
    """Rational arithmetic, since a rounding that goes the wrong way is far below what an enumeration in floats sees."""
    strange = (0.1, 1 / 3, math.pi, 0.123456789, 7e-9)
    for kind, question, epsilons, mechanism in serving(name):
        for roster in (epsilons, strange):
            levels = roster_of(list(roster)).levels
            assert isinstance(mechanism, Weighing)
            if isinstance(getattr(mechanism, "threshold", None), float) and roster is strange:
                continue
            weighting, charges = weighting_of(mechanism, question, levels), mechanism.charge(question, levels)
            for weight, charge, grant in zip(weighting.weights, charges, levels.grants, strict=True):
                if charge is None:
                    continue
                assert charge <= (grant or 0)
                if kind in ("median", "quantile", "min", "max", "kth_largest"):
                    continue
                loss = weight * moved_at_most(kind, question.neighbors) * weighting.rate / weighting.one
                if weighting.chances is None:
                    assert loss <= charge


@pytest.mark.parametrize("name", WEIGHING)
def test_a_level_above_the_cap_is_charged_only_what_it_really_loses(name: str) -> None:
    """The charge is tight for additive statistics: somebody at every charged level really can lose all of it."""
    epsilons, domain = (0.2, 0.5, 1.0), (0.0, 1.0, ABSENT)
    question = Question(Count())
    for mechanism in variants(name, question.statistic, epsilons):
        levels = roster_of(list(epsilons)).levels
        for person, charge in enumerate(mechanism.charge(question, levels)):
            alone = [math.inf] * 3
            alone[person] = to_epsilon(charge)
            if not charge:
                continue
            verdict = audit_exactly(_Charging(mechanism, tuple(alone)), question, epsilons, domain)
            assert verdict.worst is not None
            assert verdict.worst.person == person
            assert verdict.worst.ratio == pytest.approx(1, abs=1e-6)


@functools.cache
def moved_at_most(kind: str, neighbors: str) -> Fraction:
    """The largest loss per epsilon of a person of weight one, of all parts together, over values of the domain."""
    statistic, one = WORLDS[kind][0], roster_of([1.0])
    assert isinstance(statistic, Additive)
    vectors = [
        [cell for part in statistic.tally(ArrayPeople.of([value], one)) for cell in part[0].tolist()]
        for value in (ABSENT, *WORLDS[kind][1])
    ]
    costs = [part.share / part.reach[neighbors] for part in statistic.parts for _ in range(part.cells)]
    pairs = itertools.product(vectors[:1] if neighbors == "absent" else vectors, vectors)
    return max(
        sum((cost * abs(x - y) for cost, x, y in zip(costs, left, right, strict=True)), Fraction(0))
        for left, right in pairs
    )


class _Charging:
    """A mechanism of which only some levels' charges are looked at, or whose charges are others than its own."""

    def __init__(self, mechanism: Mechanism, epsilons: tuple[float, ...]) -> None:
        self.distribution = mechanism.distribution
        self._charges = tuple(None if math.isinf(e) else round(e * NANO) for e in epsilons)

    def charge(self, question: Question, levels: object) -> tuple[int | None, ...]:
        return self._charges


@pytest.mark.parametrize("neighbors", NEIGHBORS)
@pytest.mark.parametrize("name", WEIGHING)
def test_the_noise_asked_for_never_depends_on_the_values(
    name: str, neighbors: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a draw really hands to the noise room: one call per cell, at reach/rate, whatever the data."""
    asked: list[Fraction] = []
    monkeypatch.setattr(
        "epsilons.statistics.additive.discrete_laplace", lambda entropy, inverse: asked.append(inverse) or 0
    )
    for kind in ("count", "sum", "mean", "variance", "histogram"):
        question = Question(WORLDS[kind][0], neighbors)
        for epsilons in ROSTERS:
            roster = roster_of(list(epsilons))
            for mechanism in variants(name, question.statistic, epsilons):
                if mechanism.refuses(question, roster.levels) is not None:
                    continue
                assert isinstance(mechanism, Weighing)
                weighting = weighting_of(mechanism, question, roster.levels)
                expected = []
                for part in question.statistic.parts:  # type: ignore[attr-defined]
                    scale = weighting.one * part.reach[neighbors] / (part.share * weighting.rate / NANO)
                    expected += [1 / scale] * part.cells
                for values in ((0.0, 0.0, 0.0), (2.0, 1.0, ABSENT), (ABSENT,) * 3):
                    asked.clear()
                    mechanism.draw(question, ArrayPeople.of(values, roster), seeded(1))
                    assert asked == expected


def test_a_histogram_of_people_who_move_costs_twice_one_of_people_who_leave() -> None:
    """A row can move: L1 reach 2, seen as an exact loss of the whole charge in both relations."""
    statistic, domain = Histogram(categories=(1.0, 2.0)), (1.0, 2.0, ABSENT)
    for neighbors in NEIGHBORS:
        verdict = audit_exactly(list_mechanisms()["minimum"](), Question(statistic, neighbors), (0.5, 0.5), domain)
        assert verdict.worst is not None
        assert verdict.worst.ratio == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("everything", short_and_long(False, True))
@pytest.mark.parametrize(("name", "kind"), served_pairs())
def test_a_distribution_lists_the_same_answers_whatever_private_people_have(
    name: str, kind: str, everything: bool
) -> None:
    """An answer possible on one data set only would be an infinite loss."""
    domain = WORLDS[kind][1]
    for question, epsilons, mechanism in some_laws(name, kind, everything):
        roster, public = roster_of(list(epsilons)), np.isinf(epsilons)
        support = set()
        for values in (np.full(3, domain[0]), np.full(3, domain[2]), np.full(3, ABSENT)):
            mixed = np.where(public, domain[1], values)
            outcomes, logs = mechanism.distribution(question, ArrayPeople.of(mixed, roster))
            support.add(tuple(sorted(map(str, np.asarray(outcomes, object)[np.isfinite(logs)]))))
        assert len(support) == 1
