"""What no mechanism can beat."""

from __future__ import annotations

import numpy as np

from epsilons.guarantee import to_epsilon
from epsilons.preferences import Levels

_NODES = 2000


def count_floor(levels: Levels) -> float:
    """The least worst-case RMSE of any personalized count: max over k of k/(2 cosh(E_k/2)).

    E_k is the sum of the k smallest epsilons, 0 for those who have nothing to spend. Two data sets that differ in those
    k people have counts k apart, and no answer can tell them apart better than a loss of E_k allows; the two-point
    argument then gives the bound.
    """
    finite = [(to_epsilon(g), n) for g, n in zip(levels.grants, levels.sizes, strict=True) if g is not None]
    people = np.cumsum([0.0, levels.left_out, *(n for _, n in finite)])
    spent = np.cumsum([0.0, 0.0, *(e * n for e, n in finite)])
    k = np.unique(
        np.concatenate(
            [np.arange(1, min(people[-1], _NODES) + 1), np.geomspace(1, people[-1], _NODES).round(), people[1:]]
        )
    )
    loss = np.minimum(np.interp(k, people, spent), 1400.0)
    return float(np.max(k / (2 * np.cosh(loss / 2))))
