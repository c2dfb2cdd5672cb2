"""docs/theory.md, "filtered": reaches by enumeration, splits by a search."""

import math
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from epsilons.statistics.base import Scope
from epsilons.statistics.total import Mean, Sum
from epsilons.statistics.variance import _COSTS, _ROW_WEIGHT, _SHARE, _SHIFT, Variance
from epsilons.summaries.arrays import STEPS


def vectors(rows: int, groups: int, numbers: tuple[int, ...]) -> set[tuple[int, ...]]:
    """What one person can add to the cells: every row adds one number to one group, or nothing."""
    places = [None, *product(range(groups), numbers)]
    found = set()
    for chosen in combinations_with_replacement(places, rows):
        cells = [0] * groups
        for one in chosen:
            if one is not None:
                cells[one[0]] += one[1]
        found.add(tuple(cells))
    return found


def farthest(one: set[tuple[int, ...]], other: set[tuple[int, ...]]) -> int:
    return max(sum(abs(a - b) for a, b in zip(x, y, strict=True)) for x in one for y in other)


@pytest.mark.parametrize("rows", [1, 2, 3])
@pytest.mark.parametrize("groups", [1, 2, 3])
@pytest.mark.parametrize("bounds", [(1, 1), (-2, 5), (2, 5), (-5, -1), (0, 3)])
def test_reaches_over_all_groups(rows: int, groups: int, bounds: tuple[int, int]) -> None:
    scope = Scope(rows, None if groups == 1 else tuple(range(groups)))
    able = vectors(rows, groups, tuple(range(bounds[0], bounds[1] + 1)))
    nothing = {(0,) * groups}
    assert scope.reach(*bounds) == {"absent": farthest(able, nothing), "replace": farthest(able, able)}


@pytest.mark.parametrize("rows", [1, 2, 3])
@pytest.mark.parametrize("groups", [1, 2, 3, 4, 5])
def test_people_are_in_as_many_groups_as_they_have_rows(rows: int, groups: int) -> None:
    able = {tuple(min(cell, 1) for cell in cells) for cells in vectors(rows, groups, (1,))}
    scope = Scope(rows, tuple(range(groups)))
    assert scope.people_reach() == {"absent": farthest(able, {(0,) * groups}), "replace": farthest(able, able)}


def least(*sizes: float) -> tuple[float, float]:
    """(best share of the first of two, least root of the squares) by a search."""
    shares = np.linspace(0.001, 0.999, 99_801)
    noise = np.sqrt((sizes[0] / shares) ** 2 + (sizes[1] / (1 - shares)) ** 2)
    return float(shares[noise.argmin()]), float(noise.min())


@pytest.mark.parametrize("bounds", [(0.0, 100.0), (-10.0, 30.0), (5.0, 6.0), (-3.0, -1.0)])
@pytest.mark.parametrize("groups", [None, ("a", "b")])
@pytest.mark.parametrize("neighbors", ["absent", "replace"])
def test_a_sum_around_zero_beats_every_other_centre(
    bounds: tuple[float, float], groups: tuple[str, ...] | None, neighbors: str
) -> None:
    scope = Scope(2, groups)
    plain = Sum(bounds, scope)
    around_zero = plain.parts[0].reach[neighbors] * plain.units[0]
    rows = scope.reach(1, 1)[neighbors]
    for centre in np.linspace(bounds[0], bounds[1], 21):
        if abs(centre) < 1e-9:
            continue
        low, high = (round((bound - centre) * 1_000) for bound in bounds)
        shifted = scope.reach(low, high)[neighbors] / 1_000
        assert least(shifted, abs(float(centre)) * rows)[1] > around_zero * (1 - 1e-3)


@pytest.mark.parametrize("location", [None, 10.0, 50.1, 95.0])
@pytest.mark.parametrize("groups", [None, ("a", "b")])
@pytest.mark.parametrize("neighbors", ["absent", "replace"])
def test_the_form_of_a_mean_is_the_best(location: float | None, groups: tuple[str, ...] | None, neighbors: str) -> None:
    scope = Scope(1, groups)
    mean = Mean.over(scope, (0.0, 100.0), neighbors, location)
    away = 25.0 if location is None else abs(location - 50)
    first, second = scope.reach(-STEPS, STEPS)[neighbors], scope.reach(0, 1)[neighbors]
    best, noise = least(50 * first / STEPS, away * second)
    expected = scope.expected
    if mean.form == "split":
        assert abs(float(mean.split) - min(best, 60 / 64)) < 1 / 64
        assert mean.parts[0].share + mean.parts[1].share == 1
    else:
        assert mean.noise_size(neighbors) * expected**2 < noise**2


@pytest.mark.parametrize("t", [0.0, 0.1, 0.2, 0.5, 1.0])
def test_what_the_forms_of_a_mean_cost(t: float) -> None:
    """In units of h and of one row: 4(1 + t^2) for a pair, 8(1 + t^2) together; what the page says of splits."""

    def variance(form: str, neighbors: str, split: Fraction = Fraction(1)) -> float:
        return 2 * Mean((-1.0, 1.0), Scope(fraction=1.0), split, t, form).noise_size(neighbors)

    assert variance("pair", "absent") == pytest.approx(4 * (1 + t**2))
    assert variance("together", "replace") == pytest.approx(8 * (1 + t**2))
    assert variance("split", "absent", Fraction(1, 2)) == pytest.approx(8 * (1 + t**2))
    known = np.sqrt(variance("pair", "absent") / (2 * (1 + t ** (2 / 3)) ** 3)) - 1
    assert known == pytest.approx({0.0: 0.41, 0.1: 0.06, 0.2: -0.07, 0.5: -0.24, 1.0: -0.29}[t], abs=0.01)


def test_the_shares_of_a_variance_are_near_the_best() -> None:
    """At a mean a quarter of h from the centre and a spread of half of h."""
    m1, m2 = 0.25, 0.25**2 + 0.5**2
    rows = m2 - 2 * m1**2
    assert rows == _ROW_WEIGHT
    sizes = np.array([2 * m1, np.hypot(1 - rows, rows)])
    _, noise = least(*sizes)
    shares = np.array([float(_SHARE), 1 - float(_SHARE)])
    assert np.sqrt(((sizes / shares) ** 2).sum()) < 1.01 * noise


def costs_of_a_variance(neighbors: str, steps: int, shift: int, costs: tuple[Fraction, Fraction]) -> Fraction:
    """The largest loss per epsilon over values all over the bounds, near the worst ones too, on the integer grid."""
    a, b = costs
    worst = [float(a / (2 * b)), 0.0, 1.0]
    us = np.unique(np.concatenate([np.linspace(-1, 1, steps), *(np.array([-w, w]) for w in worst)]))
    first = np.floor(us * STEPS + 0.5).astype(np.int64)
    second = np.floor((us**2 - 0.5) * STEPS + 0.5).astype(np.int64) - shift
    first, second = np.append(first, 0), np.append(second, 0)  # the last is nobody
    apart = (slice(-1, None) if neighbors == "absent" else slice(None),)
    unit = math.lcm(a.denominator, b.denominator)
    moved = np.abs(first[:, None] - first[apart][None]) * int(a * unit)
    moved = moved + np.abs(second[:, None] - second[apart][None]) * int(b * unit)
    return Fraction(int(moved.max()), unit * STEPS)


@pytest.mark.parametrize("neighbors", ["absent", "replace"])
def test_a_variance_of_everyone_costs_no_more_than_one_epsilon(neighbors: str) -> None:
    """a|u| + b|u^2 - s| <= 1; rounded the other way it is not."""
    costs = _COSTS[neighbors]
    assert 0.9997 < costs_of_a_variance(neighbors, 401, _SHIFT, costs) <= 1
    for part, cost in zip(Variance((0.0, 1.0)).parts, costs, strict=True):
        assert Fraction(1, part.reach[neighbors]) <= cost / STEPS
    up = (costs[0], costs[1] + Fraction(1, 1000))
    assert costs_of_a_variance(neighbors, 401, _SHIFT, up) > 1
    if neighbors == "absent":
        down = round(Fraction("0.2494") * STEPS)
        assert costs_of_a_variance(neighbors, 401, down, costs) > 1
