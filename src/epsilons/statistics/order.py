"""Order statistics on a public grid, and how they draw: median, quantile, minimum, maximum, k-th largest.

A value goes to the nearest point of the grid lo, lo+step, ..., hi; out of bounds goes to the end. The summary is the
sorted list of (grid point, level), one entry per person, in one integer each. Mechanisms that need a public number of
people put the missing at `Order.default_cell`.

With weights an answer is a weighted quantile (`WeightCost`), or the value at a rank among the people who are used
(`RankCost`), drawn by the exponential mechanism at a factor 1/2.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from epsilons.arguments.checks import check_bounds, check_rank, check_step, exact, read_real
from epsilons.display import show_count
from epsilons.errors import Argument, PlanError
from epsilons.guarantee import NANO
from epsilons.measure import ANY_LOSS, BOUNDED_RANGE
from epsilons.noise.entropy import Entropy
from epsilons.noise.segments import Block, SegmentSampler
from epsilons.preferences import Levels
from epsilons.statistics.additive import Laplace
from epsilons.statistics.base import Answer, Floats, Scope, Statistic, Weighting
from epsilons.statistics.brackets import (
    Bracket,
    Split,
    draw_bracket,
    nearest_cut,
    place_cuts,
    round_losses,
    settle,
    weigh_cells,
)
from epsilons.statistics.distributions import Axis, product_distribution
from epsilons.statistics.outward import Cost, RankCost, WeightCost, outward
from epsilons.summaries.cells import SortedCells

if TYPE_CHECKING:
    from epsilons.statistics.base import Question
    from epsilons.summaries import People

DEFAULT_STEPS = 65_536
MAX_POINTS = 1 << 50
#: Nearer to an end a quantile is the minimum or the maximum of any roster there is, and predictions underflow.
NEAREST_Q = 1e-9


@dataclass(frozen=True)
class Order(Statistic):
    """The value at a rank: a quantile `q`, or the k-th from one end (`from_low` or `from_high`, counted from 0)."""

    bounds: tuple[float, float]
    step: float | None = None
    q: Fraction | None = None
    from_low: int | None = None
    from_high: int | None = None
    label: str = "quantile"
    scope: Scope | None = None
    #: The part of every epsilon that pays for an interval, of quantiles strictly between 0 and 1.
    for_interval: Fraction = field(default=Fraction(0), repr=False)
    #: Whether the missing stand at the centre whatever the mechanism; else those that weigh people leave them out.
    imputes: bool = field(default=False, repr=False)
    #: The part of every epsilon that is its own, where several quantiles share it.
    portion: Fraction = field(default=Fraction(1), repr=False)

    family: ClassVar[str] = "order"  # type: ignore[misc]
    summary: ClassVar[str] = "cells"  # type: ignore[misc]

    def __post_init__(self) -> None:
        object.__setattr__(self, "bounds", check_bounds(self.bounds, self.label))
        object.__setattr__(self, "span", self.bounds)
        if self.step is not None:
            object.__setattr__(self, "step", check_step(self.step))
        if not 2 <= self.points <= MAX_POINTS:
            what, hint = ("a single point", "a smaller ") if self.points < 2 else ("too many points", "a larger ")
            rule = f"Answers lie on the grid lo, lo+step, ..., hi, of at most {MAX_POINTS:,} points."
            raise PlanError(f"The grid has {what}.", rule=rule, suggest=(hint, Argument("step")))

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.label

    @cached_property
    def _low(self) -> Fraction:
        return exact(self.bounds[0])

    @cached_property
    def _width(self) -> Fraction:
        return exact(self.bounds[1]) - self._low

    @cached_property
    def spacing(self) -> Fraction:
        return self._width / DEFAULT_STEPS if self.step is None else exact(self.step)

    @cached_property
    def points(self) -> int:
        """How many answers are possible."""
        return math.floor(self._width / self.spacing) + 1

    def value(self, cell: int | Fraction) -> float | int:
        """The answer at a grid point, or between two; whole where the grid is."""
        low, step, parts = self._in_parts
        if isinstance(cell, Fraction):
            point = (low + cell * step) / parts
            return int(point) if parts == point.denominator == 1 else float(point)
        found = low + int(cell) * step
        return found if parts == 1 else found / parts

    @cached_property
    def _in_parts(self) -> tuple[int, int, int]:
        """(lowest answer, spacing, parts of one): both in whole parts, which are quicker than fractions."""
        parts = math.lcm(self._low.denominator, self.spacing.denominator)
        return int(self._low * parts), int(self.spacing * parts), parts

    def outcomes(self) -> NDArray[np.float64]:
        """Every possible answer, ascending."""
        return float(self._low) + float(self.spacing) * np.arange(self.points, dtype=np.float64)

    @property
    def default_cell(self) -> int:
        """The grid point nearest to the centre of the bounds."""
        return min(round(self._width / 2 / self.spacing), self.points - 1)

    @property
    def q_asked(self) -> Fraction:
        """The quantile asked for, of those that are one."""
        assert self.q is not None
        return self.q

    @property
    def between_ends(self) -> bool:
        """Whether it is a quantile strictly between 0 and 1, not a rank from an end."""
        return self.q is not None and 0 < self.q < 1

    @property
    def has_bracket(self) -> bool:  # type: ignore[override]
        """Whether a part of every epsilon pays for an interval."""
        return self.between_ends and self.for_interval > 0

    @property
    def loss_factor(self) -> Fraction:  # type: ignore[override]
        """Its draw has a bounded range; the cells of its interval, at their part of a loss, are noisy sums.

        Mechanisms that have no use for cells (`mixed`, `exponential`) spend all of a loss on the draw.
        """
        part = self.for_interval if self.has_bracket else Fraction(0)
        return self.portion**2 * max(BOUNDED_RANGE, (1 - part) ** 2 * BOUNDED_RANGE + part**2 * ANY_LOSS)

    @property
    def no_interval(self) -> str:  # type: ignore[override]
        return "Nothing was spent on it: for_interval was 0." if self.between_ends else ""

    def paying_for_interval(self, part: Fraction) -> Order:
        return replace(self, for_interval=part) if self.between_ends else self

    def identity(self) -> str:
        """As ever where nothing pays for an interval, nobody is imputed and no epsilon is shared: ledgers hold it."""
        paid = f" for_interval={self.for_interval}" if self.has_bracket else ""
        part = f" portion={self.portion}" if self.portion != 1 else ""
        return f"{self!r}{paid}{' imputed' if self.imputes else ''}{part}"

    def per_row(self, neighbors: str) -> int:
        """By how much a person's loss exceeds that of one row in one answer."""
        return 1 if self.scope is None else self.scope.per_row(neighbors)

    def rank(self, people: int) -> int:
        """The rank asked for among so many values, 0-based; a median is at floor(n/2), as in Jorgensen et al. 2015."""
        if self.from_low is not None:
            return min(self.from_low, people - 1)
        if self.from_high is not None:
            return max(people - 1 - self.from_high, 0)
        return min(math.floor(self.q_asked * people), people - 1)

    def check_people(self, levels: Levels) -> None:
        k, rows = (self.from_high or 0) + 1, 1 if self.scope is None else self.scope.rows
        if k > levels.size * rows:
            each = "" if rows == 1 else f" with at most {show_count(rows, 'row')} each"
            what = ("There is no ", Argument("k", k), f" among {show_count(levels.size, 'person', 'people')}{each}.")
            raise PlanError(what, suggest=("a smaller ", Argument("k")))

    def misfit(self, weighting: Weighting) -> str | None:
        """A rank counts people, so that those who are used must weigh the same; a quantile weighs them."""
        unequal = self.q is None and len(set(weighting.weights) - {0}) > 1
        return f"a {self.label} needs the same weight for everyone who is used" if unequal else None

    def leaves(self, neighbors: str) -> bool:
        """Whether someone who is absent is left out, so that nobody's row ever moves from one place to another."""
        return neighbors == "absent" and not self.imputes

    def score_reach(self, neighbors: str) -> Fraction:
        """How far a row of weight 1 moves a weighted quantile's score: less if it leaves than if it moves."""
        return max(self.q_asked, 1 - self.q_asked) if self.leaves(neighbors) else Fraction(1)

    def noise_to_spread(self, question: Question) -> float:
        """8 r^2/(q(1-q)) at reach r: one indicator per person, drawn by the exponential mechanism with its share."""
        reach = self.score_reach(question.neighbors) / (1 - self.for_interval) / self.portion
        return float(8 * reach**2 / (self.q_asked * (1 - self.q_asked)))

    def related(self, question: Question) -> tuple[str, float]:
        q = float(self.q or 0)
        return "share of people below the answer", math.sqrt(q * (1 - q))

    def draw(self, question: Question, weighting: Weighting, people: People, entropy: Entropy) -> Answer:
        chances = weighting.chances
        found = people.grouped_cells(self) if chances is None else people.sampled_cells(self, chances, entropy)
        found = [self.impute(cells) for cells in found]
        drawn = [self.sampler(question, weighting, cells).draw(entropy) for cells in found]
        brackets: tuple[Bracket, ...] | None = None
        if self.has_bracket:
            pairs = zip(found, drawn, strict=True)
            made = [self.settle(question, weighting, people.levels, own, cell, entropy) for own, cell in pairs]
            drawn, brackets = [cell for cell, _ in made], tuple(bracket for _, bracket in made)
        values = [self.value(cell) for cell in drawn]
        return Answer(values[0] if self.scope is None else self.scope.arrange(values), brackets=brackets)

    def settle(
        self, question: Question, weighting: Weighting, levels: Levels, cells: SortedCells, first: int, entropy: Entropy
    ) -> tuple[int, Bracket]:
        """(the answer, the noisy cells that its interval is made from) once there is a first draw."""
        split, q = Split.of(self, question.neighbors), float(self.q_asked)
        weights, nearest = split.cell_weights(weighting), self._nearest_cut(weighting, levels)
        bracket = draw_bracket(cells, first, self.points, nearest, weights, entropy)
        return settle(bracket, q, self.points, split.pull(q, len(bracket.weights))), bracket

    def simulate(self, question: Question, weighting: Weighting, people: People, entropy: Entropy, size: int) -> Floats:
        if weighting.chances is not None or self.has_bracket:
            return np.array([self.draw(question, weighting, people, entropy).value for _ in range(size)], float)
        drawn = self.sampler(question, weighting, self.impute(people.cells(self))).draw_many(entropy, size)
        cells, place = np.unique(drawn, return_inverse=True)
        return cast(Floats, np.array([self.value(cell) for cell in cells.tolist()], float)[place])

    def distribution(self, question: Question, weighting: Weighting, people: People) -> tuple[NDArray[Any], Floats]:
        """Of the answer, or of the first draw and the noisy weights of the cells around it, where these are drawn."""
        if weighting.chances is None and not self.has_bracket:
            place, chances = self.sampler(question, weighting, self.impute(people.cells(self))).probabilities()
            with np.errstate(divide="ignore"):
                return self.outcomes()[place], np.log(chances)
        laws = []
        for weight, sample in people.samples(weighting.chances):
            cells, own = self.impute(sample.cells(self)), np.zeros(self.points)
            place, chance = self.sampler(question, weighting, cells).probabilities()
            own[place] = weight * chance
            laws.append((cells, own))
        if self.has_bracket:
            return self._joint_distribution(question, weighting, people.levels, laws)
        return self.outcomes(), np.log(np.sum([own for _, own in laws], axis=0))

    def impute(self, cells: SortedCells) -> SortedCells:
        """With the missing at the centre, where they are to stand there."""
        return cells.with_missing_at(self.default_cell) if self.imputes else cells

    def _nearest_cut(self, weighting: Weighting, levels: Levels) -> int:
        return nearest_cut(self, weighting.total(levels) * weighting.rate * self.portion / NANO, levels.size)

    def _joint_distribution(
        self, question: Question, weighting: Weighting, levels: Levels, laws: list[tuple[SortedCells, Floats]]
    ) -> tuple[NDArray[Any], Floats]:
        weights = Split.of(self, question.neighbors).cell_weights(weighting)
        nearest, outcomes, logs = self._nearest_cut(weighting, levels), [], []
        rows = 1 if self.scope is None else self.scope.rows
        for first in range(self.points):
            cuts = place_cuts(first, self.points, nearest)
            axes = [Axis(max(weights) * rows, levels.size, Laplace(Fraction(1, NANO)))] * (len(cuts) + 1)
            here = sum(float(own[first]) for _, own in laws)
            drawn = [(float(own[first]) / here, cells) for cells, own in laws if own[first] > 0]
            mixture = [(chance, weigh_cells(cells, cuts, weights)) for chance, cells in drawn]
            listed, chances = product_distribution(axes, mixture)
            outcomes += [(first, outcome) for outcome in listed.tolist()]
            logs.append(chances + math.log(here))
        labels = np.empty(len(outcomes), object)
        labels[:] = outcomes
        return labels, np.concatenate(logs)

    def sampler(self, question: Question, weighting: Weighting, cells: SortedCells) -> SegmentSampler:
        """What draws an answer."""
        return SegmentSampler(*self.blocks(question, weighting, cells))

    def blocks(self, question: Question, weighting: Weighting, cells: SortedCells) -> tuple[Iterator[Block], Fraction]:
        """The answers as segments of equal cost; people without any weight must not even shape the segments."""
        used = np.array([w > 0 for w in weighting.weights])
        if not used.all():
            cells = SortedCells(cells.keys[used[cells.codes(0, cells.people)]], cells.missing, cells.levels)
        cost, unit = self.cost(question, weighting, cells)
        return outward(self.points, cells, cost), unit

    def cost(self, question: Question, weighting: Weighting, cells: SortedCells) -> tuple[Cost, Fraction]:
        """The cost per grid point and the weight of one unit of it in the exponent."""
        # A person's rows share their loss, over all groups together.
        half = Fraction(1, 2 * NANO)
        if self.q is not None:
            share = Split.of(self, question.neighbors).first
            return WeightCost(tuple(round_losses(weighting, share)), cells.totals, self.q), half / self.q.denominator
        losses = [math.floor(loss / self.per_row(question.neighbors)) for loss in weighting.losses()]
        # Ranks counted from an end, over the people who are used, all at one epsilon (`misfit`): one person who joins,
        # leaves or moves changes the number of people to change by at most one.
        totals = np.where(np.array(losses) > 0, cells.totals, 0)
        return RankCost((max(losses),) * len(losses), totals, self.rank(max(int(totals.sum()), 1))), half

    def exact(self, people: People) -> tuple[Any, Sequence[float]]:
        if self.scope is None:
            cell = self.cell_at_rank(people.cells(self).with_missing_at(self.default_cell))
            return self.value(cell), [self.rounding(cell)]
        grouped = people.grouped_cells(self)
        found = [self.cell_at_rank(cells) for cells in grouped]
        rounded = [self.rounding(cell) if own.people else math.inf for cell, own in zip(found, grouped, strict=True)]
        return self.scope.arrange(map(self.value, found)), rounded

    def rounding(self, cell: int) -> float:
        """How far a value may lie from its grid point: half a step, or more where the grid ends before the bounds."""
        beyond = self._width - (self.points - 1) * self.spacing if cell == self.points - 1 else Fraction(0)
        return float(max(self.spacing / 2, beyond))

    def limits(self, people: int) -> tuple[float, float]:
        """Between which the answer lies for certain."""
        return self.bounds

    def cell_at_rank(self, cells: SortedCells) -> int:
        """The grid point at the rank asked for; where nothing counts, the one nearest the centre."""
        rank = self.rank(cells.people)
        return int(cells.cells(rank, rank + 1)[0]) if cells.people else self.default_cell

    def describe(self) -> str:
        what = self.label
        if what == "quantile" and self.q is not None:
            what += f" {float(self.q):g}"
        if what == "kth_largest" and self.from_high is not None:
            what += f" {self.from_high + 1}"
        return f"{what} in [{self.bounds[0]:g}, {self.bounds[1]:g}]"


#: Statistics of (bounds, step); a median is the value of rank floor(n/2).
median = partial(Order, q=Fraction(1, 2), label="median")
minimum, maximum = partial(Order, from_low=0, label="min"), partial(Order, from_high=0, label="max")


def quantile(q: float, bounds: Any, step: float | None = None) -> Order:
    """The value of rank floor(q*n)."""
    number = read_real(q)
    what = "A quantile needs its q." if q is None else f"A quantile of {q!r} is not allowed."
    if not 0 <= number <= 1:
        raise PlanError(what, rule="q is a number from 0 to 1.", suggest=Argument("q", 0.9))
    if not (NEAREST_Q <= number <= 1 - NEAREST_Q or number in (0, 1)):
        raise PlanError(what, rule=f"q is 0, 1, or at least {NEAREST_Q:g} away from both.", suggest="min or max")
    return Order(bounds, step, q=q if isinstance(q, Fraction) else exact(q), label="quantile")


def kth_largest(k: int, bounds: Any, step: float | None = None) -> Order:
    """The k-th largest value; k=1 is the maximum."""
    return Order(bounds, step, from_high=check_rank(k) - 1, label="kth_largest")
