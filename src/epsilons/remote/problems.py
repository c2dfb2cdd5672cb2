"""Errors of the library over HTTP, both ways: one shape, from which a client makes the same error again.

Besides title, detail and hint a problem has the error's `code`, its `kind` and its `parts`, in which arguments are
data: each front writes them in its own language, also behind a server.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from epsilons import errors
from epsilons.errors import Argument, EpsilonsError, ProtocolError, Text


def write_problem(error: EpsilonsError) -> dict[str, Any]:
    """What a problem has besides title and detail."""
    parts = [_write_text(part) for part in error.parts]
    told = {"hint": error.hint} if error.hint else {}
    return {"code": error.code, "kind": type(error).__name__, "parts": parts, **told}


def read_problem(document: Any, status: int) -> EpsilonsError:
    """The error that a reply stands for."""
    if not isinstance(document, Mapping) or "title" not in document:
        return ProtocolError(f"The server refused with status {status}.", suggest="ask its operator")
    made: EpsilonsError = ProtocolError(str(document["title"]), rule=str(document.get("detail", "")))
    try:
        what, rule, suggest = (_read_text(part) for part in document["parts"])
        kind = next(one for one in _kinds(EpsilonsError) if one.__name__ == document["kind"])
        made = kind(what, rule=rule, suggest=suggest)
    except (KeyError, TypeError, ValueError, StopIteration):
        named = [one for one in _kinds(EpsilonsError) if one.__module__ == errors.__name__]
        kind = next((one for one in named if one.code == document.get("code")), ProtocolError)
        made = kind(made.what, rule=made.rule, suggest=str(document.get("hint", "")))
    return made


def _kinds(kind: type[EpsilonsError]) -> Iterator[type[EpsilonsError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _kinds(below)


def _write_text(text: Text) -> list[Any]:
    parts = text if isinstance(text, tuple) else (text,)
    return [one if isinstance(one, str) else {"argument": one.name, "value": _write(one.value)} for one in parts]


def _read_text(plain: Any) -> Text:
    parts = [one if isinstance(one, str) else Argument(str(one["argument"]), _read(one["value"])) for one in plain]
    return parts[0] if len(parts) == 1 else tuple(parts)


def _write(value: Any) -> Any:
    """A value of a hint: what JSON does not know is tagged, or only told."""
    if isinstance(value, (list, tuple)):
        listed = [_write(one) for one in value]
        return listed if isinstance(value, list) else {"tuple": listed}
    if isinstance(value, Mapping):
        return {"map": [[_write(key), _write(one)] for key, one in value.items()]}
    if value is ...:
        return {"own": True}
    finite = isinstance(value, float) and math.isfinite(value)
    return value if value is None or finite or isinstance(value, (bool, int, str)) else {"told": str(value)}


def _read(plain: Any) -> Any:
    """The inverse."""
    if isinstance(plain, list):
        return [_read(one) for one in plain]
    if not isinstance(plain, dict):
        return plain
    if "map" in plain:
        return {_read(key): _read(one) for key, one in plain["map"]}
    if "tuple" in plain:
        return tuple(_read(one) for one in plain["tuple"])
    return ... if "own" in plain else str(plain["told"])
