"""Several workers: what is said where one of them ends before it is ready, however it ends."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

#: Two workers, of which one does what the argument says; the other is ready and waits.
PROGRAM = """
import os, signal, sys, time
from epsilons.service.workers import run_workers
here, first = os.getpid(), os.path.join(sys.argv[2], "first")
def work(ready):
    try:
        os.close(os.open(first, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        ready()
        time.sleep(600)
    if sys.argv[1] == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    sys.exit(3)
status = run_workers(2, work, lambda: print("ready", flush=True))
if os.getpid() == here:
    print(status, flush=True)
"""


@pytest.mark.parametrize(("how", "status"), [("killed", -signal.SIGKILL), ("failed", 3)])
def test_a_worker_that_ends_before_it_is_ready_ends_all(tmp_path: object, how: str, status: int) -> None:
    """Also where it was killed, for want of memory say: nobody waits for a word from it."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, how, str(tmp_path)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.split() == [str(status)]
    assert "Traceback" not in done.stderr
