"""A small table of hostile values, and random conditions on it with what SQL's three-valued logic makes of them.

The truths are worked out here in Python, row by row, from the meaning of each sign.
"""

from __future__ import annotations

import math
import re
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

ROWS: dict[str, list[Any]] = {
    "age": [17, 18, -(2**63), 2**63 - 1, None, 0],
    "small": [-128, 127, 0, 5, None, 1],
    "wage": [1.5, math.nan, math.inf, -math.inf, None, 0.1],
    "single": [0.1, math.nan, math.inf, 1.0, None, -0.0],
    "price": [Decimal("1.50"), Decimal("-99.99"), Decimal("0.00"), Decimal("99.99"), None, Decimal("1.49")],
    "union": ["yes", "no", "it's", "", None, "YES"],
    "word": ["naïve", "e\u0301", "50%_off", "a\\b", None, "\u00e9 🙂\n"],
    "flag": [True, False, True, None, None, False],
    "born": [date(2000, 2, 29), date(1, 1, 1), date(9999, 12, 31), None, None, date(2000, 3, 1)],
    "at": [datetime(2000, 2, 29, 23, 59, 59), datetime(1, 1, 1), datetime(9999, 12, 31, 23), None, None, datetime.min],
}
TYPES = {
    "age": pa.int64(), "small": pa.int8(), "wage": pa.float64(), "single": pa.float32(), "price": pa.decimal128(4, 2),
    "union": pa.string(), "word": pa.string(), "flag": pa.bool_(), "born": pa.date32(), "at": pa.timestamp("us"),
}  # fmt: skip
TABLE = pa.table({name: pa.array(ROWS[name], TYPES[name]) for name in ROWS}).append_column("place", pa.array(range(6)))
COLUMNS = dict(zip(TABLE.column_names, TABLE.to_pydict().values(), strict=True))

Truths = list[bool | None]

_SIGNS = {
    "=": lambda a, b: a == b, "<>": lambda a, b: a != b, "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
}  # fmt: skip
LITERALS = {
    "age": ["17", "18", "-9223372036854775808", "17.5", "0", "1e18", "-3", "9223372036854775808"],
    "wage": ["1.5", "0.1", "0", "-1", "1e308"],
    "price": ["1.5", "1.49", "-99.99", "0.001", "1e9"],
    "union": ["'yes'", "'no'", "''", "'it''s'", "'z'"],
    "word": ["'naïve'", "'\u00e9'", "'e\u0301'", "'a\\b'", "'50%_off'"],
}
PATTERNS = {
    "union": ["'y%'", "'Y%'", "'%s'", "'%e%'", "'%'", "'%%'", "''", "'yes'", "'%''%'", "'yes%'", "'%yes'", "'%yess%'"],
    "word": ["'e%'", "'\u00e9%'", "'%\u0301'", "'%ï%'", "'%🙂%'", "'%\n'", "'%off'", "'%b%'", "'%e'", "'%v%'"],
}


def absent(value: Any) -> bool:
    return value is None or value != value


def meaning(literal: str) -> Any:
    return literal[1:-1].replace("''", "'") if literal.startswith("'") else Decimal(literal)


def truth(value: Any, sign: str, literal: str) -> bool | None:
    if absent(value):
        return None
    other = meaning(literal)
    if isinstance(value, float):
        other = float(other)
    return bool(_SIGNS[sign](value, other))


def likeness(value: Any, literal: str) -> bool | None:
    """% is any text; letters stand for themselves, whatever their case."""
    if absent(value):
        return None
    pieces = (re.escape(piece) for piece in meaning(literal).split("%"))
    return re.fullmatch(".*".join(pieces), value, re.DOTALL) is not None


def negation(truths: Truths) -> Truths:
    return [None if t is None else not t for t in truths]


def conjunction(one: Truths, other: Truths) -> Truths:
    pairs = zip(one, other, strict=True)
    return [False if False in (a, b) else None if None in (a, b) else True for a, b in pairs]


_SHAPES = ["compare", "in", "between", "like", "null", "not", "and", "or"]


@st.composite
def conditions(draw: st.DrawFn, depth: int = 3) -> tuple[str, Truths]:
    """A text, and what it is on each row: true, false or unknown."""
    shape = draw(st.sampled_from(_SHAPES if depth else ["compare", "like"]))
    name = draw(st.sampled_from(sorted(PATTERNS if shape == "like" else LITERALS)))
    column, pool = COLUMNS[name], st.sampled_from((PATTERNS if shape == "like" else LITERALS)[name])
    if shape == "compare":
        sign, literal = draw(st.sampled_from(sorted(_SIGNS))), draw(pool)
        return f"{name} {sign} {literal}", [truth(value, sign, literal) for value in column]
    if shape == "like":
        pattern, negated = draw(pool), draw(st.booleans())
        found = [likeness(value, pattern) for value in column]
        return f"{name} {'NOT ' * negated}LIKE {pattern}", negation(found) if negated else found
    if shape == "in":
        listed = draw(st.lists(pool, min_size=1, max_size=4))
        found = [None if absent(v) else any(truth(v, "=", x) for x in listed) for v in column]
        return f"{name} IN ({', '.join(listed)})", found
    if shape == "between":
        low, high = draw(pool), draw(pool)
        ends = [[truth(v, sign, x) for v in column] for sign, x in ((">=", low), ("<=", high))]
        return f"{name} BETWEEN {low} AND {high}", conjunction(*ends)
    if shape == "null":
        return f"{name} IS NULL", [absent(v) for v in column]
    text, truths = draw(conditions(depth - 1))
    if shape == "not":
        return f"NOT ({text})", negation(truths)
    text2, truths2 = draw(conditions(depth - 1))
    if shape == "and":
        return f"({text}) AND ({text2})", conjunction(truths, truths2)
    return f"({text}) OR ({text2})", negation(conjunction(negation(truths), negation(truths2)))
