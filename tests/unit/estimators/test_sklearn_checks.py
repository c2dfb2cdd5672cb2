"""scikit-learn's own checks, through a wrapper that supplies what they do not know of: public bounds, public people."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.multiclass import check_classification_targets, type_of_target

import epsilons as eps
from epsilons.estimators import PersonalizedLinearRegression, PersonalizedLogisticRegression


class PublicLinear(PersonalizedLinearRegression):
    """Fitted to people who all chose public, within bounds that hold for scikit-learn's made-up data."""

    def __init__(self, bounds_X: Any = (-200, 200), bounds_y: Any = (-1000, 1000)) -> None:
        super().__init__(bounds_X, bounds_y)

    def fit(self, X: Any, y: Any) -> PublicLinear:  # type: ignore[override]
        super().fit(X, y, epsilons=eps.PUBLIC)
        return self


class PublicLogistic(PersonalizedLogisticRegression):
    """The same; the labels of public people are public."""

    def __init__(self, bounds_X: Any = (-200, 200)) -> None:
        super().__init__(bounds_X)

    def fit(self, X: Any, y: Any) -> PublicLogistic:  # type: ignore[override]
        super().fit(X, y, epsilons=eps.PUBLIC)
        return self

    def _find_fact(self, y: Any) -> tuple[Any, Any]:
        if y is None:
            return 0, 1
        check_classification_targets(y)
        labels = np.unique(np.asarray(y)).tolist()
        if len(labels) == 1:
            raise ValueError("There is only one class.")
        if len(labels) > 2:
            raise ValueError(f"Only binary classification is supported. The type of the target is {type_of_target(y)}.")
        return labels[0], labels[1]


#: The few that cannot pass, each because it asks for an error about one person's entry.
REFUSED = {
    "check_dtype_object": "wants an error when one entry is not a number; here that person adds nothing",
    "check_supervised_y_no_nan": "wants an error when one target is infinite; here it goes to the public bound",
}


def expected_failures(_: Any) -> dict[str, str]:
    return REFUSED


@parametrize_with_checks([PublicLinear(), PublicLogistic()], expected_failed_checks=expected_failures)
def test_scikit_learn_finds_nothing_wrong(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)
