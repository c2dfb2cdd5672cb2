"""A question whose process is killed, and questions of several processes: one charge, one answer."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.wages import dataset

#: Questions in processes of their own, several at once, forked from one that has loaded what they need. Each job is an
#: address and a place at which its process, standing still there, is killed with a real kill -9; the reply says of each
#: whether it was killed, how it ended else, and what it printed.
PROGRAM = """
import json, os, signal, sys, tempfile, warnings
warnings.simplefilter("error")
import epsilons.dataset.table, epsilons.engines.duckdb, pandas
from support import faults
from support.ledger_clients import warm
from support.wages import dataset
warm()

def ask(address, fault, file):
    people = dataset(ledger=address, version="1")
    if fault:
        faults.stop_at(fault)
    release = people.mean("wage", bounds=(0, 100), where="age >= 30", share=0.1)
    file.write(json.dumps(release.to_dict()))
    file.flush()

def start(address, fault, file):
    child = os.fork()
    if child == 0:
        status = 1
        try:
            ask(address, fault, file)
            status = 0
        finally:
            os._exit(status)
    return child

def watch(child, file):
    _, status = os.waitpid(child, os.WUNTRACED)
    killed = os.WIFSTOPPED(status)
    if killed:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    file.seek(0)
    return killed, None if killed else os.waitstatus_to_exitcode(status), file.read()

for line in sys.stdin:
    jobs = [(*job, tempfile.TemporaryFile("w+")) for job in json.loads(line)]
    children = [start(*job) for job in jobs]
    print(json.dumps([watch(child, job[-1]) for child, job in zip(children, jobs)]), flush=True)
    for *_, file in jobs:
        file.close()
"""

Replies = list[tuple[bool, int | None, str]]
Asking = Callable[..., Replies]


@pytest.fixture(scope="module")
def asking() -> Iterator[Asking]:
    tests = Path(__file__).parents[1]  # where `support` is found
    command = [sys.executable, "-c", PROGRAM]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=tests) as server:
        jobs, replies = server.stdin, server.stdout
        assert jobs is not None
        assert replies is not None

        def ask(*asked: tuple[str, str | None]) -> Replies:
            print(json.dumps(asked), file=jobs, flush=True)
            return [(killed, status, out) for killed, status, out in json.loads(replies.readline())]

        yield ask
        jobs.close()


@pytest.mark.parametrize(
    ("fault", "charged"),
    [("reserving", False), ("reserved", True), ("touched", True), ("storing", True)],
)
def test_a_question_that_is_killed_is_charged_once_and_answered_when_asked_again(
    tmp_path: Path, asking: Asking, fault: str, charged: bool
) -> None:
    address = f"sqlite:///{tmp_path / 'wages.ledger'}"
    with dataset(ledger=address, version="1") as people:
        assert asking((address, fault)) == [(True, None, "")]
        before = people.remaining().epsilons
        assert (before != {0.5: 0.5, 1.0: 1.0, 4.0: 4.0}) is charged
        release = people.mean("wage", bounds=(0, 100), where="age >= 30", share=0.1)
        assert len(people.history()) == 1
        after = people.remaining().epsilons
        assert (after == before) is charged
        assert {granted: granted - left for granted, left in after.items()} == pytest.approx(release.charges)
        people.ledger.verify()


def test_processes_that_ask_the_same_at_once_get_the_same_bytes(tmp_path: Path, asking: Asking) -> None:
    address = f"sqlite:///{tmp_path / 'wages.ledger'}"
    with dataset(ledger=address, version="1") as people:
        replies = asking((address, None), (address, None))
        assert [reply[:2] for reply in replies] == [(False, 0), (False, 0)]
        told = [json.loads(out) for _, _, out in replies]
        assert told[0] == told[1]
        assert len(people.history()) == 1
        assert people.mean("wage", bounds=(0, 100), where="age >= 30", share=0.1).to_dict() == told[0]
