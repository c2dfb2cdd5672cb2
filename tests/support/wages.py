"""A small table of wages, and datasets of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

import epsilons as eps
from support.registered import open_people

COUNT = 60
EPSILONS = np.repeat([0.5, 1.0, 4.0], 20)


def wages(**columns: Any) -> pa.Table:
    """Sixty people of three levels; column by column something else may take its place."""
    random = np.random.default_rng(60)
    made: dict[str, Any] = {
        "id": [f"person {place}" for place in range(COUNT)],
        "wage": random.normal(50, 10, COUNT).round(2),
        "age": random.integers(18, 80, COUNT),
        "union": random.choice(["yes", "no"], COUNT),
        "region": random.choice(["north", "south"], COUNT),
        "epsilon": EPSILONS,
    }
    return pa.table(made | columns)


def dataset(source: Any = None, **options: Any) -> eps.Dataset:
    """A dataset of it, by the column of epsilons unless told otherwise, on one thread."""
    options.setdefault("preferences", eps.Preferences.from_column("epsilon"))
    options.setdefault("person", "id")
    return open_people(wages() if source is None else source, threads=1, **options)
