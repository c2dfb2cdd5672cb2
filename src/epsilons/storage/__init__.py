"""Tables in SQLite or PostgreSQL, for the ledger and for aggregators.

Start with `base`: what a database does (`Database`), what is said to it in a transaction (`Connection`), and how owners
of tables differ (`Owner`). `sqlite` and `postgres` are the back ends. Importing this package loads no driver.
"""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, unquote

if TYPE_CHECKING:
    from epsilons.storage.base import Database, Owner

_SQLITE, _POSTGRES = "sqlite:///", ("postgresql://", "postgres://", "postgresql+psycopg://")
_PARTS = re.compile(
    r"[\w+]+://(?:(?P<user>[^:/]*)(?::(?P<password>[^@]*))?@)?(?:\[(?P<six>[^/?]+)\]|(?P<host>[^/:?]+))?"
    r"(?::0*(?P<port>[1-9]\d*))?(?:/(?P<dbname>[^?]*))?(?:\?(?P<options>.*))?"
)


def split_address(url: str) -> tuple[dict[str, str], dict[str, str]] | None:
    """What an address of PostgreSQL names, and its options (several of one name: with commas); None if it is none."""
    found = _PARTS.fullmatch(url)
    if found is None:
        return None
    part = found.groupdict("")
    plain = {name: unquote(part[name]) for name in ("user", "password", "dbname")}
    options = {name: ",".join(values) for name, values in parse_qs(part["options"]).items()}
    return {**plain, "host": part["host"] or part["six"], "port": part["port"]}, options


def sqlite_path(url: object) -> str | None:
    """The file that an address of SQLite names, or None."""
    if isinstance(url, str) and url.startswith(_SQLITE) and len(url) > len(_SQLITE):
        return url.removeprefix(_SQLITE)
    return None


def is_loopback(host: str) -> bool:
    """Whether what is sent to this host never leaves the machine."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def show_address(url: str) -> str:
    """An address that was opened, for people: without names, passwords and options of the connection."""
    address = None if sqlite_path(url) else split_address(url)
    if address is None:
        return url
    named, options = address
    host = f"[{named['host']}]" if ":" in named["host"] else named["host"]
    port = f":{named['port']}" if named["port"] else ""
    schema = f"?schema={options['schema']}" if "schema" in options else ""
    return f"postgresql://{host}{port}/{named['dbname']}{schema}"


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
