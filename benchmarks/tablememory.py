"""The most memory a process holds while it answers about a table, beside one that runs the plain query.

Each has a process of its own, which runs this file. A dataset is prepared before; its ledger is a SQLite file and
not in the process. Where the operating system lets a process forget its high-water mark (Linux), that of the
preparation is reported apart from that of the questions, which begin when its memory has been given back.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
from memory import high_water
from pyarrow import parquet
from tablespeed import ARROW, FEW, PARQUET
from timing import Group, Limit, Row, Size, row_of
from wage_table import QUESTIONS, Plain, make_file, open_dataset

_ASKED = tuple(asked for asked in QUESTIONS if asked.limit is not None)
_RESET = Path("/proc/self/clear_refs")


def memory_group(number: int) -> Group:
    """At the largest size of a run."""
    return Group("table-memory", f"Peak memory of a process, {number:,} people", partial(_measure, number))


def _measure(number: int, size: Size) -> Iterator[Row]:
    people = size.people(number)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "wages.parquet"
        make_file(path, people, FEW)
        for source in (ARROW, PARQUET):
            ours, plain = (_run_apart(who, source, path) for who in ("ours", "plain"))
            for asked in _ASKED:
                yield row_of(
                    f"{asked.name}, {people:,} people, {source}",
                    [ours[asked.name]],
                    [plain[asked.name]],
                    against="a process with the plain query",
                    unit="bytes",
                    limit=Limit(2, "ratio"),
                )
            yield row_of(
                f"preparation, {people:,} people, {source}",
                [ours["preparation"]],
                [plain["mean"]],
                against="a process with the plain query",
                unit="bytes",
            )


def _run_apart(who: str, source: str, path: Path) -> dict[str, float]:
    command = [sys.executable, __file__, who, source, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _answer_here(who: str, source: str, path: Path) -> dict[str, float]:
    given = path if source == PARQUET else parquet.read_table(path)
    found = {}
    if who == "plain":
        plain = Plain(given)
        for asked in _ASKED:
            found[asked.name] = _peak(plain.ask(asked.by_level))
        return found
    opened = []
    ledger = f"sqlite:///{path.with_suffix(f'.{source}.ledger')}"
    found["preparation"] = _peak(lambda: opened.append(open_dataset(given, ledger)))
    _settle()
    for asked in _ASKED:
        found[asked.name] = _peak(asked.ours(opened[0]))
    opened[0].close()
    return found


def _settle() -> None:
    """Wait until resident memory falls no more: what is freed goes back to the operating system bit by bit."""
    last = float("inf")
    for _ in range(30):
        if _RESET.exists():
            _RESET.write_text("5")
        now = float(high_water())
        if now > 0.99 * last:
            return
        last = now
        time.sleep(2)


def _peak(action: object) -> float:
    """The high-water mark of one call, and of all before it where a process cannot forget."""
    pa.default_memory_pool().release_unused()
    if _RESET.exists():
        _RESET.write_text("5")
    action()  # type: ignore[operator]
    return float(high_water())


if __name__ == "__main__":
    json.dump(_answer_here(sys.argv[1], sys.argv[2], Path(sys.argv[3])), sys.stdout)
