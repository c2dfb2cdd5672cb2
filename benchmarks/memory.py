"""The most memory a process holds while it answers, input included, as a multiple of the input.

Each answer has a process of its own, which runs this file: it makes the values and epsilons, answers once for a few
people so that everything is loaded, and then for all. What counts is the operating system's own high-water mark of
resident memory (`VmHWM` where there is /proc, else `ru_maxrss`): it sees every allocation, numpy's or not, also what
the allocator keeps. `ru_maxrss` alone would not do, since on Linux a process starts with its parent's.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rosters import epsilons_at, generator, spread_levels
from timing import Group, Limit, Row, Size, row_of

_STATUS = Path("/proc/self/status")
_ARGUMENTS: dict[str, dict[str, Any]] = {"count": {}, "mean": {"bounds": (0, 1)}, "median": {"bounds": (0, 1)}}
_LEVELS = (3, 5_000)


def _measure(size: Size) -> Iterator[Row]:
    people = size.people(10_000_000)
    for statistic in _ARGUMENTS:
        for levels in _LEVELS:
            runs = [_run_apart(statistic, people, levels) for _ in range(size.repetitions(3))]
            yield row_of(
                f"{statistic}, {people:,} people, {levels:,} distinct epsilons",
                [run["input"] + run["more"] for run in runs],
                [run["input"] for run in runs],
                against="values and epsilons",
                unit="bytes",
                limit=Limit(4, "ratio"),
            )


def _run_apart(statistic: str, people: int, levels: int) -> dict[str, float]:
    command = [sys.executable, __file__, statistic, str(people), str(levels)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def high_water() -> int:
    """Bytes of resident memory at its highest."""
    if _STATUS.exists():
        line = next(line for line in _STATUS.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def _people(number: int, levels: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Filled piece by piece, so that making the input does not need more memory than the input."""
    random, piece = generator(6), 100_000
    values, epsilons = np.empty(number), np.empty(number)
    for start in range(0, number, piece):
        part = slice(start, min(start + piece, number))
        values[part] = random.random(part.stop - start)
        epsilons[part] = epsilons_at(spread_levels(levels), part.stop - start, random)
    return values, epsilons


def _answer_here(statistic: str, people: int, levels: int) -> dict[str, float]:
    import epsilons as eps

    values, epsilons = _people(people, levels)
    ask = getattr(eps, statistic)
    ask(values[:2_000], epsilons[:2_000], **_ARGUMENTS[statistic])
    before = high_water()
    ask(values, epsilons, **_ARGUMENTS[statistic])
    return {"input": float(values.nbytes + epsilons.nbytes), "more": float(high_water() - before)}


MEMORY = Group("memory", "Peak memory, input included", _measure)

if __name__ == "__main__":
    json.dump(_answer_here(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])), sys.stdout)
