"""Answers leave at times that public facts decide; meanwhile nothing tells that they are there."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from epsilons.service import clock
from epsilons.service.clock import Ready, Sign, Turns, lasts, slot_of


def test_a_slot_follows_from_rows_and_questions_alone() -> None:
    assert slot_of(0, 1) == clock.LEAST + clock.EACH_QUESTION
    assert slot_of(1_000_000, 1) == pytest.approx(slot_of(0, 1) + 0.2)
    assert slot_of(60, 3) - slot_of(60, 2) == pytest.approx(slot_of(60, 2) - slot_of(60, 1))
    # A turn that is full answers at least twenty a second.
    assert clock.MOST / slot_of(10_000, clock.MOST) > 20


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


def make_turns(folder: Path, slot: float = 0.25, **named: Any) -> Turns:
    async def tell(questions: int) -> float:
        return slot * questions

    return Turns(Sign(folder / "turn"), tell, last, **named)


def when_all_left(times: Time, folder: Path, worked: list[float], fails: bool = False) -> list[float]:
    """When each of several questions, asked one after the other, was let go."""
    turns, left = make_turns(folder), []

    async def ask(seconds: float) -> None:
        async def work(lane: int) -> None:
            assert turns.sign.shown == 7
            times.now += seconds
            if fails:
                raise ArithmeticError

        async def look() -> Any:
            return Ready(1, work)

        try:
            await turns.ask(look)
        except ArithmeticError:
            assert fails
        left.append(round(times.now, 6))

    async def all_of_them() -> None:
        for seconds in worked:
            await ask(seconds)
            assert turns.sign.shown is None

    times.now = 0.0
    asyncio.run(all_of_them())
    return left


def test_who_waits_learns_nothing_of_the_questions_before(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    times = Time(monkeypatch)
    assert when_all_left(times, tmp_path, [0.01, 0.02, 0.03]) == [0.25, 0.5, 0.75]
    assert when_all_left(times, tmp_path, [0.24, 0.001, 0.2]) == [0.25, 0.5, 0.75]
    # Also a question that failed once rows may have been read.
    assert when_all_left(times, tmp_path, [0.24, 0.001, 0.2], fails=True) == [0.25, 0.5, 0.75]


def test_questions_that_wait_share_a_turn_and_leave_together(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """However long each takes, and in whatever order they are done."""
    monkeypatch.setattr(clock, "MOST", 4)
    for worked in ([0.01] * 6, [0.4, 0.001, 0.2, 0.01, 0.3, 0.001]):
        times = Time(monkeypatch)
        turns, left = make_turns(tmp_path, lanes=2), []

        async def ask(number: int, seconds: float, turns: Any = turns, times: Any = times, left: Any = left) -> None:
            async def work(lane: int) -> int:
                times.now += seconds
                return number

            async def look() -> Ready:
                return Ready(1, work)

            assert await turns.ask(look) == number
            left.append((number, round(times.now, 6)))

        async def all_of_them(ask: Any = ask, worked: Any = worked) -> None:
            await asyncio.gather(*(ask(number, seconds) for number, seconds in enumerate(worked)))

        asyncio.run(all_of_them())
        assert left == [(0, 1.0), (1, 1.0), (2, 1.0), (3, 1.0), (4, 1.5), (5, 1.5)]


def test_what_looks_at_public_facts_only_leaves_before_the_turn_begins(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    times = Time(monkeypatch)
    turns, left = make_turns(tmp_path), []

    async def ask(outcome: Any) -> None:
        async def look() -> Any:
            return outcome

        await turns.ask(look)
        left.append(times.now)

    async def work(lane: int) -> None:
        return None

    async def both() -> Any:
        return await asyncio.gather(ask(Ready(1, work)), ask("stored"))

    asyncio.run(both())
    assert sorted(left) == [0.0, 0.25]


def test_a_plan_waits_for_the_end_of_a_turn_of_another_worker_too(tmp_path: Path) -> None:
    one, other, seen = make_turns(tmp_path, 0.05, workers=2), make_turns(tmp_path, 0.05, workers=2), []

    async def work(lane: int) -> None:
        assert other.sign.shown == 7
        await asyncio.sleep(0)
        seen.append("asked")

    async def look() -> Ready:
        return Ready(1, work)

    async def plan(turns: Turns) -> None:
        while not one.sign.shown:
            await asyncio.sleep(0)
        async with turns.short():
            assert other.sign.shown is None
            seen.append("planned")

    async def both() -> Any:
        return await asyncio.gather(one.ask(look), plan(one), plan(other))

    asyncio.run(both())
    assert seen == ["asked", "planned", "planned"]


@pytest.mark.parametrize("what", ["_slot", "_last", "begun"])
def test_nobody_waits_for_a_turn_that_cannot_begin(tmp_path: Path, what: str) -> None:
    async def fail(*_: Any) -> Any:
        raise ArithmeticError

    async def work(lane: int) -> str:
        return "done"

    async def look() -> Any:
        return Ready(1, work)

    async def ask() -> None:
        turns = make_turns(tmp_path, 0.001)
        right = getattr(turns, what)
        setattr(turns, what, fail)
        several = await asyncio.gather(*(turns.ask(look) for _ in range(3)), return_exceptions=True)
        assert [type(one) for one in several] == [ArithmeticError] * 3
        setattr(turns, what, right)
        assert await turns.ask(look) == "done"

    asyncio.run(asyncio.wait_for(ask(), 5))
