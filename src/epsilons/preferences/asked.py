"""What people asked for: by id, in the order of the data, or in the columns of a table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilons.errors import PreferenceError
from epsilons.guarantee import to_epsilon
from epsilons.preferences.roster import Levels, Roster, one_nano, roster_of


@dataclass(frozen=True)
class Wishes:
    """Where a table says what people want: a column of epsilons, or of level names.

    `source` is the table that has it, with the people in its column `person`; None is the data themselves.
    """

    column: str
    levels: Mapping[str, float] | None = None
    source: Any = None
    person: str | None = None
    types: Mapping[str, str] | None = None


class Preferences:
    """What each person asked for, before it is matched with data.

    >>> from epsilons import PUBLIC, Preferences
    >>> Preferences({"ann": .1, "bob": PUBLIC}, default=.05).assign(["bob", "cy", "ann"]).levels.grants
    (50000000, 100000000, None)
    >>> Preferences.from_levels(["strict", "open"], {"strict": .05, "open": 1}).assign().levels.sizes
    (1, 1)
    """

    def __init__(self, epsilons: Mapping[Any, float] | Sequence[float] | NDArray[Any], default: float | None = None):
        self.default = default
        if default is not None:
            one_nano(default)
        self.names: dict[float, str] = {}
        #: Set where a table says what people want.
        self.wishes: Wishes | None = None
        self._by_person = dict(epsilons) if isinstance(epsilons, Mapping) else None
        self._aligned = None if isinstance(epsilons, Mapping) else epsilons

    @property
    def by_person(self) -> Mapping[Any, float] | None:
        """{id: epsilon} where preferences were given that way."""
        return self._by_person

    @classmethod
    def from_column(cls, column: str, default: float | None = None) -> Preferences:
        """For a table: each person's epsilon stands in this column (infinite: public; missing: the default)."""
        return cls._of_table(Wishes(_check_column(column)), default)

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
    ) -> Preferences:
        """For a table: each person's epsilon, or with `levels` the name of one, stands in another table.

        `path` is a file, or a frame of pandas, polars or Arrow; `person` names its column of ids, written as in the
        data. Columns of a CSV file are text unless `types` says so; an epsilon may stay text, an id of whole numbers
        needs `types={"id": "int"}`. Whoever is in the data and not there has the default.
        """
        wishes = Wishes(_check_column(column), levels, path, _check_column(person), types)
        return cls._of_table(wishes, default)

    @classmethod
    def _of_table(cls, wishes: Wishes, default: float | str | None) -> Preferences:
        if wishes.levels is not None:
            default = _default_level(_known_levels(wishes.levels), wishes.levels, default)
        elif isinstance(default, str):
            raise PreferenceError("A default of a column of epsilons is a number.", suggest="default=0.05")
        made = cls({}, default)
        made.wishes = wishes
        if wishes.levels is not None:
            made._call(_known_levels(wishes.levels))
        return made

    @classmethod
    def from_levels(
        cls, names: str | Sequence[str], levels: Mapping[str, float], default: str | None = None
    ) -> Preferences:
        """One level name per person, in the order of the data; a missing name takes the default level.

        For a table `names` is the column that holds them: `from_levels("privacy", {"strict": .05, "open": 1})`.
        """
        known = _known_levels(levels)
        if isinstance(names, str):
            return cls._of_table(Wishes(names, dict(levels)), default)
        standard = _default_level(known, levels, default)
        column = np.asarray(names, dtype=object)
        epsilons = np.full(len(column), math.nan)
        for name, nano in known.items():
            epsilons[column == name] = to_epsilon(nano)
        missing = np.array([name is None or name != name for name in column], dtype=bool)
        unknown = sorted({str(name) for name in column[np.isnan(epsilons) & ~missing]})
        if unknown:
            raise PreferenceError(
                f"Unknown privacy levels: {', '.join(unknown[:5])}.",
                rule="Every level that people chose needs an epsilon.",
                suggest=f"one of {', '.join(known)}, or add the missing level",
            )
        preferences = cls(epsilons, standard)
        preferences._call(known)
        return preferences

    def _call(self, known: Mapping[str, int | None]) -> None:
        """Give epsilons the names of their levels; two levels with one epsilon are one."""
        for name, nano in known.items():
            same = self.names.get(to_epsilon(nano))
            self.names[to_epsilon(nano)] = name if same is None else f"{same} or {name}"

    def assign(self, people: Sequence[Any] | None = None) -> Roster:
        """Match preferences with people: by id if they were given by id, else by position."""
        if self.wishes is not None:
            raise PreferenceError(
                "These preferences stand in a table.", rule="Arrays have no columns.", suggest="eps.Dataset(table, ...)"
            )
        if self._by_person is None:
            roster = roster_of(self._aligned, self.default)
        else:
            if people is None:
                raise PreferenceError(
                    "These preferences are by person, and no people were named.",
                    suggest="preferences.assign(ids), with one id per value",
                )
            try:
                asked = [self._by_person.get(person, math.nan) for person in people]
            except TypeError:
                raise PreferenceError(
                    "An id cannot be looked up.", rule="Preferences are found by id.", suggest="a word or number as id"
                ) from None
            roster = roster_of(asked, self.default)
        levels = roster.levels
        names = {e: n for e, n in self.names.items() if e in {to_epsilon(g) for g in levels.grants}}
        return Roster(Levels(levels.grants, levels.sizes, names, levels.rounding_loss), roster.codes)


def _known_levels(levels: Any) -> dict[str, int | None]:
    if not isinstance(levels, Mapping) or not levels or not all(isinstance(name, str) for name in levels):
        raise PreferenceError("Levels are names with epsilons.", suggest='{"strict": 0.05, "open": 1}')
    return {name: one_nano(epsilon) for name, epsilon in levels.items()}


def _default_level(
    known: Mapping[str, int | None], levels: Mapping[str, float], default: float | str | None
) -> float | None:
    if default is None:
        return None
    if not isinstance(default, str) or default not in known:
        raise PreferenceError(
            f"The default level {default!r} is not one of the levels.", suggest=f"one of {', '.join(known)}"
        )
    return float(levels[default])


def _check_column(column: Any) -> str:
    if not isinstance(column, str) or not column:
        raise PreferenceError("A column is given by its name.", suggest='eps.Preferences.from_column("epsilon")')
    return column
