"""One library's side of a measurement: load once, answer each task again and again, tell the times and the answers.

A library's script runs in that library's own environment, so this file needs the standard library alone. What is told
goes out line by line as JSON: whatever the library itself prints is sent to stderr, where the log is.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: What everybody is asked. The words are the keys of the regions; they are public, like the bounds.
TASKS = ("count", "sum", "mean", "mean by region", "median")
REGIONS = ("north", "south", "east", "west")
LOW, HIGH = 0.0, 100.0

#: The grid of possible medians, for libraries that need one.
STEP = 0.01

#: No task is answered more often than this, so that a thousandth of a grant per answer lasts for all tasks.
MOST_ANSWERS = 100

#: For the least number of answers a task may take so many times its time.
PATIENCE = 6


@dataclass(frozen=True)
class Job:
    """What to do: the table (with `rows` rows), the epsilon of each answer, the tasks, the time to spend on each.

    `levels` is for epsilons alone: people at several levels, the largest of them `epsilon`.
    """

    path: str
    rows: int
    epsilon: float
    tasks: tuple[str, ...]
    seconds: float
    least: int
    levels: bool = False


class CannotError(Exception):
    """The library has no way to do a task; the words say why."""


#: An answer is a number, or a number for each region.
Ask = Callable[[], "float | Mapping[str, float]"]
#: Loads the table and says how each task is asked; a task that cannot be asked has the reason in its place.
Load = Callable[[Job], Mapping[str, "Ask | str"]]


def answer(load: Load) -> None:
    """Do the job given as the only argument."""
    given = json.loads(sys.argv[1])
    job = Job(**{**given, "tasks": tuple(given["tasks"])})
    tell = _channel()
    started = time.perf_counter()
    try:
        asks = load(job)
    except Exception as error:
        tell(event="failed", reason=_in_words(error))
        return
    tell(event="ready", seconds=time.perf_counter() - started)
    for task in job.tasks:
        tell(event="begun", task=task)
        ask = asks[task]
        if isinstance(ask, str):
            tell(event="failed", task=task, reason=ask)
            continue
        try:
            seconds, answers = _repeat(ask, job)
        except Exception as error:
            tell(event="failed", task=task, reason=_in_words(error))
        else:
            tell(event="answered", task=task, seconds=seconds, answers=answers)
        tell(event="memory", bytes=memory_of_session())


def _repeat(ask: Ask, job: Job) -> tuple[list[float], list[Any]]:
    """As many answers as fit into the time, and a few in any case."""
    times: list[float] = []
    answers: list[Any] = []
    began = time.perf_counter()
    while len(times) < MOST_ANSWERS:
        started = time.perf_counter()
        found = ask()
        ended = time.perf_counter()
        times.append(ended - started)
        answers.append({key: float(found[key]) for key in REGIONS} if isinstance(found, Mapping) else float(found))
        # A slow library still gets a few answers, but not for ever.
        spent = ended - began
        if spent >= job.seconds and (len(times) >= job.least or spent >= PATIENCE * job.seconds):
            break
    return times, answers


def _channel() -> Callable[..., None]:
    """A way to tell things that nothing the library prints can garble."""
    told = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def tell(**facts: Any) -> None:
        told.write(json.dumps(facts) + "\n")
        told.flush()

    return tell


def _in_words(error: Exception) -> str:
    """An error on one line that fits into a table."""
    if isinstance(error, CannotError):
        return str(error)
    words = " ".join(str(error).split())
    return f"{type(error).__name__}: {words}"[:160]


def memory_of_session() -> int | None:
    """Bytes: the high-water marks of this process and of those it started (Spark's), added up; None without /proc."""
    session = os.getsid(0)
    total = 0
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            if os.getsid(int(status.parent.name)) == session:
                total += _high_water(status.read_text())
        except (OSError, StopIteration):
            continue  # it ended meanwhile, or is no longer anything but an entry
    return total or None


def _high_water(status: str) -> int:
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024
