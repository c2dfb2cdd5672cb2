"""One table of people, one question of each statistic, and three who answer it: arrays, DuckDB and Spark.

Everybody has one row, so that arrays can hold the same people. With one seed the same noise is drawn, whoever reads
the rows; what differs is a front's fault.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

import epsilons as eps
from epsilons.arguments.options import ARRAYS, TABLES
from epsilons.statistics.entry import Entry
from epsilons.testing import seeded

SHARE = 0.001
PEOPLE = 90
RNG = np.random.default_rng(5)
EPSILONS = RNG.choice([200.0, 500.0, 1000.0], PEOPLE)
WAGE = RNG.uniform(0, 100, PEOPLE)
AGE = RNG.uniform(18, 80, PEOPLE)
LEFT = (RNG.random(PEOPLE) < 0.4).astype(np.int64)
#: Large numbers of either sign.
IDS = (np.arange(PEOPLE) * 12345678901234567 % 2**62).astype(np.int64) - 2**61
TABLE = pa.table({"id": IDS, "wage": WAGE, "age": AGE, "left": LEFT, "epsilon": EPSILONS})
BOUNDS = {"wage": (0.0, 100.0), "age": (18.0, 80.0)}


def facts(entry: Entry, front: str) -> dict[str, Any]:
    """The public facts that a statistic needs."""
    if entry.pair:
        ends = {"bounds_x": BOUNDS["age"], "bounds_y": BOUNDS["wage"]}
        return ends if front == ARRAYS else {"other": "age", "bounds": BOUNDS}
    if entry.model and front == ARRAYS:
        classes = {} if "classes" in entry.own(ARRAYS) else {"bounds_y": BOUNDS["wage"]}
        return {"bounds_X": ([BOUNDS["age"][0]], [BOUNDS["age"][1]]), "features": ["age"], **classes}
    if entry.model:
        return {"features": ["age"], "bounds": BOUNDS}
    if "among" in entry.own(front):
        return {"among": [0, 1, 2], **({"k": 2} if "k" in entry.own(front) else {})}
    known: dict[str, Any] = {"bounds": BOUNDS["wage"], "q": 0.7, "edges": [0, 30, 100]}
    return {name: value for name, value in known.items() if name in entry.own(front)}


def target(entry: Entry) -> str:
    """The column that is asked about."""
    return "left" if entry.name in ("count", "logistic_regression", "mode", "top") else "wage"


def data(entry: Entry) -> tuple[Any, ...]:
    values = LEFT.tolist() if target(entry) == "left" else WAGE  # as in a table, its type does not say it is complete
    if entry.pair:
        return AGE, values
    return (AGE[:, None], values) if entry.model else (values,)


class Arrays:
    """The functions of the package, with the word that the table declares."""

    name = "arrays"

    def ask(self, entry: Entry, **options: Any) -> eps.Release:
        asked: eps.Release = getattr(eps, entry.name)(
            *data(entry), epsilons=EPSILONS, share=SHARE, complete=True, **facts(entry, ARRAYS), **options
        )
        return asked


class Table:
    """The methods of a dataset, on the engine that reads its source."""

    def __init__(self, name: str, people: eps.Dataset) -> None:
        self.name, self.people = name, people

    def ask(self, entry: Entry, **options: Any) -> eps.Release:
        asked: eps.Release = getattr(self.people, entry.name)(
            target(entry), share=SHARE, fresh=True, **facts(entry, TABLES), **options
        )
        return asked


Front = Arrays | Table


@contextmanager
def on_table(name: str, source: Any) -> Iterator[Table]:
    preferences = eps.Preferences.from_column("epsilon")
    complete = ["wage", "age", "left"]
    with eps.Dataset(
        source, person="id", preferences=preferences, complete=complete, version="fronts", ledger="memory", ceiling=1e6
    ) as people:
        yield Table(name, people)


def answer(front: Front, entry: Entry) -> dict[str, Any]:
    """All that a front says of a question, with frozen noise."""
    # Of an extreme "auto" takes a sample, whose coins arrays and tables toss apart.
    chosen = {"mechanism": "minimum"} if entry.name in ("min", "max", "kth_largest") else {}
    release = front.ask(entry, entropy=seeded(3), **chosen)
    promise = release.guarantee  # but for its caveats: they name whose word it is that nothing is missing
    return {
        "value": release.value,
        "mechanism": release.mechanism,
        "charges": dict(release.charges),
        "error": release.error,
        "levels": release.levels,
        "promise": (promise.kind, promise.neighbors, promise.epsilons),
    }
