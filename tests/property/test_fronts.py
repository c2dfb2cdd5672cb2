"""Whoever reads the rows, the answer is the same: one question of every statistic to arrays, DuckDB and Spark."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from epsilons.statistics.catalogue import CATALOGUE
from support.fronts import PEOPLE, TABLE, Arrays, Front, answer, on_table

#: One of every kind: what Spark is asked in the short run. Its own tests hold the summaries that all others need.
ON_SPARK = ("count", "mean", "median", "histogram", "linear_regression")


def asked() -> list[Any]:
    """(front, statistic)"""
    long = {name: [pytest.mark.soak] * (name not in ON_SPARK) for name in CATALOGUE}
    here = [(front, name) for front in ("arrays", "duckdb") for name in CATALOGUE]
    return [*here, *(pytest.param("spark", name, marks=[pytest.mark.integration, *long[name]]) for name in CATALOGUE)]


by_arrays = functools.cache(lambda name: answer(Arrays(), CATALOGUE[name]))


@functools.cache
def by_duckdb(name: str) -> dict[str, Any]:
    with on_table("duckdb", TABLE) as front:
        return answer(front, CATALOGUE[name])


@pytest.mark.parametrize(("front", "name"), asked(), indirect=["front"], scope="module")
def test_a_statistic_is_the_same_on_every_front(front: Front, name: str) -> None:
    """Arrays are held to DuckDB, the engines to arrays: value, mechanism, charges, error and promise."""
    expected = by_duckdb(name) if front.name == "arrays" else by_arrays(name)
    assert answer(front, CATALOGUE[name]) == expected


def test_a_front_that_loses_a_row_is_noticed() -> None:
    """The planted bug: a table in which one person has no row any more."""
    with on_table("duckdb", TABLE.slice(0, PEOPLE - 1)) as short:
        assert answer(short, CATALOGUE["sum"])["value"] != by_arrays("sum")["value"]
