"""How a measurement is made: ours and the yardstick by turns, the median of several repetitions.

What is taken is the time on the processor (user and system), to which other programs on the machine add little. What
neither waits for anything nor uses a second core takes as long by the clock on the wall, on an idle machine; `wall` is
kept beside it to show how busy the machine was.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Action = Callable[[], object]


class Seconds(NamedTuple):
    """One call: time on the processor, and on the wall."""

    processor: float
    wall: float


@dataclass(frozen=True)
class Limit:
    """The most that a row may reach: its own figure (`of="ours"`), or its ratio to the yardstick (`of="ratio"`).

    `plus` is what ours may take on top of that.
    """

    most: float
    of: str
    plus: float = 0.0


@dataclass(frozen=True)
class Row:
    """One line of the table. Figures are medians, or the lowest of each; `lowest` and `highest` are ours of all.

    `unit` is "seconds" (of processor time; `wall` by the clock on the wall) or "bytes". With an `amount` (of `things`)
    the line is shown as so many per second.
    """

    what: str
    ours: float
    lowest: float
    highest: float
    yardstick: float
    against: str
    repetitions: int
    wall: float | None = None
    limit: Limit | None = None
    unit: str = "seconds"
    amount: int | None = None
    things: str = ""

    @property
    def ratio(self) -> float:
        """How many times the yardstick's figure ours is; more is worse."""
        return self.ours / self.yardstick

    @property
    def held(self) -> bool | None:
        """Whether the figure keeps the limit; None where there is none."""
        if self.limit is None:
            return None
        most = self.limit.most * (1 if self.limit.of == "ours" else self.yardstick)
        return self.ours <= most + self.limit.plus


@dataclass(frozen=True)
class Group:
    """Rows that belong together; `measure` takes the size of the run and makes them one by one."""

    name: str
    title: str
    measure: Callable[[Size], Iterator[Row]] = field(repr=False)


@dataclass(frozen=True)
class Size:
    """How large a run is. The quick one only shows that everything runs: its figures mean nothing."""

    quick: bool

    def people(self, number: int) -> int:
        """So many people, or a handful."""
        return min(number, 2_000) if self.quick else number

    def repetitions(self, number: int) -> int:
        """So many repetitions, or one."""
        return 1 if self.quick else number


def time_by_turns(
    what: str,
    ours: Callable[[], Action],
    yardstick: Action,
    *,
    against: str,
    repetitions: int,
    **facts: Any,
) -> Row:
    """Time both by turns, so that whatever else the machine does falls on both alike.

    `ours()` prepares one repetition, outside the clock, and gives what is timed. One repetition of each goes before,
    unmeasured: it loads what the first use loads.
    """
    return time_row(what, *_take_turns(ours, yardstick, repetitions), against=against, **facts)


def time_both(what: str, ours: Action, yardstick: Action, *, repetitions: int, **facts: Any) -> Iterator[Row]:
    """What uses every processor: the same turns by the processors' time together, and by the clock on the wall."""
    mine, theirs = _take_turns(again(ours), yardstick, repetitions)
    yield time_row(what, mine, theirs, **facts)
    walls = [[one.wall for one in some] for some in (mine, theirs)]
    yield row_of(f"{what}, on the wall", *walls, **facts)


def _take_turns(ours: Callable[[], Action], yardstick: Action, repetitions: int) -> tuple[list[Seconds], list[Seconds]]:
    ours()()
    yardstick()
    mine, theirs = [], []
    for _ in range(repetitions):
        action = ours()
        mine.append(seconds(action))
        theirs.append(seconds(yardstick))
    return mine, theirs


def time_row(what: str, mine: list[Seconds], theirs: list[Seconds], **facts: Any) -> Row:
    """The medians of times taken by turns, or what `pick` says."""
    wall = facts.get("pick", statistics.median)([one.wall for one in mine])
    return row_of(what, [one.processor for one in mine], [one.processor for one in theirs], wall=wall, **facts)


def row_of(
    what: str,
    mine: list[float],
    theirs: list[float],
    *,
    against: str,
    pick: Callable[[list[float]], float] = statistics.median,
    **facts: Any,
) -> Row:
    """The medians of figures taken by turns, or what `pick` says."""
    return Row(
        what=what,
        ours=pick(mine),
        lowest=min(mine),
        highest=max(mine),
        yardstick=pick(theirs),
        against=against,
        repetitions=len(mine),
        **facts,
    )


def seconds(action: Action) -> Seconds:
    """How long one call takes."""
    wall, processor = time.perf_counter(), time.process_time()
    action()
    return Seconds(time.process_time() - processor, time.perf_counter() - wall)


def again(action: Action) -> Callable[[], Action]:
    """The same call in every repetition."""
    return lambda: action
