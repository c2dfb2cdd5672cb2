"""The shape that every statistic has.

A statistic is a frozen value that holds the public arguments of a question (bounds, grid, edges). It turns values
into a summary per level, in integers, and says how far one person can move that summary. Two families exist:

- `Additive`: the summary is one integer vector per part, added up over people (count, sum, mean, variance, histogram);
- `Order`: the summary is the sorted grid cells of the values (median, quantile, minimum, maximum, k-th largest).

Nothing here depends on a mechanism, and nothing raises because of a value: what is missing or not a number goes to
the public default named in each file, what is out of bounds goes to the bound.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from epsilons.arguments import NUMBERS
from epsilons.errors import DataError

#: People are handled a quarter of a million at a time, so that temporary arrays stay small beside the input.
CHUNK = 1 << 18

#: numpy's kinds of plain numbers: bool, int, unsigned, float.
NUMBER_KINDS = "biuf"


@dataclass(frozen=True)
class Part:
    """One integer vector of an additive statistic.

    `reach` is how far one person can move it in L1: first when the person is absent, then when replaced.
    `share` is the part of every person's epsilon that pays for it.
    """

    name: str
    cells: int
    reach: dict[str, int]
    share: Fraction = Fraction(1)


@dataclass(frozen=True)
class Moments:
    """What is publicly expected of one person's contribution, on the scale of the answer's sum.

    `location` is how far off the expected mean may well be where nobody guessed the mean or the density. It counts only
    as bias, against mechanisms that leave something out: else shrinking to the centre would look free.
    `off` is for a variance: how far the values' own mean is expected to lie from the centre of the bounds.
    """

    mean: float
    variance: float
    location: float = 0.0
    off: float = 0.0


def doubt(fraction: float, density: float | None) -> float:
    """How far off the expected fraction of people may well be: not at all if somebody guessed it.

    Otherwise people fall into 1/fraction classes, of which this is one, and every way to split them is equally likely
    (Dirichlet's law with all parameters 1); the standard deviation of one class is f sqrt((1 - f)/(1 + f)).
    """
    if density is not None:
        return 0.0
    return fraction * math.sqrt(max(1 - fraction, 0.0) / (1 + fraction))


class Statistic(ABC):
    """A question's public arguments, and what they imply."""

    name: ClassVar[str]
    family: ClassVar[str]
    #: Whether nobody may know how many values there are: with a condition, groups, several rows, values left out.
    private_count: bool = False

    @abstractmethod
    def describe(self) -> str:
        """A few words for titles: "mean in [0, 100]"."""


class Additive(Statistic):
    """A statistic whose summary adds up over people.

    The weighted sum of a part over levels, noise included, is turned into an answer by `answer`; what publicly
    known total weight stands behind it is passed along, since a mean divides by it.
    """

    family: ClassVar[str] = "additive"
    #: Whether the summary counts people, so that sampling people is thinning counts.
    counts: ClassVar[bool] = False
    #: The largest error an answer can have where answers are clipped; infinite where they are not.
    farthest: float = math.inf
    #: Whether an answer is an average, which divides by the weight behind it.
    averages: ClassVar[bool] = False
    #: Whether the answer is a model fitted to the sums: it stays the same when everybody's weight shrinks alike.
    models: ClassVar[bool] = False
    #: How many of a person's values are multiplied in a cell: shrinking values by s shrinks it by s to this power.
    degree: ClassVar[int] = 1
    #: The root mean square error of an answer that is cut off at either of its ends.
    astray: float = math.inf
    #: Where the number of rows is private: how many of a person's are publicly expected to count, in each group.
    expected_rows: float = 1.0

    @property
    @abstractmethod
    def parts(self) -> tuple[Part, ...]:
        """The integer vectors released, each with its reach and its share of epsilon."""

    @abstractmethod
    def tally(self, values: NDArray[Any], codes: NDArray[np.uint8], levels: int) -> list[NDArray[np.int64]]:
        """For each part an array (levels, cells) of exact integer sums."""

    @abstractmethod
    def answer(self, sums: Sequence[Sequence[Fraction]], weight: Fraction, people: int) -> Any:
        """The answer from noisy weighted sums per part, `weight` people's worth of them, and the roster's size.

        `weight` equals `people` when everyone counts in full. An average divides by `weight`; a total adds the
        public centre of as many people as stand behind it.
        """

    def finished(
        self, sums: Sequence[Sequence[Fraction]], weight: Fraction, people: int, scales: Sequence[float]
    ) -> Any:
        """The same where the Laplace scale of the noise in each part's cells, a public fact, matters: for models."""
        return self.answer(sums, weight, people)

    @abstractmethod
    def moments(self, spread: float | None, density: float | None, location: float | None = None) -> Moments:
        """Public expectations of one person's contribution on the scale of the answer's sum."""

    @abstractmethod
    def extremes(self) -> tuple[float, float]:
        """The least and the largest contribution of one person, on the scale of `moments`."""

    @property
    @abstractmethod
    def units(self) -> tuple[float, ...]:
        """What one integer step of each part is worth on the scale of `moments`."""

    @property
    def centre(self) -> float:
        """The contribution of somebody of whom nothing is known, on the scale of `moments`."""
        return 0.0

    @property
    def keys(self) -> tuple[Hashable, ...] | None:
        """The keys of the answer when it is a table of numbers."""
        return None


def check_values(values: Any, people: int) -> NDArray[Any]:
    """One value per person; the type of an array is a public fact of the table, the values are not looked at.

    A plain list has no type of its own: one that numpy does not take for numbers becomes an untyped array, so that
    nobody's value decides whether the question is refused.
    """
    array = _as_array(values)
    if array.ndim != 1:
        raise DataError(
            f"Values come in {array.ndim} dimensions.", rule="One value per person.", hint="a flat list or array"
        )
    check_length(len(array), people)
    return array


def check_length(values: int, people: int) -> None:
    """As many values as people on the roster, and somebody at all."""
    if values == 0 or people == 0:
        raise DataError(
            "There are no people.",
            rule="A statistic needs at least one person on the roster.",
            hint="one value and one epsilon per person",
        )
    if values != people:
        raise DataError(
            f"{values} values and {people} epsilons.",
            rule="values[i] belongs to the person of epsilons[i].",
            hint="lists of one length, or a single epsilon for everyone",
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
                "Values are not a list or array.", rule="One value per person.", hint="a flat list or array"
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
        hint="eps.histogram(values, epsilons, categories=[...]) for words",
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
