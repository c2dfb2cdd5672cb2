"""Monte Carlo audits: on the pairs where a mechanism comes closest to its promise, draws do not refute it; where a bug
is planted they do.

A verdict is `bound_loss`: a lower bound of the loss that holds with confidence .999. Draws are seeded, so a run that
passed passes again; the soak run has five times the draws.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats

from epsilons.audit import ABSENT, bound_loss
from epsilons.mechanisms.base import Mechanism, create, registered
from epsilons.noise.bernoulli import bernoulli
from epsilons.preferences import roster_of
from epsilons.statistics import order
from epsilons.statistics.count import Count
from epsilons.statistics.people import ArrayPeople
from epsilons.statistics.question import Question
from epsilons.statistics.total import Mean, Sum
from epsilons.testing import seeded
from planted import PLANTS, Claim, Plant, SampleTwice
from small_worlds import Pair, charged

pytestmark = pytest.mark.statistical

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
        return f"{self.mechanism.name}: {self.name}"


def worst(name: str, mechanism: Mechanism, question: Question, epsilons: tuple[float, ...], *pair: tuple[float, ...]):
    return Worst(name, mechanism, question, epsilons, Pair(*pair))


SPLIT = (0.0, 0.0, 20.0, 20.0)
PAIRS = [
    worst(
        "all zeros, one flipped", create("exponential"), Question(COUNT, "replace"), (1.0,) * 6, (0,) * 6, (1, *[0] * 5)
    ),
    worst("all ones, one missing", create("exponential"), Question(COUNT), (0.5, 1, 1, 2), (1,) * 4, (ABSENT, 1, 1, 1)),
    worst(
        "others split, one moves across",
        create("exponential"),
        Question(MEDIAN, "replace"),
        (0.5, 1, 1, 1, 1),
        (0, *SPLIT),
        (20, *SPLIT),
    ),
    worst(
        "others split, one missing",
        create("exponential"),
        Question(MEDIAN),
        (2, 1, 1, 1, 1),
        (0, *SPLIT),
        (ABSENT, *SPLIT),
    ),
    worst(
        "all at the top, the strictest drops",
        create("exponential"),
        Question(SMALLEST, "replace"),
        (0.5, 2, 2),
        (20, 20, 20),
        (0, 20, 20),
    ),
    worst("at the threshold", create("threshold"), Question(COUNT), (0.5, 0.9, 1), (1, 1, 1), (1, 1, ABSENT)),
    worst("just below it", create("threshold"), Question(COUNT), (0.5, 0.999999, 1), (1, 1, 1), (1, ABSENT, 1)),
    worst("a stricter person joins", create("minimum"), Question(COUNT), (0.5, 3, 3), (ABSENT, 1, 1), (1, 1, 1)),
    worst("from bound to bound", create("minimum"), Question(SUM, "replace"), (0.7, 0.9), (-1, 0), (2, 0)),
    worst("the smallest leaves", create("minimum"), Question(SMALLEST), (1.0, 1.5), (0, 20), (ABSENT, 20)),
    worst("a bound against nobody", create("stretching"), Question(SUM), (0.6, 1.5), (2, 0), (ABSENT, 0)),
    worst("from bound to bound", create("stretching"), Question(SUM, "replace"), (0.6, 1.5), (2, 0), (-1, 0)),
    worst("one against nobody", create("robust"), Question(COUNT), (0.6, 1.5, PUBLIC), (1, 0, 1), (ABSENT, 0, 1)),
    worst("from bound to bound", create("robust"), Question(MEAN, "replace"), (0.6, 1.5, 1.5), (0, 5, 5), (10, 5, 5)),
    worst("one against nobody", create("weighted"), Question(COUNT), (0.6, 1.5, PUBLIC), (1, 0, 1), (ABSENT, 0, 1)),
    worst("above the cap", create("weighted"), Question(COUNT), (0.5, 1, 30), (1, 1, 1), (1, 1, ABSENT)),
    worst("from bound to bound", create("weighted"), Question(MEAN, "replace"), (0.6, 1.5), (0, 5), (10, 5)),
    worst(
        "others split, one moves across",
        create("weighted"),
        Question(MEDIAN, "replace"),
        (0.5, 1, 1, 1, 1),
        (0, *SPLIT),
        (20, *SPLIT),
    ),
    worst(
        "others split, one missing",
        create("weighted"),
        Question(MEDIAN),
        (2, 1, 1, 1, 1),
        (0, *SPLIT),
        (ABSENT, *SPLIT),
    ),
    worst("from bound to bound", create("mixed"), Question(MEAN, "replace"), (0.6, 1.5, 1.5), (0, 5, 5), (10, 5, 5)),
    worst("one against nobody", create("mixed"), Question(COUNT), (0.6, 0.6, 2), (1, 1, 1), (ABSENT, 1, 1)),
]
#: Sample draws one answer at a time, so its audit has a draw of its own below.
DRAWN_ONE_BY_ONE = {"sample"}


def assert_not_refuted(case: Worst, draws: int) -> None:
    claim = Claim(case.mechanism, case.question, case.epsilons, ())
    bound, charge = claim.bound(case.pair, draws)
    assert not bound.refutes(charge), f"{case} charged {charge}: {bound}"


@pytest.mark.parametrize("case", PAIRS, ids=str)
def test_draws_do_not_refute_a_mechanism_on_its_worst_pair(case: Worst) -> None:
    assert_not_refuted(case, 200_000)


@pytest.mark.soak
@pytest.mark.parametrize("case", PAIRS, ids=str)
def test_a_million_draws_do_not_refute_a_mechanism_on_its_worst_pair(case: Worst) -> None:
    assert_not_refuted(case, 1_000_000)


def test_every_registered_mechanism_has_a_worst_pair() -> None:
    assert {case.mechanism.name for case in PAIRS} | DRAWN_ONE_BY_ONE == set(registered())


@pytest.mark.parametrize("threshold", ["max", "mean"])
def test_draws_do_not_refute_sample(threshold: str) -> None:
    """Everyone has a one and one person leaves: as many draws as the real mechanism has time for."""
    claim = Claim(create("sample", threshold=threshold), Question(COUNT), (0.5, 1.0, 2.0), ())
    bound, charge = claim.bound(Pair((1, 1, 1), (ABSENT, 1, 1)), 10_000)
    assert not bound.refutes(charge)


def sampled_counts(chances: list[int], inverse: object, entropy: object, size: int) -> np.ndarray:
    """Counts of people who all have a one: their coins, then the noise, for many releases at once."""
    from epsilons.noise.laplace import discrete_laplace_many

    kept = sum(bernoulli(entropy, chance, size).astype(int) for chance in chances)  # type: ignore[arg-type]
    return np.asarray(kept + discrete_laplace_many(entropy, inverse, size))  # type: ignore[arg-type]


@pytest.mark.parametrize("draws", [200_000, pytest.param(1_000_000, marks=pytest.mark.soak)])
@pytest.mark.parametrize("threshold", ["max", "mean"])
def test_draws_with_samples_own_chances_and_noise_do_not_refute_it(threshold: str, draws: int) -> None:
    question, roster = Question(COUNT), roster_of([0.5, 1.0, 2.0])
    mechanism = create("sample", threshold=threshold)
    chances = mechanism.chances(question, roster.levels)  # type: ignore[attr-defined]
    rate = mechanism.weighting(question, roster.levels).rate / 10**9  # type: ignore[attr-defined]
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


def test_two_releases_from_two_samples_are_not_refuted() -> None:
    claim = Claim(SampleTwice("max"), Question(COUNT), (0.5, 2.0), ())
    bound, charge = claim.bound(Pair((1, 1), (ABSENT, 1)), 200_000)
    assert not bound.refutes(charge)


@pytest.mark.parametrize("plant", [plant for plant in PLANTS if plant.pair is not None], ids=str)
def test_draws_refute_a_planted_bug_and_not_the_honest_mechanism(plant: Plant) -> None:
    assert plant.pair is not None
    honest, charge = plant.honest.bound(plant.pair, min(plant.draws, 200_000))
    assert not honest.refutes(charge), str(honest)
    broken, charge = plant.broken.bound(plant.pair, plant.draws)
    assert broken.refutes(charge), str(broken)


# --- a release is drawn as the exact distribution says ------------------------------------------------------------

LISTED = [("exponential", "count"), ("exponential", "median"), ("minimum", "count"), ("minimum", "median")]
LISTED += [
    ("threshold", "count"),
    ("threshold", "min"),
    ("sample", "count"),
    ("sample", "median"),
    ("weighted", "median"),
]


@pytest.mark.parametrize(("name", "kind"), LISTED)
def test_releases_follow_the_exact_distribution_that_the_enumeration_audits(name: str, kind: str) -> None:
    """Chi-square of real draws against the listed law: what is enumerated elsewhere is what is released.

    And a law 10% off (its tail pushed up) is rejected by the same test.
    """
    statistic = {"count": COUNT, "median": order.median((0.0, 4.0), 1), "min": order.minimum((0.0, 4.0), 1)}[kind]
    values = (1.0, 0.0, 1.0, ABSENT) if kind == "count" else (0.0, 3.0, 4.0, ABSENT)
    question, roster = Question(statistic), roster_of([0.5, 1.0, 2.0, 2.0])
    mechanism, people, entropy, size = create(name), ArrayPeople.of(values, roster), seeded(3), 4_000
    outcomes, logs = mechanism.distribution(question, people)
    law = {(o[0] if isinstance(o, tuple) else o): p for o, p in zip(outcomes.tolist(), np.exp(logs), strict=True)}
    drawn = [mechanism.draw(question, people, entropy).value for _ in range(size)]
    seen = dict.fromkeys(law, 0)
    for value in drawn:
        seen[value if value in law else "elsewhere"] += 1
    observed, expected = np.array(list(seen.values())), size * np.array(list(law.values()))
    assert chi_square(observed, expected) > 1e-5
    tilted = expected * np.where(np.arange(len(expected)) % 2, 1.2, 0.8)
    assert chi_square(observed, tilted * size / tilted.sum()) < 1e-5


def chi_square(observed: np.ndarray, expected: np.ndarray) -> float:
    """The p-value, rare outcomes pooled."""
    rare = expected < 10
    if rare.any():
        observed = np.append(observed[~rare], observed[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    keep = expected > 0
    return float(stats.chisquare(observed[keep], expected[keep] * observed[keep].sum() / expected[keep].sum()).pvalue)


BULK = [
    ("minimum", SUM),
    ("stretching", COUNT),
    ("weighted", MEAN),
    ("robust", COUNT),
    ("mixed", MEAN),
    ("mixed", MEDIAN),
]
BULK += [("weighted", MEDIAN), ("exponential", MEDIAN), ("exponential", COUNT), ("threshold", SUM), ("sample", SUM)]


@pytest.mark.parametrize(("name", "statistic"), BULK, ids=str)
def test_answers_drawn_in_bulk_are_distributed_like_single_releases(name: str, statistic: object) -> None:
    """`simulate`, which the audits draw from, against `draw`, which people get (Kolmogorov-Smirnov)."""
    question, roster = Question(statistic), roster_of([0.5, 1.0, 2.0, 2.0])  # type: ignore[arg-type]
    mechanism, people, entropy = create(name), ArrayPeople.of((1.0, 0.0, 1.0, ABSENT), roster), seeded(5)
    single = [mechanism.draw(question, people, entropy).value for _ in range(2_000)]
    bulk = mechanism.simulate(question, people, entropy, 4_000 if name == "sample" else 40_000)
    assert stats.ks_2samp(single, bulk).pvalue > 1e-5
