"""The people of a table, as the mechanisms see them: one query per summary, and only summaries leave the engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from epsilons.dataset.preparation import Preparation
from epsilons.engines.trees import Predicate
from epsilons.noise.coins import keep_digests
from epsilons.noise.entropy import ALWAYS, Entropy
from epsilons.preferences import Levels
from epsilons.statistics.additive import Additive
from epsilons.statistics.order import Order
from epsilons.summaries import queries
from epsilons.summaries.cells import SortedCells
from epsilons.summaries.columns import Keys
from epsilons.summaries.model_queries import moments
from epsilons.summaries.people import too_many_samples
from epsilons.summaries.queries import Prepared

_SAMPLED = "epsilons sampled"


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
        if min(chances) >= ALWAYS:  # grants alone say so: everyone who is used is certain to be in
            return self.tally(statistic)
        with self.sampled(chances, entropy) as sampled:
            return self._tally(statistic, sampled)

    def cells(self, statistic: Order) -> SortedCells:
        (found,) = self.grouped_cells(statistic)
        return found

    def sampled_cells(self, statistic: Order, chances: Sequence[int], entropy: Entropy) -> SortedCells:
        (found,) = self.grouped_sampled_cells(statistic, chances, entropy)
        return found

    def grouped_cells(self, statistic: Order) -> list[SortedCells]:
        found = self._cells(statistic, self.preparation.prepared)
        if statistic.scope is not None:
            return found
        # A public number of values: whoever is on the roster and has no row is missing like whoever has no value.
        return [self._everyone(cells) for cells in found]

    def grouped_sampled_cells(self, statistic: Order, chances: Sequence[int], entropy: Entropy) -> list[SortedCells]:
        if min(chances) >= ALWAYS:  # grants alone say so: everyone who is used is certain to be in
            return self._cells(statistic, self.preparation.prepared)
        with self.sampled(chances, entropy) as sampled:
            return self._cells(statistic, sampled)

    # One query each -------------------------------------------------------------------------------------------------

    def _tally(self, statistic: Additive, prepared: Prepared) -> list[NDArray[np.int64]]:
        return [self._by_level(part) for part in _SUMMARIES[statistic.summary](self, statistic, prepared)]

    def _steps(self, statistic: Additive, prepared: Prepared) -> list[NDArray[np.int64]]:
        return queries.tally(prepared, statistic, self.column, where=self.where, by=self.by).parts

    def _people(self, statistic: Additive, prepared: Prepared) -> list[NDArray[np.int64]]:
        return [queries.count_people(prepared, self.column, where=self.where, by=self.by)[:, :, None]]

    def _products(self, statistic: Any, prepared: Prepared) -> list[NDArray[np.int64]]:
        assert self.column is not None
        return [moments(prepared, statistic, self.column, where=self.where)[None, :, :]]

    def _by_level(self, part: NDArray[np.int64]) -> NDArray[np.int64]:
        """[group, cohort, cell] to [level, group and cell]; cohorts that are not used are left out."""
        groups, _, cells = part.shape
        used = self.places >= 0
        levels = np.zeros((len(self.levels.grants), groups, cells), np.int64)
        np.add.at(levels, self.places[used], part[:, used].transpose(1, 0, 2))
        return levels.reshape(len(self.levels.grants), groups * cells)

    def _cells(self, statistic: Order, prepared: Prepared) -> list[SortedCells]:
        assert self.column is not None
        found = queries.cells(prepared, statistic, self.column, where=self.where, by=self.by)
        return [cells.sorted_cells(self.places, len(self.levels.grants)) for cells in found]

    def _everyone(self, cells: SortedCells) -> SortedCells:
        missing = np.array(self.levels.sizes, np.int64) - cells.totals
        return cells.with_missing(missing)

    def samples(self, chances: Sequence[int] | None) -> Iterator[tuple[float, TablePeople]]:
        if chances is not None:
            raise too_many_samples()
        yield 1.0, self

    @contextmanager
    def sampled(self, chances: Sequence[int], entropy: Entropy) -> Iterator[Prepared]:
        """The table with the rows of a fresh random sample of people only, all of a person's rows or none."""
        prepared = self.preparation.prepared
        codes = self.places.astype(np.int16)[self.preparation.places]  # at most 256 levels
        kept = keep_digests(entropy, self.preparation.digests, codes, chances)
        prepared.engine.add(_SAMPLED, pa.table({queries.KEPT: np.flatnonzero(kept).astype(np.int32)}))
        try:
            yield replace(prepared, only=_SAMPLED)
        finally:
            prepared.engine.drop(_SAMPLED)


#: How a table gives each kind of summary of an additive statistic.
_SUMMARIES: dict[str, Callable[[TablePeople, Any, Prepared], list[NDArray[np.int64]]]] = {
    "ones": TablePeople._steps,
    "bins": TablePeople._steps,
    "steps": TablePeople._steps,
    "people": TablePeople._people,
    "products": TablePeople._products,
}
