"""Years of newcomers, changes of mind and questions: nothing is refused, cohorts stay few, no day takes longer.

What a day takes is counted, not timed: steps of the database and lines that are followed; at full size the processor's
time besides, which other programs do not change.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest

import epsilons.ledger
from epsilons.guarantee import NANO
from epsilons.ledger import merging
from epsilons.ledger.ledger import Ledger
from epsilons.storage.sqlite import Sqlite
from support.ledger_recount import balances
from support.ledgers import key

#: So many steps of the database are one tick of its clock.
TICK = 50


@dataclass
class Years:
    """A ledger that lives from day to day; each opening and each question is by a process of its own, as it were."""

    folder: Path
    levels: int
    newcomers: int
    changes: int
    share: Fraction
    ticks: int = 0
    #: Of every day: the processor's seconds, the database's ticks and the lines that an opening followed.
    seconds: list[float] = field(default_factory=list)
    work: list[int] = field(default_factory=list)
    followed: list[int] = field(default_factory=list)
    cohorts: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.luck = np.random.default_rng(15)
        self.grants = np.arange(1, self.levels + 1) * NANO // 100
        self.people = np.empty((0, 16), np.uint8)
        self.open().close()

    def open(self) -> Ledger:
        book = epsilons.ledger.open(f"sqlite:///{self.folder}/people.ledger", anchor=self.folder / "head")
        book.settle_terms("absent", 1)
        return book

    def grant(self, people: int) -> Any:
        return self.grants[self.luck.integers(0, self.levels, people)]

    def live(self, day: int) -> None:
        """Some join, some change their minds, one withdraws; then somebody opens the ledger and asks."""
        book = self.open()
        new = self.luck.integers(0, 256, (self.newcomers, 16), np.uint8)
        book.enroll(new, self.grant(len(new)))
        self.people = np.concatenate([self.people, new])
        some = self.people[self.luck.choice(len(self.people), self.changes, replace=False)]
        book.set_grants(some[1:], self.grant(len(some) - 1))
        book.withdraw(some[:1])
        book.close()
        start, ticks, lines = time.process_time(), self.ticks, list[int]()
        book = self.open()
        book.verify(thorough=False, progress=lambda line, last: lines.append(line))
        may = book.allowance(self.share)
        number = book.reserve(
            key(f"question {day}"), may.nano, epoch=may.epoch, kind="count", levels=dict.fromkeys(may.nano, 0)
        ).number
        book.mark_read(number)
        book.store(number, b"an answer")
        assert book.find(key(f"question {day // 2}")) is not None
        self.cohorts.append(len(book.cohorts()))
        book.close()
        self.seconds.append(time.process_time() - start)
        self.work.append(self.ticks - ticks)
        self.followed.append(len(lines))

    def add_up(self) -> None:
        """Recounted in full, here and elsewhere."""
        book = self.open()
        assert book.verify(thorough=False) == book.verify()
        held = {one.id: (one.granted, one.spent, one.reserved, one.people) for one in book.cohorts()}
        assert balances(book.export()) == held
        assert sum(one.people for one in book.cohorts()) == len(self.people)
        book.close()


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Years]:
    """So many days, in which the database's steps are counted."""

    def living(days: int, **size: Any) -> Years:
        years, connect = Years(tmp_path, **size), Sqlite._connect

        def tick() -> int:
            years.ticks += 1
            return 0

        def connected(self: Sqlite) -> Any:
            driver = connect(self)
            driver.set_progress_handler(tick, TICK)
            return driver

        monkeypatch.setattr(Sqlite, "_connect", connected)
        for day in range(days):
            years.live(day)
        return years

    return living


def test_the_last_of_many_days_is_like_the_first(live: Callable[..., Years], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging, "MOST", 24)
    years = live(36, levels=5, newcomers=5, changes=3, share=Fraction(1, 20))
    assert max(years.cohorts) <= 24
    assert max(years.followed) <= 12
    assert max(years.followed[-10:]) <= max(years.followed[:18])
    assert median(years.work[-10:]) <= 1.5 * median(years.work[8:18])
    years.add_up()
    note = json.loads((years.folder / "head").read_text())
    assert note["verified"] == note["seq"]


@pytest.mark.soak
@pytest.mark.figure("figure_15")
def test_three_thousand_days(live: Callable[..., Years], record_property: Callable[[str, int], None]) -> None:
    years = live(3000, levels=256, newcomers=256, changes=20, share=Fraction(1, 500))
    assert max(years.cohorts) <= merging.MOST == 4096
    assert max(years.followed[-100:]) <= max(years.followed[:100])
    assert median(years.work[-100:]) <= 1.5 * median(years.work[:100])
    assert median(years.seconds[-100:]) <= 1.5 * median(years.seconds[:100])
    years.add_up()
    record_property("size", len(years.work))
