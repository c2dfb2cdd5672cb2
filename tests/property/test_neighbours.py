"""Frozen noise: one person's value moves a release by no more than declared, whatever the value is.

Both data sets of a pair are answered with the same random bits. Warnings are errors in all tests, so a value that
makes numpy speak up fails here too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings

from epsilons.mechanisms.linear import Linear, weighted_sums
from epsilons.noise.entropy import Entropy
from epsilons.noise.segments import Block, SegmentSampler
from epsilons.statistics.base import Additive
from epsilons.statistics.order import Order
from epsilons.testing import seeded
from hostile import Neighbours, neighbours

#: The quick run, and the long one.
QUICK, LONG = 300, 10_000


def each_pair(check: Callable[[Neighbours], None]) -> tuple[Callable[[], None], Callable[[], None]]:
    """A quick and a long test of the same property."""
    quick = settings(max_examples=QUICK)(given(neighbours())(check))
    long = pytest.mark.soak(settings(max_examples=LONG)(given(neighbours())(check)))
    return quick, long


class Meter(Entropy):
    """Counts the random bytes taken from a seeded stream."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed.to_bytes(32, "little"))
        self.taken = 0

    def bytes(self, n: int) -> bytes:
        self.taken += n
        return super().bytes(n)


def check_sums(pair: Neighbours) -> None:
    """Integer sums: only the person's own level moves, by at most the reach, times the weight once weighted."""
    statistic, relation = pair.question.statistic, pair.question.neighbors
    if not isinstance(statistic, Additive):
        return
    for part, one, other in zip(statistic.parts, pair.one.tally(statistic), pair.other.tally(statistic), strict=True):
        moved = np.abs(one - other)
        assert moved.sum() == moved[pair.level].sum() <= part.reach[relation]
        if isinstance(pair.mechanism, Linear):
            weighting = pair.mechanism.weighting(pair.question, pair.roster.levels)
            sums = zip(weighted_sums(one, weighting), weighted_sums(other, weighting), strict=True)
            reach = weighting.weights[pair.level] * part.reach[relation]
            assert sum(abs(a - b) for a, b in sums) <= reach


def check_answers(pair: Neighbours) -> None:
    """Released numbers: with the same noise the two answers differ by what one person's reach is worth."""
    statistic, mechanism = pair.question.statistic, pair.mechanism
    entropies = Meter(5), Meter(5)
    answers = [
        mechanism.draw(pair.question, p, e).value for p, e in zip((pair.one, pair.other), entropies, strict=True)
    ]
    if not isinstance(mechanism, Linear) or mechanism.samples or not isinstance(statistic, Additive):
        return
    assert entropies[0].taken == entropies[1].taken, "another number of random bits tells the data sets apart"
    if len(statistic.parts) > 1 or statistic.parts[0].cells > 1:
        return
    weighting, levels = mechanism.weighting(pair.question, pair.roster.levels), pair.roster.levels
    reach = Fraction(weighting.weights[pair.level] * statistic.parts[0].reach[pair.question.neighbors], weighting.one)
    most, none = (mechanism.finish(pair.question, levels, [[k]]) for k in (reach, Fraction(0)))
    assert abs(answers[0] - answers[1]) <= abs(most - none) * (1 + 1e-9) + 1e-9 * max(map(abs, answers))


class Recorder(SegmentSampler):
    """An exponential mechanism whose costs can be looked at."""

    made: list[dict[int, Fraction]] = []  # noqa: RUF012 - filled by `recorded_costs` alone

    def __init__(self, blocks: Iterable[Block], unit: Fraction) -> None:
        listed = list(blocks)
        costs: dict[int, Fraction] = {}
        for block in listed:
            first = np.asarray(block.first, dtype=object)
            columns = (
                np.broadcast_to(np.asarray(c, dtype=object), first.shape) for c in (block.direction, block.count)
            )
            direction, count = columns
            cost, slope = (np.broadcast_to(np.asarray(c, dtype=object), first.shape) for c in (block.cost, block.slope))
            for f, d, n, c, s in zip(first, direction, count, cost, slope, strict=True):
                costs |= {int(f + d * i): 2 * unit * int(c + s * i) for i in range(int(n))}
        Recorder.made.append(costs)
        super().__init__(iter(listed), unit)


@contextmanager
def recorded_costs() -> Iterator[list[dict[int, Fraction]]]:
    """{outcome: cost in epsilons} of every exponential mechanism that is set up inside."""
    Recorder.made = []
    with ExitStack() as stack:
        for module in ("linear", "exponential", "mixed"):
            stack.enter_context(patch(f"epsilons.mechanisms.{module}.SegmentSampler", Recorder))
        yield Recorder.made


def check_costs(pair: Neighbours) -> None:
    """Exponential mechanisms: the same answers are possible, and none's cost moves by more than the person's charge.

    Sample sets up its exponential mechanism at the threshold: there a person is worth the threshold, if kept at all.
    """
    mechanism, question, levels = pair.mechanism, pair.question, pair.roster.levels
    charge = mechanism.charge(question, levels)[pair.level]
    assert charge is not None
    if isinstance(mechanism, Linear) and mechanism.samples:
        charge = int(mechanism.weighting(question, levels).rate)
    laws: list[list[dict[int, Fraction]]] = []
    for people in (pair.one, pair.other):
        with recorded_costs() as costs:
            mechanism.draw(question, people, seeded(5))
            laws.append(list(costs))
    for one, other in zip(*laws, strict=True):
        assert one.keys() == other.keys()
        assert all(abs(one[r] - other[r]) * 10**9 <= charge for r in one)


def check_coins(pair: Neighbours) -> None:
    """Sample: everybody else's coin falls the same way. (A count is thinned, where coins belong to nobody.)"""
    statistic, levels = pair.question.statistic, pair.roster.levels
    chances = [2**63] * len(levels.grants)
    if isinstance(statistic, Order):
        one, other = (p.sampled_cells(statistic, chances, seeded(5)) for p in (pair.one, pair.other))
        places = sorted([*one.keys.tolist()]), sorted([*other.keys.tolist()])
        common = _common(*places)
        assert max(len(places[0]), len(places[1])) - common <= 1
    elif isinstance(statistic, Additive) and not statistic.counts:
        tallies = (p.sampled_tally(statistic, chances, seeded(5)) for p in (pair.one, pair.other))
        for part, one, other in zip(statistic.parts, *tallies, strict=True):
            moved = np.abs(one - other)
            assert moved.sum() == moved[pair.level].sum() <= part.reach[pair.question.neighbors]


def _common(one: list[Any], other: list[Any]) -> int:
    """How many entries two lists have in common."""
    left = list(other)
    return sum(1 for entry in one if entry in left and (left.remove(entry) or True))


def check_order(pair: Neighbours) -> None:
    """The order of the rows is nobody's business: summaries are the same for any."""
    statistic = pair.question.statistic
    turned = pair.values[::-1], type(pair.roster)(pair.roster.levels, pair.roster.codes[::-1])
    people = type(pair.one).of(*turned)
    if isinstance(statistic, Order):
        np.testing.assert_array_equal(pair.one.cells(statistic).keys, people.cells(statistic).keys)
    elif isinstance(statistic, Additive):
        for one, other in zip(pair.one.tally(statistic), people.tally(statistic), strict=True):
            np.testing.assert_array_equal(one, other)


test_sums_move_by_at_most_the_declared_reach, test_sums_move_by_at_most_the_declared_reach_long = each_pair(check_sums)
test_answers_with_the_same_noise_stay_close, test_answers_with_the_same_noise_stay_close_long = each_pair(check_answers)
test_costs_move_by_at_most_the_charge, test_costs_move_by_at_most_the_charge_long = each_pair(check_costs)
test_other_peoples_coins_stay_the_same, test_other_peoples_coins_stay_the_same_long = each_pair(check_coins)
test_the_order_of_rows_does_not_matter, test_the_order_of_rows_does_not_matter_long = each_pair(check_order)
