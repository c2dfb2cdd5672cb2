"""What rows add to sums, in few passes, against the formula written out in many; and what a known roster spares."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import epsilons as eps
from epsilons.preferences import roster, roster_of
from epsilons.statistics.base import Scope
from epsilons.statistics.count import Count
from epsilons.statistics.total import Mean
from epsilons.statistics.variance import Variance
from epsilons.summaries import arrays
from epsilons.summaries.arrays import STEPS, ArrayPeople, row_steps, tally

Floats = NDArray[np.float64]
BOUNDS = [(0, 100), (-3.5, 2.25), (0.1, 0.7), (1e9, 1e9 + 1), (-1e30, 1e30), (0, 1e-30), (-7e29, 1e-3), (5, 5 + 1e-14)]


def slow_steps(name: str, values: Floats, bounds: tuple[float, float]) -> Floats:
    """Values go into the bounds, then to the unit scale, then to the grid; what is missing adds 0."""
    low, high = bounds
    clipped, missing = np.clip(values, low, high), np.isnan(values)
    unit = np.clip((clipped - (low / 2 + high / 2)) / (high / 2 - low / 2), -1, 1)
    exact = {
        "centred sum": unit * STEPS,
        "centred squares": (unit**2 - 0.5) * STEPS,
        "sum": clipped / (max(map(abs, bounds)) / STEPS),
    }[name]
    return np.where(missing, 0.0, np.floor(exact + 0.5))


def values_near(bounds: tuple[float, float]) -> Floats:
    """Values inside and outside, the bounds and their neighbours, halves of steps, what overflows, what is missing."""
    low, high = bounds
    random = np.random.default_rng(5)
    half = (high / 2 - low / 2) / STEPS / 2
    ends = [np.nextafter(end, towards) for end in bounds for towards in (-math.inf, end, math.inf)]
    ties = low / 2 + high / 2 + half * np.arange(-9, 10)
    odd = [math.nan, math.inf, -math.inf, 0.0, -0.0, 5e-324, 1.7e308, -1.7e308]
    return np.concatenate([random.uniform(low, high, 2000), random.normal(0, 1e3, 200), ends, ties, odd])


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("name", ["centred sum", "centred squares", "sum"])
def test_few_passes_give_what_many_do(name: str, bounds: tuple[float, float]) -> None:
    values = values_near(bounds)
    kept = values.copy()
    found, absent = row_steps(name, bounds)(values)
    assert found.tolist() == slow_steps(name, values, bounds).tolist()
    assert absent.tolist() == np.flatnonzero(np.isnan(values)).tolist()
    assert np.array_equal(values, kept, equal_nan=True)  # the caller's values stay as they are


@pytest.mark.parametrize("planted", [np.rint, lambda steps: np.floor(steps * (1 + 1e-9) + 0.5), np.ceil])
def test_the_comparison_sees_another_rounding(planted: Any) -> None:
    bounds = (0, 100)
    values = values_near(bounds)
    values = np.clip(values[~np.isnan(values)], *bounds)
    assert planted((values - 50) / (50 / STEPS)).tolist() != slow_steps("centred sum", values, bounds).tolist()


def test_sums_are_those_of_a_loop_over_people(monkeypatch: pytest.MonkeyPatch) -> None:
    """In pieces of which the last is shorter."""
    monkeypatch.setattr(arrays, "_PIECE", 700)
    bounds = (-3.5, 2.25)
    values = np.tile(values_near(bounds), 2)[:3000]
    codes = (np.arange(3000) * 7 % 5).astype(np.uint8)
    statistic = Variance(bounds)
    slow = {name: slow_steps(name, values, bounds) for name in statistic.summed if name != "rows"}
    slow["rows"] = (~np.isnan(values)).astype(float)
    for name, part in zip(statistic.summed, tally(statistic, values, codes, 6), strict=True):
        assert part[:, 0].tolist() == [sum(map(int, slow[name][codes == level])) for level in range(6)]


@pytest.mark.parametrize("statistic", [Mean.over(Scope(), (0, 10), "absent", None), Count(Scope()), Count()])
def test_people_are_counted_alike_whether_or_not_their_number_is_known(statistic: Any) -> None:
    values = np.array([1.0, math.nan, 3, math.nan, 1, 11, -math.inf, 0])
    everyone = ArrayPeople.of(values, roster_of([1, 1, 2, 2, 3, 3, 3, 1]))
    sampled = everyone._keep(np.array([True, True, False, True, True, True, False, True]))
    for people in (everyone, sampled):
        codes = people.roster.codes
        expected = tally(statistic, people.values, codes, 3)
        assert [part.tolist() for part in people.tally(statistic)] == [part.tolist() for part in expected]


def test_a_known_roster_is_not_encoded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = np.tile([0.5, 1.0, 2.0], 3000)
    known = [eps.Preferences(asked), eps.Preferences.from_levels(["a", "b"] * 4500, {"a": 1, "b": 2})]
    known.append(eps.Roster(range(9000), asked))  # type: ignore[arg-type]
    values = np.linspace(0, 10, 9000)

    def refuse(*_: Any) -> None:
        raise AssertionError("encoded again")

    for name in ("_encode", "count_codes", "_as_floats"):
        monkeypatch.setattr(roster, name, refuse)
    for epsilons in known:
        for share in (1.0, 0.25):
            answer = eps.mean(values, epsilons, bounds=(0, 10), share=share)
            assert answer.guarantee.covers is not None


def test_preferences_stand_as_they_were_given() -> None:
    """Whatever becomes of the array that held them."""
    asked = np.array([0.5, 1.0, 1.0])
    preferences = eps.Preferences(asked)
    asked[:] = 9
    assert preferences.assign().levels.grants == (500_000_000, 1_000_000_000)


def test_a_share_that_keeps_levels_apart_keeps_their_codes() -> None:
    made = roster_of([0.5, 1.0, eps.PUBLIC, 1.0])
    scaled, used = made.take_share(Fraction(1, 10))
    assert scaled.codes is made.codes
    assert used is None
    assert scaled.levels.grants == (50_000_000, 100_000_000, None)
    # Where rounding down takes everything, or makes two levels one, people's codes are theirs again.
    merged, used = roster_of([2e-9, 3e-9, 1.0, 2e-9, 1e-9]).take_share(Fraction(1, 2))
    assert (merged.levels.grants, merged.codes.tolist()) == ((1, 500_000_000), [0, 0, 1, 0])
    assert used is not None
    assert used.tolist() == [True, True, True, True, False]


@pytest.mark.parametrize(("one", "default"), [(0.5, None), (math.inf, None), (math.nan, 0.25)])
@pytest.mark.parametrize("people", [0, 1, 5000])
def test_one_epsilon_for_everyone_is_read_once(one: float, default: float | None, people: int) -> None:
    found, slow = roster_of(one, default, people), roster_of(np.full(people, one), default)
    assert (found.levels, found.codes.tolist()) == (slow.levels, slow.codes.tolist())
    assert found.codes.dtype == np.uint8
