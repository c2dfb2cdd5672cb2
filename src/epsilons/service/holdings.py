"""The datasets that a gateway serves: each opened in a few lanes, opened anew when it was registered anew."""

import asyncio
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from urllib.parse import quote

from epsilons.dataset import Dataset
from epsilons.errors import EpsilonsError, LedgerError, Unusable
from epsilons.ledger.checks import QUESTION_KEY_BYTES
from epsilons.service.clock import Sign, Turns, slot_of
from epsilons.service.serving import Reply

#: How often a dataset is opened: questions of a turn wait for the disk side by side; the ledger orders their charges.
LANES = 4
#: Bytes of stored answers that a worker keeps in memory, of each dataset: one of many groups has some millions.
REMEMBERED = 32 << 20
#: Seconds before a dataset that could not be opened is tried again: whoever asks meanwhile is told at once.
PAUSE = 5.0


class UnservedError(Unusable, LedgerError):
    """A dataset was registered anew, and cannot be opened: its file, its snapshot or its ledger is at fault."""


class Holding:
    """One dataset; `place` is a folder that all workers of a gateway share."""

    def __init__(self, opener: Callable[[], Dataset], place: Path, workers: int = 1, file: str | None = None) -> None:
        #: The file that declares it, by which it is registered again.
        self.file = file
        self._opener, self._opening = opener, threading.Lock()
        self._lanes = self._open_lanes()
        #: Which registration could not be opened, why, and until when that is not tried again.
        self._failed: tuple[int, UnservedError, float] | None = None
        self._former: list[Dataset] = []
        self._replies: dict[bytes, Reply] = {}
        self._remembered = 0
        sign = Sign(place / f"turn {quote(self.name, safe='')}")
        self.turns = Turns(sign, self._tell_slot, self._tell_last, LANES, workers)

    @property
    def people(self) -> Dataset:
        return self._lanes[0]

    @property
    def name(self) -> str:
        return self.people._facts.name

    def is_current(self) -> bool:
        """Whether it was not registered anew since it was opened."""
        return self._newest() == self.people._registry.registration.number

    def _newest(self) -> int:
        """The number of its last registration."""
        return self.people.ledger.state(self.people._registry.dataset)[1]

    def refresh(self) -> Dataset:
        """The dataset as it was registered last; whoever still looks at the one before may end that."""
        with self._opening:
            if not self.is_current():
                newest = self._newest()
                if self._failed is not None and self._failed[0] == newest and time.monotonic() < self._failed[2]:
                    raise self._failed[1]
                try:
                    opened = self._open_lanes()
                except EpsilonsError as error:
                    what, rule, suggest = error.parts
                    failure = UnservedError(what, rule=rule, suggest=suggest)
                    self._failed = newest, failure, time.monotonic() + PAUSE
                    raise failure from None
                for one in self._former:
                    one.close()
                self._former, self._lanes = self._lanes, opened
                self._failed = None
                self._replies.clear()
                self._remembered = 0
            return self.people

    def _open_lanes(self) -> list[Dataset]:
        """All of them, or none."""
        with ExitStack() as opened:
            lanes = [opened.enter_context(closing(self._opener())) for _ in range(LANES)]
            opened.pop_all()
        return lanes

    def is_ready(self) -> bool:
        """Whether it is current; refused where its ledger or that one's head cannot be read."""
        self.people.ledger.find(bytes(QUESTION_KEY_BYTES))
        return self.is_current()

    def lane(self, number: int) -> Dataset:
        """The dataset as questions of one lane ask it."""
        return self._lanes[number]

    def recall(self, question: bytes) -> Reply | None:
        """What was replied before: a released answer stays as it is, and was held to the journal then.

        The ledger does that anew each time, by every line since, which takes longer the more was asked.
        """
        return self._replies.get(question)

    def remember(self, question: bytes, reply: Reply) -> Reply:
        """Keep a reply in memory; where too much is kept, the oldest goes."""
        with self._opening:
            former = self._replies.pop(question, None)
            self._remembered += len(reply.body) - (len(former.body) if former else 0)
            self._replies[question] = reply
            while self._remembered > REMEMBERED:
                self._remembered -= len(self._replies.pop(next(iter(self._replies))).body)
        return reply

    def last_release(self) -> int:
        """The number of the newest release of its ledger."""
        return self.people.ledger.count("reservations")

    def slot(self, questions: int) -> float:
        """How long so many questions about it take, by public facts."""
        here = self.people.ledger.cohorts(self.people._registry.dataset)
        return slot_of(sum(cohort.people for cohort in here) * self.people._facts.rows, questions)

    async def _tell_slot(self, questions: int) -> float:
        return await asyncio.to_thread(self.slot, questions)

    async def _tell_last(self) -> int:
        return await asyncio.to_thread(self.last_release)

    def shows(self, number: int | None) -> bool:
        """Whether a release may be seen: not while the turn lasts that made it."""
        shown = self.turns.sign.shown
        return shown is None or number is None or number <= shown

    def close(self) -> None:
        for one in (*self._former, *self._lanes):
            one.close()
        self.turns.sign.close()


def open_holdings(files: Sequence[str], place: Path, workers: int = 1) -> Mapping[str, Holding]:
    """The datasets that files declare, by name; each has a ledger that lasts."""
    found: dict[str, Holding] = {}
    try:
        for file in files:
            one = Holding(partial(Dataset.from_toml, file), place, workers, file)
            taken = one.name in found
            if taken or not one.people.ledger.lasting:
                one.close()
                what = "Two datasets have one name." if taken else "A served dataset has a ledger that lasts."
                raise LedgerError(what, suggest='ledger = "sqlite:///people.ledger", and a name of its own')
            found[one.name] = one
    except BaseException:
        for one in found.values():
            one.close()
        raise
    return found
