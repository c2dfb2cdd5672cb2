"""Grants by period: renewed when the next one begins, once, and only for who chose that with their level."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from threading import Barrier
from typing import Any

import numpy as np
import pandas as pd
import pytest

import epsilons as eps
from epsilons import ledger as ledgers
from epsilons.errors import BudgetExceeded, LedgerError, PreferenceError
from epsilons.guarantee import NANO
from epsilons.ledger import renewal
from epsilons.ledger.consent import PERIODS, count_periods, name_period
from epsilons.ledger.ledger import Ledger
from epsilons.ledger.rosters import read_term
from epsilons.ledger.values import StalePlanError
from epsilons.measure import Measure
from epsilons.plots import list_spent
from support.ledger_recount import balances

WORDS = {"strict": 0.5, "yearly": 0.5, "monthly": 0.25}
RENEWS = {"yearly": "year", "monthly": "month"}
N = 120


class Clock:
    """Says what it is told to say."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 16, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def set(self, text: str) -> None:
        self.now = datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def book(tmp_path: Path, clock: Clock) -> Iterator[Ledger]:
    made = ledgers.open(f"sqlite:///{tmp_path}/a.ledger", witness=tmp_path / "head", clock=clock)
    yield made
    made.verify()
    made.close()


def frame(levels: Any = ("strict", "yearly", "monthly")) -> pd.DataFrame:
    place = np.arange(N)
    return pd.DataFrame({"id": place, "wage": place % 50, "privacy": [levels[i % len(levels)] for i in place]})


def register(book: Ledger, table: pd.DataFrame | None = None, **more: Any) -> eps.Dataset:
    words = more.pop("words", WORDS)
    settled: dict[str, Any] = {"name": "wages", "person": "id", "bounds": {"wage": (0, 50)}, "renews": RENEWS}
    wishes = eps.Preferences.from_levels("privacy", words)
    return eps.Dataset.register(
        frame() if table is None else table, ledger=book, preferences=wishes, **{**settled, **more}
    )


def ask(people: eps.Dataset, share: float = 1.0) -> Any:
    return people.count(where="wage > 5", share=share, mechanism="stretching", fresh=True)


def left(people: eps.Dataset) -> dict[str, float]:
    cohorts = people.ledger.cohorts()
    return {one.level or "": (one.left or 0) / NANO for one in cohorts if one.people}


def test_only_what_was_granted_by_period_is_renewed_when_its_own_period_begins(book: Ledger, clock: Clock) -> None:
    with register(book) as people:
        ask(people)
        assert left(people) == {"strict": 0, "yearly": 0, "monthly": 0}
        with pytest.raises(BudgetExceeded):
            ask(people)
        clock.set("2026-12-01")
        ask(people, 0.5)
        assert left(people) == {"strict": 0, "yearly": 0, "monthly": 0.125}
        clock.set("2027-01-01")
        ask(people, 0.5)
        assert left(people) == {"strict": 0, "yearly": 0.25, "monthly": 0.125}
        book.verify()


def test_spending_over_time_begins_anew_with_a_period(book: Ledger, clock: Clock) -> None:
    with register(book) as people:
        ask(people, 0.5)
        clock.set("2027-01-05T00:00:00")
        ask(people, 0.25)
        half, quarter = NANO // 2, NANO // 4
        (dataset,) = {one.dataset for one in book.registrations()}
        lines = list_spent(book.history(dataset), book.cohorts(dataset))
    # strict and yearly share an epsilon: whoever of them paid most is shown.
    assert lines == {half: [0, half // 2, half * 3 // 4], quarter: [0, quarter // 2, quarter // 4]}


def test_statements_say_what_adds_up(book: Ledger, clock: Clock) -> None:
    with register(book) as people:
        ask(people)
        clock.set("2027-05-05")
        ask(people, 0.5)
        told = people.statement(1)
        assert (told.granted, told.spent, told.left) == (0.5 * NANO, 0.25 * NANO, 0.25 * NANO)
        assert [use.charge for use in told.uses] == [0.5 * NANO, 0.25 * NANO]
        assert "Used in 2 questions (2 × count), at a loss of at most 0.75 in all." in str(told)
        assert "Granted: 0.5 each year of the calendar, now for 2027, of which 0.25 counts as spent." in str(told)
        assert "this adds up to at most 1 so far" in str(told)
        assert "renewed" not in str(people.statement(0))
        answer = ask(people, 0.1)
        (caveat,) = [one for one in answer.guarantee.caveats if "renewed" in one]
        assert "monthly each month, yearly each year of the calendar (UTC)" in caveat
        assert "k periods add up to k times that." in caveat


def test_periods_of_a_concentrated_account_add_up_in_rho(book: Ledger, clock: Clock) -> None:
    """In epsilon two of them may come to more than twice as much: of .01, with a delta of 1/100, to 2.4 times."""
    little = Measure(Fraction(1, 100))
    assert little.epsilon(2 * little.units(NANO // 100)) > 2 * NANO // 100
    with register(book, measure="zcdp", delta=0.01) as people:
        for told in (str(ask(people, 0.1).guarantee), *people.describe().tell_accounts()):
            assert "k times that" not in told
            assert ("k periods add up to k times its rho." in told) == ("renewed" in told)


def test_a_clock_that_goes_back_renews_nothing_and_nothing_is_renewed_twice(book: Ledger, clock: Clock) -> None:
    with register(book) as people:
        spent = []
        for day in ("2026-12-31", "2027-01-01", "2026-12-31", "2027-01-01", "2020-05-05", "2027-12-31", "2027-01-02"):
            clock.set(day)
            try:
                spent.append((day, ask(people).charges[0.5]))
            except BudgetExceeded:
                continue
        # Once in each of the two years that it said; monthly people had December twice, but nobody the same one twice.
        assert [day for day, charge in spent if charge == 0.5] == ["2026-12-31", "2027-01-01"]
        labels = [term.label for line in people.ledger.export() if line["kind"] == "renew"
                  for made in json.loads(str(line["body"]))["made"]
                  if (term := read_term(made["datasets"])) and term.period == "month"]  # fmt: skip
        assert labels == sorted(set(labels))


def test_years_that_nobody_asked_in_lapse(book: Ledger, clock: Clock) -> None:
    with register(book) as people:
        clock.set("2031-01-01")
        ask(people, 0.5)
        assert left(people)["yearly"] == 0.25
        assert people.statement(1).lapsed == 0.5 * NANO


def test_a_renewal_is_due_before_anybody_is_charged_whoever_asks(book: Ledger, clock: Clock) -> None:
    """A dataset that knows of no periods has people who do: its charge would count for the year before."""
    with register(book):
        plain = frame()[::3]
        with register(book, plain, name="homes", renews=None, words={"strict": 0.5}, confirm=True) as homes:
            homes._registry.renews = False
            clock.set("2027-01-01")
            may = book.allowance(Fraction(1, 10))
            with pytest.raises(StalePlanError):
                book.reserve(bytes(32), may.nano, epoch=may.epoch, kind="count", dataset=None)
            homes.count(where="wage > 5", share=0.1)
        assert {term.label for one in book.cohorts() if (term := read_term(one.datasets))} == {"2027", "2027-01"}


def test_changing_ones_mind_loses_no_charge(book: Ledger, clock: Clock) -> None:
    with register(book) as people:
        ask(people)
        clock.set("2027-01-01")
        ask(people, 0.5)
        people.set_level({1: "strict"})
        told = people.statement(1)
        assert (told.spent, told.left, told.written_off) == (0.75 * NANO, 0, 0)
        people.set_level({1: "yearly"})
        assert people.statement(1).left == 0  # all of it counts in this year
        people.withdraw([4])
        assert people.statement(4).spent == 0.75 * NANO
        people.set_level({4: "yearly", 0: "yearly"})
        assert (people.statement(4).left, people.statement(0).left) == (0, 0)
        clock.set("2028-02-02")
        ask(people, 0.5)
        assert {people.statement(one).left for one in (0, 1, 4)} == {0.25 * NANO}
        people.set_level({7: "monthly"})
        assert people.statement(7).spent == people.statement(1).spent


def test_what_was_not_used_counts_as_spent_under_a_grant_for_good(book: Ledger, clock: Clock) -> None:
    with register(book, words={**WORDS, "open": 3.0}) as people:
        ask(people, 0.5)
        clock.set("2027-01-01")
        ask(people, 0.5)
        people.set_level({1: "open"})
        told = people.statement(1)
        assert (told.spent, told.left, told.lapsed) == (0.75 * NANO, 2.25 * NANO, 0.25 * NANO)
        assert "0.25 was not used and counts as spent" in str(told)
        assert told.written_off == 0


def test_open_charges_stay_with_their_people(book: Ledger, clock: Clock) -> None:
    with register(book) as people:
        may = book.allowance(Fraction(1, 2))
        held = book.reserve(bytes(32), may.nano, epoch=may.epoch, kind="count")
        given = book.reserve(bytes([1] * 32), may.nano, epoch=may.epoch, kind="count")
        clock.set("2027-01-01")
        assert book.renew() == 80
        assert left(people) == {"strict": 0, "yearly": 0, "monthly": 0}
        book.refund(given.number)
        book.mark_read(held.number)
        assert left(people) == {"strict": 0.25, "yearly": 0.25, "monthly": 0.125}
        assert book.renew() == 0
        told = people.statement(1)
        assert (told.spent, told.written_off) == (0.25 * NANO, 0)  # nothing was lost


def test_who_renews_at_once_renews_once(book: Ledger, clock: Clock, tmp_path: Path) -> None:
    with register(book) as people:
        ask(people)
        clock.set("2027-01-01")
        others = [
            ledgers.open(f"sqlite:///{tmp_path}/a.ledger", witness=tmp_path / "head", clock=clock) for _ in range(4)
        ]
        together = Barrier(len(others))

        def renew(one: Ledger) -> int:
            together.wait()
            return one.renew()

        with ThreadPoolExecutor(len(others)) as pool:
            assert sorted(pool.map(renew, others)) == [0, 0, 0, 80]
        for one in others:
            one.close()
        assert left(people) == {"strict": 0, "yearly": 0.5, "monthly": 0.25}


def test_a_level_chosen_at_the_edge_of_a_period_brings_no_second_grant_of_it(book: Ledger, clock: Clock) -> None:
    """All is spent, the month is over and nobody has asked yet: whatever people say then, what they spent counts."""
    with register(book) as people:
        ask(people)
        clock.set("2026-12-01")
        people.set_level({2: "yearly", 1: "monthly", 5: "strict"})
        people.set_level({5: "monthly"})
        told = [people.statement(one) for one in (1, 2, 5)]
        assert [one.spent + (one.term.earlier if one.term else 0) for one in told] == [NANO / 2, NANO / 4, NANO / 4]
        # November was in the year that one now chose.
        assert [one.left for one in told] == [0, 0.25 * NANO, 0]
        ask(people)
        clock.set("2027-01-01")
        with register(book, version="2", words={**WORDS, "monthly": 0.1}) as less:  # it means less from here on
            less.ledger.renew()
            assert {less.statement(one).left for one in (5, 8, 11)} == {0.1 * NANO}
            assert less.statement(8).term == ("month", "2027-01", 0.5 * NANO)  # as much as was spent, not as it means
            assert less.statement(2).term == ("year", "2027", 0.5 * NANO)


MANY = {"weekly": (0.05, "week"), "monthly": (0.1, "month"), "quarterly": (0.2, "quarter"), "yearly": (0.5, "year")}


@pytest.mark.parametrize("seed", range(4))
def test_no_period_of_the_calendar_costs_more_than_is_granted_for_it_whichever_came_before(
    book: Ledger, clock: Clock, seed: int
) -> None:
    """Of weeks, months, quarters and years in any order: those that are over may lie in the one that begins."""
    rng = np.random.default_rng(seed)
    words, periods = ({name: one[place] for name, one in MANY.items()} for place in (0, 1))
    clock.set("2026-12-01")
    with register(book, frame(tuple(MANY)), words=words, renews=periods) as people:
        paid: list[tuple[str, float]] = []
        for _ in range(25):
            clock.now += timedelta(int(rng.choice([0, 1, 1, 3, 8, 40])))
            level = str(rng.choice(list(MANY)))
            people.set_level({0: level})
            before = len(people.statement(0).uses)
            with contextlib.suppress(BudgetExceeded):
                ask(people, 0.5)
            granted, period = MANY[level]
            paid += [(use.at, use.charge / NANO) for use in people.statement(0).uses[before:]]
            if len(people.statement(0).uses) > before:
                label = name_period(period, clock.now.isoformat())
                assert sum(charge for at, charge in paid if name_period(period, at) == label) <= granted + 1e-9
        assert paid


@pytest.mark.parametrize("terms", [{}, {"measure": "zcdp", "delta": 1e-6}], ids=["pure", "zcdp"])
def test_who_withdraws_and_comes_back_has_no_second_grant_of_a_period(
    book: Ledger, clock: Clock, terms: dict[str, Any]
) -> None:
    """In whichever order, at whatever hour, by a clock that goes back: what is charged in a month fits one grant."""

    def try_to_ask(share: float) -> None:
        with contextlib.suppress(BudgetExceeded):
            ask(people, share)

    with register(book, confirm=True, **terms) as people:
        most = people.statement(1).granted  # of a year, which is twice that of a month
        assert most is not None
        for moment in ("2026-11-16", "2026-11-30T23:59:59", "2026-12-01", "2026-11-30", "2026-12-01T00:00:01"):
            clock.set(moment)
            for level in ("monthly", "yearly", "strict", "monthly"):
                people.withdraw([2])
                try_to_ask(0.01)
                people.set_level({2: level})
                try_to_ask(1.0)
        uses = people.statement(2).uses
        assert sum(use.charge for use in uses) <= most, "all that a year, or for good, grants"
        assert people.statement(2).left == 0
        clock.set("2027-01-01")
        try_to_ask(1.0)
        january = sum(use.charge for use in people.statement(2).uses) - sum(use.charge for use in uses)
        assert 0 < january <= people.statement(2).granted  # type: ignore[operator]
        book.verify()


def test_a_clock_that_goes_back_opens_no_year_beside_its_months(book: Ledger, clock: Clock) -> None:
    """Nobody is in any year, so that only months say that the next one has begun."""
    with register(book, frame(("strict", "monthly"))) as people:
        clock.set("2027-01-11")
        ask(people, 1.0)
        people.withdraw([1])
        clock.set("2026-12-04")
        people.set_level({1: "yearly"})
        assert people.statement(1).term[:2] == ("year", "2027")  # type: ignore[index]
        clock.set("2027-01-19")
        with contextlib.suppress(BudgetExceeded):
            ask(people, 1.0)
        paid = [use.charge for use in people.statement(1).uses if use.at.startswith("2027")]
        assert NANO / 4 <= sum(paid) <= NANO / 2
        book.verify()


def test_nothing_is_renewed_without_that_consent(book: Ledger, clock: Clock) -> None:
    with register(book, renews={"yearly": "year"}):
        pass
    for other in ("year", {"yearly": "year", "strict": "month"}, {"yearly": "month"}, None):
        with pytest.raises(LedgerError, match="in this ledger"):
            register(book, version="2", renews=other)
    newcomers = pd.DataFrame({"id": range(N, N + 30), "wage": 9, "privacy": "often"})
    told: dict[str, Any] = {"words": {**WORDS, "often": 0.1}, "renews": {"yearly": "year", "often": "week"}}
    with register(book, pd.concat([frame(), newcomers]), version="2", confirm=True, **told) as people:
        ask(people)
        clock.set("2026-11-24")
        ask(people)
        assert people.ledger.history()[-1].epsilons.keys() == {0.1}


def test_a_source_renews_nobodys_grant_in_silence(book: Ledger, clock: Clock) -> None:
    """ "strict" and "yearly" are the same epsilon: that one is renewed makes it the looser word, which waits."""
    with register(book) as people:
        people.set_level({3: "strict"})
    changed = frame()
    changed.loc[[0, 3, 6], "privacy"] = "yearly"
    with register(book, changed, version="2") as people:
        assert people.enrolment is not None
        assert people.enrolment.pending == 3
        assert [people.statement(one).term for one in (0, 3, 6)] == [None] * 3
        assert people.statement(1).term is not None
    with register(book, changed, version="3", loosen=3) as people:
        assert [people.statement(one).term for one in (0, 6)] == [people.statement(1).term] * 2
        people.set_level({9: "yearly"})
        assert people.statement(9).term is not None


def test_a_level_that_left_the_file_keeps_its_period(book: Ledger, clock: Clock) -> None:
    with register(book) as people:
        ask(people)
    fewer = {name: WORDS[name] for name in ("strict", "yearly")}
    with register(book, frame(("strict", "yearly")), version="2", words=fewer, renews={"yearly": "year"}) as people:
        assert people._registry.registration.about["renews"] == RENEWS
        with pytest.raises(LedgerError, match="renewed each month"):
            register(book, version="3", renews={"yearly": "year"})


@pytest.mark.parametrize(
    "wrong", ["decade", {"yearly": "day"}, {"nobody": "year"}, {}, 3, ["year"], {"public": "year"}]
)
def test_what_is_no_period_is_refused(book: Ledger, wrong: Any) -> None:
    with pytest.raises(PreferenceError, match="no period of a level"):
        register(book, words={**WORDS, "public": eps.PUBLIC}, renews=wrong)


def test_periods_follow_the_calendar_and_only_forward() -> None:
    """Every day of forty years: a label changes exactly where the calendar says, and always grows."""
    days = [datetime(2000, 1, 1, tzinfo=UTC) + timedelta(one) for one in range(40 * 366)]
    begins = {
        "year": lambda day: (day.month, day.day) == (1, 1),
        "quarter": lambda day: day.day == 1 and day.month in (1, 4, 7, 10),
        "month": lambda day: day.day == 1,
        "week": lambda day: day.isoweekday() == 1,
    }
    assert set(begins) == set(PERIODS)
    for period, first in begins.items():
        labels = [name_period(period, day.isoformat()) for day in days]
        for (before, label), day in zip(pairwise(labels), days[1:], strict=True):
            assert label > before if first(day) else label == before


PLANTED: dict[str, tuple[Any, str, Any]] = {
    "the same period again": (renewal, "_is_over", lambda term, at: term is not None),
    "a period that has not begun": (renewal, "name_period", lambda period, at: "2099"),
    "earlier periods forgotten": (renewal, "Term", lambda period, label, earlier: (period, label, 0)),
}


@pytest.mark.parametrize("case", PLANTED)
def test_a_renewal_that_gives_too_much_does_not_add_up(
    case: str, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = ledgers.open(f"sqlite:///{tmp_path}/a.ledger", witness=tmp_path / "head", clock=clock)
    with register(book, renews={"yearly": "year"}) as people:
        ask(people)
        clock.set("2026-12-31" if case == "the same period again" else "2027-01-01")
        with monkeypatch.context() as bug:
            bug.setattr(*PLANTED[case])
            assert book.renew() == N / 3
        with pytest.raises(LedgerError, match="renews more than was granted"):
            book.verify()
    book.close()


@pytest.mark.parametrize("years", [1, 3])
def test_a_period_that_may_have_been_used_up_in_lost_records_is_not_granted_again(
    tmp_path: Path, clock: Clock, years: int
) -> None:
    """A copy of last year put back: what was lost may have been all of this year's grant, and of those between."""

    def reopen(**how: bool) -> Ledger:
        return ledgers.open(f"sqlite:///{tmp_path}/a.ledger", witness=tmp_path / "head", clock=clock, **how)

    book = reopen()
    with register(book, renews={"yearly": "year"}) as people:
        ask(people, 0.5)
    book.close()
    shutil.copy(tmp_path / "a.ledger", tmp_path / "copy")
    for year in range(2027, 2027 + years):
        clock.set(f"{year}-03-03")
        book = reopen()
        with eps.Dataset.open("wages", ledger=book) as people:
            ask(people)
        book.close()
    shutil.copy(tmp_path / "copy", tmp_path / "a.ledger")
    book = reopen(accept_loss=True)
    with eps.Dataset.open("wages", ledger=book) as people:
        with pytest.raises(BudgetExceeded):
            ask(people)
        told = people.statement(1)
        assert (told.spent, told.left, told.term) == (0.5 * NANO, 0, ("year", f"{2026 + years}", years * NANO // 2))
        assert told.written_off == (years + 0.5) * NANO / 2  # of the first year half is known
        assert f"adds up to at most {0.5 * (years + 1):g} so far" in str(told)
        clock.set(f"{2027 + years}-01-01")
        assert ask(people).charges[0.5] == 0.5
    assert balances(book.export()).keys() == {one.id for one in book.cohorts()}
    book.verify()
    book.close()


def test_periods_are_counted_as_the_calendar_has_them() -> None:
    days = [datetime(2019, 12, 20, tzinfo=UTC) + timedelta(one) for one in range(9 * 366)]
    for period in PERIODS:
        labels = list(dict.fromkeys(name_period(period, day.isoformat()) for day in days))
        assert [count_periods(period, labels[0], label) for label in labels] == list(range(len(labels)))
