"""Counts, sums, means and variances against a loop over people in fractions."""

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from epsilons.statistics.additive import Additive
from epsilons.statistics.count import Count
from epsilons.statistics.total import Mean, Sum
from epsilons.statistics.variance import Variance
from epsilons.summaries.arrays import CHUNK, STEPS, as_numbers, check_values
from epsilons.summaries.arrays import tally as tally_arrays
from unit.statistics.naive import HOSTILE, number, per_level, unit

BOUNDS = [(0, 10), (-3.5, 2.25), (0.1, 0.7), (1e9, 1e9 + 1), (-1e30, 1e30), (0, 1e-30)]
rng = np.random.default_rng(11)


def arrays() -> dict[str, Any]:
    n = 300
    floats = rng.normal(0, 5, n)
    floats[::7], floats[::11], floats[::13] = math.nan, math.inf, -math.inf
    untyped = [HOSTILE[i] for i in rng.integers(0, len(HOSTILE), n)]
    signalling = floats.astype(np.float32)
    signalling.view(np.uint32)[::17] = 0x7F800001
    return {
        "bool": rng.random(n) < 0.4,
        "int64": rng.choice([-(2**63), -1, 0, 1, 2, 7, 2**63 - 1], n),
        "uint8": rng.integers(0, 256, n, dtype=np.uint8),
        "int8": rng.integers(-128, 128, n, dtype=np.int8),
        "uint64": rng.choice(np.array([0, 1, 5, 2**64 - 1], np.uint64), n),
        "float16": floats.astype(np.float16),
        "float32": floats.astype(np.float32),
        "signalling": signalling,
        "float64": floats,
        "longdouble": np.append(floats[1:], 0).astype(np.longdouble) * np.longdouble("1e4000"),
        "object": np.fromiter(untyped, object, n),
        "list": untyped,
        "all words": ["a"] * n,
        "all missing": [None] * n,
    }


ARRAYS = arrays()
CODES = rng.integers(0, 3, 300).astype(np.uint8)


def tally(statistic: Additive, values: Any) -> list[list[list[int]]]:
    return [part.tolist() for part in tally_arrays(statistic, check_values(values, 300), CODES, 4)]


@pytest.mark.parametrize("kind", ARRAYS)
def test_a_count_counts_ones(kind: str) -> None:
    values = ARRAYS[kind]
    expected = [[sum(number(v) == 1 for v in level)] for level in per_level(values, CODES, 4)]
    assert tally(Count(), values) == [expected]


@pytest.mark.parametrize("kind", ARRAYS)
@pytest.mark.parametrize("bounds", BOUNDS)
def test_a_sum_adds_clipped_values_on_its_grid(kind: str, bounds: tuple[float, float]) -> None:
    values = ARRAYS[kind]
    for statistic in (Sum(bounds), Mean(bounds)):
        found = [row[0] for row in tally(statistic, values)[0]]
        for total, level in zip(found, per_level(values, CODES, 4), strict=True):
            units = [u for u in (unit(v, bounds) for v in level) if u is not None]
            exact = sum(units, Fraction(0)) * STEPS
            # A float's rounding may move each person by a step, more where bounds are close to each other.
            near = (
                Fraction(1) + Fraction(np.spacing(max(map(abs, bounds)))) / Fraction(bounds[1] - bounds[0]) * 8 * STEPS
            )
            assert abs(total - exact) <= near * len(units)
            assert abs(total) <= STEPS * len(level)


@pytest.mark.parametrize("kind", ARRAYS)
def test_a_variance_adds_values_and_squares(kind: str) -> None:
    values, bounds = ARRAYS[kind], (-3.5, 2.25)
    first, second, _ = tally(Variance(bounds), values)
    assert [first] == tally(Mean(bounds), values)
    for (total,), level in zip(second, per_level(values, CODES, 4), strict=True):
        units = [u for u in (unit(v, bounds) for v in level) if u is not None]
        exact = sum((u * u - Fraction(1, 2) for u in units), Fraction(0)) * STEPS
        assert abs(total - exact) <= 2 * len(units)
        assert abs(total) <= STEPS // 2 * len(level)


def test_chunks_add_up_exactly() -> None:
    """The largest steps there are, in every place of more people than one chunk holds."""
    people = 2 * CHUNK + 3
    values, codes = np.full(people, 10.0), np.zeros(people, np.uint8)
    codes[-1], values[-2] = 1, 0.0
    assert tally_arrays(Sum((0, 10)), values, codes, 2)[0].tolist() == [[(people - 3) * STEPS], [STEPS]]
    assert tally_arrays(Count(), np.ones(people, bool), codes, 2)[0].tolist() == [[people - 1], [1]]
    first, second, rows = tally_arrays(Variance((0, 10)), values, codes, 2)
    assert first.tolist() == [[(people - 3) * STEPS], [STEPS]]
    assert second.tolist() == [[(people - 1) * STEPS // 2], [STEPS // 2]]
    assert rows.tolist() == [[people - 1], [1]]


def test_one_chunk_of_the_largest_steps_stays_exact() -> None:
    everyone_at_a_bound = np.full(CHUNK, 10.0)
    (sums,) = tally_arrays(Sum((0, 10)), everyone_at_a_bound, np.zeros(CHUNK, np.uint8), 1)
    assert sums.tolist() == [[STEPS * CHUNK]]


@pytest.mark.parametrize("statistic", [Count(), Sum((-2, 6)), Mean((-2, 6)), Variance((-2, 6))])
def test_one_person_moves_a_part_no_further_than_its_reach(statistic: Additive) -> None:
    codes = np.zeros(1, np.uint8)
    summaries = [
        np.array([part[0, 0] for part in tally_arrays(statistic, check_values([value], 1), codes, 1)], object)
        for value in HOSTILE
    ]
    for place, part in enumerate(statistic.parts):
        moved = [int(summary[place]) for summary in summaries]
        assert max(map(abs, moved)) <= part.reach["absent"]
        assert max(moved) - min(moved) <= part.reach["replace"]


@pytest.mark.parametrize("statistic", [Sum((-2, 6)), Mean((-2, 6))])
def test_the_reach_is_reached(statistic: Additive) -> None:
    ends = [tally_arrays(statistic, np.array([v]), np.zeros(1, np.uint8), 1) for v in (-2.0, 6.0, 2.0)]
    for place, part in enumerate(statistic.parts):
        moved = [int(end[place][0, 0]) for end in ends]
        assert max(map(abs, moved)) == part.reach["absent"]
        assert max(moved) - min(moved) == part.reach["replace"]
    assert sum(part.share for part in statistic.parts) == 1


def test_answers_come_back_to_the_scale_of_the_values() -> None:
    values, codes = np.array([0.0, 4, 6, 10]), np.zeros(4, np.uint8)

    def exact(statistic: Additive) -> Any:
        parts = statistic.make_parts(tally_arrays(statistic, values, codes, 1))
        sums = [[Fraction(int(cell)) for cell in part.sum(axis=0)] for part in parts]
        return statistic.answer(sums, Fraction(4), 4)

    assert exact(Sum((0, 10))) == 20
    assert exact(Mean((0, 10))) == 5
    assert exact(Mean((2, 8))) == pytest.approx(5)
    assert exact(Variance((0, 10))) == pytest.approx(values.var())
    assert exact(Count()) == 0


def test_a_variance_stays_within_what_is_possible() -> None:
    statistic = Variance((0, 10))
    wild = [Fraction(10**20), Fraction(-(10**20)), Fraction(0)]
    for first in wild:
        for second in wild:
            assert 0 <= statistic.answer([[first], [second]], Fraction(3), 3) <= 25


def test_untyped_numbers_of_every_kind_are_numbers() -> None:
    given = [
        Decimal("2.5"),
        Fraction(1, 4),
        np.float32(0.5),
        3,
        True,
        Decimal("sNaN"),
        Decimal("1e999"),
        -(10**400),
        "7",
    ]
    found = as_numbers(np.array(given, object))
    assert np.array_equal(found, [2.5, 0.25, 0.5, 3, 1, math.nan, math.inf, -math.inf, math.nan], equal_nan=True)


def test_masked_values_are_missing() -> None:
    masked = np.ma.masked_array([1.0, 1.0, 5.0], mask=[True, False, False])
    assert tally_arrays(Count(), check_values(masked, 3), np.zeros(3, np.uint8), 1)[0].tolist() == [[1]]


def test_tables_of_other_libraries_serve() -> None:
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    codes = np.zeros(3, np.uint8)
    for column in (
        pandas.Series([1, None, 1]),
        pandas.Series([1, None, 1], dtype="Int64"),
        pandas.Series([1.0, None, 1.0], dtype="Float64"),
        pandas.Series([True, None, True], dtype="boolean"),
        pandas.Series([1, "x", 1], dtype=object),
        pyarrow.array([1, None, 1]),
    ):
        assert tally_arrays(Count(), check_values(column, 3), codes, 1)[0].tolist() == [[2]]
