"""The definitions, slow and obvious, to which the fast code is held.

Nothing here uses the package: costs are minima over every data set there is, weights come from a numeric optimiser.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

Floats = NDArray[np.float64]
Statistic = Callable[[Floats], Floats]


class Worlds:
    """Every data set of n people over a small set of values, and the statistic's answer on each of them."""

    def __init__(self, domain: Sequence[float], n: int, statistic: Statistic) -> None:
        self.data = np.array(list(itertools.product(domain, repeat=n)), float)
        self.outcomes, self.answer = np.unique(statistic(self.data), return_inverse=True)

    def costs(self, data: Floats, epsilons: Floats) -> Floats:
        """Jorgensen et al. 2015, Definition 10: for every answer r the least sum of epsilons of the people whose
        values have to be changed so that r becomes the true answer. Public people (inf) cannot be changed."""
        changed = np.where(self.data != data, epsilons, 0.0).sum(axis=1)
        costs = np.full(len(self.outcomes), np.inf)
        np.minimum.at(costs, self.answer, changed)
        return costs


def exponential_pmf(costs: Floats) -> Floats:
    """Probabilities proportional to exp(-cost/2)."""
    weights = np.exp(-(costs - costs.min()) / 2)
    return weights / weights.sum()


def ones(data: Floats) -> Floats:
    """The count."""
    return (data == 1).sum(axis=1).astype(float)


def at_rank(rank: int) -> Statistic:
    """The value at a 0-based rank."""
    return lambda data: np.sort(data, axis=1)[:, rank]


def rank_cost(values: Sequence[float], epsilons: Sequence[float], rank: int, r: float) -> float:
    """The closed form of Definition 10 for an order statistic, for more people than `Worlds` can do."""
    left = sorted(e for x, e in zip(values, epsilons, strict=True) if x < r)
    right = sorted(e for x, e in zip(values, epsilons, strict=True) if x > r)
    too_many_left = max(0, len(left) - rank)
    too_many_right = max(0, len(right) - (len(values) - 1 - rank))
    return math.fsum(left[:too_many_left]) + math.fsum(right[:too_many_right])


def quantile_score(values: Sequence[float], weights: Sequence[Fraction], q: Fraction, r: float) -> Fraction:
    """max(W(<r) - qW, qW - W(<=r))."""
    pairs = list(zip(values, weights, strict=True))
    below = sum((w for x, w in pairs if x < r), Fraction(0))
    upto = sum((w for x, w in pairs if x <= r), Fraction(0))
    aim = q * sum(weights, Fraction(0))
    return max(below - aim, aim - upto)


def weighted_objective(weights: Floats, epsilons: Floats, variance: float, reach: float) -> float:
    """sigma^2 sum w^2 + 2 (r max w/e)^2: the error of a weighted mean, one noise included."""
    return float(variance * (weights**2).sum() + 2 * (reach * (weights / epsilons).max()) ** 2)


def related_bias(weights: Floats) -> float:
    """The largest sum of w_i d_i over distances d_i of -1 to 1 that average to zero: a linear programme."""
    found = optimize.linprog(-weights, A_eq=[np.ones(len(weights))], b_eq=[0], bounds=[(-1, 1)] * len(weights))
    return float(-found.fun)


def related_objective(weights: Floats, epsilons: Floats, variance: float, reach: float, related: float) -> float:
    """Mean square of luck and noise, and the worst bias if levels lie up to `related` spreads from everyone's mean."""
    bias = related**2 * variance * float(np.abs(weights - np.median(weights)).sum()) ** 2
    return weighted_objective(weights, epsilons, variance, reach) - variance / len(weights) + bias


def best_related_weights(epsilons: Floats, variance: float, reach: float, related: float) -> Floats:
    """The weights with sum 1 that minimise `related_objective`, among many random ones and ever nearer to the best."""
    rng, n = np.random.default_rng(7), len(epsilons)
    starts = [np.full(n, 1.0), np.minimum(epsilons, 1e3), best_weights(epsilons, variance, reach)]
    starts += [np.minimum(epsilons, cap) for cap in epsilons[np.isfinite(epsilons)]]
    tried = [start / start.sum() for start in starts]
    best = min(tried, key=lambda w: related_objective(w, epsilons, variance, reach, related))
    least = related_objective(best, epsilons, variance, reach, related)
    for size in np.geomspace(0.5, 1e-4, 400):
        new = np.maximum(best * np.exp(size * rng.normal(size=n)), 0.0)
        new /= new.sum()
        value = related_objective(new, epsilons, variance, reach, related)
        if value < least:
            best, least = new, value
    return best


def best_weights(epsilons: Floats, variance: float, reach: float) -> Floats:
    """The weights with sum 1 that minimise `weighted_objective`, by a numeric optimiser.

    With M = max w/e as a variable of its own (w_i <= M e_i) this is a convex quadratic programme. Variables are
    scaled so that both terms are of order one.
    """
    n, finite = len(epsilons), np.isfinite(epsilons)
    scale = float(epsilons[finite].sum())

    def objective(x: Floats) -> float:
        return float(variance * (x[:n] ** 2).sum() + 2 * (reach * x[n] / scale) ** 2)

    def gradient(x: Floats) -> Floats:
        return np.append(2 * variance * x[:n], 4 * (reach / scale) ** 2 * x[n])

    room = np.concatenate([-np.eye(n)[finite], epsilons[finite, None] / scale], axis=1)
    found = optimize.minimize(
        objective,
        np.append(np.full(n, 1 / n), scale * (1 / n / epsilons[finite]).max()),
        jac=gradient,
        method="SLSQP",
        bounds=[(0, None)] * (n + 1),
        constraints=[
            {"type": "eq", "fun": lambda x: x[:n].sum() - 1, "jac": lambda x: np.append(np.ones(n), 0.0)},
            {"type": "ineq", "fun": lambda x: room @ x, "jac": lambda x: room},
        ],
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    weights: Floats = found.x[:n]
    return weights / weights.sum()


def robust_objective(b: float, epsilons: Floats, gap: float, reach: float) -> float:
    """Worst bias squared plus noise variance of sum min(1, b e_i) x_i, filled up with the centre."""
    left_out = float((1 - np.minimum(1, b * epsilons)).sum())
    return (gap * left_out) ** 2 + 2 * (b * reach) ** 2


def best_robust(epsilons: Floats, gap: float, reach: float) -> float:
    """The least `robust_objective` over b, by looking everywhere and then closely."""
    candidates = np.geomspace(1e-6, 1e6, 5_001)
    place = int(np.argmin([robust_objective(b, epsilons, gap, reach) for b in candidates]))
    low, high = candidates[max(place - 1, 0)], candidates[min(place + 1, len(candidates) - 1)]
    close = optimize.minimize_scalar(
        lambda b: robust_objective(b, epsilons, gap, reach),
        bounds=(low, high),
        method="bounded",
        options={"xatol": 1e-12},
    )
    return float(close.fun)
