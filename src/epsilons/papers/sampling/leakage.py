"""Joy, Figure 3, and what observers really learn from Sampling Privacy."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from epsilons.local import RandomizedResponse, SamplingPrivacy
from epsilons.papers.figures import Cell, Figure, Panel, Row, Scale
from epsilons.papers.sampling.errors import THEIRS

#: Eleven groups, sampling .45.
PROTOCOL = SamplingPrivacy(options=11, sampling=0.45)
_CHANCES = tuple(k / 100 for k in range(1, 100))
_ABOVE_NOTHING = 1e-12


def measure_claims(cell: Cell, setting: str) -> Iterator[Row]:
    """Equations 29 and 30 as printed, the loss of randomized response, and what aggregators' noise is set to."""
    for chance in _CHANCES:
        response = RandomizedResponse(truth=0.8, yes=chance)
        yield Row("response-claim", chance, response.claim or 0.0)
        yield Row("randomized-response", chance, response.epsilon)
        yield Row("aggregators", chance, THEIRS)
    for chance in (chance for chance in _CHANCES if chance < 0.55):
        yield Row("sampling-claim", chance, math.log1p(0.45 / chance))


FIGURE_3 = Figure(
    "3",
    "claimed leakage, sampling .45, first coin .8",
    {
        "": Panel(
            "in both rounds Sampling Privacy has no epsilon; aggregators at epsilon 1",
            Scale("chance of the second coin, or of the true output if not sampled"),
            Scale("epsilon"),
            ("response-claim", "randomized-response", "sampling-claim", "aggregators"),
            ("claims",),
            measure_claims,
            weight=0.1,
        )
    },
)


# What leaks ----------------------------------------------------------------------------------------------------------

ALIKE = (1, 7, 25, 100)
#: All but one of the aggregators, who know their own noise, learn as much as from randomized response at that epsilon.
NOISY = RandomizedResponse(epsilon=THEIRS).leakage()
CROWDS = (7, 8, 10, 15, 20, 30, 50, 100)


def measure_views(cell: Cell, view: str) -> Iterator[Row]:
    """How likely more than epsilon is lost, for each view and epsilon."""
    if view == "randomized-response":
        seen = RandomizedResponse(truth=0.8, yes=0.2).leakage()
    elif view == "aggregators":
        seen = NOISY
    elif view.startswith("counts-"):
        seen = PROTOCOL.leakage("counts", count=int(view.removeprefix("counts-")))
    else:
        seen = PROTOCOL.leakage(view)
    for epsilon in np.linspace(0, 4, 41).tolist():
        if (delta := seen.delta_at(epsilon)) > _ABOVE_NOTHING:
            yield Row(view, epsilon, delta)


def measure_alike(cell: Cell, alike: int) -> Iterator[Row]:
    """Published counts, epsilon 1: one of so many who gave the same answer is absent."""
    for curve, sampling in {"sampling-privacy": 0.45, "sampling-rarer": 0.25}.items():
        delta = SamplingPrivacy(options=11, sampling=sampling).leakage("counts", count=alike, epsilon=1).delta
        if delta > _ABOVE_NOTHING:
            yield Row(curve, alike, delta)
    yield Row("aggregators", alike, NOISY.delta_at(1))


def measure_crowds(cell: Cell, crowd: int) -> Iterator[Row]:
    """Published counts, epsilon 1, seven alike among so many."""
    binary = SamplingPrivacy(sampling=0.45)
    yield Row("counts-7", crowd, binary.leakage("counts", count=7, population=crowd, epsilon=1).delta)
    yield Row("aggregators", crowd, NOISY.delta_at(1))


_DELTA = "delta: how likely more is lost"
_VIEWS = ("both-rounds", "second-round", *(f"counts-{alike}" for alike in ALIKE), "randomized-response", "aggregators")

LEAKAGE = Figure(
    "leakage",
    "what Sampling Privacy with eleven options leaks, by what an observer sees; aggregators at epsilon 1",
    {
        "a": Panel(
            "sampling .45, by view",
            Scale("epsilon"),
            Scale(_DELTA, log=True),
            _VIEWS,
            _VIEWS,
            measure_views,
            weight=0.1,
        ),
        "b": Panel(
            "counts, by how many are alike; epsilon 1",
            Scale("people who gave the same answer", log=True),
            Scale(_DELTA, log=True, least=_ABOVE_NOTHING),
            ("sampling-privacy", "sampling-rarer", "aggregators"),
            (1, 2, 3, 5, 7, 10, 15, 20, 25, 35, 50, 70, 100),
            measure_alike,
            weight=0.1,
        ),
        "c": Panel(
            "counts, 7 alike; yes or no, epsilon 1",
            Scale("population", log=True),
            Scale(_DELTA),
            ("counts-7", "aggregators"),
            CROWDS,
            measure_crowds,
            weight=0.1,
        ),
    },
    columns=3,
)
