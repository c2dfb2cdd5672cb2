"""Bugs on purpose. Each is a small change to a mechanism, to a statistic or to other code of the package that breaks
somebody's promise; an audit that does not refute every one of them is no audit.

A new one is a line of `PLANTS`, at the end of this file: `_plant` for a mechanism or a statistic whose losses are
enumerated (and drawn, where draws can see it), `_break` for any other code: a check that holds, and what to replace by
what so that it does not.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction
from functools import cached_property
from statistics import NormalDist
from typing import Any, ClassVar
from unittest.mock import patch

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from epsilons.auditing import ABSENT, LossBound, bound_loss, enumerate_losses
from epsilons.auditing import exact as auditing
from epsilons.dataset import public
from epsilons.dataset.attempt import Attempt
from epsilons.dataset.table import Dataset
from epsilons.engines import readings
from epsilons.errors import DataError, PlanError
from epsilons.guarantee import NANO, Guarantee
from epsilons.measure import FEMTO, Measure
from epsilons.mechanisms.base import Charges, Mechanism, Weighing, weighting_of
from epsilons.mechanisms.exponential import ExponentialCount, ExponentialOrder, count_block
from epsilons.mechanisms.minimum import Minimum
from epsilons.mechanisms.mixed import MixedMean, MixedRatio
from epsilons.mechanisms.robust import Robust
from epsilons.mechanisms.sample import Coins, Sample
from epsilons.mechanisms.stretching import Stretching
from epsilons.mechanisms.threshold import Threshold
from epsilons.mechanisms.weighted import Weighted
from epsilons.noise.coins import bernoulli
from epsilons.noise.entropy import ALWAYS, Entropy
from epsilons.noise.laplace import discrete_laplace_many
from epsilons.noise.pmf import gaussian_log_normaliser
from epsilons.noise.segments import SegmentSampler
from epsilons.preferences import Levels, roster_of
from epsilons.statistics import gaussian, order
from epsilons.statistics.additive import Additive, Laplace, Part
from epsilons.statistics.base import Question, Rest, Scope, Weighting, proportional
from epsilons.statistics.by_level import Laws
from epsilons.statistics.count import Count
from epsilons.statistics.distributions import Axis, product_distribution
from epsilons.statistics.gaussian import Gaussian
from epsilons.statistics.histogram import Histogram
from epsilons.statistics.order import Order
from epsilons.statistics.outward import Cost, RankCost, outward
from epsilons.statistics.total import Mean, Sum
from epsilons.statistics.variance import Variance
from epsilons.summaries import People, arrays
from epsilons.summaries.arrays import STEPS, ArrayPeople, check_values
from epsilons.summaries.cells import SortedCells
from epsilons.testing import seeded
from support.concentrated import cases as concentrated_cases
from support.concentrated import largest_part, renyi
from support.small_worlds import Pair, audit_by_the_package, audit_exactly, charged

Law = tuple[NDArray[Any], NDArray[np.float64]]


@dataclass(frozen=True)
class Claim:
    """A mechanism, a question and people: "nobody loses more than they are charged"."""

    mechanism: Mechanism
    question: Question
    epsilons: tuple[float, ...]
    domain: tuple[float, ...]

    def holds(self) -> bool:
        """By exact enumeration."""
        return audit_exactly(self.mechanism, self.question, self.epsilons, self.domain).holds

    def bound(self, pair: Pair, draws: int, seed: int = 7) -> tuple[LossBound, float]:
        """(a lower bound on the loss from draws, what the person is charged)."""
        roster, entropy = roster_of(list(self.epsilons)), seeded(seed)

        def draw(values: Sequence[float], size: int) -> NDArray[np.float64]:
            return self.mechanism.simulate(self.question, ArrayPeople.of(values, roster), entropy, size)

        bound = bound_loss(lambda size: draw(pair.data, size), lambda size: draw(pair.neighbour, size), draws=draws)
        return bound, charged(self.mechanism, self.question, roster)[pair.person]


@dataclass(frozen=True)
class RationalClaim(Claim):
    """The same, by rational arithmetic on weights and noise: for errors of rounding, which no float shows."""

    def holds(self) -> bool:
        assert isinstance(self.mechanism, Weighing)
        levels = roster_of(list(self.epsilons)).levels
        losses = weighting_of(self.mechanism, self.question, levels).losses()
        charges = self.mechanism.charge(self.question, levels)
        rows = zip(losses, charges, levels.grants, strict=True)
        return all(loss <= charge <= grant for loss, charge, grant in rows if charge is not None and grant is not None)


@dataclass(frozen=True)
class ClaimToTheAuditor(Claim):
    """The same, by the auditor that the package gives to its users."""

    def holds(self) -> bool:
        return audit_by_the_package(self.mechanism, self.question, self.epsilons, self.domain).holds


@dataclass(frozen=True)
class ClaimInRho(Claim):
    """The same of a concentrated account, by rational arithmetic on sums and Gaussian noise."""

    def holds(self) -> bool:
        statistic, rate = self.question.statistic, self.question.rate
        assert isinstance(self.mechanism, Weighing)
        assert isinstance(statistic, Additive)
        assert rate is not None
        levels = roster_of(list(self.epsilons)).take_share(Fraction(1), rate)[0].levels
        weighting = weighting_of(self.mechanism, self.question, levels)
        variances = [law.variance for law in statistic.laws(self.question, weighting)]  # type: ignore[union-attr]
        alone = {
            x: [p[0].tolist() for p in statistic.tally(ArrayPeople.of([x], roster_of([1.0])))] for x in self.domain
        }
        steps = list(itertools.permutations(self.domain, 2))
        steps = [two for two in steps if self.question.neighbors == "replace" or math.isnan(two[1])]
        charges = self.mechanism.charge(self.question, levels)
        for weight, charge in zip(weighting.weights, charges, strict=True):
            for one, other in steps:
                parts = zip(alone[one], alone[other], variances, strict=True)
                lost = sum(
                    Fraction(weight * (a - b)) ** 2 / v / 2 for x, y, v in parts for a, b in zip(x, y, strict=True)
                )
                if lost * FEMTO > (rate.cost(charge) or 0):
                    return False
        return True


@dataclass(frozen=True)
class ClaimOfFloats(Claim):
    """The same by the floats that come out: whatever one data set gives, its neighbour could give."""

    def holds(self) -> bool:
        if not isinstance(self.mechanism, FloatNoise):
            return True  # whole numbers on a public lattice
        roster = roster_of(list(self.epsilons))
        here, there = (ArrayPeople.of([1.0] * k + [0.0] * (len(roster) - k), roster) for k in (0, 1))
        drawn = self.mechanism.simulate(self.question, here, seeded(5), 500)
        centre = self.mechanism.centre(self.question, there)
        return all(centre + (one - centre) == one for one in drawn)


@dataclass(frozen=True)
class Check:
    """Anything that can be seen to hold, while some names of the package stand for something else."""

    see: Callable[[], bool]
    replaced: tuple[tuple[Any, str, Any], ...] = ()

    def holds(self) -> bool:
        with ExitStack() as stack:
            for place, name, instead in self.replaced:
                stack.enter_context(patch.object(place, name, instead))
            return self.see()


@dataclass(frozen=True)
class Plant:
    """One bug: an honest claim, the same claim broken, and, where draws can see it, the pair and how many to draw."""

    name: str
    honest: Any  # Claim or Check
    broken: Any
    pair: Pair | None = None
    draws: int = 1_000_000

    def __str__(self) -> str:
        return self.name


# --- additive mechanisms ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SmallScale(Minimum):
    """Noise of a part of the scale: nine tenths."""

    part: Fraction = Fraction(9, 10)

    def weigh(self, question: Question, levels: Levels) -> Weighting:
        honest = super().weigh(question, levels)
        return replace(honest, rate=honest.rate / self.part)

    def charge(self, question: Question, levels: Levels) -> Charges:
        return Minimum().charge(question, levels)


#: Whatever entropy an audit brings, so that its verdict on these draws is always the same.
_FLOATS = seeded(31)


class FloatNoise(Minimum):
    """Gaussian noise as a float, added to the sum as a float; no law of it is known."""

    def distribution(self, question: Question, people: People) -> Law:
        raise PlanError("The law of floats is not known.")

    def centre(self, question: Question, people: People) -> float:
        assert isinstance(question.statistic, Count)
        return float(people.tally(question.statistic)[0].sum())

    def simulate(self, question: Question, people: People, entropy: Entropy, size: int) -> NDArray[np.float64]:
        deviation = NANO / people.levels.smallest  # of a strength
        uniform = [(_FLOATS.bits(53) + 0.5) / 2**53 for _ in range(size)]
        return self.centre(question, people) + np.array([NormalDist(0, deviation).inv_cdf(one) for one in uniform])


class UnlistedSecret(Minimum):
    """Now and then it tells whether anybody has a one, and lists everything but that."""

    def distribution(self, question: Question, people: People) -> Law:
        outcomes, logs = super().distribution(question, people)
        assert isinstance(people, ArrayPeople)
        return outcomes, logs + math.log1p(-5e-7 * bool(np.any(people.values == 1)))


class AlphaOfTheData(Minimum):
    """The strictest among those who are in the data, not on the roster."""

    def distribution(self, question: Question, people: People) -> Law:
        return _Frozen(self._alpha(people)).distribution(question, people)

    def simulate(self, question: Question, people: People, entropy: Entropy, size: int) -> NDArray[np.float64]:
        return _Frozen(self._alpha(people)).simulate(question, people, entropy, size)

    def _alpha(self, people: People) -> int:
        assert isinstance(people, ArrayPeople)
        grants = people.levels.grants
        there = [grants[code] for code, x in zip(people.roster.codes, people.values, strict=True) if not math.isnan(x)]
        return min((g for g in there if g is not None), default=people.levels.largest)


@dataclass(frozen=True)
class _Frozen(Minimum):
    rate: int = NANO

    def weigh(self, question: Question, levels: Levels) -> Weighting:
        return Weighting((1,) * len(levels.grants), 1, Fraction(self.rate))


class OffByOneThreshold(Threshold):
    """Keeps whoever granted more than the next level below the threshold, and charges as if it did not."""

    def weigh(self, question: Question, levels: Levels) -> Weighting:
        honest = super().weigh(question, levels)
        first = honest.weights.index(1)
        return replace(honest, weights=tuple(1 if i >= first - 1 else 0 for i in range(len(honest.weights))))

    def charge(self, question: Question, levels: Levels) -> Charges:
        return Threshold(self.threshold).charge(question, levels)


class ForgottenWeights(Stretching):
    """The noise of stretching, on values that were not shrunk."""

    def weigh(self, question: Question, levels: Levels) -> Weighting:
        honest = super().weigh(question, levels)
        return replace(honest, weights=(honest.one,) * len(honest.weights))

    def charge(self, question: Question, levels: Levels) -> Charges:
        return Stretching().charge(question, levels)


class RoundedUpWeights(Weighted):
    """Fixed-point weights rounded up, so that the loss passes the grant by less than a billionth."""

    def weigh(self, question: Question, levels: Levels) -> Weighting:
        honest = super().weigh(question, levels)
        exact = (1 if g is None else min(Fraction(1), g / honest.rate) for g in levels.grants)
        return replace(honest, weights=tuple(math.ceil(honest.one * weight) for weight in exact))


class RoundedDownCharge(Robust):
    """A charge cut to the nano-epsilon below the loss."""

    def charge(self, question: Question, levels: Levels) -> Charges:
        losses = weighting_of(self, question, levels).losses()
        return tuple(None if g is None else math.floor(loss) for g, loss in zip(levels.grants, losses, strict=True))


class CapPassed(Weighted):
    """People above the cap are charged the cap and weigh their whole epsilon."""

    def weigh(self, question: Question, levels: Levels) -> Weighting:
        honest = super().weigh(question, levels)
        weights = (honest.one if g is None else math.floor(honest.one * g / honest.rate) for g in levels.grants)
        return replace(honest, weights=tuple(weights))

    def charge(self, question: Question, levels: Levels) -> Charges:
        return Weighted().charge(question, levels)


class Overcharging(Minimum):
    """Everyone at ten times what the strictest granted, and charged for it: a mechanism of one's own."""

    name: ClassVar[str] = "overcharging"

    def weigh(self, question: Question, levels: Levels) -> Weighting:
        honest = super().weigh(question, levels)
        return replace(honest, rate=honest.rate * 10)


class UnequalRanks(Weighing):
    """Everyone by their epsilon, also where people are counted: a rank moves by one person, whatever they weigh."""

    name: ClassVar[str] = "unequal-ranks"

    def weigh(self, question: Question, levels: Levels) -> Weighting:
        return proportional(levels, levels.largest, Rest.RESCALED)


class OneLevelsNoiseForAll(MixedMean):
    """Every level's sum gets the noise of the most open level."""

    def laws(self, question: Question, levels: Levels) -> Laws:
        return [super().laws(question, levels)[-1]] * len(levels.finite)


class OneLevelsNoiseForAllRows(MixedRatio):
    """The same of both sums that a mean of a private number of rows is made from."""

    def laws(self, question: Question, levels: Levels) -> Laws:
        return [super().laws(question, levels)[-1]] * len(levels.finite)


# --- statistics with the wrong reach ---------------------------------------------------------------------------


@dataclass(frozen=True)
class SumWithoutReplacement(Sum):
    """r = h although a value may move from one bound to the other (paper 4's mistake)."""

    @property
    def parts(self) -> tuple[Part, ...]:
        return (Part("centred sum", 1, {"absent": STEPS, "replace": STEPS}),)


@dataclass(frozen=True)
class SumReplacedAtTwiceRho(Sum):
    """A swap at the variance of twice the rho of an absence, although it moves the sum twice as far: 4 rho."""

    @property
    def parts(self) -> tuple[Part, ...]:
        (part,) = super().parts
        return (replace(part, square={"absent": part.reach["absent"] ** 2, "replace": 2 * part.reach["absent"] ** 2}),)


@dataclass(frozen=True)
class HistogramWithoutReplacement(Histogram):
    """L1 reach 1 although a person may move from one bin to another."""

    @property
    def parts(self) -> tuple[Part, ...]:
        return (Part("bins", self.cells, {"absent": 1, "replace": 1}),)


@dataclass(frozen=True)
class VariancePaidOnce(Variance):
    """Two sums, each at the whole epsilon, as if the other were not there."""

    @property
    def parts(self) -> tuple[Part, ...]:
        first, second = super().parts
        moved = {"absent": 1 << 30, "replace": 1 << 31}
        return replace(first, reach=moved), replace(second, reach=dict.fromkeys(moved, 1 << 30))


@dataclass(frozen=True)
class PlantedSum(Sum):
    """A sum whose summary is its own."""

    summary: ClassVar[str] = "planted"  # type: ignore[misc]

    def planted(self, values: NDArray[Any], codes: NDArray[np.uint8], levels: int) -> list[NDArray[np.int64]]:
        raise NotImplementedError


arrays.SUMMARIES["planted"] = lambda statistic, values, codes, levels, _: statistic.planted(values, codes, levels)


@dataclass(frozen=True)
class UnclampedSum(PlantedSum):
    """Values beyond the bounds go into the sum as they are."""

    def planted(self, values: NDArray[Any], codes: NDArray[np.uint8], levels: int) -> list[NDArray[np.int64]]:
        scaled = np.nan_to_num((values - float(self.middle)) / float(self.half))
        sums = np.zeros((levels, 1), np.int64)
        np.add.at(sums[:, 0], codes, np.rint(scaled * STEPS).astype(np.int64))
        return [sums]


@dataclass(frozen=True)
class MissingAtTheLowerBound(PlantedSum):
    """Missing people stand at the lower bound: twice the declared reach from the upper one."""

    def planted(self, values: NDArray[Any], codes: NDArray[np.uint8], levels: int) -> list[NDArray[np.int64]]:
        return arrays.tally(Sum(self.bounds), np.nan_to_num(values, nan=self.bounds[0]), codes, levels)


@dataclass(frozen=True)
class BoundsOfTheData(PlantedSum):
    """Clipped to the least and largest value that occur."""

    def planted(self, values: NDArray[Any], codes: NDArray[np.uint8], levels: int) -> list[NDArray[np.int64]]:
        there = values[~np.isnan(values)]
        low, high = (there.min(), there.max()) if len(there) else self.bounds
        low, high = (low, high) if low < high else self.bounds
        scaled = np.nan_to_num((np.clip(values, low, high) - (low / 2 + high / 2)) / (high / 2 - low / 2))
        sums = np.zeros((levels, 1), np.int64)
        np.add.at(sums[:, 0], codes, np.rint(scaled * STEPS).astype(np.int64))
        return [sums]


# --- a conversion by content ------------------------------------------------------------------------------------


def read_by_nulls(column: Any, declared: Any) -> NDArray[Any]:
    """A column of Arrow as objects if it has a null, and as numpy likes it if it has none."""
    return np.array(column.to_pylist(), object) if column.null_count else np.asarray(column)


def _one_null_moves_nobody_else() -> bool:
    """With one time of three missing, the other two are still in their category."""
    times = [datetime(2020, 1, 1)] * 2
    columns = (pa.array([*times, last], pa.timestamp("ns")) for last in (datetime(2021, 1, 1), None))
    question, codes = Histogram(categories=(times[0],)), np.zeros(3, np.uint8)
    return all(arrays.tally(question, check_values(column, 3), codes, 1)[0].tolist() == [[2]] for column in columns)


# --- a public column that is not public ---------------------------------------------------------------------------


def _who_pays_depends_on_no_row() -> bool:
    """Whatever stands in a person's second row, a question about the north charges the same people, or is refused."""
    paid = set()
    for second in ("north", "south"):
        columns = {"id": [0, 0, 1, 2], "region": ["south", second, "north", "south"], "wage": [1.0, 2.0, 3.0, 4.0]}
        given: dict[str, Any] = {"person": "id", "preferences": 1.0, "ledger": "memory", "rows_per_person": 2}
        try:
            with Dataset(pa.table(columns), **given, public=["region"]) as people:
                people.sum("wage", bounds=(0, 5), where="region = 'north'", entropy=seeded(1))
                paid.add(tuple(sorted(one.people for one in people.ledger.cohorts() if one.spent)))
        except DataError:
            continue
    return len(paid) == 1


# --- exponential mechanisms ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TamperedCount(ExponentialCount):
    """The exponential count with its exponent laid open; as it stands it is honest."""

    factor: Fraction = Fraction(1, 2)

    def sampler(self, question: Question, people: People) -> SegmentSampler:
        assert isinstance(question.statistic, Count)
        ones = people.tally(question.statistic)[0][:, 0]
        return SegmentSampler([count_block(ones, people.levels)], self.factor / NANO)


@dataclass(frozen=True)
class Tampered(ExponentialOrder):
    """The exponential order statistic with its joints laid open; as it stands it is honest."""

    factor: Fraction = Fraction(1, 2)

    def sampler(self, question: Question, people: People) -> SegmentSampler:
        statistic = question.statistic
        assert isinstance(statistic, Order)
        cells = self.place_missing(statistic, people.cells(statistic))
        cost = self.cost(people.levels.grants, cells, statistic.rank(max(cells.people, 1)))
        return SegmentSampler(outward(statistic.points, cells, cost), self.factor / NANO)

    def place_missing(self, statistic: Order, cells: SortedCells) -> SortedCells:
        return cells.with_missing_at(statistic.default_cell)

    def cost(self, grants: tuple[int | None, ...], cells: SortedCells, rank: int) -> Cost:
        return RankCost(grants, cells.totals, rank)


class DroppedMissing(Tampered):
    """People without a value are left out, so n and the rank depend on who is there."""

    def place_missing(self, statistic: Order, cells: SortedCells) -> SortedCells:
        return cells


class MissingAtTheDatasMiddle(Tampered):
    """People without a value stand where the others' median is: one person moves all of them."""

    def place_missing(self, statistic: Order, cells: SortedCells) -> SortedCells:
        if cells.people == 0:
            return super().place_missing(statistic, cells)
        middle = cells.people // 2
        return cells.with_missing_at(int(cells.cells(middle, middle + 1)[0]))


class PositionCost(RankCost):
    """The distance in ranks between the first place of r and the rank asked for, paid by the people beyond r."""

    def at(self, left: Any, upto: Any) -> Any:
        right, position = self.totals - upto, left.sum(axis=1)
        from_left, left_ok = self._cheapest(left, np.maximum(position - self.rank, 0))
        from_right, right_ok = self._cheapest(right, np.maximum(self.rank - position, 0))
        return from_left + from_right, left_ok & right_ok


class RankedWithoutTies(Tampered):
    """A cost by position in the sorted list, which is right until two people have the same value."""

    def cost(self, grants: tuple[int | None, ...], cells: SortedCells, rank: int) -> Cost:
        return PositionCost(grants, cells.totals, rank)


class EveryoneAtTheLargest(Tampered):
    """Changing a person costs the most open person's epsilon, whoever they are."""

    def cost(self, grants: tuple[int | None, ...], cells: SortedCells, rank: int) -> Cost:
        largest = max(g for g in grants if g is not None)
        return RankCost(tuple(None if g is None else largest for g in grants), cells.totals, rank)


@dataclass(frozen=True)
class WithoutHalf(Order):
    """The weighted quantile without the 1/2 in its exponent."""

    def cost(self, question: Question, weighting: Weighting, cells: SortedCells) -> tuple[Cost, Fraction]:
        cost, unit = super().cost(question, weighting, cells)
        return cost, 2 * unit


# --- sampling --------------------------------------------------------------------------------------------------


class GreedyCoins(Coins):
    """A tenth too likely to fall on the side of staying."""

    @cached_property
    def chances(self) -> tuple[int, ...]:
        return tuple(min(ALWAYS, chance * 11 // 10) for chance in Coins(self.grants, self.t).chances)


class GreedySample(Sample):
    """Keeps people a tenth more often than their epsilon allows."""

    def weigh(self, question: Question, levels: Levels) -> Weighting:
        return replace(super().weigh(question, levels), coins=GreedyCoins(levels.grants, self.at(question, levels)))


class ProportionalCoins(Coins):
    """Chances e/t."""

    @cached_property
    def chances(self) -> tuple[int, ...]:
        return tuple(ALWAYS if g is None else min(ALWAYS, ALWAYS * g // self.t) for g in self.grants)


class ProportionalSample(Sample):
    """Keeps people with chance eps/t instead of expm1(eps)/expm1(t)."""

    def weigh(self, question: Question, levels: Levels) -> Weighting:
        coins = ProportionalCoins(levels.grants, self.at(question, levels))
        return replace(super().weigh(question, levels), coins=coins)


@dataclass(frozen=True)
class SampleTwice(Sample):
    """Two noisy counts, seen together and charged twice: each from a sample of its own, or both from one."""

    reuse: bool = False

    def charge(self, question: Question, levels: Levels) -> Charges:
        return tuple(None if c is None else 2 * c for c in super().charge(question, levels))

    def distribution(self, question: Question, people: People) -> Law:
        axis = Axis(1, people.levels.size, Laplace(self._inverse(question, people)))
        labels, given = [], []
        for weight, centre in self._samples(question, people):
            labels, logs = product_distribution([axis], [(1.0, [centre])])
            given.append((weight, np.exp(logs)))
        once = sum(w * law for w, law in given)
        joint = sum(w * np.outer(law, law) for w, law in given) if self.reuse else np.outer(once, once)
        pairs = np.empty(joint.size, object)
        pairs[:] = list(itertools.product(labels, repeat=2))
        return pairs, np.log(joint.reshape(-1))

    def simulate(self, question: Question, people: People, entropy: Entropy, size: int) -> NDArray[np.float64]:
        noises = [discrete_laplace_many(entropy, self._inverse(question, people), size) for _ in range(2)]
        coins = [self._kept_ones(question, people, entropy, size) for _ in range(1 if self.reuse else 2)]
        first, second = (np.clip(coins[-i % len(coins)] + noise, -40, 40) for i, noise in enumerate(noises))
        return np.asarray(first * 100 + second, float)

    def _inverse(self, question: Question, people: People) -> Fraction:
        return weighting_of(self, question, people.levels).rate / NANO

    def _chances(self, question: Question, people: People) -> Iterator[int]:
        assert isinstance(people, ArrayPeople)
        chances = weighting_of(self, question, people.levels).chances
        assert chances is not None
        return (chances[code] for code, x in zip(people.roster.codes, people.values, strict=True) if x == 1)

    def _samples(self, question: Question, people: People) -> Iterator[tuple[float, int]]:
        """(chance, kept ones) of every sample."""
        chances = [c / ALWAYS for c in self._chances(question, people)]
        for kept in itertools.product((False, True), repeat=len(chances)):
            yield math.prod(c if k else 1 - c for c, k in zip(chances, kept, strict=True)), sum(kept)

    def _kept_ones(self, question: Question, people: People, entropy: Entropy, size: int) -> NDArray[np.int64]:
        kept = np.zeros(size, np.int64)
        for chance in self._chances(question, people):
            kept += bernoulli(entropy, chance, size)
        return kept


class SampleThatTellsItsSize(SampleTwice):
    """One noisy count, and exactly how many people were kept for it."""

    def charge(self, question: Question, levels: Levels) -> Charges:
        return Sample(self.threshold).charge(question, levels)

    def distribution(self, question: Question, people: People) -> Law:
        axis = Axis(1, people.levels.size, Laplace(self._inverse(question, people)))
        everything: dict[Any, float] = {}
        for weight, centre in self._samples(question, people):
            for label, log in zip(*product_distribution([axis], [(1.0, [centre])]), strict=True):
                everything[(centre, label)] = everything.get((centre, label), 0.0) + weight * math.exp(log)
        labels = np.empty(len(everything), object)
        labels[:] = list(everything)
        with np.errstate(divide="ignore"):
            return labels, np.log(list(everything.values()))


# --- the auditor itself ----------------------------------------------------------------------------------------


def _told(loss: float, unlisted: float = 0.0) -> Callable[[NDArray[np.float64]], tuple[list[str], list[float]]]:
    """A fair coin for a person who is absent; for one who is there it tells so much, or is not always listed."""
    tails = math.exp(-loss) / 2
    there = [(1 - tails) * (1 - unlisted), tails * (1 - unlisted)]
    return lambda values: (["heads", "tails"], [0.5, 0.5] if math.isnan(values[0]) else there)


def _auditor_sees_a_small_excess() -> bool:
    honest, leaky = (enumerate_losses(_told(loss), [(1,)], [1e-10]).holds for loss in (1e-10, 4.8e-10))
    return honest and not leaky


def _auditor_sees_what_is_not_listed() -> bool:
    honest, leaky = (enumerate_losses(_told(0.0, mass), [(1,)], [1.0]).holds for mass in (0.0, 5e-7))
    return honest and not leaky


_divide, _read_law = auditing._divide, auditing.read_law


def _divide_absolutely(loss: float, allowed: float) -> float:
    """A tolerance of a billionth, however small epsilon is."""
    return _divide(loss, allowed + 1e-9)


def _read_listed(*given: Any) -> Any:
    """What is not listed does not exist."""
    return _read_law(*given)._replace(unlisted=0.0)


# --- algorithms of one's own -----------------------------------------------------------------------------------


def call_by_place(given: Callable[..., Any], name: str) -> tuple[Callable[[Any, float], Any], bool]:
    """Data and epsilon by place, whatever the function calls them."""
    return lambda sample, epsilon: given(sample, epsilon), False


def seeds_accepted() -> Any:
    """A ledger in a file that takes a seed and says nothing of it, while a block lasts."""
    return patch.object(Attempt, "seeded", False)


# --- the list --------------------------------------------------------------------------------------------------

BITS = (0.0, 1.0, ABSENT)
SPREAD = (-1.0, 0.5, 2.0, ABSENT)
#: Few people at the left end of a long grid: where one person moves, almost all of the probability moves the other way.
LONG = order.Order((0.0, 2000.0), 1, from_low=1, label="quantile")
LONG_DOMAIN = (0.0, 1.0, 2000.0)
TWENTY = order.median((0.0, 200.0), 1)


def _plant(
    name: str,
    honest: Mechanism,
    broken: Mechanism | None,
    question: Question,
    epsilons: tuple[float, ...],
    domain: tuple[float, ...],
    *,
    instead: Any = None,
    claim: type[Claim] = Claim,
    pair: Pair | None = None,
    draws: int = 1_000_000,
) -> Plant:
    """A bug in the mechanism (`broken`) or in the statistic (`instead`)."""
    asked = question if instead is None else replace(question, statistic=instead)
    return Plant(
        name,
        claim(honest, question, epsilons, domain),
        claim(honest if broken is None else broken, asked, epsilons, domain),
        pair,
        draws,
    )


def _break(name: str, check: Callable[[], bool], *replaced: tuple[Any, str, Any]) -> Plant:
    """A bug in any other code: the check must not hold once (module or class, name, instead) are replaced."""
    return Plant(name, Check(check), Check(check, replaced))


# --- concentrated accounts -------------------------------------------------------------------------------------------


def _rho_is_paid_for() -> bool:
    """Of a count at the strictest strength, in exact fractions: nobody loses more rho than is charged."""
    return all((largest_part(case) or 0) <= 1 for case in concentrated_cases("minimum", ["count"], [(0.7, 0.7, 0.7)]))


def _narrow(self: Weighting, square: Fraction) -> Fraction:
    """A standard deviation 5% small."""
    return square * (NANO * self.one * Fraction(95, 100) / self.rate) ** 2


def _replacing_is_paid_for() -> bool:
    """A sum of values from -1 to 1 with Gaussian noise, at rho for an absence: a swap moves it twice as far."""
    variance, cells = 8.0, np.arange(-200, 201)
    promised = Guarantee("absent", ((NANO, FEMTO // 16),), measure=Measure(Fraction(1, 10**6)))
    ((_, allowed),) = promised.with_neighbors("replace").losses
    laws = [-((cells - away) ** 2) / (2 * variance) for away in (-1, 1)]
    laws = [law - math.log(np.exp(law).sum()) for law in laws]
    return all(
        renyi(laws[0], laws[1], order) <= order * (allowed or 0) / FEMTO * (1 + 1e-9) for order in (1.5, 2.0, 8.0)
    )


def _twice(self: Guarantee, neighbors: str) -> Guarantee:
    """As if rho grew like epsilon."""
    return replace(self, neighbors=neighbors, losses=tuple((g, None if e is None else 2 * e) for g, e in self.losses))


def _gaussian_is_exact() -> bool:
    """Noise of deviation 1/2 as a release draws it: 0 comes up with a chance of 0.7866, not 0.6827 as by rounding."""
    drawn = Gaussian(Fraction(1, 4)).draw(seeded(8), 4000)
    return abs(drawn.count(0) / len(drawn) - math.exp(-gaussian_log_normaliser(Fraction(1, 4)))) < 0.03


def _by_floats(entropy: Any, variance: Fraction) -> int:
    """A float Gaussian, rounded."""
    uniform = (entropy.bits(53) + 0.5) / 2**53
    return round(NormalDist(0, math.sqrt(variance)).inv_cdf(uniform))


COUNT, SUM = Question(Count()), Question(Sum((-1.0, 2.0)))
HISTOGRAM = Histogram(edges=(0.0, 1.0, 2.0))
ALIKE, MIXED = (0.5, 0.5, 0.5), (0.1, 1.5, 1.5)
_LASTING = Measure(Fraction(1, 10**6))
_AT_DELTA = Question(Count(), measure=_LASTING)

PLANTS: tuple[Plant, ...] = (
    _plant(
        "noise scale 10% small",
        Minimum(),
        SmallScale(),
        COUNT,
        ALIKE,
        BITS,
        pair=Pair((1, 1, 1), (1, 1, ABSENT)),
    ),
    _plant("noise scale 10% small, at a tiny epsilon", Minimum(), SmallScale(), COUNT, (0.01, 0.02), BITS),
    _plant(
        "alpha over the data instead of the roster",
        Minimum(),
        AlphaOfTheData(),
        COUNT,
        (0.5, 3.0, 3.0),
        BITS,
        pair=Pair((0, 1, 1), (ABSENT, 1, 1)),
        draws=400_000,
    ),
    _plant(
        "threshold keeps people below it",
        Threshold("max"),
        OffByOneThreshold("max"),
        COUNT,
        (0.5, 1.0, 2.0),
        BITS,
        pair=Pair((1, 1, 1), (1, ABSENT, 1)),
        draws=100_000,
    ),
    _plant("weights forgotten", Stretching(), ForgottenWeights(), SUM, MIXED, SPREAD),
    _plant("weights rounded up", Weighted(), RoundedUpWeights(), COUNT, (0.1, 0.7, 1.3), BITS, claim=RationalClaim),
    _plant("charge rounded down", Robust(), RoundedDownCharge(), COUNT, (0.1, 0.7, 1.3), BITS, claim=RationalClaim),
    _plant("cap charged but passed", Weighted(), CapPassed(), COUNT, (2.0, 3.0, 30.0), BITS),
    _plant("one level's noise for all levels", MixedMean(), OneLevelsNoiseForAll(), COUNT, (0.2, 0.5, 1.0), BITS),
    _plant(
        "one level's noise for all levels, in means of rows",
        MixedRatio(),
        OneLevelsNoiseForAllRows(),
        Question(Mean.over(Scope(), (-1.0, 2.0), "absent", None)),
        (0.2, 0.5),
        (-1.0, 2.0, ABSENT),
    ),
    _plant(
        "half the width under replace",
        Minimum(),
        None,
        replace(SUM, neighbors="replace"),
        ALIKE,
        SPREAD,
        instead=SumWithoutReplacement((-1.0, 2.0)),
        pair=Pair((2, 2, 2), (2, 2, -1)),
        draws=100_000,
    ),
    _plant(
        "histogram reach of 1 under replace",
        Minimum(),
        None,
        Question(HISTOGRAM, "replace"),
        ALIKE,
        (0.0, 2.0, ABSENT),
        instead=HistogramWithoutReplacement(edges=HISTOGRAM.edges),
    ),
    _plant(
        "variance paid once for two sums",
        Weighted(),
        None,
        Question(Variance((-1.0, 2.0))),
        MIXED,
        SPREAD,
        instead=VariancePaidOnce((-1.0, 2.0)),
    ),
    _plant("values not clamped", Robust(), None, SUM, MIXED, (*SPREAD, 9.0), instead=UnclampedSum((-1.0, 2.0))),
    _plant(
        "missing people at the lower bound",
        Stretching(),
        None,
        SUM,
        MIXED,
        SPREAD,
        instead=MissingAtTheLowerBound((-1.0, 2.0)),
    ),
    _plant(
        "bounds read from the data",
        Minimum(),
        None,
        SUM,
        (0.5,) * 4,
        (0.4, 2.0, ABSENT),
        instead=BoundsOfTheData((-1.0, 2.0)),
    ),
    _plant(
        "missing 1/2 in the exponential mechanism",
        ExponentialCount(),
        TamperedCount(factor=Fraction(1)),
        replace(COUNT, neighbors="replace"),
        (1.0,) * 6,
        (0.0, 1.0),
        pair=Pair((0, 0, 0, 0, 0, 0), (1, 0, 0, 0, 0, 0)),
        draws=200_000,
    ),
    _plant(
        "exponential mechanism 10% too sharp",
        ExponentialOrder(),
        Tampered(factor=Fraction(10, 18)),
        Question(LONG, "replace"),
        (1.0,) * 3,
        LONG_DOMAIN,
    ),
    _plant(
        "missing 1/2 in the weighted quantile",
        Weighted(),
        None,
        Question(TWENTY, "replace"),
        (1.0,) * 3,
        (0.0, 1.0, 200.0),
        instead=WithoutHalf(TWENTY.bounds, TWENTY.step, q=TWENTY.q, label=TWENTY.label),
        pair=Pair((0, 1, 1), (200, 1, 1)),
        draws=400_000,
    ),
    _plant(
        "cost by position, wrong on ties",
        ExponentialOrder(),
        RankedWithoutTies(),
        Question(order.median((0.0, 4.0), 1), "replace"),
        MIXED,
        (0.0, 2.0, 4.0),
    ),
    _plant(
        "missing people dropped by the exponential mechanism",
        ExponentialOrder(),
        DroppedMissing(),
        Question(order.median((0.0, 4.0), 1)),
        (0.05, 2.0, 2.0),
        (0.0, 2.0, 4.0, ABSENT),
    ),
    _plant(
        "missing people where the data's middle is",
        ExponentialOrder(),
        MissingAtTheDatasMiddle(),
        Question(order.median((0.0, 4.0), 1), "replace"),
        MIXED,
        (0.0, 2.0, 4.0, ABSENT),
    ),
    _plant(
        "everyone changed at the largest epsilon",
        ExponentialOrder(),
        EveryoneAtTheLargest(),
        Question(order.minimum((0.0, 4.0), 1), "replace"),
        MIXED,
        (0.0, 2.0, 4.0),
    ),
    _plant("sample keeps 10% too often", Sample("max"), GreedySample("max"), COUNT, (0.5, 1.0, 2.0), BITS),
    _plant("sample keeps in proportion", Sample("max"), ProportionalSample("max"), COUNT, (0.5, 1.0, 2.0), BITS),
    _plant(
        "one sample for two releases",
        SampleTwice("max"),
        SampleTwice("max", reuse=True),
        COUNT,
        (0.5, 2.0),
        BITS,
        pair=Pair((1, 1), (ABSENT, 1)),
        draws=400_000,
    ),
    _plant("sample tells its size", Sample("max"), SampleThatTellsItsSize("max"), COUNT, (0.5, 1.0), BITS),
    _plant(
        "4.8 times an epsilon that is smaller than an absolute tolerance",
        Minimum(),
        SmallScale(part=Fraction(10, 48)),
        COUNT,
        (1e-9, 2e-9),
        BITS,
        claim=ClaimToTheAuditor,
    ),
    _plant("a secret that is not listed", Minimum(), UnlistedSecret(), COUNT, ALIKE, BITS, claim=ClaimToTheAuditor),
    _break(
        "a public column that is not public",
        _who_pays_depends_on_no_row,
        (public, "check_alike", lambda name, unsaid, differs: None),
    ),
    _break(
        "an auditor with an absolute tolerance",
        _auditor_sees_a_small_excess,
        (auditing, "_divide", _divide_absolutely),
    ),
    _break(
        "an auditor that ignores what is not listed",
        _auditor_sees_what_is_not_listed,
        (auditing, "read_law", _read_listed),
    ),
    _break("a conversion that looks for nulls", _one_null_moves_nobody_else, (readings, "_of_arrow", read_by_nulls)),
    _break("Gaussian deviation 5% small", _rho_is_paid_for, (Weighting, "variance", _narrow)),
    _break("a replaced person counted at 2 rho", _replacing_is_paid_for, (Guarantee, "with_neighbors", _twice)),
    _plant(
        "a deviation 5% small at a delta",
        Minimum(),
        SmallScale(Fraction(95, 100)),
        _AT_DELTA,
        ALIKE,
        BITS,
        claim=ClaimInRho,
    ),
    _plant(
        "a swap at the variance of 2 rho",
        Minimum(),
        None,
        Question(Sum((-1.0, 2.0)), "replace", measure=_LASTING),
        ALIKE,
        SPREAD,
        instead=SumReplacedAtTwiceRho((-1.0, 2.0)),
        claim=ClaimInRho,
    ),
    _plant("a Gaussian of floats, as drawn", Minimum(), FloatNoise(), _AT_DELTA, ALIKE, BITS, claim=ClaimOfFloats),
    _break("a float Gaussian", _gaussian_is_exact, (gaussian, "discrete_gaussian", _by_floats)),
)
