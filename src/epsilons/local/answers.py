"""A spreadsheet of answers (CSV) for a survey. Bad rows are counted and named by their line; they are never fatal.

Columns by name: `answer`, or `round1` and `round2`; `level` for surveys with levels; `owner` if there is one, so that
nobody counts twice. Other columns are ignored. Without a line of names the columns stand in that order: the rounds,
then the level. A cell is an output's number or an option's label.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilons.errors import DataError, ProtocolError
from epsilons.local.estimate import Estimate
from epsilons.local.personal import PersonalResponse
from epsilons.local.survey import Survey

_LONGEST_LINE = 100_000
_DELIMITERS = (",", ";", "\t")


@dataclass(frozen=True, eq=False)
class Answers:
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
            raise DataError(
                f"There is no usable row.{first}",
                rule="Each row is one owner's answer.",
                suggest=f"columns {columns_of(self.survey)}",
            )
        protocol = self.survey.protocol
        if protocol is None:
            epsilons = [self.survey.levels[level] for level in self.levels]
            personal = PersonalResponse(epsilons, len(self.survey.options))
            return personal.estimate(personal.count(self.rounds[0]), **settings).named(self.survey.options)
        return protocol.estimate(*map(protocol.count, self.rounds)).named(self.survey.options)


def read_answers(path: str | Path, survey: Survey) -> Answers:
    """Read a CSV file."""
    try:
        with Path(path).open("rb") as file:
            return answers_from(_lines(file), survey)
    except OSError as error:
        raise DataError(f"The answers cannot be read: {error.strerror}.", suggest="another path") from None


def answers_from(lines: Iterable[str], survey: Survey) -> Answers:
    """The same from lines of text."""
    reader = _Reader(survey)
    for number, line in enumerate(lines, 1):
        reader.read(number, line)
    rounds = tuple(np.array(outputs, dtype=np.int64) for outputs in zip(*reader.rows, strict=True))
    if not rounds:
        rounds = (np.empty(0, np.int64),) * survey.rounds
    return Answers(survey, rounds, tuple(reader.levels), tuple(reader.bad))


def columns_of(survey: Survey) -> str:
    """The columns that a file for this survey has."""
    names = ["answer"] if survey.rounds == 1 else [f"round{k}" for k in range(1, survey.rounds + 1)]
    return ",".join([*names, *(["level"] if survey.levels else [])])


def _lines(file: Iterable[bytes]) -> Iterator[str]:
    for number, raw in enumerate(file):
        text = raw[:_LONGEST_LINE].decode("utf-8", errors="replace")
        yield text.removeprefix("\ufeff") if number == 0 else text


@dataclass
class _Reader:
    """Line by line, so that one broken quote costs one line and not the rest of the file."""

    survey: Survey
    rows: list[tuple[int, ...]] = field(default_factory=list)
    levels: list[str] = field(default_factory=list)
    bad: list[tuple[int, str]] = field(default_factory=list)
    places: dict[str, int] | None = None
    delimiter: str = ","
    owners: set[str] = field(default_factory=set)
    known: dict[str, int | None] = field(default_factory=dict)

    def read(self, number: int, line: str) -> None:
        if not line.strip():
            return
        if self.places is None:
            self.delimiter = max(_DELIMITERS, key=line.count)
            cells = self._cells(line)
            if cells is not None and self._take_names(cells):
                return
        cells = self._cells(line)
        if cells is None:
            self.bad.append((number, "the line cannot be read as cells"))
            return
        reason = self._take_row(cells)
        if reason is not None:
            self.bad.append((number, reason))

    def _cells(self, line: str) -> list[str] | None:
        try:
            rows = list(csv.reader([line], delimiter=self.delimiter, strict=True))
        except csv.Error:
            return None
        return [cell.strip() for cell in rows[0]] if rows else None

    def _take_names(self, cells: list[str]) -> bool:
        """Whether the first line holds the columns' names; if not, the columns stand in order."""
        needed = columns_of(self.survey).split(",")
        names = [cell.casefold() for cell in cells]
        if not set(names) & {*needed, "owner"}:
            self.places = {name: place for place, name in enumerate(needed)}
            return False
        missing = [name for name in needed if name not in names]
        doubled = [name for name in {*needed, "owner"} if names.count(name) > 1]
        if missing or doubled:
            raise ProtocolError(
                f"The column {(missing or sorted(doubled))[0]} is {'missing' if missing else 'there twice'}.",
                rule=f"The answers to this survey have the columns {', '.join(needed)}.",
                suggest=f"a first line {columns_of(self.survey)}",
            )
        self.places = {name: names.index(name) for name in (*needed, "owner") if name in names}
        return True

    def _take_row(self, cells: list[str]) -> str | None:
        """Keep a row, or say why not, without repeating what it says."""
        assert self.places is not None
        found = {name: cells[place] if place < len(cells) else "" for name, place in self.places.items()}
        outputs = []
        for name in columns_of(self.survey).split(","):
            if not found[name]:
                return f"{name} is empty"
            if name == "level":
                if found[name] not in self.survey.levels:
                    return "level is none of the survey's"
                continue
            output = self._output(found[name])
            if output is None:
                return f"{name} is none of the outputs"
            outputs.append(output)
        owner = found.get("owner")
        if owner is not None:
            if not owner:
                return "owner is empty"
            if owner in self.owners:
                return "this owner has answered before"
            self.owners.add(owner)
        self.rows.append(tuple(outputs))
        if self.survey.levels:
            self.levels.append(found["level"])
        return None

    def _output(self, cell: str) -> int | None:
        if cell not in self.known:
            output = self.survey.truth(cell)
            protocol = self.survey.protocol
            if output is None and protocol is not None and cell.isdecimal() and cell.isascii() and len(cell) < 9:
                # A construction may have an output that is no option, such as saying nothing.
                output = int(cell) if int(cell) < protocol.outputs else None
            if len(self.known) > 100_000:
                return output
            self.known[cell] = output
        return self.known[cell]
