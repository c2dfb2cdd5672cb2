"""Coins: many at once, counted, one per person, or of a chance that no fraction can express.

Who stays in a sample is decided by one coin each (`keep_people`). Over a table the coin is a pseudorandom function of
the person's digest, under a key that only this release knows (`keep_digests`). Such a coin depends on nothing but the
key and the person, so removing one person moves nobody else's coin, the order of rows does not matter, and a retried
task sees the same coins. AES-256 on the 16 bytes of a digest is the function: distinct people have distinct blocks, and
a fresh key makes the blocks' images as good as independent (they differ from truly random ones only in never colliding,
which n people can tell with a chance below n^2/2^129).
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from epsilons.noise.entropy import ALWAYS, Entropy, floor_dyadic

if TYPE_CHECKING:
    from flint import arb

_WORD = 64
_CHUNK_BITS = 1 << 20
_CHUNK_PEOPLE = 1 << 18
_BLOCK = 16


def bernoulli(entropy: Entropy, chance: int, size: int) -> NDArray[np.bool_]:
    """`size` independent coins, each True with probability exactly chance / 2^64.

    A word is uniform on the 2^64 words and `chance` of them lie below `chance`. Certainty, 2^64, does not
    fit a word (it would wrap to 0) and is answered without a comparison.
    """
    _check_chance(chance, _WORD)
    if chance == ALWAYS:
        return np.ones(size, dtype=np.bool_)
    return entropy.words(size) < np.uint64(chance)


def keep_people(entropy: Entropy, codes: NDArray[Any], chances: Sequence[int]) -> NDArray[np.bool_]:
    """Which people stay: person i of level `codes[i]` does with chance `chances[level]` / 2^64; code -1 never does."""
    return _keep(codes, chances, lambda start, stop: entropy.words(stop - start))


def keep_digests(
    entropy: Entropy, digests: NDArray[np.uint8], codes: NDArray[Any], chances: Sequence[int]
) -> NDArray[np.bool_]:
    """`keep_people` with coins that depend on the people's digests and on nothing else."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    # One block per person and no chaining: counter mode's block function, with the digest as the counter.
    cipher = Cipher(algorithms.AES(entropy.bytes(32)), modes.ECB()).encryptor()
    room = np.empty(_CHUNK_PEOPLE * _BLOCK + _BLOCK, np.uint8)

    def encrypt(start: int, stop: int) -> NDArray[np.uint64]:
        block = np.ascontiguousarray(digests[start:stop]).reshape(-1)
        filled = cipher.update_into(block.data, room.data)
        return room[:filled].view("<u8").reshape(-1, 2)[:, 0]

    return _keep(codes, chances, encrypt)


def _keep(
    codes: NDArray[Any], chances: Sequence[int], coins: Callable[[int, int], NDArray[np.uint64]]
) -> NDArray[np.bool_]:
    """`coins(start, stop)` are 64-bit words. A chance of 1 does not look at them: its limit, 2^64, would wrap to 0."""
    limit = np.array([*(min(chance, ALWAYS - 1) for chance in chances), 0], np.uint64)
    certain = np.array([*(chance >= ALWAYS for chance in chances), False])
    kept = np.empty(len(codes), bool)
    for start in range(0, len(codes), _CHUNK_PEOPLE):
        code = codes[start : start + _CHUNK_PEOPLE]
        kept[start : start + len(code)] = (coins(start, start + len(code)) < limit[code]) | certain[code]
    return kept


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
