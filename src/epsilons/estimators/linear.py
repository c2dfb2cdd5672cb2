"""Linear regression for scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from epsilons.arrays.functions import linear_regression
from epsilons.estimators.base import PersonalizedModel, make_init
from epsilons.noise.entropy import Entropy


class PersonalizedLinearRegression(RegressorMixin, PersonalizedModel):  # type: ignore[misc]
    """Least squares with an intercept, fitted with everybody's own epsilon by the functional mechanism.

    `bounds_X` and `bounds_y` are public and required: a pair of numbers, or for X a pair of lists with an entry per
    feature. The other parameters are those of `eps.linear_regression`.

    >>> import epsilons as eps
    >>> model = PersonalizedLinearRegression(bounds_X=(0, 10), bounds_y=(0, 100))
    >>> model.fit([[1], [2], [3]], [10, 20, 30], epsilons=[eps.PUBLIC] * 3).predict([[4]]).round(2)
    array([40.])
    """

    __init__ = make_init("linear_regression", "bounds_X", "bounds_y")

    def fit(
        self, X: Any, y: Any, *, epsilons: Any = None, entropy: Entropy | None = None
    ) -> PersonalizedLinearRegression:
        """Fit to people of whom row i granted `epsilons[i]`; one epsilon serves for everyone."""
        matrix = self._check_fit(X, epsilons, entropy)
        release = linear_regression(
            matrix,
            self._check_target(y, matrix),
            epsilons,
            bounds_X=self.bounds_X,
            bounds_y=self.bounds_y,
            entropy=entropy,
            **self._options(),
        )
        self._remember(release, self.bounds_X)
        self.intercept_, *slopes = release.value.values()
        self.coef_ = np.array(slopes)
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Targets of new rows. Features beyond their bounds count as the bound, as they did in `fit`."""
        return self._linear(X)
