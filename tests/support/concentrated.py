"""What people lose of a concentrated account, exactly: on small inputs, over every pair of neighbours."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any

import numpy as np

from epsilons.auditing import ABSENT
from epsilons.measure import FEMTO, Measure, Rate
from epsilons.mechanisms.base import Mechanism, Weighing, charges_of, weighting_of, why_refused
from epsilons.mechanisms.mixed import MixedMean
from epsilons.preferences import Levels, Roster, roster_of
from epsilons.statistics.additive import Additive
from epsilons.statistics.base import Question
from epsilons.statistics.gaussian import Gaussian
from epsilons.summaries.arrays import ArrayPeople
from support.small_worlds import NEIGHBORS, ROSTERS, WORLDS, variants

MEASURE = Measure(Fraction(1, 10**6))
ORDERS = (1.01, 1.5, 2.0, 4.0, 16.0, 64.0)


@dataclass(frozen=True)
class Case:
    """One mechanism on a small world: its question, everyone at the strength that all of their grant pays for."""

    kind: str
    mechanism: Mechanism
    question: Question
    epsilons: tuple[float, ...]

    @property
    def rate(self) -> Rate:
        found = self.question.rate
        assert found is not None
        return found

    @property
    def roster(self) -> Roster:
        return roster_of(list(self.epsilons)).take_share(Fraction(1), self.rate)[0]

    @property
    def levels(self) -> Levels:
        return self.roster.levels

    @property
    def rhos(self) -> list[Fraction | None]:
        """What each level is charged, in rho."""
        costs = [self.rate.cost(nano) for nano in charges_of(self.mechanism, self.question, self.levels)]
        return [None if cost is None else Fraction(cost, FEMTO) for cost in costs]


def cases(name: str, kinds: Sequence[str], rosters: Sequence[tuple[float, ...]] = ROSTERS) -> Iterator[Case]:
    """All that a mechanism serves here under a delta."""
    for kind, neighbors, epsilons in itertools.product(kinds, NEIGHBORS, rosters):
        question = Question(WORLDS[kind][0], neighbors, measure=MEASURE)
        for mechanism in variants(name, question.statistic, epsilons):
            made = Case(kind, mechanism, question, epsilons)
            if isinstance(getattr(mechanism, "threshold", None), float):
                continue  # a number of one's own speaks of strengths here
            if why_refused(mechanism, question, made.levels) is None:
                yield made


def noises(case: Case) -> list[list[tuple[int, Gaussian]]] | None:
    """By level, of each part: (its weight, the law of its noise); None where noise is not Gaussian."""
    statistic, mechanism = case.question.statistic, case.mechanism
    assert isinstance(statistic, Additive)
    if isinstance(mechanism, MixedMean):
        laws = mechanism.laws(case.question, case.levels)
        return [*([(1, law) for law in own] for own in laws), *[[]] * (len(case.levels.grants) - len(laws))]  # type: ignore[list-item]
    if not isinstance(mechanism, Weighing):
        return None
    weighting = weighting_of(mechanism, case.question, case.levels)
    found = statistic.laws(case.question, weighting)
    if not all(isinstance(law, Gaussian) for law in found):
        return None
    return [[(weight, law) for law in found] for weight in weighting.weights]  # type: ignore[misc]


def moves(case: Case) -> Iterator[list[Any]]:
    """How far one person can move the parts: every pair of values, or a value and nobody."""
    statistic, domain = case.question.statistic, WORLDS[case.kind][1]
    assert isinstance(statistic, Additive)

    def contribution(value: float) -> list[Any]:
        # Everyone's parts add up, so that one person by themselves tells what they add.
        return [part[0].astype(object) for part in statistic.tally(ArrayPeople.of([value], roster_of([1.0])))]

    for one, other in itertools.combinations([*domain, *([] if math.isnan(domain[-1]) else [ABSENT])], 2):
        if case.question.neighbors == "replace" or math.isnan(other):
            yield [a - b for a, b in zip(contribution(one), contribution(other), strict=True)]


def largest_part(case: Case) -> Fraction | None:
    """The largest loss of anyone, as a part of what they are charged: in exact fractions. None: nothing Gaussian."""
    by_level, worst = noises(case), Fraction(0)
    if by_level is None:
        return None
    for laws, rho in zip(by_level, case.rhos, strict=True):
        for moved in moves(case) if rho is not None else ():
            lost = sum(
                (Fraction(int((weight * away) @ (weight * away))) / law.variance
                 for (weight, law), away in zip(laws, moved, strict=True)), Fraction(0),
            )  # fmt: skip
            assert rho or not lost, "charged nothing and lost something"
            worst = max(worst, lost / 2 / rho) if rho else worst
    return worst


def renyi(law: np.ndarray, other: np.ndarray, order: float) -> float:
    """D_a(P||Q) from natural logarithms of chances."""
    if np.any((law > -np.inf) & (other == -np.inf)):
        return math.inf
    here = law > -np.inf
    inside = order * law[here] + (1 - order) * other[here]
    top = inside.max()
    return float((top + math.log(np.exp(inside - top).sum())) / (order - 1))


def largest_divergence(case: Case) -> float:
    """max D_a/(a rho) over all data sets of three, everyone in them, all neighbours and several orders."""
    domain, roster, worst = WORLDS[case.kind][1], case.roster, 0.0
    laws: dict[tuple[float, ...], np.ndarray] = {}

    def law(data: tuple[float, ...]) -> np.ndarray:
        key = tuple(-99.0 if math.isnan(value) else value for value in data)
        if key not in laws:
            laws[key] = case.mechanism.distribution(case.question, ArrayPeople.of(list(data), roster))[1]
        return laws[key]

    for data in itertools.product(domain, repeat=len(case.epsilons)):
        for person, code in enumerate(roster.codes):
            rho = case.rhos[code]
            for value in (ABSENT,) if case.question.neighbors == "absent" else domain:
                near = (*data[:person], value, *data[person + 1 :])
                if rho is None:
                    continue
                for one, other in ((data, near), (near, data)):
                    for order in ORDERS:
                        lost = renyi(law(one), law(other), order)
                        worst = max(worst, lost / (order * float(rho)) if rho else (0.0 if lost < 1e-12 else math.inf))
    return worst


def with_deviation(case: Case, factor: Fraction) -> Case:
    """A planted bug: noise whose standard deviation is so much of what it should be."""

    class Narrow(type(case.question.statistic)):  # type: ignore[misc]
        @property
        def joint_square(self) -> Fraction:
            return super().joint_square * factor**2

    return replace(case, question=replace(case.question, statistic=as_another(case.question.statistic, Narrow)))


def as_another(statistic: Any, kind: type) -> Any:
    """The same statistic as another class has it."""
    return kind(**{one.name: getattr(statistic, one.name) for one in fields(statistic) if one.init})
