"""Medians of a million values on a grid of a million points."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from rosters import THREE, epsilons_at, generator
from timing import Group, Limit, Row, Size, again, time_by_turns

import epsilons as eps


def _measure(size: Size) -> Iterator[Row]:
    people, random = size.people(1_000_000), generator(3)
    values = random.normal(0.5, 0.15, people)
    rosters = {
        "3 levels": epsilons_at(THREE, people, random),
        "256 levels": epsilons_at(np.geomspace(0.01, 1, 256), people, random),
        "everyone at .001": np.full(people, 0.001),
        "everyone at .00001": np.full(people, 0.00001),
    }
    limits = {"exponential": 20, "weighted": 20, "smooth-sensitivity": 10}
    for mechanism, most in limits.items():
        for name, epsilons in rosters.items():
            known: dict[str, Any] = {"bounds": (0, 1), "step": 1e-6, "missing": "center"}
            ask = partial(eps.median, values, epsilons, mechanism=mechanism, **known)
            yield time_by_turns(
                f"{people:,} people, {mechanism}, {name}",
                again(ask),
                partial(np.sort, values),
                against="numpy.sort of the values",
                repetitions=size.repetitions(7),
                limit=Limit(most, "ratio") if name == "3 levels" else None,
            )


MEDIANS = Group("medians", "A median of 1,000,000 people on a grid of 1,000,001 points", _measure)
