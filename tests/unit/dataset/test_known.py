"""Past answers are public guesses for the next plan: nearer to what is measured, named, and never the caller's loss."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import epsilons as eps
from epsilons.errors import EpsilonsError
from epsilons.ledger.ledger import Ledger
from epsilons.planner.plan import Plan
from epsilons.testing import seeded
from support.registered import open_people

PEOPLE = 6_000
FEW = "age >= 77"


def table(seed: int = 3) -> pa.Table:
    """Wages of 20 to 40, of few people who are at least 77 of 60 to 80."""
    random = np.random.default_rng(seed)
    old = np.arange(PEOPLE) % 20 == 0
    wage = np.where(old, random.uniform(60, 80, PEOPLE), random.uniform(20, 40, PEOPLE))
    half = random.choice(["north", "south"], PEOPLE)
    return pa.table({"id": np.arange(PEOPLE), "wage": wage, "age": np.where(old, 80, 40), "region": half})


def opened(**options: Any) -> eps.Dataset:
    settings: dict[str, Any] = {"person": "id", "preferences": 8.0, "bounds": {"wage": (0, 100)}, "version": "one"}
    return open_people(table(), **{**settings, **options})


def guesses(plan: Plan) -> dict[str, tuple[float, str]]:
    return {one.name: (one.value, one.source) for one in plan.guesses}


def test_a_count_under_the_condition_brings_a_plan_near_the_measured_error() -> None:
    people = opened()
    asked: dict[str, Any] = {"where": FEW, "share": 0.01, "mechanism": "minimum"}
    before = people.plan("mean", "wage", **asked)
    truth = np.mean([w for w, a in zip(*(table()[name].to_numpy() for name in ("wage", "age")), strict=True) if a > 76])
    answers = [people.mean("wage", fresh=True, entropy=seeded(seed), **asked).value for seed in range(40)]
    measured = math.sqrt(np.mean((np.array(answers) - truth) ** 2))
    count = people.count(where=FEW, share=0.03, entropy=seeded(40))
    after = people.plan("mean", "wage", **asked)
    assert guesses(before)["density"] == (0.5, "nothing is known")
    value, source = guesses(after)["density"]
    assert source == f"from release {count.number}"
    assert value == pytest.approx(count.value / PEOPLE)
    assert before.best.expected < measured / 4, "a condition is taken to let half of the people pass"
    # Forty answers tell a deviation to some 12%; half or double of the fraction would be off by a factor of two.
    assert measured / 1.5 < after["minimum"].expected < measured * 1.5
    assert source in str(after)
    assert after.to_dict()["guesses"][0]["source"] == source


def test_the_callers_own_guess_wins() -> None:
    people = opened()
    people.count(where=FEW, share=0.01)
    assert guesses(people.plan("mean", "wage", where=FEW, density=0.2))["density"] == (0.2, "given")


def test_location_and_spread_come_from_answers_about_the_column() -> None:
    people = opened(complete=["wage"])
    mean = people.mean("wage", share=0.05, entropy=seeded(1))
    variance = people.variance("wage", share=0.1, entropy=seeded(2))
    found = guesses(people.plan("median", "wage"))
    assert found["location"] == (mean.value, f"from release {mean.number}")
    assert found["spread"] == (pytest.approx(math.sqrt(variance.value)), f"from release {variance.number}")
    # Under a condition, those under the same one come first.
    old = people.median("wage", where=FEW, share=0.1, entropy=seeded(3))
    assert guesses(people.plan("variance", "wage", where=FEW))["location"][1] == f"from release {old.number}"
    assert guesses(people.plan("variance", "wage", where="age >= 30"))["location"][1] == f"from release {mean.number}"
    plan = people.plan("variance", "wage", where=FEW)
    assert guesses(plan)["spread"][1] == f"from release {variance.number}"
    guess = f"values spread by about {math.sqrt(variance.value):.4g} (from release {variance.number})"
    assert guess in plan.assumption
    assert guess in plan.ask().assumption


def test_groups_are_guessed_by_their_average() -> None:
    people = opened()
    keys = {"region": ["north", "south"]}
    counted = people.count(by=keys, share=0.01)
    found = guesses(people.plan("mean", "wage", by=keys))["density"]
    assert found == (pytest.approx(sum(counted.value.values()) / 2 / PEOPLE), f"from release {counted.number}")
    whole = people.count(where=FEW, share=0.01, entropy=seeded(1))
    newer = people.count(where=FEW, share=0.01, fresh=True, entropy=seeded(2))
    found = guesses(people.plan("mean", "wage", by=keys, where=FEW))["density"]
    # As exact as the other but for what rounding would hide, so the newest serves.
    assert whole.error < newer.error == pytest.approx(whole.error, rel=1e-6)
    assert found == (pytest.approx(newer.value / 2 / PEOPLE), f"from release {newer.number}")


def test_other_versions_conditions_and_columns_say_nothing() -> None:
    ledger = eps.ledger.open()
    people = opened(ledger=ledger)
    people.count(where=FEW, share=0.01)
    people.mean("age", bounds=(0, 120), share=0.01)
    assert guesses(people.plan("mean", "wage", where="age >= 78"))["density"] == (0.5, "nothing is known")
    assert guesses(people.plan("variance", "wage", where=FEW))["location"] == (50.0, "nothing is known")
    later = opened(ledger=ledger, version="two")
    assert guesses(later.plan("mean", "wage", where=FEW))["density"] == (0.5, "nothing is known")


def test_an_answer_that_says_little_is_left_aside() -> None:
    people = opened(preferences=0.05)
    count = people.count(where="age >= 200", share=0.02, entropy=seeded(1))  # nobody: nothing but noise
    assert 2 * count.error > count.value
    assert guesses(people.plan("mean", "wage", where="age >= 200"))["density"] == (0.5, "nothing is known")


def test_a_plan_that_was_informed_is_asked_as_shown_and_the_question_stays_the_same() -> None:
    people = opened()
    people.count(where=FEW, share=0.01)
    plan = people.plan("mean", "wage", where=FEW, share=0.02)
    answer = plan.ask()
    assert answer.mechanism == plan.best.mechanism
    assert answer.charges == plan.best.charges
    # Without the plan it is the same question, with the same answer and no charge.
    assert people.mean("wage", where=FEW, share=0.02) == answer
    assert len(people.history()) == 2


def test_a_plan_that_leaves_past_answers_aside_is_what_the_question_does_by_itself() -> None:
    people = opened(preferences={n: [0.05, 1.0, 8.0][n % 3] for n in range(PEOPLE)})
    asked: dict[str, Any] = {"where": FEW, "share": 0.02}
    people.count(where=FEW, share=0.5, entropy=seeded(1))
    informed, plan = people.plan("mean", "wage", **asked), people.plan("mean", "wage", **asked, past=False)
    assert (len(informed.known), plan.known) == (1, ())
    assert guesses(plan)["density"] == (0.5, "nothing is known")
    assert plan.best.expected != informed.best.expected
    answer = people.mean("wage", **asked)
    assert (answer.mechanism, answer.charges) == (plan.best.mechanism, plan.best.charges)
    with pytest.raises(EpsilonsError, match="past"):
        people.plan("mean", "wage", **asked, past="no")  # type: ignore[arg-type]


def test_a_question_that_was_cut_off_goes_on_by_the_guesses_it_was_charged_for(monkeypatch: pytest.MonkeyPatch) -> None:
    people = opened(preferences={n: [0.5, 1.0, 8.0][n % 3] for n in range(PEOPLE)})
    people.count(where=FEW, share=0.05, entropy=seeded(1))
    plan = people.plan("mean", "wage", where=FEW, share=0.05)
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "mark_read", lambda *given: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            plan.ask()
    assert json.loads(people.ledger.history()[-1].description)["plan"]["known"][0]["release"] == 1
    people.count(where=FEW, share=0.2)  # now more is known, but not to what was charged
    answer = people.mean("wage", where=FEW, share=0.05)
    assert (answer.number, answer.charges) == (2, plan.best.charges)


def test_a_batch_is_split_alike_whatever_was_answered() -> None:
    people = opened()

    def ask() -> list[Any]:
        with people.batch(share=0.02) as batch:
            asked = [batch.mean("wage", where=FEW), batch.count(where=FEW)]
        return [one.release for one in asked]

    assert ask() == ask()
    assert len(people.history()) == 2
