from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from flint import arb

from epsilons.noise import Entropy, bernoulli, binomial
from epsilons.noise.coins import below, break_tie
from epsilons.noise.entropy import ALWAYS, floor_dyadic
from epsilons.testing import seeded

TapeMaker = Callable[..., Entropy]


def inverse_e() -> arb:
    return arb(-1).exp()


def test_a_coin_compares_strictly(tape: TapeMaker) -> None:
    chance = 12345
    coins = bernoulli(tape(chance - 1, chance, chance + 1), chance, 3)
    assert coins.tolist() == [True, False, False]


def test_impossible_and_certain_coins(tape: TapeMaker) -> None:
    assert not bernoulli(tape(0, 1), 0, 2).any()
    assert bernoulli(tape(2**64 - 1), ALWAYS, 1).all()
    assert not bernoulli(tape(2**64 - 1), ALWAYS - 1, 1).any()
    assert bernoulli(seeded(1), ALWAYS // 2, 0).dtype == np.bool_


@pytest.mark.parametrize("chance", [-1, ALWAYS + 1])
def test_a_chance_is_out_of_two_to_the_64(chance: int) -> None:
    with pytest.raises(ValueError, match="chance"):
        bernoulli(seeded(1), chance, 1)
    with pytest.raises(ValueError, match="chance"):
        binomial(seeded(1), 1, chance)


def enumerate_binomial(bit_tape: TapeMaker, n: int, chance: int, width: int) -> dict[int, Fraction]:
    """The exact distribution of `binomial`: every string of n*width random bits once."""
    strings = 1 << (n * width)
    kept = Counter(binomial(bit_tape(string), n, chance, width) for string in range(strings))
    return {k: Fraction(times, strings) for k, times in kept.items()}


def exact_binomial(n: int, p: Fraction) -> dict[int, Fraction]:
    pmf = {k: comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)}
    return {k: value for k, value in pmf.items() if value}


@pytest.mark.parametrize(("n", "width"), [(0, 3), (1, 4), (2, 3), (3, 3), (4, 3), (3, 4), (6, 2)])
def test_thinning_is_binomial_by_enumeration(bit_tape: TapeMaker, n: int, width: int) -> None:
    for chance in range((1 << width) + 1):
        assert enumerate_binomial(bit_tape, n, chance, width) == exact_binomial(n, Fraction(chance, 1 << width))


def test_the_enumeration_rejects_a_comparison_off_by_one(bit_tape: TapeMaker) -> None:
    """`word <= chance` instead of `word < chance` is the same as one more chance."""
    assert enumerate_binomial(bit_tape, 3, 4, 3) != exact_binomial(3, Fraction(3, 8))


def test_binomial_uses_the_64_bits_of_the_chance(tape: TapeMaker) -> None:
    """One person whose word agrees with the chance to the last bit is not kept; one below it is."""
    chance = 0xFEDCBA9876543210

    def spelled(word: int) -> Entropy:
        # bits(1) takes a byte of the stream and keeps its top bit
        stream = bytes(0x80 * (word >> position & 1) for position in reversed(range(64)))
        return tape(*(int.from_bytes(stream[i : i + 8], "little") for i in range(0, 64, 8)))

    assert binomial(spelled(chance), 1, chance) == 0
    assert binomial(spelled(chance - 1), 1, chance) == 1
    assert binomial(spelled(chance + 1), 1, chance) == 0


def test_binomial_at_the_ends() -> None:
    assert binomial(seeded(1), 10**30, ALWAYS) == 10**30
    assert binomial(seeded(1), 1000, 0) == 0
    assert binomial(seeded(1), 0, ALWAYS // 2) == 0
    with pytest.raises(ValueError, match="negative"):
        binomial(seeded(1), -1, ALWAYS // 2)


def test_binomial_of_more_people_than_one_chunk() -> None:
    n = 5_000_001
    kept = binomial(seeded(1), n, ALWAYS // 4)
    assert abs(kept - n / 4) < 6 * (n * 3 / 16) ** 0.5


def test_two_bits_a_person_are_expected(tape: TapeMaker) -> None:
    entropy = tape()
    binomial(entropy, 100_000, ALWAYS // 3)
    assert 8 * vars(entropy)["taken"] == pytest.approx(200_000, rel=0.02)


@pytest.mark.parametrize("known", [1, 2, 3, 4])
def test_breaking_a_tie_decides_every_string_as_the_real_number_does(bit_tape: TapeMaker, known: int) -> None:
    """All strings of the next known + 2*known bits, after a prefix that agrees with 1/e."""
    prefix, whole = floor_dyadic(inverse_e, known), floor_dyadic(inverse_e, 4 * known)
    for string in range(1 << 3 * known):
        second, first = divmod(string, 1 << known)
        uniform = (prefix << known | first) << 2 * known | second
        if uniform != whole:
            assert break_tie(bit_tape(string), inverse_e, known) == (uniform < whole)


def test_breaking_a_tie_goes_deeper_while_the_bits_agree(tape: TapeMaker) -> None:
    bits = floor_dyadic(inverse_e, 256)
    second, third, fourth = (bits >> shift & (2**64 - 1) for shift in (128, 64, 0))
    # 128 further bits are read little-endian: the low word first.
    assert break_tie(tape(second, fourth - 1, third), inverse_e) is True
    assert break_tie(tape(second, fourth + 1, third), inverse_e) is False
    assert break_tie(tape(second - 1), inverse_e) is True
    assert break_tie(tape(second + 1), inverse_e) is False


def test_below_at_its_threshold(tape: TapeMaker) -> None:
    first, second = divmod(floor_dyadic(inverse_e, 128), 2**64)
    assert below(tape(first - 1), inverse_e)
    assert not below(tape(first + 1), inverse_e)
    assert below(tape(first, second - 1), inverse_e)
    assert not below(tape(first, second + 1), inverse_e)
