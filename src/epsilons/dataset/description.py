"""What is publicly known of a dataset: its columns, its people per level, its books."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from epsilons.display import html_table, show, show_count, text_table


@dataclass(frozen=True)
class Level:
    """People of one grant: `left` is the least that anyone of them has left; None for public."""

    name: str
    epsilon: float
    people: int
    left: float | None


@dataclass(frozen=True)
class Description:
    """Public facts; asking for them costs nothing."""

    columns: tuple[tuple[str, str, str], ...]
    levels: tuple[Level, ...]
    withdrawn: int
    pending: int
    person: str
    rows_per_person: int
    neighbors: str
    version: str
    ledger: str
    epoch: int
    releases: int
    caveat: str
    rounding_loss: float
    preparation_seconds: float

    @property
    def people(self) -> int:
        """How many people are on the roster and have not withdrawn."""
        return sum(level.people for level in self.levels)

    @property
    def _many(self) -> bool:
        """So many wishes may well be a column of something else, named by mistake: they are counted, not listed."""
        return len(self.levels) > _MOST_SHOWN or self.rounding_loss > 0

    def hints(self) -> list[str]:
        """What a steward may still want to say; about declarations only, never about values."""
        hints = []
        if self._many:
            hints.append(f"{len(self.levels):,} levels: is the column of preferences the right one?")
        unbounded = [name for name, holds, facts in self.columns if holds == "number" and "in [" not in facts]
        unbounded = [name for name in unbounded if name != self.person]
        if unbounded:
            hints.append(f"No bounds: {', '.join(unbounded)}. Questions about them must give their own.")
        if self.version.startswith("no label"):
            hints.append("No version label: give one, so that the same question is known again.")
        if "in memory" in self.ledger:
            hints.append("No ledger: budgets are forgotten with this process.")
        if not any("complete" in facts for _, _, facts in self.columns):
            hints.append("No column is declared complete: means pay for the number of values as well.")
        return hints

    def to_dict(self) -> dict[str, Any]:
        """Plain values that survive JSON."""
        return {
            **self.__dict__,
            "columns": [dict(zip(("name", "holds", "facts"), column, strict=True)) for column in self.columns],
            "levels": [
                {**level.__dict__, "epsilon": None if level.left is None else level.epsilon}
                for level in (() if self._many else self.levels)
            ],
            "people": self.people,
        }

    def _level_rows(self) -> list[tuple[str, ...]]:
        if self._many:
            return [(f"{len(self.levels):,} levels", "not listed", f"{self.people:,}", "")]
        return [
            (level.name, "public" if level.left is None else show(level.epsilon), f"{level.people:,}", _left(level))
            for level in self.levels
        ]

    def _notes(self) -> list[str]:
        notes = [
            f"A person is a value of {self.person!r}, has at most {self.rows_per_person} "
            f"row{'s' if self.rows_per_person > 1 else ''}, and is protected against being {_AGAINST[self.neighbors]}.",
            f"Version: {self.version}.",
            f"Ledger: {self.ledger}; {self.releases} release{'' if self.releases == 1 else 's'} so far, "
            f"roster of epoch {self.epoch}.",
            "The roster (who is there, with which preference) is public and is not protected.",
            f"Preparation took {self.preparation_seconds:.2g} s.",
        ]
        if self.withdrawn:
            notes.insert(2, f"Withdrawn: {show_count(self.withdrawn, 'person', 'people')}, not used any more.")
        if self.pending:
            words = f"Looser wishes of {self.pending:,} people wait for sync_preferences(), or for `epsilons sync`."
            notes.insert(2, words)
        if self.rounding_loss:
            notes.insert(2, f"Preferences were rounded down to a fixed ladder, by {self.rounding_loss:.1%} on average.")
        return notes + ([self.caveat] if self.caveat else [])

    def __str__(self) -> str:
        levels = text_table(("level", "epsilon", "people", "left"), self._level_rows())
        columns = text_table(("column", "holds", "known"), self.columns)
        return "\n".join([show_count(self.people, "person", "people"), "", levels, "", columns, "", *self._notes()])

    def _repr_html_(self) -> str:
        head = ("level", "epsilon", "people", "left")
        first = html_table(show_count(self.people, "person", "people"), head, self._level_rows())
        return first + html_table("Columns", ("column", "holds", "known"), self.columns, self._notes())


#: More levels than this are counted, not listed.
_MOST_SHOWN = 64
_AGAINST = {"absent": "absent", "replace": "replaced by anyone else"}


def _left(level: Level) -> str:
    return "–" if level.left is None else show(level.left)
