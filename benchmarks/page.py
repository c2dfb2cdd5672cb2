"""Results are put into a page of the documentation, between two comments that name the command that wrote them."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path


def print_or_write(
    arguments: Sequence[str] | None,
    about: str | None,
    page: Path,
    markers: tuple[str, str],
    tabulate: Callable[[bool], list[str]],
) -> int:
    """The command of a benchmark with one table: `tabulate(quick)` gives its lines, `--write` puts them into a page."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few draws: shows that everything runs")
    parser.add_argument("--write", action="store_true", help=f"put the table into docs/{page.name}")
    options = parser.parse_args(arguments)
    lines = tabulate(options.quick)
    if options.write:
        write_between(page, markers, lines)
    else:
        print("\n".join(lines))
    return 0


def write_between(page: Path, markers: tuple[str, str], lines: Sequence[str]) -> None:
    """Replace what stands between the markers; the rest of the page stays as it is."""
    before, start, rest = page.read_text(encoding="utf-8").partition(markers[0])
    _, end, after = rest.partition(markers[1])
    if not (start and end):
        raise ValueError(f"{page.name} has no place for results: {' ... '.join(markers)}")
    told = "\n".join(lines).strip()
    page.write_text(f"{before}{start}\n\n{told}\n\n{end}{after}", encoding="utf-8")
