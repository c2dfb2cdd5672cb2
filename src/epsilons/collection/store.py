"""Where an aggregator keeps its shares, sealed: SQLite or PostgreSQL. A transaction that has ended survives a crash.

One writer at a time, also among several processes. Names and types of the tables are the format on disk: `STORE_FORMAT`
grows with any change to them.
"""

from functools import partial

from epsilons.collection.reports import UnavailableError
from epsilons.ledger.tables import JOURNAL
from epsilons.storage import open_database
from epsilons.storage.stores import own_store

STORE_FORMAT = 3

# `round` of a collection is the one that takes reports; beyond the last one the collection is closed. `closings` has
# what each closing round drew: the challenge of its proofs is made of it, so owners could not know it before.
# `share` is sealed by a key that is not here, and erased once the batch is added up; the id stays, so that nothing can
# be sent again. A batch has one row, and so at most one challenge and one sum, ever. `journal` has a line for every
# change (`chain`); `witness` is who keeps its head, as JSON.
TABLES = (
    """
CREATE TABLE identity (
    one INTEGER NOT NULL CHECK (one = 1), format INTEGER NOT NULL, "key" TEXT NOT NULL, witness TEXT,
    PRIMARY KEY (one)
)""",
    JOURNAL,
    """
CREATE TABLE collections (
    number INTEGER NOT NULL, id BLOB NOT NULL, terms TEXT NOT NULL, round INTEGER NOT NULL,
    PRIMARY KEY (number),
    UNIQUE (id)
)""",
    """
CREATE TABLE closings (
    collection INTEGER NOT NULL, round INTEGER NOT NULL, nonce BLOB NOT NULL,
    PRIMARY KEY (collection, round)
)""",
    """
CREATE TABLE reports (
    collection INTEGER NOT NULL, round INTEGER NOT NULL, id BLOB NOT NULL, level INTEGER NOT NULL,
    digest BLOB NOT NULL, share BLOB,
    PRIMARY KEY (collection, round, id)
)""",
    "CREATE INDEX reports_by_level ON reports (collection, round, level)",
    """
CREATE TABLE batches (
    collection INTEGER NOT NULL, level INTEGER NOT NULL, challenge BLOB NOT NULL, asked BLOB NOT NULL,
    accepted BLOB, sums BLOB,
    PRIMARY KEY (collection, level),
    CONSTRAINT sums_belong_to_a_batch CHECK ((accepted IS NULL) = (sums IS NULL))
)""",
)


_REFUSED = partial(
    UnavailableError,
    "The aggregator's database refused or could not be reached; nothing was changed.",
    rule="A change is made as a whole or not at all.",
    suggest="the same request again",
)
OWNER = own_store(
    "aggregator",
    "identity",
    TABLES,
    _REFUSED,
    example="sqlite:///one.store",
    survives="A report that was acknowledged must survive a crash of the server.",
    stays="What is stored and erased there is what was said, and nothing else.",
    # Erased shares are overwritten, not just forgotten.
    pragmas=("secure_delete = ON",),
)


class Store:
    """An aggregator's tables, by address: "sqlite:///one.store" or "postgresql://.../database?schema=one".

    `write` is one durable transaction with no other writer beside it; an exception takes all of it back. `read` is one
    consistent view. `forget` overwrites what was erased where it may remain, in SQLite's log; PostgreSQL keeps it until
    its vacuum. `close` lets go of the connections.
    """

    def __init__(self, url: str) -> None:
        self.database = open_database(url, OWNER)
        self.write, self.read = self.database.write, self.database.read
        self.forget, self.close = self.database.forget, self.database.close
        try:
            with self.write() as connection:
                if not connection.has_table(OWNER.mark):
                    self.database.make_tables(connection, TABLES)
        except BaseException:
            self.close()
            raise
