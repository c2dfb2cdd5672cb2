"""Tables of a PostgreSQL server, read by one query as Arrow.

Columns keep the types that the server declares. Those that Arrow has no form for are read as text, and exact numbers of
any length by way of their digits: no conversion can fail on one value and not on another. Days and times beyond the
years 1 to 9999, endless ones too, are null.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from sqlglot import exp

from epsilons.engines.base import DATE, TIME, Column, hide_engine_errors
from epsilons.engines.trees import column, in_years
from epsilons.errors import Argument, DataError

if TYPE_CHECKING:
    import pyarrow as pa

_SCHEMES = ("postgresql://", "postgres://")
_AS_THEY_ARE = {"smallint", "integer", "bigint", "real", "double precision", "boolean", "text", "character varying"}
_MOMENTS = {"date": DATE, "timestamp without time zone": TIME}
_COLUMNS = (
    "SELECT column_name::text, data_type::text FROM information_schema.columns "
    "WHERE table_name = $1 AND table_schema = COALESCE($2, current_schema()) ORDER BY ordinal_position"
)
_T = TypeVar("_T")


def is_address(source: Any) -> bool:
    """Whether a source is a server, which a table is named of."""
    return isinstance(source, str) and source.startswith(_SCHEMES)


@dataclass(frozen=True)
class ServerTable:
    """A table by its server's address and its name, with a schema before a point or without; its columns are known."""

    address: str
    query: str
    #: Columns whose digits are read.
    types: tuple[tuple[str, str], ...]

    def read(self) -> pa.Table:
        """All its rows, as they stand at one moment: by one query."""
        return _connected(self.address, lambda cursor: _fetch(cursor, self.query))


def find_table(address: str, table: Any) -> ServerTable:
    """The table, by what the server says of its columns; no row is read."""
    if not isinstance(table, str) or not table:
        raise DataError("A server has many tables.", suggest=Argument("table", "people"))
    *schema, name = table.split(".", 1)
    given = [name, schema[0] if schema else None]
    listed = _connected(address, lambda cursor: _fetch(cursor, _COLUMNS, given)).to_pylist()
    found = [tuple(row.values()) for row in listed]
    if not found:
        rule = "A table, or a schema and a table with a point between them."
        raise DataError(f"The server has no table {table!r}.", rule=rule, suggest=Argument("table", "public.people"))
    cells = [exp.alias_(_cell(name, kind), name, quoted=True) for name, kind in found]
    origin = exp.Table(
        this=exp.to_identifier(name, quoted=True), db=exp.to_identifier(schema[0], quoted=True) if schema else None
    )
    query = exp.select(*cells).from_(origin).sql("postgres")
    return ServerTable(address, query, tuple((name, "float") for name, kind in found if kind == "numeric"))


def _cell(name: str, kind: str) -> exp.Expr:
    if kind in _MOMENTS:
        return in_years(column(name), Column(name, _MOMENTS[kind]))
    return column(name) if kind in _AS_THEY_ARE else exp.Cast(this=column(name), to=exp.DataType.build("TEXT"))


def _fetch(cursor: Any, query: str, given: Any = None) -> pa.Table:
    cursor.execute(query, given)
    return cursor.fetch_arrow_table()


def _connected(address: str, work: Callable[[Any], _T]) -> _T:
    try:
        from adbc_driver_postgresql import dbapi
    except ImportError:
        raise DataError("Tables of PostgreSQL need a driver.", suggest="pip install 'epsilons[postgres]'") from None

    def asking() -> _T:
        with dbapi.connect(address) as connection, connection.cursor() as cursor:
            return work(cursor)

    return hide_engine_errors(asking, "PostgreSQL")
