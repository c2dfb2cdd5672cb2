"""Time that passes by what is worked, whatever else the machine does.

A loop whose clock goes on by the processor time of what its threads would do, by what they sleep, and from one timer to
the next: nobody waits. What is timed by it is the same on a busy machine as on a quiet one.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from epsilons.service import clock


class PassingLoop(asyncio.SelectorEventLoop):
    """Calls for threads are made at once, one after the other, and are over when their processor time has passed."""

    def __init__(self) -> None:
        self._now, self._slept = 0.0, 0.0
        super().__init__(_Passing(self))

    def time(self) -> float:
        return self._now

    def pass_on(self, seconds: float) -> None:
        self._now += seconds

    def sleep(self, seconds: float) -> None:
        """What a thread calls that sleeps."""
        self._slept += seconds

    def run_in_executor(self, executor: Any, call: Callable[..., Any], *arguments: Any) -> Any:
        done, self._slept, began = self.create_future(), 0.0, time.process_time()
        try:
            outcome, tell = call(*arguments), done.set_result
        except Exception as failure:
            outcome, tell = failure, done.set_exception
        self.call_later(time.process_time() - began + self._slept, lambda: done.cancelled() or tell(outcome))
        return done


class _Passing(selectors.DefaultSelector):
    """Nothing but timers is waited for: the next one is due at once."""

    def __init__(self, loop: PassingLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:
            raise AssertionError("Everybody waits for something that never comes.")
        self._loop.pass_on(max(timeout, 0.0))
        return super().select(0)


@contextmanager
def passing() -> Iterator[Callable[[], PassingLoop]]:
    """A factory of loops, while the gateway's clock is that of the running one."""
    with patch.object(clock, "time", SimpleNamespace(monotonic=lambda: asyncio.get_running_loop().time())):
        yield PassingLoop
