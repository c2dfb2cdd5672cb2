"""What a question may use of everybody's budget, who is left out, and which questions are the same."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import epsilons as eps
from epsilons.errors import BudgetExceeded, PlanError
from epsilons.ledger.values import Allowance, Cohort, Reservation
from epsilons.mechanisms.base import create
from epsilons.preferences import LADDER, Levels, roster_of
from epsilons.release.answer import make_release
from epsilons.release.door import Sketch, Spendable
from epsilons.statistics.additive import Additive, Average
from epsilons.statistics.base import Question, Scope
from epsilons.statistics.count import Count
from epsilons.statistics.total import Mean, Sum
from epsilons.summaries.arrays import ArrayPeople
from epsilons.testing import seeded
from support.small_worlds import at_max
from support.wages import dataset, wages

ALL = {0.5: 0.5, 1.0: 1.0, 4.0: 4.0}


def left(people: eps.Dataset) -> dict[float, float]:
    return people.remaining().epsilons


# --- share ----------------------------------------------------------------------------------------------------------


def test_a_share_is_at_most_that_part_of_every_grant() -> None:
    people = dataset()
    release = people.count(share=0.25, mechanism="stretching")
    assert release.charges == {0.5: 0.125, 1.0: 0.25, 4.0: 1.0}
    assert left(people) == {0.5: 0.375, 1.0: 0.75, 4.0: 3.0}
    assert release.guarantee.epsilons == release.charges
    again = people.count(share=0.25, mechanism="minimum")
    assert again.charges == {0.5: 0.125, 1.0: 0.125, 4.0: 0.125}


def test_a_whole_request_takes_a_thousandth_at_least() -> None:
    """So that what is learned beside an answer, as by how long it took, cannot be sampled without end."""
    people, wage = dataset(), {"bounds": (0, 100)}
    model: dict[str, Any] = {"features": ["age"], "bounds": {"wage": (0, 100), "age": (15, 90)}}
    whole: dict[str, Any] = {
        "question": lambda share: people.mean("wage", **wage, share=share),
        "plan": lambda share: people.plan("mean", "wage", **wage, share=share).ask(),
        "model": lambda share: people.linear_regression("wage", **model, share=share),
        "algorithm": lambda share: people.apply(lambda x, epsilon: 1.0, columns=["age"], name="one", share=share),
        "batch": lambda share: people.batch(share=share),
        "SQL": lambda share: people.sql("SELECT COUNT(*) FROM people", share=share),
    }
    for ask in whole.values():
        for small in (0.000999, Fraction(1, 1001), 1e-9):
            with pytest.raises(PlanError, match=r"A share is at least 0\.001 and at most 1"):
                ask(small)
    assert people.history() == ()
    for ask in whole.values():
        ask(0.001)
    with people.batch(share=0.001) as ask:
        parts = [ask.count(where=f"age > {age}") for age in (30, 40, 50)]
    assert sum(part.charges[4.0] for part in parts) == pytest.approx(0.004)
    people.close()


def test_an_error_that_less_would_reach_takes_a_thousandth() -> None:
    people = dataset()
    asked = people.count(error=1e9, mechanism="stretching")
    assert (
        asked.charges == people.count(share=0.001, mechanism="stretching").charges == {0.5: 5e-4, 1.0: 1e-3, 4.0: 4e-3}
    )
    assert asked.error < 1e9
    assert people.plan("count", error=1e9).to_dict()["share"] == 0.001


def test_everybody_pays_whether_or_not_they_match() -> None:
    people = dataset()
    release = people.count(where="age > 200", mechanism="stretching")
    assert release.charges == {0.5: 0.05, 1.0: 0.1, 4.0: 0.4}


def test_what_is_left_is_used_up_and_less_than_a_hundredth_is_not() -> None:
    """Tightened from 1 to .505 after .5 was spent: .005 are left of .0505 asked, which is used; .0005 are not."""
    for tightened, used in ((0.505, True), (0.5001, False)):
        people = dataset(wages(epsilon=np.full(60, 1.0)))
        people.count(share=0.5, mechanism="minimum")
        people.set_level({"person 0": tightened})
        release = people.count(share=0.1, mechanism="threshold", threshold="max")
        assert release.charges[1.0] == 0.1
        assert release.charges[tightened] == 0.0  # a threshold leaves out whoever has less
        release = people.count(share=0.1, mechanism="stretching")
        assert (release.charges[tightened] > 0) is used
        assert left(people)[tightened] == pytest.approx(0 if used else 0.0001)


def test_budget_is_exceeded_only_when_nobody_finite_has_anything_left() -> None:
    people = dataset(wages(epsilon=[math.inf] * 20 + [0.5] * 20 + [1.0] * 20))
    people.count(share=1.0, mechanism="minimum")
    assert left(people) == {0.5: 0.0, 1.0: 0.5}
    release = people.mean("wage", bounds=(0, 100), share=1.0, mechanism="minimum")
    assert release.charges == {0.5: 0.0, 1.0: 0.5, math.inf: 0.0}
    assert left(people) == {0.5: 0.0, 1.0: 0.0}
    for ask in (people.count, lambda: people.plan("count")):
        with pytest.raises(BudgetExceeded):
            ask()
    assert len(people.history()) == 2


def test_everyone_public_is_answered_exactly_and_marked_so() -> None:
    table = wages(epsilon=np.full(60, math.inf))
    people = dataset(table)
    release = people.count(where="age >= 40")
    assert release.value == sum(age.as_py() >= 40 for age in table["age"])
    assert release.mechanism == "exact"
    by_region = people.median("wage", bounds=(0, 100), step=1, by={"region": ["north", "south", "west"]})
    for place in ("north", "south"):
        values = sorted(
            wage
            for wage, region in zip(table["wage"].to_pylist(), table["region"].to_pylist(), strict=True)
            if region == place
        )
        assert by_region.value[place] == math.floor(values[len(values) // 2] + 0.5)
    assert by_region.value["west"] == 50  # nobody is there: the centre
    assert left(people) == {}
    assert len(people.history()) == 2
    with pytest.raises(PlanError, match="nothing to plan"):
        people.plan("count")


# --- who is left out ------------------------------------------------------------------------------------------------


def exhausted(seed: int = 1, **columns: Any) -> eps.Dataset:
    """Sixty people, of whom those at 0.5 have nothing left."""
    people = dataset(wages(**columns))
    people.count(share=1.0, mechanism="minimum", entropy=seeded(seed))
    return people


def test_counts_and_sums_still_speak_of_the_whole_roster() -> None:
    people = exhausted(wage=np.full(60, 60.0))
    count = people.count(where="wage = 60", share=0.4, mechanism="weighted", density=1.0)
    assert count.value == pytest.approx(60, abs=6 * count.error)
    assert count.value > 45  # forty are looked at
    total = people.sum("wage", bounds=(0, 100), share=0.4, mechanism="weighted", missing="center")
    assert abs(total.value - 3600) < 6 * total.error
    low, high = count.interval(0.999)
    assert low <= 60 <= high
    assert count.charges[0.5] == 0.0


def test_a_relation_is_not_told_of_people_who_were_not_asked() -> None:
    """Those at 0.5 are a third of the roster; the others' answers say nothing of them."""
    with exhausted(wage=np.full(60, 60.0)) as people:
        found = people.relation("wage", bounds=(0, 100), share=0.4)
        assert found.distance >= 100 * 2 / 3
        assert "20 people have nothing left to spend, and any mean." in found.sentence
    with dataset(wages(wage=np.full(60, 60.0))) as whole:
        assert "nothing left" not in whole.relation("wage", bounds=(0, 100), share=0.4).sentence


class Used(ArrayPeople):
    """The people who have something left, among others who have not."""

    @property
    def levels(self) -> Levels:
        return replace(self.roster.levels, left_out=LEFT_OUT)


LEFT_OUT = 200


@pytest.mark.statistical
@pytest.mark.usefixtures("remembered_widths")
@pytest.mark.parametrize("name", ["weighted", "minimum", "sample", "robust", "mixed"])
@pytest.mark.parametrize("statistic", [Count(), Sum((0.0, 2.0)), Mean((0.0, 2.0))], ids=lambda s: s.name)
def test_errors_count_those_who_are_left_out(name: str, statistic: Additive) -> None:
    """Half of the people have nothing left: stated and measured errors agree, and the interval holds."""
    random, entropy, runs = np.random.default_rng(8), seeded(8), 250
    roster, mechanism = roster_of([1.0] * 100 + [4.0] * 100), at_max(name, statistic)
    question = Question(statistic, density=0.5, spread=0.5, location=0.5)
    squares, stated, hits = [], [], 0
    for _ in range(runs):
        values = random.integers(0, 2, 200 + LEFT_OUT).astype(float)
        release = make_release(mechanism, question, Used(values[:200], roster), entropy, "")
        truth = values.mean() if isinstance(statistic, Average) else values.sum()
        squares.append((release.value - truth) ** 2)
        stated.append(release.error**2)
        low, high = release.interval(0.95)
        hits += low - 1e-9 <= truth <= high + 1e-9
    assert math.sqrt(np.mean(squares)) == pytest.approx(math.sqrt(np.mean(stated)), rel=0.25)
    assert hits >= 0.9 * runs


@pytest.mark.statistical
@pytest.mark.parametrize("ones", [10, 190])
@pytest.mark.parametrize("statistic", [Count(), Sum((0.0, 1.0)), Mean((0.0, 1.0))], ids=lambda s: s.name)
def test_what_is_drawn_to_the_centre_is_known_from_the_answer(statistic: Additive, ones: int) -> None:
    """Little is granted, so `robust` puts the centre for most of it: how far that is off shows in what was released.

    An error at the number as it stands, drawn to the centre, is 15 to 40% too small; a count's, two standard errors
    nearer to a half, even takes the centre for the truth.
    """
    values, entropy = np.repeat([1.0, 0.0], [ones, 200 - ones]), seeded(9)
    people = ArrayPeople(values, roster_of([0.05, 0.01] * 100))
    mechanism, question = at_max("robust", statistic), Question(statistic)
    truth = values.mean() if isinstance(statistic, Average) else values.sum()
    releases = [make_release(mechanism, question, people, entropy, "") for _ in range(300)]
    measured = math.sqrt(np.mean([(release.value - truth) ** 2 for release in releases]))
    assert np.median([release.error for release in releases]) == pytest.approx(measured, rel=0.13)


def test_withdrawn_people_are_not_asked_about() -> None:
    people = dataset()
    people.withdraw([f"person {place}" for place in range(20)])
    release = people.count(share=1.0, mechanism="minimum")
    assert set(release.charges) == {1.0, 4.0}
    assert people.describe().people == 40
    assert release.value == pytest.approx(40, abs=25)


# --- error ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statistic", "column", "error", "more"),
    [
        ("count", None, 6.0, {"where": "age > 40"}),
        ("mean", "wage", 5.0, {"bounds": (0, 100), "missing": "center"}),
        ("mean", "wage", 15.0, {"bounds": (0, 100), "by": {"region": ["north", "south"]}, "mechanism": "minimum"}),
        ("median", "wage", 12.0, {"bounds": (0, 100), "spread": 10}),
    ],
)
def test_an_error_takes_the_smallest_share_that_reaches_it(
    statistic: str, column: str | None, error: float, more: dict[str, Any]
) -> None:
    people = dataset()
    plan = people.plan(statistic, column, error=error, **more)
    assert plan[plan.mechanism].error == pytest.approx(error, rel=0.02)
    assert plan[plan.mechanism].error <= error
    share = plan.of_grants
    assert 0 < share < 1
    smaller = people.plan(statistic, column, share=float(share * Fraction(95, 100)), **more)
    rows = [
        row.error
        for row in smaller.rows
        if row.error is not None and row.mechanism == more.get("mechanism", row.mechanism)
    ]
    assert min(rows) > error
    # Asked last: a plan would take its guesses from the answer.
    given = [] if column is None else [column]
    release = getattr(people, statistic)(*given, error=error, **more)
    assert (release.mechanism, release.charges) == (plan[plan.mechanism].mechanism, plan[plan.mechanism].charges)


def test_an_error_out_of_reach_is_refused_with_what_is_in_reach() -> None:
    people = dataset()
    with pytest.raises(PlanError, match="out of reach") as caught:
        people.mean("wage", bounds=(0, 100), error=0.001)
    assert "All that people may be charged gives" in str(caught.value)
    with pytest.raises(PlanError, match="No error can be predicted"):
        people.max("wage", bounds=(0, 100), error=1)
    assert left(people) == ALL


def test_a_plan_shows_charges_by_grant_and_costs_nothing() -> None:
    people = dataset()
    plan = people.plan("mean", "wage", bounds=(0, 100), share=0.2)
    assert all(set(row.charges) == {0.5, 1.0, 4.0} for row in plan.rows)
    assert all(row.charges[granted] <= 0.2 * granted + 1e-9 for row in plan.rows for granted in row.charges)
    best = people.mean("wage", bounds=(0, 100), share=0.2)
    assert best.mechanism == plan.best.mechanism
    assert best.charges == plan.best.charges
    assert plan.best.error / 2 < best.error < 2 * plan.best.error  # by the rows that turned out to count


# --- the same question ----------------------------------------------------------------------------------------------

BASE: dict[str, Any] = {"bounds": (0, 100), "where": "age >= 40", "share": 0.01}
OTHER: list[dict[str, Any]] = [
    {"bounds": (0, 101)}, {"where": "age > 40"}, {"where": None}, {"share": 0.02}, {"by": {"region": ["north"]}},
    {"by": {"region": ["south"]}}, {"by": {"region": ["north", "south"]}}, {"mechanism": "minimum"},
    {"mechanism": "threshold", "threshold": "mean"}, {"mechanism": "threshold", "threshold": "max"},
    {"mechanism": "threshold", "rescale": True}, {"assume": "nothing"}, {"assume": "unrelated"}, {"spread": 10},
    {"density": 0.3}, {"location": 40}, {"missing": "exclude", "where": None, "by": {"union": ["yes"]}},
    {"fresh": True}, {"entropy": seeded(1)}, {"share": None, "error": 60},
]  # fmt: skip
SAME: list[dict[str, Any]] = [
    {"bounds": [0.0, 100.0]}, {"bounds": np.array([0, 100])}, {"where": "  AGE>=40 "}, {"where": '"age" >= 40'},
    {"where": "(age >= 40)"}, {"where": "NOT age < 40"}, {"share": 0.0100}, {"share": Fraction(1, 100)},
    {"mechanism": "auto"}, {"assume": 0.3}, {"missing": None}, {"by": None},
]  # fmt: skip


def test_every_argument_that_matters_makes_another_question() -> None:
    people = dataset()
    people.mean("wage", **BASE)
    for place, other in enumerate(OTHER):
        people.mean("wage", **{**BASE, **other})
        # An error under a condition buys rough counts besides.
        assert sum(past.kind == "mean" for past in people.history()) == place + 2, other
    people.mean("age", **BASE)
    people.sum("wage", **BASE)
    assert sum(past.kind != "count" for past in people.history()) == len(OTHER) + 3


@pytest.mark.parametrize("spelling", SAME, ids=str)
def test_another_spelling_is_the_same_question(spelling: dict[str, Any]) -> None:
    people = dataset()
    first = people.mean("wage", **BASE)
    again = people.mean("WAGE" if spelling.get("assume") else "wage", **{**BASE, **spelling})
    assert (len(people.history()), again == first) == (1, True)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"spread": 10}, {"spread": 10.0}),
        ({"spread": 10}, {"spread": np.float32(10)}),
        ({"assume": "unrelated"}, {"assume": 0}),
        ({"assume": "nothing"}, {"assume": math.inf}),
        ({"location": 50}, {"location": np.int64(50)}),
        ({"mechanism": "threshold", "threshold": 0.01}, {"mechanism": "threshold", "threshold": np.float64(0.01)}),
        ({"share": None, "error": 40}, {"share": None, "error": np.float64(40)}),
    ],
)
def test_one_number_in_two_types_is_the_same_question(one: dict[str, Any], other: dict[str, Any]) -> None:
    people = dataset()
    assert people.mean("wage", **{**BASE, **one}) == people.mean("wage", **{**BASE, **other})
    assert sum(past.kind == "mean" for past in people.history()) == 1


def test_the_version_belongs_to_a_question_but_not_the_roster() -> None:
    people = dataset(version="1")
    first = people.count(share=0.01)
    people.set_level({"person 1": 0.3})
    assert people.count(share=0.01) == first
    assert len(people.history()) == 1
    people.count(share=0.01, fresh=True)
    assert len(people.history()) == 2
    ledger = eps.ledger.open()
    for version, asked in (("1", 1), ("2", 2)):
        dataset(version=version, ledger=ledger, name="people").count(share=0.01)
        assert len(ledger.history()) == asked


# --- sketches -------------------------------------------------------------------------------------------------------


def cohort(number: int, granted: int | None, people: int = 10, state: str = "active") -> Cohort:
    return Cohort(number, granted, 0, 0, people, state)


def test_cohorts_with_the_same_allowance_are_one_level() -> None:
    cohorts = [
        cohort(1, 10),
        cohort(2, 20),
        cohort(3, 30),
        cohort(4, None),
        cohort(5, 40),
        cohort(6, 0, 5, "withdrawn"),
    ]
    allowance = Allowance(1, Fraction(1), {1: 10, 2: 20, 3: 10}, (4,))
    spendable = Spendable.of(allowance, cohorts, {1e-8: "strict"})
    assert spendable.levels.grants == (10, 20, None)
    assert spendable.levels.sizes == (20, 10, 10)
    assert spendable.levels.left_out == 10  # cohort 5; whoever withdrew is not asked about
    assert spendable.levels.names[1e-8] == "strict or 3e-08"
    assert spendable.places([4, 5, 1, 6]).tolist() == [2, -1, 0, -1]
    assert spendable.paid([3, 0, None]) == {1: 3, 3: 3}
    assert dict(spendable.account([3, 0, None]).losses) == {10: 3, 20: 0, 30: 3, 40: 0, None: None}


def test_more_than_256_allowances_go_down_to_the_ladder() -> None:
    cohorts = [cohort(place, 10**8 + place * 10**6) for place in range(1, 301)]
    allowance = Allowance(1, Fraction(1), {c.id: c.granted or 0 for c in cohorts}, ())
    spendable = Spendable.of(allowance, cohorts, {})
    assert len(spendable.levels.grants) <= 256
    assert set(spendable.levels.grants) <= set(LADDER)
    assert all((spendable.levels.grants[spendable.place[c.id]] or 0) <= (c.granted or 0) for c in cohorts)
    assert 0 < spendable.levels.rounding_loss < 0.04
    assert sum(spendable.levels.sizes) == 3000


def test_a_sketch_survives_the_ledger() -> None:
    cohorts = [cohort(1, 10**8), cohort(2, 10**9), cohort(3, None), cohort(4, 10**9, 7)]
    spendable = Spendable.of(Allowance(1, Fraction(1), {1: 10**8, 2: 10**8}, (3,)), cohorts, {})
    question = Question(Count(Scope()))
    threshold = create("threshold", question.statistic, threshold="mean", rescale=True)
    for mechanism in (threshold, create("weighted", question.statistic), None):
        sketch = Sketch(mechanism, "because", question, spendable)
        # Later everybody has moved; the grants of cohorts stay, and so does the sketch.
        places = {c: (level, spendable.granted[c]) for c, level in spendable.place.items()}
        held = Reservation(1, "reserved", 1, {}, sketch.to_text("count"), places=places)
        back = Sketch.of(held, question, {})
        assert back == sketch
        assert back.charges == sketch.charges
        assert back.spendable.levels.left_out == 7
