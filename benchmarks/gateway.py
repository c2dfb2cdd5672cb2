"""A gateway under load: many analysts, each with a request a second, of which nine in ten have a stored answer.

Of `hey`, `wrk` and `ab` none sends each request at its own time with a key of its own, so the client is our own: a
request has a time at which it is due, and waits from then on, also while the client or the server is behind. Client
and server share the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from report import facts

import epsilons as eps
from epsilons.dataset.declared import arguments_of
from epsilons.service.keys import Keys
from epsilons.service.store import open_store

PAGE = Path(__file__).parents[1] / "docs" / "gateway.md"
START, END = "<!-- results: written by `make bench-gateway ARGS=--write` -->", "<!-- end of results -->"
NAMES, PEOPLE, STORED, SHARE = ("north", "south"), 10_000, 50, 0.001


def declare(folder: Path, workers: int) -> None:
    """Two datasets with a ledger each, and the gateway's file."""
    drawn = np.random.default_rng(1)
    for name in NAMES:
        wage, levels = drawn.integers(0, 100, PEOPLE), drawn.choice([0.1, 0.5, 1.0], PEOPLE)
        table = pa.table({"id": range(PEOPLE), "wage": wage, "epsilon": levels})
        pyarrow.parquet.write_table(table, folder / f"{name}.parquet")
        (folder / f"{name}.toml").write_text(
            f'name = "{name}"\nsource = "{name}.parquet"\nperson = "id"\nledger = "sqlite:///{name}.ledger"\n'
            'threads = 1\n[bounds]\nwage = [0, 100]\n[preferences]\ncolumn = "epsilon"\n'
        )
        eps.Dataset.register(**arguments_of(folder / f"{name}.toml"), confirm=True).close()
    listed = ", ".join(f'"{name}.toml"' for name in NAMES)
    told = f'store = "sqlite:///gateway.store"\ndatasets = [{listed}]\nworkers = {workers}\n'
    (folder / "gateway.toml").write_text(told)


def question(number: int) -> bytes:
    """A count of its own for every number."""
    arguments = {"where": f"wage >= {number % 100} AND wage <= {100 + number // 100}", "share": SHARE}
    return json.dumps({"statistic": "count", "arguments": arguments}).encode()


class Client:
    """Connections of one analyst, which are kept: a request does not wait for the one before."""

    def __init__(self, url: str, key: str) -> None:
        self._place, self._key = urlsplit(url), key
        self._idle: list[Any] = []

    async def ask(self, dataset: str, body: bytes, once: str) -> tuple[int, Any]:
        """Once more where the server had closed an idle connection."""
        while self._idle:
            try:
                return await self._ask(self._idle.pop(), dataset, body, once)
            except (OSError, asyncio.IncompleteReadError):
                continue
        ways = await asyncio.open_connection(self._place.hostname, self._place.port)
        return await self._ask(ways, dataset, body, once)

    async def _ask(self, ways: Any, dataset: str, body: bytes, once: str) -> tuple[int, Any]:
        reader, writer = ways
        head = (
            f"POST /v1/datasets/{dataset}/ask HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self._key}\r\n"
            f"Idempotency-Key: {once}\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        writer.write(head.encode() + body)
        lines = (await reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
        length = next(int(line.partition(":")[2]) for line in lines if line.startswith("content-length"))
        reply = json.loads(await reader.readexactly(length))
        self._idle.append(ways) if "connection: close" not in lines else writer.close()
        return int(lines[0].split()[1]), reply


async def load(url: str, keys: list[str], seconds: int) -> tuple[dict[bool, list[float]], Counter[int], float]:
    """({whether it was stored: seconds of each request}, how often which status, seconds until the last reply)."""
    clients, took, statuses = [Client(url, key) for key in keys], {True: [], False: []}, Counter[int]()
    for name in NAMES:
        first = (clients[number].ask(name, question(number), f"stored-{name}-{number}") for number in range(STORED))
        assert {status for status, _ in await asyncio.gather(*first)} == {200}
    began = time.monotonic() + 0.5

    async def ask(place: int, turn: int) -> None:
        due = began + turn + place / len(clients)
        await asyncio.sleep(max(due - time.monotonic(), 0))
        new, number = (place + turn) % 10 == 0, turn * len(clients) + place
        body = question(STORED + number if new else number % STORED)
        try:
            status, reply = await clients[place].ask(NAMES[place % 2], body, f"{place}-{turn}")
        except (OSError, asyncio.IncompleteReadError):
            status, reply = 0, {}
        statuses[status] += 1
        if status == 200:
            took[reply["stored"]].append(time.monotonic() - due)

    await asyncio.gather(*(ask(place, turn) for turn in range(seconds) for place in range(len(clients))))
    return took, statuses, time.monotonic() - began


def count_seconds(process: int) -> float:
    """Processor time of a process and of its workers."""
    workers = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    ticks = [Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()[11:13] for one in (process, *workers)]
    return sum(int(one) for pair in ticks for one in pair) / os.sysconf("SC_CLK_TCK")


def measure(clients: int, seconds: int, workers: int) -> dict[str, str]:
    """Run it, and recount the ledgers."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        os.environ["XDG_STATE_HOME"] = str(folder / "state")
        declare(folder, workers)
        store = open_store(f"sqlite:///{folder}/gateway.store")
        keys = [Keys(store).add(f"analyst {number}", "analyst") for number in range(clients)]
        store.close()
        command = [sys.executable, "-m", "epsilons", "serve", str(folder / "gateway.toml"), "--port", "0"]
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        with subprocess.Popen(command, text=True, **pipes) as server:
            assert server.stdout is not None
            before = count_seconds(server.pid)
            try:
                took, statuses, lasted = asyncio.run(load(server.stdout.readline().strip(), keys, seconds))
                busy = count_seconds(server.pid) - before
            finally:
                server.terminate()
        charged, overspent = 0, 0
        for name in NAMES:
            with eps.Dataset.from_toml(folder / f"{name}.toml") as people:
                people.ledger.verify()
                charged += people.count_charged()
                held = people.ledger.cohorts(people._registry.dataset)
                overspent += sum(one.spent + one.reserved > one.granted for one in held if one.granted is not None)
    answered = sum(statuses.values())
    asked = len(took[False]) + STORED * len(NAMES)
    return {
        "requests": f"{answered:,} by {clients} clients in {seconds} s, {workers} workers",
        "errors": ", ".join(f"{many} of status {one}" for one, many in statuses.items() if one != 200) or "0",
        "charges beside new questions that were answered": f"{charged} beside {asked}",
        "overspends": f"{overspent}",
        "stored answers": _tell(took[True]),
        "new answers": f"{_tell(took[False])}; {len(took[False]) / lasted:.1f} a second until the last",
        "processor time of the server": f"{busy:.0f} s",
        "load of the machine, other programs included": f"{os.getloadavg()[0]:.1f}",
    }


def _tell(took: list[float]) -> str:
    middle, most = (1000 * np.quantile(took or [0.0], part) for part in (0.5, 0.99))
    return f"{len(took):,}; median {middle:.0f} ms, p99 {most:.0f} ms"


def main() -> None:
    """Measure, print, and on request write to the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--write", action="store_true", help="put the results into docs/gateway.md")
    options = parser.parse_args()
    found = measure(options.clients, options.seconds, options.workers)
    lines = ["| what | measured |", "|---|---|", *(f"| {name} | {told} |" for name, told in found.items())]
    print("\n".join(lines))
    if options.write:
        about = facts()
        before, start, rest = PAGE.read_text(encoding="utf-8").partition(START)
        _, end, after = rest.partition(END)
        PAGE.write_text(
            "\n".join(
                [
                    before + start,
                    "",
                    *lines,
                    "",
                    f"{about['date']}, Python {about['python']}, {about['cores']} cores.",
                    "",
                    end + after,
                ]
            ),
            encoding="utf-8",
        )


if __name__ == "__main__":
    main()
