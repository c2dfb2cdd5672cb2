"""DuckDB, embedded: one private connection per table, locked before the first query.

A connection may read the files that were named when it was opened, spill to one directory of its own, and nothing else:
no other file, no network, no extension, no setting can be reached from a query. Frames are made known after that.

A relation that the user already has in DuckDB runs on the connection it came from, which is theirs: it is not locked,
and the rules for conditions (`conditions`) are the only barrier there.
"""

from __future__ import annotations

import os
import re
import shutil
import weakref
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import duckdb
import numpy as np
from sqlglot import exp

from epsilons.engines import base
from epsilons.engines.base import SOURCE, Column, Schema, make_column, register
from epsilons.engines.sources import Files, Frame, locate
from epsilons.engines.trees import bit, column, in_years, join_bits, table
from epsilons.errors import Argument, DataError
from epsilons.storage.files import claim_folder, release_folder

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

_T = TypeVar("_T")

_HOMES = ("pyarrow", "pandas", "polars", "duckdb", "_duckdb")
_RAW, _ATTACHED, _COPIES, _FILE = "raw", "attached", "copies", "file"
_HANDED_OVER, _ROWS, _WRITTEN, _PACKED = "handed over", "rows", "rows.duckdb", "copies.duckdb"
#: Files of so many bytes, together, are not copied into memory.
_LARGE = 1 << 25
_A_FEW = 1 << 16
#: Counts per (grid point, level) then stand in an array instead of a hash table: up to 4 million of them.
_ARRAY_BITS = 22
#: Its own progress would be printed into our output.
_QUIET = "SET enable_progress_bar = false"
#: They look at least and largest values, nulls and numbers of rows, and leave out blocks, columns and comparisons by
#: them, or join the other way round: a whole query would take longer or shorter by the value of one row.
_LOOKING = "statistics_propagation,filter_pushdown,filter_pullup,join_filter_pushdown,join_order,build_side_probe_side"

#: Types that numpy has, too: their values are handed over without Arrow, which takes long to load.
_IN_NUMPY = {"BOOLEAN", "FLOAT", "DOUBLE", "DATE", "TIMESTAMP", "TINYINT", "SMALLINT", "INTEGER", "BIGINT"}
_IN_NUMPY |= {"UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"}
_PLAIN = {"VARCHAR": base.TEXT, "BOOLEAN": base.TRUTH, "DATE": base.DATE, "TIMESTAMP": base.TIME}
#: Types that the table's view turns into a plain one. Text that is no member of an enumeration would be an error.
_VIEWED = re.compile(r"(ENUM\(.*\)|UUID|TIMESTAMP_(S|MS|NS))", re.DOTALL)


@register
class DuckDB:
    """A table in DuckDB: files, a frame, a table of a database file, or the user's own relation."""

    name: ClassVar[str] = "duckdb"
    options: ClassVar[frozenset[str]] = frozenset({"types", "table", "dialect", "threads", "memory"})
    embedded = True

    @staticmethod
    def takes(source: Any) -> bool:
        """Paths, lists of paths, frames in this process's memory, relations."""
        home = type(source).__module__.partition(".")[0]
        return isinstance(source, (str, os.PathLike, list, tuple)) or home in _HOMES

    def __init__(
        self,
        source: Any,
        *,
        types: Mapping[str, str] | None = None,
        table: str | None = None,
        dialect: Mapping[str, str] | None = None,
        threads: int | None = None,
        memory: str | None = None,
    ) -> None:
        self._relation: Any = source if isinstance(source, duckdb.DuckDBPyRelation) else None
        if self._relation is not None and (types or table or dialect):
            unfit = ("leave ", Argument("types"), " and ", Argument("table"), " out")
            raise DataError("A DuckDB relation has its own types.", suggest=unfit)
        known = self._relation is not None or isinstance(source, Files)
        located = (None if self._relation is not None else source) if known else locate(source, types, table, dialect)
        #: What was stored or defined here, by name, and which of both.
        self._kept: dict[str, str] = {}
        #: How columns of what was staged are packed, and of what is made of it, unless as columns usually are.
        self._packing: dict[str, str] = {}
        self.files = located.paths if isinstance(located, Files) else ()
        self.declared = tuple(name for name, kind in getattr(located, "types", ()) if kind != "text")
        self._spill = claim_folder()
        try:
            if isinstance(located, Files):
                located = _hide_errors(partial(located.copied, self._spill))
            self.faults = dict(getattr(located, "faults", ()))
            self._connection: Any = _hide_errors(lambda: self._open(located, threads, memory))
        except BaseException:
            release_folder(self._spill)
            raise
        self._closing = weakref.finalize(self, _close, self._connection, self._spill)
        self.schema: Schema = _hide_errors(lambda: self._view(located))

    def _open(self, located: Files | Frame | None, threads: int | None, memory: str | None) -> Any:
        settings: dict[str, Any] = {
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "disabled_optimizers": _LOOKING,
            "perfect_ht_threshold": _ARRAY_BITS,
            "preserve_insertion_order": False,
            # Without it, what a large query needed is not given back to the operating system.
            "allocator_background_threads": True,
        }
        settings |= {"threads": threads} if threads else {}
        settings |= {"memory_limit": memory} if memory else {}
        connection = duckdb.connect(":memory:", config=settings)
        connection.execute(_QUIET)
        # Copies are packed: less than half the memory, and text becomes quick to group by. In memory that happens when
        # they are complete; those of large files are packed on their way to the folder where this connection spills.
        large = isinstance(located, Files) and located.kind != "duckdb" and located.measure() >= _LARGE
        kept = exp.Literal.string(os.path.join(self._spill, _PACKED)).sql("duckdb")
        connection.execute(f"ATTACH {kept} AS {_COPIES}" if large else f"ATTACH ':memory:' AS {_COPIES} (COMPRESS)")
        connection.execute(f"USE {_COPIES}")
        if isinstance(located, Files):
            if located.kind == "duckdb":
                name = exp.Literal.string(located.paths[0]).sql("duckdb")
                connection.execute(f"ATTACH {name} AS {_ATTACHED} (READ_ONLY)")
            connection.execute("SET allowed_paths = $paths", {"paths": list(located.paths)})
        connection.execute("SET temp_directory = $spill", {"spill": os.path.abspath(self._spill)})
        connection.execute("SET python_enable_replacements = false")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        return connection

    def _view(self, located: Files | Frame | None) -> Schema:
        if self._relation is not None:
            return _make_schema(list(zip(self._relation.columns, map(str, self._relation.types), strict=True)))
        assert located is not None
        arrow = located.table if isinstance(located, Frame) else None
        if isinstance(located, Files) and located.kind == "arrow":
            from pyarrow.dataset import dataset

            arrow = dataset(list(located.paths), format="parquet")
        if arrow is not None:
            self._connection.register(_RAW, arrow)
        origin = located.scan(_ATTACHED) if isinstance(located, Files) and arrow is None else table(_RAW)
        found = self._describe(exp.select("*").from_(origin.copy()).sql("duckdb"))
        types = dict(located.types)
        cells: dict[str, exp.Expr] = {}
        for name, kind in found:
            cells[name] = column(name)
            if name in types:
                cells[name] = located.dialect.cast(cells[name], types[name])
            elif _VIEWED.fullmatch(kind):
                plain = "TIMESTAMP" if kind.startswith("TIMESTAMP") else "VARCHAR"
                cells[name] = exp.TryCast(this=cells[name], to=exp.DataType.build(plain))
        self._origin, self._cells = origin, cells
        query = _select_as(cells).from_(origin)
        self._connection.execute(exp.Create(this=table(SOURCE), kind="VIEW", expression=query).sql("duckdb"))
        unusable = [Column(name, base.OTHER) for name in getattr(located, "unusable", ())]
        named = not isinstance(located, Files) or located.kind != "csv" or len(types) > 0
        as_found = all(isinstance(cell, exp.Column) for cell in cells.values())
        viewed = _make_schema(found) if as_found else self._columns(table(SOURCE))
        return Schema([*viewed.values(), *unusable], named)

    def _describe(self, query: str) -> list[tuple[str, str]]:
        # A relation has its columns in order. DESCRIBE has them as rows, which in this connection come in any order
        # once they are more than a chunk of 2,048; cells are stored by place, and would be those of other columns.
        found = self._connection.sql(query)
        return list(zip(found.columns, map(str, found.types), strict=True))

    def _columns(self, found: exp.Table) -> Schema:
        return _make_schema(self._describe(exp.select("*").from_(found).sql("duckdb")))

    def check_ready(self) -> None:
        """Always: questions go to copies on a connection of our own, also if the user has closed theirs."""

    def stage(self, name: str) -> Schema:
        """As every engine. What a user's relation gives passes through Arrow into the private connection."""
        asked = {name: kind for name, kind in self.schema.items() if kind.family != base.OTHER}
        found = {name: column(name) if self._relation is not None else self._cells[name] for name in asked}
        cells = {name: in_years(found[name], kind) for name, kind in asked.items()}
        for each in self.declared:
            written, read = (exp.Is(this=tree.copy(), expression=exp.null()) for tree in (column(each), cells[each]))
            cells[base.UNREAD + each] = join_bits([bit(exp.Not(this=written)), bit(read)])
        if self._relation is None:
            query = _select_as(cells).from_(self._origin)
            schema = self.keep(name, query)
        else:
            self.add(_HANDED_OVER, self.run(_select_as(cells).from_(table(SOURCE))))
            schema = self.keep(name, exp.select("*").from_(table(_HANDED_OVER)))
            self.drop(_HANDED_OVER)
        self._packing = _hide_errors(lambda: self._look(table(name).sql("duckdb")))
        return schema

    def run(self, tree: exp.Query) -> pa.Table:
        return _hide_errors(lambda: self._ask(tree).to_arrow_table())

    def fetch(self, tree: exp.Query) -> dict[str, NDArray[Any]]:
        return _hide_errors(lambda: _in_numpy(self._ask(tree)))

    def _ask(self, tree: exp.Query) -> Any:
        theirs = self._relation is not None and _reads_source(tree)
        ask = partial(self._relation.query, SOURCE) if theirs else self._connection.sql
        return ask(tree.sql("duckdb", copy=False))

    def keep(self, name: str, tree: exp.Query) -> Schema:
        return _hide_errors(lambda: self._store(table(name), tree))

    def define(self, name: str, tree: exp.Query) -> None:
        view = exp.Create(this=table(name), kind="VIEW", expression=tree)
        _hide_errors(lambda: self._connection.execute(view.sql("duckdb")))
        self._kept[name] = "VIEW"

    def write(self, tree: exp.Query, folder: str) -> None:
        """As every engine: a database file, made in the only folder that a locked connection may write to."""
        made = os.path.join(self._spill, _WRITTEN)

        def work() -> None:
            self._connection.execute(f"ATTACH {exp.Literal.string(made).sql('duckdb')} AS {_FILE}")
            try:
                self._store(_in_file(_ROWS), tree)
            finally:
                self._connection.execute(f"DETACH {_FILE}")
            shutil.move(made, os.path.join(folder, _WRITTEN))

        _hide_errors(work)

    @classmethod
    def reopen(cls, folder: str, **options: Any) -> DuckDB:
        return cls(Files("duckdb", (os.path.join(folder, _WRITTEN),), table=_ROWS), **options)

    def add(self, name: str, added: pa.Table | Mapping[str, NDArray[np.integer]]) -> Schema:
        _hide_errors(lambda: self._connection.register(name, added))
        return _hide_errors(lambda: self._columns(table(name)))

    def drop(self, name: str) -> None:
        if name in self._kept:
            kind = self._kept.pop(name)
            _hide_errors(lambda: self._connection.execute(f"DROP {kind} {table(name).sql('duckdb')}"))
        else:
            _hide_errors(lambda: self._connection.unregister(name))

    def close(self) -> None:
        self._closing()

    def _look(self, name: str) -> dict[str, str]:
        """Floats that hardly repeat stay as they are: unpacking them would take longer than adding them.

        A look at a few rows, which decides on speed alone.
        """
        kinds = self._describe(f"FROM {name}")
        floats = [column(each).sql("duckdb") for each, kind in kinds if kind in ("FLOAT", "DOUBLE")]
        distinct = "".join(f", approx_count_distinct({each})" for each in floats)
        asked = f"SELECT COUNT(*){distinct} FROM (SELECT * FROM {name} LIMIT {_A_FEW})"
        ((rows, *counts),) = self._connection.execute(asked).fetchall() if floats else [(0,)]
        pairs = zip(floats, counts, strict=True)
        return {each: "USING COMPRESSION uncompressed" for each, count in pairs if count > rows / 2}

    def _store(self, new: exp.Table, tree: exp.Query) -> Schema:
        # Writing a query out and binding it takes longer than a small table's rows do: both are done once.
        query, name = tree.sql("duckdb"), new.sql("duckdb")
        found = self._describe(query)
        columns = [(column(each).sql("duckdb", copy=False), kind) for each, kind in found]
        written = ", ".join(f"{each} {kind} {self._packing.get(each, '')}" for each, kind in columns)
        self._connection.execute(f"CREATE TABLE {name} ({written})")
        self._connection.execute(f"INSERT INTO {name} {query}")
        self._connection.execute(f"CHECKPOINT {new.db or _COPIES}")
        if not new.db:
            self._kept[new.name] = "TABLE"
        return _make_schema(found)


def _in_numpy(found: Any) -> dict[str, NDArray[Any]]:
    kinds = list(map(str, found.types))
    if not _IN_NUMPY.issuperset(kinds):
        return base.as_columns(found.to_arrow_table())
    fetched = zip(found.fetchnumpy().items(), kinds, strict=True)
    return {name: array.astype("M8[D]") if kind == "DATE" else array for (name, array), kind in fetched}


def _in_file(name: str) -> exp.Table:
    return exp.Table(this=exp.to_identifier(name, quoted=True), db=exp.to_identifier(_FILE))


def _select_as(cells: Mapping[str, exp.Expr]) -> exp.Select:
    return exp.select(*(exp.alias_(tree, name, quoted=True) for name, tree in cells.items()))


def _reads_source(tree: exp.Query) -> bool:
    return any(found.name == SOURCE for found in tree.find_all(exp.Table))


def _make_schema(found: list[tuple[str, str]]) -> Schema:
    # The members of an enumeration, and the fields of a structure, stay out of messages.
    other = {kind: "list" if kind.endswith("]") else kind.partition("(")[0] for _, kind in found}
    return Schema([make_column(name, kind, _PLAIN, other[kind]) for name, kind in found])


def _hide_errors(work: Callable[[], _T]) -> _T:
    return base.hide_engine_errors(work, "DuckDB")


def _close(connection: Any, spill: str) -> None:
    connection.close()
    release_folder(spill)
