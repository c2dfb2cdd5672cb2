"""What a gateway remembers, in SQLite or PostgreSQL: hashes of keys, links and cookies, and replies to requests."""

from functools import partial

from epsilons.storage import open_database
from epsilons.storage.base import Database
from epsilons.storage.stores import UnusableStoreError, own_store

TABLES = (
    """
CREATE TABLE keys (
    number INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    digest BLOB NOT NULL UNIQUE,
    dataset TEXT,
    person TEXT,
    made TEXT NOT NULL,
    expires TEXT,
    revoked TEXT
)""",
    """
CREATE TABLE sessions (
    digest BLOB PRIMARY KEY,
    number INTEGER NOT NULL,
    expires TEXT NOT NULL
)""",
    """
CREATE TABLE signing (
    secret BLOB NOT NULL
)""",
    """
CREATE TABLE requests (
    name TEXT NOT NULL,
    key TEXT NOT NULL,
    body BLOB NOT NULL,
    at TEXT NOT NULL,
    server TEXT NOT NULL,
    job TEXT NOT NULL,
    began INTEGER,
    slot INTEGER,
    status INTEGER,
    reply BLOB,
    PRIMARY KEY (name, key)
)""",
    "CREATE INDEX requests_by_time ON requests (at)",
    "CREATE INDEX requests_by_job ON requests (job)",
)
_REFUSED = partial(
    UnusableStoreError,
    "The gateway's store refused or could not be reached; nothing was changed.",
    rule="A change is made as a whole or not at all.",
    suggest="the same request again",
)
OWNER = own_store(
    "gateway",
    "keys",
    TABLES,
    _REFUSED,
    example='store = "sqlite:///gateway.store"',
    survives="A key that was revoked must stay so after a crash of the server.",
    stays="Who may do what is what was said, and nothing else.",
)


def open_store(url: str) -> Database:
    """The store at an address, with its tables."""
    store = open_database(url, OWNER)
    try:
        with store.write() as connection:
            if not connection.has_table(OWNER.mark):
                store.make_tables(connection, TABLES)
    except BaseException:
        store.close()
        raise
    return store
