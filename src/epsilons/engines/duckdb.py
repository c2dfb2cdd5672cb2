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
import tempfile
import weakref
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeVar

import duckdb
import pyarrow as pa
from sqlglot import exp

from epsilons.engines.base import (
    DATE,
    NUMBER,
    OTHER,
    SOURCE,
    TEXT,
    TIME,
    TRUTH,
    Column,
    Schema,
    hide_engine_errors,
    register,
)
from epsilons.engines.sources import Files, Frame, locate, typed
from epsilons.engines.trees import column, table
from epsilons.errors import DataError

_T = TypeVar("_T")

_HOMES = ("pyarrow", "pandas", "polars", "duckdb", "_duckdb")
_RAW = "raw"
_ATTACHED = "attached"
_COPIES = "copies"
_AS_IT_IS = " USING COMPRESSION uncompressed"
_A_FEW = 1 << 16
#: Counts per (grid point, level) then stand in an array instead of a hash table: up to 4 million of them.
_ARRAY_BITS = 22

_WHOLE = {
    "TINYINT": (-(2**7), 2**7 - 1),
    "SMALLINT": (-(2**15), 2**15 - 1),
    "INTEGER": (-(2**31), 2**31 - 1),
    "BIGINT": (-(2**63), 2**63 - 1),
    "HUGEINT": (-(2**127), 2**127 - 1),
    "UTINYINT": (0, 2**8 - 1),
    "USMALLINT": (0, 2**16 - 1),
    "UINTEGER": (0, 2**32 - 1),
    "UBIGINT": (0, 2**64 - 1),
}
_FLOATS = ("FLOAT", "DOUBLE")
_PLAIN = {"VARCHAR": TEXT, "BOOLEAN": TRUTH, "DATE": DATE, "TIMESTAMP": TIME}
#: Types that the table's view turns into a plain one. A word that is no member of an enumeration would be an error.
_VIEWED = re.compile(r"(ENUM\(.*\)|UUID|TIMESTAMP_(S|MS|NS))", re.DOTALL)
_DECIMAL = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")


@register
class DuckDB:
    """A table in DuckDB: files, a frame, a table of a database file, or the user's own relation."""

    name: ClassVar[str] = "duckdb"
    options: ClassVar[frozenset[str]] = frozenset({"types", "table", "threads", "memory"})

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
        threads: int | None = None,
        memory: str | None = None,
    ) -> None:
        self._relation: Any = source if isinstance(source, duckdb.DuckDBPyRelation) else None
        located = None if self._relation is not None else locate(source, types, table)
        if self._relation is not None and (types or table):
            raise DataError("A DuckDB relation has its own types.", suggest="leave types= and table= out")
        self._kept: set[str] = set()
        self._files = located.paths if isinstance(located, Files) else ()
        self._spill = tempfile.mkdtemp(prefix="epsilons-")
        self._connection: Any = _hide_errors(lambda: self._open(located, threads, memory))
        self._closing = weakref.finalize(self, _close, self._connection, self._spill)
        self._schema = _hide_errors(lambda: self._view(located))

    # Opening and locking --------------------------------------------------------------------------------------------

    def _open(self, located: Files | Frame | None, threads: int | None, memory: str | None) -> Any:
        settings: dict[str, Any] = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
        settings |= {"perfect_ht_threshold": _ARRAY_BITS, "preserve_insertion_order": False}
        # Without it, what a large query needed is not given back to the operating system.
        settings |= {"allocator_background_threads": True}
        settings |= {"threads": threads} if threads else {}
        settings |= {"memory_limit": memory} if memory else {}
        connection = duckdb.connect(":memory:", config=settings)
        # Copies are packed when they are complete: less than half the memory, and words become quick to group by.
        connection.execute(f"ATTACH ':memory:' AS {_COPIES} (COMPRESS)")
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
            return _schema(list(zip(self._relation.columns, map(str, self._relation.types), strict=True)))
        if isinstance(located, Frame):
            self._connection.register(_RAW, located.table)
            origin: exp.Expr = table(_RAW)
        else:
            assert located is not None
            origin = located.scan(_ATTACHED)
        found = self._describe(exp.select("*").from_(origin.copy()))
        types = dict(located.types)
        columns = []
        for name, kind in found:
            if name in types:
                columns.append(exp.alias_(typed(column(name), types[name]), name, quoted=True))
            elif _VIEWED.fullmatch(kind):
                plain = "TIMESTAMP" if kind.startswith("TIMESTAMP") else "VARCHAR"
                view = exp.TryCast(this=column(name), to=exp.DataType.build(plain))
                columns.append(exp.alias_(view, name, quoted=True))
            else:
                columns.append(column(name))
        query = exp.select(*columns).from_(origin)
        self._connection.execute(exp.Create(this=table(SOURCE), kind="VIEW", expression=query).sql("duckdb"))
        unusable = [Column(name, OTHER) for name in getattr(located, "unusable", ())]
        return Schema([*self._columns(SOURCE).values(), *unusable])

    def _describe(self, query: exp.Query) -> list[tuple[str, str]]:
        rows = self._connection.execute(f"DESCRIBE {query.sql('duckdb')}").fetchall()
        return [(row[0], row[1]) for row in rows]

    def _columns(self, name: str) -> Schema:
        return _schema(self._describe(exp.select("*").from_(table(name))))

    # What every engine does -----------------------------------------------------------------------------------------

    @property
    def schema(self) -> Schema:
        return self._schema

    @property
    def files(self) -> tuple[str, ...]:
        """The files read, by absolute paths; none for frames and relations."""
        return self._files

    @property
    def embedded(self) -> bool:
        return True

    @property
    def joins(self) -> bool:
        """A user's relation lives on its own connection, where nothing of ours is known."""
        return self._relation is None

    def check_ready(self) -> None:
        """Always: questions go to copies on a connection of our own, also if the user has closed theirs."""

    def run(self, tree: exp.Query) -> pa.Table:
        text = tree.sql("duckdb", copy=False)
        return _hide_errors(lambda: self._query(tree, text).to_arrow_table())

    def keep(self, name: str, tree: exp.Query) -> Schema:
        """As every engine. Of a user's relation, what is read passes through Arrow into the private connection."""
        if self._relation is not None and _reads_source(tree):
            return self._keep_relation(name, tree)
        self._store(name, tree.copy())
        return _hide_errors(lambda: self._columns(name))

    def add(self, name: str, table: pa.Table) -> Schema:
        _hide_errors(lambda: self._connection.register(name, table))
        return _hide_errors(lambda: self._columns(name))

    def drop(self, name: str) -> None:
        if name in self._kept:
            self._kept.discard(name)
            _hide_errors(lambda: self._connection.execute(f"DROP TABLE {table(name).sql('duckdb')}"))
        else:
            _hide_errors(lambda: self._connection.unregister(name))

    def close(self) -> None:
        self._closing()

    def _query(self, tree: exp.Query, text: str) -> Any:
        if self._relation is not None and _reads_source(tree):
            return self._relation.query(SOURCE, text)
        return self._connection.sql(text)

    def _store(self, name: str, tree: exp.Query) -> None:
        _hide_errors(lambda: self._pack(table(name).sql("duckdb"), tree))
        self._kept.add(name)

    def _pack(self, name: str, tree: exp.Query) -> None:
        """Floats that hardly repeat stay as they are: unpacking them would take longer than adding them."""
        found, text = self._describe(tree), tree.sql("duckdb")
        rough = self._rough([column(each).sql("duckdb") for each, kind in found if kind in _FLOATS], text)
        columns = [(column(each).sql("duckdb"), kind) for each, kind in found]
        typed_columns = [f"{each} {kind}{_AS_IT_IS if each in rough else ''}" for each, kind in columns]
        self._connection.execute(f"CREATE TABLE {name} ({', '.join(typed_columns)})")
        self._connection.execute(f"INSERT INTO {name} {text}")
        self._connection.execute(f"CHECKPOINT {_COPIES}")

    def _rough(self, floats: list[str], text: str) -> list[str]:
        """Columns in which hardly a value occurs twice, by a look at a few rows; it decides on speed alone."""
        if not floats:
            return []
        distinct = ", ".join(f"approx_count_distinct({each})" for each in floats)
        query = f"SELECT COUNT(*), {distinct} FROM (SELECT * FROM ({text}) LIMIT {_A_FEW})"
        ((rows, *counts),) = self._connection.execute(query).fetchall()
        return [each for each, count in zip(floats, counts, strict=True) if count > rows / 2]

    def _keep_relation(self, name: str, tree: exp.Query) -> Schema:
        """What was read from the user's connection is stored in the private one."""
        rows = self.run(tree)
        _hide_errors(lambda: self._connection.register("handed_over", rows))
        self._store(name, exp.select("*").from_(table("handed_over")))
        _hide_errors(lambda: self._connection.unregister("handed_over"))
        return _hide_errors(lambda: self._columns(name))


def _reads_source(tree: exp.Query) -> bool:
    return any(found.name == SOURCE for found in tree.find_all(exp.Table))


def _schema(found: list[tuple[str, str]]) -> Schema:
    return Schema([_column(name, kind) for name, kind in found])


def _column(name: str, kind: str) -> Column:
    if kind in _WHOLE:
        return Column(name, NUMBER, *_WHOLE[kind])
    if kind in _FLOATS:
        return Column(name, NUMBER, bits=32 if kind == "FLOAT" else 64)
    if match := _DECIMAL.fullmatch(kind):
        precision, scale = int(match[1]), int(match[2])
        most = 10**precision - 1
        return Column(name, NUMBER, -most, most, scale, precision)
    if kind in _PLAIN:
        return Column(name, _PLAIN[kind])
    # The words of an enumeration, and the fields of a structure, stay out of messages.
    return Column(name, OTHER, type="list" if kind.endswith("]") else kind.partition("(")[0])


def _hide_errors(work: Callable[[], _T]) -> _T:
    return hide_engine_errors(work, "DuckDB")


def _close(connection: Any, spill: str) -> None:
    connection.close()
    shutil.rmtree(spill, ignore_errors=True)
