"""A query's text before it is parsed: its condition cut out, and columns that need quotes found.

Columns may be called like words of SQL (union, order, from). A condition has a parser of its own, which knows that;
elsewhere such a name stands in double quotes.
"""

from __future__ import annotations

from sqlglot import tokenize
from sqlglot.tokenizer_core import Token, TokenType

from epsilons.engines.base import Schema
from epsilons.errors import PlanError

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


def read_tokens(text: str) -> list[Token]:
    """The words of a query."""
    return list(tokenize(text, dialect="duckdb"))


def without_condition(text: str, tokens: list[Token]) -> tuple[str, list[Token] | None]:
    """(the query without its condition, the condition's words)."""
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


def condition_text(text: str, words: list[Token], tables: set[str]) -> str:
    """The condition as it stands, without the table's name before its columns and without a comment behind it."""
    pieces, place = [], 0
    while place < len(words):
        token = words[place]
        behind = words[place + 1] if place + 1 < len(words) else None
        named = token.token_type in _NAMES and token.text.casefold() in tables
        if named and behind is not None and behind.token_type == TokenType.DOT:
            place += 2
            continue
        following = words[place + 1].start if behind is not None else token.end + 1
        pieces.append(text[token.start : following])
        place += 1
    return "".join(pieces).strip()


def holds_query(words: list[Token]) -> bool:
    """Whether a condition contains a query of its own."""
    inside = (place for place in range(1, len(words)) if words[place - 1].token_type == TokenType.L_PAREN)
    return any(
        words[place].token_type in (TokenType.SELECT, TokenType.WITH) and not _compared(words, place)
        for place in inside
    )


def check_quotes(tokens: list[Token], schema: Schema) -> None:
    """Refuse a word of SQL that stands where a column stands and is the name of one."""
    folded = {name.casefold(): name for name in schema}
    for place in range(1, len(tokens)):
        token, name = tokens[place], folded.get(tokens[place].text.casefold())
        # GROUP BY and ORDER BY are one word each, so a column called "group" is not taken for the beginning of them.
        if name is None or token.token_type in (*_NAMES, TokenType.STRING):
            continue
        ends = place + 1 == len(tokens) or tokens[place + 1].token_type in _BEHIND_COLUMN
        if tokens[place - 1].token_type in _BEFORE_COLUMN and ends:
            raise PlanError(
                f"The column {name!r} is called like a word of SQL.",
                rule="Such a name stands in double quotes.",
                suggest='"' + name + '"',
            )


def _compared(tokens: list[Token], place: int) -> bool:
    """Whether a word of SQL is a column that is compared with something: union = 'yes'."""
    beside = tokens[max(place - 1, 0) : place] + tokens[place + 1 : place + 2]
    return any(token.token_type in _COMPARING for token in beside)
