"""Error bars of a noisy sum over a noisy number of rows: every mean that the two do not contradict."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from epsilons.accuracy.intervals import RatioBar, chance_within, half_width
from epsilons.mechanisms.base import create
from epsilons.preferences import Levels, roster_of
from epsilons.release.answer import make_release
from epsilons.statistics.base import Question, Scope
from epsilons.statistics.total import Mean
from epsilons.summaries.arrays import ArrayPeople
from epsilons.testing import seeded
from support.small_worlds import at_max

#: Sum of (x - 50) is 200 over 20 rows: a mean of 60.
BAR = RatioBar((0.0, 100.0), 200.0, 20.0, sum_scale=5.0, rows_scale=0.2, luck=0.0, population=0.0, grid=0.0)


def possible(bar: RatioBar, mean: float, confidence: float) -> bool:
    """By the definition: |S - (theta - c) N| is no larger than such noise would be."""
    away = mean - 50
    return abs(bar.sum - away * bar.rows) <= half_width(
        (bar.sum_scale, abs(away) * bar.rows_scale), bar.luck, confidence
    )


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("bar", [BAR, replace(BAR, luck=30.0), replace(BAR, rows=2.0), replace(BAR, sum=-900.0)])
def test_an_interval_holds_what_is_not_contradicted(bar: RatioBar, confidence: float) -> None:
    """Against a look at means all over the bounds, closely where the interval ends."""
    low, high = bar.interval(50 + bar.sum / max(bar.rows, 1.0), confidence, population=False)
    close = [end + away for end in (low, high) for away in np.linspace(-1, 1, 9)]
    grid = sorted({mean for mean in (*np.linspace(0, 100, 41), *close) if 0 <= mean <= 100})
    inside = [mean for mean in grid if possible(bar, mean, confidence)]
    if inside:
        assert low - 0.3 <= min(inside) <= low + 0.3
        assert high - 0.3 <= max(inside) <= high + 0.3


def test_it_is_within_the_bounds_and_all_of_them_where_nothing_is_known() -> None:
    empty = replace(BAR, sum=3.0, rows=-0.4, sum_scale=50.0, rows_scale=3.0)
    assert empty.interval(100.0, 0.95, population=False) == (0.0, 100.0)
    for sum_ in (-1e9, 0.0, 1e9):
        low, high = replace(BAR, sum=sum_).interval(sum_, 0.95, population=False)
        assert 0 <= low <= high <= 100


def test_more_confidence_more_noise_and_the_population_widen_it() -> None:
    def width(bar: RatioBar, confidence: float = 0.95, population: bool = False) -> float:
        low, high = bar.interval(60.0, confidence, population)
        return high - low

    assert width(BAR) < width(BAR, 0.99)
    assert width(BAR) < width(replace(BAR, sum_scale=10.0))
    assert width(BAR) < width(replace(BAR, rows_scale=1.0))
    assert width(BAR) < width(replace(BAR, luck=50.0))
    assert width(BAR) < width(replace(BAR, population=50.0), population=True)
    assert width(BAR) == width(replace(BAR, population=50.0))


def test_it_survives_json() -> None:
    assert RatioBar.from_dict(json.loads(json.dumps(BAR.to_dict()))) == BAR


@pytest.mark.parametrize(("laplace", "normal"), [((1.0,), 0.0), ((1.0, 2.0), 0.0), ((1.0, 0.1), 3.0), ((), 2.0)])
def test_the_chance_within_is_the_inverse_of_the_width(laplace: tuple[float, ...], normal: float) -> None:
    for confidence in (0.5, 0.95, 0.999):
        assert chance_within(laplace, normal, half_width(laplace, normal, confidence)) == pytest.approx(
            confidence, abs=1e-6
        )
    assert chance_within(laplace, normal, 1e6) == pytest.approx(1, abs=1e-9)
    assert chance_within((), 0.0, 0.0) == 1.0


def bars(name: str, epsilons: list[float], assume: str = "unrelated", left_out: int = 0) -> tuple[RatioBar, ...] | None:
    levels = replace(roster_of(epsilons).levels, left_out=left_out)
    question = Question(Mean.over(Scope(), (0.0, 1.0), "absent", None), assume=assume)
    mechanism = at_max(name, question.statistic)
    answer = mechanism.draw(question, _People(epsilons, levels), seeded(1))  # type: ignore[arg-type]
    assert answer.sums is not None
    found = mechanism.error_bars(question, levels, answer)
    assert found is None or all(isinstance(bar, RatioBar) for bar in found)
    return found  # type: ignore[return-value]


class _People(ArrayPeople):
    def __init__(self, epsilons: list[float], levels: Levels) -> None:
        super().__init__(np.full(len(epsilons), 0.7), roster_of(epsilons))
        object.__setattr__(self, "_levels", levels)

    @property
    def levels(self) -> Levels:
        return self._levels  # type: ignore[attr-defined, no-any-return]


def test_with_nothing_assumed_only_equal_weights_have_a_bar() -> None:
    """Who counts with which weight could be anybody's guess; where all weigh the same it does not matter."""
    assert bars("minimum", [0.5, 1.0], "nothing") is not None
    for name in ("weighted", "stretching", "sample", "threshold"):
        assert bars(name, [0.5, 1.0], "nothing") is None
        assert bars(name, [0.5, 1.0]) is not None
    assert bars("minimum", [0.5, 1.0], "nothing", left_out=3) is None


def test_people_with_nothing_left_make_a_bar_wider() -> None:
    (alone,) = bars("minimum", [1.0] * 50) or ()
    (among,) = bars("minimum", [1.0] * 50, left_out=50) or ()
    assert alone.luck == 0.0
    assert among.luck > 0


def test_a_release_of_groups_has_a_bar_for_each() -> None:
    people = ArrayPeople.of([0.2, 0.9, math.nan], roster_of([1.0, 1.0, 2.0]))
    statistic = Mean.over(Scope(), (0.0, 1.0), "absent", None)
    release = make_release(create("minimum", statistic), Question(statistic), people, seeded(1), "")
    low, high = release.interval()
    assert 0 <= low <= high <= 1
    back = type(release).from_dict(json.loads(json.dumps(release.to_dict())))
    assert back.interval() == (low, high)
