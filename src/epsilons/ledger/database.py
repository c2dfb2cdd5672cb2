"""What a database must do for the ledger; a back end is one small file that does it.

`write` runs one transaction alone: no other writer, in this process or another, is between its first read and its
commit, and once it has ended the change survives a crash. `read` sees one consistent state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

from sqlalchemy import Connection, Table
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from epsilons.errors import LedgerError


class Database(Protocol):
    """Transactions, and two bulk operations that every engine does fast in its own way."""

    #: Where the tables stand inside the database, if it has such places.
    schema: str | None
    #: Whether the ledger outlives this process: then the head of its chain is kept outside.
    lasting: bool

    def write(self) -> AbstractContextManager[Connection]:
        """One durable transaction with no other writer beside it; an exception takes all of it back."""

    def read(self) -> AbstractContextManager[Connection]:
        """One consistent view."""

    def make_room(self, connection: Connection) -> None:
        """Get ready for the tables of a new ledger."""

    def insert_many(self, connection: Connection, table: Table, rows: Iterable[tuple[Any, ...]]) -> None:
        """Rows with a value for every column, in the table's order."""

    def assign_cohorts(self, connection: Connection, pairs: Iterable[tuple[int, bytes]]) -> None:
        """Let every person (the second) stand in a cohort (the first)."""

    def close(self) -> None:
        """Let go of the connections."""


@contextmanager
def one_voice() -> Iterator[None]:
    """No message of an engine reaches anyone: it may quote what was stored."""
    try:
        yield
    except SQLAlchemyError as error:
        if isinstance(error, DBAPIError) and error.connection_invalidated:
            raise LedgerError(
                "The connection to the ledger's database broke; the last change was made as a whole or not at all.",
                rule="What was charged stays charged.",
                hint="ask again: a question that was charged resumes at no further charge",
            ) from None
        raise _refused() from None


@contextmanager
def past_the_toolkit(connection: Connection, cursor: Any = None) -> Iterator[Any]:
    """A cursor of the driver, for millions of rows: the toolkit's own rows take three times as long. Same voice."""
    driver: Any = connection.dialect.loaded_dbapi
    cursor = connection.connection.cursor() if cursor is None else cursor
    try:
        yield cursor
    except driver.Error:
        raise _refused() from None
    finally:
        cursor.close()


def _refused() -> LedgerError:
    return LedgerError(
        "The ledger's database refused or could not be reached; nothing was changed.",
        rule="A change is made as a whole or not at all.",
        hint="check that the database exists, is writable and is not held by a long transaction",
    )
