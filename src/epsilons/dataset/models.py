"""Regressions of a table's columns: which columns, within which public bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from epsilons.dataset.asking import Meaning, Terms
from epsilons.engines.base import NUMBER, Column
from epsilons.engines.conditions import parse
from epsilons.engines.trees import MismatchError, canonical
from epsilons.errors import DataError, PlanError
from epsilons.statistics.regression import LinearRegression, LogisticRegression, Regression
from epsilons.statistics.scope import Scope

INCOMPLETE = "People of whom a feature or the target is missing add nothing."
_HINT = 'people.linear_regression("wage", ["age", "schooling"], bounds={"wage": (0, 100), "age": (15, 90), ...})'


def linear(target: Any, features: Any, bounds: Any, where: Any, by: Any, terms: Terms) -> Meaning:
    """Least squares of one column on others."""
    names = _features(target, features, terms)
    aim = terms.schema.number(target)
    known = _bounds(bounds, terms)
    pairs = tuple(_pair(name, known) for name in names)
    return _meaning(LinearRegression(names, pairs, _pair(aim.name, known), scope=_scope(terms)), aim, where, by, terms)


def logistic(target: Any, features: Any, bounds: Any, classes: Any, where: Any, by: Any, terms: Terms) -> Meaning:
    """Log-odds of the second of two public classes."""
    names = _features(target, features, terms)
    aim = terms.schema.askable(target)
    known = _bounds(bounds, terms)
    statistic = LogisticRegression(names, tuple(_pair(name, known) for name in names), classes, scope=_scope(terms))
    for label in statistic.classes:
        _check_label(label, aim)
    return _meaning(statistic, aim, where, by, terms)


def _meaning(statistic: Regression, aim: Column, where: Any, by: Any, terms: Terms) -> Meaning:
    if by is not None:
        raise PlanError("Models are fitted to everyone at once.", rule="There are no groups of models.", hint="where=")
    condition = None if where is None else parse(where, terms.schema)
    notes = [INCOMPLETE]
    if terms.rows > 1:
        notes.append(f"At most {terms.rows} rows of each person are used, and all of them are protected together.")
    return Meaning(statistic, aim.name, condition, None, tuple(notes))


def _scope(terms: Terms) -> Scope | None:
    return Scope(terms.rows) if terms.rows > 1 else None


def _features(target: Any, features: Any, terms: Terms) -> tuple[str, ...]:
    if isinstance(features, (str, bytes)) or not isinstance(features, Sequence) or not features:
        raise PlanError("Features are given as a list of columns.", hint=_HINT)
    names = tuple(terms.schema.number(name).name for name in features)
    if terms.schema.find(target).name in names:
        raise PlanError("The target is among the features.", hint=_HINT)
    return names


def _bounds(given: Any, terms: Terms) -> Mapping[str, Any]:
    if given is not None and not isinstance(given, Mapping):
        raise PlanError("Bounds of a model are given by column.", hint=_HINT)
    return {**terms.bounds, **{terms.schema.find(name).name: pair for name, pair in (given or {}).items()}}


def _pair(name: str, known: Mapping[str, Any]) -> Any:
    if name not in known:
        raise PlanError(
            f"Column {name!r} has no bounds.",
            rule="Bounds are public facts; reading them from the data would leak it.",
            hint=_HINT,
        )
    return known[name]


def _check_label(label: Any, aim: Column) -> None:
    try:
        fine = canonical(label, aim) is not None
    except (MismatchError, OverflowError):
        fine = False
    if not fine:
        kind = "numbers" if aim.family == NUMBER else aim.family
        raise DataError(f"A class is not a value of column {aim.name!r}.", rule=f"The column holds {kind}.", hint=_HINT)
