"""Requests that may be repeated: the same Idempotency-Key and body get the same bytes, and are charged once.

A request is noted before it is worked on, and its reply is kept when it leaves. What the ledger has an answer to needs
no note: it is the same however often it is asked, and nobody pays. A request that a server died over is taken up again
by whoever repeats it: the ledger resumes what was charged, and knows also fresh questions by their request.
"""

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from epsilons.noise import system
from epsilons.service.serving import Reply, problem
from epsilons.storage.base import Connection, Database

#: How long a reply is kept. The answer itself is kept by the ledger, for good.
_KEPT = timedelta(days=7)
_ROW = "name = :name AND key = :key"


class Replies:
    """What was replied to whom, by a gateway's store."""

    def __init__(self, store: Database) -> None:
        self._store = store
        #: This run of the server: what another one had begun, it no longer works on.
        self._server = system().bytes(16).hex()

    def look(self, name: str, key: str, body: bytes) -> bytes | Reply | None:
        """The reply to a request that was noted, or why there is none; None: it is unknown, or its server is gone."""
        with self._store.read() as connection:
            return self._look(connection, {"name": name, "key": key, "body": hashlib.sha256(body).digest()})

    def begin(self, name: str, key: str, body: bytes) -> bytes | Reply | None:
        """The same, and note it; None: the request is the caller's to work on, and to end."""
        now = datetime.now(UTC)
        row = {"name": name, "key": key, "body": hashlib.sha256(body).digest(), "at": _write(now)}
        row |= {"server": self._server}
        with self._store.write() as connection:
            connection.execute("DELETE FROM requests WHERE at < :at", {"at": _write(now - _KEPT)})
            if (found := self._look(connection, row)) is not None:
                return found
            connection.execute(f"DELETE FROM requests WHERE {_ROW}", row)
            connection.execute("INSERT INTO requests VALUES (:name, :key, :body, :at, :server, NULL)", row)
        return None

    def _look(self, connection: Connection, row: Mapping[str, Any]) -> bytes | Reply | None:
        found = connection.execute(f"SELECT * FROM requests WHERE {_ROW}", row).fetchone()
        if found is None:
            return None
        if bytes(found["body"]) != row["body"]:
            return problem(422, "This Idempotency-Key stands for another request.", "Every request has its own.")
        if found["reply"] is not None:
            return bytes(found["reply"])
        if found["server"] == self._server:
            told = "The same request again, after a while, gets its reply."
            return problem(409, "This request is being worked on.", told, headers=(("retry-after", "1"),))
        return None

    def end(self, name: str, key: str, reply: bytes | None) -> None:
        """Keep the reply; None forgets the request, which was refused: repeated, it is looked at anew."""
        row: Mapping[str, Any] = {"name": name, "key": key, "reply": reply}
        with self._store.write() as connection:
            if reply is None:
                connection.execute(f"DELETE FROM requests WHERE {_ROW}", row)
            else:
                connection.execute(f"UPDATE requests SET reply = :reply WHERE {_ROW}", row)


def _write(time: datetime) -> str:
    return time.isoformat(timespec="seconds")
