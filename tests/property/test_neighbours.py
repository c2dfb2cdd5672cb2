"""Frozen noise: one person's value moves a release by no more than declared, whatever the value is.

Both data sets of a pair are answered with the same random bits. Warnings are errors in all tests, so a value that
makes numpy speak up fails here too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from epsilons.measure import Measure
from epsilons.mechanisms.base import Mechanism, Weighing, weighting_of, why_refused
from epsilons.mechanisms.minimum import Minimum
from epsilons.mechanisms.sample import Sample
from epsilons.preferences import roster_of
from epsilons.statistics import order
from epsilons.statistics.additive import Additive, weighted_sums
from epsilons.statistics.base import Question
from epsilons.statistics.gaussian import squares
from epsilons.statistics.histogram import Histogram
from epsilons.statistics.order import Order
from epsilons.statistics.total import Sum
from epsilons.testing import seeded
from support import planted
from support.frozen import Meter, recorded_costs
from support.hostile import LISTED, Neighbours, neighbours

#: The quick run, and the long one.
QUICK, LONG = 300, 10_000


def check_sums(pair: Neighbours) -> None:
    """Integer sums: only the person's own level moves, by at most the reach, times the weight once weighted.

    All parts together move by at most what one epsilon pays for.
    """
    statistic, relation = pair.question.statistic, pair.question.neighbors
    if not isinstance(statistic, Additive):
        return
    together = Fraction(0)
    for part, one, other in zip(statistic.parts, statistic.tally(pair.one), statistic.tally(pair.other), strict=True):
        moved = np.abs(one - other)
        assert moved.sum() == moved[pair.level].sum() <= part.reach[relation]
        together += Fraction(int(moved.sum()), part.reach[relation]) * part.share
        if isinstance(pair.mechanism, Weighing):
            weights = weighting_of(pair.mechanism, pair.question, pair.roster.levels).weights
            sums = zip(weighted_sums(one, weights), weighted_sums(other, weights), strict=True)
            reach = weights[pair.level] * part.reach[relation]
            assert sum(abs(a - b) for a, b in sums) <= reach
    assert together <= 1


def check_answers(pair: Neighbours) -> None:
    """Released numbers: with the same noise the two answers differ by what one person's reach is worth.

    That is so before they are cut to what is possible, which would hide it where both are cut.
    """
    statistic, mechanism = pair.question.statistic, pair.mechanism
    entropies = Meter(5), Meter(5)
    both = zip((pair.one, pair.other), entropies, strict=True)
    drawn = [mechanism.draw(pair.question, people, entropy) for people, entropy in both]
    if not isinstance(mechanism, Weighing) or not isinstance(statistic, Additive):
        return
    weighting, levels = weighting_of(mechanism, pair.question, pair.roster.levels), pair.roster.levels
    if weighting.coins is not None:
        return
    assert entropies[0].taken == entropies[1].taken, "another number of random bits tells the data sets apart"
    if len(statistic.parts) > 1 or statistic.parts[0].cells > 1:
        return
    answers = [statistic.finish(pair.question, one.sums, weighting, levels) for one in drawn]
    assert [statistic.cut(answer, levels.size) for answer in answers] == [one.value for one in drawn]
    reach = Fraction(weighting.weights[pair.level] * statistic.parts[0].reach[pair.question.neighbors], weighting.one)
    most, none = (statistic.finish(pair.question, [[k]], weighting, levels) for k in (reach, Fraction(0)))
    assert abs(answers[0] - answers[1]) <= abs(most - none) * (1 + 1e-9) + 1e-9 * max(map(abs, answers))


def check_squares(pair: Neighbours) -> None:
    """Gaussian noise: all parts together move by at most 1 in L2, in deviations at weight one; so do their draws."""
    statistic, relation = pair.question.statistic, pair.question.neighbors
    if not isinstance(statistic, Additive):
        return
    tallies = zip(squares(statistic, relation), statistic.tally(pair.one), statistic.tally(pair.other), strict=True)
    moved = [(square, (one.astype(object) - other.astype(object)).reshape(-1)) for square, one, other in tallies]
    assert sum(Fraction(int(away @ away)) / square for square, away in moved) <= 1
    concentrated = replace(pair.question, measure=Measure(Fraction(1, 10**6)))
    if why_refused(pair.mechanism, concentrated, pair.roster.levels) is None:
        check_answers(replace(pair, question=concentrated))


def check_costs(pair: Neighbours) -> None:
    """Exponential mechanisms: the same answers are possible, and none's cost moves by more than the person's charge.

    Sample sets up its exponential mechanism at the threshold: there a person is worth the threshold, if kept at all.
    """
    mechanism, question, levels = pair.mechanism, pair.question, pair.roster.levels
    charge = mechanism.charge(question, levels)[pair.level]
    assert charge is not None
    if isinstance(mechanism, Sample):
        charge = int(weighting_of(mechanism, question, levels).rate)
    laws: list[list[dict[int, Fraction]]] = []
    for people in (pair.one, pair.other):
        with recorded_costs() as costs:
            mechanism.draw(question, people, seeded(5))
            laws.append(list(costs))
    for one, other in zip(*laws, strict=True):
        assert one.keys() == other.keys()
        assert all(abs(one[r] - other[r]) * 10**9 <= charge for r in one)


def check_coins(pair: Neighbours) -> None:
    """Sample: everybody else's coin falls the same way. (Most counts are thinned instead, where coins are nobody's.)"""
    statistic, levels = pair.question.statistic, pair.roster.levels
    chances = [2**63] * len(levels.grants)
    if isinstance(statistic, Order):
        one, other = (p.sampled_cells(statistic, chances, seeded(5))[0] for p in (pair.one, pair.other))
        mine, yours = Counter(one.keys.tolist()), Counter(other.keys.tolist())
        assert (mine - yours).total() <= 1
        assert (yours - mine).total() <= 1
    elif isinstance(statistic, Additive):
        sampled = (p.sampled_tally(statistic, chances, seeded(5)) for p in (pair.one, pair.other))
        tallies = (statistic.make_parts(sums) for sums in sampled)
        for part, one, other in zip(statistic.parts, *tallies, strict=True):
            moved = np.abs(one - other)
            assert moved.sum() == moved[pair.level].sum() <= part.reach[pair.question.neighbors]


def check_order(pair: Neighbours) -> None:
    """The order of the rows is nobody's business: summaries are the same for any."""
    statistic = pair.question.statistic
    turned = pair.values[::-1], type(pair.roster).of(pair.roster.levels, pair.roster.codes[::-1])
    people = type(pair.one).of(*turned)
    if isinstance(statistic, Order):
        np.testing.assert_array_equal(pair.one.cells(statistic).keys, people.cells(statistic).keys)
    elif isinstance(statistic, Additive):
        for one, other in zip(pair.one.tally(statistic), people.tally(statistic), strict=True):
            np.testing.assert_array_equal(one, other)


CHECKS: dict[str, Callable[[Neighbours], None]] = {
    "sums move by at most the declared reach": check_sums,
    "answers with the same noise stay close": check_answers,
    "sums move by at most the declared squares": check_squares,
    "costs move by at most the charge": check_costs,
    "other people's coins stay the same": check_coins,
    "the order of rows does not matter": check_order,
}


@pytest.fixture(scope="module")
def pairs() -> list[Neighbours]:
    """The same ones for all promises: to make up a pair takes longer than to check it."""
    found: list[Neighbours] = []

    @settings(max_examples=QUICK)
    @given(neighbours())
    def note(pair: Neighbours) -> None:
        found.append(pair)

    note()
    return found


@pytest.mark.parametrize("promise", CHECKS)
def test_a_pair_of_neighbours_is_held_to_a_promise(promise: str, pairs: list[Neighbours]) -> None:
    for pair in pairs:
        try:
            CHECKS[promise](pair)
        except Exception as error:
            error.add_note(str(pair))
            raise


@pytest.mark.soak
@pytest.mark.figure("figure_4_arrays")
def test_ten_thousand_pairs_of_neighbours_are_held_to_every_promise(
    record_property: Callable[[str, Any], None],
) -> None:
    seen: Counter[str] = Counter()

    @settings(max_examples=LONG)
    @given(neighbours())
    def every(pair: Neighbours) -> None:
        for check in CHECKS.values():
            check(pair)
        seen.update(["pairs", *(name for name, there in LISTED.items() if there(pair))])

    every()
    assert seen["pairs"] >= LONG
    assert all(seen[name] >= LONG / 100 for name in LISTED), seen
    record_property("size", seen["pairs"])


def test_the_listed_inputs_occur(pairs: list[Neighbours]) -> None:
    """Among the pairs of a quick run too, and none of them in a plain pair."""
    assert len(pairs) >= QUICK
    assert {name for pair in pairs for name, there in LISTED.items() if there(pair)} == set(LISTED)
    plain = pair_of(Minimum(), Question(Sum(LOW_HIGH)), STRICT, [0.0, 1.0, 2.0], [0.5, 1.0, 2.0])
    assert not any(there(plain) for there in LISTED.values())


# --- the checks have teeth ----------------------------------------------------------------------------------------


def pair_of(
    mechanism: Mechanism, question: Question, epsilons: list[float], one: list[float], other: list[float]
) -> Neighbours:
    return Neighbours(mechanism, question, roster_of(epsilons), np.array(one), np.array(other), person=0)


LOW_HIGH = (-1.0, 2.0)
MEDIAN = order.median((0.0, 4.0), 1)
NAN = float("nan")
STRICT, TIED = [0.1, 1.5, 1.5], [0.1, 0.1, 1.5]
CAUGHT: dict[str, tuple[Callable[[Neighbours], None], Neighbours]] = {
    "values not clamped": (
        check_sums,
        pair_of(Minimum(), Question(planted.UnclampedSum(LOW_HIGH)), STRICT, [9.0, 0.0, 0.0], [NAN, 0.0, 0.0]),
    ),
    "missing people at the lower bound": (
        check_answers,
        pair_of(
            Minimum(), Question(planted.MissingAtTheLowerBound(LOW_HIGH)), STRICT, [2.0, 0.0, 0.0], [NAN, 0.0, 0.0]
        ),
    ),
    "histogram reach of 1": (
        check_sums,
        pair_of(
            Minimum(),
            Question(planted.HistogramWithoutReplacement(edges=(0.0, 1.0, 2.0)), "replace"),
            STRICT,
            [0.0, 0.0, 0.0],
            [1.0, 0.0, 0.0],
        ),
    ),
    "cost by position": (
        check_costs,
        pair_of(planted.RankedWithoutTies(), Question(MEDIAN, "replace"), TIED, [0.0, 0.0, 4.0], [4.0, 0.0, 4.0]),
    ),
    "missing people dropped": (
        check_costs,
        pair_of(planted.DroppedMissing(), Question(MEDIAN), STRICT, [0.0, 0.0, 4.0], [NAN, 0.0, 4.0]),
    ),
}


@pytest.mark.parametrize("bug", CAUGHT)
def test_the_same_checks_refuse_a_planted_bug(bug: str) -> None:
    check, pair = CAUGHT[bug]
    with pytest.raises(AssertionError):
        check(pair)


@pytest.mark.parametrize("bug", CAUGHT)
def test_the_same_checks_accept_the_same_pair_without_the_bug(bug: str) -> None:
    check, pair = CAUGHT[bug]
    statistic = pair.question.statistic
    if not isinstance(statistic, Order):
        statistic = Sum(LOW_HIGH) if isinstance(statistic, Sum) else Histogram(edges=(0.0, 1.0, 2.0))
    mechanism = planted.Tampered() if check is check_costs else Minimum()
    check(replace(pair, mechanism=mechanism, question=replace(pair.question, statistic=statistic)))
