"""The models: linear and logistic regression for scikit-learn."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin

from epsilons.arrays.functions import linear_regression, logistic_regression
from epsilons.estimators.base import PersonalizedModel, make_init
from epsilons.statistics.features import check_classes


class PersonalizedLinearRegression(RegressorMixin, PersonalizedModel):  # type: ignore[misc]
    """Least squares with an intercept, fitted with everybody's own epsilon by the functional mechanism.

    `bounds_X` and `bounds_y` are public and required: a pair of numbers, or for X a tuple of two lists, the lows and
    the highs of all features. The other parameters are those of `eps.linear_regression`.

    >>> import epsilons as eps
    >>> model = PersonalizedLinearRegression(bounds_X=(0, 10), bounds_y=(0, 100))
    >>> model.fit([[1], [2], [3]], [10, 20, 30], epsilons=[eps.PUBLIC] * 3).predict([[4]]).round(2)
    array([40.])
    """

    _function, _fact = linear_regression, "bounds_y"
    __init__ = make_init("linear_regression", "bounds_X", "bounds_y")

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Targets of new rows. Features beyond their bounds count as the bound, as they did in `fit`."""
        return self._linear(X)


class PersonalizedLogisticRegression(ClassifierMixin, PersonalizedModel):  # type: ignore[misc]
    """Two classes by log-odds, fitted with everybody's own epsilon by the functional mechanism.

    `bounds_X` is public and required, as for the linear model. `classes` are the two public labels: which of them occur
    in the data is private. The log-loss is bounded by a parabola, so coefficients come out smaller than those of
    an exact fit when classes are far apart.

    >>> import epsilons as eps
    >>> model = PersonalizedLogisticRegression(bounds_X=(0, 10), classes=("no", "yes"))
    >>> model.fit([[1], [2], [8], [9]], ["no", "no", "yes", "yes"], epsilons=eps.PUBLIC).predict([[0], [10]]).tolist()
    ['no', 'yes']
    """

    classes_: NDArray[Any]

    _function, _fact = logistic_regression, "classes"
    __init__ = make_init("logistic_regression", "bounds_X")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _find_fact(self, y: Any) -> tuple[Any, Any]:
        return check_classes(self.classes)

    def _keep(self, intercept: float, slopes: NDArray[np.float64], fact: Any) -> None:
        self.classes_ = np.array(fact)
        self.intercept_, self.coef_ = np.array([intercept]), np.array([slopes])

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """The log-odds of the second class."""
        return self._linear(X)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        odds = np.clip(self._linear(X), -700.0, 700.0)  # beyond that an exponential overflows
        second = 1 / (1 + np.exp(-odds))
        return np.column_stack([1 - second, second])

    def predict(self, X: Any) -> NDArray[Any]:
        """The likelier class of each row."""
        second = self._linear(X) > 0
        return np.asarray(self.classes_[second.astype(int)])
