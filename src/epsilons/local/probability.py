"""Probabilities of a protocol, kept as exact fractions.

A float stands for the decimal that it prints as, as everywhere in this package: .45 is 9/20.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from epsilons.errors import ProtocolError

MAX_OPTIONS = 100_000

_TEXT = re.compile(r"[+-]?(\d{1,60}(\.\d{0,60})?|\.\d{1,60})([eE][+-]?\d{1,2})?|\d{1,60}/\d{1,60}", re.ASCII)


def read_probability(value: Any, name: str) -> Fraction:
    """An exact probability from 0 to 1, from a number or from text such as "0.45" or "9/20"."""
    try:
        if isinstance(value, bool):
            raise ValueError
        if not isinstance(value, (int, np.integer, Fraction)):
            # Text of a bounded length with a bounded exponent: "1e999999999" must not become a number of that size.
            value = str(float(value) if isinstance(value, np.floating) else value).strip()
            if not _TEXT.fullmatch(value):
                raise ValueError
        exact = Fraction(value)
    except (TypeError, ValueError, ZeroDivisionError, OverflowError):
        raise ProtocolError(
            f"The probability {name} cannot be read.", rule="It is a number from 0 to 1.", suggest=f"{name}=0.45"
        ) from None
    if not 0 <= exact <= 1:
        raise ProtocolError(
            f"The probability {name} is out of range.", rule="It is a number from 0 to 1.", suggest=f"{name}=0.45"
        )
    return exact


def read_die(values: Any, sides: int, total: Fraction, name: str) -> tuple[Fraction, ...]:
    """The probabilities of outputs 0..options, which must add up to `total` exactly; uniform when not given."""
    if values is None:
        return (total / sides,) * sides
    if isinstance(values, str) or not isinstance(values, (Sequence, np.ndarray)):
        raise ProtocolError(f"{name} is not a list.", rule="One probability for each output.", suggest=f"{name}=None")
    chances = tuple(read_probability(value, name) for value in values)
    if len(chances) != sides:
        raise ProtocolError(
            f"{name} has {len(chances)} probabilities for {sides} outputs.",
            rule="One for output 0 (none) and one for each option.",
            suggest=f"leave out {name} for equal ones",
        )
    if sum(chances) != total:
        raise ProtocolError(
            f"The probabilities of {name} add up to {float(sum(chances)):.10g}, not to {float(total):.10g}.",
            rule="All probabilities of a round add up to 1.",
            suggest=f'fractions as text, such as "1/3", or leave out {name} for equal ones',
        )
    return chances


def read_options(options: Any) -> int:
    """How many options there are besides "none"."""
    if isinstance(options, bool) or not isinstance(options, (int, np.integer)) or not 1 <= options <= MAX_OPTIONS:
        raise ProtocolError(
            "The number of options is not usable.",
            rule=f"A whole number from 1 to {MAX_OPTIONS:,}.",
            suggest="options=11",
        )
    return int(options)


def write_probability(chance: Fraction) -> str:
    """Text that `read_probability` reads back exactly: a decimal where one is exact and short, else a fraction."""
    short = f"{float(chance):.12g}"
    return short if "e" not in short and Fraction(short) == chance else f"{chance.numerator}/{chance.denominator}"
