"""How a front looks: functions and methods made from the catalogue, each with a real signature and help.

`eps.median(values, epsilons, bounds=(0, 100))`, `people.median("wage", ...)` and `ask.median("wage", ...)` are made
from one entry; `arguments.reading` reads their calls.
"""

import inspect
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Literal

from epsilons.arguments.checks import check_error
from epsilons.arguments.options import ARRAYS, QUERIES, TABLES, Parameter, options_of
from epsilons.arguments.reading import EPSILONS, list_arguments, reads_call
from epsilons.mechanisms.base import list_mechanisms
from epsilons.noise.entropy import Entropy
from epsilons.statistics.catalogue import CATALOGUE
from epsilons.statistics.entry import Entry

_BY_PLACE, _BY_NAME = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
#: What plans on arrays take besides.
PLAN_ERROR = Parameter("error", float | None, None, "Instead of a share: the smallest that reaches it.", check_error)
PLAN_PEOPLE = Parameter("people", int | None, None, "How many people there are, if one epsilon serves for all.")
#: What plans of tables take besides.
PLAN_PAST = Parameter("past", bool, True, "Guess by past answers; False: as the question goes when it is asked alone.")


def make_signature(
    arguments: Sequence[Parameter], returns: Any, *, bound: bool = False, rest: str = ""
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


def annotation_of(argument: Parameter) -> Any:
    """An argument's type; the names of mechanisms and the class of entropy belong to rooms above the arguments."""
    if argument.name == "mechanism":
        names = ("auto", *list_mechanisms(), *list_mechanisms("individual"))
        return Literal[names] | str
    return Entropy | None if argument.name == "entropy" else argument.annotation


def name_statistic(entry: Entry, front: str, function: Callable[..., Any], owner: str, returns: Any) -> None:
    """Give a made function the name, the signature and the docstring of its statistic."""
    arguments = list_arguments(entry, front).all
    text = entry.doc if front == ARRAYS else entry.table_doc
    listed = "\n".join(f"{argument.name}: {argument.help}" for argument in arguments.values() if argument.help)
    function.__name__ = entry.name
    function.__qualname__ = f"{owner}.{entry.name}" if owner else entry.name
    function.__doc__ = "\n\n".join(part for part in (text, listed, entry.examples if front == ARRAYS else "") if part)
    function.__signature__ = make_signature(list(arguments.values()), returns, bound=bool(owner))  # type: ignore[attr-defined]


def make_method(entry: Entry, front: str, owner: str, returns: Any) -> Callable[..., Any]:
    """The method of a class whose `_ask` takes calls, for a statistic of the catalogue."""
    method = reads_call(entry, front)
    name_statistic(entry, front, method, owner, returns)
    return method


def plan_signature(front: str, returns: Any) -> inspect.Signature:
    """Of `plan`: the options of every statistic; the statistic's own arguments go by name."""
    names = tuple(CATALOGUE)
    first = Parameter("statistic", Literal[names] | str, None, "What would be asked.", positional=True, required=True)
    if front == ARRAYS:
        listed = [first, EPSILONS, *options_of(ARRAYS).values(), PLAN_ERROR, PLAN_PEOPLE]
        return make_signature(listed, returns, rest="arguments")
    column = Parameter("column", str | None, None, "The column, or the target of a model.", positional=True)
    listed = [first, column, *options_of(TABLES).values(), PLAN_PAST]
    return make_signature(listed, returns, bound=True, rest="arguments")


def query_signature(returns: Any, share: bool = False) -> inspect.Signature:
    """Of `sql`: the query, public facts about its columns, and the options of every statistic it maps to."""
    pairs = Mapping[str, tuple[float, float]] | None
    listed = [
        Parameter("query", str, None, "One SELECT.", positional=True, required=True),
        *([Parameter("share", float | None, None, "For all aggregates together.")] if share else []),
        Parameter("bounds", pairs, None, "Public bounds of the columns."),
        Parameter("keys", Mapping[str, Sequence[Hashable]] | None, None, "The groups of the columns of GROUP BY."),
        *options_of(QUERIES).values(),
    ]
    return make_signature(listed, returns, bound=True)
