"""Answers leave at times that public facts decide; meanwhile nothing tells that they are there."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from epsilons.service import clock
from epsilons.service.clock import Turns, lasts, slot_of


def test_a_slot_follows_from_rows_and_questions_alone() -> None:
    assert slot_of(0, 1) == clock.LEAST
    assert slot_of(1_000_000, 1) == pytest.approx(clock.LEAST + 0.2)
    assert slot_of(60, 3) == 3 * slot_of(60, 1)


def test_an_overrun_waits_for_the_next_doubling() -> None:
    ends = {lasts(0.25, worked) for worked in (0.0, 0.001, 0.1, 0.2499, 0.25)}
    assert ends == {0.25}
    assert {lasts(0.25, worked) for worked in (0.2501, 0.3, 0.5)} == {0.5}
    assert lasts(0.25, 0.9) == 1.0


async def last() -> int:
    """The number of the newest release."""
    return 7


class Time:
    """Seconds that pass when somebody works or sleeps, and at no other time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(clock.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(clock.asyncio, "sleep", self.sleep)

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


def when_all_left(times: Time, worked: list[float], slot: float | None = 0.25, fails: bool = False) -> list[float]:
    """When each of several questions, asked one after the other, was let go."""
    turns, left = Turns(), []

    async def ask(seconds: float) -> None:
        try:
            async with turns.timed(last) as here:
                here.seconds = slot
                assert turns.shown == 7
                times.now += seconds
                if fails:
                    raise ArithmeticError
        except ArithmeticError:
            pass
        assert turns.shown is None
        left.append(round(times.now, 6))

    async def all_of_them() -> None:
        for seconds in worked:
            await ask(seconds)

    times.now = 0.0
    asyncio.run(all_of_them())
    return left


def test_who_waits_learns_nothing_of_the_questions_before(monkeypatch: pytest.MonkeyPatch) -> None:
    times = Time(monkeypatch)
    assert when_all_left(times, [0.01, 0.02, 0.03]) == [0.25, 0.5, 0.75]
    assert when_all_left(times, [0.24, 0.001, 0.2]) == [0.25, 0.5, 0.75]
    # Also a question that failed once rows may have been read.
    assert when_all_left(times, [0.24, 0.001, 0.2], fails=True) == [0.25, 0.5, 0.75]
    # A planted leak: without a slot the times are those of the work.
    assert when_all_left(times, [0.01, 0.02], slot=None) == [0.01, 0.03]


def test_a_plan_waits_for_the_end_of_a_turn() -> None:
    turns, seen = Turns(), []

    async def ask() -> None:
        async with turns.timed(last):
            await asyncio.sleep(0)
            seen.append("asked")

    async def plan() -> None:
        async with turns.short():
            seen.append("planned")

    async def both() -> Any:
        return await asyncio.gather(ask(), plan())

    asyncio.run(both())
    assert seen == ["asked", "planned"]
