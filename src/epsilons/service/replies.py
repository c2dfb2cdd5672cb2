"""Requests that may be repeated: the same Idempotency-Key and body get the same bytes, and are charged once.

A request is noted before it is worked on, and its reply is kept when it leaves. What the ledger has an answer to needs
no note: it is the same however often it is asked, and nobody pays. A request that a worker died over is taken up again
by whoever repeats it: the ledger resumes what was charged, and knows also fresh questions by their request.

A request is a job as well, which tells whoever sent it how far it is. Whether its worker lives is known by a lock that
the worker holds, on a file in a folder that all workers of a gateway share.
"""

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from epsilons.noise import system
from epsilons.service.clock import lasts
from epsilons.service.serving import Reply, problem
from epsilons.storage.base import Connection, Database
from epsilons.storage.files import open_own

#: How long a reply is kept. The answer itself is kept by the ledger, for good.
_KEPT = timedelta(days=7)
_ROW = "name = :name AND key = :key"
_AGAIN = "The same request again goes on from there."


@dataclass(frozen=True)
class Noted:
    """A request: who sent it under which key, and what."""

    name: str
    key: str
    body: bytes

    @property
    def row(self) -> dict[str, Any]:
        return {"name": self.name, "key": self.key, "body": hashlib.sha256(self.body).digest()}


def name_job(name: str, key: str) -> str:
    """A request as a job."""
    return hashlib.sha256(json.dumps([name, key]).encode()).hexdigest()[:32]


class Replies:
    """What was replied to whom, by a gateway's store; `place` is the folder that its workers share."""

    def __init__(self, store: Database, place: Path) -> None:
        self._store, self._place = store, place
        #: This worker: what one that is gone had begun, nobody works on.
        self._server = system().bytes(16).hex()
        #: What it works on, by name and key.
        self._working: set[tuple[str, str]] = set()
        self._held = open_own(place / f"worker {self._server}", os.O_RDWR | os.O_CREAT)
        fcntl.flock(self._held, fcntl.LOCK_EX)

    def look(self, noted: Noted) -> Reply | None:
        """The reply to a request that was noted, or why there is none; None: it is unknown, or its worker is gone."""
        with self._store.read() as connection:
            return self._look(connection, noted.row)

    def begin(self, noted: Noted) -> Reply | None:
        """The same, and note it; None: the request is the caller's to work on, and to end."""
        now = datetime.now(UTC)
        row = {**noted.row, "at": _write(now), "server": self._server, "job": name_job(noted.name, noted.key)}
        with self._store.write() as connection:
            connection.execute("DELETE FROM requests WHERE at < :at", {"at": _write(now - _KEPT)})
            if (found := self._look(connection, row)) is not None:
                return found
            connection.execute(f"DELETE FROM requests WHERE {_ROW}", row)
            columns = ", ".join(row)
            values = ", ".join(f":{name}" for name in row)
            connection.execute(f"INSERT INTO requests ({columns}) VALUES ({values})", row)
            self._working.add((noted.name, noted.key))  # before others can see the row
        return None

    def _look(self, connection: Connection, row: Mapping[str, Any]) -> Reply | None:
        found = connection.execute(f"SELECT * FROM requests WHERE {_ROW}", row).fetchone()
        if found is None:
            return None
        if bytes(found["body"]) != row["body"]:
            return problem(422, "This Idempotency-Key stands for another request.", "Every request has its own.")
        if found["status"] == 200:
            return _read_reply(found)
        if found["status"] is None and self._is_worked_on(found):
            told = "The same request again, after a while, gets its reply."
            return problem(409, "This request is being worked on.", told, headers=(("retry-after", "1"),))
        return None  # its worker is gone, or it was refused and is looked at anew

    def note_slot(self, several: Sequence[Noted], slot: float) -> None:
        """The work on these begins, and takes so many seconds by public facts."""
        times = {"began": time.time_ns() // 1_000_000, "slot": round(slot * 1000)}
        with self._store.write() as connection:
            change = f"UPDATE requests SET began = :began, slot = :slot WHERE {_ROW}"
            connection.executemany(change, [{"name": one.name, "key": one.key, **times} for one in several])

    def end(self, noted: Noted, reply: Reply | None) -> None:
        """Keep the reply. A refusal is kept for the job alone: the request, repeated, is looked at anew."""
        row = {**noted.row, "status": None, "reply": None}
        row |= {} if reply is None else {"status": reply.status, "reply": reply.body}
        try:
            with self._store.write() as connection:
                connection.execute(f"UPDATE requests SET reply = :reply, status = :status WHERE {_ROW}", row)
        finally:
            self._working.discard((noted.name, noted.key))

    def tell_job(self, name: str, job: str) -> Reply:
        """How far a request of this name is; its reply, once that may leave."""
        with self._store.read() as connection:
            asked = "SELECT * FROM requests WHERE job = :job AND name = :name"
            found = connection.execute(asked, {"job": job, "name": name}).fetchone()
        if found is None:
            return problem(404, "There is no such job.", "It was another name's, or is more than a week old.")
        if found["status"] is not None:
            return _read_reply(found)
        if not self._is_worked_on(found):
            told = f"Its worker was stopped. What was charged stands, and is not charged again. {_AGAIN}"
            return problem(503, "This question was interrupted.", told, state="interrupted")
        return _tell_progress(found, job)

    def _is_worked_on(self, found: Mapping[str, Any]) -> bool:
        """By this worker, or by one that is alive."""
        if found["server"] == self._server:
            return (found["name"], found["key"]) in self._working
        try:
            handle = open_own(self._place / f"worker {found['server']}", os.O_RDWR)
        except OSError:
            return False
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return False
        except BlockingIOError:
            return True
        finally:
            os.close(handle)

    def close(self) -> None:
        os.close(self._held)


def _tell_progress(found: Any, job: str) -> Reply:
    """By the clock alone: a slot follows from public facts, and says nothing of how far the work itself is."""
    now = time.time_ns() // 1_000_000
    told: dict[str, Any] = {"state": "waiting", "seconds": None, "of": None}
    if found["began"] is not None:
        passed = max(now - found["began"], 0)
        told = {"state": "working", "seconds": passed / 1000, "of": lasts(found["slot"], passed) / 1000}
    place = f"/v1/jobs/{job}"
    headers = (("location", place), ("retry-after", "1"))
    return Reply(202, json.dumps({**told, "job": place}).encode(), "application/json", headers)


def _read_reply(found: Any) -> Reply:
    kind = "application/json" if found["status"] == 200 else "application/problem+json"
    return Reply(found["status"], bytes(found["reply"]), kind)


def _write(time: datetime) -> str:
    return time.isoformat(timespec="seconds")
