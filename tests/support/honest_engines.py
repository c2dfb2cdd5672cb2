"""Twenty questions to one table, asked of arrays and of an engine with the same noise: the same interval and error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

import epsilons as eps
from epsilons.testing import seeded
from support.registered import open_people

PEOPLE, SHARE = 400, 0.001
_random = np.random.default_rng(18)
#: A thousandth of it is spent on a question.
EPSILONS = _random.choice([50.0, 200.0, 1000.0], PEOPLE)
WAGE = np.where(_random.random(PEOPLE) < 0.1, np.nan, _random.gamma(3, 12, PEOPLE).clip(0, 100))
AGE = _random.normal(45, 12, PEOPLE).clip(18, 80)
UNION = (_random.random(PEOPLE) < 0.3).astype(float)
_COLUMNS = {"wage": WAGE, "age": AGE, "union": UNION}
TABLE = pa.table(
    {
        "id": np.arange(PEOPLE),
        **{name: pa.array(values, from_pandas=True) for name, values in _COLUMNS.items()},
        "epsilon": EPSILONS,
    }
)
_BOUNDS = {"wage": {"bounds": (0.0, 100.0)}, "age": {"bounds": (18.0, 80.0)}, "union": {"bounds": (0.0, 1.0)}}
#: (statistic, column, options), of numbers with and without gaps; levels apart or not; weights of all kinds.
QUESTIONS: list[tuple[str, str, dict[str, Any]]] = [
    ("count", "union", {}),
    ("mean", "wage", _BOUNDS["wage"]),
    ("median", "wage", _BOUNDS["wage"]),
    ("variance", "age", _BOUNDS["age"]),
    ("count", "union", {"assume": "unrelated"}),
    ("count", "union", {"assume": "nothing"}),
    ("count", "union", {"mechanism": "exponential", "assume": 0.1}),
    ("count", "union", {"mechanism": "threshold", "threshold": "max"}),
    ("sum", "wage", _BOUNDS["wage"]),
    ("sum", "age", {**_BOUNDS["age"], "assume": "nothing"}),
    ("sum", "wage", {**_BOUNDS["wage"], "missing": "center", "mechanism": "mixed"}),
    ("mean", "age", {**_BOUNDS["age"], "missing": "center", "spread": 12, "location": 45}),
    ("mean", "wage", {**_BOUNDS["wage"], "assume": 0.5}),
    ("mean", "union", {**_BOUNDS["union"], "assume": "nothing"}),
    ("variance", "wage", {**_BOUNDS["wage"], "assume": "unrelated"}),
    ("histogram", "wage", {"edges": [0, 20, 40, 100]}),
    ("histogram", "age", {"edges": [18, 40, 60, 80], "assume": "nothing"}),
    ("quantile", "age", {**_BOUNDS["age"], "q": 0.9}),
    ("quantile", "wage", {**_BOUNDS["wage"], "q": 0.25, "for_interval": 0.6}),
    ("median", "age", {**_BOUNDS["age"], "assume": "unrelated", "step": 1}),
]


def on_arrays(place: int) -> tuple[Any, ...]:
    name, column, options = QUESTIONS[place]
    return _said(getattr(eps, name)(_COLUMNS[column], epsilons=EPSILONS, **_common(place), **options))


def on_engine(people: eps.Dataset, place: int) -> tuple[Any, ...]:
    name, column, options = QUESTIONS[place]
    return _said(getattr(people, name)(column, **_common(place), **options))


def open_table(source: Any) -> eps.Dataset:
    preferences = eps.Preferences.from_column("epsilon")
    return open_people(source, person="id", preferences=preferences, version="honest")


def _common(place: int) -> dict[str, Any]:
    return {"share": SHARE, "entropy": seeded(place)}


def _said(release: eps.Release) -> tuple[Any, ...]:
    return release.value, release.interval(), release.error, release.assumption, release.mechanism
