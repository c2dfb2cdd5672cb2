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
from epsilons.accuracy.intervals import FractionBar
from epsilons.accuracy.relation import LevelAnswer, Relation, contradicts
from epsilons.mechanisms.base import create
from epsilons.preferences import roster_of
from epsilons.release import make_release
from epsilons.statistics import order
from epsilons.statistics.base import Answer, Question, Scope
from epsilons.statistics.count import Count
from epsilons.statistics.total import Mean, Sum
from epsilons.statistics.variance import Variance
from epsilons.testing import seeded
from support.honesty import Asked, Setting

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
    # What a person adds to a sum of rows that count depends on how many of a level do, as well as on their values.
    assert "expected sum per person is further than" in Question(Sum((0.0, 1.0), Scope()), assume=0.3).condition()
    assert "expected mean is further than" in Question(Sum((0.0, 1.0)), assume=0.3).condition()
    median = Question(order.median((0, 1)), assume=0.3)
    assert "share of people below the answer is further than 0.15" in median.condition()
    # An average over a private number of rows is moved by (x - mean)*match, so by how many of a level count, too.
    rows: Any = {"scope": Scope()}
    for among in (Mean((0.0, 1600.0), **rows), Variance((0.0, 1.0), **rows), order.median((0, 1), **rows)):
        assert ", weighted by how many of it count, is further than" in Question(among, assume=0.3).condition()
    # An average of products around means is off by where these are, too.
    far = Question(Variance((0.0, 100.0)), assume=0.3).condition()
    assert far.endswith(
        "squared distance from the mean is further than 203.3 from everyone's, nor its mean further than 7.5"
    )
    pair = eps.plan("covariance", LEVELS, bounds_x=(0, 100), bounds_y=(0, 10), complete=True).assumption
    means = "nor its mean of x further than 7.5, nor its mean of the other column further than 0.75"
    assert pair.endswith(f"from their means is further than 18.75 from everyone's, {means}")
    assert "nothing is assumed" in eps.plan("max", LEVELS, bounds=(0, 1)).assumption, "no distance of 0"
    assert Question(wage).condition() == "people's preferences say nothing about their values"
    assert Question(wage, assume=math.inf).condition().startswith("nothing is assumed")


def test_answers_plans_and_rows_say_their_condition() -> None:
    values = [10.0, 90.0] * 500
    answer = eps.mean(values, LEVELS, bounds=(0, 100), assume=0.3, mechanism="weighted")
    plan = eps.plan("mean", LEVELS, bounds=(0, 100), assume=0.3)
    said = "no level's expected mean, weighted by how many of it count, is further than 7.5 from everyone's"
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
    assert plan.assumption == plan["weighted"].assumption
    # A count's distances are told at its guess before the answer, and then at what was released.
    guessed = (
        "" if statistic == "sum" else ", at a share of 1e-06 (given)" if density == 0 else ", at a share of 1 (given)"
    )
    assert plan.assumption.endswith(f" from everyone's{guessed}")
    assert (plan.assumption == answer.assumption) == (statistic == "sum")


@pytest.mark.parametrize(("strict", "loose", "failed"), [(0, 22, 0.7), (0, 25, 0.9), (40, 2, 0.0), (8, 25, 0.05)])
def test_an_interval_holds_whenever_the_condition_beside_it_is_true(strict: int, loose: int, failed: float) -> None:
    """Rare ones, and a fifth of the people alone are asked: exact over all noises, where levels are far apart.

    A distance told at a guess of one half, and allowed for at every count's own spread, `failed` so often.
    """
    levels, true = roster_of(np.repeat([0.1, 1.0], [800, 200])).levels, strict + loose
    question, mechanism = Question(Count(), assume=0.3), create("threshold", Count(), threshold=1, rescale=True)
    apart = max(abs(strict / 800 - true / 1000), abs(loose / 200 - true / 1000))
    told, missed, before = 0.0, 0.0, 0.0
    for noise in range(-12, 13):
        chance, answer = math.tanh(0.5) * math.exp(-abs(noise)), Answer(min(max(5 * (loose + noise), 0), 1000))
        (bar,) = mechanism.error_bars(question, levels, answer) or ()
        assert isinstance(bar, FractionBar)
        said = mechanism.condition(question, levels, answer).split("further than ")[1].split()[0]
        holds = float(said) >= apart
        ends = [one.interval(answer.value, 0.95, False) for one in (bar, replace(bar, told=0.0))]
        now, then = (not low <= true <= high for low, high in ends)
        told, missed, before = told + chance * holds, missed + chance * (holds and now), before + chance * then
    assert missed <= 0.05
    assert told > 0.25
    assert apart < 0.15
    assert before >= failed


@pytest.mark.parametrize("mechanism", ["exponential", "mixed", "weighted", "sample", "stretching"])
def test_every_count_tells_its_condition_at_the_released_share(mechanism: str) -> None:
    ones = np.arange(1000) % 20 == 0
    answer = eps.count(ones, LEVELS, mechanism=mechanism, entropy=seeded(1))
    planned = eps.plan("count", LEVELS)[mechanism].assumption
    assert planned == "no level's expected share is further than 0.15 from everyone's, at a share of 0.5 (guessed)"
    told = float(answer.assumption.removeprefix("no level's expected share is further than ").split()[0])
    assert told == pytest.approx(0.3 * math.sqrt(0.05 * 0.95), rel=0.5)
    # The interval allows for what is told; that of mixed levels adds it up beforehand.
    assert answer.models is not None
    assert mechanism == "mixed" or vars(answer.models[0])["told"] == pytest.approx(told, rel=1e-3)


def test_counts_by_key_tell_the_condition_of_each() -> None:
    groups = np.array(["rare"] * 20 + ["common"] * 980)
    asked: dict[str, Any] = {"categories": ["rare", "common", "half"], "mechanism": "weighted"}
    answer = eps.histogram(groups, LEVELS, **asked, entropy=seeded(1))
    assert answer.models is not None
    told = [vars(bar)["told"] for bar in answer.models]
    said = f"further than {min(told):.4g} to {max(told):.4g} from everyone's, each by its own number"
    assert answer.assumption == f"no level's expected share is {said}"
    plan = eps.plan("histogram", LEVELS, **asked)
    assert plan.assumption.endswith(" from everyone's, at a share of 0.3333 (guessed)")


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
    assert f"however preferences and values relate; for a population: {told}" in even
    assert f"however preferences and values relate, if {told}" in bent
    worst = eps.mean(values, LEVELS, **given, assume="nothing", complete=True)
    assert f"however preferences and values relate; for a population: {told}" in str(worst)
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
    assert contradicts(apart, 0.3)
    assert not contradicts(apart, 0.6)
    assert not contradicts(same, 0.0)
    # Noise hides it, and the bound says so.
    noisy = Relation.of(rows_of([56.0, 50.0, 44.0], noise=5.0))
    assert noisy.bound > 2
    assert not contradicts(noisy, 0.0)
    assert Relation.of([]).bound == 0
    assert "further than" in str(apart)


@pytest.mark.parametrize("seed", range(12))
def test_the_furthest_level_is_that_of_all_levels_one_by_one(seed: int) -> None:
    """Only levels that may be the furthest are worked out: with noises from nothing to hundreds, and none at all."""
    random = np.random.default_rng(seed)
    levels = [
        LevelAnswer(
            str(j),
            int(random.integers(1, 500)),
            float(random.normal(50, random.choice([0, 1, 30]))),
            0.1,
            float(random.choice([0.0, 0.01, 4.0])),
            float(random.choice([0.0, 1e-9, 0.1, 3.0, 200.0])),
        )
        for j in range(random.choice([1, 2, 40]))
    ]
    found = Relation(tuple(levels), 10.0)
    assert found.distance == max(abs(away) + off for away, off in found.distances)
    assert found.least == max(0.0, *(abs(away) - off for away, off in found.distances)) / 10.0


def buy(**options: Any) -> tuple[Any, dict[str, Any], Relation]:
    """(values, what later questions are given, what was found), of people who are hardly related to their values."""
    values = np.random.default_rng(1).normal(50, 10, len(LEVELS) * 20)
    given: dict[str, Any] = {"epsilons": np.repeat(LEVELS, 20), "bounds": (0, 100), **options}
    return values, given, eps.relation(values, **given, share=0.9, entropy=seeded(5))


def test_a_relation_that_was_bought_is_a_distance_whatever_spread_is_guessed_later() -> None:
    values, given, found = buy(complete=True)
    assert 0 < found.bound < 0.5
    assert found.distance == pytest.approx(found.bound * found.spread)
    said = f"no level's expected mean is further than {found.distance:.4g} from everyone's, as was found, 95% sure"
    for spread in (None, 5.0, 40.0):
        guess = "" if spread is None else f", and values spread by about {spread:g} (given)"
        later = eps.mean(values, share=0.05, assume=found, spread=spread, mechanism="weighted", **given)
        assert later.assumption == said + guess
        asked = {"share": 0.05, "bounds": (0, 100), "complete": True, "assume": found, "spread": spread}
        plan = eps.plan("mean", given["epsilons"], **asked)
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
    later = eps.sum(values, share=0.05, assume=found, mechanism="weighted", **given)
    assert later.assumption.endswith("as was found, 95% sure")


def test_a_relation_of_one_column_is_not_that_of_another() -> None:
    grants = [0.5, 2.0] * 300
    rows = {"id": range(600), "wage": [20.0, 30.0] * 300, "age": [30.0, 40.0] * 300, "epsilon": grants}
    frame = pa.table({name: list(column) for name, column in rows.items()})
    told: dict[str, Any] = {"bounds": {"wage": (0, 100), "age": (0, 100)}, "complete": ["wage", "age"]}
    by_column = eps.Preferences.from_column("epsilon")
    with eps.Dataset(frame, person="id", preferences=by_column, ledger="memory", ceiling=10, **told) as people:
        found = people.relation("wage", share=0.2)
        assert "centre" not in found.sentence
        later = people.mean("wage", assume=found, mechanism="weighted", spread=2.0)
        said = f"further than {found.distance:.4g} from everyone's, as was found by release 1 of version 1, 95% sure"
        assert later.assumption.endswith(f"{said}, and values spread by about 2 (given)")
        for asked in (("mean", "age", {}), ("count", None, {}), ("mean", "wage", {"where": "age > 35"})):
            name, column, options = asked
            with pytest.raises(eps.PlanError, match="'wage' in 'table 1' over everyone"):
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


def test_a_relation_of_everyone_is_not_that_of_a_public_part_nor_of_another_dataset() -> None:
    rows = {"id": range(600), "wage": [20.0, 30.0] * 300, "region": ["n", "n", "s"] * 200, "epsilon": [0.5, 2.0] * 300}
    told: dict[str, Any] = {"bounds": {"wage": (0, 100)}, "complete": ["wage"], "person": "id", "ledger": "memory"}
    told |= {"preferences": eps.Preferences.from_column("epsilon"), "public": ["region"]}
    frame = pa.table({name: list(column) for name, column in rows.items()})
    with eps.Dataset(frame, name="old", **told) as people, eps.Dataset(frame, name="new", **told) as others:
        found = people.relation("wage", share=0.2)
        assert "as was found by release 1" in people.mean("wage", assume=found, mechanism="weighted").assumption
        with pytest.raises(eps.PlanError, match="'wage' in 'old' over everyone"):
            people.mean("wage", where="region = 'n'", assume=found)
        with pytest.raises(eps.PlanError, match="'wage' in 'old' over everyone"):
            others.mean("wage", assume=found)
        assert people.plan("mean", "wage", where="region = 'n'", assume=0.3).question.statistic.scope is None


def test_what_no_level_said_by_itself_is_no_relation() -> None:
    values, asked = [10.0, 20.0] * 50, {"bounds": (0, 100), "complete": True}
    with pytest.raises(eps.PlanError, match="what levels say by themselves"):
        eps.relation(values, [0.5, 2.0] * 50, mechanism="weighted", **asked)
    with pytest.raises(eps.PlanError, match="found no relation"):
        eps.relation(values, eps.PUBLIC, **asked)


def test_a_relation_says_where_missing_values_stand() -> None:
    assert "centre" not in buy(complete=True)[2].sentence
    assert buy()[2].sentence.endswith("Missing values stand at the centre of the bounds.")
    # Nothing is missing by type, nor by the steward's word (`found` of a declared column, above).
    assert "centre" not in eps.relation(np.arange(100), [0.5, 2.0] * 50, bounds=(0, 100)).sentence
    assert "centre" in eps.relation(list(range(100)), [0.5, 2.0] * 50, bounds=(0, 100)).sentence


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


def test_values_that_spread_more_than_is_guessed_do_not_look_related() -> None:
    """Ones and zeros spread by h, twice the default guess; what is not known of a spread is allowed for."""
    grants, rng = np.repeat([0.3, 1.0, 5.0], 300), np.random.default_rng(3)
    asked: dict[str, Any] = {"bounds": (0, 1), "complete": True, "mechanism": "mixed", "assume": 0}
    alarms = 0
    for seed in range(60):
        answer = eps.mean(rng.random(900) < 0.5, grants, entropy=seeded(seed), **asked)
        contradicted = "contradict" in answer.assumption
        assert contradicted == ("look related" in answer.details["relation"]["sentence"])
        alarms += contradicted
        assert all(row["sampling_variance"] * 300 > 0.2 for row in answer.details["levels"])
    assert alarms <= 2
    related = eps.mean(rng.random(900) < np.repeat([0.2, 0.5, 0.8], 300), grants, **asked)
    assert "contradict" in related.assumption
    # Nobody's one says little of few people: a level that agrees is not known to be without any.
    few = eps.mean(np.zeros(15, bool), np.repeat([3.0, np.inf], [10, 5]), **asked)
    assert few.details["levels"][1]["sampling_variance"] > 0.1 / 5


def test_a_relation_names_the_spread_that_it_takes_at_its_word() -> None:
    values, given, found = buy(complete=True, spread=10.0)
    assert [row.sampling_variance * row.people for row in found.levels] == pytest.approx([100] * len(found.levels))
    assert found.sentence.endswith("spreads of 10 if values spread by about 10 (given).")
    later = eps.mean(values, assume=found, share=0.05, mechanism="weighted", **{**given, "spread": None})
    assert later.assumption.endswith("as was found, 95% sure if values spread by about 10 (given)")
    assert found.distance < buy(complete=True)[2].distance


@pytest.mark.parametrize("complete", [False, True])
def test_an_answer_that_its_levels_contradict_says_so(complete: bool) -> None:
    """Of a public number of values and, as by default, of a private one."""
    values = np.concatenate([np.full(540, 80.0), np.full(370, 20.0), np.full(90, 10.0)])
    grants = np.repeat([2.0, 3.0, 4.0], [540, 370, 90])
    asked: dict[str, Any] = {"bounds": (0, 100), "mechanism": "mixed", "complete": complete, "entropy": seeded(1)}
    for assume in ("unrelated", 0.3):
        answer = eps.mean(values, grants, assume=assume, **asked)
        assert "which the levels' own answers contradict" in str(answer)
    assert "contradict" not in str(eps.mean(values, grants, assume="nothing", **asked))
    for assume in ("unrelated", 0.3):
        assert "contradict" not in str(eps.mean(np.full(1000, 50.0), grants, assume=assume, **asked))


@pytest.mark.parametrize(
    ("name", "asked"),
    [("count", {}), ("count", {"of": "rows"}), ("sum", {"column": "wage"}), ("mean", {"column": "wage", "spread": 15})],
)
@pytest.mark.parametrize("by", [False, True])
def test_so_does_one_about_a_part_of_the_rows(name: str, asked: dict[str, Any], by: bool) -> None:
    """Open people have higher wages, and more of them are old; of the kind "a" nothing is related."""
    place = np.arange(4000)
    is_open = place % 2 == 0
    kind, old = np.where(place % 4 < 2, "a", "b"), np.where(is_open, place // 4 % 10 < 9, place // 4 % 10 < 1)
    rows = {
        "id": place, "kind": kind, "age": np.where(np.where(kind == "b", old, place % 3 == 0), 70, 20),
        "wage": np.where(kind == "a", 30.0, np.where(is_open, 90.0, 0.0)), "epsilon": np.where(is_open, 60.0, 30.0),
    }  # fmt: skip
    told: dict[str, Any] = {"person": "id", "preferences": eps.Preferences.from_column("epsilon"), "ceiling": 100}
    rest: dict[str, Any] = {"bounds": (0, 100)} if name != "count" else {}
    rest |= {"mechanism": "mixed", "share": 0.1, "entropy": seeded(2), **asked}
    with eps.Dataset(pa.table(rows), ledger="memory", **told) as people:
        ask = getattr(people, name)
        for assume in ("unrelated", 0.3):
            rest["assume"] = assume
            if by:
                assert "contradict" in ask(where="age > 60", by={"kind": ["a", "b"]}, **rest).assumption
                assert "contradict" not in ask(where="age > 60", by={"kind": ["a"]}, **rest).assumption
            else:
                assert "contradict" in ask(where="age > 60 AND kind = 'b'", **rest).assumption
                assert "contradict" not in ask(where="age > 60 AND kind = 'a'", **rest).assumption


@pytest.mark.parametrize(
    "setting",
    [
        Setting("mean", "three", 900, "two points", fraction=0.6, relation=1, mechanism="mixed"),
        Setting("mean", "two", 600, "skewed", groups=(0.5, 0.2), rows=3, assume=0.0, mechanism="mixed"),
        Setting("count", "three", 900, groups=(0.4, 0.1), relation=-1, mechanism="mixed"),
        Setting("sum", "public", 900, "two points", where=True, fraction=0.5, relation=1, mechanism="mixed"),
    ],
    ids=lambda setting: setting.name,
)
def test_levels_that_differ_as_far_as_is_assumed_are_seldom_called_a_contradiction(setting: Setting) -> None:
    """A chance of 6% at most for all numbers of an answer: more than 9 of 50 have a chance of 1e-3."""
    asked, random, entropy = Asked.of(setting, 5), np.random.default_rng(5), seeded(5)
    told = [
        make_release(asked.mechanism, asked.question, asked.people_of(random)[0], entropy, "").assumption
        for _ in range(50)
    ]
    assert sum("contradict" in one for one in told) <= 9


def test_a_relation_knows_of_people_that_no_answer_holds() -> None:
    """A fifth of the roster has nothing left: its mean may be anything, and everyone's lies as much further off."""
    rows = rows_of([56.0, 50.0, 44.0])
    whole, part = Relation.of(rows), Relation.of(rows, {"spread": 10.0, "left_out": 300, "width": 100.0})
    assert part.distance == pytest.approx(80.0)
    assert part.distances[0][1] == pytest.approx(whole.distances[0][1] + 20)
    # Levels as far from each other lie nearer to everyone, if the others lie far on the same side.
    assert part.least == pytest.approx(whole.least / 1.25)
    assert "300 people have nothing left to spend, and any mean." in part.sentence
    assert Relation.of(rows, part.to_dict()) == part
    assert part.bought.distance == part.distance


def test_bars_survive_json() -> None:
    for asked in ({"assume": 0.3}, {"assume": "nothing"}, {"mechanism": "exponential", "assume": 0.3}):
        answer = eps.count([1, 0] * 500, LEVELS, **asked)  # type: ignore[arg-type]
        again = eps.Release.from_dict(json.loads(json.dumps(answer.to_dict())))
        assert again.interval() == answer.interval()
        assert (again.error, again.assumption) == (answer.error, answer.assumption)
