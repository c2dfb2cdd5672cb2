"""What a plan guesses about the values, and how far its error moves if a guess is off by half or double."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from epsilons.arguments.checks import check_guess
from epsilons.display import show
from epsilons.mechanisms.base import Mechanism, find_error
from epsilons.preferences import Levels
from epsilons.statistics.base import Question
from epsilons.statistics.counting import Counting
from epsilons.statistics.order import Order
from epsilons.statistics.regression import Regression
from epsilons.statistics.total import Bounded

#: The heads of a table of guesses.
GUESSES = ("public guess", "value", "error if half of it", "error if double", "where it comes from")


@dataclass(frozen=True)
class Guess:
    """A public guess in use, by the name of its option, and the error if the truth is half of it, or twice as much."""

    name: str
    value: float
    halved: float | None
    doubled: float | None
    #: Where it comes from: who asks, a past answer, the roster, or nowhere.
    source: str = ""

    def cells(self) -> list[str]:
        """Its line of a plan."""
        return [self.name, *map(show, (self.value, self.halved, self.doubled)), self.source]


@dataclass(frozen=True)
class Known:
    """What is known by the name of a guess's option: by a past answer, with its number, or from the roster (None)."""

    name: str
    value: float
    release: int | None

    @property
    def source(self) -> str:
        """As a plan shows it."""
        return "the roster" if self.release is None else f"from release {self.release}"


def list_guesses(
    mechanism: Mechanism, question: Question, levels: Levels, known: Sequence[Known] = ()
) -> tuple[Guess, ...]:
    """The guesses that a predicted error rests on; weights stay as they were chosen by them."""
    if (planned := find_error(mechanism, question, levels)) is None:
        return ()
    sources = {name: "given" for name in ("spread", "density", "location") if getattr(question, name) is not None}
    sources |= {one.name: one.source for one in known}
    found = []
    for name, value in in_use(question).items():
        truths = (guessing(question, name, off) for off in _off(question, name, value))
        half, double = (mechanism.predict_if(truth, question, levels) for truth in truths)
        if (half, double) != (planned, planned):
            found.append(Guess(name, value, half, double, sources.get(name, "nothing is known")))
    return tuple(found)


def in_use(question: Question) -> dict[str, float]:
    """The guesses that errors rest on, whether a caller made them or not."""
    statistic, found = question.statistic, {}
    if statistic.scope is not None:
        found["density"] = statistic.scope.fraction
    elif isinstance(statistic, Counting):
        found["density"] = statistic.guess(question).mean
    if isinstance(statistic, Bounded | Order):
        low, high = statistic.bounds
        found["spread"] = (high - low) / 4 if question.spread is None else question.spread
        found["location"] = (low + high) / 2 if question.location is None else question.location
    elif isinstance(statistic, Regression) and statistic.predicts:
        found["spread"] = statistic.unit / 2 if question.spread is None else question.spread
    return found


def _off(question: Question, name: str, value: float) -> tuple[float, float]:
    """A guess halved and doubled; a location by its distance from the lower bound."""
    if name == "location":
        low = question.statistic.span[0]
        return low + (value - low) / 2, _possible(question, name, low + 2 * (value - low))
    return value / 2, _possible(question, name, 2 * value)


def _possible(question: Question, name: str, value: float) -> float:
    """The nearest that values within bounds, or a fraction, can be."""
    low, high = question.statistic.span or (-math.inf, math.inf)
    return min(value, {"density": 1.0, "spread": high / 2 - low / 2, "location": high}[name])


def guessing_all(question: Question, known: Sequence[Known]) -> Question:
    """The same question with what is known in place of guesses, and where that comes from."""
    for one in known:
        value = _possible(question, one.name, one.value)  # a past answer may be of wider bounds
        question = guessing(question, one.name, check_guess(one.name, value) or 0.0)
    return replace(question, known=tuple([(one.name, one.source) for one in known]))


def guessing(question: Question, name: str, value: float) -> Question:
    """The same question if something else is true."""
    scope = question.statistic.scope
    if name == "density" and scope is not None:
        statistic: Any = question.statistic
        return replace(question, statistic=replace(statistic, scope=replace(scope, fraction=value)))
    changed: dict[str, Any] = {name: value}
    return replace(question, **changed)
