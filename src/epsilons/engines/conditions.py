"""Conditions that a caller writes as text: a small language, checked against the table's columns before any reading.

    age >= 18 AND NOT (region IN ('north', 'south') OR name LIKE 'A%') AND wage IS NOT NULL

A column against literals of its own family with = <> < <= > >=, IN, BETWEEN, LIKE (text), IS [NOT] NULL; AND, OR, NOT
and parentheses. Nothing else, and one fixed message for whatever else there is; another for patterns, of which there
are four: 'a%', '%a', '%a%' and 'a' itself. Others may take a thousand times longer on one text than on another.

The text is parsed, every node and every one of its arguments is looked up in a list of what is allowed, and the result
are the frozen values of `trees`. The query is built from those, so no node of the parser reaches an engine. They take a
normal form, whose `text` is the same for conditions that say the same in another order or manner:

- NOT goes down to the comparisons (De Morgan), where it turns `<` into `>=` and so on. What remains is built of AND
  and OR alone, so that "unknown" may count as false at once: a row whose value is missing, null or NaN, meets no
  comparison, negated or not.
- A comparison with a whole or decimal number is put in units of the column: `age < 17.5` and `age <= 17` are one.
"""

import math
import re
from fractions import Fraction
from itertools import accumulate
from typing import Any

from sqlglot import exp, tokenize
from sqlglot.parser import Parser
from sqlglot.tokenizer_core import Token, TokenType

from epsilons.engines.base import NUMBER, OTHER, TEXT, TRUTH, Column, Schema, unaskable
from epsilons.engines.trees import NODES, Comparison, Never, Predicate, Several, canonical, check_storable, split_like
from epsilons.errors import Argument, EpsilonsError, PlanError

LONGEST_CONDITION = 20_000
MOST_TOKENS = 4_000
DEEPEST = 24
#: Engines compare a piece that is looked for anew at every place of a text.
LONGEST_PIECE = 100

_NEGATED = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_FLIPPED = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
_SIGNS = {node: sign for sign, node in NODES.items()}
_DIGITS = re.compile(r"(\d{1,400}(\.\d{0,400})?|\.\d{1,400})([eE][+-]?\d{1,3})?", re.ASCII)
_KEYWORDS = {"AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "IS", "NULL", "TRUE", "FALSE"}
_WRITTEN = {TokenType.STRING, TokenType.NUMBER, TokenType.IDENTIFIER}


class _RefusedError(Exception):
    """Not in the language, or more is known of it: the error to raise."""

    def __init__(self, reason: EpsilonsError | None = None) -> None:
        self.reason = reason


def _require(allowed: bool, reason: EpsilonsError | None = None) -> None:
    if not allowed:
        raise _RefusedError(reason)


def parse(text: Any, schema: Schema) -> Predicate:
    """The condition that a text stands for, in normal form; `PlanError`, always the same, if it is not one.

    Patterns have a `PlanError` of their own; `DataError` if it is about a column whose type cannot be asked about.

    >>> from epsilons.engines.base import Column, Schema
    >>> schema = Schema([Column("age", "number", -2**31, 2**31 - 1), Column("union", "text")])
    >>> parse("NOT (age < 17.5 OR \\"union\\" IS NULL)", schema).text
    '("age" >= 18 AND "union" IS NOT NULL)'
    """
    reason = None
    try:
        return _parse(text, schema)
    except _RefusedError as error:
        reason = error.reason
    except Exception:  # parsers quote what they could not read, and recursion ends in errors of its own
        pass
    rule = "Columns against literals of their type: = <> < <= > >=, IN, BETWEEN, LIKE, IS [NOT] NULL; AND, OR, NOT."
    csv = ("; of a CSV file, columns that ", Argument("types"), " does not declare are text")
    hint = ("age >= 18 AND region IN ('north', 'south')", *csv)
    raise reason or PlanError("The condition is not one that can be asked.", rule=rule, suggest=hint)


def _no_pattern(suggest: str = "name LIKE 'A%' AND name LIKE '%son'") -> PlanError:
    rule = "LIKE takes 'a%', '%a', '%a%' or 'a': no _, no % inside, no backslash, no ESCAPE; time would tell of a text."
    return PlanError("This pattern cannot be asked.", rule=rule, suggest=suggest)


def _parse(text: Any, schema: Schema) -> Predicate:
    _require(isinstance(text, str) and len(text) <= LONGEST_CONDITION)
    half = LONGEST_CONDITION // 2
    check_storable(text[:half]), check_storable(text[half:])
    names = {name.casefold() for name in schema}
    tokens = [_as_name(token, names) for token in tokenize(text)]
    _require(0 < len(tokens) <= MOST_TOKENS and not any(token.comments or token.text == ";" for token in tokens))
    depths = accumulate((token.text == "(") - (token.text == ")") for token in tokens)
    negations = sum(token.text.upper() == "NOT" for token in tokens)
    _require(max(depths) <= DEEPEST and negations <= 4 * DEEPEST)
    (tree,) = Parser().parse_into(exp.Condition, tokens, text)
    return _condition(tree, schema, False)


def _as_name(token: Token, names: set[str]) -> Token:
    """A keyword of SQL that is none of this language may name a column: union, order, date."""
    if token.token_type in _WRITTEN or token.text.upper() in _KEYWORDS or token.text.casefold() not in names:
        return token
    return Token(TokenType.VAR, token.text, token.line, token.col, token.start, token.end, list(token.comments))


def _only(node: exp.Expr, *names: str) -> None:
    """Every argument of a node is one that is known here; a newer parser may add others, such as a negation."""
    others = [value for name, value in node.args.items() if name not in names]
    _require(not node.comments and all(value in (None, False, []) for value in others))


def _condition(node: Any, schema: Schema, negated: bool) -> Predicate:
    kind = type(node)
    while kind in (exp.Paren, exp.Not):
        _only(node, "this")
        negated ^= kind is exp.Not
        node, kind = node.this, type(node.this)
    if kind in (exp.And, exp.Or):
        parts = [_condition(part, schema, negated) for part in _unchain(node, kind)]
        return _join(parts, every=(kind is exp.And) != negated)
    if kind in _SIGNS:
        _only(node, "this", "expression")
        return _comparison(node.this, _SIGNS[kind], node.expression, schema, negated)
    if kind is exp.Between:
        _only(node, "this", "low", "high")
        ends = [(">=", node.args["low"]), ("<=", node.args["high"])]
        parts = [_comparison(node.this, sign, end, schema, negated) for sign, end in ends]
        return _join(parts, every=not negated)
    if kind is exp.In:
        _only(node, "this", "expressions")
        return _among(_column(node.this, schema), node.expressions, negated)
    if kind is exp.Like:
        _only(node, "this", "expression", "negate")
        column = _column(node.this, schema)
        _require(column.family == TEXT)
        pattern = check_storable(str(_value(node.expression, column)))
        before, sought, after = split_like(pattern)
        _require(not any(sign in sought for sign in "%_\\"), _no_pattern())
        shorter = f"at most {LONGEST_PIECE} characters between % and %"
        _require(not (before and after and len(sought) > LONGEST_PIECE), _no_pattern(shorter))
        return Comparison(column, "NOT LIKE" if negated ^ bool(node.args.get("negate")) else "LIKE", (pattern,))
    _require(kind is not exp.Escape, _no_pattern())
    _require(kind is exp.Is and type(node.expression) is exp.Null)
    _only(node, "this", "expression")
    return Comparison(_column(node.this, schema), "IS NOT NULL" if negated else "IS NULL")


def _unchain(node: Any, kind: type[exp.Connector]) -> list[Any]:
    """The parts of a AND b AND c, which the parser nests to the left as deep as there are parts."""
    parts = []
    while type(node) is kind:
        _only(node, "this", "expression")
        parts.append(node.expression)
        node = node.this
    return [node, *reversed(parts)]


def _join(parts: list[Predicate], every: bool) -> Predicate:
    nested = [part.parts if isinstance(part, Several) and part.every == every else (part,) for part in parts]
    flat = [part for inner in nested for part in inner]
    kept = {part.text: part for part in flat if not isinstance(part, Never)}
    if not kept or (every and any(isinstance(part, Never) for part in flat)):
        return Never(frozenset[str]().union(*(part.columns for part in flat)))
    ordered = tuple(kept[text] for text in sorted(kept))
    return ordered[0] if len(ordered) == 1 else Several(ordered, every)


def _column(node: Any, schema: Schema) -> Column:
    _require(type(node) is exp.Column and type(node.this) is exp.Identifier)
    _only(node, "this")
    _only(node.this, "this", "quoted")
    found = schema[node.this.this] if node.this.args.get("quoted") else schema.find(node.this.this)
    if found.family == OTHER:
        raise _RefusedError(unaskable(found))
    return found


def _value(node: Any, kind: Column) -> Fraction | str | bool:
    if type(node) is exp.Paren:
        _only(node, "this")
        node = node.this
    if type(node) is exp.Boolean and kind.family == TRUTH:
        _only(node, "this")
        return bool(node.this)
    sign = 1
    if type(node) is exp.Neg:
        _only(node, "this")
        sign, node = -1, node.this
    _require(type(node) is exp.Literal)
    _only(node, "this", "is_string")
    if node.is_string:
        _require(sign > 0 and kind.family not in (NUMBER, TRUTH))
        return str(node.this)
    _require(kind.family == NUMBER and _DIGITS.fullmatch(node.this) is not None)
    return sign * Fraction(node.this)


def _comparison(left: Any, sign: str, right: Any, schema: Schema, negated: bool) -> Predicate:
    if type(left) is not exp.Column:
        left, right, sign = right, left, _FLIPPED[sign]
    kind = _column(left, schema)
    return _compare(kind, _NEGATED[sign] if negated else sign, _value(right, kind))


def _compare(kind: Column, sign: str, value: Fraction | str | bool) -> Predicate:
    if kind.family == NUMBER and not kind.floating:
        assert isinstance(value, Fraction)
        return _compare_units(kind, sign, value * 10**kind.scale)
    if kind.family == TRUTH:
        _require(sign in ("=", "<>"))
        return Comparison(kind, "=", (bool(value) == (sign == "="),))
    known = canonical(value, kind)
    assert known is not None
    return Comparison(kind, sign, (known,))


def _compare_units(kind: Column, sign: str, units: Fraction) -> Predicate:
    """In whole units of the column: only =, <>, <= and >= with a number of the column's range remain."""
    assert kind.low is not None
    assert kind.high is not None
    never, always = Never(frozenset({kind.name})), Comparison(kind, "IS NOT NULL")
    if sign in ("=", "<>"):
        if units.denominator == 1 and kind.low <= units <= kind.high:
            return Comparison(kind, sign, (int(units),))
        return never if sign == "=" else always
    if sign in ("<", "<="):
        most = math.floor(units) if sign == "<=" else math.ceil(units) - 1
        if kind.low <= most < kind.high:
            return Comparison(kind, "<=", (most,))
        return never if most < kind.low else always
    least = math.ceil(units) if sign == ">=" else math.floor(units) + 1
    if kind.low < least <= kind.high:
        return Comparison(kind, ">=", (least,))
    return never if least > kind.high else always


def _among(kind: Column, nodes: list[Any], negated: bool) -> Predicate:
    _require(bool(nodes))
    parts = [_compare(kind, "=", _value(node, kind)) for node in nodes]
    distinct = {value for part in parts if isinstance(part, Comparison) for value in part.values}
    values: tuple[Any, ...] = tuple(sorted(distinct))
    if not values:
        return Comparison(kind, "IS NOT NULL") if negated else Never(frozenset({kind.name}))
    if len(values) > 1:
        return Comparison(kind, "NOT IN" if negated else "IN", values)
    if kind.family == TRUTH:
        return Comparison(kind, "=", (bool(values[0]) != negated,))
    return Comparison(kind, "<>" if negated else "=", values)
