"""Frozen noise on tables: one person's rows move a release by no more than declared, whatever the rows hold.

Both tables of a pair are answered with the same random bits; their rows stand in another order. The long version (soak)
tries 10,000 pairs, new ones in every run.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from numpy.typing import NDArray

import epsilons as eps
from epsilons.dataset import people as table_people
from epsilons.dataset.people import TablePeople
from epsilons.mechanisms.base import Weighing, create, weighting_of
from epsilons.mechanisms.sample import Sample
from epsilons.noise.coins import keep_digests
from epsilons.noise.entropy import Entropy
from epsilons.statistics.additive import Additive, weighted_sums
from epsilons.statistics.base import Question
from epsilons.statistics.gaussian import squares
from epsilons.statistics.order import Order
from epsilons.statistics.quantiles import Quantiles
from epsilons.summaries.cells import SortedCells
from epsilons.testing import seeded
from support.frozen import Meter, recorded_costs
from support.tables import Bench, Pair, make_pair, question_of

QUICK, LONG = 25, 10_000

Check = Callable[[Pair, TablePeople, TablePeople], None]


def hold(check: Check, pair: Pair, bench: Bench, cap: int | None = None) -> None:
    """`cap` other than the pair's own is a bug on purpose."""
    rows = pair.rows if cap is None else cap
    both = [bench.people(records, pair.grants, rows, pair.meaning) for records in (pair.one, pair.other)]
    try:
        check(pair, *both)
    finally:
        for people in both:
            bench.close(people)


def check_sums(pair: Pair, one: TablePeople, other: TablePeople) -> None:
    """Integer sums: only the person's own level moves, by at most the reach over all groups, weighted or not."""
    statistic, relation = pair.question.statistic, pair.question.neighbors
    if not isinstance(statistic, Additive):
        return
    for part, mine, yours in zip(statistic.parts, statistic.tally(one), statistic.tally(other), strict=True):
        moved = np.abs(mine - yours)
        assert moved.sum() == moved[pair.level].sum() <= part.reach[relation]
        if isinstance(pair.mechanism, Weighing):
            weights = weighting_of(pair.mechanism, pair.question, one.levels).weights
            sums = zip(weighted_sums(mine, weights), weighted_sums(yours, weights), strict=True)
            assert sum(abs(a - b) for a, b in sums) <= weights[pair.level] * part.reach[relation]


def check_squares(pair: Pair, one: TablePeople, other: TablePeople) -> None:
    """Gaussian noise: over all groups and rows all parts together move by at most 1 in L2, at weight one."""
    statistic = pair.question.statistic
    if not isinstance(statistic, Additive):
        return
    parts = zip(squares(statistic, pair.question.neighbors), statistic.tally(one), statistic.tally(other), strict=True)
    moved = [(square, (mine.astype(object) - yours.astype(object)).reshape(-1)) for square, mine, yours in parts]
    assert sum(Fraction(int(away @ away)) / square for square, away in moved) <= 1


def check_answers(pair: Pair, one: TablePeople, other: TablePeople) -> None:
    """The same control flow: both are answered, with the same number of random bits and numbers of the same keys."""
    statistic, mechanism = pair.question.statistic, pair.mechanism
    entropies = Meter(5), Meter(5)
    both = zip((one, other), entropies, strict=True)
    answers = [mechanism.draw(pair.question, people, entropy) for people, entropy in both]
    values = [answer.value for answer in answers]
    assert type(values[0]) is type(values[1]) or not isinstance(values[0], dict)
    if isinstance(values[0], dict):
        assert list(values[0]) == list(values[1])
    if not isinstance(mechanism, Weighing) or not isinstance(statistic, Additive):
        return
    weighting = weighting_of(mechanism, pair.question, one.levels)
    if weighting.coins is not None:
        return
    assert entropies[0].taken == entropies[1].taken, "another number of random bits tells the tables apart"
    if answers[0].sums is None or answers[1].sums is None:
        return
    for part, mine, yours in zip(statistic.parts, answers[0].sums, answers[1].sums, strict=True):
        most = Fraction(weighting.weights[pair.level] * part.reach[pair.question.neighbors], weighting.one)
        assert sum(abs(a - b) for a, b in zip(mine, yours, strict=True)) <= most


def check_costs(pair: Pair, one: TablePeople, other: TablePeople) -> None:
    """Exponential mechanisms: the same answers are possible, and over all groups costs move by at most the charge."""
    mechanism, question = pair.mechanism, pair.question
    charge = mechanism.charge(question, one.levels)[pair.level]
    assert charge is not None
    if isinstance(mechanism, Sample):
        charge = int(weighting_of(mechanism, question, one.levels).rate)
    laws: list[list[dict[int, Fraction]]] = []
    for people in (one, other):
        with recorded_costs() as costs:
            mechanism.draw(question, people, seeded(5))
            laws.append(list(costs))
    moved = Fraction(0)
    for mine, yours in zip(*laws, strict=True):
        assert mine.keys() == yours.keys()
        moved += max(abs(mine[r] - yours[r]) for r in mine)
    assert moved * 10**9 <= charge


def check_coins(pair: Pair, one: TablePeople, other: TablePeople) -> None:
    """Sample: everybody else's coin falls the same way, and a person's rows stay or go together."""
    statistic, chances = pair.question.statistic, [2**63] * len(one.levels.grants)
    if isinstance(statistic, Order):
        cells = [p.sampled_cells(statistic, chances, seeded(5)) for p in (one, other)]
        counts = [
            Counter((place, key) for place, c in enumerate(groups) for key in c.keys.tolist()) for groups in cells
        ]
        assert (counts[0] - counts[1]).total() <= pair.rows
        assert (counts[1] - counts[0]).total() <= pair.rows
    elif isinstance(statistic, Additive):
        tallies = (statistic.make_parts(p.sampled_tally(statistic, chances, seeded(5))) for p in (one, other))
        for part, mine, yours in zip(statistic.parts, *tallies, strict=True):
            moved = np.abs(mine - yours)
            assert moved.sum() == moved[pair.level].sum() <= part.reach[pair.question.neighbors]


CHECKS: dict[str, Check] = {
    "sums move by at most the reach": check_sums,
    "sums move by at most the squares": check_squares,
    "the control flow is the same": check_answers,
    "costs move by at most the charge": check_costs,
    "other people's coins stay the same": check_coins,
}


def hold_many(pairs: int, seed: int, ask: Mapping[str, Any] | None = None) -> None:
    """The same tables for all promises: to prepare a table takes longer than to check it."""
    bench, random = Bench(), np.random.default_rng(seed)
    for place in range(pairs):
        pair = make_pair(bench, random, ask)
        done = ""

        def every(pair: Pair, one: TablePeople, other: TablePeople) -> None:
            nonlocal done
            for promise, check in CHECKS.items():
                done = promise
                check(pair, one, other)

        try:
            hold(every, pair, bench)
        except AssertionError as error:
            raise AssertionError(f"pair {place} of seed {seed}, {done}: {pair}") from error


def test_neighbouring_tables_are_held_to_every_promise_at_once() -> None:
    hold_many(QUICK, 5)


SUM = {"statistic": "sum", "column": "x", "bounds": (0.0, 100.0)}
MEAN = {"statistic": "mean", "column": "k", "bounds": (0.0, 100.0)}
BOTH = {"x": (0.0, 100.0), "k": (-1.0, 1.0)}
FEBRUARY, SUNDAY = "MONTH(day) = 2 OR day IS NULL", "WEEKDAY(day) IN ('Sunday', 'Monday')"
ASKED_OF_DAYS: dict[str, dict[str, Any]] = {
    "a count by weekday": {"statistic": "count", "by": {"day": eps.weekdays()}, "where": "YEAR(day) >= 1900"},
    "a sum by month": {**SUM, "by": {"day": eps.months("2023-12-01", "2024-02-29")}},
    "a mean by ranges": {**MEAN, "by": {"x": eps.ranges(-1, 1, 200)}, "where": SUNDAY},
    "a histogram of weekdays": {"statistic": "histogram", "column": "day", "edges": eps.weekdays(), "where": FEBRUARY},
    "several quantiles": {**SUM, "statistic": "quantile", "q": [0.25, 0.5, 0.9], "step": 20, "where": SUNDAY},
    "a covariance": {"statistic": "covariance", "column": "x", "other": "k", "bounds": BOTH, "where": FEBRUARY},
    "a correlation": {"statistic": "correlation", "column": "x", "other": "k", "bounds": BOTH, "where": SUNDAY},
}


@pytest.mark.parametrize("asked", ASKED_OF_DAYS)
def test_neighbours_are_held_where_days_or_two_columns_are_asked(asked: str) -> None:
    hold_many(4, 9, ASKED_OF_DAYS[asked])


@pytest.mark.soak
@pytest.mark.figure("figure_4_tables")
def test_ten_thousand_neighbouring_tables_are_held_to_every_promise(
    record_property: Callable[[str, Any], None],
) -> None:
    hold_many(LONG, int.from_bytes(os.urandom(4), "little"))
    record_property("size", LONG)


# --- the checks have teeth ------------------------------------------------------------------------------------------


def found(
    check: Check,
    tries: int,
    wanted: Callable[[Pair], bool],
    enough: int = 1,
    ask: Mapping[str, Any] | None = None,
    **bug: Any,
) -> int:
    """How many of so many fitting pairs refute a bug; no more are looked at when that is enough."""
    bench, random, caught, seen = Bench(), np.random.default_rng(6), 0, 0
    while seen < tries and caught < enough:
        pair = make_pair(bench, random, ask)
        if wanted(pair):
            seen += 1
            try:
                hold(check, pair, bench, **bug)
            except AssertionError:
                caught += 1
    return caught


def additive(pair: Pair) -> bool:
    return isinstance(pair.question.statistic, Additive)


@pytest.mark.parametrize("check", [check_sums, check_squares])
def test_rows_that_are_not_capped_are_caught(check: Check) -> None:
    assert found(check, 25, lambda pair: additive(pair) and pair.rows == 1, enough=2, cap=99) == 2


@pytest.mark.parametrize("asked", [name for name in ASKED_OF_DAYS if name != "several quantiles"])
def test_rows_that_are_not_capped_are_caught_where_days_or_two_columns_are_asked(asked: str) -> None:
    assert found(check_sums, 60, lambda pair: pair.rows == 1, ask=ASKED_OF_DAYS[asked], cap=99) == 1


def test_whole_quantiles_for_the_price_of_a_part_are_caught() -> None:
    """The planted bug: each of several quantiles is drawn as if it were alone."""
    ask = ASKED_OF_DAYS["several quantiles"]
    whole = property(lambda self: tuple(Order(self.bounds, self.step, q=q, scope=self.scope) for q in self.qs))
    with patch.object(Quantiles, "each", whole):
        assert found(check_costs, 40, lambda pair: True, ask=ask) == 1
    assert found(check_costs, 10, lambda pair: True, ask=ask) == 0


def test_coins_by_position_are_caught() -> None:
    """The planted bug: a coin belongs to a place in the table, so that somebody's leaving moves all later coins."""

    def by_position(entropy: Entropy, digests: NDArray[np.uint8], codes: Any, chances: Any) -> NDArray[np.bool_]:
        places = np.zeros((len(codes), 16), np.uint8)
        places[:, 0] = np.arange(len(codes))
        return keep_digests(entropy, places, codes, chances)

    def wanted(pair: Pair) -> bool:
        return pair.question.neighbors == "absent" and len(pair.grants) > 3

    with patch.object(table_people, "keep_digests", by_position):
        assert found(check_coins, 60, wanted) >= 1
    assert found(check_coins, 8, wanted) == 0


def test_people_without_a_row_who_are_forgotten_are_caught() -> None:
    """The planted bug: a public number of values is taken from the rows that happen to be there."""

    def forgetful(self: TablePeople, statistic: Order) -> list[SortedCells]:
        return self._cells(statistic, self.preparation.prepared)

    bench, nothing = Bench(), {"k": None, "g": None, "b": None, "f": None}
    meaning = question_of(bench.terms(complete=["x"]), "median", "x", bounds=(0.0, 4.0), step=1)
    others = ({"id": "b", "x": 0.0, **nothing}, {"id": "c", "x": 4.0, **nothing})
    with_a = ({"id": "a", "x": 0.0, **nothing}, *others)
    grants = {"a": 0.1, "b": 1.5, "c": 1.5}
    question = Question(meaning.question.statistic)
    pair = Pair(create("exponential", meaning.question.statistic), question, meaning, 1, grants, "a", with_a, others)
    hold(check_costs, pair, bench)
    with patch.object(TablePeople, "grouped_cells", forgetful), pytest.raises(AssertionError):
        hold(check_costs, pair, bench)
