"""The order of a release, who may be charged how much, and what a refusal says."""

from __future__ import annotations

import logging
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import epsilons.ledger
from epsilons.errors import BudgetExceeded, EpsilonsError, LedgerError, PlanError
from epsilons.ledger import StalePlanError
from epsilons.ledger.ledger import Ledger
from support.ledgers import Ask, key, nano, person

TENTH = Fraction(1, 10)


def reserve(ledger: Ledger, name: str, share: Fraction = TENTH, **more: Any) -> Any:
    may = ledger.allowance(share)
    return ledger.reserve(key(name), may.nano, epoch=may.epoch, kind="count", **more)


@pytest.fixture(autouse=True)
def three(request: pytest.FixtureRequest) -> None:
    """Three people in the ledger of a test that takes one; the others run once, not once on each back end."""
    if "ledger" in request.fixturenames:
        enroll_three(request.getfixturevalue("ledger"))


def enroll_three(ledger: Ledger) -> None:
    ledger.enroll([person("ann"), person("bob"), person("cy")], [nano("0.1"), nano("1"), None])


# Who may be charged -------------------------------------------------------------------------------------------------


def test_an_allowance_is_a_share_of_each_grant(ledger: Ledger) -> None:
    may = ledger.allowance(TENTH)
    by_grant = {c.granted: may.nano.get(c.id) for c in ledger.cohorts()}
    assert by_grant == {nano("0.1"): nano("0.01"), nano("1"): nano("0.1"), None: None}
    assert [c.granted for c in ledger.cohorts() if c.id in may.public] == [None]


def test_never_more_than_is_left_and_crumbs_count_as_nothing(ledger: Ledger, ask: Ask) -> None:
    ask("most", Fraction(9999, 10_000))
    exact = ledger.allowance(Fraction(1, 100))
    assert sorted(exact.nano.values()) == [nano("0.00001"), nano("0.0001")]
    with pytest.raises(BudgetExceeded):
        ledger.allowance(Fraction(1, 99))


def test_whoever_has_nothing_left_is_silently_left_out(ledger: Ledger) -> None:
    strict = next(c.id for c in ledger.cohorts() if c.granted == nano("0.1"))
    ledger.reserve(key("strict only"), {strict: nano("0.1")}, epoch=ledger.epoch, kind="count")
    assert strict not in ledger.allowance(TENTH).nano
    assert len(ledger.allowance(TENTH).nano) == 1


def test_the_refusal_reads_the_same_whoever_ran_out(ledger: Ledger, ask: Ask) -> None:
    texts = set()
    ask("everything", Fraction(1))
    for newcomer, grant in (("dora", "0.3"), ("eve", "7")):
        with pytest.raises(BudgetExceeded) as refusal:
            ledger.allowance(TENTH)
        texts.add(str(refusal.value))
        ledger.enroll([person(newcomer)], [nano(grant)])
        ask(newcomer, Fraction(1))
    assert len(texts) == 1


def test_public_people_alone_are_no_refusal() -> None:
    book = epsilons.ledger.open()
    book.settle_terms("absent", 1)
    with pytest.raises(BudgetExceeded):
        book.allowance(TENTH)
    book.enroll([person("cy")], [None])
    may = book.allowance(TENTH)
    assert not may.nano
    assert may.public
    held = book.reserve(key("public"), {}, epoch=may.epoch, kind="count")
    book.mark_read(held.number)
    assert book.store(held.number, b"1") == b"1"
    assert book.statement(person("cy")).when_public == (1,)
    book.verify()


def test_a_share_is_an_exact_part(ledger: Ledger) -> None:
    wrong: list[Any] = [0.1, 1, Fraction(0), Fraction(-1, 2), Fraction(11, 10), float("nan")]
    for share in wrong:
        with pytest.raises(PlanError):
            ledger.allowance(share)


# Charging -----------------------------------------------------------------------------------------------------------


def test_a_charge_is_a_positive_whole_number(ledger: Ledger) -> None:
    wrong: list[Any] = [0, -1, -10, 1.0, float("nan"), float("inf"), True, 2**63, 10**16, "1", None]
    for charge in wrong:
        with pytest.raises(LedgerError, match="A charge cannot be used"):
            ledger.reserve(key("bad"), {1: charge}, epoch=1, kind="count")
    assert ledger.history() == ()


def test_a_question_is_known_by_its_digest(ledger: Ledger) -> None:
    wrong: list[Any] = [b"", b"x" * 31, "x" * 32, None]
    for digest in wrong:
        with pytest.raises(LedgerError):
            ledger.reserve(digest, {}, epoch=1, kind="count")
    assert ledger.history() == ()


@pytest.mark.parametrize("look_first", [True, False])
def test_all_cohorts_or_none(ledger: Ledger, monkeypatch: pytest.MonkeyPatch, look_first: bool) -> None:
    if not look_first:
        monkeypatch.setattr("epsilons.ledger.statements.fits", lambda *_: True)
    strict, fair, public = sorted(ledger.cohorts(), key=lambda c: c.granted or 10**20)
    for charges in (
        {fair.id: 1, strict.id: nano("0.1") + 1},
        {fair.id: 1, public.id: 1},
        {fair.id: 1, 99: 1},
    ):
        before = ledger.cohorts()
        with pytest.raises(StalePlanError):
            ledger.reserve(key("too much"), charges, epoch=1, kind="count")
        assert ledger.cohorts() == before
    ledger.reserve(key("just enough"), {strict.id: nano("0.1")}, epoch=1, kind="count")
    ledger.verify()


def test_what_others_reserved_is_no_longer_there(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two clients that both looked before either was charged: the guard of the charge itself counts reservations."""
    may = ledger.allowance(Fraction(1))
    ledger.reserve(key("first"), may.nano, epoch=may.epoch, kind="count")
    monkeypatch.setattr("epsilons.ledger.statements.fits", lambda *_: True)
    with pytest.raises(StalePlanError):
        ledger.reserve(key("second"), may.nano, epoch=may.epoch, kind="count")
    ledger.verify()


@pytest.mark.parametrize("look_first", [True, False])
def test_a_plan_from_before_a_change_of_the_roster_is_refused(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, look_first: bool
) -> None:
    if not look_first:
        monkeypatch.setattr("epsilons.ledger.statements.fits", lambda *_: True)
    may = ledger.allowance(TENTH)
    ledger.withdraw([person("ann")])
    with pytest.raises(StalePlanError):
        ledger.reserve(key("late"), may.nano, epoch=may.epoch, kind="count")


def test_a_repeated_question_resumes_its_own_reservation(ledger: Ledger) -> None:
    first = reserve(ledger, "mean", description='{"statistic": "mean"}')
    again = ledger.reserve(key("mean"), {1: 7}, epoch=99, kind="other")
    assert (again.number, again.charges, again.description) == (first.number, first.charges, first.description)
    assert again.resumed
    assert not first.resumed
    assert len(ledger.history()) == 1


def test_only_stored_bytes_leave_and_the_first_wins(ledger: Ledger) -> None:
    number = reserve(ledger, "mean").number
    ledger.mark_read(number)
    assert ledger.store(number, b"first") == b"first"
    assert ledger.store(number, b"second") == b"first"
    assert ledger.mark_read(number).answer == b"first"
    assert reserve(ledger, "mean").answer == b"first"
    found = ledger.find(key("mean"))
    assert found is not None
    assert found.answer == b"first"


def test_a_charge_is_given_back_before_data_was_read_and_never_after(ledger: Ledger) -> None:
    before = ledger.cohorts()
    first = reserve(ledger, "mean").number
    ledger.refund(first)
    ledger.refund(first)
    assert ledger.cohorts() == before
    with pytest.raises(LedgerError, match="given back"):
        ledger.mark_read(first)
    second = reserve(ledger, "mean")
    assert second.number == first + 1
    ledger.mark_read(second.number)
    with pytest.raises(LedgerError, match="stands"):
        ledger.refund(second.number)
    assert [past.state for past in ledger.history()] == ["refunded", "touched"]
    ledger.verify()


def test_no_answer_without_reading_and_no_reading_without_a_charge(ledger: Ledger) -> None:
    number = reserve(ledger, "mean").number
    with pytest.raises(LedgerError, match="No data was read"):
        ledger.store(number, b"made up")
    for wrong in (number + 1, 0, -1, 1.0, None):
        with pytest.raises(LedgerError):
            ledger.mark_read(wrong)  # type: ignore[arg-type]


# Terms and the mark -------------------------------------------------------------------------------------------------


def test_terms_are_fixed_for_the_life_of_the_ledger(ledger: Ledger) -> None:
    ledger.settle_terms("absent", 1, allow_individual=True)
    for other in (("replace", 1, True), ("absent", 2, True), ("absent", 1, False)):
        with pytest.raises(LedgerError, match="other terms"):
            ledger.settle_terms(*other)
    for bad in (("near", 1, True), ("absent", 0, True), ("absent", 1.5, True), ("absent", 1, 1)):
        with pytest.raises(LedgerError):
            ledger.settle_terms(*bad)  # type: ignore[arg-type]


def test_nothing_is_charged_before_the_terms_are_settled() -> None:
    book = epsilons.ledger.open()
    book.enroll([person("ann")], [nano("1")])
    with pytest.raises(LedgerError, match="not settled"):
        book.reserve(key("early"), {1: 1}, epoch=1, kind="count")


def test_individual_privacy_leaves_a_permanent_mark(ledger: Ledger, ask: Ask) -> None:
    ask("before")
    given_back = reserve(ledger, "never read", individual=True).number
    ledger.refund(given_back)
    assert ledger.remaining().not_dp_since is None
    marked = ask("individual", individual=True)
    ask("after")
    assert ledger.remaining().not_dp_since == marked
    words = f"Not DP since release {marked}."
    assert ledger.remaining().caveat == ledger.statement(person("ann")).caveat == words
    assert [past.caveat for past in ledger.history()] == ["", "", words, words]
    assert words in str(ledger.statement(person("ann")))


def test_individual_privacy_must_be_allowed_at_creation() -> None:
    book = epsilons.ledger.open()
    book.settle_terms("absent", 1)
    book.enroll([person("ann")], [nano("1")])
    with pytest.raises(LedgerError, match="individual privacy"):
        book.reserve(key("individual"), {1: 1}, epoch=1, kind="median", individual=True)


# What the books say -------------------------------------------------------------------------------------------------


def test_what_is_left_in_epsilon_and_in_questions(ledger: Ledger, ask: Ask) -> None:
    for name in "abc":
        ask(name)
    left = ledger.remaining()
    assert left.epsilons == {0.1: 0.07, 1.0: 0.7}
    assert left.questions == {nano("0.1"): 7, nano("1"): 7}
    ledger.enroll([person("dora")], [nano("1")])
    assert ledger.remaining().epsilons == {0.1: 0.07, 1.0: 0.7}


def test_the_history_has_every_release_with_the_grants_of_its_time(ledger: Ledger, ask: Ask) -> None:
    ask("one")
    ledger.set_grants([person("bob")], [nano("0.5")])
    ask("two")
    one, two = ledger.history()
    assert one.epsilons == {0.1: 0.01, 1.0: 0.1}
    assert two.epsilons == {0.1: 0.01, 0.5: 0.05}
    assert (one.number, one.kind, one.state, one.at) == (1, "count", "stored", "2026-11-02T12:00:00.000000+00:00")


def test_a_person_reads_their_statement(ledger: Ledger, ask: Ask) -> None:
    ask("one")
    ask("two")
    told = ledger.statement(person("bob"))
    assert [(use.number, use.kind, use.charge) for use in told.uses] == [(n, "count", nano("0.1")) for n in (1, 2)]
    assert str(told) == "Used in 2 questions (2 × count), at a loss of at most 0.2 of 1 granted (20%). Left: 0.8."
    assert ledger.statement(person("cy")).sentences == (
        "Used in 0 questions, at a loss of at most 0.",
        "Public now: nothing is promised.",
        "Asked while public, with nothing promised: releases 1, 2.",
    )
    with pytest.raises(LedgerError):
        ledger.statement(person("nobody"))


def test_a_statement_names_the_grant_in_force_at_each_use(ledger: Ledger, ask: Ask) -> None:
    ask("one")
    ledger.set_grants([person("bob")], [nano("0.5")])
    ask("two")
    ledger.set_grants([person("bob")], [None])
    ask("three")
    ledger.set_grants([person("bob")], [nano("0.1")])
    told = ledger.statement(person("bob"))
    assert [(use.number, use.charge, use.granted) for use in told.uses] == [
        (1, nano("0.1"), nano("1")),
        (2, nano("0.05"), nano("0.5")),
    ]
    assert told.when_public == (3,)
    assert str(told) == (
        "Used in 2 questions (2 × count), at a loss of at most 0.15 of 0.1 granted (150%). Left: 0, so not used any "
        "more. Asked while public, with nothing promised: release 3."
    )
    ledger.withdraw([person("bob")])
    assert "Withdrawn: not used any more." in ledger.statement(person("bob")).sentences


def test_logs_and_refusals_carry_no_ids_keys_or_words(ledger: Ledger, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="epsilons")
    secret = "height > 190"
    number = reserve(ledger, secret, description=secret).number
    ledger.mark_read(number)
    ledger.store(number, b"secret answer")
    ledger.enroll([person("dora")], [nano("0.123456789")])
    seen = caplog.text
    for refused in (
        lambda: ledger.reserve(key(secret), {1: -5}, epoch=1, kind=secret),
        lambda: ledger.enroll([person("dora")[:5]], [1]),
        lambda: ledger.statement(person("nobody")),
        lambda: ledger.refund(number),
    ):
        with pytest.raises(EpsilonsError) as error:
            refused()
        seen += str(error.value)
    assert "charged to 2 cohorts" in seen
    for private in (secret, "secret", key(secret).hex(), person("dora").hex(), "123456789", str(person("dora"))):
        assert private not in seen


def test_the_cost_of_a_release_does_not_grow_with_the_people(tmp_path: Path) -> None:
    """Counted in statements and in rows written, which no busy machine can change."""
    costs = []
    for people in (4, 20_000):
        book = epsilons.ledger.open(f"sqlite:///{tmp_path}/{people}.ledger")
        book.settle_terms("absent", 1)
        digests = np.arange(people * 2, dtype=np.uint64).view(np.uint8).reshape(-1, 16)
        book.enroll(digests, np.resize(np.array([nano("0.1"), nano("1")]), people))
        said: list[str] = []
        (driver,) = book._database._idle
        driver.set_trace_callback(said.append)
        before = driver.total_changes
        number = reserve(book, "cost").number
        book.mark_read(number)
        book.store(number, b"1")
        driver.set_trace_callback(None)
        assert (driver,) == tuple(book._database._idle)
        # SQLite tells values as well, and what ends each transaction.
        statements = [re.sub(r"'[^']*'|\b\d+\b", "?", one) for one in said if one != "COMMIT"]
        assert not any("people" in s.split("FROM")[-1] and "cohorts" not in s for s in statements)
        costs.append((statements, driver.total_changes - before))
        book.close()
    assert costs[0] == costs[1]
    assert costs[0][1] <= 20
    assert len(costs[0][0]) <= 45


# Borders of the process ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("url", ["", "sqlite://", "sqlite:///", "mysql://x", "people.ledger", 7])
def test_an_unknown_address_is_refused(url: Any) -> None:
    with pytest.raises(LedgerError):
        epsilons.ledger.open(url)


def test_a_file_that_is_no_ledger_is_refused_in_our_words(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no database " * 100)
    with pytest.raises(LedgerError, match="something else than a ledger; nothing in it was changed"):
        epsilons.ledger.open(f"sqlite:///{tmp_path}/notes.txt")
    with pytest.raises(LedgerError, match=r"no ledger at sqlite:.*missing\.ledger"):
        epsilons.ledger.open(f"sqlite:///{tmp_path}/missing.ledger", create=False)
    assert not (tmp_path / "missing.ledger").exists()


def test_a_ledger_in_a_file_is_there_again(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/kept.ledger"
    book = epsilons.ledger.open(url)
    book.settle_terms("replace", 3)
    book.enroll([person("ann")], [nano("1")])
    open_one = book.reserve(key("open"), {1: nano("0.25")}, epoch=1, kind="count")
    name, members = book.id, book.members()
    book.close()
    again = epsilons.ledger.open(url)
    assert again.id == name
    assert again.terms() == epsilons.ledger.Terms("replace", 3, False)
    assert again.remaining().epsilons == {1.0: 0.75}
    assert again.reserve(key("open"), {1: 1}, epoch=1, kind="count").number == open_one.number
    assert np.array_equal(again.members().digests, members.digests)
    assert again.verify().releases == 1
    again.close()


def test_a_seed_is_refused_where_charges_last_and_marks_the_rest(ledger: Ledger, ask: Ask) -> None:
    ledger.enroll([person("ann")], [nano("1")])
    ask("first")
    may = ledger.allowance(Fraction(1, 10))
    held = ledger.reserve(key("second"), may.nano, epoch=may.epoch, kind="count")
    if ledger.lasting:
        for refused in (ledger.check_seeded, lambda: ledger.mark_read(held.number, seeded=True)):
            with pytest.raises(LedgerError, match="takes no entropy of one's own"):
                refused()
        assert ledger.remaining().not_dp_since is None
        ledger.refund(held.number)
        return
    ledger.check_seeded()
    assert ledger.remaining().not_dp_since is None
    ledger.mark_read(held.number, seeded=True)
    assert ledger.remaining().not_dp_since == held.number == 2
    assert [past.not_dp_since for past in ledger.history()] == [None, 2]
    assert ledger.statement(person("ann")).caveat == ledger.remaining().caveat == "Not DP since release 2."
