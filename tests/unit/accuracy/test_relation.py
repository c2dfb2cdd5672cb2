"""How far preferences may be related to values: the condition that is printed, the bound that can be bought."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import epsilons as eps
from epsilons.accuracy.relation import LevelAnswer, Relation
from epsilons.statistics import order
from epsilons.statistics.base import Question
from epsilons.statistics.count import Count
from epsilons.statistics.total import Mean
from epsilons.testing import seeded

LEVELS = np.repeat([0.1, 0.5, 2.0], [540, 370, 90])


@pytest.mark.parametrize(
    ("assume", "number"),
    [("unrelated", 0.0), (0, 0.0), (np.float32(0.5), 0.5), ("nothing", math.inf), (math.inf, math.inf), (0.3, 0.3)],
)
def test_an_assumption_is_a_number_of_spreads(assume: Any, number: float) -> None:
    assert Question(Count(), assume=assume).assume == number


@pytest.mark.parametrize("assume", [-0.1, math.nan, "related", None, True, [0.3]])
def test_other_assumptions_are_refused(assume: Any) -> None:
    with pytest.raises(eps.PlanError, match="assume"):
        eps.count([1, 0], [1, 1], assume=assume)


def test_the_condition_is_in_the_units_of_the_column() -> None:
    wage = Mean((0.0, 1600.0))
    assert Question(wage, assume=0.3).condition() == "no level's expected mean is further than 120 from everyone's"
    assert "further than 30 from" in Question(wage, assume=0.3, spread=100).condition()
    assert "expected share is further than 0.15 from" in Question(Count(), assume=0.3).condition()
    median = Question(order.median((0, 1)), assume=0.3)
    assert "share of people below the answer is further than 0.15" in median.condition()
    assert "nothing is assumed" in eps.plan("max", LEVELS, bounds=(0, 1)).assumption, "no distance of 0"
    assert Question(wage).condition() == "people's preferences say nothing about their values"
    assert Question(wage, assume=math.inf).condition().startswith("nothing is assumed")


def test_answers_plans_and_rows_say_their_condition() -> None:
    values = [10.0, 90.0] * 500
    answer = eps.mean(values, LEVELS, bounds=(0, 100), assume=0.3, mechanism="weighted")
    plan = eps.plan("mean", LEVELS, bounds=(0, 100), assume=0.3)
    said = "no level's expected mean is further than 7.5 from everyone's"
    assert answer.assumption == plan.assumption == plan["weighted"].assumption == said
    assert f"if {said}" in str(answer)
    assert said in " ".join(str(plan).split())
    # Where everyone weighs the same nothing needs to be assumed.
    even = eps.mean(values, LEVELS, bounds=(0, 100), assume=0.3, mechanism="minimum")
    assert even.assumption == plan["minimum"].assumption == "nothing is assumed about how preferences and values relate"


@pytest.mark.parametrize("density", [0, 1])
@pytest.mark.parametrize("statistic", ["count", "histogram", "sum"])
def test_a_guess_that_is_certain_leaves_a_condition(statistic: str, density: int) -> None:
    own: dict[str, Any] = {"count": {}, "histogram": {"edges": [0, 1, 2]}, "sum": {"bounds": (0, 1)}}[statistic]
    ones = np.array(LEVELS) == min(LEVELS)
    answer = getattr(eps, statistic)(ones * 1.0, LEVELS, density=density, mechanism="weighted", **own)
    assert answer.assumption.startswith("no level's expected ")
    assert "however" not in str(answer)
    plan = eps.plan(statistic, LEVELS, density=density, **own)
    assert plan.assumption == plan["weighted"].assumption == answer.assumption


def test_a_guess_that_an_error_rests_on_is_part_of_the_condition() -> None:
    values, told = [10.0, 90.0] * 500, "values spread by about 5 (given)"
    given: dict[str, Any] = {"bounds": (0, 100), "spread": 5}
    for name in ("mean", "sum", "variance"):
        answer = getattr(eps, name)(values, LEVELS, **given, assume="unrelated", mechanism="weighted")
        assert f"if preferences and values are unrelated, and {told}" in str(answer), name
        assert eps.plan(name, LEVELS, **given).assumption.endswith(f", and {told}"), name
    # Noise alone rests on no guess, but a variance bends with it.
    even, bent = (
        str(getattr(eps, name)(values, LEVELS, **given, mechanism="minimum")) for name in ("mean", "variance")
    )
    assert told not in even
    assert f"however preferences and values relate, if {told}" in bent
    worst = eps.mean(values, LEVELS, **given, assume="nothing", complete=True)
    assert told not in str(worst)
    # A quantile has its error from its own cells.
    assert "spread by" not in str(eps.median(values, LEVELS, **given))
    # The error of `robust` is expected under the assumption, its interval alone holds without.
    robust = eps.mean(values, LEVELS, bounds=(0, 100), complete=True, mechanism="robust")
    assert robust.assumption == "no level's expected mean is further than 7.5 from everyone's"


def rows_of(means: list[float], noise: float = 0.0) -> list[dict[str, Any]]:
    return [LevelAnswer(str(j), 400, mean, 0.3, 100 / 400, noise).to_dict() for j, mean in enumerate(means)]


def test_levels_bound_a_relation_from_above_and_below() -> None:
    same, apart = Relation.of(rows_of([50.0, 50.0, 50.0])), Relation.of(rows_of([56.0, 50.0, 44.0]))
    assert same.spread == apart.spread == pytest.approx(10)
    assert (same.least, apart.least > 0.4) == (0.0, True)
    assert same.bound < 0.15 < 0.6 < apart.bound < 0.75
    assert apart.contradicts(0.3)
    assert not apart.contradicts(0.6)
    assert not same.contradicts(0.0)
    # Noise hides it, and the bound says so.
    noisy = Relation.of(rows_of([56.0, 50.0, 44.0], noise=5.0))
    assert noisy.bound > 2
    assert not noisy.contradicts(0.0)
    assert Relation.of([]).bound == 0
    assert "further than" in str(apart)


def buy(**options: Any) -> tuple[Any, dict[str, Any], Relation]:
    """(values, what later questions are given, what was found), of people who are hardly related to their values."""
    values = np.random.default_rng(1).normal(50, 10, len(LEVELS) * 20)
    given: dict[str, Any] = {"epsilons": np.repeat(LEVELS, 20), "bounds": (0, 100), **options}
    return values, given, eps.relation(values, **given, share=0.2, entropy=seeded(5))


def test_a_relation_that_was_bought_is_a_distance_whatever_spread_is_guessed_later() -> None:
    values, given, found = buy(complete=True)
    assert 0 < found.bound < 0.5
    assert found.distance == pytest.approx(found.bound * found.spread)
    said = f"no level's expected mean is further than {found.distance:.4g} from everyone's, as was found, 95% sure"
    for spread in (None, 5.0, 40.0):
        guess = "" if spread is None else f", and values spread by about {spread:g} (given)"
        later = eps.mean(values, share=0.8, assume=found, spread=spread, mechanism="weighted", **given)
        assert later.assumption == said + guess
        plan = eps.plan("mean", given["epsilons"], bounds=(0, 100), complete=True, assume=found, spread=spread)
        assert plan.assumption == said + guess
        assert plan.question.assume * plan.question.statistic.related(plan.question)[1] == pytest.approx(found.distance)
        guessed = replace(plan.question, spread=3.0, known=(("spread", "from release 7"),))
        assert guessed.condition() == f"{said}, and values spread by about 3 (from release 7)"


@pytest.mark.parametrize(
    ("name", "changed", "hint"),
    [
        ("median", {}, "assume=0.3"),
        ("variance", {}, "assume=0.3"),
        ("mean", {"bounds": (0, 200)}, "assume=0.3"),
        ("mean", {"complete": False}, "missing='center'"),
    ],
)
def test_a_relation_that_was_bought_speaks_of_nothing_else(name: str, changed: dict[str, Any], hint: str) -> None:
    values, given, found = buy(complete=True)
    with pytest.raises(eps.PlanError, match="says nothing about this question") as raised:
        getattr(eps, name)(values, assume=found, **(given | changed))
    assert hint in str(raised.value)
    later = eps.sum(values, assume=found, mechanism="weighted", **given)
    assert later.assumption.endswith("as was found, 95% sure")


def test_a_relation_of_one_column_is_not_that_of_another() -> None:
    grants = [0.5, 2.0] * 300
    rows = {"id": range(600), "wage": [20.0, 30.0] * 300, "age": [30.0, 40.0] * 300, "epsilon": grants}
    frame = pa.table({name: list(column) for name, column in rows.items()})
    told: dict[str, Any] = {"bounds": {"wage": (0, 100), "age": (0, 100)}, "complete": ["wage", "age"]}
    by_column = eps.Preferences.from_column("epsilon")
    with eps.Dataset(frame, person="id", preferences=by_column, ledger="memory", ceiling=10, **told) as people:
        found = people.relation("wage", share=0.2)
        later = people.mean("wage", assume=found, mechanism="weighted", spread=2.0)
        said = f"further than {found.distance:.4g} from everyone's, as was found by release 1, 95% sure"
        assert later.assumption.endswith(f"{said}, and values spread by about 2 (given)")
        for asked in (("mean", "age", {}), ("count", None, {}), ("mean", "wage", {"where": "age > 35"})):
            name, column, options = asked
            with pytest.raises(eps.PlanError, match=r"over everyone.*'wage'|'wage' over everyone"):
                people.plan(name, column, assume=found, **options)
        refused: dict[str, Any] = {"where": "age > 35", "by": {"age": [30.0]}, "missing": "exclude"}
        for name, value in refused.items():
            with pytest.raises(eps.PlanError, match=rf"about everyone.*{name}"):
                people.relation("wage", **{name: value})
    with (
        eps.Dataset(frame, person="id", preferences=1.0, ledger="memory", rows_per_person=2) as people,
        pytest.raises(eps.PlanError, match=r"about everyone.*up to 2 rows"),
    ):
        people.relation("wage", bounds=(0, 100))


def test_a_relation_says_where_missing_values_stand() -> None:
    assert "centre" not in buy(complete=True)[2].sentence
    assert buy()[2].sentence.endswith("Missing values stand at the centre of the bounds.")


@pytest.mark.parametrize("related", [0.0, 0.5])
def test_the_bound_holds_as_often_as_it_says(related: float) -> None:
    """Levels' expected means are `related` spreads from everyone's; at 95% few of 200 bounds lie below that."""
    rng, sizes = np.random.default_rng(5), np.array([540, 370, 90])
    ways = np.array([1.0, -1.0, -170 / 90])
    far = related * 10 * ways / np.abs(ways).max()
    held = 0
    for _ in range(200):
        means = 50 + far + rng.normal(size=3) * 10 / np.sqrt(sizes) + rng.laplace(scale=[2.0, 1.0, 3.0])
        pairs = zip(sizes.tolist(), means.tolist(), [2.0, 1.0, 3.0], strict=True)
        rows = [LevelAnswer("", n, mean, 0.3, 100 / n, scale).to_dict() for n, mean, scale in pairs]
        held += Relation.of(rows).bound >= np.abs(far).max() / 10
    assert held >= 190


def test_an_answer_that_its_levels_contradict_says_so() -> None:
    values = np.concatenate([np.full(540, 80.0), np.full(370, 20.0), np.full(90, 10.0)])
    grants = np.repeat([2.0, 3.0, 4.0], [540, 370, 90])
    asked: dict[str, Any] = {"bounds": (0, 100), "mechanism": "mixed", "complete": True, "entropy": seeded(1)}
    for assume in ("unrelated", 0.3):
        answer = eps.mean(values, grants, assume=assume, **asked)
        assert "which the levels' own answers contradict" in str(answer)
    assert "contradict" not in str(eps.mean(values, grants, assume="nothing", **asked))
    assert "contradict" not in str(eps.mean(np.full(1000, 50.0), grants, assume=0.3, **asked))


def test_bars_survive_json() -> None:
    for asked in ({"assume": 0.3}, {"assume": "nothing"}, {"mechanism": "exponential", "assume": 0.3}):
        answer = eps.count([1, 0] * 500, LEVELS, **asked)  # type: ignore[arg-type]
        again = eps.Release.from_dict(json.loads(json.dumps(answer.to_dict())))
        assert again.interval() == answer.interval()
        assert (again.error, again.assumption) == (answer.error, answer.assumption)
