"""DuckDB: where tables come from, what a locked connection cannot do, and what never reaches the user."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, datetime
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
from epsilons.cli.app import main
from epsilons.engines import trees
from epsilons.engines.base import SOURCE, Column, Schema
from epsilons.engines.duckdb import DuckDB
from epsilons.errors import DataError

FIXED = "The table could not be read."


def read(engine: DuckDB, *columns: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = engine.run(exp.select(*(columns or "*")).from_(SOURCE)).to_pylist()
    return rows


@contextmanager
def fixed_words() -> Iterator[None]:
    """It works, or fails in fixed words."""
    failure = None
    try:
        yield
    except DataError as error:
        failure = error
    assert failure is None or (str(failure).startswith(FIXED) and failure.__context__ is None)


# Sources ------------------------------------------------------------------------------------------------------------

PEOPLE = {"id": [1, 2, 3], "wage": [1.5, None, float("inf")], "name": ["a", "it's", None]}


def as_parquet(folder: Path) -> Any:
    parquet.write_table(pa.table(PEOPLE), folder / "people.parquet")
    return folder / "people.parquet"


def as_relation(folder: Path) -> Any:
    connection = duckdb.connect()
    connection.register("people", pa.table(PEOPLE))
    return connection.sql("SELECT * FROM people")


SOURCES: dict[str, Callable[[Path], Any]] = {
    "parquet": as_parquet,
    "parquet by text": lambda folder: str(as_parquet(folder)),
    "pandas": lambda folder: pd.DataFrame(PEOPLE),
    "polars": lambda folder: pl.DataFrame(PEOPLE),
    "polars, lazy": lambda folder: pl.LazyFrame(PEOPLE),
    "arrow": lambda folder: pa.table(PEOPLE),
    "arrow batch": lambda folder: pa.RecordBatch.from_pydict(PEOPLE),
    "relation": as_relation,
}


def test_days_and_times_that_python_has_not_are_null_whatever_they_come_from(tmp_path: Path) -> None:
    """Beyond the years 1 to 9999, and endless ones: everywhere the same, on the roster as in conditions and groups."""
    endless = [2**31 - 1, -(2**31 - 1), 3_000_000, -720_000, 0]
    far = pa.table(
        {
            "day": pa.array(endless, pa.int32()).cast(pa.date32()),
            "at": pa.array([2**63 - 1, 1 - 2**63, 2**60, -(2**57), 0], pa.int64()).cast(pa.timestamp("us")),
        }
    )
    parquet.write_table(far, path := tmp_path / "far.parquet")
    connection = duckdb.connect()
    connection.register("far", far)
    for source in (far, path, connection.sql("SELECT * FROM far")):
        engine = DuckDB(source)
        engine.stage("staged")
        rows = engine.run(exp.select("*").from_("staged")).to_pylist()
        engine.close()
        assert [row["day"] for row in rows] == [None] * 4 + [date(1970, 1, 1)]
        assert [row["at"] for row in rows] == [None] * 4 + [datetime(1970, 1, 1)]


@pytest.mark.parametrize("kind", SOURCES)
def test_the_same_table_from_everywhere(tmp_path: Path, kind: str) -> None:
    engine = DuckDB(SOURCES[kind](tmp_path))
    assert [(c.name, c.family) for c in engine.schema.values()] == [
        ("id", "number"),
        ("wage", "number"),
        ("name", "text"),
    ]
    assert read(engine) == pa.table(PEOPLE).to_pylist()
    assert list(engine.stage("staged")) == ["id", "wage", "name"]
    assert [c.name for c in engine.keep("copy", exp.select("id").from_("staged")).values()] == ["id"]
    assert engine.run(exp.select("*").from_("copy")).num_rows == 3
    engine.drop("copy")
    with pytest.raises(DataError, match=FIXED):
        engine.run(exp.select("*").from_("copy"))
    engine.add("more", pa.table({"x": [1]}))
    assert engine.run(exp.select("x").from_("more")).to_pylist() == [{"x": 1}]
    engine.drop("more")
    engine.close()
    with pytest.raises(DataError):
        engine.run(exp.select("*").from_("more"))


@pytest.mark.parametrize("rows", [1, 2])
def test_large_files_are_copied_to_a_private_folder_and_read_alike(
    tmp_path: Path, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one row a person, which are put beside people by place, and with several, which are joined and capped."""
    random = np.random.default_rng(rows)
    ids = random.permutation(130_000)
    those, asked_for = np.append(ids, ids[:5] if rows > 1 else ids[:0]), random.choice([0.1, 1.0], len(ids))
    made = {"id": those, "wage": random.integers(0, 100, len(those)), "epsilon": asked_for[those]}
    parquet.write_table(pa.table(made), tmp_path / "people.parquet")
    found = []
    for large in (0, 1 << 40):
        monkeypatch.setattr("epsilons.engines.duckdb._LARGE", large)
        wishes = eps.Preferences.from_column("epsilon")
        facts: dict[str, Any] = {"person": "id", "preferences": wishes, "version": "1", "rows_per_person": rows}
        with eps.Dataset(tmp_path / "people.parquet", **facts, ledger="memory") as people:
            engine: Any = people._preparation.prepared.engine
            assert os.path.exists(os.path.join(engine._spill, "copies.duckdb")) is (large == 0)
            assert os.stat(engine._spill).st_mode & 0o077 == 0
            asked = exp.select(*made).from_(trees.table(people._preparation.prepared.name))
            found.append(sorted(zip(*engine.fetch(asked).values(), strict=True)))
            spill = engine._spill
        assert not os.path.exists(spill)
    assert found[0] == found[1] == sorted(zip(*made.values(), strict=True))


def test_many_files_and_patterns(tmp_path: Path) -> None:
    for place in range(3):
        parquet.write_table(pa.table({"x": [place]}), tmp_path / f"part{place}.parquet")
    assert sorted(row["x"] for row in read(DuckDB(tmp_path / "part*.parquet"))) == [0, 1, 2]
    assert len(read(DuckDB([tmp_path / "part0.parquet", str(tmp_path / "part[12].parquet")]))) == 3
    engine = DuckDB(tmp_path / "*.parquet")
    parquet.write_table(pa.table({"x": [9]}), tmp_path / "part9.parquet")
    assert len(read(engine)) == 3  # a file that comes later is not part of the table
    parquet.write_table(pa.table({"x": ["word"]}), tmp_path / "part9.parquet")
    with pytest.raises(DataError, match="different columns"):
        DuckDB(tmp_path / "*.parquet")


def test_a_folder_name_adds_no_column(tmp_path: Path) -> None:
    (tmp_path / "secret=1").mkdir()
    parquet.write_table(pa.table({"x": [1]}), tmp_path / "secret=1" / "a.parquet")
    assert list(DuckDB(tmp_path / "**" / "*.parquet").schema) == ["x"]


def test_a_table_of_a_duckdb_file(tmp_path: Path) -> None:
    path = tmp_path / "people.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TYPE mood AS ENUM ('happy', 'sad')")
        connection.execute(
            "CREATE TABLE people AS SELECT 1.50::DECIMAL(9, 2) AS price, 'sad'::mood AS mood, [1] AS list"
        )
    engine = DuckDB(path, table="people")
    assert engine.schema["price"] == Column("price", "number", -999_999_999, 999_999_999, 2, 9)
    assert [c.family for c in engine.schema.values()] == ["number", "text", "other"]
    assert len(read(engine, "price")) == 1
    with pytest.raises(DataError, match=FIXED):
        DuckDB(path, table='people"; DROP TABLE people; --')


CSV = "id,age,when,note\n" + "".join(f"{i},{i % 90},2020-01-01,n{i}\n" for i in range(45_000))


def test_csv_is_text_until_declared_and_a_cell_that_does_not_parse_is_null(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text(CSV + '45000,hello,soon,"a, ""b""\nc"\n45001,1.5,2020-02-30,\n45002,99999999999999999999,,x\n')
    assert {c.family for c in DuckDB(path).schema.values()} == {"text"}
    engine = DuckDB(path, types={"id": "int", "age": "int", "when": "date"})
    assert [c.family for c in engine.schema.values()] == ["number", "number", "date", "text"]
    late = engine.run(exp.select("*").from_(SOURCE).where("id >= 44999").order_by("id")).to_pylist()
    assert [row["age"] for row in late] == [44_999 % 90, None, None, None]
    assert [row["when"] is None for row in late] == [False, True, True, True]
    assert [row["note"] for row in late] == ["n44999", 'a, "b"\nc', None, "x"]


def test_csv_is_not_sniffed(tmp_path: Path) -> None:
    """A first line of numbers is still the header, and semicolons divide nothing."""
    path = tmp_path / "odd.csv"
    path.write_text("1;2,3\n4;5,6\n")
    assert read(DuckDB(path)) == [{"1;2": "4;5", "3": "6"}]


@pytest.mark.parametrize("line", ["1,2,3", "1", '"', '"a"b,2', "\x00,1"])
def test_a_broken_line_is_read(tmp_path: Path, line: str) -> None:
    path = tmp_path / "broken.csv"
    path.write_text("a,b\n" + "1,2\n" * 50_000 + line + "\n")
    assert DuckDB(path).run(exp.select("*").from_(SOURCE)).num_rows == 50_001


def test_json_lines_likewise(tmp_path: Path) -> None:
    path = tmp_path / "people.ndjson"
    rows = [{"id": i, "age": i % 90} for i in range(45_000)]
    rows += [{"id": 45_000, "age": "hello"}, {"id": 45_001, "age": {"a": 1}}, {"id": 45_002}]  # type: ignore[dict-item,list-item]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    engine = DuckDB(path, types={"age": "int", "id": "int"})
    found = engine.run(exp.select("age").from_(SOURCE).where("id >= 44999").order_by("id")).to_pylist()
    assert [row["age"] for row in found] == [44_999 % 90, None, None, None]


@pytest.mark.parametrize("first", [{"id": 1, "age": 30}, {"id": 1, "age": 30, "hiv": "yes"}, {"id": 1}, {}, "ann", []])
def test_the_columns_of_json_lines_depend_on_nobodys_row(tmp_path: Path, first: Any) -> None:
    path = tmp_path / "people.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in [first, {"age": 40, "id": 2}]) + "{not JSON\n")
    engine = DuckDB(path, types={"id": "int", "age": "int", "region": "text"})
    assert repr(engine.schema) == "Schema(id: number, age: number, region: text)"
    assert {"id": 2, "age": 40, "region": None} in read(engine)
    with pytest.raises(DataError, match=r"its columns are those that are declared") as refused:
        DuckDB(path)
    assert "hiv" not in str(refused.value)


HEADLESS = "17,Ann Other,52000\n18,Ben Else,31000\n"


def test_the_first_row_of_a_file_without_a_header_is_in_no_message(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text(HEADLESS)
    asked: list[dict[str, Any]] = [
        {"person": "id", "preferences": 1.0},
        {"person": "id", "preferences": 1.0, "bounds": {"wage": (0, 9)}},
        {"person": "id", "preferences": 1.0, "complete": ["wage"]},
        {"person": "id", "preferences": 1.0, "types": {"id": "int"}},
        {"person": 17, "preferences": 1.0},
    ]
    for given in asked:
        with pytest.raises(DataError, match="There is no column") as refused:
            eps.Dataset(path, ledger="memory", ceiling=1e6, **given)
        assert not any(name in str(refused.value) for name in ("Ann", "52000"))
    table = pa.table({"id": [17, 18]})
    with pytest.raises(DataError, match="There is no column") as refused:
        eps.Dataset(
            table,
            person="id",
            preferences=eps.Preferences.from_file(path, person="id", column="epsilon"),
            ledger="memory",
            ceiling=1e6,
        )
    assert "Ann" not in str(refused.value)


def test_commands_do_not_print_it_either(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "people.csv"
    path.write_text(HEADLESS)
    for more in ([], ["--person", "id"], ["--person", "id", "--preferences", "privacy"], ["--type", "id=int"]):
        assert main(["init", str(path), "--out", str(tmp_path / "people.toml"), *more]) == 4
    shown = "".join(capsys.readouterr())
    assert not any(name in shown for name in ("Ann", "52000", "17"))


def test_a_name_that_is_there_shows_that_there_is_a_header(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("id,wage\n1,2\n")
    schema = DuckDB(path).schema
    with pytest.raises(DataError, match="first line of the file"):
        schema.find("wages")
    schema.find("ID")
    for one in (schema, DuckDB(path, types={"wage": "float"}).schema):
        with pytest.raises(DataError, match="Try: id, wage"):
            one.find("wages")


def test_an_untyped_column_of_pandas_is_text_wherever_the_odd_value_stands() -> None:
    class Spiteful:
        def __str__(self) -> str:
            raise ValueError("a private value")

    odd: list[Any] = [1] * 50_000 + ["hello", None, 2.5, Spiteful(), [1], True, float("nan"), 10**5000, "\ud800"]
    frame = pd.DataFrame({"odd": pd.Series(odd, dtype=object)})
    assert DuckDB(frame).schema["odd"].family == "text"
    engine = DuckDB(frame, types={"odd": "float"})
    assert [row["odd"] for row in read(engine)[50_000:]] == [None, None, 2.5, None, None, None, None, None, None]


def test_types_of_frames() -> None:
    frame = pd.DataFrame({
        "enum": pd.Categorical(["a", None]),
        "when": pd.to_datetime(["2020-01-01", None]),
        "zone": pd.to_datetime(["2020-01-01", None], utc=True),
        "maybe": pd.array([1, None], dtype="Int64"),
        "half": np.array([0.5, np.nan], np.float16),
        "complex": np.array([1j, 2j]),
    })  # fmt: skip
    families = {c.name: c.family for c in DuckDB(frame).schema.values()}
    assert families == {
        "enum": "text", "when": "time", "zone": "other", "maybe": "number", "half": "number", "complex": "other",
    }  # fmt: skip


def test_a_wide_table_keeps_every_cell_in_its_column() -> None:
    """Rows of an unordered query come in chunks of 2,048, in any order; columns of a table must not be found by one."""
    wide = pa.table({f"c{i}": [i] for i in range(2_500)})
    engine = DuckDB(wide, threads=4)
    assert list(engine.schema) == wide.column_names
    engine.stage("staged")
    assert engine.run(exp.select("*").from_("staged")).equals(wide)
    wider = pa.table({f"c{i}": [i] for i in range(12_000)})
    for again in map(str, range(3)):
        assert list(engine.add(again, wider)) == wider.column_names
    engine.close()


@pytest.mark.parametrize(
    ("source", "options"),
    [
        ("no-such-file.parquet", {}),
        ("https://example.org/people.parquet", {}),
        ("s3://bucket/*.parquet", {}),
        (["a.parquet", 7], {}),
        ([], {}),
        (7, {}),
        ({"a": [1]}, {}),
        (pa.table({"a": [1]}), {"types": {"a": "int"}}),
        (pa.table({"a": ["1"]}), {"types": {"b": "int"}}),
        (pa.table({"a": ["1"]}), {"types": {"a": "regexp"}}),
        (pa.table({"a": ["1"]}), {"table": "people"}),
        (pa.table([[1], [2]], names=["a", "A"]), {}),
        (pa.table({}), {}),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), {}),
        (pd.DataFrame([[1]]), {}),
    ],
)
def test_what_is_no_table_is_refused_in_words(source: Any, options: dict[str, Any]) -> None:
    with pytest.raises(DataError):
        DuckDB(source, **options)


@pytest.mark.parametrize("text", ["", "a,a\n1,2\n", "a,,b\n1,2,3\n", "\xff\xfe"])
def test_headers_that_name_no_columns(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.csv").write_bytes(text.encode("latin-1"))
    with pytest.raises(DataError):
        DuckDB(tmp_path / "x.csv")


def test_files_that_are_not_what_they_say(tmp_path: Path) -> None:
    for ending in ("parquet", "duckdb", "txt", "ndjson"):
        (tmp_path / f"x.{ending}").write_text("a private value")
        with pytest.raises(DataError) as caught:
            DuckDB(tmp_path / f"x.{ending}", table="people" if ending == "duckdb" else None)
        assert "private" not in str(caught.value)
    (tmp_path / "x[1].csv").write_text("a\n1\n")
    with pytest.raises(DataError, match="looks like a pattern"):
        DuckDB(tmp_path / "x[1].csv")


# Locking ------------------------------------------------------------------------------------------------------------

ESCAPES = [
    "SELECT * FROM read_csv('{secret}')",
    "SELECT * FROM read_text('{secret}')",
    "SELECT * FROM read_blob('{secret}')",
    "SELECT * FROM '{secret}'",
    "SELECT * FROM glob('{folder}/*')",
    "SELECT * FROM read_parquet('https://example.org/x.parquet')",
    "COPY (SELECT 1) TO '{folder}/out.csv'",
    "COPY source TO '{folder}/out.parquet'",
    "EXPORT DATABASE '{folder}/out'",
    "ATTACH '{folder}/other.duckdb'",
    "ATTACH ':memory:' AS m; COPY FROM DATABASE memory TO m; ATTACH '{folder}/o.db'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "LOAD '{folder}/x.duckdb_extension'",
    "SET enable_external_access = true",
    "SET allowed_paths = ['{secret}']",
    "SET allowed_directories = ['{folder}']",
    "SET lock_configuration = false",
    "SET temp_directory = '{folder}'",
    "SET threads = 1",
    "RESET lock_configuration",
    "PRAGMA enable_profiling = 'json'",
    "PRAGMA profiling_output = '{folder}/out.json'",
    "SET GLOBAL log_query_path = '{folder}/log'",
    "SELECT getenv('HOME')",
    "SELECT * FROM hidden",
]


def test_long_queries_print_no_progress_into_our_output() -> None:
    """Without it DuckDB draws a bar on the terminal, or into the document that a command prints."""
    asked = "SELECT current_setting('enable_progress_bar')"
    assert DuckDB(pa.table({"a": [1]}))._connection.execute(asked).fetchone() == (False,)


@pytest.mark.parametrize("kind", ["parquet", "csv", "frame", "duckdb", "large parquet"])
def test_a_locked_connection_reaches_nothing_else(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run on the private connection itself, as if a condition had got through."""
    if kind == "large parquet":
        kind = "parquet"
        monkeypatch.setattr("epsilons.engines.duckdb._LARGE", 0)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.csv").write_text("a\n1\n")
    hidden = pd.DataFrame({"a": [1]})
    inside = tmp_path / "inside"
    inside.mkdir()
    parquet.write_table(pa.table({"a": [1]}), inside / "a.parquet")
    (inside / "a.csv").write_text("a\n1\n")
    with duckdb.connect(str(inside / "a.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS a")
    source: Any = hidden if kind == "frame" else inside / f"a.{kind}"
    engine = DuckDB(source, table="t" if kind == "duckdb" else None)
    for attempt in ESCAPES:
        statement = attempt.format(secret=outside / "secret.csv", folder=outside)
        with pytest.raises(duckdb.Error):
            engine._connection.execute(statement)
    assert sorted(os.listdir(outside)) == ["secret.csv"]
    assert len(read(engine)) == 1
    if kind == "duckdb":
        with pytest.raises(duckdb.Error):
            engine._connection.execute("INSERT INTO attached.t VALUES (2)")


def test_settings_of_a_locked_connection() -> None:
    engine = DuckDB(pa.table({"a": [1]}))
    rows = engine._connection.execute("SELECT name, value FROM duckdb_settings()").fetchall()
    settings = {name: value for name, value, *_ in rows}
    assert settings["enable_external_access"] == "false"
    assert settings["lock_configuration"] == "true"
    assert settings["autoload_known_extensions"] == "false"
    assert settings["autoinstall_known_extensions"] == "false"
    assert os.path.isabs(settings["temp_directory"])
    spill = engine._spill
    engine.close()
    assert not os.path.exists(spill)


def test_a_query_too_large_for_memory_spills_or_fails_in_fixed_words() -> None:
    engine = DuckDB(pa.table({"a": np.arange(3_000_000)}), memory="60MB", threads=1)
    with fixed_words():
        assert engine.run(exp.select("a").distinct().from_(SOURCE)).num_rows == 3_000_000


# No message of the engine -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["arrow", "relation"])
@pytest.mark.parametrize(
    "tree",
    [
        exp.select(exp.cast(exp.column("name"), "INT")).from_(SOURCE),
        exp.select("nothing").from_(SOURCE),
        exp.select("*").from_("nowhere"),
        exp.select(exp.Anonymous(this="error", expressions=[exp.column("name")])).from_(SOURCE),
    ],
    ids=["conversion", "column", "table", "raised"],
)
def test_an_engine_error_never_reaches_the_user(tmp_path: Path, kind: str, tree: exp.Select) -> None:
    engine = DuckDB(SOURCES[kind](tmp_path))
    for work in (lambda: engine.run(tree), lambda: engine.keep("copy", tree)):
        with pytest.raises(DataError) as caught:
            work()
        assert str(caught.value).startswith(FIXED)
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None


def test_a_schema_finds_columns_and_names_what_is_there() -> None:
    schema = Schema([Column("Age", "number", 0, 9), Column("name", "text")])
    assert schema.find("age").name == "Age"
    assert repr(schema) == "Schema(Age: number, name: text)"
    assert len(schema) == 2
    with pytest.raises(DataError, match=r"no column 'wage'.*Age, name"):
        schema.find("wage")
    with pytest.raises(DataError, match="no column 7"):
        schema.find(7)
    with pytest.raises(DataError, match="holds text, not numbers"):
        schema.number("name")
    with pytest.raises(DataError, match="same name"):
        Schema([Column("a", "text"), Column("A", "text")])
