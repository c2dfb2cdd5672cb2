"""A ledger's rows taken to another database, whatever kind either is: its tables are the same in all of them."""

import os
from collections.abc import Sequence
from contextlib import closing

from epsilons.errors import LedgerError
from epsilons.ledger import tables
from epsilons.ledger.opening import OWNER
from epsilons.storage import open_database
from epsilons.storage.base import Connection, Database


def copy_to_file(database: Database, path: str) -> None:
    """All of a ledger, as it stands, in a new file of its owner's alone."""
    folder = os.path.dirname(os.path.abspath(path))
    if os.path.lexists(path):
        raise LedgerError(
            f"{path} is there already.", rule="A copy takes no other file's place.", suggest="another name"
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        raise LedgerError(f"Nothing can be written to {folder}.", suggest="a folder that is there, and yours")
    if database.folder is not None or not database.lasting:
        database.copy(path)
        return
    try:
        with (
            closing(open_database(f"sqlite:///{path}", OWNER)) as there,
            database.read() as reading,
            there.write() as writing,
        ):
            there.make_tables(writing, tables.ALL)
            copy_rows(reading, writing)
    except BaseException:
        if os.path.lexists(path):
            os.unlink(path)
        raise


def copy_rows(reading: Connection, writing: Connection) -> None:
    """Every row of every table, into tables that are there and empty."""
    columns = {table: _columns(writing, table) for table in OWNER.tables}
    if any(set(names) != set(_columns(reading, table)) for table, names in columns.items()):
        rule = f"Both are of format {tables.FORMAT}, which opening a ledger brings it to."
        raise LedgerError("These ledgers are of different formats.", rule=rule, suggest="open the older one first")
    for table in OWNER.tables:
        names = ", ".join(f'"{name}"' for name in columns[table])  # a table that grew has them in another order
        with closing(reading.stream(f"SELECT {names} FROM {table}")) as rows:
            writing.insert_many(table, map(tuple, rows))


def _columns(connection: Connection, table: str) -> Sequence[str]:
    return [column[0] for column in connection.execute(f"SELECT * FROM {table} LIMIT 0").description]
