"""Values as callers have them: lists, arrays and frames made into numbers.

Nothing here raises because of a value: what is missing or not a number is left to the public default that each
statistic names. Whether something is refused depends on types and shapes alone, which are public facts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilons.arguments.checks import NUMBERS
from epsilons.errors import Argument, DataError

#: numpy's kinds of plain numbers: bool, int, unsigned, float.
_NUMBER_KINDS = "biuf"
_SHAPE = "X has one row per person and one column per feature; y has one entry per person."
_FLAT = "a flat list or array"


@dataclass(frozen=True, eq=False)
class Rows:
    """Features and a target: person i has `features[i]` and `target[i]`; what is not a number is missing.

    It takes the place of an array of values: it has a length, and a mask of people picks their rows.
    """

    features: NDArray[Any]
    target: NDArray[Any]

    @classmethod
    def pair(cls, features: Any, target: Any) -> Rows:
        """Features and target as the caller has them. Only types and shapes are looked at, which are public facts."""
        matrix = as_matrix(features)
        if len(matrix) == 0:
            raise DataError("There are no people.", rule=_SHAPE, suggest="one row and one epsilon per person")
        return cls(matrix, check_values(target, len(matrix)))

    def __len__(self) -> int:
        return len(self.features)

    def __getitem__(self, chosen: NDArray[np.bool_]) -> Rows:
        # By place, since numpy picks rows by a mask four times more slowly.
        places = np.flatnonzero(chosen)
        return Rows(self.features.take(places, axis=0), self.target[places])


def check_values(values: Any, people: int) -> NDArray[Any]:
    """One value per person; the type of an array is a public fact of the table, the values are not looked at.

    A plain list has no type of its own: one that numpy does not take for numbers becomes an untyped array, so that no
    value decides whether the question is refused.
    """
    array = _as_array(values)
    if array.ndim != 1:
        raise DataError(f"Values come in {array.ndim} dimensions.", rule="One value per person.", suggest=_FLAT)
    check_length(len(array), people)
    return array


def check_length(values: int, people: int) -> None:
    """As many values as people on the roster, and at least one."""
    if values == 0 or people == 0:
        rule = "A statistic needs at least one person on the roster."
        raise DataError("There are no people.", rule=rule, suggest="one value and one epsilon per person")
    if values != people:
        rule, hint = (
            "values[i] belongs to the person of epsilons[i].",
            "lists of one length, or one epsilon for all",
        )
        raise DataError(f"{values} values and {people} epsilons.", rule=rule, suggest=hint)


def _as_array(values: Any) -> NDArray[Any]:
    if isinstance(values, np.ma.MaskedArray):
        return _unmask(values)
    plain = isinstance(values, (list, tuple))
    if not plain and not isinstance(values, np.ndarray):
        # A missing entry must not turn everybody else's whole numbers into floats: what others have stays as it is.
        values, plain = _list_untyped(values)
    try:
        array = np.asarray(values)
        whole = array.ndim == 1 and array.dtype.kind in "biu"
        if not plain or whole or all(type(value) is float for value in values):
            return array
    except (TypeError, ValueError, OverflowError):
        if not plain:
            raise DataError("Values are not a list or array.", rule="One value per person.", suggest=_FLAT) from None
    return np.fromiter(values, dtype=object, count=len(values))


def _unmask(masked: np.ma.MaskedArray[Any, Any]) -> NDArray[Any]:
    """An untyped array in which masked entries are missing."""
    untyped = np.array(masked.data, dtype=object)
    untyped[np.ma.getmaskarray(masked)] = None
    return untyped


def _list_untyped(values: Any) -> tuple[Any, bool]:
    """(the entries, whether as a plain list) of a column whose type numpy does not know, such as nullable ones."""
    if hasattr(values, "to_pylist"):  # Arrow
        return (values.to_pylist(), True) if values.null_count else (values, False)
    if hasattr(values, "to_numpy") and not isinstance(getattr(values, "dtype", None), np.dtype):  # pandas, polars
        return list(values), True
    return values, False


def as_matrix(table: Any) -> NDArray[Any]:
    """A table of numbers with one row per person: an array, a frame or a list of lists.

    A list has no type of its own, so no entry decides whether it is refused: what is no number is missing.
    """
    if isinstance(table, np.ma.MaskedArray):
        table = _unmask(table)
    try:
        matrix = np.array(table, dtype=object) if isinstance(table, (list, tuple)) else np.asarray(table)
    except (TypeError, ValueError):
        raise DataError("X is not a table.", rule=_SHAPE, suggest="rows of one length") from None
    if matrix.ndim != 2 or matrix.shape[1] == 0:
        raise DataError(f"X comes in {matrix.ndim} dimensions, or empty.", rule=_SHAPE, suggest="X.reshape(-1, 1)")
    if matrix.dtype.kind == "O":
        return as_numbers(matrix.reshape(-1)).reshape(matrix.shape)
    if matrix.dtype.kind not in _NUMBER_KINDS:
        raise DataError(f"X is of type {matrix.dtype}, not numbers.", rule=_SHAPE, suggest="numbers for words")
    return as_doubles(as_numbers(matrix))


def as_numbers(values: NDArray[Any]) -> NDArray[Any]:
    """Numbers as they are. In an untyped (object) array whatever is not a number is missing; other types are refused.

    The refusal depends on the array's type alone, which is a public fact, never on a value.
    """
    if values.dtype.kind in _NUMBER_KINDS:
        if values.dtype.itemsize > 8:  # long doubles: what no double can hold is infinite, and that is no news
            with np.errstate(over="ignore", under="ignore"):
                return values.astype(np.float64)
        return values
    if values.dtype.kind == "O":
        return np.array([_as_float(value) for value in values], dtype=np.float64)
    raise DataError(
        f"Values are of type {values.dtype}, not numbers.",
        rule="This statistic works on numbers.",
        suggest=("for words a histogram with ", Argument("categories", ["north", "south"])),
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
    """Numbers as doubles, without a warning about signalling NaNs: it would say that a person has one."""
    with np.errstate(all="ignore"):
        return numbers.astype(np.float64, copy=False)
