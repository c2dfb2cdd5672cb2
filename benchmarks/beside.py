"""This checkout beside another one: processor time of the same questions, in turns, so that a busy machine slows both.

git worktree add ../before SOME_COMMIT
.venv/bin/python benchmarks/beside.py ../before
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]
_TURNS, _REPEATS = 3, 5


def questions() -> dict[str, tuple[Callable[[int], Any], int]]:
    """What is asked, and how often in a row; the number makes each question a new one."""
    import numpy as np
    import pyarrow as pa

    import epsilons as eps

    rng = np.random.default_rng(1)
    wage, privacy = rng.uniform(0, 100, 1000), rng.choice([0.01, 0.1, 0.3, 0.5, 1.0, 2.0], 1000)
    table = pa.table({"id": range(1000), "wage": wage, "e": privacy * 1000, "r": ["n", "s"] * 500, "age": range(1000)})
    preferences = eps.Preferences.from_column("e")
    people = eps.Dataset(table, person="id", preferences=preferences, ceiling=2000, ledger="memory")
    bounds: dict[str, Any] = {"bounds": (0, 100)}
    groups: dict[str, Any] = {"by": {"r": ["n", "s"]}, "share": 0.001, **bounds}
    return {
        "mean, a named mechanism": (
            lambda i: eps.mean(wage, privacy, mechanism="weighted", spread=20 + i / 1e3, **bounds),
            20,
        ),
        "mean, auto": (lambda i: eps.mean(wage, privacy, spread=20 + i / 1e3, **bounds), 10),
        "mean, auto, same again": (lambda i: eps.mean(wage, privacy, spread=20, **bounds), 10),
        "median, auto": (lambda i: eps.median(wage, privacy, spread=20 + i / 1e3, **bounds), 5),
        "variance, auto": (lambda i: eps.variance(wage, privacy, spread=20 + i / 1e3, **bounds), 5),
        "plan of a mean": (lambda i: eps.plan("mean", privacy, spread=20 + i / 1e3, **bounds), 5),
        "table: mean where by": (lambda i: people.mean("wage", where=f"age >= {i}", **groups), 5),
        "table: stored": (lambda i: people.mean("wage", where="age >= 0", **groups), 10),
    }


def measure() -> dict[str, float]:
    """The least milliseconds of processor time of each question."""
    found = {}
    for name, (ask, times) in questions().items():
        ask(0)
        least = float("inf")
        for repeat in range(_REPEATS):
            started = time.process_time()
            for i in range(times):
                ask(1 + i + repeat * times)
            least = min(least, (time.process_time() - started) / times)
        found[name] = least * 1e3
    return found


def run_in(checkout: Path) -> dict[str, float]:
    """Measure with the source of a checkout, in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
    command = [sys.executable, __file__, "--measure"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    measured: dict[str, float] = json.loads(done.stdout)
    return measured


def main() -> int:
    """Print both, and how they compare."""
    if sys.argv[1:] == ["--measure"]:
        print(json.dumps(measure()))
        return 0
    if len(sys.argv) != 2 or not (Path(sys.argv[1]) / "src" / "epsilons").is_dir():
        print(__doc__)
        return 2
    before, now = Path(sys.argv[1]).resolve(), HERE
    turns = [(run_in(before), run_in(now)) for _ in range(_TURNS)]
    print(f"{'milliseconds':26} {'there':>8} {'here':>8} {'ratio':>6}")
    for name in turns[0][0]:
        there, here = (min(turn[side][name] for turn in turns) for side in (0, 1))
        print(f"{name:26} {there:8.2f} {here:8.2f} {here / there:6.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
