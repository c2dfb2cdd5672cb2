"""Monte Carlo audits: on the pairs where a mechanism comes closest to its promise, draws do not refute it; where a bug
is planted they do.

A verdict is `bound_loss`: a lower bound of the loss that holds with confidence .999. Draws are seeded, so a run that
passed passes again; the soak run has twenty times the draws and writes docs/reliability.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from epsilons.auditing import ABSENT, bound_loss
from epsilons.guarantee import NANO
from epsilons.mechanisms.base import Mechanism, create, list_mechanisms, weighting_of
from epsilons.mechanisms.sample import Sample
from epsilons.noise.coins import bernoulli
from epsilons.noise.entropy import Entropy
from epsilons.noise.laplace import discrete_laplace_many
from epsilons.preferences import roster_of
from epsilons.statistics import order
from epsilons.statistics.base import Question, Statistic
from epsilons.statistics.count import Count
from epsilons.statistics.total import Mean, Sum
from epsilons.summaries.arrays import ArrayPeople
from epsilons.testing import seeded
from support.lengths import short_and_long, some
from support.planted import PLANTS, Claim, Plant, SampleTwice
from support.small_worlds import Pair, at_max, charged

pytestmark = pytest.mark.statistical

Recorder = Callable[[str, Any], None]
COUNT, SUM, MEAN = Count(), Sum((-1.0, 2.0)), Mean((0.0, 10.0))
MEDIAN, SMALLEST = order.median((0.0, 20.0), 1), order.minimum((0.0, 20.0), 1)
PUBLIC = float("inf")


@dataclass(frozen=True)
class Worst:
    """A pair of neighbours on which a mechanism is under the most strain."""

    name: str
    mechanism: Mechanism
    question: Question
    epsilons: tuple[float, ...]
    pair: Pair

    def __str__(self) -> str:
        return f"{self.mechanism.name} {self.question.statistic.name}: {self.name}"


def on(name: str, question: Question, epsilons: tuple[float, ...], cases: dict[str, tuple[str, Pair]]) -> list[Worst]:
    return [
        Worst(what, at_max(name, question.statistic), replace(question, neighbors=rel), epsilons, pair)
        for what, (rel, pair) in cases.items()
    ]


SPLIT = (0.0, 0.0, 20.0, 20.0)
ACROSS = {
    "others split, one moves across": ("replace", Pair((0, *SPLIT), (20, *SPLIT))),
    "others split, one missing": ("absent", Pair((0, *SPLIT), (ABSENT, *SPLIT))),
}
FLIPPED = {"all zeros, one flipped": ("replace", Pair((0,) * 5, (1, 0, 0, 0, 0)))}
NO_ONE = {"a one against nobody": ("absent", Pair((1, 0, 1), (ABSENT, 0, 1)))}
BOUND_TO_BOUND = {
    "from bound to bound": ("replace", Pair((0, 5, 5), (10, 5, 5))),
    "a bound against nobody": ("absent", Pair((10, 5, 5), (ABSENT, 5, 5))),
}
OPENS = {"a gap opens beside the median": ("replace", Pair((0, 0, 0, 0, 0), (20, 0, 0, 0, 0)))}
LOWEST_MOVES = {"all at the top, the strictest drops": ("replace", Pair((20, 20, 20), (0, 20, 20)))}
LOWEST_LEAVES = {"the smallest leaves": ("absent", Pair((0, 20, 20), (ABSENT, 20, 20)))}
JOINS = {"a stricter person joins": ("absent", Pair((ABSENT, 1, 1), (1, 1, 1)))}
AT = {"at the threshold": ("absent", Pair((1, 1, 1), (1, 1, ABSENT)))}
BELOW = {"just below the threshold": ("absent", Pair((1, 1, 1), (1, ABSENT, 1)))}

FIVE, THREE = (0.5, 1.0, 1.0, 1.0, 1.0), (0.6, 1.5, 1.5)
PAIRS = [
    *on("exponential", Question(COUNT), (1.0,) * 5, FLIPPED),
    *on("exponential", Question(COUNT), (0.5, 1.0, PUBLIC), NO_ONE),
    *on("exponential", Question(MEDIAN), FIVE, ACROSS),
    *on("exponential", Question(MEDIAN), (2.0, *FIVE[1:]), ACROSS),
    *on("exponential", Question(SMALLEST), (0.5, 2.0, 2.0), LOWEST_MOVES),
    *on("threshold", Question(COUNT), (0.5, 0.999999, 1.0), AT | BELOW),
    *on("threshold", Question(SMALLEST), (1.0, 1.0, 1.0), LOWEST_LEAVES),
    *on("minimum", Question(COUNT), (0.5, 3.0, 3.0), JOINS),
    *on("minimum", Question(MEAN), (0.7, 0.9, 0.9), BOUND_TO_BOUND),
    *on("minimum", Question(SMALLEST), (1.0, 1.5, 1.5), LOWEST_LEAVES),
    *on("stretching", Question(MEAN), THREE, BOUND_TO_BOUND),
    *on("stretching", Question(COUNT), THREE, NO_ONE),
    *on("robust", Question(MEAN), THREE, BOUND_TO_BOUND),
    *on("robust", Question(COUNT), (0.6, 1.5, PUBLIC), NO_ONE),
    *on("weighted", Question(MEAN), THREE, BOUND_TO_BOUND),
    *on("weighted", Question(COUNT), (0.6, 1.5, PUBLIC), NO_ONE),
    *on("weighted", Question(COUNT), (0.5, 1.0, 30.0), AT),
    *on("weighted", Question(MEDIAN), FIVE, ACROSS),
    *on("smooth-sensitivity", Question(MEDIAN), (2.0,) * 5, ACROSS | OPENS),
    *on("smooth-sensitivity", Question(SMALLEST), (0.7, 1.0, 1.0), LOWEST_MOVES | LOWEST_LEAVES),
    *on("mixed", Question(MEAN), THREE, BOUND_TO_BOUND),
    *on("mixed", Question(COUNT), (0.6, 0.6, 2.0), NO_ONE),
]
#: Sample draws one answer at a time, so its audit has a draw of its own below.
DRAWN_ONE_BY_ONE = {"sample"}


def assert_not_refuted(case: Worst, draws: int) -> None:
    claim = Claim(case.mechanism, case.question, case.epsilons, ())
    bound, charge = claim.bound(case.pair, draws)
    assert not bound.refutes(charge), f"{case} charged {charge}: {bound}"


@pytest.mark.parametrize("case", PAIRS, ids=str)
def test_draws_do_not_refute_a_mechanism_on_its_worst_pair(case: Worst) -> None:
    assert_not_refuted(case, 25_000)


LONG = [pytest.mark.soak, pytest.mark.figure("figure_3_draws")]


@pytest.mark.soak
@pytest.mark.figure("figure_3_draws")
@pytest.mark.parametrize("case", PAIRS, ids=str)
def test_a_million_draws_do_not_refute_a_mechanism_on_its_worst_pair(case: Worst, record_property: Recorder) -> None:
    assert_not_refuted(case, 1_000_000)
    record_property("size", 1)


def test_every_registered_mechanism_has_a_worst_pair() -> None:
    assert {case.mechanism.name for case in PAIRS} | DRAWN_ONE_BY_ONE == set(list_mechanisms())


@pytest.mark.parametrize("draws", short_and_long(3_000, 10_000))
@pytest.mark.parametrize("threshold", ["max", "mean"])
def test_draws_do_not_refute_sample(threshold: str, draws: int) -> None:
    """Everyone has a one and one person leaves: as many draws as the real mechanism has time for."""
    claim = Claim(create("sample", COUNT, threshold=threshold), Question(COUNT), (0.5, 1.0, 2.0), ())
    bound, charge = claim.bound(Pair((1, 1, 1), (ABSENT, 1, 1)), draws)
    assert not bound.refutes(charge)


def sampled_counts(chances: Sequence[int], inverse: Fraction, entropy: Entropy, size: int) -> NDArray[np.int64]:
    """Counts of people who all have a one: their coins, then the noise, for many releases at once."""
    kept = sum(bernoulli(entropy, chance, size).astype(np.int64) for chance in chances)
    return kept + discrete_laplace_many(entropy, inverse, size)


@pytest.mark.parametrize("draws", [200_000, pytest.param(1_000_000, marks=LONG)])
@pytest.mark.parametrize("threshold", ["max", "mean"])
def test_draws_with_samples_own_chances_and_noise_do_not_refute_it(
    threshold: str, draws: int, record_property: Recorder
) -> None:
    question, roster = Question(COUNT), roster_of([0.5, 1.0, 2.0])
    mechanism = create("sample", COUNT, threshold=threshold)
    assert isinstance(mechanism, Sample)
    weighting = weighting_of(mechanism, question, roster.levels)
    chances, rate = weighting.chances, weighting.rate / NANO
    assert chances is not None
    entropy = seeded(11)
    for person in range(3):
        others = chances[:person] + chances[person + 1 :]
        bound = bound_loss(
            lambda size: sampled_counts(chances, rate, entropy, size),
            lambda size, others=others: sampled_counts(others, rate, entropy, size),
            draws=draws,
        )
        charge = charged(mechanism, question, roster)[person]
        assert not bound.refutes(charge)
        assert bound.lower > 0.6 * charge, "the pair puts no strain on the mechanism"
        record_property("size", 1)


@pytest.mark.parametrize("draws", short_and_long(80_000, 200_000))
def test_two_releases_from_two_samples_are_not_refuted(draws: int) -> None:
    claim = Claim(SampleTwice("max"), Question(COUNT), (0.5, 2.0), ())
    bound, charge = claim.bound(Pair((1, 1), (ABSENT, 1)), draws)
    assert not bound.refutes(charge)


def assert_drawn(plant: Plant, draws: int) -> None:
    assert plant.pair is not None
    honest, charge = plant.honest.bound(plant.pair, draws)
    assert not honest.refutes(charge), str(honest)
    broken, charge = plant.broken.bound(plant.pair, draws)
    assert broken.refutes(charge), str(broken)


@pytest.mark.parametrize("plant", [plant for plant in PLANTS if plant.pair is not None], ids=str)
def test_draws_refute_a_planted_bug_and_not_the_honest_mechanism(plant: Plant) -> None:
    assert_drawn(plant, plant.draws)


@pytest.mark.soak
@pytest.mark.figure("figure_3_planted")
@pytest.mark.parametrize("plant", PLANTS, ids=str)
def test_every_planted_bug_is_refuted_exactly_and_by_a_million_draws_where_they_can_see_it(
    plant: Plant, record_property: Recorder
) -> None:
    assert plant.honest.holds()
    assert not plant.broken.holds()
    if plant.pair is not None:
        assert_drawn(plant, 1_000_000)
    record_property("size", 1)


# --- a release is drawn as the exact distribution says ------------------------------------------------------------

LISTED = {
    "count": ("exponential", "minimum", "threshold", "sample"),
    "median": ("exponential", "minimum", "sample", "weighted"),
    "min": ("exponential", "threshold"),
}
#: Each mechanism's way of drawing counts and order statistics is held without these.
ALIKE = {("threshold", "count"), ("minimum", "median"), ("exponential", "min")}


def listed() -> list[tuple[str, str]]:
    return [(name, kind) for kind, names in LISTED.items() for name in names]


@pytest.mark.parametrize("size", short_and_long(1_500, 2_000))
@pytest.mark.parametrize(("name", "kind"), some(listed(), lambda case: case not in ALIKE))
def test_releases_follow_the_exact_distribution_that_the_enumeration_audits(name: str, kind: str, size: int) -> None:
    """Chi-square of real draws against the listed law: what is enumerated elsewhere is what is released.

    Of a count the law of its noisy sum is listed, which is then cut to what is possible. And a law that is off by a
    fifth from outcome to outcome is rejected by the same test.
    """
    statistic = {"count": COUNT, "median": order.median((0.0, 4.0), 1), "min": order.minimum((0.0, 4.0), 1)}[kind]
    values = (1.0, 0.0, 1.0, ABSENT) if kind == "count" else (0.0, 3.0, 4.0, ABSENT)
    question, roster = Question(statistic), roster_of([0.5, 1.0, 2.0, 2.0])
    mechanism, people, entropy = at_max(name, statistic), ArrayPeople.of(values, roster), seeded(3)
    outcomes, logs = mechanism.distribution(question, people)
    law = {(o[0] if isinstance(o, tuple) else o): p for o, p in zip(outcomes.tolist(), np.exp(logs), strict=True)}
    answers = [mechanism.draw(question, people, entropy) for _ in range(size)]
    drawn = [answer.value if answer.sums is None else answer.sums[0][0] for answer in answers]
    seen = dict.fromkeys(law, 0)
    for value in drawn:
        seen[value if value in law else "elsewhere"] += 1
    observed, expected = np.array(list(seen.values())), size * np.array(list(law.values()))
    assert chi_square(observed, expected) > 1e-5
    tilted = expected * np.where(np.arange(len(expected)) % 2, 1.2, 0.8)
    assert chi_square(observed, tilted * size / tilted.sum()) < 1e-5


def chi_square(observed: NDArray[np.float64], expected: NDArray[np.float64]) -> float:
    """The p-value, rare outcomes pooled."""
    rare = expected < 10
    if rare.any():
        observed = np.append(observed[~rare], observed[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    keep = expected > 0
    return float(stats.chisquare(observed[keep], expected[keep] * observed[keep].sum() / expected[keep].sum()).pvalue)


BULK = {
    COUNT: ("stretching", "robust", "exponential"),
    SUM: ("minimum", "threshold", "sample"),
    MEAN: ("weighted", "mixed"),
    MEDIAN: ("weighted", "mixed", "exponential"),
}


def _short(value: object) -> str:
    return getattr(value, "name", str(value))


@pytest.mark.parametrize("draws", short_and_long(400, 1_000))
@pytest.mark.parametrize(("statistic", "name"), [(s, name) for s, names in BULK.items() for name in names], ids=_short)
def test_answers_drawn_in_bulk_are_distributed_like_single_releases(
    statistic: Statistic, name: str, draws: int
) -> None:
    """`simulate`, which the audits draw from, against `draw`, which people get (Kolmogorov-Smirnov)."""
    question, roster = Question(statistic), roster_of([0.5, 1.0, 2.0, 2.0])
    mechanism, people, entropy = at_max(name, statistic), ArrayPeople.of((1.0, 0.0, 1.0, ABSENT), roster), seeded(5)
    single = [mechanism.draw(question, people, entropy).value for _ in range(draws)]
    bulk = mechanism.simulate(question, people, entropy, (2 if name == "sample" else 20) * draws)
    assert stats.ks_2samp(single, bulk).pvalue > 1e-5
