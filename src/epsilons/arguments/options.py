"""The options that every question takes besides its own arguments, and how a front reads them.

Arrays, tables, plans, batches, SQL, commands and estimators all take their options from `OPTIONS` and check them with
`AskOptions.of`, so that a wrong value gets the same words everywhere, before anybody is charged.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache, partial
from typing import Any, Literal, get_args

from epsilons.arguments.checks import (
    ASSUMPTIONS,
    INSIDE,
    MISSING,
    PRIVACIES,
    SCALES,
    RandomBits,
    check_entropy,
    check_error,
    check_gamma,
    check_guess,
    check_mechanism,
    check_name,
    check_share,
    check_threshold,
    check_truth,
)
from epsilons.errors import PlanError
from epsilons.guarantee import NEIGHBORS

#: A question's part of everybody's grant: of a table unless it says otherwise, and of arrays.
DEFAULT_SHARE, WHOLE_SHARE = 0.1, 1.0

ARRAYS, TABLES, BATCHES, QUERIES = "arrays", "tables", "batches", "queries"
_TABLES = frozenset({TABLES, BATCHES, QUERIES})
_EVERYWHERE = _TABLES | {ARRAYS}
#: In an error: whose option it is.
_WHOSE = {ARRAYS: "functions on arrays", TABLES: "questions to a table"}


@dataclass(frozen=True)
class Argument:
    """One argument of a question: its name, its type, what it is unless given, and one line about it.

    `check` gives the value in one spelling or raises a PlanError; it is not asked about None where None is the default.
    """

    name: str
    annotation: Any
    default: Any
    help: str
    check: Callable[[Any], Any] | None = None
    #: By place as well as by name.
    positional: bool = False
    required: bool = False
    #: The fronts that take it.
    fronts: frozenset[str] = _EVERYWHERE

    def checked(self, value: Any) -> Any:
        """The value in one spelling."""
        if self.check is None or (value is None and self.default is None):
            return value
        return self.check(value)

    @property
    def names(self) -> tuple[str, ...]:
        """The names that its value may have, if it is one of several."""
        kinds = (self.annotation, *get_args(self.annotation))
        return tuple(name for kind in kinds for name in get_args(kind) if isinstance(name, str))


Guess = float | None
OPTIONS: tuple[Argument, ...] = (
    Argument("mechanism", str, "auto", "Which mechanism answers; auto takes the best of the plan.", check_mechanism),
    Argument(
        "threshold",
        float | Literal["best", "max", "mean"] | None,
        None,
        "For threshold and sample: a number, max, mean or best (the default).",
        check_threshold,
    ),
    Argument(
        "rescale",
        bool | None,
        None,
        "Whether to make up for what a mechanism leaves out.",
        partial(check_truth, "rescale"),
    ),
    Argument(
        "neighbors",
        Literal["absent", "replace"],
        "absent",
        "Protection against data without a person, or with other values of theirs.",
        partial(check_name, "neighbors", allowed=NEIGHBORS),
        fronts=frozenset({ARRAYS}),
    ),
    Argument(
        "assume",
        Literal["unrelated", "nothing"],
        "unrelated",
        "About preferences and values.",
        partial(check_name, "assume", allowed=ASSUMPTIONS),
    ),
    Argument(
        "spread",
        Guess,
        None,
        "Public guess of the standard deviation; guesses steer plans, never the guarantee.",
        partial(check_guess, "spread"),
    ),
    Argument(
        "density",
        Guess,
        None,
        "Public guess of the part of people who count.",
        partial(check_guess, "density"),
    ),
    Argument("location", Guess, None, "Public guess of the mean.", partial(check_guess, "location")),
    Argument(
        "privacy",
        Literal["personalized", "individual", "group"],
        "personalized",
        "individual and group are weaker: individual DP is not DP.",
        partial(check_name, "privacy", allowed=PRIVACIES),
    ),
    Argument(
        "group_epsilons",
        Sequence[float] | None,
        None,
        'With privacy="group": epsilons of groups of 1, 2, ... people, instead of personal ones.',
        fronts=frozenset({ARRAYS}),
    ),
    Argument(
        "scale",
        Literal["tight", "paper"] | None,
        None,
        "For smooth-sensitivity: which scale of its noise.",
        partial(check_name, "scale", allowed=SCALES),
    ),
    Argument("gamma", int | None, None, "For smooth-sensitivity: the power of its noise's tails.", check_gamma),
    Argument(
        "inside",
        Literal["minimum", "threshold", "sample"] | None,
        None,
        "For smooth-sensitivity: how it treats different epsilons.",
        partial(check_name, "inside", allowed=INSIDE),
    ),
    Argument(
        "share",
        float,
        WHOLE_SHARE,
        "At most this part of what each person granted.",
        check_share,
        fronts=frozenset({ARRAYS}),
    ),
    Argument(
        "share",
        float | None,
        DEFAULT_SHARE,
        "At most this part of what each person granted (default 0.1).",
        check_share,
        fronts=frozenset({TABLES}),
    ),
    Argument(
        "error",
        float | None,
        None,
        "Instead of a share: the smallest one whose plan reaches this error.",
        check_error,
        fronts=frozenset({TABLES}),
    ),
    Argument(
        "where",
        str | None,
        None,
        "A condition, such as \"age >= 18 AND region IN ('north', 'south')\".",
        fronts=frozenset({TABLES, BATCHES}),
    ),
    Argument(
        "by",
        Mapping[str, Sequence[Hashable]] | None,
        None,
        "Groups: the columns, each with its keys.",
        fronts=frozenset({TABLES, BATCHES}),
    ),
    Argument(
        "missing",
        Literal["exclude", "center"] | None,
        None,
        "What to do with missing values.",
        partial(check_name, "missing", allowed=MISSING),
        fronts=_TABLES,
    ),
    Argument(
        "fresh",
        bool,
        False,
        "Ask anew and pay, also if it was asked before.",
        partial(check_truth, "fresh"),
        fronts=_TABLES,
    ),
    Argument(
        "analyst",
        str | None,
        None,
        "Who asks, for quotas (fairness only; budgets are everybody's).",
        fronts=_TABLES,
    ),
    Argument("entropy", RandomBits | None, None, "For tests: another source of random bits.", check_entropy),
)


@cache
def options_of(front: str) -> Mapping[str, Argument]:
    """The options that a front takes, by name and in order."""
    return {option.name: option for option in OPTIONS if front in option.fronts}


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
            raise PlanError(
                "Both a share and an error were given.",
                rule="Either fixes the other.",
                hint="share=0.1, or error=0.5 for the smallest share that reaches it",
            )
        checked = {}
        for name, value in given.items():
            if name != "share":
                checked[name] = known[name].checked(value)
        share = given.get("share")
        if share is None and front != ARRAYS:
            share = DEFAULT_SHARE
        elif "share" not in given:
            share = WHOLE_SHARE
        made = cls(**checked, share=None if checked.get("error") is not None else check_share(share))
        if made.privacy == "group" and front != ARRAYS:
            raise PlanError(
                "Groups have no budgets.",
                rule="A ledger holds one grant for each person.",
                hint='eps.median(values, privacy="group", group_epsilons=[...]) on arrays',
            )
        return made

    @property
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


def unknown_argument(what: str, given: str, known: Iterable[str], front: str) -> PlanError:
    """Nobody takes it, or another front does."""
    names = list(known)
    near = difflib.get_close_matches(given, names, n=3)
    whose = next((words for name, words in _WHOSE.items() if name != front and given in options_of(name)), None)
    return PlanError(
        f"A {what} takes no {given!r}.",
        rule="" if whose is None or near else f"It is an option of {whose}.",
        hint=" or ".join(near) if near else ", ".join(names),
    )
