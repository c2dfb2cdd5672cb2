"""Tables in SQLite or PostgreSQL, for the ledger and for aggregators.

Start with `base`: what a database does (`Database`), and how owners of tables differ (`Owner`). `sqlite` and `postgres`
are the back ends. Importing this package loads neither SQLAlchemy nor a driver.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from epsilons.storage.base import Database, Owner

_SQLITE, _POSTGRES = "sqlite:///", ("postgresql://", "postgres://", "postgresql+psycopg://")


def sqlite_path(url: object) -> str | None:
    """The file that an address of SQLite names, or None."""
    if isinstance(url, str) and url.startswith(_SQLITE) and len(url) > len(_SQLITE):
        return url.removeprefix(_SQLITE)
    return None


def show_address(url: str) -> str:
    """An address that was opened, for people: without names, passwords and options of the connection."""
    if sqlite_path(url) is not None:
        return url
    from sqlalchemy.engine import URL, make_url

    parsed = make_url(url)
    shown = {name: value for name, value in parsed.query.items() if name == "schema"}
    return str(URL.create("postgresql", host=parsed.host, port=parsed.port, database=parsed.database, query=shown))


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
