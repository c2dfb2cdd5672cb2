"""People with several rows, slow and obvious: the definitions to which filtered statistics and tables are held.

A row is (group, value): the place of its group, or None for a row that meets no condition or falls into no group that
was asked for; a value that is NaN is missing. Arithmetic is in fractions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilons.guarantee import to_epsilon
from epsilons.noise.entropy import Entropy
from epsilons.preferences import Levels, Roster, roster_of
from epsilons.statistics.additive import Additive
from epsilons.statistics.base import Question
from epsilons.statistics.count import Count
from epsilons.statistics.histogram import Histogram
from epsilons.statistics.order import Order
from epsilons.statistics.total import Mean, Sum
from epsilons.statistics.variance import Variance
from epsilons.summaries.cells import SortedCells

Row = tuple[int | None, float]
#: Everything that one person has.
Rows = tuple[Row, ...]
STEPS = 1 << 30
MISSING = math.nan


def round_half_up(number: Fraction) -> int:
    return math.floor(number + Fraction(1, 2))


def clipped(value: float, bounds: tuple[float, float]) -> Fraction:
    return Fraction(min(max(value, bounds[0]), bounds[1]))


def centred(value: float, bounds: tuple[float, float]) -> Fraction:
    """(x - c)/h."""
    low, high = (Fraction(bound) for bound in bounds)
    return (clipped(value, bounds) - (low + high) / 2) / ((high - low) / 2)


def bin_of(value: float, edges: Sequence[float]) -> int | None:
    """[edge, next edge), the last one with its end."""
    for place, (low, high) in enumerate(itertools.pairwise(edges)):
        if low <= value < high or value == high == edges[-1]:
            return place
    return None


def row_steps(value: float, bounds: tuple[float, float]) -> dict[str, int]:
    """What a row adds to sums of values, by their names."""
    u = centred(value, bounds)
    from_centre, square = round_half_up(u * STEPS), round_half_up((u * u - Fraction(1, 2)) * STEPS)
    return {
        "rows": 1,
        "centred sum": from_centre,
        "above": STEPS + from_centre,
        "below": STEPS - from_centre,
        "centred squares": square,
        "squares": STEPS // 2 + square,
        "rest of squares": STEPS // 2 - square,
    }


def contribution(statistic: Additive, rows: Rows, names: Sequence[str] = ()) -> list[list[int]]:
    """What one person adds to each part of a summary, or to other sums by their names, cell by cell."""
    assert statistic.scope is not None
    names = names or [part.name for part in statistic.parts]
    sums = [[0] * statistic.parts[0].cells for _ in names]
    if isinstance(statistic, Count):
        counted = [group for group, value in rows if group is not None and not math.isnan(value)]
        for group in set(counted) if statistic.of == "people" else counted:
            sums[0][group] += 1
        return sums
    for group, value in rows:
        if group is None or math.isnan(value):
            continue
        if isinstance(statistic, Histogram):
            assert statistic.edges is not None
            place = bin_of(value, statistic.edges)
            if place is not None:
                sums[0][group * statistic.bins + place] += 1
        elif isinstance(statistic, Sum):
            largest = Fraction(max(abs(bound) for bound in statistic.bounds))
            sums[0][group] += round_half_up(clipped(value, statistic.bounds) * STEPS / largest)
        else:
            assert isinstance(statistic, (Mean, Variance))
            steps = row_steps(value, statistic.bounds)
            for name, part in zip(names, sums, strict=True):
                part[group] += steps[name]
    return sums


@dataclass(frozen=True, eq=False)
class RowPeople:
    """People of a roster and all their rows: `rows[i]` are those of person i."""

    rows: tuple[Rows, ...]
    roster: Roster

    @property
    def levels(self) -> Levels:
        return self.roster.levels

    def tally(self, statistic: Additive) -> list[NDArray[np.int64]]:
        cells = statistic.parts[0].cells
        parts = [np.zeros((len(self.levels.grants), cells), np.int64) for _ in statistic.summed]
        for code, rows in zip(self.roster.codes, self.rows, strict=True):
            for part, sums in zip(parts, contribution(statistic, rows, statistic.summed), strict=True):
                part[code] += sums
        return parts

    def grouped_cells(self, statistic: Order) -> list[SortedCells]:
        found = []
        for place in range(1 if statistic.scope is None else statistic.scope.cells):
            keys = []
            for code, rows in zip(self.roster.codes, self.rows, strict=True):
                for group, value in rows:
                    if group == place and not math.isnan(value):
                        low = Fraction(statistic.bounds[0])
                        cell = round_half_up((clipped(value, statistic.bounds) - low) / statistic.spacing)
                        keys.append(min(cell, statistic.points - 1) << 8 | int(code))
            missing = np.zeros(len(self.levels.grants), np.int64)
            found.append(SortedCells(np.array(sorted(keys), np.int64), missing, len(self.levels.grants)))
        return found

    def cells(self, statistic: Order) -> SortedCells:
        (found,) = self.grouped_cells(statistic)
        return found

    def only(self, kept: Sequence[bool]) -> RowPeople:
        """The same people with the rows of those who were not sampled left out: all of a person's rows or none."""
        return RowPeople(tuple(rows if keep else () for rows, keep in zip(self.rows, kept, strict=True)), self.roster)

    def sampled_tally(self, statistic: Additive, chances: Sequence[int], entropy: Entropy) -> list[NDArray[np.int64]]:
        raise NotImplementedError("samples are listed here, not drawn")

    sampled_cells = sampled_tally  # type: ignore[assignment]


def all_rows(most: int, groups: int, values: Sequence[float]) -> list[Rows]:
    """Everything that a person with at most so many rows can have: nothing, rows that do not count, and the rest."""
    alphabet: list[Row] = [(None, 0.0), (0, MISSING), *itertools.product(range(groups), values)]
    return [
        tuple(rows) for count in range(most + 1) for rows in itertools.combinations_with_replacement(alphabet, count)
    ]


def vectors(statistic: Additive, people: Sequence[Rows]) -> list[NDArray[np.int64]]:
    """contribution[part][person, cell]."""
    listed = [contribution(statistic, rows) for rows in people]
    return [np.array([sums[part] for sums in listed], np.int64) for part in range(len(statistic.parts))]


def distances(part: NDArray[np.int64]) -> NDArray[np.int64]:
    """The L1 distance of each pair of people's contributions."""
    return np.array([np.abs(part - one).sum(axis=1) for one in part])


def samples(count: int) -> Iterator[tuple[bool, ...]]:
    return itertools.product((False, True), repeat=count)


def worst_ratio(
    mechanism: Any, statistic: Additive, neighbors: str, epsilons: tuple[float, ...], bounds: tuple[float, float]
) -> float:
    """The largest loss of person 0 over what they are charged, over all rows that they can have; others have two."""
    question, roster = Question(statistic, neighbors), roster_of(list(epsilons))
    assert mechanism.refuses(question, roster.levels) is None
    assert statistic.scope is not None
    others = (((0, bounds[1]), (0, bounds[0])),) * (len(epsilons) - 1)
    mine = all_rows(statistic.scope.rows, statistic.scope.cells, bounds)
    found = [mechanism.distribution(question, RowPeople((rows, *others), roster))[1] for rows in mine]
    laws = np.array(found)[:, :-1]  # all but "elsewhere", where rounding shows
    first = laws[:1] if neighbors == "absent" else laws
    charge = to_epsilon(mechanism.charge(question, roster.levels)[int(roster.codes[0])])
    return max(float(np.abs(laws - one).max()) for one in first) / charge
