"""Sources that change while they are being registered: nobody is above the cap, and all comes from one reading."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sqlglot import exp

from epsilons.engines.base import SOURCE, Schema
from epsilons.engines.duckdb import DuckDB
from epsilons.engines.trees import table
from epsilons.errors import DataError
from support.changing import KINDS, Schedule, race

QUICK, LONG = 12, 1_000


def hold_many(folder: Path, count: int, seed: int, **options: Any) -> None:
    random = np.random.default_rng(seed)
    for place in range(count):
        schedule = Schedule(random, **options)
        try:
            schedule.hold(_fresh(folder, place))
        except (AssertionError, DataError) as error:
            raise AssertionError(f"schedule {place} of seed {seed}: {schedule}") from error


def _fresh(folder: Path, place: int) -> Path:
    made = folder / str(place)
    made.mkdir(mode=0o700)  # the folder of snapshots is for its owner alone
    return made


def test_a_source_that_changes_meanwhile_is_read_once(tmp_path: Path) -> None:
    hold_many(tmp_path, QUICK, 17)


def test_a_source_that_another_process_writes_is_read_once(tmp_path: Path) -> None:
    assert race(tmp_path, 4) == 4


@pytest.mark.integration
def test_a_table_of_a_server_that_changes_meanwhile_is_read_once(tmp_path: Path, postgres_server: str) -> None:
    hold_many(tmp_path, 3, 17, kinds=("server",), server=postgres_server)


@pytest.mark.soak
@pytest.mark.figure("figure_17")
def test_a_thousand_sources_that_change_meanwhile_are_read_once(
    tmp_path: Path, postgres_server: str, record_property: Callable[[str, Any], None]
) -> None:
    hold_many(tmp_path, LONG, int.from_bytes(os.urandom(4), "little"), kinds=(*KINDS, "server"), server=postgres_server)
    assert race(_fresh(tmp_path, LONG), 100) == 100
    record_property("size", LONG)


# --- the checks have teeth ------------------------------------------------------------------------------------------


def stage_nothing(self: DuckDB, name: str) -> Schema:
    """A planted bug: what is staged is the source itself, read anew by every query; its rows have no places."""
    query = exp.select("*").from_(table(SOURCE))
    self._connection.execute(f"CREATE VIEW {table(name).sql('duckdb')} AS {query.sql('duckdb')}")
    return self.schema


def test_without_staging_schedules_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DuckDB, "stage", stage_nothing)
    monkeypatch.setattr(DuckDB, "embedded", False)
    schedule = Schedule(np.random.default_rng(17), kinds=("parquet",))
    few, many = (pa.table({"id": [n % 9 for n in range(rows)], "x": [0] * rows}) for rows in (9, 90))
    schedule.cap, schedule.changes, schedule.editions = 1, [], [few]
    schedule.hold(_fresh(tmp_path, 0))  # as long as nothing changes, nothing is wrong
    # Rows that appear after they were counted are above the cap: what was written is refused.
    schedule.changes, schedule.editions = ["crowd counted"], [few, many]
    with pytest.raises(DataError, match="were not capped"):
        schedule.hold(_fresh(tmp_path, 1))
    monkeypatch.setattr("epsilons.dataset.snapshot.check_copy", lambda *_: None)
    with pytest.raises(AssertionError, match="above the cap"):
        schedule.hold(_fresh(tmp_path, 2))
    with pytest.raises(AssertionError, match="schedule"):
        hold_many(_fresh(tmp_path, 3), 5, 17, kinds=("parquet",))
