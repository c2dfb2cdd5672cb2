"""The shape that every mechanism has.

A mechanism is a frozen value that holds its options. From public facts alone (a question and the roster's levels) it
says whether it can serve, what each level is charged, and how large the error will be; only `draw` sees people. The
guarantee stands beside the code: `charge` is what `draw` costs, and the audits hold one to the other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from epsilons.errors import PlanError
from epsilons.guarantee import PERSONALIZED, to_epsilon
from epsilons.mechanisms.errorbars import ErrorBar
from epsilons.noise.entropy import Entropy
from epsilons.preferences import Levels
from epsilons.statistics.base import Moments
from epsilons.statistics.people import People
from epsilons.statistics.question import Question

#: Why some mechanisms cannot serve a filtered or grouped question.
NEEDS_PUBLIC_COUNT = (
    "it needs a public number of values: no condition, no groups, one row per person, no values left out"
)

#: A level's charge in nano-epsilon; None for public people, who have no balance.
Charges = tuple[int | None, ...]


@dataclass(frozen=True)
class Answer:
    """What a draw gives: a value, whatever noisy by-products may be shown with it, and the noisy sums behind it."""

    value: Any
    details: dict[str, Any] = field(default_factory=dict)
    sums: Sequence[Sequence[Fraction]] | None = None


class Mechanism(ABC):
    """Turn people's values into one answer that keeps every person's own epsilon."""

    name: ClassVar[str]
    #: One short clause on what it does, for plans.
    gist: ClassVar[str] = ""
    #: In words, what the predicted error takes for granted.
    assumption: ClassVar[str] = "unrelated"
    #: Which kind of privacy it gives, and what must be said of it.
    privacy: ClassVar[str] = "personalized"
    kind: ClassVar[str] = PERSONALIZED
    caveats: ClassVar[tuple[str, ...]] = ()
    #: Whether an absent person stands at a fixed public value, so that "replace" implies "absent".
    imputes: ClassVar[bool] = False

    @abstractmethod
    def refuses(self, question: Question, levels: Levels) -> str | None:
        """Why this mechanism cannot serve the question, or None if it can."""

    @abstractmethod
    def charge(self, question: Question, levels: Levels) -> Charges:
        """What each level pays, in nano-epsilon, rounded up; never more than it granted."""

    @abstractmethod
    def predict_error(self, question: Question, levels: Levels) -> float | None:
        """Expected root mean squared error against the roster's own statistic; None where it would be data."""

    @abstractmethod
    def worst_error(self, question: Question, levels: Levels) -> float | None:
        """The same for the worst values people could have, however these relate to their preferences."""

    def stated_error(self, question: Question, levels: Levels, answer: Answer) -> float | None:
        """The expected error once an answer is out: what its noisy sums say about the values is public by then."""
        return self.predict_error(question, levels)

    @abstractmethod
    def draw(self, question: Question, people: People, entropy: Entropy) -> Answer:
        """One answer."""

    @abstractmethod
    def simulate(self, question: Question, people: People, entropy: Entropy, size: int) -> NDArray[np.float64]:
        """Many independent answers to one question on one data set, for audits and simulations."""

    @abstractmethod
    def distribution(self, question: Question, people: People) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """(outcomes, natural logarithms of their probabilities) on small inputs, for audits and teaching."""

    def error_model(self, question: Question, levels: Levels, moments: Moments) -> ErrorBar | None:
        """What an honest error bar needs, given what people's contributions look like; None where there is none."""
        return None

    def used(self, question: Question, levels: Levels) -> float:
        """The share of people whose values can move the answer (expected, for a sample)."""
        charged = zip(self.charge(question, levels), levels.sizes, strict=True)
        return sum(size for charge, size in charged if charge != 0) / levels.people

    def options(self, question: Question, levels: Levels) -> dict[str, Any]:
        """The mechanism's options as numbers, for people and plans."""
        return {}

    def explain(self, question: Question, levels: Levels) -> str:
        """One short clause on what the mechanism does with these people."""
        return self.gist

    def why_no_interval(self, question: Question) -> str:
        """One sentence for people who ask for an error bar that nobody can honestly give."""
        return f"How far the answer of {self.name!r} to this question strays depends on the private values."


def charge_table(levels: Levels, charges: Charges) -> dict[float, float]:
    """{granted epsilon: epsilon spent}; public people have no balance and spend nothing."""
    pairs = zip(levels.grants, charges, strict=True)
    return {to_epsilon(granted): 0.0 if spent is None else to_epsilon(spent) for granted, spent in pairs}


_REGISTRY: dict[str, type[Mechanism]] = {}


def register(mechanism: type[Mechanism]) -> type[Mechanism]:
    """Make a mechanism known by its name; its file needs nothing else."""
    _REGISTRY[mechanism.name] = mechanism
    return mechanism


def registered(privacy: str = "personalized") -> dict[str, type[Mechanism]]:
    """Every mechanism that gives a kind of privacy, by name; "group" is served by those for "individual"."""
    wanted = "individual" if privacy == "group" else privacy
    return {name: kind for name, kind in _REGISTRY.items() if kind.privacy == wanted}


@dataclass(frozen=True)
class Settings:
    """What a caller may set on mechanisms; None leaves a mechanism's own default."""

    threshold: float | str | None = None
    rescale: bool | None = None
    scale: str | None = None
    gamma: int | None = None
    inside: str | None = None

    def given(self) -> dict[str, Any]:
        """Those that were set."""
        return {key: value for key, value in self.__dict__.items() if value is not None}


def create(name: str, **options: Any) -> Mechanism:
    """A mechanism by name; options left at None keep the mechanism's defaults."""
    if name not in _REGISTRY:
        raise PlanError(f"Unknown mechanism {name!r}.", hint=", ".join(["auto", *sorted(_REGISTRY)]))
    given = {key: value for key, value in options.items() if value is not None}
    kind = _REGISTRY[name]
    strange = sorted(set(given) - options_of(kind))
    if strange:
        takers = sorted(n for n, k in _REGISTRY.items() if strange[0] in options_of(k))
        raise PlanError(f"{name!r} takes no {strange[0]!r}.", hint=f"one of {', '.join(takers)}")
    build: Callable[..., Mechanism] = kind
    return build(**given)


def options_of(kind: type[Mechanism]) -> set[str]:
    """The names of a mechanism's options."""
    return set(getattr(kind, "__dataclass_fields__", {}))
