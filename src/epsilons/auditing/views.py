"""What of an outcome is looked at: an event is an interval of something that sorts, and an answer has several such.

A number is looked at as it is, and at its last bit. Noise that is drawn as a float and added to a value leaves a trace
there: near 0 floats are dense, so that an answer of small size with all its bits says that the value, too, was small
(Mironov 2012, "On significance of the least significant bits for differential privacy"). Of several numbers those are
looked at that tell two neighbours best apart, and one sum of them all. Whoever sees an answer sees of what type it is,
how many numbers it has and what they are called, which warnings came with it, or that it is an error, and which: these
are outcomes as well.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from numbers import Real
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: What stands for an outcome that is no number, among numbers.
_NOT_A_NUMBER = -1.7e308
#: Numbers of an answer that are looked at one by one, and those whose noises are compared with each other.
_MOST_NUMBERS, _MOST_TOGETHER = 8, 64
#: A variance that stands for none, and what is added to those of numbers in units of their own.
_TINY, _RIDGE = 1e-200, 1e-9
_BITS = 53
#: 0 is a multiple of every power of two.
_OF_ZERO = 2000.0


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
        return self.look(list(map(_warnings_of if self.at_warnings else _outcome_of, side)))

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
        except (Exception, SystemExit, GeneratorExit) as error:
            found = f"raised {type(error).__name__}: {error}"
    told = tuple(f"{one.category.__name__}: {one.message}" for one in caught)
    return Warned(found, told) if told else found


def _outcome_of(seen: Any) -> Any:
    return seen.outcome if isinstance(seen, Warned) else seen


def _warnings_of(seen: Any) -> str:
    return "; ".join(seen.warnings) if isinstance(seen, Warned) else ""


def comparable(outcome: Any) -> Any:
    """An outcome that can be counted and compared, whatever it was."""
    if isinstance(outcome, np.ndarray) and outcome.ndim:
        numbers, form = outcome.ravel().tolist(), f"array of {outcome.dtype}, {outcome.shape}"
    elif isinstance(outcome, dict):
        numbers, form = list(outcome.values()), f"dict of {', '.join(map(repr, outcome))}"
    elif isinstance(outcome, list | tuple):
        numbers, form = list(outcome), type(outcome).__name__
    else:
        return outcome.tolist() if isinstance(outcome, np.ndarray) else outcome
    return Several(map(comparable, numbers), form)


def list_views(one: Any, other: Any) -> list[View]:
    """What can be seen of outcomes like these."""
    observed = [as_list(given) for given in (one, other)]
    sides = [list(map(_outcome_of, side)) for side in observed]
    both = [*sides[0], *sides[1]]
    forms = [_FORMS] if len(set(map(form_of, both))) > 1 else []
    forms += [_WARNINGS] if len({_warnings_of(seen) for side in observed for seen in side}) > 1 else []
    if all(isinstance(outcome, Real) for outcome in both):
        return [_NUMBERS, _LAST_BIT, *forms]
    width = _width(both)
    if not width:
        return [_WORDS, *forms]

    def look(name: str, see: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> View:
        return View(name, lambda side: see(_table(side, width)))

    first, second = (_table(side, width) for side in sides)
    each = [look(f"number {place + 1}", itemgetter((..., place))) for place in _most_telling(first, second)]
    towards = _direction(first, second)
    along = look("a sum of all numbers", lambda table: table @ towards)
    return [
        _WORDS,
        *each,
        along,
        look("the least power of two of a last bit", lambda t: last_bits(t).min(axis=1)),
        *forms,
    ]


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


def _width(outcomes: Sequence[Any]) -> int:
    """How many numbers every outcome has; 0 where they are something else, or not as many each."""
    tuples = all(isinstance(one, tuple) and all(isinstance(part, Real) for part in one) for one in outcomes)
    widths = {len(one) for one in outcomes} if tuples else {0}
    return widths.pop() if len(widths) == 1 else 0


def _table(side: Sequence[Any], width: int) -> NDArray[np.float64]:
    """So many numbers by outcome; one that came later and has others is far from all."""
    rows = [_as_row(one, width) for one in side]
    return np.nan_to_num(np.array(rows, np.float64), nan=-1e150, posinf=1e150, neginf=-1e150)


def _as_row(outcome: Any, width: int) -> tuple[float, ...]:
    fits = isinstance(outcome, tuple) and len(outcome) == width and all(isinstance(part, Real) for part in outcome)
    return tuple(map(_as_float, outcome)) if fits else (math.nan,) * width


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
