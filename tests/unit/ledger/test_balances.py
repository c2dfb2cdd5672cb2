"""What is left speaks of everyone at a level, and printed tables name no level of a few people."""

from __future__ import annotations

import re

import epsilons.ledger
from epsilons.ledger.balances import Balance, Remaining, Statement, balance, questions_left
from epsilons.ledger.values import Cohort
from support.ledgers import nano
from support.wages import dataset

TENTH, ONE = nano("0.1"), nano("1")


def test_everyone_at_a_level_counts_and_not_only_who_has_the_least() -> None:
    here = (
        Cohort(1, TENTH, 0, 0, 96),
        Cohort(2, TENTH, TENTH, 0, 3),  # moved here with all of it spent
        Cohort(3, TENTH, TENTH // 2, TENTH // 4, 1),
        Cohort(4, ONE, ONE // 2, 0, 7),
        Cohort(5, None, 0, 0, 9),
        Cohort(6, ONE, 0, 0, 5, "withdrawn"),
        Cohort(7, ONE, 0, 0, 0),
    )
    strict = Balance(TENTH, people=100, total=96 * TENTH + TENTH // 4, least=0, nothing_left=3)
    assert balance(here) == (strict, Balance(ONE, people=7, total=7 * ONE // 2, least=ONE // 2, nothing_left=0))
    assert strict.average == 0.09625
    left = Remaining(here, questions_left(here, {TENTH: TENTH // 10, nano("3"): 1}))
    assert left.questions == {TENTH: 9}  # 96 people 10 times, one of them twice, three not at all
    assert left.epsilons == {0.1: 0.0, 1.0: 0.5}
    assert left.levels[0].to_dict() == {
        "epsilon": 0.1,
        "people": 100,
        "left": 0.09625,
        "least": 0.0,
        "nothing_left": 3,
    }


def test_one_person_who_moved_leaves_the_others_what_they_have() -> None:
    people = dataset()
    people.count(share=1, where="age >= 40", mechanism="minimum")  # everyone is charged 0.5
    people.set_level({"person 59": 0.5})
    people.set_level({f"person {place}": 1.0 for place in range(19)})
    levels = {level.name: level for level in people.describe().levels}
    assert (levels["0.5"].people, levels["0.5"].left, levels["0.5"].nothing_left) == (2, 0.0, 2)
    assert (levels["1"].people, levels["1"].left, levels["1"].least) == (39, 0.5, 0.5)
    people.set_level({"person 58": 1.0})
    told = people.describe().to_dict()["levels"]
    assert [level["people"] for level in told] == [2, 40, 18]
    printed = str(people.describe())
    assert re.search(r"\n2 other levels +0\.5…4 +20 ", printed)
    assert "2 levels" not in printed


def test_levels_of_a_few_people_share_a_line_wherever_they_are_printed() -> None:
    ledger = epsilons.ledger.open()
    ledger.settle_terms("absent", 1)
    grants = [ONE] * 40 + [nano("0.2")] * 19 + [nano("0.3")]
    ledger.enroll([place.to_bytes(16, "big") for place in range(60)], grants)
    left = ledger.remaining()
    assert [level.people for level in left.levels] == [19, 1, 40]
    rows = [line.split("  ")[0] for line in str(left).splitlines()]
    assert rows[-4:-2] == ["1", "2 other levels"]


def test_a_person_is_told_of_no_more_left_and_of_no_less_spent_than_there_is() -> None:
    granted, spent = nano("3"), nano("1.234562188")
    told = Statement(granted, "active", spent, 0, granted - spent, (), ())
    assert str(told) == "Used in 0 questions, at a loss of at most 1.23457 of 3 granted (41.2%). Left: 1.76543."
    told = Statement(granted, "active", granted - 1, 0, 1, (), ())
    assert str(told) == "Used in 0 questions, at a loss of at most 3 of 3 granted (100%). Left: 1e-09."
