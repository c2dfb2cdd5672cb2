"""How far the exponential count of Jorgensen et al. 2015 errs: its law on a stand-in, at worst, and its error bars.

The stand-in has a fraction `density` of ones, alike at every level; where levels may differ there are two more, on
which the stricter half of the people has as many more ones, or fewer, as the assumption allows.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from epsilons.accuracy.intervals import ErrorBar, bisect, normal_two_sided
from epsilons.guarantee import to_epsilon
from epsilons.preferences import Levels
from epsilons.statistics.base import Floats

#: Counts on either side of the true one that are looked at one by one, and in how many pieces those further out.
_EXACT_STEPS = 4096
_PIECES = 600
#: Sizes of sets of people at which the floor is looked for.
_SETS = 2000


def count_error(levels: Levels, density: float, related: float = 0.0) -> float:
    """RMSE of the exponential mechanism for a count, on the worst of the stand-ins."""
    laws = (count_distribution(levels, ones) for ones in _stand_ins(levels, density, related))
    return max(math.sqrt(float((chance * distance**2).sum())) for distance, chance in laws)


def _stand_ins(levels: Levels, density: float, related: float, least: float = 0.0) -> list[Floats]:
    """The fraction of ones at each level: alike, and with the stricter half up or down by `related` spreads."""
    side, far = _sides(levels.sizes), max(related * math.sqrt(density * (1 - density)), least)
    return [np.clip(density + way * far * side, 0.0, 1.0) for way in ((0, 1, -1) if far > 0 else (0,))]


@lru_cache(maxsize=64)
def _sides(sizes: tuple[int, ...]) -> Floats:
    """Of each level the part that belongs to the stricter half, less the part that does not."""
    people = np.array(sizes, float)
    before = np.cumsum(people) - people
    return np.asarray(2 * np.clip((people.sum() / 2 - before) / people, 0.0, 1.0) - 1)


def worst_count_error(levels: Levels) -> float:
    """No data set's RMSE of the exponential count is larger (docs/theory.md, "exponential").

    RMSE^2 <= 2 sum_d d^2 w_d / (1 + 2 sum_d w_d) with w_d = exp(-E_d/2), E_d the sum of the d smallest epsilons: as if
    the cheapest people stood on both sides of the answer at once.
    """
    distance, chance = _dominating(levels)
    return math.sqrt(float((chance * distance**2).sum()))


def count_floor(levels: Levels, steps: int = 1) -> float:
    """The least worst-case RMSE of any personalized count: max over k of k/(2 cosh(E_k/2)).

    Where a one becomes a zero in two `steps`, by way of a missing entry that is neither, 2 E_k takes the place of E_k.
    E_k is the sum of the k smallest epsilons, 0 for those who have nothing to spend. Two data sets that differ in those
    k people have counts k apart, and no answer can tell them apart better than a loss of E_k allows; the two-point
    argument then gives the bound.
    """
    reach, cost = price_curve(levels, np.ones((1, 1)))
    people, spent = np.append(0.0, levels.left_out + reach[0]), np.append(0.0, cost[0])
    near, far = np.arange(1, min(people[-1], _SETS) + 1), np.geomspace(1, people[-1], _SETS).round()
    k = np.unique(np.concatenate([near, far, people[1:]]))
    loss = np.minimum(steps * np.interp(k, people, spent), 1400.0)
    return float(np.max(k / (2 * np.cosh(loss / 2))))


def _dominating(levels: Levels) -> tuple[Floats, Floats]:
    """(size of the error, probability) of the law 1, 2w_1, 2w_2, ..., which dominates that of every data set."""
    reach, cost = price_curve(levels, np.ones((1, 1)))
    distance, width = _distances(float(reach[0, -1]))
    weight = np.append(1.0, 2 * width * np.exp(-np.interp(distance, reach[0], cost[0]) / 2))
    return np.append(0.0, distance), weight / weight.sum()


def count_distribution(levels: Levels, density: float | Floats) -> tuple[Floats, Floats]:
    """(error, probability) on the stand-in, ascending; exact for the nearest 4,096 counts on either side."""
    sides = []
    for fraction in (density, 1 - np.asarray(density)):
        reach, cost = price_curve(levels, np.atleast_2d(fraction))
        distance, width = _distances(float(reach[0, -1]))
        sides.append((distance, width * np.exp(-np.interp(distance, reach[0], cost[0]) / 2)))
    (below, left), (above, right) = sides
    whole = np.concatenate([[1.0], left, right]).sum()
    return np.concatenate([-below[::-1], [0.0], above]), np.concatenate([left[::-1], [1.0], right]) / whole


def price_curve(levels: Levels, fraction: Floats) -> tuple[Floats, Floats]:
    """(people, cost) at the corners of the curve of cheapest people to change, when a fraction of each level may be.

    `fraction` has a row for each curve, with one number for all levels or one for each.
    """
    sizes, prices = _private(levels.grants, levels.sizes)
    rows = np.broadcast_to(fraction, (len(fraction), len(levels.grants)))[:, : len(sizes)]
    people = np.concatenate([np.zeros((len(rows), 1)), rows * sizes], axis=1)
    return np.cumsum(people, axis=1), np.cumsum(people * prices, axis=1)


@lru_cache(maxsize=64)
def _private(grants: tuple[int | None, ...], sizes: tuple[int, ...]) -> tuple[Floats, Floats]:
    """(size, epsilon) of every level but the public one, the epsilons after a 0; an interval asks hundreds of times."""
    finite = [(float(n), to_epsilon(g)) for g, n in zip(grants, sizes, strict=True) if g is not None]
    return np.array([n for n, _ in finite]), np.array([0.0, *(epsilon for _, epsilon in finite)])


def _distances(most: float) -> tuple[Floats, Floats]:
    """Distances 1, 2, ... from the true count, and how many whole numbers each stands for."""
    near = np.arange(1.0, min(most, _EXACT_STEPS) + 1)
    if most <= _EXACT_STEPS:
        return near, np.ones_like(near)
    corners = np.geomspace(_EXACT_STEPS, most, _PIECES)
    return np.append(near, (corners[1:] + corners[:-1]) / 2), np.append(np.ones_like(near), np.diff(corners))


@dataclass(frozen=True)
class CountBar(ErrorBar):
    """The exponential count's error depends on the count itself, so its interval is an inverted test.

    A true count x is kept if an answer at least as far out as the one released has a chance of at least half of what
    is left, (1-confidence)/2, on the public stand-in with x ones spread evenly over the levels. `population` is the
    standard deviation of who happened to be on the roster.
    """

    grants: tuple[int | None, ...]
    sizes: tuple[int, ...]
    population: float
    #: Whether nothing is assumed about where the ones are: then the law that dominates all others is used.
    nothing_assumed: bool = False
    #: How far levels may differ, in spreads: a count is kept if one of the stand-ins keeps it.
    related: float = 0.0
    #: How far that is at least, as told beside the answer.
    told: float = 0.0

    def interval(self, value: float, confidence: float, population: bool) -> tuple[float, float]:
        """Where the count of the people on the roster lies."""
        value, people, levels = float(value), float(sum(self.sizes)), Levels(self.grants, self.sizes)
        if self.nothing_assumed:
            distance, chance = _dominating(levels)
            upto = np.cumsum(chance)
            # On no data set does the count err by more than this with a larger chance than 1 - confidence.
            reach = float(distance[min(int(np.searchsorted(upto, confidence * upto[-1])), len(distance) - 1)])
            low, high = max(value - reach, 0.0), min(value + reach, people)
        else:
            tail = (1 - confidence) / 2
            low, high = (self._edge(levels, outside, value, tail) for outside in (0.0, people))
        if population:
            extra = normal_two_sided(confidence) * self.population
            return value - math.hypot(value - low, extra), value + math.hypot(high - value, extra)
        return low, high

    def _edge(self, levels: Levels, outside: float, answer: float, tail: float) -> float:
        """The furthest count on one side that does not contradict the answer: one so far has chance enough."""

        def fits(count: float) -> bool:
            for ones in _stand_ins(levels, min(max(count / levels.size, 0.0), 1.0), self.related, self.told):
                error, chance = count_distribution(levels, ones)
                beyond = error >= answer - count - 0.5 if outside == 0 else error <= answer - count + 0.5
                if float(chance[beyond].sum()) >= tail:
                    return True
            return False

        return outside if fits(outside) else bisect(answer, outside, fits, 24)[0]
