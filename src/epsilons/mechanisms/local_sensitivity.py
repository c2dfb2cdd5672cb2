"""Paper 2: noise for the data as they are. Individual privacy, which is not differential privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from epsilons.errors import PlanError
from epsilons.guarantee import INDIVIDUAL, NANO, to_epsilon
from epsilons.mechanisms.base import NEEDS_PUBLIC_COUNT, Answer, Charges, Mechanism, register
from epsilons.noise.entropy import Entropy
from epsilons.noise.laplace import discrete_laplace, discrete_laplace_many
from epsilons.preferences import Levels
from epsilons.statistics import local
from epsilons.statistics.base import Additive
from epsilons.statistics.count import Count
from epsilons.statistics.histogram import Histogram
from epsilons.statistics.local import Local
from epsilons.statistics.order import Order
from epsilons.statistics.people import ArrayPeople, People
from epsilons.statistics.question import Question
from epsilons.statistics.total import Mean, Sum
from epsilons.statistics.unbounded import UnboundedOrder

NOT_DP = (
    "Individual DP is not DP: the noise depends on the data, so whoever knows everybody else may learn a person's "
    "value for certain (knowing 0, 0, 0 and 1, an exact median of 0 shows that the fifth value is 0, a noisy one that "
    "it is 1). "
    "The bound holds only with the noise's scale taken as given."
)


@register
@dataclass(frozen=True)
class LocalSensitivity(Mechanism):
    """Noise scaled to how far each person could move this very answer.

    Definition: discrete Laplace noise of scale b(D) = max_i LS_i(D)/eps_i, LS_i(D) = how far replacing person i's
                record can move the answer on the data D as they are; no noise at all where nobody can move it. For
                groups of 1..g people: b(D) = max_i LS^(i)(D)/eps_(i).
    Theorem:    Soria-Comas et al. 2017, sections on individual and group DP; the maximum over persons honours each
                person's own epsilon ("personalized individual").
    Guarantee:  individual DP (not DP): the actual data against its neighbours, with the scale frozen. It says nothing
                against an adversary who learns from the scale itself.
    Cost:       eps_i charged to each person, in that weaker kind.
    Error:      none is predicted or shown: it would be data.
    """

    name: ClassVar[str] = "local-sensitivity"
    gist: ClassVar[str] = "noise for the data as they are (individual DP, not DP)"
    privacy: ClassVar[str] = "individual"
    kind: ClassVar[str] = INDIVIDUAL
    caveats: ClassVar[tuple[str, ...]] = (NOT_DP,)
    imputes: ClassVar[bool] = True

    def refuses(self, question: Question, levels: Levels) -> str | None:
        if question.privacy == "personalized":
            return 'it is individual DP, not DP, and must be asked for with privacy="individual"'
        if question.statistic.private_count:
            return NEEDS_PUBLIC_COUNT
        if isinstance(question.statistic, (Count, Histogram, Sum, Mean, Order, UnboundedOrder)):
            return None
        return "it serves counts, histograms, sums, means and order statistics"

    def charge(self, question: Question, levels: Levels) -> Charges:
        return levels.grants

    def predict_error(self, question: Question, levels: Levels) -> float | None:
        return None

    def worst_error(self, question: Question, levels: Levels) -> float | None:
        return None

    def why_no_interval(self, question: Question) -> str:
        return "Its width would show how far single people could move the answer, which is data."

    def draw(self, question: Question, people: People, entropy: Entropy) -> Answer:
        statistic, rate = question.statistic, self.rate(question, people)
        if isinstance(statistic, Additive):
            exact = [int(cell) for cell in people.tally(statistic)[0].sum(axis=0)]
            noisy = [Fraction(s + _noise(entropy, rate)) for s in exact]
            return Answer(statistic.answer([noisy], Fraction(people.levels.people), people.levels.people))
        here = self._local(question, people)
        place = (here.answer + _noise(entropy, rate)) * here.step
        if isinstance(statistic, UnboundedOrder):
            return Answer(float(place * statistic.grid))
        assert isinstance(statistic, Order)
        return Answer(statistic.value(min(max(place, Fraction(0)), Fraction(statistic.points - 1))))

    def rate(self, question: Question, people: People) -> Fraction | None:
        """1/b(D) per step of the answer; None where nobody can move it. Private: it must never leave this room."""
        if question.groups:
            reaches = [self._group_reach(question, people, size) for size in range(1, len(question.groups) + 1)]
            pairs = list(zip(question.groups, reaches, strict=True))
        else:
            reach = self._reach(question, people)
            pairs = [(g, r) for g, r in zip(people.levels.grants, reach, strict=True) if g is not None]
        rates = [Fraction(grant, NANO * reach) for grant, reach in pairs if reach > 0]
        return min(rates, default=None)

    def _reach(self, question: Question, people: People) -> tuple[int, ...]:
        """The largest local sensitivity at each level, in steps of the answer."""
        statistic = question.statistic
        if isinstance(statistic, (Count, Histogram)):
            return (local.count_reach(statistic, people.levels.people),) * len(people.levels.grants)
        if isinstance(statistic, (Sum, Mean)):
            return local.sum_reaches(*_array(people).step_range(statistic))
        return self._local(question, people).reach

    def _local(self, question: Question, people: People) -> Local:
        statistic = question.statistic
        if isinstance(statistic, UnboundedOrder):
            return statistic.local(_array(people).values, _array(people).roster.codes, len(people.levels.grants))
        assert isinstance(statistic, Order)
        cells = people.cells(statistic).with_missing_at(statistic.default_cell)
        return local.order_local(
            cells, statistic.points, statistic.rank(cells.people), _averages(statistic, cells.people)
        )

    def _group_reach(self, question: Question, people: People, size: int) -> int:
        statistic = question.statistic
        if isinstance(statistic, (Count, Histogram)):
            return local.count_reach(statistic, people.levels.people, size)
        if isinstance(statistic, (Sum, Mean)):
            return local.group_sum_reach(_array(people).steps(statistic), size)
        if isinstance(statistic, UnboundedOrder):
            return statistic.group_reach(_array(people).values, size)
        assert isinstance(statistic, Order)
        cells = people.cells(statistic).with_missing_at(statistic.default_cell)
        x = local.ranked(cells, statistic.points)
        if _averages(statistic, cells.people):
            return local.group_even_median_reach(x, cells.people, size)
        return local.group_rank_reach(x, statistic.rank(cells.people), size)

    def simulate(self, question: Question, people: People, entropy: Entropy, size: int) -> NDArray[np.float64]:
        statistic, rate = question.statistic, self.rate(question, people)
        if not isinstance(statistic, (Count, Order)):
            raise PlanError("Only counts and order statistics are simulated in bulk.")
        here = self._answer(question, people)
        noise = 0 if rate is None else discrete_laplace_many(entropy, rate, size)
        steps = np.full(size, here.answer) + noise
        if isinstance(statistic, Count):
            return steps.astype(float)
        place = np.clip(steps.astype(float) * float(here.step), 0, statistic.points - 1)
        outcomes = statistic.outcomes()
        answers: NDArray[np.float64] = outcomes[0] + (outcomes[1] - outcomes[0]) * place
        return answers

    def _answer(self, question: Question, people: People) -> Local:
        if isinstance(question.statistic, Count):
            return Local(int(people.tally(question.statistic)[0].sum()), ())
        return self._local(question, people)

    def distribution(self, question: Question, people: People) -> tuple[NDArray[Any], NDArray[np.float64]]:
        return self.distribution_at(question, people, self.rate(question, people))

    def distribution_at(
        self, question: Question, people: People, rate: Fraction | None
    ) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """With the noise's scale frozen at another data set's, before clipping: what the guarantee speaks of.

        Outcomes are in steps of the answer; the first and the last one stand for everything beyond.
        """
        statistic = question.statistic
        if not isinstance(statistic, (Count, Order)):
            raise PlanError("Only the outcomes of counts and order statistics are listed.")
        here = self._answer(question, people)
        span = people.levels.people if isinstance(statistic, Count) else 2 * statistic.points
        outcomes = np.arange(-2 * span - 40, 3 * span + 41)
        if rate is None:
            return outcomes, np.where(outcomes == here.answer, 0.0, -np.inf)
        per_step = float(rate)
        away = np.abs(outcomes - here.answer)
        logs = math.log(math.tanh(per_step / 2)) - per_step * away
        # P(noise >= k) = exp(-k rate) / (1 + exp(-rate)): in closed form, since a difference would be rounded away.
        logs[[0, -1]] = -per_step * away[[0, -1]] - math.log1p(math.exp(-per_step))
        return outcomes, logs

    def options(self, question: Question, levels: Levels) -> dict[str, Any]:
        return {"group_epsilons": [to_epsilon(g) for g in question.groups]} if question.groups else {}


def _averages(statistic: Order, people: int) -> bool:
    """Paper 2's median of an even number of values is the average of the two middle ones."""
    return statistic.label == "median" and people % 2 == 0


def _noise(entropy: Entropy, rate: Fraction | None) -> int:
    return 0 if rate is None else discrete_laplace(entropy, rate)


def _array(people: People) -> ArrayPeople:
    if not isinstance(people, ArrayPeople):
        raise PlanError("Individual privacy for this statistic works on arrays.")
    return people
