"""Exact distributions of noisy sums on small inputs, for audits and teaching."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from epsilons.errors import PlanError

Floats = NDArray[np.float64]

_MOST_OUTCOMES = 2_000_000


class Law(Protocol):
    """That of a noise on whole numbers."""

    def log_chances(self, distance: Floats) -> Floats:
        """Natural logarithms of the chances of whole numbers so far from 0."""


@dataclass(frozen=True)
class NoisySums:
    """All that an answer is made from: whole sums, each with a noise of known law of its own, in a mixture of cases."""

    laws: tuple[Law, ...]
    mixture: tuple[tuple[float, tuple[int, ...]], ...]


@dataclass(frozen=True)
class Axis:
    """One noisy sum: how far one person reaches, how many people there are, and the law of its noise."""

    reach: int
    people: int
    law: Law


def product_distribution(
    axes: Sequence[Axis], mixture: Sequence[tuple[float, Sequence[int]]]
) -> tuple[NDArray[Any], Floats]:
    """(outcomes, log-probabilities) of a few independent noises around sums that are a mixture, for audits.

    Outcomes are tuples, at points common to all data sets on the roster: a quarter of a person's reach apart (or 1),
    from beyond one end of the possible sums to the other. Between them probabilities change geometrically, so the
    largest loss shows at these points. Everything else is the one outcome "elsewhere".
    """
    grids = []
    for axis in axes:
        stride = max(1, axis.reach // 4)
        most = axis.reach * (axis.people + 1) // stride + 1
        grids.append(range(-most * stride, most * stride + 1, stride))
    if math.prod(len(grid) for grid in grids) > _MOST_OUTCOMES:
        raise PlanError("Too many outcomes to list.", rule="Exact distributions are for a few people and cells.")
    logs = []
    for chance, centres in mixture:
        total = np.array(math.log(chance))
        for axis, grid, centre in zip(axes, grids, centres, strict=True):
            total = total[..., None] + axis.law.log_chances(np.array([float(abs(point - centre)) for point in grid]))
        logs.append(total.reshape(-1))
    top = np.max(logs, axis=0)
    mixed = top + np.log(np.sum(np.exp(np.array(logs) - top), axis=0))
    labels = np.empty(len(mixed) + 1, dtype=object)
    labels[:] = [*itertools.product(*grids), "elsewhere"]
    return labels, np.append(mixed, math.log(max(1 - float(np.exp(mixed).sum()), 1e-300)))
