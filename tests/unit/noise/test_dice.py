"""Dice: the law is exact for every string of random bits."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare

from epsilons.noise.coins import Die
from epsilons.noise.entropy import Entropy
from epsilons.testing import seeded

THIRDS = [Fraction(1, 3)] * 3
UNEVEN = [Fraction(0), Fraction(11, 40), Fraction(0), Fraction(11, 40), Fraction(9, 20), Fraction(0)]
MANY = [Fraction(1, 40)] * 40


class Scripted(Entropy):
    """Hands out the bytes it was given."""

    def __init__(self, script: bytes) -> None:
        super().__init__(bytes(32))
        self.script = script

    def bytes(self, n: int) -> bytes:
        out, self.script = self.script[:n], self.script[n:]
        assert len(out) == n, "the die asked for more bits than it needs"
        return out


def side_of(chances: list[Fraction], low: Fraction, high: Fraction) -> int | None:
    """The side that holds all of [low, high), if one does."""
    edge = Fraction(0)
    for side, chance in enumerate(chances):
        if edge <= low and high <= edge + chance:
            return side
        edge += chance
    return None


@pytest.mark.parametrize("chances", [THIRDS, UNEVEN, MANY, [Fraction(1)], [Fraction(1, 2), Fraction(1, 2)]])
def test_the_first_bits_decide_exactly_where_they_can(chances: list[Fraction]) -> None:
    die = Die(chances)
    size = 256 if len(chances) <= 16 else 65_536
    undecided = 0
    # All prefixes of one byte; of two bytes every seventh, and those beside a cut.
    cuts = {int(sum(chances[:k]) * size) for k in range(1, len(chances))} - {size}
    for prefix in sorted({*range(0, size, 1 if size == 256 else 7), *cuts}):
        side = side_of(chances, Fraction(prefix, size), Fraction(prefix + 1, size))
        raw = prefix.to_bytes(1 if size == 256 else 2, "little")
        if side is None:
            undecided += 1
            # Eight bytes more decide: all zeros is the bottom of the prefix's interval, all ones its top.
            low = die.roll(Scripted(raw + bytes(8)), 1)[0]
            high = die.roll(Scripted(raw + b"\xff" * 8), 1)[0]
            assert low == side_of(chances, Fraction(prefix, size), Fraction(prefix, size) + Fraction(1, 2**64))
            assert high == side_of(chances, Fraction(prefix + 1, size) - Fraction(1, 2**64), Fraction(prefix + 1, size))
        else:
            assert die.roll(Scripted(raw), 1)[0] == side
    assert undecided <= len(chances)


def test_a_roll_on_the_cut_draws_until_it_is_decided() -> None:
    die = Die(THIRDS)
    # 1/3 is 0.010101... in binary: 0x55 everywhere. The words below agree with it for 8, then 64 more bits.
    on_cut = b"\x55" * 8
    assert die.roll(Scripted(b"\x55" + on_cut + b"\x55" * 8 + b"\x54" + b"\x55" * 7), 1)[0] in (0, 1)
    below = die.roll(Scripted(b"\x55" + on_cut + b"\x00" * 8), 1)[0]
    above = die.roll(Scripted(b"\x55" + on_cut + b"\xff" * 8), 1)[0]
    assert (below, above) == (0, 1)


def test_refining_bits_matches_a_slow_reading_of_the_same_number() -> None:
    chances = [Fraction(5, 17), Fraction(1, 1000), Fraction(12, 17) - Fraction(1, 1000)]
    words = seeded(3).words(20_000)
    prefixes = (words >> np.uint64(56)).astype(np.uint8)
    die, cuts = Die(chances), [Fraction(5, 17), Fraction(5, 17) + Fraction(1, 1000)]
    for word, prefix in zip(words[:4000].tolist(), prefixes.tolist(), strict=False):
        rest = (word << 8) % 2**64
        script = Scripted(bytes([prefix]) + rest.to_bytes(8, "little"))
        expected = sum(Fraction(word, 2**64) >= cut for cut in cuts)
        assert die.roll(script, 1)[0] == expected


@pytest.mark.statistical
@pytest.mark.parametrize("chances", [THIRDS, [c for c in UNEVEN if c], MANY])
def test_the_law_of_many_rolls_and_a_planted_bias(chances: list[Fraction]) -> None:
    """Seeded; the truth passes at p > 1e-4, a bias of 1% of one side fails at p < 1e-6."""
    size = 2_000_000
    seen = np.bincount(Die(chances).roll(seeded(11), size), minlength=len(chances))
    assert chisquare(seen, [float(c) * size for c in chances]).pvalue > 1e-4
    biased = [chances[0] * Fraction(99, 100), *chances[1:-1], chances[-1] + chances[0] / 100]
    if len(chances) < 16:
        assert chisquare(seen, [float(c) * size for c in biased]).pvalue < 1e-6


def test_a_die_that_is_none_is_refused() -> None:
    for chances in ([Fraction(1, 2)], [Fraction(3, 2), Fraction(-1, 2)], []):
        with pytest.raises(ValueError, match="sum to 1"):
            Die(chances)
