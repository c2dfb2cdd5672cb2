"""Snapshots written and opened without a ledger: whoever is in the data is on the roster."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np
from sqlglot import exp

from epsilons.dataset.preferences import check_id_column, read_preferences
from epsilons.dataset.rows import PERSON, Preparation, stage
from epsilons.dataset.snapshot import Stamp, write_snapshot
from epsilons.engines.base import SOURCE, Engine, open_table
from epsilons.engines.trees import column, table
from epsilons.ledger.identity import digests
from epsilons.ledger.values import Digests, Members
from epsilons.preferences import Preferences

SALT = bytes(range(16))


def register(source: Any, folder: Any, rows: int = 1, person: str = "id", **options: Any) -> Stamp:
    """As registration does; the stamp as the ledger gives it back."""
    engine = open_table(source, **options)
    try:
        kind = check_id_column(engine, person)
        stage(engine)
        asked = read_preferences(engine, kind, Preferences({}, default=1.0))
        people = digests(asked.ids, SALT)
        stamp: Stamp = json.loads(json.dumps(write_snapshot(engine, kind, asked.ids, people, rows, SALT, str(folder))))
        return stamp
    finally:
        engine.close()


def members_of(people: Digests, cohorts: Any = 0, epoch: int = 1) -> Members:
    """A ledger's members: these people, in these cohorts."""
    order = np.argsort(np.ascontiguousarray(people).view("S16").reshape(-1))
    return Members(epoch, np.ascontiguousarray(people[order]), np.broadcast_to(cohorts, len(people))[order])


def rows_of(engine: Engine, name: str = SOURCE) -> list[dict[str, Any]]:
    """Every row, read as no analyst can."""
    found: list[dict[str, Any]] = engine.run(exp.select("*").from_(table(name))).to_pylist()
    return found


def rows_each(engine: Engine, name: str = SOURCE) -> Counter[int]:
    """How many rows people have, by their numbers."""
    found = engine.run(exp.select(column(PERSON)).from_(table(name)))
    return Counter(found[PERSON].to_pylist())


def codes_of(preparation: Preparation) -> dict[int, int]:
    """The code beside the rows of each person."""
    prepared = preparation.prepared
    return {row[PERSON]: row[prepared.level] for row in rows_of(prepared.engine, prepared.name)}
