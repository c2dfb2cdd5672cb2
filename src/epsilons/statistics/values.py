"""People's values as they come: lists, arrays and frames made into arrays, and arrays into numbers.

Nothing here raises because of a value: what is missing or not a number is left to the public default that each
statistic names. Whether something is refused depends on types and shapes alone, which are public facts.
"""

from __future__ import annotations

import math
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilons.errors import DataError

#: People are handled a quarter of a million at a time, so that temporary arrays stay small beside the input.
CHUNK = 1 << 18

#: numpy's kinds of plain numbers: bool, int, unsigned, float.
NUMBER_KINDS = "biuf"
#: What a number may be where there is no array to tell.
NUMBERS: tuple[Any, ...] = (Real, Decimal, np.bool_)


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
