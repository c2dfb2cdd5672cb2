"""A first dataset file: from a table's columns and what the steward says, never from a value."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from epsilons.errors import DataError, PreferenceError

_LEVELS = {"strict": "0.05", "standard": "0.2", "open": "1", "public": "public"}


@dataclass(frozen=True)
class Draft:
    """What was said on the command line."""

    source: str
    person: str | None
    preferences: str | None
    levels: tuple[str, ...]
    bounds: Mapping[str, tuple[float, float]]
    types: tuple[str, ...]
    version: str | None


def draft_of(given: Draft, beside: Path) -> str:
    """The text of a dataset file that lies in the directory `beside`."""
    from epsilons.engines.duckdb import DuckDB

    types = dict(_divided(text, "--type age=int") for text in given.types)
    engine = DuckDB(given.source, types=types or None)
    try:
        schema = engine.schema
        names = list(schema)
        person = schema.find(given.person or _asked("Which column holds people's ids?", names, "--person")).name
        wishes = schema.find(
            given.preferences or _asked("Which column holds their preferences?", names, "--preferences")
        )
        levels = dict(_divided(text, "--level strict=0.05") for text in given.levels)
        if wishes.family == "text" and not levels:
            levels = _ask_levels()
        numbers = [c.name for c in schema.values() if c.family == "number" and c.name not in (person, wishes.name)]
        bounds = {schema.number(name).name: pair for name, pair in given.bounds.items()} or _ask_bounds(numbers)
    finally:
        engine.close()
    return _written(given, beside, person, wishes.name, levels, bounds, types, numbers)


def _terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _asked(question: str, names: list[str], option: str) -> str:
    if not _terminal():
        raise DataError(
            question, rule="Nobody is there to be asked.", suggest=f"{option} {names[0] if names else 'id'}"
        )
    answer: str = click.prompt(question, type=click.Choice(names), err=True)
    return answer


def _ask_levels() -> dict[str, str]:
    if not _terminal():
        raise PreferenceError(
            "Which levels are there?",
            rule="Names of levels are read from nobody's row; the steward says them.",
            suggest="--level strict=0.05 --level open=1",
        )
    levels = {}
    for name, epsilon in _LEVELS.items():
        wish = click.prompt(f"Epsilon of {name!r} (empty: no such level)", default=epsilon, err=True)
        if wish.strip():
            levels[name] = wish.strip()
    return levels


def _ask_bounds(numbers: list[str]) -> dict[str, tuple[float, float]]:
    """Public bounds, from the steward's head; without a terminal they are left for later."""
    found = {}
    for name in numbers if _terminal() else []:
        question = f"Public bounds of {name!r}, as 0,100 (empty: later)"
        pair = click.prompt(question, default="", err=True, value_proc=_read_pair)
        if pair is not None:
            found[name] = pair
    return found


def _read_pair(text: str) -> tuple[float, float] | None:
    """What was typed; click asks again where it is no pair."""
    if not text.strip():
        return None
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        raise click.UsageError("two numbers with a comma between them, such as 0,100") from None
    if not low < high:
        raise click.UsageError("the lower bound comes first, and the upper one is larger")
    return low, high


def _divided(text: str, hint: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        raise DataError(f"{text!r} is not a name and a value.", suggest=hint)
    return name, value


def _written(
    given: Draft,
    beside: Path,
    person: str,
    column: str,
    levels: Mapping[str, str],
    bounds: Mapping[str, tuple[float, float]],
    types: Mapping[str, str],
    numbers: list[str],
) -> str:
    source = os.path.relpath(os.path.abspath(given.source), beside)
    stem = Path(source).name.split(".")[0].replace("*", "").strip("-_ ") or "people"
    lines = [
        f"source = {_text(source)}",
        f"person = {_text(person)}",
        f"version = {_text(given.version)}" if given.version else '# version = "2026-11"  # name the data\'s state',
        "rows_per_person = 1       # fixed for the life of the ledger",
        'neighbors = "absent"      # likewise; or "replace"',
        f"ledger = {_text(f'sqlite:///{stem}.ledger')}",
        "complete = []             # columns in which nothing is missing",
        "",
        "[preferences]",
        f"column = {_text(column)}",
    ]
    if levels:
        shown = ", ".join(f"{_key(name)} = {_number(value)}" for name, value in levels.items())
        lines.append(f"levels = {{ {shown} }}")
    lines.append("# default: for people who said nothing; without it they are an error")
    if types:
        lines += ["", "[types]", *(f"{_key(name)} = {_text(kind)}" for name, kind in types.items())]
    lines += ["", "[bounds]                  # public facts, never read from the data"]
    lines += [f"{_key(name)} = [{_bound(low)}, {_bound(high)}]" for name, (low, high) in bounds.items()]
    lines += [f"# {_key(name)} = [0, 100]" for name in numbers if name not in bounds]
    return "\n".join(lines) + "\n"


def _text(word: str) -> str:
    """A basic string of TOML."""
    escaped = "".join(_ESCAPES.get(letter, letter) for letter in word)
    return f'"{escaped}"'


_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def _key(name: str) -> str:
    plain = name.replace("_", "a").replace("-", "a")
    return name if plain.isascii() and plain.isalnum() else _text(name)


def _bound(value: float) -> str:
    """All its digits; whole numbers without a point."""
    return str(int(value)) if value.is_integer() else repr(value)


def _number(value: Any) -> str:
    if value == "public":
        return '"public"'
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise PreferenceError(
            f"{value!r} is not an epsilon.",
            rule="A number above 0, or the word public.",
            suggest="--level strict=0.05 --level all=public",
        )
    return repr(number)
