"""Coins: many at once, counted, or of a chance that no fraction can express."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from epsilons.noise.entropy import Entropy
from epsilons.noise.exact import ONE, floor_dyadic

if TYPE_CHECKING:
    from flint import arb

_WORD = 64
_CHUNK_BITS = 1 << 20


def bernoulli(entropy: Entropy, chance: int, size: int) -> NDArray[np.bool_]:
    """`size` independent coins, each True with probability exactly chance / 2^64.

    A word is uniform on the 2^64 words and `chance` of them lie below `chance`. Certainty, 2^64, does not
    fit a word (it would wrap to 0) and is answered without a comparison.
    """
    _check_chance(chance, _WORD)
    if chance == ONE:
        return np.ones(size, dtype=np.bool_)
    return entropy.words(size) < np.uint64(chance)


def binomial(entropy: Entropy, n: int, chance: int) -> int:
    """How many of `n` people keep, each independently with probability exactly chance / 2^64.

    Everybody holds a uniform 64-bit word, compared with `chance` one bit at a time from the top, and only the
    people whose bits have agreed with those of `chance` so far draw another. They are exchangeable, so
    counting them is enough. Half are decided by each bit: about 2n random bits in all. The time depends on n.
    """
    if n < 0:
        raise ValueError("a number of people is not negative")
    return thin(entropy, n, chance, _WORD)


def thin(entropy: Entropy, n: int, chance: int, width: int) -> int:
    """`binomial` with chances out of 2^width, so that a test can enumerate every string of random bits."""
    _check_chance(chance, width)
    if chance == 1 << width:
        return n
    kept, undecided = 0, n
    for position in reversed(range(width)):
        if undecided == 0:
            break
        ones = _ones(entropy, undecided)
        if chance >> position & 1:
            # A word with 0 where `chance` has its 1 is below it: kept.
            kept += undecided - ones
            undecided = ones
        else:
            # A word with 1 where `chance` has its 0 is above it: not kept.
            undecided -= ones
    # Who is left holds exactly the word `chance`, which is not below it.
    return kept


def below(entropy: Entropy, value: "Callable[[], arb]") -> bool:
    """True with probability exactly value(), a real number in [0, 1)."""
    word, threshold = entropy.bits(_WORD), floor_dyadic(value, _WORD)
    return word < threshold if word != threshold else settle(entropy, value)


def settle(entropy: Entropy, value: "Callable[[], arb]", bits: int = _WORD) -> bool:
    """Is U < value, for a uniform U of which the first `bits` bits are known to equal those of value?

    Draws as many further bits of U as have been drawn and compares them with the same bits of value, until
    one differs. With `bits` = 64 this is reached with probability 2^-64.
    """
    while True:
        drawn = entropy.bits(bits)
        expected = floor_dyadic(value, 2 * bits) & ((1 << bits) - 1)
        if drawn != expected:
            return drawn < expected
        bits *= 2


def _ones(entropy: Entropy, n: int) -> int:
    """The number of ones among `n` random bits."""
    whole, rest = divmod(n, _CHUNK_BITS)
    return sum(entropy.bits(_CHUNK_BITS).bit_count() for _ in range(whole)) + entropy.bits(rest).bit_count()


def _check_chance(chance: int, width: int) -> None:
    if not 0 <= chance <= 1 << width:
        raise ValueError(f"a chance is an integer from 0 to 2^{width}")
