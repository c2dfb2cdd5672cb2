"""Questions in SQL, as far as they map to the statistics; anything else is an error that names the part.

    SELECT region, AVG(wage) AS wage, COUNT(*) FROM people WHERE age >= 18 GROUP BY region

The text is parsed to find out what is asked and never becomes part of a query. The condition is cut out first and goes,
token by token, to the rules of `engines.conditions`, whose parser knows columns that are called like keywords of SQL
(union, order, from); elsewhere such a name stands in double quotes.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from epsilons.arguments.checks import BOUNDS_RULE
from epsilons.arguments.options import BATCHES
from epsilons.engines.base import Schema
from epsilons.errors import Argument, PlanError
from epsilons.statistics.catalogue import CATALOGUE
from epsilons.summaries.columns import KEYS_RULE

if TYPE_CHECKING:
    from epsilons.dataset.batch import Batch, Pending

LONGEST_QUERY = 20_000
_EXAMPLE = "SELECT region, AVG(wage) FROM people WHERE age >= 18 GROUP BY region"
_RULE = (
    "SELECT keys and COUNT, SUM, AVG, VAR_POP, MEDIAN, QUANTILE, MIN, MAX, MODE, COVAR_POP, CORR of columns FROM "
    "people [WHERE ...] [GROUP BY columns]."
)
_ONE_TABLE = "a dataset whose table has all the columns; a query asks one table"
_FEWER = "leave it out; there is one row for each key that you give"
_GROUPS = "GROUP BY the column, with its keys"
_AFTERWARDS = "ask for the aggregates and compute with the answers, which costs nothing"
_APART = "one query after the other"
#: Parts of a SELECT that are not supported, by sqlglot's names.
_PARTS = {
    "with_": "WITH", "with": "WITH", "joins": "JOIN", "laterals": "LATERAL", "having": "HAVING", "qualify": "QUALIFY",
    "windows": "WINDOW", "distinct": "DISTINCT", "order": "ORDER BY", "limit": "LIMIT", "offset": "OFFSET",
    "fetch": "FETCH", "top": "TOP", "sample": "SAMPLE", "hint": "hints", "into": "INTO", "locks": "FOR UPDATE",
    "pivots": "PIVOT", "cluster": "CLUSTER BY", "sort": "SORT BY", "distribute": "DISTRIBUTE BY", "kind": "SELECT AS",
    "operation_modifiers": "modifiers", "match": "MATCH_RECOGNIZE", "prewhere": "PREWHERE", "connect": "CONNECT BY",
}  # fmt: skip
#: Expressions that are no aggregates.
_NO_AGGREGATES: dict[type[exp.Expr], str] = {
    exp.Star: "SELECT *", exp.Window: "OVER", exp.Filter: "FILTER", exp.Subquery: "a query inside SELECT",
}  # fmt: skip
#: What to do instead; an example where nothing is listed.
_INSTEAD = {
    "WITH": "one SELECT ... FROM people WHERE ...", "JOIN": _ONE_TABLE, "LATERAL": _ONE_TABLE,
    "HAVING": "WHERE for conditions on rows; leave groups out of the answer afterwards",
    "QUALIFY": "WHERE for conditions on rows", "PREWHERE": "WHERE", "WINDOW": _GROUPS, "DISTINCT": _GROUPS,
    "PIVOT": _GROUPS, "OVER": _GROUPS, "FILTER": "WHERE, in a query of its own", "a query inside SELECT": _APART,
    "ORDER BY": "leave it out; rows come in the order of the keys",
    "LIMIT": _FEWER, "OFFSET": _FEWER, "FETCH": _FEWER, "TOP": _FEWER,
    "several statements": _APART,
    "STDDEV": "VAR_POP(wage), and its root", "STDDEV_POP": "VAR_POP(wage), and its root",
    "STDDEV_SAMP": "VAR_POP(wage), and its root", "VARIANCE": "VAR_POP(wage)",
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
class Query:
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
        for name in (name for name in self.groups if name not in keys):
            hint = Argument("keys", {name: ["north", "south"]})
            raise PlanError(f"GROUP BY {name} needs its keys.", rule=KEYS_RULE, suggest=hint)
        chosen = {one.column for one in self.aggregates if "among" in CATALOGUE[one.statistic].own(BATCHES)}
        for name in (name for name in keys if name not in self.groups and name not in chosen):
            raise PlanError(f"Keys of {name!r}, by which nothing is grouped.", suggest=f"GROUP BY {name}")
        by = {name: keys[name] for name in self.groups} or None
        noted = []
        # What pays for intervals is for the aggregates that take it; a query without any refuses it.
        paying = {one.statistic for one in self.aggregates if CATALOGUE[one.statistic].pays_for_interval}
        for one in self.aggregates:
            arguments: dict[str, Any] = {**dict(one.arguments), **options}
            if paying and one.statistic not in paying:
                arguments.pop("for_interval", None)
            if one.column in chosen and "among" in CATALOGUE[one.statistic].own(BATCHES):
                arguments["among"] = keys.get(one.column or "")
            elif one.column is not None and one.statistic != "count":
                for name in (name for name in (one.column, arguments.get("other", one.column)) if name not in bounds):
                    what, example = f"A {one.statistic} of {name!r} needs bounds.", {name: (0, 100)}
                    raise PlanError(what, rule=BOUNDS_RULE, suggest=Argument("bounds", example))
                both = {name: bounds[name] for name in (one.column, arguments.get("other", one.column))}
                arguments["bounds"] = both if "other" in arguments else bounds[one.column]
            where, column = self.where, () if one.column is None or one.present else (one.column,)
            if one.present:
                there = '"' + str(one.column).replace('"', '""') + '" IS NOT NULL'
                where = there if where is None else f"({where}) AND {there}"
            pending = batch.add(one.statistic, *column, name=one.name, where=where, by=by, **arguments)
            pending.groups = self.labels
            noted.append(pending)
        return tuple(noted)


def read_query(text: Any, schema: Schema, person: str) -> Query:
    """What a query asks, checked against the table's columns; reads nothing."""
    if not isinstance(text, str) or not text.strip():
        raise _unreadable()
    if len(text) > LONGEST_QUERY:
        raise PlanError(f"This query has more than {LONGEST_QUERY:,} characters.", suggest="fewer aggregates at a time")
    try:
        tokens = _read_tokens(text)
    except (SqlglotError, RecursionError):
        raise _unreadable() from None
    if not tokens or tokens[0].token_type not in (TokenType.SELECT, TokenType.WITH, TokenType.L_PAREN):
        raise _unsupported(tokens[0].text.upper() if tokens else "nothing at all")
    rest, condition = _cut_condition(text, tokens)
    try:
        return _read(text, rest, condition, schema, person)
    except PlanError:
        # What could not be read may be a column that is called like a keyword of SQL.
        _check_quotes(_read_tokens(rest), schema)
        raise


def _read(text: str, rest: str, condition: list[Token] | None, schema: Schema, person: str) -> Query:
    try:
        statements = [tree for tree in sqlglot.parse(rest, dialect="duckdb") if tree is not None]
    except (SqlglotError, RecursionError):
        raise _unreadable() from None
    if len(statements) != 1:
        raise _unsupported("several statements")
    select = statements[0]
    if not isinstance(select, exp.Select):
        raise _unsupported(type(select).__name__.upper(), _APART)
    for called in (called for part, called in _PARTS.items() if select.args.get(part)):
        raise _unsupported(called)
    tables = _check_from(select)
    for column in select.find_all(exp.Column):
        if column.table and column.table.casefold() not in tables:
            raise _unsupported(f"a column of {column.table!r}", _ONE_TABLE)
    groups = _read_groups(select, schema)
    aggregates, labels = _read_outputs(select, schema, person, groups)
    where = None if condition is None else _write_condition(text, condition, tables)
    return Query(aggregates, where, groups, labels)


def _unreadable() -> PlanError:
    return PlanError("This is not a query that can be read.", rule="One SELECT in SQL.", suggest=_EXAMPLE)


def _unsupported(part: str, instead: str = "") -> PlanError:
    return PlanError(f"Not supported in a query: {part}.", rule=_RULE, suggest=instead or _INSTEAD.get(part, _EXAMPLE))


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


def _read_groups(select: exp.Select, schema: Schema) -> tuple[str, ...]:
    group = select.args.get("group")
    if group is None:
        return ()
    apart = any(isinstance(tree, (exp.Rollup, exp.Cube, exp.GroupingSets)) for tree in group.expressions)
    if apart or any(value for name, value in group.args.items() if name != "expressions"):
        raise _unsupported("GROUP BY with ROLLUP, CUBE, GROUPING SETS or ALL")
    if any(isinstance(tree, exp.Literal) for tree in group.expressions):
        raise _unsupported("GROUP BY a number", "GROUP BY region")
    return tuple(_read_column(tree, schema, "GROUP BY an expression") for tree in group.expressions)


def _read_column(tree: exp.Expr, schema: Schema, otherwise: str) -> str:
    if not isinstance(tree, exp.Column) or not isinstance(tree.this, exp.Identifier) or tree.args.get("db"):
        raise _unsupported(otherwise, 'a column by its name; in double quotes if it has spaces: AVG("net wage")')
    return schema.find(tree.name).name


def _read_outputs(
    select: exp.Select, schema: Schema, person: str, groups: tuple[str, ...]
) -> tuple[tuple[Aggregate, ...], tuple[str, ...]]:
    """(the aggregates, what the columns of the groups are called)."""
    found: list[Aggregate] = []
    labels = {name: name for name in groups}
    for output in select.expressions:
        name = output.alias if isinstance(output, exp.Alias) else ""
        tree = output.this if isinstance(output, exp.Alias) else output
        if isinstance(tree, exp.Column):
            column = _read_column(tree, schema, "*")
            if column not in groups:
                raise _unsupported(f"column {column!r} outside GROUP BY", f"GROUP BY {column}, with its keys")
            labels[column] = name or labels[column]
            continue
        one = _read_aggregate(tree, schema, person)
        if one.column is not None and not one.present and not CATALOGUE[one.statistic].text:
            schema.number(one.column)
        quantile = [f"{value:g}" for argument, value in one.arguments if argument == "q"]
        other = [value for argument, value in one.arguments if argument == "other"]
        called = [one.name or one.statistic, *quantile, *([] if one.column is None else [one.column]), *other]
        found.append(replace(one, name=name or "_".join(called)))
    if not found:
        raise _unsupported("no aggregate at all")
    names = [*labels.values(), *(one.name for one in found)]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise PlanError(f"Two columns of the answer are called {twice[0]!r}.", suggest="AVG(wage) AS average")
    return tuple(found), tuple(labels.values())


#: Which statistic an aggregate means, by the catalogue.
_AGGREGATES: dict[type[exp.Expr], str] = {
    getattr(exp, name): entry.name for entry in CATALOGUE.values() for name in entry.sql
}


def _read_aggregate(tree: exp.Expr, schema: Schema, person: str) -> Aggregate:
    what = tree.sql_name() if isinstance(tree, exp.Func) else "an expression"
    if isinstance(tree, exp.Anonymous):
        what = tree.name.upper()
    if type(tree) in _NO_AGGREGATES:
        raise _unsupported(_NO_AGGREGATES[type(tree)])
    statistic = _AGGREGATES.get(type(tree))
    if isinstance(tree, exp.Count):
        return _read_count(tree, schema, person)
    if isinstance(tree, exp.WithinGroup) and isinstance(tree.this, (exp.PercentileCont, exp.PercentileDisc)):
        ordered = tree.expression.expressions if isinstance(tree.expression, exp.Order) else []
        if len(ordered) != 1 or ordered[0].args.get("desc"):
            raise _unsupported("WITHIN GROUP with anything but ORDER BY one column")
        return _read_quantile(ordered[0].this, schema, what, tree.this.this)
    if statistic == "quantile":
        which = tree.args.get("quantile") or tree.args.get("expression")
        return _read_quantile(tree.this, schema, f"{what} of an expression", which)
    if statistic is None:
        raise _unsupported(what, _INSTEAD.get(what, _AFTERWARDS))
    if isinstance(tree.this, exp.Distinct):
        raise _unsupported(f"{what} of DISTINCT")
    if CATALOGUE[statistic].pair and isinstance(tree.expression, exp.Expr):
        column, other = (_read_column(one, schema, f"{what} of an expression") for one in (tree.this, tree.expression))
        schema.number(other)
        return Aggregate("", statistic, column, (("other", other),))
    if any(value for name, value in tree.args.items() if name != "this"):
        raise _unsupported(f"{what} with further arguments")
    return Aggregate("", statistic, _read_column(tree.this, schema, f"{what} of an expression"))


def _read_count(tree: exp.Count, schema: Schema, person: str) -> Aggregate:
    counted, rows = tree.this, (("of", "rows"),)
    if counted is None or isinstance(counted, exp.Star) or (isinstance(counted, exp.Literal) and not counted.is_string):
        return Aggregate("", "count", None, rows)
    if isinstance(counted, exp.Distinct):
        listed = counted.expressions
        if len(listed) != 1 or _read_column(listed[0], schema, "COUNT(DISTINCT expression)") != person:
            raise _unsupported(f"COUNT(DISTINCT) of anything but {person!r}", f"COUNT(DISTINCT {person}), or COUNT(*)")
        return Aggregate("people", "count", None, (("of", "people"),))
    return Aggregate("", "count", _read_column(counted, schema, "COUNT of an expression"), rows, present=True)


def _read_quantile(tree: exp.Expr, schema: Schema, otherwise: str, which: Any) -> Aggregate:
    column = _read_column(tree, schema, otherwise)
    if not isinstance(which, exp.Literal) or which.is_string:
        raise _unsupported("a quantile that is not one number", "QUANTILE(wage, 0.9)")
    return Aggregate("", "quantile", column, (("q", float(which.this)),))


# The text before it is parsed ---------------------------------------------------------------------------------------

_AFTER = {
    TokenType.GROUP_BY, TokenType.SEMICOLON, TokenType.HAVING, TokenType.ORDER_BY, TokenType.LIMIT, TokenType.OFFSET,
    TokenType.FETCH, TokenType.QUALIFY, TokenType.WINDOW, TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT,
}  # fmt: skip
_COMPARING = {
    TokenType.EQ, TokenType.NEQ, TokenType.LT, TokenType.LTE, TokenType.GT, TokenType.GTE, TokenType.IN,
    TokenType.BETWEEN, TokenType.LIKE, TokenType.IS, TokenType.NOT,
}  # fmt: skip
_BEFORE_COLUMN = {TokenType.L_PAREN, TokenType.COMMA, TokenType.SELECT, TokenType.GROUP_BY, TokenType.DISTINCT}
_BEHIND_COLUMN = {TokenType.R_PAREN, TokenType.COMMA, TokenType.FROM, TokenType.ALIAS, TokenType.SEMICOLON}
_NAMES = {TokenType.VAR, TokenType.IDENTIFIER}


def _read_tokens(text: str) -> list[Token]:
    return list(sqlglot.tokenize(text, dialect="duckdb"))


def _cut_condition(text: str, tokens: list[Token]) -> tuple[str, list[Token] | None]:
    """(the query without its condition, the condition's tokens)."""
    depth, start, end = 0, None, len(tokens)
    for place, token in enumerate(tokens):
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        if depth or place == 0:
            continue
        if token.token_type == TokenType.WHERE and start is None:
            start = place
        elif start is not None and token.token_type in _AFTER and not _compared(tokens, place):
            end = place
            break
    if start is None:
        return text, None
    rest = text[tokens[end].start :] if end < len(tokens) else ""
    return f"{text[: tokens[start].start]} {rest}", tokens[start + 1 : end]


def _write_condition(text: str, tokens: list[Token], tables: set[str]) -> str:
    """The condition as it stands, without the table's name before its columns and without a comment behind it."""
    pieces, place = [], 0
    while place < len(tokens):
        token, behind = tokens[place], tokens[place + 1] if place + 1 < len(tokens) else None
        inside = place > 0 and tokens[place - 1].token_type == TokenType.L_PAREN
        if inside and token.token_type in (TokenType.SELECT, TokenType.WITH) and not _compared(tokens, place):
            raise _unsupported("a query inside WHERE", "a condition on the columns of people")
        named = token.token_type in _NAMES and token.text.casefold() in tables
        if named and behind is not None and behind.token_type == TokenType.DOT:
            place += 2
            continue
        pieces.append(text[token.start : token.end + 1 if behind is None else behind.start])
        place += 1
    return "".join(pieces).strip()


def _check_quotes(tokens: list[Token], schema: Schema) -> None:
    """Refuse a keyword of SQL that stands where a column stands and is the name of one."""
    folded = {name.casefold(): name for name in schema}
    for place in range(1, len(tokens)):
        token, name = tokens[place], folded.get(tokens[place].text.casefold())
        # GROUP BY and ORDER BY are one token each, so a column called "group" is not taken for the beginning of them.
        if name is None or token.token_type in (*_NAMES, TokenType.STRING):
            continue
        ends = place + 1 == len(tokens) or tokens[place + 1].token_type in _BEHIND_COLUMN
        if tokens[place - 1].token_type in _BEFORE_COLUMN and ends:
            raise PlanError(f"The column {name!r} is called like a keyword of SQL.", suggest=f'"{name}"')


def _compared(tokens: list[Token], place: int) -> bool:
    """Whether a keyword of SQL is a column that is compared with something: union = 'yes'."""
    beside = tokens[max(place - 1, 0) : place] + tokens[place + 1 : place + 2]
    return any(token.token_type in _COMPARING for token in beside)
