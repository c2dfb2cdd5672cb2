"""A question: a statistic, and the public facts and assumptions that go with it."""

from __future__ import annotations

from dataclasses import dataclass

from epsilons.arguments import ASSUMPTIONS, PRIVACIES, AskOptions, check_guess, check_name
from epsilons.guarantee import NEIGHBORS
from epsilons.statistics.base import Statistic


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
        check_name("neighbors", self.neighbors, NEIGHBORS)
        check_name("privacy", self.privacy, PRIVACIES)
        check_name("assume", self.assume, ASSUMPTIONS)
        for name in ("spread", "density", "location"):
            object.__setattr__(self, name, check_guess(name, getattr(self, name)))

    @classmethod
    def of(cls, statistic: Statistic, options: AskOptions, neighbors: str, groups: tuple[int, ...] = ()) -> Question:
        """A statistic under the assumptions that a caller made."""
        guesses = (options.spread, options.density, options.location)
        return cls(statistic, neighbors, options.assume, *guesses, options.privacy, groups)
