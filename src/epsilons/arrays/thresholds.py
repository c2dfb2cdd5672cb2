"""The threshold at which an algorithm of one's own errs least, found on data that need no protection.

Jorgensen et al. 2015, section IV: a larger threshold means less noise and fewer people. Which one is best depends on
the algorithm; where nobody can predict its error, it is rehearsed: everyone on the old data is given a level at random,
as many of each as the roster has, and the algorithm runs on samples of them as it will on the people asked. Where there
are no old data, a pilot that people pay for tells what data may look like.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilons.errors import Argument, DataError, PlanError
from epsilons.guarantee import to_epsilon
from epsilons.noise.entropy import Entropy
from epsilons.preferences import Levels

#: How many thresholds are tried, and how often each.
_MOST, TRIALS = 12, 40


def list_thresholds(levels: Levels) -> list[int]:
    """What people granted, or some of it where there are many: between two grants a threshold wastes noise."""
    grants = levels.finite
    places = np.linspace(0, len(grants) - 1, min(_MOST, len(grants))).round().astype(int)
    return [grants[place] for place in dict.fromkeys(places.tolist())]


def assign_levels(levels: Levels, people: int, entropy: Entropy) -> NDArray[np.int64]:
    """A level for each of the people on old data, by lot, in the proportions of the roster."""
    shares = np.cumsum(levels.sizes) / sum(levels.sizes)
    ordered = np.searchsorted(shares, (np.arange(people) + 0.5) / people, side="right")
    codes = np.minimum(ordered, len(levels.grants) - 1)
    return np.asarray(codes[np.argsort(entropy.words(people))], np.int64)


def find_best(levels: Levels, rehearse: Callable[[int], Any], truth: Any) -> tuple[int, list[list[float]]]:
    """(the threshold of the least root mean squared error, every threshold that was tried with its error)."""
    goal, found = _numbers(truth), []
    for threshold in list_thresholds(levels):
        squares = [float(np.mean((_numbers(rehearse(threshold)) - goal) ** 2)) for _ in range(TRIALS)]
        found.append((math.sqrt(math.fsum(squares) / TRIALS), threshold))
    best = min(found, key=lambda pair: (math.inf if math.isnan(pair[0]) else pair[0], -pair[1]))[1]
    return best, [[to_epsilon(threshold), error] for error, threshold in found]


def _numbers(result: Any) -> NDArray[np.float64]:
    """What an algorithm gave as numbers; old data need no protection, so a message may say what is wrong."""
    try:
        return np.asarray(list(result.values()) if isinstance(result, dict) else result, np.float64)
    except (TypeError, ValueError):
        raise DataError("The result is no number or list of numbers.", suggest=Argument("threshold", "max")) from None


def cannot_rehearse() -> PlanError:
    """What to say where nothing can tell which threshold is best."""
    what = ("A threshold is rehearsed with ", Argument("like"), ", ", Argument("truth"), " and one row per person.")
    rule: tuple[str | Argument, ...] = (
        "Data, or with ",
        Argument("pilot"),
        " a function that makes data of its answer.",
    )
    rule = (*rule, " A measurement has an epsilon of its own, and needs none.")
    return PlanError(what, rule=rule, suggest=Argument("threshold", "best"))
