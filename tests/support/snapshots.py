"""Snapshots written and opened without a ledger: whoever is in the data is on the roster."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np
from sqlglot import exp

from epsilons.dataset.preferences import check_id_column, read_preferences
from epsilons.dataset.rows import COHORT, PERSON, Preparation, stage
from epsilons.dataset.snapshot import Stamp, open_snapshot, write_snapshot
from epsilons.engines.base import SOURCE, Engine, open_table
from epsilons.engines.trees import column, table
from epsilons.ledger.departures import Departures
from epsilons.ledger.identity import SHA_256
from epsilons.ledger.order import as_sorted
from epsilons.ledger.values import Digests, Moves
from epsilons.preferences import Preferences

SALT = bytes(range(16))


def register(source: Any, folder: Any, rows: int = 1, person: str = "id", **options: Any) -> Stamp:
    """As registration does, everyone in one of the cohorts 5, 6, 7 by turns; the stamp as the ledger gives it back."""
    engine = open_table(source, **options)
    try:
        kind = check_id_column(engine, person)
        stage(engine)
        asked, people = read_preferences(engine, kind, Preferences({}, default=1.0), SALT, SHA_256, normal=False)
        facts = people, np.arange(len(people)) % 3 + 5, rows, SALT, str(folder)
        stamp: Stamp = json.loads(json.dumps(write_snapshot(engine, kind, asked.ids, asked.held, *facts)))
        return stamp
    finally:
        engine.close()


def moves_of(people: Digests, cohorts: Any, epoch: int = 1) -> Moves:
    """What a ledger says: these people came to these cohorts."""
    order = np.argsort(as_sorted(people))
    return Moves(epoch, 7, as_sorted(people)[order], np.broadcast_to(cohorts, len(people))[order], Departures.of([]))


def opened(stamp: Stamp, **options: Any) -> tuple[Engine, Digests]:
    """(the rows, people's digests by number)."""
    written = open_snapshot(stamp, 2, 0, **options)
    return written.engine, written.digests


def rows_of(engine: Engine, name: str = SOURCE, cohorts: bool = False) -> list[dict[str, Any]]:
    """Every row, read as no analyst can; with the cohort's code beside it, if wanted."""
    found = engine.run(exp.select("*").from_(table(name))).to_pylist()
    return [{key: value for key, value in row.items() if cohorts or key != COHORT} for row in found]


def rows_each(engine: Engine, name: str = SOURCE) -> Counter[int]:
    """How many rows people have, by their numbers."""
    found = engine.run(exp.select(column(PERSON)).from_(table(name)))
    return Counter(found[PERSON].to_pylist())


def codes_of(preparation: Preparation) -> dict[int, int]:
    """The code beside the rows of each person."""
    prepared = preparation.prepared
    return {row[PERSON]: row[prepared.level] for row in rows_of(prepared.engine, prepared.name, cohorts=True)}
