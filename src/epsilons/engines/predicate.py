"""A condition in normal form, and the tree that it becomes.

`conditions.parse` makes these values out of text. They are built of AND and OR alone: NOT has gone down into the
comparisons, so that "unknown" may count as false at once. A row whose value is missing, null or NaN, meets no
comparison, negated or not.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from sqlglot import exp

from epsilons.engines.base import Column
from epsilons.engines.literals import Canonical, column, literal, written

_NODES: dict[str, type[exp.Binary]] = {
    "=": exp.EQ, "<>": exp.NEQ, "<": exp.LT, "<=": exp.LTE, ">": exp.GT, ">=": exp.GTE,
}  # fmt: skip


class Predicate(ABC):
    """A condition in normal form."""

    @property
    @abstractmethod
    def text(self) -> str:
        """The same for the same condition: what "the same question" compares."""

    @property
    @abstractmethod
    def columns(self) -> frozenset[str]:
        """The columns that it looks at."""

    @abstractmethod
    def tree(self) -> exp.Expr:
        """A fresh tree; true for the rows that meet the condition, false or null for all others."""


@dataclass(frozen=True)
class Compare(Predicate):
    """A column against one literal."""

    column: Column
    sign: str
    value: Canonical

    @property
    def text(self) -> str:
        return f"{_name(self.column)} {self.sign} {_shown(self.value, self.column)}"

    @property
    def columns(self) -> frozenset[str]:
        return frozenset({self.column.name})

    def tree(self) -> exp.Expr:
        tree = _NODES[self.sign](this=column(self.column.name), expression=literal(self.value, self.column))
        # Engines hold NaN for larger than every number; here it is missing.
        return _and_a_number(tree, self.column) if self.sign in (">", ">=", "<>") else tree


@dataclass(frozen=True)
class Among(Predicate):
    """A column against two or more literals, sorted."""

    column: Column
    values: tuple[Canonical, ...]
    negated: bool

    @property
    def text(self) -> str:
        word = "NOT IN" if self.negated else "IN"
        return f"{_name(self.column)} {word} ({', '.join(_shown(value, self.column) for value in self.values)})"

    @property
    def columns(self) -> frozenset[str]:
        return frozenset({self.column.name})

    def tree(self) -> exp.Expr:
        values = [literal(value, self.column) for value in self.values]
        tree = exp.In(this=column(self.column.name), expressions=values)
        return _and_a_number(exp.Not(this=tree), self.column) if self.negated else tree


@dataclass(frozen=True)
class Like(Predicate):
    """Text against a pattern: % is any text, _ any character; there is no escape."""

    column: Column
    pattern: str
    negated: bool

    @property
    def text(self) -> str:
        return f"{_name(self.column)} {'NOT LIKE' if self.negated else 'LIKE'} {_shown(self.pattern, self.column)}"

    @property
    def columns(self) -> frozenset[str]:
        return frozenset({self.column.name})

    def tree(self) -> exp.Expr:
        tree = exp.Like(this=column(self.column.name), expression=exp.Literal.string(self.pattern))
        return exp.Not(this=tree) if self.negated else tree


@dataclass(frozen=True)
class Missing(Predicate):
    """Whether there is a value at all; null and NaN are alike."""

    column: Column
    negated: bool

    @property
    def text(self) -> str:
        return f"{_name(self.column)} {'IS NOT NULL' if self.negated else 'IS NULL'}"

    @property
    def columns(self) -> frozenset[str]:
        return frozenset({self.column.name})

    def tree(self) -> exp.Expr:
        return present(self.column) if self.negated else missing(self.column)


@dataclass(frozen=True)
class Never(Predicate):
    """No row at all: `age = 17.5` of a column of whole numbers. The column is still one that was asked about."""

    columns: frozenset[str] = frozenset()

    @property
    def text(self) -> str:
        return "FALSE"

    def tree(self) -> exp.Expr:
        return exp.false()


@dataclass(frozen=True)
class All(Predicate):
    """Every one of two or more conditions."""

    parts: tuple[Predicate, ...]

    @property
    def text(self) -> str:
        return f"({' AND '.join(part.text for part in self.parts)})"

    @property
    def columns(self) -> frozenset[str]:
        return frozenset[str]().union(*(part.columns for part in self.parts))

    def tree(self) -> exp.Expr:
        return both(*(part.tree() for part in self.parts))


@dataclass(frozen=True)
class Any_(Predicate):  # noqa: N801 - Any is taken by typing
    """At least one of two or more conditions."""

    parts: tuple[Predicate, ...]

    @property
    def text(self) -> str:
        return f"({' OR '.join(part.text for part in self.parts)})"

    @property
    def columns(self) -> frozenset[str]:
        return frozenset[str]().union(*(part.columns for part in self.parts))

    def tree(self) -> exp.Expr:
        return exp.Paren(this=_balanced(exp.Or, [part.tree() for part in self.parts]))


def missing(kind: Column) -> exp.Expr:
    """Whether a column has no value: null, or NaN where there is such a thing."""
    null = exp.Is(this=column(kind.name), expression=exp.null())
    if not kind.floating:
        return null
    return exp.Paren(this=exp.Or(this=null, expression=exp.IsNan(this=column(kind.name))))


def present(kind: Column) -> exp.Expr:
    """Whether a column has a value."""
    return _and_a_number(exp.Not(this=exp.Is(this=column(kind.name), expression=exp.null())), kind)


def both(*conditions: exp.Expr) -> exp.Expr:
    """All of the conditions."""
    if len(conditions) == 1:
        return conditions[0]
    return exp.Paren(this=_balanced(exp.And, list(conditions)))


def _balanced(node: type[exp.Connector], trees: list[exp.Expr]) -> exp.Expr:
    """A tree of logarithmic depth: neither the writer nor the engine goes deep."""
    while len(trees) > 1:
        pairs = [trees[i : i + 2] for i in range(0, len(trees), 2)]
        trees = [exp.Paren(this=node(this=p[0], expression=p[1])) if len(p) == 2 else p[0] for p in pairs]
    return trees[0].this if isinstance(trees[0], exp.Paren) else trees[0]


def _and_a_number(tree: exp.Expr, kind: Column) -> exp.Expr:
    if not kind.floating:
        return tree
    return both(tree, exp.Not(this=exp.IsNan(this=column(kind.name))))


def _name(kind: Column) -> str:
    return '"' + kind.name.replace('"', '""') + '"'


def _shown(value: Canonical, kind: Column) -> str:
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, (int, float)):
        return repr(value) if kind.floating else written(int(value), kind.scale)
    return "'" + str(value).replace("'", "''") + "'"
