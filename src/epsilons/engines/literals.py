"""Values that a caller wrote, as typed literals of a query.

A literal has the type of the column that it is compared with, so the engine never converts a column's value: that
could fail on some values and not on others. What a column's type cannot hold equals none of its values (`None` here).
Doubles are written with an exponent, which every engine reads as the same double.
"""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from sqlglot import exp

from epsilons.engines.base import DATE, NUMBER, TEXT, TIME, TRUTH, Column

#: A value in the form in which a column's values are compared: units of an exact number, a double, a word, ...
Canonical = int | float | str | bool | date | datetime
LONGEST_TEXT = 10_000
#: Digits enough for any decimal of an engine.
_CONTEXT = Context(prec=60)


class MismatchError(Exception):
    """A value of another family than the column's; turned into a fixed text by whoever asked."""


def column(name: str) -> exp.Column:
    """A reference to a column, always quoted."""
    return exp.column(name, quoted=True)


def table(name: str) -> exp.Table:
    """A reference to a table of the engine."""
    return exp.Table(this=exp.to_identifier(name, quoted=True))


def whole(number: int) -> exp.Expr:
    """A whole number."""
    literal = exp.Literal.number(str(abs(number)))
    return exp.Neg(this=literal) if number < 0 else literal


def double(number: float) -> exp.Expr:
    """A finite double, bit for bit: 17 digits and an exponent."""
    if not math.isfinite(number):
        raise ValueError("only finite doubles have a literal")
    literal = exp.Literal.number(f"{abs(number):.16e}")
    return exp.Neg(this=literal) if math.copysign(1.0, number) < 0 else literal


def cast(tree: exp.Expr, kind: str) -> exp.Expr:
    """CAST(tree AS kind)."""
    return exp.Cast(this=tree, to=exp.DataType.build(kind, dialect="duckdb"))


def canonical(value: Any, kind: Column) -> Canonical | None:
    """The value in the form of the column's own; None if the column's type cannot hold it. Raises `MismatchError`."""
    if isinstance(value, np.generic):
        value = value.item()
    if kind.family == TRUTH and isinstance(value, bool):
        return value
    if kind.family == TEXT and isinstance(value, str):
        return check_text(value)
    if kind.family == NUMBER:
        return _number(value, kind)
    if kind.family == DATE:
        return _date(value)
    if kind.family == TIME:
        return _time(value)
    raise MismatchError


def literal(value: Canonical, kind: Column) -> exp.Expr:
    """A canonical value of a column as a literal of exactly the column's type."""
    if kind.family == TRUTH:
        return exp.Boolean(this=bool(value))
    if kind.family == TEXT:
        return exp.Literal.string(str(value))
    if kind.family == DATE:
        return cast(exp.Literal.string(str(value)), "DATE")
    if kind.family == TIME:
        return cast(exp.Literal.string(str(value)), "TIMESTAMP")
    if kind.floating:
        assert isinstance(value, float)
        if math.isinf(value):
            return cast(exp.Literal.string("inf" if value > 0 else "-inf"), "DOUBLE")
        return double(value)
    assert isinstance(value, int)
    if kind.precision:
        return cast(exp.Literal.string(written(value, kind.scale)), f"DECIMAL({kind.precision}, {kind.scale})")
    assert kind.high is not None
    return cast(exp.Literal.string(str(value)), "HUGEINT") if kind.high >= 1 << 64 else whole(value)


def written(units: int, scale: int) -> str:
    """So many units of 10^-scale in digits, without an exponent."""
    return f"{Decimal(units).scaleb(-scale, _CONTEXT):f}"


def rational(value: Any) -> Fraction | float:
    """A number as an exact rational, or as an infinite float; `MismatchError` for anything else."""
    if isinstance(value, Fraction):
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        raise MismatchError
    if isinstance(value, (float, Decimal)) and not math.isfinite(value):
        if value != value:
            raise MismatchError
        return math.inf if value > 0 else -math.inf
    return Fraction(value)


def nearest(value: Fraction | float, bits: int) -> float:
    """The nearest float of 32 or 64 bits; infinite beyond the largest."""
    try:
        number = float(value)
    except OverflowError:
        number = math.inf if value > 0 else -math.inf
    if bits == 32:
        with np.errstate(over="ignore", under="ignore"):
            return float(np.float32(number))
    return number


def check_text(value: str) -> str:
    """Text that can be stored: no null character, no half of a surrogate pair, not too long."""
    if "\0" in value or len(value) > LONGEST_TEXT or any("\ud800" <= c <= "\udfff" for c in value):
        raise MismatchError
    return value


def _number(value: Any, kind: Column) -> int | float | None:
    number = rational(value)
    if kind.floating:
        # A double that the caller has is meant as it is; 0.1 against 32 bits means the nearest of them.
        return nearest(number, kind.bits) + 0.0
    if isinstance(number, float):
        return None
    units = number * 10**kind.scale
    assert kind.low is not None
    assert kind.high is not None
    return int(units) if units.denominator == 1 and kind.low <= units <= kind.high else None


def _date(value: Any) -> date:
    if isinstance(value, datetime):
        raise MismatchError
    if isinstance(value, date):
        return value
    if isinstance(value, str) and len(value) == 10 and value.isascii():
        try:
            return date.fromisoformat(value)
        except ValueError:
            pass
    raise MismatchError


def _time(value: Any) -> datetime:
    if isinstance(value, str) and 10 <= len(value) <= 26 and value.isascii():
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise MismatchError from None
    elif isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if not isinstance(value, datetime) or value.tzinfo is not None:
        raise MismatchError
    return value
