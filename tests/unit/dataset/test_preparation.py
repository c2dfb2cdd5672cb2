"""Before the first question: at most so many rows each, chosen by content alone, and the same from every source."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet
from sqlglot import exp

import epsilons as eps
from epsilons.dataset.rows import COHORT, PERSON, _scatter
from epsilons.engines.duckdb import DuckDB
from epsilons.errors import DataError, LedgerError
from epsilons.guarantee import NANO
from epsilons.ledger.identity import digests
from support.tables import Bench, hostile_record, question_of
from support.wages import dataset, wages


def kept(bench: Bench, records: list[dict[str, Any]], rows: int, grants: dict[str, float]) -> Counter[tuple[Any, ...]]:
    """The rows of the copy, without our own columns."""
    prepared = bench.prepare(records, grants, rows)
    table = bench.engine.run(
        exp.select("*").from_(exp.Table(this=exp.to_identifier(prepared.prepared.name, quoted=True)))
    )
    bench.engine.drop(prepared.prepared.name)
    assert {PERSON, COHORT} < set(table.column_names)
    return Counter(tuple(repr(row[name]) for name in ("id", "x", "k", "g", "b", "f")) for row in table.to_pylist())


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench()


def people_with(random: np.random.Generator, counts: dict[str, int]) -> list[dict[str, Any]]:
    return [hostile_record(random, name) for name, count in counts.items() for _ in range(count)]


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_at_most_so_many_rows_of_each_are_kept_and_all_of_those_who_have_fewer(bench: Bench, rows: int) -> None:
    random = np.random.default_rng(1)
    counts = {"ann": 7, "bob": 2, "cy": 1, "dee": 30}
    records = people_with(random, counts) + [hostile_record(random, None) for _ in range(3)]
    found = kept(bench, records, rows, dict.fromkeys(counts, 1.0))
    given = Counter(tuple(repr(r[name]) for name in ("id", "x", "k", "g", "b", "f")) for r in records)
    assert found <= given
    by_person = Counter({name: sum(n for row, n in found.items() if row[0] == repr(name)) for name in counts})
    assert by_person == {name: min(count, rows) for name, count in counts.items()}


def test_which_rows_stay_depends_on_no_order_and_on_nobody_else(bench: Bench) -> None:
    random = np.random.default_rng(2)
    mine = people_with(random, {"ann": 12})
    grants = {"ann": 1.0, "bob": 0.5, "cy": 0.5}
    alone = kept(bench, mine, 4, grants)
    for _ in range(5):
        others = people_with(random, {"bob": int(random.integers(9)), "cy": 3})
        mixed = [*mine, *others]
        found = kept(bench, [mixed[place] for place in random.permutation(len(mixed))], 4, grants)
        assert Counter({row: n for row, n in found.items() if row[0] == "'ann'"}) == alone


def test_every_row_has_about_the_same_chance_to_stay() -> None:
    """Twenty rows, four stay: over 120 people (each another hash) every place keeps its fifth. No chance is a privacy
    matter; a rule such as "the smallest values" would be a biased one."""
    count, per_person, stay = 120, 20, 4
    table = pa.table({
        "id": np.repeat(np.arange(count), per_person),
        "place": np.tile(np.arange(per_person), count),
        "epsilon": np.full(count * per_person, 1.0),
    })  # fmt: skip
    people = dataset(table, rows_per_person=stay)
    name = people._preparation.prepared.name
    found = people._engine.run(exp.select("place").from_(exp.Table(this=exp.to_identifier(name, quoted=True))))
    places = np.bincount(found["place"].to_numpy(), minlength=per_person)
    assert places.sum() == count * stay
    expected = count * stay / per_person
    assert ((places - expected) ** 2 / expected).sum() < 45  # chi-square with 19 degrees: once in a thousand


def test_two_ledgers_keep_other_rows_and_one_ledger_the_same(tmp_path: Path) -> None:
    table = pa.table({"id": np.repeat(np.arange(40), 9), "x": np.arange(360), "epsilon": np.full(360, 1.0)})

    def rows(address: str) -> list[int]:
        with dataset(table, ledger=address, rows_per_person=2) as people:
            name = exp.Table(this=exp.to_identifier(people._preparation.prepared.name, quoted=True))
            return sorted(people._engine.run(exp.select("x").from_(name))["x"].to_pylist())

    first, second = (f"sqlite:///{tmp_path / name}.ledger" for name in ("a", "b"))
    assert rows(first) == rows(first)
    assert rows(first) != rows(second)


def test_rows_per_person_are_fixed_with_the_ledger(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path / 'a.ledger'}"
    dataset(ledger=address, rows_per_person=2).close()
    for other, said in (
        ({"rows_per_person": 3}, "another cap"),
        ({"rows_per_person": 2, "neighbors": "replace"}, "other terms"),
        ({"rows_per_person": 2, "allow_individual": True}, "other terms"),
    ):
        with pytest.raises(LedgerError, match=said):
            dataset(ledger=address, **other)


def test_a_count_of_rows_never_passes_the_cap(bench: Bench) -> None:
    table = pa.table({"id": ["ann"] * 1000, "epsilon": [1e5] * 1000})
    people = dataset(table, rows_per_person=3)
    assert people.count(of="rows", share=1.0, mechanism="minimum").value == pytest.approx(3, abs=0.01)


def test_columns_that_cannot_be_asked_about_are_left_behind() -> None:
    table = wages().append_column("list", pa.array([[1, 2]] * 60))
    people = dataset(table)
    assert "list" not in people._preparation.prepared.schema
    assert ("list", "other", "cannot be asked about") in people.describe().columns
    with pytest.raises(DataError):
        people.mean("list", bounds=(0, 1))


def test_names_that_the_copy_needs_are_refused() -> None:
    for name in (PERSON, COHORT.upper()):
        with pytest.raises(DataError, match="column has a reserved name"):
            dataset(wages().append_column(name, pa.array([0] * 60)))


# --- renewed when people change their minds -------------------------------------------------------------------------


def test_cohorts_reach_the_rows_after_every_change(tmp_path: Path) -> None:
    """By this process and by another one, which this one finds out before its next question."""
    address = f"sqlite:///{tmp_path / 'a.ledger'}"
    here, there = (dataset(ledger=address, version="1") for _ in range(2))
    ask = {"share": 0.5, "mechanism": "threshold", "threshold": "max", "missing": "center", "bounds": (0, 100)}
    assert here.sum("wage", **ask).charges == {0.5: 0.0, 1.0: 0.0, 4.0: 2.0}
    there.set_level({"person 59": 1e5, "person 58": eps.PUBLIC})
    release = here.sum("wage", **ask, fresh=True)
    assert release.charges == {0.5: 0.0, 1.0: 0.0, 4.0: 0.0, 1e5: 5e4, float("inf"): 0.0}
    # Two people count now, by their rows: 58 is public, 59 the only one at the threshold.
    assert release.value == pytest.approx(sum(wages()["wage"].to_pylist()[58:]), abs=0.1)
    there.withdraw(["person 59"])
    assert 1e5 not in here.count().charges
    assert here.describe().withdrawn == 1
    here.close()
    there.close()


def test_the_table_of_before_is_dropped_and_the_rows_stay() -> None:
    people = dataset()
    names = {people._preparation.prepared.name}
    for place in range(3):
        people.set_level({f"person {place}": 0.1})
        names.add(people._preparation.prepared.name)
    shown = {row[0] for row in people._engine._connection.execute("SHOW TABLES").fetchall()}
    assert len(names) == 4
    # The rows as they were written stay, and beside them what is asked now.
    assert {name for name in shown if name in names} == {
        people._preparation.labelled.name,
        people._preparation.prepared.name,
    }
    assert (
        people._engine.run(
            exp.select("*").from_(exp.Table(this=exp.to_identifier(people._preparation.prepared.name, quoted=True)))
        ).num_rows
        == 60
    )


def test_more_than_256_cohorts(tmp_path: Path) -> None:
    """Every person of their own mind: more cohorts than a byte can number, and the exact ledger beneath them."""
    count = 400
    table = pa.table({"id": np.arange(count), "x": np.ones(count), "epsilon": np.full(count, 1.0)})
    people = dataset(table)
    people.set_level({place: 0.5 + place / 1000 for place in range(count)})
    assert len([c for c in people.ledger.cohorts() if c.people]) == count
    assert people._preparation.places.max() >= 256
    for mechanism in ("stretching", "sample", "weighted"):
        release = people.count("x", share=0.2, mechanism=mechanism)
        assert any("fixed ladder" in caveat for caveat in release.guarantee.caveats)
        assert len(release.charges) == count
        assert all(charge <= 0.2 * granted + 1e-12 for granted, charge in release.charges.items())
    median = people.median("x", bounds=(0, 10), step=1, share=0.2, mechanism="weighted")
    assert median.value in range(11)
    assert people.count("x", share=0.2, mechanism="weighted", fresh=True).value == pytest.approx(count, abs=60)
    people.ledger.verify()


# --- sources --------------------------------------------------------------------------------------------------------


def many_rows() -> pa.Table:
    """More than 40,000 rows, with what tables hold: nulls, NaN, words that are hard to read."""
    random = np.random.default_rng(4)
    count = 42_000
    wage = random.normal(50, 20, count).round(3)
    return pa.table({
        "id": np.arange(count) // 2,
        "wage": pa.array(wage, mask=random.random(count) < 0.02),
        "region": pa.array(random.choice(["north", 'so"uth', "we,st", "é"], count), mask=random.random(count) < 0.02),
        "when": pa.array(random.integers(0, 20_000, count).astype("int32"), pa.date32()),
        "epsilon": np.repeat(random.choice([0.5, 1.0, 4.0], count // 2), 2),
    })  # fmt: skip


TYPES = {"id": "int", "wage": "float", "when": "date", "epsilon": "float"}


def as_csv(folder: Path, table: pa.Table) -> tuple[Any, dict[str, Any]]:
    path = folder / "people.csv"
    table.to_pandas().to_csv(path, index=False)
    return path, {"types": TYPES}


def as_duckdb(folder: Path, table: pa.Table) -> tuple[Any, dict[str, Any]]:
    with duckdb.connect(str(folder / "people.duckdb")) as connection:
        connection.register("given", table)
        connection.execute("CREATE TABLE people AS SELECT * FROM given")
    return folder / "people.duckdb", {"table": "people"}


def as_parts(folder: Path, table: pa.Table, glob: bool) -> tuple[Any, dict[str, Any]]:
    for place, start in enumerate(range(0, len(table), 15_000)):
        parquet.write_table(table.slice(start, 15_000), folder / f"part{place}.parquet")
    return (folder / "part*.parquet" if glob else sorted(map(str, folder.glob("part*.parquet")))), {}


def as_parquet(folder: Path, table: pa.Table) -> tuple[Any, dict[str, Any]]:
    parquet.write_table(table, folder / "people.parquet")
    return str(folder / "people.parquet"), {}


def as_relation(folder: Path, table: pa.Table) -> tuple[Any, dict[str, Any]]:
    connection = duckdb.connect()
    connection.register("people", table)
    return connection.sql("SELECT * FROM people WHERE id >= 0"), {}


SOURCES: dict[str, Any] = {
    "arrow": lambda folder, table: (table, {}),
    "parquet": as_parquet,
    "parts": lambda folder, table: as_parts(folder, table, glob=False),
    "pattern": lambda folder, table: as_parts(folder, table, glob=True),
    "csv": as_csv,
    "pandas": lambda folder, table: (table.to_pandas(date_as_object=False), {"types": {}}),
    "polars": lambda folder, table: (pl.from_arrow(table), {}),
    "duckdb file": as_duckdb,
    "relation": as_relation,
}


def summaries(people: eps.Dataset) -> str:
    """Exact summaries, read as no analyst can."""
    from epsilons.dataset.people import TablePeople
    from epsilons.preferences import roster_of
    from epsilons.statistics.order import Order

    found = []
    preparation = people._preparation
    granted = {cohort.id: cohort.granted for cohort in people.ledger.cohorts()}
    places = np.array([sorted({g for g in granted.values() if g}).index(granted[c]) for c in preparation.cohorts])
    levels = roster_of([0.5, 1.0, 4.0]).levels
    wage: dict[str, Any] = {"column": "wage", "bounds": (0, 100)}
    for wording in (
        {"statistic": "count", "of": "people", "where": "wage < 50"},
        {"statistic": "sum", **wage, "by": {"region": ["north", 'so"uth', "we,st", "é"]}},
        {"statistic": "variance", **wage, "where": "when >= '2000-01-01'"},
        {"statistic": "median", **wage, "step": 10},
        {"statistic": "histogram", "column": "region", "categories": ["north", "é"]},
    ):
        meaning = question_of(people._facts, **wording)
        asked = TablePeople(preparation, meaning.column, meaning.where, meaning.by, levels, places)
        if isinstance(meaning.question.statistic, Order):
            found.append(
                [
                    [cells.keys.tolist(), cells.totals.tolist()]
                    for cells in asked.grouped_cells(meaning.question.statistic)
                ]
            )
        else:
            found.append([part.tolist() for part in asked.tally(meaning.question.statistic)])  # type: ignore[arg-type]
    return json.dumps(found)


@pytest.fixture(scope="module")
def reference() -> tuple[pa.Table, dict[int, str]]:
    table = many_rows()
    seen = {}
    for rows in (1, 2):
        people = dataset(table, rows_per_person=rows, ledger=_salted())
        seen[rows] = summaries(people)
        people.close()
    return table, seen


def _salted() -> Any:
    """A ledger with a fixed salt: the rows that stay are chosen by it."""
    ledger = eps.ledger.open()
    ledger.salt = bytes(16)
    return ledger


@pytest.mark.parametrize("kind", SOURCES)
def test_every_source_gives_the_same_summaries(
    kind: str, tmp_path: Path, reference: tuple[pa.Table, dict[int, str]]
) -> None:
    """Capped to one row, too: which one stays depends on the content, not on where it was written."""
    table, expected = reference
    source, options = SOURCES[kind](tmp_path, table)
    for rows in (2, 1) if kind in ("csv", "duckdb file", "polars") else (2,):
        people = dataset(source, rows_per_person=rows, ledger=_salted(), **options)
        assert summaries(people) == expected[rows]
        people.close()


def test_a_bad_cell_after_row_40000_is_missing_and_says_nothing(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    lines = [f"{place},{place % 90},1.0" for place in range(41_000)]
    lines[40_500] = "40500,hello,1.0"
    path.write_text("id,age,epsilon\n" + "\n".join(lines) + "\n")
    people = dataset(path, types={"id": "int", "age": "int", "epsilon": "float"})
    assert people.mean("age", bounds=(0, 100), share=0.5).value == pytest.approx(44.5, abs=1)
    assert people.describe().people == 41_000


def test_pandas_with_another_index_and_untyped_columns() -> None:
    frame = wages().to_pandas().set_index(np.arange(60) * 7)
    frame["wage"] = frame["wage"].astype(object)
    frame.loc[frame.index[3], "wage"] = "hello"
    people = dataset(frame, types={"wage": "float"})
    assert people.mean("wage", bounds=(0, 100), share=1.0).value == pytest.approx(50, abs=30)
    assert isinstance(frame, pd.DataFrame)


# --- trees ----------------------------------------------------------------------------------------------------------

SUMMARIES = (exp.Case, exp.If, exp.Floor, exp.Least, exp.Greatest, exp.Cast, exp.Sum, exp.Count, exp.IsNan)
PREPARING = (exp.ApproxDistinct, exp.SHA2, exp.Anonymous, exp.RowNumber, exp.Min)


def test_trees_use_only_what_every_engine_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """Preferences, preparation, samples and every filtered question; written out for either engine."""
    preparing: list[exp.Query] = []
    asking: list[exp.Query] = []
    seen = preparing
    ask, keep = DuckDB._ask, DuckDB.keep
    monkeypatch.setattr(DuckDB, "_ask", lambda self, tree: (seen.append(tree), ask(self, tree))[1])
    monkeypatch.setattr(DuckDB, "keep", lambda self, name, tree: (seen.append(tree), keep(self, name, tree))[1])
    table = many_rows().slice(0, 300)
    people = dataset(table, rows_per_person=1)
    people.set_level({0: 0.1})
    dataset(table, rows_per_person=2, preferences=eps.Preferences({}, default=1.0))
    seen = asking
    by = {"region": ["north", "é"]}
    for more in ({}, {"by": by}, {"where": "wage > 3 AND when >= '2000-01-01'"}, {"mechanism": "sample"}):
        people.sum("wage", bounds=(0, 100), share=0.01, **more)
        people.mean("wage", bounds=(0, 100), share=0.01, **more)
        people.variance("wage", bounds=(0, 100), share=0.01, **more)
        people.median("wage", bounds=(0, 100), step=1, share=0.01, **more)
        people.histogram("wage", edges=[0, 50, 100], share=0.01, **more)
        people.count(share=0.01, **more)
    assert len(asking) == 24
    for tree in (*preparing, *asking):
        allowed = SUMMARIES if any(tree is one for one in asking) else (*SUMMARIES, *PREPARING)
        functions = [node for node in tree.find_all(exp.Func) if not isinstance(node, (exp.And, exp.Or))]
        assert {type(node) for node in functions} <= set(allowed)
        assert all(node.name == "CONCAT_WS" for node in functions if isinstance(node, exp.Anonymous))
        for dialect in ("duckdb", "spark"):
            text = tree.sql(dialect)
            assert "TRY_CAST" not in text
            assert "NULLIF" not in text


@pytest.mark.parametrize(("second", "granted"), [(0.1, 0.1), (None, 1.0), (99.0, 1.0)])
def test_who_has_two_rows_among_many_with_one_is_one_person(
    second: float | None, granted: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows are first taken one by one where everybody seems to have one; what is wrong of a row may be fine of them."""
    ids = [*range(2_000), 7, None]
    table = pa.table({"id": ids, "asked": [1.0] * 2_000 + [second, None], "x": np.arange(len(ids)) * 1.0})
    wishes = eps.Preferences.from_column("asked")

    def read() -> tuple[int, int, int | None]:
        with eps.Dataset(table, person="id", preferences=wishes, rows_per_person=2, ledger="memory") as people:
            kept = exp.select(exp.column("x")).from_(exp.to_identifier(people._preparation.prepared.name, quoted=True))
            granted = people.statement(7).granted
            return len(people._preparation.digests), len(people._engine.fetch(kept)["x"]), granted

    found = read()
    assert found == (2_000, 2_001, granted * NANO)
    monkeypatch.setattr("epsilons.dataset.gathering._NEARLY", 2.0)  # rows are gathered by person at once
    assert read() == found


def test_everybodys_one_row_has_their_number_however_many_blocks_and_threads_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rows are put beside people by place: one place off, and everybody would have another person's cohort."""
    ids = np.random.default_rng(6).permutation(270_331)  # no part of them is a whole number of vectors
    table = pa.table({"id": pa.array(ids, mask=ids % 1000 == 7), "x": ids.astype(float)})

    def held_wrongly() -> int:
        with eps.Dataset(table, person="id", preferences=1.0, ledger="memory", threads=2) as people:
            written = people._preparation.labelled
            names = [exp.column(name, quoted=True) for name in ("x", "id", PERSON)]
            found = written.engine.fetch(exp.select(*names).from_(exp.to_identifier(written.name, quoted=True)))
            known = digests(np.asarray(found["id"]), people.ledger.salt)
            wrong = (written.digests[np.asarray(found[PERSON])] != known).any(axis=1)
            return int((wrong | (found["x"] != found["id"])).sum()) + abs(len(found["x"]) - (ids % 1000 != 7).sum())

    assert held_wrongly() == 0
    monkeypatch.setattr("epsilons.dataset.rows._scatter", lambda *given: np.roll(_scatter(*given), 1))
    with pytest.raises(DataError, match="not put beside their people; nothing was kept"):
        held_wrongly()
    monkeypatch.setattr("epsilons.dataset.rows.check_copy", lambda *_: None)
    assert held_wrongly() > 0
