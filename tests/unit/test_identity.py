"""Two different questions never share a key: every field of a statistic and every option is part of it, or exempt."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any

import pytest

from epsilons.arguments.options import OPTIONS
from epsilons.arguments.reading import AskOptions
from epsilons.statistics.additive import Additive
from epsilons.statistics.base import Scope, Statistic
from epsilons.statistics.count import Count
from epsilons.statistics.histogram import Histogram
from epsilons.statistics.logistic import LogisticRegression
from epsilons.statistics.order import Order, quantile
from epsilons.statistics.regression import LinearRegression
from epsilons.statistics.total import Mean, Sum
from epsilons.statistics.unbounded import UnboundedOrder
from epsilons.statistics.variance import Variance
from epsilons.testing import seeded


@dataclass(frozen=True)
class Top(Histogram):
    """A statistic of somebody's own, with an argument of its own."""

    k: int = 1


SCOPE = Scope(2, ("a", "b"), 0.25)
SCOPED: list[Statistic] = [
    Count(SCOPE, "people"),
    Sum((0.0, 1.0), SCOPE),
    Mean.over(SCOPE, (0.0, 1.0), "absent", None),
    Variance((0.0, 1.0), SCOPE),
    Histogram((0.0, 1.0, 2.0), scope=SCOPE),
    Top((0.0, 1.0, 2.0), scope=SCOPE),
    replace(quantile(0.3, (0.0, 1.0)), scope=SCOPE),
    LinearRegression(("x",), ((0.0, 1.0),), (0.0, 1.0), scope=SCOPE),
    LogisticRegression(("x",), ((0.0, 1.0),), (0, 1), scope=SCOPE),
    UnboundedOrder(2),
]
OTHERS: dict[str, Any] = {
    "bounds": (0.0, 3.0),
    "scope": Scope(3, ("a", "b"), 0.25),
    "of": "rows",
    "centred": True,
    "complete": True,
    "form": "together",
    "split": Fraction(1, 7),
    "off": 0.123,
    "edges": (0.0, 1.0, 3.0),
    "outside": "clip",
    "k": 5,
    "step": 0.5,
    "q": Fraction(1, 7),
    "for_interval": Fraction(1, 3),
    "imputes": True,
    "label": "median",
    "names": ("z",),
    "target_bounds": (0.0, 9.0),
    "classes": (1, 2),
    "words": (("region", ("north", "south")),),
    "spans": ("months", ("2026-01", "2026-03")),
    "portion": Fraction(1, 3),
}
#: What a statistic of this shape cannot have beside what it has.
IMPOSSIBLE = {"categories", "from_low", "from_high"}


@pytest.mark.parametrize("statistic", SCOPED, ids=lambda one: type(one).__name__)
def test_every_field_of_a_statistic_makes_another_question(statistic: Statistic) -> None:
    for field in fields(statistic):  # type: ignore[arg-type]
        if not field.init or field.name in IMPOSSIBLE:
            continue
        other = OTHERS[field.name]
        if field.name == "bounds" and isinstance(statistic, (LinearRegression, LogisticRegression)):
            other = ((0.0, 3.0),)
        changed = replace(statistic, **{field.name: other})  # type: ignore[type-var]
        assert changed.identity() != statistic.identity(), field.name


def test_statistics_of_different_kinds_differ() -> None:
    found = [statistic.identity() for statistic in SCOPED]
    assert len(set(found)) == len(found)
    unscoped = [replace(one, scope=None).identity() for one in SCOPED if isinstance(one, (Additive, Order))]  # type: ignore[type-var]
    assert len(set(unscoped)) == len(unscoped)


#: Options that are part of a key elsewhere (which rows, the dataset's terms), or make no other question.
ELSEWHERE = {"where", "by", "missing", "complete", "neighbors", "group_epsilons", "fresh", "analyst", "for_interval"}
ELSEWHERE |= {"delta"}  # of a table it is a term of the ledger
GIVEN: dict[str, Any] = {
    "mechanism": "sample",
    "threshold": 0.5,
    "rescale": True,
    "assume": "nothing",
    "spread": 2.0,
    "density": 0.25,
    "location": 3.0,
    "privacy": "individual",
    "scale": "paper",
    "gamma": 5,
    "inside": "sample",
    "share": Fraction(1, 9),
    "error": 4.0,
    "entropy": seeded(1),
}


def test_every_option_makes_another_question_or_is_said_not_to() -> None:
    assert {option.name for option in OPTIONS} == ELSEWHERE | set(GIVEN)
    for name, value in GIVEN.items():
        assert replace(AskOptions(), **{name: value}).identity() != AskOptions().identity(), name
