"""The local model: ten million owners beside one numpy draw, and other packages on the same task.

The other packages are installed from PyPI into a virtual environment of their own, in a temporary directory that is
removed afterwards. One that cannot be installed or run is said to be so.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from page import write_between
from report import HEAD, facts, print_tables, row_cells
from rich.console import Console
from timing import Group, Limit, Row, Size, again, time_by_turns

from epsilons.local import PersonalResponse, RandomizedResponse, SamplingPrivacy

PAGE = Path(__file__).parents[1] / "docs" / "local.md"
START, END = "<!-- results: written by `make bench-local ARGS=--write` -->", "<!-- end of results -->"
#: At most so many times one numpy draw of that size.
LIMIT = 15

#: The task for all packages: frequencies of ten values, randomized response over ten outputs.
TASK = {"values": 10, "epsilon": 1.0, "owners": 200_000, "runs": 20, "seed": 4}
#: What is installed for each; pure-ldp imports two packages that it does not declare.
OTHERS = {"pure-ldp": ["pure-ldp", "scikit-learn", "statsmodels"], "multi-freq-ldpy": ["multi-freq-ldpy"]}


def owners_beside_numpy(size: Size) -> Iterator[Row]:
    """All owners of a yes-or-no question, in every round, against as many numpy uniforms."""
    people, random = size.people(10_000_000), np.random.default_rng(3)
    truths = (random.random(people) < 0.05).astype(np.uint8)
    levels = np.array([0.1, 0.5, 1.0, 2.0])[random.integers(0, 4, people)]
    draw = partial(random.random, people)
    facts = {"against": "numpy's uniform", "repetitions": size.repetitions(7)}
    personal = PersonalResponse(levels)
    measured = {
        "Sampling Privacy, two rounds": partial(SamplingPrivacy(sampling=0.45).respond, truths),
        "Sampling Privacy, two rounds, counted and estimated": partial(_whole, SamplingPrivacy(sampling=0.45), truths),
        "randomized response": partial(RandomizedResponse(truth=0.8, yes=0.2).respond, truths),
        "randomized response at four personal epsilons": partial(personal.respond, truths),
    }
    for what, action in measured.items():
        limit = Limit(LIMIT, "ratio") if what.endswith("two rounds") else None
        yield time_by_turns(f"{people:,} owners: {what}", again(action), draw, limit=limit, **facts)


def _whole(protocol: SamplingPrivacy, truths: Any) -> float:
    return float(protocol.estimate(*map(protocol.count, protocol.respond(truths))).value)


def run_ours(task: dict[str, Any]) -> dict[str, Any]:
    """The task with this library: value 0 is "none", the others are options 1..9."""
    protocol = RandomizedResponse(epsilon=task["epsilon"], options=task["values"] - 1)
    truths, truth = people_of(task)
    protocol.respond(truths[:100])
    seconds, errors = [], []
    for _ in range(task["runs"]):
        start = time.process_time()
        (answers,) = protocol.respond(truths)
        found = protocol.estimate(protocol.count(answers)).values
        seconds.append(time.process_time() - start)
        errors.append(float(np.sqrt(np.mean((found - truth[1:]) ** 2))))
    return {"seconds": float(np.median(seconds)), "error": math.sqrt(np.mean(np.square(errors)))}


def people_of(task: dict[str, Any]) -> tuple[Any, Any]:
    """Everybody's value, the larger ones rarer, and how many have each."""
    random = np.random.default_rng(task["seed"])
    shares = 1 / np.arange(1, task["values"] + 1)
    truths = random.choice(task["values"], task["owners"], p=shares / shares.sum())
    return truths, np.bincount(truths, minlength=task["values"])


def run_others(task: dict[str, Any], notes: Console) -> dict[str, dict[str, Any]]:
    """The task with each of the other packages, in an environment of their own."""
    found: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(prefix="epsilons-bench-") as directory:
        environment = Path(directory) / "venv"
        notes.print("Making an environment for the other packages")
        venv.create(environment, with_pip=True)
        python = environment / ("Scripts" if sys.platform == "win32" else "bin") / "python"
        for package, needed in OTHERS.items():
            notes.print(f"Installing and running {package}")
            install = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *needed]
            script = [python, "-E", Path(__file__).with_name("local_others.py"), package, json.dumps(task)]
            try:
                subprocess.run(install, check=True, capture_output=True, text=True, timeout=900)
                done = subprocess.run(script, check=True, capture_output=True, text=True, timeout=900)
                found[package] = json.loads(done.stdout.splitlines()[-1])
            except subprocess.CalledProcessError as failed:
                step = "installed" if failed.cmd is install else "run"
                reason = (failed.stderr.strip().splitlines() or ["no reason given"])[-1]
                found[package] = {"failed": f"could not be {step}: {reason[:160]}"}
            except subprocess.TimeoutExpired:
                found[package] = {"failed": "took longer than 15 minutes"}
    return found


def others_table(found: dict[str, dict[str, Any]], task: dict[str, Any]) -> list[str]:
    """One line per package, as a markdown table."""
    lines = [
        f"{task['owners']:,} owners, {task['values']} values, randomized response over all of them at epsilon "
        f"{task['epsilon']:g}: answering, counting and estimating. Median time and RMSE of {task['runs']} runs.",
        "",
        "| package | version | time | error, people | |",
        "|---|---|---:|---:|---|",
    ]
    for package, result in found.items():
        if "failed" in result:
            lines.append(f"| `{package}` | | | | {result['failed']} |")
        else:
            note = result.get("note", "")
            lines.append(
                f"| `{package}` | {result['version']} | {result['seconds']:.3g} s | {result['error']:,.0f} | {note} |"
            )
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and on request write to the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="tiny sizes: shows that everything runs")
    parser.add_argument("--without-others", action="store_true", help="leave the other packages out")
    parser.add_argument("--write", action="store_true", help="put the results into docs/local.md")
    options = parser.parse_args(arguments)
    if options.write and (options.quick or options.without_others):
        parser.error("--write needs a whole run")
    notes = Console(stderr=True)
    group = Group("local", "The local model", owners_beside_numpy)
    rows = list(owners_beside_numpy(Size(options.quick)))
    task = {**TASK, "owners": 2_000, "runs": 2} if options.quick else TASK
    ours = {"epsilons": {**run_ours(task), "version": facts()["epsilons"], "note": "exact draws, secure randomness"}}
    found = ours if options.without_others else {**ours, **run_others(task, notes)}
    print_tables(Console(highlight=False), [(group, rows)], options.quick)
    print("\n".join(others_table(found, task)))
    if options.write:
        _write(rows, others_table(found, task))
        notes.print(f"Written to docs/{PAGE.name}.")
    return 0


def _write(rows: Sequence[Row], others: Sequence[str]) -> None:
    known = facts()
    lines = [
        f"Of {known['date']}: epsilons {known['epsilons']}, Python {known['python']}, numpy {known['numpy']}, "
        f"{known['cores']} cores.",
        "",
        f"| {' | '.join(HEAD)} |",
        "|---|---:|---:|---:|---:|---|",
        *(f"| {' | '.join(row_cells(row, quick=False))} |" for row in rows),
        "",
        *others,
    ]
    write_between(PAGE, (START, END), lines)


if __name__ == "__main__":
    sys.exit(main())
