"""Errors in the command line's words: where the library hints at an argument of Python, a flag or a line of the file.

    bounds=(0, 100)             --bounds 0,100                 types={"id": "int"}    id = "int" under [types]
    by={"region": ["north"]}    --by region=north              complete=["age"]       complete = ["age"]
    share= instead              --share instead                eps.min                epsilons min

One rule for all of them: `name=value` is a flag if a question takes it, and a line of the dataset file otherwise.
"""

from __future__ import annotations

import ast
import json
import re
from typing import Any

from epsilons.arguments.options import TABLES, options_of
from epsilons.errors import EpsilonsError
from epsilons.statistics.catalogue import CATALOGUE

#: What goes by a flag: the arguments of all statistics but those that go by place, and the options of every question.
_FLAGS = {
    argument.name for entry in CATALOGUE.values() for argument in entry.own(TABLES).values() if not argument.positional
} | {"keys", *options_of(TABLES)} - {"entropy"}
_TABLES = {"types", "bounds"}
_IN_FILE = {
    "types", "complete", "version", "table", "threads", "memory", "engine", "neighbors", "rows_per_person",
    "allow_individual", "ledger",
}  # fmt: skip
_PREFERENCES = {"default", "levels", "column"}
_VALUE = r"""(\{[^}]*\}|\([^)]*\)|\[[^\]]*\]|"[^"]*"|'[^']*'|-?\w[\w.+-]*)?"""
_ARGUMENT = re.compile(rf"(?<![\w-])({'|'.join(sorted(_FLAGS | _IN_FILE | _PREFERENCES))})={_VALUE}")
#: Calls, as the library writes them in hints, and what stays of them.
_CALLS = (
    (re.compile(r"eps\.Preferences\.from_levels\([^{]*\{[^}]*\}\)"), "levels = { strict = 0.05, open = 1 }"),
    (re.compile(r'eps\.Preferences\.from_column\("(\w+)"\)'), r'column="\1"'),
    (
        re.compile(r"eps\.Preferences\(\.\.\., default=.*?\)"),
        "a default under [preferences]: the name of a level, or an epsilon where there are no levels; "
        "if the column holds names, levels = { strict = 0.05, open = 1 }",
    ),
    (re.compile(r'^("sqlite:.*") or None$'), r"ledger = one of \1, or no ledger at all"),
    (re.compile(r"eps\.PUBLIC"), '"public"'),
    (
        re.compile(r"eps\.histogram\(values, epsilons, (edges=\[.*?\])\)"),
        r'\1, or categories=["north", "south"] for words',
    ),
    (re.compile(r"eps\.\w+\(values, epsilons, (.*)\)"), r"\1"),
    (
        re.compile(r"people\.(linear|logistic)_regression\(.*\)"),
        r"epsilons \1-regression people.toml wage age,schooling --bounds wage=0,100 --bounds age=15,90 ...",
    ),
    (re.compile(r'people\.(\w+)\("(\w+)", \.\.\.\)'), r"epsilons \1 people.toml \2"),
    (re.compile(r'people\.(\w+)\("(\w+)", (.*)\)'), r"epsilons \1 people.toml \2 \3"),
    (re.compile(r"\beps\.(\w+)"), r"epsilons \1"),
    (re.compile(r"^[qk]=(\S+)$"), r"\1"),
    (re.compile(r"^leave (spread|density|location) out"), r"leave --\1 out"),
    (re.compile(r"^edges, or "), "--edges, or "),
    (re.compile(r"^bounds with room"), "--bounds with room"),
    (re.compile(r"\bwith categories\b"), "with --categories"),
    (re.compile(r"\bor add the missing level$"), "or add the missing level to levels under [preferences]"),
)


def reworded(error: EpsilonsError, place: str = "question") -> EpsilonsError:
    """The same error in the words of the place where it can be mended: a "question", the "file", or "init"."""
    hint = error.hint
    untyped = re.match(r"Column '(.+)' holds text", error.what)
    if untyped is not None:
        hint = hint.replace("types={...}", f"types={{{untyped[1]!r}: 'float'}}")
    for call, words in _CALLS:
        hint = call.sub(words, hint)
    hint = _ARGUMENT.sub(lambda found: _argument(found, place), hint)
    # Elsewhere in a message a name=value may be what the user typed; at its beginning it is an argument's name.
    begins = _ARGUMENT.match(error.what)
    what = error.what if begins is None else _argument(begins, place) + error.what[begins.end() :]
    same = EpsilonsError.__new__(type(error))
    EpsilonsError.__init__(same, what, rule=error.rule, suggest=hint)
    return same


def _argument(found: re.Match[str], place: str) -> str:
    name, written = found[1], found[2]
    if place == "init" and name == "types":
        return f"--type {_typed(written)}".rstrip()
    if name in _FLAGS and place != "file":
        return f"--{name} {_typed(written)}".rstrip()
    if name in _PREFERENCES:
        return f"{name} = {_toml(written)} under [preferences]"
    value = _read(written)
    if name in _TABLES:
        if isinstance(value, dict):
            lines = (f"{_key(key)} = {_toml(repr(one))}" for key, one in value.items())
            return "; ".join(lines) + f" under [{name}]"
        return f"[{name}]"
    return name if written is None else f"{name} = {_toml(written)}"


def _read(written: str | None) -> Any:
    """The value that a hint shows; an ellipsis stands for values of the reader's own."""
    try:
        return ast.literal_eval(written or "...")
    except (ValueError, SyntaxError):
        return written


def _typed(written: str | None) -> str:
    """As typed behind a flag."""
    value = _read(written)
    if value is ... or value is True or value in ([...], {...}):
        return ""
    if isinstance(value, dict):
        return " ".join(f"{key}={_joined(one)}" for key, one in value.items())
    return _joined(value)


def _joined(value: Any) -> str:
    return ",".join(str(one) for one in value) if isinstance(value, (list, tuple)) else str(value)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)


def _toml(written: str | None) -> str:
    """As written in the dataset file, where lists, words and truths look as in JSON."""
    value = _read(written)
    if isinstance(value, (bool, int, float, str, list, tuple)) and value != [...]:
        return json.dumps(value, ensure_ascii=False)
    return str(written)
