"""A plain model of a ledger: an account for every single person, which knows nothing of cohorts.

Every step is taken in the ledger and in the model, and the two must agree about it. A `LastingModel` counts rho, has
levels whose grants are renewed by period, and a clock that goes forward and back.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from epsilons.errors import BudgetExceeded, LedgerError
from epsilons.ledger.consent import Word, count_periods, find_first_day, name_period
from epsilons.ledger.ledger import Ledger
from epsilons.ledger.order import as_sorted
from epsilons.ledger.registration import Application
from epsilons.ledger.values import Terms
from epsilons.measure import Measure
from support.ledgers import key, person

PEOPLE = [person(str(n)) for n in range(8)]
PUBLIC = None
GRANTS = [1, 2, 100, 1000, 10**9, 10**15, PUBLIC]
SHARES = [Fraction(1), Fraction(1, 2), Fraction(1, 3), Fraction(1, 10), Fraction(1, 1000)]
STEPS = ["mark_read", "refund", "store"]


@dataclass
class Account:
    granted: int | None
    withdrawn: bool = False
    own: bool = False
    spent: int = 0
    reserved: int = 0
    written_off: int = 0
    lost: bool = False
    before: int = 0
    level: str | None = None
    #: Of a grant by period: which kind, for which one, what earlier ones count for; and what of those was not used.
    period: str | None = None
    label: str = ""
    earlier: int = 0
    lapsed: int = 0

    def consent_anew(self, charged: int) -> None:
        """What was charged before counts no more, nor what records were lost of."""
        if self.lost:
            self.lost, self.before = False, charged
            self.spent = self.written_off = self.lapsed = self.earlier = 0

    def hold_floor(self) -> None:
        """Until they consent anew, whatever they move to after a loss counts as spent."""
        if self.lost and self.spent < (self.granted or 0):
            self.written_off += (self.granted or 0) - self.spent
            self.spent = self.granted or 0

    def stands(self) -> tuple[Any, ...]:
        return self.withdrawn, self.granted, self.own, self.level

    def grant_for_good(self) -> None:
        """What earlier periods count for is spent."""
        self.spent, self.earlier, self.period, self.label = self.spent + self.earlier, 0, None, ""

    def change_period(self, period: str, label: str) -> None:
        """Another kind of period: of those before, all that they count for is spent if a day of them lies in it."""
        if self.period is not None:
            days = [datetime(int(self.label[:4]) - 1, 12, 20) + timedelta(one) for one in range(400)]
            since = next(day for day in days if name_period(self.period, day.isoformat()) == self.label)
            label = max(label, name_period(period, since.isoformat()))
            if name_period(period, (since - timedelta(1)).isoformat()) == label:
                self.spent, self.earlier = self.spent + self.earlier, 0
        self.period, self.label = period, label

    def begin(self, label: str, lost: bool = False) -> None:
        """The next period; with lost records all between may have been used up."""
        assert self.period is not None
        assert self.granted is not None
        between = count_periods(self.period, self.label, label) - 1 if lost else 0
        self.lapsed += max(0, self.granted - self.spent)
        self.written_off += between * self.granted
        self.earlier += max(self.granted, self.spent) + between * self.granted
        self.spent, self.label = 0, label

    def left(self) -> int | None:
        if self.withdrawn:
            return 0
        return None if self.granted is None else max(0, self.granted - self.spent - self.reserved)


@dataclass
class Question:
    number: int
    state: str
    paid: dict[bytes, int]
    answer: bytes | None = None
    charges: dict[int, int] = field(default_factory=dict)


def openness(granted: int | None) -> float:
    return math.inf if granted is None else granted


class Model:
    """Everything anyone can do to a ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.settle_terms()
        self.accounts: dict[bytes, Account] = {}
        self.questions: dict[str, Question] = {}
        self.asked = 0
        self.epoch = 0
        self.lost = False

    def settle_terms(self) -> None:
        self.ledger.settle_terms("absent", 1)

    def count_charges(self, who: bytes) -> int:
        return sum(one.paid.get(who, 0) for one in self.questions.values() if one.state != "refunded")

    def change(self, people: list[bytes], granted: Any, may: Any, own: bool = False, anew: bool = False) -> None:
        changed = False
        for who in people:
            account = self.accounts.get(who)
            if account is None:
                account = self.accounts[who] = Account(None, lost=self.lost and not anew)
                changed = True
            elif not may(account) or (account.stands() == (False, granted, own, None) and not (account.lost and anew)):
                continue
            else:
                changed = True
            if anew:
                account.consent_anew(self.count_charges(who))
            account.granted, account.withdrawn, account.own, account.level = granted, False, own, None
            account.grant_for_good()
            account.hold_floor()
        self.epoch_moves(changed)

    def epoch_moves(self, changed: bool) -> None:
        self.epoch += int(changed)
        assert self.ledger.epoch == self.epoch

    def enroll(self, people: list[bytes], granted: int | None) -> None:
        self.ledger.enroll(people, [granted] * len(people))
        self.change(people, granted, lambda a: not a.withdrawn and self.is_word(a, granted))

    def loosen(self, people: list[bytes], granted: int | None) -> None:
        self.ledger.enroll(people, [granted] * len(people), loosen=True)
        self.change(people, granted, lambda a: not a.withdrawn and (not a.own or self.is_word(a, granted)))

    @staticmethod
    def is_word(account: Account, granted: int | None) -> bool:
        """Whether a source's word holds as it is: stricter, or as strict and no own word stands against it."""
        if openness(granted) == openness(account.granted):
            return not account.own
        return openness(granted) < openness(account.granted)

    def set_grants(self, people: list[bytes], granted: int | None, anew: bool = False) -> None:
        self.ledger.set_grants(people, [granted] * len(people), anew=anew)
        self.change(people, granted, lambda a: True, own=True, anew=anew)

    def withdraw(self, people: list[bytes]) -> None:
        self.ledger.withdraw(people)
        changed = False
        for who in people:
            changed |= who not in self.accounts or not self.accounts[who].withdrawn
            account = self.accounts.setdefault(who, Account(0, lost=self.lost))
            account.withdrawn, account.own, account.level = True, True, None
            account.grant_for_good()
        self.epoch_moves(changed)

    def expected(self, share: Fraction) -> dict[bytes, int]:
        found = {}
        for who, account in self.accounts.items():
            left = account.left()
            if account.withdrawn or account.granted is None or left is None:
                continue
            part = min(math.floor(account.granted * share), left)
            if part and part * 100 >= account.granted * share:
                found[who] = part
        return found

    def reserve(self, share: Fraction) -> None:
        expected = self.expected(share)
        here = [a for a in self.accounts.values() if not a.withdrawn]
        try:
            may = self.ledger.allowance(share)
        except BudgetExceeded:
            assert not expected
            assert not here or any(a.granted is not None for a in here)
            return
        members = self.ledger.members()
        cohort = {d.tobytes(): int(c) for d, c in zip(members.digests, members.cohorts, strict=True)}
        assert {who: may.nano[cohort[who]] for who in cohort if cohort[who] in may.nano} == expected
        self.asked += 1
        name = f"question {self.asked}"
        held = self.ledger.reserve(key(name), may.nano, epoch=may.epoch, kind="count")
        self.questions[name] = Question(held.number, "reserved", expected, charges=dict(may.nano))
        for who, nano in expected.items():
            self.accounts[who].reserved += nano

    def again(self, which: int) -> None:
        live = [n for n, q in self.questions.items() if q.state not in ("refunded", "lost")]
        if live:
            question = self.questions[name := live[which % len(live)]]
            held = self.ledger.reserve(key(name), {1: 1}, epoch=0, kind="count")
            assert (held.number, held.state) == (question.number, question.state)
            assert (dict(held.charges), held.answer) == (question.charges, question.answer)

    def settle(self, which: int, step: str) -> None:
        if not self.questions:
            return
        question = self.questions[list(self.questions)[which % len(self.questions)]]
        fits = {
            "mark_read": question.state in ("reserved", "touched", "stored"),
            "refund": question.state in ("reserved", "refunded"),
            "store": question.state in ("touched", "stored"),
        }
        arguments = (question.number, b"answer %d" % question.number) if step == "store" else (question.number,)
        if not fits[step]:
            with pytest.raises(LedgerError):
                getattr(self.ledger, step)(*arguments)
            return
        getattr(self.ledger, step)(*arguments)
        if question.state == "reserved":
            for who, nano in question.paid.items():
                self.accounts[who].reserved -= nano
                self.accounts[who].spent += nano if step == "mark_read" else 0
            question.state = "touched" if step == "mark_read" else "refunded"
        elif question.state == "touched" and step == "store":
            question.state, question.answer = "stored", arguments[1]

    def every_account_is_exact(self) -> None:
        cohorts = {c.id: c for c in self.ledger.cohorts()}
        members = self.ledger.members()
        held = {d.tobytes(): cohorts[c] for d, c in zip(members.digests, members.cohorts.tolist(), strict=True)}
        assert held.keys() == self.accounts.keys()
        least: dict[int, int] = {}
        for who, account in self.accounts.items():
            assert (held[who].spent, held[who].reserved) == (account.spent, account.reserved)
            assert held[who].left == account.left()
            if account.granted is not None and not account.withdrawn:
                least[account.granted] = min(account.left() or 0, least.get(account.granted, 10**20))
        assert self.ledger.remaining().nano == least

    def every_statement_adds_up(self) -> None:
        if self.accounts:
            who = sorted(self.accounts)[self.asked % len(self.accounts)]
            told, account = self.ledger.statement(who), self.accounts[who]
            assert (told.written_off, told.lapsed) == (account.written_off, account.lapsed)
            before = 0 if told.anew is None else told.anew.charged
            assert before == account.before
            paid = sum(use.charge for use in told.uses) - before + told.written_off + told.lapsed
            assert paid == told.spent + told.reserved + account.earlier
            assert told.term == ((account.period, account.label, account.earlier) if account.period else None)

    def lose(self) -> None:
        """Everybody's grant counts as spent, and whatever was under way is over."""
        self.lost = True
        for account in self.accounts.values():
            account.written_off, account.lapsed = account.written_off + account.lapsed, 0
            gone = account.spent + account.reserved
            account.spent = max(gone, 0 if account.withdrawn else account.granted or 0)
            account.reserved = 0
            account.written_off += account.spent - gone
            account.lost = True
        for question in self.questions.values():
            if question.state in ("reserved", "touched"):
                question.state = "lost"


NOW = datetime(2026, 11, 16, tzinfo=UTC)
LASTING = Measure(Fraction(1, 10**6))
#: Levels by name, in epsilon: (what is granted, for which period, or for good).
LEVELS = {"strict": (0.01, None), "often": (0.01, "week"), "monthly": (0.5, "month"), "yearly": (2.0, "year")}


class LastingModel(Model):
    """The same where accounts count rho, and levels are renewed; time is what `pass_time` makes it."""

    def __init__(self, ledger: Ledger, now: list[datetime]) -> None:
        self.words = [Word(LASTING.units(round(one * 10**9)), name) for name, (one, _) in LEVELS.items()]
        self.periods = {name: period for name, (_, period) in LEVELS.items() if period}
        self.now = now
        super().__init__(ledger)

    def settle_terms(self) -> None:
        """A dataset without anybody, by which levels have their periods."""
        levels = {str(word.level): word.code for word in self.words}
        about = {"person": "id", "rows_per_person": 1, "source": None, "renews": self.periods}
        terms = Terms("absent", 1, measure=LASTING.to_text(), ids="text", spelling="normal")
        nobody = as_sorted(np.empty((0, 16), np.uint8)), np.empty(0, np.int32)
        self.ledger.register(Application("lasting", "1", about, {}, terms, *nobody, self.words, levels))

    def pass_time(self, days: int) -> None:
        """Forward or back, as clocks do."""
        self.now[0] += timedelta(days)

    def label(self, period: str) -> str:
        """The present period, and never one before those that people are in, of whatever kind these are."""
        begun = [find_first_day(one.period, one.label).isoformat() for one in self.accounts.values() if one.period]
        return name_period(period, max([self.now[0].isoformat(), *begun]))

    def say(self, people: list[bytes], level: int) -> None:
        """People choose a level by its name."""
        word = self.words[level]
        self.ledger.say(people, np.full(len(people), level), self.words)
        period, changed = self.periods.get(str(word.level)), False
        label = self.label(period) if period else ""
        for who in people:
            if who not in self.accounts:
                self.accounts[who] = Account(None, lost=self.lost)
            account = self.accounts[who]
            if account.stands() == (False, word.code, True, word.level):
                continue
            changed, account.granted, account.withdrawn, account.own = True, word.code, False, True
            account.level = word.level
            if period is None:
                account.grant_for_good()
            elif period != account.period:
                account.change_period(period, label)
            account.hold_floor()
        self.epoch_moves(changed)

    def renew(self, lost: bool = False) -> None:
        """Whoever's period is over begins the next."""
        at, moved = self.now[0].isoformat(), 0
        for account in self.accounts.values():
            if account.period is not None and name_period(account.period, at) > account.label:
                account.begin(name_period(account.period, at), lost)
                moved += 1
        if not lost:
            assert self.ledger.renew() == moved
            assert self.ledger.renew() == 0
            self.epoch_moves(moved > 0)
        else:
            self.epoch += moved > 0

    def reserve(self, share: Fraction) -> None:
        self.renew()
        super().reserve(share)

    def lose(self) -> None:
        self.renew(lost=True)
        super().lose()

    def every_account_is_exact(self) -> None:
        super().every_account_is_exact()
        for account in (one for one in self.accounts.values() if one.granted and not one.withdrawn):
            # In the units in which people chose: (epsilon, delta) holds of all that was charged within the grant.
            gone = min(account.spent + account.reserved, account.granted or 0)
            assert LASTING.epsilon(gone) <= LASTING.epsilon(account.granted or 0)
