"""Questions in SQL, as far as they map to the statistics; anything else is an error that names the part.

    SELECT region, AVG(wage) AS wage, COUNT(*) FROM people WHERE age >= 18 GROUP BY region

The text is parsed to find out what is asked and never becomes part of a query. The condition goes, word by word, to
the rules of `engines.conditions`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sqlglot
from sqlglot import exp, tokenize
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

from epsilons.dataset.answers import Answers
from epsilons.engines.base import Schema
from epsilons.errors import PlanError

if TYPE_CHECKING:
    from epsilons.dataset.table import Dataset

LONGEST = 20_000
_EXAMPLE = "SELECT region, AVG(wage) FROM people WHERE age >= 18 GROUP BY region"
#: Parts of a SELECT that have a name here, so that an error can say which one it was.
_PARTS = {
    "with_": "WITH", "with": "WITH", "joins": "JOIN", "laterals": "LATERAL", "having": "HAVING", "qualify": "QUALIFY",
    "windows": "WINDOW", "distinct": "DISTINCT", "order": "ORDER BY", "limit": "LIMIT", "offset": "OFFSET",
    "sample": "SAMPLE", "hint": "hints", "into": "INTO", "locks": "FOR UPDATE", "pivots": "PIVOT", "top": "TOP",
    "fetch": "FETCH", "cluster": "CLUSTER BY", "sort": "SORT BY", "distribute": "DISTRIBUTE BY", "kind": "SELECT AS",
    "operation_modifiers": "modifiers", "match": "MATCH_RECOGNIZE", "prewhere": "PREWHERE", "connect": "CONNECT BY",
}  # fmt: skip


@dataclass(frozen=True)
class Aggregate:
    """One column of the answer: a statistic of a column, with its own arguments."""

    name: str
    statistic: str
    column: str | None
    arguments: tuple[tuple[str, Any], ...] = ()
    #: COUNT(column) counts the rows that have a value.
    present: bool = False


@dataclass(frozen=True)
class Wanted:
    """What a query asks: aggregates, a condition, and the columns of its groups."""

    aggregates: tuple[Aggregate, ...]
    where: str | None
    groups: tuple[str, ...]

    def ask(
        self,
        people: Dataset,
        share: float,
        bounds: Mapping[str, tuple[float, float]],
        keys: Mapping[str, Sequence[Hashable]],
        options: Mapping[str, Any],
    ) -> Answers:
        """All of it at one share."""
        by = self._by(keys)
        with people.batch(share) as batch:
            for one in self.aggregates:
                arguments: dict[str, Any] = dict(one.arguments)
                if one.column is not None and one.column in bounds and one.statistic != "count":
                    arguments["bounds"] = bounds[one.column]
                where = self._where(one)
                column = () if one.column is None or one.present else (one.column,)
                batch.add(one.statistic, *column, name=one.name, where=where, by=by, **arguments, **options)
        return Answers({pending.name: pending.release for pending in batch}, self.groups)

    def _by(self, keys: Mapping[str, Sequence[Hashable]]) -> dict[str, Sequence[Hashable]] | None:
        missing = [name for name in self.groups if name not in keys]
        if missing:
            raise PlanError(
                f"GROUP BY {missing[0]} needs its keys.",
                rule="Keys come from the caller; reading them from the table would show who is in it.",
                hint=f'keys={{"{missing[0]}": ["north", "south"]}}',
            )
        strange = [name for name in keys if name not in self.groups]
        if strange:
            raise PlanError(f"Keys of {strange[0]!r}, by which nothing is grouped.", hint=f"GROUP BY {strange[0]}")
        return {name: keys[name] for name in self.groups} if self.groups else None

    def _where(self, one: Aggregate) -> str | None:
        if not one.present:
            return self.where
        quoted = '"' + str(one.column).replace('"', '""') + '"'
        there = f"{quoted} IS NOT NULL"
        return there if self.where is None else f"({self.where}) AND {there}"


def read_query(text: Any, schema: Schema, person: str) -> Wanted:
    """What a query asks, checked against the table's columns; reads nothing."""
    if not isinstance(text, str) or not text.strip() or len(text) > LONGEST:
        raise PlanError("This is not a query.", rule="One SELECT in SQL.", hint=_EXAMPLE)
    try:
        rest, where = _without_condition(text)
        statements = [tree for tree in sqlglot.parse(rest, dialect="duckdb") if tree is not None]
    except (SqlglotError, RecursionError):
        raise PlanError("This is not a query that can be read.", rule="One SELECT in SQL.", hint=_EXAMPLE) from None
    if len(statements) != 1 or not isinstance(statements[0], exp.Select):
        kind = "several statements" if len(statements) != 1 else type(statements[0]).__name__.upper()
        raise _unsupported(kind)
    select = statements[0]
    for part, words in _PARTS.items():
        if select.args.get(part):
            raise _unsupported(words)
    _check_from(select)
    groups = _groups(select, schema)
    aggregates = _aggregates(select, schema, person, groups)
    return Wanted(aggregates, where, groups)


def _unsupported(part: str) -> PlanError:
    return PlanError(
        f"Not supported in a query: {part}.",
        rule="SELECT keys and COUNT, SUM, AVG, VAR_POP, MEDIAN, QUANTILE, MIN, MAX of columns FROM people "
        "[WHERE ...] [GROUP BY columns].",
        hint=_EXAMPLE,
    )


def _check_from(select: exp.Select) -> None:
    source = select.args.get("from_") or select.args.get("from")
    if source is None:
        raise _unsupported("SELECT without FROM")
    table = source.this
    plain = isinstance(table, exp.Table) and isinstance(table.this, exp.Identifier) and table.name.lower() == "people"
    if not plain or any(value for name, value in table.args.items() if name not in ("this", "alias")):
        raise _unsupported("FROM anything but people")


def _groups(select: exp.Select, schema: Schema) -> tuple[str, ...]:
    group = select.args.get("group")
    if group is None:
        return ()
    apart = any(isinstance(tree, (exp.Rollup, exp.Cube, exp.GroupingSets)) for tree in group.expressions)
    if apart or any(value for name, value in group.args.items() if name != "expressions"):
        raise _unsupported("GROUP BY with ROLLUP, CUBE, GROUPING SETS or ALL")
    return tuple(_column(tree, schema, "GROUP BY an expression") for tree in group.expressions)


def _column(tree: exp.Expr, schema: Schema, otherwise: str) -> str:
    if not isinstance(tree, exp.Column) or not isinstance(tree.this, exp.Identifier) or tree.args.get("db"):
        raise _unsupported(otherwise)
    return schema.find(tree.name).name


def _aggregates(select: exp.Select, schema: Schema, person: str, groups: tuple[str, ...]) -> tuple[Aggregate, ...]:
    found: list[Aggregate] = []
    for output in select.expressions:
        name = output.alias if isinstance(output, exp.Alias) else ""
        tree = output.this if isinstance(output, exp.Alias) else output
        if isinstance(tree, exp.Column):
            column = _column(tree, schema, "*")
            if column not in groups:
                raise _unsupported(f"column {column!r} outside GROUP BY")
            continue
        one = _aggregate(tree, schema, person)
        named = name or _called(one)
        if any(other.name == named for other in found):
            raise PlanError(f"Two columns of the answer are called {named!r}.", hint="AVG(wage) AS average")
        found.append(Aggregate(named, one.statistic, one.column, one.arguments, one.present))
    if not found:
        raise _unsupported("no aggregate at all")
    return tuple(found)


def _called(one: Aggregate) -> str:
    return one.statistic if one.column is None else f"{one.statistic}_{one.column}"


_SIMPLE: dict[type[exp.Expr], str] = {
    exp.Sum: "sum", exp.Avg: "mean", exp.VariancePop: "variance", exp.Median: "median", exp.Min: "min", exp.Max: "max",
}  # fmt: skip


def _aggregate(tree: exp.Expr, schema: Schema, person: str) -> Aggregate:
    if isinstance(tree, exp.Star):
        raise _unsupported("SELECT *")
    what = tree.sql_name() if isinstance(tree, exp.Func) else "an expression"
    if isinstance(tree, exp.Window):
        raise _unsupported("OVER")
    if isinstance(tree, exp.Filter):
        raise _unsupported("FILTER")
    if isinstance(tree, exp.Count):
        return _count(tree, schema, person)
    if isinstance(tree, exp.WithinGroup) and isinstance(tree.this, (exp.PercentileCont, exp.PercentileDisc)):
        ordered = tree.expression.expressions if isinstance(tree.expression, exp.Order) else []
        if len(ordered) != 1 or ordered[0].args.get("desc"):
            raise _unsupported("WITHIN GROUP with anything but ORDER BY one column")
        return Aggregate("", "quantile", _column(ordered[0].this, schema, what), (("q", _number(tree.this.this)),))
    if isinstance(tree, (exp.Quantile, exp.ApproxQuantile)):
        return Aggregate(
            "",
            "quantile",
            _column(tree.this, schema, f"{what} of an expression"),
            (("q", _number(tree.args["quantile"])),),
        )
    statistic = _SIMPLE.get(type(tree))
    if statistic is None:
        raise _unsupported(what)
    if isinstance(tree.this, exp.Distinct):
        raise _unsupported(f"{what} of DISTINCT")
    if any(value for name, value in tree.args.items() if name != "this"):
        raise _unsupported(f"{what} with further arguments")
    return Aggregate("", statistic, _column(tree.this, schema, f"{what} of an expression"))


def _count(tree: exp.Count, schema: Schema, person: str) -> Aggregate:
    if isinstance(tree.this, exp.Star):
        return Aggregate("", "count", None, (("of", "rows"),))
    if isinstance(tree.this, exp.Distinct):
        listed = tree.this.expressions
        if len(listed) != 1 or _column(listed[0], schema, "COUNT(DISTINCT expression)") != person:
            raise _unsupported(f"COUNT(DISTINCT) of anything but {person!r}")
        return Aggregate("people", "count", None, (("of", "people"),))
    return Aggregate("", "count", _column(tree.this, schema, "COUNT of an expression"), (("of", "rows"),), present=True)


def _number(tree: Any) -> float:
    if not isinstance(tree, exp.Literal) or tree.is_string:
        raise _unsupported("a quantile that is not a number")
    return float(tree.this)


def _without_condition(text: str) -> tuple[str, str | None]:
    """(the query without its condition, the words between WHERE and GROUP BY as they stand).

    Columns may be called like words of SQL in a condition, so the condition has a parser of its own.
    """
    tokens = tokenize(text, dialect="duckdb")
    depth, start, end = 0, None, len(text)
    for token in tokens:
        if token.token_type == TokenType.L_PAREN:
            depth += 1
        elif token.token_type == TokenType.R_PAREN:
            depth -= 1
        elif depth == 0 and token.token_type == TokenType.WHERE and start is None:
            start = token.end + 1
        elif depth == 0 and start is not None and token.token_type in (TokenType.GROUP_BY, TokenType.SEMICOLON):
            end = token.start
            break
    if start is None:
        return text, None
    return f"{text[: start - len('where')]} {text[end:]}", text[start:end].strip()
