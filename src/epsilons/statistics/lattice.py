"""Exact distributions of a few noisy integers, for audits on small inputs."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilons.errors import PlanError

_MOST_OUTCOMES = 2_000_000


@dataclass(frozen=True)
class Axis:
    """One noisy sum: how far one person reaches, how many people there are, and 1/scale of its discrete Laplace."""

    reach: int
    people: int
    inverse: Fraction

    def points(self) -> list[int]:
        """Points a quarter of a person's reach apart (or 1), from beyond one end of the possible sums to the other."""
        stride = max(1, self.reach // 4)
        most = self.reach * (self.people + 1) // stride + 1
        return [stride * k for k in range(-most, most + 1)]


def product_distribution(
    axes: list[Axis], mixture: list[tuple[float, list[int]]]
) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """(outcomes, log-probabilities) of independent noises around sums that are themselves a mixture.

    Outcomes are tuples, at points common to all data sets on the roster; between them probabilities change
    geometrically, so the largest loss shows at these points. Everything else is the one outcome "elsewhere".
    """
    grids = [axis.points() for axis in axes]
    if math.prod(len(grid) for grid in grids) > _MOST_OUTCOMES:
        raise PlanError("Too many outcomes to list.", rule="Exact distributions are for a few people and cells.")
    logs = []
    for chance, centres in mixture:
        total = np.array(math.log(chance))
        for axis, grid, centre in zip(axes, grids, centres, strict=True):
            rate = float(axis.inverse)
            distance = np.array([float(abs(point - centre)) for point in grid])
            along = math.log(math.tanh(rate / 2)) - rate * distance
            total = total[..., None] + along
        logs.append(total.reshape(-1))
    top = np.max(logs, axis=0)
    mixed = top + np.log(np.sum(np.exp(np.array(logs) - top), axis=0))
    labels = np.empty(len(mixed) + 1, dtype=object)
    labels[:-1] = list(itertools.product(*grids))
    labels[-1] = "elsewhere"
    elsewhere = math.log(max(1 - float(np.exp(mixed).sum()), 1e-300))
    return labels, np.append(mixed, elsewhere)
