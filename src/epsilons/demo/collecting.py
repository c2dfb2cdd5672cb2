"""The demo of `epsilons collect demo`: real aggregators, made-up owners on a made-up map, one kill -9 in between.

The owners are drawn with a seed, so that every demo has the same ones; shares, keys and noise come from the operating
system. It shows true numbers beside the estimates, which only a demo may.
"""

import math
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from epsilons.collection import Collection, Coordinator, Courier, HttpAggregator, OwnerClient, Place, Publication
from epsilons.collection.reports import STORED
from epsilons.collection.sealing import read_secret
from epsilons.errors import ProtocolError
from epsilons.local.places import Region, SquareGrid
from epsilons.local.survey import Survey
from epsilons.storage.files import open_private

AGGREGATORS = 3
LEVELS = {"strict": 0.1, "standard": 0.5, "open": 2.0}
#: How many of the owners choose each level.
_CHANCES = (0.3, 0.5, 0.2)
#: A made-up town of so many cells each way, one mile wide, around a public place.
SIDE = 8
_CENTER = (48.8584, 2.2945)
_OWNERS_AT_ONCE = 1_000
_SECONDS_DEAD = 1.0
_OWNER_SEED = 20_140_101


@dataclass(frozen=True)
class CollectionResult:
    """What the demo found; `truth` is how many owners are in each cell."""

    publication: Publication
    truth: NDArray[np.int64]
    owners: int
    acknowledged: int
    sending_seconds: float
    publishing_seconds: float


class AggregatorProcess:
    """An aggregator in a process of its own, which can be killed and started again at the same address."""

    def __init__(self, folder: Path, number: int) -> None:
        self._stem, self._port = folder / f"aggregator-{number}", 0
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        stem = self._stem
        files = ("--store", f"sqlite:///{stem}.store", "--key", f"{stem}.key", "--token", f"{stem}.token")
        command = (sys.executable, "-m", "epsilons", "collect", "aggregator", *files, "--witness", f"{stem}.head")
        with open(f"{stem}.log", "a", encoding="utf-8", opener=open_private) as log:
            self._process = subprocess.Popen(
                (*command, "--port", f"{self._port}"), stdout=subprocess.PIPE, stderr=log, text=True
            )

    def place(self) -> Place:
        output = None if self._process is None else self._process.stdout
        line = [] if output is None else output.readline().split()
        if len(line) != 2:
            raise ProtocolError("An aggregator did not start.", suggest="pip install 'epsilons[service]'")
        self._port = int(line[0].rsplit(":", 1)[1])
        return Place(*line)

    @property
    def token(self) -> str:
        return read_secret(self._stem.with_suffix(".token")).hex()

    def kill(self) -> None:
        """End it the hard way; nothing in it gets a chance to tidy up."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            if self._process.stdout is not None:
                self._process.stdout.close()


def make_survey() -> Survey:
    grid = SquareGrid(_CENTER, miles=1.0, side=SIDE)
    cells = Region(grid, tuple(range(1, SIDE * SIDE + 1))).labels
    return Survey("In which square mile do you live?", cells, None, LEVELS, "elsewhere", grid.to_dict())


def make_owners(owners: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(truths, levels): two quarters and a thin spread, some elsewhere; levels say nothing about places."""
    draws = np.random.default_rng(_OWNER_SEED)
    around = np.array([[2.2, 2.4], [5.3, 5.6], [3.5, 3.5]])[draws.choice(3, owners, p=[0.45, 0.35, 0.2])]
    wide = np.where(around[:, :1] == 3.5, 3.0, 0.9)
    rows, columns = np.floor(around + wide * draws.standard_normal((owners, 2)) + 0.5).astype(np.int64).T
    inside = (rows >= 0) & (rows < SIDE) & (columns >= 0) & (columns < SIDE)
    truths = np.where(inside, 1 + rows * SIDE + columns, 0)
    return truths, draws.choice(len(LEVELS), owners, p=_CHANCES)


def run_collection(
    folder: Path, owners: int, progress: Callable[[int], None], say: Callable[[str], None]
) -> CollectionResult:
    """Start aggregators, send every owner's reports (`progress` gets how many), kill one aggregator midway, publish."""
    truths, levels = make_owners(owners)
    processes = [AggregatorProcess(folder, number) for number in range(1, AGGREGATORS + 1)]
    victim, killed, back_at = processes[1], False, math.inf
    try:
        for process in processes:
            process.start()
        places = [process.place() for process in processes]
        collection = Collection.start(make_survey(), places)
        remotes = [HttpAggregator(p.url, token=q.token) for p, q in zip(places, processes, strict=True)]
        coordinator = Coordinator(collection, remotes, told=say)
        coordinator.enter()
        say(f"{AGGREGATORS} aggregators listen: {', '.join(place.url for place in places)}")
        started = time.monotonic()
        client, courier = OwnerClient(collection), Courier(collection)
        for start in range(0, owners, _OWNERS_AT_ONCE):
            done = min(start + _OWNERS_AT_ONCE, owners)
            courier.send(client.reports(truths[start:done], levels[start:done])[0])
            progress(done)
            if not killed and done >= owners // 2:
                victim.kill()
                killed, back_at = True, time.monotonic() + _SECONDS_DEAD
                say("Killed aggregator 2 (kill -9); owners go on, their senders keep trying.")
            if time.monotonic() > back_at or (back_at < math.inf and done == owners):
                victim.start()
                victim.place()
                back_at = math.inf
                say("Aggregator 2 is back, with everything it had acknowledged.")
        acknowledged = min(counts[STORED] for counts in courier.finish())
        sent = time.monotonic()
        say(f"All {acknowledged:,} owners are acknowledged by every aggregator.")
        publication = coordinator.publish()
        truth = np.bincount(truths, minlength=SIDE * SIDE + 1)[1:]
        return CollectionResult(publication, truth, owners, acknowledged, sent - started, time.monotonic() - sent)
    finally:
        for process in processes:
            process.kill()


def shade_map(numbers: NDArray[np.float64] | NDArray[np.int64], most: float) -> list[str]:
    """The map as lines of text, north on top: two characters a cell, the fuller the darker."""
    marks = " .:-=+*#%@"
    steps = np.clip(np.floor(np.asarray(numbers, dtype=np.float64) / most * len(marks)), 0, len(marks) - 1).astype(int)
    return ["".join(2 * marks[step] for step in row) for row in steps.reshape(SIDE, SIDE)[::-1].tolist()]
