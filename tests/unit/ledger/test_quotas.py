"""Quotas of analysts: for fairness between them, on top of everybody's budget, and never in place of it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from epsilons.errors import LedgerError
from epsilons.ledger import Quota, QuotaError
from epsilons.ledger.ledger import Ledger
from support.ledgers import key, nano, person


@pytest.fixture(autouse=True)
def people(ledger: Ledger) -> None:
    ledger.enroll([person("ann"), person("bob")], [nano("0.1"), nano("1")])


def reserve(ledger: Ledger, name: str, analyst: str | None, share: Fraction = Fraction(1, 10)) -> int:
    may = ledger.allowance(share)
    return ledger.reserve(key(name), may.nano, epoch=may.epoch, kind="count", analyst=analyst).number


def test_without_a_quota_an_analyst_may_use_what_people_granted(ledger: Ledger) -> None:
    reserve(ledger, "one", "office")
    reserve(ledger, "two", None)
    assert ledger.quotas() == (Quota("office", None, None, nano("0.1"), 1),)
    assert [past.analyst for past in ledger.history()] == ["office", None]


def test_a_quota_in_questions(ledger: Ledger) -> None:
    ledger.set_quota("office", questions=2)
    reserve(ledger, "one", "office")
    reserve(ledger, "two", "office")
    with pytest.raises(QuotaError, match="It is no privacy budget"):
        reserve(ledger, "three", "office")
    # Nothing was charged, others may ask, and what was asked before is free.
    assert ledger.remaining().epsilons == {0.1: 0.08, 1.0: 0.8}
    reserve(ledger, "three", "press")
    assert reserve(ledger, "one", "office") == 1
    ledger.set_quota("office")
    reserve(ledger, "four", "office")
    ledger.verify()


def test_a_quota_in_epsilon_counts_the_largest_charge(ledger: Ledger) -> None:
    ledger.set_quota("office", nano=nano("0.15"))
    reserve(ledger, "one", "office")
    with pytest.raises(QuotaError):
        reserve(ledger, "two", "office")
    reserve(ledger, "two", "office", Fraction(1, 20))
    assert ledger.quotas() == (Quota("office", nano("0.15"), None, nano("0.15"), 2),)


def test_what_was_asked_before_the_quota_counts(ledger: Ledger) -> None:
    reserve(ledger, "one", "office")
    ledger.set_quota("office", questions=1)
    with pytest.raises(QuotaError):
        reserve(ledger, "two", "office")


def test_what_is_given_back_does_not_count(ledger: Ledger) -> None:
    ledger.set_quota("office", nano=nano("0.1"), questions=1)
    ledger.refund(reserve(ledger, "one", "office"))
    ledger.refund(reserve(ledger, "nobody's", None))
    assert ledger.quotas() == (Quota("office", nano("0.1"), 1, 0, 0),)
    number = reserve(ledger, "two", "office")
    # People who move while it is open take charges along, which are no questions of the analyst's.
    ledger.set_grants([person("ann")], [nano("7")])
    ledger.refund(number)
    assert ledger.quotas()[0].used_nano == 0
    ledger.verify()


def test_budgets_hold_whatever_the_quotas_say(ledger: Ledger) -> None:
    ledger.set_quota("office", nano=nano("100"), questions=100)
    for turn in range(10):
        reserve(ledger, f"office {turn}", "office")
    with pytest.raises(LedgerError):
        ledger.reserve(key("more"), {1: 1}, epoch=1, kind="count", analyst="office")
    assert ledger.quotas()[0].used_questions == 10


def test_a_quota_is_a_whole_number(ledger: Ledger) -> None:
    wrong: list[dict[str, Any]] = [{"nano": -1}, {"nano": 0.5}, {"questions": True}, {"questions": 2**63}]
    for bad in wrong:
        with pytest.raises(LedgerError, match="quota"):
            ledger.set_quota("office", **bad)


def test_an_analyst_has_a_name(ledger: Ledger) -> None:
    wrong: list[Any] = ["", " ", 7, "a\x00", "\ud800", "x" * 70_000]
    for name in wrong:
        with pytest.raises(LedgerError):
            ledger.set_quota(name, questions=1)
        with pytest.raises(LedgerError):
            reserve(ledger, "one", name)
    assert ledger.history() == ()
