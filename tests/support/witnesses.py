"""Witnesses for tests, called directly or as a process that can be killed; and clients that share nothing else."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import pytest

import epsilons.ledger
from epsilons.ledger import signed
from epsilons.ledger.heads import Heads
from epsilons.ledger.kept import LEDGER, Kept
from epsilons.ledger.ledger import Ledger
from epsilons.service.witness import WitnessApp, begin
from support.ledgers import key, nano, person

#: Of a witness that is called directly.
ADDRESS = "http://127.0.0.1:1"
EPSILONS = (sys.executable, "-m", "epsilons")


def call(app: WitnessApp, method: str, path: str, body: bytes = b"") -> tuple[int, dict[str, Any]]:
    """One request to the service, without a socket: its status, and what it says."""
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"content-length", b"%d" % len(body))]
    asyncio.run(app({"type": "http", "method": method, "path": path, "headers": headers}, receive, send))
    return sent[0]["status"], json.loads(sent[1]["body"])


class Direct:
    """Stands in for `signed.Requests`; `apps` has the service of every address."""

    apps: ClassVar[dict[str, WitnessApp]] = {}

    def __init__(self, address: str, kept: Kept = LEDGER) -> None:
        self._address, self._kept = address, kept

    def ask(self, method: str, path: str, document: Any = None) -> Any:
        body = b"" if document is None else json.dumps(document).encode()
        status, found = call(self.apps[self._address], method, path, body)
        if status != 200:
            raise self._kept.wrong(f"The witness at {self._address} refused with status {status}.")
        return found

    def close(self) -> None:
        pass


@contextmanager
def witness_here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WitnessApp]:
    """The service at ADDRESS, called directly, with a store and a key in this folder."""
    store = Heads(f"sqlite:///{folder}/witness.store")
    app = WitnessApp(store, begin(store, folder / "witness.key"))
    monkeypatch.setattr(signed, "Requests", Direct)
    monkeypatch.setattr(Direct, "apps", {ADDRESS: app})
    yield app
    store.close()


@contextmanager
def running(folder: Path, port: int = 0, name: str = "witness") -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """`epsilons witness` as a process: its address, and the process."""
    files = ("--store", f"sqlite:///{name}.store", "--key", f"{name}.key", "--port", str(port))
    command = [*EPSILONS, "witness", *files]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    try:
        address, _ = process.stdout.readline().split()
        yield address, process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


class Clients:
    """A ledger, and clients of it who each keep a head of their own."""

    def __init__(self, address: str, folder: Path, kept: str | None) -> None:
        self.address, self._folder = address, folder
        self._books: list[Ledger] = []
        book = self.open("steward", witness=kept)
        book.settle_terms("absent", 1)
        book.enroll([person("ann"), person("bob")], [nano("1"), None])

    def open(self, who: str, **more: Any) -> Ledger:
        """As a user who has a state directory of their own."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_STATE_HOME", str(self._folder / who))
            self._books.append(epsilons.ledger.open(self.address, **more))
        return self._books[-1]

    def close(self) -> None:
        while self._books:
            self._books.pop().close()


def ask(book: Ledger, name: str, share: Fraction = Fraction(1, 10)) -> int:
    may = book.allowance(share)
    held = book.reserve(key(name), may.nano, epoch=may.epoch, kind="count")
    book.mark_read(held.number)
    book.store(held.number, name.encode())
    return held.number
