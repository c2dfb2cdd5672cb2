"""The journal: one line for every change, each chained to the one before by its hash. Lines are only ever added.

    hash_n = SHA-256(hash_{n-1}, n, kind, time, body)

Whoever edits, drops or swaps a line breaks the chain from there on.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, insert, select

from epsilons.ledger import tables

START = "0" * 64

_NEWEST = select(tables.journal.c.seq, tables.journal.c.hash).order_by(tables.journal.c.seq.desc()).limit(1)
_ADD = insert(tables.journal)


def canonical(body: Mapping[str, Any]) -> str:
    """One text for one content."""
    return json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)


def chained(previous: str, seq: int, kind: str, at: str, body: str) -> str:
    """The hash of a line; the parts are written as JSON, so that no two lines read the same."""
    return hashlib.sha256(json.dumps([previous, seq, kind, at, body]).encode()).hexdigest()


def head(connection: Connection) -> tuple[int, str]:
    """The last line's number and hash."""
    row = connection.execute(_NEWEST).one_or_none()
    return (0, START) if row is None else (row.seq, row.hash)


def follow(connection: Connection, seq: int, digest: str) -> tuple[int, str] | None:
    """The last line's number and hash, reached link by link from a line that is known; None if a link is missing."""
    later = select(tables.journal).where(tables.journal.c.seq > seq).order_by(tables.journal.c.seq)
    for line in connection.execute(later):
        if line.seq != seq + 1 or chained(digest, line.seq, line.kind, line.at, line.body) != line.hash:
            return None
        seq, digest = line.seq, line.hash
    return seq, digest


def append(connection: Connection, kind: str, at: str, body: Mapping[str, Any]) -> tuple[int, str]:
    """Add a line. The primary key keeps two writers from adding the same one."""
    seq, previous = head(connection)
    words = canonical(body)
    line = {"seq": seq + 1, "kind": kind, "at": at, "body": words}
    line["hash"] = chained(previous, seq + 1, kind, at, words)
    connection.execute(_ADD, line)
    return seq + 1, str(line["hash"])
