"""A gateway for tests: its files, spoken to without a network, or as a process that can be killed."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pyarrow.parquet

import epsilons as eps
from epsilons.dataset.declared import arguments_of
from epsilons.service.gateway import GatewayApp, Route
from epsilons.service.holdings import open_holdings
from epsilons.service.keys import Keys
from epsilons.service.limits import Rates
from epsilons.service.pages.ways import add_pages
from epsilons.service.routes import ROUTES
from epsilons.service.settings import Settings
from epsilons.service.store import open_store
from support.wages import wages

T = TypeVar("T")
#: Servers, each in a process that is forked from one that has loaded what they need; a place to stop at comes along.
_FORKING = """
import json, os, signal, sys
import epsilons.service.routes
from epsilons.cli import app
from epsilons.dataset import Dataset
from support import faults
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for line in sys.stdin:
    file, fault = json.loads(line)
    child = os.fork()
    if child == 0:
        if fault:
            faults.stop_at(fault, file + ".stopped")
        os._exit(app.main(["serve", file, "--port", "0"]))
    print(child, flush=True)
"""


def declare(folder: Path, name: str = "wages", ledger: str = "", store: str = "sqlite:///gateway.store") -> Path:
    """A dataset file of the sixty people of `support.wages`, registered in a ledger of its own; the gateway's file."""
    ledger = ledger or f"sqlite:///{name}.ledger"
    pyarrow.parquet.write_table(wages(), folder / f"{name}.parquet")
    (folder / f"{name}.toml").write_text(
        f'name = "{name}"\nsource = "{name}.parquet"\nperson = "id"\nledger = "{ledger}"\n'
        'threads = 1\n[bounds]\nwage = [0, 100]\nage = [15, 90]\n[keys]\nregion = ["north", "south"]\n'
        '[preferences]\ncolumn = "epsilon"\n'
    )
    eps.Dataset.register(**arguments_of(folder / f"{name}.toml"), confirm=True).close()
    (folder / "gateway.toml").write_text(f'store = "{store}"\ndatasets = ["{name}.toml"]\n')
    return folder / "gateway.toml"


def write_older(folder: Path, name: str = "wages") -> None:
    """The same people, each a year older."""
    table = wages()
    older = table.set_column(table.column_names.index("age"), "age", [[age + 1 for age in table["age"].to_pylist()]])
    pyarrow.parquet.write_table(older, folder / f"{name}.parquet")


def register_again(folder: Path, name: str = "wages") -> None:
    """The same people, each a year older: a new version."""
    write_older(folder, name)
    eps.Dataset.register(**arguments_of(folder / f"{name}.toml")).close()


class Seen(NamedTuple):
    """A reply."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        return json.loads(self.body)


class Gateway:
    """The application itself, in this process."""

    def __init__(self, file: Path, routes: tuple[Route, ...] = ROUTES) -> None:
        settings, self.folder = Settings.read(file), file.parent
        self.store = open_store(settings.store)
        holdings = open_holdings(settings.datasets, self.folder)
        self.app = GatewayApp(holdings, self.store, routes, self.folder, settings.address)
        add_pages(self.app)
        passing = itertools.count()
        self.app.rates = Rates(lambda: float(next(passing)))  # a second for each request
        self.keys = self.app.keys
        self._loop = asyncio.new_event_loop()

    async def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        key: str | None = None,
        once: str | None = None,
        headers: Mapping[str, str] | None = None,
        query: str = "",
    ) -> Seen:
        sent: list[Any] = []
        content = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        queue: list[Any] = [{"type": "http.request", "body": content, "more_body": False}]

        async def receive() -> Any:
            return queue.pop(0)

        async def send(message: Any) -> None:
            sent.append(message)

        shown = [(b"content-length", b"%d" % len(content))]
        shown += [] if key is None else [(b"authorization", b"Bearer " + key.encode())]
        shown += [] if once is None else [(b"idempotency-key", once.encode())]
        shown += [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
        scope = {"type": "http", "method": method, "raw_path": path.encode(), "headers": shown}
        await self.app({**scope, "query_string": query.encode()}, receive, send)
        told = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        return Seen(sent[0]["status"], told, sent[1]["body"])

    def __call__(self, *arguments: Any, **named: Any) -> Seen:
        return self.run(self.send(*arguments, **named))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """One loop for all requests, as a server has it."""
        return self._loop.run_until_complete(work)

    def close(self) -> None:
        for one in self.app.holdings.values():
            one.close()
        self.app.replies.close()
        self.store.close()
        self._loop.close()


class Servers:
    """Gateways as processes."""

    def __init__(self) -> None:
        tests = Path(__file__).parents[1]  # where `support` is found
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self._forking = subprocess.Popen([sys.executable, "-c", _FORKING], cwd=tests, text=True, **pipes)
        self._running: list[int] = []

    def start(self, file: Path, fault: str | None = None) -> tuple[str, int]:
        """(its address, its process), once it listens."""
        assert self._forking.stdin is not None
        assert self._forking.stdout is not None
        self._forking.stdin.write(json.dumps([str(file), fault]) + "\n")
        self._forking.stdin.flush()
        # The address is the child's own line; which of the two lines comes first is not settled.
        lines = sorted(self._forking.stdout.readline().strip() for _ in range(2))
        process, url = int(lines[0]), lines[1]
        self._running.append(process)
        return url, process

    def wait_until_stopped(self, process: int) -> int:
        """Until it, or one of its workers, stands still at the place that it was told: which one does."""
        while True:
            workers = Path(f"/proc/{process}/task/{process}/children").read_text().split()
            for one in (process, *map(int, workers)):
                if "T (stopped)" in Path(f"/proc/{one}/status").read_text():
                    return one
            time.sleep(0.01)

    def kill(self, process: int) -> None:
        os.kill(process, signal.SIGKILL)
        if process in self._running:
            self._running.remove(process)

    def close(self) -> None:
        for process in list(self._running):
            self.kill(process)
        self._forking.kill()
        self._forking.communicate()


def open_office(steward: Path, office: Path, servers: Servers, name: str) -> None:
    """Serve the dataset of `people.toml` in the steward's folder; in the analysts' a file of that name asks for it."""
    gateway = steward / "gateway.toml"
    gateway.write_text('store = "sqlite:///gateway.store"\ndatasets = ["people.toml"]\n')
    (office / "office.key").touch(0o600)
    (office / "office.key").write_text(key_for(gateway, "office"))
    url, _ = servers.start(gateway)
    (office / "people.toml").write_text(f'server = "{url}"\nname = "{name}"\nkey = "office.key"\n')


def with_workers(file: Path, workers: int = 2) -> Path:
    """The same gateway in several processes."""
    file.write_text(f"workers = {workers}\n{file.read_text()}")
    return file


def key_for(file: Path, name: str, role: str = "analyst") -> str:
    """A key, made beside a server that runs."""
    store = open_store(Settings.read(file).store)
    try:
        return Keys(store).add(name, role)
    finally:
        store.close()
