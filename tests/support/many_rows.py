"""Thousands of people with rows in groups, in arrays: quick enough to simulate with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilons.noise.coins import keep_people
from epsilons.noise.entropy import Entropy
from epsilons.preferences import Levels, Roster
from epsilons.statistics.additive import Additive
from epsilons.statistics.count import Count
from epsilons.statistics.order import Order
from epsilons.statistics.total import Mean, Sum
from epsilons.statistics.variance import Variance
from epsilons.summaries.cells import SortedCells


@dataclass(frozen=True, eq=False)
class ManyRows:
    """Row r belongs to `person[r]`, lies in `group[r]` (-1: in none, or it does not count) and has `value[r]`."""

    roster: Roster
    person: NDArray[np.int64]
    group: NDArray[np.int64]
    value: NDArray[np.float64]

    @property
    def levels(self) -> Levels:
        return self.roster.levels

    def tally(self, statistic: Additive) -> list[NDArray[np.int64]]:
        """One array of one row each for every group: its sums are those of `ArrayPeople`."""
        scope = statistic.scope
        assert scope is not None
        single = replace(statistic, scope=replace(scope, rows=1, groups=None))  # type: ignore[type-var]
        columns = []
        for place in range(scope.cells):
            here = self.group == place
            person, value = self.person[here], self.value[here]
            if isinstance(statistic, Count) and statistic.of == "people":
                person = np.unique(person)
                value = np.ones(len(person))
            codes = self.roster.codes[person]
            columns.append(single.tally(value, codes, len(self.levels.grants)))
        return [np.concatenate([column[part] for column in columns], axis=1) for part in range(len(columns[0]))]

    def sampled_tally(self, statistic: Additive, chances: Sequence[int], entropy: Entropy) -> list[NDArray[np.int64]]:
        return self._sample(chances, entropy).tally(statistic)

    def grouped_cells(self, statistic: Order) -> list[SortedCells]:
        assert statistic.scope is not None
        found = []
        for place in range(statistic.scope.cells):
            here = self.group == place
            codes = self.roster.codes[self.person[here]]
            found.append(statistic.summarize(self.value[here], codes, len(self.levels.grants)))
        return found

    def grouped_sampled_cells(self, statistic: Order, chances: Sequence[int], entropy: Entropy) -> list[SortedCells]:
        return self._sample(chances, entropy).grouped_cells(statistic)

    cells = sampled_cells = grouped_cells  # type: ignore[assignment]

    def _sample(self, chances: Sequence[int], entropy: Entropy) -> ManyRows:
        kept = keep_people(entropy, self.roster.codes, chances)[self.person]
        return replace(self, person=self.person[kept], group=self.group[kept], value=self.value[kept])

    def truth(self, statistic: Any) -> list[float]:
        """The statistic of the rows that count, in each group; the centre where none does."""
        answers = []
        for place in range(statistic.scope.cells):
            here = self.group == place
            if isinstance(statistic, Count):
                answers.append(float(len(np.unique(self.person[here])) if statistic.of == "people" else here.sum()))
                continue
            values = np.clip(self.value[here], *statistic.bounds)
            if isinstance(statistic, Sum):
                answers.append(float(values.sum()))
            elif len(values) == 0:
                answers.append(sum(statistic.bounds) / 2)
            elif isinstance(statistic, Mean):
                answers.append(float(values.mean()))
            elif isinstance(statistic, Variance):
                answers.append(float(values.var()))
            else:
                answers.append(float(np.sort(values)[statistic.rank(len(values))]))
        return answers


def populate(
    random: np.random.Generator,
    roster: Roster,
    *,
    rows: int,
    groups: int,
    fraction: float,
    middle: float,
    spread: float,
    together: bool = True,
) -> ManyRows:
    """People with 1 to `rows` rows, who count in each group with chance `fraction`; a person's rows are alike.

    Without `together` every row has a value of its own.
    """
    count = len(roster.codes)
    each = random.integers(1, rows + 1, count)
    person = np.repeat(np.arange(count), each)
    luck = random.random(count)
    place = (
        np.where(luck < fraction * groups, (luck / fraction).astype(int), -1) if fraction > 0 else np.full(count, -1)
    )
    place = np.minimum(place, groups - 1)
    value = random.normal(middle, spread, count)[person] if together else random.normal(middle, spread, len(person))
    return ManyRows(roster, person, place[person].astype(np.int64), value)
