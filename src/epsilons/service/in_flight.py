"""Limits of a service that anybody may write to: how many requests at a time, and how much of them in memory.

What is beyond them is refused at once, by 503, and sent again; nothing waits in memory for its turn.
"""

import logging
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

#: So much of each request counts towards no limit: whoever sends a few bytes is not kept out by those who send many.
FREE_BYTES = 16 << 10
#: Errors of one kind are logged once in so many seconds, with their number.
_QUIET_SECONDS = 10.0


class InFlight:
    """At most `requests` at a time, which hold at most `size` bytes beyond the first few of each."""

    def __init__(self, requests: int, size: int) -> None:
        self._requests, self.room = requests, size

    @contextmanager
    def admit(self) -> Iterator["Held | None"]:
        """One request, until its reply has left; None if there is no room for it."""
        if not self._requests:
            yield None
            return
        self._requests -= 1
        held = Held(self)
        try:
            yield held
        finally:
            held.reach(0)
            self._requests += 1


class Held:
    """What one request holds in memory."""

    def __init__(self, among: InFlight) -> None:
        self._among, self._size = among, 0

    def reach(self, size: int) -> bool:
        """Whether there is room for so many bytes of it; then they are held."""
        more = max(size - FREE_BYTES, 0) - self._size
        if more > self._among.room:
            return False
        self._among.room -= more
        self._size += more
        return True


class ErrorLog:
    """Errors by their kind: what they say may quote what was sent or stored, and is never written."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._last: dict[str, float] = {}
        self._more: Counter[str] = Counter()

    def note(self, kind: str) -> None:
        now = time.monotonic()
        if now - self._last.get(kind, -_QUIET_SECONDS) < _QUIET_SECONDS:
            self._more[kind] += 1
            return
        self._last[kind] = now
        more = self._more.pop(kind, 0)
        self._log.error(f"{kind} ({more:,} more before)" if more else kind)
