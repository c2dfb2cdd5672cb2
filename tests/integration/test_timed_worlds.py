"""Figure 13: how long a gateway takes tells nothing of one private bit, whatever the question costs on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.timed_worlds import LEAK, TESTS, Times, hold, place_in_memory, refuse_by_holm

#: All pairs together are held to this chance of a false alarm; so many parts share it.
LEVEL, PARTS = 0.01, 4


@pytest.fixture
def place() -> Iterator[Path]:
    with place_in_memory() as made:
        yield made


def test_times_of_a_few_worlds(place: Path) -> None:
    """The leak is larger here, so that a busy machine, and few rounds, show it as well."""
    hold(place, honest=3, planted=1, rounds=12, seed=1, level=0.001, leak=0.1)


def test_worked_times_of_a_few_worlds(place: Path) -> None:
    """By the time that is worked a leak of the figure's own size is seen at once, however busy the machine is."""
    hold(place, honest=2, planted=1, rounds=30, seed=2, level=0.001, worked=True)


@pytest.mark.soak
@pytest.mark.figure("figure_13_gateway")
@pytest.mark.parametrize("part", range(PARTS))
def test_times_of_two_hundred_worlds(place: Path, part: int, record_property: Any) -> None:
    hold(place, honest=50, planted=2, rounds=200, seed=100 + part, level=LEVEL / PARTS, worked=True)
    record_property("size", 50)


def test_the_comparison_accepts_what_is_alike_and_refuses_a_shift() -> None:
    """Drawn times, with what a busy machine does to them: drift, and delays that come and go."""
    drawn, values = np.random.default_rng(3), []
    for shift in [0.0] * 60 + [LEAK] * 10:
        times, drift = Times(), np.cumsum(drawn.normal(0, 0.001, 200))
        late = drawn.exponential(0.01, (200, 2)) * (drawn.random((200, 2)) < 0.5)
        both = 0.24 + drift[:, None] + drawn.normal(0, 0.002, (200, 2)) + late + [0.0, shift]
        times.rounds = [(float(zero), float(one)) for zero, one in both]
        values += times.compare()
    refused = {one // TESTS for one in refuse_by_holm(values, LEVEL)}
    assert refused == set(range(60, 70))


def test_holm_refuses_what_the_book_says() -> None:
    assert refuse_by_holm([0.01, 0.04, 0.03, 0.005], 0.05) == [3, 0]
    assert refuse_by_holm([0.013, 0.5], 0.02) == []
    assert refuse_by_holm([0.001, 0.002, 0.003], 0.01) == [0, 1, 2]
