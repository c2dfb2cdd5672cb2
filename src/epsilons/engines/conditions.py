"""Conditions that a caller writes as text: a small language, checked against the table's columns before any reading.

    age >= 18 AND NOT (region IN ('north', 'south') OR name LIKE 'A%') AND wage IS NOT NULL

A column, or a part of its date (MONTH(day), see `calendars`), against literals of its own family with = <> < <= > >=,
IN, BETWEEN, LIKE (text), IS [NOT] NULL; AND, OR, NOT and parentheses. Nothing else: a refusal names the part that is
none of it, by names and signs, and quotes no literal. Patterns have a refusal of their own; there are four: 'a%', '%a',
'%a%' and 'a' itself. Others may take a thousand times longer on one text than on another.

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
from datetime import MAXYEAR, date, datetime, time
from fractions import Fraction
from itertools import accumulate
from typing import Any

from sqlglot import exp, tokenize
from sqlglot.errors import ParseError, TokenError
from sqlglot.parser import Parser
from sqlglot.tokenizer_core import Token, TokenType

from epsilons.arguments.spans import WEEKDAYS, read_period
from epsilons.engines.base import DATE, NUMBER, OTHER, TEXT, TIME, TRUTH, Column, Schema, unaskable
from epsilons.engines.calendars import PARTS, PartComparison, number_column
from epsilons.engines.trees import (
    NODES,
    Comparison,
    MismatchError,
    Never,
    Predicate,
    Several,
    canonical,
    check_storable,
    split_like,
)
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
_LONGEST_NAME = 60
_WRITTEN_AS = {
    NUMBER: "18 or 2.5", TEXT: "'north'", TRUTH: "TRUE or FALSE", DATE: "'2026-11-15'", TIME: "'2026-11-15 12:00:00'",
}  # fmt: skip
_KEYWORDS = {"AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "IS", "NULL", "TRUE", "FALSE"}
_WRITTEN = {TokenType.STRING, TokenType.NUMBER, TokenType.IDENTIFIER}


class _RefusedError(Exception):
    """Not in the language: what of it, or the error to raise, if there is one of its own."""

    def __init__(self, reason: EpsilonsError | str = "") -> None:
        self.reason = reason


def _require(allowed: bool, reason: EpsilonsError | str = "") -> None:
    if not allowed:
        raise _RefusedError(reason)


def parse(text: Any, schema: Schema) -> Predicate:
    """The condition that a text stands for, in normal form; `PlanError`, which names the part, if it is not one.

    Patterns have a `PlanError` of their own; `DataError` if it is about a column whose type cannot be asked about.

    >>> from epsilons.engines.base import Column, Schema
    >>> schema = Schema([Column("age", "number", -2**31, 2**31 - 1), Column("union", "text")])
    >>> parse("NOT (age < 17.5 OR \\"union\\" IS NULL)", schema).text
    '("age" >= 18 AND "union" IS NOT NULL)'
    """
    reason: EpsilonsError | str = ""
    try:
        return _parse(text, schema)
    except _RefusedError as error:
        reason = error.reason
    except ParseError as error:  # parsers quote what they could not read: the place alone is told
        places = [one.get("col") for one in error.errors]
        reason = f"it cannot be read at character {places[0]}" if places and places[0] else ""
    except TokenError:
        reason = "a quote in it is not closed"
    except MismatchError:
        reason = "it has a character that no text can hold"
    except Exception:  # recursion, too, ends in errors of its own
        pass
    if isinstance(reason, EpsilonsError):
        raise reason
    rule = "Columns against literals of their type: = <> < <= > >=, IN, BETWEEN, LIKE, IS [NOT] NULL; AND, OR, NOT."
    csv = ("; of a CSV file, columns that ", Argument("types"), " does not declare are text")
    hint = (_names_to_quote(text, schema) or "age >= 18 AND region IN ('north', 'south')", *csv)
    part = f": {reason}" if reason else ""
    raise PlanError(f"The condition is not one that can be asked{part}.", rule=rule, suggest=hint)


def _names_to_quote(text: Any, schema: Schema) -> str:
    """The columns with blanks or signs in their names that the caller wrote without double quotes."""
    said, quoted = str(text).casefold(), {name: '"' + name.replace('"', '""') + '"' for name in schema}
    odd = [name for name in schema if not name.isidentifier()]
    bare = [quoted[name] for name in odd if name.casefold() in said.replace(quoted[name].casefold(), "")]
    return f"{', '.join(bare)}, in double quotes" if bare else ""


def _name(node: Any) -> str:
    """What a node is called, by the words of the language or the caller's own name of it; never a literal."""
    while type(node) is exp.Paren:
        node = node.this
    if isinstance(node, (exp.Literal, exp.Boolean, exp.Null, exp.Neg)):
        return "a literal stands where a column is expected"
    if isinstance(node, exp.Column):
        return f"{_quote(node.name)} stands alone, or where a literal is expected (text is written 'in single quotes')"
    if isinstance(node, exp.Dot):
        return "a number has one point, and a date is written '2026-11-15'"
    if type(node) in _SIGNS:
        return "a comparison stands where a column or a literal is expected; AND and OR join them"
    if _is_worked_out(node):
        return f"{node.key.upper()} is none of its signs"
    if word := _find_part(node)[0]:
        return f"{word} of a column is compared with literals, by = <> < <= > >=, IN or BETWEEN"
    if isinstance(node, exp.Anonymous):
        return f"functions such as {_quote(node.name)} are not asked"
    return f"{node.key.upper()} is no part of it" if isinstance(node, exp.Expr) else "a sign has nothing beside it"


def _is_worked_out(node: Any) -> bool:
    """Whether it is of two parts with a sign between them."""
    return isinstance(node, exp.Binary) and not isinstance(node, exp.Func)


def _quote(name: str) -> str:
    return repr(name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}...")


def _no_pattern(suggest: str = "name LIKE 'A%' AND name LIKE '%son'") -> PlanError:
    rule = "LIKE takes 'a%', '%a', '%a%' or 'a': no _, no % inside, no backslash, no ESCAPE; time would tell of a text."
    return PlanError("This pattern cannot be asked.", rule=rule, suggest=suggest)


def _parse(text: Any, schema: Schema) -> Predicate:
    _require(isinstance(text, str), "it is not a text")
    _require(len(text) <= LONGEST_CONDITION, f"it is longer than {LONGEST_CONDITION:,} characters")
    half = LONGEST_CONDITION // 2
    check_storable(text[:half]), check_storable(text[half:])
    names = {name.casefold() for name in schema}
    tokens = [_as_name(token, names) for token in tokenize(text)]
    _require(len(tokens) > 0, "it is empty")
    _require(len(tokens) <= MOST_TOKENS, f"it has more than {MOST_TOKENS:,} words and signs")
    _require(not any(token.comments for token in tokens), "it has a comment")
    _require(not any(token.token_type == TokenType.SEMICOLON for token in tokens), "it has a semicolon")
    depths = accumulate((token.text == "(") - (token.text == ")") for token in tokens)
    negations = sum(token.text.upper() == "NOT" for token in tokens)
    _require(max(depths) <= DEEPEST, f"parentheses are more than {DEEPEST} deep")
    _require(negations <= 4 * DEEPEST, f"it has more than {4 * DEEPEST} NOT")
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
    _require(not node.comments and all(value in (None, False, []) for value in others), _name(node))


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
        _require(bool(node.expressions), "IN is followed by literals in parentheses")
        _only(node, "this", "expressions")
        if _split_part(node.this)[0]:
            sign = "<>" if negated else "="
            return _join([_comparison(node.this, sign, one, schema, False) for one in node.expressions], every=negated)
        return _among(_column(node.this, schema), node.expressions, negated)
    if kind is exp.Like:
        _only(node, "this", "expression", "negate")
        column = _column(node.this, schema)
        _require(column.family == TEXT, f"LIKE is for text, and column {_quote(column.name)} holds {column.family}")
        pattern = check_storable(str(_value(node.expression, column)))
        before, sought, after = split_like(pattern)
        _require(not any(sign in sought for sign in "%_\\"), _no_pattern())
        shorter = f"at most {LONGEST_PIECE} characters between % and %"
        _require(not (before and after and len(sought) > LONGEST_PIECE), _no_pattern(shorter))
        return Comparison(column, "NOT LIKE" if negated ^ bool(node.args.get("negate")) else "LIKE", (pattern,))
    _require(kind is not exp.Escape, _no_pattern())
    _require(kind is exp.Is, _name(node))
    _require(type(node.expression) is exp.Null, "IS is followed by NULL or NOT NULL")
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
    _require(type(node) is exp.Column and type(node.this) is exp.Identifier, _name(node))
    _require(not node.args.get("table"), "a column is named without a table before it")
    _only(node, "this")
    _only(node.this, "this", "quoted")
    name, quoted = str(node.this.this), node.this.args.get("quoted")
    known = name in schema if quoted else name.casefold() in {one.casefold() for one in schema}
    exactly = ", spelled exactly so" if quoted else ""
    _require(known, f"there is no column {_quote(name)}{exactly}")
    found = schema[name] if quoted else schema.find(name)
    if found.family == OTHER:
        raise _RefusedError(unaskable(found))
    return found


def _value(node: Any, kind: Column) -> Fraction | str | bool:
    while type(node) is exp.Paren:
        _only(node, "this")
        node = node.this
    if type(node) is exp.Boolean and kind.family == TRUTH:
        _only(node, "this")
        return bool(node.this)
    sign = 1
    if type(node) is exp.Neg:
        _only(node, "this")
        sign, node = -1, node.this
    own = f"column {_quote(kind.name)} holds {kind.family}, which is written {_WRITTEN_AS.get(kind.family, '')}"
    _require(type(node) is not exp.Null, "nothing is compared with NULL (IS NULL asks for it)")
    # Without its quotes 2026-11-15 is a difference; in SQL a date may have a word before it.
    unquoted = kind.family in (DATE, TIME) and (type(node) is exp.Cast or _is_worked_out(node))
    _require(type(node) is exp.Literal, own if unquoted or type(node) is exp.Boolean else _name(node))
    _only(node, "this", "is_string")
    if node.is_string:
        _require(sign > 0 and kind.family not in (NUMBER, TRUTH), own)
        _require(kind.family == TEXT or _is_moment(str(node.this), kind), own)
        return str(node.this)
    _require(kind.family == NUMBER and _DIGITS.fullmatch(node.this) is not None, own)
    return sign * Fraction(node.this)


def _is_moment(text: str, kind: Column) -> bool:
    try:
        return canonical(text, kind) is not None
    except MismatchError:
        return False


def _comparison(left: Any, sign: str, right: Any, schema: Schema, negated: bool) -> Predicate:
    if not _is_compared(left) and _is_compared(right):
        left, right, sign = right, left, _FLIPPED[sign]
    sign = _NEGATED[sign] if negated else sign
    word, named = _split_part(left)
    kind = _column(named, schema)
    return _compare_part(kind, word, sign, right) if word else compare(kind, sign, _value(right, kind))


def _is_compared(node: Any) -> bool:
    return type(node) is exp.Column or bool(_split_part(node)[0])


def _split_part(node: Any) -> tuple[str, Any]:
    """(the part of a calendar, its column) of MONTH(day) or EXTRACT(MONTH FROM day); ("", the node) of others."""
    word, inside, other = _find_part(node)
    if not word:
        return "", node
    _only(node, "this", other)
    return word, inside


def _find_part(node: Any) -> tuple[str, Any, str]:
    """The same, and which argument holds the column; nothing is refused."""
    word, inside, other = "", node, "this"
    if type(node) is exp.Extract:
        word, inside, other = node.name.upper(), node.expression, "expression"
    elif type(node) is exp.Anonymous and len(node.expressions) == 1:
        word, inside, other = node.name.upper(), node.expressions[0], "expressions"
    elif isinstance(node, exp.Func):
        word, inside = node.key.upper(), node.this
    return (word, inside, other) if word in PARTS else ("", node, "")


def _compare_part(kind: Column, word: str, sign: str, node: Any) -> Predicate:
    """A part against a number; a year, and a period that goes by its name, is a range of the column."""
    part, numbers = PARTS[word], number_column(kind, word)
    _require(kind.family in part.families, f"{word} is not for column {_quote(kind.name)}, which holds {kind.family}")
    own = f"{word} of column {_quote(kind.name)} is written {part.written}"
    named = type(node) is exp.Literal and node.is_string
    if named and part.periods:
        _only(node, "this", "is_string")
        period = read_period(part.periods, str(node.this))
        _require(period is not None, own)
        assert period is not None
        return _compare_period(kind, sign, *period)
    if word == "WEEKDAY":
        _require(named and node.this in WEEKDAYS, own)
        number = Fraction(WEEKDAYS.index(node.this) + 1)
    else:
        _require(not named and type(node) in (exp.Literal, exp.Neg, exp.Paren), own)
        number = Fraction(_value(node, numbers))
    found = _compare_units(numbers, sign, number)
    if not isinstance(found, Comparison) or not found.values:
        return found
    if word != "YEAR":
        return PartComparison.of(found, word)
    year = int(str(found.values[0]))
    return _compare_period(kind, found.sign, date(year, 1, 1), date(year + 1, 1, 1) if year < MAXYEAR else None)


def _compare_period(kind: Column, sign: str, first: date, after: date | None) -> Predicate:
    """A period in terms of its first day and of the first day after it; the last there is, of its own last moment."""
    last: date = date.max if kind.family == DATE else datetime.max
    within, beyond = ("<=", ">") if after is None else ("<", ">=")
    begin, end = (_write_moment(day, kind) for day in (first, last if after is None else after))
    if sign in ("=", "<>"):
        ends = [(">=", begin), (within, end)] if sign == "=" else [("<", begin), (beyond, end)]
        return _join([compare(kind, one, moment) for one, moment in ends], every=sign == "=")
    if sign in ("<", ">="):
        return compare(kind, sign, begin)
    return compare(kind, within if sign == "<=" else beyond, end)


def _write_moment(day: date, kind: Column) -> str:
    return str(day if kind.family == DATE or isinstance(day, datetime) else datetime.combine(day, time()))


def compare(kind: Column, sign: str, value: Fraction | str | bool) -> Predicate:
    """A column against a value of its family, in normal form."""
    if kind.family == NUMBER and not kind.floating:
        assert isinstance(value, Fraction)
        return _compare_units(kind, sign, value * 10**kind.scale)
    if kind.family == TRUTH:
        _require(sign in ("=", "<>"), f"column {_quote(kind.name)} holds truth, which has no order")
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
    parts = [compare(kind, "=", _value(node, kind)) for node in nodes]
    distinct = {value for part in parts if isinstance(part, Comparison) for value in part.values}
    values: tuple[Any, ...] = tuple(sorted(distinct))
    if not values:
        return Comparison(kind, "IS NOT NULL") if negated else Never(frozenset({kind.name}))
    if len(values) > 1:
        return Comparison(kind, "NOT IN" if negated else "IN", values)
    if kind.family == TRUTH:
        return Comparison(kind, "=", (bool(values[0]) != negated,))
    return Comparison(kind, "<>" if negated else "=", values)
