"""Several processes that take requests from one socket. One that dies is replaced; what it had begun is not lost."""

import os
import signal
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

#: Seconds before a worker that died is replaced, so that a fault that comes again does not take the machine.
_PAUSE = 0.5


class Interrupted(BaseException):
    """Somebody asked this process to end."""


def run_workers(count: int, work: Callable[[Callable[[], None]], None], ready: Callable[[], None]) -> int:
    """Run so many workers until interrupted; the status of one that ended before it was ready.

    `work` calls what it is given once requests may come, and returns in the worker's own process. `ready` is called
    here when all workers are there.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # those who ignore it hand that down, and their children are not seen
    signal.signal(signal.SIGTERM, _interrupt)
    here, (alive, held) = os.getpid(), os.pipe()
    running: set[int] = set()
    beginning: list[tuple[int, int]] = []
    try:
        for _ in range(count):
            told, tell = os.pipe()
            if (child := os.fork()) == 0:
                return _be_worker(work, alive, held, partial(_tell, tell))
            running.add(child)
            beginning.append((child, told))
            os.close(tell)  # it ends with the worker, who alone holds it
        for child, told in beginning:
            if not os.read(told, 1):  # it failed, or was killed
                _, status = os.waitpid(child, 0)
                running.discard(child)
                return os.waitstatus_to_exitcode(status)
            os.close(told)
        ready()
        while True:
            ended, _ = os.wait()
            running.discard(ended)
            time.sleep(_PAUSE)
            if (child := os.fork()) == 0:
                return _be_worker(work, alive, held, lambda: None)
            running.add(child)
    except (KeyboardInterrupt, Interrupted):
        return 0
    finally:
        if os.getpid() == here:
            _end(running)


def _be_worker(work: Callable[[Callable[[], None]], None], alive: int, held: int, ready: Callable[[], None]) -> int:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.close(held)
    threading.Thread(target=_end_with_parent, args=(alive,), daemon=True).start()
    work(ready)
    return 0


def _tell(tell: int) -> None:
    os.write(tell, b"+")


def _end_with_parent(alive: int) -> None:
    """The pipe ends with the only process that holds its other end."""
    os.read(alive, 1)
    os.kill(os.getpid(), signal.SIGTERM)


def _interrupt(*_: Any) -> None:
    raise Interrupted


def _end(running: set[int]) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for child in running:
        try:
            os.kill(child, signal.SIGTERM)
        except ProcessLookupError:
            continue
        os.waitpid(child, 0)
