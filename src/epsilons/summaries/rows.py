"""People with several values each: features and a target, one row per person."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilons.errors import DataError
from epsilons.summaries.people import NUMBER_KINDS, as_doubles, as_numbers, check_values

_SHAPE = "X has one row per person and one column per feature; y has one entry per person."


@dataclass(frozen=True, eq=False)
class Rows:
    """Person i has the features `features[i]` and the target `target[i]`; what is not a number is missing.

    It takes the place of an array of values: it has a length, and a mask of people picks their rows.
    """

    features: NDArray[Any]
    target: NDArray[Any]

    @classmethod
    def of(cls, values: Any) -> Rows:
        """Rows as they are, or a matrix whose last column is the target."""
        if isinstance(values, Rows):
            return values
        matrix = as_matrix(values)
        if matrix.shape[1] < 2:
            raise DataError("There is no feature beside the target.", rule="The last column is the target.")
        return cls(matrix[:, :-1], matrix[:, -1])

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


def as_matrix(table: Any) -> NDArray[Any]:
    """A table of numbers with one row per person: an array, a frame or a list of lists.

    A list has no type of its own, so nobody's entry decides whether it is refused: what is no number is missing.
    """
    if isinstance(table, np.ma.MaskedArray):
        untyped = np.array(table.data, dtype=object)
        untyped[np.ma.getmaskarray(table)] = None
        table = untyped
    plain = isinstance(table, (list, tuple))
    try:
        matrix = np.array(table, dtype=object) if plain else np.asarray(table)
    except (TypeError, ValueError):
        raise DataError("X is not a table.", rule=_SHAPE, suggest="rows of one length") from None
    if matrix.ndim != 2 or matrix.shape[1] == 0:
        raise DataError(f"X comes in {matrix.ndim} dimensions, or empty.", rule=_SHAPE, suggest="X.reshape(-1, 1)")
    if matrix.dtype.kind == "O":
        return as_numbers(matrix.reshape(-1)).reshape(matrix.shape)
    if matrix.dtype.kind not in NUMBER_KINDS:
        raise DataError(f"X is of type {matrix.dtype}, not numbers.", rule=_SHAPE, suggest="numbers for words")
    return as_doubles(as_numbers(matrix))
