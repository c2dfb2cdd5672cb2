"""How one public argument is checked: numbers, names, truths. The number checks serve all rooms above.

A check gives the value in one spelling or raises. It looks at public arguments only, so its message may show them.
"""

import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np

from epsilons.errors import Argument, EpsilonsError, PlanError, Text

#: Public numbers (bounds, spread) are at most this large, and at least one over this: their powers stay within floats.
LARGEST_NUMBER = 1e30
#: Of a whole request: what can be learned beside an answer, as by how long it took, cannot be sampled without end.
LEAST_SHARE = Fraction(1, 1000)
#: A gamma beyond this makes the noise of smooth sensitivity hardly any lighter.
LARGEST_GAMMA = 20

BOUNDS_RULE = "Bounds are public facts; reading them from the data would leak it."
ASSUMPTIONS = {
    "unrelated": "people's preferences say nothing about their values",
    "nothing": "nothing is assumed about how preferences and values relate",
}
#: How far a level's expected mean may lie from everyone's, in spreads, by name.
RELATED = {"unrelated": 0.0, "nothing": math.inf}
PRIVACIES = ("personalized", "individual", "group")
SCALES = ("tight", "paper")
INSIDE = ("minimum", "threshold", "sample")
THRESHOLDS = ("best", "max", "mean")

#: What a number may be where there is no array to tell.
NUMBERS: tuple[Any, ...] = (Real, Decimal, np.bool_)


def refuse(name: str, given: Any, rule: Text, suggest: Text) -> PlanError:
    """One text for every argument whose value is not allowed."""
    return PlanError((Argument(name, given), " is not allowed."), rule=rule, suggest=suggest)


def check_real(number: Any) -> float:
    """A public argument as a float; TypeError for whatever is not a real number (text, complex, True)."""
    if isinstance(number, (bool, np.bool_)) or not isinstance(number, NUMBERS):
        raise TypeError
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf
    except ValueError:
        raise TypeError from None


def read_real(number: Any) -> float:
    """A public argument as a float; NaN, which lies within no limits, for whatever is not a real number."""
    try:
        return check_real(number)
    except TypeError:
        return math.nan


def check_whole(number: Any, least: int = 1, most: int | None = None, refusal: EpsilonsError | None = None) -> int:
    """A whole number of any type within limits; anything else raises the refusal, or TypeError."""
    fits = isinstance(number, Integral) and not isinstance(number, (bool, np.bool_))
    if not fits or int(number) < least or (most is not None and int(number) > most):
        raise refusal or TypeError
    return int(number)


def exact(number: float) -> Fraction:
    """The decimal that a float prints as: .9 is 9/10."""
    return Fraction(Decimal(repr(float(number))))


def as_written(number: float) -> float:
    """A number for a message, as people write it: 30 rather than 30.0."""
    return int(number) if number.is_integer() else number


def check_bounds(bounds: Any, statistic: str) -> tuple[float, float]:
    """Public bounds, which are required and never read from the data."""
    example = Argument("bounds", (0, 100))
    if bounds is None:
        raise PlanError(f"A {statistic} needs bounds.", rule=BOUNDS_RULE, suggest=example)
    try:
        low, high = (check_real(bound) for bound in bounds)
    except (TypeError, ValueError):  # ValueError: not two of them
        raise PlanError(f"Bounds {bounds!r} are not a pair of numbers.", suggest=example) from None
    if not (math.isfinite(low) and math.isfinite(high)):
        raise PlanError(f"Bounds ({low}, {high}) are not finite.", suggest=example)
    if low >= high:
        turned = (as_written(high), as_written(low))
        rule = "The lower bound comes first."
        hint = Argument("bounds", turned) if low > high else (Argument("bounds"), " with room between them")
        raise PlanError(f"Bounds ({low:g}, {high:g}) are reversed or empty.", rule=rule, suggest=hint)
    if max(-low, high) > LARGEST_NUMBER or high - low < 1 / LARGEST_NUMBER:
        rule = f"They lie within {LARGEST_NUMBER:g} of zero and are at least {1 / LARGEST_NUMBER:g} apart."
        raise PlanError(f"Bounds ({low:g}, {high:g}) are out of scale.", rule=rule, suggest="other units")
    return low, high


#: A guessed density is held to so much, or so much less than everyone: how far levels may differ follows from it.
_RAREST = 1e-6
#: The least positive and the largest finite float: with them open intervals are closed ones.
_POSITIVE, _FINITE, _BELOW_ONE = math.nextafter(0, 1), sys.float_info.max, math.nextafter(1, 0)
#: The limits of arguments that are real numbers, their rule, and a value that works.
_LIMITS: dict[str, tuple[float, float, str, float | None]] = {
    "step": (_POSITIVE, _FINITE, "The grid's step is a positive number.", 1),
    "share": (float(LEAST_SHARE), 1, f"A share is at least {float(LEAST_SHARE)} and at most 1.", 0.1),
    "error": (_POSITIVE, _FINITE, "An error is a positive number.", 0.5),
    "confidence": (_POSITIVE, _BELOW_ONE, "A confidence lies strictly between 0 and 1.", 0.95),
    "pilot": (0.001, 0.9, "The part of every epsilon that pays for a pilot, from 0.001 to 0.9.", 0.1),
    "for_interval": (0, 0.9, "The part of the budget that pays for an interval, from 0 to 0.9.", 0.4),
    "tolerance": (0, _FINITE, "A tolerance is a number from 0.", 1e-9),
    "spread": (1 / LARGEST_NUMBER, LARGEST_NUMBER, "A public guess of the standard deviation, above 0.", None),
    "density": (0, 1, "A public guess of the fraction of ones, from 0 to 1.", None),
    "location": (-LARGEST_NUMBER, LARGEST_NUMBER, "A public guess of the mean, a number.", None),
}


def check_number(name: str, given: Any, most: float = math.inf) -> float:
    """An argument as a float within its limits."""
    low, high, rule, example = _LIMITS[name]
    number = read_real(given)
    if not low <= number <= min(high, most):
        suggest = ("leave ", Argument(name), " out") if example is None else Argument(name, example)
        raise refuse(name, given, rule if math.isinf(most) else f"{rule} It is at most {most:g}.", suggest)
    return number


def check_between(number: Any, low: float, high: float, refusal: EpsilonsError, *, ends: bool = False) -> float:
    """A number strictly between two others, or also at its ends; anything else raises the refusal."""
    found = read_real(number)
    if low < found < high or (ends and low <= found <= high):
        return found
    raise refusal


check_error, check_confidence = partial(check_number, "error"), partial(check_number, "confidence")
#: The distance between possible answers: within bounds, and where there are no bounds to divide.
check_step, check_unbounded_step = partial(check_number, "step"), partial(check_number, "step", most=LARGEST_NUMBER)


def check_guess(name: str, guess: Any, span: tuple[float, float] | None = None) -> float | None:
    """A public guess as a float; None if there is none. No density is certain: else people could not differ in it.

    Of values within the bounds `span` it is one that they can meet: any other would be taken at its word.
    """
    if guess is None:
        return None
    number = check_number(name, guess)
    if name == "density":
        return min(max(number, _RAREST), 1 - _RAREST)
    low, high = span or (-math.inf, math.inf)
    half = high / 2 - low / 2
    # Bounds are halved in floats, and so may a guess have been.
    if number > half * (1 + 1e-9) if name == "spread" else not low <= number <= high:
        told = f"spread by half the width at most, {half:g}" if name == "spread" else "have a mean there"
        rule = f"Values are cut to bounds of ({low:g}, {high:g}), so they {told}."
        raise refuse(name, number, rule, ("leave ", Argument(name), " out"))
    return number


def check_share(share: Any) -> Fraction:
    """The share of every grant that a whole request takes, exactly; the parts of a batch may be smaller."""
    number = check_number("share", share)
    return share if isinstance(share, Fraction) else exact(number)


def check_for_interval(part: Any) -> Fraction:
    """The part of a quantile's budget that pays for its interval, exactly."""
    number = check_number("for_interval", part)
    return part if isinstance(part, Fraction) else exact(number)


def check_pilot(part: Any) -> Fraction:
    """The part of everyone's epsilon that pays for a pilot, exactly."""
    number = check_number("pilot", part)
    return part if isinstance(part, Fraction) else exact(number)


def check_rank(k: Any) -> int:
    """Which of the largest values: 1 is the maximum."""
    return check_whole(k, refusal=refuse("k", k, "k is a whole number from 1.", Argument("k", 2)))


def check_gamma(gamma: Any) -> int:
    """The power of the heavy tails of smooth sensitivity."""
    rule = f"gamma is a whole number from 2 to {LARGEST_GAMMA}."
    return check_whole(gamma, 2, LARGEST_GAMMA, refuse("gamma", gamma, rule, Argument("gamma", 3)))


@dataclass(frozen=True)
class Bought:
    """How far levels' expected means lie from everyone's at most, in the units of a column: what `relation` found.

    `within` are the bounds that values were cut to; `column` and `dataset` are empty for arrays; `source` says where it
    comes from.
    """

    distance: float
    within: str
    column: str
    source: str
    dataset: str = ""

    def check_speaks_of(self, described: str, about: tuple[str, str], everyone: bool) -> None:
        """It bounds means of these values over everyone, not those of others, of some people, or of anything else.

        `about` are the column and its dataset.
        """
        name, _, within = described.partition(" ")
        same = name in ("mean", "sum") and (within, *about) == (self.within, self.column, self.dataset)
        if same and everyone:
            return
        values = f"values {self.within}" + (f" of {self.column!r}" if self.column else "")
        values += f" in {self.dataset!r}" if self.dataset else ""
        rule = f"It bounds means of {values} over everyone, whoever has none at the centre: for their means and sums."
        whole: Text = (Argument("missing", "center"), " or ", Argument("complete", True), ", without a condition")
        what = ("A relation that was bought says nothing about this question.",)
        raise PlanError(what, rule=rule, suggest=whole if same else Argument("assume", 0.3))


def check_assume(assume: Any) -> float | Bought:
    """How far preferences may be related to values: what `relation` found of a column, or a number of spreads."""
    bought = getattr(assume, "bought", assume)
    return bought if isinstance(bought, Bought) else check_related(assume)


def check_related(assume: Any) -> float:
    """The same in spreads: 0 for "unrelated", infinite for "nothing"."""
    number = RELATED[assume] if isinstance(assume, str) and assume in RELATED else read_real(assume)
    if not number >= 0:
        rule = 'It is a distance in spreads, from 0; or "unrelated", which is 0, or "nothing".'
        raise refuse("assume", assume, rule, Argument("assume", 0.3))
    if LARGEST_NUMBER < number < math.inf:  # an error that follows from it would be no number
        raise refuse("assume", assume, f"It is at most {LARGEST_NUMBER:g} spreads.", Argument("assume", "nothing"))
    return number


def check_threshold(threshold: Any) -> float | str:
    """An epsilon, or the name of a way to choose one."""
    if isinstance(threshold, str) and threshold in THRESHOLDS:
        return threshold
    try:
        return check_real(threshold)
    except TypeError:
        rule = 'A threshold is one epsilon, or "max", "mean" or "best".'
        raise refuse("threshold", threshold, rule, Argument("threshold", "best")) from None


def check_name(option: str, given: Any, allowed: Iterable[str]) -> str:
    """One of the names that an option has."""
    names = tuple(allowed)
    if not isinstance(given, str) or given not in names:
        listed = [part for name in names for part in (" or ", Argument(option, name))][1:]
        raise PlanError(("Unknown ", Argument(option, given), "."), suggest=tuple(listed))
    return given


def check_truth(option: str, given: Any) -> bool:
    """True or False, and nothing that merely looks like it."""
    if not isinstance(given, (bool, np.bool_)):
        raise refuse(option, given, "It is True or False.", Argument(option, True))
    return bool(given)


def check_text(option: str, example: str, given: Any) -> str:
    """A name that is not empty; which names there are is another room's affair."""
    if not isinstance(given, str) or not given.strip():
        raise refuse(option, given, "It is a name.", Argument(option, example))
    return given


check_analyst, check_mechanism = partial(check_text, "analyst", "ann"), partial(check_text, "mechanism", "auto")


def check_entropy(entropy: Any) -> Any:
    """A source of random bits: a seed would be taken for one and fail in the middle of a draw."""
    known = all(hasattr(entropy, name) for name in ("private", "bytes", "words", "bits"))
    if isinstance(entropy, type) or not known:
        rule = "Answers draw on the operating system; only tests draw on anything else."
        hint = "a seeded one in a test, else none"
        raise PlanError((Argument("entropy", entropy), " is not a source of random bits."), rule=rule, suggest=hint)
    return entropy
