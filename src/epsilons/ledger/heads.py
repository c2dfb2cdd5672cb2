"""Where a witness keeps heads: one table to which rows are only ever added, in a database of its own.

A row is a line of somebody's journal: its number, its hash, and what anybody was charged at most up to there. The head
of a ledger is its newest row. A new row follows from the head that its sender knew: whoever is late is told the head as
it stands, and nothing is added. Lines go forward only. The one exception is a loss that was accepted and written down
in the journal: a row that says so, for good. Nothing of a journal comes here, so who adds a row is not believed that it
follows: clients look whether their journal says so (`witness.Outside`).

`Heads` needs no more than INSERT and SELECT, so that in PostgreSQL nobody who charges need be able to change a row.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from epsilons.ledger.journal import LARGEST_SUM
from epsilons.storage import open_database
from epsilons.storage.base import Connection
from epsilons.storage.stores import UnusableStoreError, own_store

# `key` is by which the senders of a ledger are known: what is not signed by it is not taken.
TABLES = (
    """
CREATE TABLE identity (
    one INTEGER NOT NULL CHECK (one = 1), format INTEGER NOT NULL, "key" TEXT NOT NULL,
    PRIMARY KEY (one)
)""",
    """
CREATE TABLE heads (
    ledger TEXT NOT NULL, number INTEGER NOT NULL, seq INTEGER NOT NULL CHECK (seq > 0), hash TEXT NOT NULL,
    most INTEGER NOT NULL CHECK (most >= 0), loss INTEGER NOT NULL, "key" TEXT NOT NULL,
    PRIMARY KEY (ledger, number)
)""",
    "CREATE INDEX heads_by_line ON heads (ledger, seq)",
)
HEADS_FORMAT = 1
#: So many lines are taken at once.
MOST_LINES = 1_000

OWNER = own_store(
    "witness",
    "heads",
    TABLES,
    partial(
        UnusableStoreError,
        "The witness's database refused or could not be reached; nothing was changed.",
        rule="No data is read before the head is safe; what was charged stays charged.",
        suggest="the same request again",
    ),
    example="sqlite:///witness.store",
    survives="A head that was acknowledged must survive a crash of the server.",
    stays="Heads are only ever added.",
)


class Line(NamedTuple):
    """A line of a journal, as a witness knows it."""

    seq: int
    digest: str
    most: int


class Row(NamedTuple):
    """A line as it stands in the table: by its number there, and whether it says that lines before it were lost."""

    number: int
    seq: int
    digest: str
    most: int
    loss: int

    @property
    def line(self) -> Line:
        return Line(self.seq, self.digest, self.most)


class Heads:
    """The heads of many ledgers."""

    def __init__(self, url: str) -> None:
        self.database = open_database(url, OWNER)
        try:
            with self.database.read() as connection:
                there = connection.has_table(OWNER.mark)
            if not there:
                with self.database.write() as connection:
                    if not connection.has_table(OWNER.mark):
                        self.database.make_tables(connection, TABLES)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self.database.close()

    def read(self, ledger: str, asked: tuple[int, str] | None = None) -> tuple[Row | None, Row | None]:
        """The head of a ledger, and its first row of a line, by number and hash; None where there is none."""
        with self.database.read() as connection:
            if asked is None:
                return _newest(connection, ledger), None
            first = "AND seq = :seq AND hash = :hash ORDER BY number LIMIT 1"
            line = _find(connection, ledger, first, seq=asked[0], hash=asked[1])
            return _newest(connection, ledger), next(iter(line), None)

    def list_before(self, ledger: str, number: int) -> list[Row]:
        """The rows before one, newest first: so many at once."""
        with self.database.read() as connection:
            earlier = f"AND number < :number ORDER BY number DESC LIMIT {MOST_LINES}"
            return _find(connection, ledger, earlier, number=number)

    def add(
        self, ledger: str, after: Line | None, lines: Sequence[Line], loss: bool = False, key: str = ""
    ) -> Line | None:
        """The head of a ledger, which is the last of these lines if they follow from its head, and were signed."""
        with self.database.write() as connection:
            newest = _newest(connection, ledger)
            head = None if newest is None else newest.line
            if head != after or not _go_forward(after, lines, loss):
                return head
            by = 'SELECT "key" FROM heads WHERE ledger = :ledger ORDER BY number DESC LIMIT 1'
            if newest is not None and connection.execute(by, {"ledger": ledger}).fetchone()[0] != key:
                return head
            for place, line in enumerate(lines):
                number = place + 1 + (0 if newest is None else newest.number)
                row = {"ledger": ledger, "number": number, **line._asdict(), "loss": int(loss and place == 0)}
                values = ":ledger, :number, :seq, :digest, :most, :loss, :key"
                connection.execute(f"INSERT INTO heads VALUES ({values})", {**row, "key": key})
            return lines[-1]


def _find(connection: Connection, ledger: str, which: str, **values: Any) -> list[Row]:
    query = f"SELECT number, seq, hash, most, loss FROM heads WHERE ledger = :ledger {which}"
    return [Row(*row) for row in connection.execute(query, {"ledger": ledger, **values})]


def _newest(connection: Connection, ledger: str) -> Row | None:
    return next(iter(_find(connection, ledger, "ORDER BY number DESC LIMIT 1")), None)


def _go_forward(after: Line | None, lines: Sequence[Line], loss: bool) -> bool:
    """Whether every line comes later than the one before; after an accepted loss the first may be an earlier one."""
    before = after
    for number, line in enumerate(lines):
        if before is not None and not (line.seq > before.seq or (loss and number == 0)):
            return False
        if not (before is None or before.most <= line.most) or line.most > LARGEST_SUM:
            return False
        before = line
    return 0 < len(lines) <= MOST_LINES
