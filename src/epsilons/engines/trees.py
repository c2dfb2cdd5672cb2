"""What queries are built of: references, literals, and conditions in normal form.

A literal has the type of the column that it is compared with, so the engine never converts a column's value: that
could fail on some values and not on others. What a column's type cannot hold equals none of its values (`None` here).
Doubles are written with an exponent, which every engine reads as the same double.

`conditions.parse` makes predicates out of text. They are built of AND and OR alone: NOT has gone down into the
comparisons. A row whose value is missing, null or NaN, meets no comparison, negated or not.

Which rows count is worked out in numbers: every comparison is 1 or 0 in every row, and these are joined by & and |.
With AND and OR an engine would leave comparisons out, look for rows by the least and largest values of a block, and so
take longer or shorter by what one person's row holds. A pattern is a beginning, an end or a piece of a text, which take
a time in proportion to the text.
"""

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Context, Decimal
from fractions import Fraction
from functools import cache, cached_property
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

NODES: dict[str, type[exp.Expr]] = {
    "=": exp.EQ, "<>": exp.NEQ, "<": exp.LT, "<=": exp.LTE, ">": exp.GT, ">=": exp.GTE,
}  # fmt: skip
_SIGNS = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
#: What a pattern asks for, by whether it has % before its text and after it.
_PATTERNS: dict[tuple[bool, bool], type[exp.Expr]] = {
    (False, False): exp.EQ, (False, True): exp.StartsWith, (True, False): exp.EndsWith, (True, True): exp.Contains,
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
    """A double, bit for bit: 17 digits and an exponent."""
    if math.isnan(number):
        raise ValueError("NaN has no literal")
    if math.isinf(number):
        return cast(exp.Literal.string("inf" if number > 0 else "-inf"), "DOUBLE")
    literal = exp.Literal.number(f"{abs(number):.16e}")
    return exp.Neg(this=literal) if math.copysign(1.0, number) < 0 else literal


@cache
def _type(kind: str) -> exp.DataType:
    return exp.DataType.build(kind, dialect="duckdb")


def cast(tree: exp.Expr, kind: str) -> exp.Expr:
    return exp.Cast(this=tree, to=_type(kind).copy())


def in_years(tree: exp.Expr, kind: Column) -> exp.Expr:
    """What Python and every engine have: a day or time of the years 1 to 9999, null beyond, endless ones too."""
    if kind.family not in (DATE, TIME):
        return tree
    first, last = (date.min, date.max) if kind.family == DATE else (datetime.min, datetime.max)
    inside = exp.Between(this=tree.copy(), low=literal(first, kind), high=literal(last, kind))
    return exp.Case(ifs=[exp.If(this=inside, true=tree)])


def missing(kind: Column) -> exp.Expr:
    """Whether a column has no value: null, or NaN, which engines hold for larger than every number."""
    if not kind.floating:
        return exp.Is(this=column(kind.name), expression=exp.null())
    return exp.Not(this=_is_true(_at_most_infinite(kind)))


def present(kind: Column) -> exp.Expr:
    """1 where a column has a value, else 0."""
    has = exp.Not(this=exp.Is(this=column(kind.name), expression=exp.null()))
    return bit(_at_most_infinite(kind) if kind.floating else has)


def _at_most_infinite(kind: Column) -> exp.Expr:
    return exp.LTE(this=column(kind.name), expression=double(math.inf))


def bit(test: exp.Expr) -> exp.Expr:
    """1 where a comparison is true, 0 where it is false or unknown."""
    return cast(_is_true(test), "INT")


def _is_true(test: exp.Expr) -> exp.Expr:
    return exp.Is(this=exp.Paren(this=test), expression=exp.true())


def join_bits(bits: list[exp.Expr], every: bool = True) -> exp.Expr:
    """1 where all of them are, or at least one; in a tree of logarithmic depth: nobody goes deep."""
    node = exp.BitwiseAnd if every else exp.BitwiseOr
    while len(bits) > 1:
        pairs = [bits[i : i + 2] for i in range(0, len(bits), 2)]
        bits = [exp.Paren(this=node(this=p[0], expression=p[1])) if len(p) == 2 else p[0] for p in pairs]
    return bits[0]


def met(*bits: exp.Expr) -> exp.Expr:
    """What stands in WHERE: all bits are 1."""
    return exp.EQ(this=join_bits(list(bits)), expression=whole(1))


def split_like(pattern: str) -> tuple[bool, str, bool]:
    """(whether % stands before, the text, whether % stands after) of a pattern."""
    text = pattern.removeprefix("%")
    return text != pattern, text.removesuffix("%"), text.endswith("%")


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
    def holds(self, value: Canonical | None) -> bool:
        """Whether one value meets it that is known without looking at rows; all columns are the same one."""

    @abstractmethod
    def settle(self, known: Mapping[str, Canonical | None]) -> bool | None:
        """Whether a row meets it that has these values in these columns; None where that depends on other columns."""

    def allows(self, name: str, value: Canonical | None) -> bool:
        """Whether a row that has this value in a column can meet it, whatever stands in the other columns."""
        return self.settle({name: value}) is not False

    @abstractmethod
    def tree(self) -> exp.Expr:
        """A fresh tree: 1 for the rows that meet the condition, 0 for all others."""


@dataclass(frozen=True)
class Comparison(Predicate):
    """A column against literals: one for a comparison, two or more, sorted, for IN, a pattern for LIKE, none for NULL.

    A pattern is a text with % before it, after it, at both ends or at none. Null and NaN are alike.
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
        return f"{self.called} {self.sign} {f'({written})' if self.sign in ('IN', 'NOT IN') else written}".rstrip()

    @property
    def called(self) -> str:
        """What is compared, as it is written."""
        return '"' + self.column.name.replace('"', '""') + '"'

    def compared(self) -> exp.Expr:
        """What is compared, of every row."""
        return column(self.column.name)

    def _write(self, value: Canonical) -> str:
        if isinstance(value, bool):
            return str(value).upper()
        if isinstance(value, (int, float)):
            return repr(value) if self.column.floating else write_units(int(value), self.column.scale)
        return "'" + str(value).replace("'", "''") + "'"

    def holds(self, value: Canonical | None) -> bool:
        if not self.values or value is None:
            return not self.values and (value is None) == (self.sign == "IS NULL")
        sign, first = self.sign.removeprefix("NOT "), self.values[0]
        if sign == "LIKE":
            before, sought, after = split_like(str(first))
            text, start = str(value), str(value).find(sought)
            found = text == sought if not (before or after) else start >= 0
            found = found and (before or text.startswith(sought)) and (after or text.endswith(sought))
        else:
            found = value in self.values if sign == "IN" else bool(_SIGNS[sign](value, first))
        return found == (sign == self.sign)

    def settle(self, known: Mapping[str, Canonical | None]) -> bool | None:
        return self.holds(known[self.column.name]) if self.column.name in known else None

    def tree(self) -> exp.Expr:
        if not self.values:
            return bit(missing(self.column)) if self.sign == "IS NULL" else present(self.column)
        this, values, sign = self.compared(), self.values, self.sign.removeprefix("NOT ")
        if sign == "LIKE":
            before, sought, after = split_like(str(values[0]))
            node, values = _PATTERNS[before, after], (sought,)
        else:
            node = NODES.get(sign, exp.In)
        first, *_ = literals = [literal(value, self.column) for value in values]
        plain = exp.In(this=this, expressions=literals) if node is exp.In else node(this=this, expression=first)
        found = bit(plain if sign == self.sign else exp.Not(this=plain))
        # Engines hold NaN for larger than every number; here it is missing.
        larger = self.column.floating and self.sign in (">", ">=", "<>", "NOT IN")
        return join_bits([found, present(self.column)]) if larger else found


@dataclass(frozen=True)
class Never(Predicate):
    """No row at all: `age = 17.5` of a column of whole numbers. The column is still one that was asked about."""

    columns: frozenset[str] = frozenset()
    text: ClassVar[str] = "FALSE"

    def holds(self, value: Canonical | None) -> bool:
        return False

    def settle(self, known: Mapping[str, Canonical | None]) -> bool | None:
        return False

    def tree(self) -> exp.Expr:
        return whole(0)


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

    def holds(self, value: Canonical | None) -> bool:
        return (all if self.every else any)(part.holds(value) for part in self.parts)

    def settle(self, known: Mapping[str, Canonical | None]) -> bool | None:
        found = [part.settle(known) for part in self.parts]
        decisive = not self.every
        if decisive in found:
            return decisive
        return None if None in found else self.every

    def tree(self) -> exp.Expr:
        return join_bits([part.tree() for part in self.parts], self.every)
