"""Witnesses for tests: the service called directly, or as a process that can be killed."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from epsilons.ledger.kept import LEDGER, Kept
from epsilons.service.witness import WitnessApp

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
