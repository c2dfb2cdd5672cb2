"""How little a private median can err: below this no mechanism stays on some data and on all data near them."""

from __future__ import annotations

import numpy as np

from epsilons.papers.figures import Floats

#: Sums of epsilons beyond which nothing is left of a bound, and exponentials stay finite.
_MOST = 300.0


def median_floor(values: Floats, epsilons: Floats, bounds: tuple[float, float]) -> float:
    """The least RMSE of a median of an odd number of people, on these data or on others k people away.

    As for counts (`accuracy.count.count_floor`): k people from the median down who move to the upper end move the
    median up by d_k, and the other way round. Each of them is absent on the way, and so loses twice: no answer tells
    the two data sets apart better than 2 E_k allows, E_k the epsilons of the k strictest who may move that way, and on
    one of the two it errs by d_k/(2 cosh E_k) or more.
    """
    order, middle = np.argsort(values, kind="stable"), len(values) // 2
    ranked, strict = values[order], epsilons[order]
    steps = np.arange(1, middle + 2)
    up = np.append(ranked, bounds[1])[middle + steps] - ranked[middle]
    down = ranked[middle] - np.append(bounds[0], ranked)[middle + 1 - steps]
    losses = [np.cumsum(np.sort(side)) for side in (strict[: middle + 1], strict[middle:])]
    floors = [moved / (2 * np.cosh(np.minimum(loss, _MOST))) for moved, loss in zip((up, down), losses, strict=True)]
    return float(np.max(floors))
