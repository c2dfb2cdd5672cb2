"""Regressions of a table: the arrays' sums to the last unit, and so the arrays' models."""

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import epsilons as eps
from epsilons.statistics.base import Scope
from epsilons.statistics.logistic import LogisticRegression
from epsilons.statistics.regression import LinearRegression, Regression
from epsilons.summaries import arrays
from epsilons.summaries.arrays import Rows
from epsilons.summaries.sql import tally
from epsilons.testing import seeded
from support.hostile import FLOATS

BOUNDS = {"x": (0.0, 10.0), "z": (-3.0, 0.7), "y": (0.0, 100.0)}


def dataset(table: pa.Table, **options: Any) -> eps.Dataset:
    given_options: dict[str, Any] = {"preferences": eps.Preferences.from_column("epsilon"), "bounds": BOUNDS}
    return eps.Dataset(
        table, person="id", version="made up", **{**given_options, **options}, ledger="memory", ceiling=1e6
    )


def table_of(x: Any, z: Any, y: Any, epsilons: Any) -> pa.Table:
    columns = {
        "id": np.arange(len(x)),
        "x": pa.array(x, pa.float64()),
        "z": pa.array(z, pa.float64()),
        "y": pa.array(y),
    }
    return pa.table({**columns, "epsilon": pa.array(epsilons, pa.float64())})


def sums_of(people: eps.Dataset, statistic: Regression, target: str) -> Any:
    preparation = people._preparation
    found = tally(preparation.prepared, statistic, target)[0][0]
    by_grant = {cohort.id: cohort.granted for cohort in people.ledger.cohorts()}
    order = np.argsort([by_grant[cohort] for cohort in preparation.cohorts])
    return found[order]


@settings(max_examples=20)  # to open a table takes longer than to add up some more rows
@given(st.lists(st.tuples(*[st.sampled_from(FLOATS)] * 3, st.sampled_from([0.5, 1.0])), min_size=1, max_size=36))
def test_hostile_rows_add_up_as_on_arrays(rows: list[tuple[float, float, float, float]]) -> None:
    x, z, y, epsilons = (np.array(column, float) for column in zip(*rows, strict=True))
    statistic = LinearRegression(("x", "z"), (BOUNDS["x"], BOUNDS["z"]), BOUNDS["y"])
    levels = sorted(set(epsilons))
    codes = np.searchsorted(levels, epsilons).astype(np.uint8)
    with np.errstate(all="ignore"):
        expected = arrays.tally(statistic, Rows(np.column_stack([x, z]), y), codes, len(levels))[0]
    with dataset(table_of(x, z, y, epsilons)) as people:
        assert sums_of(people, statistic, "y").tolist() == expected.tolist()


@pytest.mark.parametrize("bounds", [(1e15, 1e15 + 1), (0.1, 0.30000000000000004), (-1e6, 3.7), (1e6, 1e6 + 1e-4)])
def test_bounds_that_miss_the_ends_of_the_grid(bounds: tuple[float, float]) -> None:
    low, high = bounds
    width = high - low
    x = np.concatenate([np.linspace(low - width, high + width, 400), [low, high, np.nextafter(low, -math.inf)], FLOATS])
    statistic = LinearRegression(("x",), (bounds,), (0.0, 100.0))
    y = np.linspace(0, 100, len(x))
    with np.errstate(all="ignore"):
        expected = arrays.tally(statistic, Rows(x[:, None], y), np.zeros(len(x), np.uint8), 1)[0]
    with dataset(table_of(x, x, y, np.full(len(x), 1.0))) as people:
        assert sums_of(people, statistic, "y").tolist() == expected.tolist()


def test_many_rows_add_up_as_on_arrays() -> None:
    made_up = np.random.default_rng(4)
    x, z = made_up.uniform(-1, 11, 5_000), made_up.normal(-1, 1, 5_000)
    y = 30 + 4 * x + made_up.normal(0, 20, 5_000)
    y[::97] = math.nan
    words = np.where(y > 50, "high", np.where(y > 40, "low", "neither"))
    epsilons = made_up.choice([0.1, 1.0, 2.0], 5_000)
    codes = np.searchsorted([0.1, 1.0, 2.0], epsilons).astype(np.uint8)
    table = table_of(x, z, y, epsilons).append_column("word", pa.array(words))
    linear = LinearRegression(("x", "z"), (BOUNDS["x"], BOUNDS["z"]), BOUNDS["y"])
    logistic = LogisticRegression(("x", "z"), (BOUNDS["x"], BOUNDS["z"]), ("low", "high"))
    with dataset(table) as people:
        assert sums_of(people, linear, "y").tolist() == arrays.tally(linear, Rows(np.c_[x, z], y), codes, 3)[0].tolist()
        expected = arrays.tally(logistic, Rows(np.c_[x, z], words.astype(object)), codes, 3)[0]
        assert sums_of(people, logistic, "word").tolist() == expected.tolist()


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.float32(), pa.decimal128(9, 2)])
def test_a_class_is_a_value_of_the_column_whatever_its_type(kind: pa.DataType) -> None:
    """0 and 1, as the question has them, mean 0.0 and 1.0, or 0.00 and 1.00, of the column."""
    made_up = np.random.default_rng(6)
    x, rich = made_up.uniform(0, 10, 400), made_up.choice([0, 1, 2], 400)
    table = table_of(x, x, pa.array(rich.astype(np.int8)).cast(kind), np.full(400, 1.0))
    statistic = LogisticRegression(("x",), (BOUNDS["x"],), (0, 1))
    expected = arrays.tally(statistic, Rows(x[:, None], rich), np.zeros(400, np.uint8), 1)[0]
    with dataset(table) as people:
        assert sums_of(people, statistic, "y").tolist() == expected.tolist()
        assert set(people.logistic_regression("y", ["x"]).value) == {"intercept", "x"}


@pytest.mark.parametrize("mechanism", ["weighted", "minimum", "threshold", "stretching"])
def test_a_model_is_the_one_of_the_arrays(mechanism: str) -> None:
    made_up = np.random.default_rng(4)
    x, z = made_up.uniform(0, 10, 3_000), made_up.uniform(-3, 0.7, 3_000)
    y = np.clip(30 + 4 * x + made_up.normal(0, 5, 3_000), 0, 100)
    epsilons = made_up.choice([0.5, 1.0, 5.0], 3_000)
    with dataset(table_of(x, z, y, epsilons)) as people:
        ours = people.linear_regression("y", ["x", "z"], share=1, mechanism=mechanism, entropy=seeded(5))
    low, high = zip(BOUNDS["x"], BOUNDS["z"], strict=True)
    theirs = eps.linear_regression(
        np.c_[x, z], y, epsilons, bounds_X=(low, high), bounds_y=BOUNDS["y"], features=["x", "z"],
        mechanism=mechanism, entropy=seeded(5),
    )  # fmt: skip
    assert ours.value == theirs.value
    assert ours.charges == theirs.charges
    assert abs(ours.value["x"] - 4) < 2


def test_a_model_on_a_condition_and_on_a_sample() -> None:
    made_up = np.random.default_rng(6)
    x = made_up.uniform(0, 10, 4_000)
    y = np.clip(np.where(x < 5, 10 * x, 80 - 6 * x), 0, 100)
    with dataset(table_of(x, -x / 5, y, np.full(4_000, 50.0))) as people:
        rising = people.linear_regression("y", ["x"], where="x < 5", share=0.2)
        falling = people.linear_regression("y", ["x"], where="x >= 5", share=0.2, mechanism="sample")
        assert rising.value["x"] == pytest.approx(10, abs=1)
        assert falling.value["x"] == pytest.approx(-6, abs=1)
        assert people.linear_regression("y", ["x"], where="x < 5", share=0.2) == rising


def test_several_rows_are_protected_together() -> None:
    one = LinearRegression(("x",), ((0, 1),), (0, 1)).parts[0].reach
    three = LinearRegression(("x",), ((0, 1),), target_bounds=(0, 1), scope=Scope(3)).parts[0].reach
    assert three == {name: 3 * reach for name, reach in one.items()}
    with dataset(table_of([1.0], [0.0], [2.0], [1.0]), rows_per_person=3) as people:
        caveats = people.linear_regression("y", ["x"]).guarantee.caveats
        assert any("At most 3 rows" in caveat for caveat in caveats)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("y", "x"), "a list of columns"),
        (("y", []), "a list of columns"),
        (("y", ["y", "x"]), "among the features"),
        (("y", ["nothing"]), "no column"),
        (("y", ["id"]), "has no bounds"),
    ],
)
def test_what_cannot_be_fitted_is_said_before_anyone_is_charged(arguments: Any, words: str) -> None:
    with dataset(table_of([1.0], [0.0], [2.0], [1.0])) as people:
        with pytest.raises(eps.EpsilonsError, match=words):
            people.linear_regression(*arguments)
        with pytest.raises(eps.PlanError, match="no groups"):
            people.linear_regression("y", ["x"], by={"id": [1]})
        with pytest.raises(eps.DataError, match="not a value of column"):
            people.logistic_regression("y", ["x"], classes=("a", "b"))
        assert people.history() == ()


@pytest.mark.parametrize("kind", ["linear_regression", "logistic_regression"])
def test_words_are_features_of_tables_arrays_and_frames(kind: str) -> None:
    """All but the last word of a column; whoever has none of the words, or no word, adds nothing."""
    made_up = np.random.default_rng(5)
    x, region = made_up.uniform(0, 10, 900), made_up.choice(["west", "south", "north", "sea", None], 900)
    y = 30 + 4 * x + 20.0 * (region == "west") + made_up.normal(0, 3, 900)
    words, epsilons = ["west", "south", "north"], np.full(900, 50.0)
    table = table_of(x, x, y, epsilons).append_column("region", pa.array(region, pa.string()))
    named = {"x": BOUNDS["x"], "region": words}
    aim: dict[str, Any] = {"bounds_y": BOUNDS["y"]} if kind == "linear_regression" else {"classes": (False, True)}
    target = y if kind == "linear_regression" else y > 55
    table = table.append_column("rich", pa.array(y > 55))
    fit = getattr(eps, kind)
    with dataset(table, keys={"region": words}) as people:
        more = {} if kind == "linear_regression" else {"classes": (False, True)}
        column = "y" if kind == "linear_regression" else "rich"
        of_table = getattr(people, kind)(column, ["x", "region"], share=1, entropy=seeded(5), **more)
    frame = table.select(["x", "region"]).to_pandas()
    objects = np.column_stack([x.astype(object), region])
    found = [fit(X, target, epsilons, bounds_X=named, **aim, entropy=seeded(5)) for X in (frame, objects)]
    spread = np.column_stack([x, *(np.where(np.isin(region, words), region == word, np.nan) for word in words[:2])])
    low, high = [0, 0, 0], [10, 1, 1]
    by_hand = fit(
        spread, target, epsilons, bounds_X=(low, high), features=["x", "region=west", "region=south"], **aim,
        entropy=seeded(5),
    )  # fmt: skip
    assert of_table.value == found[0].value == found[1].value == by_hand.value
    assert by_hand.value["region=west"] > (15 if kind == "linear_regression" else 0.5)


def test_words_of_a_feature_are_public_and_named_once() -> None:
    X, y, wages = [["west", 1], ["south", 2]], [1.0, 2.0], (0.0, 10.0)
    for bounds, said in (
        ({"region": ["west"], "x": (0, 1)}, "Feature 'region' has no such words"),
        ({"region": ["west", "west"], "x": (0, 1)}, "Feature 'region' has no such words"),
        ({"region": ["west", 3], "x": (0, 1)}, "Feature 'region' has no such words"),
        ({"region": ["west", "south"]}, "2 columns and public facts about 1"),
        ({"region": ["west", "south"], "x": 3}, "Bounds for the features are neither"),
        ({}, "public facts about 0"),
    ):
        with pytest.raises(eps.PlanError, match=said):
            eps.linear_regression(X, y, 1.0, bounds_X=bounds, bounds_y=wages)
    named = {"region": ["west", "south"], "x": (0, 1)}
    with pytest.raises(eps.PlanError, match="named twice"):
        eps.linear_regression(X, y, 1.0, bounds_X=named, bounds_y=wages, features=["a", "b"])
    frame = pa.table({"x": [1.0, 2.0], "region": ["west", "south"]}).to_pandas()
    with pytest.raises(eps.PlanError, match="in another order"):
        eps.linear_regression(frame, y, 1.0, bounds_X=named, bounds_y=wages)
    plan = eps.plan("linear_regression", [1.0] * 50, bounds_X=named, bounds_y=wages)
    assert (
        plan.best.error
        == eps.plan("linear_regression", [1.0] * 50, bounds_X=([0, 0], [1, 1]), bounds_y=wages).best.error
    )
    x = np.arange(3.0)
    table = table_of(x, x, x, np.ones(3)).append_column("region", pa.array(["west", "south", None]))
    with dataset(table) as people, pytest.raises(eps.DataError, match="holds text, not numbers"):
        people.linear_regression("y", ["x", "region"], share=0.1)
