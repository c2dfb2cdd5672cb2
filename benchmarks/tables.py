"""The benchmarks of tables: questions to a Dataset beside the plain query on the same source, by turns."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from commands import command_group
from report import LARGE_END, LARGE_START, TABLES_END, TABLES_START, write_results
from rich.console import Console
from run import PAGE, measure, show
from tablememory import memory_group
from tablespeed import Tables
from timing import Size

_SIZES = (1_000_000, 10_000_000)
_EXAMPLE = """\
example:
  .venv/bin/python benchmarks/tables.py --quick --only ledger --json
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 0 also when a limit was missed, since a busy machine is no error. It is said clearly."""
    parser = _parser()
    options = parser.parse_args(arguments)
    large = bool(options.size) and options.only == ["commands"]
    if options.write and (options.quick or (not large and (options.only or options.size))):
        parser.error("--write needs a whole run: leave out --quick, --only and --size, or ask for one size's commands")
    sizes = options.size or list(_SIZES)
    listed = {group.name: group for group in (*Tables(sizes).groups(), memory_group(sizes[-1]), command_group(sizes))}
    unknown = [name for name in options.only or () if name not in listed]
    if unknown:
        parser.error(f"no group {unknown[0]!r}: {', '.join(listed)}")
    results = measure([listed[name] for name in options.only or listed], Size(options.quick))
    show(results, options.json, options.quick)
    if options.write:
        write_results(PAGE, results, (LARGE_START, LARGE_END) if large else (TABLES_START, TABLES_END))
        Console(stderr=True).print(f"Written to docs/{PAGE.name}.")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=_EXAMPLE, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of tables")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: shows that everything runs, measures nothing")
    parser.add_argument("--only", action="append", help="one group (may be repeated)")
    parser.add_argument("--size", action="append", type=_number, help="so many people (may be repeated), as 1e8")
    parser.add_argument("--write", action="store_true", help="put the results into docs/benchmarks.md")
    return parser


def _number(text: str) -> int:
    return int(float(text))


if __name__ == "__main__":
    sys.exit(main())
