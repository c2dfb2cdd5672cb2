"""A spreadsheet of answers (CSV) for a survey. Bad rows are counted and named by their line; they are never fatal.

Columns by name: `answer`, or `round1` and `round2`; `level` for surveys with levels; `owner` if there is one, so that
no owner counts twice. Other columns are ignored. Without a line of names the columns stand in that order: the rounds,
then the level. A cell is an output's number or an option's label.
"""

import csv
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilons.errors import DataError, ProtocolError
from epsilons.local.estimate import Estimate
from epsilons.local.personal import PersonalResponse
from epsilons.local.survey import Survey

_LONGEST_LINE = 100_000


@dataclass(frozen=True, eq=False)
class AnswerSheet:
    """The usable rows, one array of outputs per round, and (line, reason) of every row that was left out."""

    survey: Survey
    rounds: tuple[NDArray[np.int64], ...]
    levels: tuple[str, ...]
    bad: tuple[tuple[int, str], ...]

    def __len__(self) -> int:
        return len(self.rounds[0])

    def estimate(self, **settings: Any) -> Estimate:
        """The estimate, with the options' labels; `settings` go to the estimate of a survey with levels."""
        if not len(self):
            first = f" Line {self.bad[0][0]}: {self.bad[0][1]}." if self.bad else ""
            hint = f"columns {columns_of(self.survey)}"
            raise DataError(f"There is no usable row.{first}", rule="Each row is one owner's answer.", suggest=hint)
        protocol, options = self.survey.protocol, self.survey.options
        if protocol is None:
            personal = PersonalResponse([self.survey.levels[level] for level in self.levels], len(options))
            found = personal.estimate(personal.count(self.rounds[0]), **settings)
        else:
            found = protocol.estimate(*map(protocol.count, self.rounds))
        return replace(found, labels=options)


def read_answers(path: str | Path, survey: Survey) -> AnswerSheet:
    try:
        with Path(path).open(encoding="utf-8-sig", errors="replace", newline="\n") as file:
            return answers_from((line[:_LONGEST_LINE] for line in file), survey)
    except OSError as error:
        raise DataError(f"The answers cannot be read: {error.strerror}.", suggest="another path") from None


def answers_from(lines: Iterable[str], survey: Survey) -> AnswerSheet:
    reader = _Reader(survey)
    bad = tuple((number, why) for number, line in enumerate(lines, 1) if (why := reader.read(line)) is not None)
    rounds = np.array(reader.rows, dtype=np.int64).reshape(-1, survey.rounds).T
    return AnswerSheet(survey, tuple(rounds), tuple(reader.levels), bad)


def columns_of(survey: Survey) -> str:
    names = ["answer"] if survey.rounds == 1 else [f"round{k}" for k in range(1, survey.rounds + 1)]
    return ",".join([*names, *(["level"] if survey.levels else [])])


@dataclass
class _Reader:
    """Line by line, so that one broken quote costs one line and not the rest of the file."""

    survey: Survey
    rows: list[list[int]] = field(default_factory=list)
    levels: list[str] = field(default_factory=list)
    places: dict[str, int] | None = None
    delimiter: str = ","
    owners: set[str] = field(default_factory=set)

    def read(self, line: str) -> str | None:
        """Keep a row, or say why not, without repeating what it says."""
        if not line.strip():
            return None
        if self.places is None:
            self.delimiter = max((",", ";", "\t"), key=line.count)
        try:
            (row,) = csv.reader([line], delimiter=self.delimiter, strict=True)
        except (csv.Error, ValueError):
            return "the line cannot be read as cells"
        if self.places is None and self._take_names([cell.strip().casefold() for cell in row]):
            return None
        return self._take_row([cell.strip() for cell in row])

    def _take_names(self, names: list[str]) -> bool:
        """Whether the first line holds the columns' names; if not, the columns stand in order."""
        needed = columns_of(self.survey).split(",")
        if not set(names) & {*needed, "owner"}:
            self.places = {name: place for place, name in enumerate(needed)}
            return False
        missing = [name for name in needed if name not in names]
        doubled = sorted(name for name in {*needed, "owner"} if names.count(name) > 1)
        if missing or doubled:
            what = f"The column {(missing or doubled)[0]} is {'missing' if missing else 'there twice'}."
            raise ProtocolError(what, suggest=f"a first line {columns_of(self.survey)}")
        self.places = {name: names.index(name) for name in (*needed, "owner") if name in names}
        return True

    def _take_row(self, cells: list[str]) -> str | None:
        found = {name: cells[place] if place < len(cells) else "" for name, place in (self.places or {}).items()}
        # A construction may have an output that is no option, such as saying nothing.
        outputs, largest = [], None if self.survey.protocol is None else self.survey.protocol.outputs - 1
        for name, cell in found.items():
            if not cell:
                return f"{name} is empty"
            if name == "level" and cell not in self.survey.levels:
                return "level is none of the survey's"
            if name == "owner" and cell in self.owners:
                return "this owner has answered before"
            if name not in ("level", "owner"):
                if (output := self.survey.truth(cell, largest)) is None:
                    return f"{name} is none of the outputs"
                outputs.append(output)
        self.owners.update([found["owner"]] if "owner" in found else [])
        self.levels.extend([found["level"]] if "level" in found else [])
        self.rows.append(outputs)
        return None
