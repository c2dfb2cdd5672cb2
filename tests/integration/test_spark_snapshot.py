"""Snapshots of Spark tables: one reading, the same rows as DuckDB keeps, and the same refusals."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from sqlglot import exp

import epsilons as eps
from epsilons.dataset.rows import PERSON, follow
from epsilons.dataset.snapshot import open_snapshot, verify_snapshot
from epsilons.engines.base import Engine, open_table
from epsilons.engines.trees import column
from epsilons.errors import DataError
from support import spark_session
from support.snapshots import codes_of, moves_of, opened, register, rows_each, rows_of

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(spark_session.missing() is not None, reason=str(spark_session.missing())),
]

TABLE = pa.table({
    "id": pa.array([f"é{place // 4}" for place in range(80)]),
    "a, {name} (that=files) refuse;": np.arange(80) * 0.5,
    "day": pa.array(range(80), pa.date32()),
    "time": pa.array(range(80), pa.timestamp("us")),
    "tags": [["a"]] * 80,
})  # fmt: skip


def seen(engine: Engine) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(value for name, value in row.items() if name != PERSON) for row in rows_of(engine))


def test_the_rows_are_those_of_duckdb_and_a_change_is_refused(spark: Any, tmp_path: Path) -> None:
    place = tmp_path / "a {folder} [of] ours"
    session = spark.newSession()
    session.conf.set("spark.sql.timestampType", "TIMESTAMP_NTZ")
    frame = session.createDataFrame(TABLE).repartition(3)
    stamp, other = register(frame, place / "spark", rows=2), register(TABLE, place / "duckdb", rows=2)
    verify_snapshot(stamp)
    written, (duckdb, its) = open_snapshot(stamp, 2, 0), opened(other)
    engine, people = written.engine, written.digests
    assert [(kind.name, kind.family) for kind in engine.schema.values()] == [
        (kind.name, kind.family) for kind in duckdb.schema.values()
    ]
    assert seen(engine) == seen(duckdb)
    assert set(rows_each(engine).values()) == {2}
    assert [bytes(one) for one in people] == [bytes(one) for one in its]
    asked = follow(written, moves_of(people[:0], 0))
    assert codes_of(asked) == {number: number % 3 for number in range(len(people))}
    asked = follow(written, moves_of(people[1:2], 9), asked)
    assert codes_of(asked) == {number: number % 3 if number != 1 else 3 for number in range(len(people))}
    engine.close()
    duckdb.close()
    part = next((place / "spark" / "rows").glob("*.parquet"))
    (part.parent / "more.parquet").write_bytes(part.read_bytes())
    with pytest.raises(DataError, match="not the registered one"):
        opened(stamp)
    (part.parent / "more.parquet").unlink()
    part.write_bytes(part.read_bytes()[:-1] + b"2")
    with pytest.raises(DataError, match="not the registered one"):
        opened(stamp)


def test_days_that_python_has_not_are_null_as_in_duckdb(spark: Any, tmp_path: Path) -> None:
    far = pa.table({"day": pa.array([2**31 - 1, 3_000_000, 0], pa.int32()).cast(pa.date32())})
    parquet.write_table(far, tmp_path / "far.parquet")
    for source in (spark.read.parquet(str(tmp_path / "far.parquet")), far):
        engine = open_table(source)
        engine.stage("staged")
        rows = engine.run(exp.select(column("day")).from_("staged")).to_pylist()
        engine.close()
        assert sorted(str(row["day"]) for row in rows) == ["1970-01-01", "None", "None"]


def test_a_frame_that_gives_other_rows_every_time_is_read_once(spark: Any, tmp_path: Path) -> None:
    """Capped by what was read, not by what would be read next; whoever was found has a row of the same reading."""
    from pyspark.sql import functions

    drawn = spark.range(240).select((functions.col("id") % 20).alias("id"), functions.rand().alias("x"))
    for place in range(3):
        stamp = register(drawn.where("x < 0.4"), tmp_path / str(place), rows=2)
        engine, people = opened(stamp)
        held = rows_each(engine)
        assert set(held) == set(range(len(people)))
        assert max(held.values()) == 2
        engine.close()


def test_a_registered_table_is_asked_when_its_source_is_gone(spark: Any, tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path / 'a.ledger'}"
    spark.createDataFrame(TABLE.drop_columns(["time"])).createOrReplaceTempView("registered")
    given: dict[str, Any] = {"name": "people", "person": "id", "ledger": address, "rows_per_person": 2}
    eps.Dataset.register("registered", **given, engine="spark", preferences=10.0).close()
    spark.catalog.dropTempView("registered")
    with eps.Dataset.open("people", ledger=address) as people:
        assert people.count(of="rows", share=1.0).value == pytest.approx(40, abs=5)
