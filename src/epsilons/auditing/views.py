"""What of an outcome is looked at: an event is an interval of something that sorts, and an answer has several such.

A number is looked at as it is, and at its last bit. Noise that is drawn as a float and added to a value leaves a trace
there: near 0 floats are dense, so that an answer of small size with all its bits says that the value, too, was small
(Mironov 2012, "On significance of the least significant bits for differential privacy"). Of several numbers each is
looked at, and one sum of them all that tells two neighbours best apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: What stands for an outcome that is no number, among numbers.
_NOT_A_NUMBER = -1.7e308
#: Numbers of an answer that are looked at one by one.
_MOST_NUMBERS = 8
_BITS = 53


@dataclass(frozen=True)
class View:
    """Something that is seen of outcomes, and what it is called: "" for the outcomes themselves."""

    name: str
    see: Callable[[Sequence[Any]], NDArray[Any]]

    def tell(self, event: str) -> str:
        """An event of what is seen."""
        return event if not self.name else f"{event} for X = {self.name}"


def list_views(one: Any, other: Any) -> list[View]:
    """What can be seen of outcomes like these."""
    sides = [as_list(given) for given in (one, other)]
    if all(isinstance(outcome, Real) for side in sides for outcome in side):
        whole = all(float(outcome).is_integer() for side in sides for outcome in side)
        return [_NUMBERS] if whole else [_NUMBERS, _LAST_BIT]
    width = _width([*sides[0], *sides[1]])
    if not width:
        return [_WORDS]

    def look(name: str, see: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> View:
        return View(name, lambda side: see(_table(side, width)))

    first, second = (_table(side, width) for side in sides)
    each = [look(f"number {place + 1}", itemgetter((..., place))) for place in range(min(width, _MOST_NUMBERS))]
    spread = np.maximum(first.var(axis=0) + second.var(axis=0), 1e-300)
    towards = (first.mean(axis=0) - second.mean(axis=0)) / spread
    along = look("a sum of all numbers", lambda table: table @ towards)
    return [_WORDS, *each, along, look("the least power of two of a last bit", lambda t: last_bits(t).min(axis=1))]


def as_list(given: Any) -> list[Any]:
    """Outcomes as plain objects."""
    return list(given.tolist()) if isinstance(given, np.ndarray) else list(given)


def _numbers(side: Sequence[Any]) -> NDArray[np.float64]:
    numbers = np.array([float(one) if isinstance(one, Real) else np.nan for one in side], np.float64)
    return np.nan_to_num(numbers, nan=_NOT_A_NUMBER)


def _words(side: Sequence[Any]) -> NDArray[Any]:
    return np.array([repr(outcome) for outcome in side])


def _width(outcomes: Sequence[Any]) -> int:
    """How many numbers every outcome has; 0 where they are something else, or not as many each."""
    tuples = all(isinstance(one, tuple) and all(isinstance(part, Real) for part in one) for one in outcomes)
    widths = {len(one) for one in outcomes} if tuples else {0}
    return widths.pop() if len(widths) == 1 else 0


def _table(side: Sequence[Any], width: int) -> NDArray[np.float64]:
    """So many numbers by outcome; one that came later and has others is far from all."""
    rows = [one if isinstance(one, tuple) and len(one) == width else (np.nan,) * width for one in side]
    return np.nan_to_num(np.array(rows, np.float64), nan=-1e150, posinf=1e150, neginf=-1e150)


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
    return np.where(finite == numbers, found, 2000.0)  # 0 is a multiple of everything


_NUMBERS = View("", _numbers)
_WORDS = View("", _words)
_LAST_BIT = View("the power of two of the last bit", lambda side: last_bits(_numbers(side)))
