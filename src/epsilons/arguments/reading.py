"""How a call of any front is read: what was given against what a statistic takes, and `AskOptions`, which comes out.

`eps.median(values, epsilons, bounds=(0, 100))`, `people.median("wage", ...)` and `ask.median("wage", ...)` are read by
one rule, so that a wrong value gets the same text everywhere, before anybody is charged.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import cache, cached_property, wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from epsilons.arguments.checks import NUMBERS, RELATED, Bought, check_share
from epsilons.arguments.options import (
    ARRAYS,
    BATCHES,
    DEFAULT_ASSUME,
    TABLES,
    WHOLE_SHARE,
    Parameter,
    options_of,
)
from epsilons.errors import Argument, PlanError, Text

if TYPE_CHECKING:
    from epsilons.statistics.entry import Entry

EPSILONS = Parameter("epsilons", Any, None, "One epsilon per person, one for all, or eps.Preferences.", positional=True)
NAME = Parameter("name", str | None, None, "What the answer is called.")
_P = ParamSpec("_P")
_R = TypeVar("_R")
#: Values that work, for arguments that were forgotten.
_EXAMPLES = {"q": 0.9, "features": ["age"], "target": "wage", "column": "wage", "statistic": "mean"}
#: In an error: whose option it is.
_WHOSE = {ARRAYS: "functions on arrays", TABLES: "questions to a table"}

# What a release says of missing values.
LEFT_OUT = "Missing values are left out; how many there are is private, and paid for where an answer divides by it."
AT_CENTRE = "Missing values stand at the centre of the bounds."
COMPLETE = "Nothing is missing in this column, by the steward's word; a value that is missing stands at the centre."
BY_WORD = "Nothing is missing, by the caller's word; a value that is missing stands at the centre."
BY_TYPE = "Nothing is missing: whole numbers and truths of numpy are all there."
NOT_COUNTED = "Missing values are not counted."
INCOMPLETE = "People of whom a feature or the target is missing add nothing."


def tell_centred(caveats: Iterable[str]) -> str:
    """As what missing values count in an answer, as a clause that follows the question; empty where they do not."""
    return ", missing values at the centre" if any(one.startswith(AT_CENTRE) for one in caveats) else ""


@dataclass(frozen=True)
class Settings:
    """What a caller may set on mechanisms; None leaves a mechanism's own default."""

    threshold: float | str | None = None
    rescale: bool | None = None
    scale: str | None = None
    gamma: int | None = None
    inside: str | None = None


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
    assume: float = DEFAULT_ASSUME
    #: Instead: what a relation found, in the units of its column.
    bought: Bought | None = None
    spread: float | None = None
    density: float | None = None
    location: float | None = None
    #: Part of a quantile's own identity, since it makes no other question of anything else.
    for_interval: Fraction = Fraction(2, 5)
    privacy: str = "personalized"
    group_epsilons: Any = None
    scale: str | None = None
    gamma: int | None = None
    inside: str | None = None
    #: None where an error decides, and of a table where what was registered does.
    share: Fraction | None = Fraction(1)
    error: float | None = None
    where: Any = None
    by: Any = None
    missing: str | None = None
    complete: bool = False
    fresh: bool = False
    #: Who asks: for quotas, which are for fairness only. They change no answer.
    analyst: str | None = None
    entropy: Any = None
    #: Of an account that counts rho: on arrays the caller's, on tables that of the ledger.
    delta: Fraction | None = None
    #: Of several questions that share a budget: at most so much of what is left. It makes no other question.
    part: Fraction = field(default=Fraction(1), kw_only=True)
    #: For splitting a batch only: planned as if nothing had been spent, so that it is split alike whenever it is asked.
    unspent: bool = field(default=False, kw_only=True)
    #: What a fresh question is known again by, if its request is repeated; empty: never.
    once: str = field(default="", kw_only=True)

    @classmethod
    def of(cls, given: Mapping[str, Any], front: str) -> AskOptions:
        """Check what a caller gave; options that were not given keep their defaults."""
        known = options_of(front)
        if given.get("share") is not None and given.get("error") is not None:
            raise both_given()
        checked = {name: _read_value(known[name], value) for name, value in given.items() if name != "share"}
        # Of a table the share that is not given follows from what was registered.
        share = given.get("share", WHOLE_SHARE if front == ARRAYS else None)
        if isinstance(checked.get("assume"), Bought):
            checked["bought"] = checked.pop("assume")
        if checked.get("threshold") == "best":  # the default, spelled out: the same question
            checked["threshold"] = None
        unsaid = checked.get("error") is not None or (share is None and front != ARRAYS)
        made = cls(**checked, share=None if unsaid else check_share(share))
        if made.delta is not None and made.privacy != "personalized":
            rule = "Individual and group privacy are told in epsilons as they are."
            raise PlanError(("There is no ", Argument("delta"), " here."), rule=rule, suggest=("leave it out",))
        return made

    @cached_property
    def settings(self) -> Settings:
        """What goes to the mechanisms that take it."""
        return Settings(*(getattr(self, one.name) for one in fields(Settings)))

    def treat_missing(self, entry: Entry, fixed: bool, declared: str) -> tuple[bool, str]:
        """(whether no value is left out, what a release says of missing values): one rule for arrays and tables.

        A number of values is public only if everybody on the roster has exactly one: no condition, no groups, one row
        per person (`fixed`), and nothing that can be missing. Nothing is missing by the caller's word
        (`complete=True`), or as `declared` says: by the steward's (the columns that a table declares), or by type
        (whole numbers and truths of numpy, as values of an array; a table's columns are not complete by type: people
        on the roster may have no row). With `missing="center"` whatever is missing stands at the public centre;
        `missing="exclude"`, spelled out, relies on nobody's word. Otherwise missing values are left out, and the
        statistic is one that pays for its denominator. Counts and histograms do not count what is missing, models do
        not use people of whom something is missing: there is no denominator to pay for.
        """
        unpaid = INCOMPLETE if entry.model else NOT_COUNTED if entry.missing == "not counted" else ""
        without: Text = ("leave ", Argument("missing" if self.missing else "complete"), " out")
        if self.complete and self.missing is not None:
            both = ("Both ", Argument("missing"), " and ", Argument("complete"), " were given.")
            raise PlanError(both, rule="Where nothing is missing, there is nothing to treat.", suggest=without)
        if self.missing == "center" and unpaid:
            raise PlanError(f"A {entry.name} has no centre.", rule=unpaid, suggest=without)
        if (self.complete or self.missing == "center") and not fixed:
            given = Argument("complete", True) if self.complete else Argument("missing", "center")
            rule = "With a condition, groups or several rows per person it is private."
            hint = without if self.complete else Argument("missing", "exclude")
            raise PlanError((given, " needs a public number of values."), rule=rule, suggest=hint)
        why = {"center": AT_CENTRE, "exclude": ""}.get(self.missing or "", BY_WORD if self.complete else declared)
        if entry.missing == "left out or centred" and why in (BY_WORD, COMPLETE):
            why = why.replace("stands at the centre", "is left out, or stands at the centre, as the mechanism has it")
        complete = fixed and why != ""
        return complete, why if complete else unpaid or LEFT_OUT

    def identity(self) -> dict[str, Any]:
        """What of it makes another question, except the rows."""
        settings = {name: value for name, value in vars(self.settings).items() if value is not None}
        related = self.assume if self.bought is None else {"distance": self.bought.distance}
        return {
            "share": None if self.share is None else str(self.share),
            "error": self.error,
            "mechanism": self.mechanism,
            # In one spelling: 1 and 1.0 are the same gamma.
            "settings": {name: v if isinstance(v, (bool, str)) else float(v) for name, v in settings.items()},
            "assume": next((name for name, g in RELATED.items() if g == related), related),
            "guesses": [self.spread, self.density, self.location],
            "privacy": self.privacy,
            **({"groups": [float(one) for one in self.group_epsilons]} if self.group_epsilons is not None else {}),
            "seeded": self.entropy is not None,
        }


def _read_value(argument: Parameter, value: Any) -> Any:
    return value if argument.check is None or (value is None and argument.default is None) else argument.check(value)


@dataclass(frozen=True, eq=False)
class Call:
    """A call that fits its front: the data or the column, the statistic's own arguments, and the options."""

    entry: Entry
    data: Mapping[str, Any]
    own: Mapping[str, Any]
    options: AskOptions
    #: What the caller gave, by name and as it was given.
    given: Mapping[str, Any] = field(default_factory=dict)
    #: The column that a table is asked about; for a model its target.
    column: Any = None


@dataclass(frozen=True, eq=False)
class ArgumentList:
    """Everything that a front takes for a statistic, by name: about the data or the column, its own, the options."""

    leading: Mapping[str, Parameter]
    own: Mapping[str, Parameter]
    options: Mapping[str, Parameter]
    #: All of them in the order of the signature, and the names of those that go by place.
    all: Mapping[str, Parameter]
    places: tuple[str, ...]
    required: tuple[str, ...]


@cache
def list_arguments(entry: Entry, front: str) -> ArgumentList:
    """What a call of a front has to fit; looked up by every call."""
    leading = {argument.name: argument for argument in _list_leading(entry, front)}
    own, options = entry.own(front), options_of(front)
    ordered = sorted({**leading, **own, **options}.values(), key=lambda argument: not argument.positional)
    places = tuple(argument.name for argument in ordered if argument.positional)
    required = tuple(argument.name for argument in ordered if argument.required)
    return ArgumentList(leading, own, options, {argument.name: argument for argument in ordered}, places, required)


def _list_leading(entry: Entry, front: str) -> tuple[Parameter, ...]:
    """What stands before a statistic's own arguments: the data on arrays, the column on tables."""

    def by_place(name: str, about: str, kind: Any = Any, required: bool = True) -> Parameter:
        return Parameter(name, kind, None, about, positional=True, required=required)

    if front == BATCHES:
        return (*_list_leading(entry, TABLES), NAME)
    if front == ARRAYS:
        # Whatever is required by place cannot follow what is not.
        epsilons = replace(EPSILONS, required=any(argument.required for argument in entry.own(front).values()))
        if not entry.model:
            return by_place("values", "One value per person."), epsilons
        rows = by_place("X", "One row per person, one column per feature.")
        return rows, by_place("y", "One target per person."), epsilons
    if entry.model:
        about = "One column." if "other" in entry.own(front) else "The column to be predicted."
        return (by_place("target", about, str),)
    if entry.column == "optional":
        return (by_place("column", "The column, if any.", str | None, False),)
    return (by_place("column", "The column.", str),)


def read_call(entry: Entry, front: str, given: Sequence[Any], named: Mapping[str, Any]) -> Call:
    """Check a call against the signature of its front, and its options by themselves."""
    takes = list_arguments(entry, front)
    shown = [name for name in takes.all if name not in takes.leading or name == NAME.name]
    check_known(entry.name, named, takes.all, front, shown)
    return fill_call(entry, front, take_places(f"A {entry.name}", takes.places, takes.required, given, named))


def take_places(
    what: str,
    places: Sequence[str],
    required: Sequence[str],
    given: Sequence[Any],
    named: Mapping[str, Any],
    hint: Text = "",
) -> dict[str, Any]:
    """All arguments by name: too many by place, one given twice and one that is missing are mistakes in the call."""
    if len(given) > len(places):
        rule = f"They are {', '.join(places)}; the others go by name."
        raise PlanError(f"{what} takes at most {len(places)} arguments by place.", rule=rule, suggest=hint)
    values = dict(zip(places, given, strict=False))
    for name in (name for name in places[: len(given)] if name in named):
        raise PlanError(f"{what} got {name!r} twice.", suggest=hint or ("give ", Argument(name), " once"))
    values |= named
    for name in (name for name in required if name not in values):
        raise PlanError(f"{what} needs {name!r}.", suggest=hint or Argument(name, _EXAMPLES.get(name, ...)))
    return values


def reads_call(entry: Entry, front: str) -> Callable[..., Any]:
    """A method that reads how it was called, and hands that to its object's `_ask`."""

    def question(self: Any, *given: Any, **named: Any) -> Any:
        return self._ask(read_call(entry, front, given, named))

    return question


def fill_call(entry: Entry, front: str, values: Mapping[str, Any]) -> Call:
    """Sort arguments by what they are about, defaults filled in."""
    takes = list_arguments(entry, front)
    data = {name: values.get(name, argument.default) for name, argument in takes.leading.items()}
    own = {name: _read_value(argument, values.get(name, argument.default)) for name, argument in takes.own.items()}
    options = {name: value for name, value in values.items() if name in takes.options}
    column = data.get("target" if entry.model else "column")
    read = AskOptions.of(options, front)
    if "for_interval" in values:
        _check_pays_for_interval(entry, own.get("q"), read.privacy)
    return Call(entry, data, own, read, values, column)


def _check_pays_for_interval(entry: Entry, q: Any, privacy: str) -> None:
    """Refuse `for_interval` where nothing would be spent on one."""
    what, rule = f"A {entry.name}", "It is for medians and quantiles, which pay for theirs."
    if entry.pays_for_interval and privacy != "personalized":
        what, rule = f"{privacy.capitalize()} privacy", "Its answers have no interval."
    elif entry.pays_for_interval and isinstance(q, NUMBERS) and q in (0, 1):
        what, rule = (
            f"A {entry.name} of {float(q):g}",
            "That is the smallest or the largest value, which has no interval.",
        )
    elif entry.pays_for_interval:
        return
    raise PlanError(f"{what} takes no 'for_interval'.", rule=rule, suggest=("leave ", Argument("for_interval"), " out"))


def read_plan(entry: Entry, front: str, named: Mapping[str, Any], column: Any = None) -> Call:
    """The statistic's own arguments and options, by name; what it is about is apart."""
    check_known(entry.name, named, {**entry.own(front), **options_of(front)}, front)
    about = {} if front == ARRAYS else {"target" if entry.model else "column": column}
    return fill_call(entry, front, {**about, **named})


def both_given() -> PlanError:
    """A share and an error, of which either fixes the other."""
    hint = (Argument("share", 0.1), ", or ", Argument("error", 0.5), " for the smallest share that reaches it")
    return PlanError("Both a share and an error were given.", rule="Either fixes the other.", suggest=hint)


def check_known(
    what: str, given: Iterable[str], known: Iterable[str], front: str, shown: Iterable[str] | None = None
) -> None:
    """Refuse an argument that does not exist, or that another front takes; `shown` are the names to suggest."""
    names = list(known)
    for name in given:
        if name in names:
            continue
        offered = names if shown is None else list(shown)
        near = difflib.get_close_matches(name, offered, n=3)
        whose = next((text for other, text in _WHOSE.items() if other != front and name in options_of(other)), None)
        rule = "" if whose is None or near else f"It is an option of {whose}."
        if front == BATCHES and name in ("share", "error"):
            rule = "A batch splits one share among its questions."
        raise PlanError(f"A {what} takes no {name!r}.", rule=rule, suggest=" or ".join(near) or ", ".join(offered))


def check_call(what: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """For methods that are written out: a call that does not fit is a PlanError, as everywhere else."""

    def decorate(method: Callable[_P, _R]) -> Callable[_P, _R]:
        takes = list(inspect.signature(method).parameters.values())[1:]
        places = [one.name for one in takes if one.kind is one.POSITIONAL_OR_KEYWORD]
        required = [one.name for one in takes if one.default is one.empty]

        @wraps(method)
        def checked(*given: _P.args, **named: _P.kwargs) -> _R:
            check_known(what, named, [one.name for one in takes], TABLES)
            take_places(f"A {what}", places, required, given[1:], named)
            return method(*given, **named)

        return checked

    return decorate
