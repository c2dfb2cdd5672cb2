"""Numbers, keys and tables for people, in a terminal and in a notebook; values for TOML files."""

import html
import json
import re
import reprlib
import textwrap
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from numbers import Real
from typing import Any

from epsilons.errors import printable

_NUMBER = re.compile(r"[-<]?\d")
#: Cells are broken inside words only where the table would not fit otherwise, and never below this width.
_NARROWEST = 8
#: Levels of fewer people than this share a line of a printed table, and so do those beyond the largest few.
_FEW_PEOPLE, _MOST_LEVELS = 20, 12
#: More keys than these are counted, not listed.
_MOST_KEYS = 6


def show(number: Any) -> str:
    """Whole numbers in full, others to four digits, nothing as a dash, anything else in short."""
    if number is None:
        return "–"
    if not isinstance(number, Real):
        return show_result(number)
    plain = number if isinstance(number, int) else float(number)
    if isinstance(plain, int) or plain.is_integer():
        return f"{int(plain):,}"
    return f"{plain:,.4g}" if abs(plain) < 9_999.5 else f"{plain:,.0f}"


def show_result(result: Any) -> str:
    """An option, or the result of somebody else's algorithm, as it is written, in short."""
    return printable(reprlib.repr(result))


def show_errors(error: Any) -> str:
    """`± 2.4`, or from the least to the largest of several, and of which there is none."""
    errors = error if isinstance(error, dict) else {"": error}
    known = [one for one in errors.values() if one is not None]
    if not known:
        return "no error is known"
    unknown = [show_key(key) for key, one in errors.items() if one is None]
    named = ", ".join(unknown[:_MOST_KEYS]) + (f" and {len(unknown) - _MOST_KEYS} more" if unknown[_MOST_KEYS:] else "")
    return f"± {show_span(known)}{f', none for {named}' if unknown else ''}"


def show_span(numbers: Sequence[float]) -> str:
    """`0.05…1`, or one number where the least and the largest look alike."""
    return "…".join(dict.fromkeys((show(min(numbers)), show(max(numbers)))))


def show_count(number: int, one: str, many: str = "") -> str:
    """`1 person`, `2,000 people`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def group_levels(levels: Sequence[tuple[str, int]]) -> list[tuple[str, list[int]]]:
    """The lines of a printed table of levels, given as (name, people): each as (name, places of its levels).

    Levels of few people share the last line, and so do those beyond the largest ones; a line of one is that level.

    >>> group_levels([("strict", 500), ("0.3", 2), ("0.7", 19), ("open", 80)])
    [('strict', [0]), ('open', [3]), ('2 other levels', [1, 2])]
    """
    largest = sorted(range(len(levels)), key=lambda place: -levels[place][1])[:_MOST_LEVELS]
    alone = [place for place in sorted(largest) if levels[place][1] >= _FEW_PEOPLE]
    others = [place for place in range(len(levels)) if place not in alone]
    if len(others) < 2:
        alone, others = sorted([*alone, *others]), []
    name = f"{len(others)} {'other ' if alone else ''}levels"
    return [*((levels[place][0], [place]) for place in alone), *([(name, others)] if others else [])]


def show_key(key: Hashable) -> str:
    """A bin as a range, anything else as it is."""
    if isinstance(key, tuple):
        return "–".join(show(part) if isinstance(part, (int, float)) else show_key(part) for part in key)
    return printable(key)


def text_table(head: Sequence[str], rows: Sequence[Sequence[str]], wide: int = 80) -> str:
    """Columns aligned, numbers to the right; cells break between words where a line would pass `wide`."""
    head, rows = [printable(cell) for cell in head], [[printable(cell) for cell in row] for row in rows]
    columns = list(zip(head, *rows, strict=True))
    # Lists of numbers are text.
    numbers = [False] + [
        any(map(_NUMBER.match, cells)) and not any(", " in cell for cell in cells) for _, *cells in columns[1:]
    ]
    lines = []
    widths = _fit(columns, wide - 2 * (len(columns) - 1))
    for row in (head, tuple("─" * width for width in widths), *rows):
        broken = [textwrap.wrap(cell, max(width, 1)) or [""] for cell, width in zip(row, widths, strict=True)]
        for parts in zip_longest(*broken, fillvalue=""):
            cells = zip(parts, widths, numbers, strict=True)
            lines.append("  ".join(part.rjust(w) if right else part.ljust(w) for part, w, right in cells).rstrip())
    return "\n".join(lines)


def _fit(columns: Sequence[Sequence[str]], room: int) -> list[int]:
    """Widths that sum to at most `room` where possible: heads break first, then the widest columns, then words."""
    widths = [max(map(len, column)) for column in columns]
    words = [max((len(word) for cell in column for word in cell.split()), default=0) for column in columns]
    heads = [max(map(len, (*head.split(), *cells)), default=0) for head, *cells in columns]
    for least in (heads, words, [min(word, _NARROWEST) for word in words]):
        while sum(widths) > room and widths != least:
            widest = max(range(len(widths)), key=lambda place: widths[place] * (widths[place] > least[place]))
            widths[widest] -= 1
    return widths


def html_table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str] = ()) -> str:
    """A small table with a title above and notes below, everything escaped."""
    cells = "".join(f"<th style='text-align:left'>{_escape(cell)}</th>" for cell in head)
    body = "".join(
        "<tr>" + "".join(f"<td style='text-align:left'>{_escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    below = "".join(f"<div style='font-size:90%;opacity:.8'>{_escape(note)}</div>" for note in notes)
    top = f"<thead><tr>{cells}</tr></thead>" if head else ""
    return f"<div><b>{_escape(title)}</b><table>{top}<tbody>{body}</tbody></table>{below}</div>"


def _escape(text: str) -> str:
    return html.escape(printable(text, keep="\n"))


@dataclass(frozen=True)
class Sheet:
    """A table with a title above and notes below."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()

    def __str__(self) -> str:
        notes = [textwrap.fill(note, 80, break_on_hyphens=False) for note in self.notes]
        parts = self.title, text_table(self.head, self.rows), "\n".join(notes)
        return printable("\n\n".join(part for part in parts if part), keep="\n")


class Shown:
    """Shows itself by its sheets: as text in a terminal, as tables in a notebook."""

    def sheets(self) -> Sequence[Sheet]:
        """What is worth seeing of it; without sheets a notebook shows its text."""
        return ()

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.sheets()))

    def _repr_html_(self) -> str:
        tables = [html_table(one.title, one.head, one.rows, one.notes) for one in self.sheets()]
        return "".join(tables) or f"<pre style='white-space:pre-wrap'>{_escape(str(self))}</pre>"


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
