"""Mechanisms of one's own are held to their word: what they charge, and what the class they come from cannot serve."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import epsilons as eps
from epsilons.auditing import ABSENT
from epsilons.guarantee import NANO
from epsilons.mechanisms import base
from epsilons.mechanisms.base import Mechanism, Weighing, charges_of, register, why_refused
from epsilons.mechanisms.minimum import Minimum
from epsilons.mechanisms.sample import Coins
from epsilons.noise.entropy import Entropy
from epsilons.noise.laplace import discrete_laplace
from epsilons.preferences import Levels, roster_of
from epsilons.release.door import cannot_resume
from epsilons.statistics import order
from epsilons.statistics.base import Answer, Question, Rest, Scope, Statistic, Weighting, proportional
from epsilons.statistics.count import Count
from epsilons.statistics.histogram import Histogram
from epsilons.statistics.total import Mean, Sum
from epsilons.statistics.unbounded import UnboundedOrder
from epsilons.summaries import People
from support.planted import Overcharging, UnequalRanks
from support.small_worlds import BOUNDS, GRID, NEIGHBORS, WORLDS, audit_exactly
from support.wages import dataset
from unit.mechanisms.test_model_losses import LINEAR, LOGISTIC, worst_ratios

GRANTED = (0.2, 0.5, 1.0)
LEVELS = roster_of(list(GRANTED)).levels


pytestmark = pytest.mark.usefixtures("own_registry")


@dataclass(frozen=True)
class Own(Mechanism):
    """It promises to err by nothing at all, so that "auto" would take it, and must never get as far as drawing."""

    name: ClassVar[str] = "own"
    charges: ClassVar[Any] = None

    def charge(self, question: Question, levels: Levels) -> Any:
        return type(self).charges(levels)

    def predict_error(self, question: Question, levels: Levels) -> float:
        return 0.0

    worst_error = predict_error

    def draw(self, question: Question, people: People, entropy: Entropy) -> Answer:
        raise AssertionError("a mechanism that breaks its word has seen the data")

    simulate = distribution = draw  # type: ignore[assignment]


def charging(charges: Any) -> type[Own]:
    """Registered, and found by name and by "auto"."""
    kind = type("Charging", (Own,), {"charges": staticmethod(charges), "__module__": __name__})
    return register(dataclass(frozen=True)(kind))  # type: ignore[return-value]


BROKEN: dict[str, tuple[Any, str]] = {
    "more than was granted": (lambda levels: [2 * (g or 0) for g in levels.grants], "it charges .* was granted"),
    "one nano too much": (lambda levels: [g + 1 for g in levels.grants], "it charges .* was granted"),
    "negative": (lambda levels: [-1 for _ in levels.grants], "a charge of -1 is not an int"),
    "too few": (lambda levels: levels.grants[1:], r"it makes \d charges for \d levels"),
    "too many": (lambda levels: [*levels.grants, 1], r"it makes \d charges for \d levels"),
    "a fraction": (lambda levels: [Fraction(1, 3) for _ in levels.grants], r"a charge of Fraction\(1, 3\) is not"),
    "a float": (lambda levels: [0.5 for _ in levels.grants], "a charge of 0.5 is not an int of nano-epsilon"),
    "a truth": (lambda levels: [True for _ in levels.grants], "a charge of True is not an int"),
    "of numpy": (lambda levels: list(np.ones(len(levels.grants), int)), "a charge of .* is not an int of nano-epsilon"),
    "nothing at all": (lambda levels: [None for _ in levels.grants], "a charge of None is not an int"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_on_arrays_it_is_refused_by_name_and_never_chosen(name: str) -> None:
    charges, why = BROKEN[name]
    charging(charges)
    with pytest.raises(eps.PlanError, match=f"'own' cannot serve a count: {why}") as refused:
        eps.count([1, 0, 1], list(GRANTED), mechanism="own")
    assert "never more than they granted" in str(refused.value)
    for share in (1, 0.5):
        assert eps.count([1, 0, 1], list(GRANTED), share=share).mechanism != "own"
        assert eps.count([1, 0, 1], list(GRANTED), share=share, assume="nothing").mechanism != "own"
    assert "own" not in [row.mechanism for row in eps.plan("count", list(GRANTED)).rows]


@pytest.mark.parametrize("name", ["more than was granted", "one nano too much", "negative", "too few", "a float"])
def test_on_a_table_it_is_refused_with_the_same_reason_and_nobody_is_charged(name: str) -> None:
    charges, why = BROKEN[name]
    charging(charges)
    with dataset() as people:
        before = people.remaining().epsilons
        with pytest.raises(eps.PlanError, match=f"'own' cannot serve a mean: {why}"):
            people.mean("wage", bounds=(0, 100), mechanism="own", share=0.1)
        assert people.mean("wage", bounds=(0, 100), share=1e-3).mechanism != "own"
        assert len(people.history()) == 1
        left = people.remaining().epsilons
    assert all(before[level] - left[level] <= 1e-3 * level * (1 + 1e-9) for level in before)


def test_no_module_exempts_a_mechanism_from_the_check() -> None:
    kind = type("Charging", (Own,), {"charges": staticmethod(BROKEN["one nano too much"][0])})
    kind.__module__ = "epsilons.mechanisms.minimum"
    register(dataclass(frozen=True)(kind))  # type: ignore[arg-type]
    assert eps.count([1.0, 0.0], [0.5, 0.5]).mechanism != "own"


@pytest.mark.parametrize("method", ["weigh", "predict_error", "charge"])
def test_one_that_raises_is_named_before_anyone_is_charged(method: str) -> None:
    def fail(self: Any, question: Question, levels: Levels) -> Any:
        return 1 // 0

    kind = type("Raising", (Minimum,), {"name": "raising", method: fail, "__module__": __name__})
    register(dataclass(frozen=True)(kind))  # type: ignore[arg-type]
    for asked in ("auto", "raising"):
        with pytest.raises(eps.PlanError, match=r"The mechanism 'raising' failed with ZeroDivisionError"):
            eps.mean([1.0, 2.0], [0.5, 0.5], bounds=(0, 3), mechanism=asked)
    with dataset() as people:
        before = people.remaining()
        with pytest.raises(eps.PlanError, match=r"The mechanism 'raising' failed with ZeroDivisionError"):
            people.mean("wage", bounds=(0, 100))
        assert people.remaining() == before


def test_one_that_makes_no_weights_is_named() -> None:
    kind = type("Nothing", (Minimum,), {"name": "nothing", "weigh": lambda self, question, levels: None})
    with pytest.raises(eps.PlanError, match="'nothing' made no Weighting"):
        eps.audit(dataclass(frozen=True)(kind), [1.0, 1.0])


def test_a_draw_of_its_own_is_chosen_only_for_what_it_was_audited_with() -> None:
    """It forgets that a person may have several rows; the audit is of one row."""

    def draw(self: Any, question: Question, people: Any, entropy: Any) -> Any:
        return Answer(float(people.tally(question.statistic)[0].sum()) + discrete_laplace(entropy, Fraction(1, 10)))

    told = {"name": "forgetful", "draw": draw, "predict_error": lambda *given: 1e-9, "__module__": __name__}
    told["distribution"] = lambda self, question, people: Minimum().distribution(question, people)
    register(dataclass(frozen=True)(type("Forgetful", (Minimum,), told)))  # type: ignore[arg-type]
    assert "forgetful" in [row.mechanism for row in eps.plan("count", [0.5, 0.5]).rows]
    with dataset() as people:
        assert "forgetful" not in [row.mechanism for row in people.plan("count", where="wage > 3", share=0.5).rows]


def test_public_people_cannot_be_charged() -> None:
    charging(lambda levels: [g or 1 for g in levels.grants])
    with pytest.raises(eps.PlanError, match="it charges people who chose public"):
        eps.count([1, 0, 1], [0.5, 1.0, eps.PUBLIC], mechanism="own")


def test_what_is_granted_in_full_may_be_charged() -> None:
    kind = charging(lambda levels: levels.grants)
    assert charges_of(kind(), Question(Count()), LEVELS) == LEVELS.grants
    with pytest.raises(AssertionError, match="has seen the data"):
        eps.count([1, 0, 1], list(GRANTED), mechanism="own")


def test_a_mechanism_that_is_another_one_when_a_question_is_resumed_draws_nothing() -> None:
    """Charged for a tenth, and after the crash it would draw for everything."""
    charging(lambda levels: [g // 10 for g in levels.grants])
    with dataset() as people:
        with pytest.raises(AssertionError):
            people.count(mechanism="own", share=0.1)
        charging(lambda levels: levels.grants)
        with pytest.raises(eps.LedgerError) as refused:
            people.count(mechanism="own", share=0.1)
    assert str(refused.value) == str(cannot_resume())


def test_nothing_but_the_check_asks_a_mechanism_what_it_charges() -> None:
    rooms = [path for path in Path(eps.__file__).parent.rglob("*.py") if path.parent.name != "mechanisms"]
    assert [path.name for path in rooms if ".charge(question" in path.read_text(encoding="utf-8")] == []


# --- weights ----------------------------------------------------------------------------------------------------


def weighing(weigh: Any) -> Weighing:
    class Weighs(Weighing):
        name: ClassVar[str] = "weighs"

        def weigh(self, question: Question, levels: Levels) -> Weighting:
            found: Weighting = weigh(levels)
            return found

    return Weighs()


FULL = Fraction(LEVELS.largest)
MISFITS: dict[str, tuple[Any, str]] = {
    "too few": (lambda levels: Weighting((1,), 1, FULL), "it has 1 weights for 3 levels"),
    "negative": (lambda levels: Weighting((1, -1, 1), 1, FULL), "its weights are not ints from 0"),
    "floats": (lambda levels: Weighting((0.1, 0.2, 0.3), 1, FULL), "its weights are not ints from 0"),
    "no unit": (lambda levels: Weighting((0, 0, 0), 0, FULL), "its weights are not ints from 0"),
    "no rate": (lambda levels: Weighting((1, 1, 1), 1, Fraction(0)), "its weights are not ints from 0"),
    "everyone at the most open": (lambda levels: Weighting((1, 1, 1), 1, FULL), "it charges 1 where 0.2 was granted"),
    "others' coins": (lambda levels: Weighting((1,) * 3, 1, FULL, coins=Coins((1, 2, 3), NANO)), "its coins are not"),
    "coins for a lower rate": (
        lambda levels: Weighting((1,) * 3, 1, 2 * FULL, coins=Coins(levels.grants, NANO)),
        "its coins are not",
    ),
}


@pytest.mark.parametrize("name", MISFITS)
def test_weights_that_break_a_promise_are_refused(name: str) -> None:
    weigh, why = MISFITS[name]
    with pytest.raises(eps.PlanError, match=f"'weighs' cannot serve a count: {why}"):
        charges_of(weighing(weigh), Question(Count()), LEVELS)


def test_weights_cannot_be_charged_less_than_they_cost() -> None:
    class Cheap(Weighing):
        name: ClassVar[str] = "cheap"

        def weigh(self, question: Question, levels: Levels) -> Weighting:
            return proportional(levels, levels.largest, Rest.OMITTED)

        def charge(self, question: Question, levels: Levels) -> base.Charges:
            return tuple(None if g is None else g // 2 for g in levels.grants)

    with pytest.raises(eps.PlanError, match=r"it charges 0\.1 where 0\.2 was granted and 0\.2 is lost"):
        charges_of(Cheap(), Question(Count()), LEVELS)


def test_the_planted_mechanisms_are_refused_and_would_break_their_promise() -> None:
    """Without the check the first loses ten times what was granted, and the second half as much again."""
    for mechanism, question in ((Overcharging(), Question(Count())), (UnequalRanks(), Question(WORLDS["min"][0]))):
        domain = WORLDS[question.statistic.name][1]
        with pytest.raises(eps.PlanError):
            charges_of(mechanism, question, LEVELS)
        honest = replace_charge(mechanism)
        assert not audit_exactly(honest, question, GRANTED, domain).holds


def replace_charge(mechanism: Mechanism) -> Mechanism:
    """The same draws, at what people granted."""

    class AtTheGrant(type(mechanism)):  # type: ignore[misc]
        def charge(self, question: Question, levels: Levels) -> base.Charges:
            return levels.grants

    return AtTheGrant()


# --- families of mechanisms by statistics ----------------------------------------------------------------------------

#: Weights that differ, that leave people out, and that coins decide on.
UNEQUAL = {
    "proportional": lambda levels: proportional(levels, levels.largest, Rest.RESCALED),
    "some left out": lambda levels: replace(proportional(levels, levels.largest, Rest.OMITTED), weights=_cut(levels)),
    "sampled": lambda levels: replace(
        proportional(levels, levels.largest, Rest.OMITTED), coins=Coins(levels.grants, levels.largest)
    ),
}
EQUAL = {
    "one epsilon": lambda levels: Weighting((1,) * len(levels.grants), 1, Fraction(levels.smallest)),
    "those above": lambda levels: Weighting(
        tuple(int(g is None or g >= levels.largest) for g in levels.grants), 1, Fraction(levels.largest)
    ),
}


def _cut(levels: Levels) -> tuple[int, ...]:
    weights = proportional(levels, levels.largest, Rest.OMITTED).weights
    return (0, *weights[1:])


SCOPED: dict[str, tuple[Statistic, tuple[float, ...]]] = {
    "filtered count": (Count(Scope()), (1.0, ABSENT)),
    "filtered sum": (Sum(BOUNDS, Scope()), (-1.0, 2.0, ABSENT)),
    "filtered mean": (Mean.over(Scope(), BOUNDS, "absent", None), (-1.0, 2.0, ABSENT)),
    "filtered median": (replace(order.median(GRID, 1), scope=Scope()), (0.0, 4.0, ABSENT)),
    "filtered max": (replace(order.maximum(GRID, 1), scope=Scope()), (0.0, 4.0, ABSENT)),
    "least": (order.quantile(0, GRID, 1), (0.0, 4.0, ABSENT)),
    "largest": (order.quantile(1, GRID, 1), (0.0, 4.0, ABSENT)),
}
ALL = {**{kind: world for kind, world in WORLDS.items() if kind != "variance"}, **SCOPED}
RANKS = {"min", "max", "kth_largest", "filtered max"}


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("weights", [*UNEQUAL, *EQUAL])
def test_what_weights_serve_is_private_and_the_rest_is_refused(weights: str, kind: str) -> None:
    """By enumeration: ranks from an end count people, and would lose .303 of .2 with weights that differ."""
    statistic, domain = ALL[kind]
    mechanism = weighing({**UNEQUAL, **EQUAL}[weights])
    for neighbors in NEIGHBORS:
        question = Question(statistic, neighbors)
        assert why_refused(mechanism, question, LEVELS) is None
        if weights in UNEQUAL and kind in RANKS:
            with pytest.raises(eps.PlanError, match="needs the same weight for everyone who is used"):
                charges_of(mechanism, question, LEVELS)
            continue
        assert charges_of(mechanism, question, LEVELS) == mechanism.charge(question, LEVELS)
        few = (domain[0], *domain[-2:])  # the ends and nobody at all: with coins there are eight samples of each
        assert audit_exactly(mechanism, question, GRANTED, few if weights == "sampled" else domain).holds


@pytest.mark.parametrize("statistic", [LINEAR, LOGISTIC], ids=lambda s: s.name)
@pytest.mark.parametrize("neighbors", NEIGHBORS)
def test_weights_that_differ_serve_models(statistic: Any, neighbors: str) -> None:
    mechanism, question = weighing(UNEQUAL["proportional"]), Question(statistic, neighbors)
    assert charges_of(mechanism, question, LEVELS) == LEVELS.grants
    assert max(worst_ratios(mechanism, question, (0.2, 0.5, 1.0))) <= 1


STATISTICS: list[Statistic] = [
    *(statistic for statistic, _ in (*WORLDS.values(), *SCOPED.values())),
    Histogram(edges=(0.0, 1.0, 2.0), scope=Scope()),
    LINEAR,
    LOGISTIC,
    UnboundedOrder(2),
]
KINDS = [kind for kinds in base._REGISTRY.values() for kind in kinds]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_subclass_serves_nothing_that_its_family_does_not(kind: type[Mechanism]) -> None:
    """Whatever it says of itself: all families, all statistics, any number of values, another kind of privacy."""

    class Boasting(kind):  # type: ignore[misc, valid-type]
        families: ClassVar[tuple[str, ...]] = (
            "linear",
            "ratio",
            "variance",
            "regression",
            "order",
            "unbounded",
            "choice",
        )
        statistics: ClassVar[tuple[str, ...] | None] = None
        needs_public_count: ClassVar[bool] = False
        privacy: ClassVar[str] = kind.privacy

        def refuses(self, question: Question, levels: Levels) -> str | None:
            return None

    class Strengthened(Boasting):
        privacy: ClassVar[str] = "individual" if kind.privacy == "personalized" else "personalized"

    served = 0
    for statistic, privacy in itertools.product(STATISTICS, ("personalized", "individual")):
        question = replace(Question(statistic), privacy=privacy)
        able = why_refused(kind(), question, LEVELS) is None
        assert (why_refused(Boasting(), question, LEVELS) is None) == able
        assert why_refused(Strengthened(), question, LEVELS) is not None
        served += able
    assert served
