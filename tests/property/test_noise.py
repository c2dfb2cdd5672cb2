"""The room's promises on inputs nobody chose."""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from epsilons.noise import Block, SegmentSampler, binomial, discrete_laplace, keep_chance
from epsilons.noise.entropy import ALWAYS
from epsilons.noise.laplace import digits_of
from epsilons.testing import seeded
from support.lengths import examples

NANO = 10**9
epsilons = st.integers(1, 100 * NANO)
units = st.fractions(min_value=Fraction(1, 10**4), max_value=10, max_denominator=10**6).filter(lambda u: u > 0)
runs = st.lists(
    st.tuples(st.integers(1, 9), st.integers(0, 60), st.integers(0, 7), st.sampled_from([1, -1])),
    min_size=1,
    max_size=8,
)


@given(epsilons, epsilons)
def test_keep_chance_is_the_rounded_down_ratio(epsilon: int, threshold: int) -> None:
    chance = keep_chance(epsilon, threshold)
    if epsilon >= threshold:
        assert chance == ALWAYS
        return
    with localcontext() as context:
        context.prec = 140
        ratio = ((Decimal(epsilon) / NANO).exp() - 1) / ((Decimal(threshold) / NANO).exp() - 1)
        assert chance <= ratio * ALWAYS < chance + 1


@given(epsilons, epsilons, epsilons)
def test_keep_chance_never_falls_with_epsilon(first: int, second: int, threshold: int) -> None:
    low, high = sorted((first, second))
    assert keep_chance(low, threshold) <= keep_chance(high, threshold)


@given(st.fractions(min_value=Fraction(1, 2**90), max_value=10**6).filter(lambda s: s > 0))
@examples(25)
def test_every_digit_has_its_exact_threshold(inverse_scale: Fraction) -> None:
    plan = digits_of(inverse_scale)
    with localcontext() as context:
        context.prec = 160
        s = Decimal(inverse_scale.numerator) / Decimal(inverse_scale.denominator)
        for position in range(plan.count):
            chance = ALWAYS / (1 + (2**position * s).exp())
            assert int(plan.thresholds[position]) <= chance < int(plan.thresholds[position]) + 1
        assert ALWAYS * (-(2**plan.count) * s).exp() < 1
    assert discrete_laplace(seeded(1), inverse_scale) == discrete_laplace(seeded(1), inverse_scale)


@given(st.integers(0, 5000), st.integers(0, ALWAYS), st.integers())
def test_thinning_keeps_some_of_the_people(n: int, chance: int, seed: int) -> None:
    assert 0 <= binomial(seeded(seed), n, chance) <= n


@given(runs, units, st.integers(1, 9), st.integers(0, 2**9 - 1))
@examples(100)
def test_a_run_is_found_only_if_it_holds_the_whole_string(
    described: list[tuple[int, int, int, int]], unit: Fraction, bits: int, string: int
) -> None:
    """[R, R+1)/2^p lies between the true edges C_{j-1}/T and C_j/T of the run found."""
    sampler = SegmentSampler([as_block(described)], unit)
    known = string % (1 << bits)
    run = sampler._table(bits).find(known)
    if run is None:
        return
    with localcontext() as context:
        context.prec = 80
        rate = Decimal(unit.numerator) / Decimal(unit.denominator)
        masses = [
            sum(((-(cost + i * slope) * rate).exp() for i in range(n)), Decimal(0)) for n, cost, slope, _ in described
        ]
        total, tolerance = sum(masses, Decimal(0)), Decimal(10) ** -60
        assert sum(masses[:run], Decimal(0)) / total <= Decimal(known) / 2**bits + tolerance
        assert Decimal(known + 1) / 2**bits <= sum(masses[: run + 1], Decimal(0)) / total + tolerance


@given(runs, units, st.integers(1, 4), st.integers())
@examples(30)
def test_blocks_may_be_cut_anywhere(
    described: list[tuple[int, int, int, int]], unit: Fraction, cut: int, seed: int
) -> None:
    """The same runs in one block or in several give the same outcomes from the same bits."""
    whole = as_block(described)
    pieces = []
    for start in range(0, len(described), cut):
        rest = described[start + cut :]
        floor = min((cost for _, cost, _, _ in rest), default=0)
        part = as_block(described[start : start + cut], offset=start)
        left_over = sum(n for n, _, _, _ in rest)
        pieces.append(Block(part.first, part.direction, part.count, part.cost, part.slope, left_over, floor))
    together, apart = SegmentSampler([whole], unit), SegmentSampler(iter(pieces), unit)
    assert [together.draw(seeded(seed + i)) for i in range(20)] == [apart.draw(seeded(seed + i)) for i in range(20)]
    outcomes, probabilities = apart.probabilities()
    assert np.isclose(probabilities.sum(), 1, atol=1e-13)
    assert set(together.draw_many(seeded(seed), 200).tolist()) <= set(outcomes.tolist())


def as_block(described: list[tuple[int, int, int, int]], offset: int = 0) -> Block:
    """Runs of (count, cost, slope, direction), 100 outcomes apart."""
    first = [100 * (offset + i) for i in range(len(described))]
    count, cost, slope, direction = (list(column) for column in zip(*described, strict=True))
    return Block(first, direction, count, cost, slope, 0, 0)
