"""What an engine is: it knows the columns of one table, runs a query given as a tree, and hands back columns.

Queries are sqlglot expression trees, made node by node and rendered once by the engine. A caller's text never becomes
part of a query: conditions are parsed, checked and rebuilt (`conditions`), values become typed literals (`trees`). An
engine's own messages stay inside it, since they may quote a value of the table.

An engine is one file in this package. It registers its class, which has a `name`, the `options` that it understands,
and `takes`, which looks at a source's type alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar, cast

import numpy as np

from epsilons.errors import Argument, DataError, Unusable

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray
    from sqlglot import exp

_T = TypeVar("_T")
_REGISTRY: dict[str, type[Any]] = {}

#: The name under which every engine's queries find the table.
SOURCE = "source"
#: No column of a table begins like this, in whatever case: these names are ours.
RESERVED = "epsilons "
UNREAD = f"{RESERVED}unread "

NUMBER, TEXT, TRUTH, DATE, TIME, OTHER = "number", "text", "truth", "date", "time", "other"
ASKABLE = "Questions are about numbers, text, truths, dates, and times without a zone."

#: Types that cannot be asked about, by the names of Spark and DuckDB, and the nearest that can; text for all others.
_PLAINER = {"TIMESTAMP": "TIMESTAMP_NTZ", "TIMESTAMP WITH TIME ZONE": "TIMESTAMP", "UHUGEINT": "DOUBLE"}

_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "INTEGER": 32, "BIGINT": 64, "HUGEINT": 128}
_UNSIGNED_BITS = {"UTINYINT": 8, "USMALLINT": 16, "UINTEGER": 32, "UBIGINT": 64}
_WHOLE = {kind: (-(1 << bits - 1), (1 << bits - 1) - 1) for kind, bits in _BITS.items()}
_WHOLE |= {kind: (0, (1 << bits) - 1) for kind, bits in _UNSIGNED_BITS.items()}
_FLOATS = {"FLOAT": 32, "DOUBLE": 64}
_DECIMAL = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")


@dataclass(frozen=True)
class Column:
    """A column's name and type, which are public.

    `family` decides what a column may be compared with: number, text, truth (booleans), date, time (without a zone);
    "other" is stored but cannot be asked about, and `type` is what the engine calls it. An exact number is a whole
    number of units of 10^-scale between `low` and `high`; a floating one has `bits` (32 or 64) instead.
    """

    name: str
    family: str
    low: int | None = None
    high: int | None = None
    scale: int = 0
    precision: int = 0
    bits: int = 0
    type: str = ""

    @cached_property
    def floating(self) -> bool:
        """Whether the column may hold NaN and infinities."""
        return self.bits > 0

    def numeric(self) -> bool:
        """Whether sums, means and order statistics can be asked of it: numbers, and truths as 0 and 1."""
        return self.family in (NUMBER, TRUTH)


class Schema(dict[str, Column]):
    """The columns of a table, in order.

    The first line of a CSV file without a header is a person's row. So its names are not `known` to be names, and stay
    out of messages, until the steward has given one of them.
    """

    def __init__(self, columns: list[Column], known: bool = True) -> None:
        super().__init__((column.name, column) for column in columns)
        self.known = known
        check_names([column.name for column in columns])

    def __repr__(self) -> str:
        return f"Schema({', '.join(f'{c.name}: {c.family}' for c in self.values())})"

    def find(self, name: Any) -> Column:
        """The column of this name; upper and lower case may differ."""
        known = (self.get(name), *self.values()) if isinstance(name, str) else ()
        found = next((c for c in known if c is not None and c.name.casefold() == name.casefold()), None)
        if found is None:
            names = ", ".join([*list(self)[:8], *["..."] * (len(self) > 8)]) or "a table with columns"
            names = names if self.known else "a name that stands in the header, the first line of the file"
            raise DataError(f"There is no column {name!r}.", rule="Columns are named as in the table.", suggest=names)
        self.known = True
        return found

    def askable(self, name: Any) -> Column:
        """A column that questions may be about; its type is public, so the refusal says nothing about a value."""
        column = self.find(name)
        if column.family == OTHER:
            raise unaskable(column)
        return column

    def number(self, name: Any) -> Column:
        """A column of numbers (or truths)."""
        column = self.askable(name)
        if not column.numeric():
            unfit = f"Column {column.name!r} holds {column.family}, not numbers."
            again = " for numbers in a CSV file, which is then registered (again, as a new version)"
            types = Argument("types", {column.name: "float"})
            hint = ("a histogram with categories for text; ", types, again)
            raise DataError(unfit, rule="This statistic works on numbers.", suggest=hint)
        return column

    def bounded(self, name: Any) -> Column:
        """A column that bounds are declared of."""
        column = self.askable(name)
        if not column.numeric():
            unfit = f"Column {column.name!r} holds {column.family}, not numbers."
            rule = "Numbers have bounds; columns of CSV files are text until their types are declared."
            hint = (Argument("types", {column.name: "float"}), " for numbers in a CSV file; or no bounds of it")
            raise DataError(unfit, rule=rule, suggest=hint)
        return column


def check_names(names: Sequence[str]) -> None:
    """Engines take names that differ only in case for one, and would rename a column."""
    if len({name.casefold() for name in names}) < len(names):
        rule = "Names of columns differ by more than upper and lower case."
        raise DataError("Two columns have the same name.", rule=rule, suggest="rename a column")


def make_column(name: str, kind: str, plain: Mapping[str, str], other: str) -> Column:
    """By the engine's name of its type; `plain` has the families of types that are no numbers, `other` a last name."""
    upper = kind.upper()
    if upper in _WHOLE:
        return Column(name, NUMBER, *_WHOLE[upper])
    if upper in _FLOATS:
        return Column(name, NUMBER, bits=_FLOATS[upper])
    if match := _DECIMAL.fullmatch(upper):
        precision, scale = int(match[1]), int(match[2])
        most = 10**precision - 1
        return Column(name, NUMBER, -most, most, scale, precision)
    return Column(name, plain[kind]) if kind in plain else Column(name, OTHER, type=other)


def unaskable(column: Column) -> DataError:
    """What to say about a column of a type that no question can be about."""
    what = f"Column {column.name!r}{f' of type {column.type}' if column.type else ''} cannot be asked about."
    plain = _PLAINER.get(column.type.upper(), "STRING")
    return DataError(what, rule=ASKABLE, suggest=f"CAST({column.name} AS {plain}) in the table that you open")


class Engine(Protocol):
    """Runs trees on one table and hands back columns. It has a name, and options that it understands."""

    name: ClassVar[str]
    options: ClassVar[frozenset[str]]
    #: The columns of the table named `SOURCE`.
    schema: Schema
    #: The local files that are read, by absolute paths; none for anything else.
    files: tuple[str, ...]
    #: Whether it works in this very process, where a number per row may be handed over without leaving it.
    embedded: bool
    #: Columns whose text was declared to be something else.
    declared: tuple[str, ...]

    @property
    def faults(self) -> Mapping[str, int]:
        """What was no good about lines of text, and how often: for the steward alone."""

    @staticmethod
    def takes(source: Any) -> bool:
        """Whether this engine is the one for a source, unless another is named."""

    def check_ready(self) -> None:
        """`DataError` if nothing can be read any more; checked before anyone is charged."""

    def stage(self, name: str) -> Schema:
        """Read the source, exactly once, and store under a name what can be asked about; its columns.

        Beside each column of `declared` stands one, called `UNREAD` and its name: 1 where a cell did not parse, else 0.
        """

    def run(self, tree: exp.Query) -> pa.Table:
        """The result of a query as Arrow; `DataError` with a fixed text if the engine fails."""

    def fetch(self, tree: exp.Query) -> dict[str, NDArray[Any]]:
        """The result of a query as numpy has it: null is masked; what numpy has no exact type for are objects."""

    def keep(self, name: str, tree: exp.Query) -> Schema:
        """Store the result of a query inside the engine under a name, for later queries; its columns."""

    def define(self, name: str, tree: exp.Query) -> None:
        """Make the result of a query known under a name; it is worked out whenever that is asked for."""

    def write(self, tree: exp.Query, folder: str) -> None:
        """Write the result of a query to files in a folder of our own, for `reopen`."""

    @classmethod
    def reopen(cls, folder: str, **options: Any) -> Engine:
        """What `write` wrote, as the source of an engine that only reads it; of `options` what files need."""

    def add(self, name: str, table: pa.Table | Mapping[str, NDArray[np.integer]]) -> Schema:
        """Make an Arrow table, or whole numbers of numpy, known to later queries; its columns."""

    def drop(self, name: str) -> None:
        """Forget what `keep`, `define` or `add` made known."""

    def close(self) -> None:
        """Let go of files and memory."""


_E = TypeVar("_E", bound=Engine)


def register(engine: type[_E]) -> type[_E]:
    """Make an engine known by its name; its file needs nothing else."""
    _REGISTRY[engine.name] = engine
    return engine


def engines() -> dict[str, type[Engine]]:
    """Every engine by name. None of them loads what it runs on before it is opened."""
    import epsilons.engines

    for module in iter_modules(epsilons.engines.__path__):
        import_module(f"{epsilons.engines.__name__}.{module.name}")
    return dict(_REGISTRY)


def open_table(source: Any, engine: str | None = None, **options: Any) -> Engine:
    """The table that a source is, in the engine named, or in the one that takes such sources."""
    known = engines()
    if engine is None:
        engine = next((name for name, kind in known.items() if kind.takes(source)), None)
        if engine is None:
            unread = f"A table cannot be read from {type(source).__name__!r}."
            rule = "Paths, a server's address, a frame of pandas, polars, Arrow or Spark, or a DuckDB relation."
            raise DataError(unread, rule=rule, suggest="a .parquet, .csv, .xlsx, .ndjson or .duckdb file")
    if not isinstance(engine, str) or engine not in known:
        raise DataError(f"Unknown engine {engine!r}.", suggest=", ".join(sorted(known)))
    kind = known[engine]
    given = {name: value for name, value in options.items() if value is not None}
    for unknown in sorted(set(given) - kind.options):
        takers = sorted(name for name, other in known.items() if unknown in other.options)
        raise DataError(f"The engine {engine!r} takes no {unknown!r}.", suggest=f"for {', '.join(takers)} only")
    return cast(Engine, cast(Any, kind)(source, **given))


def as_columns(found: pa.Table) -> dict[str, NDArray[Any]]:
    """A result in Arrow as `fetch` hands it over."""
    columns: dict[str, NDArray[Any]] = {}
    for name, chunks in zip(found.column_names, found.columns, strict=True):
        column = chunks.combine_chunks()
        missing, there = (part.to_numpy(zero_copy_only=False) for part in (column.is_null(), column.drop_null()))
        columns[name] = np.ma.MaskedArray(np.zeros(len(column), there.dtype), missing)
        columns[name][~missing] = there
    return columns


class UnreadableError(Unusable, DataError):
    """The engine failed, whatever was asked."""


def hide_engine_errors(work: Callable[[], _T], engine: str) -> _T:
    """Do it; if it fails, for whatever reason, say only that it failed.

    The error is raised after the handler has ended, so that it does not carry the engine's own along.
    """
    try:
        return work()
    except DataError:
        raise
    except Exception:
        pass
    rule = "Reasons are not shown, since they may quote what the table holds."
    hint = f"the table in {engine} itself, as its steward"
    raise UnreadableError("The table could not be read.", rule=rule, suggest=hint)
