"""Mixed means of a private number of rows: exact losses by form and scope, errors, intervals, what levels tell."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import epsilons as eps
from epsilons.accuracy.intervals import LevelsRatioBar, chance_within
from epsilons.auditing import ABSENT
from epsilons.guarantee import NANO
from epsilons.mechanisms.base import find_error
from epsilons.mechanisms.mixed import MixedRatio
from epsilons.preferences import Levels, roster_of
from epsilons.release import make_release
from epsilons.statistics.additive import Laplace
from epsilons.statistics.base import Question, Scope
from epsilons.statistics.by_level import Laws
from epsilons.statistics.total import Mean
from epsilons.summaries.arrays import ArrayPeople
from epsilons.testing import seeded
from support.honesty import Asked, Setting, measure
from support.rows import RowPeople, all_rows, worst_ratio
from support.small_worlds import NEIGHBORS, audit_exactly

BOUNDS = (-1.0, 2.0)
TWO = ("a", "b")
FORMS = {
    "split": lambda scope: Mean(BOUNDS, scope, Fraction(5, 8), 0.5, "split"),
    "pair": lambda scope: Mean(BOUNDS, scope, Fraction(1), 0.5, "pair"),
    "together": lambda scope: Mean(BOUNDS, scope, Fraction(1), 0.5, "together"),
}


# Exact losses --------------------------------------------------------------------------------------------------------


def exact_ratio(mechanism: MixedRatio, statistic: Mean, neighbors: str, epsilons: tuple[float, ...]) -> Fraction:
    """The largest loss of person 0 over what they are charged, over all rows that they can have, in fractions.

    The loss of discrete Laplace noises is the sum of distances over scales. Others have two rows.
    """
    question, roster = Question(statistic, neighbors), roster_of(list(epsilons))
    assert statistic.scope is not None
    others = (((0, BOUNDS[1]), (0, BOUNDS[0])),) * (len(epsilons) - 1)
    mine = all_rows(statistic.scope.rows, statistic.scope.cells, BOUNDS)
    released = [mechanism.noisy_sums(question, RowPeople((rows, *others), roster)) for rows in mine]
    sums = np.array([one.mixture[0][1] for one in released], object)
    inverses = [law.inverse for law in released[0].laws]  # type: ignore[attr-defined]
    unit = math.lcm(*(inverse.denominator for inverse in inverses))
    steps = sums * np.array([int(inverse * unit) for inverse in inverses], object)
    first = steps[:1] if neighbors == "absent" else steps  # nothing is what comes first
    most = max(int(np.abs(steps - one).sum(axis=1).max()) for one in first)
    charge = mechanism.charge(question, roster.levels)[int(roster.codes[0])]
    return Fraction(most, unit) / Fraction(charge or 0, NANO)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("neighbors", NEIGHBORS)
@pytest.mark.parametrize(
    "scope", [Scope(1), Scope(2), Scope(3), Scope(1, TWO), Scope(2, TWO), Scope(2, ("a", "b", "c"))]
)
def test_nobody_loses_more_than_they_are_charged(form: str, neighbors: str, scope: Scope) -> None:
    """And somebody all of it, but where who is replaced moves a sum from end to end and keeps the number of rows."""
    for epsilons in ((1.0, 0.4, 0.4), (0.4, 0.4, math.inf)):
        worst = exact_ratio(MixedRatio(), FORMS[form](scope), neighbors, epsilons)
        assert worst <= 1
        if neighbors == "absent" or scope.cells > 1 or form != "split":
            assert worst == 1


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("neighbors", NEIGHBORS)
def test_the_law_of_all_that_is_released_says_the_same(form: str, neighbors: str) -> None:
    statistic = FORMS[form](Scope(2))
    worst = worst_ratio(MixedRatio(), statistic, neighbors, (0.4, 0.4, math.inf), BOUNDS)
    assert worst == pytest.approx(
        float(exact_ratio(MixedRatio(), statistic, neighbors, (0.4, 0.4, math.inf))), abs=1e-6
    )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("neighbors", NEIGHBORS)
def test_nor_by_having_a_value_or_none(form: str, neighbors: str) -> None:
    """All data of a few people, each of whom has a value or none."""
    question = Question(FORMS[form](Scope()), neighbors)
    assert audit_exactly(MixedRatio(), question, (0.5, 0.5, math.inf), (*BOUNDS, 0.5, ABSENT)).holds


class OneRow(Scope):
    """The planted bug: noise for one row in one group, whatever people have."""

    def reach(self, low: int, high: int) -> dict[str, int]:
        return Scope().reach(low, high)

    def pair_reach(self, step: int) -> dict[str, int]:
        return Scope().pair_reach(step)


class HalfNoise(MixedRatio):
    """The planted bug: noise of half the scale."""

    def laws(self, question: Question, levels: Levels) -> Laws:
        return [[Laplace(2 * law.inverse) for law in own] for own in super().laws(question, levels)]  # type: ignore[union-attr]


@pytest.mark.parametrize("form", FORMS)
def test_noise_for_one_row_or_of_half_the_scale_is_caught(form: str) -> None:
    for neighbors in NEIGHBORS:
        assert exact_ratio(MixedRatio(), FORMS[form](OneRow(2)), neighbors, (0.5, math.inf)) > 1.1
        assert exact_ratio(HalfNoise(), FORMS[form](Scope(2)), neighbors, (0.5, math.inf)) > 1.1


class MostOpen(MixedRatio):
    """The planted bug: every level has the noise of the most open one."""

    def laws(self, question: Question, levels: Levels) -> Laws:
        return [super().laws(question, levels)[-1]] * len(levels.finite)


def test_a_level_that_has_the_noise_of_another_is_caught() -> None:
    assert exact_ratio(MostOpen(), FORMS["pair"](Scope()), "absent", (0.2, 0.5)) == Fraction(5, 2)


def test_draws_have_the_noise_that_the_law_says() -> None:
    """A level's sums, as details tell them, vary as the laws do: 400 draws, each deviation within a quarter."""
    statistic, roster = Mean.over(Scope(), BOUNDS, "absent", None), roster_of(np.repeat([0.3, 2.0, math.inf], 20))
    people, question, entropy = ArrayPeople.of(np.resize([0.0, 1.0], 60), roster), Question(statistic), seeded(4)
    told = [MixedRatio().draw(question, people, entropy).details["levels"] for _ in range(400)]
    for level in range(3):
        for name in ("sum", "rows"):
            seen = np.std([rows[level][name] for rows in told])
            assert seen == pytest.approx(told[0][level][f"{name}_noise"], rel=0.25)


# Errors and intervals ------------------------------------------------------------------------------------------------

SETTINGS = [
    Setting("mean", "public", 2000, "narrow", relation=-1, fraction=0.3, mechanism="mixed"),
    Setting("mean", "two", 2000, "two points", rows=3, where=True, fraction=0.1, assume=0.0, mechanism="mixed"),
    Setting("mean", "three", 5000, "skewed", groups=(0.5, 0.1, 0.02), relation=1, mechanism="mixed"),
    Setting("mean", "two", 1000, "normal", fraction=0.5, assume=0.0, mechanism="mixed", more={"delta": 1e-6}),
    Setting("mean", "three", 1500, "two points", fraction=0.4, relation=1, assume="nothing", mechanism="mixed"),
]


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_intervals_hold_and_errors_are_as_stated(setting: Setting) -> None:
    """Of 40 intervals of 95% fewer than 31 hold with a chance of 1e-4; errors are no more than 1.4 times the stated."""
    seen = measure(setting, 40, 7)
    assert seen.held.sum() >= 31, seen.summary
    assert seen.too_small(0.5) <= 1.4, seen.summary


def test_intervals_of_too_little_noise_are_caught() -> None:
    setting = Setting("mean", "strict", 2000, fraction=0.5, assume=0.0, mechanism="mixed", more={"spread": 15})
    asked = Asked.of(setting, 7)

    def forget(release: eps.Release) -> eps.Release:
        assert release.models is not None
        return replace(release, models=tuple(replace(bar, parts=(0.2,), small=0.0) for bar in release.models))  # type: ignore[type-var,call-arg]

    assert measure(setting, 40, 7, asked).held.sum() >= 31
    assert measure(setting, 40, 7, asked, forget).held.sum() < 31


def test_where_nobody_may_count_no_error_is_stated_and_anything_is_possible() -> None:
    """Also where some levels are empty: a mean by level would be anything."""
    values = np.full(300, np.nan)
    answer = eps.mean(values, [0.1, 0.5, 1.0] * 100, bounds=(0, 10), mechanism="mixed", entropy=seeded(3))
    assert answer.error is None
    assert answer.interval() == (0, 10)
    values[2::3] = 7.0  # only the most open have any
    grants = [0.5, 2.0, 8.0] * 100
    answer = eps.mean(values, grants, bounds=(0, 10), mechanism="mixed", assume="unrelated", entropy=seeded(3))
    low, high = answer.interval()
    assert low <= 7 <= high
    assert answer.value == pytest.approx(7, abs=1.5)


def test_levels_of_equal_noises_have_an_interval_between_those_of_one_noise_and_of_normal_noise() -> None:
    """At few parts exact; with many small ones as good as exact."""
    bar = LevelsRatioBar((0.0, 100.0), 0.0, 1000.0, 900.0, 3.0, 0.0, 0.0, 0.0, parts=(0.5,) * 4)
    few = bar.interval(50.0, 0.95, False)
    many = replace(bar, parts=(0.5, 0.5), small=math.sqrt(0.5)).interval(50.0, 0.95, False)
    assert few == pytest.approx(many, abs=0.05)
    reach = 1000.0 * (few[1] - 50.0)
    scales = tuple(0.5 * scale for scale in (900.0, 3.0 * (few[1] - 50.0)) for _ in range(4))
    assert chance_within(scales, 0.0, reach) == pytest.approx(0.95, abs=1e-3)


# On tables and arrays ------------------------------------------------------------------------------------------------


def test_plan_and_answer_agree_and_name_the_same_charges() -> None:
    values, grants = [3.0, None, 5.0, 1.0] * 100, [0.4, 0.4, 0.9, 0.9] * 100
    row = eps.plan("mean", grants, bounds=(0, 10), mechanism="mixed")["mixed"]
    answer = eps.mean(values, grants, bounds=(0, 10), mechanism="mixed", entropy=seeded(2))
    assert answer.charges == row.charges == {0.4: 0.4, 0.9: 0.9}
    assert row.error is not None
    assert answer.error == pytest.approx(row.error, rel=0.6)
    assert eps.Release.from_dict(answer.to_dict()) == answer
    assert {"mixed", "weighted"} <= {one.mechanism for one in eps.plan("mean", grants, bounds=(0, 10)).rows}


def test_one_level_is_as_good_as_one_epsilon_for_all() -> None:
    question = Question(Mean.over(Scope(), (0, 10), "absent", None), "absent")
    levels = roster_of([0.5] * 200).levels
    from epsilons.mechanisms.minimum import Minimum

    alone = find_error(Minimum(), question, levels)
    assert find_error(MixedRatio(), question, levels) == pytest.approx(alone, rel=1e-9)


def test_the_noise_of_many_levels_is_told_before_and_after() -> None:
    """More levels, more noise: what is predicted of 200 people in 20 levels is what 300 answers show."""
    grants = np.linspace(0.3, 0.6, 20).repeat(60)
    roster, random, entropy = roster_of(grants), np.random.default_rng(2), seeded(2)
    statistic = Mean.over(Scope(), (0.0, 10.0), "absent", 4.0)
    question = Question(statistic, "absent", 0.0, 2.0, location=4.0)
    found = []
    for _ in range(300):
        values = np.where(random.random(len(grants)) < 0.5, np.clip(random.normal(4, 2, len(grants)), 0, 10), np.nan)
        people = ArrayPeople.of(values, roster)
        answer = MixedRatio().draw(question, people, entropy)
        found.append(answer.value - float(np.nanmean(values)))
    predicted = find_error(MixedRatio(), question, roster.levels)
    assert predicted == pytest.approx(math.sqrt(np.mean(np.square(found))), rel=0.25)


def test_a_table_answers_by_rows_groups_and_conditions() -> None:
    ids = [person for person in range(60) for _ in range(2)]
    table = pa.table(
        {"id": ids, "kind": ["a", "b"] * 60, "wage": [4.0, 8.0] * 60, "eps": [60.0, 60.0, 90.0, 90.0] * 30}
    )
    facts: dict[str, Any] = {
        "person": "id",
        "preferences": eps.Preferences.from_column("eps"),
        "rows_per_person": 2,
        "ceiling": 100,
    }
    asked: dict[str, Any] = {"bounds": (0, 10), "mechanism": "mixed", "share": 0.1, "entropy": seeded(3)}
    with eps.Dataset(table, ledger="memory", **facts) as people:
        kinds = people.mean("wage", by={"kind": ["a", "b", "c"]}, **asked)
        assert kinds.mechanism == "mixed"
        assert {key: round(number) for key, number in kinds.value.items() if key != "c"} == {"a": 4, "b": 8}
        assert kinds.error["c"] is None
        assert kinds.interval()["c"] == (0, 10)
        rows = [[level["rows"] for level in group] for group in kinds.details["levels"]]
        assert np.allclose(rows, [[30, 30], [30, 30], [0, 0]], atol=6)
        some = people.mean("wage", where="kind = 'b'", **asked)
        low, high = some.interval()
        assert low <= 8 <= high
        assert some.charges == {60.0: 6.0, 90.0: 9.0}
        every = people.mean("wage", **asked)
        assert every.value == pytest.approx(6, abs=1)
        assert eps.Release.from_dict(every.to_dict()) == every


def test_releases_without_a_ledger_keep_their_kind_of_error_bar() -> None:
    roster = roster_of([0.5, 1.0] * 50)
    question = Question(Mean.over(Scope(), (0, 10), "absent", None), "absent")
    release = make_release(MixedRatio(), question, ArrayPeople.of([5.0] * 100, roster), seeded(1), "")
    assert isinstance((release.models or ())[0], LevelsRatioBar)
    assert round(roster.levels.grants[0] or 0) == NANO // 2
