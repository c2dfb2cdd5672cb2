"""Hostile rows: no exception because of them, no model that is not finite, nobody reaches farther than declared."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import epsilons as eps
from epsilons.statistics.base import Scope
from epsilons.statistics.covariance import Correlation, Covariance
from epsilons.statistics.logistic import LogisticRegression
from epsilons.statistics.regression import LinearRegression
from epsilons.summaries import arrays
from epsilons.summaries.arrays import Rows
from epsilons.testing import seeded
from support.hostile import FLOATS, INTS, OBJECTS

POOL: list[Any] = [*FLOATS, *INTS, *OBJECTS]
ENTRIES = st.integers(0, len(POOL) - 1).map(POOL.__getitem__)  # one of them may not even be hashed
ROW = st.lists(ENTRIES, min_size=3, max_size=3)
TABLE = st.lists(ROW, min_size=1, max_size=6)
EPSILONS = st.sampled_from([1e-9, 0.01, 0.5, 3.0, 1e6, math.inf])
VERSIONS = st.sampled_from(["auto", "minimum", "threshold", "sample", "stretching", "weighted"])
MODELS = (
    LinearRegression(("a", "b"), ((0.0, 1.0), (-1e6, 3.7)), (0.0, 100.0)),
    LogisticRegression(("a", "b"), ((0.0, 1.0), (-1e6, 3.7)), (0, 1)),
    *(kind(("a",), ((-1e6, 3.7),), (0.0, 100.0), scope=Scope()) for kind in (Covariance, Correlation)),
)


def objects(rows: list[list[Any]]) -> np.ndarray:
    """An untyped matrix whatever the entries are; numpy would look into lists."""
    table = np.empty((len(rows), len(rows[0])), dtype=object)
    for place, row in enumerate(rows):
        for column, entry in enumerate(row):
            table[place, column] = entry
    return table


@given(TABLE, st.data(), VERSIONS, st.sampled_from(["absent", "replace"]))
def test_no_rows_raise_and_every_model_is_finite(
    rows: list[list[Any]], data: st.DataObject, mechanism: str, neighbors: str
) -> None:
    table = objects(rows)
    X, y = table[:, :2], table[:, 2]
    epsilons = data.draw(st.lists(EPSILONS, min_size=len(rows), max_size=len(rows)))
    options: dict[str, Any] = {"mechanism": mechanism, "neighbors": neighbors, "entropy": seeded(1)}
    bounds = ((0.0, -1e6), (1.0, 3.7))
    for release in (
        eps.linear_regression(X, y, epsilons, bounds_X=bounds, bounds_y=(0, 100), **options),
        eps.logistic_regression(X, y, epsilons, bounds_X=bounds, **options),
    ):
        assert all(math.isfinite(weight) for weight in release.value.values())
    for ask in (eps.covariance, eps.correlation):
        assert math.isfinite(ask(X[:, 0], y, epsilons, bounds_x=(0, 1), bounds_y=(0, 100), **options).value)


@given(TABLE, ROW, st.integers(0, 5))
def test_one_person_moves_the_sums_no_farther_than_declared(rows: list[list[Any]], other: list[Any], who: int) -> None:
    place = who % len(rows)
    replaced = [other if i == place else row for i, row in enumerate(rows)]
    absent = [[None] * 3 if i == place else row for i, row in enumerate(rows)]
    codes = np.zeros(len(rows), np.uint8)
    for statistic in MODELS:
        tallies = []
        for data in (rows, replaced, absent):
            table = objects(data)
            tallies.append(
                arrays.tally(statistic, Rows.pair(table[:, : len(statistic.bounds)], table[:, 2]), codes, 1)[0][
                    0
                ].astype(object)
            )
        reach = statistic.parts[0].reach
        assert sum(abs(tallies[0] - tallies[1])) <= reach["replace"]
        assert sum(abs(tallies[0] - tallies[2])) <= reach["absent"]
