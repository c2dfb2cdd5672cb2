"""Levels within public groups: of everybody with one grant, how many stand in which group of the public columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from epsilons.preferences.roster import Levels


@dataclass(frozen=True)
class Strata(Levels):
    """Levels told apart by public groups: the i-th is one of the group `groups[i]`, and a grant may occur in several.

    `left_by` are those of each group who are left out.
    """

    groups: tuple[int, ...] = ()
    left_by: tuple[int, ...] = ()

    def __hash__(self) -> int:
        return hash((super().__hash__(), self.groups, self.left_by))

    def to_plain(self) -> dict[str, Any]:
        """What it has beside levels, as plain values."""
        return {"groups": self.groups, "left_by": self.left_by}
