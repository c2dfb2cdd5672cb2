"""Where a command's output goes: results on stdout, progress and notes on stderr."""

from __future__ import annotations

import json
import sys
import textwrap
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

#: `@as_json` on a command: its function gets `as_json: bool`.
as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of a table.")


def _console(stderr: bool = False) -> Console:
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    if isinstance(stream, TextIOWrapper):
        # A terminal that knows no Greek shows a question mark rather than an error.
        stream.reconfigure(errors="replace")
    return Console(stderr=stderr, highlight=False, emoji=False)


def width() -> int:
    """How many columns a table may have: those of the terminal, 80 where there is none."""
    return _console().width


def write(text: str, style: str | None = None, stderr: bool = False) -> None:
    """Results on stdout, broken between words to fit the terminal; in colour on a terminal only."""
    console = _console(stderr)
    if not stderr or console.is_terminal:
        text = "\n".join(_break(line, console.width) for line in text.split("\n"))
    console.print(text, style=style, markup=False, soft_wrap=True)


def note(text: str) -> None:
    """A note on stderr: broken between words on a terminal, as it is in a file."""
    write(text, stderr=True)


def _break(line: str, wide: int) -> str:
    """Lines that fit; a longer word, such as a path or a digest, stays whole."""
    indent = line[: len(line) - len(line.lstrip())]
    whole = textwrap.fill(line, wide, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return line if len(line) <= wide else whole


def preparing(what: str) -> Any:
    """Show that something is being prepared, while a block lasts and where stderr is a terminal."""
    return _console(stderr=True).status(what)


def progress() -> Progress:
    """A progress bar on stderr, silent where stderr is not a terminal, gone when done."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = _console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def print_json(document: Any) -> None:
    """One strict JSON document on stdout."""
    json.dump(document, sys.stdout, indent=2, allow_nan=False, ensure_ascii=False)
    sys.stdout.write("\n")
