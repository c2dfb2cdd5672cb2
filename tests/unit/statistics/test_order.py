"""Grids, ranks and sorted cells against plain lists."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsilons.arguments.checks import exact
from epsilons.errors import PlanError
from epsilons.statistics import order
from epsilons.statistics.order import MAX_POINTS, Order
from epsilons.summaries import arrays
from epsilons.summaries.arrays import CHUNK, check_values
from epsilons.summaries.cells import SortedCells
from unit.statistics.naive import HOSTILE, number

rng = np.random.default_rng(13)


# Grids --------------------------------------------------------------------------------------------------------------


def test_the_default_grid_has_65_536_steps() -> None:
    median = order.median((0, 10))
    assert median.points == 65_537
    assert (median.value(0), median.value(65_536), median.default_cell) == (0, 10, 32_768)
    assert median.value(32_768) == 5


def test_a_tenth_is_a_tenth() -> None:
    median = order.median((0, 1), step=0.1)
    assert median.points == 11
    assert [median.value(cell) for cell in range(11)] == [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]


def test_whole_grids_give_whole_answers() -> None:
    median = order.median((1, 1000), step=1)
    assert median.points == 1000
    assert all(type(median.value(cell)) is int for cell in (0, 1, 999))
    assert (median.value(0), median.value(999)) == (1, 1000)
    assert type(order.median((0, 1), step=0.5).value(2)) is float
    assert type(order.median((0.5, 9.5), step=1).value(2)) is float


def test_a_grid_that_misses_its_end_stops_before_it() -> None:
    median = order.median((0, 10), step=3)
    assert [median.value(cell) for cell in range(median.points)] == [0, 3, 6, 9]
    assert median.value(median.default_cell) == 6
    cells = arrays.cells(median, np.array([10.0, 8.0, 7.4, 99]), np.zeros(4, np.uint8), 1)
    assert cells.cells(0, 4).tolist() == [2, 3, 3, 3]


@pytest.mark.parametrize(
    ("bounds", "step", "cell"), [((0, 1), 0.2, 2), ((0, 4), 1, 2), ((0, 1), 1, 0), ((-3, 9), 0.5, 12)]
)
def test_a_missing_person_stands_nearest_the_centre(bounds: tuple[float, float], step: float, cell: int) -> None:
    assert order.median(bounds, step).default_cell == cell


def test_outcomes_list_the_grid() -> None:
    for median in (order.median((0, 1), 0.1), order.median((-5, 5), 2.5), order.median((1, 9), 1)):
        assert median.outcomes() == pytest.approx([median.value(cell) for cell in range(median.points)])


@pytest.mark.parametrize("step", [None, 0.1, 1, 0.37])
@pytest.mark.parametrize("bounds", [(0, 10), (-1.3, 8.2), (100, 1e5)])
def test_values_go_to_the_nearest_point(bounds: tuple[float, float], step: float | None) -> None:
    median = order.median(bounds, step)
    low, high = exact(bounds[0]), exact(bounds[1])
    width = (high - low) / 65_536 if step is None else exact(step)
    top = low + (median.points - 1) * width
    for value in [*rng.uniform(bounds[0] - 1, bounds[1] + 1, 300), *HOSTILE]:
        cells = arrays.cells(median, check_values([value], 1), np.zeros(1, np.uint8), 1)
        found = number(value)
        if found is None:
            assert (cells.people, cells.missing.tolist()) == (0, [1])
            continue
        inside = min(max(found, low), top)
        point = low + int(cells.cells(0, 1)[0]) * width
        assert abs(point - inside) <= width * Fraction(1, 2) * (1 + Fraction(1, 10**6))


GRID = f"Answers lie on the grid lo, lo+step, ..., hi, of at most {MAX_POINTS:,} points."


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"step": 0}, "step=0 is not allowed. The grid's step is a positive number."),
        ({"step": -1}, "step=-1 is not allowed."),
        ({"step": math.nan}, "step=nan is not allowed."),
        ({"step": math.inf}, "step=inf is not allowed."),
        ({"step": "1"}, "step='1' is not allowed."),
        ({"step": True}, "step=True is not allowed."),
        ({"step": 1e-20}, f"The grid has too many points. {GRID} Try: a larger step"),
        ({"step": 11}, "The grid has a single point."),
        ({"bounds": None}, "A median needs bounds. Bounds are public facts; reading them from the data would leak it."),
    ],
)
def test_grids_that_cannot_be_are_refused(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(PlanError) as caught:
        order.median(**{"bounds": (0, 10), **arguments})
    assert text in str(caught.value)
    assert "Try: " in str(caught.value)


def test_numpy_s_numbers_are_numbers() -> None:
    assert order.median((0, 10), np.int64(1)) == order.median((0, 10), 1)
    assert order.quantile(np.float32(0.5), (0, 10)) == order.quantile(0.5, (0, 10))
    assert order.kth_largest(np.int64(2), (0, 10)) == order.kth_largest(2, (0, 10))


# Ranks --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statistic", "ranks"),
    [
        (order.median((0, 1)), {1: 0, 2: 1, 3: 1, 10: 5}),
        (order.minimum((0, 1)), {1: 0, 10: 0}),
        (order.maximum((0, 1)), {1: 0, 10: 9}),
        (order.kth_largest(1, (0, 1)), {1: 0, 10: 9}),
        (order.kth_largest(3, (0, 1)), {1: 0, 2: 0, 3: 0, 10: 7}),
        (order.quantile(0, (0, 1)), {1: 0, 10: 0}),
        (order.quantile(1, (0, 1)), {1: 0, 10: 9}),
        (order.quantile(0.9, (0, 1)), {1: 0, 10: 9, 100: 90}),
        (order.quantile(0.7, (0, 1)), {10: 7, 100: 70}),
        (order.quantile(0.29, (0, 1)), {100: 29, 1000: 290}),
        (order.quantile(Fraction(1, 3), (0, 1)), {3: 1, 9: 3, 300: 100}),
    ],
)
def test_ranks(statistic: Order, ranks: dict[int, int]) -> None:
    assert {people: statistic.rank(people) for people in ranks} == ranks


def test_q_reads_as_the_decimal_it_prints() -> None:
    assert [order.quantile(k / 100, (0, 1)).q for k in range(101)] == [Fraction(k, 100) for k in range(101)]
    assert order.quantile(Fraction(1, 3), (0, 1)).q == Fraction(1, 3)


@pytest.mark.parametrize("q", [-0.1, 1.1, math.nan, math.inf, "0.5", None, True, 1j])
def test_a_quantile_outside_0_to_1_is_refused(q: Any) -> None:
    with pytest.raises(PlanError) as caught:
        order.quantile(q, (0, 1))
    what = "A quantile needs its q." if q is None else f"A quantile of {q!r} is not allowed."
    assert f"{what} q is a number from 0 to 1. Try: q=0.9" in str(caught.value)


@pytest.mark.parametrize("q", [1e-10, 5e-324, 1 - 1e-10, Fraction(1, 10**30)])
def test_a_quantile_next_to_an_end_is_refused(q: Any) -> None:
    with pytest.raises(PlanError, match=r"q is 0, 1, or at least 1e-09 away from both\. Try: min or max"):
        order.quantile(q, (0, 1))
    assert order.quantile(1e-9, (0, 1)).q == Fraction(1, 10**9)


@pytest.mark.parametrize("k", [0, -1, 1.5, "2", None, True])
def test_a_rank_that_is_no_whole_number_from_1_is_refused(k: Any) -> None:
    with pytest.raises(PlanError) as caught:
        order.kth_largest(k, (0, 1))
    assert f"k={k!r} is not allowed. k is a whole number from 1. Try: k=2" in str(caught.value)


# Sorted cells -------------------------------------------------------------------------------------------------------


def make(cells: Any, codes: Any, levels: int) -> SortedCells:
    keys = np.sort(np.asarray(cells, np.int64) << 8 | np.asarray(codes, np.int64))
    return SortedCells(keys, np.zeros(levels, np.int64), levels)


def naive_position(cells: SortedCells, weights: list[int], target: Fraction) -> int:
    total = 0
    for position, code in enumerate(cells.codes(0, cells.people).tolist()):
        total += weights[code]
        if total > target:
            return position
    return cells.people - 1


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 2)), min_size=1, max_size=30),
    st.lists(st.integers(0, 10**15), min_size=3, max_size=3),
    st.fractions(0, 1),
)
def test_few_people_against_lists(people: list[tuple[int, int]], weights: list[int], q: Fraction) -> None:
    ordered = sorted(people)
    cells = make(*zip(*people, strict=True), 3)
    assert cells.cells(0, len(people)).tolist() == [cell for cell, _ in ordered]
    for position in range(len(people) + 1):
        assert cells.before(position).tolist() == [sum(c == k for _, c in ordered[:position]) for k in range(3)]
    for cell in range(8):
        assert cells.start_of_cell(cell) == sum(place < cell for place, _ in people)
    assert cells.totals.tolist() == [sum(c == k for _, c in people) for k in range(3)]
    target = q * sum(weights[c] for _, c in people)
    assert cells.position_of_weight(weights, target) == naive_position(cells, weights, target)


@pytest.mark.parametrize("people", [4095, 4096, 4097, 3 * 4096, CHUNK + 7])
def test_many_people_against_cumulated_sums(people: int) -> None:
    levels = 5
    cells = make(rng.integers(0, people // 3, people), rng.integers(0, levels, people), levels)
    codes = cells.codes(0, people)
    places = {0, 1, 4095, 4096, 4097, people // 2, people - 1, people}
    for position in (place for place in places if place <= people):
        assert cells.before(position).tolist() == np.bincount(codes[:position], minlength=levels).tolist()
    assert cells.totals.tolist() == np.bincount(codes, minlength=levels).tolist()
    # The largest weights there are: a stride of them must not overflow.
    weights = [0, 1, 10**9, 10**15, 10**15]
    running = np.cumsum(np.array(weights, object)[codes])
    for q in (Fraction(0), Fraction(1, 10**9), Fraction(1, 3), Fraction(1, 2), Fraction(999, 1000), Fraction(1)):
        target = q * int(running[-1])
        assert cells.position_of_weight(weights, target) == min(int(np.sum(running <= target)), people - 1)


def test_summaries_sort_everyone_and_count_the_missing() -> None:
    people = CHUNK + 100
    values = rng.normal(5, 3, people)
    values[::9] = math.nan
    codes = rng.integers(0, 3, people).astype(np.uint8)
    cells = arrays.cells(order.median((0, 10), step=0.01), values, codes, 3)
    assert cells.people + int(cells.missing.sum()) == people
    assert cells.missing.tolist() == np.bincount(codes[::9], minlength=3).tolist()
    assert np.all(np.diff(cells.keys) >= 0)
    assert (cells.totals + cells.missing).tolist() == np.bincount(codes, minlength=3).tolist()


def test_the_missing_take_their_public_place() -> None:
    median = order.median((0, 10), step=1)
    cells = arrays.cells(median, np.array([1.0, math.nan, 9.0, math.nan]), np.array([0, 1, 1, 1], np.uint8), 2)
    filled = cells.with_missing_at(median.default_cell)
    assert filled.cells(0, 4).tolist() == [1, 5, 5, 9]
    assert filled.codes(0, 4).tolist() == [0, 1, 1, 1]
    assert filled.missing.tolist() == [0, 0]
    assert filled.with_missing_at(0) is filled
