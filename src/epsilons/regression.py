"""Regression on plain arrays: `eps.linear_regression(X, y, epsilons, bounds_X=..., bounds_y=...)`.

The row `X[i]` and the target `y[i]` belong to a person whose epsilon is `epsilons[i]`. The answer is a dict from
"intercept" and the features' names to coefficients in the units of the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from epsilons.arrays import Options, ask
from epsilons.release import Release
from epsilons.statistics.features import feature_names
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
    statistic = LinearRegression.of(bounds_X, bounds_y, feature_names(X, features, rows.features.shape[1]))
    return ask(statistic, rows, epsilons, **options)


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
    statistic = LogisticRegression.of(bounds_X, classes, feature_names(X, features, rows.features.shape[1]))
    return ask(statistic, rows, epsilons, **options)
