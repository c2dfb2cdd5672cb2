"""How a call of any front is read: what was given against what a statistic takes, and `AskOptions`, which comes out.

`eps.median(values, epsilons, bounds=(0, 100))`, `people.median("wage", ...)` and `ask.median("wage", ...)` are read by
one rule, so that a wrong value gets the same words everywhere, before anybody is charged.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache, cached_property
from typing import Any, Protocol

from epsilons.arguments.checks import check_share
from epsilons.arguments.options import ARRAYS, BATCHES, DEFAULT_SHARE, TABLES, WHOLE_SHARE, Parameter, options_of
from epsilons.errors import PlanError

#: What a front is called in errors.
_CALLED = {ARRAYS: "eps", TABLES: "people", BATCHES: "ask"}
VALUES = Parameter("values", Any, None, "One value per person.", positional=True, required=True)
EPSILONS = Parameter("epsilons", Any, None, "One epsilon per person, one for all, or eps.Preferences.", positional=True)
_X = Parameter("X", Any, None, "One row per person, one column per feature.", positional=True, required=True)
_Y = Parameter("y", Any, None, "One target per person.", positional=True, required=True)
NAME = Parameter("name", str | None, None, "What the answer is called.")
#: In an error: whose option it is.
_WHOSE = {ARRAYS: "functions on arrays", TABLES: "questions to a table"}


class Described(Protocol):
    """A statistic as far as reading a call needs it: `statistics.entry.Entry` is one."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def model(self) -> bool:
        """Whether it is a model of a target by features."""

    @property
    def column(self) -> str:
        """Whether a column is "required" or "optional"."""

    def own(self, front: str) -> dict[str, Parameter]:
        """Its own arguments on a front, by name."""

    def __hash__(self) -> int:
        """What it takes is remembered by front."""


@dataclass(frozen=True, eq=False)
class AskOptions:
    """How a question is to be answered: what may be spent, by which mechanism, under which assumptions, of which rows.

    `threshold`, `rescale`, `scale`, `gamma` and `inside` are None where the mechanism's own default is meant, so that a
    question keeps its digest; the default threshold is "best" everywhere.
    """

    mechanism: str = "auto"
    threshold: float | str | None = None
    rescale: bool | None = None
    neighbors: str = "absent"
    assume: str = "unrelated"
    spread: float | None = None
    density: float | None = None
    location: float | None = None
    privacy: str = "personalized"
    group_epsilons: Any = None
    scale: str | None = None
    gamma: int | None = None
    inside: str | None = None
    #: None where an error decides.
    share: Fraction | None = Fraction(1)
    error: float | None = None
    where: Any = None
    by: Any = None
    missing: str | None = None
    fresh: bool = False
    #: Who asks: for quotas, which are for fairness only. The answer is the same whoever asks.
    analyst: str | None = None
    entropy: Any = None
    #: Of several questions that share a budget: at most so much of what is left. It makes no other question.
    part: Fraction = field(default=Fraction(1), kw_only=True)
    #: For splitting a batch only: planned as if nothing had been spent, so that it is split alike whenever it is asked.
    unspent: bool = field(default=False, kw_only=True)

    @classmethod
    def of(cls, given: Mapping[str, Any], front: str) -> AskOptions:
        """Check what a caller gave; options that were not given keep their defaults."""
        known = options_of(front)
        if given.get("share") is not None and given.get("error") is not None:
            raise both_given()
        checked = {}
        for name, value in given.items():
            if name != "share":
                checked[name] = _check(known[name], value)
        share = given.get("share")
        if share is None and front != ARRAYS:
            share = DEFAULT_SHARE
        elif "share" not in given:
            share = WHOLE_SHARE
        if checked.get("threshold") == "best":  # the default, spelled out: the same question
            checked["threshold"] = None
        made = cls(**checked, share=None if checked.get("error") is not None else check_share(share))
        if made.privacy == "group" and front != ARRAYS:
            raise PlanError(
                "Groups have no budgets.",
                rule="A ledger holds one grant for each person.",
                suggest='eps.median(values, privacy="group", group_epsilons=[...]) on arrays',
            )
        return made

    @cached_property
    def settings(self) -> dict[str, Any]:
        """What goes to the mechanisms that take it."""
        return {name: getattr(self, name) for name in ("threshold", "rescale", "scale", "gamma", "inside")}

    def at(self, share: Fraction, part: Fraction = Fraction(1), *, unspent: bool = False) -> AskOptions:
        """The same at a share, and at most a part of what is left."""
        return replace(self, share=share, part=part, unspent=unspent)

    def identity(self) -> dict[str, Any]:
        """What of it makes another question, except the rows."""
        given = {name: value for name, value in self.settings.items() if value is not None}
        return {
            "share": None if self.share is None else str(self.share),
            "error": self.error,
            "mechanism": self.mechanism,
            "settings": {name: _plain(value) for name, value in given.items()},
            "assume": self.assume,
            "guesses": [self.spread, self.density, self.location],
            "privacy": self.privacy,
            "seeded": self.entropy is not None,
        }


def _plain(value: bool | float | str) -> bool | float | str:
    """A setting in one spelling: 1 and 1.0 are the same gamma."""
    return value if isinstance(value, (bool, str)) else float(value)


@dataclass(frozen=True, eq=False)
class Call:
    """A call that fits its front: the data or the column, the statistic's own arguments, and the options."""

    entry: Any
    data: Mapping[str, Any]
    own: Mapping[str, Any]
    options: AskOptions
    #: The names of those that the caller gave.
    given: frozenset[str] = frozenset()
    #: The column that a table is asked about; for a model its target.
    column: Any = None


def _check(argument: Parameter, value: Any) -> Any:
    """The value in one spelling; nothing is asked about None where that is the default."""
    if argument.check is None or (value is None and argument.default is None):
        return value
    return argument.check(value)


def _leading(entry: Described, front: str) -> tuple[Parameter, ...]:
    """What stands before a statistic's own arguments: the data on arrays, the column on tables."""
    if front == BATCHES:
        return (*_leading(entry, TABLES), NAME)
    if front == ARRAYS:
        # Whatever is required by place cannot follow what is not.
        required = any(argument.required for argument in entry.own(front).values())
        epsilons = Parameter("epsilons", Any, None, EPSILONS.help, positional=True, required=required)
        return (_X, _Y, epsilons) if entry.model else (VALUES, epsilons)
    if entry.model:
        return (Parameter("target", str, None, "The column to be predicted.", positional=True, required=True),)
    if entry.column == "optional":
        return (Parameter("column", str | None, None, "The column, if any.", positional=True),)
    return (Parameter("column", str, None, "The column.", positional=True, required=True),)


@dataclass(frozen=True, eq=False)
class Shape:
    """Everything that a front takes for a statistic, by name: about the data or the column, its own, the options."""

    leading: Mapping[str, Parameter]
    own: Mapping[str, Parameter]
    options: Mapping[str, Parameter]
    #: All of them in the order of the signature, and the names of those that go by place.
    all: Mapping[str, Parameter]
    places: tuple[str, ...]
    required: tuple[str, ...]
    #: A call that works.
    usage: str


@cache
def shape_of(entry: Described, front: str) -> Shape:
    """What a call of a front has to fit; looked up by every call."""
    leading = {argument.name: argument for argument in _leading(entry, front)}
    own, options = entry.own(front), options_of(front)
    ordered = sorted({**leading, **own, **options}.values(), key=lambda argument: not argument.positional)
    places = tuple(argument.name for argument in ordered if argument.positional)
    required = tuple(argument.name for argument in ordered if argument.required)
    named = {argument.name: argument for argument in ordered}
    return Shape(leading, own, options, named, places, required, usage(entry, front))


def read_call(entry: Described, front: str, given: Sequence[Any], named: Mapping[str, Any]) -> Call:
    """Check a call against the signature of its front, and its options by themselves."""
    shape = shape_of(entry, front)
    for name in named:
        if name not in shape.all:
            shown = (known for known in shape.all if known not in shape.leading or known == NAME.name)
            raise unknown_argument(entry.name, name, shown, front)
    called = f"{_CALLED[front]}.{entry.name}"
    values = take_places(called, shape.places, shape.required, given, named, shape.usage)
    return fill_call(entry, front, values)


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
            suggest=hint,
        )
    values = dict(zip(places, given, strict=False))
    for name in values:
        if name in named:
            raise PlanError(f"{called} got {name!r} twice.", suggest=hint)
    values |= named
    for name in required:
        if name not in values:
            raise PlanError(f"{called} needs {name!r}.", suggest=hint)
    return values


def reads_call(entry: Described, front: str) -> Callable[..., Any]:
    """A method that reads how it was called, and hands that to its object's `_ask`."""

    def question(self: Any, *given: Any, **named: Any) -> Any:
        return self._ask(read_call(entry, front, given, named))

    return question


def fill_call(entry: Described, front: str, values: Mapping[str, Any]) -> Call:
    """Sort arguments by what they are about, defaults filled in."""
    shape = shape_of(entry, front)
    data, own, options = {}, {}, {}
    for name, argument in shape.leading.items():
        data[name] = values.get(name, argument.default)
    for name, argument in shape.own.items():
        value = values.get(name, argument.default)
        own[name] = _check(argument, value)
    for name, value in values.items():
        if name in shape.options:
            options[name] = value
    column = data.get("target" if entry.model else "column")
    return Call(entry, data, own, AskOptions.of(options, front), frozenset(values), column)


def usage(entry: Described, front: str) -> str:
    """A call that works."""
    shown = {"q": "0.9", "k": "2", "features": '["age"]', "target": '"wage"', "column": '"wage"'}
    parts = [shown.get(argument.name, argument.name) for argument in _leading(entry, front) if argument.positional]
    own = entry.own(front)
    parts += [shown[name] for name, argument in own.items() if argument.positional]
    parts += ["bounds=(0, 100)"] if own.get("bounds") is not None and not entry.model else []
    return f"{_CALLED[front]}.{entry.name}({', '.join(parts)})"


def read_plan(entry: Described, front: str, named: Mapping[str, Any], column: Any = None) -> Call:
    """The statistic's own arguments and options, by name; what it is about is apart."""
    takes = {**entry.own(front), **options_of(front)}
    for name in named:
        if name not in takes:
            raise unknown_argument(entry.name, name, takes, front)
    about = {} if front == ARRAYS else {"target" if entry.model else "column": column}
    return fill_call(entry, front, {**about, **named})


def both_given() -> PlanError:
    """A share and an error, of which either fixes the other."""
    return PlanError(
        "Both a share and an error were given.",
        rule="Either fixes the other.",
        suggest="share=0.1, or error=0.5 for the smallest share that reaches it",
    )


def unknown_argument(what: str, given: str, known: Iterable[str], front: str) -> PlanError:
    """Nobody takes it, or another front does."""
    names = list(known)
    near = difflib.get_close_matches(given, names, n=3)
    whose = next((words for name, words in _WHOSE.items() if name != front and given in options_of(name)), None)
    return PlanError(
        f"A {what} takes no {given!r}.",
        rule="" if whose is None or near else f"It is an option of {whose}.",
        suggest=" or ".join(near) if near else ", ".join(names),
    )
