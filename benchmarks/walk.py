"""Which way a question takes through the package: files passed, hops between files, calls and depth.

Every way is followed in a fresh process, the first time it is taken. A hop is a call that lands in another file of the
package than the call before it: what a reader who follows the question has to turn over. Run by `make walk`; a way
above its limit fails the command.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pyarrow as pa

import epsilons as eps

PACKAGE = str(Path(eps.__file__).parent) + "/"


@dataclass
class Walk:
    """What was passed on the way."""

    calls: int = 0
    hops: int = 0
    depth: int = 0
    last: str = ""
    files: Counter[str] = field(default_factory=Counter)
    between: Counter[tuple[str, str]] = field(default_factory=Counter)

    def row(self, name: str) -> str:
        """A line of the table."""
        rooms = sum(count for (one, other), count in self.between.items() if one.split("/")[0] != other.split("/")[0])
        return f"{name:34} {self.calls:6,} {self.passed:6} {self.hops:6,} {rooms:6,} {self.depth:6}"

    @property
    def passed(self) -> int:
        """How many files, but for those of mechanisms that are compared."""
        return sum(not is_compared(file) for file in self.files)


def follow(ask: Callable[[], Any]) -> Walk:
    """Profile one call; only functions of the package count, and what they call outside is passed over."""
    walk = Walk()
    stack: list[str] = []

    def seen(frame: FrameType, event: str, argument: Any) -> None:
        if event not in ("call", "return") or not frame.f_code.co_filename.startswith(PACKAGE):
            return
        name = frame.f_code.co_filename.removeprefix(PACKAGE)
        if event == "return":
            if stack:
                stack.pop()
            return
        walk.calls += 1
        walk.files[name] += 1
        if walk.last not in ("", name):
            walk.hops += 1
            walk.between[walk.last, name] += 1
        walk.last = name
        stack.append(name)
        walk.depth = max(walk.depth, len(stack))

    sys.setprofile(seen)
    try:
        ask()
    finally:
        sys.setprofile(None)
    return walk


#: The most files and hops that a way may take. The files of mechanisms that are compared are not counted: each has one
#: of its own, which says nothing but how it weighs, and more of them make no way harder to follow.
LIMITS = {
    "eps.mean, a named mechanism": (14, 120),
    "eps.mean, auto": (18, 200),
    "Dataset.mean, where and by": (31, 300),
    "eps.mean, default": (16, 200),
    "Dataset.mean, default": (31, 340),
}
_SHARED = {"mechanisms/base.py", "mechanisms/calibration.py", "mechanisms/vetting.py"}


def is_compared(file: str) -> bool:
    """Whether this is the file of one mechanism among others."""
    return file.startswith("mechanisms/") and file not in _SHARED


def values_and_epsilons() -> tuple[Any, Any]:
    """A thousand made-up people at three levels."""
    rng = np.random.default_rng(7)
    return rng.uniform(0, 100, 1000), rng.choice([0.1, 0.5, 1.0], 1000)


def walk_arrays(name: str, **words: Any) -> Iterator[tuple[str, Walk]]:
    """A question on plain arrays."""
    values, epsilons = values_and_epsilons()
    yield name, follow(lambda: eps.mean(values, epsilons, bounds=(0, 100), spread=20, **words))


def walk_table(name: str, **words: Any) -> Iterator[tuple[str, Walk]]:
    """A question on a table, and the same again."""
    values, epsilons = values_and_epsilons()
    table = pa.table(
        {"id": range(1000), "wage": values, "e": epsilons, "region": ["n", "s"] * 500, "age": [20, 40, 60, 80] * 250}
    )
    people = eps.Dataset(table, person="id", preferences=eps.Preferences.from_column("e"), ledger="memory")

    def ask() -> Any:
        return people.mean("wage", bounds=(0, 100), where="age >= 30", by={"region": ["n", "s"]}, share=0.1, **words)

    yield name, follow(ask)
    yield "the same again, stored", follow(ask)


#: The least that can be asked: every person's value is known, and preferences tell nothing of values.
SIMPLEST: dict[str, Any] = {"complete": True, "assume": "unrelated"}

WAYS: dict[str, Callable[[], Iterator[tuple[str, Walk]]]] = {
    "named": lambda: walk_arrays("eps.mean, a named mechanism", mechanism="weighted", **SIMPLEST),
    "auto": lambda: walk_arrays("eps.mean, auto", **SIMPLEST),
    "default": lambda: walk_arrays("eps.mean, default"),
    "table": lambda: walk_table("Dataset.mean, where and by", assume="unrelated"),
    "table-default": lambda: walk_table("Dataset.mean, default"),
}


def print_way(way: str, verbose: bool) -> int:
    """Follow one way in this process; 1 if it is longer than its limit."""
    failed = False
    for name, walk in WAYS[way]():
        files, hops = LIMITS.get(name, (10**9, 10**9))
        over = walk.passed > files or walk.hops > hops
        failed |= over
        print(walk.row(name) + (f"   over the limit of {files} files and {hops} hops" if over else ""))
        if verbose:
            for (one, other), count in walk.between.most_common(60):
                print(f"    {count:4}  {one} -> {other}")
            for file, count in walk.files.most_common():
                print(f"    {count:4}  {file}")
    return int(failed)


def main() -> int:
    """Print the table, each way from a process of its own; 1 if one of them is too long."""
    verbose = ["--verbose"] if "--verbose" in sys.argv else []
    chosen = [argument for argument in sys.argv[1:] if argument in WAYS]
    if chosen:
        return print_way(chosen[0], bool(verbose))
    print(f"{'way':34} {'calls':>6} {'files':>6} {'hops':>6} {'rooms':>6} {'depth':>6}", flush=True)
    found = [subprocess.run([sys.executable, __file__, way, *verbose], check=False).returncode for way in WAYS]
    return int(any(found))


if __name__ == "__main__":
    sys.exit(main())
