"""A question whose process is killed, and questions of several processes: one charge, one answer."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.wages import dataset

PROGRAM = """
import json, os, sys
sys.path.insert(0, {tests!r})
from support import faults
from support.wages import dataset
people = dataset(ledger={address!r}, version="1")
if {fault!r}:
    faults.stop_at({fault!r})
release = people.mean("wage", bounds=(0, 100), where="age >= 30", share=0.1)
print(json.dumps(release.to_dict()))
"""


def process(address: str, fault: str | None = None) -> subprocess.Popen[str]:
    program = PROGRAM.format(tests=str(Path(__file__).parents[1]), address=address, fault=fault)
    return subprocess.Popen([sys.executable, "-W", "error", "-c", program], stdout=subprocess.PIPE, text=True)


def killed_at(address: str, fault: str) -> None:
    """A real kill -9 of a process that stands still at a named place."""
    child = process(address, fault)
    _, status = os.waitpid(child.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    os.kill(child.pid, signal.SIGKILL)
    os.waitpid(child.pid, 0)
    assert child.stdout is not None
    assert child.stdout.read() == ""
    child.stdout.close()
    child.returncode = -signal.SIGKILL


@pytest.mark.parametrize(
    ("fault", "charged"),
    [("reserving", False), ("reserved", True), ("touched", True), ("storing", True)],
)
def test_a_question_that_is_killed_is_charged_once_and_answered_when_asked_again(
    tmp_path: Path, fault: str, charged: bool
) -> None:
    address = f"sqlite:///{tmp_path / 'wages.ledger'}"
    with dataset(ledger=address, version="1") as people:
        killed_at(address, fault)
        before = people.remaining().epsilons
        assert (before != {0.5: 0.5, 1.0: 1.0, 4.0: 4.0}) is charged
        release = people.mean("wage", bounds=(0, 100), where="age >= 30", share=0.1)
        assert len(people.history()) == 1
        after = people.remaining().epsilons
        assert (after == before) is charged
        assert {granted: granted - left for granted, left in after.items()} == pytest.approx(release.charges)
        people.ledger.verify()


def test_processes_that_ask_the_same_at_once_get_the_same_bytes(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path / 'wages.ledger'}"
    with dataset(ledger=address, version="1") as people:
        children = [process(address) for _ in range(2)]
        told: list[Any] = []
        for child in children:
            out, _ = child.communicate(timeout=120)
            assert child.returncode == 0
            told.append(json.loads(out))
        assert told[0] == told[1]
        assert len(people.history()) == 1
        assert people.mean("wage", bounds=(0, 100), where="age >= 30", share=0.1).to_dict() == told[0]
