"""The values of people on a roster, as the mechanisms see them: only summaries per level leave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from epsilons.noise.bernoulli import binomial
from epsilons.noise.entropy import Entropy
from epsilons.preferences import Levels, Roster
from epsilons.statistics.base import CHUNK, Additive, as_numbers, check_values
from epsilons.statistics.order import Order, SortedCells
from epsilons.statistics.total import STEPS, Centred

#: A chance of 1 in the units of the noise room.
ALWAYS = 1 << 64


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
    """People whose values stand in an array: `values[i]` belongs to person i of the roster."""

    values: NDArray[Any]
    roster: Roster

    @classmethod
    def of(cls, values: Any, roster: Roster) -> ArrayPeople:
        """Check shapes (never values) and put values and roster together."""
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
        kept = self._sample(chances, entropy)
        return statistic.tally(self.values[kept], self.roster.codes[kept], self._count)

    def cells(self, statistic: Order) -> SortedCells:
        return statistic.summarize(self.values, self.roster.codes, self._count)

    def sampled_cells(self, statistic: Order, chances: Sequence[int], entropy: Entropy) -> SortedCells:
        kept = self._sample(chances, entropy)
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

    def _sample(self, chances: Sequence[int], entropy: Entropy) -> NDArray[np.bool_]:
        """One 64-bit coin per person; a chance of 1 does not look at the coin, whose limit would overflow."""
        limit = np.array([min(chance, ALWAYS - 1) for chance in chances], np.uint64)
        certain = np.array([chance >= ALWAYS for chance in chances])
        kept = np.empty(len(self.values), bool)
        for start in range(0, len(kept), CHUNK):
            code = self.roster.codes[start : start + CHUNK]
            kept[start : start + CHUNK] = (entropy.words(len(code)) < limit[code]) | certain[code]
        return kept


def thin(counts: NDArray[np.int64], chances: Sequence[int], entropy: Entropy) -> NDArray[np.int64]:
    """Keep each counted person with their level's chance: exact binomials instead of one coin per person."""
    thinned = np.empty_like(counts)
    for level, chance in enumerate(chances):
        for cell in range(counts.shape[1]):
            count = int(counts[level, cell])
            thinned[level, cell] = count if chance >= ALWAYS else binomial(entropy, count, chance)
    return thinned
