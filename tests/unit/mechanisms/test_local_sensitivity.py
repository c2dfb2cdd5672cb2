"""Individual and group privacy: the scale is max LS_i/e_i by brute force, the promise holds with that scale frozen and
fails as DP, and nothing but the answer shows any of it."""

from __future__ import annotations

import functools
import itertools
import json
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import cauchy, laplace

import epsilons as eps
from epsilons.auditing import ABSENT, Verdict, all_datasets, enumerate_losses
from epsilons.errors import PlanError, PreferenceError
from epsilons.guarantee import INDIVIDUAL, NANO, NO_PROMISE, PERSONALIZED, ROSTER_IS_PUBLIC
from epsilons.mechanisms.base import create, list_mechanisms
from epsilons.mechanisms.local_sensitivity import NOT_DP, LocalUnbounded
from epsilons.preferences import Roster, roster_of
from epsilons.statistics import order
from epsilons.statistics.base import Question, Statistic
from epsilons.statistics.count import Count
from epsilons.statistics.histogram import Histogram
from epsilons.statistics.order import Order
from epsilons.statistics.total import Mean, Sum
from epsilons.statistics.unbounded import UnboundedMedian, UnboundedOrder, UnboundedQuantile
from epsilons.statistics.variance import Variance
from epsilons.summaries.arrays import STEPS, ArrayPeople
from epsilons.testing import seeded
from support.lengths import short_and_long, some
from support.replacing import Table, at_rank, middle_sum, replaced

PUBLIC, NAN, INF = eps.PUBLIC, math.nan, math.inf
GRID = (0, 1, 2, 3)
BOUNDS = (0.0, 3.0)
ORDERS: dict[str, Order] = {
    "median": order.median(BOUNDS, 1),
    "first decile": order.quantile(0.1, BOUNDS, 1),
    "third": order.quantile(0.3, BOUNDS, 1),
    "middle": order.quantile(0.5, BOUNDS, 1),
    "last decile": order.quantile(0.9, BOUNDS, 1),
    "min": order.minimum(BOUNDS, 1),
    "max": order.maximum(BOUNDS, 1),
    "second largest": order.kth_largest(2, BOUNDS, 1),
}
#: By the number of people: all alike, all different, two of a kind, somebody public.
ROSTERS: dict[int, list[list[float]]] = {
    1: [[0.5]],
    2: [[0.5, 0.5], [1.0, 0.1]],
    3: [[0.7] * 3, [0.2, 1.0, 0.5], [0.3, PUBLIC, 1.0]],
    4: [[0.7] * 4, [1.0, 0.05, 0.4, 0.4], [PUBLIC, 0.5, PUBLIC, 2.0]],
    5: [[1.0] * 5, [0.1, 2.0, 0.5, 0.5, PUBLIC]],
}


class LocalSensitivity:
    """Each question goes to the class that serves its statistic."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def ask(question: Question, *rest: Any) -> Any:
            return getattr(create("local-sensitivity", question.statistic), name)(question, *rest)

        return ask


MECHANISM = LocalSensitivity()


@functools.cache
def roster(*epsilons: float) -> Roster:
    return roster_of(list(epsilons))


def people_of(values: Sequence[Any], epsilons: Sequence[float]) -> ArrayPeople:
    return ArrayPeople.of(np.array(values, float), roster(*epsilons))


def nanos(epsilon: float) -> int:
    return round(epsilon * NANO)


def asked(statistic: Statistic, groups: Sequence[float] = ()) -> Question:
    kind = "group" if groups else "individual"
    return Question(statistic, privacy=kind, groups=tuple(nanos(g) for g in groups))


def inverse(reaches: Sequence[int], epsilons: Sequence[float]) -> Fraction | None:
    """1/max_i(LS_i/e_i), over those who want privacy and can move the answer."""
    pairs = [(r, e) for r, e in zip(reaches, epsilons, strict=True) if math.isfinite(e)]
    scale = max((Fraction(int(r) * NANO, nanos(e)) for r, e in pairs), default=Fraction(0))
    return 1 / scale if scale else None


def definition(statistic: Order, people: int) -> Callable[[NDArray[np.int64]], NDArray[np.int64]]:
    if statistic.label == "median" and people % 2 == 0:
        return middle_sum
    return at_rank(statistic.rank(people))


# The scale -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("every", short_and_long(7, 1))
@pytest.mark.parametrize("name", ORDERS)
@pytest.mark.parametrize("people", ROSTERS)
def test_the_scale_honours_each_person_s_own_epsilon(name: str, people: int, every: int) -> None:
    """In the short run on every seventh data set of four and five people, on others with the next roster."""
    statistic = ORDERS[name]
    table = Table(GRID, people, definition(statistic, people))
    for turn, epsilons in enumerate(ROSTERS[people]):
        alike = len(set(epsilons)) == 1  # then nobody's place matters
        part = slice(turn % every, None, every) if people > 3 else slice(None)
        for data, answer, reach in zip(table.data[part], table.answers[part], table.of_persons()[part], strict=True):
            if alike and people > 3 and (np.diff(data) < 0).any():
                continue
            here = people_of(data, epsilons)
            assert MECHANISM.rate(asked(statistic), here) == inverse(reach, epsilons), (data, epsilons)
            assert MECHANISM.here(asked(statistic), here).answer == answer


@pytest.mark.parametrize("every", short_and_long(11, 3))
@pytest.mark.parametrize("name", ["median", "first decile", "max", "second largest"])
@pytest.mark.parametrize("people", [2, 3, 4, 5])
@pytest.mark.parametrize("groups", [(1.0,), (1.0, 0.5), (0.1, 1.0, 5.0), (2.0, 1.9, 1.8, 1.7, 1.6, 1.5)])
def test_the_scale_honours_each_size_of_group(name: str, people: int, groups: tuple[float, ...], every: int) -> None:
    """In the short run on every eleventh data set of four and five people."""
    statistic = ORDERS[name]
    table = Table(GRID, people, definition(statistic, people))
    reaches = np.stack([table.of_groups(size) for size in range(1, len(groups) + 1)], axis=1)
    part = slice(None, None, every if people > 3 else 3)
    for data, reach in zip(table.data[part], reaches[part], strict=True):
        rate = MECHANISM.rate(asked(statistic, groups), people_of(data, [groups[0]] * people))
        assert rate == inverse(reach, groups), (data, groups)


def test_a_missing_person_stands_at_the_centre() -> None:
    for data in itertools.product((0.0, 1.0, 3.0, NAN), repeat=3):
        filled = [2.0 if math.isnan(x) else x for x in data]  # the point nearest to 1.5, ties to even
        for statistic in ORDERS.values():
            gone, there = (people_of(d, [0.3, 1.0, 0.5]) for d in (data, filled))
            assert MECHANISM.rate(asked(statistic), gone) == MECHANISM.rate(asked(statistic), there)
            assert MECHANISM.here(asked(statistic), gone) == MECHANISM.here(asked(statistic), there)


NUMBERS = (0.0, 2.5, 5.0, 10.0, NAN, INF, -INF, 99.0)


@pytest.mark.parametrize("statistic", [Sum((0.0, 10.0)), Mean((0.0, 10.0))], ids=["sum", "mean"])
def test_the_scale_of_sums_and_means(statistic: Sum | Mean) -> None:
    epsilons = [0.2, 1.0, PUBLIC]

    @functools.cache
    def steps_of(data: tuple[float, ...]) -> int:
        return int(people_of(data, epsilons).tally(statistic)[0].sum())

    def steps(data: Sequence[float]) -> int:
        return steps_of(tuple(data))

    for data in itertools.product(NUMBERS, NUMBERS, (0.0, 7.0)):
        moved = [max(abs(steps(o) - steps(data)) for o in replaced(data, [i], NUMBERS)) for i in range(3)]
        assert MECHANISM.rate(asked(statistic), people_of(data, epsilons)) == inverse(moved, epsilons), data
        pairs = itertools.combinations(range(3), 2)
        both = max(abs(steps(other) - steps(data)) for pair in pairs for other in replaced(data, pair, (0, 10)))
        grouped = MECHANISM.rate(asked(statistic, (0.5, 0.6)), people_of(data, [0.5] * 3))
        assert grouped == inverse([max(moved), both], (0.5, 0.6)), data


def test_the_scale_of_counts_and_histograms_is_the_same_for_all_data() -> None:
    cases: list[tuple[Statistic, int]] = [
        (Count(), 1),
        (Histogram(edges=(0.0, 2.0)), 1),
        (Histogram(edges=(0.0, 1.0, 2.0)), 2),
        (Histogram(categories=(0.0, 1.0, 2.0)), 2),
    ]
    for statistic, reach in cases:
        for data in itertools.product((0.0, 1.0, 5.0, NAN), repeat=3):
            rate = MECHANISM.rate(asked(statistic), people_of(data, [1.0, 0.25, PUBLIC]))
            assert rate == Fraction(1, 4) / reach
            rate = MECHANISM.rate(asked(statistic, (1.0, 0.5, 0.6, 0.1)), people_of(data, [1.0] * 3))
            assert rate == Fraction(1, 10) / (3 * reach)  # a group of four is the roster of three


@pytest.mark.parametrize("k", [2, 3])
def test_the_scale_without_bounds(k: int) -> None:
    anywhere, epsilons = (-1000, 0, 1, 3, 1000), [0.5, 0.1, 2.0, PUBLIC]
    table = Table(anywhere, 4, at_rank(4 - k))
    inside = (np.abs(table.data) < 1000).all(axis=1)
    for data, reach in zip(table.data[inside], table.of_persons()[inside], strict=True):
        assert MECHANISM.rate(asked(UnboundedOrder(k, 1)), people_of(data, epsilons)) == inverse(reach, epsilons)
    if k == 3:
        with pytest.raises(PlanError, match="3 people are too few"):
            MECHANISM.rate(asked(UnboundedOrder(k, 1)), people_of([0, 1, 2], [1.0] * 3))


def test_a_group_without_bounds() -> None:
    table = Table((-1000, 0, 1, 3, 1000), 5, at_rank(2))
    inside = (np.abs(table.data) < 1000).all(axis=1)
    for data, one, two in zip(table.data[inside], *(table.of_groups(s)[inside] for s in (1, 2)), strict=True):
        rate = MECHANISM.rate(asked(UnboundedOrder(3, 1), (1.0, 1.5)), people_of(data, [1.0] * 5))
        assert rate == inverse([one, two], (1.0, 1.5))
    with pytest.raises(PlanError, match="A group of 3 could move the answer for k=3 any distance"):
        MECHANISM.rate(asked(UnboundedOrder(3, 1), (1.0, 1.5, 2.0)), people_of(table.data[0], [1.0] * 5))


def middle(data: Any) -> int:
    """Twice the median: of an even number of values the sum of the two in the middle."""
    ordered = sorted(int(x) for x in data)
    half = len(ordered) // 2
    return ordered[half] + ordered[half - 1] if len(ordered) % 2 == 0 else 2 * ordered[half]


@pytest.mark.parametrize("people", [3, 4, 5])
def test_the_scale_of_a_median_without_bounds(people: int) -> None:
    """Each person's local sensitivity by looking at all replacements, from far below to far above; groups of two."""
    anywhere, epsilons = (-1000, 0, 1, 3, 1000), [0.5, 0.1, 2.0, PUBLIC, 1.0][:people]
    unit = Fraction(1, 2) if people % 2 == 0 else Fraction(1)
    question, grouped = asked(UnboundedMedian(Fraction(1, 2), 1)), asked(UnboundedMedian(Fraction(1, 2), 1), (1.0, 1.5))
    for data in itertools.product((0, 1, 3), repeat=people):
        moved = [max(abs(middle(o) - middle(data)) for o in replaced(data, [i], anywhere)) for i in range(people)]
        reach = [int(m / (2 * unit)) for m in moved]
        here = LocalUnbounded()._local(question, people_of(data, epsilons))
        assert (here.answer * here.step, here.step) == (Fraction(middle(data), 2), unit)
        assert MECHANISM.rate(question, people_of(data, epsilons)) == inverse(reach, epsilons), data
        if people == 5:
            pairs = itertools.combinations(range(people), 2)
            both = max(abs(middle(o) - middle(data)) for pair in pairs for o in replaced(data, pair, anywhere))
            rate = MECHANISM.rate(grouped, people_of(data, [1.0] * people))
            assert rate == inverse([max(reach), both // 2], (1.0, 1.5)), data


@pytest.mark.parametrize("q", ["1/4", "1/2", "3/4"])
def test_the_scale_of_a_quantile_without_bounds(q: str) -> None:
    epsilons, anywhere = [0.5, 0.1, 2.0, 1.0], (-1000, 0, 1, 3, 1000)
    rank = int(Fraction(q) * 4)
    question = asked(UnboundedQuantile(Fraction(q), 1))
    for data in itertools.product((0, 1, 3), repeat=4):
        if rank == 3:  # one above it would be needed
            with pytest.raises(PlanError, match="too few"):
                MECHANISM.rate(question, people_of(data, epsilons))
            continue
        there = sorted(data)[rank]
        reach = [max(abs(sorted(o)[rank] - there) for o in replaced(data, [i], anywhere)) for i in range(4)]
        assert MECHANISM.rate(question, people_of(data, epsilons)) == inverse(reach, epsilons), data


def test_medians_without_bounds_are_answered() -> None:
    assert eps.median([5] * 9, 0.01, complete=True, privacy="individual").value == 5
    assert eps.median([4, 5, 5, 5, 5, 9], 0.01, complete=True, privacy="individual").value == 5
    assert eps.quantile([3] * 11, 0.01, 0.9, complete=True, step=1, privacy="individual").value == 3
    assert eps.median([1, 2, 9, 10], PUBLIC, complete=True, privacy="individual").value == 5.5
    told = eps.median([1, 2, 9], 1.0, complete=True, privacy="individual")
    assert told.statistic == "median (no bounds)"


# What is promised: the actual data against its neighbours, the scale frozen ------------------------------------------

AUDITED: dict[str, tuple[Statistic, tuple[float, ...]]] = {
    "count": (Count(), (0.0, 1.0, ABSENT)),
    "median": (order.median((0, 2), 1), (0.0, 1.0, 2.0, ABSENT)),
    "quantile": (order.quantile(0.3, (0, 3), 1), (0.0, 1.0, 3.0)),
    "min": (order.minimum((0, 3), 1), (0.0, 1.0, 3.0)),
    "max": (order.maximum((0, 3), 1), (0.0, 2.0, 3.0)),
    "second largest": (order.kth_largest(2, (0, 3), 1), (0.0, 2.0, 3.0, ABSENT)),
}
AUDITORS = [[0.7, 0.7, 0.7], [0.2, 1.0, 0.5], [0.3, PUBLIC, 1.0], [1.0, 0.05, 0.4, 0.4]]


def frozen(
    statistic: Statistic, data: Sequence[float], epsilons: Sequence[float], domain: Sequence[float], planted: Fraction
) -> Verdict:
    """One data set against all its neighbours, every one of them with the noise of this one (times 1/`planted`)."""
    question = asked(statistic)
    rate = MECHANISM.rate(question, people_of(data, epsilons))
    wrong = None if rate is None else rate * planted
    return enumerate_losses(
        lambda values: MECHANISM.distribution_at(question, people_of(values, epsilons), wrong),
        [data],
        epsilons,
        domain=domain,
        neighbors="replace",
        log=True,
    )


def audits(name: str, every: int, planted: Fraction = Fraction(1)) -> Iterator[tuple[Verdict, list[float]]]:
    statistic, domain = AUDITED[name]
    for turn, epsilons in enumerate(AUDITORS):
        datasets = all_datasets(domain[:3] if len(epsilons) > 3 else domain, len(epsilons))
        for data in itertools.islice(datasets, turn % every, None, every):
            yield frozen(statistic, data, epsilons, domain, planted), epsilons


@pytest.mark.parametrize("every", short_and_long(2, 1))
@pytest.mark.parametrize("name", AUDITED)
def test_with_the_scale_frozen_nobody_loses_more_than_their_own_epsilon(name: str, every: int) -> None:
    largest: dict[tuple[float, ...], float] = {}
    for verdict, epsilons in audits(name, every):
        assert verdict.holds, str(verdict)
        assert verdict.worst is not None
        largest[tuple(epsilons)] = max(largest.get(tuple(epsilons), 0.0), verdict.worst.ratio)
    assert min(largest.values()) > 0.999, "on some data somebody loses all of it: the noise is not larger than needed"


@pytest.mark.parametrize("every", short_and_long(2, 1))
@pytest.mark.parametrize("name", AUDITED)
def test_a_scale_a_tenth_too_small_is_seen(name: str, every: int) -> None:
    assert not all(verdict.holds for verdict, _ in audits(name, every, planted=Fraction(10, 9)))


def test_as_dp_the_loss_is_infinite() -> None:
    """The scale gives it away: no noise on {0,0,0,0,1}, noise on {0,0,0,1,1}."""
    question, epsilons = asked(order.median((0, 1), 1)), [1.0] * 5
    flat, steep = (0.0, 0.0, 0.0, 0.0, 1.0), (0.0, 0.0, 0.0, 1.0, 1.0)
    assert MECHANISM.rate(question, people_of(flat, epsilons)) is None
    assert MECHANISM.rate(question, people_of(steep, epsilons)) == 1

    def as_it_is(values: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[np.float64]]:
        return MECHANISM.distribution(question, people_of(values.tolist(), epsilons))

    verdict = enumerate_losses(as_it_is, [flat], epsilons, domain=(0.0, 1.0), neighbors="replace", log=True)
    assert not verdict.holds
    assert verdict.worst is not None
    assert verdict.worst.loss == math.inf
    assert (verdict.worst.data, sorted(verdict.worst.neighbour)) == (flat, list(steep))
    for data in (flat, steep):
        assert frozen(order.median((0, 1), 1), data, epsilons, (0.0, 1.0), Fraction(1)).holds


def test_groups_lose_at_most_their_epsilon_with_the_scale_frozen() -> None:
    groups = (0.5, 0.8, 0.9)
    question = asked(order.median((0, 3), 1), groups)
    for data in itertools.islice(all_datasets(GRID, 4), 0, None, 5):
        rate = MECHANISM.rate(question, people_of(data, [0.5] * 4))
        _, here = MECHANISM.distribution_at(question, people_of(data, [0.5] * 4), rate)
        for size, epsilon in enumerate(groups, 1):
            for group in itertools.combinations(range(4), size):
                for other in replaced(data, group, (0, 3)):
                    _, there = MECHANISM.distribution_at(question, people_of(other, [0.5] * 4), rate)
                    possible = ~(np.isinf(here) & np.isinf(there))
                    assert np.abs(here[possible] - there[possible]).max() <= epsilon * (1 + 1e-9), (data, other)


@pytest.mark.parametrize("rate", [Fraction(1, 1000), Fraction(1, 10), Fraction(1), Fraction(50)])
def test_listed_outcomes_have_all_the_chance_there_is(rate: Fraction) -> None:
    for statistic in (Count(), order.median((0, 3), 1)):
        _, logs = MECHANISM.distribution_at(asked(statistic), people_of([0, 1, 1, 3], [1.0] * 4), rate)
        assert np.exp(logs).sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("statistic", [Sum(BOUNDS), Histogram(edges=(0, 1, 2)), UnboundedOrder(2)])
def test_what_is_not_listed_says_so(statistic: Statistic) -> None:
    here = people_of([0, 1, 2], [1.0] * 3)
    with pytest.raises(PlanError, match="Only counts and order statistics"):
        MECHANISM.distribution(asked(statistic), here)
    with pytest.raises(PlanError, match="Only counts and order statistics"):
        MECHANISM.simulate(asked(statistic), here, seeded(1), 3)


# The noise fits the scale --------------------------------------------------------------------------------------------


def fits(noise: NDArray[np.float64], rate: float) -> bool:
    """Whether the mean square of discrete Laplace noise is 2q/(1-q)^2, q = exp(-rate), give or take 4 deviations.

    The square of Laplace noise has a relative deviation of sqrt(5); discrete noise of the scales here hardly more.
    """
    q = math.exp(-rate)
    expected = 2 * q / (1 - q) ** 2
    return abs(float((noise**2).mean()) / expected - 1) < 4 * math.sqrt(5 / len(noise))


def accepts_the_truth_alone(noise: NDArray[np.float64], rate: Fraction | None) -> None:
    assert rate is not None
    assert abs(noise.mean()) < 5 * math.sqrt(2 / len(noise)) / float(rate), "centred on the exact answer"
    assert fits(noise, float(rate))
    assert not fits(noise, float(rate) * 0.9)
    assert not fits(noise, float(rate) / 0.9)


WIDE = (-5000.0, 5000.0)
CLUSTER, CLUSTER_EPSILONS = [-9, -4, 0, 7, 20, 31], [0.5, 1.0, 0.5, 2.0, 1.0, PUBLIC]


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("statistic", "truth", "grain"),
    [
        (Count(), 0.0, 1.0),
        (order.median(WIDE, 1), 3.5, 0.5),
        (order.quantile(0.5, WIDE, 1), 7.0, 1.0),
        (order.kth_largest(2, WIDE, 1), 20.0, 1.0),
    ],
)
def test_many_draws_have_the_variance_of_the_scale(statistic: Statistic, truth: float, grain: float) -> None:
    here = people_of(CLUSTER, CLUSTER_EPSILONS)
    drawn = MECHANISM.simulate(asked(statistic), here, seeded(11), 60_000)
    accepts_the_truth_alone((drawn - truth) / grain, MECHANISM.rate(asked(statistic), here))


@pytest.mark.statistical
@pytest.mark.parametrize("draws", short_and_long(4_000, 6_000))
@pytest.mark.parametrize(
    ("statistic", "truth", "grain"),
    some(
        [
            (Sum(WIDE), 45.0, 5000 / STEPS),
            (Mean(WIDE), 7.5, 5000 / STEPS / 6),
            (UnboundedOrder(2, 1), 20.0, 1.0),
            (UnboundedOrder(2), 20.0, 1e-6),
            (order.median(WIDE, 1), 3.5, 0.5),
        ],
        # A mean is its sum divided, and another step another unit: both are for the long run.
        lambda case: case[0] in (Sum(WIDE), UnboundedOrder(2), order.median(WIDE, 1)),
    ),
)
def test_single_draws_have_the_variance_of_the_scale(
    statistic: Statistic, truth: float, grain: float, draws: int
) -> None:
    here, source = people_of(CLUSTER, CLUSTER_EPSILONS), seeded(12)
    drawn = np.array([MECHANISM.draw(asked(statistic), here, source).value for _ in range(draws)])
    accepts_the_truth_alone((drawn - truth) / grain, MECHANISM.rate(asked(statistic), here))


@pytest.mark.statistical
@pytest.mark.parametrize("draws", short_and_long(200, 500))
def test_every_bin_has_noise_of_its_own(draws: int) -> None:
    statistic = Histogram(edges=tuple(range(-10, 41)))
    here, source = people_of(CLUSTER, CLUSTER_EPSILONS), seeded(13)
    truth = np.array([sum(low <= x < low + 1 for x in CLUSTER) for low in range(-10, 40)])
    drawn = [MECHANISM.draw(asked(statistic), here, source).value for _ in range(draws)]
    noise = np.array([list(bins.values()) for bins in drawn]) - truth
    accepts_the_truth_alone(noise.ravel().astype(float), MECHANISM.rate(asked(statistic), here))
    assert abs(np.corrcoef(noise[:, :-1].ravel(), noise[:, 1:].ravel())[0, 1]) < 0.03


# Where nobody can move the answer it is exact ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ask", "answer"),
    [
        (lambda: eps.median([0, 0, 0, 0, 1], 0.01, bounds=(0, 1), step=1, complete=True, privacy="individual"), 0),
        (lambda: eps.median([2, 5, 5, 5, 5, 9], 0.01, bounds=(0, 9), step=1, complete=True, privacy="individual"), 5),
        (lambda: eps.quantile([3, 3, 3, 3], 0.01, 0.5, bounds=(0, 8), complete=True, privacy="individual"), 3.0),
        (lambda: eps.kth_largest([1, 7, 7, 7], 0.01, complete=True, privacy="individual"), 7.0),
        (lambda: eps.kth_largest([1, 7, 7, 7], 0.01, bounds=(0, 9), step=1, complete=True, privacy="individual"), 7),
        (
            lambda: eps.median(
                [4] * 5, complete=True, privacy="group", group_epsilons=[0.01, 0.01], bounds=(0, 9), step=1
            ),
            4,
        ),
        (lambda: eps.max([1, 9, 9], 0.01, bounds=(0, 9), step=1, complete=True, privacy="individual"), 9),
        (lambda: eps.min([0, 0, 9], 0.01, bounds=(0, 9), step=1, complete=True, privacy="individual"), 0),
    ],
)
def test_no_reach_means_no_noise_and_no_division_by_zero(ask: Callable[[], eps.Release], answer: float) -> None:
    releases = [ask() for _ in range(20)]
    assert {release.value for release in releases} == {answer}
    assert {release.guarantee.kind for release in releases} == {INDIVIDUAL}
    assert {release.error for release in releases} == {None}


def test_only_public_people_can_move_it_so_it_is_exact() -> None:
    """The largest of 0 0 0 9 moves only with the fourth record."""
    values, strict = [0, 0, 0, 9], 0.01

    def answers(epsilons: list[float]) -> set[float]:
        asks = (
            eps.max(values, epsilons, bounds=(0, 9), step=1, complete=True, privacy="individual").value
            for _ in range(40)
        )
        return set(asks)

    assert answers([strict, strict, strict, PUBLIC]) == {9}
    assert answers([PUBLIC, PUBLIC, PUBLIC, strict]) != {9}


# What a release shows ------------------------------------------------------------------------------------------------

MIXED = [0.5, 1.0, 2.0, 0.5, PUBLIC]
#: The same question on data where people can move the answer a little, not at all, and very far.
SHOWN: dict[str, Callable[[list[Any]], eps.Release]] = {
    "count": lambda v: eps.count(v, MIXED, privacy="individual"),
    "sum": lambda v: eps.sum(v, MIXED, bounds=(0, 1000), complete=True, privacy="individual"),
    "mean": lambda v: eps.mean(v, MIXED, bounds=(0, 1000), complete=True, privacy="individual"),
    "median": lambda v: eps.median(v, MIXED, bounds=(0, 1000), complete=True, privacy="individual"),
    "even median": lambda v: eps.median(
        v[:4], MIXED[:4], bounds=(0, 1000), step=1, complete=True, privacy="individual"
    ),
    "quantile": lambda v: eps.quantile(v, MIXED, 0.9, bounds=(0, 1000), complete=True, privacy="individual"),
    "min": lambda v: eps.min(v, MIXED, bounds=(0, 1000), complete=True, privacy="individual"),
    "max": lambda v: eps.max(
        v, MIXED, bounds=(0, 1000), complete=True, privacy="individual", mechanism="local-sensitivity"
    ),
    "second largest": lambda v: eps.kth_largest(v, MIXED, bounds=(0, 1000), complete=True, privacy="individual"),
    "unbounded": lambda v: eps.kth_largest(v, MIXED, complete=True, privacy="individual"),
    "range count": lambda v: eps.histogram(v, MIXED, edges=[0, 2], privacy="individual"),
    "histogram": lambda v: eps.histogram(v, MIXED, edges=[0, 2, 1000], privacy="individual"),
    "group median": lambda v: eps.median(
        v, complete=True, privacy="group", group_epsilons=[1.0, 0.5], bounds=(0, 1000)
    ),
    "group mean": lambda v: eps.mean(v, complete=True, privacy="group", group_epsilons=[1.0, 1.5], bounds=(0, 1000)),
    "group count": lambda v: eps.count(v, privacy="group", group_epsilons=[1.0]),
    "group unbounded": lambda v: eps.kth_largest(v, None, 3, complete=True, privacy="group", group_epsilons=[1.0, 1.5]),
    "own function": lambda v: eps.individually(np.mean, v, MIXED, sensitivity=lambda x: np.ptp(x) / 5, step=0.01),
}
DATA: list[list[Any]] = [[1, 2, 3, 4, 5], [1, 1, 1, 1, 1], [0, 0, 500, 1000, 1000], [1, 1, 1, 1, 900]]


def without_the_value(release: eps.Release) -> list[Any]:
    """All there is to see of a release, its value blotted out."""
    told = release.to_dict()
    assert eps.Release.from_dict(json.loads(json.dumps(told, allow_nan=False))) == release
    told.pop("value")
    blank = eps.Release.from_dict({**told, "value": None})
    if isinstance(release.value, dict):
        blank = eps.Release.from_dict({**told, "value": [[str(key), 0] for key in release.value]})
    same = {name: getattr(release, name) for name in release.__dataclass_fields__ if name != "value"}
    return [told, str(blank), blank._repr_html_(), repr(same), str(release.guarantee)]


@pytest.mark.parametrize("name", SHOWN)
def test_nothing_but_the_value_depends_on_the_data(name: str) -> None:
    """So neither the scale, nor a sensitivity, nor an error is anywhere to be seen."""
    first, *others = [without_the_value(SHOWN[name](values)) for values in DATA]
    assert all(other == first for other in others)


@pytest.mark.parametrize("name", SHOWN)
def test_every_release_says_what_it_is_and_what_it_is_not(name: str) -> None:
    release = SHOWN[name](DATA[2])
    assert release.mechanism == "local-sensitivity"
    assert release.guarantee.kind == "individual DP (not DP)" == INDIVIDUAL
    assert NOT_DP in release.guarantee.caveats
    assert ROSTER_IS_PUBLIC in release.guarantee.caveats
    assert "individual DP (not DP)" in str(release)
    assert "individual DP (not DP)" in release._repr_html_()
    assert NOT_DP in str(release.guarantee)
    assert "an exact median of 0 shows that the fifth value is 0" in NOT_DP
    assert release.error is None
    assert release.models is None
    assert dict(release.details) == {}
    for target in ("roster", "population"):
        with pytest.raises(PlanError, match="There is no honest interval for this answer"):
            release.interval(0.95, target)
    with pytest.raises(PlanError, match=r"data\.$"):
        release.interval()


def test_charges_are_everybody_s_own_epsilon() -> None:
    assert SHOWN["median"](DATA[0]).charges == {0.5: 0.5, 1.0: 1.0, 2.0: 2.0, INF: 0.0}
    group = SHOWN["group median"](DATA[0])
    assert group.charges == {1.0: 1.0}
    assert "In this release alone, bounds for groups by their size: 1 for 1, 0.5 for 2." in group.guarantee.caveats


def test_an_answer_stays_within_the_bounds() -> None:
    for seed in range(50):
        release = eps.median(
            [0, 10, 10], 0.1, bounds=(0, 10), complete=True, privacy="individual", entropy=seeded(seed)
        )
        assert 0 <= release.value <= 10
    assert not release.private


@pytest.mark.parametrize("name", SHOWN)
def test_composing_with_personalized_privacy_gives_the_weaker_kind_and_says_so(name: str) -> None:
    weak, strong = SHOWN[name](DATA[0]).guarantee, eps.mean(DATA[0], MIXED, bounds=(0, 10)).guarantee
    assert strong.kind == PERSONALIZED
    for both in (weak.compose(strong), strong.compose(weak), strong.compose(strong).compose(weak).compose(strong)):
        assert both.kind == INDIVIDUAL
        assert NOT_DP in both.caveats
        assert "the weaker kind is all that remains" in str(both)
    assert weak.compose(weak).epsilons == {e: 2 * loss for e, loss in weak.epsilons.items()}


def test_people_who_are_all_public_get_the_exact_answer_by_its_own_name() -> None:
    for release in (
        eps.median([1, 2, 9], PUBLIC, bounds=(0, 9), step=1, complete=True, privacy="individual"),
        eps.kth_largest([1, 2, 9], PUBLIC, complete=True, privacy="individual"),
    ):
        assert (release.value, release.mechanism, release.guarantee.kind) == (2, "exact", NO_PROMISE)


# Asked for, or not at all --------------------------------------------------------------------------------------------

PLANNED: dict[str, dict[str, Any]] = {
    "count": {},
    "mean": {"bounds": (0, 1), "complete": True},
    "median": {"bounds": (0, 1), "complete": True},
    "max": {"bounds": (0, 1), "missing": "center"},
    "histogram": {"edges": (0, 1, 2)},
}


@pytest.mark.parametrize("statistic", PLANNED)
def test_plans_show_it_on_request_only_and_without_an_error(statistic: str) -> None:
    usual = eps.plan(statistic, [0.1, 1.0], **PLANNED[statistic])
    assert "local-sensitivity" not in {row.mechanism for row in usual.rows}
    assert "not DP" not in str(usual)
    asked_for = eps.plan(statistic, [0.1, 1.0], privacy="individual", **PLANNED[statistic])
    assert {row.mechanism for row in asked_for.rows} <= set(list_mechanisms("individual"))
    row = next(row for row in asked_for.rows if row.mechanism == "local-sensitivity")
    assert (row.error, row.worst_error, row.charges) == (None, None, {0.1: 0.1, 1.0: 1.0})
    assert "individual DP, not DP" in str(asked_for)
    with pytest.raises(PlanError):
        eps.plan(statistic, [0.1, 1.0], privacy="individual", error=1.0, **PLANNED[statistic])


def test_it_is_never_chosen_unasked() -> None:
    assert "local-sensitivity" not in list_mechanisms()
    assert set(list_mechanisms("group")) == set(list_mechanisms("individual")) >= {"local-sensitivity"}
    with pytest.raises(PlanError, match="it gives individual privacy, not personalized privacy"):
        eps.median([1, 2, 3], 1.0, bounds=(0, 9), mechanism="local-sensitivity")


VALUES = [1.0, 2.0, 3.0]
BAD: dict[str, tuple[type[eps.EpsilonsError], str, Callable[[], object]]] = {
    "another mechanism": (
        PlanError,
        "it gives personalized privacy, not individual privacy",
        lambda: eps.mean(VALUES, 1.0, bounds=(0, 9), complete=True, privacy="individual", mechanism="weighted"),
    ),
    "variance": (
        PlanError,
        "Nothing gives privacy='individual' for a variance",
        lambda: eps.variance(VALUES, 1.0, bounds=(0, 9), privacy="individual"),
    ),
    "unknown privacy": (
        PlanError,
        "Try: privacy='personalized' or privacy='individual' or privacy='group'",
        lambda: eps.count(VALUES, 1.0, privacy="some"),
    ),
    "epsilons for groups": (
        PlanError,
        "Group privacy takes group_epsilons instead of epsilons",
        lambda: eps.count(VALUES, 1.0, privacy="group"),
    ),
    "both": (
        PlanError,
        "Group privacy takes group_epsilons instead of epsilons",
        lambda: eps.count(VALUES, 1.0, privacy="group", group_epsilons=[1.0]),
    ),
    "neither": (
        PlanError,
        "Group privacy takes group_epsilons instead of epsilons",
        lambda: eps.count(VALUES, privacy="group"),
    ),
    "groups without group privacy": (
        PlanError,
        "group_epsilons go with group privacy. Try: privacy='group'",
        lambda: eps.count(VALUES, 1.0, privacy="individual", group_epsilons=[1.0]),
    ),
    "no groups": (
        PreferenceError,
        "Group epsilons are finite numbers, at least one",
        lambda: eps.count(VALUES, privacy="group", group_epsilons=[]),
    ),
    "public groups": (
        PreferenceError,
        "Group epsilons are finite numbers",
        lambda: eps.count(VALUES, privacy="group", group_epsilons=[1.0, PUBLIC]),
    ),
    "groups of nothing": (
        PreferenceError,
        "Each is larger than 0, and the i-th one holds for groups of i people",
        lambda: eps.count(VALUES, privacy="group", group_epsilons=[1.0, 0.0]),
    ),
    "no epsilons": (PreferenceError, "There are no epsilons", lambda: eps.count(VALUES, privacy="individual")),
    "unbounded maximum": (
        PlanError,
        "The maximum needs bounds. Without an upper bound one record can move it any distance.",
        lambda: eps.kth_largest(VALUES, 1.0, 1, complete=True, privacy="individual"),
    ),
    "maximum without bounds": (
        PlanError,
        "A max needs bounds",
        lambda: eps.max(VALUES, 1.0, complete=True, privacy="individual"),
    ),
    "too few": (
        PlanError,
        "3 people are too few for k=3 without bounds. A record on either side of it is needed. Try: bounds=",
        lambda: eps.kth_largest(VALUES, 1.0, 3, complete=True, privacy="individual"),
    ),
    "too large a group": (
        PlanError,
        "A group of 2 could move the answer for k=2 any distance. Try: bounds=",
        lambda: eps.kth_largest(VALUES * 3, k=2, complete=True, privacy="group", group_epsilons=[1.0, 1.0]),
    ),
    "median of too few without bounds": (
        PlanError,
        "2 people are too few for a median (no bounds): one could move it any distance. A record on either side",
        lambda: eps.median(VALUES[:2], 1.0, complete=True, privacy="individual"),
    ),
    "lowest quantile without bounds": (
        PlanError,
        "3 people are too few for a quantile 0.1 (no bounds)",
        lambda: eps.quantile(VALUES, 1.0, 0.1, complete=True, privacy="individual"),
    ),
    "a group around a median without bounds": (
        PlanError,
        "5 people are too few for a median (no bounds): a group of 3 could move it any distance",
        lambda: eps.median([1, 2, 3, 4, 5], complete=True, privacy="group", group_epsilons=[1.0, 1.0, 1.0]),
    ),
    "median without bounds and with DP": (
        PlanError,
        "needs bounds",
        lambda: eps.median(VALUES, 1.0, complete=True),
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_wrong_request_is_told_what_happened(case: str) -> None:
    kind, text, ask = BAD[case]
    with pytest.raises(kind) as caught:
        ask()
    assert text in str(caught.value)


HOSTILE: list[Any] = [None, "private", NAN, INF, -INF, 10**400, 1e308, True, [1], {}, 3.0]


@pytest.mark.parametrize("name", SHOWN)
def test_no_value_is_refused_or_shown(name: str) -> None:
    if name == "own function":
        return  # whose failures have a test of their own
    for values in itertools.islice(itertools.combinations(HOSTILE, 5), 0, None, 37):
        release = SHOWN[name](list(values))
        numbers = release.value.values() if isinstance(release.value, dict) else [release.value]
        assert all(math.isfinite(number) for number in numbers)
        assert "private" not in repr(release)


def test_the_paper_s_table_of_errors() -> None:
    """Table 1: 95% of the noise, for sensitivities of 1 at epsilon 1, and in docs/individual.md."""
    page = (Path(__file__).resolve().parents[3] / "docs" / "individual.md").read_text(encoding="utf-8")
    assert f"| {laplace.ppf(0.975):.3f} |" in page
    assert f"| {8 * cauchy.ppf(0.975):.2f} |" in page
    whole = quad(lambda z: 1 / (1 + z**3), 0, math.inf)[0]
    cubic = brentq(lambda q: quad(lambda z: 1 / (1 + z**3), 0, q)[0] - 0.95 * whole, 1, 10)
    assert f"| {12 * cubic:.2f} |" in page
    # On a fine grid the discrete noise is the paper's: 95% lie within 2.996 scales.
    drawn = MECHANISM.simulate(asked(order.median(WIDE, 1)), people_of([0, 100, 200], [1.0] * 3), seeded(4), 50_000)
    assert abs(float((np.abs(drawn - 100) <= 299.6).mean()) - 0.95) < 0.005


def test_groups_are_among_the_options() -> None:
    levels = roster_of([1.0]).levels
    assert MECHANISM.options(asked(Count(), (1.0, 0.5)), levels) == {"group_epsilons": [1.0, 0.5]}
    assert MECHANISM.options(asked(Count()), levels) == {}


def test_it_serves_what_it_says() -> None:
    levels = roster_of([1.0, 2.0]).levels
    served = (Count(), Sum(BOUNDS), Mean(BOUNDS), *ORDERS.values(), Histogram(edges=(0, 1)), UnboundedOrder(2))
    assert all(MECHANISM.refuses(asked(statistic), levels) is None for statistic in served)
    assert MECHANISM.refuses(asked(Variance(BOUNDS)), levels) is not None
    assert MECHANISM.refuses(Question(Count()), levels) is not None
