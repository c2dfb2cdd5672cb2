"""Every local sensitivity is what the definition says: all data sets of up to six people, ties, every rank."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache, partial

import numpy as np
import pytest
from numpy.typing import NDArray

from epsilons.errors import DataError, PlanError
from epsilons.mechanisms.local_sensitivity import LocalCount, LocalTotal
from epsilons.preferences import roster_of
from epsilons.statistics import sensitivity
from epsilons.statistics.base import Question
from epsilons.statistics.count import Count
from epsilons.statistics.histogram import Histogram
from epsilons.statistics.moved import largest_by_level
from epsilons.statistics.order import Order
from epsilons.statistics.total import Sum
from epsilons.statistics.unbounded import DEFAULT_STEP, UnboundedOrder
from epsilons.summaries import arrays
from epsilons.summaries.arrays import STEPS, ArrayPeople
from epsilons.summaries.cells import SortedCells
from support.replacing import Statistic, Table, at_rank, middle_sum, replaced

GRID = (0, 1, 2, 3)
#: Uneven gaps, for data that do not reach the ends; records are replaced by all eight points.
WIDE, UNEVEN = tuple(range(8)), (1, 2, 4, 7)
SIZES = [1, 2, 3, 4, 5, 6]
NAN, INF = math.nan, math.inf


def cells_of(data: Sequence[float], points: int) -> SortedCells:
    """People with a level each, so that nobody's reach hides behind another's."""
    people = len(data)
    statistic = Order((0.0, points - 1.0), 1, q=Fraction(1, 2))
    return arrays.cells(statistic, np.array(data, float), np.arange(people, dtype=np.uint8), people)


def ranks(people: int) -> list[tuple[int, bool, Statistic]]:
    """(rank, whether the two middle values are averaged, the definition) of all that can be asked of so many."""
    asked: list[tuple[int, bool, Statistic]] = [(rank, False, at_rank(rank)) for rank in range(people)]
    return [*asked, (people // 2, True, middle_sum)] if people % 2 == 0 else asked


# Order statistics on a grid ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("people", SIZES)
def test_replacing_one_record_at_every_rank(people: int) -> None:
    for rank, averaged, definition in ranks(people):
        table = Table(GRID, people, definition)
        some = slice(None, None, 1 if people < 6 else 7)  # every seventh of 4,096
        for data, answer, reach in zip(table.data[some], table.answers[some], table.of_persons()[some], strict=True):
            found = sensitivity.order_local(cells_of(data, len(GRID)), len(GRID), rank, averaged)
            assert (found.answer, found.reach) == (answer, tuple(reach)), (data, rank, averaged)
            assert found.step == (Fraction(1, 2) if averaged else 1)


@pytest.mark.parametrize("people", [1, 2, 3, 4])
def test_replacing_one_record_where_gaps_are_uneven_and_the_ends_are_far(people: int) -> None:
    for rank, averaged, definition in ranks(people):
        table = Table(WIDE, people, definition)
        uneven = np.isin(table.data, UNEVEN).all(axis=1)
        for data, reach in zip(table.data[uneven], table.of_persons()[uneven], strict=True):
            found = sensitivity.order_local(cells_of(data, len(WIDE)), len(WIDE), rank, averaged)
            assert found.reach == tuple(reach), (data, rank, averaged)


@pytest.mark.parametrize("people", SIZES)
def test_replacing_the_records_of_a_group_at_every_rank(people: int) -> None:
    grid = GRID if people < 6 else GRID[:3]
    for rank, averaged, definition in ranks(people):
        table = Table(grid, people, definition)
        some = slice(None, None, 1 if people < 5 else 5)
        for size in range(1, people + 2):  # a group larger than the roster is the roster
            for data, reach in zip(table.data[some], table.of_groups(size)[some], strict=True):
                x = sensitivity.Ranked.of(cells_of(data, len(grid)), len(grid))
                if averaged:
                    assert sensitivity.group_even_median_reach(x, people, size) == reach, (data, size)
                else:
                    assert sensitivity.group_rank_reach(x, rank, size) == reach, (data, rank, size)


@pytest.mark.parametrize("people", [3, 4, 5, 6])
def test_the_formulas_of_the_paper(people: int) -> None:
    """Soria-Comas et al. 2017, sections 6.1.3 and 6.2.3, and the averaged median of an even number, 1-based."""
    for data in itertools.combinations_with_replacement(WIDE, people):
        cells, x, high = cells_of(data, len(WIDE)), dict(enumerate(data, 1)), len(WIDE) - 1

        def largest(rank: int, averaged: bool = False, cells: SortedCells = cells) -> int:
            return max(sensitivity.order_local(cells, len(WIDE), rank, averaged).reach)

        n, m = people, people // 2 + 1
        if n % 2:
            assert largest(m - 1) == max(x[m] - x[m - 1], x[m + 1] - x[m])
        elif n > 2:
            k = n // 2  # in half steps
            assert largest(k, averaged=True) == max(x[k + 2] - x[k], x[k + 1] - x[k - 1])
        assert largest(n - 1) == max(high - x[n], x[n] - x[n - 1])
        assert largest(n - 2) == max(x[n] - x[n - 1], x[n - 1] - x[n - 2])


def test_a_level_has_the_largest_reach_of_its_people() -> None:
    statistic = Order((0.0, 9.0), 1, q=Fraction(1, 2))
    values, codes = np.array([1.0, 4.0, 5.0, 9.0, 0.0]), np.array([0, 0, 1, 2, 3], np.uint8)
    found = sensitivity.order_local(arrays.cells(statistic, values, codes, 5), 10, 2, False)
    # Sorted 0 1 4 5 9: the person at the median moves it down by 3 or up by 1, those above it bring it down by 3.
    assert found == sensitivity.Local(4, (3, 3, 3, 1, 0), Fraction(1))


def test_nobody_at_a_level_moves_nothing() -> None:
    statistic = Order((0.0, 9.0), 1, q=Fraction(1, 2))
    cells = arrays.cells(statistic, np.array([3.0]), np.array([1], np.uint8), 3)
    assert sensitivity.order_local(cells, 10, 0, False).reach == (0, 6, 0)


def test_many_people_are_as_few() -> None:
    """Beyond the stride at which sorted people are counted ahead."""
    random = np.random.default_rng(5)
    statistic = Order((0.0, 1e6), 1, q=Fraction(1, 2))
    values, codes = random.integers(0, 10**6, 9001).astype(float), random.integers(0, 7, 9001).astype(np.uint8)
    x = np.sort(values).astype(int)
    for rank in (0, 4095, 4096, 4500, 8999, 9000):
        found = sensitivity.order_local(arrays.cells(statistic, values, codes, 7), statistic.points, rank, False)
        up = (x[rank + 1] if rank < 9000 else 10**6) - x[rank]
        down = x[rank] - (x[rank - 1] if rank else 0)
        for level in range(7):
            own = values[codes == level]
            places = [up] * bool((own < x[rank]).any()) + [down] * bool((own > x[rank]).any())
            places += [max(up, down)] * bool((own == x[rank]).any())
            assert found.reach[level] == max(places)


# Sums ----------------------------------------------------------------------------------------------------------------

VALUES = (0.0, 2.5, 5.0, 10.0, NAN, INF, -INF, 99.0, -7.0)


def steps_of(data: Sequence[float]) -> NDArray[np.int64]:
    return arrays.centred_steps(np.array(data, float), (0.0, 10.0))


def reaches_of(data: Sequence[float]) -> tuple[int, ...]:
    """Of people at a level each."""
    people = ArrayPeople.of(np.array(data, float), roster_of([1.0 + place for place in range(len(data))]))
    return LocalTotal().reach(Question(Sum((0.0, 10.0)), privacy="individual"), people)


def test_replacing_one_record_of_a_sum() -> None:
    for data in itertools.product(VALUES, repeat=2):
        steps, reach = steps_of(data), reaches_of(data)
        for person in range(2):
            moved = [steps_of(other).sum() - steps.sum() for other in replaced(data, [person], VALUES)]
            assert reach[person] == max(abs(int(move)) for move in moved), data


def test_missing_stands_at_the_centre_and_infinite_at_the_bound() -> None:
    steps = steps_of([NAN, INF, -INF, 5.0])
    assert steps.tolist() == [0, STEPS, -STEPS, 0]
    assert reaches_of([NAN, INF, -INF, 5.0]) == (STEPS, 2 * STEPS, 2 * STEPS, STEPS)


def test_a_level_of_a_sum_has_the_reach_of_its_farthest_person() -> None:
    far, level = np.array([3, 7, 4, 8]), np.array([1, 0, 1, 0])
    assert largest_by_level(far, level, 5, (2, 2)) == (8, 4)
    assert largest_by_level(far, level, 5, (2, 3)) == (8, 5)


@pytest.mark.parametrize("people", [1, 2, 3])
def test_replacing_the_records_of_a_group_in_a_sum(people: int) -> None:
    values = (0.0, 2.5, 8.0, 10.0, NAN)
    total = cache(lambda data: int(steps_of(data).sum()))
    for data in itertools.product(values, repeat=people):
        for size in range(1, people + 2):
            moved = [
                abs(total(tuple(other)) - total(data))
                for group in itertools.combinations(range(people), min(size, people))
                for other in replaced(data, group, values)
            ]
            asked = Question(Sum((0.0, 10.0)), privacy="group")
            made = ArrayPeople.of(np.array(data, float), roster_of([1.0] * people))
            assert LocalTotal().group_reach(asked, made, size) == max(moved), (data, size)


# Counts and histograms -----------------------------------------------------------------------------------------------

COUNTED: dict[str, tuple[Count | Histogram, tuple[float, ...]]] = {
    "count": (Count(), (0.0, 1.0, NAN)),
    "one range": (Histogram(edges=(1.0, 2.0)), (0.0, 1.0, NAN)),
    "two bins": (Histogram(edges=(0.0, 1.0, 2.0)), (0.0, 1.5, NAN)),
    "three bins, all inside": (Histogram(edges=(0.0, 1.0, 2.0, 3.0), outside="clip"), (0.0, 1.5, 9.0)),
}


def tally(statistic: Count | Histogram, data: Sequence[float]) -> NDArray[np.int64]:
    counts: NDArray[np.int64] = arrays.tally(statistic, np.array(data, float), np.zeros(len(data), np.uint8), 1)[0][0]
    return counts


@pytest.mark.parametrize("name", COUNTED)
@pytest.mark.parametrize("people", [1, 2, 3, 4])
def test_replacing_records_of_counts_never_moves_more_than_the_public_reach(name: str, people: int) -> None:
    statistic, values = COUNTED[name]
    largest, tallied = np.zeros(people + 2, int), cache(partial(tally, statistic))
    for data in itertools.product(values, repeat=people):
        here = tallied(data)
        for size in range(1, people + 2):
            for group in itertools.combinations(range(people), min(size, people)):
                for other in replaced(data, group, values):
                    moved = int(np.abs(tallied(tuple(other)) - here).sum())
                    largest[size] = max(largest[size], moved)
    # Not merely a bound: some data set attains it, for every size of group.
    made, asked = ArrayPeople.of([0.0] * people, roster_of([1.0] * people)), Question(statistic, privacy="group")
    found = [LocalCount().group_reach(asked, made, size) for size in range(1, people + 2)]
    assert largest[1:].tolist() == found


def test_anyone_moves_a_count_by_one_whatever_the_data() -> None:
    for data in itertools.product((0.0, 1.0), repeat=4):
        for person in range(4):
            moved = [abs(int(tally(Count(), o)[0] - tally(Count(), data)[0])) for o in replaced(data, [person], (0, 1))]
            assert max(moved) == 1


# The k-th largest without bounds -------------------------------------------------------------------------------------

#: Data lie in the middle of what a record may be replaced by, so that the ends stand for anywhere.
ANYWHERE = (-1000, 0, 1, 2, 3, 1000)


@pytest.mark.parametrize(("people", "k"), [(n, k) for n in (3, 4, 5) for k in range(2, n)])
def test_unbounded_replacing_one_record(people: int, k: int) -> None:
    table = Table(ANYWHERE, people, at_rank(people - k))
    inside = (np.abs(table.data) < 1000).all(axis=1)
    for data, answer, reach in zip(table.data[inside], table.answers[inside], table.of_persons()[inside], strict=True):
        found = UnboundedOrder(k, step=1).local(data.astype(float), np.arange(people, dtype=np.uint8), people)
        assert (found.answer, found.reach, found.step) == (answer, tuple(reach), 1), data


@pytest.mark.parametrize(("people", "k", "size"), [(n, k, s) for n in (3, 4, 5) for k in (2, 3) for s in (1, 2)])
def test_unbounded_replacing_the_records_of_a_group(people: int, k: int, size: int) -> None:
    table = Table(ANYWHERE, people, at_rank(people - k))
    inside = (np.abs(table.data) < 1000).all(axis=1)
    statistic = UnboundedOrder(k, step=1)
    for data, reach in zip(table.data[inside], table.of_groups(size)[inside], strict=True):
        if size >= k or people < k + size:
            assert reach > 900 - 3, "the definition itself says: any distance"
            with pytest.raises(PlanError):
                statistic.group_reach(data.astype(float), size)
        else:
            assert statistic.group_reach(data.astype(float), size) == reach, data


@pytest.mark.parametrize(("people", "k"), [(1, 2), (2, 2), (3, 3), (5, 7)])
def test_unbounded_needs_a_record_on_either_side(people: int, k: int) -> None:
    with pytest.raises(PlanError, match="too few for k="):
        UnboundedOrder(k).local(np.arange(people, dtype=float), np.zeros(people, np.uint8), 1)


def test_unbounded_values_of_any_kind_are_finite_numbers_on_the_grid() -> None:
    found = UnboundedOrder(2).local(np.array([NAN, INF, -INF, 1e300, 0.3]), np.arange(5, dtype=np.uint8), 5)
    edge = round(Fraction(1e30) / DEFAULT_STEP)
    assert found.answer == edge  # the second largest of -10^30, 0, 0.3, 10^30, 10^30
    assert max(found.reach) == edge - 300_000
    words = np.array([1.5, "private", None, 4.0, 2.0], dtype=object)
    assert UnboundedOrder(2, step=0.5).local(words, np.zeros(5, np.uint8), 1).answer == 4
    assert UnboundedOrder(2, step=0.5).exact(ArrayPeople.of(words, roster_of([1.0] * 5)))[0] == 2.0
    with pytest.raises(DataError, match="not numbers"):
        UnboundedOrder(2).local(np.array(["a", "b", "c"]), np.zeros(3, np.uint8), 1)


def test_the_maximum_of_an_unbounded_domain_asks_for_bounds() -> None:
    with pytest.raises(PlanError, match=r"The maximum needs bounds\. Without an upper bound one record can move it"):
        UnboundedOrder(1)


@pytest.mark.parametrize("k", [0, -1, 2.0, True, "2", None])
def test_k_is_a_whole_number(k: object) -> None:
    with pytest.raises(PlanError, match="k is a whole number from 1"):
        UnboundedOrder(k)  # type: ignore[arg-type]
    assert UnboundedOrder(np.int64(3)) == UnboundedOrder(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("step", [0, -1, NAN, INF, 1e31, True, "1", 1j])
def test_a_step_is_a_positive_number(step: object) -> None:
    with pytest.raises(PlanError, match="step is a positive number"):
        UnboundedOrder(2, step=step)  # type: ignore[arg-type]
