"""A budget plan: what so many questions make of answers, under each kind of account."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import epsilons as eps
from epsilons.errors import PlanError, PreferenceError
from epsilons.planner.budget import MOST_QUESTIONS, best_error, plan_budget
from epsilons.testing import seeded

LEVELS, SIZES = (0.01, 0.2, 1.0), (5400, 3700, 900)


def test_rows_of_the_gain_table_in_which_all_pay() -> None:
    """Theory, section 13: 200 counts, 10,000 people, epsilon 1, delta 1e-6: 283 and 64."""
    pure, zcdp = plan_budget([1.0], [10_000], 200).rows
    assert (pure.account, zcdp.account) == ("pure", "zcdp")
    assert pure.count == pytest.approx(283, rel=0.01)
    assert zcdp.count == pytest.approx(64, rel=0.01)
    assert [row.questions for row in plan_budget([1.0], [10_000], 7).rows] == [7, 7]


@pytest.mark.parametrize("assume", [0.0, 0.3])
@pytest.mark.parametrize("questions", [2, 20])
def test_a_mean_errs_as_the_planner_says_of_weighted(assume: float, questions: int) -> None:
    epsilons = np.repeat(LEVELS, SIZES)
    asked: dict[str, Any] = {"bounds": (0, 10), "share": 1 / questions, "complete": True}
    planned = eps.plan("mean", epsilons, assume=assume or "unrelated", **asked)["weighted"].error
    found = plan_budget(LEVELS, SIZES, questions, assume=assume, width=10.0, delta=1e-5).rows
    assert found[0].mean == pytest.approx(planned, rel=0.01)
    concentrated = eps.plan("mean", epsilons, assume=assume or "unrelated", delta=1e-5, **asked)["weighted"].error
    assert found[1].mean == pytest.approx(concentrated, rel=0.01)


def test_weights_are_the_best_of_all_that_keep_to_budgets() -> None:
    """A slow obvious search over weights of two levels, without any formula for them."""
    budgets, sizes = np.array([0.02, 0.5]), np.array([60.0, 40.0])
    least = math.inf
    for part in np.linspace(0, 1, 4001):  # the first level's part of all weight
        weights = np.array([part / 60, (1 - part) / 40])
        scale = float((weights / budgets).max())
        least = min(least, 0.25**2 * float((weights - 0.01) ** 2 @ sizes) + 2 * (scale * 0.5) ** 2)
    assert best_error(budgets, sizes, 0.5, 0.25, 2.0, 0.0) == pytest.approx(math.sqrt(least), rel=1e-3)


def test_public_people_cost_nothing_and_everything_falls_with_fewer_questions() -> None:
    alone, beside = plan_budget([0.1], [1000], 50), plan_budget([0.1, math.inf], [1000, 100], 50)
    assert beside.rows[0].mean < alone.rows[0].mean
    for account in ("pure", "zcdp"):
        errors = [row.mean for row in alone.curve if row.account == account]
        assert errors == sorted(errors)
    assert plan_budget([0.001], [10], 1000).rows[0].count == 10


def test_whoever_grants_next_to_nothing_does_not_spoil_the_forecast_of_the_others() -> None:
    """Grants that are a billion times apart: the best weights are far from those of everyone alike."""
    hardly, nobody = plan_budget([1e-9, 1.0], [50, 50], 1).rows, plan_budget([1e-9], [100], 1).rows
    planned = eps.plan("mean", [1e-9, 1.0] * 50, bounds=(0, 1), complete=True)["weighted"].error
    assert hardly[0].mean == pytest.approx(planned, rel=0.01)
    assert nobody[0].mean == 1
    beside = plan_budget([1e-9, math.inf], [50, 50], 1).rows
    planned = eps.plan("mean", [1e-9, math.inf] * 50, bounds=(0, 1), complete=True)["weighted"].error
    assert beside[0].mean == pytest.approx(planned, rel=0.01)
    with pytest.raises(PreferenceError, match="too small to be counted in rho"):
        plan_budget([1e-9, 1.0], [50, 50], 1, delta=1e-18)


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "many", True, MOST_QUESTIONS + 1])
def test_what_is_no_number_of_questions_is_refused(wrong: Any) -> None:
    with pytest.raises(PlanError):
        plan_budget(LEVELS, SIZES, wrong)
    with pytest.raises(PlanError):
        plan_budget([math.inf], [10], 10)
    with pytest.raises(PlanError):
        plan_budget(LEVELS, SIZES, 10, delta=0)


def test_a_dataset_tells_it_by_what_people_granted_and_says_the_share() -> None:
    import pandas as pd

    table = pd.DataFrame({"id": range(100), "wage": 1.0, "e": 1.0})
    wishes = eps.Preferences.from_column("e")
    with eps.Dataset(table, person="id", preferences=wishes, bounds={"wage": (0, 50)}, ledger="memory") as people:
        before = people.budget(questions=200, column="wage")
        people.count(where="wage > 3", share=0.5)
        assert people.budget(questions=200, column="wage") == before
        assert before.rows == plan_budget([1.0], [100], 200, width=50.0).rows
        told = " ".join(str(before).split())
        assert "the share of each is 0.005" in told
        shares = "no level's expected share is further than 0.15 from everyone's"
        assert f"{shares}, nor its mean further than 3.75." in told
        assert f"{shares}, nor its mean further than 0.075 of it." in " ".join(str(people.budget()).split())
        assert "The default share, 0.1, leaves room for 10 questions." in told
        assert before.to_dict()["best"] == before.best == "zcdp"
        with pytest.raises(PlanError, match="no registered bounds"):
            people.budget(column="e")
    lasting: dict[str, Any] = {"measure": "zcdp", "delta": 1e-9}
    with eps.Dataset(table, person="id", preferences=wishes, ledger="memory", **lasting) as people:
        assert people.budget().delta == 1e-9
        assert people.budget(delta=1e-5).delta == 1e-5


@pytest.mark.statistical
@pytest.mark.parametrize("terms", [{}, {"measure": "zcdp", "delta": 1e-6}], ids=["pure", "zcdp"])
def test_two_hundred_real_questions_err_and_cost_as_the_budget_said(terms: dict[str, Any]) -> None:
    """Seeded, so never off by chance: an RMSE of 200 errors is within 15% of its expectation but once in 500 times.

    The other kind of account errs more than twice as far, or less than half as far, and would be seen.
    """
    draws = np.random.default_rng(25)
    wages = draws.choice([25, 75], 3000)  # spread by a quarter of the bounds, which is the public guess
    table = pa.table({"id": range(3000), "wage": wages, "e": np.repeat([0.1, 0.5, 1.0], 1000)})
    settled: dict[str, Any] = {"person": "id", "bounds": {"wage": (0, 100)}, "complete": ["wage"], "ledger": "memory"}
    plan = plan_budget([0.1, 0.5, 1.0], [1000] * 3, 200, assume=0.0, width=100.0)
    expected = next(row.mean for row in plan.rows if row.account == terms.get("measure", "pure"))
    with eps.Dataset(table, preferences=eps.Preferences.from_column("e"), **settled, **terms) as people:
        asked: dict[str, Any] = {"share": 1 / 200, "fresh": True, "assume": "unrelated", "mechanism": "weighted"}
        answers = [people.mean("wage", **asked, entropy=seeded(number)).value for number in range(200)]
        assert math.sqrt(np.mean(np.square(np.array(answers) - wages.mean()))) == pytest.approx(expected, rel=0.15)
        strictest = people.remaining().levels[0]
        assert 0 <= strictest.total < strictest.granted, "200 shares of 1/200 are all of it, but for rounding"
        assert all(level.least >= 0 for level in people.remaining().levels)
