"""Arrays and tables give the same summary, whatever the values."""

import math
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sqlglot import exp

from epsilons.engines.base import Column, Schema
from epsilons.engines.conditions import parse
from epsilons.engines.duckdb import DuckDB
from epsilons.errors import DataError, EpsilonsError, PlanError
from epsilons.statistics import order
from epsilons.statistics.additive import Additive
from epsilons.statistics.base import Scope
from epsilons.statistics.count import Count
from epsilons.statistics.histogram import Histogram
from epsilons.statistics.total import Mean, Sum
from epsilons.statistics.unbounded import UnboundedOrder
from epsilons.statistics.variance import Variance
from epsilons.summaries import arrays, sql
from epsilons.summaries.cells import CellCounts, CellRows
from epsilons.summaries.columns import Keys
from epsilons.summaries.sql import Prepared, cells, check_room, tally
from support.hostile import FLOATS, INTS
from support.lengths import examples

LEVELS = 3
#: Bounds whose centre or half width rounds, so that a bound may land past 1; bounds far apart and close together.
BOUNDS = [(0.0, 100.0), (-1.0, 1.0), (-1e6, 3.7), (0.1, 0.7), (0.1, 0.30000000000000004), (1e-30, 3e-30), (-1e30, 1e30)]
BOUNDS += [(1.0, 1.0000000000000002), (1e15, 1e15 + 1), (-7.3, 11.9)]
ADDITIVE: list[Additive] = [Count(), Count(centred=True)]
ADDITIVE += [kind(bounds) for bounds in BOUNDS for kind in (Sum, Mean, Variance)]  # type: ignore[abstract]
ADDITIVE += [
    Histogram(edges=(0.0, 1.0, 50.0, 100.0)),
    Histogram(edges=(0.0, 0.5, 1.0, 2.0, 50.0, 99.0, 100.0), outside="clip"),
    Histogram(edges=(-math.inf, 0.0, math.inf)),
    Histogram(edges=(0.0, 1.0)),
    Histogram(edges=tuple(map(float, range(0, 101, 10)))),
    Histogram(edges=tuple(np.arange(0, 100.05, 0.1).tolist())),
    Histogram(edges=tuple(np.linspace(-7.3, 99.9, 78).tolist()), outside="clip"),
    Histogram(edges=tuple((1e15 + np.arange(20)).tolist())),
    Histogram(edges=tuple(np.geomspace(1, 100, 30).tolist())),
]
ADDITIVE += [kind(bounds, Scope()) for bounds in BOUNDS for kind in (Sum, Variance)]  # type: ignore[abstract]
ADDITIVE += [Mean.over(Scope(), bounds, "absent", None) for bounds in BOUNDS]
GRIDS = [order.median(bounds) for bounds in BOUNDS[:7]]
GRIDS += [order.median((0.0, 100.0), 1), order.minimum((0.0, 10.5), 3), order.maximum((-50.0, 50.0), 7)]
GRIDS += [order.quantile(0.3, (0.0, 1.0), 0.1), order.median((0.0, 1e6), 1e-9)]

KINDS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "float64": (pa.float64(), FLOATS),
    "float32": (pa.float32(), [0.0, 1.0, math.inf, -math.inf, math.nan, 50.0, 1e38, 0.1]),
    "int64": (pa.int64(), INTS),
    "int8": (pa.int8(), [-128, -1, 0, 1, 50, 127]),
    "uint64": (pa.uint64(), [0, 1, 2, 50, 2**53 + 1, 2**63 + 1025, 2**64 - 1]),
    "bool": (pa.bool_(), [False, True]),
    "decimal": (pa.decimal128(12, 3), [Decimal("0.001"), Decimal("1.000"), Decimal("50.5"), Decimal("-99999.999")]),
}


@pytest.fixture(scope="module")
def engine() -> Iterator[DuckDB]:
    made = DuckDB(pa.table({"nothing": [1]}), threads=2)
    yield made
    made.close()


def count(prepared: Prepared, **rows: Any) -> Any:
    return tally(prepared, Count(), None, **rows)[0][:, :, 0]


def prepare(engine: DuckDB, columns: dict[str, pa.Array], codes: list[int]) -> Prepared:
    schema = engine.add("prepared", pa.table({**columns, "level": pa.array(codes, pa.uint8())}))
    return Prepared(engine, "prepared", schema, "level", LEVELS, max(len(codes), 1))


@st.composite
def people(draw: st.DrawFn) -> tuple[str, list[Any], list[int]]:
    kind = draw(st.sampled_from(sorted(KINDS)))
    pool = st.sampled_from([*KINDS[kind][1], None])
    near = st.floats(-2, 102, width=32) if kind.startswith("float") else pool
    values = draw(st.lists(pool | near, min_size=1, max_size=12))
    codes = draw(st.lists(st.integers(0, LEVELS - 1), min_size=len(values), max_size=len(values)))
    return kind, values, codes


def as_array(kind: str, values: list[Any]) -> Any:
    """What a caller of the arrays would hand over: nulls make an untyped array, as do decimals."""
    if kind == "decimal" or (None in values and not kind.startswith("float")):
        return np.array(values, object)
    if kind.startswith("float"):
        return np.array([math.nan if value is None else value for value in values], kind)
    return np.array(values, kind)


@examples(75)
@given(people(), st.sampled_from(ADDITIVE))
def test_sums_are_those_of_the_arrays(engine: DuckDB, drawn: Any, statistic: Additive) -> None:
    kind, values, codes = drawn
    prepared = prepare(engine, {"value": pa.array(values, KINDS[kind][0])}, codes)
    expected = arrays.tally(statistic, as_array(kind, values), np.array(codes, np.uint8), LEVELS)
    found = tally(prepared, statistic, "value")
    assert [part[0].tolist() for part in found] == [part.tolist() for part in expected]


@examples(75)
@given(people(), st.sampled_from(GRIDS))
def test_grid_points_are_those_of_the_arrays(engine: DuckDB, drawn: Any, statistic: order.Order) -> None:
    kind, values, codes = drawn
    prepared = prepare(engine, {"value": pa.array(values, KINDS[kind][0])}, codes)
    expected = arrays.cells(statistic, as_array(kind, values), np.array(codes, np.uint8), LEVELS)
    (found,) = cells(prepared, statistic, "value")
    ordered = found.sorted_cells(np.arange(LEVELS), LEVELS)
    assert ordered.keys.tolist() == expected.keys.tolist()
    assert ordered.missing.tolist() == expected.missing.tolist()


@pytest.mark.parametrize("statistic", [s for s in ADDITIVE if not isinstance(s, Count)], ids=lambda s: str(s)[:60])
def test_sums_of_many_random_values_are_those_of_the_arrays(engine: DuckDB, statistic: Additive) -> None:
    random = np.random.default_rng(5)
    edges = getattr(statistic, "edges", None)
    low, high = (edges[0], edges[-1]) if edges else statistic.bounds  # type: ignore[attr-defined]
    low, high = max(low, -1e9), min(high, 1e16)
    values = np.concatenate([
        random.uniform(low, high, 20_000),
        random.uniform(low - (high - low), high + (high - low), 5_000),
        low + (high - low) * random.integers(0, 2**32, 5_000) / 2**32,  # halfway between two steps
        random.choice(np.array(edges or [low, high]), 5_000),
        np.nextafter(np.array(edges or [low, high]), -math.inf),
        np.exp(random.uniform(-745, 709, 2_000)) * random.choice([-1, 1], 2_000),
    ])  # fmt: skip
    codes = random.integers(0, LEVELS, len(values)).astype(np.uint8)
    prepared = prepare(engine, {"value": pa.array(values)}, codes.tolist())
    found = tally(prepared, statistic, "value")
    expected = arrays.tally(statistic, values, codes, LEVELS)
    parts = zip(found, expected, strict=True)
    assert all(part[0].tolist() == other.tolist() for part, other in parts)


def test_categories_are_counted_as_in_the_arrays(engine: DuckDB) -> None:
    words = ["north", "south", None, "north", "it's", "", "elsewhere", "NORTH"]
    codes = [0, 1, 2, 0, 1, 1, 1, 0]
    statistic = Histogram(categories=("south", "north", "it's", "", "nobody"))
    prepared = prepare(engine, {"word": pa.array(words), "number": pa.array([1, 2, None, 1, 5, 5, 5, -1])}, codes)
    expected = arrays.tally(statistic, np.array(words, object), np.array(codes, np.uint8), LEVELS)
    assert tally(prepared, statistic, "word")[0][0].tolist() == expected[0].tolist()
    numbers = Histogram(categories=(1, 5.0, 10**400, 2.5))
    assert tally(prepared, numbers, "number")[0][0].tolist() == [[2, 0, 0, 0], [0, 3, 0, 0], [0, 0, 0, 0]]


def test_categories_of_another_type_are_refused_before_reading() -> None:
    prepared = Prepared(_unreadable(), "prepared", Schema([Column("word", "text")]), "level", 1, 1)
    with pytest.raises(DataError, match="of another type"):
        tally(prepared, Histogram(categories=("a", 1)), "word")


def test_a_where_and_several_keys_give_the_groups_asked_for(engine: DuckDB) -> None:
    columns = {
        "wage": pa.array([10.0, 20.0, 30.0, math.nan, 50.0, 60.0]),
        "region": pa.array(["n", "s", "n", "n", None, "x"]),
        "year": pa.array([1, 1, 2, 1, 1, 1]),
    }
    prepared = prepare(engine, columns, [0, 1, 0, 2, 0, 1])
    by = Keys.of({"region": ["s", "n", "unheard"], "year": [2, 1]}, prepared.schema)
    assert by.labels[:3] == [("s", 2), ("s", 1), ("n", 2)]
    found = tally(prepared, Mean.over(Scope(), (0.0, 100.0), "absent", None), "wage", by=by)
    assert found[0].shape == (6, LEVELS, 1)
    assert found[1][:, :, 0].tolist() == [[0, 0, 0], [0, 1, 0], [1, 0, 0], [1, 0, 0], [0, 0, 0], [0, 0, 0]]
    assert found[0][:, :, 0].tolist()[1] == [0, math.floor(-0.6 * 2**30 + 0.5), 0]
    assert count(prepared, by=by)[3].tolist() == [1, 0, 1]
    where = parse("wage > 15", prepared.schema)
    assert count(prepared, where=where).tolist() == [[2, 2, 0]]
    assert count(prepared, where=where, by=by).sum() == 2
    medians = cells(prepared, order.median((0.0, 100.0), 10), "wage", by=by)
    assert [m.cells.tolist() for m in medians] == [[], [2], [3], [1], [], []]
    assert medians[3].missing.tolist() == [0, 0, 1]
    binned = tally(prepared, Histogram(edges=(0.0, 15.0, 100.0)), "wage", by=Keys.of({"year": [1]}, prepared.schema))
    assert binned[0].tolist() == [[[1, 1], [0, 2], [0, 0]]]


@pytest.mark.parametrize(
    ("values", "keys", "groups"),
    [
        (pa.array([date(2020, 1, 1), date(1, 1, 1), None]), ["2020-01-01", date(1, 1, 1)], [1, 1]),
        (pa.array([datetime(2020, 1, 1, 12), None], pa.timestamp("us")), ["2020-01-01 12:00:00"], [1]),
        (pa.array([True, False, None]), [False, True], [1, 1]),
        (pa.array([0.0, -0.0, math.nan, math.inf]), [0.0, math.inf, 7], [2, 1, 0]),
        (pa.array([2**64 - 1, 0], pa.uint64()), [2**64 - 1, -1, 2**70], [1, 0, 0]),
        (pa.array([Decimal("1.50"), Decimal("2.00")]), [1.5, 2, Decimal("1.505")], [1, 1, 0]),
        (pa.array([-(2**63), 2**63 - 1]), [2**63 - 1, -(2**63), 2**63], [1, 1, 0]),
    ],
)
def test_keys_of_every_type(engine: DuckDB, values: pa.Array, keys: list[Any], groups: list[int]) -> None:
    prepared = prepare(engine, {"key": values}, [0] * len(values))
    assert count(prepared, by=Keys.of({"key": keys}, prepared.schema))[:, 0].tolist() == groups


@pytest.mark.parametrize("keys", [[], ["1"], [None], [math.nan], [True], [1, "1"], [[1]], [date(2020, 1, 1)], [pd.NA]])
def test_keys_of_another_type_are_refused(keys: list[Any]) -> None:
    with pytest.raises(DataError, match="missing or of another type"):
        Keys.of({"a": keys}, Schema([Column("a", "number", -128, 127)]))


@pytest.mark.parametrize("missing", [None, math.nan, pd.NaT, pd.NA, np.datetime64("NaT"), np.ma.masked])
@pytest.mark.parametrize("family", ["text", "truth", "date", "time"])
def test_what_is_missing_is_no_key(family: str, missing: Any) -> None:
    with pytest.raises(DataError, match="missing or of another type"):
        Keys.of({"a": [missing]}, Schema([Column("a", family)]))


def test_a_key_of_a_subclass_is_the_plain_one() -> None:
    class Word(str):
        __hash__ = None  # type: ignore[assignment]

    keys = Keys.of(
        {"a": [Word("n")], "t": [pd.Timestamp("2020-01-01")]}, Schema([Column("a", "text"), Column("t", "time")])
    )
    assert keys.labels == [("n", datetime(2020, 1, 1))]


@pytest.mark.parametrize("by", [{}, {"a": "north"}, {"a": 3}, ["a"], {"a": [1, 1.0]}, {"a": range(200_000)}])
def test_groups_that_cannot_be_asked(by: Any) -> None:
    with pytest.raises(PlanError):
        Keys.of(by, Schema([Column("a", "number", -(2**63), 2**63 - 1)]))


@pytest.mark.parametrize("keys", [{"region": ["north", "west", "none"]}, {"age": [0.0, 3, 7]}, None])
def test_pairs_of_groups_are_the_same_counted_and_one_by_one(
    engine: DuckDB, keys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against a loop over rows: with a condition, missing values, levels unknown, keys of two spellings or none."""
    random = np.random.default_rng(8)
    regions, ages = random.choice(["north", "south", "west"], 500), random.choice([0.0, -0.0, 3.0, 4.0], 500)
    values = np.where(random.random(500) < 0.1, math.nan, random.normal(50, 30, 500))
    codes, year = random.integers(0, LEVELS + 1, 500), random.integers(0, 2, 500)
    columns = {"region": pa.array(regions), "age": pa.array(ages), "wage": pa.array(values), "year": pa.array(year)}
    prepared, statistic = prepare(engine, columns, codes.tolist()), order.median((0.0, 100.0), 1)
    by, where = keys and Keys.of(keys, prepared.schema), parse("year = 1", prepared.schema)
    expected = []
    for key in by.labels if by else [None]:
        here = (year == 1) & (codes < LEVELS)
        here &= True if key is None else (regions == key if "region" in keys else ages == key)
        expected.append(arrays.cells(statistic, values[here], codes[here].astype(np.uint8), LEVELS))
    for most in (sql.MOST_PAIRS, 0):
        monkeypatch.setattr(sql, "MOST_PAIRS", most)
        found = cells(prepared, statistic, "wage", by=by, where=where)
        assert {type(one) for one in found} == {CellRows if most == 0 else CellCounts}
        ordered = [one.sorted_cells(np.arange(LEVELS), LEVELS) for one in found]
        assert [one.keys.tolist() for one in ordered] == [one.keys.tolist() for one in expected]
        assert [one.missing.tolist() for one in ordered] == [one.missing.tolist() for one in expected]


def test_people_are_counted_once(engine: DuckDB) -> None:
    prepared = prepare(engine, {"id": pa.array([7, 7, 8, 9]), "x": pa.array([1, 2, 1, 3])}, [0, 0, 1, 1])
    prepared = Prepared(engine, "prepared", prepared.schema, "level", LEVELS, 4, person="id")
    where, people_once = parse("x < 3", prepared.schema), Count(Scope(2), "people")
    assert tally(prepared, people_once, None, where=where)[0].tolist() == [[[1], [1], [0]]]
    assert count(prepared, where=where).tolist() == [[2, 1, 0]]
    assert tally(prepared, people_once, "x")[0].tolist() == [[[1], [1], [0]]]
    assert tally(prepared, Count(), "x")[0][0, :, 0].tolist() == [1, 1, 0]


def test_columns_may_be_named_like_anything(engine: DuckDB) -> None:
    """Names of results never capture a column: groups are given by place."""
    columns = {name: pa.array([1.0, 2.0]) for name in ("cell", "count", "sum0", "key0", 'a"b', "select", "x; DROP")}
    prepared = prepare(engine, columns, [0, 1])
    for name in columns:
        by = Keys.of({name: [1]}, prepared.schema)
        found = tally(prepared, Histogram(edges=(0.0, 1.5, 3.0)), name, by=by, where=parse("cell < 9", prepared.schema))
        assert found[0].tolist() == [[[1, 0], [0, 0], [0, 0]]]


def test_a_sum_that_could_pass_64_bits_is_refused_before_reading() -> None:
    schema = Schema([Column("x", "number", bits=64)])
    prepared = Prepared(_unreadable(), "prepared", schema, "level", 1, 2**33)
    with pytest.raises(PlanError, match="too many rows"):
        tally(prepared, Mean((0.0, 1.0)), "x")
    with pytest.raises(PlanError, match="too many rows"):
        check_room(Mean.over(Scope(), (0.0, 1.0), "absent", None), 2**32)
    check_room(Mean((0.0, 1.0)), 2**32 - 1)
    check_room(Count(), 2**62)


@pytest.mark.parametrize("statistic", [Mean((0.0, 1.0)), Variance((0.0, 1.0)), Count(), Histogram(edges=(0.0, 1.0))])
def test_words_have_no_sum(statistic: Additive) -> None:
    prepared = Prepared(_unreadable(), "prepared", Schema([Column("word", "text")]), "level", 1, 1)
    with pytest.raises(DataError, match="holds text, not numbers"):
        tally(prepared, statistic, "word")
    with pytest.raises(DataError, match="no column 'wrod'"):
        tally(prepared, statistic, "wrod")


def test_what_a_table_cannot_be_asked() -> None:
    prepared = Prepared(_unreadable(), "prepared", Schema([Column("x", "number", 0, 9)]), "level", 1, 1)
    with pytest.raises(PlanError, match="needs a column"):
        tally(prepared, Mean((0.0, 1.0)), None)
    with pytest.raises(PlanError, match="needs a column"):
        tally(prepared, Histogram(categories=(1,)), None)
    with pytest.raises(PlanError, match="cannot be asked of a table"):
        tally(prepared, UnboundedOrder(2), "x")
    with pytest.raises(PlanError, match="2,000 bins"):
        tally(prepared, Histogram(edges=tuple(map(float, range(2001)))), "x")


def test_a_tree_uses_only_what_every_engine_has(engine: DuckDB) -> None:
    """Casts stay casts and divisions stay divisions when the tree is written out, for either engine."""
    seen: list[exp.Query] = []

    class Watched(DuckDB):
        def __init__(self) -> None:
            pass

        def fetch(self, tree: exp.Query) -> dict[str, NDArray[Any]]:
            seen.append(tree)
            return engine.fetch(tree)

    known = prepare(engine, {"x": pa.array([1.5, None]), "d": pa.array([Decimal("1.5"), None])}, [0, 1])
    watched = Prepared(Watched(), known.name, known.schema, "level", LEVELS, 2)
    for statistic in ADDITIVE:
        for name in ("x", "d"):
            tally(watched, statistic, name, where=parse("x > 1 AND d <> 2.5", known.schema))
    for grid in GRIDS:
        cells(watched, grid, "x")
    allowed = (exp.Case, exp.If, exp.Floor, exp.Least, exp.Greatest, exp.Cast, exp.Sum, exp.Count, exp.IsNan)
    for tree in seen:
        functions = [node for node in tree.find_all(exp.Func) if not isinstance(node, (exp.And, exp.Or))]
        assert all(isinstance(node, allowed) for node in functions)
        for dialect in ("duckdb", "spark"):
            text = tree.sql(dialect)
            assert "TRY_CAST" not in text
            assert "NULLIF" not in text
            assert "IF(" not in text.replace("COUNT_IF(", "")


def test_every_word_is_compared_in_every_row_where_no_list_is_joined(engine: DuckDB) -> None:
    """As on Spark. CASE would compare as many words as stand before a row's own."""
    schema = engine.add("words", pa.table({"word": ["b", "a", None, "c", "", "ä"]}))
    keys = Keys.of({"word": ["a", "ä", "b"]}, schema)
    (place,) = keys.trees(False)
    assert not list(place.find_all(exp.Case, exp.If))
    assert len(list(place.find_all(exp.EQ))) == 3
    found = engine.fetch(exp.select(exp.alias_(place, "place")).from_("words"))["place"]
    assert found.tolist() == [2, 0, -1, -1, -1, 1]
    assert keys.groups([found]).tolist() == [2, 0, -1, -1, -1, 1]
    many = Keys.of({"word": [str(number) for number in range(2_000)]}, schema)
    assert len(many.trees(False)[0].sql("spark")) > 0


def test_what_is_wrong_with_categories_does_not_speak_of_groups(engine: DuckDB) -> None:
    known = prepare(engine, {"x": pa.array([1.5, None])}, [0, 1])
    for wrong in (["a"], [1, 1.0]):
        with pytest.raises(EpsilonsError, match=r"^Categories .* Try: categories="):
            Keys((known.schema["x"],), (tuple(wrong),), "category")
        with pytest.raises(EpsilonsError, match=r"^Keys .* Try: by="):
            Keys.of({"x": wrong}, known.schema)


def test_a_level_that_is_unknown_is_left_out(engine: DuckDB) -> None:
    schema = engine.add("odd", pa.table({"x": [1.0, 1.0, 1.0], "level": pa.array([0, 200, None], pa.uint8())}))
    found = tally(Prepared(engine, "odd", schema, "level", LEVELS, 3), Count(), "x")
    assert found[0].tolist() == [[[1], [0], [0]]]


def _unreadable() -> Any:
    class Unreadable:
        def run(self, tree: exp.Query) -> Any:
            raise AssertionError("the table was read")

    return Unreadable()
