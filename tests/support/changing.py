"""Sources that become others while they are being read, and what must hold of whatever was registered of them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from pyarrow import parquet

from epsilons.dataset.snapshot import remove_snapshot
from epsilons.errors import DataError
from epsilons.ledger.identity import digests
from epsilons.storage import base
from support.snapshots import SALT, opened, register, rows_each, rows_of
from support.workbooks import write_open_document, write_workbook


class Changing:
    """A source that says how it is opened, and how it becomes another one; `server` is PostgreSQL's address."""

    def __init__(self, folder: Path, server: str = "") -> None:
        self.folder = folder
        self.address = server

    def parquet(self, held: pa.Table) -> Any:
        made = self.folder / "made.parquet"
        parquet.write_table(held, made)
        return made.replace(self.folder / "people.parquet")

    def parquet_of_arrow(self, held: pa.Table) -> Any:
        """Milliseconds are handed over by Arrow."""
        time = pa.array([0] * len(held), pa.timestamp("ms"))
        return self.parquet(held.append_column("time", time))

    def csv(self, held: pa.Table) -> Any:
        path = self.folder / "people.csv"
        path.write_text(held.to_pandas().to_csv(index=False))
        return path

    def lines(self, held: pa.Table) -> Any:
        path = self.folder / "people.ndjson"
        path.write_text("".join(f'{{"id": {row["id"]}, "x": {row["x"]}}}\n' for row in held.to_pylist()))
        return path

    def transcoded(self, held: pa.Table) -> Any:
        path = self.folder / "leute.csv"
        path.write_bytes(held.to_pandas().to_csv(index=False, sep=";").encode("utf-16"))
        return path

    def workbook(self, held: pa.Table) -> Any:
        return write_workbook(
            self.folder / "people.xlsx", {"one": [["id", "x"], *zip(*held.to_pydict().values(), strict=True)]}
        )

    def sheet(self, held: pa.Table) -> Any:
        return write_open_document(
            self.folder / "people.ods", {"one": [["id", "x"], *zip(*held.to_pydict().values(), strict=True)]}
        )

    def server(self, held: pa.Table) -> Any:
        import psycopg

        with psycopg.connect(self.address) as connection:
            connection.execute("DROP TABLE IF EXISTS changing")
            connection.execute("CREATE TABLE changing (id int, x int)")
            with connection.cursor().copy("COPY changing FROM STDIN") as copy:
                for row in held.to_pylist():
                    copy.write_row((row["id"], row["x"]))
        return self.address

    def database(self, held: pa.Table) -> Any:
        made = self.folder / "made.duckdb"
        with duckdb.connect(str(made)) as connection:
            connection.register("given", held)
            connection.execute("CREATE TABLE people AS SELECT * FROM given")
        return made.replace(self.folder / "people.duckdb")

    def relation(self, held: pa.Table) -> Any:
        connection = duckdb.connect(str(self.folder / "theirs.duckdb"))
        connection.register("given", held)
        connection.execute("CREATE OR REPLACE TABLE people AS SELECT * FROM given")
        return connection.sql("FROM people")


KINDS = ("parquet", "parquet_of_arrow", "csv", "lines", "transcoded", "workbook", "sheet", "database", "relation")
OPTIONS: dict[str, dict[str, Any]] = {
    "csv": {"types": {"id": "int", "x": "int"}},
    "lines": {"types": {"id": "int", "x": "int"}},
    "transcoded": {"types": {"id": "int", "x": "int"}, "dialect": {"separator": ";", "encoding": "utf-16"}},
    "workbook": {"types": {"id": "int", "x": "int"}},
    "sheet": {"types": {"id": "int", "x": "int"}},
    "server": {"table": "changing"},
    "database": {"table": "people"},
}
#: What is opened stays what it was: lines and tables of a server are copied then, a database is held.
HELD = ("csv", "lines", "transcoded", "workbook", "sheet", "server", "database")
#: Steps of a registration, in their order.
PLACES = (
    "source unread", "source read", "preferences read", "crowd counted", "snapshot written", "snapshot complete",
)  # fmt: skip


class Schedule:
    """One registration of a source that grows, shrinks or is replaced at random steps of it.

    Every edition of the source says which one it is in every row, and has people of its own with any number of rows.
    """

    def __init__(self, random: np.random.Generator, kinds: tuple[str, ...] = KINDS, server: str = "") -> None:
        self.server = server
        self.kind = str(random.choice(kinds))
        self.cap = int(random.integers(1, 4))
        self.changes = [place for place in PLACES if random.random() < 0.5]
        self.editions = [self._edition(random, number) for number in range(len(self.changes) + 1)]

    def __repr__(self) -> str:
        return f"{self.kind}, {self.cap} rows each, changed at {self.changes}"

    @staticmethod
    def _edition(random: np.random.Generator, number: int) -> pa.Table:
        people = random.choice(30, int(random.integers(1, 20)), replace=False)
        ids = np.repeat(people, random.integers(1, 1 + int(random.choice([1, 4, 9])), len(people)))
        return pa.table({"id": ids, "x": np.full(len(ids), number)})

    def hold(self, folder: Path) -> None:
        """Register it: nobody above the cap, and everything from one reading."""
        source, now, read = Changing(folder, self.server), 0, 0
        given = getattr(source, self.kind)(self.editions[0])

        def change(place: str) -> None:
            nonlocal now, read
            if place == "source read":
                read = 0 if self.kind in HELD else now
            if place in self.changes:
                now += 1
                getattr(source, self.kind)(self.editions[now])

        base.watchers.append(change)
        try:
            stamp = register(given, folder / "snapshots" / "one", rows=self.cap, **OPTIONS.get(self.kind, {}))
        finally:
            base.watchers.remove(change)
        engine, people = opened(stamp)
        held, each = rows_of(engine), rows_each(engine)
        engine.close()
        remove_snapshot(stamp, os.path.dirname(stamp["folder"]))
        assert now == len(self.changes)
        counts = Counter(self.editions[read]["id"].to_pylist())
        assert max(each.values()) <= self.cap, "somebody is above the cap"
        assert {row["x"] for row in held} == {read}, "rows of another reading"
        assert {bytes(one) for one in people} == {bytes(one) for one in digests(list(counts), SALT)}, "other people"
        assert Counter(row["id"] for row in held) == {one: min(n, self.cap) for one, n in counts.items()}


#: Writes a CSV file in place and replaces a Parquet file, without end.
WRITER = """
import os, sys
import pyarrow as pa
from pyarrow import parquet
folder, number = sys.argv[1], 0
while True:
    number += 1
    ids = [n % 40 for n in range(40 * (1 + number % 7))]
    with open(f"{folder}/people.csv", "r+" if number % 3 and number > 1 else "w") as file:
        file.write("id,x\\n")
        for one in ids:
            file.write(f"{one},{number}\\n")
    parquet.write_table(pa.table({"id": ids, "x": [number] * len(ids)}), f"{folder}/made.parquet")
    os.replace(f"{folder}/made.parquet", f"{folder}/people.parquet")
    if number == 1:
        print("ready", flush=True)
"""


def race(folder: Path, times: int) -> int:
    """Register what another process goes on writing, until so many registrations came about; how many did at all.

    On a busy machine most of them meet half of a file.
    """
    done = 0
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(folder)], stdout=subprocess.PIPE)
    try:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"ready\n"
        for turn in range(25 * times):
            if done == times:
                break
            kind = ("csv", "parquet")[turn % 2]
            try:
                stamp = register(folder / f"people.{kind}", folder / "snapshot", rows=2, **OPTIONS.get(kind, {}))
            except DataError as refused:
                if "not capped" in str(refused):
                    raise
                continue  # there was no header yet, or half of a file
            engine, people = opened(stamp)
            held, each = rows_of(engine), rows_each(engine)
            engine.close()
            remove_snapshot(stamp, os.path.dirname(stamp["folder"]))
            assert max(each.values()) <= 2, "somebody is above the cap"
            assert set(each) == set(range(len(people))), "people and rows of two readings"
            assert kind == "csv" or len({row["x"] for row in held}) == 1, "rows of two readings"
            done += 1
    finally:
        writer.kill()
        writer.communicate()
    return done
