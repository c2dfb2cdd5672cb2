"""A Spark session that is stopped under a dataset, and a new one; prints what was said and what was charged.

Run as a program: `PYTHONPATH=tests python -m support.spark_stopped FOLDER`.
A process has one Spark, so this one has its own.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import epsilons as eps
from support.spark_session import start


def said(work: Callable[[], object]) -> str:
    """How it was refused."""
    try:
        work()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


def main(folder: Path) -> dict[str, Any]:
    """All that the test looks at."""
    ledger = eps.ledger.open()

    def frame() -> Any:
        return start(str(folder), "local[1]").range(300).selectExpr("id", "20D + id % 60 AS wage")

    def opened(source: Any) -> eps.Dataset:
        return eps.Dataset(source, person="id", preferences=1.0, version="1", ledger=ledger)

    source = frame()
    people = opened(source)
    people.count(share=0.1)
    before = len(people.history())
    source.sparkSession.stop()
    refused = {
        "question": said(lambda: people.mean("wage", bounds=(0, 100), share=0.1)),
        "roster": said(lambda: people.withdraw([3])),
        "plan": said(lambda: people.plan("mean", "wage", bounds=(0, 100))),
        "opening": said(lambda: opened(source)),
    }
    found = {"said": refused, "charged while it ran": before, "charged": len(people.history()), "epoch": ledger.epoch}
    people.close()
    with opened(frame()) as again:  # the same question, on a new session
        again.mean("wage", bounds=(0, 100), share=0.1)
        found["answered again"] = len(again.history())
    return found


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))
