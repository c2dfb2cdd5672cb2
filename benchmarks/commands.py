"""Whole commands in fresh processes: registering a table, asking it, verifying its ledger.

Their time is that on the wall, from the start of the interpreter to its end, as whoever waits for them sees it; their
memory is the process's high-water mark. The yardstick is a fresh interpreter that imports duckdb and asks the same of
the Parquet file. Questions are never stored ones: each has another condition.

What a mean of the registered table takes once it is open is measured in a process of its own, which runs this file.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from timing import Group, Limit, Row, Seconds, Size, row_of, seconds, time_row
from wage_table import QUESTIONS, SCAN, Plain, make_file

import epsilons as eps

_FILE = """
name = "wages"
source = "wages.parquet"
person = "id"
ledger = "sqlite:///wages.ledger"
ceiling = 100
complete = ["wage"]

[preferences]
column = "epsilon"

[bounds]
wage = [0, 100]
"""
_OURS = "from epsilons.cli.app import run; run()"
_PLAIN = (
    "import duckdb; duckdb.sql(\"SELECT epsilon, COUNT(*) FROM 'wages.parquet' WHERE age < {} GROUP BY 1\").fetchall()"
)
_LAUNCH = """
import json, os, sys, time
nowhere = os.open(os.devnull, os.O_WRONLY)
ends = [(os.POSIX_SPAWN_DUP2, nowhere, 1), (os.POSIX_SPAWN_DUP2, nowhere, 2)]
began = time.perf_counter()
child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=ends)
_, status, used = os.wait4(child, 0)
print(json.dumps([status, time.perf_counter() - began, used.ru_maxrss * 1024]))
"""
_AGAINST = "a fresh interpreter with the plain query"
_REPETITIONS = 7
#: Seconds for a count, and seconds and bytes for registering, by the number of people.
_COUNTS = {1_000_000: 0.9, 10_000_000: 1.2}
_REGISTERS = {10_000_000: (15.0, 1.2e9), 100_000_000: (300.0, 8e9)}


class Spent(NamedTuple):
    """What a process took: seconds on the wall, and bytes at most."""

    seconds: float
    memory: float


def command_group(sizes: Sequence[int]) -> Group:
    """At every size of a run."""
    return Group("commands", "Whole commands", partial(_measure_all, sizes))


def _measure_all(sizes: Sequence[int], size: Size) -> Iterator[Row]:
    for number in sizes[: 1 if size.quick else None]:
        yield from _measure(number, size)


def _measure(number: int, size: Size) -> Iterator[Row]:
    people = size.people(number)
    with TemporaryDirectory() as folder:
        make_file(Path(folder) / "wages.parquet", people, 3)
        (Path(folder) / "people.toml").write_text(_FILE)
        registered = _run(folder, _OURS, "register", "people.toml")
        first = _ask(folder, 29)
        plain, asked = [], []
        for age in range(30, 30 + size.repetitions(_REPETITIONS)):
            plain.append(_run(folder, _PLAIN.format(age)))
            asked.append(_ask(folder, age))
        mean, by_level = _mean_apart(folder, size.repetitions(_REPETITIONS))
        verified = _run(folder, _OURS, "ledger", "verify", "people.toml")
    quick, lean = _REGISTERS.get(people, (None, None))
    of = f", {people:,} people"
    count = f"count where age < 30{of}"
    yield _seconds(f"register{of}", [registered], plain, quick and Limit(quick, "ours"))
    yield _bytes(f"register, memory{of}", [registered], plain, lean and Limit(lean, "ours"))
    yield _seconds(f"the first count{of}", [first], plain)
    yield _seconds(count, asked, plain, Limit(_COUNTS[people], "ours") if people in _COUNTS else None)
    yield _seconds(f"{count}, beside plain", asked, plain, Limit(5, "ratio", 0.3))
    yield _bytes(f"{count}, memory", asked, plain, Limit(2, "ratio"))
    against = "the plain query by level, of the Parquet file"
    yield time_row(f"mean, once it is open{of}", mean, by_level, against=against, pick=min, limit=SCAN)
    yield _seconds(f"ledger verify{of}", [verified], plain)


def _seconds(what: str, ours: list[Spent], plain: list[Spent], limit: Limit | None = None) -> Row:
    return row_of(what, [one.seconds for one in ours], [one.seconds for one in plain], against=_AGAINST, limit=limit)


def _bytes(what: str, ours: list[Spent], plain: list[Spent], limit: Limit | None) -> Row:
    mine, theirs = ([one.memory for one in some] for some in (ours, plain))
    return row_of(what, mine, theirs, against=_AGAINST, limit=limit, unit="bytes")


def _mean_apart(folder: str, repetitions: int) -> list[list[Seconds]]:
    command = [sys.executable, __file__, folder, str(repetitions)]
    done = subprocess.run(command, env=_environment(folder), capture_output=True, text=True, check=True)
    return [[Seconds(*one) for one in some] for some in json.loads(done.stdout)]


def _mean_here(folder: str, repetitions: int) -> list[list[Seconds]]:
    """A mean of what is registered there and the plain query, by turns; one of each goes before, unmeasured."""
    os.chdir(folder)
    plain = Plain(Path("wages.parquet"))
    (asked,) = (asked for asked in QUESTIONS if asked.name == "mean")
    with eps.Dataset.from_toml("people.toml") as people:
        turns = [[seconds(asked.ours(people)), seconds(plain.ask(asked.by_level))] for _ in range(repetitions + 1)]
    plain.close()
    mine, theirs = zip(*turns[1:], strict=True)
    return [list(mine), list(theirs)]


def _ask(folder: str, age: int) -> Spent:
    return _run(folder, _OURS, "count", "people.toml", "--where", f"age < {age}", "--share", "0.001")


def _run(folder: str, program: str, *arguments: str) -> Spent:
    """One process with a state directory of its own, started by a small one: memory would begin with that of ours."""
    code = f"import os, sys; os.chdir({json.dumps(folder)}); {program}"
    command = [sys.executable, "-S", "-c", _LAUNCH, sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, env=_environment(folder), capture_output=True, text=True, check=True)
    status, took, memory = json.loads(done.stdout)
    if status != 0:
        raise RuntimeError(f"{' '.join(arguments) or 'the plain query'} failed")
    return Spent(took, memory)


def _environment(folder: str) -> dict[str, str]:
    environment = {**os.environ, "XDG_STATE_HOME": os.path.join(folder, "state")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # installed, everything is compiled once and for all
    return environment


if __name__ == "__main__":
    json.dump(_mean_here(sys.argv[1], int(sys.argv[2])), sys.stdout)
