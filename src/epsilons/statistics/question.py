"""A question: a statistic, and the public facts and assumptions that go with it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from epsilons.errors import PlanError
from epsilons.guarantee import NEIGHBORS
from epsilons.statistics.base import LARGEST, Statistic, check_real

ASSUMPTIONS = {
    "unrelated": "people's preferences say nothing about their values",
    "nothing": "nothing is assumed about how preferences and values relate",
}

PRIVACIES = ("personalized", "individual", "group")


@dataclass(frozen=True)
class Question:
    """What is asked, against which neighbours it is protected, and what is publicly expected of the values.

    `spread`, `density` and `location` are public guesses of the standard deviation, of the fraction of ones and of the
    mean. They steer weights and predicted errors, never the guarantee.
    """

    statistic: Statistic
    neighbors: str = "absent"
    assume: str = "unrelated"
    spread: float | None = None
    density: float | None = None
    location: float | None = None
    #: "personalized", or "individual" and "group", which are weaker and must be asked for.
    privacy: str = "personalized"
    #: For "group": nano-epsilons of groups of 1, 2, ... people.
    groups: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.neighbors not in NEIGHBORS:
            raise PlanError(f"Unknown neighbors={self.neighbors!r}.", hint='neighbors="absent" or neighbors="replace"')
        if self.privacy not in PRIVACIES:
            raise PlanError(f"Unknown privacy={self.privacy!r}.", hint=", ".join(PRIVACIES))
        if not isinstance(self.assume, str) or self.assume not in ASSUMPTIONS:
            raise PlanError(f"Unknown assume={self.assume!r}.", hint='assume="unrelated" or assume="nothing"')
        for name in _GUESSES:
            object.__setattr__(self, name, check_guess(name, getattr(self, name)))


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
    try:
        number = check_real(guess)
    except TypeError:
        number = math.nan
    if not low <= number <= high:
        raise PlanError(f"{name}={guess!r} is not allowed.", rule=rule, hint=f"leave {name} out if unknown")
    return number
