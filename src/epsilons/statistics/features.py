"""Public facts about features: names, bounds, the target's bounds or classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from epsilons.arguments.checks import check_real
from epsilons.errors import PlanError

_BOUNDS = "bounds_X=(0, 1), or bounds_X=([0, 18], [1, 90]) with an entry per feature"
_LEAK = "Bounds are public facts; reading them from the data would leak it."


def feature_bounds(bounds: Any, names: Any) -> tuple[tuple[str, ...], tuple[tuple[float, float], ...]]:
    """(names, a pair of public bounds for each of them)."""
    if bounds is None:
        raise PlanError("There are no bounds for the features.", rule=_LEAK, suggest=_BOUNDS)
    if isinstance(names, str):
        raise PlanError("One name for all features.", suggest='features=["age", "schooling"]')
    try:
        low, high = bounds
        listed = tuple(names) if names is not None else _numbered(max(np.size(low), np.size(high)))
        sides = [_side(low, len(listed)), _side(high, len(listed))]
    except (TypeError, ValueError):
        raise PlanError(
            "Bounds for the features are not a pair of numbers, or of lists with a number for each feature.",
            rule="Every feature has public bounds.",
            suggest=_BOUNDS,
        ) from None
    return listed, tuple(zip(*sides, strict=True))


def _numbered(width: int) -> tuple[str, ...]:
    return tuple(f"x{place + 1}" for place in range(width))


def _side(side: Any, width: int) -> list[float]:
    if np.ndim(side) == 0:
        return [check_real(side)] * width
    listed = [check_real(number) for number in side]
    if len(listed) != width:
        raise ValueError
    return listed


def check_target(bounds: Any) -> tuple[float, float]:
    """The target's public bounds, which are required."""
    if bounds is None:
        raise PlanError("There are no bounds for the target.", rule=_LEAK, suggest="bounds_y=(0, 100)")
    target: tuple[float, float] = bounds
    return target


def feature_names(X: Any, given: Any, width: int) -> Any:
    """The caller's names, a frame's columns, or x1, x2, ..."""
    if given is not None:
        return given
    columns = getattr(X, "columns", None)
    if columns is not None and all(isinstance(column, str) for column in columns):
        return tuple(columns)
    return _numbered(width)


def check_names(names: Any, features: int) -> tuple[str, ...]:
    """One name per feature, all different: they are the keys of the answer."""
    listed = tuple(names)
    if len(listed) != features or len({*listed, "intercept"}) != features + 1:
        raise PlanError(
            f"{len(listed)} names for {features} features, or one name twice.",
            rule='A model names every feature once; "intercept" is taken.',
            suggest='features=["age", "schooling"]',
        )
    if not all(isinstance(name, str) for name in listed):
        raise PlanError("A feature's name is not a word.", suggest='features=["age", "schooling"]')
    return listed


def check_classes(classes: Any) -> tuple[Any, Any]:
    """Two public labels, which are never read from the data: who is there would show."""
    try:
        listed = tuple(c.item() if isinstance(c, np.generic) else c for c in classes)
        fine = (
            not isinstance(classes, str)
            and len(listed) == 2
            and listed[0] != listed[1]
            and all(isinstance(c, str | int | float) for c in listed)
        )
    except TypeError:
        fine = False
    if not fine:
        raise PlanError(
            "There are not two classes.",
            rule="The two labels are public facts, different words or numbers; the second is the one predicted.",
            suggest='classes=("no", "yes")',
        )
    return listed[0], listed[1]
