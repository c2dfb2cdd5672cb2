"""Numbers, keys and tables for people, in a terminal and in a notebook; values for TOML files."""

from __future__ import annotations

import html
import json
import re
import reprlib
from collections.abc import Hashable, Mapping, Sequence
from numbers import Real
from typing import Any


def show(number: Any) -> str:
    """Whole numbers in full, others to four digits, nothing as a dash, anything else in short."""
    if number is None:
        return "–"
    if not isinstance(number, Real):  # the result of somebody else's algorithm
        return _printable(reprlib.repr(number))
    plain = number if isinstance(number, int) else float(number)
    if isinstance(plain, int) or plain.is_integer():
        return f"{int(plain):,}"
    return f"{plain:,.4g}" if abs(plain) < 10_000 else f"{plain:,.0f}"


def show_key(key: Hashable) -> str:
    """A bin as a range, anything else as it is."""
    if isinstance(key, tuple):
        return "–".join(show(part) if isinstance(part, (int, float)) else _printable(part) for part in key)
    return _printable(key)


def _printable(key: object) -> str:
    """One line without control characters, which could rewrite a terminal."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in str(key))


def text_table(head: Sequence[str], rows: Sequence[Sequence[str]], wide: int | None = None) -> str:
    """Columns aligned; the first and the last one to the left, the others to the right. `wide` cuts long lines."""
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    lines = []
    for row in (head, tuple("─" * width for width in widths), *rows):
        cells = [
            cell.ljust(width) if place in (0, len(row) - 1) else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip()[:wide])
    return "\n".join(lines)


def html_table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str] = ()) -> str:
    """A small table with a title above and notes below, everything escaped."""
    cells = "".join(f"<th style='text-align:left'>{html.escape(cell)}</th>" for cell in head)
    body = "".join(
        "<tr>" + "".join(f"<td style='text-align:left'>{html.escape(cell)}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    below = "".join(f"<div style='font-size:90%;opacity:.8'>{html.escape(note)}</div>" for note in notes)
    top = f"<thead><tr>{cells}</tr></thead>" if head else ""
    return f"<div><b>{html.escape(title)}</b><table>{top}<tbody>{body}</tbody></table>{below}</div>"


def toml_key(name: str) -> str:
    """A key of a TOML file, quoted where TOML asks for it."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml_value(name)


def toml_value(value: Any) -> str:
    """Text, a truth, a number, a list or a mapping as a TOML file holds it, on one line.

    >>> print(toml_value({"levels": [0.5, "public"], "two words": True}))
    { levels = [0.5, "public"], "two words" = true }
    """
    if isinstance(value, str):
        # JSON's strings are TOML's basic strings, but for DEL.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        inner = ", ".join(f"{toml_key(name)} = {toml_value(one)}" for name, one in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(toml_value(one) for one in value) + "]"
    return str(value).lower() if isinstance(value, bool) else str(value)
