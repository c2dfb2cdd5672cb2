"""What a table adds to a question: several rows per person, and groups that the caller named.

A person's rows are capped once, before any condition and any grouping. Whatever is asked, the reach of a sum is taken
over all groups together, in L1: a person's rows may lie in different groups, and under "replace" all of them may move
from one group to another (THEORY: "m rows", "2m*r under replace").
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Scope:
    """At most `rows` rows per person; `groups` are the labels asked for, None for a single answer.

    `fraction` is a public guess of the part of people who count, in each group. It steers plans and weights only.
    """

    rows: int = 1
    groups: tuple[Hashable, ...] | None = None
    fraction: float = 0.5

    @property
    def cells(self) -> int:
        """How many numbers are asked for."""
        return 1 if self.groups is None else len(self.groups)

    @property
    def expected(self) -> float:
        """How many rows of one person are expected to count, in each group: of 1 to `rows` rows the average."""
        return self.fraction * (1 + self.rows) / 2

    @property
    def moves(self) -> bool:
        """Whether a row can move from one group to another."""
        return self.cells > 1

    def reach(self, low: int, high: int) -> dict[str, int]:
        """The L1 reach of sums to which a row adds from `low` to `high`, or nothing when it does not count."""
        least, most = min(low, 0), max(high, 0)
        far = max(-least, most)
        return {"absent": self.rows * far, "replace": self.rows * (2 * far if self.moves else most - least)}

    def people_reach(self) -> dict[str, int]:
        """The same for counts of people: one person is in as many groups as they have rows, at most."""
        return {"absent": min(self.rows, self.cells), "replace": min(2 * self.rows, self.cells)}

    def per_row(self, neighbors: str) -> int:
        """By how much a person's loss exceeds that of one row in one group, for mechanisms that weigh rows."""
        return self.rows * (2 if self.moves and neighbors == "replace" else 1)

    def shaped(self, numbers: Iterable[Any]) -> Any:
        """One number, or a dict with one for each group."""
        if self.groups is None:
            (number,) = numbers
            return number
        return dict(zip(self.groups, numbers, strict=True))
