"""Random pairs of neighbours made of the values that break clamps, casts and sums."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from epsilons.mechanisms.base import Mechanism, list_mechanisms
from epsilons.preferences import Roster, roster_of
from epsilons.statistics import order
from epsilons.statistics.base import Question, Scope, Statistic
from epsilons.statistics.count import Count
from epsilons.statistics.histogram import Histogram
from epsilons.statistics.quantiles import several_quantiles
from epsilons.statistics.total import Mean, Sum
from epsilons.statistics.variance import Variance
from epsilons.summaries.arrays import ArrayPeople
from support.small_worlds import at_max


class Spiteful:
    """An object that raises, with its own text, whenever anybody looks at it."""

    def _refuse(self, *_: object) -> Any:
        raise ValueError("a private value")

    __hash__ = __eq__ = __lt__ = __float__ = __int__ = __bool__ = _refuse  # type: ignore[assignment]


INT64 = np.iinfo(np.int64)
FLOATS = [math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, -5e-324, 1e-300, -0.0, 0.0, 0.5, 1.0, 2.0, 50.0]
FLOATS += [99.999999999, 100.0, float(2**53), float(2**63), -float(2**63), np.nextafter(1.0, 2.0), 49.5]
INTS = [int(INT64.min), int(INT64.min) + 1, -(2**53) - 1, -1, 0, 1, 2, 50, 100, 2**53 + 1, int(INT64.max)]
OBJECTS: list[Any] = [None, math.nan, "text", "", 10**400, -(10**400), Decimal("NaN"), Decimal(1), True, 1, 0.5]
OBJECTS += [np.float32("inf"), np.int64(50), [1, 2], {}, 1 + 2j, np.complex128(1 + 2j), b"1", object(), 100, -5.0]
OBJECTS += [Spiteful()]
#: Per type of array: what a value may be, and what stands for nobody (None where the type has no such value).
KINDS: dict[str, tuple[list[Any], Any]] = {
    "float64": (FLOATS, math.nan),
    "float32": ([0.0, 1.0, math.inf, math.nan, 50.0, 1e38, 1e-45], math.nan),
    "longdouble": ([np.longdouble("1e4000"), np.longdouble("-1e4000"), np.longdouble("1e-4000"), 1.0, 50.0], math.nan),
    "int64": (INTS, None),
    "uint64": ([0, 1, 2, 50, 2**53 + 1, 2**64 - 1], None),
    "bool": ([False, True], None),
    "object": (OBJECTS, None),
}
HAS_NOBODY = ("float64", "float32", "longdouble", "object")

#: The forms of a mean of rows, with what the sum has of every epsilon.
MEANS = [(Fraction(3, 4), "split"), (Fraction(1), "pair"), (Fraction(1), "together")]
STATISTICS: list[Statistic] = [
    Count(),
    Count(centred=True),
    Sum((0.0, 100.0)),
    Sum((-1.0, 2.0), Scope()),
    Sum((-1e6, 3.7)),
    Mean((-1.0, 1.0)),
    *(Mean((0.0, 100.0), Scope(), split, 20.0, form) for split, form in MEANS),
    Variance((0.0, 100.0)),
    Variance((-1.0, 1.0), Scope()),
    Histogram(edges=(0.0, 1.0, 50.0, 100.0)),
    Histogram(edges=(0.0, 50.0, 100.0), outside="clip"),
    Histogram(categories=(0, 1, 50, "text")),
    order.median((0.0, 100.0), 1),
    order.quantile(0.3, (-1.0, 2.0), 0.125),
    order.minimum((0.0, 100.0), 5),
    order.maximum((-50.0, 50.0), 7),
    order.kth_largest(2, (0.0, 1.0), 0.1),
    several_quantiles([0.25, 0.5, 0.9], (0.0, 100.0), 10),
]


@dataclass(frozen=True)
class Neighbours:
    """One question to one mechanism, and two data sets that differ in one person."""

    mechanism: Mechanism
    question: Question
    roster: Roster
    values: NDArray[Any]
    changed: NDArray[Any]
    person: int

    @property
    def one(self) -> ArrayPeople:
        return ArrayPeople.of(self.values, self.roster)

    @property
    def other(self) -> ArrayPeople:
        return ArrayPeople.of(self.changed, self.roster)

    @property
    def level(self) -> int:
        """The level of the person who differs."""
        return int(self.roster.codes[self.person])


def array_of(values: list[Any], kind: str) -> NDArray[Any]:
    """An array of exactly this type; an object array keeps lists and the like as single entries."""
    if kind != "object":
        return np.array(values, kind)
    array = np.empty(len(values), object)
    for place, value in enumerate(values):
        array[place] = value
    return array


@st.composite
def neighbours(draw: st.DrawFn) -> Neighbours:
    """Any mechanism that serves, any statistic, up to eight people with ties among them, one of them changed."""
    epsilons = draw(st.lists(st.sampled_from([0.1, 0.5, 1.0, 1.0, 3.0, math.inf]), min_size=1, max_size=8))
    private = [i for i, e in enumerate(epsilons) if math.isfinite(e)]
    if not private:
        epsilons, private = [*epsilons, 0.7], [len(epsilons)]
    kind = draw(st.sampled_from(sorted(KINDS)))
    pool, nobody = KINDS[kind]
    place = st.integers(0, len(pool) - 1)  # not the values themselves: hypothesis would look at them
    values = [pool[k] for k in draw(st.lists(place, min_size=len(epsilons), max_size=len(epsilons)))]
    person = draw(st.sampled_from(private))
    relation = draw(st.sampled_from(["absent", "replace"] if kind in HAS_NOBODY else ["replace"]))
    changed = list(values)
    changed[person] = nobody if relation == "absent" else pool[draw(place)]
    question = Question(draw(st.sampled_from(STATISTICS)), relation)
    roster = roster_of(epsilons)
    makers = [at_max(name, question.statistic) for name in sorted(list_mechanisms())]
    serving = [mechanism for mechanism in makers if mechanism.refuses(question, roster.levels) is None]
    mechanism = draw(st.sampled_from(serving))
    return Neighbours(mechanism, question, roster, array_of(values, kind), array_of(changed, kind), person)


def _any(is_it: Callable[[Any], bool]) -> Callable[[Neighbours], bool]:
    """Somebody's value is such a one, in either data set; types are looked at first, since some objects bite."""
    return lambda pair: any(is_it(value) for array in (pair.values, pair.changed) for value in array.tolist())


def _is_float(value: Any) -> bool:
    return isinstance(value, float | np.floating)


#: Inputs that the figures of reliability list, and how to see that a pair has one.
LISTED: dict[str, Callable[[Neighbours], bool]] = {
    "NaN": _any(lambda value: _is_float(value) and bool(np.isnan(value))),
    "null": _any(lambda value: value is None),
    "inf": _any(lambda value: _is_float(value) and bool(np.isinf(value))),
    "extremes of int64": _any(lambda value: type(value) is int and value in (INT64.min, INT64.max)),
    "ties": lambda pair: len(set(map(repr, pair.values.tolist()))) < len(pair.values),
}
