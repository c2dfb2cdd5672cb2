"""Nobody ever gets less privacy than they asked for, whatever the roster looks like."""

import math
from collections import Counter
from decimal import Decimal

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from epsilons.guarantee import NANO, to_epsilon
from epsilons.preferences import LADDER, MAX_LEVELS, roster_of, to_nano

CHUNK = 1 << 18

granted = st.one_of(
    st.floats(min_value=1e-9, max_value=1e6),
    st.integers(min_value=1, max_value=10**15).map(lambda nano: nano / NANO),
    st.sampled_from([0.05, 0.1, 0.2, 0.7, 1.0, math.inf, 1e-9, 1e6]),
    st.sampled_from(LADDER).map(to_epsilon),
)


def check(epsilons: np.ndarray) -> None:
    roster = roster_of(epsilons)
    levels = roster.levels
    assert len(roster) == len(epsilons)
    grants = np.array([to_epsilon(g) for g in levels.grants])
    assert np.all(np.diff(grants) > 0)
    assert np.all(grants[roster.codes] <= epsilons)
    assert np.array_equal(np.isinf(grants[roster.codes]), np.isinf(epsilons))
    assert levels.sizes == tuple(np.bincount(roster.codes, minlength=len(grants)).tolist())
    assert min(levels.sizes) > 0
    if len(np.unique(epsilons)) <= MAX_LEVELS:
        assert levels.rounding_loss == 0
        assert Counter(map(to_nano, epsilons.tolist())) == dict(zip(levels.grants, levels.sizes, strict=True))
    else:
        assert set(levels.grants) <= {*LADDER, None}


@given(st.floats(min_value=1e-9, max_value=1e6))
def test_to_nano_is_the_printed_decimal_rounded_down(epsilon: float) -> None:
    assert to_nano(epsilon) == math.floor(Decimal(repr(epsilon)) * NANO)


@given(st.lists(granted, min_size=1, max_size=40))
def test_few_preferences(epsilons: list[float]) -> None:
    check(np.array(epsilons))


@given(st.lists(granted, min_size=1, max_size=6), st.integers(1, 1200), st.integers(0, 2**32 - 1))
def test_many_people_share_preferences(distinct: list[float], people: int, seed: int) -> None:
    check(np.random.default_rng(seed).choice(distinct, people))


@given(st.integers(200, 400), st.floats(0.1, 6), st.integers(0, 2**32 - 1), st.booleans())
def test_around_256_preferences(many: int, spread: float, seed: int, public: bool) -> None:
    rng = np.random.default_rng(seed)
    epsilons = np.exp(rng.normal(0, spread, many)).clip(1e-9, 1e6)
    check(rng.permutation(np.concatenate([epsilons, epsilons[: many // 3], [math.inf] * public])))


@settings(max_examples=8)
@given(
    st.lists(granted, min_size=1, max_size=5),
    st.lists(
        st.tuples(st.sampled_from([0, 1, 4095, 4096, CHUNK - 1, CHUNK, CHUNK + 1, CHUNK + 9]), granted), max_size=6
    ),
)
def test_late_newcomers_across_chunks(common: list[float], late: list[tuple[int, float]]) -> None:
    epsilons = np.resize(np.array(common), CHUNK + 10)
    for place, epsilon in late:
        epsilons[place] = epsilon
    check(epsilons)


@settings(max_examples=30)
@given(st.integers(0x3E20000000000000, 0x412E000000000000), st.integers(0, 44), st.integers(2, 300))
def test_runs_of_neighbouring_floats(start: int, shift: int, many: int) -> None:
    """Bit patterns in arithmetic progression: the hardest case for a hash that multiplies."""
    bits = (np.arange(many, dtype=np.uint64) << np.uint64(shift)) + np.uint64(start)
    epsilons = bits.view(np.float64)
    check(epsilons[(epsilons >= 1e-9) & (epsilons <= 1e6)] if (epsilons >= 1e-9).any() else np.array([1.0]))
