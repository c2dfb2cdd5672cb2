"""A made-up table of people, for tests of tables, queries and commands."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

import epsilons as eps
from support.registered import open_people

LEVELS = {"strict": 0.05, "standard": 0.2, "open": 1.0, "public": eps.PUBLIC}


def people_table(people: int = 2_000, seed: int = 1) -> pa.Table:
    """Ids, wages (some missing), ages, unions, regions, and everybody's privacy level."""
    made_up = np.random.default_rng(seed)
    wages = np.where(made_up.random(people) < 0.05, np.nan, made_up.gamma(4, 5, people))
    return pa.table(
        {
            "id": np.arange(people),
            "wage": pa.array(wages),
            "age": made_up.integers(18, 80, people),
            "union": pa.array(made_up.choice(["yes", "no"], people)),
            "region": pa.array(made_up.choice(["north", "south", "east"], people)),
            "privacy": pa.array(made_up.choice(list(LEVELS), people)),
        }
    )


def people_dataset(table: pa.Table | None = None, **options: Any) -> eps.Dataset:
    """The table with its preferences, in memory."""
    settings: dict[str, Any] = {
        "person": "id",
        "preferences": eps.Preferences.from_levels("privacy", LEVELS),
        "version": "made up",
        "bounds": {"wage": (0, 100), "age": (0, 120)},
    }
    return open_people(people_table() if table is None else table, **{**settings, **options})
