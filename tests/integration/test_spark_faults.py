"""What Spark reads and refuses, what it never says, and what failures change: nothing."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from sqlglot import exp

import epsilons as eps
from epsilons.engines.base import SOURCE, open_table
from epsilons.engines.conditions import parse
from epsilons.engines.trees import met
from epsilons.errors import DataError, PreferenceError
from epsilons.testing import seeded
from support.spark_questions import QUESTIONS, TABLE, answers, asked, salted_dataset
from support.spark_session import missing

if reason := missing():
    pytest.skip(reason, allow_module_level=True)
pytestmark = pytest.mark.integration

FIXED = "The table could not be read."


# Sources and errors -------------------------------------------------------------------------------------------------


def test_tables_and_paths(spark: Any, tmp_path: Path) -> None:
    spark.createDataFrame(TABLE).createOrReplaceTempView("wages")
    path = tmp_path / "wages.parquet"
    parquet.write_table(TABLE, path)
    for source in ("wages", str(path), path, [path]):
        engine = open_table(source, "spark")
        assert engine.run(exp.select("*").from_(SOURCE)).num_rows == TABLE.num_rows
        assert engine.schema["tags"].family == "other"
        engine.close()
    spark.catalog.dropTempView("wages")


def test_types(spark: Any) -> None:
    frame = spark.sql(
        "SELECT CAST(1 AS SMALLINT) AS s, TIMESTAMP '2020-01-01' AS zoned, TIMESTAMP_NTZ '2020-01-01' AS plain, "
        "'A' COLLATE UTF8_LCASE AS folded, NULL AS void, X'00' AS bytes, named_struct('a', 1) AS nested"
    )
    engine = open_table(frame)
    assert {c.name: c.family for c in engine.schema.values()} == {
        "s": "number", "zoned": "other", "plain": "time", "folded": "text", "void": "other", "bytes": "other",
        "nested": "other",
    }  # fmt: skip
    for letter, rows in (("A", 1), ("a", 0)):  # letters are compared as they are
        where = met(parse(f"folded = '{letter}'", engine.schema).tree())
        assert engine.run(exp.select("s").from_(SOURCE).where(where)).num_rows == rows
    engine.close()


@pytest.mark.parametrize("source", ["nowhere", "a private value; DROP", "/no/such/file.parquet", [], 7, ["a", 7], ""])
def test_what_spark_cannot_read_is_refused_in_words(spark: Any, source: Any) -> None:
    with pytest.raises(DataError) as caught:
        open_table(source, "spark")
    assert caught.value.__context__ is None
    assert "private" not in str(caught.value)


def test_what_is_not_there_is_said_to_be_missing(spark: Any, tmp_path: Path) -> None:
    parquet.write_table(TABLE, tmp_path / "there.parquet")
    gone = str(tmp_path / "gone.parquet")
    for source, said in (
        ("wagez", "There is no table 'wagez'."),
        ("nowhere.wagez", "There is no table 'nowhere.wagez'."),
        (gone, f"There is no file 'file:{gone}'."),
        ([str(tmp_path / "there.parquet"), gone], f"There is no file 'file:{gone}'."),
    ):
        with pytest.raises(DataError) as caught:
            open_table(source, "spark")
        assert str(caught.value).startswith(said)
        assert caught.value.hint
        assert caught.value.__context__ is None


def test_a_view_of_what_is_not_there_is_not_itself_missing(spark: Any) -> None:
    """What a view is made of is not for whoever may only name it."""
    spark.range(3).createOrReplaceTempView("inner_secret")
    spark.sql("CREATE TEMPORARY VIEW outer_view AS SELECT * FROM inner_secret")
    spark.catalog.dropTempView("inner_secret")
    with pytest.raises(DataError, match=FIXED) as caught:
        open_table("outer_view", "spark")
    assert "inner_secret" not in str(caught.value)
    spark.catalog.dropTempView("outer_view")


#: {column: (what it holds, its type, what to cast it to)}
UNASKABLE = {
    "moment": ("timestamp_seconds(id)", "timestamp", "TIMESTAMP_NTZ"),
    "tags": ("array(id)", "array", "STRING"),
    "parts": ("named_struct('secret', id)", "struct", "STRING"),
}


def test_types_that_cannot_be_asked_about_are_refused_before_the_charge(spark: Any) -> None:
    frame = spark.range(300).selectExpr("id", *(f"{made} AS {column}" for column, (made, _, _) in UNASKABLE.items()))
    with eps.Dataset(frame, person="id", preferences=1000.0, ledger="memory", ceiling=1e6) as people:
        for column, (_, kind, plain) in UNASKABLE.items():
            for ask in (
                lambda column: people.count(where=f"{column} IS NULL"),
                lambda column: people.count(where=f"id > 3 AND {column} IS NOT NULL"),
                lambda column: people.mean(column, bounds=(0, 1)),
                lambda column: people.sql(f"SELECT COUNT({column}) FROM people"),
            ):
                with pytest.raises(DataError, match=f"{column!r} of type {kind} cannot be asked about") as caught:
                    ask(column)
                assert f"CAST({column} AS {plain})" in str(caught.value)
                assert "secret" not in str(caught.value)
        assert people.history() == ()
    hinted = (f"CAST({column} AS {plain}) AS {column}" for column, (_, _, plain) in UNASKABLE.items())
    with eps.Dataset(
        frame.selectExpr("id", *hinted), person="id", preferences=1000.0, ledger="memory", ceiling=1e6
    ) as people:
        for column in UNASKABLE:
            assert abs(people.count(where=f"{column} IS NOT NULL", share=0.3).value - 300) < 2


def test_preferences_of_a_wrong_column_are_not_quoted(spark: Any) -> None:
    table = pa.table({"id": range(3), "diagnosis": ["has HIV", "strict", "well"], "debt": [-3.25] * 3})
    frame = spark.createDataFrame(table.append_column("privacy", pa.array(["Strict\r", "has HIV", "strict"])))
    said = []
    for preferences in (
        eps.Preferences.from_levels("diagnosis", {"strict": 1}),
        eps.Preferences.from_column("debt"),
        eps.Preferences.from_levels("privacy", {"strict": 1}),
    ):
        with pytest.raises(PreferenceError) as caught:
            eps.Dataset(frame, person="id", preferences=preferences, ledger="memory", ceiling=1e6)
        said.append(str(caught.value))
        assert not any(value in said[-1] for value in ("HIV", "well", "3.25"))
    assert "Column 'diagnosis' holds unknown levels" in said[0]
    assert "Column 'debt' holds an epsilon that is not allowed" in said[1]
    assert r"'Strict\r' is not a level; did you mean 'strict'?" in said[2]


def test_what_was_dropped_is_gone(spark: Any) -> None:
    engine: Any = open_table(spark.createDataFrame(TABLE))
    engine.keep("a kept table", exp.select("id").from_(SOURCE))
    engine.add("an added table", pa.table({"x": pa.array([1, 2**64 - 1], pa.uint64())}))
    home = engine._home.removeprefix("file://")
    (kept,) = os.listdir(home)
    assert engine.run(exp.select("x").from_('"an added table"')).num_rows == 2
    for name in ("a kept table", "an added table"):
        engine.drop(name)
        with pytest.raises(DataError, match=FIXED):
            engine.run(exp.select("*").from_(f'"{name}"'))
    assert kept not in os.listdir(home)
    engine.close()


def test_copies_lie_in_the_checkpoint_directory(spark: Any, tmp_path: Path) -> None:
    context = spark.sparkContext
    context.setCheckpointDir(str(tmp_path))
    try:
        engine: Any = open_table(spark.createDataFrame(TABLE))
        engine.keep("copy", exp.select("id").from_(SOURCE))
        (ours,) = tmp_path.glob("*/epsilons-*")
        assert ours.stat().st_mode & 0o777 == 0o700
        engine.close()
        assert not ours.exists()
    finally:
        getattr(context._jsc.sc(), "checkpointDir_$eq")(context._jvm.scala.Option.empty())


def test_without_a_directory_for_all_a_cluster_is_refused(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = spark.createDataFrame(TABLE)
    monkeypatch.setattr(type(spark.sparkContext), "getCheckpointDir", lambda self: None)
    monkeypatch.setattr(spark.sparkContext, "master", "spark://somewhere:7077")
    with pytest.raises(DataError, match="checkpoint directory"):
        open_table(frame)


def test_streams_are_refused(spark: Any) -> None:
    with pytest.raises(DataError, match="no end"):
        open_table(spark.readStream.format("rate").load())


FAILING = ["CAST(word AS INT)", "raise_error(word)", "element_at(array(1), 3)", "1 / (length(word) - length(word))"]


@pytest.mark.parametrize("failing", FAILING)
def test_an_error_of_spark_never_reaches_the_user(
    spark: Any, failing: str, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    spark.conf.set("spark.sql.ansi.enabled", "true")
    frame = spark.createDataFrame(pa.table({"id": [1, 2], "word": ["hello", "secret"]}))
    frame = frame.selectExpr("id", f"{failing} AS broken")
    engine = open_table(frame)
    tree = exp.select("*").from_(SOURCE)
    for work in (lambda: engine.run(tree), lambda: engine.keep("copy", tree)):
        with pytest.raises(DataError) as caught:
            work()
        assert str(caught.value).startswith(FIXED)
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None
    said = "".join(capfd.readouterr()) + caplog.text
    assert "hello" not in said
    assert "secret" not in said
    engine.close()


def test_the_page_on_spark_is_true(spark: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Its blocks run here: `make docs` runs the others, on machines without Java too."""
    page = (Path(__file__).parents[2] / "docs" / "spark.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python spark\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE)
    assert blocks
    for block in blocks:
        exec(compile(block, "docs/spark.md", "exec"), {"__name__": "__main__"})
    assert "mean" in capsys.readouterr().out
    spark.catalog.dropTempView("wages")


# Retries ------------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
def test_a_task_that_is_tried_again_changes_nothing(spark: Any, tmp_path: Path) -> None:
    from pyspark.sql.functions import col, udf

    folder = str(tmp_path)

    def fails_at_first(value: float | None) -> float | None:
        """The first attempt of every task fails."""
        from pyspark import TaskContext

        task = TaskContext.get()
        if task is None or task.attemptNumber() == 0:
            open(os.path.join(folder, str(task and task.taskAttemptId())), "w").close()
            raise ValueError("a task that fails")
        return value

    tried = udf(fails_at_first, "double", useArrow=False)
    ask = [QUESTIONS[0], QUESTIONS[6], QUESTIONS[8]]
    frame = spark.createDataFrame(TABLE).repartition(2).withColumn("wage", tried(col("wage")))
    assert answers(frame, 2, ask) == answers(TABLE, 2, ask)
    assert len(os.listdir(folder)) >= 2


def test_losing_what_spark_holds_changes_nothing(spark: Any) -> None:
    """Everything that Spark keeps of a table that is never twice the same is dropped, as with a lost executor."""
    from pyspark.sql.functions import expr

    rows = spark.createDataFrame(TABLE)
    changing = rows.withColumn("wage", expr("wage + 40 * double(reflect('java.lang.Math', 'random'))"))
    cached = changing.persist()
    held = spark.sparkContext._jsc.getPersistentRDDs
    plain = [cached.selectExpr("sum(wage)").collect() for _ in range(2)]
    with salted_dataset(changing, 2) as people:
        before = asked(people, QUESTIONS[0], 1)
        for rdd in held().values():
            rdd.unpersist(True)
        again = people.mean("wage", bounds=(0, 100), share=0.05, entropy=seeded(1), fresh=True)
    assert again.value == before["value"]
    # The same rows in Spark's own cache are the same until the loss, and not after it: the test could have failed.
    assert plain[0] == plain[1] != cached.selectExpr("sum(wage)").collect()
    cached.unpersist()


@pytest.mark.soak
@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="executors are found by way of /proc")
def test_a_lost_executor_changes_nothing(tmp_path: Path) -> None:
    """The only one of a cluster, killed in the midst of preparation and again in the midst of a summary."""
    done = subprocess.run(
        [sys.executable, "-m", "support.spark_losses", str(tmp_path)],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["killed in preparation"]
    assert found["prepared"][0] == found["prepared"][1]
    assert found["failed tasks"] > 0
    assert found["ours"]["before the loss"] == found["ours"]["in the midst of it"]
    # The same rows in Spark's own cache are not the same after the loss: the test could have failed.
    assert found["plain"]["before the loss"] != found["plain"]["in the midst of it"]
