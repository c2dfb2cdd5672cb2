"""What of an outcome is looked at: an event is an interval of something that sorts, and an answer has several such.

A number is looked at as it is, and at its last bit. Noise that is drawn as a float and added to a value leaves a trace
there: near 0 floats are dense, so that an answer of small size with all its bits says that the value, too, was small
(Mironov 2012, "On significance of the least significant bits for differential privacy"). Of several numbers, however
deep they lie in lists and names, those are looked at that tell two neighbours best apart, and one sum of them all.
Whoever sees an answer sees of what type it is, how many numbers it has and what they are called, which warnings came
with it, or that it is an error, and which: these are outcomes as well. What cannot be taken apart is refused: an object
that shows nothing of itself would pass for one that tells nothing.
"""

from __future__ import annotations

import datetime
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AnySet
from dataclasses import dataclass, fields, is_dataclass
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from itertools import groupby
from numbers import Real
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilons.errors import PlanError

#: What stands for an outcome that is no number, among numbers.
_NOT_A_NUMBER = -1.7e308
#: Numbers of an answer that are looked at one by one, and those whose noises are compared with each other.
_MOST_NUMBERS, _MOST_TOGETHER = 8, 64
#: A variance that stands for none, and what is added to those of numbers in units of their own.
_TINY, _RIDGE = 1e-200, 1e-9
_BITS = 53
#: 0 is a multiple of every power of two.
_OF_ZERO = 2000.0
#: How frames, columns and tensors of other packages give away what they hold.
_UNPACKING = ("to_pydict", "to_pylist", "to_dict", "to_list", "tolist")


class _OpaqueError(PlanError):
    """An outcome of which nothing can be seen, so that its audit would find nothing."""


class Raised(str):
    """An error in an outcome's place."""

    __slots__ = ()


@dataclass(frozen=True)
class Warned:
    """An outcome, and the warnings that came with it."""

    outcome: Any
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class View:
    """Something that is seen of outcomes, and what it is called: "" for the outcomes themselves."""

    name: str
    look: Callable[[Sequence[Any]], NDArray[Any]]
    at_warnings: bool = False

    def see(self, side: Sequence[Any]) -> NDArray[Any]:
        """Of outcomes as they were observed."""
        return self.look(list(map(_warnings_of if self.at_warnings else outcome_of, side)))

    def tell(self, event: str) -> str:
        """An event of what is seen."""
        return event if not self.name else f"{event} for X = {self.name}"


class Several(tuple[Any, ...]):
    """The numbers of an outcome, and what it is beside them: its type, the names or the shape that they come in."""

    form: str

    def __new__(cls, numbers: Any, form: str) -> Several:
        made = super().__new__(cls, numbers)
        made.form = form
        return made


def observe(compute: Callable[[], Any]) -> Any:
    """The outcome as it can be compared, or the error in its place, whose text can be read; and any warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = comparable(compute())
        except _OpaqueError:
            raise
        except (Exception, SystemExit, GeneratorExit) as error:
            found = Raised(f"raised {type(error).__name__}: {error}")
    told = tuple(f"{one.category.__name__}: {one.message}" for one in caught)
    return Warned(found, told) if told else found


def outcome_of(seen: Any) -> Any:
    """Without the warnings that came with it."""
    return seen.outcome if isinstance(seen, Warned) else seen


def _warnings_of(seen: Any) -> str:
    return "; ".join(seen.warnings) if isinstance(seen, Warned) else ""


def comparable(outcome: Any) -> Any:
    """An outcome that can be counted and compared, whatever it was."""
    if isinstance(outcome, np.ndarray) and outcome.ndim:
        numbers, form = outcome.ravel().tolist(), f"array of {outcome.dtype}, {outcome.shape}"
    elif isinstance(outcome, Mapping):
        numbers, form = list(outcome.values()), f"{type(outcome).__name__} of {', '.join(map(repr, outcome))}"
    elif isinstance(outcome, list | tuple):
        numbers, form = list(outcome), type(outcome).__name__
    elif isinstance(outcome, AnySet):
        numbers, form = sorted(outcome, key=repr), type(outcome).__name__
    else:
        return _comparable_alone(outcome)
    return Several(map(comparable, numbers), form)


def _comparable_alone(outcome: Any) -> Any:
    """Of something that is no list: numbers as numbers, dates as they sort, each beside what type it is of."""
    if isinstance(outcome, np.ndarray):
        return comparable(outcome.tolist())
    if outcome is None or isinstance(outcome, Real | np.bool_ | str | bytes | Enum | type):
        return outcome
    if hasattr(outcome, "guarantee"):  # a release
        return comparable(outcome.value)
    return Several((comparable(_unpack(outcome)),), type(outcome).__name__)


def _unpack(outcome: Any) -> Any:
    if isinstance(outcome, Decimal):
        return Fraction(outcome) if outcome.is_finite() else str(outcome)
    if isinstance(outcome, complex):
        return [outcome.real, outcome.imag]
    if isinstance(outcome, datetime.date | datetime.time):
        return outcome.isoformat()
    if isinstance(outcome, datetime.timedelta):
        return outcome / datetime.timedelta(microseconds=1)
    if is_dataclass(outcome):
        return {one.name: getattr(outcome, one.name) for one in fields(outcome)}
    unpack = next((getattr(outcome, name) for name in _UNPACKING if callable(getattr(outcome, name, None))), None)
    if unpack is None:
        rule = "Numbers, words, dates; lists, dicts, arrays, columns and frames of them; dataclasses."
        what = f"An outcome of type {type(outcome).__name__!r} cannot be compared with others."
        raise _OpaqueError(what, rule=rule, suggest="a function that returns what is seen of it")
    return unpack()


def list_views(one: Any, other: Any) -> list[View]:
    """What can be seen of outcomes like these."""
    observed = [as_list(given) for given in (one, other)]
    sides = [list(map(outcome_of, side)) for side in observed]
    both = [*sides[0], *sides[1]]
    forms = [_FORMS] if len(set(map(form_of, both))) > 1 else []
    forms += [_WARNINGS] if len({_warnings_of(seen) for side in observed for seen in side}) > 1 else []
    if all(isinstance(outcome, Real) for outcome in both):
        return [_NUMBERS, _LAST_BIT, *forms]
    shape = Shape.of(both)
    if not shape.numbers:
        return [_WORDS, *forms]

    def look(name: str, see: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> View:
        return View(name, lambda side: see(shape.table(side)))

    first, second = (shape.table(side) for side in sides)
    each = [look(f"number {place + 1}", itemgetter((..., place))) for place in _most_telling(first, second)]
    towards = _direction(first, second)
    along = look("a sum of all numbers", lambda table: table @ towards)
    words = [View("its words", shape.words)] if len(shape.numbers) < shape.leaves else []
    return [
        _WORDS,
        *words,
        *each,
        along,
        look("the least power of two of a last bit", lambda t: last_bits(t).min(axis=1)),
        *forms,
    ]


@dataclass(frozen=True)
class Shape:
    """How many leaves every outcome has, and in which places all of them have numbers; none if they differ."""

    leaves: int
    numbers: tuple[int, ...]

    @classmethod
    def of(cls, outcomes: Sequence[Any]) -> Shape:
        """What outcomes have in common; single words have no leaves."""
        found = [_leaves(one) for one in outcomes if isinstance(one, tuple)]
        leaves = {len(row) for row in found} if len(found) == len(outcomes) else {0}
        if len(leaves) > 1 or not found:
            return cls(0, ())
        columns = enumerate(zip(*found, strict=True))
        return cls(leaves.pop(), tuple(place for place, many in columns if all(isinstance(x, Real) for x in many)))

    def table(self, side: Sequence[Any]) -> NDArray[np.float64]:
        """The numbers by outcome; one that came later and has others is far from all."""
        rows = [self._row(one) for one in side]
        return np.nan_to_num(np.array(rows, np.float64), nan=-1e150, posinf=1e150, neginf=-1e150)

    def _row(self, outcome: Any) -> list[float]:
        leaves = _leaves(outcome)
        fits = len(leaves) == self.leaves and all(isinstance(leaves[place], Real) for place in self.numbers)
        return [_as_float(leaves[place]) if fits else math.nan for place in self.numbers]

    def words(self, side: Sequence[Any]) -> NDArray[Any]:
        """All that is no number, by outcome."""
        numbers = set(self.numbers)
        return _words([[x for place, x in enumerate(_leaves(one)) if place not in numbers] for one in side])


def _leaves(outcome: Any) -> list[Any]:
    """All that lies in an outcome, in order."""
    if isinstance(outcome, tuple) and not any(isinstance(part, tuple) for part in outcome):
        return list(outcome)
    return [leaf for part in outcome for leaf in _leaves(part)] if isinstance(outcome, tuple) else [outcome]


def form_of(outcome: Any) -> str:
    """What is seen of an outcome without reading its numbers: -0 and NaN are signs of their own."""
    if isinstance(outcome, tuple):
        parts = ((form, sum(1 for _ in same)) for form, same in groupby(map(form_of, outcome)))
        form = outcome.form if isinstance(outcome, Several) else "tuple"
        return f"{form}: {', '.join(f'{count} {part}' for part, count in parts)}"
    told = type(outcome).__name__
    if isinstance(outcome, float | np.floating):
        return f"{told} nan" if math.isnan(outcome) else f"{told} -0" if str(outcome) == "-0.0" else told
    return told


def _most_telling(first: NDArray[np.float64], second: NDArray[np.float64]) -> list[int]:
    """The places of a few numbers: those whose means lie farthest apart for their spread, or whose spreads do."""
    one, other = (np.maximum(side.var(axis=0), _TINY) for side in (first, second))
    apart = np.abs(first.mean(axis=0) - second.mean(axis=0)) / np.sqrt(one + other) + np.abs(np.log(one / other))
    return sorted(np.argsort(-apart, kind="stable")[:_MOST_NUMBERS].tolist())


def _direction(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """How much each number counts in the sum that tells two sides best apart (Fisher's discriminant).

    Where several numbers share a noise, that is a sum in which it cancels.
    """
    spread = np.sqrt(np.maximum(first.var(axis=0) + second.var(axis=0), _TINY))
    apart = (first.mean(axis=0) - second.mean(axis=0)) / spread
    apart = apart / max(float(np.abs(apart).max()), _TINY)
    if len(spread) <= _MOST_TOGETHER:
        shared = sum(
            np.cov((side - side.mean(axis=0)) / spread, rowvar=False).reshape(len(spread), -1)
            for side in (first, second)
        )
        apart = np.linalg.solve(shared + _RIDGE * np.eye(len(spread)), apart)
        apart = apart / max(float(np.abs(apart).max()), _TINY)
    found: NDArray[np.float64] = apart / spread
    return found


def as_list(given: Any) -> list[Any]:
    """Outcomes as plain objects."""
    return list(given.tolist()) if isinstance(given, np.ndarray) else list(given)


def _numbers(side: Sequence[Any]) -> NDArray[np.float64]:
    numbers = np.array([_as_float(one) if isinstance(one, Real) else np.nan for one in side], np.float64)
    return np.nan_to_num(numbers, nan=_NOT_A_NUMBER)


def _as_float(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _last_bits(side: Sequence[Any]) -> NDArray[np.float64]:
    """Of whole numbers of any size, else of floats."""
    if not all(isinstance(one, int) for one in side):
        return last_bits(_numbers(side))
    return np.array([(one & -one).bit_length() - 1 if one else _OF_ZERO for one in side], np.float64)


def _words(side: Sequence[Any]) -> NDArray[Any]:
    return np.array([repr(outcome) for outcome in side])


def last_bits(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """The power of two of each number's last bit: every float is a multiple of that, and of no larger one.

    >>> last_bits(np.array([3.0, 0.5, 0.75, 0.1])).tolist()
    [0.0, -1.0, -2.0, -55.0]
    """
    finite = np.where(np.isfinite(numbers) & (numbers != 0), numbers, 1.0)
    parts, exponents = np.frexp(finite)
    whole = np.abs(np.ldexp(parts, _BITS)).astype(np.int64)
    trailing = np.frexp((whole & -whole).astype(np.float64))[1] - 1
    found: NDArray[np.float64] = (exponents - _BITS + trailing).astype(np.float64)
    return np.where(finite == numbers, found, _OF_ZERO)


_NUMBERS = View("", _numbers)
_WORDS = View("", _words)
_LAST_BIT = View("the power of two of the last bit", _last_bits)
_FORMS = View("its form", lambda side: np.array([form_of(outcome) for outcome in side]))
_WARNINGS = View("its warnings", np.array, at_warnings=True)
