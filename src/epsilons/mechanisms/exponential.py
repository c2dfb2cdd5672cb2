"""Paper 1's own exponential mechanism, PE: answers that would need cheap changes are likely."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from epsilons.errors import PlanError
from epsilons.guarantee import NANO
from epsilons.mechanisms import surrogate
from epsilons.mechanisms.base import NEEDS_PUBLIC_COUNT, Answer, Charges, Mechanism, register
from epsilons.mechanisms.countbar import CountBar
from epsilons.mechanisms.errorbars import ErrorBar
from epsilons.mechanisms.outward import RankCost, outward
from epsilons.noise.entropy import Entropy
from epsilons.noise.segments import Block, SegmentSampler
from epsilons.preferences import Levels, roster_of
from epsilons.statistics.base import Moments
from epsilons.statistics.count import Count
from epsilons.statistics.order import Order
from epsilons.statistics.people import ArrayPeople, People
from epsilons.statistics.question import Question

_UNIT = Fraction(1, 2 * NANO)


@register
@dataclass(frozen=True)
class Exponential(Mechanism):
    """Answer r with a chance that falls with the cheapest set of people to change so that r becomes true.

    Definition: Pr[r] proportional to exp(-cost(r)/2), cost(r) = the least sum of eps_i over people whose values could
                be changed so that r is the true answer.
    Theorem:    Jorgensen et al. 2015, Definition 10 and Theorem 6 (corrected for ties, even n, any rank and answers
                that nobody has: see `outward.RankCost`).
    Guarantee:  eps_i-PDP, one person replaced. A missing person stands at a public value (count: 0; order statistics:
                the grid point nearest the centre), so it holds at the same epsilon for one person absent.
    Cost:       eps_i charged to each person.
    Error:      the mechanism's own distribution on a public stand-in; no prediction for minimum and maximum.
    """

    name: ClassVar[str] = "exponential"
    gist: ClassVar[str] = "an answer is likely if few and open people would make it true"
    imputes: ClassVar[bool] = True

    def refuses(self, question: Question, levels: Levels) -> str | None:
        if question.statistic.private_count:
            return NEEDS_PUBLIC_COUNT
        if isinstance(question.statistic, Count) and levels.left_out:
            return "it has no way to count people who have nothing left to spend"
        if isinstance(question.statistic, (Count, Order)):
            return None
        return "it serves counts and order statistics"

    def charge(self, question: Question, levels: Levels) -> Charges:
        return levels.grants

    def predict_error(self, question: Question, levels: Levels) -> float | None:
        if isinstance(question.statistic, Count):
            return surrogate.count_error(levels, 0.5 if question.density is None else question.density)
        return surrogate.rank_error(question, levels)

    def worst_error(self, question: Question, levels: Levels) -> float | None:
        """Counts only: the cheapest people to change may all stand on one side of the answer."""
        if isinstance(question.statistic, Count):
            return surrogate.worst_count_error(levels)
        return None

    def error_model(self, question: Question, levels: Levels, moments: Moments) -> ErrorBar | None:
        if not isinstance(question.statistic, Count):
            return None
        population = (moments.variance * levels.people) ** 0.5
        return CountBar(levels.grants, levels.sizes, population, question.assume == "nothing")

    def sampler(self, question: Question, people: People) -> tuple[SegmentSampler, Count | Order]:
        """The answers as segments; for a count an outcome is the count, else a grid point."""
        statistic, grants = question.statistic, people.levels.grants
        if isinstance(statistic, Count):
            ones = people.tally(statistic)[0][:, 0]
            return SegmentSampler([count_block(ones, people.levels)], _UNIT), statistic
        assert isinstance(statistic, Order)
        cells = people.cells(statistic).with_missing_at(statistic.default_cell)
        cost = RankCost(grants, cells.totals, statistic.rank(cells.people))
        blocks: Iterator[Block] = outward(statistic, cells, cost)
        return SegmentSampler(blocks, _UNIT), statistic

    def draw(self, question: Question, people: People, entropy: Entropy) -> Answer:
        sampler, statistic = self.sampler(question, people)
        outcome = sampler.draw(entropy)
        return Answer(outcome if isinstance(statistic, Count) else statistic.value(outcome))

    def simulate(self, question: Question, people: People, entropy: Entropy, size: int) -> NDArray[np.float64]:
        sampler, statistic = self.sampler(question, people)
        outcomes = sampler.draw_many(entropy, size)
        return outcomes.astype(float) if isinstance(statistic, Count) else statistic.outcomes()[outcomes]

    def distribution(self, question: Question, people: People) -> tuple[NDArray[Any], NDArray[np.float64]]:
        sampler, statistic = self.sampler(question, people)
        outcomes, chances = sampler.probabilities()
        with np.errstate(divide="ignore"):
            logs = np.log(chances)
        return outcomes if isinstance(statistic, Count) else statistic.outcomes()[outcomes], logs


def count_block(ones: NDArray[np.int64], levels: Levels) -> Block:
    """The possible counts around the true one: two runs per level, along which each step costs that level's epsilon.

    Going up changes zeros into ones, the cheapest people first; going down changes ones into zeros.
    """
    true = int(ones.sum())
    first, direction, count, cost, slope = [true], [1], [1], [0], [0]
    for step in (1, -1):
        outcome, price = true, 0
        for grant, size, have in zip(levels.grants, levels.sizes, ones.tolist(), strict=True):
            changeable = size - have if step > 0 else have
            if grant is None or changeable == 0:
                continue
            first.append(outcome + step)
            direction.append(step)
            count.append(changeable)
            cost.append(price + grant)
            slope.append(grant)
            outcome += step * changeable
            price += grant * changeable
    return Block(first=first, direction=direction, count=count, cost=cost, slope=slope, left_over=0, floor=0)


def count_pmf(values: Any, epsilons: Any) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Every possible count and its exact probability.

    >>> outcomes, probabilities = count_pmf([1, 0], [1.0, 2.0])
    >>> outcomes.tolist(), probabilities.round(4).tolist()
    ([0, 1, 2], [0.3072, 0.5065, 0.1863])
    """
    people = ArrayPeople.of(values, roster_of(epsilons))
    sampler, _ = Exponential().sampler(Question(Count()), people)
    return fill_outcomes(sampler, np.arange(people.levels.people + 1))


def order_pmf(
    values: Any, epsilons: Any, *, rank: int, bounds: tuple[float, float], step: float | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Every grid point and its exact probability of being released as the value at a 0-based rank.

    >>> outcomes, probabilities = order_pmf([3, 5, 6, 9, 11], [.1, 1, 1, .5, 1], rank=2, bounds=(1, 12), step=1)
    >>> int(outcomes[probabilities.argmax()])
    6
    """
    people = ArrayPeople.of(values, roster_of(epsilons))
    if isinstance(rank, bool) or not isinstance(rank, (int, np.integer)) or not 0 <= rank < people.levels.people:
        raise PlanError(f"rank={rank!r} is not allowed.", rule="Ranks are 0-based, less than the number of people.")
    statistic = Order(bounds, step, from_low=int(rank), label="quantile")
    sampler, _ = Exponential().sampler(Question(statistic), people)
    return fill_outcomes(sampler, statistic.outcomes())


def fill_outcomes(sampler: SegmentSampler, outcomes: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Answers that public people rule out have probability 0 and are listed too."""
    place, chance = sampler.probabilities()
    probabilities = np.zeros(len(outcomes))
    probabilities[place] = chance
    return outcomes, probabilities
