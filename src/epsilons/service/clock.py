"""When an answer leaves: at a time that public facts decide, whatever the data made of the question.

Questions about rows take a turn on their dataset together: all that wait when it begins, as many as there is room for.
A turn lasts a slot, or twice, four times, ... as long where it is not done by then, and its answers leave when it ends.
The next turn begins after that. How long a slot is follows from how many rows the roster may have and how many
questions are asked in it, so that who waits, also for somebody else's question, learns nothing else, unless a slot is
overrun.

While a turn lasts, answers that it stores are not shown to anybody: otherwise a look at them would tell the time.
Several workers take turns by a file, whose lock ends with the process that holds it.
"""

import asyncio
import fcntl
import os
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from epsilons.service.limits import WAITING
from epsilons.storage.files import open_own

#: Seconds of the shortest slot, for each question, and for each row and question: far more than they usually take.
LEAST, EACH_QUESTION, EACH_ROW = 0.2, 0.04, 2e-7
#: So many questions share a turn at most; a longer batch has its own.
MOST = 32
#: Seconds after which a worker looks again whether another one's turn has ended. Who had a turn waits twice as long.
_GLANCE = 0.01


def slot_of(rows: int, questions: int) -> float:
    """Seconds, by public facts: how many rows everybody on the roster may have, how many questions are asked."""
    return LEAST + (EACH_QUESTION + EACH_ROW * rows) * max(questions, 1)


def lasts(slot: float, worked: float) -> float:
    """The end of a turn that was worked on for so long: a slot, or the first doubling of it that is not shorter."""
    end = slot
    while end < worked:
        end *= 2
    return end


class Sign:
    """What all workers see of a dataset: whether a turn lasts, and the last release before it."""

    def __init__(self, path: Path) -> None:
        self._handle = open_own(path, os.O_RDWR | os.O_CREAT)

    async def take(self) -> None:
        """Wait for the end of other workers' turns."""
        while True:
            try:
                return fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                await asyncio.sleep(_GLANCE)

    def free(self) -> None:
        fcntl.flock(self._handle, fcntl.LOCK_UN)

    @property
    def shown(self) -> int | None:
        """While questions are worked on: the last release before them. None: all may be shown.

        A worker that died leaves it as it was until the next turn, which finds what was stored.
        """
        found = int(os.pread(self._handle, 20, 0) or -1)
        return None if found < 0 else found

    @shown.setter
    def shown(self, number: int | None) -> None:
        os.pwrite(self._handle, b"%20d" % (-1 if number is None else number), 0)

    def close(self) -> None:
        os.close(self._handle)


@dataclass(frozen=True)
class Ready:
    """What may read rows: how many questions it has, the work on them in a lane, and whose they are."""

    questions: int
    work: Callable[[int], Awaitable[Any]]
    whose: Any = None


@dataclass(frozen=True)
class _Waiting:
    look: Callable[[], Awaitable[Any]]
    done: "asyncio.Future[Any]"

    async def settle(self, work: Awaitable[Any]) -> Any:
        """What the work comes to; what it raises is for whoever waits."""
        try:
            return await work
        except Exception as failure:
            return _Failed(failure)

    def tell(self, outcome: Any) -> None:
        if self.done.done():
            return
        if isinstance(outcome, _Failed):
            self.done.set_exception(outcome.why)
        else:
            self.done.set_result(outcome)


@dataclass(frozen=True)
class _Failed:
    why: Exception


class Turns:
    """One dataset: who is next.

    `slot` tells how long so many questions take, `last` the number of the newest release. So many `lanes` are worked in
    side by side.
    """

    def __init__(
        self,
        sign: Sign,
        slot: Callable[[int], Awaitable[float]],
        last: Callable[[], Awaitable[int]],
        lanes: int = 1,
        workers: int = 1,
    ) -> None:
        self.sign, self._slot, self._last, self._lanes, self._workers = sign, slot, last, lanes, workers
        #: Told whose questions a turn is about, and how long its slot is, before they are worked on.
        self.begun: Callable[[list[Any], float], Awaitable[None]] | None = None
        self._turn, self._long = asyncio.Lock(), asyncio.Lock()
        self._waiting: deque[_Waiting] = deque()
        self._running: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def short(self) -> AsyncIterator[None]:
        """A turn for what looks at public facts only, and ends when that is done."""
        async with self._turn:
            await self.sign.take()
            try:
                self.sign.shown = None  # a worker may have died in its turn
                yield
            finally:
                self.sign.free()
            if self._workers > 1:
                await asyncio.sleep(2 * _GLANCE)

    @asynccontextmanager
    async def long(self) -> AsyncIterator[None]:
        """The same for what may take a while: one after the other, so that all else waits for one of them at most."""
        async with self._long, self.short():
            yield

    @property
    def is_full(self) -> bool:
        """Whether as many wait as may."""
        return len(self._waiting) >= WAITING

    async def ask(self, look: Callable[[], Awaitable[Any]]) -> Any:
        """Wait for a turn. `look` looks at public facts and is replied at once, unless it gives what is `Ready`.

        That is worked on in the turn, and ends with it, whatever happens.
        """
        mine = _Waiting(look, asyncio.get_running_loop().create_future())
        self._waiting.append(mine)
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._run())
        return await mine.done

    async def _run(self) -> None:
        while self._waiting:
            async with self.short():
                taken = await self._gather()
                if taken:
                    await self._work(taken)

    async def _gather(self) -> list[tuple[_Waiting, Ready]]:
        """Those who share the next turn, in the order in which they came."""
        taken: list[tuple[_Waiting, Ready]] = []
        while self._waiting:
            mine = self._waiting[0]
            found = await mine.settle(mine.look())
            if isinstance(found, Ready):
                if taken and sum(ready.questions for _, ready in taken) + found.questions > MOST:
                    break
                taken.append((mine, found))
            else:
                mine.tell(found)
            self._waiting.popleft()
        return taken

    async def _work(self, taken: list[tuple[_Waiting, Ready]]) -> None:
        began, slot = time.monotonic(), 0.0
        left, outcomes = deque(taken), list[tuple[_Waiting, Any]]()

        async def lane(number: int) -> None:
            while left:
                mine, ready = left.popleft()
                outcomes.append((mine, await mine.settle(ready.work(number))))

        try:
            slot = await self._slot(sum(ready.questions for _, ready in taken))
            self.sign.shown = await self._last()
            if self.begun is not None:
                await self.begun([ready.whose for _, ready in taken], slot)
            await asyncio.gather(*(lane(number) for number in range(self._lanes)))
        except Exception as failure:  # before anything was worked on: nobody waits for ever
            outcomes += [(mine, _Failed(failure)) for mine, _ in left]
        finally:
            if slot:
                worked = time.monotonic() - began
                await asyncio.sleep(lasts(slot, worked) - worked)
            self.sign.shown = None
            for mine, outcome in outcomes:
                mine.tell(outcome)
