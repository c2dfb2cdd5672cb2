"""Plans for rosters of 256 levels that were never seen before."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from rosters import fresh_roster, generator
from timing import Action, Group, Limit, Row, Size, time_by_turns

import epsilons as eps

_QUESTIONS: dict[str, dict[str, Any]] = {
    "count": {},
    "mean": {"bounds": (0, 100)},
    "median": {"bounds": (0, 100)},
    "histogram": {"edges": list(range(0, 110, 10))},
}


def _measure(size: Size) -> Iterator[Row]:
    people, random = 20_000, generator(4)
    for statistic, arguments in _QUESTIONS.items():

        def fresh(statistic: str = statistic, arguments: dict[str, Any] = arguments) -> Action:
            return partial(eps.plan, statistic, fresh_roster(256, people, random), **arguments)

        yield time_by_turns(
            f"plan of a {statistic}, 256 levels, fresh roster of {people:,}",
            fresh,
            partial(np.unique, fresh_roster(256, people, random)),
            against="numpy.unique of such epsilons",
            repetitions=size.repetitions(15),
            limit=Limit(0.05, "ours"),
        )


PLANS = Group("plans", "A plan for 256 levels", _measure)
