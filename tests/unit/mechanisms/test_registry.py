"""Names of mechanisms: what one promises does not change under those who ask for it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import pytest

import epsilons as eps
from epsilons.mechanisms.base import Weighing, create, kind_for, register
from epsilons.preferences import Levels
from epsilons.statistics.base import Question, Weighting
from epsilons.statistics.count import Count
from epsilons.statistics.order import median

pytestmark = pytest.mark.usefixtures("own_registry")


def make(name: str, families: tuple[str, ...] = ("linear",), module: str = __name__) -> type[Weighing]:
    @dataclass(frozen=True)
    class Own(Weighing):
        def weigh(self, question: Question, levels: Levels) -> Weighting:
            return Weighting((1,) * len(levels.grants), 1, Fraction(levels.smallest))

    Own.name, Own.families, Own.__module__ = name, families, module
    return Own


def test_the_name_of_a_mechanism_of_another_file_is_taken() -> None:
    before = type(create("weighted", Count()))
    with pytest.raises(eps.PlanError, match="There is a mechanism 'weighted' already"):
        register(make("weighted"))
    assert type(create("weighted", Count())) is before


def test_a_plan_knows_a_mechanism_that_was_registered_after_it() -> None:
    epsilons = [0.1, 0.7, 1.3]
    assert "own" not in [row.mechanism for row in eps.plan("count", epsilons).rows]
    register(make("own"))
    assert "own" in [row.mechanism for row in eps.plan("count", epsilons).rows]


def test_a_class_defined_again_takes_its_own_place() -> None:
    first, second = make("own"), make("own")
    register(first)
    register(second)
    assert kind_for("own", Count()) is second


def test_classes_of_one_name_share_the_statistics_out() -> None:
    counts, orders = make("own"), make("own", ("order",))
    register(counts)
    register(orders)
    assert kind_for("own", Count()) is counts
    assert kind_for("own", median((0, 1))) is orders
