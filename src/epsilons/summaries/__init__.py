"""The integers that a statistic needs, level by level: all that leaves people's values.

`arrays.py` and `sql.py` give the same summaries under the same names, from arrays and as queries; a statistic says
which one is its own (`Statistic.summary`). `models.py` has those of features and targets, `columns.py` writes the
arithmetic of `arrays.py` in SQL, and `cells.py` is what order statistics work on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from epsilons.noise.entropy import Entropy
    from epsilons.preferences import Levels
    from epsilons.statistics.additive import Additive
    from epsilons.statistics.order import Order
    from epsilons.summaries.cells import SingleRows, SortedCells


class People(Protocol):
    """People who give a summary per level: those of arrays, or those of a table.

    A sample is drawn afresh each time: a person at level j stays in it with chance `chances[j]` / 2^64.
    """

    @property
    def levels(self) -> Levels:
        """The public facts of the roster."""

    def tally(self, statistic: Additive) -> list[NDArray[np.int64]]:
        """Integer sums per level and cell, one array per part."""

    def sampled_tally(self, statistic: Additive, chances: Sequence[int], entropy: Entropy) -> list[NDArray[np.int64]]:
        """`tally` of a sample."""

    def cells(self, statistic: Order) -> SortedCells:
        """Sorted grid points with levels."""

    def grouped_cells(self, statistic: Order) -> list[SortedCells]:
        """`cells` for each group of the statistic's scope; one where there are no groups."""

    def sampled_cells(self, statistic: Order, chances: Sequence[int], entropy: Entropy) -> list[SortedCells]:
        """`grouped_cells` of a sample of people, whose rows stay or go together."""

    def single_rows(self) -> SingleRows:
        """The rows that count, one by one: only individual privacy looks at them."""

    def samples(self, chances: Sequence[int] | None) -> Iterator[tuple[float, People]]:
        """(probability, the people of a sample) of every sample that can be drawn; without chances, everyone."""
