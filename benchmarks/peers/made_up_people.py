"""The one table that everybody is asked about, made up with a fixed seed, and the true answers.

`id`, `wage` (a float within 0 and 100), `region` (four words), and `granted`: 1000 times the epsilon that each person
would choose, for the part about levels. How many choose which is Jorgensen, Yu and Cormode 2015, section VI.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
from answering import HIGH, LOW, REGIONS

SEED = 20
LEVELS = {0.05: 0.54, 0.2: 0.37, 1.0: 0.09}
_REGIONS_SIZES = (0.4, 0.3, 0.2, 0.1)
_ANSWERS = 1000

Truth = Mapping[str, "float | Mapping[str, float]"]


@dataclass(frozen=True)
class Table:
    """Where the table lies, and what is true of it."""

    path: Path
    rows: int
    truth: Truth


def make_table(folder: Path, rows: int) -> Table:
    """Write the table; the same bytes of data for the same number of rows."""
    random = np.random.default_rng(SEED)
    wages = np.clip(random.gamma(4, 5, rows), LOW, HIGH)
    regions = random.choice(len(REGIONS), rows, p=_REGIONS_SIZES)
    granted = random.choice(np.array(list(LEVELS)) * _ANSWERS, rows, p=list(LEVELS.values()))
    columns = {
        "id": np.arange(rows),
        "wage": wages,
        "region": pa.DictionaryArray.from_arrays(regions, list(REGIONS)).cast(pa.string()),
        "granted": granted,
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"people-{rows}.parquet"
    parquet.write_table(pa.table(columns), path)
    truth: dict[str, float | dict[str, float]] = {
        "count": float(rows),
        "sum": float(wages.sum()),
        "mean": float(wages.mean()),
        "mean by region": {name: float(wages[regions == place].mean()) for place, name in enumerate(REGIONS)},
        "median": float(np.median(wages)),
    }
    return Table(path, rows, truth)
