"""The claims of mechanisms, the package's and one's own: by the question they serve."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from epsilons.auditing.claims import Claim
from epsilons.errors import PlanError
from epsilons.guarantee import NANO, to_epsilon
from epsilons.mechanisms.base import Mechanism, Weighing, weighting_of
from epsilons.mechanisms.vetting import stated_charges
from epsilons.noise.entropy import system
from epsilons.preferences import roster_of
from epsilons.statistics.base import Question
from epsilons.summaries.arrays import ArrayPeople


def claim_of(
    mechanism: Mechanism, question: Question, epsilons: Sequence[float], domain: Sequence[Any], name: str = ""
) -> Claim:
    """What a mechanism claims of a question: nobody loses more than they are charged."""
    if question.measure.delta is not None:
        rule = "An audit looks for losses beyond an epsilon; Gaussian noise has some, of a chance of at most delta."
        raise PlanError("A claim with a delta is not audited here.", rule=rule, suggest="leave delta out")
    roster = roster_of(list(epsilons))
    charges = stated_charges(mechanism, question, roster.levels)
    numbers = all(value is None or not isinstance(value, str) for value in domain)

    def people(data: tuple[Any, ...]) -> ArrayPeople:
        return ArrayPeople.of([math.nan if value is None and numbers else value for value in data], roster)

    known = None
    if isinstance(mechanism, Weighing):
        weighting = weighting_of(mechanism, question, roster.levels)
        if weighting.chances is None:
            losses = weighting.losses()
            known = tuple(float(losses[code] / NANO) for code in roster.codes)
    return Claim(
        name or f"{question.statistic.name} by {mechanism.name}, {question.neighbors}",
        tuple(to_epsilon(roster.levels.grants[code]) for code in roster.codes),
        tuple(to_epsilon(charges[code]) for code in roster.codes),
        question.neighbors,
        tuple(domain),
        law=lambda data: mechanism.distribution(question, people(data)),
        draw=lambda data, size: mechanism.simulate(question, people(data), system(), size),
        known=known,
    )
