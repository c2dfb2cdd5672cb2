"""Mixed steps against a plain model that keeps an account for every single person and knows nothing of cohorts.

After every step each person's max(0, granted - spent - reserved) is exactly what the ledger says is left.
"""

from __future__ import annotations

import math
import tempfile
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import epsilons.ledger
from epsilons.errors import BudgetExceeded, LedgerError
from ledgers import key, person

PEOPLE = [person(str(n)) for n in range(8)]
PUBLIC = None

some_people = st.lists(st.sampled_from(PEOPLE), min_size=1, max_size=6, unique=True)
grant = st.sampled_from([1, 2, 100, 1000, 10**9, 10**15, PUBLIC])
share = st.sampled_from([Fraction(1), Fraction(1, 2), Fraction(1, 3), Fraction(1, 10), Fraction(1, 1000)])


@dataclass
class Account:
    granted: int | None
    withdrawn: bool = False
    spent: int = 0
    reserved: int = 0

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


class Books(RuleBasedStateMachine):
    """Everything anyone can do to a ledger, in any order."""

    on_disk = False

    @initialize()
    def start(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        url = f"sqlite:///{Path(self.folder.name)}/people.ledger" if self.on_disk else None
        self.ledger = epsilons.ledger.open(url)
        self.ledger.settle_terms("absent", 1)
        self.accounts: dict[bytes, Account] = {}
        self.questions: dict[str, Question] = {}
        self.asked = 0

    def teardown(self) -> None:
        if hasattr(self, "ledger"):
            self.ledger.verify()
            self.ledger.close()
            self.folder.cleanup()

    def change(self, people: list[bytes], granted: Any, may: Any) -> None:
        changed = False
        for who in people:
            account = self.accounts.get(who)
            if account is None:
                self.accounts[who], changed = Account(granted), True
            elif (account.withdrawn or account.granted != granted) and may(account):
                account.granted, account.withdrawn, changed = granted, False, True
        self.epoch_moves(changed)

    def epoch_moves(self, changed: bool) -> None:
        self.epoch = getattr(self, "epoch", 0) + int(changed)
        assert self.ledger.epoch == self.epoch

    @rule(people=some_people, granted=grant)
    def enroll(self, people: list[bytes], granted: int | None) -> None:
        self.ledger.enroll(people, [granted] * len(people))
        self.change(people, granted, lambda a: not a.withdrawn and openness(granted) < openness(a.granted))

    @rule(people=some_people, granted=grant)
    def sync(self, people: list[bytes], granted: int | None) -> None:
        self.ledger.sync(people, [granted] * len(people))
        self.change(people, granted, lambda a: not a.withdrawn)

    @rule(people=some_people, granted=grant)
    def set_grants(self, people: list[bytes], granted: int | None) -> None:
        self.ledger.set_grants(people, [granted] * len(people))
        self.change(people, granted, lambda a: True)

    @rule(people=some_people)
    def withdraw(self, people: list[bytes]) -> None:
        self.ledger.withdraw(people)
        changed = False
        for who in people:
            changed |= who not in self.accounts or not self.accounts[who].withdrawn
            self.accounts.setdefault(who, Account(0)).withdrawn = True
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

    @rule(share=share)
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

    @rule(data=st.data())
    def again(self, data: st.DataObject) -> None:
        live = [n for n, q in self.questions.items() if q.state != "refunded"]
        if live:
            question = self.questions[name := data.draw(st.sampled_from(live))]
            held = self.ledger.reserve(key(name), {1: 1}, epoch=0, kind="count")
            assert (held.number, held.state) == (question.number, question.state)
            assert (dict(held.charges), held.answer) == (question.charges, question.answer)

    @rule(data=st.data(), step=st.sampled_from(["touched", "refund", "store"]))
    def settle(self, data: st.DataObject, step: str) -> None:
        if not self.questions:
            return
        question = self.questions[data.draw(st.sampled_from(sorted(self.questions)))]
        fits = {"touched": question.state != "refunded", "refund": question.state in ("reserved", "refunded")}
        fits["store"] = question.state in ("touched", "stored")
        arguments = (question.number, b"answer %d" % question.number) if step == "store" else (question.number,)
        if not fits[step]:
            with pytest.raises(LedgerError):
                getattr(self.ledger, step)(*arguments)
            return
        getattr(self.ledger, step)(*arguments)
        if question.state == "reserved":
            for who, nano in question.paid.items():
                self.accounts[who].reserved -= nano
                self.accounts[who].spent += nano if step == "touched" else 0
            question.state = "touched" if step == "touched" else "refunded"
        elif question.state == "touched" and step == "store":
            question.state, question.answer = "stored", arguments[1]

    @invariant()
    def every_account_is_exact(self) -> None:
        if not hasattr(self, "ledger"):
            return
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

    @invariant()
    def every_statement_adds_up(self) -> None:
        if hasattr(self, "ledger") and self.accounts:
            who = sorted(self.accounts)[self.asked % len(self.accounts)]
            told = self.ledger.statement(who)
            assert sum(nano for _, _, nano in told.releases) == told.spent + told.reserved


class BooksOnDisk(Books):
    on_disk = True


TestInMemory = pytest.mark.filterwarnings("error")(Books.TestCase)
TestInMemory.settings = settings(max_examples=12, stateful_step_count=40, deadline=None)
TestOnDisk = BooksOnDisk.TestCase
TestOnDisk.settings = settings(max_examples=6, stateful_step_count=30, deadline=None)


@pytest.mark.soak
class TestLong(Books.TestCase):  # type: ignore[name-defined, misc]
    settings = settings(max_examples=2_000, stateful_step_count=500, deadline=None, derandomize=False)
