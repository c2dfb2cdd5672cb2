"""The benchmarks: how long answers take and how much memory they need, beside numpy in the same run."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path

from cells import CELLS
from counts import COUNTS
from means import KNOWN
from medians import MEDIANS
from memory import MEMORY
from models import MODELS
from noise import NOISE
from plans import PLANS
from report import Results, print_tables, to_document, write_results
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from startup import STARTUP
from timing import Group, Row, Size

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
GROUPS = {group.name: group for group in (STARTUP, *COUNTS, KNOWN, MEDIANS, CELLS, MODELS, MEMORY, NOISE, PLANS)}

_EXAMPLE = """\
example:
  .venv/bin/python benchmarks/run.py --quick --only startup --json
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 0 also when a limit was missed, since a busy machine is no error. It is said clearly."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.write and (options.quick or options.only):
        parser.error("--write needs a whole run: leave out --quick and --only")
    chosen = [GROUPS[name] for name in options.only or GROUPS]
    results = measure(chosen, Size(options.quick))
    show(results, options.json, options.quick)
    if options.write:
        write_results(PAGE, results)
        Console(stderr=True).print(f"Written to docs/{PAGE.name}.")
    return 0


def show(results: Results, as_json: bool, quick: bool) -> None:
    """The results on stdout: one JSON document, or tables."""
    if as_json:
        json.dump(to_document(results, quick), sys.stdout, indent=2, allow_nan=False)
        sys.stdout.write("\n")
    else:
        if isinstance(sys.stdout, TextIOWrapper):
            # A terminal that knows no multiplication sign shows a question mark rather than an error.
            sys.stdout.reconfigure(errors="replace")
        print_tables(Console(highlight=False), results, quick)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=_EXAMPLE, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of tables")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: shows that everything runs, measures nothing")
    parser.add_argument("--only", action="append", choices=list(GROUPS), help="one group (may be repeated)")
    parser.add_argument("--write", action="store_true", help="put the results into docs/benchmarks.md")
    return parser


def measure(groups: Sequence[Group], size: Size) -> Results:
    """Every row of these groups, with progress on stderr."""
    notes = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn())
    results: list[tuple[Group, list[Row]]] = []
    with Progress(*columns, console=notes, transient=True, disable=not notes.is_terminal) as progress:
        steps = progress.add_task("", total=len(groups))
        for group in groups:
            progress.update(steps, description=group.title)
            rows: list[Row] = []
            for row in group.measure(size):
                rows.append(row)
                progress.update(steps, description=row.what)
            results.append((group, rows))
            progress.update(steps, advance=1)
    return results


if __name__ == "__main__":
    sys.exit(main())
