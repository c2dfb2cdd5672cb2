"""Questions take a short way through the package: no more files and hops than `make walk` allows."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
WAYS = ["named", "auto", "default", "table", "table-default"]
#: Each way in a child that has only loaded what is needed, as `make walk` does with a process for each; the last one
#: has a limit that it passes.
FOLLOWING = """
import json, os, sys
import walk
for way in sys.argv[1:]:
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(theirs, 1)
        if way == "planted":
            walk.LIMITS["eps.mean, auto"] = (26, 20)
        status = walk.print_way("auto" if way == "planted" else way, False)
        sys.stdout.flush()
        os._exit(status)
    os.close(theirs)
    with open(ours) as said:
        text = said.read()
    print(json.dumps([way, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), text]))
"""


@pytest.fixture(scope="module")
def found() -> dict[str, tuple[int, str]]:
    """{way: (status, what was printed)}."""
    command = [sys.executable, "-c", FOLLOWING, *WAYS, "planted"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=BENCHMARKS)
    assert done.returncode == 0, done.stderr
    return {way: (status, text) for way, status, text in map(json.loads, done.stdout.splitlines())}


@pytest.mark.parametrize("way", WAYS)
def test_a_question_takes_no_longer_way_than_its_limit(found: dict[str, tuple[int, str]], way: str) -> None:
    status, text = found[way]
    assert status == 0, text
    assert text


def test_a_longer_way_is_found(found: dict[str, tuple[int, str]]) -> None:
    status, text = found["planted"]
    assert status == 1
    assert "over the limit of 26 files and 20 hops" in text


@pytest.mark.soak
def test_the_command_follows_every_way() -> None:
    done = subprocess.run([sys.executable, str(BENCHMARKS / "walk.py")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Dataset.mean, where and by" in done.stdout
