"""Error bars of a noisy sum over a noisy number of rows: every mean that the two do not contradict."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from epsilons.accuracy.intervals import RatioBar, chance_within, half_width
from epsilons.mechanisms.base import create, find_error
from epsilons.preferences import Levels, roster_of
from epsilons.release.answer import Release, make_release, plain_bar, read_bar
from epsilons.statistics.base import Answer, Question, Scope
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
    assert read_bar(json.loads(json.dumps(plain_bar(BAR)))) == BAR


@pytest.mark.parametrize(("laplace", "normal"), [((1.0,), 0.0), ((1.0, 2.0), 0.0), ((1.0, 0.1), 3.0), ((), 2.0)])
def test_the_chance_within_is_the_inverse_of_the_width(laplace: tuple[float, ...], normal: float) -> None:
    for confidence in (0.5, 0.95, 0.999):
        assert chance_within(laplace, normal, half_width(laplace, normal, confidence)) == pytest.approx(
            confidence, abs=1e-6
        )
    assert chance_within(laplace, normal, 1e6) == pytest.approx(1, abs=1e-9)
    assert chance_within((), 0.0, 0.0) == 1.0


def bars(name: str, epsilons: list[float], assume: Any = "unrelated", left_out: int = 0) -> tuple[RatioBar, ...] | None:
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


def test_with_nothing_assumed_weights_that_differ_make_bars_as_wide_as_they_can_make_them() -> None:
    """Where somebody may not count at all, all of the bounds; where all weigh the same, nothing is added."""
    (minimum,) = bars("minimum", [0.5] * 50 + [1.0] * 50, "nothing") or ()
    assert minimum.alike == 1
    (weighted,) = bars("weighted", [0.5] * 50 + [1.0] * 50, "nothing") or ()
    assert 0.5 <= weighted.alike <= 1
    for name in ("sample", "threshold"):
        (bar,) = bars(name, [0.5, 1.0], "nothing") or ()
        assert bar.interval(0.5, 0.95, population=False) == (0.0, 1.0)
    (left,) = bars("minimum", [0.5, 1.0], "nothing", left_out=3) or ()
    assert left.interval(0.5, 0.95, population=False) == (0.0, 1.0)


def test_what_weights_that_differ_can_do_is_what_two_kinds_of_rows_can_do() -> None:
    """Against rows of two weights, all of the one at a bound and all of the other at the other: no mean is further off,
    and some mean is as far off as (b - a)(1 - sqrt(k))/(1 + sqrt(k))."""
    bar = replace(BAR, alike=0.25, sum_scale=1e-9, rows_scale=1e-9)
    worst = 0.0
    for heavy in np.linspace(0.02, 0.98, 25):
        for high in (True, False):  # the heavy rows at the upper bound, or at the lower one
            weighted = 4 * heavy / (4 * heavy + 1 - heavy)
            seen, true = (100 * (part if high else 1 - part) for part in (weighted, heavy))
            one = replace(bar, sum=20 * (seen - 50), rows=20.0)
            low, last = one.interval(seen, 0.95, population=False)
            assert low - 1e-3 <= true <= last + 1e-3
            assert min(abs(true - low), abs(true - last)) < 1e-3
            worst = max(worst, abs(seen - true))
    assert worst == pytest.approx(100 * (1 - 0.5) / (1 + 0.5), abs=0.5)


def test_levels_that_may_differ_add_a_bound() -> None:
    (alone,) = bars("weighted", [0.1] * 50 + [1.0] * 50) or ()
    (related,) = bars("weighted", [0.1] * 50 + [1.0] * 50, 0.3) or ()
    assert alone.bound == 0
    assert related.bound > 0 or related.luck == 0  # equal weights have nothing to differ in
    wide, narrow = (replace(BAR, bound=bound).interval(60.0, 0.95, population=False) for bound in (30.0, 0.0))
    assert wide[1] - wide[0] > narrow[1] - narrow[0] + 2.5


def test_a_pair_of_sums_has_its_own_noise() -> None:
    """S - (theta - c) N is A (b - theta)/2h - B (theta - a)/2h: by definition, against the width of such noises."""
    bar = replace(BAR, paired=True, sum_scale=8.0, rows_scale=0.0)
    low, high = bar.interval(60.0, 0.95, population=False)
    for end in (low, high):
        away = end - 50
        scales = (8.0 * (1 - away / 50) / 2, 8.0 * (1 + away / 50) / 2)
        assert abs(bar.sum - away * bar.rows) == pytest.approx(half_width(scales, 0.0, 0.95), rel=1e-3)


def test_bars_of_earlier_releases_can_still_be_read() -> None:
    """They say nothing of relations, of weights that differ, or of pairs."""
    kind, held = plain_bar(BAR)
    old = {name: value for name, value in held.items() if name not in ("bound", "alike", "paired")}
    assert read_bar([kind, old]) == BAR


# --- what is said of an answer that is out ---------------------------------------------------------------------------


def asked(share: float, people: int, name: str = "weighted", **options: Any) -> tuple[list[Release], list[float]]:
    """Releases of one question about so many people of whom a share counts, and what is true of them."""
    random, entropy = np.random.default_rng(3), seeded(7)
    roster = roster_of(random.choice([0.1, 0.5, 1.0], people, p=[0.54, 0.37, 0.09]))
    statistic = Mean.over(Scope(), (0.0, 100.0), "absent", None)
    mechanism, question = at_max(name, statistic), Question(statistic, spread=20.0, **options)
    found, true = [], []
    for _ in range(40):
        values = np.where(random.random(people) < share, np.clip(random.normal(65, 20, people), 0, 100), np.nan)
        found.append(make_release(mechanism, question, ArrayPeople.of(values, roster), entropy, ""))
        true.append(float(values[~np.isnan(values)].mean()) if not np.isnan(values).all() else math.nan)
    return found, true


@pytest.mark.parametrize(("share", "people"), [(0.5, 2000), (0.05, 5000)])
def test_the_stated_error_follows_the_rows_that_count(share: float, people: int) -> None:
    """The plan guesses that half of the people count; the release has seen how many do."""
    releases, true = asked(share, people)
    measured = math.sqrt(np.mean([(one.value - x) ** 2 for one, x in zip(releases, true, strict=True)]))
    stated = math.sqrt(np.mean([one.error**2 for one in releases]))
    assert 0.7 < stated / measured < 1.4
    held = [one.interval()[0] <= x <= one.interval()[1] for one, x in zip(releases, true, strict=True)]
    assert sum(held) >= 35


def test_where_nobody_may_count_no_error_is_stated_and_the_interval_is_wide() -> None:
    releases, _ = asked(0.002, 1000, "minimum")
    none = [one for one in releases if one.error is None]
    assert len(none) > 30
    assert all(one.interval()[1] - one.interval()[0] > 90 for one in none)
    nothing, _ = asked(0.002, 1000, "minimum", assume="nothing")
    # An error as wide as the bounds would say nothing.
    assert sum(one.error is None for one in nothing) > 30
    assert all(one.interval() == (0, 100) for one in nothing if one.error is None)
    assert all(one.error < 100 for one in nothing if one.error is not None)


def test_if_nothing_is_assumed_the_worst_that_weights_can_do_is_stated() -> None:
    (first, *_), _ = asked(0.5, 2000, "stretching", assume="nothing")
    assert first.error > 45
    (low, high) = first.interval()
    assert high - low > 60


def test_errors_of_groups_are_their_own() -> None:
    levels = roster_of([1.0] * 1000).levels
    statistic = Mean.over(Scope(1, ("many", "few", "none")), (0.0, 100.0), "absent", None)
    question, mechanism = Question(statistic), create("minimum", statistic)
    rows = [800.0, 30.0, 0.0]
    sums = [[Fraction(count * 2**31 * part) for count in rows] for part in (0.6, 0.4)]
    answer = Answer({"many": 60.0, "few": 60.0, "none": 50.0}, sums=sums)
    errors = mechanism.stated_error(question, levels, answer)
    assert errors["none"] is None
    assert errors["few"] > 20 * errors["many"] > 0
    few, none = (mechanism.error_bars(question, levels, answer) or ())[1:]
    assert few.interval(60.0, 0.95, False)[0] > 40
    assert none.interval(50.0, 0.95, False) == (0.0, 100.0)


def test_the_worst_error_of_a_mean_of_rows_is_that_of_two_people_of_different_weights() -> None:
    """Enumerated: any number of rows of two weights at the bounds; no noise to speak of."""
    levels = roster_of([1e5] * 10 + [4e5] * 10).levels
    statistic = Mean.over(Scope(fraction=1.0), (0.0, 1.0), "absent", None)
    worst = find_error(create("stretching", statistic), Question(statistic), levels, worst=True)
    assert worst is not None
    found = 0.0
    for light, heavy in itertools.product(range(11), repeat=2):
        if light and heavy:
            found = max(found, abs(4 * heavy / (4 * heavy + light) - heavy / (heavy + light)))
    assert found == pytest.approx(1 / 3, abs=1e-3)
    assert found <= worst < found + 0.01
    threshold = find_error(at_max("threshold", statistic), Question(statistic), levels, worst=True)
    assert threshold == 1


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
