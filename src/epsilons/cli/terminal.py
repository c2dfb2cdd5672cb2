"""Where a command's words go: results on stdout, progress and notes on stderr."""

from __future__ import annotations

import json
import sys
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

#: `@as_json` on a command: its function gets `as_json: bool`.
as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of a table.")


def results() -> Console:
    """The console for results: stdout, in colour on a terminal only."""
    from rich.console import Console

    if isinstance(sys.stdout, TextIOWrapper):
        # A terminal that knows no Greek shows a question mark rather than an error.
        sys.stdout.reconfigure(errors="replace")
    return Console(highlight=False)


def notes() -> Console:
    """The console for progress and notes: stderr."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def progress() -> Progress:
    """A progress bar on stderr, silent where stderr is not a terminal, gone when done."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = notes()
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def print_json(document: Any) -> None:
    """One strict JSON document on stdout."""
    json.dump(document, sys.stdout, indent=2, allow_nan=False, ensure_ascii=False)
    sys.stdout.write("\n")
