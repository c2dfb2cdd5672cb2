"""How one public argument is checked: numbers, names, truths. The number checks serve all rooms above.

A check gives the value in one spelling or raises. It looks at public arguments only, so its message may show them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Real
from typing import Any, Protocol, runtime_checkable

import numpy as np

from epsilons.errors import EpsilonsError, PlanError

#: Public numbers (bounds, spread) are at most this large, and at least one over this: their powers stay within floats.
LARGEST = 1e30
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


def check_whole(number: Any, least: int = 1, most: int | None = None, refusal: EpsilonsError | None = None) -> int:
    """A whole number of any type within limits; anything else raises the refusal, or TypeError."""
    if isinstance(number, (bool, np.bool_)) or not isinstance(number, Integral):
        raise refusal or TypeError
    whole = int(number)
    if whole < least or (most is not None and whole > most):
        raise refusal or TypeError
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
            suggest=f"eps.{statistic}(values, epsilons, bounds=(0, 100))",
        )
    try:
        low, high = (check_real(bound) for bound in bounds)
    except (TypeError, ValueError):  # ValueError: not two of them
        raise PlanError(f"Bounds {bounds!r} are not a pair of numbers.", suggest="bounds=(0, 100)") from None
    if not (math.isfinite(low) and math.isfinite(high)):
        raise PlanError(f"Bounds ({low}, {high}) are not finite.", suggest="bounds=(0, 100)")
    if low >= high:
        raise PlanError(
            f"Bounds ({low:g}, {high:g}) are reversed or empty.",
            rule="The lower bound comes first.",
            suggest=f"bounds=({high:g}, {low:g})" if low > high else "bounds with room between them",
        )
    if max(-low, high) > LARGEST or high - low < 1 / LARGEST:
        raise PlanError(
            f"Bounds ({low:g}, {high:g}) are out of scale.",
            rule=f"They lie within {LARGEST:g} of zero and are at least {1 / LARGEST:g} apart.",
            suggest="other units for the values",
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


def check_between(number: Any, low: float, high: float, refusal: EpsilonsError, *, ends: bool = False) -> float:
    """A number strictly between two others, or also at its ends; anything else raises the refusal."""
    found = _within(number, low, high, open_low=not ends, open_high=not ends)
    if found is None:
        raise refusal
    return found


def check_step(step: Any) -> float:
    """The distance between possible answers within bounds."""
    number = _within(step, 0, math.inf, open_low=True, open_high=True)
    if number is None:
        raise PlanError(
            f"A step of {step!r} is not allowed.", rule="The grid's step is a positive number.", suggest="step=1"
        )
    return number


def check_unbounded_step(step: Any) -> float:
    """The distance between possible answers where there are no bounds to divide."""
    number = _within(step, 0, LARGEST, open_low=True)
    if number is None:
        raise PlanError(
            f"A step of {step!r} is not allowed.",
            rule=f"The grid's step is a positive number up to {LARGEST:g}.",
            suggest="step=1",
        )
    return number


def check_rank(k: Any) -> int:
    """Which of the largest values: 1 is the maximum."""
    try:
        return check_whole(k)
    except TypeError:
        raise PlanError(f"k={k!r} is not allowed.", rule="k is a whole number from 1.", suggest="k=2") from None


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
        raise PlanError(f"{name}={guess!r} is not allowed.", rule=rule, suggest=f"leave {name} out if unknown")
    return number


def check_share(share: Any) -> Fraction:
    """A share of every grant, exactly: larger than 0, at most 1."""
    number = _within(share, 0, 1, open_low=True)
    if number is None:
        raise PlanError(
            f"A share of {share!r} is not allowed.", rule="A share is larger than 0 and at most 1.", suggest="share=0.1"
        )
    return share if isinstance(share, Fraction) else exact(number)


def check_error(error: Any) -> float:
    """An error to be reached."""
    number = _within(error, 0, math.inf, open_low=True, open_high=True)
    if number is None:
        raise PlanError(f"An error of {error!r} is not allowed.", rule="It is a positive number.", suggest="error=0.5")
    return number


def check_confidence(confidence: Any) -> float:
    """How sure an interval is to be: strictly between 0 and 1."""
    number = _within(confidence, 0, 1, open_low=True, open_high=True)
    if number is None:
        raise PlanError(f"A confidence of {confidence!r} is not allowed.", suggest="release.interval(0.95)")
    return number


# Other options ------------------------------------------------------------------------------------------------------


def check_name(option: str, given: Any, allowed: Iterable[str]) -> str:
    """One of the names that an option has."""
    names = tuple(allowed)
    if not isinstance(given, str) or given not in names:
        raise PlanError(f"Unknown {option}={given!r}.", suggest=" or ".join(f'{option}="{name}"' for name in names))
    return given


def check_truth(option: str, given: Any) -> bool:
    """True or False, and nothing that merely looks like it."""
    if not isinstance(given, (bool, np.bool_)):
        raise PlanError(f"{option}={given!r} is not allowed.", rule="It is True or False.", suggest=f"{option}=True")
    return bool(given)


def check_analyst(analyst: Any) -> str:
    """Who asks, by a name."""
    if not isinstance(analyst, str) or not analyst.strip():
        raise PlanError(f"analyst={analyst!r} is not allowed.", rule="Analysts go by name.", suggest='analyst="ann"')
    return analyst


def check_mechanism(mechanism: Any) -> str:
    """A name; which names there are is the mechanisms' affair."""
    if not isinstance(mechanism, str):
        raise PlanError(f"Unknown mechanism {mechanism!r}.", rule="Mechanisms go by name.", suggest='mechanism="auto"')
    return mechanism


def check_threshold(threshold: Any) -> float | str:
    """An epsilon, or the name of a way to choose one."""
    if isinstance(threshold, str):
        if threshold not in THRESHOLDS:
            raise PlanError(f"Unknown threshold {threshold!r}.", suggest='a number, "max", "mean" or "best"')
        return threshold
    try:
        return check_real(threshold)
    except TypeError:
        raise PlanError(
            f"Unknown threshold {threshold!r}.",
            rule="A threshold is one epsilon.",
            suggest='a number, "max", "mean" or "best"',
        ) from None


def check_gamma(gamma: Any) -> int:
    """The power of the heavy tails of smooth sensitivity."""
    try:
        return check_whole(gamma, 2, LARGEST_GAMMA)
    except TypeError:
        raise PlanError(
            f"gamma={gamma!r} is not allowed.",
            rule=f"gamma is a whole number from 2 to {LARGEST_GAMMA}.",
            suggest="gamma=3",
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
            suggest="epsilons.testing.seeded(7) in a test, else nothing",
        )
    return entropy
