"""Made-up values for audits by the name of a statistic: which ones, and in which shape a question takes them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from epsilons.auditing.claims import Data
from epsilons.errors import Argument, PlanError
from epsilons.statistics.catalogue import find_statistic
from epsilons.statistics.entry import Entry

_RANKED = ("median", "quantile", "min", "max", "kth_largest")
#: Arguments that list the values people could have.
_LISTED = ("among", "categories", "edges")
_MOST_ROWS = 64
_STEPS = 20


def coarsen(statistic: str, arguments: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Order statistics on a grid of twenty steps, unless one is given, and without the cells of their interval.

    Every point of a grid is an outcome, and every combination of an answer with noisy cells.
    """
    given, notes, bounds = dict(arguments), list[str](), _pair(arguments.get("bounds"))
    if statistic not in _RANKED or bounds is None:
        return given, notes
    if given.get("step") is None:
        low, high = bounds
        given["step"] = (high - low) / _STEPS
        notes.append(f"On a grid of {_STEPS} steps between {low:g} and {high:g}.")
    paid = statistic in ("median", "quantile") and given.get("privacy", "personalized") == "personalized"
    if paid and given.get("for_interval") is None:
        given["for_interval"] = 0
        notes.append("Without an interval, which would take a part of every epsilon: for_interval asks for it.")
    return given, notes


def guess_domain(statistic: str, arguments: Mapping[str, Any]) -> Sequence[Any]:
    """Values at both bounds and between them, at every edge, or of every category or option; bits where there are none.

    Of models all corners: features at both bounds and between them, targets at both bounds or of both classes.
    """
    entry = find_statistic(statistic)
    if entry.model:
        return _guess_rows(entry, arguments)
    if (bounds := _pair(arguments.get("bounds"))) is not None:
        return _spread(*bounds)
    listed: Any = next((arguments[one] for one in _LISTED if arguments.get(one) is not None), (0.0, 1.0))
    if isinstance(listed, Mapping):
        hint = Argument("domain", ["2024-01-31", "2024-02-01"])
        raise PlanError("Which values fall into parts of a calendar is not made up.", suggest=hint)
    return cast(Sequence[Any], listed)


def _pair(bounds: Any) -> tuple[float, float] | None:
    """Two numbers; all else is refused where the question is read, which says why."""
    pair = isinstance(bounds, tuple | list) and len(bounds) == 2 and all(isinstance(b, int | float) for b in bounds)
    return (bounds[0], bounds[1]) if pair else None


def _spread(low: float, high: float) -> tuple[float, ...]:
    return float(low), (low + high) / 2, float(high)


def _guess_rows(entry: Entry, arguments: Mapping[str, Any]) -> Sequence[Any]:
    features = arguments.get("bounds_x" if entry.pair else "bounds_X")
    if isinstance(features, Mapping):
        hint = ("a pair of bounds, or of lists of them; or ", Argument("domain", [(0, 1), (1, 0)]))
        raise PlanError("Bounds by name are not understood here.", rule="Rows are made up.", suggest=hint)
    if not isinstance(features, tuple | list) or len(features) != 2:
        features = (0.0, 1.0)  # what is wrong with them is said where the question is read
    count = len(arguments["features"]) if isinstance(arguments.get("features"), list | tuple) else 1
    low, high = (list(end) if isinstance(end, list | tuple | np.ndarray) else [end] * count for end in features)
    each = [_spread(*pair) for pair in zip(low, high, strict=False)]
    bounds = _pair(arguments.get("bounds_y"))
    targets = (
        tuple(arguments.get("classes") or (0, 1)) if bounds is None else _spread(*bounds)[:: 1 if entry.pair else 2]
    )
    rows = itertools.product(*each, targets)
    if math.prod(map(len, each)) * len(targets) <= _MOST_ROWS:
        return list(rows)
    alike = [tuple(one[place] for one in each) for place in range(3)]
    across = [tuple(one[2 * (number % 2 == way)] for number, one in enumerate(each)) for way in (0, 1)]
    return [(*row, target) for row in (*alike, *across) for target in targets]


def shaper(entry: Entry, domain: Data) -> Callable[[Data], Any]:
    """What makes values of a data set in which None is somebody absent; of a model a pair (X, y)."""
    if not entry.model:
        return list
    rows = [row for row in domain if row is not None]
    widths = {len(row) if isinstance(row, tuple) else 0 for row in rows}
    width = widths.pop() if len(widths) == 1 else 0
    if width < 2:
        rule = "A model's rows have its features, and the target last."
        raise PlanError("This is no domain of a model.", rule=rule, suggest=Argument("domain", [(0, 1), (1, 0)]))
    numbers = all(isinstance(row[-1], int | float) for row in rows)

    def shape(data: Data) -> Any:
        X = np.array([(math.nan,) * (width - 1) if row is None else row[:-1] for row in data], float)
        y = [(math.nan if numbers else None) if row is None else row[-1] for row in data]
        return X[:, 0] if entry.pair else X, np.array(y, float) if numbers else y

    return shape
