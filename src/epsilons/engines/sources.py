"""Where tables come from: files, frames and databases, with types fixed by declaration and never by their contents.

Columns of CSV and JSON files, and untyped columns of pandas, are text unless `types` declares them; a cell that does
not parse is null, wherever it stands. Nothing is guessed from the first rows: a guess would depend on somebody's value,
and fail on somebody else's.
"""

from __future__ import annotations

import csv
import glob
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
from sqlglot import exp

from epsilons.errors import DataError

#: What `types` may say, and the engine's type for it.
TYPES = {
    "int": "BIGINT", "float": "DOUBLE", "text": "VARCHAR", "bool": "BOOLEAN", "date": "DATE", "time": "TIMESTAMP",
}  # fmt: skip
_ENDINGS = {
    ".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".ndjson": "json", ".jsonl": "json",
    ".duckdb": "duckdb", ".ddb": "duckdb", ".db": "duckdb",
}  # fmt: skip
_FILES = "a .parquet, .csv, .ndjson or .duckdb file"


@dataclass(frozen=True)
class Files:
    """Files by absolute paths; `names` are the columns of those that do not say."""

    kind: str
    paths: tuple[str, ...]
    types: tuple[tuple[str, str], ...] = ()
    names: tuple[str, ...] = ()
    table: str | None = None

    def scan(self, attached: str) -> exp.Expr:
        """What a query reads from."""
        if self.kind == "duckdb":
            return exp.Table(this=exp.to_identifier(self.table, quoted=True), db=exp.to_identifier(attached))
        paths = exp.Array(expressions=[exp.Literal.string(path) for path in self.paths])
        arguments: list[exp.Expr] = [paths]
        if self.kind == "parquet":
            return exp.Anonymous(this="read_parquet", expressions=[*arguments, _option("hive_partitioning", False)])
        fields = [
            exp.PropertyEQ(this=exp.to_identifier(name, quoted=True), expression=exp.Literal.string("VARCHAR"))
            for name in self.names
        ]
        arguments.append(exp.EQ(this=exp.column("columns"), expression=exp.Struct(expressions=fields)))
        if self.kind == "json":
            arguments.append(_option("format", "newline_delimited"))
            return exp.Anonymous(this="read_json", expressions=arguments)
        # Given in full, so that the reader looks at no row to find out.
        options: dict[str, bool | str] = {
            "auto_detect": False,
            "header": True,
            "delim": ",",
            "quote": '"',
            "escape": '"',
            "nullstr": "",
        }
        arguments += [_option(name, value) for name, value in options.items()]
        return exp.Anonymous(this="read_csv", expressions=arguments)


@dataclass(frozen=True, eq=False)
class Frame:
    """A frame as Arrow; columns that no engine can hold are left out and named in `unusable`."""

    table: pa.Table
    types: tuple[tuple[str, str], ...] = ()
    unusable: tuple[str, ...] = ()


def locate(source: Any, types: Mapping[str, str] | None, table: str | None) -> Files | Frame:
    """Find out what a source is, from its name or type alone."""
    declared = _check_types(types)
    if isinstance(source, (str, os.PathLike)) or (isinstance(source, (list, tuple)) and source):
        return _files(source, declared, table)
    if table is not None:
        raise DataError("Only a DuckDB file has tables to choose from.", suggest="leave table= out")
    frame = _frame(source, declared)
    unknown = set(declared) - set(frame.table.column_names)
    if unknown:
        raise _no_such_column(sorted(unknown)[0])
    return frame


def typed(tree: exp.Expr, kind: str) -> exp.Expr:
    """A text cell in its declared type, or null. Casts round fractions to whole numbers: those are null here."""
    value = exp.TryCast(this=tree.copy(), to=exp.DataType.build(TYPES[kind]))
    if kind != "int":
        return value
    fraction = exp.TryCast(this=tree.copy(), to=exp.DataType.build("DOUBLE"))
    exactly = exp.EQ(this=fraction, expression=exp.Cast(this=value.copy(), to=exp.DataType.build("DOUBLE")))
    return exp.Case(ifs=[exp.If(this=exactly, true=value)])


def _option(name: str, value: bool | str) -> exp.Expr:
    given = exp.Boolean(this=value) if isinstance(value, bool) else exp.Literal.string(value)
    return exp.EQ(this=exp.column(name), expression=given)


def _check_types(types: Mapping[str, str] | None) -> dict[str, str]:
    declared = dict(types or {})
    for name, kind in declared.items():
        if not isinstance(name, str) or kind not in TYPES:
            raise DataError(f"Unknown type {kind!r} of column {name!r}.", rule=f"Types: {', '.join(TYPES)}.")
    return declared


def _no_such_column(name: str) -> DataError:
    return DataError(f"There is no column {name!r} to declare.", rule="types= names columns of the table.")


# Files --------------------------------------------------------------------------------------------------------------


def _files(source: Any, declared: dict[str, str], table: str | None) -> Files:
    paths = _expand([source] if isinstance(source, (str, os.PathLike)) else list(source))
    kinds = {_ENDINGS.get(os.path.splitext(path)[1].lower(), "") for path in paths}
    kind = kinds.pop() if len(kinds) == 1 else ""
    if not kind:
        raise DataError("The kind of file is not known.", rule="The ending says it, one for all.", suggest=_FILES)
    if (table is None) == (kind == "duckdb"):
        raise DataError("A DuckDB file needs table=, and nothing else has one.", suggest='table="people"')
    if kind == "duckdb":
        if len(paths) > 1:
            raise DataError("More than one DuckDB file.", suggest="one file, with table=")
        return Files(kind, paths, table=table)
    if kind == "parquet":
        if declared:
            raise DataError("Parquet has its own types.", suggest="leave types= out")
        _check_alike(paths)
        return Files(kind, paths)
    names = _alike([_header(path) if kind == "csv" else _fields(path) for path in paths])
    unknown = set(declared) - set(names)
    if unknown:
        raise _no_such_column(sorted(unknown)[0])
    return Files(kind, paths, tuple(declared.items()), names)


def _expand(given: list[Any]) -> tuple[str, ...]:
    """Absolute paths of files that are there; patterns are expanded now, so that the list is fixed before locking."""
    paths: list[str] = []
    for entry in given:
        if not isinstance(entry, (str, os.PathLike)):
            raise DataError("A list of files holds something else.", suggest=_FILES)
        path = os.fspath(entry)
        if not isinstance(path, str) or "://" in path or "\0" in path:
            raise DataError("Only local files can be read.", suggest=_FILES)
        paths += [path] if os.path.exists(path) else sorted(glob.glob(path, recursive=True))
    found = tuple(dict.fromkeys(os.path.abspath(path) for path in paths))
    if not found or not all(os.path.isfile(path) for path in found):
        raise DataError("No such file.", rule="A path, a list of paths, or a pattern.", suggest=_FILES)
    if any(set("*?[]") & set(path) for path in found):
        raise DataError("A file's own name looks like a pattern.", rule="Engines would expand it.", suggest="rename it")
    return found


def _check_alike(paths: tuple[str, ...]) -> None:
    """Files of one table have one schema; otherwise an engine would convert values, and fail on some."""
    from pyarrow import parquet

    schemas = []
    try:
        for path in paths:
            schemas.append(parquet.read_schema(path).remove_metadata())
    except Exception:
        schemas = []
    if not schemas:
        raise DataError("A file is not Parquet.", suggest=_FILES)
    if any(not schema.equals(schemas[0]) for schema in schemas):
        raise _unlike()
    _check_names(schemas[0].names)


def _alike(listed: list[tuple[str, ...] | None]) -> tuple[str, ...]:
    first = listed[0]
    if first is None or not first or any(not name for name in first):
        raise DataError("A file does not begin with the names of its columns.", suggest="a header line, in UTF-8")
    if any(names != first for names in listed):
        raise _unlike()
    _check_names(first)
    return first


def _check_names(names: Sequence[str]) -> None:
    """Engines take names that differ only in case for one, and would rename a column."""
    if len({name.casefold() for name in names}) < len(names):
        raise DataError(
            "Two columns have the same name.",
            rule="Names of columns differ by more than upper and lower case.",
            suggest="rename a column",
        )


def _unlike() -> DataError:
    return DataError("Files have different columns.", rule="The files of one table have one schema.")


def _header(path: str) -> tuple[str, ...] | None:
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            return tuple(next(csv.reader(file), ()))
    except (OSError, ValueError, csv.Error):
        return None


def _fields(path: str) -> tuple[str, ...] | None:
    """The keys of the first object, in the first line."""
    try:
        with open(path, encoding="utf-8-sig") as file:
            first = json.loads(file.readline())
        return tuple(first) if isinstance(first, dict) else None
    except (OSError, ValueError, RecursionError):
        return None


# Frames -------------------------------------------------------------------------------------------------------------


def _frame(source: Any, declared: dict[str, str]) -> Frame:
    if isinstance(source, (pa.Table, pa.RecordBatch)):
        table = pa.Table.from_batches([source]) if isinstance(source, pa.RecordBatch) else source
        return _from_arrow(table, declared, ())
    home = type(source).__module__.partition(".")[0]
    name = type(source).__name__
    if home == "pandas" and name == "DataFrame":
        return _from_pandas(source, declared)
    if home == "polars" and name in ("DataFrame", "LazyFrame"):
        frame = source.collect() if name == "LazyFrame" else source
        unusable = tuple(c for c, kind in frame.schema.items() if str(kind).startswith(("Object", "Unknown")))
        return _from_arrow(frame.drop(unusable).to_arrow(), declared, unusable)
    raise DataError(
        f"A table cannot be read from {name!r}.",
        rule="A path or paths, pandas, polars, Arrow, or a DuckDB relation.",
        suggest=_FILES,
    )


def _from_arrow(table: pa.Table, declared: dict[str, str], unusable: tuple[str, ...]) -> Frame:
    """Dictionaries become plain, halves become floats; what an engine may not know is left out."""
    names, columns, left_out = [], [], list(unusable)
    for name, values in zip(table.column_names, table.columns, strict=True):
        kind = values.type
        if pa.types.is_dictionary(kind):
            values = values.cast(kind.value_type)
        elif pa.types.is_float16(kind):
            values = values.cast(pa.float32())
        elif pa.types.is_null(kind):
            values = values.cast(pa.string())
        kind = values.type
        if pa.types.is_decimal256(kind) or isinstance(kind, pa.BaseExtensionType):
            left_out.append(name)
            continue
        if name in declared and not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            raise DataError(f"Column {name!r} has a type already.", rule="types= is for columns of text.")
        names.append(name)
        columns.append(values)
    _check_names(table.column_names)
    if not names:
        raise DataError("The table has no columns that can be read.", suggest="numbers, words, truths or dates")
    return Frame(pa.Table.from_arrays(columns, names=names), tuple(declared.items()), tuple(left_out))


def _from_pandas(frame: Any, declared: dict[str, str]) -> Frame:
    names, arrays, unusable = [], [], []
    for place, name in enumerate(frame.columns):
        if not isinstance(name, str):
            raise DataError("A column's name is not text.", suggest="frame.columns = [...]")
        values = frame.iloc[:, place]
        try:
            array = _untyped(values) if values.dtype == object else pa.array(values, from_pandas=True)
        except Exception:  # complex numbers, intervals: Arrow has no such type
            unusable.append(name)
            continue
        names.append(name)
        arrays.append(array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array)
    return _from_arrow(pa.Table.from_arrays(arrays, names=names), declared, tuple(unusable))


def _untyped(values: Any) -> pa.Array:
    """An untyped column is text: words as they are, plain numbers, truths and dates as written, all else missing."""
    return pa.array([_written(value) for value in values], pa.large_string())


def _written(value: Any) -> str | None:
    if type(value) is str:
        return None if any("\ud800" <= c <= "\udfff" for c in value) else value
    if type(value) in (int, float, bool, Decimal, date) and value == value:
        try:
            return str(value)
        except ValueError:  # whole numbers of more digits than Python writes
            return None
    return None
