"""Figure 13 where Spark reads the rows: its questions take longer than a slot, and leave at a doubling of it."""

from __future__ import annotations

from typing import Any

import pytest

from support import spark_session
from support.timed_worlds import hold, place_in_memory

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(spark_session.missing() is not None, reason=spark_session.missing() or ""),
]


@pytest.mark.soak
@pytest.mark.figure("figure_13_spark")
@pytest.mark.usefixtures("spark")
def test_times_of_twenty_worlds_on_spark(record_property: Any) -> None:
    with place_in_memory() as place:
        # Answers that leave when they are ready vary by more than the leak here, so that the slot's is planted alone.
        hold(place, honest=20, planted=2, rounds=200, seed=200, level=0.01, engine="spark", kinds=("slot",))
    record_property("size", 20)
