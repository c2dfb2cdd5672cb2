"""The values of people on a roster: lists, arrays and frames made into numbers, and only summaries per level leave.

Nothing here raises because of a value: what is missing or not a number is left to the public default that each
statistic names. Whether something is refused depends on types and shapes alone, which are public facts.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from epsilons.arguments.checks import NUMBERS
from epsilons.errors import DataError, PlanError
from epsilons.noise.bernoulli import keep_people
from epsilons.noise.entropy import ALWAYS, Entropy
from epsilons.preferences import Levels, Roster

if TYPE_CHECKING:
    from epsilons.statistics.additive import Additive
    from epsilons.statistics.order import Order
    from epsilons.summaries.cells import SortedCells

#: Exact distributions of samples are for at most so many people: there are 2^n samples.
_FEW = 12
#: People are handled a quarter of a million at a time, so that temporary arrays stay small beside the input.
CHUNK = 1 << 18

#: numpy's kinds of plain numbers: bool, int, unsigned, float.
NUMBER_KINDS = "biuf"


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
        from epsilons.summaries.rows import Rows  # which is made of arrays as they are made here

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


def array_people(people: People) -> ArrayPeople:
    """People whose single values are at hand, which those of a table are not."""
    if not isinstance(people, ArrayPeople):
        raise PlanError("Individual privacy for this statistic works on arrays.")
    return people


def too_many_samples() -> PlanError:
    """Why a distribution cannot be listed."""
    return PlanError("Too many samples to list.", rule=f"Exact distributions are for at most {_FEW} people.")


# Values as they come -------------------------------------------------------------------------------------------------


def check_values(values: Any, people: int) -> NDArray[Any]:
    """One value per person; the type of an array is a public fact of the table, the values are not looked at.

    A plain list has no type of its own: one that numpy does not take for numbers becomes an untyped array, so that
    nobody's value decides whether the question is refused.
    """
    array = _as_array(values)
    if array.ndim != 1:
        raise DataError(
            f"Values come in {array.ndim} dimensions.", rule="One value per person.", suggest="a flat list or array"
        )
    check_length(len(array), people)
    return array


def check_length(values: int, people: int) -> None:
    """As many values as people on the roster, and somebody at all."""
    if values == 0 or people == 0:
        raise DataError(
            "There are no people.",
            rule="A statistic needs at least one person on the roster.",
            suggest="one value and one epsilon per person",
        )
    if values != people:
        raise DataError(
            f"{values} values and {people} epsilons.",
            rule="values[i] belongs to the person of epsilons[i].",
            suggest="lists of one length, or a single epsilon for everyone",
        )


def _as_array(values: Any) -> NDArray[Any]:
    if isinstance(values, np.ma.MaskedArray):
        untyped = np.array(values.data, dtype=object)
        untyped[np.ma.getmaskarray(values)] = None
        return untyped
    plain = isinstance(values, (list, tuple))
    if not plain and not isinstance(values, np.ndarray):
        # A missing entry must not turn everybody else's whole numbers into floats: what others have stays as it is.
        values, plain = _untyped(values)
    try:
        array = np.asarray(values)
        if not plain or (array.ndim == 1 and array.dtype.kind in "biu") or _all_floats(values):
            return array
    except (TypeError, ValueError, OverflowError):
        if not plain:
            raise DataError(
                "Values are not a list or array.", rule="One value per person.", suggest="a flat list or array"
            ) from None
    return np.fromiter(values, dtype=object, count=len(values))


def _all_floats(values: Any) -> bool:
    return all(type(value) is float for value in values)


def _untyped(values: Any) -> tuple[Any, bool]:
    """(the same entries, whether as a plain list) of a column whose type numpy does not know, such as nullable ones."""
    if hasattr(values, "to_pylist"):  # Arrow
        return (values.to_pylist(), True) if values.null_count else (values, False)
    if hasattr(values, "to_numpy") and not isinstance(getattr(values, "dtype", None), np.dtype):  # pandas, polars
        return list(values), True
    return values, False


def as_numbers(values: NDArray[Any]) -> NDArray[Any]:
    """Numbers as they are. In an untyped (object) array whatever is not a number is missing; other types are refused.

    The refusal depends on the array's type alone, which is a public fact, never on a value.
    """
    if values.dtype.kind in NUMBER_KINDS:
        if values.dtype.itemsize > 8:  # long doubles: what no double can hold is infinite, and that is no news
            with np.errstate(over="ignore", under="ignore"):
                return values.astype(np.float64)
        return values
    if values.dtype.kind == "O":
        return np.array([_as_float(value) for value in values], dtype=np.float64)
    raise DataError(
        f"Values are of type {values.dtype}, not numbers.",
        rule="This statistic works on numbers.",
        suggest="eps.histogram(values, epsilons, categories=[...]) for words",
    )


def _as_float(value: Any) -> float:
    if not isinstance(value, NUMBERS) or isinstance(value, np.timedelta64) or value is np.ma.masked:
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except (TypeError, ValueError):
        return math.nan


def as_doubles(numbers: NDArray[Any]) -> NDArray[np.float64]:
    """Numbers as doubles, without a word about signalling NaNs: a warning would say that somebody has one."""
    with np.errstate(all="ignore"):
        return numbers.astype(np.float64, copy=False)


def sum_by_level(steps: NDArray[np.float64], codes: NDArray[np.uint8], levels: int) -> NDArray[np.int64]:
    """Exact integer sums per level of one chunk of whole numbers of magnitude at most 2^31.

    `numpy.bincount` adds in doubles; a chunk has 2^18 people, so no partial sum passes 2^49 and none is rounded.
    """
    return np.bincount(codes, weights=steps, minlength=levels).astype(np.int64)
