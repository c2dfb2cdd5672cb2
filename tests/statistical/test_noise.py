"""Chi-square tests of every draw: the truth is accepted, a planted bug rejected; seeds make them repeatable.

A test accepts at p > ACCEPT and rejects at p < REJECT, far apart: what falls between fails either way.
"""

from collections.abc import Callable, Iterator
from fractions import Fraction
from math import exp, expm1

import numpy as np
import pytest
from flint import arb
from numpy.typing import NDArray
from scipy.stats import binom, chi2, chi2_contingency

from epsilons.noise import (
    Block,
    Entropy,
    SegmentSampler,
    bernoulli,
    binomial,
    discrete_laplace,
    discrete_laplace_many,
    keep_chance,
    segments,
)
from epsilons.noise.coins import break_tie
from epsilons.noise.entropy import floor_dyadic, uniform, uniform_many
from epsilons.noise.laplace import digits_of, truncated_geometric, truncated_geometric_many
from epsilons.testing import seeded
from support.lengths import short_and_long

pytestmark = pytest.mark.statistical

ACCEPT, REJECT = 1e-4, 1e-9
SHORT, LONG = 200_000, 10_000_000
SIZES = [SHORT, pytest.param(LONG, marks=[pytest.mark.soak, pytest.mark.figure("figure_9")])]
HALF_NANO = Fraction(1, 2 * 10**9)
Recorder = Callable[[str, int], None]


def p_value(counts: NDArray[np.int64], probabilities: NDArray[np.float64]) -> float:
    """Pearson's test, neighbouring cells merged until each expects 10 draws."""
    total = counts.sum()
    merged: list[tuple[float, float]] = []
    seen = expected = 0.0
    for count, probability in zip(counts, probabilities, strict=True):
        seen, expected = seen + count, expected + probability * total
        if expected >= 10:
            merged.append((seen, expected))
            seen = expected = 0.0
    observed, wanted = (np.array(column) for column in zip(*merged, strict=True))
    observed[-1], wanted[-1] = observed[-1] + seen, wanted[-1] + expected
    statistic = float(((observed - wanted) ** 2 / wanted).sum())
    return float(chi2.sf(statistic, len(wanted) - 1))


def outcome_p_value(draws: NDArray[np.int64], pmf: dict[int, float]) -> float:
    """The same for outcomes with a probability each; any other outcome is impossible."""
    keys = np.array(sorted(pmf))
    positions = np.searchsorted(keys, draws)
    if not (keys[np.minimum(positions, len(keys) - 1)] == draws).all():
        return 0.0
    return p_value(np.bincount(positions, minlength=len(keys)), np.array([pmf[int(key)] for key in keys]))


def laplace_p_value(draws: NDArray[np.int64], inverse_scale: Fraction) -> float:
    """Cells -reach..reach and the two tails."""
    s = float(inverse_scale)
    reach = int(12 / s) + 2
    inside = np.clip(draws, -reach, reach) + reach
    counts = np.bincount(inside, minlength=2 * reach + 1)
    q = exp(-s)
    probabilities = -expm1(-s) / (1 + q) * np.exp(-s * np.abs(np.arange(-reach, reach + 1)))
    probabilities[0] = probabilities[-1] = q**reach / (1 + q)
    return p_value(counts, probabilities)


class Repeating(Entropy):
    """A planted bug: the stream starts again at each request, so that two draws share their words."""

    def __init__(self) -> None:
        super().__init__(key=bytes(32))

    def bytes(self, n: int) -> bytes:
        return seeded(5).bytes(n)


class TestLaplace:
    @pytest.mark.parametrize("size", SIZES)
    @pytest.mark.parametrize("inverse_scale", [Fraction(1, 100), Fraction(1, 2), Fraction(3), Fraction(22, 7)])
    def test_accepts_the_truth(self, inverse_scale: Fraction, size: int, record_property: Recorder) -> None:
        draws = discrete_laplace_many(seeded(11), inverse_scale, size).astype(np.int64)
        assert laplace_p_value(draws, inverse_scale) > ACCEPT
        record_property("size", 1)

    @pytest.mark.parametrize("size", short_and_long(25_000, 60_000))
    def test_one_at_a_time(self, size: int) -> None:
        entropy = seeded(12)
        draws = np.array([discrete_laplace(entropy, Fraction(1, 3)) for _ in range(size)])
        assert laplace_p_value(draws, Fraction(1, 3)) > ACCEPT

    @pytest.mark.parametrize("inverse_scale", [Fraction(1, 100), Fraction(1, 2), Fraction(3)])
    def test_rejects_a_scale_10_percent_small(self, inverse_scale: Fraction) -> None:
        planted = discrete_laplace_many(seeded(11), inverse_scale * Fraction(10, 9), SHORT).astype(np.int64)
        assert laplace_p_value(planted, inverse_scale) < REJECT

    def test_rejects_reused_words(self) -> None:
        planted = discrete_laplace_many(Repeating(), Fraction(1, 2), SHORT).astype(np.int64)
        assert laplace_p_value(planted, Fraction(1, 2)) < REJECT

    def test_rejects_a_missing_digit(self) -> None:
        plan = digits_of(Fraction(1, 100))
        rest = discrete_laplace_many(seeded(11), Fraction(1, 100), SHORT).astype(np.int64)
        planted = np.sign(rest) * (np.abs(rest) & ~(1 << (plan.count - 6)))
        assert laplace_p_value(planted, Fraction(1, 100)) < REJECT

    @pytest.mark.parametrize("size", short_and_long(50_000, 100_000))
    @pytest.mark.parametrize("scale", [1.0, 20.0])
    def test_agrees_with_opendp(self, scale: float, size: int) -> None:
        import opendp.prelude as dp

        dp.enable_features("contrib")
        space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
        theirs = np.array(dp.m.make_laplace(*space, scale=scale)([0] * size))
        inverse_scale = 1 / Fraction(scale)

        def agreement(inverse_scale: Fraction) -> float:
            ours = discrete_laplace_many(seeded(13), inverse_scale, size).astype(np.int64)
            reach = int(6 * scale)
            table = [np.bincount(np.clip(d, -reach, reach) + reach, minlength=2 * reach + 1) for d in (ours, theirs)]
            full = np.array(table)
            return float(chi2_contingency(full[:, full.sum(axis=0) >= 10]).pvalue)

        # Their draws have no seed: a false alarm once in a million runs.
        assert agreement(inverse_scale) > 1e-6
        assert agreement(inverse_scale * Fraction(10, 9)) < 1e-9


class TestCoins:
    @pytest.mark.parametrize("size", SIZES)
    def test_bernoulli_accepts_the_truth_and_rejects_a_wrong_chance(self, size: int, record_property: Recorder) -> None:
        chance = keep_chance(10**8, 10**9)
        kept = int(bernoulli(seeded(21), chance, size).sum())
        probability = expm1(0.1) / expm1(1)
        assert two_sided(kept, size, probability) > ACCEPT
        # e/t instead of expm1(e)/expm1(t)
        assert two_sided(kept, size, 0.1) < REJECT
        record_property("size", 1)

    @pytest.mark.parametrize("size", [20_000, pytest.param(1_000_000, marks=pytest.mark.soak)])
    @pytest.mark.parametrize(("n", "epsilon"), [(7, 5 * 10**8), (100, 10**8)])
    def test_binomial(self, n: int, epsilon: int, size: int) -> None:
        chance = keep_chance(epsilon, 10**9)
        entropy = seeded(22)
        draws = np.array([binomial(entropy, n, chance) for _ in range(size)])
        counts = np.bincount(draws, minlength=n + 1)
        truth = expm1(epsilon / 1e9) / expm1(1)
        assert p_value(counts, binom.pmf(np.arange(n + 1), n, truth)) > ACCEPT
        assert p_value(counts, binom.pmf(np.arange(n + 1), n, epsilon / 1e9)) < REJECT

    def test_thinning_rejects_a_comparison_off_by_one(self) -> None:
        """With chances out of 8, `<=` for `<` is one chance more: far beyond what chi-square tolerates."""
        entropy = seeded(23)
        for chance, verdict in ((3, True), (4, False)):
            draws = np.array([binomial(entropy, 10, chance, 3) for _ in range(10_000)])
            p = p_value(np.bincount(draws, minlength=11), binom.pmf(np.arange(11), 10, 3 / 8))
            assert (p > ACCEPT) if verdict else (p < REJECT)

    def test_settling_ties_of_two_bits(self) -> None:
        """Two-bit words tie with their threshold every fourth time: a tie is worth its further bits."""

        def value() -> arb:
            return arb(-1).exp()

        def coin(entropy: Entropy, tie: Callable[[], bool]) -> bool:
            word, threshold = entropy.bits(2), floor_dyadic(value, 2)
            return word < threshold if word != threshold else tie()

        entropy, size = seeded(24), 30_000
        exact = sum(coin(entropy, lambda: break_tie(entropy, value, 2)) for _ in range(size))
        strict = sum(coin(entropy, lambda: False) for _ in range(size))
        loose = sum(coin(entropy, lambda: True) for _ in range(size))
        assert two_sided(exact, size, exp(-1)) > ACCEPT
        assert two_sided(strict, size, exp(-1)) < REJECT
        assert two_sided(loose, size, exp(-1)) < REJECT


def two_sided(successes: int, size: int, probability: float) -> float:
    return p_value(np.array([successes, size - successes]), np.array([probability, 1 - probability]))


class TestInsideARun:
    @pytest.mark.parametrize("size", short_and_long(SHORT, 400_000))
    @pytest.mark.parametrize("bound", [2, 3, 11, 64, 65])
    def test_uniform(self, bound: int, size: int) -> None:
        many = uniform_many(seeded(31), np.full(size, bound))
        assert p_value(np.bincount(many, minlength=bound), np.full(bound, 1 / bound)) > ACCEPT
        entropy = seeded(32)
        one = np.array([uniform(entropy, bound) for _ in range(20_000)])
        assert p_value(np.bincount(one, minlength=bound), np.full(bound, 1 / bound)) > ACCEPT

    def test_uniform_rejects_the_remainder_of_a_byte(self) -> None:
        planted = np.frombuffer(seeded(31).bytes(SHORT), dtype=np.uint8) % 65
        assert p_value(np.bincount(planted, minlength=65), np.full(65, 1 / 65)) < REJECT

    @pytest.mark.parametrize("size", short_and_long(SHORT, 400_000))
    @pytest.mark.parametrize(
        ("bound", "inverse_scale"), [(5, Fraction(1, 20)), (64, Fraction(1, 20)), (9, Fraction(2))]
    )
    def test_truncated_geometric(self, bound: int, inverse_scale: Fraction, size: int) -> None:
        plan = digits_of(inverse_scale)
        weights = np.exp(-float(inverse_scale) * np.arange(bound))
        many = truncated_geometric_many(seeded(33), plan, np.full(size, bound))
        assert p_value(np.bincount(many, minlength=bound), weights / weights.sum()) > ACCEPT
        entropy = seeded(34)
        one = np.array([truncated_geometric(entropy, plan, bound) for _ in range(10_000)])
        assert p_value(np.bincount(one, minlength=bound), weights / weights.sum()) > ACCEPT
        flat = np.full(bound, 1 / bound)
        assert p_value(np.bincount(many, minlength=bound), flat) < REJECT


def count_block(people: int, ones: int, levels: list[int]) -> Block:
    """A personalized count (Jorgensen et al. 2015): one rising run per level, up and down from `ones`."""
    up, down = people - ones, ones
    sides = {1: up, -1: down}
    first, direction, count, cost, slope = [ones], [1], [1], [0], [0]
    for sign, there in sides.items():
        share, spent, at = there // len(levels), 0, ones + sign
        for level in levels:
            first.append(at)
            direction.append(sign)
            count.append(share)
            cost.append(spent + level)
            slope.append(level)
            spent, at = spent + share * level, at + sign * share
    return Block(first, direction, count, cost, slope, 0, 0)


def count_pmf(block: Block, unit: Fraction) -> dict[int, float]:
    """Outcome by outcome, in floats."""
    pmf: dict[int, float] = {}
    columns = (block.first, block.direction, block.count, block.cost, block.slope)
    for first, direction, count, cost, slope in zip(*columns, strict=True):  # type: ignore[arg-type]
        for i in range(count):
            pmf[first + direction * i] = exp(-float((cost + i * slope) * unit))
    total = sum(pmf.values())
    return {outcome: weight / total for outcome, weight in pmf.items()}


def cells(width: int, cost: int, total: int, per_block: int) -> Iterator[Block]:
    """A median-like staircase: flat cells of `width` outcomes outwards from 0, each `cost` dearer."""
    for start in range(0, total, per_block):
        k = np.arange(start, min(start + per_block, total))
        first = np.concatenate([k * width, -k * width - 1])
        direction = np.repeat([1, -1], len(k))
        left_over = 2 * width * (total - start - len(k))
        yield Block(first, direction, width, np.tile(k * cost, 2), 0, left_over, int(k[-1] + 1) * cost)


def cells_pmf(width: int, cost: int, total: int, unit: Fraction) -> dict[int, float]:
    weights = {k: exp(-k * cost * float(unit)) for k in range(total)}
    mass = 2 * width * sum(weights.values())
    inside = {o: weights[o // width] / mass for o in range(width * total)}
    return inside | {-o - 1: p for o, p in inside.items()}


LEVELS = [5 * 10**7, 2 * 10**8, 10**9]


class TestSegments:
    @pytest.mark.parametrize("size", SIZES)
    def test_a_personalized_count(self, size: int, record_property: Recorder) -> None:
        block = count_block(90, 45, LEVELS)
        draws = SegmentSampler([block], HALF_NANO).draw_many(seeded(41), size)
        assert outcome_p_value(draws, count_pmf(block, HALF_NANO)) > ACCEPT
        record_property("size", 1)

    def test_rejects_a_missing_half_in_the_exponent(self) -> None:
        block = count_block(90, 45, LEVELS)
        planted = SegmentSampler([block], 2 * HALF_NANO).draw_many(seeded(41), SHORT)
        assert outcome_p_value(planted, count_pmf(block, HALF_NANO)) < REJECT

    def test_rejects_costs_10_percent_small(self) -> None:
        block = count_block(90, 45, LEVELS)
        planted = SegmentSampler([block], HALF_NANO * Fraction(9, 10)).draw_many(seeded(41), SHORT)
        assert outcome_p_value(planted, count_pmf(block, HALF_NANO)) < REJECT

    def test_rejects_words_used_for_the_run_and_inside_it(self) -> None:
        block = count_block(90, 45, LEVELS)
        planted = SegmentSampler([block], HALF_NANO).draw_many(Repeating(), 2 * SHORT)
        assert outcome_p_value(planted, count_pmf(block, HALF_NANO)) < REJECT

    @pytest.mark.parametrize("size", SIZES)
    def test_flat_cells_listed_lazily(self, size: int, record_property: Recorder) -> None:
        sampler = SegmentSampler(cells(3, 10**8, 5000, per_block=50), HALF_NANO)
        draws = sampler.draw_many(seeded(42), size)
        assert outcome_p_value(draws, cells_pmf(3, 10**8, 5000, HALF_NANO)) > ACCEPT
        record_property("size", 1)

    def test_rejects_a_list_cut_short(self) -> None:
        """Leaving out the far cells without a bound on their mass is what the lazy listing must not do."""
        short = SegmentSampler(cells(3, 10**8, 100, per_block=50), HALF_NANO)
        pmf = cells_pmf(3, 10**8, 5000, HALF_NANO)
        draws = short.draw_many(seeded(42), SHORT)
        assert outcome_p_value(draws, pmf) < REJECT

    @pytest.mark.parametrize("size", short_and_long(20_000, 40_000))
    def test_one_at_a_time(self, size: int) -> None:
        entropy, block = seeded(43), count_block(30, 15, LEVELS)
        sampler = SegmentSampler([block], HALF_NANO)
        draws = np.array([sampler.draw(entropy) for _ in range(size)])
        assert outcome_p_value(draws, count_pmf(block, HALF_NANO)) > ACCEPT

    @pytest.mark.parametrize("size", short_and_long(20_000, 40_000))
    def test_two_bits_at_first_are_enough_because_more_follow(self, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
        """With p = 2, 4, 8, ... nearly every draw is undecided at first; the outcome is exact anyway."""
        monkeypatch.setattr(segments, "_WORD", 2)
        entropy, block = seeded(44), count_block(30, 15, LEVELS)
        sampler = SegmentSampler([block], HALF_NANO)
        draws = np.array([sampler.draw(entropy) for _ in range(size)])
        assert outcome_p_value(draws, count_pmf(block, HALF_NANO)) > ACCEPT

    def test_rejects_a_decision_taken_too_early(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The same without the proof that the string lies past the run before: an edge off by one string."""
        monkeypatch.setattr(segments, "_WORD", 4)
        monkeypatch.setattr(segments._Table, "find", early_find)
        entropy, block = seeded(45), count_block(30, 15, LEVELS)
        sampler = SegmentSampler([block], HALF_NANO)
        draws = np.array([sampler.draw(entropy) for _ in range(40_000)])
        assert outcome_p_value(draws, count_pmf(block, HALF_NANO)) < REJECT


def early_find(table: segments._Table, known: int) -> int:
    return int(np.searchsorted(table._before[:-1], known, side="left"))
