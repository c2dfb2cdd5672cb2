"""Write the stubs of functions and methods that are made from the catalogue, for type checkers and editors.

`make signatures` runs it; a test fails when the stubs are not what it would write.
"""

from __future__ import annotations

import collections.abc
import inspect
import sys
import types
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import epsilons as eps
from epsilons.arguments import ARRAYS, options_of
from epsilons.arrays import functions
from epsilons.calls import annotation_of
from epsilons.dataset.methods import BatchQuestions, Questions
from epsilons.noise.entropy import Entropy
from epsilons.statistics.catalogue import CATALOGUE

PACKAGE = Path(eps.__file__).parent
_HEAD = '"""{about} Written by `make signatures`: change the catalogue, not this file."""\n\n'
_IMPORTS = "from collections.abc import Hashable, Mapping, Sequence\nfrom typing import Any, Literal\n\n"
_MECHANISM = annotation_of(options_of(ARRAYS)["mechanism"])
_STATISTIC = Literal[tuple(CATALOGUE)]
#: Long types that a stub names once.
_NAMED = {_MECHANISM: "Mechanism", _STATISTIC: "Statistic"}


def annotation(kind: Any) -> str:
    """A type as it is written."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if kind in _NAMED:
        return _NAMED[kind]
    if kind is Any:
        return "Any"
    if kind is None or kind is type(None):
        return "None"
    if isinstance(kind, str):
        return kind
    if origin in (typing.Union, types.UnionType):
        return " | ".join(annotation(part) for part in inner)
    if origin is typing.Literal:
        return f"Literal[{', '.join(quoted(name) for name in inner)}]"
    if origin is not None:
        return f"{origin.__name__}[{', '.join('...' if part is ... else annotation(part) for part in inner)}]"
    if kind in (collections.abc.Hashable, Entropy, eps.Plan, eps.Release) or kind.__module__ == "builtins":
        return str(kind.__name__)
    raise ValueError(f"no spelling for {kind!r}")


def quoted(value: Any) -> str:
    """A default or a name, words in double quotes."""
    return f'"{value}"' if isinstance(value, str) else repr(value)


def stub(name: str, signature: inspect.Signature, indent: str = "") -> str:
    """One function, with a line for each argument."""
    lines, by_name = [], False
    for parameter in signature.parameters.values():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not by_name:
            lines.append("*")
            by_name = True
        text = "**" * (parameter.kind is inspect.Parameter.VAR_KEYWORD) + parameter.name
        if parameter.annotation is not inspect.Parameter.empty:
            text += f": {annotation(parameter.annotation)}"
        if parameter.default is not inspect.Parameter.empty:
            text += f" = {quoted(parameter.default)}"
        lines.append(text)
    listed = "".join(f"{indent}    {line},\n" for line in lines)
    return f"{indent}def {name}(\n{listed}{indent}) -> {annotation(signature.return_annotation)}: ...\n"


def mechanisms() -> str:
    """The names of all mechanisms, once."""
    names, _ = typing.get_args(_MECHANISM)
    listed = "\n".join(f"        {quoted(name)}," for name in typing.get_args(names))
    return f"Mechanism = (\n    Literal[\n{listed}\n    ]\n    | str\n)\n"


def statistics() -> str:
    """The names of all statistics, once."""
    listed = "\n".join(f"    {quoted(name)}," for name in CATALOGUE)
    return f"Statistic = Literal[\n{listed}\n]\n"


def function_stubs() -> str:
    """`arrays/functions.pyi`."""
    head = _HEAD.format(about="The functions on arrays.") + _IMPORTS.replace("Mapping, ", "")
    head += "from epsilons.noise.entropy import Entropy\nfrom epsilons.planner.plan import Plan\n"
    head += "from epsilons.release import Release\n\n" + mechanisms() + statistics() + "\n"
    made: list[Callable[..., Any]] = [getattr(functions, name) for name in (*CATALOGUE, "plan")]
    exported = "".join(f"    {quoted(name)},\n" for name in functions.__all__)
    stubs = "".join(stub(function.__name__, inspect.signature(function)) for function in made)
    return f"{head}__all__ = [\n{exported}]\n\n{stubs}"


def method_stubs() -> str:
    """`dataset/methods.pyi`."""
    head = _HEAD.format(about="The statistics as methods.") + _IMPORTS
    head += "from epsilons.dataset.batch import Pending\nfrom epsilons.noise.entropy import Entropy\n"
    head += "from epsilons.release import Release\n\n" + mechanisms() + "\n"
    return head + "\n".join(_class(kind) for kind in (Questions, BatchQuestions))


def _class(kind: type) -> str:
    methods = "".join(stub(name, inspect.signature(getattr(kind, name)), "    ") for name in CATALOGUE)
    return f"class {kind.__name__}:\n{methods}"


def written() -> Iterator[tuple[Path, str]]:
    """Every stub and what belongs into it."""
    yield PACKAGE / "arrays" / "functions.pyi", function_stubs()
    yield PACKAGE / "dataset" / "methods.pyi", method_stubs()


def main() -> int:
    """Write them all."""
    for path, text in written():
        path.write_text(text)
        print(path.relative_to(PACKAGE.parent))
    return 0


if __name__ == "__main__":
    sys.exit(main())
