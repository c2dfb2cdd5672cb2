"""Named places at which a process stands still, so that a test can kill it there: a real kill -9 at a known place.

What is installed here is Python code in the process itself: nothing outside it, no variable and no setting, can do so.
"""

from __future__ import annotations

import os
import signal

from epsilons.storage import base


def stop_at(place: str, once: str | None = None) -> None:
    """Stop this process (SIGSTOP) when it reaches the place; the test that started it sees that and sends SIGKILL.

    Of several processes only the one that makes the file `once`.
    """

    def told(reached: str) -> None:
        if reached != place:
            return
        if once is not None:
            try:
                os.close(os.open(once, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return
        os.kill(os.getpid(), signal.SIGSTOP)

    base.watchers.append(told)
