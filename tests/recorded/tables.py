"""What is asked of tables: every statistic over every choice of rows, budgets that run out, batches, SQL, models."""

from __future__ import annotations

import contextlib
import datetime
import json
import math
import sqlite3
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

import epsilons as eps
from recorded.outcomes import (
    Case,
    Outcome,
    attempt,
    digest,
    entropy_of,
    plan_outcome,
    release_outcome,
    rounded,
    short,
    undated,
)
from recorded.world import World
from support.registered import open_people

LEVELS = {"strict": 200, "standard": 750, "open": 3000, "public": eps.PUBLIC}
#: Of so little everyone has a thousand questions, each at an epsilon from 0.2 to 3: none hangs on those before it.
SHARE = 0.001
Do = Callable[[Any, str], Outcome]


# The tables ----------------------------------------------------------------------------------------------------------


def rows(people: int = 90, each: int = 1) -> pa.Table:
    """Made-up people; with `each` above 1 they have one to so many rows, and two rows are nobody's."""
    owners = [i for i in range(people) for _ in range(1 if each == 1 else 1 + (i * 3) % (each + 2))]
    n = len(owners)
    made = {
        "id": pa.array([f"p{i}" for i in owners]),
        "wage": pa.array([None if j % 11 == 3 else round((37 * j) % 103 * 0.93 + 0.05, 2) for j in range(n)]),
        "age": pa.array([18 + (29 * j) % 63 for j in range(n)], pa.int64()),
        "region": pa.array([("north", "south", "west", None)[(j * j + j // 3) % 4] for j in range(n)]),
        "union": pa.array([None if j % 13 == 5 else (7 * j) % 5 < 2 for j in range(n)]),
        "code": pa.array([(5 * j) % 3 for j in range(n)], pa.int32()),
        "single": pa.array([float(np.float32(((11 * j) % 37) / 7)) for j in range(n)], pa.float32()),
        "since": pa.array([datetime.date(2000, 1, 1) + datetime.timedelta(days=(97 * j) % 9000) for j in range(n)]),
        "seen": pa.array([datetime.datetime(2020, 1, 1) + datetime.timedelta(hours=(89 * j) % 5000) for j in range(n)]),
        "privacy": pa.array([("strict", "standard", "open", "public")[(3 * i + i // 7) % 4] for i in owners]),
        "epsilon": pa.array([(0.5, 1.0, 4.0)[(i + i // 5) % 3] for i in owners]),
    }
    return pa.table(made)


def _levels() -> eps.Preferences:
    return eps.Preferences.from_levels("privacy", LEVELS)


def _open(ledger: str, table: pa.Table | None = None, **options: Any) -> Any:
    given = {"person": "id", "preferences": _levels(), "version": "1", "threads": 1, "complete": ["age"], **options}
    return open_people(rows() if table is None else table, ledger, **given)


#: Tables that many questions share; those of a story have one each.
SHARED: dict[str, dict[str, Any]] = {
    "plain": {},
    "replace": {"neighbors": "replace", "bounds": {"wage": (0, 100)}},
    "several": {"rows_per_person": 3, "table": lambda: rows(40, 3)},
    "public": {"preferences": eps.PUBLIC},
    "fine": {"preferences": lambda: {f"p{i}": 50 + 1.85 * i for i in range(300)}, "table": lambda: rows(300)},
    "individual": {"allow_individual": True},
}


def shared(ledger: str, name: str) -> Any:
    options = {key: value() if callable(value) else value for key, value in SHARED[name].items()}
    return _open(ledger, **options)


# Outcomes ------------------------------------------------------------------------------------------------------------


def on(name: str, table: str, do: Do, make: Callable[[str], Any] | None = None) -> Case:
    """Something done with a table: what it gave, what it charged, and what the ledger wrote down of it."""

    def run(world: World) -> Outcome:
        dataset, books = world.table(table, make or (lambda ledger: shared(ledger, table)))
        before, asked = world.known.get(table) or (_left(dataset), _asked(books))
        got = attempt(lambda: do(dataset, name))
        after, listed = _left(dataset), _asked(books)
        world.known[table], new = (after, listed), listed[len(asked) :]
        spent = {f"{level:.10g}": round(before[level] - left, 9) for level, left in after.items() if level in before}
        got["charged"] = short({level: one for level, one in spent.items() if one})
        if set(before) != set(after):
            got["levels left"] = rounded(after)
        if new:
            got["keys"] = [key for key, *_ in new]
            got["books"] = ["/".join(map(str, line)) for _, *line in new]
        return got

    return Case(name, run)


def _left(dataset: Any) -> dict[float, float]:
    try:
        return dict(dataset.remaining().epsilons)
    except Exception:  # a closed ledger
        return {}


def _asked(books: sqlite3.Connection) -> list[tuple[Any, ...]]:
    found = books.execute("SELECT key, state, kind, individual, epoch, analyst FROM reservations ORDER BY number")
    return [(key.hex()[:24], *rest) for key, *rest in found.fetchall()]


def question(statistic: str, *arguments: Any, model: bool = False, **options: Any) -> Do:
    """One call of a dataset's method."""

    def do(dataset: Any, name: str) -> Outcome:
        given = {"entropy": entropy_of(name), "share": SHARE, **options}
        if "error" in options and "share" not in options:
            del given["share"]
        return release_outcome(getattr(dataset, statistic)(*arguments, **given), model)

    return do


# Single questions ----------------------------------------------------------------------------------------------------

#: Each statistic: its method, and its arguments but the column.
STATISTICS: dict[str, tuple[str, dict[str, Any]]] = {
    "count": ("count", {}),
    "sum": ("sum", {"bounds": (0, 100)}),
    "mean": ("mean", {"bounds": (0, 100)}),
    "variance": ("variance", {"bounds": (0, 100)}),
    "median": ("median", {"bounds": (0, 100), "step": 0.5}),
    "quantile": ("quantile", {"q": 0.75, "bounds": (0, 100), "step": 1}),
    "min": ("min", {"bounds": (0, 100), "step": 1}),
    "max": ("max", {"bounds": (0, 100), "step": 1}),
    "kth_largest": ("kth_largest", {"k": 3, "bounds": (0, 100), "step": 1}),
    "bins": ("histogram", {"edges": [0, 30, 60, 101]}),
    "categories": ("histogram", {"categories": ["north", "south", "east"]}),
}
WHERE = "age >= 30 AND region IN ('north', 'south')"
BY = {"region": ["north", "west"]}
KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "complete": {"column": "age"},
    "where": {"where": WHERE},
    "by": {"by": BY},
    "where by": {"where": "age < 65", "by": {"union": [True, False], "code": [0, 2]}},
    "center": {"missing": "center"},
}
#: Mechanisms by name, where they serve tables.
MECHANISMS = {
    "count": ("minimum", "threshold", "sample", "stretching", "exponential", "mixed", "weighted", "robust"),
    "sum": ("minimum", "threshold", "sample", "stretching", "mixed", "weighted", "robust"),
    "mean": ("minimum", "threshold", "sample", "stretching", "mixed", "weighted", "robust"),
    "variance": ("minimum", "threshold", "sample", "stretching", "weighted"),
    "median": ("minimum", "threshold", "sample", "exponential", "mixed", "weighted", "smooth-sensitivity"),
    "quantile": ("threshold", "sample", "exponential", "weighted"),
    "min": ("minimum", "threshold", "exponential"),
    "max": ("sample", "smooth-sensitivity"),
    "kth_largest": ("threshold", "exponential"),
    "bins": ("minimum", "threshold", "sample", "stretching", "weighted", "robust"),
    "categories": ("sample", "robust"),
}


def asked(front: str, table: str, kind: str, statistic: str, **more: Any) -> Case:
    method, arguments = STATISTICS[statistic]
    given = {**arguments, **KINDS[kind], **more}
    column = "region" if statistic == "categories" else given.pop("column", "wage")
    given.pop("column", None)
    if statistic == "count" and kind != "complete":
        column = None
    label = " ".join(f"{name}={value}" for name, value in more.items())
    name = f"{front}/{table}/{statistic} {kind} {label}".strip()
    return on(name, table, question(method, *([] if column is None else [column]), **given))


def questions() -> Iterator[Case]:
    """Every statistic over every choice of rows, by "auto" and by name."""
    for statistic in STATISTICS:
        for kind in ("complete", "by") if statistic in ("min", "max", "kth_largest", "quantile") else KINDS:
            yield asked("tables", "plain", kind, statistic)
        for mechanism in MECHANISMS[statistic]:
            for kind in ("complete", "where by") if mechanism != "sample" else ("plain", "complete", "where by"):
                yield asked("tables", "plain", kind, statistic, mechanism=mechanism)
        for kind in ("plain", "where by"):
            yield asked("tables", "replace", kind, statistic)
        for mechanism in MECHANISMS[statistic][:2]:
            yield asked("tables", "replace", "where", statistic, mechanism=mechanism, assume="nothing")
        for kind in ("plain", "where by", "center"):
            yield asked("tables", "several", kind, statistic)
        for mechanism in MECHANISMS[statistic][1:3]:
            yield asked("tables", "several", "by", statistic, mechanism=mechanism)
        for kind in ("complete", "where by"):
            yield asked("tables", "public", kind, statistic)
        if statistic in ("count", "mean", "median", "bins"):
            yield asked("tables", "fine", "where", statistic)
        yield asked("tables", "individual", "complete", statistic, privacy="individual")
        yield asked("tables", "individual", "plain", statistic)
    for table in ("plain", "replace", "several", "public"):
        for of in ("rows", "people"):
            for kind in ("plain", "by"):
                yield asked("tables", table, kind, "count", of=of)


def manners() -> Iterator[Case]:
    """Options of every kind, and columns of every kind."""
    options: list[dict[str, Any]] = [
        {"error": 30}, {"error": 1e-6}, {"share": 0.0001}, {"threshold": "mean", "mechanism": "threshold"},
        {"threshold": "best", "mechanism": "sample"}, {"assume": "nothing"}, {"spread": 12}, {"density": 0.2},
        {"location": 30}, {"rescale": False, "mechanism": "sample"}, {"rescale": True, "mechanism": "threshold"},
        {"analyst": "ann"}, {"threshold": 0.5, "mechanism": "sample"}, {"share": 1e-9},
        {"mechanism": "smooth-sensitivity", "inside": "sample", "gamma": 4}, {"missing": "exclude"},
    ]  # fmt: skip
    for statistic in ("count", "mean", "median"):
        for option in options:
            yield asked("tables", "plain", "complete", statistic, **option)
    for column in ("code", "single", "union", "since", "region", "id", "privacy", "nowhere", "WAGE", "", None, 7):
        for method in ("mean", "count", "histogram"):
            given: dict[str, Any] = {"mean": {"bounds": (0, 5)}, "histogram": {"edges": [0, 1, 3]}}.get(method, {})
            yield on(f"tables/plain/{method} of {column!r}", "plain", question(method, column, **given))
    for condition in _conditions():
        yield on(f"tables/plain/where {condition!r}", "plain", question("count", where=condition))
    for by in _groups():
        yield on(f"tables/plain/by {by!r}", "plain", question("count", by=by))
    wrong: list[dict[str, Any]] = [
        {"share": 0}, {"share": 2}, {"share": "a"}, {"share": True}, {"share": math.nan}, {"share": None},
        {"share": 0.1, "error": 3}, {"error": 0}, {"error": -1}, {"error": "a"}, {"error": math.nan},
        {"mechanism": "laplace"}, {"mechanism": None}, {"mechanism": 7}, {"threshold": "middle"},
        {"threshold": "middle", "mechanism": "sample"}, {"threshold": 99, "mechanism": "threshold"},
        {"assume": "all"}, {"spread": -1}, {"density": 2}, {"location": "a"}, {"privacy": "group"},
        {"privacy": "none"}, {"privacy": "individual"}, {"missing": "ignore"}, {"neighbors": "replace"},
        {"nonsense": 1}, {"gamma": 3}, {"mechanism": "local-sensitivity"}, {"group_epsilons": [1]},
    ]  # fmt: skip
    for option in wrong:
        label = " ".join(f"{name}={value}" for name, value in option.items())
        for method, arguments in (("count", ()), ("median", ("age",))):
            given = dict(option) if method == "count" else {"bounds": (0, 100), **option}
            yield on(f"tables/plain/wrong {method} {label}", "plain", question(method, *arguments, **given))
    for pair in (None, (9, 1), (0, math.inf), "ab", (1, 1)):
        yield on(f"tables/plain/bounds {pair!r}", "plain", question("mean", "wage", bounds=pair))
        yield on(f"tables/replace/bounds {pair!r}", "replace", question("mean", "wage", bounds=pair))
    for q in (0, 1, -1, "a", None, 0.001):
        yield on(f"tables/plain/q {q!r}", "plain", question("quantile", "wage", q, bounds=(0, 100), step=1))
    for k in (0, 1, 90, 91, "a", 1.5):
        yield on(f"tables/plain/k {k!r}", "plain", question("kth_largest", "age", k, bounds=(0, 100), step=1))
    for of in ("people", "rows", "houses"):
        yield on(f"tables/plain/of {of}", "plain", question("count", "union", of=of))
    for given in ({"edges": [1]}, {"categories": ["a", "a"]}, {}, {"edges": [0, 1], "categories": ["a"]},
                  {"categories": [0, 1, 2]}, {"edges": [0, 50, 99], "outside": "clip"},
                  {"edges": list(range(0, 101, 5))},
                  {"categories": [True, False]}, {"categories": [None]}):  # fmt: skip
        yield on(f"tables/plain/histogram {given!r}", "plain", question("histogram", "age", **given))


def _conditions() -> list[Any]:
    return [
        "age >= 30", "AGE >= 30", "(age>=30)", "age >= 30 OR wage < 10", "NOT union", "union", "union = TRUE",
        "union IS NULL", "region = 'north'", "region <> 'north'", "region LIKE 'n%'", "region IN ('north', 'x')",
        "region IS NOT NULL", "wage BETWEEN 10 AND 20", "since >= DATE '2010-01-01'", "since < '2010-01-01'",
        "single > 1.5", "code = 1", "code = 1.0", "age > wage", "age + 1 > 30", "age >= 'a'", "nowhere = 1", "", "age",
        "age = NULL", "1 = 1", "TRUE", "id = 'p1'", "privacy = 'strict'", "age >= 30; DROP TABLE people", "(age >= 30",
        "EXISTS (SELECT 1)", "age IN (SELECT 1)", "upper(region) = 'NORTH'", "\"age\" >= 30", "age >= 1e400",
        "age >= -5",
        "region = 'o''hara'", "CASE WHEN age > 3 THEN 1 END", 7, ["age >= 30"], "age >= 30 -- all", "age <> 30",
        "age != 30",
        "seen >= '2020-03-01 12:00:00'", "seen < '2020-03-01'", "seen = 'yesterday'", "age IN (20, 30, NULL)",
        "NOT age = 3",
    ]  # fmt: skip


def _groups() -> list[Any]:
    return [
        {"region": ["north"]}, {"region": ["north", "north"]}, {"region": []}, {"region": "north"}, {"region": [1]},
        {"code": [0, 1, 2]}, {"code": [0.0, 1.5]}, {"union": [True]}, {"union": [1]},
        {"since": [datetime.date(2000, 1, 1)]},
        {"nowhere": [1]}, {"id": ["p1"]}, {"region": [None]}, {}, "region", ["region"], {"REGION": ["north"]},
        {"region": ["north", "south"], "code": [0, 1]}, {"single": [0.0]}, {"region": [np.str_("north")]},
        {"age": list(range(18, 81))},
    ]  # fmt: skip


# Plans, batches, SQL, models, algorithms -----------------------------------------------------------------------------


def plans() -> Iterator[Case]:
    """Plans of tables are free."""

    def planned(statistic: str, *arguments: Any, **options: Any) -> Do:
        return lambda dataset, _: plan_outcome(dataset.plan(statistic, *arguments, **options))

    for statistic, (method, arguments) in STATISTICS.items():
        column = "region" if statistic == "categories" else "wage"
        for kind in ("plain", "complete", "where", "where by"):
            given = {"share": SHARE, **arguments, **KINDS[kind]}
            about = given.pop("column", column) if column == "wage" else (given.pop("column", None), column)[1]
            place = () if statistic == "count" and kind != "complete" else (about,)
            for table in ("plain", "several") if kind == "where by" else ("plain",):
                yield on(f"table plans/{table}/{statistic} {kind}", table, planned(method, *place, **given))
    more: dict[str, Do] = {
        "error": planned("mean", "age", bounds=(0, 100), error=5),
        "error out of reach": planned("mean", "age", bounds=(0, 100), error=1e-9),
        "share zero": planned("mean", "age", bounds=(0, 100), share=0),
        "share and error": planned("mean", "age", bounds=(0, 100), share=0.1, error=5),
        "nonsense": planned("mean", "age", nonsense=1),
        "unknown": planned("mode", "age"),
        "no column": planned("mean"),
        "individual": planned("median", "age", bounds=(0, 100), privacy="individual"),
        "nothing": planned("sum", "age", bounds=(0, 100), assume="nothing"),
        "threshold": planned("count", threshold=0.5),
    }
    for name, do in more.items():
        yield on(f"table plans/plain/{name}", "plain", do)
    yield on("table plans/public/mean", "public", planned("mean", "age", bounds=(0, 100)))


def models() -> Iterator[Case]:
    """Regressions of columns."""
    bounds = {"wage": (0, 100), "age": (15, 90), "single": (0, 6), "code": (0, 2)}
    for table in ("plain", "replace", "several", "public", "fine"):
        for mechanism in ("auto", "threshold", "sample", "weighted", "minimum", "stretching", "exponential"):
            if table in ("public", "fine") and mechanism != "auto":
                continue
            manner = {"bounds": bounds, "mechanism": mechanism, "model": True}
            name = f"table models/{table}/linear {mechanism}"
            yield on(name, table, question("linear_regression", "wage", ["age", "single"], **manner))
            manner["classes"] = (False, True)
            name = f"table models/{table}/logistic {mechanism}"
            yield on(name, table, question("logistic_regression", "union", ["age", "code"], **manner))
    tried: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
        "where": (("wage", ["age"]), {"where": "age < 60"}),
        "by": (("wage", ["age"]), {"by": BY}),
        "error": (("wage", ["age"]), {"error": 40}),
        "no bounds": (("wage", ["age"]), {"bounds": None}),
        "bounds of one": (("wage", ["age"]), {"bounds": {"age": (0, 9)}}),
        "bounds as a pair": (("wage", ["age"]), {"bounds": (0, 9)}),
        "no features": (("wage", []), {}),
        "a word": (("wage", "age"), {}),
        "itself": (("wage", ["wage"]), {}),
        "words": (("wage", ["region"]), {}),
        "target of words": (("region", ["age"]), {}),
        "nowhere": (("nowhere", ["age"]), {}),
        "nonsense": (("wage", ["age"]), {"nonsense": 1}),
        "spread": (("wage", ["age"]), {"spread": 9, "assume": "nothing"}),
    }
    for name, (arguments, options) in tried.items():
        given = {"bounds": bounds, "model": True, **options}
        yield on(f"table models/plain/{name}", "plain", question("linear_regression", *arguments, **given))
    for classes in ((0, 1), ("north", "south"), ("north",), ("north", "north"), ("north", 1), "no"):
        given = {"bounds": bounds, "model": True, "classes": classes}
        name = f"table models/plain/classes {classes!r}"
        yield on(name, "plain", question("logistic_regression", "region", ["age"], **given))
        yield on(f"{name} of code", "plain", question("logistic_regression", "code", ["age"], **given))


def _answers(answers: Any) -> Outcome:
    told = {name: _reduced(release_outcome(release)) for name, release in answers.items()}
    return {"answers": told, "keys of": list(answers.key_names), "charges": rounded(dict(answers.charges))}


def _reduced(told: Outcome) -> list[Any]:
    """The parts of an answer among several: value, error and mechanism to read, the rest as a digest."""
    return [told.pop("value"), told.pop("error"), told.pop("mechanism"), digest(told)]


def _batch_plan(plan: Any) -> Outcome:
    rows = [[r.question, *rounded([r.share, r.error]), r.mechanism, digest(rounded(r.charges))] for r in plan.rows]
    return {"share": plan.share, "rows": rows, "charges": rounded(plan.charges)}


def batches() -> Iterator[Case]:
    """Several questions for one share."""

    def batch(*noted: tuple[str, tuple[Any, ...], dict[str, Any]], share: Any = 0.002, plan: bool = False) -> Do:
        def do(dataset: Any, name: str) -> Outcome:
            ask = dataset.batch(share=share)
            for place, (statistic, arguments, options) in enumerate(noted):
                source = {} if plan else {"entropy": entropy_of(f"{name} {place}")}
                getattr(ask, statistic)(*arguments, **{**source, **options})
            return _batch_plan(ask.plan()) if plan else _answers(ask.ask())

        return do

    count, old = ("count", (), {}), ("count", (), {"where": "age >= 65"})
    mean = ("mean", ("wage",), {"bounds": (0, 100)})
    middle = ("median", ("age",), {"bounds": (0, 100), "step": 1})
    grouped = ("mean", ("age",), {"bounds": (0, 100), "by": BY})
    many = ("quantile", ("age",), {"q": 0.9, "bounds": (0, 100), "step": 1})
    bins = ("histogram", ("wage",), {"edges": [0, 50, 100]})
    top = ("kth_largest", ("age",), {"k": 2, "bounds": (0, 100), "step": 1})
    tried: dict[str, tuple[tuple[str, tuple[Any, ...], dict[str, Any]], ...]] = {
        "one": (mean,),
        "two": (mean, old),
        "twice": (mean, mean, count),
        "many": (count, old, mean, middle, grouped, many, bins, top),
        "named": (mean, ("mean", ("age",), {"bounds": (0, 100), "mechanism": "minimum"})),
        "nothing": (mean, ("sum", ("age",), {"bounds": (0, 100), "assume": "nothing"})),
        "fresh": (("count", (), {"where": "age < 40"}), ("variance", ("age",), {"bounds": (0, 100)})),
        "none": (),
        "share of its own": (("count", (), {"share": 0.1}),),
        "wrong column": (mean, ("mean", ("nowhere",), {"bounds": (0, 100)})),
        "by position": (("quantile", ("age", 0.9), {"bounds": (0, 100)}),),
        "wrong mechanism": (("mean", ("age",), {"bounds": (0, 100), "mechanism": "exponential"}),),
        "model": (("linear_regression", ("wage", ["age"]), {}),),
        "name twice": (("count", (), {"name": "a"}), ("count", (), {"name": "a", "where": "age > 3"})),
        "individual": (("median", ("age",), {"bounds": (0, 100), "privacy": "individual"}),),
    }
    for name, noted in tried.items():
        for table in ("plain", "several") if name in ("two", "many") else ("plain",):
            yield on(f"batches/{table}/plan of {name}", table, batch(*noted, plan=True))
            yield on(f"batches/{table}/{name}", table, batch(*noted))
    for share in (0, 1.5, "a", None):
        yield on(f"batches/plain/share {share!r}", "plain", batch(mean, share=share))
    yield on("batches/plain/two again", "plain", batch(mean, old))
    yield on("batches/public/two", "public", batch(mean, old))

    def block(dataset: Any, name: str) -> Outcome:
        with dataset.batch(share=0.002) as ask:
            age = ask.mean("age", bounds=(0, 100), entropy=entropy_of(name))
            before = attempt(lambda: {"value": age.value})
            waiting = str(age)
        return {**release_outcome(age.release), "before": before, "waiting": waiting, "shown": undated(str(age))}

    def broken(dataset: Any, name: str) -> Outcome:
        with contextlib.suppress(KeyError), dataset.batch(share=0.002) as ask:
            age = ask.mean("age", bounds=(0, 99), entropy=entropy_of(name))
            raise KeyError
        return {"after": attempt(lambda: {"value": age.value}), "over": attempt(lambda: {"again": str(ask.count())})}

    yield on("batches/plain/block", "plain", block)
    yield on("batches/plain/broken block", "plain", broken)


def queries() -> Iterator[Case]:
    """Questions in SQL."""

    def sql(text: Any, plan: bool = False, **options: Any) -> Do:
        def do(dataset: Any, name: str) -> Outcome:
            if plan:
                ask = dataset.batch(share=options.get("share", 0.001))
                ask.sql(text, **{key: value for key, value in options.items() if key != "share"})
                return _batch_plan(ask.plan())
            return _answers(dataset.sql(text, **{"share": 0.001, "entropy": entropy_of(name), **options}))

        return do

    bounds, keys = {"wage": (0, 100), "age": (0, 100)}, {"region": ["north", "south"]}
    good = [
        "SELECT COUNT(*) FROM people", "SELECT COUNT(DISTINCT id) FROM people", "SELECT COUNT(wage) FROM people",
        "SELECT AVG(wage) AS wage, COUNT(*) FROM people WHERE age >= 30", "SELECT SUM(age) FROM people",
        "SELECT VAR_POP(age) FROM people", "SELECT MEDIAN(age) FROM people", "SELECT QUANTILE(age, 0.9) FROM people",
        "SELECT PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY age) FROM people", "SELECT MIN(age), MAX(age) FROM people",
        "select avg(people.age) a from people", 'SELECT AVG("age") FROM people AS p WHERE p.age > 20',
    ]  # fmt: skip
    for text in good:
        yield on(f"sql/plain/{text}", "plain", sql(text, bounds=bounds))
        yield on(f"sql/plain/plan {text}", "plain", sql(text, plan=True, bounds=bounds))
    grouped = [
        "SELECT region, AVG(wage) FROM people GROUP BY region",
        "SELECT region AS place, COUNT(*), MEDIAN(age) FROM people WHERE age < 70 GROUP BY region",
    ]
    for text in grouped:
        for table in ("plain", "several", "public"):
            yield on(f"sql/{table}/{text}", table, sql(text, bounds=bounds, keys=keys))
    bad: list[Any] = [
        "SELECT * FROM people", "SELECT age FROM people", "SELECT AVG(age)", "SELECT AVG(age) FROM others", "", 7,
        "SELECT AVG(age) FROM people; SELECT 1", "DELETE FROM people", "SELECT AVG(age) FROM people LIMIT 3",
        "SELECT AVG(age) FROM people ORDER BY 1", "SELECT AVG(age + 1) FROM people",
        "SELECT AVG(DISTINCT age) FROM people",
        "SELECT AVG(age) FROM people HAVING COUNT(*) > 3", "SELECT AVG(age) OVER () FROM people",
        "SELECT STDDEV(age) FROM people",
        "SELECT COUNT(DISTINCT age) FROM people", "SELECT AVG(age) FILTER (WHERE age > 3) FROM people",
        "SELECT 1 FROM people",
        "SELECT AVG(a.age) FROM people JOIN people a ON TRUE", "WITH x AS (SELECT 1) SELECT AVG(age) FROM x", "SELEKT",
        "SELECT DISTINCT AVG(age) FROM people", "SELECT AVG(nowhere) FROM people", "SELECT AVG(region) FROM people",
        "SELECT region, AVG(age) FROM people GROUP BY 1", "SELECT AVG(age) x, SUM(age) x FROM people",
        "SELECT AVG(age) FROM people WHERE age > (SELECT 1)", "SELECT AVG(age) FROM (SELECT 1)",
        "SELECT AVG(code) FROM people",
        "SELECT QUANTILE(age, age) FROM people", "SELECT region, AVG(age) FROM people GROUP BY ROLLUP (region)",
    ]  # fmt: skip
    for text in bad:
        yield on(f"sql/plain/bad {text!r}", "plain", sql(text, bounds=bounds))
    text = "SELECT region, AVG(wage) FROM people GROUP BY region"
    options: list[dict[str, Any]] = [
        {"bounds": bounds}, {"keys": keys}, {"bounds": bounds, "keys": {"region": []}}, {"bounds": 7, "keys": keys},
        {"bounds": bounds, "keys": {**keys, "code": [1]}}, {"bounds": bounds, "keys": keys, "where": "age > 3"},
        {"bounds": bounds, "keys": keys, "error": 3}, {"bounds": bounds, "keys": keys, "share": 0},
        {"bounds": bounds, "keys": keys, "mechanism": "minimum", "assume": "nothing"},
        {"bounds": bounds, "keys": keys, "missing": "center"}, {"bounds": {"nowhere": (0, 1)}, "keys": keys},
    ]  # fmt: skip
    for given in options:
        yield on(f"sql/plain/options {given!r}", "plain", sql(text, **given))


def algorithms() -> Iterator[Case]:
    """Somebody else's algorithm on a sample of a table."""

    def length(data: Any, epsilon: float) -> list[Any]:
        return [len(data[0]) if isinstance(data, tuple) else len(data), epsilon]

    def first(data: Any, epsilon: float) -> list[Any]:
        part = data[0] if isinstance(data, tuple) else data
        return [type(part).__name__, repr(part.to_pylist() if hasattr(part, "to_pylist") else part[:3].tolist())[:200]]

    def fails(data: Any, epsilon: float) -> None:
        raise ValueError("private")

    def strange(data: Any, epsilon: float) -> object:
        return object()

    def apply(algorithm: Any, **options: Any) -> Do:
        def do(dataset: Any, name: str) -> Outcome:
            given = {"columns": ["age"], "name": "made up", "share": SHARE, "entropy": entropy_of(name), **options}
            return release_outcome(dataset.apply(algorithm, **given))

        return do

    tried: dict[str, Do] = {
        "one column": apply(length),
        "the same again": apply(length),
        "several": apply(first, columns=["age", "code"]),
        "words": apply(first, columns=["age", "region"]),
        "target": apply(first, columns=["age", "code"], target="union"),
        "where": apply(length, where="age < 50"),
        "mean": apply(length, threshold="mean"),
        "number": apply(length, threshold=0.6),
        "best": apply(length, threshold="best"),
        "beyond": apply(length, threshold=99),
        "both": apply(length, private_under="both"),
        "under replace": apply(length, private_under="replace"),
        "fails": apply(fails),
        "strange": apply(strange),
        "column as a word": apply(length, columns="age"),
        "no columns": apply(length, columns=[]),
        "nowhere": apply(length, columns=["nowhere"]),
        "person": apply(length, columns=["id"]),
        "not an algorithm": apply(7),
        "share zero": apply(length, share=0),
        "wrong where": apply(length, where="nowhere = 1"),
        "other name": apply(length, name="other", analyst="ann"),
    }
    for name, do in tried.items():
        for table in ("plain", "several", "replace") if name in ("one column", "where", "target") else ("plain",):
            yield on(f"apply/{table}/{name}", table, do)
    yield on("apply/public/one column", "public", apply(length))


# Stories: questions in their order on a table of their own -----------------------------------------------------------


def _account(dataset: Any, _: str) -> Outcome:
    left = dataset.remaining()
    past = [[p.kind, p.state, p.epoch, p.description, p.analyst, rounded(p.epsilons)] for p in dataset.history()]
    cohorts = [[c.granted, c.spent, c.people, c.state] for c in left.cohorts]
    told = {"epsilons": rounded(left.epsilons), "questions": rounded(left.questions), "cohorts": short(cohorts)}
    return {**told, "history": len(past), "last": past[-1] if past else None, "all": digest(past), "mark": left.caveat}


def _described(dataset: Any, _: str) -> Outcome:
    told = dataset.describe().to_dict()
    for varying in ("preparation_seconds", "ledger", "registered"):
        told.pop(varying)
    return {
        "described": digest(rounded(told)),
        **{key: told[key] for key in ("people", "version", "epoch", "releases")},
    }


def _enrolled(change: Callable[[Any], Any]) -> Do:
    return lambda dataset, _: {"enrolment": dict(change(dataset).__dict__)}


def stories() -> Iterator[Case]:
    """Budgets that run out, answers that are stored, people who change their minds."""
    mean = question("mean", "age", bounds=(0, 100), share=0.3)
    told: dict[str, tuple[dict[str, Any], list[tuple[str, Do]]]] = {
        "budget": (
            {"preferences": eps.Preferences.from_column("epsilon")},
            [
                ("described", _described),
                ("first", mean),
                ("stored", mean),
                ("second", question("count", where="age > 40", share=0.5)),
                ("third, of what is left", question("sum", "age", bounds=(0, 100), share=0.5)),
                ("fourth", question("median", "age", bounds=(0, 100), share=0.5)),
                ("nothing left", question("variance", "age", bounds=(0, 100), share=0.5)),
                ("an error, nothing left", question("mean", "wage", bounds=(0, 100), error=10)),
                ("a plan, nothing left", lambda d, _: plan_outcome(d.plan("count", where="age > 40"))),
                ("stored, nothing left", mean),
                ("account", _account),
                ("described after", _described),
            ],
        ),
        "public beside": (
            {"preferences": {f"p{i}": (0.5, eps.PUBLIC)[i % 2] for i in range(90)}},
            [
                ("all of it", question("count", where="age > 40", share=1)),
                ("beyond", question("mean", "age", bounds=(0, 100), share=1)),
                ("account", _account),
            ],
        ),
        "strict and open": (
            {"preferences": eps.Preferences.from_column("epsilon")},
            [
                ("threshold", question("mean", "age", bounds=(0, 100), share=0.9, mechanism="threshold")),
                ("auto", question("mean", "wage", bounds=(0, 100), share=0.5)),
                ("minimum", question("count", where="age < 40", share=0.5, mechanism="minimum")),
                ("sample", question("median", "age", bounds=(0, 100), share=0.5, mechanism="sample")),
                ("error", question("mean", "age", bounds=(0, 100), error=20)),
                ("account", _account),
            ],
        ),
        "minds": (
            {"preferences": eps.Preferences.from_column("epsilon")},
            [
                ("before", mean),
                ("withdraw", _enrolled(lambda d: d.withdraw(["p1", "p2", "nobody"]))),
                ("after", mean),
                ("again", mean),
                ("tighter", _enrolled(lambda d: d.set_level({"p3": 0.1, "p4": 0.1, "p5": 0.5}))),
                ("after tighter", question("sum", "age", bounds=(0, 100), share=0.2)),
                ("looser", _enrolled(lambda d: d.set_level({"p3": 3.0, "p6": eps.PUBLIC}))),
                ("after looser", question("count", where="age > 30", share=0.2)),
                ("wrong wish", _enrolled(lambda d: d.set_level({"p3": -1}))),
                ("no wish", _enrolled(lambda d: d.set_level(7))),
                ("new person", _enrolled(lambda d: d.set_level({"new": 2.0}))),
                ("with a new person", mean),
                ("withdraw a word", _enrolled(lambda d: d.withdraw("p1"))),
                ("withdraw nobody", _enrolled(lambda d: d.withdraw([]))),
                ("plan", lambda d, _: plan_outcome(d.plan("mean", "age", bounds=(0, 100), share=0.2))),
                ("batch", lambda d, n: _answers(_asked_batch(d, n))),
                ("described", _described),
                ("account", _account),
            ],
        ),
        "levels": (
            {"preferences": _levels()},
            [
                ("names", question("mean", "age", bounds=(0, 100), share=0.01)),
                ("by name", _enrolled(lambda d: d.set_level({"p0": "open", "p1": "strict"}))),
                ("unknown name", _enrolled(lambda d: d.set_level({"p0": "loose"}))),
                ("after", question("mean", "age", bounds=(0, 100), share=0.01)),
                ("described", _described),
                ("account", _account),
            ],
        ),
        "individual": (
            {"allow_individual": True, "preferences": 2.0},
            [
                ("before", question("count", where="age > 40", share=0.1)),
                ("individual", question("median", "age", bounds=(0, 100), share=0.1, privacy="individual")),
                ("mean", question("mean", "age", bounds=(0, 100), share=0.1, privacy="individual")),
                ("after", question("count", where="age > 50", share=0.1)),
                ("account", _account),
            ],
        ),
        "quotas": (
            {"preferences": 2.0},
            [
                ("quota", lambda d, _: {"set": str(d.ledger.set_quota("ann", questions=2))}),
                ("ann", question("count", where="age > 40", share=0.1, analyst="ann")),
                ("ann again", question("count", where="age > 42", share=0.1, analyst="ann")),
                ("ann once more", question("count", where="age > 43", share=0.1, analyst="ann")),
                ("bob, the same", question("count", where="age > 40", share=0.1, analyst="bob")),
                ("number as analyst", question("count", where="age > 41", share=0.1, analyst=7)),
                ("account", _account),
            ],
        ),
        "everyone withdrew": (
            {"preferences": 1.0},
            [
                ("withdraw", _enrolled(lambda d: d.withdraw([f"p{i}" for i in range(90)]))),
                ("count", question("count", share=0.1)),
                ("mean", question("mean", "age", bounds=(0, 100), share=0.1)),
                ("plan", lambda d, _: plan_outcome(d.plan("count"))),
                ("described", _described),
            ],
        ),
        "closed": (
            {"preferences": 1.0},
            [
                ("close", lambda d, _: {"closed": d.close()}),
                ("count", question("count", share=0.1)),
                ("plan", lambda d, _: plan_outcome(d.plan("count"))),
                ("withdraw", _enrolled(lambda d: d.withdraw(["p1"]))),
            ],
        ),
    }
    for story, (options, steps) in told.items():

        def make(ledger: str, options: dict[str, Any] = options) -> Any:
            return _open(ledger, **options)

        for place, (step, do) in enumerate(steps):
            yield on(f"stories/{story}/{place} {step}", f"story {story}", do, make)


def _asked_batch(dataset: Any, name: str) -> Any:
    ask = dataset.batch(share=0.1)
    ask.mean("wage", bounds=(0, 100), entropy=entropy_of(name))
    ask.count(where="age >= 65", entropy=entropy_of(name + " old"))
    return ask.ask()


def openings() -> Iterator[Case]:
    """Tables that are opened, or refused."""
    small = pa.table({"id": [1, 2, 3], "wage": [20.0, 30.0, None], "epsilon": [0.5, 1.0, math.inf]})
    column = eps.Preferences.from_column("epsilon")
    tried: dict[str, dict[str, Any]] = {
        "plain": {},
        "ids of nobody": {"source": pa.table({"id": [1, None, 3], "epsilon": [0.5, 1.0, 2.0]})},
        "two wishes": {"source": pa.table({"id": [1, 1, 3], "epsilon": [0.5, 1.0, 2.0]})},
        "rows": {"source": pa.table({"id": [1, 1, 3], "epsilon": [0.5, 0.5, 2.0]}), "rows_per_person": 2},
        "no wish": {"source": pa.table({"id": [1, 2], "epsilon": [0.5, None]})},
        "a default": {
            "source": pa.table({"id": [1, 2], "epsilon": [0.5, None]}),
            "preferences": eps.Preferences.from_column("epsilon", 0.05),
        },
        "everyone": {"preferences": 0.3},
        "everyone public": {"preferences": eps.PUBLIC},
        "by id": {"preferences": {1: 0.5, 2: 1.0, 3: 2.0}},
        "by id, one missing": {"preferences": {1: 0.5, 2: 1.0}},
        "by id, default": {"preferences": eps.Preferences({1: 0.5}, default=0.1)},
        "aligned": {"preferences": eps.Preferences([0.5, 1.0, 2.0])},
        "file": {
            "preferences": eps.Preferences.from_file(
                pa.table({"who": [1, 2, 3], "wish": ["a", "b", "a"]}),
                person="who",
                column="wish",
                levels={"a": 1, "b": 2},
            )
        },
        "nowhere": {"person": "nowhere"},
        "wishes nowhere": {"preferences": eps.Preferences.from_column("nowhere")},
        "wishes of zero": {"preferences": eps.Preferences.from_column("wage")},
        "complete nowhere": {"complete": ["nowhere"]},
        "complete as a word": {"complete": "wage"},
        "complete": {"complete": ["wage"]},
        "neighbours": {"neighbors": "nobody"},
        "replace": {"neighbors": "replace"},
        "rows zero": {"rows_per_person": 0},
        "rows half": {"rows_per_person": 1.5},
        "bounds": {"bounds": {"wage": (0, 100)}},
        "bounds reversed": {"bounds": {"wage": (100, 0)}},
        "bounds nowhere": {"bounds": {"nowhere": (0, 1)}},
        "negative": {"preferences": -1.0},
        "a word": {"preferences": "strict"},
        "nothing": {"source": None},
        "a list": {"source": [1, 2]},
        "no file": {"source": "nowhere.parquet"},
        "empty": {"source": small.slice(0, 0)},
        "engine": {"engine": "nonsense"},
        "nonsense": {"nonsense": 1},
        "no version": {"version": None},
        "version as a number": {"version": 7},
        "individual": {"allow_individual": True},
    }
    for name, options in tried.items():
        yield _opening(f"openings/{name}", {"source": small, "preferences": column, **options})


def _opening(full: str, options: dict[str, Any]) -> Case:
    def do() -> Outcome:
        given = {"person": "id", "version": "1", "threads": 1, **options}
        with open_people(given.pop("source"), **given) as dataset:
            return {**_described(dataset, full), "left": rounded(dataset.remaining().epsilons)}

    return Case(full, lambda _: attempt(do))


def displays() -> Iterator[Case]:
    """How answers, plans and tables are shown and handed on."""

    def answers(dataset: Any, name: str) -> Any:
        query = "SELECT region, AVG(age) AS age, COUNT(*) FROM people GROUP BY region"
        options = {"bounds": {"age": (0, 100)}, "keys": {"region": ["north", "south"]}, "entropy": entropy_of("shown")}
        return dataset.sql(query, share=0.001, **options)

    def noted(dataset: Any, name: str) -> Any:
        ask = dataset.batch(share=0.002)
        ask.count(where="age > 33")
        ask.mean("age", bounds=(0, 100))
        return ask.plan()

    made: dict[str, Callable[[Any, str], Any]] = {
        "count": lambda d, n: d.count(where="age > 33", share=SHARE, entropy=entropy_of("shown")),
        "mean by": lambda d, n: d.mean("wage", bounds=(0, 100), by=BY, share=SHARE, entropy=entropy_of("shown")),
        "median": lambda d, n: d.median("age", bounds=(0, 100), share=SHARE, entropy=entropy_of("shown")),
        "bins": lambda d, n: d.histogram("age", edges=[0, 40, 90], share=SHARE, entropy=entropy_of("shown")),
        "answers": answers,
        "plan": lambda d, n: d.plan("mean", "age", bounds=(0, 100), share=SHARE),
        "batch": noted,
    }
    ways: dict[str, Callable[[Any], Any]] = {
        "words": str,
        "page": lambda one: one._repr_html_(),
        "arrow": lambda one: [str(one.to_arrow().schema), repr(one.to_arrow().to_pylist())],
        "document": lambda one: rounded(_without_roster(one.to_dict()), 9),
        "back": lambda one: _reduced(release_outcome(eps.Release.from_dict(one.to_dict()))),
    }
    for what, make in made.items():
        for way, show in ways.items():  # plans have no rows to hand on, and only a release comes back
            if way not in ("arrow", "back") or what not in ("plan", "batch", "answers")[: 2 if way == "arrow" else 3]:
                yield on(f"displays/{what} as {way}", "plain", _shown(make, show))


def _without_roster(document: Any) -> Any:
    """The ledger's id, which tells whom a promise is about, differs from run to run, as numbers and dates may."""
    if isinstance(document, dict):
        return {key: _without_roster(one) for key, one in document.items() if key not in ("roster", "number", "at")}
    return [_without_roster(one) for one in document] if isinstance(document, list) else document


def _shown(make: Callable[[Any, str], Any], show: Callable[[Any], Any]) -> Do:
    return lambda dataset, name: {"shown": short(undated(show(make(dataset, name))))}


def sources() -> Iterator[Case]:
    """The same rows from files and frames of every kind."""
    names = ["id", "wage", "age", "region", "union", "epsilon"]
    types = {"id": "text", "wage": "float", "age": "int", "region": "text", "union": "bool", "epsilon": "float"}

    def written(world: World, kind: str) -> Any:
        table, path = rows().select(names), world.directory / f"rows.{kind}"
        if kind == "csv":
            pyarrow.csv.write_csv(table, path)
        elif kind == "jsonl":
            path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()), encoding="utf-8")
        elif kind == "parquet":
            pyarrow.parquet.write_table(table, path)
        else:
            return {"arrow": lambda: table, "pandas": table.to_pandas, "batches": table.to_reader().read_all}[kind]()
        return str(path)

    for kind in ("csv", "jsonl", "parquet", "arrow", "pandas", "batches"):
        for typed in (True, False):
            if typed and kind not in ("csv", "jsonl"):
                continue
            yield _source(f"sources/{kind}{' typed' if typed else ''}", written, kind, types if typed else None)


def _source(full: str, written: Callable[[World, str], Any], kind: str, types: dict[str, str] | None) -> Case:
    def run(world: World) -> Outcome:
        def do() -> Outcome:
            preferences = eps.Preferences.from_column("epsilon")
            given = {"person": "id", "preferences": preferences, "version": "1", "threads": 1, "types": types}
            with open_people(written(world, kind), **given) as dataset:
                about = _described(dataset, full)
                answers = {
                    "mean": lambda: dataset.mean("wage", bounds=(0, 100), by=BY, entropy=entropy_of(full)),
                    "median": lambda: dataset.median("age", bounds=(0, 100), where=WHERE, entropy=entropy_of(full)),
                }
                told = {name: attempt(lambda ask=ask: release_outcome(ask())) for name, ask in answers.items()}
                return {**about, **told}

        return attempt(do)

    return Case(full, run)


def cases() -> Iterator[Case]:
    for part in (questions, manners, plans, models, batches, queries, algorithms, stories, openings, displays, sources):
        yield from part()
