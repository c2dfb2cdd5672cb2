"""Local sensitivities by their definition: replace records by every value of a grid and look at the answer.

Nothing here uses the package. A statistic's answers on all data sets of n people form a table with one axis per person,
so that replacing person i's record is moving along axis i, and replacing a group's is moving along several.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
#: Whole answers from data sets, one per row.
Statistic = Callable[[Numbers], Numbers]


class Table:
    """Every data set of n people over a grid, with a statistic's answer on each."""

    def __init__(self, grid: Sequence[int], people: int, statistic: Statistic) -> None:
        self.data = np.array(list(itertools.product(grid, repeat=people)))
        self.people = people
        self.answers = statistic(self.data)
        self._cube = self.answers.reshape((len(grid),) * people)

    def reach(self, group: Sequence[int]) -> Numbers:
        """For every data set: how far replacing these people's records can move the answer."""
        axes = tuple(group)
        up = self._cube.max(axis=axes, keepdims=True) - self._cube
        down = self._cube - self._cube.min(axis=axes, keepdims=True)
        return np.maximum(up, down).ravel()

    def of_persons(self) -> Numbers:
        """LS_i for every data set (row) and person (column)."""
        return np.stack([self.reach([i]) for i in range(self.people)], axis=1)

    def of_groups(self, size: int) -> Numbers:
        """LS^(size) for every data set: the most that any `size` people could do."""
        groups = itertools.combinations(range(self.people), min(size, self.people))
        return np.max([self.reach(group) for group in groups], axis=0)


def replaced(data: Sequence[float], group: Sequence[int], grid: Sequence[float]) -> Iterator[list[float]]:
    """Every data set in which these people's records are others; for statistics that a table cannot hold."""
    for values in itertools.product(grid, repeat=len(group)):
        other = list(data)
        for person, value in zip(group, values, strict=True):
            other[person] = value
        yield other


def at_rank(rank: int) -> Statistic:
    """The value at a 0-based rank."""
    return lambda data: np.sort(data, axis=1)[:, rank]


def middle_sum(data: Numbers) -> Numbers:
    """Twice the median of an even number of values."""
    half = data.shape[1] // 2
    ordered = np.sort(data, axis=1)
    return ordered[:, half - 1] + ordered[:, half]
