"""Where tables come from: files, frames and databases, with types fixed by declaration and never by their contents.

Columns of CSV files and workbooks, and untyped columns of pandas, are text unless `types` declares them; those of JSON
files are what `types` declares, and those of a PostgreSQL server what it says. A cell that does not parse is null,
wherever it stands. Nothing is guessed from the first rows: a guess would depend on one person's value, and fail on
another's.
"""

from __future__ import annotations

import glob
import os
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from epsilons.engines.base import check_names
from epsilons.engines.dialects import PLAIN, TYPES, Dialect, usual_separator
from epsilons.engines.lines import copy_lines, read_header
from epsilons.engines.postgresql import find_table, is_address
from epsilons.engines.readings import as_arrow
from epsilons.engines.workbooks import copy_sheets, find_sheet, read_names
from epsilons.errors import Argument, DataError, Text

if TYPE_CHECKING:
    import pyarrow as pa

_ENDINGS = {
    ".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "csv", ".ndjson": "json",
    ".jsonl": "json", ".duckdb": "duckdb", ".ddb": "duckdb", ".db": "duckdb", ".xlsx": "excel", ".xlsm": "excel",
    ".xlsb": "excel", ".xls": "excel", ".ods": "excel",
}  # fmt: skip
_unlike = partial(DataError, "Files have different columns.", rule="The files of one table have one schema.")
_FILES = "a .parquet, .csv, .xlsx, .ndjson or .duckdb file"
#: Given in full, so that the reader looks at no row to find out.
_READER_OPTIONS: dict[str, dict[str, bool | str]] = {
    "parquet": {"hive_partitioning": False},
    "json": {"format": "newline_delimited", "ignore_errors": True},
    "csv": {
        "auto_detect": False, "header": True, "quote": '"', "escape": '"', "nullstr": "", "new_line": r"\n",
    },
}  # fmt: skip


@dataclass(frozen=True)
class Files:
    """Files by absolute paths; `names` are the columns of those that do not say."""

    kind: str
    paths: tuple[str, ...]
    types: tuple[tuple[str, str], ...] = ()
    names: tuple[str, ...] = ()
    table: str | None = None
    dialect: Dialect = PLAIN
    #: Of a copy: what was no good about lines of text, and how often, for the steward alone.
    faults: tuple[tuple[str, int], ...] = ()

    def measure(self) -> int:
        """Bytes, together."""
        return sum(os.path.getsize(path) for path in self.paths)

    def scan(self, attached: str) -> exp.Expr:
        """What a query reads from."""
        if self.kind == "duckdb":
            return exp.Table(this=exp.to_identifier(self.table, quoted=True), db=exp.to_identifier(attached))
        arguments: list[exp.Expr] = [exp.Array(expressions=[exp.Literal.string(path) for path in self.paths])]
        if self.names:
            text, names = exp.Literal.string("VARCHAR"), [exp.to_identifier(name, quoted=True) for name in self.names]
            fields = exp.Struct(expressions=[exp.PropertyEQ(this=name, expression=text.copy()) for name in names])
            arguments.append(exp.EQ(this=exp.column("columns"), expression=fields))
        separated = {"delim": self.dialect.separator} if self.kind == "csv" else {}
        for option, value in {**_READER_OPTIONS[self.kind], **separated}.items():
            given = exp.Boolean(this=value) if isinstance(value, bool) else exp.Literal.string(value)
            arguments.append(exp.EQ(this=exp.column(option), expression=given))
        return exp.Anonymous(this=f"read_{self.kind}", expressions=arguments)

    def copied(self, folder: str) -> Files:
        """What the engine reads: of lines of text, a copy that cannot fail."""
        if not self.names:
            return self
        faults: Counter[str] = Counter()
        if self.kind == "excel":
            assert self.table is not None
            path = copy_sheets(self.paths, self.table, self.names, folder, self.dialect, faults)
        else:
            path = copy_lines(self.kind, self.paths, self.names, folder, self.dialect, faults)
        kind = "csv" if self.kind == "excel" else self.kind
        return replace(self, kind=kind, paths=(path,), faults=tuple(faults.items()))


@dataclass(frozen=True, eq=False)
class Frame:
    """A frame as Arrow; columns that no engine can hold are left out and named in `unusable`."""

    table: pa.Table
    types: tuple[tuple[str, str], ...] = ()
    unusable: tuple[str, ...] = ()
    dialect: Dialect = PLAIN


def has_types(path: str) -> bool:
    """Whether a file says what its columns hold: no lines of text, and no sheets, do."""
    return _ENDINGS.get(os.path.splitext(path)[1].lower()) not in ("csv", "excel")


def locate(source: Any, types: Mapping[str, str] | None, table: str | None, dialect: Any = None) -> Files | Frame:
    """Find out what a source is, from its name or type alone."""
    declared = dict(types or {})
    for name, kind in declared.items():
        if not isinstance(name, str) or kind not in TYPES:
            raise DataError(f"Unknown type {kind!r} of column {name!r}.", rule=f"Types: {', '.join(TYPES)}.")
    if is_address(source):
        if declared:
            raise DataError("A server has its own types.", suggest=_leave_out("types"))
        found = find_table(source, table)
        Dialect.of(dialect, "server")
        return _from_arrow(found.read(), dict(found.types), ())
    if isinstance(source, (str, os.PathLike)) or (isinstance(source, (list, tuple)) and source):
        return _files(source, declared, table, dialect)
    if table is not None:
        what = "Only a DuckDB file, a workbook or a server has tables to choose from."
        raise DataError(what, suggest=_leave_out("table"))
    return replace(_read_frame(source, declared), dialect=Dialect.of(dialect, "frame"))


def _leave_out(name: str) -> Text:
    return "leave ", Argument(name), " out"


def _check_declared(declared: Mapping[str, str], names: Collection[str]) -> None:
    for unknown in sorted(set(declared) - set(names)):
        rule = (Argument("types"), " names columns of the table.")
        near = [name for name in names if name.strip().casefold() == unknown.strip().casefold()]
        hint = Argument("types", {near[0]: declared[unknown]}) if near else ""
        raise DataError(f"There is no column {unknown!r} to declare.", rule=rule, suggest=hint)


def _files(source: Any, declared: dict[str, str], table: str | None, dialect: Any) -> Files:
    paths = _expand([source] if isinstance(source, (str, os.PathLike)) else list(source))
    kinds = {_ENDINGS.get(os.path.splitext(path)[1].lower(), "") for path in paths}
    kind = kinds.pop() if len(kinds) == 1 else ""
    if not kind:
        whole = any(path.lower().endswith(".json") for path in paths)
        packed = any(path.lower().endswith((".gz", ".zip", ".zst", ".bz2", ".xz")) for path in paths)
        hint = "JSON lines, an object on each, in a file that ends in .ndjson or .jsonl" if whole else _FILES
        hint = "the file unpacked" if packed else hint
        raise DataError("The kind of file is not known.", rule="The ending says it, one for all.", suggest=hint)
    usual = {usual_separator(path) for path in paths}
    written = Dialect.of(dialect, kind, usual.pop() if len(usual) == 1 else PLAIN.separator)
    if (table is None) == (kind == "duckdb") and kind != "excel":
        needs = ("A DuckDB file needs ", Argument("table"), ", a workbook of several sheets and a server too.")
        raise DataError(needs, rule="Nothing else has one.", suggest=Argument("table", "people"))
    if kind == "duckdb":
        if len(paths) > 1:
            raise DataError("More than one DuckDB file.", suggest=("one file, with ", Argument("table")))
        return Files(kind, paths, table=table)
    if kind == "parquet":
        if declared:
            raise DataError("Parquet has its own types.", suggest=_leave_out("types"))
        return Files(_check_alike(paths), paths)
    if kind == "json" and not declared:
        rule = "It has no header, and each row has keys of its own: its columns are those that are declared."
        types = Argument("types", {"id": "int", "wage": "float", "region": "text"})
        raise DataError("The columns of a JSON file are not known.", rule=rule, suggest=types)
    if kind == "excel":
        table = find_sheet(paths[0], table)
    try:
        listed = [_read_names(kind, path, table, declared, written) for path in paths]
    except (OSError, ValueError):
        listed = [()]
    if not listed[0] or not all(listed[0]):
        named = ("a header line, in UTF-8, or in the encoding that ", Argument("dialect"), " names")
        rule = "In its first line each column has one."
        raise DataError("A file does not begin with the names of its columns.", rule=rule, suggest=named)
    if any(names != listed[0] for names in listed):
        raise _unlike()
    check_names(listed[0])
    _check_declared(declared, listed[0])
    return Files(kind, paths, tuple(declared.items()), listed[0], table, written)


def _read_names(
    kind: str, path: str, sheet: str | None, declared: Mapping[str, str], dialect: Dialect
) -> tuple[str, ...]:
    if kind == "json":
        return tuple(declared)
    return read_header(path, dialect) if kind == "csv" or sheet is None else read_names(path, sheet)


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


def _check_alike(paths: tuple[str, ...]) -> str:
    """Files of one table have one schema; otherwise an engine would convert values, and fail on some.

    It would do so with milliseconds that are no microseconds as well, unless Arrow hands them over as they are.
    """
    from pyarrow import parquet

    try:
        schemas = [parquet.read_schema(path).remove_metadata() for path in paths]
    except Exception:
        schemas = []
    if not schemas:
        raise DataError("A file is not Parquet.", suggest=_FILES)
    if any(not schema.equals(schemas[0]) for schema in schemas):
        raise _unlike()
    check_names(schemas[0].names)
    return "arrow" if "timestamp[ms]" in map(str, schemas[0].types) else "parquet"


def _read_frame(source: Any, declared: dict[str, str]) -> Frame:
    import pyarrow as pa

    if isinstance(source, (pa.Table, pa.RecordBatch)):
        table = pa.Table.from_batches([source]) if isinstance(source, pa.RecordBatch) else source
        return _from_arrow(table, declared, ())
    home, name = type(source).__module__.partition(".")[0], type(source).__name__
    if home == "pandas" and name == "DataFrame":
        return _from_pandas(source, declared)
    if home == "polars" and name in ("DataFrame", "LazyFrame"):
        frame = source.collect() if name == "LazyFrame" else source
        unusable = tuple(c for c, kind in frame.schema.items() if str(kind).startswith(("Object", "Unknown")))
        return _from_arrow(frame.drop(unusable).to_arrow(), declared, unusable)
    rule = "A path or paths, a server's address, pandas, polars, Arrow, or a DuckDB relation."
    raise DataError(f"A table cannot be read from {name!r}.", rule=rule, suggest=_FILES)


def _from_arrow(table: pa.Table, declared: dict[str, str], unusable: tuple[str, ...]) -> Frame:
    """Dictionaries become plain, halves become floats; what an engine may not know is left out."""
    import pyarrow as pa

    check_names(table.column_names)
    columns, left_out = {}, list(unusable)
    for name, values in zip(table.column_names, table.columns, strict=True):
        values = as_arrow(values)
        kind = getattr(values, "type", None)
        if kind in (pa.float16(), pa.null()):
            values = values.cast(pa.string() if kind == pa.null() else pa.float32())
            kind = values.type
        if kind is None or pa.types.is_decimal256(kind) or isinstance(kind, pa.BaseExtensionType):
            left_out.append(name)
            continue
        if name in declared and not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            rule = (Argument("types"), " is for columns of text.")
            raise DataError(f"Column {name!r} has a type already.", rule=rule)
        columns[name] = values
    if not columns:
        raise DataError("The table has no columns that can be read.", suggest="numbers, text, truths or dates")
    _check_declared(declared, columns)
    return Frame(pa.table(columns), tuple(declared.items()), tuple(left_out))


def _from_pandas(frame: Any, declared: dict[str, str]) -> Frame:
    """Untyped columns are text (`write_entry`); complex numbers and intervals are left out, since Arrow has none."""
    import pyarrow as pa

    if not all(isinstance(name, str) for name in frame.columns):
        raise DataError("A column's name is not text.", suggest="rename it")
    check_names(list(frame.columns))
    found = {name: as_arrow(values) for name, values in frame.items()}
    usable = {name: column for name, column in found.items() if column is not None}
    return _from_arrow(pa.table(usable), declared, tuple(name for name in found if name not in usable))
