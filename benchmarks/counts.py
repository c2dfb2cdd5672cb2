"""Counts: of a thousand people, of ten million, and the exponential mechanism's draw once people are grouped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from rosters import SHARES, THREE, epsilons_at, fresh_roster, generator, spread_levels
from timing import Action, Group, Limit, Row, Size, again, time_by_turns

import epsilons as eps
from epsilons.mechanisms.exponential import ExponentialCount
from epsilons.noise.entropy import system
from epsilons.preferences import Levels, to_nano
from epsilons.statistics.additive import Additive
from epsilons.statistics.base import Question
from epsilons.statistics.count import Count

_UNIQUE = "numpy.unique of the epsilons"


def _few(size: Size) -> Iterator[Row]:
    """A thousand people: the same roster again, and one that was never seen before."""
    # One generator for all: a roster that another mechanism has seen is not fresh, since noises are remembered too.
    random = generator(1)
    able = [row.mechanism for row in eps.plan("count", THREE).rows]
    for levels in (3, 100):
        for mechanism in ("auto", *sorted(able)):
            yield from _thousand(size, levels, mechanism, random)


def _thousand(size: Size, levels: int, mechanism: str, random: np.random.Generator) -> Iterator[Row]:
    people = 1_000
    values = random.integers(0, 2, people)
    epsilons = epsilons_at(spread_levels(levels), people, random)

    def fresh() -> Action:
        return partial(eps.count, values, fresh_roster(levels, people, random), mechanism=mechanism)

    same = again(partial(eps.count, values, epsilons, mechanism=mechanism))
    for name, ours in (("same roster again", same), ("fresh roster", fresh)):
        yield time_by_turns(
            f"{people:,} people, {levels} levels, {mechanism}, {name}",
            ours,
            partial(np.unique, epsilons),
            against=_UNIQUE,
            repetitions=size.repetitions(25),
            limit=Limit(0.002, "ours"),
        )


def _many(size: Size) -> Iterator[Row]:
    """Ten million people: finding their levels is most of the work."""
    people, random = size.people(10_000_000), generator(2)
    values = random.integers(0, 2, people).astype(np.float64)
    for levels in (3, 100, 256, 5_000):
        epsilons = epsilons_at(spread_levels(min(levels, people)), people, random)
        yield time_by_turns(
            f"{people:,} people, {levels:,} distinct epsilons",
            again(partial(eps.count, values, epsilons)),
            partial(np.unique, epsilons),
            against=_UNIQUE,
            repetitions=size.repetitions(5),
            limit=Limit(4, "ratio"),
        )


@dataclass(frozen=True, eq=False)
class _Grouped:
    """People of whom only a tally per level is known, as the exponential count sees them."""

    levels: Levels
    ones: NDArray[np.int64]

    def tally(self, statistic: Additive) -> list[NDArray[np.int64]]:
        return [self.ones[:, None]]


def _grouped(people: int) -> _Grouped:
    sizes = np.array([round(share * people) for share in SHARES])
    return _Grouped(Levels(tuple(to_nano(e) for e in THREE), tuple(sizes.tolist())), sizes // 3)


def _draw(people: int) -> Action:
    grouped = _grouped(people)
    return lambda: ExponentialCount().draw(Question(Count()), grouped, system())  # type: ignore[arg-type]


def _tallied(size: Size) -> Iterator[Row]:
    """The draw alone: no arrays, so any number of people will do."""
    for people in (1_000, 1_000_000, 1_000_000_000):
        yield time_by_turns(
            f"exponential mechanism's draw, {people:,} people",
            again(_draw(people)),
            _draw(1_000),
            against="the same for 1,000 people",
            repetitions=size.repetitions(101),
        )


COUNTS = (
    Group("few", "A count of 1,000 people", _few),
    Group("many", "A count of 10,000,000 people", _many),
    Group("tallied", "A count once people are grouped: no matter how many they are", _tallied),
)
