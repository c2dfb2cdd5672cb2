"""Clients of one ledger in processes of their own, some of them killed from outside at a named place.

Run as a program: a JSON list of rounds on the command line, each a list of jobs that run at the same time; prints what
every client wrote down before it ended. A client writes a line before it goes on, so a kill loses nothing it saw.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import epsilons.ledger
from epsilons.errors import BudgetExceeded, LedgerError
from epsilons.ledger import StalePlanError
from epsilons.ledger.ledger import Ledger
from support import faults

Note = Callable[..., None]


def digest(name: str) -> bytes:
    return hashlib.sha256(name.encode()).digest()


def spend(book: Ledger, job: dict[str, Any], note: Note) -> None:
    """Try to charge each cohort many times, one after the other; say which attempts were accepted."""
    for attempt in range(job["attempts"]):
        for cohort, charge in job["charges"]:
            name = f"{job['name']}/{cohort}/{attempt}"
            try:
                book.reserve(digest(name), {cohort: charge}, epoch=job["epoch"], kind="count")
            except StalePlanError:
                note("refused", cohort)
            else:
                note("accepted", cohort)


def ask(book: Ledger, job: dict[str, Any], note: Note) -> None:
    """Ask questions to the end; every client draws an answer of its own."""
    for name in job["questions"]:
        if name == job.get("armed"):
            faults.stop_at(job["fault"])
        if job.get("joining"):
            book.enroll([digest(f"newcomer {name}")[:16]], [10**9])
        while True:
            held = book.find(digest(name))
            if held is None:
                try:
                    may = book.allowance(Fraction(1, 100))
                    held = book.reserve(digest(name), may.nano, epoch=may.epoch, kind="count")
                except StalePlanError:
                    continue
                except BudgetExceeded:
                    note("exhausted", name)
                    return
            break
        note("reserved", name, held.number)
        if held.answer is None and job.get("giving_back"):
            book.refund(held.number)
            note("refunded", name, held.number)
            continue
        answer = held.answer
        if answer is None:
            held = book.mark_read(held.number)
            note("read", name, held.number)
            answer = book.store(held.number, os.urandom(8)) if held.answer is None else held.answer
        note("released", name, answer.hex())


def ask_again(book: Ledger, job: dict[str, Any], note: Note) -> None:
    """Ask, wait until the ledger was put back, and ask something new: a refusal is noted."""
    flags = Path(job["flags"])
    wait_for(flags / "copied")
    ask(book, job, note)
    _ready(flags, job["name"])
    wait_for(flags / "back")
    for turn in ("as it is", "opened anew"):
        try:
            if turn == "opened anew":
                book = epsilons.ledger.open(job["url"], witness=job["anchor"])
            ask(book, {"questions": [f"{job['questions'][0]} {turn}"]}, note)
        except LedgerError:
            note("refused", turn)
        finally:
            book.close()


def roll_back(book: Ledger, job: dict[str, Any], note: Note) -> None:
    """Copy the ledger, wait until all clients have asked or are gone, and put the copy back."""
    from support.ledger_copies import copied, put_back

    flags, kept = Path(job["flags"]), copied(job["url"])
    (flags / "copied").touch()
    for name in job["names"]:
        wait_for(flags / f"ready {name}")
    newest = copied(job["url"])
    put_back(job["url"], kept)
    (flags / "back").touch()
    (flags / "newest").write_bytes(pickle.dumps(newest))
    note("back")


def _ready(flags: str | Path, name: Any) -> None:
    (Path(flags) / f"ready {name}").touch()


def wait_for(path: Path) -> None:
    while not path.exists():
        time.sleep(0.01)


def client(job: dict[str, Any], notes: Path) -> None:
    """The life of one process."""
    file = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(*words: Any) -> None:
        os.kill(job["test"], 0)  # raises once the test is gone: nobody would read on, and a long run must not go on
        os.write(file, (json.dumps(words) + "\n").encode())

    try:
        book = epsilons.ledger.open(job["url"], witness=job.get("anchor"))
        {"spend": spend, "ask": ask, "ask again": ask_again, "roll back": roll_back}[job["work"]](book, job, note)
        book.close()
    except Exception as error:
        note("failed", repr(error))
        raise
    note("done")


def warm() -> None:
    """Compile SQLite's statements once, before clients are forked: each would else do so for itself."""
    with closing(epsilons.ledger.open()) as book:
        book.settle_terms("absent", 1)
        job = {"questions": ["one", "one"], "joining": True, "charges": [[1, 1]], "attempts": 1, "name": "", "epoch": 2}
        ask(book, job, lambda *words: None)
        spend(book, job, lambda *words: None)


def start(job: dict[str, Any], notes: Path) -> int:
    child = os.fork()
    if child == 0:
        status = 1
        try:
            client(job, notes)
            status = 0
        finally:
            os._exit(status)
    return child


def watch(children: Mapping[int, dict[str, Any]]) -> list[str]:
    """Wait for all to end; a client that stands still at its place, where others may wait for it, is killed."""
    ends: dict[int, str] = {}
    while len(ends) < len(children):
        for child in (one for one in children if one not in ends):
            ended, status = os.waitpid(child, os.WUNTRACED | os.WNOHANG)
            if ended:
                ends[child] = _end(child, status)
                if flags := children[child].get("flags"):
                    _ready(flags, children[child].get("name"))
        time.sleep(0.005)
    return [ends[child] for child in children]


def _end(child: int, status: int) -> str:
    if os.WIFSTOPPED(status):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return "killed"
    return "ended" if os.waitstatus_to_exitcode(status) == 0 else "failed"


def main() -> None:
    test, rounds = os.getppid(), json.load(sys.stdin)
    warm()
    told = []
    with tempfile.TemporaryDirectory() as folder:
        for number, jobs in enumerate(rounds):
            files = [Path(folder) / f"{number}-{place}" for place in range(len(jobs))]
            children = {start({**job, "test": test}, file): job for job, file in zip(jobs, files, strict=True)}
            ends = watch(children)
            lines = [[json.loads(x) for x in f.read_text().splitlines()] if f.exists() else [] for f in files]
            told.append([{"end": end, "notes": seen} for end, seen in zip(ends, lines, strict=True)])
    print(json.dumps(told))


def run(rounds: list[list[dict[str, Any]]]) -> list[list[dict[str, Any]]]:
    """Run the rounds in a fresh process, which may fork without harm."""
    command, given = [sys.executable, "-W", "error", "-m", "support.ledger_clients"], json.dumps(rounds)
    done = subprocess.run(
        command, input=given, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[1]
    )
    assert done.returncode == 0, done.stderr
    told: list[list[dict[str, Any]]] = json.loads(done.stdout)
    assert not done.stderr, done.stderr
    return told


if __name__ == "__main__":
    main()
