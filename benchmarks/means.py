"""Means of ten million people whose roster is known: preferences that were read once serve every call."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from rosters import epsilons_at, generator, spread_levels
from timing import Group, Limit, Row, Size, again, time_by_turns

import epsilons as eps


def _known(size: Size) -> Iterator[Row]:
    people, random = size.people(10_000_000), generator(4)
    values = random.normal(50, 15, people)
    for levels in (3, 256):
        preferences = eps.Preferences(epsilons_at(spread_levels(levels), people, random))
        roster = preferences.assign()
        codes, sizes = roster.codes, np.array(roster.levels.sizes)
        for share in (1.0, 0.1):
            yield time_by_turns(
                f"{people:,} people, {levels} levels, share {share:g}",
                again(partial(eps.mean, values, preferences, bounds=(0, 100), share=share)),
                lambda codes=codes, sizes=sizes: np.bincount(codes, values, len(sizes)) / sizes,  # type: ignore[misc]
                against="numpy's mean by level: bincount of the values, over known sizes",
                repetitions=size.repetitions(11),
                pick=min,
                limit=Limit(1.5, "ratio"),
            )


KNOWN = Group("known", "A mean of 10,000,000 people whose roster is known", _known)
