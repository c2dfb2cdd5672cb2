"""Answers of Spark beside plain Spark: the same table, asked for the same figures by level, with no privacy at all."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from report import END, print_tables, to_document, write_results
from rich.console import Console
from rosters import SHARES, generator
from timing import Group, Limit, Row, Size, row_of, seconds

import epsilons as eps

PAGE = Path(__file__).parents[1] / "docs" / "spark.md"
START = "<!-- results: written by `make bench-spark ARGS=--write` -->"
LEVELS = {"strict": 0.01, "moderate": 0.2, "open": 1.0}
REGIONS = ("north", "south", "east", "west")
ROWS_EACH = 10
_AGAINST = "plain Spark, grouped by the level"

#: What is asked, of us and of plain Spark.
QUESTIONS: dict[str, tuple[Callable[[eps.Dataset], eps.Release], str]] = {
    "count of rows": (
        lambda people: people.count(of="rows", where="wage >= 30", **_ASK),
        "SELECT level, COUNT(*) FROM wages WHERE wage >= 30 GROUP BY level",
    ),
    "mean": (
        lambda people: people.mean("wage", bounds=(0, 100), **_ASK),
        "SELECT level, COUNT(wage), SUM(wage) FROM wages GROUP BY level",
    ),
    "mean by region": (
        lambda people: people.mean("wage", bounds=(0, 100), by={"region": REGIONS}, **_ASK),
        "SELECT level, region, COUNT(wage), SUM(wage) FROM wages GROUP BY level, region",
    ),
    "histogram of 20 bins": (
        lambda people: people.histogram("wage", edges=range(0, 101, 5), **_ASK),
        "SELECT level, FLOOR(wage / 5), COUNT(*) FROM wages GROUP BY 1, 2",
    ),
    "median, 65,536 steps": (
        lambda people: people.median("wage", bounds=(0, 100), **_ASK),
        "SELECT level, PERCENTILE_APPROX(wage, 0.5) FROM wages GROUP BY level",
    ),
}
#: Every answer is a new one, at a price that many repetitions can pay.
_ASK: dict[str, Any] = {"share": 0.001, "fresh": True, "mechanism": "minimum"}


def measure(size: Size) -> Iterator[Row]:
    """One session for all sizes; its start and the preparation are not part of any figure."""
    from pyspark.sql import SparkSession

    with tempfile.TemporaryDirectory() as folder:
        builder = SparkSession.builder.master(f"local[{os.cpu_count()}]").appName("benchmarks")
        settings = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "OFF"}
        for key, value in {**settings, "spark.driver.memory": "4g", "spark.sql.warehouse.dir": folder}.items():
            builder = builder.config(key, value)
        session = builder.getOrCreate()
        try:
            for rows in (1_000_000, 10_000_000):
                yield from _of_size(session, size.people(rows), size.repetitions(5), Path(folder))
        finally:
            session.stop()


def _of_size(session: Any, rows: int, repetitions: int, folder: Path) -> Iterator[Row]:
    path = folder / f"{rows}.parquet"
    parquet.write_table(_table(rows), path)
    frame = session.read.parquet(str(path))
    frame.createOrReplaceTempView("wages")
    privacy = eps.Preferences.from_levels("level", LEVELS)
    with eps.Dataset(frame, person="id", preferences=privacy, rows_per_person=ROWS_EACH, ledger="memory") as people:
        for what, (ask, query) in QUESTIONS.items():
            mine, theirs = [], []
            for turn in range(repetitions + 2):  # the first two warm up
                ours, plain = seconds(lambda: ask(people)).wall, seconds(lambda: session.sql(query).toArrow()).wall  # noqa: B023
                if turn >= 2:
                    mine.append(ours)
                    theirs.append(plain)
            limit = Limit(1.5, "ratio")
            yield row_of(f"{rows:,} rows, {what}", mine, theirs, against=_AGAINST, limit=limit)


def _table(rows: int) -> pa.Table:
    """Ten rows for each person, everybody at one of three levels."""
    random = generator(7)
    people = rows // ROWS_EACH
    level = random.choice(len(LEVELS), people, p=SHARES)
    who = np.repeat(np.arange(people), ROWS_EACH)
    random.shuffle(who)
    return pa.table({
        "id": who,
        "wage": random.normal(50, 20, len(who)),
        "region": pa.DictionaryArray.from_arrays(random.integers(0, 4, len(who)).astype(np.int8), list(REGIONS)),
        "level": pa.DictionaryArray.from_arrays(level[who].astype(np.int8), list(LEVELS)),
    })  # fmt: skip


SPARK = Group("spark", "Spark, on the clock", measure)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print, as benchmarks/run.py does."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of a table")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: shows that everything runs, measures nothing")
    parser.add_argument("--write", action="store_true", help="put the results into docs/spark.md")
    options = parser.parse_args(arguments)
    if options.write and options.quick:
        parser.error("--write needs a whole run: leave out --quick")
    notes, rows = Console(stderr=True), []
    for row in measure(Size(options.quick)):
        rows.append(row)
        notes.print(f"{row.what}: {row.ratio:.2f} times {row.against}", highlight=False)
    results = [(SPARK, rows)]
    if options.json:
        json.dump(to_document(results, options.quick), sys.stdout, indent=2, allow_nan=False)
        sys.stdout.write("\n")
    else:
        print_tables(Console(highlight=False), results, options.quick)
    if options.write:
        write_results(PAGE, results, (START, END))
    return 0


if __name__ == "__main__":
    sys.exit(main())
