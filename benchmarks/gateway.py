"""A gateway under load: many analysts, each with a request a second, of which nine in ten have a stored answer.

The client is our own: a request has a time at which it is due, and waits from then on, also while the client or the
server is behind. A second opinion is wrk's (Debian: `apt-get install wrk`), where it is installed: as many connections,
each of which waits for about a second after a reply. Client and server share the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
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
from page import write_between
from report import facts

import epsilons as eps
from epsilons.dataset.declared import arguments_of
from epsilons.service.keys import Keys
from epsilons.service.store import open_store

PAGE = Path(__file__).parents[1] / "docs" / "gateway.md"
START, END = "<!-- results: written by `make bench-gateway ARGS=--write` -->", "<!-- end of results -->"
NAMES, PEOPLE, STORED, SHARE = ("north", "south"), 10_000, 50, 0.001
#: Where wrk asks new questions: a share leaves room for a thousand of each dataset.
FRESH = "east"


def declare(folder: Path, workers: int) -> None:
    """Datasets with a ledger each, and the gateway's file."""
    drawn = np.random.default_rng(1)
    for name in (*NAMES, FRESH):
        wage, levels = drawn.integers(0, 100, PEOPLE), drawn.choice([0.1, 0.5, 1.0], PEOPLE)
        table = pa.table({"id": range(PEOPLE), "wage": wage, "epsilon": levels})
        pyarrow.parquet.write_table(table, folder / f"{name}.parquet")
        (folder / f"{name}.toml").write_text(
            f'name = "{name}"\nsource = "{name}.parquet"\nperson = "id"\nledger = "sqlite:///{name}.ledger"\n'
            'threads = 1\n[bounds]\nwage = [0, 100]\n[preferences]\ncolumn = "epsilon"\n'
        )
        eps.Dataset.register(**arguments_of(folder / f"{name}.toml"), confirm=True).close()
    listed = ", ".join(f'"{name}.toml"' for name in (*NAMES, FRESH))
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
        first = (
            clients[number % len(clients)].ask(name, question(number), f"stored-{name}-{number}")
            for number in range(STORED)
        )
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


#: A connection waits up to two seconds before each request, which is one of its own under somebody's key.
WRK = """
local keys, bodies, sent = {{{keys}}}, {{{bodies}}}, 0
math.randomseed({seed})
function delay() return math.random(0, 2000) end
function request()
  sent = sent + 1
  local body = bodies[(sent - 1) % #bodies + 1]
  local headers = {{["Authorization"] = "Bearer " .. keys[math.random(#keys)], ["Idempotency-Key"] = "{name}-" .. sent}}
  return wrk.format("POST", "/v1/datasets/{dataset}/ask", headers, body)
end
function done(summary, latency)
  local wrong = summary.errors
  local errors = wrong.connect + wrong.read + wrong.write + wrong.status + wrong.timeout
  io.write(string.format("%d %d %d %d\\n", summary.requests, errors, latency:percentile(50), latency:percentile(99)))
end
"""


def load_by_wrk(url: str, keys: list[str], seconds: int, folder: Path) -> dict[str, list[int]]:
    """{kind of answers: requests, errors, and microseconds of the median and the p99}, of both kinds at once.

    New questions are of a dataset of their own; wrk does not ask twice for what it got.
    """
    wrk, running = shutil.which("wrk"), {}
    if wrk is None:
        raise SystemExit("wrk is not installed: apt-get install wrk")
    stored = [question(number) for number in range(STORED)]
    new = [question(1_000_000 + number) for number in range(2 * seconds * max(len(keys) // 10, 1))]
    parts = {"stored": (len(keys) - len(keys) // 10, stored, NAMES[0]), "new": (len(keys) // 10, new, FRESH)}
    for seed, (name, (connections, bodies, dataset)) in enumerate(parts.items()):
        texts = {"keys": keys, "bodies": [body.decode() for body in bodies]}
        listed = {which: ", ".join(f"[[{one}]]" for one in some) for which, some in texts.items()}
        script = folder / f"{name}.lua"
        script.write_text(WRK.format(**listed, seed=seed, name=f"wrk-{name}", dataset=dataset))
        command = [wrk, "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "30s", "-s", str(script), url]
        running[name] = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    return {name: [int(one) for one in wait(each).splitlines()[-1].split()] for name, each in running.items()}


def wait(process: subprocess.Popen[str]) -> str:
    """What it printed."""
    return process.communicate()[0]


def count_seconds(process: int) -> float:
    """Processor time of a process and of its workers."""
    workers = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    ticks = [Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()[11:13] for one in (process, *workers)]
    return sum(int(one) for pair in ticks for one in pair) / os.sysconf("SC_CLK_TCK")


def recount(folder: Path) -> tuple[int, int]:
    """(questions that were charged, accounts that paid more than was granted), by the ledgers themselves."""
    charged, overspent = 0, 0
    for name in (*NAMES, FRESH):
        with eps.Dataset.from_toml(folder / f"{name}.toml") as people:
            people.ledger.verify()
            charged += people.count_charged()
            held = people.ledger.cohorts(people._registry.dataset)
            overspent += sum(one.spent + one.reserved > one.granted for one in held if one.granted is not None)
    return charged, overspent


def measure(clients: int, seconds: int, workers: int, wrk: bool) -> dict[str, str]:
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
                url = server.stdout.readline().strip()
                took, statuses, lasted = asyncio.run(load(url, keys, seconds))
                busy = count_seconds(server.pid) - before
                charged, _ = recount(folder)
                others = load_by_wrk(url, keys, seconds, folder) if wrk else {}
            finally:
                server.terminate()
        overspent = recount(folder)[1]
    asked = len(took[False]) + STORED * len(NAMES)
    return {
        "requests": f"{sum(statuses.values()):,} by {clients} clients in {seconds} s, {workers} workers",
        "errors": ", ".join(f"{many} of status {one}" for one, many in statuses.items() if one != 200) or "0",
        "charges beside new questions that were answered": f"{charged} beside {asked}",
        "overspends": f"{overspent}",
        "stored answers": _tell(took[True]),
        "new answers": f"{_tell(took[False])}; {len(took[False]) / lasted:.1f} a second until the last",
        **{f"{name} answers, by wrk": _tell_wrk(*told) for name, told in others.items()},
        "processor time of the server": f"{busy:.0f} s",
        "load of the machine, other programs included": f"{os.getloadavg()[0]:.1f}",
    }


def _tell_wrk(requests: int, errors: int, middle: int, most: int) -> str:
    return f"{requests:,}, {errors} errors; median {middle / 1000:.0f} ms, p99 {most / 1000:.0f} ms"


def _tell(took: list[float]) -> str:
    middle, most = (1000 * np.quantile(took or [0.0], part) for part in (0.5, 0.99))
    return f"{len(took):,}; median {middle:.0f} ms, p99 {most:.0f} ms"


def main() -> None:
    """Measure, print, and on request write to the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--wrk", action="store_true", help="load it by wrk as well, for as long")
    parser.add_argument("--write", action="store_true", help="put the results into docs/gateway.md")
    options = parser.parse_args()
    found = measure(options.clients, options.seconds, options.workers, options.wrk)
    lines = ["| what | measured |", "|---|---|", *(f"| {name} | {told} |" for name, told in found.items())]
    print("\n".join(lines))
    if options.write:
        about = facts()
        told = f"{about['date']}, Python {about['python']}, {about['cores']} cores."
        write_between(PAGE, (START, END), [*lines, "", told])


if __name__ == "__main__":
    main()
