"""The exact answer, for rosters on which everyone chose public."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from epsilons.statistics.base import Additive, Statistic
from epsilons.statistics.order import Order, SortedCells
from epsilons.statistics.people import ArrayPeople, People
from epsilons.statistics.unbounded import UnboundedOrder


def exact_answer(statistic: Statistic, people: People) -> Any:
    """The statistic itself, on the same grid and with the same defaults as every mechanism."""
    count = people.levels.people
    if isinstance(statistic, Additive):
        sums = [[Fraction(int(cell)) for cell in part.sum(axis=0)] for part in people.tally(statistic)]
        return statistic.answer(sums, Fraction(count), count)
    if isinstance(statistic, UnboundedOrder) and isinstance(people, ArrayPeople):
        return statistic.exact_value(people.values)
    assert isinstance(statistic, Order)
    if statistic.scope is None:
        return _at_rank(statistic, people.cells(statistic).with_missing_at(statistic.default_cell))
    return statistic.scope.shaped(_at_rank(statistic, cells) for cells in people.grouped_cells(statistic))


def _at_rank(statistic: Order, cells: SortedCells) -> float | int:
    """The value at the statistic's rank; where nothing counts, the grid point nearest the centre."""
    if cells.people == 0:
        return statistic.value(statistic.default_cell)
    rank = statistic.rank(cells.people)
    return statistic.value(int(cells.cells(rank, rank + 1)[0]))
