"""Answers have their law, estimates are unbiased, intervals cover; planted bugs are seen. All seeded."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom, chisquare

from epsilons.local import (
    PersonalResponse,
    RandomizedResponse,
    ResponseProtocol,
    SamplingDeniability,
    SamplingOnly,
    SamplingPrivacy,
)
from epsilons.local.binomials import possible_sizes
from epsilons.testing import seeded
from support.lengths import short_and_long, some

pytestmark = pytest.mark.statistical

PROTOCOLS: list[ResponseProtocol] = [
    RandomizedResponse(truth=0.8, yes=0.2),
    RandomizedResponse(truth=0.5, options=4, others=[0.2, 0.1, 0.3, 0.2, 0.2]),
    RandomizedResponse(epsilon=0.5, options=2),
    SamplingPrivacy(sampling=0.45),
    SamplingPrivacy(options=11, sampling=0.45),
    SamplingPrivacy(options=30, sampling=0.25),
    SamplingDeniability(sampling=0.6, truth=0.8, yes=0.3),
]
every = pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda p: f"{p.name}-{p.options}")


def law_p_value(protocol: ResponseProtocol, truth: int, seen: dict[tuple[int, ...], int], bias: float = 0.0) -> float:
    """Pearson's test of what owners sent against their law; `bias` moves so much from the first path to the last."""
    law = {path: float(chance) for path, chance in protocol.law(truth).items() if chance}
    first, *_, last = law
    law[first], law[last] = law[first] * (1 - bias), law[last] + law[first] * bias
    assert set(seen) <= set(law), "an owner sent what the protocol does not know"
    total = sum(seen.values())
    return float(chisquare([seen.get(path, 0) for path in law], [chance * total for chance in law.values()]).pvalue)


@every
def test_owners_send_what_the_law_says(protocol: ResponseProtocol) -> None:
    """A false alarm has probability 1e-4 for each truth; a bias of 5% of one output is rejected."""
    for truth in sorted({0, 1, protocol.options}):
        rounds = protocol.respond(np.full(200_000, truth), entropy=seeded(5 + truth))
        paths, counts = np.unique(np.stack([r.astype(np.int64) for r in rounds], axis=1), axis=0, return_counts=True)
        seen = {tuple(path): int(n) for path, n in zip(paths.tolist(), counts, strict=True)}
        assert law_p_value(protocol, truth, seen) > 1e-4
        if protocol.options < 20:
            assert law_p_value(protocol, truth, seen, bias=0.05) < 1e-4


@pytest.mark.parametrize("owners", short_and_long(1_000, 4_000))
@every
def test_one_owner_at_a_time_sends_what_the_law_says(protocol: ResponseProtocol, owners: int) -> None:
    entropy, seen = seeded(8), {}
    for _ in range(owners):
        path = protocol.respond(1, entropy=entropy)
        assert all(type(output) is int for output in path)
        seen[path] = seen.get(path, 0) + 1
    assert law_p_value(protocol, 1, seen) > 1e-4


def test_sampling_only_says_the_same_whatever_the_truth() -> None:
    protocol = SamplingOnly(sampling=0.4)
    for truth in (0, 1):
        (answers,) = protocol.respond(np.full(100_000, truth), entropy=seeded(truth))
        assert abs(answers.mean() - 0.4) < 4 * math.sqrt(0.24 / 100_000)


def standard_errors(estimates: NDArray[np.float64], truth: NDArray[np.float64]) -> NDArray[np.float64]:
    """How many standard errors the average of many runs lies from the truth, per option."""
    return (estimates.mean(axis=0) - truth) / (estimates.std(axis=0, ddof=1) / math.sqrt(len(estimates)))


def many_runs(run: Callable[[int], NDArray[np.float64]], runs: int = 1_000) -> NDArray[np.float64]:
    return np.array([run(k) for k in range(runs)])


def truths_of(options: int, owners: int = 600) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """A few owners of every option, unevenly, the rest with none."""
    truths = np.zeros(owners, np.int64)
    start = 0
    for option in range(1, options + 1):
        size = 3 + 17 * (option % 3)
        truths[start : start + size] = option
        start += size
    return truths, np.bincount(truths, minlength=options + 1)[1:].astype(np.float64)


@every
def test_estimates_are_unbiased_within_four_standard_errors(protocol: ResponseProtocol) -> None:
    """Over 1,000 runs. Planted: a fifth of a standard deviation forgotten, which is 6 standard errors."""
    truths, sizes = truths_of(protocol.options)
    entropy = seeded(21)

    def run(_: int) -> NDArray[np.float64]:
        return protocol.estimate(*map(protocol.count, protocol.respond(truths, entropy=entropy))).values

    estimates = many_runs(run)
    assert (np.abs(standard_errors(estimates, sizes)) < 4).all()
    assert np.allclose(estimates.std(axis=0), [protocol.spread(n, len(truths)) for n in sizes], rtol=0.5), (
        "errors are as large as predicted"
    )
    assert (np.abs(standard_errors(estimates + estimates.std(axis=0) / 5, sizes)) > 4).any()


@pytest.mark.parametrize("options", [1, 3])
@pytest.mark.parametrize("assume", ["unrelated", "nothing"])
def test_personal_estimates_are_unbiased(options: int, assume: str) -> None:
    epsilons = np.array([0.5] * 200 + [1.0] * 200 + [3.0] * 150 + [np.inf] * 50)
    truths, sizes = truths_of(options)
    order = np.random.default_rng(2)
    protocol, entropy = PersonalResponse(epsilons, options), seeded(22)
    covered = np.zeros(options)

    def run(_: int) -> NDArray[np.float64]:
        # "unrelated" is about who has which preference by chance; "nothing" must hold however they are related.
        mixed = order.permutation(truths) if assume == "unrelated" else truths
        found = protocol.estimate(protocol.count(*protocol.respond(mixed, entropy=entropy)), assume=assume)
        low, high = found.bounds(0.9)
        covered[:] += (low <= sizes) & (sizes <= high)
        return found.values

    estimates = many_runs(run)
    assert (np.abs(standard_errors(estimates, sizes)) < 4).all()
    # 900 expected; 4 standard deviations of a binomial below, and not absurdly wide either.
    assert (covered > 900 - 4 * math.sqrt(90)).all()
    assert (covered < 995).all()


def test_related_answers_bias_the_weighted_estimate_and_not_the_plain_one() -> None:
    """What "unrelated" assumes is used: otherwise the test above could not fail."""
    protocol = PersonalResponse([0.5] * 300 + [3.0] * 300)
    truths, entropy = np.repeat([0, 1], 300), seeded(23)
    found = {
        assume: np.array(
            [
                protocol.estimate(protocol.count(*protocol.respond(truths, entropy=entropy)), assume=assume).value
                for _ in range(300)
            ]
        )[:, None]
        for assume in ("unrelated", "nothing")
    }
    assert abs(standard_errors(found["nothing"], np.array([300.0]))[0]) < 4
    assert standard_errors(found["unrelated"], np.array([300.0]))[0] > 20


def test_intervals_hold_where_levels_lie_as_far_apart_as_was_assumed() -> None:
    """200 collections; 190 expected at least. What assumes less fails, as it did at a relation of .3 spreads."""
    sizes, share = (2000, 2000, 500), 0.3
    protocol, entropy = PersonalResponse(np.repeat([0.1, 0.5, 1.5], sizes)), seeded(24)
    order, held = np.random.default_rng(3), {0.3: 0, 0.1: 0, "unrelated": 0}
    # Worst: the half of the owners that counts least has most of them.
    chances = np.repeat(share + 0.3 * math.sqrt(share * (1 - share)) * np.array([1, -0.75, -1]), sizes)
    squares, stated = [], []
    for _ in range(200):
        truths = order.random(len(chances)) < chances
        counts = protocol.count(*protocol.respond(truths, entropy=entropy))
        for assume in held:
            found = protocol.estimate(counts, assume=assume)
            low, high = found.interval()
            held[assume] += low <= truths.sum() <= high
            if assume == 0.3:
                squares.append((found.value - truths.sum()) ** 2)
                stated.append(found.error)
    # 190 - 4 standard deviations.
    assert held[0.3] > 177
    assert held["unrelated"] < 100
    assert held["unrelated"] < held[0.1] < held[0.3]
    assert 0.75 < np.mean(stated) / math.sqrt(np.mean(squares)) < 1.33
    assert "if no level's expected share is further than 0.1" in protocol.estimate(counts).notes[1]


# Coverage, exactly ----------------------------------------------------------------------------------------------------


sizes = cache(possible_sizes)


def coverage(n: int, population: int, high: float, low: float, level: float, widen: int = 0) -> float:
    """The probability that the interval holds n, by going through every count."""
    law = np.convolve(binom.pmf(range(n + 1), n, high), binom.pmf(range(population - n + 1), population - n, low))
    total = 0.0
    for seen, probability in enumerate(law):
        if probability > 1e-12:
            a, b = sizes(seen, population, high, low, level)
            total += probability * (a - widen <= n <= b + widen)
    return float(total)


CHANCES = [(30, 0.45, 0.0), (30, 0.84, 0.04), (40, 0.73, 0.27), (25, 0.999, 0.001), (12, 0.5, 0.49)]


# For the short run one level each, by turns.
@pytest.mark.parametrize(
    ("population", "high", "low", "level"),
    some(
        [(*chances, level) for chances in CHANCES for level in (0.8, 0.95)],
        lambda case: case[3] == (0.8, 0.95)[CHANCES.index(case[:3]) % 2],
    ),
)
def test_intervals_cover_whatever_the_truth(population: int, high: float, low: float, level: float) -> None:
    covered = [coverage(n, population, high, low, level) for n in range(population + 1)]
    assert min(covered) >= level - 1e-9
    # Planted: an interval that is one person too narrow at each end does not.
    if high - low < 0.9 and high - low > 0.1:
        assert min(coverage(n, population, high, low, level, widen=-1) for n in range(population + 1)) < level


@pytest.mark.parametrize("protocol", [RandomizedResponse(truth=0.8, yes=0.2), SamplingPrivacy(sampling=0.45)], ids=repr)
def test_intervals_of_runs_cover(protocol: ResponseProtocol) -> None:
    """400 runs at 90%: at least 360 - 4*6 expected; and the interval is no wider than it must be."""
    truths, entropy, hits, widths = np.repeat([1, 0], [200, 1800]), seeded(31), 0, []
    for _ in range(400):
        low, high = protocol.estimate(*map(protocol.count, protocol.respond(truths, entropy=entropy))).interval(0.9)
        hits += low <= 200 <= high
        widths.append(high - low)
    assert 336 <= hits <= 392
    assert np.mean(widths) < 2 * 1.645 * protocol.spread(200, 2000) * 1.1


@pytest.mark.soak
@every
def test_the_law_over_many_more_owners(protocol: ResponseProtocol) -> None:
    rounds = protocol.respond(np.ones(5_000_000, np.uint8), entropy=seeded(77))
    paths, counts = np.unique(np.stack(rounds, axis=1), axis=0, return_counts=True)
    seen = {tuple(path): int(n) for path, n in zip(paths.tolist(), counts, strict=True)}
    assert law_p_value(protocol, 1, seen) > 1e-4


@pytest.mark.parametrize("parts", short_and_long(64, 4))
def test_the_normal_law_takes_over_where_it_is_as_good(parts: int) -> None:
    """At a standard deviation of thousands both ways give the same interval but for rounding."""
    from epsilons.local import binomials

    population, high, low = 10**9, 0.73, 0.27
    seen = round(population * (0.1 * high + 0.9 * low))
    exact = possible_sizes(seen // parts, population // parts, high, low, 0.95)
    near = binomials._normal_sizes(seen // parts, population // parts, high, low, 1.959963984540054)
    assert np.abs(np.array(exact) - near).max() <= 3
    wide = possible_sizes(seen, population, high, low, 0.95)
    assert wide[0] < population // 10 < wide[1]
    assert (wide[1] - wide[0]) / (near[1] - near[0]) == pytest.approx(math.sqrt(parts), rel=1e-3)
