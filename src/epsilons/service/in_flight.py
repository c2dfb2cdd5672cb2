"""Limits of a service that anybody may write to: how many requests at a time, and how much of them in memory.

What is beyond them is refused at once, by 503, and sent again; nothing waits in memory for its turn.
"""

import logging
import time
from collections import Counter
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

#: So much of each request counts towards no limit: whoever sends a few bytes is not kept out by those who send many.
FREE_BYTES = 16 << 10
#: Errors of one kind are logged once in so many seconds, with their number.
_QUIET_SECONDS = 10.0


class InFlight:
    """At most `requests` at a time, which hold at most `size` bytes beyond the first few of each.

    Of both an address has half at most, so that one that takes all it can keeps no other out.
    """

    def __init__(self, requests: int, size: int) -> None:
        self.most, self.held = (requests, size), [0, 0]
        self.by_address: dict[str, list[int]] = {}

    @contextmanager
    def admit(self, address: str | None) -> Iterator["Held | None"]:
        """One request, until its reply has left; None if there is no room for it. Without an address all is its."""
        held = Held(self, address)
        if not held.take(0, 1):
            yield None
            return
        try:
            yield held
        finally:
            held.reach(0)
            held.take(0, -1)


class Held:
    """What one request holds in memory."""

    def __init__(self, among: InFlight, address: str | None) -> None:
        self._among, self._address, self._size = among, address, 0

    def reach(self, size: int) -> bool:
        """Whether there is room for so many bytes of it; then they are held."""
        more = max(size - FREE_BYTES, 0) - self._size
        if not self.take(1, more):
            return False
        self._size += more
        return True

    def take(self, what: int, more: int) -> bool:
        """Whether there is room for more requests (0), or bytes (1); then they are taken. Less always goes back."""
        among = self._among
        counts = [(among.held, among.most[what])]
        if self._address is not None:
            counts.append((among.by_address.setdefault(self._address, [0, 0]), among.most[what] // 2))
        fits = more <= 0 or all(held[what] + more <= most for held, most in counts)
        for held, _ in counts if fits else []:
            held[what] += more
        if self._address is not None and not any(among.by_address[self._address]):
            del among.by_address[self._address]
        return fits


def address_of(scope: MutableMapping[str, Any]) -> str:
    """Where a request comes from; one that cannot be told is an address like any other."""
    return str((scope.get("client") or ("",))[0])


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
