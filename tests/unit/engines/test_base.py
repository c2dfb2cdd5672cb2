"""Each engine says which sources it takes, and none is loaded that nobody asked for."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from epsilons.engines.base import engines, open_table
from epsilons.engines.duckdb import DuckDB
from epsilons.errors import DataError

TABLE = pa.table({"id": [1], "word": ["1"]})


class DataFrame:
    """Named and placed as pyspark's, which need not be installed for that."""


DataFrame.__module__ = "pyspark.sql.classic.dataframe"


def test_every_engine_of_the_room_is_found() -> None:
    assert set(engines()) == {"duckdb", "spark"}
    assert all(kind.name == name for name, kind in engines().items())


def test_a_source_has_one_engine_that_takes_it() -> None:
    for source in (TABLE, "people.parquet", Path("people.csv"), ["a.parquet"], DataFrame()):
        takers = [name for name, kind in engines().items() if kind.takes(source)]
        assert takers == ["spark" if isinstance(source, DataFrame) else "duckdb"]


def test_options_go_to_the_engine_that_knows_them() -> None:
    engine = open_table(TABLE, types={"word": "int"}, threads=1, memory=None)
    assert isinstance(engine, DuckDB)
    assert engine.schema["word"].family == "number"
    with pytest.raises(DataError, match=r"'spark' takes no 'types'.*duckdb"):
        open_table("wages", "spark", types={"word": "int"})


@pytest.mark.parametrize("source", [7, {"a": [1]}, None, object()])
def test_what_no_engine_takes(source: Any) -> None:
    with pytest.raises(DataError, match="cannot be read from"):
        open_table(source)


@pytest.mark.parametrize("engine", ["ibis", "", 7])
def test_an_engine_that_is_not_there(engine: Any) -> None:
    with pytest.raises(DataError, match=r"Unknown engine.*duckdb, spark"):
        open_table(TABLE, engine)


PROGRAM = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "pyspark":
            raise ImportError(name)
sys.meta_path.insert(0, Missing())
import pyarrow as pa, epsilons as eps
table = pa.table({"id": [1, 2], "x": [1.0, 2.0]})
with eps.Dataset(table, person="id", preferences=1.0, ledger="memory", ceiling=1e6) as people:
    people.mean("x", bounds=(0, 3), share=0.1)
assert "pyspark" not in sys.modules
try:
    eps.Dataset("wages", engine="spark", person="id", preferences=1.0, ledger="memory", ceiling=1e6)
except eps.DataError as error:
    print(error)
"""


def test_without_pyspark_all_but_spark_works() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Spark is not installed.")
