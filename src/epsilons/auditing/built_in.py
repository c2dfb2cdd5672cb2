"""The claims of mechanisms, the package's and one's own: by the question they serve."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, cast

from epsilons.auditing.claims import Claim, Data
from epsilons.auditing.views import observe
from epsilons.errors import PlanError
from epsilons.guarantee import NANO, to_epsilon
from epsilons.measure import FEMTO
from epsilons.mechanisms.base import Mechanism, Weighing, weighting_of
from epsilons.mechanisms.vetting import stated_charges
from epsilons.noise.entropy import system
from epsilons.preferences import Roster, roster_of
from epsilons.statistics.base import Answer, Question
from epsilons.statistics.distributions import NoisySums
from epsilons.summaries.arrays import ArrayPeople

#: By which one answer is drawn, and by which many are, or the law of answers is told.
_ONE = ("draw", "laws", "noise", "sampled_tally", "settle", "level_answers")
DRAWING = (*_ONE, "many_answers", "simulate", "distribution", "noisy_sums")


def claim_of(
    mechanism: Mechanism,
    question: Question,
    epsilons: Sequence[float],
    domain: Sequence[Any],
    name: str = "",
    *,
    scaled: Roster | None = None,
    shape: Callable[[Data], Any] | None = None,
) -> Claim:
    """What a mechanism claims of a question: nobody loses more than they are charged.

    `scaled` is the roster with what people spend of their epsilons, where that is not all of them or a strength;
    `shape` makes the values of a question from a data set, of which somebody's value may be None.
    """
    rate = question.rate
    roster = scaled or (roster_of(list(epsilons)) if rate is None else _strengths(epsilons, question))
    charges = stated_charges(mechanism, question, roster.levels)
    numbers = all(value is None or not isinstance(value, str) for value in domain)

    def people(data: Data) -> ArrayPeople:
        given = [math.nan if one is None and numbers else one for one in data] if shape is None else shape(data)
        return ArrayPeople.of(given, roster)

    def charged(code: int) -> float:
        cost = charges[code] if rate is None else rate.cost(charges[code])
        return to_epsilon(cost) if rate is None or cost is None else rate.measure.epsilon(cost) / NANO

    known = None
    if isinstance(mechanism, Weighing) and rate is None:
        weighting = weighting_of(mechanism, question, roster.levels)
        if weighting.chances is None:
            losses = weighting.losses()
            known = tuple(float(losses[code] / NANO) for code in roster.codes)
    costs = [None if rate is None or charge is None else rate.cost(charge) for charge in charges]
    rhos = tuple(None if costs[code] is None else Fraction(costs[code] or 0, FEMTO) for code in roster.codes)
    kinds = type(mechanism), type(question.statistic)
    ours = not any(_says_itself(kind, DRAWING) for kind in kinds)
    told = ours and mechanism.noisy_sums(question, people((domain[0],) * len(roster))) is not None
    draw = _draw_each if any(_says_itself(kind, _ONE) for kind in kinds) else _simulate
    return Claim(
        name or f"{question.statistic.name} by {mechanism.name}, {question.neighbors}",
        tuple(epsilons),
        tuple(charged(code) for code in roster.codes),
        question.neighbors,
        tuple(domain),
        law=lambda data: mechanism.distribution(question, people(data)),
        draw=lambda data, size: draw(mechanism, question, people(data), size),
        known=known,
        sums=(lambda data: cast(NoisySums, mechanism.noisy_sums(question, people(data)))) if told else None,
        delta=question.measure.delta,
        rhos=None if rate is None else rhos,
        looked_at_too=not ours,
    )


def _simulate(mechanism: Mechanism, question: Question, people: ArrayPeople, size: int) -> Any:
    try:
        return mechanism.simulate(question, people, system(), size)
    except PlanError:  # only single numbers are drawn in bulk
        return _draw_each(mechanism, question, people, size)


def _draw_each(mechanism: Mechanism, question: Question, people: ArrayPeople, size: int) -> list[Any]:
    """Answers one by one, as a release draws them, with all that it tells beside them."""
    return [observe(lambda: _seen(mechanism.draw(question, people, system()))) for _ in range(size)]


def _seen(answer: Answer) -> Any:
    """The value, its details, and the sums from which errors and intervals are told."""
    beside = [part for part in (answer.details, answer.sums) if part]
    return (answer.value, *beside) if beside else answer.value


def _strengths(epsilons: Sequence[float], question: Question) -> Roster:
    """Everyone at the strength that all of their epsilon pays for."""
    found, used = roster_of(list(epsilons)).take_share(Fraction(1), question.rate)
    if used is not None:
        raise PlanError("An epsilon is too small for this delta.", suggest="a larger epsilon, or a larger delta")
    return found


def _says_itself(kind: type, names: Sequence[str]) -> bool:
    """Whether a class from outside has a way of its own to draw, or its own word for the law of that."""
    return any(name in vars(one) for one in kind.__mro__ if not _is_ours(one) for name in names)


def _is_ours(kind: type) -> bool:
    """Whether a class stands in a module of the package, whatever it says of itself."""
    where = kind.__module__
    inside = where.startswith(f"{__name__.split('.')[0]}.") or where in ("builtins", "abc")
    return inside and getattr(sys.modules.get(where), kind.__qualname__, None) is kind
