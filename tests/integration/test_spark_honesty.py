"""Spark gives the intervals and errors of arrays, with the same noise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from support import spark_session
from support.honest_engines import TABLE, on_arrays, on_engine, open_table

pytestmark = [pytest.mark.integration, pytest.mark.skipif(bool(spark_session.missing()), reason="needs Java and Spark")]


@pytest.mark.soak
@pytest.mark.figure("figure_18_engines")
def test_spark_gives_the_intervals_of_arrays(spark: Any, record_property: Callable[[str, Any], None]) -> None:
    with open_table(spark.createDataFrame(TABLE).repartition(3)) as people:
        for place in range(5):
            assert on_engine(people, place) == on_arrays(place)
    record_property("size", 5)
