"""The people of a table as mechanisms see them: summaries of a copy of their rows that is quick to ask (`rows`).

Each summary is one query, and only summaries leave the engine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from epsilons.dataset.rows import Preparation
from epsilons.engines.base import RESERVED
from epsilons.engines.trees import Predicate
from epsilons.noise.coins import binomial, keep_digests
from epsilons.noise.entropy import ALWAYS, Entropy
from epsilons.preferences import Levels
from epsilons.statistics.additive import Additive
from epsilons.statistics.order import Order
from epsilons.summaries import sql
from epsilons.summaries.arrays import too_many_samples
from epsilons.summaries.cells import SingleRows, SortedCells
from epsilons.summaries.columns import Keys
from epsilons.summaries.sql import Prepared

_SAMPLED = f"{RESERVED}sampled"


@dataclass(frozen=True, eq=False)
class TablePeople:
    """What a question sees: a prepared table, a column, a condition, groups, and the level of each cohort.

    `places[c]` is the level of the c-th cohort of the preparation, -1 for those who are not used.
    """

    preparation: Preparation
    column: str | None
    where: Predicate | None
    by: Keys | None
    levels: Levels
    places: NDArray[np.int64]

    def tally(self, statistic: Additive) -> list[NDArray[np.int64]]:
        return self._tally(statistic, self.preparation.prepared)

    def sampled_tally(self, statistic: Additive, chances: Sequence[int], entropy: Entropy) -> list[NDArray[np.int64]]:
        with self._sampled(chances, entropy) as sampled:
            return self._tally(statistic, sampled)

    def cells(self, statistic: Order) -> SortedCells:
        (found,) = self.grouped_cells(statistic)
        return found

    def grouped_cells(self, statistic: Order) -> list[SortedCells]:
        found = self._cells(statistic, self.preparation.prepared)
        if statistic.scope is not None:
            return found
        # A public number of values: people on the roster without a row are missing, as those without a value are.
        return [cells.with_missing(np.array(self.levels.sizes, np.int64) - cells.totals) for cells in found]

    def sampled_cells(self, statistic: Order, chances: Sequence[int], entropy: Entropy) -> list[SortedCells]:
        with self._sampled(chances, entropy) as sampled:
            found = self._cells(statistic, sampled)
        if not statistic.imputes:
            return found
        # People on the roster without a row have coins, too.
        there = np.bincount(self.places[self.preparation.places] + 1, minlength=len(chances) + 1)[1:]
        without = (np.array(self.levels.sizes) - there).tolist()
        pairs = zip(without, chances, strict=True)
        others = [n if chance >= ALWAYS else binomial(entropy, n, chance) for n, chance in pairs]
        return [cells.with_missing(cells.missing + np.array(others, np.int64)) for cells in found]

    def single_rows(self) -> SingleRows:
        assert self.column is not None
        rows = sql.single_rows(self.preparation.prepared, self.column, where=self.where, by=self.by)
        level = self.places[rows.level]
        used = level >= 0
        return SingleRows(rows.person[used], level[used], rows.group[used], rows.values[used])

    def _tally(self, statistic: Additive, prepared: Prepared) -> list[NDArray[np.int64]]:
        """From [group, cohort, cell] to [level, group and cell]; cohorts that are not used are left out."""
        tallies, size, used = [], len(self.levels.grants), self.places >= 0
        for part in sql.tally(prepared, statistic, self.column, where=self.where, by=self.by):
            levels = np.zeros((size, part.shape[0], part.shape[2]), np.int64)
            np.add.at(levels, self.places[used], part[:, used].transpose(1, 0, 2))
            tallies.append(levels.reshape(size, -1))
        return tallies

    def _cells(self, statistic: Order, prepared: Prepared) -> list[SortedCells]:
        assert self.column is not None
        found = sql.cells(prepared, statistic, self.column, where=self.where, by=self.by)
        return [cells.sorted_cells(self.places, len(self.levels.grants)) for cells in found]

    def samples(self, chances: Sequence[int] | None) -> Iterator[tuple[float, TablePeople]]:
        if chances is not None:
            raise too_many_samples()
        yield 1.0, self

    def _sampled(self, chances: Sequence[int], entropy: Entropy) -> AbstractContextManager[Prepared]:
        """No sample where grants alone say that everyone who is used is certain to be in; others have no level."""
        return nullcontext(self.preparation.prepared) if min(chances) >= ALWAYS else self.sampled(chances, entropy)

    @contextmanager
    def sampled(self, chances: Sequence[int], entropy: Entropy) -> Iterator[Prepared]:
        """The table with the rows of a fresh random sample of people only, all of a person's rows or none."""
        prepared = self.preparation.prepared
        codes = self.places.astype(np.int16)[self.preparation.places]  # at most 256 levels
        kept = keep_digests(entropy, self.preparation.digests, codes, chances)
        prepared.engine.add(_SAMPLED, {sql.KEPT: np.flatnonzero(kept).astype(np.int32)})
        try:
            yield replace(prepared, only=_SAMPLED)
        finally:
            prepared.engine.drop(_SAMPLED)
