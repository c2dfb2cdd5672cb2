"""Our side of a measurement: start a library's script in a process of its own, listen, and end it when time is over.

Nothing that a library does can stop the others: an error becomes a reason, a process that dies or hangs is ended with
everything it started, and the tasks that are left go to a new one.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from answering import Job


@dataclass(frozen=True)
class Limits:
    """Seconds until a process must be ready, until a task must be done, and for all that a library does at a size."""

    ready: float = 600
    task: float = 180
    library: float = 1200


@dataclass
class Told:
    """What a library told: times and answers of each task, or the reason why there are none."""

    ready: float | None = None
    memory: int | None = None
    seconds: dict[str, list[float]] = field(default_factory=dict)
    answers: dict[str, list[Any]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Library:
    """How a library is run: its Python, its script, its variables, a place for what it leaves behind, its log."""

    python: Path
    script: Path
    variables: Mapping[str, str]
    folder: Path
    log: Path


def converse(library: Library, job: Job, limits: Limits, say: Callable[[str], None]) -> Told:
    """Have the job done, by several processes one after the other if need be."""
    told, left = Told(), list(job.tasks)
    deadline = time.monotonic() + limits.library
    library.folder.mkdir(parents=True, exist_ok=True)
    library.log.parent.mkdir(parents=True, exist_ok=True)
    with library.log.open("w", encoding="utf-8") as log:
        while left:
            if time.monotonic() > deadline:
                told.reasons.update(dict.fromkeys(left, f"no time left: {limits.library:g} s for all tasks"))
                break
            reason = _one_process(library, replace(job, tasks=tuple(left)), limits, deadline, told, say, log)
            left = [task for task in left if task not in told.answers and task not in told.reasons]
            if left:
                reason = reason or "its process ended without an answer"
                # Before it is ready a process would fail the same way again; later only the task at hand is to blame.
                failed = left if told.ready is None else left[:1]
                told.reasons.update(dict.fromkeys(failed, reason))
                left = left[len(failed) :]
    for task, reason in told.reasons.items():
        say(f"{task}: {reason}")
    return told


def _one_process(
    library: Library,
    job: Job,
    limits: Limits,
    deadline: float,
    told: Told,
    say: Callable[[str], None],
    log: IO[str],
) -> str | None:
    """Listen until the process is done (None) or must be ended (the reason)."""
    process = subprocess.Popen(
        [str(library.python), str(library.script), json.dumps(asdict(job))],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
        encoding="utf-8",
        cwd=library.folder,
        env=dict(library.variables),
        start_new_session=True,
    )
    lines: queue.Queue[str | None] = queue.Queue()
    listener = threading.Thread(target=_listen, args=(process.stdout, lines), daemon=True)
    listener.start()
    allowed = limits.ready
    try:
        while True:
            patience = min(allowed, max(deadline - time.monotonic(), 0))
            try:
                line = lines.get(timeout=patience)
            except queue.Empty:
                return f"took more than {patience:.0f} s"
            if line is None:
                status = process.wait()
                return None if status == 0 else f"its process ended with status {status}"
            found = json.loads(line)
            if found["event"] == "failed" and "task" not in found:
                return str(found["reason"])
            _note(found, told, say)
            allowed = limits.task
    finally:
        _end(process)
        listener.join()
        process.stdout.close()


def _note(found: dict[str, Any], told: Told, say: Callable[[str], None]) -> None:
    match found["event"]:
        case "ready":
            told.ready = found["seconds"]
            say(f"ready in {told.ready:.3g} s")
        case "answered":
            task, seconds = found["task"], found["seconds"]
            told.seconds[task], told.answers[task] = seconds, found["answers"]
            say(f"{task}: {min(seconds):.3g} s at best, answers: {len(seconds)}")
        case "failed":
            told.reasons[found["task"]] = found["reason"]
        case "memory":
            told.memory = max(told.memory or 0, found["bytes"] or 0) or None


def _listen(pipe: IO[str], lines: queue.Queue[str | None]) -> None:
    for line in pipe:
        lines.put(line)
    lines.put(None)


def _end(process: subprocess.Popen[str]) -> None:
    """End the process and everything of its session: Spark's workers have groups of their own in it."""
    if process.poll() is None:
        process.kill()
    for member in _session(process.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(member, signal.SIGKILL)
    process.wait()


def _session(leader: int) -> list[int]:
    members = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if os.getsid(int(entry.name)) == leader:
                members.append(int(entry.name))
        except ProcessLookupError:
            continue
    return members
