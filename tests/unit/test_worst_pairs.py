"""The pairs of neighbours on which mechanisms come closest to their promise are among those that an audit tries.

Each is known from a proof or an enumeration; a search that leaves one out could miss a bug that shows nowhere else.
"""

from __future__ import annotations

from typing import Any

import pytest

import epsilons as eps
from epsilons.arrays.examples import guess_domain
from epsilons.auditing.by_draws import MOST_PAIRS, spread_over
from epsilons.auditing.claims import Claim
from epsilons.auditing.exactly import _MOST_SUMMED

BITS, ENDS = (0.0, 1.0), (0.0, 5.0, 10.0)
CORNERS = tuple(guess_domain("linear_regression", {"bounds_X": (-1, 1), "bounds_y": (-1, 1)}))
FIVE, THREE = (0.5, 1.0, 1.0, 1.0, 2.0), (0.5, 1.0, 2.0)
TOP, LOW_HIGH = (1.0, 1.0), (0.0, 0.0, 10.0, 10.0)

#: What is strained, neighbours, people, domain, the pair.
WORST: dict[str, tuple[str, tuple[float, ...], tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]] = {
    "exponential count: all equal, one flipped": ("replace", THREE, BITS, (0.0, 0.0, 0.0), (1.0, 0.0, 0.0)),
    "quantiles: others split, one moves across": ("replace", FIVE, ENDS, (0.0, *LOW_HIGH), (10.0, *LOW_HIGH)),
    "quantiles: others split, the most open one": ("replace", FIVE, ENDS, (*LOW_HIGH, 0.0), (*LOW_HIGH, 10.0)),
    "quantiles: others split, one missing": ("absent", FIVE, ENDS, (0.0, *LOW_HIGH), (None, *LOW_HIGH)),
    "minimum: all at the top, the strictest drops": ("replace", THREE, ENDS, (10.0,) * 3, (0.0, 10.0, 10.0)),
    "sample: all ones, one dropped": ("absent", THREE, BITS, (1.0,) * 3, (None, 1.0, 1.0)),
    "minimum: a stricter person joins": ("absent", THREE, BITS, (1.0,) * 3, (None, 1.0, 1.0)),
    "threshold: somebody at it": ("absent", THREE, BITS, (1.0,) * 3, (1.0, 1.0, None)),
    "threshold: somebody just below it": ("absent", (0.5, 0.999999, 1.0), BITS, (1.0,) * 3, (1.0, None, 1.0)),
    "weights: a bound against nobody": ("absent", THREE, ENDS, (10.0, 5.0, 5.0), (None, 5.0, 5.0)),
    "weights: from bound to bound": ("replace", THREE, ENDS, (0.0, 0.0, 0.0), (10.0, 0.0, 0.0)),
    "mixed: a value at one bound, at the other": ("replace", (0.5,) * 3, ENDS, (0.0,) * 3, (0.0, 0.0, 10.0)),
    "smooth: a gap opens beside the median": ("replace", FIVE, ENDS, (0.0,) * 5, (10.0, 0.0, 0.0, 0.0, 0.0)),
    "individual: one of many moves the median": ("replace", (0.5,) * 5, BITS, (0, 0, 0, 0, 1), (1, 0, 0, 0, 1)),
    "sampling privacy: one yes against none": ("replace", THREE, ("no", "yes"), ("no",) * 3, ("yes", "no", "no")),
    **{
        f"functional mechanism: {row}": ("absent", (1.0, 1.0), CORNERS, (row, row), (None, row))
        for row in ((1.0, 1.0), (-1.0, 1.0), (1.0, -1.0))
    },
    "functional mechanism: corner to corner": ("replace", (1.0,) * 2, CORNERS, (TOP, TOP), ((-1.0, 1.0), TOP)),
}  # fmt: skip


@pytest.mark.parametrize("name", WORST)
def test_the_audit_tries_the_worst_pair(name: str) -> None:
    """Either way round: losses are looked at in both directions."""
    neighbors, epsilons, domain, data, neighbour = WORST[name]
    claim = Claim(name, epsilons, epsilons, neighbors, domain)
    person = next(place for place, (a, b) in enumerate(zip(data, neighbour, strict=True)) if a != b)
    tried = {(pair.data, pair.neighbour) for pair in claim.pairs(epsilons[person], _MOST_SUMMED)}
    assert {(data, neighbour), (neighbour, data)} & tried


@pytest.mark.parametrize("neighbors", ["absent", "replace"])
def test_draws_are_first_of_all_on_people_who_are_alike_or_split(neighbors: str) -> None:
    """However many people there are: 24 pairs, on both ends of the domain, all alike and in halves."""
    claim = Claim("many", (1.0,) * 40, (1.0,) * 40, neighbors, (0, 3, 10))
    tried = spread_over(list(claim.pairs(1.0, MOST_PAIRS)), MOST_PAIRS)
    told = {pair.data for pair in tried}
    assert len(tried) == MOST_PAIRS
    assert {(0,) * 40, (10,) * 40, (0,) * 20 + (10,) * 20} <= told


def test_individual_privacy_is_infinite_on_the_pair_that_shows_it() -> None:
    """{0, 0, 0, 0, 1} against {0, 0, 0, 1, 1}."""
    given: dict[str, Any] = {"bounds": (0, 1), "step": 1, "privacy": "individual", "missing": "center"}
    found = eps.audit("median", [0.5] * 5, mechanism="local-sensitivity", neighbors="replace", domain=[0, 1], **given)
    assert found.worst.loss == float("inf")
    assert {sum(found.worst.data), sum(found.worst.neighbour)} in ({1, 2}, {3, 4})
