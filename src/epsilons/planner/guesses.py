"""What a plan guesses about the values, and how far its error moves if a guess is off by half or double."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from epsilons.accuracy import FAMILIES
from epsilons.arguments.checks import check_guess
from epsilons.mechanisms.base import Mechanism, Weighing, find_error, weighting_of
from epsilons.preferences import Levels
from epsilons.statistics.additive import Counting
from epsilons.statistics.base import Question
from epsilons.statistics.order import Order
from epsilons.statistics.regression import LinearRegression
from epsilons.statistics.total import Bounded


@dataclass(frozen=True)
class Guess:
    """A public guess in use, by the name of its option, and the error if the truth is half of it, or twice as much."""

    name: str
    value: float
    halved: float | None
    doubled: float | None
    #: Where it comes from: who asks, a past answer, or nowhere.
    source: str = ""


@dataclass(frozen=True)
class Known:
    """A guess that a past answer gives: by the name of its option, and the number of that release."""

    name: str
    value: float
    release: int


def list_guesses(
    mechanism: Mechanism, question: Question, levels: Levels, known: Sequence[Known] = ()
) -> tuple[Guess, ...]:
    """The guesses behind a predicted error; weights stay as they were chosen by them."""
    unknown = find_error(mechanism, question, levels) is None or math.isinf(question.assume)
    if unknown or not isinstance(mechanism, Weighing):
        return ()
    weighting, accuracy = weighting_of(mechanism, question, levels), FAMILIES[question.statistic.family]

    def error(name: str, value: float) -> float | None:
        return accuracy.predict_error(guessing(question, name, value), levels, weighting)

    sources = {name: "given" for name in ("spread", "density", "location") if getattr(question, name) is not None}
    sources |= {one.name: f"from release {one.release}" for one in known}
    found = ((name, value, *_off(question, name, value)) for name, value in in_use(question).items())
    return tuple(
        Guess(name, value, error(name, low), error(name, high), sources.get(name, "nothing is known"))
        for name, value, low, high in found
    )


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
    elif isinstance(statistic, LinearRegression):
        found["spread"] = statistic.unit / 2 if question.spread is None else question.spread
    return found


def _off(question: Question, name: str, value: float) -> tuple[float, float]:
    """A guess halved and doubled; a location by its distance from the lower bound."""
    if name == "location":
        low, high = _bounds(question)
        return low + (value - low) / 2, min(low + 2 * (value - low), high)
    return value / 2, min(2 * value, 1.0) if name == "density" else 2 * value


def _bounds(question: Question) -> tuple[float, float]:
    statistic: Any = question.statistic
    low, high = statistic.bounds
    return low, high


def guessing_all(question: Question, known: Sequence[Known]) -> Question:
    """The same question with the guesses of past answers, and where these come from."""
    for one in known:
        question = guessing(question, one.name, check_guess(one.name, one.value) or 0.0)
    return replace(question, known=tuple([(one.name, f"from release {one.release}") for one in known]))


def guessing(question: Question, name: str, value: float) -> Question:
    """The same question if something else is true."""
    scope = question.statistic.scope
    if name == "density" and scope is not None:
        statistic: Any = question.statistic
        return replace(question, statistic=replace(statistic, scope=replace(scope, fraction=value)))
    changed: dict[str, Any] = {name: value}
    return replace(question, **changed)
