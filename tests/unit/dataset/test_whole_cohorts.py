"""Rows and their people, where whole cohorts went over to others since: months began, cohorts became one."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from sqlglot import exp

import epsilons as eps
import epsilons.ledger
from epsilons.dataset.rows import COHORT, PERSON
from epsilons.engines.trees import column, table
from epsilons.ledger import merging
from epsilons.ledger.ledger import Ledger

PEOPLE = 60


class Months:
    """The clock."""

    number = 0

    def __call__(self) -> datetime:
        return datetime(2026 + self.number // 12, self.number % 12 + 1, 3, tzinfo=UTC)


def check_rows(people: eps.Dataset, book: Ledger) -> None:
    """Everybody's row is counted with the cohort that the ledger has them in."""
    here, held = people._preparation, book.members()
    stands = dict(zip(map(bytes, held.digests), held.cohorts.tolist(), strict=True))
    wanted = [stands[bytes(digest)] for digest in here.digests]
    assert [here.cohorts[place] for place in here.places.tolist()] == wanted
    rows = here.prepared.engine.fetch(exp.select(column(PERSON), column(COHORT)).from_(table(here.prepared.name)))
    found = dict(zip(rows[PERSON].tolist(), rows[COHORT].tolist(), strict=True))
    assert [here.cohorts[found[number]] for number in range(PEOPLE)] == wanted


def test_rows_follow_their_people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging, "MOST", 6)
    monkeypatch.setattr(merging, "ROOM", 1)
    months, levels = Months(), {"one": 0.2, "two": 0.4, "three": 0.6}
    book = epsilons.ledger.open(f"sqlite:///{tmp_path}/p.ledger", witness=tmp_path / "head", clock=months)
    rows = pa.table({"id": range(PEOPLE), "wage": [30.0] * PEOPLE, "level": [*levels] * (PEOPLE // 3)})
    people = eps.Dataset.register(
        rows, name="wages", person="id", ledger=book, preferences=eps.Preferences.from_levels("level", levels),
        renews={"one": "month", "two": "month"},
    )  # fmt: skip
    for months.number in range(1, 5):
        for n, level in enumerate(levels):
            people.count(where=f"wage > {10 * months.number + n}", share=0.05)
            people.set_level({5 * months.number + n: level})
        people.withdraw([months.number])
        check_rows(people, book)
        with eps.Dataset.open("wages", ledger=book) as anew:
            check_rows(anew, book)
    assert {"merge", "renew"} <= {line["kind"] for line in book.export()}
    book.verify()
    people.close()
    book.close()
