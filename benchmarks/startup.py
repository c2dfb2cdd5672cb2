"""How long `import epsilons` takes in a fresh process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

from timing import Group, Limit, Row, Seconds, Size, time_row

_PROGRAM = """
import time
wall, processor = time.perf_counter(), time.process_time()
import {}
print(time.process_time() - processor, time.perf_counter() - wall)
"""


def _measure(size: Size) -> Iterator[Row]:
    for module in ("epsilons", "numpy"):
        _import_seconds(module)
    mine, theirs = [], []
    for _ in range(size.repetitions(11)):
        mine.append(_import_seconds("epsilons"))
        theirs.append(_import_seconds("numpy"))
    yield time_row("import epsilons", mine, theirs, against="import numpy", limit=Limit(0.35, "ours"))


def _import_seconds(module: str) -> Seconds:
    """As the process itself sees it: the interpreter's own start does not count."""
    done = subprocess.run([sys.executable, "-c", _PROGRAM.format(module)], capture_output=True, text=True, check=True)
    processor, wall = done.stdout.split()
    return Seconds(float(processor), float(wall))


STARTUP = Group("startup", "Import, in fresh processes", _measure)
