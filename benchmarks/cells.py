"""Medians of a table at many levels beside the same at few: what reading, sorting and drawing take, without a ledger.

`make bench-tables` measures whole questions, whose ledger has an account to keep for each level.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
from rosters import generator, spread_levels
from timing import Action, Group, Limit, Row, Size, again, time_by_turns

from epsilons.dataset.people import TablePeople
from epsilons.engines.duckdb import DuckDB
from epsilons.mechanisms.weighted import Weighted
from epsilons.noise.entropy import system
from epsilons.preferences import roster_of
from epsilons.statistics.base import Question
from epsilons.statistics.order import median
from epsilons.summaries.sql import Prepared

_FEW, _MANY = 3, 256
_BOUNDS = (0.0, 100.0)


def _ask(engine: DuckDB, rows: int, levels: int, random: np.random.Generator, grid: float | None) -> Action:
    """One median, with an interval, of people who stand at so many levels."""
    roster = roster_of(spread_levels(levels)[np.arange(rows) % levels] / 10)
    codes = random.permutation(roster.codes)
    name = f"people at {levels} levels"
    table = pa.table({"wage": random.normal(50, 15, rows), "level": codes})
    prepared = Prepared(engine, name, engine.add(name, table), "level", levels, rows)
    kept: Any = SimpleNamespace(prepared=prepared)
    people = TablePeople(kept, "wage", None, None, roster.levels, np.arange(levels))
    question = Question(median(_BOUNDS, grid).paying_for_interval(Fraction(2, 5)))
    return partial(Weighted().draw, question, people, system())


def _measure(size: Size) -> Iterator[Row]:
    rows, random = size.people(10_000_000), generator(9)
    engine = DuckDB(pa.table({"nothing": [1]}))
    for what, grid in (("65,537 points", None), ("101 points", 1.0)):
        many, few = (_ask(engine, rows, levels, random, grid) for levels in (_MANY, _FEW))
        yield time_by_turns(
            f"median, {rows:,} rows, {_MANY} levels, {what}",
            again(many),
            few,
            against=f"the same at {_FEW} levels",
            repetitions=size.repetitions(9),
            pick=min,
            limit=Limit(1.5, "ratio"),
        )
    engine.close()


CELLS = Group("levels", "A median of a table at 256 levels", _measure)
