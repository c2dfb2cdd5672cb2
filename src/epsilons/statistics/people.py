"""The values of people on a roster, as the mechanisms see them: only summaries per level leave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from epsilons.noise.bernoulli import binomial, keep_people
from epsilons.noise.entropy import Entropy
from epsilons.noise.exact import ALWAYS
from epsilons.preferences import Levels, Roster
from epsilons.statistics.base import Additive, as_numbers, check_length, check_values
from epsilons.statistics.order import Order, SortedCells
from epsilons.statistics.rows import Rows
from epsilons.statistics.total import STEPS, Centred


class People(Protocol):
    """Whoever can give a summary per level: arrays here, a table elsewhere."""

    @property
    def levels(self) -> Levels:
        """The public facts of the roster."""

    def tally(self, statistic: Additive) -> list[NDArray[np.int64]]:
        """Integer sums per level and cell, one array per part."""

    def sampled_tally(self, statistic: Additive, chances: Sequence[int], entropy: Entropy) -> list[NDArray[np.int64]]:
        """The same over a fresh random sample: a person at level j stays with chance `chances[j]` / 2^64."""

    def cells(self, statistic: Order) -> SortedCells:
        """Sorted grid points with levels."""

    def sampled_cells(self, statistic: Order, chances: Sequence[int], entropy: Entropy) -> SortedCells:
        """The same over a fresh random sample."""

    def grouped_cells(self, statistic: Order) -> list[SortedCells]:
        """The same for each group of the statistic's scope; one where there are no groups."""

    def grouped_sampled_cells(self, statistic: Order, chances: Sequence[int], entropy: Entropy) -> list[SortedCells]:
        """The same over one fresh random sample of people, whose rows stay or go together."""


@dataclass(frozen=True, eq=False)
class ArrayPeople:
    """People whose values stand in an array, or in rows: `values[i]` belongs to person i of the roster."""

    values: Any
    roster: Roster

    @classmethod
    def of(cls, values: Any, roster: Roster) -> ArrayPeople:
        """Check shapes (never values) and put values and roster together."""
        if isinstance(values, Rows):
            check_length(len(values), len(roster))
            return cls(values, roster)
        return cls(check_values(values, len(roster)), roster)

    @property
    def levels(self) -> Levels:
        return self.roster.levels

    @property
    def _count(self) -> int:
        return len(self.roster.levels.grants)

    def tally(self, statistic: Additive) -> list[NDArray[np.int64]]:
        return statistic.tally(self.values, self.roster.codes, self._count)

    def sampled_tally(self, statistic: Additive, chances: Sequence[int], entropy: Entropy) -> list[NDArray[np.int64]]:
        if statistic.counts:
            return [thin(part, chances, entropy) for part in self.tally(statistic)]
        if min(chances) >= ALWAYS:
            return self.tally(statistic)
        kept = keep_people(entropy, self.roster.codes, chances)
        return statistic.tally(self.values[kept], self.roster.codes[kept], self._count)

    def cells(self, statistic: Order) -> SortedCells:
        return statistic.summarize(self.values, self.roster.codes, self._count)

    def sampled_cells(self, statistic: Order, chances: Sequence[int], entropy: Entropy) -> SortedCells:
        kept = keep_people(entropy, self.roster.codes, chances)
        return statistic.summarize(self.values[kept], self.roster.codes[kept], self._count)

    def grouped_cells(self, statistic: Order) -> list[SortedCells]:
        return [self.cells(statistic)]

    def grouped_sampled_cells(self, statistic: Order, chances: Sequence[int], entropy: Entropy) -> list[SortedCells]:
        return [self.sampled_cells(statistic, chances, entropy)]

    def steps(self, statistic: Centred) -> NDArray[np.int64]:
        """Everybody's place on the centred grid of a sum."""
        return statistic.steps(as_numbers(self.values))

    def step_range(self, statistic: Centred) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The least and the largest place on that grid at each level."""
        lowest, highest = np.full(self._count, STEPS), np.full(self._count, -STEPS)
        steps = self.steps(statistic)
        np.minimum.at(lowest, self.roster.codes, steps)
        np.maximum.at(highest, self.roster.codes, steps)
        return lowest, highest


def thin(counts: NDArray[np.int64], chances: Sequence[int], entropy: Entropy) -> NDArray[np.int64]:
    """Keep each counted person with their level's chance: exact binomials instead of one coin per person."""
    thinned = np.empty_like(counts)
    for level, chance in enumerate(chances):
        for cell in range(counts.shape[1]):
            count = int(counts[level, cell])
            thinned[level, cell] = count if chance >= ALWAYS else binomial(entropy, count, chance)
    return thinned
