"""When an answer leaves: at a time that public facts decide, whatever the data made of the question.

A question about rows takes a turn on its dataset, and a turn lasts a whole number of slots: one, or twice, four times,
... as long where it is not done by then. The next turn begins when this one has ended. How long a slot is follows from
how many rows the roster may have and how many questions are asked, so that who waits, also for somebody else's
question, learns nothing else, unless a slot is overrun.

While a turn lasts, answers that it stores are not shown to anybody: otherwise a look at them would tell the time.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

#: Seconds of the shortest slot, and for each row and question; far more than a question usually takes.
LEAST, EACH_ROW = 0.25, 2e-7


def slot_of(rows: int, questions: int) -> float:
    """Seconds, by public facts: how many rows everybody on the roster may have, how many questions are asked."""
    return (LEAST + EACH_ROW * rows) * max(questions, 1)


def lasts(slot: float, worked: float) -> float:
    """The end of a turn that was worked on for so long: a slot, or the first doubling of it that is not shorter."""
    end = slot
    while end < worked:
        end *= 2
    return end


class Turns:
    """One dataset: who is next, and which releases may be shown meanwhile."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        #: While a question about rows is worked on: the last release before it. None: all may be shown.
        self.shown: int | None = None

    @asynccontextmanager
    async def short(self) -> AsyncIterator[None]:
        """A turn for what looks at public facts only, and ends when that is done."""
        async with self._turn:
            yield

    @asynccontextmanager
    async def timed(self, last: Callable[[], Awaitable[int]]) -> AsyncIterator["Slot"]:
        """A turn for what may read rows: from when its slot is set, it ends with the slot, whatever happens.

        `last` tells the number of the newest release.
        """
        async with self._turn:
            slot = Slot(time.monotonic())
            self.shown = await last()
            try:
                yield slot
            finally:
                if slot.seconds is not None:
                    worked = time.monotonic() - slot.began
                    await asyncio.sleep(lasts(slot.seconds, worked) - worked)
                self.shown = None


@dataclass
class Slot:
    """When a turn began, and how long its slot is; None while it has looked at public facts only."""

    began: float
    seconds: float | None = None
