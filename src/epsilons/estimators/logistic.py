"""Logistic regression for scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from epsilons.arrays.functions import logistic_regression
from epsilons.estimators.base import PersonalizedModel, make_init
from epsilons.noise.entropy import Entropy
from epsilons.statistics.features import check_classes


class PersonalizedLogisticRegression(ClassifierMixin, PersonalizedModel):  # type: ignore[misc]
    """Two classes by log-odds, fitted with everybody's own epsilon by the functional mechanism.

    `bounds_X` is public and required, as for the linear model. `classes` are the two public labels: which of them occur
    in the data is private. The log-loss is approximated by a parabola, so coefficients come out smaller than those of
    an exact fit when classes are far apart.

    >>> import epsilons as eps
    >>> model = PersonalizedLogisticRegression(bounds_X=(0, 10), classes=("no", "yes"))
    >>> model.fit([[1], [2], [8], [9]], ["no", "no", "yes", "yes"], epsilons=eps.PUBLIC).predict([[0], [10]]).tolist()
    ['no', 'yes']
    """

    classes_: NDArray[Any]

    __init__ = make_init("logistic_regression", "bounds_X")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(
        self, X: Any, y: Any, *, epsilons: Any = None, entropy: Entropy | None = None
    ) -> PersonalizedLogisticRegression:
        """Fit to people of whom row i granted `epsilons[i]`; one epsilon serves for everyone."""
        matrix = self._check_fit(X, epsilons, entropy)
        classes = self._labels(y)
        release = logistic_regression(
            matrix,
            self._check_target(y, matrix),
            epsilons,
            bounds_X=self.bounds_X,
            classes=classes,
            entropy=entropy,
            **self._options(),
        )
        self._remember(release, self.bounds_X)
        self.classes_ = np.array(classes)
        intercept, *slopes = release.value.values()
        self.intercept_ = np.array([intercept])
        self.coef_ = np.array([slopes])
        return self

    def _labels(self, y: Any) -> tuple[Any, Any]:
        """The two public labels. y is not looked at: which of them occur in it is private."""
        return check_classes(self.classes)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """The log-odds of the second class."""
        return self._linear(X)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probabilities of both classes, in their order."""
        odds = np.clip(self._linear(X), -700.0, 700.0)  # beyond that an exponential overflows
        second = 1 / (1 + np.exp(-odds))
        return np.column_stack([1 - second, second])

    def predict(self, X: Any) -> NDArray[Any]:
        """The likelier class of each row."""
        second = self._linear(X) > 0
        chosen: NDArray[Any] = self.classes_[second.astype(int)]
        return chosen
