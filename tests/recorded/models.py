"""What scikit-learn's users ask: estimators, fitted with everybody's own epsilon."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from recorded.arrays import N, numbers, rosters, values_of
from recorded.outcomes import Case, Outcome, attempt, entropy_of, release_outcome, rounded

NEW = [[1, 2], [20, 0.5], [100, -3], [math.nan, 3], [math.inf, -math.inf]]


def _linear(**options: Any) -> Any:
    from epsilons.estimators import PersonalizedLinearRegression

    return PersonalizedLinearRegression(**{"bounds_X": ([0, 0], [20, 6]), "bounds_y": (0, 100), **options})


def _logistic(**options: Any) -> Any:
    from epsilons.estimators import PersonalizedLogisticRegression

    return PersonalizedLogisticRegression(**{"bounds_X": (0, 20), "classes": ("no", "yes"), **options})


MODELS: dict[str, tuple[str, Callable[..., Any]]] = {
    "linear": ("linear_regression", _linear),
    "logistic": ("logistic_regression", _logistic),
}


def fitted(name: str, model: str, roster: str = "few", then: Any = None, **options: Any) -> Case:
    """A model that is fitted; `X`, `y` and `epsilons` replace the usual ones, `then` is done with it."""
    full = f"estimators/{model}/{name}"

    def do() -> Outcome:
        statistic, make = MODELS[model]
        given = dict(options)
        usual = values_of(statistic)
        features, target = given.pop("X", usual[0]), given.pop("y", usual[1])
        granted = given.pop("epsilons", roster)
        epsilons = rosters()[roster] if granted is roster else granted
        entropy = given.pop("entropy", entropy_of(full))
        made = make(**given).fit(features, target, epsilons=epsilons, entropy=entropy)
        if then is not None:
            return {"then": rounded(then(made), 9)}
        told = release_outcome(made.release_, model=True)
        told |= {"coefficients": rounded(np.ravel(made.coef_), 9), "intercept": rounded(np.ravel(made.intercept_), 9)}
        return {**told, "predicted": rounded(made.predict(NEW).tolist(), 9), "features": made.n_features_in_}

    return Case(full, lambda _: attempt(do))


def cases() -> Iterator[Case]:
    for model in MODELS:
        for mechanism in (
            "auto",
            "minimum",
            "threshold",
            "sample",
            "stretching",
            "weighted",
            "exponential",
            "nonsense",
        ):
            yield fitted(mechanism, model, mechanism=mechanism)
        for roster in ("one", "many", "named", "public"):
            yield fitted(roster, model, roster)
        tried: dict[str, dict[str, Any]] = {
            "replace": {"neighbors": "replace"},
            "nothing": {"assume": "nothing"},
            "threshold mean": {"mechanism": "sample", "threshold": "mean"},
            "spread": {"spread": 3},
            "no bounds": {"bounds_X": None},
            "bounds reversed": {"bounds_X": (20, 0)},
            "bounds of three": {"bounds_X": ([0, 0, 0], [1, 1, 1])},
            "no epsilons": {"epsilons": None},
            "too few epsilons": {"epsilons": [1.0, 2.0]},
            "no target": {"y": None},
            "short target": {"y": numbers(7)},
            "column target": {"y": np.array(numbers()).reshape(-1, 1)},
            "flat": {"X": numbers()},
            "words": {"X": [["a", "b"]] * N},
            "missing": {"X": [[math.nan, 1.0]] * N},
            "infinite": {"X": [[math.inf, 1.0]] * N},
            "empty": {"X": [], "y": []},
            "array": {"X": np.array(values_of("linear_regression")[0], np.float32)},
            "entropy": {"entropy": 7},
            "neighbours": {"neighbors": "nobody"},
            "parameters": {"then": lambda made: repr(sorted(made.get_params().items(), key=str))},
            "other width": {"then": lambda made: made.predict([[1.0]]).tolist()},
        }
        for name, options in tried.items():
            yield fitted(name, model, **options)
    yield fitted("no target bounds", "linear", bounds_y=None)
    yield fitted("score", "linear", "public", then=lambda made: made.score(*values_of("linear_regression")))
    yield fitted("score", "logistic", "public", then=lambda made: made.score(*values_of("logistic_regression")))
    yield fitted("chances", "logistic", then=lambda made: made.predict_proba(NEW).tolist())
    yield fitted("odds", "logistic", then=lambda made: made.decision_function(NEW).tolist())
    for classes in ((0, 1), ("yes", "no"), ("yes",), "no", ("yes", "yes")):
        yield fitted(f"classes {classes!r}", "logistic", classes=classes)
    unfitted = {"linear": _linear, "logistic": _logistic}
    for model, make in unfitted.items():
        yield Case(f"estimators/{model}/not fitted", _not_fitted(make))


def _not_fitted(make: Callable[..., Any]) -> Callable[[Any], Outcome]:
    return lambda _: attempt(lambda: {"predicted": make().predict(NEW).tolist()})
