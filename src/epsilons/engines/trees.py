"""What queries are built of: references, literals, and conditions in normal form.

A literal has the type of the column that it is compared with, so the engine never converts a column's value: that
could fail on some values and not on others. What a column's type cannot hold equals none of its values (`None` here).
Doubles are written with an exponent, which every engine reads as the same double.

`conditions.parse` makes predicates out of text. They are built of AND and OR alone: NOT has gone down into the
comparisons. A row whose value is missing, null or NaN, meets no comparison, negated or not.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Context, Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from sqlglot import exp

from epsilons.arguments.checks import check_real
from epsilons.engines.base import DATE, NUMBER, TEXT, TIME, TRUTH, Column
from epsilons.engines.readings import as_date, as_time

#: A value in the form in which a column's values are compared: units of an exact number, a double, a text, ...
Canonical = int | float | str | bool | date | datetime
LONGEST_TEXT = 10_000
#: Digits enough for any decimal of an engine.
_CONTEXT = Context(prec=60)

_NODES: dict[str, type[exp.Binary]] = {
    "=": exp.EQ, "<>": exp.NEQ, "<": exp.LT, "<=": exp.LTE, ">": exp.GT, ">=": exp.GTE, "LIKE": exp.Like,
}  # fmt: skip


class MismatchError(Exception):
    """A value of another family than the column's; the caller turns it into a fixed text."""


def column(name: str) -> exp.Column:
    """A reference to a column, always quoted."""
    return exp.column(name, quoted=True)


def table(name: str) -> exp.Table:
    return exp.Table(this=exp.to_identifier(name, quoted=True))


def whole(number: int) -> exp.Expr:
    literal = exp.Literal.number(str(abs(number)))
    return exp.Neg(this=literal) if number < 0 else literal


def double(number: float) -> exp.Expr:
    """A finite double, bit for bit: 17 digits and an exponent."""
    if not math.isfinite(number):
        raise ValueError("only finite doubles have a literal")
    literal = exp.Literal.number(f"{abs(number):.16e}")
    return exp.Neg(this=literal) if math.copysign(1.0, number) < 0 else literal


def cast(tree: exp.Expr, kind: str) -> exp.Expr:
    return exp.Cast(this=tree, to=exp.DataType.build(kind, dialect="duckdb"))


def missing(kind: Column) -> exp.Expr:
    """Whether a column has no value: null, or NaN where there is such a thing."""
    null = exp.Is(this=column(kind.name), expression=exp.null())
    if not kind.floating:
        return null
    return exp.Paren(this=exp.Or(this=null, expression=exp.IsNan(this=column(kind.name))))


def present(kind: Column) -> exp.Expr:
    return _and_a_number(exp.Not(this=exp.Is(this=column(kind.name), expression=exp.null())), kind)


def both(*conditions: exp.Expr) -> exp.Expr:
    if len(conditions) == 1:
        return conditions[0]
    return exp.Paren(this=_balance(exp.And, list(conditions)))


def _balance(node: type[exp.Connector], trees: list[exp.Expr]) -> exp.Expr:
    """A tree of logarithmic depth: neither the writer nor the engine goes deep."""
    while len(trees) > 1:
        pairs = [trees[i : i + 2] for i in range(0, len(trees), 2)]
        trees = [exp.Paren(this=node(this=p[0], expression=p[1])) if len(p) == 2 else p[0] for p in pairs]
    return trees[0].this if isinstance(trees[0], exp.Paren) else trees[0]


def _and_a_number(tree: exp.Expr, kind: Column) -> exp.Expr:
    return both(tree, exp.Not(this=exp.IsNan(this=column(kind.name)))) if kind.floating else tree


def canonical(value: Any, kind: Column) -> Canonical | None:
    """The value in the form of the column's own; None if the column's type cannot hold it. Raises `MismatchError`."""
    if kind.family == TRUTH and isinstance(value, bool):
        return value
    if kind.family == TEXT and isinstance(value, str):
        return check_storable(value)
    if kind.family == NUMBER:
        return _number(value, kind)
    moment = {DATE: as_date, TIME: as_time}.get(kind.family, lambda _: None)(value)
    if moment is None:
        raise MismatchError
    return moment


def literal(value: Canonical, kind: Column) -> exp.Expr:
    """A canonical value of a column as a literal of exactly the column's type."""
    if kind.family == TRUTH:
        return exp.Boolean(this=bool(value))
    if kind.family == TEXT:
        return exp.Literal.string(str(value))
    if kind.family in (DATE, TIME):
        return cast(exp.Literal.string(str(value)), "DATE" if kind.family == DATE else "TIMESTAMP")
    if kind.floating:
        assert isinstance(value, float)
        if math.isinf(value):
            return cast(exp.Literal.string("inf" if value > 0 else "-inf"), "DOUBLE")
        return double(value)
    assert isinstance(value, int)
    if kind.precision:
        return cast(exp.Literal.string(write_units(value, kind.scale)), f"DECIMAL({kind.precision}, {kind.scale})")
    assert kind.high is not None
    return cast(exp.Literal.string(str(value)), "HUGEINT") if kind.high >= 1 << 64 else whole(value)


def write_units(units: int, scale: int) -> str:
    """So many units of 10^-scale in digits, without an exponent."""
    return f"{Decimal(units).scaleb(-scale, _CONTEXT):f}"


def rational(value: Any) -> Fraction | float:
    """A number as an exact rational, or as an infinite float; `MismatchError` for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal, Fraction)) or value != value:
        raise MismatchError
    if isinstance(value, (float, Decimal)) and not math.isfinite(value):
        return float(value)
    return Fraction(value)


def nearest(value: Fraction | float, bits: int) -> float:
    """The nearest float of 32 or 64 bits; infinite beyond the largest."""
    number = check_real(value)
    if bits == 32:
        with np.errstate(over="ignore", under="ignore"):
            return float(np.float32(number))
    return number


def check_storable(value: str) -> str:
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


class Predicate(ABC):
    """A condition in normal form."""

    @property
    @abstractmethod
    def text(self) -> str:
        """One text for one condition: what "the same question" compares."""

    @property
    @abstractmethod
    def columns(self) -> frozenset[str]:
        """The columns that it looks at."""

    @abstractmethod
    def tree(self) -> exp.Expr:
        """A fresh tree; true for the rows that meet the condition, false or null for all others."""


@dataclass(frozen=True)
class Comparison(Predicate):
    """A column against literals: one for a comparison, two or more, sorted, for IN, a pattern for LIKE, none for NULL.

    In a pattern % is any text and _ any character; there is no escape. Null and NaN are alike.
    """

    column: Column
    sign: str
    values: tuple[Canonical, ...] = ()

    @property
    def columns(self) -> frozenset[str]:
        return frozenset({self.column.name})

    @cached_property
    def text(self) -> str:
        written = ", ".join(map(self._write, self.values))
        name = self.column.name.replace('"', '""')
        return f'"{name}" {self.sign} {f"({written})" if self.sign in ("IN", "NOT IN") else written}'.rstrip()

    def _write(self, value: Canonical) -> str:
        if isinstance(value, bool):
            return str(value).upper()
        if isinstance(value, (int, float)):
            return repr(value) if self.column.floating else write_units(int(value), self.column.scale)
        return "'" + str(value).replace("'", "''") + "'"

    def tree(self) -> exp.Expr:
        if not self.values:
            return missing(self.column) if self.sign == "IS NULL" else present(self.column)
        this, values = column(self.column.name), [literal(value, self.column) for value in self.values]
        sign = self.sign.removeprefix("NOT ")
        among = exp.In(this=this, expressions=values)
        plain = among if sign == "IN" else _NODES[sign](this=this, expression=values[0])
        tree = plain if sign == self.sign else exp.Not(this=plain)
        # Engines hold NaN for larger than every number; here it is missing.
        return _and_a_number(tree, self.column) if self.sign in (">", ">=", "<>", "NOT IN") else tree


@dataclass(frozen=True)
class Never(Predicate):
    """No row at all: `age = 17.5` of a column of whole numbers. The column is still one that was asked about."""

    columns: frozenset[str] = frozenset()
    text: ClassVar[str] = "FALSE"

    def tree(self) -> exp.Expr:
        return exp.false()


@dataclass(frozen=True)
class Several(Predicate):
    """Two or more conditions: all of them (`every`), or at least one."""

    parts: tuple[Predicate, ...]
    every: bool

    @cached_property
    def text(self) -> str:
        return f"({(' AND ' if self.every else ' OR ').join(part.text for part in self.parts)})"

    @property
    def columns(self) -> frozenset[str]:
        return frozenset[str]().union(*(part.columns for part in self.parts))

    def tree(self) -> exp.Expr:
        return exp.Paren(this=_balance(exp.And if self.every else exp.Or, [part.tree() for part in self.parts]))
