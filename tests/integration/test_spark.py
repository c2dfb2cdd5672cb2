"""Spark gives what DuckDB gives, to the last bit, and leaves the user's session as it was."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from sqlglot import exp

import epsilons as eps
from epsilons.engines.base import SOURCE, Engine, open_table
from epsilons.engines.conditions import parse
from epsilons.engines.duckdb import DuckDB
from epsilons.engines.trees import cast, column
from epsilons.errors import DataError
from epsilons.statistics import order
from epsilons.statistics.additive import Additive
from epsilons.statistics.base import Scope
from epsilons.statistics.choice import Mode, Top
from epsilons.statistics.count import Count
from epsilons.statistics.histogram import Histogram
from epsilons.statistics.total import Mean, Sum
from epsilons.statistics.variance import Variance
from epsilons.summaries import arrays
from epsilons.summaries.columns import Keys, as_double
from epsilons.summaries.sql import Prepared, cells, single_rows, tally
from support import spans
from support.hostile import FLOATS, INTS
from support.lengths import some
from support.refusals import Source, as_it_is, compare
from support.spark_questions import NAMED, NAMES, PEOPLE, QUESTIONS, TABLE, answers, asked, salted_dataset
from support.spark_session import missing
from support.truths import TABLE as TRUTHS
from support.truths import Truths, conditions
from support.work import CONDITIONS as HOSTILE_CONDITIONS
from support.work import (
    ENDLESS_NOTE,
    PRIVATE,
    compare_times,
    make_world,
    prepared,
    questions,
    shortcuts,
    spark_seconds,
    spark_work,
    work_for,
)
from support.work import ROWS as WORLD_ROWS

if reason := missing():
    pytest.skip(reason, allow_module_level=True)
pytestmark = pytest.mark.integration

FIXED = "The table could not be read."
LEVELS = 3


def on_both(spark: Any, table: pa.Table) -> tuple[Engine, Engine]:
    """One table in both engines, for Spark by way of a file, as times without a zone need it."""
    return DuckDB(table, threads=1), open_table(as_frame(spark, table))


def as_frame(spark: Any, table: pa.Table) -> Any:
    with_times = any(pa.types.is_timestamp(field.type) for field in table.schema)
    if with_times:
        spark = spark.newSession()
        spark.conf.set("spark.sql.timestampType", "TIMESTAMP_NTZ")
    return spark.createDataFrame(table)


# Summaries ----------------------------------------------------------------------------------------------------------

BOUNDS = [(0.0, 100.0), (-1e6, 3.7), (0.1, 0.30000000000000004), (1e-30, 3e-30), (-1e30, 1e30), (1e15, 1e15 + 1)]
BOUNDS += [(1.0, 1.0000000000000002)]
ADDITIVE: list[Additive] = [Count(), Variance((0.0, 100.0))]
ADDITIVE += [kind(bounds) for bounds, kind in zip(BOUNDS, cycle((Mean, Sum, Variance)), strict=False)]  # type: ignore[abstract]
ADDITIVE += [Sum(bounds, Scope()) for bounds in BOUNDS[:3]]
ADDITIVE += [Variance(BOUNDS[1], Scope()), Mean.over(Scope(), BOUNDS[2], "absent", None)]
ADDITIVE += [
    Histogram(edges=(0.0, 0.5, 1.0, 2.0, 50.0, 99.0, 100.0), outside="clip"),
    Histogram(edges=(-math.inf, 0.0, math.inf)),
    Histogram(edges=tuple(np.arange(0, 100.05, 0.1).tolist())),
    Histogram(edges=tuple((1e15 + np.arange(20)).tolist())),
    Histogram(edges=tuple(np.geomspace(1, 100, 30).tolist())),
]
GRIDS = [order.median(bounds) for bounds in BOUNDS[:5]]
GRIDS += [order.quantile(0.3, (0.0, 1.0), 0.1), order.maximum((-50.0, 50.0), 7), order.median((0.0, 1e6), 1e-9)]


def many_floats() -> list[float]:
    """Values in and around all bounds, halfway between steps, on edges and beside them, and the hostile ones."""
    random = np.random.default_rng(5)
    found = [np.array(FLOATS)]
    for low, high in BOUNDS:
        width = high - low
        found += [random.uniform(low - width / 4, high + width / 4, 150), np.nextafter([low, high], -math.inf)]
        found.append(low + width * random.integers(0, 2**32, 100) / 2**32)
    found += [np.arange(0, 100.05, 0.1), np.nextafter(np.geomspace(1, 100, 30), 0), 1e15 + np.arange(20)]
    return list(np.concatenate([*found, np.exp(random.uniform(-745, 709, 200)) * random.choice([-1, 1], 200)]).tolist())


FLOATING = many_floats()
ROWS = len(FLOATING)


def repeated(values: list[Any]) -> list[Any]:
    return list(islice(cycle([*values, None]), ROWS))


#: Of 20 digits, where DuckDB's own conversion is not always the nearest double.
_LARGE = np.random.default_rng(3).integers(0, 10**18, 100).tolist()
HOSTILE = pa.table({
    "float64": pa.array([None, *FLOATING[1:]]),
    "float32": pa.array(repeated([0.0, -0.0, 1.0, math.inf, -math.inf, math.nan, 5e1, 1e38, 0.1, 1e-45]), pa.float32()),
    "int64": pa.array(repeated(INTS), pa.int64()),
    "int8": pa.array(repeated([-128, -1, 0, 1, 50, 127]), pa.int8()),
    "bool": pa.array(repeated([False, True])),
    "decimal": pa.array(repeated([Decimal("0.001"), Decimal("1.000"), Decimal("-99999.999")]), pa.decimal128(12, 3)),
    "large": pa.array(
        repeated([10**15 - 1, 7, *(n * 87 + 10**19 for n in _LARGE), 10**25 + 3]),
        pa.decimal128(26, 0),
    ),
    "word": pa.array(repeated(["", "a", "A", "it's", "\\", "${spark.app.name}", "naïve", "e\u0301", "🙂", "a%", "\n"])),
    "day": pa.array(repeated([date(1, 1, 1), date(1582, 10, 10), date(2020, 2, 29), date(9999, 12, 31)])),
    "time": pa.array(repeated([datetime(1, 1, 1), datetime(2020, 1, 1, 12, 0, 0, 1)]), pa.timestamp("us")),
    "le`v.el\" x": pa.array(list(islice(cycle([0, 1, 2, 0, 0]), ROWS)), pa.int16()),
})  # fmt: skip
LEVEL = 'le`v.el" x'


@pytest.fixture(scope="module")
def both(spark: Any) -> Iterator[tuple[Prepared, Prepared]]:
    engines = on_both(spark, HOSTILE)
    made = []
    for engine in engines:
        schema = engine.keep("prepared", exp.select("*").from_(SOURCE))
        made.append(Prepared(engine, "prepared", schema, LEVEL, LEVELS, ROWS))
    assert [(c.name, c.family, c.bits, c.scale) for c in made[0].schema.values()] == [
        (c.name, c.family, c.bits, c.scale) for c in made[1].schema.values()
    ]
    yield made[0], made[1]
    for engine in engines:
        engine.close()


def parts_of(prepared: Prepared, statistic: Additive, name: str | None, **rows: Any) -> list[Any]:
    return [part.tolist() for part in tally(prepared, statistic, name, **rows)]


@pytest.mark.parametrize(
    "statistic",
    some(ADDITIVE, lambda one: ADDITIVE.index(one) % 2 == 0),
    ids=lambda s: f"{s.name} {getattr(s, 'bounds', '')}",
)
def test_sums_are_the_same_and_those_of_the_arrays(both: tuple[Prepared, Prepared], statistic: Additive) -> None:
    found = parts_of(both[1], statistic, "float64")
    assert found == parts_of(both[0], statistic, "float64")
    codes = HOSTILE[LEVEL].to_numpy().astype(np.uint8)
    expected = arrays.tally(statistic, HOSTILE["float64"].to_numpy(), codes, LEVELS)
    assert [part[0] for part in found] == [part.tolist() for part in expected]


@pytest.mark.parametrize("name", ["float32", "int64", "int8", "bool", "decimal", "large"])
def test_sums_of_every_type_are_the_same(both: tuple[Prepared, Prepared], name: str) -> None:
    for statistic in (Variance((0.0, 1e18)), Histogram(edges=(-1e30, 0.0, 1.0, 50.0, 1e17, 1e30))):
        assert parts_of(both[1], statistic, name) == parts_of(both[0], statistic, name)


def test_every_number_becomes_the_nearest_double(both: tuple[Prepared, Prepared]) -> None:
    names = ("float32", "int64", "int8", "bool", "decimal", "large")
    expected = {name: sorted(float(v).hex() for v in HOSTILE[name].to_pylist() if v is not None) for name in names}
    for one in both:
        query = exp.select(*(exp.alias_(as_double(one.schema[name]), name) for name in names))
        found = one.engine.run(query.from_("prepared"))
        for name in names:
            assert sorted(v.hex() for v in found[name].to_pylist() if v is not None) == expected[name], name


@pytest.mark.parametrize(
    "grid", some(GRIDS, lambda one: GRIDS.index(one) % 2 == 0), ids=lambda g: f"{g.name} {g.bounds}"
)
def test_grid_points_are_the_same(both: tuple[Prepared, Prepared], grid: order.Order) -> None:
    for name in ("float64", "large") if grid is GRIDS[0] else ("float64",):
        (one,), (other,) = cells(both[0], grid, name), cells(both[1], grid, name)
        mine, theirs = (each.sorted_cells(np.arange(LEVELS), LEVELS) for each in (one, other))
        assert mine.keys.tolist() == theirs.keys.tolist()
        assert mine.missing.tolist() == theirs.missing.tolist()


def test_single_rows_are_the_same_and_those_of_the_table(both: tuple[Prepared, Prepared]) -> None:
    """What individual privacy looks at: whose row, its level, its group and the value; never one without a value."""
    words = ["a", "A", "it's", "🙂"]
    listed = zip(*(HOSTILE[name].to_pylist() for name in ("int64", LEVEL, "word", "float32")), strict=True)
    counted = [(*row[:2], words.index(row[2]), row[3]) for row in listed if row[2] in words and row[0] is not None]
    expected = sorted(row for row in counted if row[3] is not None and row[3] >= 0)
    for one in both:
        asked = replace(one, person="int64")
        where, by = parse("float32 >= 0", one.schema), Keys.of({"word": words}, one.schema)
        found = single_rows(asked, "float32", where=where, by=by)
        rows = zip(
            found.person.tolist(), found.level.tolist(), found.group.tolist(), found.values.tolist(), strict=True
        )
        assert sorted(row for row in rows if row[0] in set(HOSTILE["int64"].to_pylist())) == expected


def test_options_have_the_same_voices_and_totals(both: tuple[Prepared, Prepared]) -> None:
    words = ("", "a", "A", "🙂", "nobody's")
    options: list[Additive] = [
        Mode(None, words),
        Top(None, words, scope=Scope(), k=2, total="int8", bounds=(-9.0, 60.0)),
    ]
    for statistic in options:
        by = Keys.of({"bool": [True, False]}, both[0].schema)
        found = parts_of(both[1], statistic, "word", by=by)
        assert found == parts_of(both[0], statistic, "word", by=by)
        assert np.abs(found[0])[..., :-1].any()
        assert not np.array(found[0])[..., -1].any()


KEYS: list[dict[str, list[Any]]] = [
    {"word": ["a", "it's", "\\", "${spark.app.name}", "e\u0301", "\u00e9", "🙂", "nobody"], "bool": [True, False]},
    {"float64": [0.0, math.inf, 50.0, 1e308, 5e-324, 7], "int8": [-128, 127, 300]},
    {"int64": [2**63 - 1, -(2**63), 2**63, 0], "decimal": [Decimal("0.001"), 1, -99999.999]},
    {"day": ["0001-01-01", date(1582, 10, 10)], "time": ["2020-01-01 12:00:00.000001", datetime(1, 1, 1)]},
    {"float32": [0.1, 1e38, -0.0], "large": [10**25 + 3, 7]},
]


@pytest.mark.parametrize("keys", KEYS, ids=lambda keys: " ".join(keys))
def test_groups_are_the_same(both: tuple[Prepared, Prepared], keys: dict[str, list[Any]]) -> None:
    counts = [tally(one, Count(), None, by=Keys.of(keys, one.schema))[0].tolist() for one in both]
    assert counts[0] == counts[1]
    assert np.sum(counts[0]) > 0


def test_people_are_counted_once_in_both(both: tuple[Prepared, Prepared]) -> None:
    where = parse("int8 < 100 OR word = 'a'", both[0].schema)
    by = Keys.of({"bool": [True, False]}, both[0].schema)
    found = []
    for one in both:
        known = Prepared(one.engine, one.name, one.schema, one.level, LEVELS, ROWS, person="word")
        found.append(tally(known, Count(Scope(2), "people"), None, where=where, by=by)[0].tolist())
    assert found[0] == found[1]
    assert np.sum(found[0]) > 0


# Conditions ---------------------------------------------------------------------------------------------------------

_TWELVE = ", ".join(str(n) for n in range(-3, 9))
CONDITIONS = [
    "float64 > 1", "float64 <> 1", "NOT float64 = 1", "float64 >= 50 OR float64 < -1e300", "float64 <= 5e-324",
    "float64 IS NULL", "float64 IS NOT NULL", f"float64 IN ({_TWELVE})", f"NOT float64 IN ({_TWELVE})",
    f"float32 IN ({_TWELVE}, 0.1)", "float32 = 0.1", "float32 > 0.1", "float32 <> 1e38", "float32 < 1e-45",
    "float32 IS NULL", "float64 BETWEEN 0 AND 0", "float64 NOT BETWEEN -1 AND 99.999999999",
    "int64 = -9223372036854775808", "int64 > 9223372036854775806", "int64 >= 9223372036854775808", "int64 <> 0",
    "int64 IN (-1, 0, 9007199254740993)", "int8 > 17.5", "int8 = 17.5", "int8 < 1000", "int8 NOT IN (1, 50)",
    "bool = TRUE", "NOT bool = TRUE", "bool IS NULL", "decimal = 0.001", "decimal < 1", "decimal <> 0.0015",
    "large = 10000000000000000000000003", "large > 999999999999999", "large IN (7, 999999999999999)",
    "word = ''", "word < 'a'", "word >= 'é'", "word = 'it''s'", "word <> 'A'", "word = '${spark.app.name}'",
    "word LIKE 'a%'", "word LIKE '%'", "NOT word LIKE '%a%'", "word LIKE '%''%'", "word = '\\'", "word LIKE '%%'",
    "word LIKE 'A'", "word LIKE ''", "word LIKE '%\u0301'", "word LIKE '🙂%'", "word LIKE '%ï%'", "word NOT LIKE '%}'",
    "word IN ('e\u0301', '🙂', 'x')", "word = '\u00e9'", "day = '1582-10-10'", "day < '1900-01-01'",
    "day IN ('0001-01-01', '9999-12-31')", "time >= '2020-01-01 12:00:00.000001'", "time < '2020-01-01'",
    "MONTH(day) = 10", "DAY(day) >= 29", "WEEK(day) <> 1", "WEEKDAY(day) = 'Saturday'", "YEAR(day) < 1600",
    "QUARTER(day) = '2020-Q1'", "WEEK(day) > '1582-W40'", "NOT MONTH(day) IN (10, '2020-02')", "HOUR(time) >= 12",
    "WEEKDAY(time) BETWEEN 'Monday' AND 'Wednesday'", "DAY(time) = '0001-01-01'", "HOUR(time) = 0 OR YEAR(day) = 1",
    "time = '0001-01-01 00:00:00'", "NOT (int8 > 1 AND (word = 'a' OR float64 > 2)) OR day IS NULL",
]  # fmt: skip


def test_conditions_hold_for_the_same_rows(both: tuple[Prepared, Prepared]) -> None:
    """All of them in one query; rows are told apart by their level and what they hold."""
    outputs = []
    for place, text in enumerate(CONDITIONS):
        many = cast(exp.Sum(this=parse(text, both[0].schema).tree()), "BIGINT")
        outputs.append(exp.alias_(many, f"met{place}"))
    groups = [column(LEVEL), column("int8"), column("word"), column("day")]
    named = [exp.alias_(tree, f"g{place}") for place, tree in enumerate(groups)]
    query = exp.select(*named, *outputs).from_("prepared")
    query = query.group_by(*(exp.Literal.number(place + 1) for place in range(len(groups))))
    found = [sorted(map(repr, one.engine.run(query).to_pylist())) for one in both]
    assert found[0] == found[1]
    totals = both[1].engine.run(query)
    never = {"int64 >= 9223372036854775808", "int8 = 17.5", "word = '\u00e9'"}
    for place, text in enumerate(CONDITIONS):
        met = sum(totals[f"met{place}"].to_pylist())
        assert (met == 0) == (text in never), text


@settings(max_examples=3)
@given(drawn=st.lists(conditions(), min_size=60, max_size=60))
def test_random_conditions_follow_three_valued_logic(few: Engine, drawn: list[tuple[str, Truths]]) -> None:
    outputs = [exp.alias_(parse(text, few.schema).tree(), f"met{place}") for place, (text, _) in enumerate(drawn)]
    found = few.run(exp.select(*outputs).from_(SOURCE).order_by("place")).to_pydict()
    for place, (text, truths) in enumerate(drawn):
        assert found[f"met{place}"] == [int(one is True) for one in truths], text


@pytest.fixture(scope="module")
def few(spark: Any) -> Iterator[Engine]:
    engine = open_table(spark.createDataFrame(TRUTHS))
    yield engine
    engine.close()


# Work ----------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def worlds(spark: Any) -> Iterator[list[Prepared]]:
    with ExitStack() as stack:
        tables = [make_world(), *(make_world(**PRIVATE[name]) for name in list(PRIVATE)[:2])]
        yield [stack.enter_context(prepared(open_table(spark.createDataFrame(table)))) for table in tables]


@pytest.mark.parametrize("asked", [HOSTILE_CONDITIONS[0], *HOSTILE_CONDITIONS[3:6], "regions where", "sample where"])
def test_a_question_makes_the_engine_do_the_same_in_every_world(worlds: list[Prepared], asked: str) -> None:
    """As DuckDB (`unit/engines/test_work.py`): nothing is left out, no file is read by what is in it."""
    first, *others = (work_for(on, questions()[asked], spark_work) for on in worlds)
    assert [one.left_out for one in first] == [()]
    assert ("Scan parquet ", WORLD_ROWS) in first[0].rows
    assert "PushedFilters: []" in first[0].plan
    assert all(other == first for other in others)


def test_conditions_that_stop_early_are_seen(worlds: list[Prepared]) -> None:
    ask = questions()[HOSTILE_CONDITIONS[0]]
    assert all(one.left_out for on in worlds for one in work_for(on, ask, spark_work, shortcuts))
    own: list[Any] = [on.engine._session.conf for on in worlds]  # type: ignore[attr-defined]
    for one in own:
        one.set("spark.sql.parquet.filterPushdown", "true")
    first, second, _ = (work_for(on, ask, spark_work, shortcuts) for on in worlds)
    for one in own:
        one.set("spark.sql.parquet.filterPushdown", "false")
    assert first[0].rows != second[0].rows


@pytest.mark.soak
def test_time_does_not_tell_the_worlds_apart(spark: Any) -> None:
    with ExitStack() as stack:
        tables = [make_world(note=ENDLESS_NOTE, hiv=hiv) for hiv in ("no", "yes")]
        pair = [stack.enter_context(prepared(open_table(spark.createDataFrame(table)))) for table in tables]
        assert 0.7 < compare_times(pair, spark_seconds, lambda tree: tree) < 1.4
        assert compare_times(pair, spark_seconds, shortcuts) > 1.5


# Whole questions ----------------------------------------------------------------------------------------------------


def test_answers_are_the_same_each_from_one_job_of_which_only_the_summary_comes_back(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Preparation, capping and sampling too: the same rows of the same people, whatever the engine."""
    one = answers(TABLE, 2)
    context, other, received = spark.sparkContext, [], []
    with salted_dataset(spark.createDataFrame(TABLE).repartition(3), 2) as people:
        engine: Any = people._engine
        run = engine.run
        monkeypatch.setattr(engine, "run", lambda tree: received.append((found := run(tree)).num_rows) or found)
        for place, question in enumerate(QUESTIONS):
            context.setJobGroup(f"summary {place}", "a summary")
            other.append(asked(people, question, place))
            jobs = context.statusTracker().getJobIdsForGroup(f"summary {place}")
            # Who was drawn is sent to the executors before.
            assert len(jobs) == (2 if other[-1]["mechanism"] == "sample" else 1)
    context._jsc.sc().clearJobGroup()
    assert one == other
    assert len(received) == len(QUESTIONS)
    assert received[0] <= 3
    assert max(received) < TABLE.num_rows
    monkeypatch.setattr("epsilons.dataset.rows._FINE", 3.0)  # a planted difference: another choice of rows
    assert answers(TABLE, 2) != one


def test_changes_of_mind_reach_the_rows(spark: Any) -> None:
    found = []
    for source in (TABLE, spark.createDataFrame(TABLE)):
        with salted_dataset(source, 2) as people:
            people.set_level({"🙂": 0.1, "ü": 0.25})
            people.withdraw(["person 3", "u\u0308"])
            found.append([asked(people, QUESTIONS[0], 5), people.remaining().epsilons, str(people.describe().levels)])
    assert found[0] == found[1]


def test_wishes_may_stand_in_a_table_of_their_own(spark: Any) -> None:
    wishes = pa.table({"who": NAMES, "epsilon": [0.5, 1.0] * (PEOPLE // 2)})
    levels = []
    for source, other in ((TABLE, wishes), (spark.createDataFrame(TABLE), spark.createDataFrame(wishes))):
        asked_for = eps.Preferences.from_file(other, person="who", column="epsilon")
        with eps.Dataset(source, person="id", preferences=asked_for, ledger="memory", ceiling=1e6) as people:
            levels.append(people.remaining().epsilons)
    assert levels[0] == levels[1] == {0.5: 0.5, 1.0: 1.0}


# What it costs, and what it leaves behind ---------------------------------------------------------------------------


def test_a_dataset_file_names_a_table_or_a_path(spark: Any, tmp_path: Path) -> None:
    spark.createDataFrame(TABLE).createOrReplaceTempView("declared_wages")
    parquet.write_table(TABLE, tmp_path / "wages.parquet")
    for source in ("declared_wages", "wages.parquet"):
        declared = (
            f'source = "{source}"\nengine = "spark"\nperson = "id"\nledger = "memory"\n[preferences]\neveryone = 0.5\n'
        )
        (tmp_path / "people.toml").write_text(declared)
        with eps.Dataset.from_toml(tmp_path / "people.toml") as people:
            assert people.describe().people == len(set(TABLE["id"].to_pylist()) - {None})
    spark.catalog.dropTempView("declared_wages")


def state(spark: Any) -> Any:
    from pyspark.sql import SparkSession

    jvm = spark._jvm
    level = jvm.org.apache.logging.log4j.LogManager.getRootLogger().getLevel().toString()
    views = [(table.name, table.isTemporary) for table in spark.catalog.listTables()]
    shared = [table.name for table in spark.catalog.listTables("global_temp")]
    cached = spark.sparkContext._jsc.getPersistentRDDs().size()
    active = SparkSession.getActiveSession() is spark and jvm.SparkSession.active().equals(spark._jsparkSession)
    return dict(spark.conf.getAll), level, views, shared, cached, active


def test_the_users_session_is_as_before(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    frame = spark.createDataFrame(TABLE)
    frame.createOrReplaceTempView("source")
    frame.createOrReplaceTempView("`epsilons people`")
    before = state(spark)
    with eps.Dataset(frame, person="id", preferences=NAMED, ledger="memory", ceiling=1e6) as people:
        people.mean("wage", bounds=(0, 100), share=0.1, mechanism="sample")
        (home,) = (path for path in tmp_path.iterdir() if path.name.startswith("epsilons-"))
        assert home.stat().st_mode & 0o077 == 0
        assert [path.name for path in home.iterdir()]
        assert state(spark) == before
    assert state(spark) == before
    assert not home.exists()
    assert spark.table("source").count() == TABLE.num_rows
    with pytest.raises(DataError, match=FIXED):
        people._engine.run(exp.select("*").from_(SOURCE))
    for name in ("source", "`epsilons people`"):
        spark.catalog.dropTempView(name)


ODD_SETTINGS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "Asia/Kathmandu",
    "spark.sql.caseSensitive": "false",
    "spark.sql.parser.escapedStringLiterals": "true",
    "spark.sql.legacy.exponentLiteralAsDecimal.enabled": "true",
    "spark.sql.groupByOrdinal": "false",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "EXCEPTION",
    "spark.sql.files.ignoreMissingFiles": "true",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "2",
}


def test_odd_settings_of_the_user_change_nothing(spark: Any) -> None:
    ask = [QUESTIONS[1], QUESTIONS[2], QUESTIONS[8]]
    theirs = spark.newSession()
    for key, value in ODD_SETTINGS.items():
        theirs.conf.set(key, value)
    assert answers(theirs.createDataFrame(TABLE), 2, ask) == answers(TABLE, 2, ask)
    assert {key: theirs.conf.get(key) for key in ODD_SETTINGS} == ODD_SETTINGS
    spark.createDataFrame([], "nothing int")  # the other session was made the active one above


# Refusals -----------------------------------------------------------------------------------------------------------


def by_spark(spark: Any) -> Source:
    def made(table: pa.Table) -> Mapping[str, Any]:
        # Its times would have a zone, as Spark takes them from Arrow.
        place = table.column_names.index("at")
        frame = spark.createDataFrame(table.set_column(place, "at", table["at"].cast("string")))
        return {"source": frame.withColumn("at", frame["at"].cast("timestamp_ntz")).repartition(2)}

    return made


def test_both_engines_refuse_the_same_in_the_same_words_at_the_same_charge(spark: Any) -> None:
    """Questions to both tables of a pair of neighbours, on both engines: all four are told apart by nothing."""
    assert min(compare(1, 10, 20, [as_it_is, by_spark(spark)])) >= 4


@pytest.mark.soak
@pytest.mark.figure("figure_7_spark")
def test_five_thousand_questions_tell_neither_neighbours_nor_engines_apart(
    spark: Any, record_property: Callable[[str, Any], None]
) -> None:
    seed = int.from_bytes(os.urandom(4), "little")
    assert min(compare(50, 100, seed, [as_it_is, by_spark(spark)])) > 1_000
    record_property("size", 5_000)


def test_groups_by_ranges_and_the_calendar_are_those_found_one_by_one(spark: Any) -> None:
    frame = spark.createDataFrame(spans.TABLE.set_column(4, "at", spans.TABLE["at"].cast("string")))
    frame = frame.selectExpr("id", "age", "wage", "day", "CAST(at AS TIMESTAMP_NTZ) AS at").repartition(2)
    with eps.Dataset(frame, person="id", preferences=eps.PUBLIC, ledger="memory") as people:
        for column, keys, wanted in spans.CASES:
            assert people.count(by={column: keys}).value == wanted, (column, keys)
