"""Tables in SQLite or PostgreSQL, for the ledger and for aggregators.

Start with `base`: what a database does (`Database`), what is said to it in a transaction (`Connection`), and how owners
of tables differ (`Owner`). `sqlite` and `postgres` are the back ends. Importing this package loads no driver.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qsl, unquote

if TYPE_CHECKING:
    from epsilons.storage.base import Database, Owner

_SQLITE, _POSTGRES = "sqlite:///", ("postgresql://", "postgres://", "postgresql+psycopg://")
_PARTS = re.compile(
    r"[\w+]+://(?:(?P<user>[^:/]*)(?::(?P<password>[^@]*))?@)?(?:\[(?P<six>[^/?]+)\]|(?P<host>[^/:?]+))?"
    r"(?::(?P<port>\d*))?(?:/(?P<database>[^?]*))?(?:\?(?P<options>.*))?"
)


class Address(NamedTuple):
    """An address of PostgreSQL in parts, those that it does not name empty; `options` stand after the question mark."""

    user: str
    password: str
    host: str
    port: str
    database: str
    options: dict[str, str]


def split_address(url: str) -> Address | None:
    """The parts of an address of PostgreSQL; None if it is none, or if it says something twice."""
    found = _PARTS.fullmatch(url)
    if found is None:
        return None
    part = found.groupdict("")
    user, password, database = (unquote(part[name]) for name in ("user", "password", "database"))
    pairs = parse_qsl(part["options"])
    address = Address(user, password, part["host"] or part["six"], part["port"], database, dict(pairs))
    return address if len(address.options) == len(pairs) else None


def sqlite_path(url: object) -> str | None:
    """The file that an address of SQLite names, or None."""
    if isinstance(url, str) and url.startswith(_SQLITE) and len(url) > len(_SQLITE):
        return url.removeprefix(_SQLITE)
    return None


def show_address(url: str) -> str:
    """An address that was opened, for people: without names, passwords and options of the connection."""
    address = None if sqlite_path(url) else split_address(url)
    if address is None:
        return url
    host = f"[{address.host}]" if ":" in address.host else address.host
    port = f":{address.port}" if address.port else ""
    schema = f"?schema={address.options['schema']}" if "schema" in address.options else ""
    return f"postgresql://{host}{port}/{address.database}{schema}"


def open_database(url: str, owner: Owner) -> Database:
    """The database at "sqlite:///file" or "postgresql://host/database?schema=name"."""
    if isinstance(url, str) and url.startswith(_POSTGRES):
        from epsilons.storage.postgres import Postgres

        return Postgres(url, owner)
    path = sqlite_path(url)
    if path is None:
        raise owner.no_address()
    from epsilons.storage.sqlite import Sqlite

    return Sqlite(path, owner)
