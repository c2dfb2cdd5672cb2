"""The source is read once, and no name or later change of it has any say in what was read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, cycle, islice
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sqlglot import exp

import epsilons as eps
from epsilons.dataset.rows import PERSON, STAGED
from epsilons.engines.base import RESERVED, SOURCE, UNREAD
from epsilons.engines.duckdb import DuckDB
from epsilons.engines.trees import column, table
from epsilons.errors import DataError
from epsilons.storage import base
from epsilons.testing import seeded
from support.changing import KINDS, OPTIONS, Changing
from support.wages import dataset, wages

# --- one reading ----------------------------------------------------------------------------------------------------

MANY, FEW = (pa.table({"id": [n % 20 for n in range(count)], "x": range(count)}) for count in (120, 10))


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_answered_comes_from_one_reading(kind: str, tmp_path: Path) -> None:
    """As soon as it was read the source is another, with ten times the rows or hardly any: nothing of it is seen."""
    changing = Changing(tmp_path)
    for first, second in ((FEW, MANY), (MANY, FEW)):
        opened = getattr(changing, kind)(first)

        def change(place: str, second: pa.Table = second) -> None:
            if place == "source read":
                getattr(changing, kind)(second)

        base.watchers.append(change)
        try:
            people = dataset(opened, preferences=1e6, rows_per_person=2, **OPTIONS.get(kind, {}))
        finally:
            base.watchers.remove(change)
        assert people.describe().people == len(set(first["id"].to_pylist()))
        kept = min(2 * 20, len(first))
        assert people.count(of="rows", share=1.0, mechanism="minimum").value == pytest.approx(kept, abs=0.01)
        people.close()


def test_a_view_that_gives_other_rows_every_time_is_read_once(tmp_path: Path) -> None:
    """Preferences, crowd and rows of a view with random() agree."""
    draw = "SELECT (random() * 50)::INT AS id, random() AS x, 1.0 AS epsilon FROM range(200)"
    with duckdb.connect(str(tmp_path / "people.duckdb")) as connection:
        connection.execute(f"CREATE VIEW people AS {draw}")
    theirs = duckdb.connect().sql(draw)
    for source, options in ((tmp_path / "people.duckdb", {"table": "people"}), (theirs, {})):
        people = dataset(source, **options)
        kept = people._engine.run(exp.select(column(PERSON)).from_(table(people._preparation.prepared.name)))
        assert sorted(kept[PERSON].to_pylist()) == list(range(people.describe().people))
        people.close()


SOURCES: dict[str, Callable[[pa.Table], Any]] = {
    "arrow": lambda given: given,
    "pandas": lambda given: given.to_pandas(),
    "polars": pl.from_arrow,
    "relation": lambda given: duckdb.connect().from_arrow(given),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_queries_read_the_staged_copy_only(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    ask, store = DuckDB._ask, DuckDB._store

    def tables(tree: exp.Query) -> list[str]:
        return [found.name for found in tree.find_all(exp.Table)]

    monkeypatch.setattr(DuckDB, "_ask", lambda self, tree: (read.extend(tables(tree)), ask(self, tree))[1])
    monkeypatch.setattr(DuckDB, "_store", lambda self, new, tree: (read.extend(tables(tree)), store(self, new, tree))[1])
    people = dataset(SOURCES[kind](wages()))
    people.mean("wage", bounds=(0, 100))
    people.set_level({"person 1": 0.1})
    people.median("wage", bounds=(0, 100), where="wage > 3", mechanism="sample")
    assert sum(name in (SOURCE, "raw") for name in read) == 1
    assert STAGED in read
    people.close()


# --- names ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["epsilons place", "Epsilons Person", "EPSILONS anything", "ep\u017filons id", UNREAD + "x"]
)
def test_names_that_begin_like_ours_are_refused_before_anything_is_read(name: str, tmp_path: Path) -> None:
    places: list[str] = []
    base.watchers.append(places.append)
    try:
        for kind in (pa.array([0] * 60), pa.array([[0]] * 60)):
            with pytest.raises(DataError, match="column has a reserved name"):
                dataset(wages().append_column(name, kind), ledger=f"sqlite:///{tmp_path / 'a.ledger'}")
        other = wages().append_column(name, pa.array([0] * 60))
        wished = eps.Preferences.from_file(other, person="id", column="epsilon")
        with pytest.raises(DataError, match="column has a reserved name"):
            dataset(wages(), preferences=wished)
    finally:
        base.watchers.remove(places.append)
    assert places.count("source read") == 1  # the data beside the other table, whose own names are good


#: Every name that a query of ours gives to anything.
OURS = [
    "id", "asked", "unsaid", "word", "crowd", "ranked", "source", "staged", "people", "rows", "raw", "rowid", "place",
    "attached", "copies", "file", "handed over", "key", "pair", "key0", "key1", "level", "cell", "count", "sum0", "sum1", "piece",
    "steps", "z1", "z2", "z3", "person", "cohort", "epsilons", "kept", "chosen", "category",
]  # fmt: skip


def rows_of_roles(names: Sequence[str]) -> pa.Table:
    """Columns of these names: a person, preferences, two numbers, words, truths; the others hold something."""
    random = np.random.default_rng(11)
    count = 150
    held: list[Any] = [
        np.arange(count) // 3,
        np.repeat(random.choice([1e4, 2e4, 5e4], count // 3), 3),
        *random.integers(0, 100, (2, count)).astype(float),
        random.choice(["a", "b", "c"], count).tolist(),
        random.integers(0, 2, count).astype(bool),
    ]
    others = [random.integers(0, 4, count), random.choice(["a", "north"], count).tolist(), random.random(count)]
    return pa.table([pa.array(one) for one in islice(chain(held, cycle(others)), len(names))], names)


def answers(names: Sequence[str]) -> list[Any]:
    """Everything that is asked of a table whose columns have these names."""
    person, level, x, y, word, truth = names[:6]
    ledger = eps.ledger.open()
    ledger.salt = bytes(16)  # which row of three stays is decided by it
    wished = eps.Preferences.from_column(level)
    people = dataset(rows_of_roles(names), person=person, preferences=wished, ledger=ledger)
    manner: dict[str, Any] = {"share": 0.01, "entropy": seeded(3), "fresh": True}
    numbers = {"bounds": (0, 100), **manner}
    where = f'"{y}" > 3 AND "{word}" <> \'b\' AND "{truth}" = TRUE'
    asked = [
        people.mean(x, where=where, **numbers),
        people.sum(x, by={word: ["a", "b"], truth: [True, False]}, **numbers),
        people.median(x, step=1, by={word: ["a"]}, where=f'"{y}" < 90', **numbers),
        people.median(x, step=1, mechanism="sample", threshold="mean", where=where, **numbers),
        people.histogram(word, categories=["a", "c"], by={truth: [True]}, **manner),
        people.count(of="people", mechanism="sample", threshold="mean", where=where, **manner),
        people.linear_regression(
            x, [y, truth], bounds={x: (0, 100), y: (0, 100), truth: (0, 1)}, where=where, **manner
        ),
    ]
    people.close()
    return [list(answer.value.values()) if isinstance(answer.value, dict) else answer.value for answer in asked]


PLAIN = [f"c{place}" for place in range(len(OURS))]


@pytest.fixture(scope="module")
def expected() -> list[Any]:
    return answers(PLAIN)


def test_every_name_of_a_query_is_in_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    named: set[str] = set()
    render = exp.Expression.sql

    def seen(self: exp.Expression, *arguments: Any, **options: Any) -> str:
        if isinstance(self, exp.Query):
            named.update(node.alias for node in self.walk() if isinstance(node, exp.Alias | exp.Subquery))
            named.update(node.name for node in self.find_all(exp.Table))
        return render(self, *arguments, **options)

    monkeypatch.setattr(exp.Expression, "sql", seen)
    answers(PLAIN)
    stems, known = ({name.rstrip("0123456789") for name in some} for some in (named, [*OURS, *PLAIN]))
    assert {name for name in stems if not name.startswith(RESERVED)} <= known
    assert {"level", "sum0", "crowd", "raw"} <= named


@given(st.permutations(OURS))
@settings(max_examples=5)
@example([name.upper() for name in OURS])
def test_columns_may_have_the_names_that_queries_use(expected: list[Any], names: list[str]) -> None:
    assert answers(names) == expected
