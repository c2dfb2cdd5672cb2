"""Smooth sensitivity against its definition, over every small data set and every neighbour of it."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from epsilons.statistics import order
from epsilons.statistics.order import Order
from epsilons.statistics.sensitivity import LEAST, smooth_sensitivity

Data = tuple[int, ...]

BETAS = (Fraction(1, 20), Fraction(1, 2), Fraction(3))
#: Relative, since both sides of every comparison are floats.
SLACK = 1 + 1e-12


@cache
def all_data(people: int, points: int) -> tuple[Data, ...]:
    """Every sorted data set; order statistics see no more."""
    return tuple(itertools.combinations_with_replacement(range(points), people))


def distance(one: Data, other: Data) -> int:
    """How many people have to be replaced."""
    return len(one) - (Counter(one) & Counter(other)).total()


def defined(f: Callable[[Data], float], people: int, points: int, beta: Fraction) -> dict[Data, float]:
    """Definition 2.2: local sensitivities, each discounted by its distance."""
    worlds = all_data(people, points)
    apart = np.array([[distance(one, other) for other in worlds] for one in worlds])
    answer = np.array([f(data) for data in worlds], float)
    moved = np.abs(answer[:, None] - answer)
    local = np.where(apart <= 1, moved, 0).max(axis=1)
    smooth = (np.exp(-float(beta) * apart) * local).max(axis=1)
    return dict(zip(worlds, smooth.tolist(), strict=True))


@cache
def ours(data: Data, rank: int, points: int, beta: Fraction) -> float:
    return float(smooth_sensitivity(np.array(data, np.int64), rank, points, beta))


# The definition -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("people", "points"), [(1, 4), (2, 5), (3, 5), (4, 4), (5, 4), (6, 3)])
@pytest.mark.parametrize("beta", BETAS, ids=str)
def test_at_every_rank_it_is_the_definition_for_people_who_are_replaced(
    people: int, points: int, beta: Fraction
) -> None:
    for rank in range(people):
        exact = defined(lambda data, rank=rank: data[rank], people, points, beta)  # type: ignore[misc]
        for data, expected in exact.items():
            assert ours(data, rank, points, beta) == pytest.approx(max(expected, float(LEAST)), rel=1e-12)


def printed_maximum(data: Data, points: int, beta: float) -> float:
    """Soria-Comas et al. 2017, section 6.2.2, padded with the lower end of the domain."""
    padded = (0,) * (len(data) + 2) + data
    discounts = [(math.exp(-beta * k), k) for k in range(len(data) + 1)]
    to_the_top = (d * (points - 1 - padded[-1 - k]) for d, k in discounts)
    return max(*to_the_top, *(d * (padded[-1] - padded[-2 - k]) for d, k in discounts))


@pytest.mark.parametrize("beta", BETAS, ids=str)
def test_for_the_maximum_it_is_what_the_paper_prints(beta: Fraction) -> None:
    for people in range(1, 6):
        for data in all_data(people, 4):
            expected = max(printed_maximum(data, 4, float(beta)), float(LEAST))
            assert ours(data, people - 1, 4, beta) == pytest.approx(expected, rel=1e-12)


# People who join or leave -------------------------------------------------------------------------------------------

GRID = (0.0, 3.0)
RULES: tuple[Order, ...] = (
    order.median(GRID, 1),
    order.minimum(GRID, 1),
    order.maximum(GRID, 1),
    order.kth_largest(2, GRID, 1),
    order.kth_largest(4, GRID, 1),
    Order(GRID, 1, from_low=2),
    *(order.quantile(q, GRID, 1) for q in (0, 0.1, 0.3, 0.5, 2 / 3, 0.9, 0.99, 1)),
)


def joining(people: int, points: int) -> Iterator[tuple[Data, Data]]:
    """(data, the same with one more person)."""
    for data in all_data(people, points):
        for value in range(points):
            yield data, tuple(sorted((*data, value)))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.label} {rule.q or rule.from_low or rule.from_high}")
@pytest.mark.parametrize("beta", BETAS, ids=str)
def test_it_bounds_and_is_smooth_when_people_join_or_leave_and_the_rank_moves_along(
    rule: Order, beta: Fraction
) -> None:
    points, growth = rule.points, math.exp(beta) * SLACK
    for people in range(1, 6):
        rank, new_rank = rule.rank(people), rule.rank(people + 1)
        for data, more in joining(people, points):
            one, other = ours(data, rank, points, beta), ours(more, new_rank, points, beta)
            moved = abs(data[rank] - more[new_rank])
            assert moved <= min(one, other) * SLACK
            assert one <= growth * other
            assert other <= growth * one


@pytest.mark.parametrize("beta", BETAS, ids=str)
def test_the_whole_grid_is_the_sensitivity_of_nobody(beta: Fraction) -> None:
    """With nobody there any answer will do: the first person to come cannot move it further, nor S by more."""
    for points in range(2, 6):
        for value in range(points):
            alone = ours((value,), 0, points, beta)
            assert alone * SLACK >= math.exp(-beta) * (points - 1)
            assert alone <= (points - 1) * SLACK


def test_a_rank_that_moves_against_the_number_of_people_is_not_smooth() -> None:
    """The enumeration can fail: ranks that jump by two, or the wrong way, break it."""
    beta, points, broken = Fraction(1, 2), 4, 0
    for data, more in joining(3, points):
        one, other = ours(data, 0, points, beta), ours(more, 2, points, beta)
        broken += abs(data[0] - more[2]) > min(one, other) * SLACK or one > math.exp(beta) * other * SLACK
    assert broken


# The fast search ----------------------------------------------------------------------------------------------------


def windows(cells: np.ndarray, rank: int, points: int, beta: float) -> float:
    """Every window, one length at a time."""
    people = len(cells)
    padded = np.concatenate([np.zeros(people + 1, np.int64), cells, np.full(people + 1, points - 1)])
    place, best = rank + people + 1, 2.0**-64
    for length in range(1, people + 2):
        starts = np.arange(max(place - length, 0), min(place, len(padded) - length - 1) + 1)
        wide = int((padded[starts + length] - padded[starts]).max())
        best = max(best, wide * math.exp(-beta * (length - 1)))
    return best


def some_cells(kind: str, people: int, points: int, random: np.random.Generator) -> np.ndarray:
    if kind == "uniform":
        cells = random.integers(0, points, people)
    elif kind == "ties":
        cells = random.choice(random.integers(0, points, 3), people)
    elif kind == "crowded at one end":
        cells = (random.random(people) ** 9 * (points - 1)).astype(np.int64)
    elif kind == "even":
        cells = np.arange(people) * (points - 1) // people
    else:  # gaps that grow as fast as the discount falls: every window is nearly the best
        away = np.exp(random.random(people) * math.log(points / 2)).astype(np.int64)
        cells = points // 2 + np.where(random.random(people) < 0.5, -away, away - 1)
    return np.sort(np.clip(cells, 0, points - 1)).astype(np.int64)


KINDS = ("uniform", "ties", "crowded at one end", "even", "growing gaps")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("points", [2, 50, 65_537, 1 << 50])
def test_the_fast_search_finds_the_best_of_all_windows(kind: str, points: int) -> None:
    random = np.random.default_rng(KINDS.index(kind) + points % 97)
    for people in (1, 2, 3, 7, 64, 65, 500):
        cells = some_cells(kind, people, points, random)
        for rank in {0, people // 3, people // 2, people - 1}:
            for beta in (Fraction(1, 10**9), Fraction(1, 300), Fraction(7, 100), Fraction(1), Fraction(40)):
                found = float(smooth_sensitivity(cells, rank, points, beta))
                assert found == pytest.approx(windows(cells, rank, points, float(beta)), rel=5e-14)


def test_a_million_people() -> None:
    """Evenly spaced values have (l + 1) exp(-beta l) gaps as their best window, wherever it begins."""
    people, gap, beta = 1_000_001, 1_000, Fraction(1, 4000)
    cells = np.arange(people, dtype=np.int64) * gap
    found = smooth_sensitivity(cells, people // 2, (people - 1) * gap + 1, beta)
    best = max((k + 1) * math.exp(-float(beta) * k) for k in range(3_990, 4_010))
    assert float(found) == pytest.approx(gap * best, rel=1e-12)


def test_it_never_falls_to_nothing() -> None:
    """A million people at one point leave a true S of e^-300,000; a constant below every cell keeps the noise alive."""
    cells = np.full(1_000_000, 7, np.int64)
    assert smooth_sensitivity(cells, 500_000, 10, Fraction(6, 10)) == LEAST
    assert smooth_sensitivity(np.array([7]), 0, 10, Fraction(10**7)) == 7


@pytest.mark.parametrize("rank", [-1, 2])
def test_a_rank_of_nobody_is_refused(rank: int) -> None:
    with pytest.raises(ValueError, match="the place of a person"):
        smooth_sensitivity(np.array([0, 1]), rank, 4, Fraction(1))
