"""A Spark session that is stopped under a dataset: it is said in words, nobody is charged, a new one goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import epsilons as eps
from support import spark_session

if reason := spark_session.missing():
    pytest.skip(reason, allow_module_level=True)
pytestmark = pytest.mark.integration


def test_a_stopped_session_charges_nobody(tmp_path: Path) -> None:
    """A process has one Spark at a time, and this file is where it may be stopped."""
    ledger = eps.ledger.open()

    def frame() -> Any:
        return spark_session.start(str(tmp_path)).range(300).selectExpr("id", "20D + id % 60 AS wage")

    def opened(source: Any) -> eps.Dataset:
        return eps.Dataset(source, person="id", preferences=1.0, version="1", ledger=ledger)

    source = frame()
    people = opened(source)
    people.count(share=0.1)
    source.sparkSession.stop()
    works: list[Callable[[], object]] = [
        lambda: people.mean("wage", bounds=(0, 100), share=0.1),
        lambda: people.withdraw([3]),
        lambda: people.plan("mean", "wage", bounds=(0, 100)),
        lambda: opened(source),
    ]
    for work in works:
        with pytest.raises(eps.DataError, match=r"^The Spark session of this table was stopped\."):
            work()
    assert (len(people.history()), ledger.epoch) == (1, 1)
    people.close()
    again = frame()  # the same question, on a new session
    with opened(again) as later:
        later.mean("wage", bounds=(0, 100), share=0.1)
        assert (len(later.history()), len(ledger.history())) == (1, 2)  # another dataset, the same accounts
    again.sparkSession.stop()
