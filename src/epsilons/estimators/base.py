"""What both models share: public facts as parameters, epsilons as metadata, and checks that look at no value."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted, validate_data

from epsilons.arguments.checks import check_entropy
from epsilons.arguments.options import ARRAYS, FOR_INTERVAL, options_of
from epsilons.arguments.reading import check_call, check_known, take_places
from epsilons.calls import make_signature
from epsilons.engines.readings import is_list, quietly
from epsilons.errors import Argument, PlanError, PreferenceError
from epsilons.noise.entropy import Entropy
from epsilons.release import Release
from epsilons.statistics.catalogue import CATALOGUE
from epsilons.summaries.arrays import as_doubles, as_matrix

#: The options of every statistic that are parameters of a model; what goes with people goes to `fit`.
PARAMETERS = tuple(name for name in options_of(ARRAYS) if name not in ("group_epsilons", "entropy"))


def make_init(statistic: str, *by_place: str) -> Callable[..., None]:
    """The constructor of a model: the public facts of its statistic, some of them by place, and the options.

    scikit-learn reads the parameters from the signature, and expects them back as they were given.
    """
    own = [argument for argument in CATALOGUE[statistic].own(ARRAYS).values() if argument.name != "features"]
    facts = [replace(argument, positional=argument.name in by_place) for argument in own]
    arguments = {argument.name: argument for argument in (*facts, *(options_of(ARRAYS)[name] for name in PARAMETERS))}

    def __init__(self: Any, *given: Any, **named: Any) -> None:  # noqa: N807 it becomes one
        check_known(statistic, named, arguments, ARRAYS)
        values = take_places(f"A {statistic}", by_place, (), given, named)
        for name, argument in arguments.items():
            setattr(self, name, values.get(name, argument.default))

    __init__.__signature__ = make_signature(list(arguments.values()), None, bound=True)  # type: ignore[attr-defined]
    return __init__


class PersonalizedModel(BaseEstimator):  # type: ignore[misc]
    """A model fitted with everybody's own epsilon.

    `epsilons` goes to `fit` beside X and y, one per row, and through pipelines and searches by metadata routing:
    `model.set_fit_request(epsilons=True)`. After `fit`, `release_` holds the promise, the charges and the reasons.
    """

    release_: Release
    coef_: NDArray[np.float64]
    intercept_: Any
    #: The function on arrays that fits it, and the public fact that it needs besides the features' bounds.
    _function: ClassVar[Callable[..., Release]]
    _fact: ClassVar[str]
    for_interval: float

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # People of whom an entry is missing add nothing. An error about it would say that there are some.
        tags.input_tags.allow_nan = True
        tags.target_tags.required = True
        return tags

    @check_call("fit")
    def fit(self, X: Any, y: Any, *, epsilons: Any = None, entropy: Entropy | None = None) -> Self:
        """Fit to people of whom row i granted `epsilons[i]`; one epsilon serves for everyone."""
        if epsilons is None:
            rule = "One per row of X; an infinite one is public."
            hint = (Argument("epsilons"), " beside X and y, in a pipeline after set_fit_request(epsilons=True)")
            raise PreferenceError("There are no epsilons.", rule=rule, suggest=hint)
        if entropy is not None:
            check_entropy(entropy)
        if isinstance(self.bounds_X, Mapping):
            what, rule = (
                "An estimator's bounds are by name.",
                "It takes numbers; words are numbers after a step before.",
            )
            raise PlanError(what, rule=rule, suggest="OneHotEncoder(categories=..., handle_unknown='ignore')")
        # scikit-learn remembers the number of columns and their names.
        matrix = self._matrix(X, reset=True)
        fact = self._find_fact(y)
        # A model takes no such thing, and says so where one was given.
        untouched = {"for_interval"} if self.for_interval == FOR_INTERVAL else set()
        self.release_ = type(self)._function(
            matrix,
            self._check_target(y, matrix),
            epsilons,
            bounds_X=self.bounds_X,
            entropy=entropy,
            **{self._fact: fact},
            **{name: getattr(self, name) for name in PARAMETERS if name not in untouched},
        )
        self._edges = tuple(np.asarray(edge, dtype=np.float64) for edge in self.bounds_X)
        intercept, *slopes = self.release_.value.values()
        self._keep(intercept, np.array(slopes), fact)
        return self

    def _find_fact(self, y: Any) -> Any:
        """The public fact besides the features' bounds. y is not looked at: what occurs in it is private."""
        return getattr(self, self._fact)

    def _keep(self, intercept: float, slopes: NDArray[np.float64], fact: Any) -> None:
        """The fitted numbers, in the shapes that scikit-learn gives them."""
        self.intercept_, self.coef_ = intercept, slopes

    def _matrix(self, X: Any, *, reset: bool) -> NDArray[Any]:
        """scikit-learn looks at shapes and names only; entries become numbers here, so that no message shows one."""
        matrix: NDArray[Any] = check_array(_numbers(X), dtype=None, ensure_all_finite=False, estimator=self)
        validate_data(self, X if hasattr(X, "columns") else matrix, reset=reset, skip_check_array=True)
        return matrix

    def _check_target(self, y: Any, matrix: NDArray[Any]) -> Any:
        """One target per row; a single column is taken for a list, with scikit-learn's own warning."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        target = y if isinstance(y, list | tuple) or hasattr(y, "to_numpy") else np.asanyarray(y)
        if getattr(target, "ndim", 1) == 2 and target.shape[1] == 1:  # lists and Arrow's columns have no such thing
            warnings.warn("A column-vector y was passed when a 1d array was expected.", DataConversionWarning, 2)
            target = np.asarray(target).ravel()
        check_consistent_length(matrix, target)
        return target

    def _linear(self, X: Any) -> NDArray[np.float64]:
        """intercept + X.coef; a missing entry counts as the middle of its bounds, an infinite one as the bound."""
        check_is_fitted(self)
        matrix = as_doubles(self._matrix(X, reset=False))
        low, high = self._edges
        bounded = np.where(np.isfinite(matrix), matrix, np.clip(matrix, low, high))
        filled = np.where(np.isnan(bounded), low / 2 + high / 2, bounded)
        return np.asarray(filled @ np.ravel(self.coef_) + np.ravel(self.intercept_))


def _numbers(X: Any) -> Any:
    """Entries as numbers, unless scikit-learn has something of its own to say about the container."""
    if hasattr(X, "toarray"):
        return X
    if hasattr(X, "columns"):
        return as_matrix(X)
    array = quietly(as_matrix, X) if is_list(X) else np.asanyarray(X)
    array = np.zeros(len(X)) if array is None else array  # rows of no one length
    # Its refusals show what they refuse: zeros.
    return as_matrix(array) if array.ndim == 2 and array.size and array.dtype.kind != "c" else np.zeros_like(array)
