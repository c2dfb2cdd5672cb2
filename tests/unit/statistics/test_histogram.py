"""Bins and categories against a loop over people."""

import math
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest

from epsilons.errors import PlanError
from epsilons.statistics.histogram import MAX_CELLS, Histogram
from epsilons.summaries import arrays
from epsilons.summaries.arrays import CHUNK, check_values
from unit.statistics.naive import HOSTILE, number

rng = np.random.default_rng(12)


class Word(str):
    """A word that cannot be a key, were it not for the plain word that it is."""

    __hash__ = None  # type: ignore[assignment]


def counted(values: Any, **bins: Any) -> list[int]:
    histogram = Histogram.of(bins.get("edges"), bins.get("categories"), bins.get("outside", "drop"))
    array = check_values(values, len(values))
    return arrays.tally(histogram, array, np.zeros(len(array), np.uint8), 1)[0][0].tolist()  # type: ignore[no-any-return]


def test_a_bin_has_its_left_end_and_the_last_one_both() -> None:
    values = [-0.001, 0, 9.999, 10, 19.999, 20, 20.001, math.nan, None, math.inf, -math.inf]
    assert counted(values, edges=[0, 10, 20]) == [2, 3]
    assert counted(values, edges=[0, 10, 20], outside="clip") == [4, 5]


def test_endless_bins_hold_the_infinities() -> None:
    values = [-math.inf, -1e300, 0, 5, math.inf, math.nan]
    assert counted(values, edges=[-math.inf, 0, math.inf]) == [2, 3]
    assert counted(values, edges=[-math.inf, 0, math.inf], outside="clip") == [2, 3]


@pytest.mark.parametrize("outside", ["drop", "clip"])
def test_bins_against_a_loop(outside: str) -> None:
    edges = [-2.5, -1, 0, 0.1, 1, 7, 1e6]
    values = [HOSTILE[i] for i in rng.integers(0, len(HOSTILE), 500)]
    expected = [0] * 6
    for value in values:
        found = number(value)
        if found is None:
            continue
        if outside == "clip":
            found = min(max(found, edges[0]), edges[-1])
        for place in range(6):
            last = place == 5 and found == edges[-1]
            expected[place] += edges[place] <= found < edges[place + 1] or last
    assert counted(values, edges=edges, outside=outside) == expected


@pytest.mark.parametrize("kind", [bool, np.int8, np.uint8, np.int64, np.float32, np.float64, np.longdouble, object])
def test_every_type_of_number_falls_into_bins(kind: type) -> None:
    assert counted(np.array([0, 1, 1, 1, 0], kind), edges=[0, 0.5, 1]) == [2, 3]


def test_categories_of_mixed_types_and_values_that_cannot_be_keys() -> None:
    values = ["a", 1, 1.0, True, None, ("x", 2), [1], {"b": 1}, "A", math.nan, b"a", np.str_("a"), np.int64(1)]
    categories = ["a", 1, ("x", 2), "nobody"]
    assert counted(values, categories=categories) == [2, 4, 1, 0]
    for strange in (b"a", 1j, frozenset("a"), ("x", b"y")):
        with pytest.raises(PlanError, match="neither a word, a number, a date nor a tuple"):
            Histogram.of(None, ["a", strange], "drop")


def test_categories_of_typed_arrays() -> None:
    assert counted(np.array(["n", "s", "n", "e"]), categories=["n", "s"]) == [2, 1]
    assert counted(np.array([1, 2, 2, 3], np.uint8), categories=[2, 3, 4]) == [2, 1, 0]
    assert counted(np.array([1.5, math.nan, 2.0]), categories=np.array([1.5, 2.0])) == [1, 1]
    days = np.array(["2024-01-01", "2024-01-02", "NaT"], "datetime64[D]")
    for unit in ("D", "s", "us", "ns"):
        assert counted(days.astype(f"M8[{unit}]"), categories=days[:2]) == [1, 1]
        assert counted(days, categories=days[:2].astype(f"M8[{unit}]")) == ([1, 1] if unit == "D" else [0, 0])


@pytest.mark.parametrize(
    ("unit", "moment", "category"),
    [
        ("Y", "2020", date(2020, 1, 1)), ("M", "2020-02", "2020-02-01"), ("W", "2020-02-06", date(2020, 2, 6)),
        ("h", "2020-02-01T05", "2020-02-01 05:00"), ("25s", "1970-01-01T00:00:50", datetime(1970, 1, 1, 0, 0, 50)),
        ("ps", "1970-01-01T00:00:07.000002", datetime(1970, 1, 1, 0, 0, 7, 2)), ("as", "1970-01-01", "1970-01-01"),
        ("ns", "1969-12-31T23:59:59.999999600", datetime(1970, 1, 1)),
    ],
)  # fmt: skip
def test_times_of_every_unit_are_read_to_the_microsecond(unit: str, moment: str, category: Any) -> None:
    given = np.array([moment, "NaT"], f"M8[{unit}]")
    far = np.array([2**63 - 1, -(2**63) + 1], np.int64).view(given.dtype)
    assert counted(np.concatenate([given, far]), categories=[category]) == [1]


def test_a_category_of_a_subclass_is_the_plain_one() -> None:
    histogram = Histogram.of(None, [Word("a"), np.int64(3), pd.Timestamp("2020-01-01")], "drop")
    assert [type(key) for key in histogram.bin_keys] == [str, int, datetime]
    assert counted(["a", 3, "a"], categories=[Word("a"), np.int64(3)]) == [2, 1]


def test_levels_are_kept_apart_over_chunks() -> None:
    people = CHUNK + 10
    values = np.arange(people) % 3
    codes = (np.arange(people) % 2).astype(np.uint8)
    expected = [[int(np.sum((values == c) & (codes == level))) for c in range(3)] for level in range(2)]
    for histogram in (Histogram.of([0, 1, 2, 3], None, "drop"), Histogram.of(None, [0, 1, 2], "drop")):
        assert arrays.tally(histogram, values, codes, 2)[0].tolist() == expected


def test_one_person_is_in_one_bin_at_most() -> None:
    for bins in ({"edges": [0, 0.5, 1]}, {"edges": [0, 1], "outside": "clip"}, {"categories": ["1", 1, "<script>"]}):
        for value in HOSTILE:
            assert sum(counted([value], **bins)) <= 1
    assert Histogram.of([0, 1], None, "drop").parts[0].reach == {"absent": 1, "replace": 1}
    assert Histogram.of([0, 1, 2], None, "drop").parts[0].reach == {"absent": 1, "replace": 2}


def test_keys_are_the_caller_s() -> None:
    assert Histogram.of([0, 10, 20], None, "drop").bin_keys == ((0.0, 10.0), (10.0, 20.0))
    assert Histogram.of(None, iter(["b", "a"]), "drop").bin_keys == ("b", "a")
    assert all(type(key) is int for key in Histogram.of(None, np.array([1, 2]), "drop").bin_keys)


@pytest.mark.parametrize(
    ("bins", "text"),
    [
        ({}, "A histogram needs edges or categories. Bins are public facts"),
        ({"edges": [0, 1], "categories": ["a"]}, "needs edges or categories"),
        ({"edges": [1]}, "Edges are fewer than two, or do not increase."),
        ({"edges": []}, "Edges are fewer than two"),
        ({"edges": [1, 1]}, "do not increase"),
        ({"edges": [2, 1]}, "do not increase"),
        ({"edges": [0, math.nan]}, "do not increase"),
        ({"edges": [0, "1"]}, "Edges are not numbers."),
        ({"edges": [[0, 1], [2, 3]]}, "Edges are not numbers."),
        ({"edges": [0, 1j]}, "Edges are not numbers."),
        ({"edges": 5}, "Edges are not a list."),
        ({"edges": "0123"}, "Edges are not a list."),
        ({"categories": []}, "Categories are empty or repeat."),
        ({"categories": ["a", "a"]}, "Categories are empty or repeat."),
        ({"categories": [1, True]}, "Categories are empty or repeat."),
        ({"categories": [[1], [2]]}, "A category is neither a word"),
        (
            {"categories": [math.nan]},
            "A category is neither a word, a number, a date nor a tuple of them. What is missing",
        ),
        ({"categories": ["a", None]}, "nor a tuple of them. What is missing is not counted."),
        ({"categories": [np.float32("nan")]}, "What is missing is not counted."),
        ({"categories": [np.datetime64("NaT")]}, "A category is neither a word"),
        ({"categories": [pd.NaT]}, "A category is neither a word"),
        ({"categories": [pd.NA]}, "A category is neither a word"),
        ({"categories": [np.ma.masked]}, "A category is neither a word"),
        ({"categories": [("a", None)]}, "A category is neither a word"),
        ({"categories": [("a", math.nan)]}, "A category is neither a word"),
        ({"categories": [np.timedelta64(1, "ns")]}, "A category is neither a word"),
        ({"categories": [datetime(2020, 1, 1, tzinfo=UTC)]}, "A category is neither a word"),
        ({"categories": [Word("a"), "a"]}, "Categories are empty or repeat."),
        ({"categories": 5}, "Categories are not a list."),
        ({"categories": "abc"}, "Categories are not a list."),
        ({"categories": ["a"], "outside": "clip"}, "Categories have no ends to clip to."),
        ({"edges": [0, 1], "outside": "keep"}, "Unknown outside='keep'."),
        ({"edges": range(MAX_CELLS + 2)}, "100,001 bins are too many. At most 100,000."),
    ],
)
def test_bins_that_cannot_be_are_refused(bins: dict[str, Any], text: str) -> None:
    with pytest.raises(PlanError) as caught:
        Histogram.of(bins.get("edges"), bins.get("categories"), bins.get("outside", "drop"))
    assert text in str(caught.value)
    assert "Try: " in str(caught.value)
    assert caught.value.code == "plan"
