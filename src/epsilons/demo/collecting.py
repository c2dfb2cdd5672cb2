"""The demo of `epsilons collect demo`: real aggregators, made-up owners on a made-up map, one kill -9 in between.

The owners are drawn with a seed, so that everybody's demo has the same ones; shares, keys and noise come from the
operating system. It shows true numbers beside the estimates, which only a demo may.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from epsilons.collection.coordinator import Coordinator
from epsilons.collection.publication import Publication
from epsilons.collection.reports import STORED
from epsilons.collection.sealing import read_secret
from epsilons.collection.terms import Collection, Place
from epsilons.collection.transport import Courier, HttpAggregator, OwnerClient
from epsilons.errors import ProtocolError
from epsilons.local.places import Region, SquareGrid
from epsilons.local.survey import Survey

AGGREGATORS = 3
LEVELS = {"strict": 0.1, "standard": 0.5, "open": 2.0}
_SHARES = (0.3, 0.5, 0.2)
#: A made-up town of so many cells each way, one mile wide, around a public place.
SIDE = 8
_CENTER = (48.8584, 2.2945)
_OWNERS_AT_ONCE = 1_000
_SECONDS_DEAD = 1.0
_SEED = 20_140_101

#: (owners done, of how many)
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Told:
    """What the demo found; `truth` is how many owners are in each cell."""

    publication: Publication
    truth: NDArray[np.int64]
    owners: int
    acknowledged: int
    sending_seconds: float
    publishing_seconds: float


class Process:
    """An aggregator in a process of its own, which can be killed and started again at the same address."""

    def __init__(self, folder: Path, number: int) -> None:
        self._folder, self._name, self._port = folder, f"aggregator-{number}", 0
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start it; `place` says where it is."""
        stem = self._folder / self._name
        options = ["--store", f"sqlite:///{stem}.store", "--key", f"{stem}.key", "--token", f"{stem}.token"]
        command = [
            sys.executable,
            "-m",
            "epsilons.cli.app",
            "collect",
            "aggregator",
            *options,
            "--port",
            str(self._port),
        ]
        with open(f"{stem}.log", "a", encoding="utf-8") as log:
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        self._said: IO[str] | None = self._process.stdout

    def place(self) -> Place:
        """Its address and key, once it listens."""
        words = self._said.readline().split() if self._said is not None else []
        if len(words) != 2:
            raise ProtocolError("An aggregator did not start.", suggest="pip install 'epsilons[service]'")
        self._port = int(words[0].rsplit(":", 1)[1])
        return Place(*words)

    @property
    def token(self) -> str:
        """What the coordinator shows."""
        return read_secret(self._folder / f"{self._name}.token").hex()

    def kill(self) -> None:
        """End it the hard way; nothing in it gets a chance to tidy up."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            if self._process.stdout is not None:
                self._process.stdout.close()


def made_up_town() -> tuple[Survey, Region]:
    """The question, and the cells it asks about."""
    grid = SquareGrid(_CENTER, miles=1.0, side=SIDE)
    region = Region(grid, tuple(range(1, SIDE * SIDE + 1)))
    survey = Survey("In which square mile do you live?", region.labels, None, LEVELS, "elsewhere", grid.to_dict())
    return survey, region


def made_up_owners(owners: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(truths, levels): two quarters and a thin spread, some elsewhere; levels say nothing about places."""
    draws = np.random.default_rng(_SEED)
    around = np.array([[2.2, 2.4], [5.3, 5.6], [3.5, 3.5]])[draws.choice(3, owners, p=[0.45, 0.35, 0.2])]
    wide = np.where(around[:, :1] == 3.5, 3.0, 0.9)
    rows, columns = np.floor(around + wide * draws.standard_normal((owners, 2)) + 0.5).astype(np.int64).T
    inside = (rows >= 0) & (rows < SIDE) & (columns >= 0) & (columns < SIDE)
    truths = np.where(inside, 1 + rows * SIDE + columns, 0)
    return truths, draws.choice(len(LEVELS), owners, p=_SHARES)


def run(folder: Path, owners: int, progress: Progress, say: Callable[[str], None]) -> Told:
    """Start aggregators, send everybody's reports, kill one aggregator midway, publish."""
    survey, _ = made_up_town()
    truths, levels = made_up_owners(owners)
    processes = [Process(folder, number) for number in range(1, AGGREGATORS + 1)]
    try:
        for process in processes:
            process.start()
        places = [process.place() for process in processes]
        collection = Collection.start(survey, places)
        remotes = [HttpAggregator(p.url, token=q.token) for p, q in zip(places, processes, strict=True)]
        coordinator = Coordinator(collection, remotes, told=say)
        coordinator.enter()
        say(f"{AGGREGATORS} aggregators listen: {', '.join(place.url for place in places)}")
        started = time.monotonic()
        courier = _send(collection, truths, levels, processes[1], progress, say)
        acknowledged = min(counts[STORED] for counts in courier.finish())
        sent = time.monotonic()
        say(f"All {acknowledged:,} owners are acknowledged by every aggregator.")
        publication = coordinator.publish()
        truth = np.bincount(truths, minlength=SIDE * SIDE + 1)[1:]
        return Told(publication, truth, owners, acknowledged, sent - started, time.monotonic() - sent)
    finally:
        for process in processes:
            process.kill()


def _send(
    collection: Collection,
    truths: NDArray[np.int64],
    levels: NDArray[np.int64],
    victim: Process,
    progress: Progress,
    say: Callable[[str], None],
) -> Courier:
    client, courier = OwnerClient(collection), Courier(collection)
    back_at: float | None = None
    killed = False
    for start in range(0, len(truths), _OWNERS_AT_ONCE):
        some = slice(start, start + _OWNERS_AT_ONCE)
        courier.send(client.reports(truths[some], levels[some])[0])
        progress(min(start + _OWNERS_AT_ONCE, len(truths)), len(truths))
        if not killed and start + _OWNERS_AT_ONCE >= len(truths) // 2:
            victim.kill()
            killed, back_at = True, time.monotonic() + _SECONDS_DEAD
            say("Killed aggregator 2 (kill -9); owners go on, their senders keep trying.")
        if back_at is not None and time.monotonic() > back_at:
            victim.start()
            victim.place()
            back_at = None
            say("Aggregator 2 is back, with everything it had acknowledged.")
    if back_at is not None:
        victim.start()
        victim.place()
        say("Aggregator 2 is back, with everything it had acknowledged.")
    return courier


def shaded(numbers: NDArray[np.float64] | NDArray[np.int64], most: float) -> list[str]:
    """The map as lines of text, north on top: two characters a cell, the fuller the darker."""
    marks = " .:-=+*#%@"
    steps = np.clip(np.floor(np.asarray(numbers, dtype=np.float64) / most * len(marks)), 0, len(marks) - 1).astype(int)
    cells = steps.reshape(SIDE, SIDE)[::-1]
    return ["".join(2 * marks[step] for step in row) for row in cells.tolist()]
