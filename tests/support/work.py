"""How much an engine does for a question, counted and not timed, in worlds that differ in what one person's row holds.

Counted are the plan itself, the rows that each operator hands on, and what is left out: comparisons of a condition that
are not made in every row. Conditions here choose nobody, whichever world it is: the person must not show all the same.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from statistics import median
from typing import Any

import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from epsilons.engines.base import SOURCE, Engine
from epsilons.engines.conditions import parse
from epsilons.statistics import order
from epsilons.statistics.base import Scope
from epsilons.statistics.count import Count
from epsilons.statistics.histogram import Histogram
from epsilons.statistics.regression import LinearRegression
from epsilons.statistics.total import Mean
from epsilons.summaries.columns import Keys
from epsilons.summaries.sql import KEPT, Prepared, cells, tally

#: More than DuckDB looks at at a time.
ROWS = 3_000
WHO = 17
_LEVEL, _LEVELS = "level", 3
LONG_NOTE = "e" * 20_000


def make_world(**private: Any) -> pa.Table:
    """Ordinary people, of whom one has what is given: the only diagnosis, the oldest, the longest note, ..."""
    table: dict[str, list[Any]] = {
        "id": list(range(ROWS)),
        "hiv": ["no"] * ROWS,
        "note": [f"nothing to note {i}" for i in range(ROWS)],
        "age": [40 + i % 20 for i in range(ROWS)],
        "wage": [20.0 + i % 50 for i in range(ROWS)],
        "region": [("north", "south")[i % 2] for i in range(ROWS)],
        "day": [date(2026, 1, 1) + timedelta(i % 300) for i in range(ROWS)],
        _LEVEL: [i % _LEVELS for i in range(ROWS)],
    }
    for name, value in private.items():
        table[name][WHO] = value
    types = {"id": pa.int32(), "age": pa.int64(), "wage": pa.float64(), _LEVEL: pa.int16(), "day": pa.date32()}
    return pa.table({name: pa.array(values, types.get(name, pa.string())) for name, values in table.items()})


#: What the one person has in the other world.
PRIVATE: dict[str, dict[str, Any]] = {
    "the only diagnosis, a long note": {"hiv": "yes", "note": LONG_NOTE},
    "no note, an endless wage": {"note": None, "wage": math.inf},
    "the largest age": {"age": 400},
    "no age, no number": {"age": None, "wage": math.nan},
    "a wage beyond all bounds": {"wage": 1e300},
    "the only day in December": {"day": date(9999, 12, 31)},
    "no day": {"day": None},
}

#: They choose nobody; what is rare comes first, and last what takes long on one text.
CONDITIONS = (
    f"hiv = 'yes' AND id = {WHO} AND note LIKE '%{'e' * 60}z%'",
    f"hiv = 'yes' AND note LIKE '%zz%' AND id BETWEEN {WHO} AND {WHO}",
    "age > 300 AND wage > 20 AND note LIKE '%zz'",
    "NOT (hiv = 'no' OR note NOT LIKE 'zz%')",
    "(age IS NULL OR wage IS NULL OR wage > 1e200) AND note LIKE '%zz%'",
    "age IN (400, 401) AND note = 'zz' AND hiv <> 'no'",
    f"age IN ({', '.join(map(str, range(300, 350)))}) AND note LIKE '%zz%'",
    "age > 1000",
    "note LIKE 'zz%' OR note LIKE '%zz'",
    "MONTH(day) = 12 AND WEEKDAY(day) = 'Friday' AND note LIKE '%zz%'",
    "NOT (MONTH(day) <> '2026-12' OR WEEK(day) BETWEEN 1 AND 40)",
)
#: They choose the one person in some worlds and nobody in others: one row more or less is handed on, and no more.
CHOOSING = ("hiv = 'yes'", "hiv = 'yes' AND note LIKE '%ee%'", "age > 300 OR age IS NULL OR NOT wage < 1e200")

Asking = Callable[[Prepared], object]


def questions(conditions: tuple[str, ...] = CONDITIONS) -> dict[str, Asking]:
    """By what they ask: all rows, and the rows of each condition; the first of them in every kind of question."""
    mean, middle = Mean((0.0, 100.0), Scope()), order.median((0.0, 100.0))
    model = LinearRegression(("age",), ((0.0, 100.0),), target_bounds=(0.0, 100.0))
    asked: dict[str, Asking] = {
        "mean": lambda on: tally(on, mean, "wage"),
        "median": lambda on: cells(on, middle, "wage"),
        "median of few": lambda on: cells(on, order.median((0.0, 100.0), 50), "wage"),
        "bins": lambda on: tally(on, Histogram(edges=(0.0, 30.0, 50.0, 100.0), outside="clip"), "wage"),
        "medians by region": lambda on: cells(
            on, order.median((0.0, 100.0), 1e-5), "wage", by=Keys.of({"region": ["north", "south"]}, on.schema)
        ),
        "by region": lambda on: tally(on, mean, "wage", by=Keys.of({"region": ["north", "south"]}, on.schema)),
    }
    for text in conditions:
        asked[text] = lambda on, text=text: tally(on, Count(Scope()), None, where=parse(text, on.schema))

    def chosen(on: Prepared) -> dict[str, Any]:
        return {"where": parse(conditions[0], on.schema)}

    def sampled(on: Prepared) -> object:
        on.engine.add("some", pa.table({KEPT: pa.array(range(0, ROWS, 2), pa.int32())}))
        only = Prepared(on.engine, on.name, on.schema, on.level, on.levels, on.rows, on.person, "some")
        found = tally(only, mean, "wage", **chosen(on))
        on.engine.drop("some")
        return found

    return asked | {
        "mean where": lambda on: tally(on, mean, "wage", **chosen(on)),
        "median where": lambda on: cells(on, middle, "wage", **chosen(on)),
        "people where": lambda on: tally(on, Count(Scope(3), "people"), None, **chosen(on)),
        "ages where": lambda on: tally(on, mean, "wage", by=Keys.of({"age": [41, 42]}, on.schema), **chosen(on)),
        "regions where": lambda on: tally(
            on, mean, "wage", by=Keys.of({"region": ["north", "south"]}, on.schema), **chosen(on)
        ),
        "model where": lambda on: tally(on, model, "wage", **chosen(on)),
        "sample where": sampled,
    }


@dataclass(frozen=True)
class Work:
    """Of one query."""

    plan: str
    #: (operator, rows that it hands on) below what groups them.
    rows: tuple[tuple[str, int], ...]
    #: Comparisons that are not made in every row.
    left_out: tuple[str, ...]


Measure = Callable[[Engine, exp.Query], Work]
Change = Callable[[exp.Query], exp.Query]


@contextmanager
def prepared(engine: Engine) -> Iterator[Prepared]:
    """A world as a dataset has it: in a copy of the engine's own."""
    schema = engine.keep("prepared", exp.select("*").from_(SOURCE))
    yield Prepared(engine, "prepared", schema, _LEVEL, _LEVELS, ROWS, "id")
    engine.close()


def work_for(on: Prepared, ask: Asking, measure: Measure, change: Change = lambda tree: tree) -> list[Work]:
    """What a question makes the engine do; `change` plants another query in place of ours."""
    engine: Any = on.engine
    fetch, found = engine.fetch, []

    def watched(tree: exp.Query) -> dict[str, NDArray[Any]]:
        changed = change(tree.copy())
        found.append(measure(engine, changed))
        return fetch(changed)

    engine.fetch = watched
    try:
        ask(on)
    finally:
        engine.fetch = fetch
    assert found
    return found


def shortcuts(tree: exp.Query) -> exp.Query:
    """The planted bug: the same query with its condition as anybody would write it, WHERE a AND (b OR c)."""

    def plain(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Cast) and isinstance(node.this, exp.Is):
            return plain(node.this.this)
        if isinstance(node, (exp.BitwiseAnd, exp.BitwiseOr)):
            joined = exp.And if isinstance(node, exp.BitwiseAnd) else exp.Or
            return exp.paren(joined(this=plain(node.this), expression=plain(node.expression)))
        return exp.paren(plain(node.this)) if isinstance(node, exp.Paren) else node

    for where in tree.find_all(exp.Where):
        where.set("this", plain(where.this.this))
    return tree


#: Both worlds of a timing have it: only whether anybody looks at it depends on the diagnosis.
ENDLESS_NOTE = "e" * 4_000_000
_TURNS = 21


def compare_times(worlds: Sequence[Prepared], seconds: Callable[[Engine, exp.Query], float], change: Change) -> float:
    """The second world's processor time over the first's: medians of many turns of the condition made to tell them."""
    taken: list[list[float]] = [[], []]

    def timed(engine: Engine, tree: exp.Query, into: list[float]) -> Work:
        into.append(seconds(engine, tree))
        return Work("", (), ())

    for _ in range(_TURNS):
        for on, into in zip(worlds, taken, strict=True):
            work_for(on, questions()[CONDITIONS[0]], partial(timed, into=into), change)
    return median(taken[1][1:]) / median(taken[0][1:])


# DuckDB --------------------------------------------------------------------------------------------------------------

_LEAVES = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.In, exp.StartsWith, exp.EndsWith, exp.Contains)


def duckdb_work(engine: Any, tree: exp.Query) -> Work:
    text, connection = tree.sql("duckdb"), engine._connection
    (_, plan), *_ = connection.execute(f"EXPLAIN {text}").fetchall()
    (_, profile), *_ = connection.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {text}").fetchall()
    rows = tuple(_handed_on(json.loads(profile)["operator"]))
    return Work(plan, rows, tuple(_uncompared(connection, tree)))


def duckdb_seconds(engine: Any, tree: exp.Query) -> float:
    text, started = tree.sql("duckdb"), time.process_time()
    engine._connection.execute(text).fetchall()
    return time.process_time() - started


def _handed_on(operators: list[dict[str, Any]]) -> Iterator[tuple[str, int]]:
    for one in operators:
        below = list(_handed_on(one.get("children", [])))
        yield from below
        kind = one["type"]
        if not any("GROUP_BY" in name for name, _ in below) and kind not in ("EXPLAIN_ANALYZE", "RESULT_COLLECTOR"):
            yield kind, 0 if "GROUP_BY" in kind else one["intermediate_rows"]


def _uncompared(connection: Any, tree: exp.Query) -> Iterator[str]:
    """The same query with every comparison of its conditions passed through a function that counts its rows."""
    counts: list[int] = []

    def count(place: int) -> str:
        def pass_on(values: pa.ChunkedArray) -> pa.ChunkedArray:
            counts[place] += len(values)
            return values

        name, whatever = f"counted{place}", {"type": "arrow", "null_handling": "special"}
        connection.create_function(name, pass_on, ["BOOLEAN"], "BOOLEAN", **whatever)
        return name

    changed, made = tree.copy(), []
    for where in list(changed.find_all(exp.Where)):
        leaves = [leaf for leaf in where.find_all(*_LEAVES) if isinstance(leaf.this, exp.Column)]
        for leaf in leaves:
            counts.append(0)
            made.append(leaf.sql("duckdb"))
            leaf.replace(exp.Anonymous(this=count(len(made) - 1), expressions=[leaf.copy()]))
    connection.execute(changed.sql("duckdb")).fetchall()
    for place, leaf in enumerate(made):
        connection.remove_function(f"counted{place}")
        if counts[place] != ROWS:
            yield leaf


# Spark ---------------------------------------------------------------------------------------------------------------

#: What Spark computes only as far as it has to, and null, beside which it computes nothing.
_LAZY = {"And", "Or", "CaseWhen", "If", "Coalesce", "In"}


def spark_work(engine: Any, tree: exp.Query) -> Work:
    engine._set("false", "2")
    frame = engine._session.sql(tree.sql("spark"))
    frame.collect()
    plan = frame._jdf.queryExecution().executedPlan()
    text = re.sub(r"#\d+L?|plan_id=\d+|file:[^\]]*", "", plan.toString())
    return Work(text, tuple(_spark_rows(plan)), tuple(_lazy(plan)))


def spark_seconds(engine: Any, tree: exp.Query) -> float:
    """Of all tasks of the query."""
    engine._set("false", "2")
    context = engine._session.sparkContext
    context.setJobGroup("timed", "a query")
    before = set(context.statusTracker().getJobIdsForGroup("timed"))
    engine._session.sql(tree.sql("spark")).collect()
    jobs = set(context.statusTracker().getJobIdsForGroup("timed")) - before
    context._jsc.sc().clearJobGroup()
    stages = [stage for job in jobs for stage in context.statusTracker().getJobInfo(job).stageIds]
    store = context._jsc.sc().statusStore()
    return sum(store.lastStageAttempt(stage).executorCpuTime() for stage in stages) / 1e9


def _listed(sequence: Any) -> list[Any]:
    return [sequence.apply(place) for place in range(sequence.size())]


def _spark_rows(node: Any) -> Iterator[tuple[str, int]]:
    below = [found for child in _listed(node.children()) for found in _spark_rows(child)]
    yield from below
    kind, counted = node.nodeName(), node.metrics().get("numOutputRows")
    if counted.isDefined() and not any("Aggregate" in name for name, _ in below):
        yield kind, 0 if "Aggregate" in kind else counted.get().value()


def _lazy(node: Any) -> Iterator[str]:
    for child in _listed(node.children()):
        yield from _lazy(child)
    if node.nodeName() == "Filter":
        yield from _lazy_parts(node.condition())


def _lazy_parts(expression: Any) -> Iterator[str]:
    name = expression.getClass().getSimpleName()
    if name in _LAZY or (name.startswith("Bitwise") and expression.nullable()):
        yield expression.toString()
    for child in _listed(expression.children()):
        yield from _lazy_parts(child)
