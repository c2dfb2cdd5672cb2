"""Errors and intervals of variances: from what was released, for skewed values too, and wide where little is known."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import epsilons as eps
from epsilons.accuracy.variance import VarianceBar
from epsilons.mechanisms.base import create
from epsilons.preferences import roster_of
from epsilons.release.answer import Release, make_release, plain_bar, read_bar
from epsilons.statistics.base import Answer, Question, Scope
from epsilons.statistics.variance import Variance
from epsilons.summaries.arrays import ArrayPeople
from epsilons.testing import seeded

BOUNDS = (0.0, 100.0)
Values = Callable[[np.random.Generator, int], Any]
KINDS: dict[str, Values] = {
    "normal": lambda random, people: np.clip(random.normal(45, 12, people), 0, 100),
    "skewed": lambda random, people: np.clip(random.exponential(12, people), 0, 100),
    "uniform": lambda random, people: random.uniform(0, 100, people),
}


def asked(name: str, kind: str, people: int, share: float | None, times: int = 40) -> tuple[list[Release], list[float]]:
    random, entropy = np.random.default_rng(3), seeded(7)
    roster = roster_of(random.choice([0.1, 0.5, 1.0], people, p=[0.54, 0.37, 0.09]))
    statistic = Variance(BOUNDS, None if share is None else Scope())
    question, found, true = Question(statistic, assume=0.0), [], []
    for _ in range(times):
        values = KINDS[kind](random, people)
        if share is not None:
            values[random.random(people) > share] = math.nan
        found.append(make_release(create(name, statistic), question, ArrayPeople.of(values, roster), entropy, ""))
        true.append(float(np.nanvar(values)))
    return found, true


@pytest.mark.parametrize(
    ("name", "kind", "people", "share"),
    [
        ("weighted", "normal", 1000, None),
        ("weighted", "skewed", 20_000, None),
        ("stretching", "normal", 1000, None),
        ("stretching", "uniform", 1000, None),
        ("weighted", "skewed", 10_000, 0.3),
        ("weighted", "uniform", 5000, 0.1),
    ],
)
def test_errors_that_are_stated_are_made_and_intervals_hold_the_truth(
    name: str, kind: str, people: int, share: float | None
) -> None:
    releases, true = asked(name, kind, people, share)
    pairs = list(zip(releases, true, strict=True))
    measured = math.sqrt(np.mean([(one.value - x) ** 2 for one, x in pairs]))
    assert 0.7 < math.sqrt(np.mean([one.error**2 for one in releases])) / measured < 1.45
    assert sum(one.interval()[0] <= x <= one.interval()[1] for one, x in pairs) >= 36


def test_where_nobody_may_count_there_is_no_error() -> None:
    releases, _ = asked("minimum", "normal", 500, 0.02, 10)
    assert all(one.error is None for one in releases)
    assert all(one.interval()[1] - one.interval()[0] > 2000 for one in releases)


def test_each_group_has_its_own_error_and_interval() -> None:
    statistic = Variance(BOUNDS, Scope(1, ("many", "few", "none")))
    levels, mechanism = roster_of([1.0] * 1000).levels, create("minimum", statistic)
    rows = [800.0, 40.0, 0.0]
    sums = [[Fraction(count * 2**30 * part) for count in rows] for part in (0.1, 0.2, 0.8)]
    answer = Answer({"many": 475.0, "few": 475.0, "none": 0.0}, sums=sums)
    errors = mechanism.stated_error(Question(statistic, assume=0.0), levels, answer)
    assert errors["none"] is None
    assert errors["few"] > 10 * errors["many"] > 0
    bars = mechanism.error_bars(Question(statistic, assume=0.0), levels, answer) or ()
    many, few, none = (bar.interval(475.0, 0.95, False) for bar in bars)
    assert few[1] - few[0] > 5 * (many[1] - many[0])
    assert many[0] < 475 < many[1]
    assert none[1] == 2500
    nothing = mechanism.stated_error(Question(statistic, assume=math.inf), levels, answer)
    assert nothing["none"] == 2500


def test_a_bar_holds_what_noises_of_its_size_leave() -> None:
    """Against many draws of the noises: the truth lies in as many intervals as it should, and not in narrower ones."""
    random, held, narrow = np.random.default_rng(5), 0, 0
    first, squares, scales = 0.3, 0.35, (0.02, 0.012)
    for _ in range(1500):
        noise = random.laplace(size=2) * scales
        sums = (first + noise[0], squares + noise[1], 1.0)
        bar = VarianceBar(1.0, sums, scales, 0.0, 0.0, 0.0, 0.0)
        short = replace(bar, scales=(0.014, 0.0084))
        for one in (bar, short):
            low, high = one.interval(0.0, 0.95, False)
            inside = low <= squares - first**2 <= high
            held, narrow = held + (inside and one is bar), narrow + (inside and one is short)
    assert 0.935 < held / 1500 < 0.965
    assert narrow / 1500 < 0.915


def test_luck_bounds_and_the_population_widen_it_and_it_survives_json() -> None:
    bar = VarianceBar(2500.0, (0.1, 0.3, 1.0), (0.01, 0.01), 5.0, 50.0, 0.0, 0.0)

    def width(one: VarianceBar, population: bool = False) -> float:
        low, high = one.interval(0.0, 0.95, population)
        return high - low

    assert width(bar) < width(replace(bar, luck=50.0)) < width(replace(bar, bound=100.0, luck=50.0))
    assert width(bar) < width(bar, population=True)
    assert read_bar(json.loads(json.dumps(plain_bar(bar)))) == bar
    releases, _ = asked("weighted", "normal", 200, None, 1)
    back = Release.from_dict(json.loads(json.dumps(releases[0].to_dict())))
    assert back.interval() == releases[0].interval()


@pytest.mark.parametrize("p", [0.1, 0.5, 0.8])
@pytest.mark.parametrize("size", [0.3, 2.0, 40.0])
def test_squares_vary_as_those_of_a_beta_law_do(p: float, size: float) -> None:
    """Against its raw moments, products of (alpha + r)/(alpha + beta + r); and never more than the bounds allow."""
    raw = np.cumprod([1.0, *((p * size + r) / (size + r) for r in range(4))])
    mean, square = raw[1], raw[2] - raw[1] ** 2
    fourth = raw[4] - 4 * raw[3] * mean + 6 * raw[2] * mean**2 - 3 * mean**4
    found = Variance(BOUNDS).shaped(100 * math.sqrt(square), abs(p - 0.5) * 100, 1.0)
    assert found.variance == pytest.approx(1e8 * (fourth - square**2), rel=1e-6)
    assert found.most is not None
    assert found.variance <= found.most


@pytest.mark.parametrize("share", [None, 0.5])
def test_intervals_hold_where_levels_differ_as_much_as_was_assumed(share: float | None) -> None:
    """The strict vary more than the open, who weigh ten times as much, so that mostly their spread is seen."""
    random, entropy, people = np.random.default_rng(6), seeded(2), 4000
    strict, roster = np.arange(people) < 2000, roster_of([0.1] * 2000 + [1.0] * 2000)
    statistic = Variance(BOUNDS, None if share is None else Scope())
    question, mechanism, held = Question(statistic, assume=0.3), create("stretching", statistic), 0
    for _ in range(20):
        values = np.clip(50 + random.normal(size=people) * 15 * np.sqrt(np.where(strict, 1.42, 0.58)), 0, 100)
        if share is not None:
            values[random.random(people) > share] = math.nan
        low, high = make_release(mechanism, question, ArrayPeople.of(values, roster), entropy, "").interval()
        held += low <= float(np.nanvar(values)) <= high
    assert held >= 18


def related_variances(square: float, part: float | None, runs: int = 30) -> tuple[int, float]:
    """(how many intervals hold the truth, real over stated errors) where only the open weigh, at all that is told.

    Their squared distances are less than everyone's by 406.7, as assume .6 says of a complete column, and those of the
    strict more; their mean is 15 above everyone's, that of the strict 15 below.
    """
    random, entropy, open_ = np.random.default_rng(8), seeded(3), np.arange(4000) < 2000
    roster, side = roster_of(np.where(open_, 5.0, 0.01)), np.where(open_, 1.0, -1.0)
    statistic = Variance(BOUNDS, None if part is None else Scope())
    question = Question(statistic, assume=0.6)
    assert "nor its mean further than 15" in question.condition()
    mechanism, held, squares, stated = create("threshold", statistic, threshold=5.0, rescale=True), 0, [], []
    for _ in range(runs):
        apart = np.sqrt(square - 406.7 * side - 15.0**2)
        values = 50 + 15.0 * side + np.where(random.random(4000) < 0.5, -apart, apart)
        assert 0 <= values.min() <= values.max() <= 100
        if part is not None:
            values[random.random(4000) > part] = math.nan
        release = make_release(mechanism, question, ArrayPeople.of(values, roster), entropy, "")
        low, high = release.interval()
        held += low <= float(np.nanvar(values)) <= high
        squares.append((release.value - float(np.nanvar(values))) ** 2)
        stated.append(release.error)
    return held, math.sqrt(np.mean(squares)) / float(np.mean(stated))


@pytest.mark.parametrize("square", [650.0, 1000.0])
def test_levels_whose_means_lie_apart_bend_a_variance(square: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Squares are told around everyone's mean, an answer is around its own: that takes the distance's square off."""
    for part in (None, 0.5):
        held, ratio = related_variances(square, part)
        assert held >= 28
        assert ratio <= 1.1
    monkeypatch.setattr("epsilons.accuracy.variance.bend", lambda facts, far: 0.0)
    held, ratio = related_variances(square, None)
    assert held <= 5
    assert ratio >= 1.4


def test_an_error_knows_what_an_answer_does_not_show_of_those_who_weigh_little() -> None:
    """The open hardly spread, the strict do: the answer is far smaller than what it may leave out."""
    _, ratio = related_variances(650.0, None, 10)
    assert ratio <= 1.1, "it was three times too small, the answer itself being taken for the most that is left out"


@pytest.mark.parametrize("delta", [None, 1e-6])
def test_noise_that_hides_everything_is_not_taken_for_values_at_a_bound(delta: float | None) -> None:
    """It shows a mean beyond the bounds, and so no spread at all: such errors were five times too small."""
    values = np.where(np.arange(20) % 2 == 0, 0.2, 0.8)
    releases = [
        eps.variance(values, 0.002, bounds=(0, 1), complete=True, mechanism="minimum", entropy=seeded(one), delta=delta)
        for one in range(30)
    ]
    real = math.sqrt(np.mean([(one.value - 0.09) ** 2 for one in releases]))
    assert real <= 1.2 * np.mean([one.error for one in releases])
