"""What people asked for: by id, in the order of the data, or in the columns of a table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilons.display import Shown, show_count
from epsilons.errors import Argument, PreferenceError
from epsilons.guarantee import to_epsilon
from epsilons.preferences.ids import look_up
from epsilons.preferences.roster import LEVELS, Roster, roster_of, to_single_nano


@dataclass(frozen=True)
class PreferenceColumn:
    """The column of a table that holds preferences: epsilons, or names of levels.

    `source` is the table that has it, with the people in its column `person`; None is the data themselves.
    """

    column: str
    levels: Mapping[str, float] | None = None
    source: Any = None
    person: str | None = None
    types: Mapping[str, str] | None = None
    dialect: Mapping[str, str] | None = None


class Preferences(Shown):
    """What each person asked for, before it is matched with data.

    >>> from epsilons import PUBLIC, Preferences
    >>> Preferences({"ann": .1, "bob": PUBLIC}, default=.05).assign(["bob", "cy", "ann"]).levels.grants
    (50000000, 100000000, None)
    >>> Preferences.from_levels(["strict", "open"], {"strict": .05, "open": 1}).assign().levels.sizes
    (1, 1)
    """

    def __init__(self, epsilons: Mapping[Any, float] | Sequence[float] | NDArray[Any], default: float | None = None):
        self.default = default
        #: The level that the default was given as.
        self.default_level: str | None = None
        if default is not None:
            to_single_nano(default)
        self.names: dict[float, str] = {}
        #: What names of levels mean.
        self.levels: dict[str, float] = {}
        #: Where a table holds the preferences.
        self.column: PreferenceColumn | None = None
        #: {id: epsilon} where preferences were given that way.
        self.by_person = dict(epsilons) if isinstance(epsilons, Mapping) else None
        # Read once, for every call: what becomes of the caller's array afterwards changes nobody's preference.
        self._aligned = None if isinstance(epsilons, Mapping) else roster_of(epsilons, default)

    def __str__(self) -> str:
        where = "in the data's order" if self.column is None else f"from column {self.column.column!r}"
        people = where if self.by_person is None or self.column else show_count(len(self.by_person), "person", "people")
        levels = [f"{name} {epsilon:g}" for epsilon, name in self.names.items()]
        levels += [] if self.default is None else [f"default {self.default:g}"]
        return f"Preferences ({', '.join([people, *levels])})"

    @classmethod
    def from_column(cls, column: str, default: float | None = None) -> Preferences:
        """For a table: each person's epsilon stands in this column (infinite: public; missing: the default)."""
        return cls._of_table(PreferenceColumn(_check_column(column)), default)

    @classmethod
    def from_file(
        cls,
        path: Any,
        *,
        person: str,
        column: str,
        levels: Mapping[str, float] | None = None,
        default: float | str | None = None,
        types: Mapping[str, str] | None = None,
        dialect: Mapping[str, str] | None = None,
    ) -> Preferences:
        """For a table: each person's epsilon, or with `levels` the name of one, stands in another table.

        `path` is a file, or a frame of pandas, polars or Arrow; `person` names its column of ids, written as in the
        data. Columns of a CSV file are text unless `types` says so; an epsilon may stay text, and ids are read in the
        data's kind; `dialect` says how it is written. People who are in the data and not there have the default.
        """
        where = PreferenceColumn(_check_column(column), levels, path, _check_column(person), types, dialect)
        return cls._of_table(where, default)

    @classmethod
    def _of_table(cls, column: PreferenceColumn, default: float | str | None) -> Preferences:
        known = {} if column.levels is None else _check_levels(column.levels)
        level = default if isinstance(default, str) else None
        if column.levels is not None:
            default = _find_default(known, column.levels, default)
        elif isinstance(default, str | Mapping):
            hint = (Argument("default", 0.05), '; names of levels: from_levels("privacy", {"strict": 0.05, ...})')
            raise PreferenceError("A default of a column of epsilons is a number.", suggest=hint)
        made = cls({}, default)
        made.column, made.default_level = column, level
        made._name_levels(known)
        return made

    @classmethod
    def from_levels(
        cls, names: str | Sequence[str], levels: Mapping[str, float], default: str | None = None
    ) -> Preferences:
        """One level name per person, in the order of the data; a missing name takes the default level.

        For a table `names` is the column that holds them: `from_levels("privacy", {"strict": .05, "open": 1})`.
        """
        known = _check_levels(levels)
        if isinstance(names, str):
            return cls._of_table(PreferenceColumn(names, dict(levels)), default)
        standard = _find_default(known, levels, default)
        column = np.asarray(names, dtype=object)
        epsilons = np.full(len(column), math.nan)
        for name, nano in known.items():
            epsilons[column == name] = to_epsilon(nano)
        missing = np.array([name is None or name != name for name in column], dtype=bool)
        unknown = sorted({str(name) for name in column[np.isnan(epsilons) & ~missing]})
        if unknown:
            what = f"Unknown privacy levels: {', '.join(unknown[:5])}."
            hint = f"one of {', '.join(known)}, or add the missing level"
            raise PreferenceError(what, rule="Every level that people chose needs an epsilon.", suggest=hint)
        preferences = cls(epsilons, standard)
        preferences._name_levels(known)
        return preferences

    def _name_levels(self, known: Mapping[str, int | None]) -> None:
        """Give epsilons the names of their levels; two levels with one epsilon are one."""
        for name, nano in known.items():
            self.levels[name] = to_epsilon(nano)
            same = self.names.get(to_epsilon(nano))
            self.names[to_epsilon(nano)] = name if same is None else f"{same} or {name}"

    def assign(self, people: Sequence[Any] | None = None) -> Roster:
        """Match preferences with people: by id if they were given by id, else by position."""
        if self.column is not None:
            in_table = "These preferences stand in a table."
            raise PreferenceError(in_table, rule="Arrays have no columns.", suggest="a dataset of the table")
        if self._aligned is not None:
            roster = self._aligned
        elif people is None:
            unnamed = "These preferences are by person, and no people were named."
            raise PreferenceError(unnamed, suggest="one id per value")
        else:
            roster = roster_of(look_up(self.by_person or {}, people), self.default)
        present = {to_epsilon(grant) for grant in roster.levels.grants}
        names = {epsilon: name for epsilon, name in self.names.items() if epsilon in present}
        return Roster.of(replace(roster.levels, names=names), roster.codes)


def _check_levels(levels: Any) -> dict[str, int | None]:
    if not isinstance(levels, Mapping) or not levels or not all(isinstance(name, str) for name in levels):
        raise PreferenceError("Levels are names with epsilons.", suggest=LEVELS)
    return {name: to_single_nano(epsilon) for name, epsilon in levels.items()}


def _find_default(known: Mapping[str, Any], levels: Mapping[str, float], default: float | str | None) -> float | None:
    if default is None:
        return None
    if not isinstance(default, str) or default not in known:
        unknown, rule = f"The default level {default!r} is not one of the levels.", f"Levels: {', '.join(known)}."
        raise PreferenceError(unknown, rule=rule, suggest=Argument("default", next(iter(known))))
    return float(levels[default])


def _check_column(column: Any) -> str:
    if not isinstance(column, str) or not column:
        raise PreferenceError("A column is given by its name.", suggest=Argument("column", "epsilon"))
    return column
