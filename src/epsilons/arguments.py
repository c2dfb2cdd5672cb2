"""The one argument model: what every question takes besides its own arguments, and how each is checked.

Arrays, tables, plans, batches, SQL, commands and estimators all read their options from `OPTIONS` and check them with
`AskOptions.of`, so that a wrong value gets the same words everywhere, before anybody is charged. The number checks here
serve all rooms above. A check looks at public arguments only, so its message may show them.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from functools import cache
from numbers import Integral, Real
from typing import Any, Literal, Protocol, get_args, runtime_checkable

import numpy as np

from epsilons.errors import PlanError
from epsilons.guarantee import NEIGHBORS

#: Public numbers (bounds, spread) are at most this large, and at least one over this: their powers stay within floats.
LARGEST = 1e30
#: A question's part of everybody's grant: of a table unless it says otherwise, and of arrays.
DEFAULT_SHARE, WHOLE_SHARE = 0.1, 1.0
#: A gamma beyond this makes the noise of smooth sensitivity hardly any lighter.
LARGEST_GAMMA = 20

ASSUMPTIONS = {
    "unrelated": "people's preferences say nothing about their values",
    "nothing": "nothing is assumed about how preferences and values relate",
}
PRIVACIES = ("personalized", "individual", "group")
SCALES = ("tight", "paper")
INSIDE = ("minimum", "threshold", "sample")
THRESHOLDS = ("best", "max", "mean")
MISSING = ("exclude", "center")

#: What a number may be where there is no array to tell.
NUMBERS: tuple[Any, ...] = (Real, Decimal, np.bool_)


# Numbers ------------------------------------------------------------------------------------------------------------


def check_real(number: Any) -> float:
    """A public argument as a float; TypeError for whatever is not a real number (words, complex, True)."""
    if isinstance(number, (bool, np.bool_)) or not isinstance(number, NUMBERS):
        raise TypeError
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf
    except ValueError:
        raise TypeError from None


def check_whole(number: Any, least: int = 1, most: int | None = None) -> int:
    """A whole number of any type within limits; TypeError for whatever is not."""
    if isinstance(number, (bool, np.bool_)) or not isinstance(number, Integral):
        raise TypeError
    whole = int(number)
    if whole < least or (most is not None and whole > most):
        raise TypeError
    return whole


def exact(number: float) -> Fraction:
    """The decimal that a float prints as: .9 is 9/10."""
    return Fraction(Decimal(repr(float(number))))


def check_bounds(bounds: Any, statistic: str) -> tuple[float, float]:
    """Public bounds, which are required and never read from the data."""
    if bounds is None:
        raise PlanError(
            f"A {statistic} needs bounds.",
            rule="Bounds are public facts; reading them from the data would leak it.",
            hint=f"eps.{statistic}(values, epsilons, bounds=(0, 100))",
        )
    try:
        low, high = (check_real(bound) for bound in bounds)
    except (TypeError, ValueError):  # ValueError: not two of them
        raise PlanError(f"Bounds {bounds!r} are not a pair of numbers.", hint="bounds=(0, 100)") from None
    if not (math.isfinite(low) and math.isfinite(high)):
        raise PlanError(f"Bounds ({low}, {high}) are not finite.", hint="bounds=(0, 100)")
    if low >= high:
        raise PlanError(
            f"Bounds ({low:g}, {high:g}) are reversed or empty.",
            rule="The lower bound comes first.",
            hint=f"bounds=({high:g}, {low:g})" if low > high else "bounds with room between them",
        )
    if max(-low, high) > LARGEST or high - low < 1 / LARGEST:
        raise PlanError(
            f"Bounds ({low:g}, {high:g}) are out of scale.",
            rule=f"They lie within {LARGEST:g} of zero and are at least {1 / LARGEST:g} apart.",
            hint="other units for the values",
        )
    return low, high


def _within(number: Any, low: float, high: float, *, open_low: bool = False, open_high: bool = False) -> float | None:
    """The number as a float if it lies there, else None."""
    try:
        found = check_real(number)
    except TypeError:
        return None
    above = found > low if open_low else found >= low
    below = found < high if open_high else found <= high
    return found if above and below else None


def check_step(step: Any) -> float:
    """The distance between possible answers within bounds."""
    number = _within(step, 0, math.inf, open_low=True, open_high=True)
    if number is None:
        raise PlanError(
            f"A step of {step!r} is not allowed.", rule="The grid's step is a positive number.", hint="step=1"
        )
    return number


def check_unbounded_step(step: Any) -> float:
    """The distance between possible answers where there are no bounds to divide."""
    number = _within(step, 0, LARGEST, open_low=True)
    if number is None:
        raise PlanError(
            f"A step of {step!r} is not allowed.",
            rule=f"The grid's step is a positive number up to {LARGEST:g}.",
            hint="step=1",
        )
    return number


def check_rank(k: Any) -> int:
    """Which of the largest values: 1 is the maximum."""
    try:
        return check_whole(k)
    except TypeError:
        raise PlanError(f"k={k!r} is not allowed.", rule="k is a whole number from 1.", hint="k=2") from None


_GUESSES = {
    "spread": (1 / LARGEST, LARGEST, "The spread is a public guess of the standard deviation, a positive number."),
    "density": (0.0, 1.0, "The density is a public guess of the fraction of ones, from 0 to 1."),
    "location": (-LARGEST, LARGEST, "The location is a public guess of the mean, a number."),
}


def check_guess(name: str, guess: Any) -> float | None:
    """A public guess as a float; None if nobody guessed."""
    if guess is None:
        return None
    low, high, rule = _GUESSES[name]
    number = _within(guess, low, high)
    if number is None:
        raise PlanError(f"{name}={guess!r} is not allowed.", rule=rule, hint=f"leave {name} out if unknown")
    return number


def check_share(share: Any) -> Fraction:
    """A share of every grant, exactly: larger than 0, at most 1."""
    number = _within(share, 0, 1, open_low=True)
    if number is None:
        raise PlanError(
            f"A share of {share!r} is not allowed.", rule="A share is larger than 0 and at most 1.", hint="share=0.1"
        )
    return share if isinstance(share, Fraction) else exact(number)


def check_error(error: Any) -> float:
    """An error to be reached."""
    number = _within(error, 0, math.inf, open_low=True, open_high=True)
    if number is None:
        raise PlanError(f"An error of {error!r} is not allowed.", rule="It is a positive number.", hint="error=0.5")
    return number


def check_confidence(confidence: Any) -> float:
    """How sure an interval is to be: strictly between 0 and 1."""
    number = _within(confidence, 0, 1, open_low=True, open_high=True)
    if number is None:
        raise PlanError(f"A confidence of {confidence!r} is not allowed.", hint="release.interval(0.95)")
    return number


# Other options ------------------------------------------------------------------------------------------------------


def check_name(option: str, given: Any, allowed: Iterable[str]) -> str:
    """One of the names that an option has."""
    names = tuple(allowed)
    if not isinstance(given, str) or given not in names:
        raise PlanError(f"Unknown {option}={given!r}.", hint=" or ".join(f'{option}="{name}"' for name in names))
    return given


def check_truth(option: str, given: Any) -> bool:
    """True or False, and nothing that merely looks like it."""
    if not isinstance(given, (bool, np.bool_)):
        raise PlanError(f"{option}={given!r} is not allowed.", rule="It is True or False.", hint=f"{option}=True")
    return bool(given)


def check_mechanism(mechanism: Any) -> str:
    """A name; which names there are is the mechanisms' affair."""
    if not isinstance(mechanism, str):
        raise PlanError(f"Unknown mechanism {mechanism!r}.", rule="Mechanisms go by name.", hint='mechanism="auto"')
    return mechanism


def check_threshold(threshold: Any) -> float | str:
    """An epsilon, or the name of a way to choose one."""
    if isinstance(threshold, str):
        if threshold not in THRESHOLDS:
            raise PlanError(f"Unknown threshold {threshold!r}.", hint='a number, "max", "mean" or "best"')
        return threshold
    try:
        return check_real(threshold)
    except TypeError:
        raise PlanError(
            f"Unknown threshold {threshold!r}.",
            rule="A threshold is one epsilon.",
            hint='a number, "max", "mean" or "best"',
        ) from None


def check_gamma(gamma: Any) -> int:
    """The power of the heavy tails of smooth sensitivity."""
    try:
        return check_whole(gamma, 2, LARGEST_GAMMA)
    except TypeError:
        raise PlanError(
            f"gamma={gamma!r} is not allowed.",
            rule=f"gamma is a whole number from 2 to {LARGEST_GAMMA}.",
            hint="gamma=3",
        ) from None


@runtime_checkable
class RandomBits(Protocol):
    """What a source of random bits looks like; `epsilons.noise` makes them."""

    private: bool

    def bytes(self, n: int) -> bytes:
        """`n` random bytes."""

    def words(self, n: int) -> Any:
        """`n` uniform 64-bit integers."""

    def bits(self, n: int) -> int:
        """A uniform integer of `n` bits."""


def check_entropy(entropy: Any) -> Any:
    """A source of random bits: a seed would be taken for one and fail in the middle of a draw."""
    if isinstance(entropy, type) or not isinstance(entropy, RandomBits):
        raise PlanError(
            f"entropy={entropy!r} is not a source of random bits.",
            rule="Answers draw on the operating system; only tests draw on anything else.",
            hint="epsilons.testing.seeded(7) in a test, else nothing",
        )
    return entropy


# The options that all statistics share ------------------------------------------------------------------------------

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
        lambda given: check_truth("rescale", given),
    ),
    Argument(
        "neighbors",
        Literal["absent", "replace"],
        "absent",
        "Protection against data without a person, or with other values of theirs.",
        lambda given: check_name("neighbors", given, NEIGHBORS),
        fronts=frozenset({ARRAYS}),
    ),
    Argument(
        "assume",
        Literal["unrelated", "nothing"],
        "unrelated",
        "About preferences and values.",
        lambda given: check_name("assume", given, ASSUMPTIONS),
    ),
    Argument(
        "spread",
        Guess,
        None,
        "Public guess of the standard deviation; guesses steer plans, never the guarantee.",
        lambda given: check_guess("spread", given),
    ),
    Argument(
        "density",
        Guess,
        None,
        "Public guess of the part of people who count.",
        lambda given: check_guess("density", given),
    ),
    Argument("location", Guess, None, "Public guess of the mean.", lambda given: check_guess("location", given)),
    Argument(
        "privacy",
        Literal["personalized", "individual", "group"],
        "personalized",
        "individual and group are weaker: individual DP is not DP.",
        lambda given: check_name("privacy", given, PRIVACIES),
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
        lambda given: check_name("scale", given, SCALES),
    ),
    Argument("gamma", int | None, None, "For smooth-sensitivity: the power of its noise's tails.", check_gamma),
    Argument(
        "inside",
        Literal["minimum", "threshold", "sample"] | None,
        None,
        "For smooth-sensitivity: how it treats different epsilons.",
        lambda given: check_name("inside", given, INSIDE),
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
        lambda given: check_name("missing", given, MISSING),
        fronts=_TABLES,
    ),
    Argument(
        "fresh",
        bool,
        False,
        "Ask anew and pay, also if it was asked before.",
        lambda given: check_truth("fresh", given),
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
        checked = {name: known[name].checked(value) for name, value in given.items() if name != "share"}
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
