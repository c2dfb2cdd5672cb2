"""The rows of a table as people keep them: files of text in several dialects, sheets, and a table of a server."""

from __future__ import annotations

import csv
import io
import itertools
import json
import os
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from support.refusals import Source, as_it_is, compare
from support.workbooks import write_open_document, write_workbook

TYPES = {
    "id": "text", "x": "float", "k": "int", "g": "text", "b": "bool", "f": "float", "day": "date", "at": "time",
}  # fmt: skip
GERMAN = {"separator": ";", "decimal": ",", "dates": "%d.%m.%Y", "times": "%d.%m.%Y %H:%M:%S.%f", "encoding": "utf-16"}
_SERVER = {
    "text": "text", "float": "double precision", "int": "bigint", "bool": "boolean", "date": "date",
    "time": "timestamp",
}  # fmt: skip


class Forms:
    """Ways to hand over the tables of `support.tables`; each call writes a new file, or a new table of the server."""

    def __init__(self, folder: Path, server: str = "") -> None:
        self._folder, self._server, self._number = folder, server, itertools.count()

    def all(self) -> Sequence[Source]:
        made: list[Source] = [as_it_is, self.german, self.tabs, self.lines, self.workbook, self.open_document]
        return [*made, self.table] if self._server else made

    def _new(self, ending: str) -> Path:
        return self._folder / f"{next(self._number)}{ending}"

    def german(self, table: pa.Table) -> Mapping[str, Any]:
        path = self._new(".csv")
        path.write_text(_text(table, ";", german=True), encoding="utf-16", newline="")
        return {"source": path, "types": TYPES, "dialect": GERMAN, "threads": 1}

    def tabs(self, table: pa.Table) -> Mapping[str, Any]:
        path = self._new(".tsv")
        path.write_text(_text(table, "\t"), encoding="utf-8", newline="")
        return {"source": path, "types": TYPES, "threads": 1}

    def lines(self, table: pa.Table) -> Mapping[str, Any]:
        """Keys that are null are left out; numbers that JSON has none of are text."""
        path = self._new(".ndjson")
        rows = ({name: cell for name, cell in row.items() if cell is not None} for row in table.to_pylist())
        path.write_text("".join(json.dumps(row, default=str) + "\n" for row in rows))
        return {"source": path, "types": TYPES, "threads": 1}

    def workbook(self, table: pa.Table) -> Mapping[str, Any]:
        path = write_workbook(self._new(".xlsx"), {"people": _cells(table)})
        return {"source": path, "types": TYPES, "threads": 1}

    def open_document(self, table: pa.Table) -> Mapping[str, Any]:
        path = write_open_document(self._new(".ods"), {"people": _cells(table)})
        return {"source": path, "types": TYPES, "threads": 1}

    def table(self, table: pa.Table) -> Mapping[str, Any]:
        """One table for all of a process: its rows are read when the dataset is opened."""
        import psycopg

        name = f"neighbours_{os.getpid()}"
        columns = ", ".join(f"{name} {_SERVER[kind]}" for name, kind in TYPES.items())
        with psycopg.connect(self._server) as connection:
            connection.execute(f"DROP TABLE IF EXISTS {name}")
            connection.execute(f"CREATE TABLE {name} ({columns})")
            with connection.cursor().copy(f"COPY {name} ({', '.join(TYPES)}) FROM STDIN") as copy:
                for row in table.select(list(TYPES)).to_pylist():
                    copy.write_row(list(row.values()))
        return {"source": self._server, "table": name, "threads": 1}


def compare_files(folder: Path, server: str, seed: int, pairs: int = 500) -> tuple[int, int]:
    """(refused, answered) of four questions to each of so many pairs, each in one of the forms, in this process."""
    folder.mkdir()
    return compare(pairs, 4, seed, Forms(folder, server).all(), one_each=True)


def _text(table: pa.Table, separator: str, german: bool = False) -> str:
    def spell(cell: Any) -> str:
        if isinstance(cell, float):
            return repr(cell).replace(".", "," if german else ".")
        if isinstance(cell, date) and german:
            day = f"{cell.day:02}.{cell.month:02}.{cell.year:04}"
            return f"{day} {cell:%H:%M:%S.%f}" if isinstance(cell, datetime) else day
        return "" if cell is None else str(cell)

    file = io.StringIO()
    writer = csv.writer(file, delimiter=separator)
    writer.writerows([table.column_names, *([spell(cell) for cell in row.values()] for row in table.to_pylist())])
    return file.getvalue()


def _cells(table: pa.Table) -> list[list[Any]]:
    """Sheets hold no such numbers and days as text, and no number that is none."""

    def fits(cell: Any) -> bool:
        if isinstance(cell, date):
            return 1900 < cell.year < 9000
        return not isinstance(cell, (int, float)) or abs(cell) < 2**53

    rows = ([cell if fits(cell) else str(cell) for cell in row.values()] for row in table.to_pylist())
    return [table.column_names, *rows]
