"""The results for people, for programs and for the documentation."""

from __future__ import annotations

import datetime
import os
import platform
import statistics
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from page import write_between
from rich.console import Console
from rich.table import Table
from timing import Group, Limit, Row

import epsilons as eps

FORMAT = 1
START, END = "<!-- results: written by `make bench ARGS=--write` -->", "<!-- end of results -->"
TABLES_START = "<!-- tables: written by `make bench-tables ARGS=--write` -->"
TABLES_END = "<!-- end of tables -->"
LARGE_START = '<!-- large: written by `make bench-tables SIZE=1e8 ARGS="--only commands --write"` -->'
LARGE_END = "<!-- end of large -->"
HEAD = ("what", "ours", "yardstick", "ratio", "limit", "held?")

Results = Sequence[tuple[Group, Sequence[Row]]]


def to_document(results: Results, quick: bool) -> dict[str, Any]:
    """Everything as plain values. A quick run judges no limit."""
    rows = [
        {
            **asdict(row),
            "group": group.name,
            "ratio": row.ratio,
            "held": None if quick else row.held,
        }
        for group, found in results
        for row in found
    ]
    return {"format": FORMAT, "quick": quick, **facts(), "rows": rows}


def facts() -> dict[str, Any]:
    """When, and with what; nothing that names a machine."""
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "epsilons": eps.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "cores": os.cpu_count(),
    }


def print_tables(console: Console, results: Results, quick: bool) -> None:
    """One table per group, then what was missed."""
    for group, rows in results:
        table = Table(title=f"{group.title} (yardstick: {_yardsticks(rows)})", title_justify="left")
        for place, head in enumerate(HEAD):
            table.add_column(head, justify="left" if place in (0, len(HEAD) - 1) else "right", overflow="fold")
        for row in rows:
            table.add_row(*row_cells(row, quick), style="bold red" if row.held is False and not quick else None)
        console.print(table)
    for line in _summary(results, quick):
        console.print(line, markup=False, soft_wrap=True)


def write_results(page: Path, results: Results, markers: tuple[str, str] = (START, END)) -> None:
    """Put the results between the page's markers."""
    write_between(page, markers, _markdown(results))


def _markdown(results: Results) -> list[str]:
    known = facts()
    lines = [
        f"Of {known['date']}: epsilons {known['epsilons']}, Python {known['python']}, numpy {known['numpy']}, "
        f"{known['cores']} cores.",
        "",
        *_summary(results, quick=False),
    ]
    for group, rows in results:
        lines += ["", f"### {group.title}", "", f"Yardstick: {_yardsticks(rows)}.", ""]
        lines += [f"| {' | '.join(HEAD)} |", "|---|---:|---:|---:|---:|---|"]
        lines += [f"| {' | '.join(row_cells(row, quick=False))} |" for row in rows]
    return lines


def _yardsticks(rows: Sequence[Row]) -> str:
    return "; ".join(dict.fromkeys(row.against for row in rows))


def _summary(results: Results, quick: bool) -> list[str]:
    rows = [row for _, found in results for row in found]
    if quick:
        return ["A quick run: it shows that everything runs. Its figures mean nothing, and no limit is judged."]
    limited = [row for row in rows if row.limit is not None]
    missed = [row for row in limited if not row.held]
    noise = _noise(rows)
    if not missed:
        return [f"All {len(limited)} limits held. {noise}"]
    return [f"{len(missed)} of {len(limited)} limits MISSED (below: NO). {noise}"]


def _noise(rows: Sequence[Row]) -> str:
    swing = statistics.median((row.highest - row.lowest) / row.ours for row in rows)
    told = f"In a typical row the repetitions lie {swing:.0%} of the figure apart"
    times = [row.wall / row.ours for row in rows if row.wall]
    if not times:
        return f"{told}."
    return f"{told}, and the clock on the wall showed {statistics.median(times):.2f} times the processor's time."


def row_cells(row: Row, quick: bool) -> list[str]:
    """One line of a table."""
    held = "" if quick or row.held is None else "yes" if row.held else "NO"
    return [row.what, _figure(row, row.ours), _figure(row, row.yardstick), f"{row.ratio:.3g}×", _limit(row), held]


def _limit(row: Row) -> str:
    limit: Limit | None = row.limit
    if limit is None:
        return ""
    if limit.of == "ours":
        return _figure(row, limit.most)
    return f"{limit.most:g}×" + (f" + {_figure(row, limit.plus)}" if limit.plus else "")


def _figure(row: Row, value: float) -> str:
    if row.unit == "bytes":
        return f"{value / 1e6:,.0f} MB"
    if row.amount is not None:
        return f"{row.amount / value / 1e6:,.3g} M {row.things}/s"
    return f"{value:.3g} s" if value >= 1 else f"{value * 1e3:.3g} ms"
