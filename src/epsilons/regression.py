"""Regression on plain arrays: `eps.linear_regression(X, y, epsilons, bounds_X=..., bounds_y=...)`.

The row `X[i]` and the target `y[i]` belong to a person whose epsilon is `epsilons[i]`. The answer is a dict from
"intercept" and the features' names to coefficients in the units of the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np

from epsilons.arrays import Options, ask
from epsilons.errors import PlanError
from epsilons.release import Release
from epsilons.statistics.base import check_real
from epsilons.statistics.regression import LinearRegression, LogisticRegression
from epsilons.statistics.rows import Rows


def linear_regression(
    X: Any,
    y: Any,
    epsilons: Any = None,
    *,
    bounds_X: Any = None,
    bounds_y: Any = None,
    features: Sequence[str] | None = None,
    **options: Unpack[Options],
) -> Release:
    """Least squares with an intercept. Values beyond the public bounds go to the bound; incomplete people add nothing.

    `bounds_X` is a pair of numbers for all features, or of lists with an entry per feature. `features` names them.

    >>> import epsilons as eps
    >>> age, wage = [[25], [35], [45], [55]], [20, 28, 36, 44]
    >>> answer = eps.linear_regression(age, wage, eps.PUBLIC, bounds_X=(15, 65), bounds_y=(0, 100), features=["age"])
    >>> {name: round(value, 1) + 0.0 for name, value in answer.value.items()}
    {'intercept': 0.0, 'age': 0.8}
    """
    rows = Rows.pair(X, y)
    width = rows.features.shape[1]
    bounds = feature_bounds(
        bounds_X, width, "eps.linear_regression(X, y, epsilons, bounds_X=(0, 1), bounds_y=(0, 100))"
    )
    target = check_target(bounds_y)
    return ask(LinearRegression(feature_names(X, features, width), bounds, target), rows, epsilons, **options)


def logistic_regression(
    X: Any,
    y: Any,
    epsilons: Any = None,
    *,
    bounds_X: Any = None,
    classes: Sequence[Any] = (0, 1),
    features: Sequence[str] | None = None,
    **options: Unpack[Options],
) -> Release:
    """Log-odds of the second of two public classes; whoever is of neither class adds nothing.

    >>> import epsilons as eps
    >>> hours, passed = [[1], [2], [3], [4]] * 100, ["no", "no", "yes", "yes"] * 100
    >>> answer = eps.logistic_regression(hours, passed, 1.0, bounds_X=(0, 5), classes=("no", "yes"), features=["hours"])
    >>> list(answer.value)
    ['intercept', 'hours']
    """
    rows = Rows.pair(X, y)
    width = rows.features.shape[1]
    bounds = feature_bounds(bounds_X, width, "eps.logistic_regression(X, y, epsilons, bounds_X=(0, 1))")
    return ask(LogisticRegression(feature_names(X, features, width), bounds, tuple(classes)), rows, epsilons, **options)


def feature_bounds(bounds: Any, width: int, hint: str) -> tuple[tuple[float, float], ...]:
    """A pair of public bounds for every feature."""
    if bounds is None:
        raise PlanError(
            "There are no bounds for the features.",
            rule="Bounds are public facts; reading them from the data would leak it.",
            hint=hint,
        )
    try:
        low, high = bounds
        sides = [_side(low, width), _side(high, width)]
    except (TypeError, ValueError):
        raise PlanError(
            f"Bounds for {width} features are not a pair of numbers, or of lists with {width} numbers each.",
            hint="bounds_X=(0, 1) or bounds_X=([0, 18], [1, 90])",
        ) from None
    return tuple(zip(*sides, strict=True))


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
        raise PlanError(
            "There are no bounds for the target.",
            rule="Bounds are public facts; reading them from the data would leak it.",
            hint="bounds_y=(0, 100)",
        )
    target: tuple[float, float] = bounds
    return target


def feature_names(X: Any, given: Any, width: int) -> tuple[str, ...]:
    """The caller's names, a frame's columns, or x1, x2, ..."""
    if isinstance(given, str):
        raise PlanError("One name for all features.", hint='features=["age", "schooling"]')
    if given is not None:
        return tuple(given)
    columns = getattr(X, "columns", None)
    if columns is not None and all(isinstance(column, str) for column in columns):
        return tuple(columns)
    return tuple(f"x{place + 1}" for place in range(width))
