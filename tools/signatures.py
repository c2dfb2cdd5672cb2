"""Write the stubs of functions and methods that are made from the catalogue, for type checkers and editors.

`make signatures` runs it; a test fails when the stubs are not what it would write.
"""

from __future__ import annotations

import collections.abc
import inspect
import sys
import textwrap
import types
import typing
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import epsilons as eps
from epsilons.accuracy.relation import Relation
from epsilons.arguments.options import ARRAYS, BATCHES, TABLES, Parameter, options_of
from epsilons.arguments.reading import NAME
from epsilons.arrays import functions
from epsilons.calls import PLAN_ERROR, PLAN_PAST, PLAN_PEOPLE, annotation_of
from epsilons.dataset.methods import BatchQuestions, Questions
from epsilons.noise.entropy import Entropy
from epsilons.statistics.catalogue import CATALOGUE
from epsilons.statistics.entry import Bounds

PACKAGE = Path(eps.__file__).parent
_HEAD = '"""{about} Written by `make signatures`: change the catalogue, not this file."""\n\n'
_MECHANISM = annotation_of(options_of(ARRAYS)["mechanism"])
_STATISTIC = Literal[tuple(CATALOGUE)] | str
#: Long types that a stub names once.
_NAMED = {_MECHANISM: "Mechanism", _STATISTIC: "Statistic", Bounds: "Bounds"}
#: Types that signatures repeat: a stub names them at its top; the second is of the methods of tables alone.
_STEP, _BY_COLUMN = float | None, collections.abc.Mapping[str, tuple[float, float]] | None
_REPEATED = {_STEP: "Step", _BY_COLUMN: "ColumnBounds"}
#: Lines are as long as the formatter leaves them.
_WIDTH = 120


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
        ordered = sorted(inner, key=lambda part: part is type(None))
        return " | ".join(annotation(part) for part in ordered)
    if origin is typing.Literal:
        return f"Literal[{', '.join(quoted(name) for name in inner)}]"
    if origin is not None:
        return f"{origin.__name__}[{', '.join('...' if part is ... else annotation(part) for part in inner)}]"
    if kind in (collections.abc.Hashable, Entropy, eps.Plan, eps.Release, Relation) or kind.__module__ == "builtins":
        return str(kind.__name__)
    raise ValueError(f"no spelling for {kind!r}")


def quoted(value: Any) -> str:
    """A default or a name, words in double quotes."""
    return f'"{value}"' if isinstance(value, str) else repr(value)


def stub(
    name: str,
    signature: inspect.Signature,
    shared: Iterable[str],
    rest: str,
    indent: str = "",
    named: collections.abc.Mapping[Any, str] = types.MappingProxyType({}),
) -> str:
    """One function: its own arguments spelled out, the shared ones as keywords of the type `rest`."""
    listed, by_name = [], False
    for parameter in signature.parameters.values():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD or parameter.name in shared:
            continue
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not by_name:
            listed.append("*")
            by_name = True
        text = parameter.name
        if parameter.annotation is not inspect.Parameter.empty:
            text += f": {named.get(parameter.annotation) or annotation(parameter.annotation)}"
        if parameter.default is not inspect.Parameter.empty:
            text += f" = {quoted(parameter.default)}"
        listed.append(text)
    listed.append(f"**options: Unpack[{rest}]")
    if listed[-2] == "*":
        del listed[-2]
    head, tail = f"{indent}def {name}(", f") -> {annotation(signature.return_annotation)}: ...\n"
    for text in (f"{head}{', '.join(listed)}{tail}", f"{head}\n{indent}    {', '.join(listed)}\n{indent}{tail}"):
        if all(len(line) <= _WIDTH for line in text.splitlines()):
            return text
    lines = "".join(f"{indent}    {line},\n" for line in listed)
    return f"{head}\n{lines}{indent}{tail}"


def typed_dict(name: str, base: str, doc: str, arguments: Iterable[Parameter]) -> str:
    """Keywords of a signature, each with its default as a comment."""
    fields = "".join(
        f"    {argument.name}: {annotation(annotation_of(argument))}"
        + ("\n" if argument.required else f"  # {quoted(argument.default)}\n")
        for argument in arguments
    )
    about = f'    """{doc}"""\n\n' if doc else ""
    return f"class {name}({base}, total=False):\n{about}{fields}\n"


def own_arguments(front: str) -> Iterator[Parameter]:
    """What any statistic takes of its own on a front, which `plan` takes by name."""
    found: dict[str, Parameter] = {}
    for argument in (one for entry in CATALOGUE.values() for one in entry.own(front).values()):
        known = found.setdefault(argument.name, argument)
        found[argument.name] = replace(known, annotation=known.annotation | argument.annotation)
    return iter(found.values())


def alias(name: str, names: Iterable[str]) -> str:
    """The names of mechanisms or statistics, for editors to offer; others may be registered since."""
    listed = "\n    | ".join([*(f"Literal[{line}]" for line in fill_lines(names)), "str"])
    return f"{name} = (\n    {listed}\n)\n"


def fill_lines(names: Iterable[str]) -> list[str]:
    """Quoted names with commas, as many to a line as fit."""
    return [line.rstrip(",") for line in textwrap.wrap(", ".join(map(quoted, names)), 100, break_on_hyphens=False)]


def function_stubs() -> str:
    """`arrays/functions.pyi`; it holds what both stubs share."""
    known, elsewhere = options_of(ARRAYS), options_of(BATCHES)
    shared = [option for option in known.values() if option.name in elsewhere]
    own = [option for option in known.values() if option.name not in elsewhere]
    planned = (PLAN_ERROR, PLAN_PEOPLE, *own_arguments(ARRAYS))
    names, _ = typing.get_args(_MECHANISM)
    exported = "\n__all__ += ".join(f"[{line}]" for line in fill_lines(functions.__all__))
    return "".join(
        (
            _HEAD.format(about="The functions on arrays."),
            "from collections.abc import Hashable, Sequence\nfrom typing import Any, Literal, TypedDict, Unpack\n\n",
            "from epsilons.accuracy.relation import Relation\n",
            "from epsilons.noise.entropy import Entropy\nfrom epsilons.planner.plan import Plan\n",
            "from epsilons.release import Release\nfrom epsilons.statistics.entry import Bounds\n\n",
            alias("Mechanism", typing.get_args(names)) + alias("Statistic", CATALOGUE),
            f"Step = {annotation(_STEP)}\n\n",
            typed_dict("SharedOptions", "TypedDict", "Options of every question, with their defaults.", shared),
            typed_dict("Options", "SharedOptions", "Options of questions on arrays.", own),
            typed_dict("PlanOptions", "Options", "Plans take what their statistic takes.", planned),
            f"__all__ = {exported}\n\n",
            *(_function(name, known) for name in CATALOGUE),
            stub("plan", inspect.signature(functions.plan), {*known, "error", "people"}, "PlanOptions"),
            stub("relation", inspect.signature(functions.mean).replace(return_annotation=Relation), known, "Options"),
        )
    )


def method_stubs() -> str:
    """`dataset/methods.pyi`."""
    known, batched = options_of(TABLES), options_of(BATCHES)
    common = [option for option in batched.values() if option.name not in options_of(ARRAYS)]
    own = [option for option in known.values() if option.name not in batched]
    return "".join(
        (
            _HEAD.format(about="The statistics as methods."),
            "from collections.abc import Hashable, Mapping, Sequence\nfrom typing import Any, Literal, Unpack\n\n",
            "from epsilons.arrays.functions import SharedOptions, Statistic, Step\n",
            "from epsilons.dataset.batch import Pending\nfrom epsilons.planner.plan import Plan\n",
            "from epsilons.release import Release\nfrom epsilons.statistics.entry import Bounds\n\n",
            f"ColumnBounds = {annotation(_BY_COLUMN)}\n\n",
            typed_dict("TableOptions", "SharedOptions", "", common),
            typed_dict("Options", "TableOptions", "", own),
            typed_dict("BatchOptions", "TableOptions", "", [NAME]),
            typed_dict("PlanOptions", "Options", "", (PLAN_PAST, *own_arguments(TABLES))),
            "class Questions:\n",
            *(_method(Questions, name, known, "Options") for name in CATALOGUE),
            _method(Questions, "plan", {*known, PLAN_PAST.name}, "PlanOptions"),
            "\nclass BatchQuestions:\n",
            *(_method(BatchQuestions, name, {*batched, NAME.name}, "BatchOptions") for name in CATALOGUE),
        )
    )


def _function(name: str, shared: Iterable[str]) -> str:
    return stub(name, inspect.signature(getattr(functions, name)), shared, "Options", named=_REPEATED)


def _method(kind: type, name: str, shared: Iterable[str], rest: str) -> str:
    return stub(name, inspect.signature(getattr(kind, name)), shared, rest, "    ", _REPEATED)


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
