"""A plain model of a ledger: an account for every single person, which knows nothing of cohorts.

Every step is taken in the ledger and in the model, and the two must agree about it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import pytest

from epsilons.errors import BudgetExceeded, LedgerError
from epsilons.ledger.ledger import Ledger
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

    def move(self, granted: int | None, anew: bool) -> None:
        """Until they consent anew, whatever they grant after a loss counts as spent."""
        if self.lost and anew:
            self.before, self.lost, self.spent, self.written_off = self.before + self.charged(), False, 0, 0
        self.granted, self.withdrawn = granted, False
        if self.lost and self.spent < (granted or 0):
            self.written_off += (granted or 0) - self.spent
            self.spent = granted or 0

    def charged(self) -> int:
        return self.spent + self.reserved - self.written_off

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
        self.ledger.settle_terms("absent", 1)
        self.accounts: dict[bytes, Account] = {}
        self.questions: dict[str, Question] = {}
        self.asked = 0
        self.epoch = 0
        self.lost = False

    def change(self, people: list[bytes], granted: Any, may: Any, own: bool = False, anew: bool = False) -> None:
        changed = False
        for who in people:
            account = self.accounts.get(who)
            if account is None:
                self.accounts[who] = account = Account(granted, own=own, lost=self.lost)
                account.move(granted, anew)
                account.before, changed = 0, True
            elif may(account) and (
                (account.withdrawn, account.granted, account.own) != (False, granted, own) or (account.lost and anew)
            ):
                account.move(granted, anew)
                account.own, changed = own, True
        self.epoch_moves(changed)

    def epoch_moves(self, changed: bool) -> None:
        self.epoch += int(changed)
        assert self.ledger.epoch == self.epoch

    def enroll(self, people: list[bytes], granted: int | None) -> None:
        self.ledger.enroll(people, [granted] * len(people))
        self.change(people, granted, lambda a: not a.withdrawn and openness(granted) < openness(a.granted))

    def loosen(self, people: list[bytes], granted: int | None) -> None:
        self.ledger.enroll(people, [granted] * len(people), loosen=True)
        self.change(
            people, granted, lambda a: not a.withdrawn and (not a.own or openness(granted) < openness(a.granted))
        )

    def set_grants(self, people: list[bytes], granted: int | None, anew: bool = False) -> None:
        self.ledger.set_grants(people, [granted] * len(people), anew=anew)
        self.change(people, granted, lambda a: True, own=True, anew=anew)

    def withdraw(self, people: list[bytes]) -> None:
        self.ledger.withdraw(people)
        changed = False
        for who in people:
            changed |= who not in self.accounts or not self.accounts[who].withdrawn
            account = self.accounts.setdefault(who, Account(0, lost=self.lost))
            account.withdrawn, account.own = True, True
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
            told = self.ledger.statement(who)
            assert told.written_off == self.accounts[who].written_off
            before = 0 if told.anew is None else told.anew.charged
            assert before == self.accounts[who].before
            assert sum(use.charge for use in told.uses) - before + told.written_off == told.spent + told.reserved

    def lose(self) -> None:
        """Everybody's grant counts as spent, and whatever was under way is over."""
        self.lost = True
        for account in self.accounts.values():
            gone = account.spent + account.reserved
            account.spent = max(gone, 0 if account.withdrawn else account.granted or 0)
            account.reserved = 0
            account.written_off += account.spent - gone
            account.lost = True
        for question in self.questions.values():
            if question.state in ("reserved", "touched"):
                question.state = "lost"
