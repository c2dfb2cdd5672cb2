"""Made-up tables for the benchmarks of tables, as Arrow or in a Parquet file, and the questions put to them.

Grants are a thousand times what a question uses, so that no budget runs out however often a question is repeated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from pyarrow import parquet
from rosters import generator
from timing import Action, Limit

import epsilons as eps

REGIONS = ("north", "south", "east", "west")
#: What a question may use, as a part of the grants below: epsilons of .005 to .1.
SHARE = 1e-3
_GRANTS = (5.0, 100.0)
_PIECE = 1_000_000


def make_file(path: Path, people: int, levels: int) -> None:
    """Written piece by piece, so that a table larger than memory can be made."""
    random, grants = generator(7), np.geomspace(*_GRANTS, levels).round(6)
    regions = pa.array(REGIONS)
    writer = None
    for start in range(0, people, _PIECE):
        number = min(_PIECE, people - start)
        chosen = pa.DictionaryArray.from_arrays(pa.array(random.integers(0, len(REGIONS), number), pa.int32()), regions)
        piece = pa.table(
            {
                "id": np.arange(start, start + number),
                "wage": random.normal(50, 15, number),
                "region": chosen.cast(pa.string()),
                "age": random.integers(18, 90, number),
                "epsilon": grants[random.integers(0, levels, number)],
            }
        )
        writer = writer or parquet.ParquetWriter(path, piece.schema)
        writer.write_table(piece)
    if writer is not None:
        writer.close()


@dataclass(frozen=True)
class Asked:
    """One question: of the dataset, of plain DuckDB by level, and of plain DuckDB without levels."""

    name: str
    ask: Callable[..., object]
    by_level: str
    ungrouped: str
    limit: Limit | None = None

    def ours(self, people: eps.Dataset) -> Action:
        """The call that is timed: never a stored answer."""
        return lambda: self.ask(people, share=SHARE, fresh=True)


def _mean(people: eps.Dataset, **options: Any) -> object:
    return people.mean("wage", bounds=(0, 100), **options)


def _grouped(people: eps.Dataset, **options: Any) -> object:
    return people.mean("wage", bounds=(0, 100), by={"region": REGIONS}, **options)


def _median(people: eps.Dataset, **options: Any) -> object:
    return people.median("wage", bounds=(0, 100), **options)


def _filtered(people: eps.Dataset, **options: Any) -> object:
    return people.mean("wage", bounds=(0, 100), where="age >= 40", **options)


def _histogram(people: eps.Dataset, **options: Any) -> object:
    return people.histogram("wage", edges=range(0, 110, 10), **options)


def _sampled(people: eps.Dataset, **options: Any) -> object:
    return people.mean("wage", bounds=(0, 100), mechanism="sample", threshold="mean", **options)


SCAN, SORT = Limit(1.5, "ratio", 0.01), Limit(2, "ratio", 0.05)
_MEAN = ("SELECT epsilon, AVG(wage) FROM wages GROUP BY 1", "SELECT AVG(wage) FROM wages")
_BIN = "LEAST(GREATEST(FLOOR(wage / 10), 0), 9)"
QUESTIONS = (
    Asked(
        "count",
        lambda people, **options: people.count(**options),
        "SELECT epsilon, COUNT(*) FROM wages GROUP BY 1",
        "SELECT COUNT(*) FROM wages",
        SCAN,
    ),
    Asked("mean", _mean, *_MEAN, SCAN),
    Asked(
        "mean by region",
        _grouped,
        "SELECT region, epsilon, AVG(wage) FROM wages GROUP BY 1, 2",
        "SELECT region, AVG(wage) FROM wages GROUP BY 1",
        SCAN,
    ),
    Asked("median", _median, "SELECT MEDIAN(wage) FROM wages", "SELECT MEDIAN(wage) FROM wages", SORT),
    Asked(
        "mean where age >= 40",
        _filtered,
        "SELECT epsilon, AVG(wage) FROM wages WHERE age >= 40 GROUP BY 1",
        "SELECT AVG(wage) FROM wages WHERE age >= 40",
    ),
    Asked(
        "histogram of 10 bins",
        _histogram,
        f"SELECT epsilon, {_BIN}, COUNT(*) FROM wages GROUP BY 1, 2",
        f"SELECT {_BIN}, COUNT(*) FROM wages GROUP BY 1",
    ),
    Asked("mean of a random sample of people", _sampled, *_MEAN),
)


class Plain:
    """DuckDB as most people use it: its own defaults, the same source."""

    def __init__(self, source: Path | pa.Table) -> None:
        self._connection = duckdb.connect()
        if isinstance(source, Path):
            path = str(source).replace("'", "''")
            self._connection.execute(f"CREATE VIEW wages AS SELECT * FROM read_parquet('{path}')")
        else:
            self._connection.register("wages", source)

    def ask(self, query: str) -> Action:
        """The query, with its result as Arrow."""
        return lambda: self._connection.sql(query).to_arrow_table()

    def copy(self) -> None:
        """A plain copy of the whole table, gone at once."""
        self._connection.execute("CREATE TABLE copied AS SELECT * FROM wages")
        self._connection.execute("DROP TABLE copied")

    def close(self) -> None:
        """Let go of the source."""
        self._connection.close()


def open_dataset(source: Path | pa.Table, ledger: str = "memory") -> eps.Dataset:
    """Ours, over the same source; registered where the ledger lasts."""
    settled: dict[str, Any] = {
        "person": "id",
        "preferences": eps.Preferences.from_column("epsilon"),
        "complete": ["wage"],
        "version": "benchmark",
        "ceiling": _GRANTS[1],
        "ledger": ledger,
    }
    if ledger == "memory":
        return eps.Dataset(source, **settled)
    return eps.Dataset.register(source, name="wages", confirm=True, **settled)
