"""epsilons beside its peers: the same five questions about the same table at the same epsilon.

Each library runs in a process and an environment of its own, made here. Times, errors and memory go to stdout as
markdown or JSON, progress to stderr.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from answering import TASKS, Job
from conversation import Library, Limits, Told, converse
from environments import NoEnvironmentError, python_of, version_of
from figures import AIM, OURS, Figure, Measured, Ready, figure_of, tasks_for_next_size
from made_up_people import LEVELS, Table, make_table
from results_page import markdown, write_page

import epsilons as eps

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PAGE = ROOT / "docs" / "peers.md"
CACHE = ROOT / ".peers"
FORMAT = 1

#: epsilons first, so that the peers' progress can be read beside it.
LIBRARIES = {
    OURS: "ask_epsilons.py",
    "OpenDP": "ask_opendp.py",
    "diffprivlib": "ask_diffprivlib.py",
    "PipelineDP": "ask_pipelinedp.py",
    "SmartNoise SQL": "ask_smartnoise.py",
    "Tumult Analytics": "ask_tumult.py",
}
SIZES = (1_000_000, 10_000_000)
EPSILON = 1.0

#: A larger table is asked about only where this many seconds are expected to do for an answer.
MOST_SECONDS = 60

#: The peer that shows what the strictest epsilon for all would mean; with few people, and with as many as at first.
STRICT_PEER = "OpenDP"
FEW = 1_000

#: There the errors are what matters, so there are more answers.
LEAST_FOR_ERRORS = 30

_EXAMPLE = """\
example:
  .venv/bin/python benchmarks/peers/run.py --quick --only epsilons
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 0 also when a peer fails or the aim is missed. Both are said plainly."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.write and (options.quick or options.only):
        parser.error("--write needs a whole run: leave out --quick and --only")
    sizes = sorted(set(options.rows or ([2_000] if options.quick else SIZES)))
    chosen = [name for name in LIBRARIES if name in (options.only or LIBRARIES)]
    bench = Bench(
        options.cache.resolve(), 0.05 if options.quick else options.seconds, 2 if options.quick else 3, Limits()
    )
    # Ended from outside, it still ends the process it listens to.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    before = os.getloadavg()[0]
    measured = bench.measure(chosen, sizes)
    facts = {**_facts(), "seconds": bench.seconds, "load": [before, os.getloadavg()[0]]}
    if options.json:
        document = {"format": FORMAT, "quick": options.quick, **facts, "aim": AIM, **asdict(measured)}
        json.dump(document, sys.stdout, indent=2, allow_nan=False)
        sys.stdout.write("\n")
    else:
        quick = ["A quick run: it shows that everything runs. Its figures mean nothing.", ""] if options.quick else []
        print("\n".join([*quick, *markdown(measured, facts)]))
    if options.write:
        write_page(PAGE, markdown(measured, facts))
        _say(f"Written to docs/{PAGE.name}.")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=_EXAMPLE, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--rows", action="append", type=int, help="another size than 1,000,000 and 10,000,000 (may be repeated)"
    )
    parser.add_argument("--only", action="append", choices=list(LIBRARIES), help="one library (may be repeated)")
    parser.add_argument("--seconds", type=float, default=10, help="time for repeating each task (default 10)")
    parser.add_argument(
        "--quick", action="store_true", help="a tiny table: shows that everything runs, measures nothing"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of tables")
    parser.add_argument("--write", action="store_true", help="put the results into docs/peers.md")
    parser.add_argument(
        "--cache", type=Path, default=CACHE, help="where environments, tables and logs go (default .peers)"
    )
    return parser


@dataclass(frozen=True)
class Bench:
    """How everything is measured: where files go, seconds and least answers for a task, limits."""

    cache: Path
    seconds: float
    least: int
    limits: Limits

    def measure(self, libraries: Sequence[str], sizes: Sequence[int]) -> Measured:
        """Every library at every size that it is fast enough for; after the first size the part about levels."""
        figures: list[Figure] = []
        ready: list[Ready] = []
        personal: list[Figure] = []
        for place, rows in enumerate(sizes):
            _say(f"Making a table of {rows:,} rows")
            table = make_table(self.cache / "tables", rows)
            for name in libraries:
                tasks = list(TASKS)
                if place:
                    smaller = sizes[place - 1]
                    tasks = tasks_for_next_size(figures, name, smaller, rows / smaller, MOST_SECONDS)
                if tasks:
                    told = self._ask(name, table, tasks, EPSILON)
                    figures += _figures(name, table, tasks, told)
                    ready.append(Ready(name, _version(name), rows, told.ready, told.memory))
            if place == 0:
                few = make_table(self.cache / "tables", FEW)
                for people in (few, table):
                    personal += replace(self, least=max(self.least, LEAST_FOR_ERRORS))._personal(libraries, people)
            table.path.unlink()
        return Measured(figures, ready, personal)

    def _personal(self, libraries: Sequence[str], table: Table) -> list[Figure]:
        found: list[Figure] = []
        if OURS in libraries:
            told = self._ask(OURS, table, TASKS, max(LEVELS), levels=True)
            found += _figures(OURS, table, TASKS, told)
        if STRICT_PEER in libraries:
            told = self._ask(STRICT_PEER, table, TASKS, min(LEVELS))
            found += _figures(STRICT_PEER, table, TASKS, told)
        return found

    def _ask(self, name: str, table: Table, tasks: Sequence[str], epsilon: float, levels: bool = False) -> Told:
        script = HERE / LIBRARIES[name]
        say = _speaker(f"{name}, {table.rows:,} rows{', people at several levels' * levels}")
        say(f"epsilon {epsilon:g}")
        logs = self.cache / "logs"
        logs.mkdir(parents=True, exist_ok=True)
        try:
            python = (
                Path(sys.executable)
                if name == OURS
                else python_of(script, self.cache, logs / f"{script.stem}-set-up.log")
            )
        except NoEnvironmentError as error:
            say(str(error))
            return Told(reasons=dict.fromkeys(tasks, str(error)))
        library = Library(
            python, script, _variables(name), self.cache / "left-behind", logs / f"{script.stem}-{table.rows}.log"
        )
        job = Job(str(table.path), table.rows, epsilon, tuple(tasks), self.seconds, self.least, levels)
        return converse(library, job, self.limits, say)


def _figures(name: str, table: Table, tasks: Sequence[str], told: Told) -> list[Figure]:
    found = []
    for task in tasks:
        if task in told.answers:
            found.append(figure_of(name, table.rows, task, told.seconds[task], told.answers[task], table.truth[task]))
        else:
            # Where this machine keeps its files does not belong into a published page.
            reason = told.reasons[task].replace(str(ROOT), ".").replace(str(Path.home()), "~")
            found.append(Figure(name, table.rows, task, reason=reason))
    return found


def _variables(name: str) -> dict[str, str]:
    """A peer sees nothing of our environment's packages."""
    hidden = () if name == OURS else ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "SPARK_HOME")
    return {key: value for key, value in os.environ.items() if key not in hidden}


def _version(name: str) -> str:
    return eps.__version__ if name == OURS else version_of(HERE / LIBRARIES[name])


def _facts() -> dict[str, Any]:
    """When, and with what; nothing that names a machine."""
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "epsilons": eps.__version__,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "epsilon": EPSILON,
    }


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def _speaker(whose: str) -> Callable[[str], None]:
    return lambda words: _say(f"[{whose}] {words}")


if __name__ == "__main__":
    sys.exit(main())
