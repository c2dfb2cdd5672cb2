"""The personalized exponential mechanism, PE: answers that would need cheap changes are likely."""

import math
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from epsilons.accuracy import order as order_accuracy
from epsilons.accuracy.additive import Errors
from epsilons.accuracy.count import CountBar, count_error, worst_count_error
from epsilons.accuracy.intervals import ErrorBar
from epsilons.arguments.checks import check_whole, refuse
from epsilons.errors import Argument
from epsilons.guarantee import NANO
from epsilons.mechanisms.base import Mechanism, register
from epsilons.noise.entropy import Entropy
from epsilons.noise.segments import Block, SegmentSampler
from epsilons.preferences import Levels, roster_of
from epsilons.statistics.base import Answer, Floats, Question
from epsilons.statistics.choice import Mode
from epsilons.statistics.count import Count
from epsilons.statistics.order import Order
from epsilons.statistics.outward import RankCost, outward
from epsilons.statistics.winning import Standing, cheapest
from epsilons.summaries import People
from epsilons.summaries.arrays import ArrayPeople

#: Every option is compared with all others.
_MOST_OPTIONS = 256


class Exponential(Mechanism):
    """Answer r with a chance that falls with the cheapest set of people to change so that r becomes true.

    Pr[r] is proportional to exp(-cost(r)/2), cost(r) = the least sum of eps_i over people whose values could be changed
    so that r is the true answer.
    """

    name: ClassVar[str] = "exponential"
    serves_only: ClassVar[str] = "it serves counts, order statistics and modes"
    gist: ClassVar[str] = "an answer is likely if few and open people would make it true"
    imputes: ClassVar[bool] = True
    bounded_range: ClassVar[bool] = True

    #: What one nano-epsilon of cost is in the exponent.
    unit: ClassVar[Fraction] = Fraction(1, 2 * NANO)

    @abstractmethod
    def blocks(self, question: Question, people: People) -> Iterable[Block]:
        """The answers as segments."""

    def sampler(self, question: Question, people: People) -> SegmentSampler:
        """What draws an answer."""
        return SegmentSampler(self.blocks(question, people), self.unit)

    def outcomes(self, question: Question, drawn: NDArray[np.int64]) -> NDArray[Any]:
        """The answers that the sampler's outcomes stand for."""
        return drawn

    def draw(self, question: Question, people: People, entropy: Entropy) -> Answer:
        return Answer(self.sampler(question, people).draw(entropy))

    def simulate(self, question: Question, people: People, entropy: Entropy, size: int) -> Floats:
        return self.outcomes(question, self.sampler(question, people).draw_many(entropy, size)).astype(float)

    def distribution(self, question: Question, people: People) -> tuple[NDArray[Any], Floats]:
        drawn, chances = self.sampler(question, people).probabilities()
        with np.errstate(divide="ignore"):
            return self.outcomes(question, drawn), np.log(chances)


@register
@dataclass(frozen=True)
class ExponentialCount(Exponential):
    """Answer a count with a chance that falls with the cheapest people to change so that it becomes true.

    Definition: Pr[r] proportional to exp(-cost(r)/2); above the true count cost(r) is the sum of the smallest epsilons
                among as many zeros as are missing, below it among as many ones as are too many.
    Theorem:    Jorgensen et al. 2015, Definition 10 and Theorem 6.
    Guarantee:  eps_i-PDP, one person replaced; a missing person counts as 0, so it holds for one person absent, too.
    Cost:       eps_i charged to each person.
    Error:      the mechanism's own distribution on a public stand-in.
    """

    families: ClassVar[tuple[str, ...]] = ("linear",)
    statistics: ClassVar[tuple[str, ...] | None] = ("count",)
    needs_public_count: ClassVar[bool] = True

    def refuses(self, question: Question, levels: Levels) -> str | None:
        left_out = "it has no way to count people who have nothing left to spend" if levels.left_out else None
        return super().refuses(question, levels) or left_out

    def predict_error(self, question: Question, levels: Levels) -> float | None:
        return count_error(levels, 0.5 if question.density is None else question.density, question.assume)

    def worst_error(self, question: Question, levels: Levels) -> float | None:
        """The cheapest people to change may all stand on one side of the answer."""
        return worst_count_error(levels)

    def error_bars(self, question: Question, levels: Levels, answer: Answer) -> tuple[ErrorBar, ...] | None:
        population = (cast(Count, question.statistic).guess(question).variance * levels.size) ** 0.5
        nothing = math.isinf(question.assume)
        related = 0.0 if nothing else question.assume
        told = related * _spread_shown(levels, answer)
        return (CountBar(levels.grants, levels.sizes, population, nothing, related, told),)

    def condition(self, question: Question, levels: Levels, answer: Answer | None = None) -> str:
        return question.condition(spreads=() if answer is None else (_spread_shown(levels, answer),))

    def stated_error(self, question: Question, levels: Levels, answer: Answer) -> Errors:
        """On the stand-ins with as many ones as were counted; if nothing is assumed, the worst there could be."""
        if math.isinf(question.assume):
            return super().stated_error(question, levels, answer)
        ones = min(max(answer.value / levels.size, 0.0), 1.0)
        return count_error(levels, ones, question.assume)

    def blocks(self, question: Question, people: People) -> Iterable[Block]:
        ones = people.tally(cast(Count, question.statistic))[0][:, 0]
        return [count_block(ones, people.levels)]


def _spread_shown(levels: Levels, answer: Answer) -> float:
    """That of one person's part in a count as released, which is taken to be half a person off none and everyone."""
    ones = min(max(answer.value, 0.5), levels.size - 0.5) / levels.size
    return math.sqrt(ones * (1 - ones))


@register
@dataclass(frozen=True)
class ExponentialOrder(Exponential):
    """Answer a grid point with a chance that falls with the cheapest people to change so that it is at the rank.

    Definition: Pr[r] proportional to exp(-cost(r)/2), cost(r) as in `statistics.outward.RankCost`.
    Theorem:    Jorgensen et al. 2015, Definition 10 and Theorem 6 (corrected for ties, even n, any rank and answers
                that nobody has).
    Guarantee:  eps_i-PDP, one person replaced; a missing person stands at the grid point nearest the centre, so it
                holds at the same epsilon for one person absent.
    Cost:       eps_i charged to each person.
    Error:      the mechanism's own distribution on a public stand-in; no prediction for minimum and maximum.
    """

    families: ClassVar[tuple[str, ...]] = ("order",)
    needs_public_count: ClassVar[bool] = True

    def predict_error(self, question: Question, levels: Levels) -> float | None:
        return order_accuracy.rank_error(question, levels)

    def blocks(self, question: Question, people: People) -> Iterable[Block]:
        statistic = cast(Order, question.statistic)
        cells = people.cells(statistic).with_missing_at(statistic.default_cell)
        cost = RankCost(people.levels.grants, cells.totals, statistic.rank(cells.people))
        return outward(statistic.points, cells, cost)

    def outcomes(self, question: Question, drawn: NDArray[np.int64]) -> NDArray[Any]:
        return cast(Order, question.statistic).outcomes()[drawn]

    def draw(self, question: Question, people: People, entropy: Entropy) -> Answer:
        return Answer(cast(Order, question.statistic).value(self.sampler(question, people).draw(entropy)))


@register
@dataclass(frozen=True)
class ExponentialChoice(Exponential):
    """Answer an option with a chance that falls with the cheapest people to change so that it is the most frequent.

    Definition: Pr[r] proportional to exp(-cost(r)/2), cost(r) as in `statistics.winning.Standing`.
    Theorem:    Jorgensen et al. 2015, Definition 10 and Theorem 6.
    Guarantee:  eps_i-PDP, one person replaced; whoever is missing, or does not meet a condition, names no option, so
                that it holds at the same epsilon for one person absent.
    Cost:       eps_i charged to each person.
    Error:      of K options the cost is at most 2 ln K on average, and pays for so many of the strictest people; each
                makes up for two voices. Nothing is assumed.
    """

    families: ClassVar[tuple[str, ...]] = ("choice",)

    def refuses(self, question: Question, levels: Levels) -> str | None:
        statistic = question.statistic
        if (refusal := super().refuses(question, levels)) is not None or not isinstance(statistic, Mode):
            return refusal
        scope = statistic.scope
        if (
            statistic.k > 1
            or statistic.summary != "bins"
            or (scope is not None and (scope.rows > 1 or scope.cells > 1))
        ):
            return "it changes people's one row for one option: no top, no totals, no groups, no further rows"
        return f"it compares at most {_MOST_OPTIONS} options" if statistic.bins > _MOST_OPTIONS else None

    def condition(self, question: Question, levels: Levels, answer: Answer | None = None) -> str:
        return question.condition(alike=True)

    def predict_error(self, question: Question, levels: Levels) -> float | None:
        budget = 2 * math.log(cast(Mode, question.statistic).bins) * NANO
        afforded = cheapest(levels.grants, levels.sizes, budget)
        everyone = sum(size for grant, size in zip(levels.grants, levels.sizes, strict=True) if grant is not None)
        return float(levels.size if afforded >= everyone else min(2 * afforded + levels.left_out, levels.size))

    worst_error = predict_error

    def stated_error(self, question: Question, levels: Levels, answer: Answer) -> Errors:
        return self.predict_error(question, levels)

    def why_no_interval(self, question: Question) -> str:
        return question.statistic.no_interval

    def blocks(self, question: Question, people: People) -> Iterable[Block]:
        (named,) = people.tally(cast(Mode, question.statistic))
        none = np.array(people.levels.sizes, np.int64) - named.sum(axis=1)
        costs = Standing(people.levels.grants, np.column_stack([named, none])).costs()
        places = [place for place, cost in enumerate(costs) if cost is not None]
        prices = [cost for cost in costs if cost is not None]
        return [Block(first=places, direction=1, count=1, cost=prices, slope=0, left_over=0, floor=0)]

    def draw(self, question: Question, people: People, entropy: Entropy) -> Answer:
        statistic = cast(Mode, question.statistic)
        return Answer(statistic.tell([[self.sampler(question, people).draw(entropy)]]))


def count_block(ones: NDArray[np.int64], levels: Levels) -> Block:
    """The possible counts around the true one: two runs per level, along which each step costs that level's epsilon.

    Going up changes zeros into ones, the cheapest people first; going down changes ones into zeros.
    """
    true = int(ones.sum())
    #: (first outcome, direction, how many, cost of the first, cost of each further step)
    runs = [(true, 1, 1, 0, 0)]
    for step in (1, -1):
        outcome, price = true, 0
        for grant, size, have in zip(levels.grants, levels.sizes, ones.tolist(), strict=True):
            changeable = size - have if step > 0 else have
            if grant is None or changeable == 0:
                continue
            runs.append((outcome + step, step, changeable, price + grant, grant))
            outcome, price = outcome + step * changeable, price + grant * changeable
    first, direction, count, cost, slope = (list(column) for column in zip(*runs, strict=True))
    return Block(first=first, direction=direction, count=count, cost=cost, slope=slope, left_over=0, floor=0)


def count_pmf(values: Any, epsilons: Any) -> tuple[NDArray[np.int64], Floats]:
    """Every possible count and its exact probability.

    >>> outcomes, probabilities = count_pmf([1, 0], [1.0, 2.0])
    >>> outcomes.tolist(), probabilities.round(4).tolist()
    ([0, 1, 2], [0.3072, 0.5065, 0.1863])
    """
    people = ArrayPeople.of(values, roster_of(epsilons))
    return fill_outcomes(ExponentialCount().sampler(Question(Count()), people), np.arange(people.levels.size + 1))


def order_pmf(
    values: Any, epsilons: Any, *, rank: int, bounds: tuple[float, float], step: float | None = None
) -> tuple[Floats, Floats]:
    """Every grid point and its exact probability of being released as the value at a 0-based rank.

    >>> outcomes, probabilities = order_pmf([3, 5, 6, 9, 11], [.1, 1, 1, .5, 1], rank=2, bounds=(1, 12), step=1)
    >>> int(outcomes[probabilities.argmax()])
    6
    """
    people = ArrayPeople.of(values, roster_of(epsilons))
    refusal = refuse("rank", rank, "Ranks are 0-based, less than the number of people.", Argument("rank", 0))
    statistic = Order(bounds, step, from_low=check_whole(rank, 0, people.levels.size - 1, refusal), label="quantile")
    return fill_outcomes(ExponentialOrder().sampler(Question(statistic), people), statistic.outcomes())


def fill_outcomes(sampler: SegmentSampler, outcomes: NDArray[Any]) -> tuple[NDArray[Any], Floats]:
    """Answers that public people rule out have probability 0 and are listed too."""
    probabilities, (place, chance) = np.zeros(len(outcomes)), sampler.probabilities()
    probabilities[place] = chance
    return outcomes, probabilities
