"""Named places where a test may end the process from outside: nothing happens unless the environment names one.

A process that reaches the place named by `EPSILONS_FAULT` stops there (SIGSTOP), and whoever started it sees that and
sends SIGKILL. It is a real kill -9 at a known place, with no luck involved.
"""

from __future__ import annotations

import os
import signal

VARIABLE = "EPSILONS_FAULT"

#: "...ing" stands inside the transaction, before it commits; the other form just after it is durable.
PLACES = (
    "enrolling",
    "enrolled",
    "reserving",
    "reserved",
    "touching",
    "touched",
    "refunding",
    "refunded",
    "storing",
    "stored",
    "anchoring",
)


def reach(place: str) -> None:
    """Stop here if a test asked for it."""
    if os.environ.get(VARIABLE) == place:
        os.kill(os.getpid(), signal.SIGSTOP)
