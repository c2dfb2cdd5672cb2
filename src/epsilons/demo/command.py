"""The command: results on stdout, progress and notes on stderr, one report in a file."""

from __future__ import annotations

import argparse
import json
import logging
import sys
import tempfile
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

import epsilons as eps
from epsilons.demo.budgets import Books, read_books
from epsilons.demo.document import to_document
from epsilons.demo.people import Population, load_population
from epsilons.demo.questions import QUESTIONS, Answered, ask_all
from epsilons.demo.terminal import print_all

DEFAULT_REPORT = Path("epsilons-demo.html")

_EXAMPLE = """\
example:
  python -m epsilons.demo --json --out wages.html > wages.json
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; 0 if all went well, 1 if something it needs is missing."""
    options = _parser().parse_args(arguments)
    notes = Console(stderr=True)
    out: Path = options.out
    try:
        people, answered, books = _run(notes, out)
    except eps.EpsilonsError as error:
        notes.print(str(error), markup=False, soft_wrap=True)
        return 1
    if options.json:
        document = to_document(people, answered, books, str(out))
        json.dump(document, sys.stdout, indent=2, allow_nan=False)
        sys.stdout.write("\n")
    else:
        if isinstance(sys.stdout, TextIOWrapper):
            # A terminal that knows no Greek shows a question mark rather than an error.
            sys.stdout.reconfigure(errors="replace")
        print_all(Console(highlight=False), people, answered, books, str(out))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m epsilons.demo",
        description="Ask real wages five questions while everyone keeps their own epsilon, and write a report.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of tables")
    parser.add_argument(
        "--out",
        type=Path,
        default=DEFAULT_REPORT,
        metavar="FILE",
        help=f"where the report goes (default: {DEFAULT_REPORT} in the current directory)",
    )
    return parser


def _run(notes: Console, out: Path) -> tuple[Population, tuple[Answered, ...], Books]:
    columns = (TextColumn("{task.description}"), BarColumn())
    with Progress(*columns, console=notes, transient=True, disable=not notes.is_terminal) as progress:
        steps = progress.add_task("Loading wages", total=len(QUESTIONS) + 2)
        population = load_population()
        answered: list[Answered] = []
        # The ledger is a file, as it would be for real, but one that goes with the demo: so no head of it is kept.
        with tempfile.TemporaryDirectory() as folder:
            ledger = eps.ledger.open(f"sqlite:///{folder}/wages.ledger", anchor=False)
            with population.dataset(ledger) as people:
                for one in ask_all(population, people):
                    progress.update(steps, advance=1, description=one.asked.words)
                    answered.append(one)
                books = read_books(population, people, answered[1].best.release)
            ledger.close()
        progress.update(steps, advance=1, description="Drawing pictures")
        # Imported here: matplotlib is an extra, and takes a while to load. What it has to say about its caches on a
        # fresh machine is no note of ours.
        logging.getLogger("matplotlib").setLevel(logging.ERROR)
        try:
            from epsilons.demo.report import write_report
        except ImportError:
            raise eps.DataError(
                "The report needs matplotlib.", suggest="pip install 'epsilons[datasets,plots]'"
            ) from None

        write_report(out, population, tuple(answered), books)
    return population, tuple(answered), books
