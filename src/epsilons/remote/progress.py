"""How far a long question is, for whoever waits for it."""

import sys
from collections.abc import Callable

#: (seconds passed, of how many), or None of either while it waits for its turn.
Progress = Callable[[float | None, float | None], None]


def show_progress(seconds: float | None, of: float | None) -> None:
    """A line in a terminal that is written over, and removed once nothing is left to wait for."""
    if sys.stderr.isatty():
        waits = "Waiting for other questions." if of is None else f"Answering: {seconds:.0f} of {of:.0f} s."
        done = seconds is not None and of is not None and seconds >= of
        sys.stderr.write("\r\x1b[K" + ("" if done else waits))
        sys.stderr.flush()
