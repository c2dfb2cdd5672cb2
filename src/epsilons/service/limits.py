"""What a role may take up: bytes, requests and questions at a time, requests a second. How many wait for a dataset.

They go by a key's name, without one by address, and are counted by each worker.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from epsilons.service.keys import ANALYST, OPERATOR, PERSON, STEWARD


@dataclass(frozen=True)
class Limits:
    """Bytes of a body; requests a second of one name, of which `burst` may come at once.

    `at_once` is how many requests, and how many questions that nobody may wait for, are worked on at a time.
    """

    body: int
    at_once: int
    rate: float = 50.0
    burst: int = 250


#: Whoever has no key is held to the last one. Stored answers are cheap: an office of 200 people may share a key.
LIMITS = {
    STEWARD: Limits(1 << 20, 16),
    ANALYST: Limits(1 << 18, 8, rate=250.0, burst=500),
    PERSON: Limits(1 << 12, 2, rate=2.0, burst=30),
    OPERATOR: Limits(1 << 10, 2, rate=2.0, burst=30),
    "": Limits(1 << 10, 64, rate=10.0, burst=100),
}
#: So many questions wait for one dataset.
WAITING = 256
#: Within this time the body of a request has arrived.
BODY_SECONDS = 10.0
#: So many names are remembered; a full allowance is what a new name has, so those are forgotten first.
_MOST_NAMES = 10_000


class Rates:
    """How many requests each name has left: `burst` at first, and `rate` more each second. Of one process."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._left: dict[str, tuple[float, float]] = {}

    def take(self, who: str, limits: Limits) -> int:
        """Count a request: 0, or in how many seconds the next one is allowed."""
        now = self._now()
        if len(self._left) >= _MOST_NAMES and who not in self._left:
            self._forget(now)
        left, since = self._left.get(who, (float(limits.burst), now))
        left = min(limits.burst, left + (now - since) * limits.rate)
        if left < 1:
            self._left[who] = left, now
            return max(1, math.ceil((1 - left) / limits.rate))
        self._left[who] = left - 1, now
        return 0

    def _forget(self, now: float) -> None:
        """The half that was idle longest."""
        oldest = sorted(self._left, key=lambda who: self._left[who][1])
        for who in oldest[: _MOST_NAMES // 2]:
            del self._left[who]
