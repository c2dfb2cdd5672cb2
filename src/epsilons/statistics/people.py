"""The values of people on a roster, as the mechanisms see them: only summaries per level leave."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from epsilons.errors import PlanError
from epsilons.noise.entropy import Entropy
from epsilons.preferences import Levels, Roster
from epsilons.statistics.additive import Additive
from epsilons.statistics.cells import SortedCells
from epsilons.statistics.order import Order
from epsilons.statistics.rows import Rows
from epsilons.statistics.total import STEPS, Bounded
from epsilons.statistics.values import CHUNK, as_numbers, check_length, check_values
from epsilons.statistics.weighting import ALWAYS

#: Exact distributions of samples are for at most so many people: there are 2^n samples.
_FEW = 12


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

    def samples(self, chances: Sequence[int] | None) -> Iterator[tuple[float, People]]:
        """(probability, the people of a sample) of every sample that can be drawn; everyone where nobody is sampled."""


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
        if min(chances) >= ALWAYS:
            return self.tally(statistic)
        kept = keep_people(self.roster, chances, entropy)
        return statistic.tally(self.values[kept], self.roster.codes[kept], self._count)

    def cells(self, statistic: Order) -> SortedCells:
        return statistic.summarize(self.values, self.roster.codes, self._count)

    def sampled_cells(self, statistic: Order, chances: Sequence[int], entropy: Entropy) -> SortedCells:
        kept = keep_people(self.roster, chances, entropy)
        return statistic.summarize(self.values[kept], self.roster.codes[kept], self._count)

    def grouped_cells(self, statistic: Order) -> list[SortedCells]:
        return [self.cells(statistic)]

    def grouped_sampled_cells(self, statistic: Order, chances: Sequence[int], entropy: Entropy) -> list[SortedCells]:
        return [self.sampled_cells(statistic, chances, entropy)]

    def samples(self, chances: Sequence[int] | None) -> Iterator[tuple[float, ArrayPeople]]:
        if chances is None:
            yield 1.0, self
            return
        if len(self.values) > _FEW:
            raise too_many_samples()
        staying = [chances[code] / ALWAYS for code in self.roster.codes]
        for choice in itertools.product((False, True), repeat=len(staying)):
            weight = math.prod(c if k else 1 - c for c, k in zip(staying, choice, strict=True))
            if weight > 0:
                kept = np.array(choice, np.bool_)
                yield weight, ArrayPeople(self.values[kept], Roster(self.levels, self.roster.codes[kept]))

    def steps(self, statistic: Bounded) -> NDArray[np.int64]:
        """Everybody's place on the centred grid of a sum."""
        return statistic.steps(as_numbers(self.values))

    def step_range(self, statistic: Bounded) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The least and the largest place on that grid at each level."""
        lowest, highest = np.full(self._count, STEPS), np.full(self._count, -STEPS)
        steps = self.steps(statistic)
        np.minimum.at(lowest, self.roster.codes, steps)
        np.maximum.at(highest, self.roster.codes, steps)
        return lowest, highest


def keep_people(roster: Roster, chances: Sequence[int], entropy: Entropy) -> NDArray[np.bool_]:
    """Who stays in a sample: a 64-bit coin each. A chance of 1 does not look at it, since its limit would overflow."""
    limit = np.array([min(chance, ALWAYS - 1) for chance in chances], np.uint64)
    certain = np.array([chance >= ALWAYS for chance in chances])
    kept = np.empty(len(roster), bool)
    for start in range(0, len(kept), CHUNK):
        code = roster.codes[start : start + CHUNK]
        kept[start : start + CHUNK] = (entropy.words(len(code)) < limit[code]) | certain[code]
    return kept


def array_people(people: People) -> ArrayPeople:
    """People whose single values are at hand, which those of a table are not."""
    if not isinstance(people, ArrayPeople):
        raise PlanError("Individual privacy for this statistic works on arrays.")
    return people


def too_many_samples() -> PlanError:
    """Why a distribution cannot be listed."""
    return PlanError("Too many samples to list.", rule=f"Exact distributions are for at most {_FEW} people.")
