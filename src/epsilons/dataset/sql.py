"""Questions in SQL, as far as they map to the statistics; anything else is an error that names the part.

    SELECT region, AVG(wage) AS wage, COUNT(*) FROM people WHERE age >= 18 GROUP BY region

The text is parsed to find out what is asked and never becomes part of a query. The condition goes, word by word, to
the rules of `engines.conditions`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from epsilons.dataset import sql_text
from epsilons.engines.base import Schema
from epsilons.errors import PlanError
from epsilons.statistics.catalogue import CATALOGUE

if TYPE_CHECKING:
    from epsilons.dataset.batch import Batch, Pending

LONGEST = 20_000
_EXAMPLE = "SELECT region, AVG(wage) FROM people WHERE age >= 18 GROUP BY region"
_ONE_TABLE = "a dataset whose table has all the columns; a query asks one table"
_FEWER = "leave it out; there is one row for each key that you give"
_GROUPS = "GROUP BY the column, with its keys"
_AFTERWARDS = "ask for the aggregates and compute with the answers, which costs nothing"
_APART = "one query after the other"
#: Parts of a SELECT that have a name here, and what to do instead.
_PARTS = {
    "with_": ("WITH", "one SELECT ... FROM people WHERE ..."),
    "with": ("WITH", "one SELECT ... FROM people WHERE ..."),
    "joins": ("JOIN", _ONE_TABLE),
    "laterals": ("LATERAL", _ONE_TABLE),
    "having": ("HAVING", "WHERE for conditions on rows; leave groups out of the answer afterwards"),
    "qualify": ("QUALIFY", "WHERE for conditions on rows"),
    "windows": ("WINDOW", _GROUPS),
    "distinct": ("DISTINCT", _GROUPS),
    "order": ("ORDER BY", "leave it out; rows come in the order of the keys"),
    "limit": ("LIMIT", _FEWER),
    "offset": ("OFFSET", _FEWER),
    "fetch": ("FETCH", _FEWER),
    "top": ("TOP", _FEWER),
    "sample": ("SAMPLE", _EXAMPLE),
    "hint": ("hints", _EXAMPLE),
    "into": ("INTO", _EXAMPLE),
    "locks": ("FOR UPDATE", _EXAMPLE),
    "pivots": ("PIVOT", _GROUPS),
    "cluster": ("CLUSTER BY", _EXAMPLE),
    "sort": ("SORT BY", _EXAMPLE),
    "distribute": ("DISTRIBUTE BY", _EXAMPLE),
    "kind": ("SELECT AS", _EXAMPLE),
    "operation_modifiers": ("modifiers", _EXAMPLE),
    "match": ("MATCH_RECOGNIZE", _EXAMPLE),
    "prewhere": ("PREWHERE", "WHERE"),
    "connect": ("CONNECT BY", _EXAMPLE),
}
_INSTEAD = {"STDDEV": "VAR_POP(wage), and its root", "STDDEV_POP": "VAR_POP(wage), and its root",
            "STDDEV_SAMP": "VAR_POP(wage), and its root", "VARIANCE": "VAR_POP(wage)"}  # fmt: skip


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
    #: What the columns of the groups are called in the answer.
    labels: tuple[str, ...]

    def note_down(
        self,
        batch: Batch,
        bounds: Mapping[str, tuple[float, float]],
        keys: Mapping[str, Sequence[Hashable]],
        options: Mapping[str, Any],
    ) -> tuple[Pending, ...]:
        """All of it, as questions of a batch."""
        by = self._by(keys)
        noted = []
        for one in self.aggregates:
            arguments: dict[str, Any] = dict(one.arguments)
            if one.column is not None and one.statistic != "count":
                if one.column not in bounds:
                    raise PlanError(
                        f"A {one.statistic} of {one.column!r} needs bounds.",
                        rule="Bounds are public facts; reading them from the data would leak it.",
                        suggest=f'bounds={{"{one.column}": (0, 100)}}',
                    )
                arguments["bounds"] = bounds[one.column]
            where = self._where(one)
            column = () if one.column is None or one.present else (one.column,)
            pending = batch.add(one.statistic, *column, name=one.name, where=where, by=by, **arguments, **options)
            pending.groups = self.labels
            noted.append(pending)
        return tuple(noted)

    def _by(self, keys: Mapping[str, Sequence[Hashable]]) -> dict[str, Sequence[Hashable]] | None:
        missing = [name for name in self.groups if name not in keys]
        if missing:
            raise PlanError(
                f"GROUP BY {missing[0]} needs its keys.",
                rule="Keys come from the caller; reading them from the table would show who is in it.",
                suggest=f'keys={{"{missing[0]}": ["north", "south"]}}',
            )
        strange = [name for name in keys if name not in self.groups]
        if strange:
            raise PlanError(f"Keys of {strange[0]!r}, by which nothing is grouped.", suggest=f"GROUP BY {strange[0]}")
        return {name: keys[name] for name in self.groups} if self.groups else None

    def _where(self, one: Aggregate) -> str | None:
        if not one.present:
            return self.where
        quoted = '"' + str(one.column).replace('"', '""') + '"'
        there = f"{quoted} IS NOT NULL"
        return there if self.where is None else f"({self.where}) AND {there}"


def read_query(text: Any, schema: Schema, person: str) -> Wanted:
    """What a query asks, checked against the table's columns; reads nothing."""
    if not isinstance(text, str) or not text.strip():
        raise PlanError("This is not a query.", rule="One SELECT in SQL.", suggest=_EXAMPLE)
    if len(text) > LONGEST:
        raise PlanError(f"This query has more than {LONGEST:,} characters.", suggest="fewer aggregates at a time")
    try:
        tokens = sql_text.read_tokens(text)
    except (SqlglotError, RecursionError):
        raise _unreadable() from None
    if not tokens or tokens[0].token_type not in (TokenType.SELECT, TokenType.WITH, TokenType.L_PAREN):
        raise _unsupported(tokens[0].text.upper() if tokens else "nothing at all")
    rest, condition = sql_text.without_condition(text, tokens)
    try:
        return _read(text, rest, condition, schema, person)
    except PlanError:
        # What could not be read may be a column that is called like a word of SQL.
        sql_text.check_quotes(sql_text.read_tokens(rest), schema)
        raise


def _read(text: str, rest: str, condition: list[Token] | None, schema: Schema, person: str) -> Wanted:
    try:
        statements = [tree for tree in sqlglot.parse(rest, dialect="duckdb") if tree is not None]
    except (SqlglotError, RecursionError):
        raise _unreadable() from None
    if len(statements) != 1:
        raise _unsupported("several statements", _APART)
    select = statements[0]
    if not isinstance(select, exp.Select):
        raise _unsupported(type(select).__name__.upper(), _APART)
    for part, (words, instead) in _PARTS.items():
        if select.args.get(part):
            raise _unsupported(words, instead)
    tables = _check_from(select)
    for column in select.find_all(exp.Column):
        if column.table and column.table.casefold() not in tables:
            raise _unsupported(f"a column of {column.table!r}", _ONE_TABLE)
    groups = _groups(select, schema)
    aggregates, labels = _outputs(select, schema, person, groups)
    if condition is not None and sql_text.holds_query(condition):
        raise _unsupported("a query inside WHERE", "a condition on the columns of people")
    where = None if condition is None else sql_text.condition_text(text, condition, tables)
    return Wanted(aggregates, where, groups, labels)


def _unreadable() -> PlanError:
    return PlanError("This is not a query that can be read.", rule="One SELECT in SQL.", suggest=_EXAMPLE)


def _unsupported(part: str, instead: str = _EXAMPLE) -> PlanError:
    return PlanError(
        f"Not supported in a query: {part}.",
        rule="SELECT keys and COUNT, SUM, AVG, VAR_POP, MEDIAN, QUANTILE, MIN, MAX of columns FROM people "
        "[WHERE ...] [GROUP BY columns].",
        suggest=instead,
    )


def _check_from(select: exp.Select) -> set[str]:
    """The names that the table goes by, folded."""
    source = select.args.get("from_") or select.args.get("from")
    if source is None:
        raise _unsupported("SELECT without FROM")
    table = source.this
    if isinstance(table, exp.Subquery):
        raise _unsupported("a query inside FROM", "SELECT ... FROM people WHERE ...")
    if table.args.get("sample"):
        raise _unsupported("TABLESAMPLE", "leave it out; mechanisms sample people where that helps")
    plain = isinstance(table, exp.Table) and isinstance(table.this, exp.Identifier) and table.name.lower() == "people"
    if not plain or any(value for name, value in table.args.items() if name not in ("this", "alias")):
        raise _unsupported("FROM anything but people", "FROM people: so the table is called, whatever its file")
    return {"people", table.alias.casefold()} if table.alias else {"people"}


def _groups(select: exp.Select, schema: Schema) -> tuple[str, ...]:
    group = select.args.get("group")
    if group is None:
        return ()
    apart = any(isinstance(tree, (exp.Rollup, exp.Cube, exp.GroupingSets)) for tree in group.expressions)
    if apart or any(value for name, value in group.args.items() if name != "expressions"):
        raise _unsupported("GROUP BY with ROLLUP, CUBE, GROUPING SETS or ALL")
    if any(isinstance(tree, exp.Literal) for tree in group.expressions):
        raise _unsupported("GROUP BY a number", "GROUP BY region")
    return tuple(_column(tree, schema, "GROUP BY an expression") for tree in group.expressions)


def _column(tree: exp.Expr, schema: Schema, otherwise: str) -> str:
    if not isinstance(tree, exp.Column) or not isinstance(tree.this, exp.Identifier) or tree.args.get("db"):
        raise _unsupported(otherwise, 'a column by its name; in double quotes if it has spaces: AVG("net wage")')
    return schema.find(tree.name).name


def _outputs(
    select: exp.Select, schema: Schema, person: str, groups: tuple[str, ...]
) -> tuple[tuple[Aggregate, ...], tuple[str, ...]]:
    """(the aggregates, what the columns of the groups are called)."""
    found: list[Aggregate] = []
    labels = {name: name for name in groups}
    for output in select.expressions:
        name = output.alias if isinstance(output, exp.Alias) else ""
        tree = output.this if isinstance(output, exp.Alias) else output
        if isinstance(tree, exp.Column):
            column = _column(tree, schema, "*")
            if column not in groups:
                raise _unsupported(f"column {column!r} outside GROUP BY", f"GROUP BY {column}, with its keys")
            labels[column] = name or labels[column]
            continue
        one = _aggregate(tree, schema, person)
        if one.column is not None and not one.present:
            schema.number(one.column)
        found.append(replace(one, name=name or _called(one)))
    if not found:
        raise _unsupported("no aggregate at all")
    names = [*labels.values(), *(one.name for one in found)]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise PlanError(f"Two columns of the answer are called {twice[0]!r}.", suggest="AVG(wage) AS average")
    return tuple(found), tuple(labels.values())


def _called(one: Aggregate) -> str:
    part = [f"{value:g}" for name, value in one.arguments if name == "q"]
    return "_".join([one.name or one.statistic, *part, *([] if one.column is None else [one.column])])


#: Which statistic an aggregate means, by the catalogue.
_AGGREGATES: dict[type[exp.Expr], str] = {
    getattr(exp, name): entry.name for entry in CATALOGUE.values() for name in entry.sql
}


def _aggregate(tree: exp.Expr, schema: Schema, person: str) -> Aggregate:
    if isinstance(tree, exp.Star):
        raise _unsupported("SELECT *")
    what = tree.sql_name() if isinstance(tree, exp.Func) else "an expression"
    if isinstance(tree, exp.Anonymous):
        what = tree.name.upper()
    if isinstance(tree, exp.Window):
        raise _unsupported("OVER", _GROUPS)
    if isinstance(tree, exp.Filter):
        raise _unsupported("FILTER", "WHERE, in a query of its own")
    if isinstance(tree, exp.Subquery):
        raise _unsupported("a query inside SELECT", _APART)
    statistic = _AGGREGATES.get(type(tree))
    if isinstance(tree, exp.Count):
        return _count(tree, schema, person)
    if isinstance(tree, exp.WithinGroup) and isinstance(tree.this, (exp.PercentileCont, exp.PercentileDisc)):
        ordered = tree.expression.expressions if isinstance(tree.expression, exp.Order) else []
        if len(ordered) != 1 or ordered[0].args.get("desc"):
            raise _unsupported("WITHIN GROUP with anything but ORDER BY one column")
        return Aggregate("", "quantile", _column(ordered[0].this, schema, what), (("q", _number(tree.this.this)),))
    if statistic == "quantile":
        which = tree.args.get("quantile") or tree.args.get("expression")
        column = _column(tree.this, schema, f"{what} of an expression")
        return Aggregate("", "quantile", column, (("q", _number(which)),))
    if statistic is None:
        raise _unsupported(what, _INSTEAD.get(what, _AFTERWARDS))
    if isinstance(tree.this, exp.Distinct):
        raise _unsupported(f"{what} of DISTINCT")
    if any(value for name, value in tree.args.items() if name != "this"):
        raise _unsupported(f"{what} with further arguments")
    return Aggregate("", statistic, _column(tree.this, schema, f"{what} of an expression"))


def _count(tree: exp.Count, schema: Schema, person: str) -> Aggregate:
    if (
        tree.this is None
        or isinstance(tree.this, exp.Star)
        or (isinstance(tree.this, exp.Literal) and not tree.this.is_string)
    ):
        return Aggregate("", "count", None, (("of", "rows"),))
    if isinstance(tree.this, exp.Distinct):
        listed = tree.this.expressions
        if len(listed) != 1 or _column(listed[0], schema, "COUNT(DISTINCT expression)") != person:
            raise _unsupported(f"COUNT(DISTINCT) of anything but {person!r}", f"COUNT(DISTINCT {person}), or COUNT(*)")
        return Aggregate("people", "count", None, (("of", "people"),))
    return Aggregate("", "count", _column(tree.this, schema, "COUNT of an expression"), (("of", "rows"),), present=True)


def _number(tree: Any) -> float:
    if not isinstance(tree, exp.Literal) or tree.is_string:
        raise _unsupported("a quantile that is not one number", "QUANTILE(wage, 0.9)")
    return float(tree.this)
