"""A table's plan can be asked: a row gives exactly what it showed, or nothing where that has changed."""

from __future__ import annotations

import math
import pickle
from typing import Any

import pytest

import epsilons as eps
from epsilons.arguments.checks import ASSUMPTIONS
from epsilons.arguments.options import TABLES
from epsilons.statistics.catalogue import CATALOGUE
from support.wages import COUNT, dataset

BOUNDS = {"wage": (0, 100), "age": (0, 100)}
ROWS: list[dict[str, Any]] = [{}, {"where": "age >= 40"}, {"by": {"region": ["north", "south"]}}, {"missing": "center"}]


def arguments_of(name: str) -> tuple[str | None, dict[str, Any]]:
    """(a column, the public facts that a statistic needs on tables)."""
    entry = CATALOGUE[name]
    if entry.pair:
        return "wage", {"other": "age", "bounds": BOUNDS}
    if entry.model:
        classes = {"classes": ("yes", "no")} if entry.text else {}
        return "union" if entry.text else "wage", {"features": ["age"], "bounds": BOUNDS, **classes}
    if "among" in entry.own(TABLES):
        return "region", {"among": ["north", "south", "west"], **({"k": 2} if name == "top" else {})}
    known: dict[str, Any] = {"bounds": (0, 100), "q": 0.7, "edges": [0, 20, 100]}
    return "wage", {key: value for key, value in known.items() if key in entry.own(TABLES)}


#: Models have no groups, and neither they nor counts have a centre.
SERVED = [
    (entry.name, rows)
    for entry in CATALOGUE.values()
    for rows in ROWS
    if not (entry.model and "by" in rows)
    and not ((entry.model or entry.missing == "not counted") and "missing" in rows)
]


#: What is assumed changes the error that is shown, which knows groups but neither conditions nor the centre. The quick
#: run asks every statistic about half of the kinds of rows, these and the assumptions by turns; the long one (soak)
#: everything.
ASKED = [(*case, assume) for case in SERVED for assume in ASSUMPTIONS if assume == "unrelated" or case[1] in ROWS[::2]]
TURNS = [
    (name, rows, list(ASSUMPTIONS)[(place + ROWS.index(rows) // 2) % 2] if rows in ROWS[::2] else "unrelated")
    for place, known in enumerate(CATALOGUE)
    for name, rows in SERVED
    if name == known and (place + ROWS.index(rows)) % 2 == 0
]


@pytest.mark.parametrize(
    ("name", "rows", "assume"),
    [pytest.param(*case, marks=() if case in TURNS else pytest.mark.soak) for case in ASKED],
    ids=str,
)
def test_a_row_gives_what_it_showed(name: str, rows: dict[str, Any], assume: str) -> None:
    column, own = arguments_of(name)
    with dataset() as people:
        plan = people.plan(name, column, share=0.02, assume=assume, **own, **rows)
        for row in plan.rows:
            before = people.remaining().epsilons
            release = plan[row.mechanism].ask()
            assert release.mechanism == row.mechanism
            assert release.charges == row.charges
            after = people.remaining().epsilons
            for granted, spent in row.charges.items():
                assert before[granted] - after[granted] == pytest.approx(spent, abs=2e-9)
            if assume == "nothing" and plan.question.statistic.family == "linear":
                # Whatever was released: the worst there could be.
                table = isinstance(release.value, dict)
                assert release.error == (dict.fromkeys(release.value, row.expected) if table else row.expected)
            assert_from_what_was_released(release, row.expected)
            named = getattr(people, name)(column, share=0.02, assume=assume, mechanism=row.mechanism, **own, **rows)
            assert named == release
        assert len(people.history()) == len(plan.rows)
        assert plan.ask() == getattr(people, name)(column, share=0.02, assume=assume, **own, **rows)


def assert_from_what_was_released(release: eps.Release, expected: float) -> None:
    """One error for each number, at most as large as bounds and people allow; None where nothing honest can be said."""
    if isinstance(release.value, dict) and "regression" not in release.statistic:
        assert list(release.error) == list(release.value)
    found = list(release.error.values()) if isinstance(release.error, dict) else [release.error]
    if math.isinf(expected):
        assert set(found) == {None}
    name = release.statistic.split()[0]
    most = {"variance": 2500, "sum": 100 * COUNT, "count": COUNT, "histogram": COUNT}.get(name, 100)
    assert all(error is None or 0 < error <= most for error in found)


def test_a_plan_that_no_longer_holds_charges_nobody() -> None:
    with dataset() as people:
        plan = people.plan("count", share=0.6)
        stored = plan["minimum"].ask()
        before = people.remaining().epsilons
        with pytest.raises(eps.PlanError) as caught:
            plan["weighted"].ask()
        assert caught.value.what == "What people have left has changed since this plan was made."
        assert people.remaining().epsilons == before
        assert len(people.history()) == 1
        # What was asked before comes back all the same.
        assert plan["minimum"].ask() == stored
        assert people.plan("count", share=0.6)["weighted"].ask().mechanism == "weighted"


def test_a_plan_for_an_error_is_asked_at_the_share_it_found() -> None:
    with dataset() as people:
        plan = people.plan("mean", "wage", bounds=(0, 100), error=5, assume="unrelated")
        release = plan.ask()
        assert release.charges == plan.best.charges
        assert plan.best.error == pytest.approx(5, rel=1e-3)
        assert 2.5 < release.error < 10  # by the rows that turned out to count
        assert plan.best.share == plan.of_grants


def test_a_plan_of_a_mechanism_asks_for_it() -> None:
    with dataset() as people:
        plan = people.plan("count", mechanism="minimum")
        assert len(plan.rows) > 3
        assert plan.ask().mechanism == "minimum"
        with pytest.raises(eps.PlanError, match="'exponential' cannot serve a mean"):
            people.plan("mean", "wage", bounds=(0, 100), mechanism="exponential")
        with pytest.raises(eps.PlanError, match="This plan cannot be asked"):
            plan.what_if({}).ask()
        assert len(people.history()) == 1


def test_models_are_planned_and_noted_down() -> None:
    with dataset() as people:
        plan = people.plan("linear_regression", "wage", features=["age"], bounds=BOUNDS, share=0.1)
        assert {"weighted", "sample"} <= {row.mechanism for row in plan.rows}
        with people.batch(0.2) as ask:
            slopes = ask.linear_regression("wage", ["age"], bounds=BOUNDS)
            odds = ask.logistic_regression("union", ["age"], bounds=BOUNDS, classes=("no", "yes"))
            shown = ask.plan()
        assert [row.question for row in shown.rows] == [
            "linear_regression wage on age",
            "logistic_regression union on age",
        ]
        assert list(slopes.value) == list(odds.value) == ["intercept", "age"]
        with pytest.raises(eps.PlanError, match="no groups of models"):
            people.batch(0.2).linear_regression("wage", ["age"], bounds=BOUNDS, by={"region": ["north"]})


def test_a_wrong_option_charges_nobody() -> None:
    """A seed for entropy once spent half of everybody's budget and failed in the middle of the draw."""
    with dataset() as people:
        with pytest.raises(eps.PlanError, match="entropy=7 is not a source of random bits"):
            people.mean("wage", bounds=(0, 100), share=0.5, entropy=7)
        with pytest.raises(eps.PlanError, match="entropy=7 is not a source of random bits"):
            people.apply(lambda data, epsilon: 1, columns=["wage"], entropy=7)
        with pytest.raises(eps.PlanError, match="rescale='no' is not allowed"):
            people.sum("wage", bounds=(0, 100), mechanism="sample", rescale="no")
        assert people.history() == ()


def test_every_row_of_a_plan_by_error_can_be_asked() -> None:
    with dataset() as people:
        plan = people.plan("mean", "wage", bounds=(0, 100), error=40)
        assert len(plan.rows) > 3
        for row in plan.rows:
            release = plan[row.mechanism].ask()
            assert (release.mechanism, release.charges) == (row.mechanism, row.charges)


def test_a_plan_of_a_table_takes_no_values() -> None:
    with dataset() as people, pytest.raises(eps.PlanError, match="is asked as it is"):
        people.plan("count").ask([1, 2, 3])


def test_a_plan_elsewhere_can_be_looked_at_but_not_asked() -> None:
    with dataset() as people:
        plan = people.plan("count")
        copied = pickle.loads(pickle.dumps(plan))
        assert copied.rows == plan.rows
        with pytest.raises(eps.PlanError, match="cannot be asked"):
            copied.ask()


def test_the_best_threshold_spelled_out_is_the_same_question() -> None:
    with dataset() as people:
        first = people.mean("wage", bounds=(0, 100), mechanism="sample", threshold="best")
        assert people.mean("wage", bounds=(0, 100), mechanism="sample") == first
        assert len(people.history()) == 1


def test_a_model_has_no_centre_for_what_is_missing() -> None:
    with dataset() as people, pytest.raises(eps.PlanError, match="has no centre"):
        people.linear_regression("wage", ["age"], bounds=BOUNDS, missing="center")
