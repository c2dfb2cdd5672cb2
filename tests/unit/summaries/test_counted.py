"""Counted cells say the same as one entry per person, and rows that an engine hands out one by one as well."""

from fractions import Fraction

import numpy as np
import pytest

from epsilons.summaries.cells import LEVEL_BITS, STRIDE, CellCounts, CellRows, CountedCells, SortedCells

LEVELS = 3


def both(seed: int, people: int, points: int) -> tuple[SortedCells, CountedCells]:
    random = np.random.default_rng(seed)
    keys = np.sort(random.integers(0, points, people) << LEVEL_BITS | random.integers(0, LEVELS, people))
    missing = random.integers(0, 4, LEVELS)
    runs, counts = np.unique(keys, return_counts=True)
    return SortedCells(keys, missing, LEVELS), CountedCells(runs, counts, missing, LEVELS)


@pytest.mark.parametrize(("people", "points"), [(1, 1), (7, 3), (500, 40), (500, 10_000), (40_000, 30_000)])
@pytest.mark.parametrize("seed", range(4))
def test_counted_cells_are_the_cells(seed: int, people: int, points: int) -> None:
    plain, counted = both(seed, people, points)
    random = np.random.default_rng(seed + 100)
    assert counted.people == plain.people
    assert counted.totals.tolist() == plain.totals.tolist()
    positions = [0, 1, people // 2, people - 1, people, *random.integers(0, people + 1, 30).tolist(), STRIDE]
    for position in positions:
        if position <= people:
            assert counted.before(position).tolist() == plain.before(position).tolist()
        for stop in (position, position + 1, position + 7, people, people + 5):
            assert counted.cells(position, stop).tolist() == plain.cells(position, stop).tolist()
            assert counted.codes(position, stop).tolist() == plain.codes(position, stop).tolist()
    for cell in [0, points - 1, points, *random.integers(0, points, 20).tolist()]:
        assert counted.start_of_cell(cell) == plain.start_of_cell(cell)
    for weights in ([1, 1, 1], [10**15, 3, 10**9], [0, 5, 0], [7, 0, 1]):
        whole = sum(int(n) * w for n, w in zip(plain.totals, weights, strict=True))
        for part in (Fraction(0), Fraction(1, 3), Fraction(1, 2), Fraction(999, 1000), Fraction(1)):
            found = counted.position_of_weight(weights, part * whole)
            assert found == plain.position_of_weight(weights, part * whole), (weights, part)
    moved, other = counted.with_missing_at(points // 2), plain.with_missing_at(points // 2)
    assert moved.keys.tolist() == other.keys.tolist()
    assert moved.missing.tolist() == other.missing.tolist()
    assert counted.with_missing(np.ones(LEVELS, np.int64)).keys.tolist() == plain.keys.tolist()


def test_nobody_has_no_cells() -> None:
    empty = CountedCells(np.empty(0, np.int64), np.empty(0, np.int64), np.zeros(LEVELS, np.int64), LEVELS)
    assert empty.people == 0
    assert empty.totals.tolist() == [0, 0, 0]
    assert empty.cells(0, 5).tolist() == []
    assert empty.with_missing_at(3) is empty


@pytest.mark.parametrize("shift", [8, 11])
@pytest.mark.parametrize("places", [[0, 1, 2], [1, -1, 0], [0, 0, 1], [-1, -1, -1]])
def test_rows_one_by_one_are_those_that_were_counted(shift: int, places: list[int]) -> None:
    random = np.random.default_rng(7)
    cells, codes = random.integers(-1, 50, 2_000), random.integers(0, LEVELS, 2_000)
    one_by_one = CellRows((cells << shift | codes).astype(np.int32), shift)
    keys, counts = np.unique(cells << 8 | codes, return_counts=True)
    absent = keys < 0
    missing = np.bincount(keys[absent] & 255, counts[absent], LEVELS).astype(np.int64)
    counted = CellCounts(keys[~absent] >> 8, keys[~absent] & 255, counts[~absent], missing)
    one, other = (each.sorted_cells(np.array(places), LEVELS) for each in (one_by_one, counted))
    assert one.keys.tolist() == other.keys.tolist()
    assert one.missing.tolist() == other.missing.tolist()
    assert one.totals.tolist() == other.totals.tolist()
    # As wide as they came, so that as many bytes are sorted; what is looked at is wide enough to reckon with.
    assert one.keys.dtype == np.int32
    assert {one.cells(0, 5).dtype, one.codes(0, 5).dtype} == {np.dtype(np.int64)}
