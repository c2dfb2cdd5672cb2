"""Cohorts that everybody left at once, for another one: when a period begins, and when cohorts become one.

Nobody comes back to a cohort that everybody left so, which is why one row for each such line of the journal is enough:
which cohorts were left, and for which. People's entries (`segments`) stay as they are, and are followed from cohort to
cohort. So a month that begins takes a few bytes for each cohort, and no entry for each person.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from epsilons.ledger.order import Codes
from epsilons.ledger.values import does_not_add_up
from epsilons.storage.base import Connection

#: Up to so many cohorts are followed step by step; for more, all are followed to the end.
_FEW = 10_000
_NUMBER = np.dtype("<u4")
_ROWS = "SELECT line, content FROM departures WHERE line > :line ORDER BY line"
#: A line of the journal, and which cohorts were left by it for which: all of the former, then all of the latter.
Row = tuple[int, bytes]


class Departures(NamedTuple):
    """Which cohort was left by which line of the journal, and for which, sorted by the former."""

    origins: NDArray[np.int64]
    lines: NDArray[np.int64]
    targets: NDArray[np.int64]

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Self:
        if any(len(content) % (2 * _NUMBER.itemsize) for _, content in rows):
            raise does_not_add_up("the roster has lost a piece")
        both = [np.frombuffer(content, _NUMBER).reshape(2, -1) for _, content in rows]
        origins, targets = np.concatenate([np.empty((2, 0), np.int64), *both], axis=1)
        lines = np.repeat(np.array([line for line, _ in rows], np.int64), [one.shape[1] for one in both])
        order = np.argsort(origins, kind="stable")
        return cls(origins[order], lines[order], targets[order])

    def follow(self, cohorts: Codes, before: NDArray[Any] | None = None) -> Codes:
        """Where people are now who came to these cohorts, or where each of them was before a line."""
        found = cohorts.astype(np.int64)
        if before is None and len(cohorts) > _FEW:
            at = self._find(found)
            found[at >= 0] = self._list_ends()[at[at >= 0]]
            return found
        on, last = np.arange(len(cohorts)), np.zeros(len(cohorts), np.int64)
        while len(on):
            at = self._find(found[on])
            on, at = on[at >= 0], at[at >= 0]
            goes = self.lines[at] > last[on]  # lines only grow on the way, so that there is an end to it
            if before is not None:
                goes &= self.lines[at] < before[on]
            on, at = on[goes], at[goes]
            found[on], last[on] = self.targets[at], self.lines[at]
        return found

    def _find(self, cohorts: Codes) -> Codes:
        """The place at which each of these cohorts was left; -1 where people are still in it."""
        if len(self.origins) == 0:
            return np.full(len(cohorts), -1)
        at = np.minimum(np.searchsorted(self.origins, cohorts), len(self.origins) - 1)
        return np.where(self.origins[at] == cohorts, at, -1)

    def _list_ends(self) -> Codes:
        """Where the people of every cohort that was left are now; each step is twice as long as the one before."""
        ends, then = self.targets, self._find(self.targets)
        then = np.where(self.lines[then] > self.lines, then, -1)
        while (then >= 0).any():
            ends, then = np.where(then < 0, ends, ends[then]), np.where(then < 0, -1, then[then])
        return ends

    def list_steps(self, cohort: int, before: int) -> Iterator[tuple[int, int]]:
        """(line, cohort) of those who came to this one, until they left by a line of their own."""
        last = 0
        while True:
            at = int(np.searchsorted(self.origins, cohort))
            if at == len(self.origins) or self.origins[at] != cohort or not last < self.lines[at] < before:
                return
            last, cohort = int(self.lines[at]), int(self.targets[at])
            yield last, cohort


def pack(steps: Mapping[int, int]) -> bytes:
    """Which cohorts were left, and for which."""
    origins = sorted(steps)
    return np.array([origins, [steps[origin] for origin in origins]], _NUMBER).tobytes()


def add(connection: Connection, line: int, steps: Mapping[int, int]) -> None:
    """By a line of the journal everybody in these cohorts went over to others."""
    new = {"line": line, "content": pack(steps)}
    connection.execute("INSERT INTO departures VALUES (:line, :content)", new)


def read_rows(connection: Connection, line: int = 0) -> list[Row]:
    """What was written by later lines."""
    return [(number, bytes(content)) for number, content in connection.execute(_ROWS, {"line": line})]


def read(connection: Connection) -> Departures:
    """All there were."""
    return Departures.of(read_rows(connection))
