"""Intervals and errors do not depend on who reads the rows: DuckDB and arrays say the same, with the same noise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import epsilons as eps
from support.honest_engines import QUESTIONS, TABLE, on_arrays, on_engine, open_table

pytestmark = pytest.mark.statistical


@pytest.fixture(scope="module")
def table() -> Iterator[eps.Dataset]:
    with open_table(TABLE) as people:
        yield people


@pytest.mark.parametrize("place", range(4))
def test_duckdb_gives_the_interval_of_arrays(table: eps.Dataset, place: int) -> None:
    assert on_engine(table, place) == on_arrays(place)


@pytest.mark.soak
@pytest.mark.figure("figure_18_engines")
@pytest.mark.parametrize("place", range(len(QUESTIONS)))
def test_duckdb_gives_the_intervals_of_arrays(
    table: eps.Dataset, place: int, record_property: Callable[[str, Any], None]
) -> None:
    record_property("size", 1)
    assert on_engine(table, place) == on_arrays(place)
