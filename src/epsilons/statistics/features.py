"""Public facts about a model's features and target: names, bounds, classes."""

from typing import Any

import numpy as np

from epsilons.arguments.checks import BOUNDS_RULE, check_real
from epsilons.engines.readings import read_entry
from epsilons.errors import Argument, PlanError

_BOUNDS = (Argument("bounds_X", (0, 1)), ", or ", Argument("bounds_X", ([0, 18], [1, 90])), " by feature")
_NAMES = Argument("features", ["age", "schooling"])


def feature_bounds(bounds: Any, names: Any) -> tuple[tuple[str, ...], tuple[tuple[float, float], ...]]:
    """(names, a pair of public bounds for each of them)."""
    if bounds is None:
        raise PlanError("There are no bounds for the features.", rule=BOUNDS_RULE, suggest=_BOUNDS)
    if isinstance(names, str):
        raise PlanError("One name for all features.", suggest=_NAMES)
    try:
        low, high = bounds
        listed = tuple(names) if names is not None else _number(max(np.size(low), np.size(high)))
        lows, highs = ([side] * len(listed) if np.ndim(side) == 0 else side for side in (low, high))
        sides = zip(listed, map(check_real, lows), map(check_real, highs), strict=True)
        return listed, tuple((least, most) for _, least, most in sides)
    except (TypeError, ValueError):
        what = "Bounds for the features are neither a pair of numbers nor of lists with a number for each feature."
        raise PlanError(what, rule="Every feature has public bounds.", suggest=_BOUNDS) from None


def feature_names(X: Any, given: Any, width: int) -> Any:
    """The caller's names, a frame's columns, or x1, x2, ..."""
    if given is not None:
        return given
    columns = getattr(X, "columns", None)
    if columns is not None and all(isinstance(column, str) for column in columns):
        return tuple(columns)
    return _number(width)


def _number(width: int) -> tuple[str, ...]:
    return tuple(f"x{place + 1}" for place in range(width))


def check_names(names: Any, features: int) -> tuple[str, ...]:
    """One name per feature, all different: they are the keys of the answer."""
    listed = tuple(names)
    if len(listed) != features or len({*listed, "intercept"}) != features + 1:
        what = f"{len(listed)} names for {features} features, or one name twice."
        raise PlanError(what, rule='A model names every feature once; "intercept" is taken.', suggest=_NAMES)
    if not all(isinstance(name, str) for name in listed):
        raise PlanError("A feature's name is not a word.", suggest=_NAMES)
    return listed


def check_classes(classes: Any) -> tuple[Any, Any]:
    """Two public labels, which are never read from the data: that would show who is there."""
    try:
        first, second = map(read_entry, classes)
        plain = all(isinstance(c, str | int | float) and c == c for c in (first, second))
        fine = plain and not isinstance(classes, str) and first != second
    except (TypeError, ValueError):  # ValueError: not two of them
        fine = False
    if not fine:
        rule = "The two labels are public facts, different words or numbers; the second is the one predicted."
        raise PlanError("There are not two classes.", rule=rule, suggest=Argument("classes", ("no", "yes")))
    return first, second
