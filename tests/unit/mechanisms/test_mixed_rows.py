"""Mixed counts and sums where the number of rows is private: exact losses, errors and intervals, groups and rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import epsilons as eps
from epsilons.accuracy.intervals import ErrorModel
from epsilons.accuracy.mixed import MixedMeans
from epsilons.auditing import ABSENT
from epsilons.mechanisms.base import find_error
from epsilons.mechanisms.mixed import MixedMean
from epsilons.preferences import Levels, roster_of
from epsilons.statistics.additive import Additive
from epsilons.statistics.base import Question, Scope
from epsilons.statistics.count import Count
from epsilons.statistics.total import Sum
from epsilons.testing import seeded
from support.honesty import Asked, Setting, measure
from support.rows import worst_ratio
from support.small_worlds import NEIGHBORS, audit_exactly

BOUNDS = (-1.0, 2.0)
TWO = ("a", "b")


def statistics(scope: Scope) -> dict[str, Additive]:
    return {"rows": Count(scope), "people": Count(scope, "people"), "sum": Sum(BOUNDS, scope)}


# Exact losses --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["rows", "people", "sum"])
@pytest.mark.parametrize("neighbors", NEIGHBORS)
@pytest.mark.parametrize(
    ("scope", "epsilons"),
    [
        (Scope(2), (1.0, 0.4, math.inf)),
        (Scope(2), (0.4, 0.4, 1.0)),
        (Scope(1, TWO), (0.5, math.inf)),
        (Scope(2, TWO), (0.5, math.inf)),
    ],
)
def test_nobody_loses_more_than_they_are_charged(
    kind: str, neighbors: str, scope: Scope, epsilons: tuple[float, ...]
) -> None:
    """And somebody all of it: a level's answer has no more noise than it needs."""
    assert worst_ratio(MixedMean(), statistics(scope)[kind], neighbors, epsilons, BOUNDS) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("neighbors", NEIGHBORS)
@pytest.mark.parametrize("statistic", [Count(Scope()), Sum(BOUNDS, Scope())])
def test_nor_by_counting_or_not(statistic: Additive, neighbors: str) -> None:
    """All data of three people, each of whom has a value or none."""
    verdict = audit_exactly(MixedMean(), Question(statistic, neighbors), (0.2, 0.5, 0.5), (1.0, *BOUNDS, ABSENT))
    assert verdict.holds


class OneRow(Scope):
    """The planted bug: noise for one row in one group, whatever people have."""

    def reach(self, low: int, high: int) -> dict[str, int]:
        return Scope().reach(low, high)

    def people_reach(self) -> dict[str, int]:
        return Scope().people_reach()


@pytest.mark.parametrize(
    ("kind", "scope", "neighbors"),
    [
        ("rows", OneRow(2), "absent"),
        ("sum", OneRow(2), "absent"),
        ("people", OneRow(2, TWO), "absent"),
        ("rows", OneRow(1, TWO), "replace"),
        ("sum", OneRow(1, TWO), "replace"),
    ],
)
def test_noise_for_one_row_is_caught(kind: str, scope: Scope, neighbors: str) -> None:
    assert worst_ratio(MixedMean(), statistics(scope)[kind], neighbors, (0.5, math.inf), BOUNDS) > 1.3


# Errors and intervals ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Tallied:
    """People of whom only the sums per level and group are known."""

    levels: Levels
    sums: NDArray[np.int64]

    def tally(self, statistic: Additive) -> list[NDArray[np.int64]]:
        return [self.sums]


#: So little that noise is what errors are mostly made of.
GRANTS = np.where(np.arange(300) % 3 == 0, 0.05, 0.01)


def draw_world(statistic: Additive, random: np.random.Generator) -> tuple[Tallied, list[float]]:
    """Fresh people with up to three rows in two groups, the second a rare one, and the truth of each group."""
    roster, ends = roster_of(GRANTS), (-(2**29), 2**30) if isinstance(statistic, Sum) else (1, 1)
    groups = random.choice(3, size=(300, 3), p=(0.4, 0.05, 0.55))  # the last is none that is asked for
    there, steps = np.arange(3) < random.integers(4, size=(300, 1)), random.choice(ends, size=(300, 3))
    each = np.stack([(steps * (there & (groups == group))).sum(axis=1) for group in range(2)], axis=1)
    if isinstance(statistic, Count) and statistic.of == "people":
        each = np.minimum(each, 1)
    sums = np.array([each[roster.codes == code].sum(axis=0) for code in range(2)])
    return Tallied(roster.levels, sums), (sums.sum(axis=0) * statistic.units[0]).tolist()


class QuietNoise(MixedMean):
    """The planted bug: the error of one row, where people have three."""

    def errors(self, question: Question, levels: Levels) -> MixedMeans:
        found = super().errors(question, levels)
        return replace(found, scales=found.scales / 3)


def watch(mechanism: MixedMean, kind: str, assume: float) -> dict[str, float]:
    """Of 60 answers in two groups: how often intervals hold, how large errors are, stated and planned."""
    statistic, random, entropy = statistics(Scope(3, TWO))[kind], np.random.default_rng(5), seeded(5)
    question, held, squares, stated, planned = Question(statistic, "absent", assume), 0, [], [], 0.0
    for _ in range(60):
        people, truths = draw_world(statistic, random)
        answer: Any = mechanism.draw(question, people, entropy)  # type: ignore[arg-type]
        assert list(answer.value) == list(TWO)
        bars = mechanism.error_bars(question, people.levels, answer)
        assert bars is not None
        for bar, number, truth in zip(bars, answer.numbers, truths, strict=True):
            low, high = bar.interval(number, 0.95, False)
            held += low - 1e-9 <= truth <= high + 1e-9
            squares.append((number - truth) ** 2)
        stated += mechanism.stated_error(question, people.levels, answer).values()
        planned = find_error(mechanism, question, people.levels) or math.nan
    return {"held": held, "real": math.sqrt(np.mean(squares)), "stated": float(np.mean(stated)), "planned": planned}


@pytest.mark.parametrize("kind", ["rows", "people", "sum"])
@pytest.mark.parametrize("assume", [0.0, math.inf])
def test_intervals_hold_and_errors_are_as_stated(kind: str, assume: float) -> None:
    """Of 120 intervals of 95% fewer than 100 hold with a chance of 1e-6. Errors are those of the guesses or less."""
    found = watch(MixedMean(), kind, assume)
    assert found["held"] >= 100
    assert found["real"] <= 1.1 * found["stated"]
    assert found["real"] <= 1.1 * found["planned"]


@pytest.mark.parametrize("kind", ["rows", "people", "sum"])
def test_intervals_of_too_little_noise_are_caught(kind: str) -> None:
    assert watch(QuietNoise(), kind, 0.0)["held"] < 100


@pytest.mark.parametrize("grants", [(3.2, 3.2), (3.2, 2.8)])
def test_intervals_hold_where_noise_is_mostly_none_at_all(grants: tuple[float, float]) -> None:
    """Of 400 intervals of 95%, of which 2 in 1,000 fail; without the grid one in fifteen and more."""
    roster, statistic, random, entropy = (
        roster_of(np.resize(grants, 60)),
        Count(Scope()),
        np.random.default_rng(1),
        seeded(3),
    )
    question, mechanism, held, bare = Question(statistic, "absent"), MixedMean(), 0, 0
    for _ in range(400):
        sums = np.array([[random.binomial(size, 0.3)] for size in roster.levels.sizes])
        answer = mechanism.draw(question, Tallied(roster.levels, sums), entropy)  # type: ignore[arg-type]
        (bar,) = mechanism.error_bars(question, roster.levels, answer) or ()
        assert isinstance(bar, ErrorModel)
        for kept, one in ((True, bar), (False, replace(bar, grid=0.0))):
            low, high = one.interval(answer.value, 0.95, False)
            inside = low - 1e-9 <= sums.sum() <= high + 1e-9
            held, bare = held + (kept and inside), bare + (not kept and inside)
    assert held >= 380
    assert bare < 376


# On tables and arrays ------------------------------------------------------------------------------------------------


def test_a_table_answers_by_rows_and_groups() -> None:
    """At an epsilon so large that answers are exact but for who stands at which level, who are alike here."""
    ids = [person for person in range(40) for _ in range(2)]
    table = pa.table(
        {"id": ids, "kind": ["a", "b"] * 40, "wage": [4.0, 8.0] * 40, "eps": [60.0, 60.0, 90.0, 90.0] * 20}
    )
    facts: dict[str, Any] = {
        "person": "id",
        "preferences": eps.Preferences.from_column("eps"),
        "rows_per_person": 2,
        "ceiling": 100,
    }
    with eps.Dataset(table, ledger="memory", **facts) as people:
        mixed: dict[str, Any] = {"mechanism": "mixed", "share": 0.2, "entropy": seeded(3)}
        kinds = people.count(by={"kind": ["a", "b", "c"]}, of="rows", **mixed)
        assert kinds.mechanism == "mixed"
        assert {key: round(number) for key, number in kinds.value.items()} == {"a": 40, "b": 40, "c": 0}
        assert set(kinds.error) == set(kinds.interval()) == {"a", "b", "c"}
        assert [[round(level["answer"], 1) for level in group] for group in kinds.details["levels"]] == [[1, 1]] * 2 + [
            [0, 0]
        ]
        wages = people.sum("wage", bounds=(0, 10), where="kind = 'b'", **mixed)
        assert wages.value == pytest.approx(320, abs=15)
        low, high = wages.interval()
        assert low <= 320 <= high
        assert "relation" not in wages.details  # which is about everyone, each with one value
        assert eps.Release.from_dict(kinds.to_dict()) == kinds


def test_missing_values_are_left_out_of_counts_and_sums() -> None:
    values = [3.0, None, 5.0, math.nan] * 25
    answer = eps.sum(values, [20.0, 20.0, 30.0, 30.0] * 25, bounds=(0, 10), mechanism="mixed", entropy=seeded(2))
    low, high = answer.interval()
    assert low <= 200 <= high
    assert answer.error < 100
    with pytest.raises(eps.PlanError, match="public number of values"):
        eps.median(values, 1.0, bounds=(0, 10), mechanism="mixed")


def test_plan_and_answer_agree() -> None:
    values, grants = [3.0, None, 5.0, 1.0] * 25, [0.2, 0.2, 0.3, 0.3] * 25
    row = eps.plan("sum", grants, bounds=(0, 10), mechanism="mixed")["mixed"]
    answer = eps.sum(values, grants, bounds=(0, 10), mechanism="mixed", entropy=seeded(2))
    assert answer.charges == row.charges == {0.2: 0.2, 0.3: 0.3}
    assert row.error is not None
    assert answer.error == pytest.approx(row.error, rel=0.5)


def test_an_interval_of_ones_allows_for_the_share_from_which_related_levels_led_to_the_answer() -> None:
    """Open people are as far below everyone's share as is assumed, so that the answer shows fewer, who spread less."""
    setting = Setting("count", "paper", 2841, relation=-1, mechanism="mixed", fraction=0.1, where=True, rows=3)
    asked = Asked.of(setting, 3)
    assert measure(setting, 60, 3, asked).held.sum() >= 53

    def forget(release: eps.Release) -> eps.Release:
        """The planted bug: the spread of the share that is shown."""
        (bar,) = release.models or ()
        errors = MixedMean().errors(asked.question, asked.roster.levels)
        moments = errors.shown(release.value)
        _, _, bound = errors.off(replace(moments, variance=moments.most))
        return replace(release, models=(replace(bar, bound=bound),))  # type: ignore[type-var,call-arg]

    assert measure(setting, 60, 3, asked, forget).held.sum() < 53
