"""docs/theory.md, "filtered": reaches by enumeration, splits by a search."""

from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from epsilons.statistics.base import Scope
from epsilons.statistics.total import Mean, Sum
from epsilons.statistics.variance import _ROW_WEIGHT, _SHARES
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
def test_the_split_of_a_mean_is_the_best(
    location: float | None, groups: tuple[str, ...] | None, neighbors: str
) -> None:
    mean = Mean.over(Scope(1, groups), (0.0, 100.0), neighbors, location)
    away = 25.0 if location is None else abs(location - 50)
    first, second = (part.reach[neighbors] for part in mean.parts)
    best, _ = least(50 * first / STEPS, away * second)
    assert abs(float(mean.split) - min(best, 60 / 64)) < 1 / 64
    assert mean.parts[0].share + mean.parts[1].share == 1


def test_the_shares_of_a_variance_are_near_the_best() -> None:
    """At a mean a quarter of h from the centre and a spread of half of h."""
    m1, m2 = 0.25, 0.25**2 + 0.5**2
    sizes = np.array([2 * m1, 0.5, abs(2 * m1**2 - (m2 - 0.5))])
    assert abs(sizes[2] - _ROW_WEIGHT) < 0.02
    best = sizes ** (2 / 3) / (sizes ** (2 / 3)).sum()
    assert sum(_SHARES) == 1
    noise = np.sqrt(((sizes / np.array(_SHARES, float)) ** 2).sum())
    assert noise < 1.01 * np.sqrt(((sizes / best) ** 2).sum())
