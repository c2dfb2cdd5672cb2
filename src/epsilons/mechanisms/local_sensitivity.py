"""Noise for the data as they are. Individual privacy, which is not differential privacy."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from epsilons.errors import PlanError
from epsilons.guarantee import INDIVIDUAL, NANO, to_epsilon
from epsilons.mechanisms.base import Charges, Mechanism, register
from epsilons.noise.entropy import Entropy
from epsilons.noise.laplace import discrete_laplace, discrete_laplace_many
from epsilons.preferences import Levels
from epsilons.statistics import sensitivity
from epsilons.statistics.additive import Additive
from epsilons.statistics.base import Answer, Floats, Question, Scope
from epsilons.statistics.moved import Adding, largest_by_level, largest_together
from epsilons.statistics.order import Order
from epsilons.statistics.sensitivity import Local
from epsilons.statistics.total import Bounded, Mean
from epsilons.statistics.unbounded import Unbounded
from epsilons.summaries import People
from epsilons.summaries.arrays import STEPS, array_people, row_steps
from epsilons.summaries.cells import SortedCells

NOT_DP = (
    "Individual DP is not DP: the noise depends on the data, so anyone who knows everybody else may learn a person's "
    "value for certain (knowing 0, 0, 0 and 1, an exact median of 0 shows that the fifth value is 0, a noisy one that "
    "it is 1). The bound holds only with the noise's scale taken as given."
)


class LocalSensitivity(Mechanism):
    """Noise scaled to how far each person could move this very answer.

    The noise is discrete Laplace of scale b(D) = max_i LS_i(D)/eps_i, LS_i(D) = how far replacing person i's record can
    move the answer on the data D as they are; no noise at all where nobody can move it. For groups of 1..g people:
    b(D) = max_i LS^(i)(D)/eps_(i). The guarantee says nothing against an adversary who learns from the scale itself.

    Theorem:    Soria-Comas et al. 2017, sections on individual and group DP; the maximum over persons honours each
                person's own epsilon ("personalized individual").
    Guarantee:  individual DP (not DP): the actual data against its neighbours, with the scale frozen.
    Cost:       eps_i charged to each person, in that weaker kind.
    Error:      none is predicted or shown: it would be data.
    """

    name: ClassVar[str] = "local-sensitivity"
    families: ClassVar[tuple[str, ...]] = ("linear", "ratio", "order", "unbounded")
    serves_only: ClassVar[str] = "it serves counts, histograms, sums, means and order statistics"
    gist: ClassVar[str] = "noise for the data as they are (individual DP, not DP)"
    privacy: ClassVar[str] = "individual"
    kind: ClassVar[str] = INDIVIDUAL
    caveats: ClassVar[tuple[str, ...]] = (NOT_DP,)
    imputes: ClassVar[bool] = True

    def __init_subclass__(cls) -> None:
        """Statistics differ in the definition of the scale alone: what follows from it is said here for all of them."""
        shared = str(LocalSensitivity.__doc__).rpartition("\n\n")[2]
        cls.__doc__ = f"{(cls.__doc__ or '').rstrip()}\n{shared}"

    def why_no_interval(self, question: Question) -> str:
        return "Its width would show how far single people could move the answer, which is data."

    def options(self, question: Question, levels: Levels) -> dict[str, Any]:
        return {"group_epsilons": [to_epsilon(g) for g in question.groups]} if question.groups else {}

    def reach(self, question: Question, people: People) -> tuple[int, ...]:
        """The largest local sensitivity at each level, in steps of the answer."""
        return self.here(question, people).reach

    @abstractmethod
    def group_reach(self, question: Question, people: People, size: int) -> int:
        """How far a group of so many people could move the answer, in steps of it."""

    def charge(self, question: Question, levels: Levels) -> Charges:
        """All that was granted; for groups at most what is promised to groups of one."""
        most = question.groups[0] if question.groups else None
        return tuple(grant if grant is None or most is None else min(grant, most) for grant in levels.grants)

    def rate(self, question: Question, people: People) -> Fraction | None:
        """1/b(D) per step of the answer; None where nobody can move it. Private: it must never leave this room."""
        pairs = list(zip(self.charge(question, people.levels), self.reach(question, people), strict=True))
        sizes = range(len(question.groups))
        pairs += zip(question.groups, [self.group_reach(question, people, size + 1) for size in sizes], strict=True)
        return min((Fraction(g, NANO * reach) for g, reach in pairs if g is not None and reach > 0), default=None)

    def here(self, question: Question, people: People) -> Local:
        """The answer in steps, where single numbers are simulated and listed."""
        raise PlanError("Only counts and order statistics are simulated in bulk, and their outcomes listed.")

    def span(self, question: Question, people: People) -> int:
        """How many steps answers can lie apart."""
        return people.levels.size

    def outcomes(self, question: Question, steps: Floats, step: Fraction) -> Floats:
        """Answers from steps."""
        return steps

    def simulate(self, question: Question, people: People, entropy: Entropy, size: int) -> Floats:
        here, rate = self.here(question, people), self.rate(question, people)
        steps = np.full(size, here.answer) + (0 if rate is None else discrete_laplace_many(entropy, rate, size))
        return self.outcomes(question, steps.astype(float), here.step)

    def distribution(self, question: Question, people: People) -> tuple[NDArray[Any], Floats]:
        return self.distribution_at(question, people, self.rate(question, people))

    def distribution_at(self, question: Question, people: People, rate: Fraction | None) -> tuple[NDArray[Any], Floats]:
        """With the noise's scale frozen at another data set's, before clipping: what the guarantee speaks of.

        Outcomes are in steps of the answer; the first and the last one stand for everything beyond.
        """
        here, span = self.here(question, people), self.span(question, people)
        outcomes = np.arange(-2 * span - 40, 3 * span + 41)
        if rate is None:
            return outcomes, np.where(outcomes == here.answer, 0.0, -np.inf)
        per_step, away = float(rate), np.abs(outcomes - here.answer)
        logs = math.log(math.tanh(per_step / 2)) - per_step * away
        # P(noise >= k) = exp(-k rate) / (1 + exp(-rate)): in closed form, since a difference would be rounded away.
        logs[[0, -1]] = -per_step * away[[0, -1]] - math.log1p(math.exp(-per_step))
        return outcomes, logs


class _LocalSum(LocalSensitivity):
    """Of an additive answer: the exact sums, and one noise in each cell."""

    families: ClassVar[tuple[str, ...]] = ("linear",)

    def draw(self, question: Question, people: People, entropy: Entropy) -> Answer:
        statistic, rate = cast(Additive, question.statistic), self.rate(question, people)
        noisy = [Fraction(int(cell) + _noise(entropy, rate)) for cell in people.tally(statistic)[0].sum(axis=0)]
        return Answer(statistic.answer([noisy], Fraction(people.levels.size), people.levels.size))


@register
@dataclass(frozen=True)
class LocalCount(_LocalSum):
    """Noise of the same size for all data, since replacing a record moves one count by one.

    Definition: discrete Laplace noise of scale max_i LS/eps_i, LS = 1 for a count, 2 between the bins of a histogram or
                between groups, times the rows that a person may have.
    """

    statistics: ClassVar[tuple[str, ...] | None] = ("count", "histogram")

    def reach(self, question: Question, people: People) -> tuple[int, ...]:
        return (self.group_reach(question, people, 1),) * len(people.levels.grants)

    def group_reach(self, question: Question, people: People, size: int) -> int:
        """Everyone moves all cells together by the same at most, however many rows they have."""
        return cast(Additive, question.statistic).parts[0].reach["replace"] * min(size, people.levels.size)

    def here(self, question: Question, people: People) -> Local:
        if question.statistic.name != "count":
            return super().here(question, people)
        return Local(int(people.tally(cast(Additive, question.statistic))[0].sum()), ())


@register
@dataclass(frozen=True)
class LocalTotal(_LocalSum):
    """Noise scaled to how far each person could move this very sum or mean.

    Definition: discrete Laplace noise of scale max_i LS_i(D)/eps_i, LS_i(D) = the way from x_i to the farther bound; of
                groups and of several rows: how far other rows could move all sums together (`statistics.moved`).
    """

    statistics: ClassVar[tuple[str, ...] | None] = ("sum", "mean")

    def reach(self, question: Question, people: People) -> tuple[int, ...]:
        adding, (low, high) = self._adding(question, people)
        return largest_by_level(
            adding.far_in_sums(low, high), adding.level, max(abs(low), abs(high)), people.levels.sizes
        )

    def group_reach(self, question: Question, people: People, size: int) -> int:
        adding, (low, high) = self._adding(question, people)
        strangers, everyone = max(abs(low), abs(high)), sum(people.levels.sizes)
        if adding.groups > 1:
            return largest_together(adding.far_in_sums(low, high), strangers, everyone, size)
        # In one sum all of them go the same way.
        ways = (high - adding.steps, adding.steps - low), (max(high, 0), max(-low, 0))
        return max(largest_together(far, none, everyone, size) for far, none in zip(*ways, strict=True))

    def _adding(self, question: Question, people: People) -> tuple[Adding, tuple[int, int]]:
        """(what everyone adds, from what to what all rows of a person can add)."""
        statistic, rows = cast(Bounded, question.statistic), people.single_rows()
        (part,), scope = statistic.parts, statistic.scope
        place = row_steps(part.name, statistic.bounds)
        low, high = (int(place(np.array([end]))[0][0]) for end in statistic.bounds)
        most = 1 if scope is None else scope.rows
        low, high = (low, high) if scope is None else (most * min(low, 0), most * max(high, 0))
        return Adding.of(rows, place(rows.values)[0], part.cells), (low, high)


@register
@dataclass(frozen=True)
class LocalMean(LocalSensitivity):
    """Noise scaled to how far each person could move these very means, whose numbers of rows are private.

    Definition: discrete Laplace noise of scale max_i LS_i(D)/eps_i on each mean, on the grid of sums; LS_i(D) = how far
                other rows could move all means together, at most (`statistics.moved`). A mean of nobody is the centre.
    """

    families: ClassVar[tuple[str, ...]] = ("ratio",)
    statistics: ClassVar[tuple[str, ...] | None] = ("mean",)

    def reach(self, question: Question, people: People) -> tuple[int, ...]:
        adding, scope = self._adding(question, people)
        far, strangers = adding.far_in_means(scope.rows), adding.far_of_strangers(scope.rows)
        return largest_by_level(far, adding.level, strangers, people.levels.sizes)

    def group_reach(self, question: Question, people: People, size: int) -> int:
        if size == 1:
            return max(self.reach(question, people))
        adding, scope = self._adding(question, people)
        return adding.far_together(scope.rows, size)

    def _adding(self, question: Question, people: People) -> tuple[Adding, Scope]:
        statistic, rows = cast(Mean, question.statistic), people.single_rows()
        assert statistic.scope is not None
        steps = row_steps("centred sum", statistic.bounds)(rows.values)[0]
        return Adding.of(rows, steps, statistic.scope.cells), statistic.scope

    def draw(self, question: Question, people: People, entropy: Entropy) -> Answer:
        statistic, rate = cast(Mean, question.statistic), self.rate(question, people)
        adding, scope = self._adding(question, people)
        found = [Fraction(round(mean) + _noise(entropy, rate)) for mean in adding.means()]
        cut = [min(max(place, Fraction(-STEPS)), Fraction(STEPS)) for place in found]
        return Answer(scope.arrange([float(statistic.middle + statistic.half * place / STEPS) for place in cut]))


@register
@dataclass(frozen=True)
class LocalOrder(LocalSensitivity):
    """Noise scaled to how far each person could move this very order statistic.

    Definition: discrete Laplace noise of scale max_i LS_i(D)/eps_i; LS_i(D) from the gaps around the rank
                (`statistics.sensitivity`).
    """

    families: ClassVar[tuple[str, ...]] = ("order",)
    needs_public_count: ClassVar[bool] = True

    def group_reach(self, question: Question, people: People, size: int) -> int:
        statistic, cells, averaged = self._cells(question, people)
        x = sensitivity.Ranked.of(cells, statistic.points)
        if averaged:
            return sensitivity.group_even_median_reach(x, cells.people, size)
        return sensitivity.group_rank_reach(x, statistic.rank(cells.people), size)

    def here(self, question: Question, people: People) -> Local:
        statistic, cells, averaged = self._cells(question, people)
        return sensitivity.order_local(cells, statistic.points, statistic.rank(cells.people), averaged)

    def _cells(self, question: Question, people: People) -> tuple[Order, SortedCells, bool]:
        """(statistic, everybody's cells, whether it is the median of an even number of values: the average of two)."""
        statistic = cast(Order, question.statistic)
        cells = people.cells(statistic).with_missing_at(statistic.default_cell)
        return statistic, cells, statistic.label == "median" and cells.people % 2 == 0

    def draw(self, question: Question, people: People, entropy: Entropy) -> Answer:
        statistic, here = cast(Order, question.statistic), self.here(question, people)
        place = (here.answer + _noise(entropy, self.rate(question, people))) * here.step
        return Answer(statistic.value(min(max(place, Fraction(0)), Fraction(statistic.points - 1))))

    def span(self, question: Question, people: People) -> int:
        return 2 * cast(Order, question.statistic).points

    def outcomes(self, question: Question, steps: Floats, step: Fraction) -> Floats:
        points = cast(Order, question.statistic).outcomes()
        return np.asarray(points[0] + (points[1] - points[0]) * np.clip(steps * float(step), 0, len(points) - 1))


@register
@dataclass(frozen=True)
class LocalUnbounded(LocalSensitivity):
    """Noise scaled to how far each person could move a k-th largest value, a median or a quantile, without bounds.

    Definition: discrete Laplace noise of scale max_i LS_i(D)/eps_i; LS_i(D) from the gaps around it.
    """

    families: ClassVar[tuple[str, ...]] = ("unbounded",)
    needs_public_count: ClassVar[bool] = True

    def reach(self, question: Question, people: People) -> tuple[int, ...]:
        return self._local(question, people).reach

    def group_reach(self, question: Question, people: People, size: int) -> int:
        return cast(Unbounded, question.statistic).group_reach(array_people(people).values, size)

    def _local(self, question: Question, people: People) -> Local:
        rows, levels = array_people(people), len(people.levels.grants)
        return cast(Unbounded, question.statistic).local(rows.values, rows.roster.codes, levels)

    def draw(self, question: Question, people: People, entropy: Entropy) -> Answer:
        here, grid = self._local(question, people), cast(Unbounded, question.statistic).grid
        return Answer(float((here.answer + _noise(entropy, self.rate(question, people))) * here.step * grid))


def _noise(entropy: Entropy, rate: Fraction | None) -> int:
    return 0 if rate is None else discrete_laplace(entropy, rate)
