"""Years of newcomers, changes of mind and questions: nothing is refused, cohorts stay few, no day takes longer.

What a day takes is counted, not timed: steps of the database and lines that are followed; at full size the processor's
time besides. Other programs change even that, so in the last days the ledger of an early day is asked again, in turns.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from sqlite3 import connect
from statistics import median
from typing import Any

import numpy as np
import pytest

import epsilons.ledger
from epsilons.guarantee import NANO
from epsilons.ledger import merging
from epsilons.ledger.consent import Word
from epsilons.ledger.ledger import Ledger
from epsilons.ledger.order import as_sorted
from epsilons.ledger.registration import Application
from epsilons.ledger.values import Terms
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
    #: The period by which grants are renewed, if they are; the clock then goes on by a day, and now and then back.
    renews: str | None = None
    day: int = 0
    ticks: int = 0
    #: Of every day: the processor's seconds (of an early day, too), the database's ticks, the lines that were followed.
    seconds: list[float] = field(default_factory=list)
    early: list[float] = field(default_factory=list)
    work: list[int] = field(default_factory=list)
    followed: list[int] = field(default_factory=list)
    cohorts: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.luck = np.random.default_rng(15)
        self.grants = np.arange(1, self.levels + 1) * NANO // 100
        self.people = np.empty((0, 16), np.uint8)
        self.words = [Word(int(grant), f"level {grant}") for grant in self.grants]
        book = self.open()
        if self.renews is not None and not book.registrations():
            named = {str(word.level): word.code for word in self.words}
            about = {"person": "id", "rows_per_person": 1, "source": None, "renews": dict.fromkeys(named, self.renews)}
            nobody = as_sorted(self.people), np.empty(0, np.int32)
            terms = Terms("absent", 1, ids="text", spelling="normal")
            book.register(Application("years", "1", about, {}, terms, *nobody, self.words, named))
        book.close()

    def now(self) -> datetime:
        """Every seventh day the clock is ten days behind."""
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(self.day - (10 if self.day % 7 == 0 else 0))

    def open(self) -> Ledger:
        address = f"sqlite:///{self.folder}/people.ledger"
        book = epsilons.ledger.open(address, witness=self.folder / "head", clock=self.now if self.renews else None)
        book.settle_terms("absent", 1)
        return book

    def say(self, book: Ledger, people: Any) -> None:
        """What people choose: an epsilon, or a level by its name, which may be renewed."""
        if self.renews is None:
            book.set_grants(people, self.grant(len(people)))
        else:
            book.say(people, self.luck.integers(0, self.levels, len(people)), self.words)

    def grant(self, people: int) -> Any:
        return self.grants[self.luck.integers(0, self.levels, people)]

    def live(self, day: int) -> None:
        """Some join, some change their minds, one withdraws; then somebody opens the ledger and asks."""
        self.day = day
        self.change()
        ticks, lines = self.ticks, list[int]()
        self.seconds.append(self.ask(day, lines))
        self.work.append(self.ticks - ticks)
        self.followed.append(len(lines))

    def change(self) -> None:
        book = self.open()
        new = self.luck.integers(0, 256, (self.newcomers, 16), np.uint8)
        book.enroll(new, self.grant(len(new))) if self.renews is None else self.say(book, new)
        self.people = np.concatenate([self.people, new])
        some = self.people[self.luck.choice(len(self.people), self.changes, replace=False)]
        self.say(book, some[1:])
        book.withdraw(some[:1])
        book.close()

    def ask(self, day: int, lines: list[int]) -> float:
        """The processor's seconds of opening and asking; `lines` are those that were followed."""
        start = time.process_time()
        book = self.open()
        book.verify(thorough=False, progress=lambda line, last: lines.append(line))
        book.renew()
        may = book.allowance(self.share)
        number = book.reserve(
            key(f"question {day}"), may.nano, epoch=may.epoch, kind="count", levels=dict.fromkeys(may.nano, 0)
        ).number
        book.mark_read(number)
        book.store(number, b"an answer")
        assert book.find(key(f"question {day // 2}")) is not None
        self.cohorts.append(len(book.cohorts()))
        book.close()
        return time.process_time() - start

    def remember(self) -> None:
        """How the ledger stands today."""
        shutil.copytree(self.folder, self.folder / "young")

    def ask_again(self, day: int) -> float:
        """What the ledger as it was remembered takes today."""
        shutil.copytree(self.folder / "young", self.folder / "then")
        then = replace(self, folder=self.folder / "then", cohorts=[])
        then.luck, then.people = self.luck, self.people[: self.newcomers * day]
        then.change()
        seconds = then.ask(day, [])
        shutil.rmtree(then.folder)
        return seconds

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
            if day == 49:
                years.remember()
            if days > 100 and day >= days - 100:
                years.early.append(years.ask_again(50))
        return years

    return living


def test_the_last_of_many_days_is_like_the_first(live: Callable[..., Years], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging, "MOST", 24)
    years = live(36, levels=5, newcomers=5, changes=3, share=Fraction(1, 20))
    assert max(years.cohorts) <= 24
    with closing(connect(years.folder / "people.ledger")) as driver:
        assert driver.execute("SELECT count(*) FROM cohorts").fetchone()[0] <= 25  # a question writes no others
        assert driver.execute("SELECT count(*) FROM emptied").fetchone()[0] > 48
    assert max(years.followed) <= 12
    assert max(years.followed[-10:]) <= max(years.followed[:18])
    assert median(years.work[-10:]) <= 1.5 * median(years.work[8:18])
    years.add_up()
    note = json.loads((years.folder / "head").read_text())
    assert note["verified"] == note["seq"]


#: The first day on which somebody asked, of each week that began, by a clock that is ten days behind every seventh day.
WEEKS = ["2026-01-02", "2026-01-05", "2026-01-12", "2026-01-19", "2026-01-26", "2026-02-02"]


def test_months_that_begin_make_no_day_longer(live: Callable[..., Years], monkeypatch: pytest.MonkeyPatch) -> None:
    """Weeks here, so that six of them begin, each once, although the clock goes back by more than that."""
    monkeypatch.setattr(merging, "MOST", 60)
    years = live(36, levels=5, newcomers=5, changes=3, share=Fraction(1, 8), renews="week")
    assert max(years.cohorts) <= 60
    assert max(years.followed) <= 12
    assert median(years.work[-10:]) <= 1.5 * median(years.work[8:18])
    years.add_up()
    book = years.open()
    lines = [line for line in book.export() if line["kind"] == "renew"]
    assert [line["at"][:10] for line in lines] == WEEKS
    book.close()


#: Grants for good, of which each day takes so little that they last; and by the month, renewed a hundred times.
LASTING = [
    pytest.param(None, Fraction(1, 500), marks=pytest.mark.figure("figure_15")),
    pytest.param("month", Fraction(1, 40), marks=pytest.mark.figure("figure_15_renewals")),
]


@pytest.mark.soak
@pytest.mark.parametrize(("renews", "share"), LASTING)
def test_three_thousand_days(
    live: Callable[..., Years], renews: str | None, share: Fraction, record_property: Callable[[str, int], None]
) -> None:
    years = live(3000, levels=256, newcomers=256, changes=20, share=share, renews=renews)
    assert max(years.cohorts) <= merging.MOST == 4096
    assert max(years.followed[-100:]) <= max(years.followed[:100])
    assert median(years.work[-100:]) <= 1.5 * median(years.work[:100])
    assert median(years.seconds[-100:]) <= 1.5 * median(years.early)
    years.add_up()
    book = years.open()
    begun = [line["at"][:7] for line in book.export() if line["kind"] == "renew"]
    book.close()
    # It is registered by a clock of December 2025; what follows is January 2026 to March 2034.
    assert len(set(begun)) == len(begun) == (99 if renews else 0)
    record_property("size", len(years.work))
