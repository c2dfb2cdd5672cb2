"""How a call of a front is read: signatures made from the catalogue, and arguments checked against them.

`eps.median(values, epsilons, bounds=(0, 100))`, `people.median("wage", ...)` and `ask.median("wage", ...)` are made
from one entry. Each has a real signature; a call that does not fit it is a PlanError that names the function.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from epsilons.arguments import (
    ARRAYS,
    BATCHES,
    QUERIES,
    TABLES,
    Argument,
    AskOptions,
    check_error,
    options_of,
    unknown_argument,
)
from epsilons.errors import PlanError
from epsilons.mechanisms.base import registered
from epsilons.noise.entropy import Entropy
from epsilons.statistics.catalogue import CATALOGUE, Entry

_BY_PLACE, _BY_NAME = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
#: What a front is called in errors.
_CALLED = {ARRAYS: "eps", TABLES: "people", BATCHES: "ask"}
VALUES = Argument("values", Any, None, "One value per person.", positional=True, required=True)
EPSILONS = Argument("epsilons", Any, None, "One epsilon per person, one for all, or eps.Preferences.", positional=True)
_X = Argument("X", Any, None, "One row per person, one column per feature.", positional=True, required=True)
_Y = Argument("y", Any, None, "One target per person.", positional=True, required=True)
_NAME = Argument("name", str | None, None, "What the answer is called.")
#: What plans on arrays take besides.
PLAN_ERROR = Argument("error", float | None, None, "Instead of a share: the smallest that reaches it.", check_error)
PLAN_PEOPLE = Argument("people", int | None, None, "How many people there are, if one epsilon serves for all.")


@dataclass(frozen=True, eq=False)
class Call:
    """A call that fits its front: the data or the column, the statistic's own arguments, and the options."""

    entry: Entry
    data: Mapping[str, Any]
    own: Mapping[str, Any]
    options: AskOptions
    #: The names of those that the caller gave.
    given: frozenset[str] = frozenset()

    @property
    def column(self) -> Any:
        """The column that a table is asked about; for a model its target."""
        return self.data["target" if self.entry.model else "column"]


def _leading(entry: Entry, front: str) -> tuple[Argument, ...]:
    """What stands before a statistic's own arguments: the data on arrays, the column on tables."""
    if front == BATCHES:
        return (*_leading(entry, TABLES), _NAME)
    if front == ARRAYS:
        # Whatever is required by place cannot follow what is not.
        required = any(argument.required for argument in entry.own(front).values())
        epsilons = Argument("epsilons", Any, None, EPSILONS.help, positional=True, required=required)
        return (_X, _Y, epsilons) if entry.model else (VALUES, epsilons)
    if entry.model:
        return (Argument("target", str, None, "The column to be predicted.", positional=True, required=True),)
    if entry.column == "optional":
        return (Argument("column", str | None, None, "The column, if any.", positional=True),)
    return (Argument("column", str, None, "The column.", positional=True, required=True),)


@dataclass(frozen=True, eq=False)
class Shape:
    """Everything that a front takes for a statistic, by name: about the data or the column, its own, the options."""

    leading: Mapping[str, Argument]
    own: Mapping[str, Argument]
    options: Mapping[str, Argument]
    #: All of them in the order of the signature, and the names of those that go by place.
    all: Mapping[str, Argument]
    places: tuple[str, ...]
    required: tuple[str, ...]


@cache
def shape_of(entry: Entry, front: str) -> Shape:
    """What a call of a front has to fit; looked up by every call."""
    leading = {argument.name: argument for argument in _leading(entry, front)}
    own, options = entry.own(front), options_of(front)
    ordered = sorted({**leading, **own, **options}.values(), key=lambda argument: not argument.positional)
    places = tuple(argument.name for argument in ordered if argument.positional)
    required = tuple(argument.name for argument in ordered if argument.required)
    return Shape(leading, own, options, {argument.name: argument for argument in ordered}, places, required)


def make_signature(
    arguments: Sequence[Argument], returns: Any, *, bound: bool = False, rest: str = ""
) -> inspect.Signature:
    """A signature that shows every argument with its type and default; `rest` names further keywords."""
    parameters = [inspect.Parameter("self", _BY_PLACE)] if bound else []
    for argument in arguments:
        default = inspect.Parameter.empty if argument.required else argument.default
        kind = _BY_PLACE if argument.positional else _BY_NAME
        parameters.append(inspect.Parameter(argument.name, kind, default=default, annotation=annotation_of(argument)))
    if rest:
        parameters.append(inspect.Parameter(rest, inspect.Parameter.VAR_KEYWORD, annotation=Any))
    return inspect.Signature(parameters, return_annotation=returns)


def annotation_of(argument: Argument) -> Any:
    """An argument's type; the names of mechanisms and the class of entropy belong to rooms above the arguments."""
    if argument.name == "mechanism":
        names = ("auto", *registered(), *registered("individual"))
        return Literal[names] | str
    return Entropy | None if argument.name == "entropy" else argument.annotation


def name_statistic(entry: Entry, front: str, function: Callable[..., Any], owner: str, returns: Any) -> None:
    """Give a made function the name, the signature and the docstring of its statistic."""
    arguments = shape_of(entry, front).all
    text = entry.doc if front == ARRAYS else entry.table_doc
    listed = "\n".join(f"{argument.name}: {argument.help}" for argument in arguments.values() if argument.help)
    function.__name__ = entry.name
    function.__qualname__ = f"{owner}.{entry.name}" if owner else entry.name
    function.__doc__ = "\n\n".join(part for part in (text, listed, entry.examples if front == ARRAYS else "") if part)
    function.__signature__ = make_signature(list(arguments.values()), returns, bound=bool(owner))  # type: ignore[attr-defined]


def read_call(entry: Entry, front: str, given: Sequence[Any], named: Mapping[str, Any]) -> Call:
    """Check a call against the signature of its front, and its options by themselves."""
    shape = shape_of(entry, front)
    for name in named:
        if name not in shape.all:
            shown = (known for known in shape.all if known not in shape.leading or known == _NAME.name)
            raise unknown_argument(entry.name, name, shown, front)
    called = f"{_CALLED[front]}.{entry.name}"
    return fill_call(entry, front, take_places(called, shape.places, shape.required, given, named, usage(entry, front)))


def take_places(
    called: str,
    places: Sequence[str],
    required: Sequence[str],
    given: Sequence[Any],
    named: Mapping[str, Any],
    hint: str,
) -> dict[str, Any]:
    """All arguments by name: too many by place, one given twice and one that is missing are mistakes in the call."""
    if len(given) > len(places):
        raise PlanError(
            f"{called} takes at most {len(places)} arguments by place.",
            rule=f"They are {', '.join(places)}; the others go by name.",
            hint=hint,
        )
    values = dict(zip(places, given, strict=False))
    for name in values:
        if name in named:
            raise PlanError(f"{called} got {name!r} twice.", hint=hint)
    values |= named
    for name in required:
        if name not in values:
            raise PlanError(f"{called} needs {name!r}.", hint=hint)
    return values


def fill_call(entry: Entry, front: str, values: Mapping[str, Any]) -> Call:
    """Sort arguments by what they are about, defaults filled in."""
    shape = shape_of(entry, front)
    data, own, options = {}, {}, {}
    for name, argument in shape.leading.items():
        data[name] = values.get(name, argument.default)
    for name, argument in shape.own.items():
        value = values.get(name, argument.default)
        own[name] = value if argument.check is None else argument.checked(value)
    for name, value in values.items():
        if name in shape.options:
            options[name] = value
    return Call(entry, data, own, AskOptions.of(options, front), frozenset(values))


def usage(entry: Entry, front: str) -> str:
    """A call that works."""
    shown = {"q": "0.9", "k": "2", "features": '["age"]', "target": '"wage"', "column": '"wage"'}
    parts = [shown.get(argument.name, argument.name) for argument in _leading(entry, front) if argument.positional]
    own = entry.own(front)
    parts += [shown[name] for name, argument in own.items() if argument.positional]
    parts += ["bounds=(0, 100)"] if own.get("bounds") is not None and not entry.model else []
    return f"{_CALLED[front]}.{entry.name}({', '.join(parts)})"


# Plans --------------------------------------------------------------------------------------------------------------


def plan_signature(front: str, returns: Any) -> inspect.Signature:
    """Of `plan`: the options of every statistic; the statistic's own arguments go by name."""
    names = tuple(CATALOGUE)
    first = Argument("statistic", Literal[names] | str, None, "What would be asked.", positional=True, required=True)
    if front == ARRAYS:
        listed = [first, EPSILONS, *options_of(ARRAYS).values(), PLAN_ERROR, PLAN_PEOPLE]
        return make_signature(listed, returns, rest="arguments")
    column = Argument("column", str | None, None, "The column, or the target of a model.", positional=True)
    return make_signature([first, column, *options_of(TABLES).values()], returns, bound=True, rest="arguments")


def read_plan(entry: Entry, front: str, named: Mapping[str, Any], column: Any = None) -> Call:
    """The statistic's own arguments and options, by name; what it is about is apart."""
    takes = {**entry.own(front), **options_of(front)}
    for name in named:
        if name not in takes:
            raise unknown_argument(entry.name, name, takes, front)
    about = {} if front == ARRAYS else {"target" if entry.model else "column": column}
    return fill_call(entry, front, {**about, **named})


def query_signature(returns: Any, share: float | None = None) -> inspect.Signature:
    """Of `sql`: the query, public facts about its columns, and the options of every statistic it maps to."""
    pairs = Mapping[str, tuple[float, float]] | None
    listed = [
        Argument("query", str, None, "One SELECT.", positional=True, required=True),
        *([] if share is None else [Argument("share", float, share, "For all aggregates together.")]),
        Argument("bounds", pairs, None, "Public bounds of the columns."),
        Argument("keys", Mapping[str, Sequence[Hashable]] | None, None, "The groups of the columns of GROUP BY."),
        *options_of(QUERIES).values(),
    ]
    return make_signature(listed, returns, bound=True)
