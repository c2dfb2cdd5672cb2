"""What a plan takes for granted of the values, and how its error moves if that is off."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

import epsilons as eps
from epsilons.display import show
from epsilons.planner.guesses import list_guesses
from epsilons.planner.plan import Plan
from epsilons.statistics.base import Question, Scope
from epsilons.statistics.total import Mean

PEOPLE = [0.05] * 540 + [0.2] * 370 + [1.0] * 90


def test_a_plan_lists_the_guesses_in_use() -> None:
    plan = eps.plan("sum", PEOPLE, bounds=(0, 100), assume="unrelated")
    found = {guess.name: guess.value for guess in plan.guesses}
    assert found["spread"] == 25
    assert found["location"] == 50
    assert eps.plan("sum", PEOPLE, bounds=(0, 100), spread=10, location=20).guesses[0].value in (10, 20, 1.0)
    assert [guess.name for guess in eps.plan("count", PEOPLE, density=0.1).guesses] == ["density"]
    model = eps.plan("linear_regression", PEOPLE, bounds_X=([0], [1]), bounds_y=(0, 100), assume=0.3)
    assert {guess.name: guess.value for guess in model.guesses}["spread"] == 25
    assert "public guess" in str(plan)
    assert plan.to_dict()["guesses"][0]["value"] == plan.guesses[0].value


def test_errors_move_as_the_prediction_does() -> None:
    """Halved and doubled are what the same weights would err by if something else is true."""
    plan = eps.plan("sum", PEOPLE, bounds=(0, 100), assume="unrelated", threshold="max", rescale=True)
    row = plan["threshold"]
    spread = next(one for one in list_guesses(row.chosen, plan.question, plan.levels) if one.name == "spread")
    fixed = replace(row.chosen, threshold=row.options["threshold"])  # type: ignore[type-var]
    for value, error in ((12.5, spread.halved), (50.0, spread.doubled)):
        assert fixed.predict_error(replace(plan.question, spread=value), plan.levels) == pytest.approx(error)
    assert spread.halved is not None
    assert spread.doubled is not None
    assert spread.halved < row.expected < spread.doubled


@pytest.mark.parametrize(
    ("statistic", "mechanism", "asked", "names"),
    [
        ("mean", "mixed", {"bounds": (0, 100)}, ["density", "spread"]),
        ("mean", "mixed", {"bounds": (0, 100), "complete": True}, ["spread"]),
        ("count", "mixed", {"density": 0.2}, ["density"]),
        ("median", "mixed", {"bounds": (0, 100), "complete": True}, ["spread", "location"]),
        ("count", "exponential", {"density": 0.2}, ["density"]),
        ("median", "exponential", {"bounds": (0, 100), "complete": True, "location": 30}, ["spread", "location"]),
    ],
)
def test_so_do_those_of_mechanisms_without_weights(
    statistic: str, mechanism: str, asked: dict[str, Any], names: list[str]
) -> None:
    """What levels' answers are mixed by stays as it was planned; an answer planned for what is true errs no more."""
    plan = eps.plan(statistic, PEOPLE, mechanism=mechanism, assume="unrelated", **asked)
    assert set(names) <= {guess.name for guess in plan.guesses}
    told = " ".join(str(plan).split())
    assert "and the public guesses hold" in told
    for guess in plan.guesses:
        assert f"{guess.name} {show(guess.value)}" in told
        assert (guess.halved, guess.doubled) != (plan[mechanism].expected,) * 2
    if statistic == "mean":
        spread = next(guess for guess in plan.guesses if guess.name == "spread")
        for value, error in ((12.5, spread.halved), (50.0, spread.doubled)):
            meant = eps.plan("mean", PEOPLE, mechanism="mixed", assume="unrelated", spread=value, **asked)
            assert error is not None
            assert error > meant["mixed"].expected * 1.0001


def test_fewer_rows_that_match_cost_accuracy() -> None:
    levels = eps.plan("count", PEOPLE).levels
    statistic = Mean.over(Scope(fraction=0.5), (0, 100), "absent", None)
    question = Question(statistic)
    from epsilons.mechanisms.minimum import Minimum

    matching = next(one for one in list_guesses(Minimum(), question, levels) if one.name == "density")
    assert matching.value == 0.5
    assert matching.halved is not None
    assert matching.doubled is not None
    assert matching.halved > matching.doubled


def test_a_guess_is_listed_where_the_error_rests_on_it_and_nowhere_else() -> None:
    levels = eps.plan("count", PEOPLE).levels
    filtered = Question(Mean.over(Scope(fraction=0.5), (0, 100), "absent", None), assume=math.inf)
    plan = Plan.make(filtered, levels)
    assert [guess.name for guess in plan.guesses] == ["density"]
    assert plan.guesses[0].halved == pytest.approx(2 * plan.best.expected, rel=0.5)
    assert "by worst error if the public guesses hold" in " ".join(str(plan).split())
    sure = eps.plan("count", PEOPLE, assume="nothing")
    assert sure.guesses == ()
    assert "guesses" not in str(sure)


def test_a_model_of_fewer_people_errs_more() -> None:
    told = {"bounds_X": ([0], [1]), "bounds_y": (0, 100)}
    errors = [eps.plan("linear_regression", PEOPLE, **told, density=part).best.expected for part in (1.0, 0.5, 0.25)]
    assert errors == sorted(errors)
    assert len(set(errors)) == 3
    whole = eps.plan("linear_regression", PEOPLE, **told, complete=True)
    assert "density" not in {guess.name for guess in whole.guesses}
    some = eps.plan("linear_regression", PEOPLE, **told)
    assert {guess.name: guess.value for guess in some.guesses}["density"] == 1.0
