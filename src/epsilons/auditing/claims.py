"""A claim under attack: who is charged how much, and what a mechanism does on made-up data, as laws or as draws.

`audit_claim` looks for the neighbours that break it: exactly where laws are known (`exactly.py`), else from draws
(`by_draws.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from epsilons.auditing.made_up import MANY_PEOPLE, Pair, extremes_first, list_datasets, list_pairs
from epsilons.statistics.distributions import NoisySums

Data = tuple[Any, ...]
Law = Callable[[Data], tuple[Any, Any]]
Draw = Callable[[Data, int], Any]


@dataclass(frozen=True)
class Claim:
    """ "Nobody loses more than they are charged", about a roster whose values are in a public domain.

    `law(data)` gives outcomes and the logarithms of their chances, `sums(data)` the sums that an answer is made from
    and their noises, `draw(data, size)` so many outcomes, or `call(data)` one of a function that may remember what it
    was asked. Data hold None for who has no value. `known` are losses that follow from weights and noise by exact
    arithmetic, if there are such. With a `delta` what is charged is an epsilon that holds but for that delta, and
    `rhos` are what it was made from, where an account counts rho. Where the law is its author's word, and not what is
    drawn by, draws are `looked_at_too`.
    """

    name: str
    granted: tuple[float, ...]
    charged: tuple[float, ...]
    neighbors: str
    domain: tuple[Any, ...]
    law: Law | None = None
    draw: Draw | None = None
    call: Callable[[Data], Any] | None = None
    known: tuple[float, ...] | None = None
    sums: Callable[[Data], NoisySums] | None = None
    delta: Fraction | None = None
    rhos: tuple[Fraction | None, ...] | None = None
    looked_at_too: bool = False

    @cached_property
    def levels(self) -> list[float]:
        """The grants for which something is promised."""
        pairs = zip(self.granted, self.charged, strict=True)
        return sorted({granted for granted, charged in pairs if math.isfinite(charged)})

    @property
    def substitutes(self) -> tuple[Any, ...]:
        """What a person's value may become."""
        return (None,) if self.neighbors == "absent" else tuple(extremes_first(self.domain))

    @cached_property
    def values(self) -> tuple[Any, ...]:
        """What people have in the data that are tried: where somebody may be absent, others may be as well."""
        return (*self.domain, None) if self.neighbors == "absent" and None not in self.domain else self.domain

    def at(self, level: float) -> list[int]:
        """The people who granted so much."""
        return [person for person, granted in enumerate(self.granted) if granted == level]

    def datasets(self, most: int) -> Iterator[Data]:
        """Data sets to try."""
        return list_datasets(self.values, len(self.granted), most)

    def pairs(self, level: float, most: int) -> Iterator[Pair]:
        """Neighbours in everyone of a level, of many in the first and the last, on up to so many data sets."""
        people = self.at(level)
        those = people if len(people) <= MANY_PEOPLE else [people[0], people[-1]]
        return list_pairs(self.values, those, len(self.granted), self.substitutes, most)
