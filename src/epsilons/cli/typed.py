"""What a steward says of a table, as flags or typed: read, or refused in words that click shows when it asks again."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from epsilons.cli.options import read_bounds
from epsilons.errors import Argument, DataError, EpsilonsError, PreferenceError

if TYPE_CHECKING:
    from epsilons.engines.base import Schema

#: The answer of who has no levels to name; words for parts of a dialect that are hard to type.
_NUMBERS = "numbers"
_WORDS = {"tab": "\t", "none": "", "2026-12-31": ""}


def split_pair(text: str, hint: Argument) -> tuple[str, str]:
    name, _, value = text.partition("=")
    if not name or not value:
        raise DataError(f"{text!r} is not a name and a value.", suggest=hint)
    return name, value


def read_pairs(text: str, hint: Argument) -> dict[str, str]:
    """Names and values with a sign between both. Between pairs stands a comma, or blanks before the next of them."""
    listed = re.split(r",|\s+(?=[^\s=,]+\s*=)", text.strip())
    pairs = (split_pair(one.strip(), hint) for one in listed if one.strip())
    return {name.strip(): value.strip() for name, value in pairs}


def read_epsilon(text: str) -> float | str:
    with suppress(ValueError):
        if text == "public" or 0 < float(text) < math.inf:
            return text if text == "public" else float(text)
    hint = Argument("levels", {"strict": 0.05, "all": "public"})
    raise PreferenceError(f"{text!r} is not an epsilon.", rule="A number above 0, or public.", suggest=hint)


def as_numbers(levels: Mapping[str, str]) -> dict[str, float]:
    return {name: math.inf if text == "public" else float(text) for name, text in levels.items()}


def read_lasting(given: Mapping[str, Any], levels: Mapping[str, str]) -> dict[str, Any]:
    """Measure, delta and periods of levels, checked as a registration checks them; nothing of what is usual."""
    from epsilons.dataset.registering import Declared
    from epsilons.ledger.renewal import check_renews

    renews = dict(split_pair(text, Argument("renews", {"open": "year"})) for text in given["renews"])
    measure, delta = given["measure"], given["delta"]
    Declared("people", "id", measure=measure, delta=delta)
    found = {} if delta is None else {"measure": measure, "delta": delta}
    return {**found, "renews": check_renews(renews, as_numbers(levels))} if renews else found


def read_levels(given: Mapping[str, Any], text: str) -> dict[str, str]:
    """What was typed; click asks again where one of them is no level, or one that is to be renewed is not there.

    None where the column holds no names of levels, but numbers.
    """
    from epsilons.dataset.preferences import check_levels
    from epsilons.dataset.registering import CEILING

    if text.strip() == _NUMBERS and not given["renews"]:
        return {}
    try:
        named = {name: str(read_epsilon(epsilon)) for name, epsilon in read_pairs(text, Argument("levels")).items()}
        read_lasting(given, named)
        check_levels(as_numbers(named), CEILING)
        return named
    except EpsilonsError as error:
        raise click.UsageError(f"{error.what} {error.rule} As strict=0.05, open=1.".replace("  ", " ")) from None


def read_default(levels: Mapping[str, str], text: str) -> str:
    """The level that was typed, or nothing; click asks again where it is none."""
    if text.strip() in ("", *levels):
        return text.strip()
    raise click.UsageError(f"{text.strip()!r} is none of these levels.")


def read_types(schema: Schema | None, wanted: Sequence[str], text: str) -> dict[str, str]:
    """What was typed; click asks again where it names no type, no column of the schema, or not all that are wanted."""
    from epsilons.engines.dialects import TYPES

    try:
        typed = read_pairs(text, Argument("types"))
        for name, kind in typed.items():
            if schema is not None:
                schema.find(name)
            if kind not in TYPES:
                raise DataError(f"Unknown type {kind!r} of column {name!r}.", rule=f"Types: {', '.join(TYPES)}.")
        folded = {name.casefold() for name in typed}
        for name in (name for name in wanted if name.casefold() not in folded):
            raise DataError(f"Column {name!r} is not among them.", rule="It was named before.")
    except EpsilonsError as error:
        raise click.UsageError(f"{error.what} {error.rule}".strip()) from None
    return {name if schema is None else schema.find(name).name: kind for name, kind in typed.items()}


def read_pair(name: str, text: str) -> tuple[float, float] | None:
    """What was typed; click asks again where it is no pair of bounds."""
    try:
        return read_bounds([f"{name}={text}"])[name] if text.strip() else None
    except EpsilonsError as error:
        raise click.UsageError(f"{error.what} {error.rule}".strip()) from None


def read_dialect(texts: Iterable[str]) -> dict[str, str]:
    """Parts of a dialect as flags, by the words that are answers, too."""
    pairs = (split_pair(text, Argument("dialect", {"separator": ";"})) for text in texts)
    return {part: _WORDS.get(said, said) for part, said in pairs}


def read_part(part: str, others: Mapping[str, str], text: str) -> str:
    """A part of a dialect as it was typed, beside the others; click asks again where it is none."""
    from epsilons.engines.dialects import Dialect

    said = _WORDS.get(text, text)
    try:
        Dialect.of({**others, part: said}, "csv")
    except EpsilonsError as error:
        raise click.UsageError(f"{error.what} {error.rule}".strip()) from None
    return said
