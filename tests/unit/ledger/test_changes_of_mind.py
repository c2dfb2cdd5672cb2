"""People join, tighten, loosen, withdraw and come back; what was spent stays with them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from epsilons.errors import BudgetExceeded, PreferenceError
from epsilons.ledger.balances import Statement
from epsilons.ledger.ledger import Ledger
from epsilons.ledger.values import Enrolment
from support.ledgers import Ask, key, nano, person

ANN, BOB, CY = person("ann"), person("bob"), person("cy")


def balance(ledger: Ledger, digest: bytes) -> tuple[int | None, int, int]:
    told = ledger.statement(digest)
    return told.granted, told.spent, told.reserved


def releases(told: Statement) -> list[tuple[int, str, int]]:
    return [(use.number, use.kind, use.charge) for use in told.uses]


def test_people_alike_form_one_cohort(ledger: Ledger) -> None:
    people = [person(str(n)) for n in range(1000)]
    done = ledger.enroll(people, [nano("0.1"), nano("1")] * 500)
    assert done == Enrolment(epoch=1, joined=1000)
    assert [(c.granted, c.people) for c in ledger.cohorts()] == [(nano("0.1"), 500), (nano("1"), 500)]
    members = ledger.members()
    assert members.epoch == 1
    assert [row.tobytes() for row in members.digests] == sorted(people)
    assert np.bincount(members.cohorts).tolist() == [0, 500, 500]


def test_somebody_unknown_may_withdraw_and_is_reported(ledger: Ledger) -> None:
    ledger.enroll([ANN], [nano("0.1")])
    assert ledger.withdraw([ANN, BOB]) == Enrolment(epoch=2, withdrawn=2, unknown=1, known=1)
    assert ledger.withdraw([CY]) == Enrolment(epoch=3, withdrawn=1, unknown=1)
    assert ledger.withdraw([CY]) == Enrolment(epoch=3, unchanged=1, known=1)
    assert ledger.enroll([BOB, CY], [nano("1")] * 2) == Enrolment(epoch=3, known=2, kept=2)
    assert ledger.set_grants([CY], [nano("1")]) == Enrolment(epoch=4, loosened=1, known=1)
    ledger.verify()


def test_the_same_list_again_changes_nothing(ledger: Ledger) -> None:
    ledger.enroll([ANN, BOB], [nano("0.1"), None])
    again = ledger.enroll([BOB, ANN], [None, nano("0.1")])
    assert again == Enrolment(epoch=1, unchanged=2, known=2)
    assert ledger.enroll([], []) == Enrolment(epoch=1)


def test_a_source_tightens_at_once_and_loosens_by_an_act_only(ledger: Ledger) -> None:
    ledger.enroll([ANN, BOB, CY], [nano("0.5"), nano("0.5"), None])
    column = ([ANN, BOB, CY], [nano("0.1"), nano("1"), nano("2")])
    assert ledger.enroll(*column) == Enrolment(epoch=2, tightened=2, pending=1, known=3)
    assert [balance(ledger, who)[0] for who in (ANN, BOB, CY)] == [nano("0.1"), nano("0.5"), nano("2")]
    assert ledger.enroll(*column, loosen=True) == Enrolment(epoch=3, loosened=1, unchanged=2, known=3)
    assert balance(ledger, BOB)[0] == nano("1")


def test_the_strictest_of_several_wishes_holds(ledger: Ledger) -> None:
    ledger.enroll([ANN, ANN, ANN], [None, nano("0.2"), nano("3")])
    assert balance(ledger, ANN)[0] == nano("0.2")


def test_what_was_spent_moves_along(ledger: Ledger, ask: Ask) -> None:
    ledger.enroll([ANN, BOB], [nano("1"), nano("1")])
    ask("one", Fraction(1, 2))
    ledger.set_grants([ANN], [nano("2")])
    assert balance(ledger, ANN) == (nano("2"), nano("0.5"), 0)
    assert balance(ledger, BOB) == (nano("1"), nano("0.5"), 0)
    ask("two", Fraction(1, 2))
    assert releases(ledger.statement(ANN)) == [(1, "count", nano("0.5")), (2, "count", nano("1"))]
    ledger.set_grants([ANN], [nano("1")])
    assert ledger.statement(ANN).left == 0
    assert balance(ledger, ANN) == (nano("1"), nano("1.5"), 0)
    with pytest.raises(BudgetExceeded):
        ledger.allowance(Fraction(1, 10))
    ledger.verify()


def test_open_reservations_move_along_and_come_back_exactly(ledger: Ledger) -> None:
    ledger.enroll([ANN, BOB], [nano("1"), nano("1")])
    may = ledger.allowance(Fraction(1, 4))
    first = ledger.reserve(key("one"), may.nano, epoch=1, kind="count").number
    second = ledger.reserve(key("two"), may.nano, epoch=1, kind="mean").number
    ledger.set_grants([ANN], [nano("0.3")])
    newcomer = ledger.enroll([CY], [nano("1")])
    assert newcomer.joined == 1
    assert balance(ledger, ANN) == (nano("0.3"), 0, nano("0.5"))
    ledger.refund(first)
    ledger.mark_read(second)
    assert balance(ledger, ANN) == (nano("0.3"), nano("0.25"), 0)
    assert balance(ledger, BOB) == (nano("1"), nano("0.25"), 0)
    assert balance(ledger, CY) == (nano("1"), 0, 0)
    assert releases(ledger.statement(ANN)) == [(second, "mean", nano("0.25"))]
    assert ledger.history()[1].epsilons == {1.0: 0.25}
    ledger.verify()


def test_people_who_become_alike_share_a_cohort(ledger: Ledger, ask: Ask) -> None:
    ledger.enroll([ANN, BOB], [nano("1"), nano("1")])
    ask("one")
    ledger.set_grants([ANN], [nano("2")])
    ledger.set_grants([BOB], [nano("2")])
    assert [c.people for c in ledger.cohorts()] == [2]


def test_whoever_withdrew_is_not_used_and_comes_back_by_their_own_word(ledger: Ledger, ask: Ask) -> None:
    ledger.enroll([ANN, BOB], [nano("1"), nano("1")])
    ask("one")
    assert ledger.withdraw([ANN]) == Enrolment(epoch=2, withdrawn=1, known=1)
    assert str(ledger.statement(ANN)).endswith("Withdrawn: not used any more.")
    column = ([ANN, BOB], [nano("1"), nano("1")])
    assert ledger.enroll(*column) == Enrolment(epoch=2, kept=1, unchanged=1, known=2)
    assert ledger.enroll(*column, loosen=True) == Enrolment(epoch=2, kept=1, unchanged=1, known=2)
    ask("two")
    assert len(ledger.statement(ANN).uses) == 1
    assert ledger.set_grants([ANN], [nano("1")]).loosened == 1
    assert balance(ledger, ANN) == (nano("1"), nano("0.1"), 0)
    ledger.withdraw([CY])
    assert ledger.enroll([CY], [nano("1")]).kept == 1
    ledger.verify()


def test_public_and_back_keeps_what_was_spent(ledger: Ledger, ask: Ask) -> None:
    ledger.enroll([ANN, BOB], [nano("1"), nano("1")])
    ask("one")
    ledger.set_grants([ANN], [None])
    ask("two")
    told = ledger.statement(ANN)
    assert (told.granted, told.left, told.spent, told.when_public) == (None, None, nano("0.1"), (2,))
    ledger.set_grants([ANN], [nano("1")])
    ask("three")
    assert releases(ledger.statement(ANN)) == [(1, "count", nano("0.1")), (3, "count", nano("0.1"))]
    assert balance(ledger, ANN) == (nano("1"), nano("0.2"), 0)
    ledger.verify()


def test_a_grant_is_a_positive_whole_number_or_public(ledger: Ledger) -> None:
    wrong: list[Any] = [0, -2, 1.5, float("nan"), float("inf"), True, 10**15 + 1, 2**63, 2**70, "1"]
    for grant in wrong:
        with pytest.raises(PreferenceError):
            ledger.enroll([ANN], [grant])
        if not isinstance(grant, str) and not (isinstance(grant, int) and grant >= 2**64):
            with pytest.raises(PreferenceError):
                ledger.enroll([ANN], np.array([grant]))
    assert ledger.cohorts() == ()


def test_a_person_is_known_by_a_digest(ledger: Ledger) -> None:
    wrong: list[Any] = [[b"short"], ["a" * 16], np.zeros((1, 15), np.uint8), np.zeros(16), np.zeros(1, "S8")]
    for people in wrong:
        with pytest.raises(PreferenceError):
            ledger.enroll(people, [1])
    assert ledger.cohorts() == ()


def test_digests_come_as_arrays_or_bytes_and_keep_their_zeros(ledger: Ledger) -> None:
    zeros = [bytes(16), b"a" + bytes(15), bytes(15) + b"a", b"ab" + bytes(14)]
    table = np.frombuffer(b"".join(zeros), np.uint8).reshape(-1, 16)
    assert ledger.enroll(zeros, [1, 2, 3, None]).joined == 4
    assert ledger.enroll(table, [1, 2, 3, None]).unchanged == 4
    assert ledger.enroll(table.view("V16").reshape(-1), np.array([1, 2, 3, -1])).unchanged == 4
    assert [row.tobytes() for row in ledger.members().digests] == sorted(zeros)
    assert ledger.statement(bytes(16)).granted == 1
    with pytest.raises(PreferenceError):
        ledger.enroll(zeros, [1])
    ledger.verify()


def test_many_people_change_their_minds_in_one_go(ledger: Ledger, ask: Ask) -> None:
    count = 20_000
    people = np.arange(2 * count, dtype=np.uint64).view(np.uint8).reshape(-1, 16)
    ledger.enroll(people, np.resize(np.array([nano("0.1"), nano("1"), -1]), count))
    ask("one")
    done = ledger.set_grants(people, np.resize(np.array([nano("0.5"), nano("0.05")]), count))
    assert done.changed == count
    assert sum(c.people for c in ledger.cohorts()) == count
    assert ledger.verify().people == count
