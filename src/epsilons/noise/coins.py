"""Coins and dice: many at once, counted, one per person, or of a chance that no fraction can express.

Who stays in a sample is decided by one coin each (`keep_people`). Over a table the coin is a pseudorandom function of
the person's digest, under a key that only this release knows (`keep_digests`). Such a coin depends on nothing but the
key and the person, so removing one person moves no other coin, the order of rows does not matter, and a retried
task sees the same coins. AES-256 on the 16 bytes of a digest is the function: distinct people have distinct blocks, and
a fresh key makes the blocks' images as good as independent (they differ from truly random ones only in never colliding,
which n people can tell with a chance below n^2/2^129).

A roll of a `Die` is a uniform number U in [0, 1), of which only as many bits are drawn as decide the side: one byte
(two for a die of many sides), looked up in a table; for the few whose byte does not decide, 64 bits in all; and for
those who still stand on a cut, of probability 2^-64 each, as many more as it takes. So the law is exact, and ten
million rolls need hardly more than ten million random bytes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import accumulate, chain, repeat
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from epsilons.noise.entropy import ALWAYS, Entropy, floor_dyadic

if TYPE_CHECKING:
    from flint import arb

Sides = NDArray[np.unsignedinteger[Any]]

_WORD = 64
_CHUNK = 1 << 20
_CHUNK_PEOPLE = 1 << 18
_BLOCK = 16
#: Up to so many sides one byte decides nearly every roll.
_SIDES_FOR_A_BYTE = 16


def bernoulli(entropy: Entropy, chance: int, size: int) -> NDArray[np.bool_]:
    """`size` independent coins, each True with probability exactly chance / 2^64.

    A word is uniform on the 2^64 words and `chance` of them lie below `chance`. Certainty, 2^64, does not fit a word
    (it would wrap to 0) and is answered without a comparison.
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


def binomial(entropy: Entropy, n: int, chance: int, width: int = _WORD) -> int:
    """How many of `n` people keep, each independently with probability exactly chance / 2^width.

    Everybody holds a uniform word of `width` bits, compared with `chance` one bit at a time from the top, and only the
    people whose bits have agreed with those of `chance` so far draw another. They are exchangeable, so counting them is
    enough. Half are decided by each bit: about 2n random bits in all. The time depends on n.
    """
    if n < 0:
        raise ValueError("a number of people is not negative")
    _check_chance(chance, width)
    if chance == 1 << width:
        return n
    kept, undecided = 0, n
    for position in reversed(range(width)):
        if undecided == 0:
            break
        whole, rest = divmod(undecided, _CHUNK)
        ones = sum(entropy.bits(size).bit_count() for size in chain(repeat(_CHUNK, whole), [rest]))
        if chance >> position & 1:
            # A word with 0 where `chance` has its 1 is below it: kept.
            kept += undecided - ones
            undecided = ones
        else:
            # A word with 1 where `chance` has its 0 is above it: not kept.
            undecided -= ones
    # Who is left holds exactly the word `chance`, which is not below it.
    return kept


def below(entropy: Entropy, value: Callable[[], arb]) -> bool:
    """True with probability exactly value(), a real number in [0, 1)."""
    word, threshold = entropy.bits(_WORD), floor_dyadic(value, _WORD)
    return word < threshold if word != threshold else break_tie(entropy, value)


def break_tie(entropy: Entropy, value: Callable[[], arb], bits: int = _WORD) -> bool:
    """Is U < value, for a uniform U of which the first `bits` bits are known to equal those of value?

    Draws as many further bits of U as are known and compares them with those of value, until one differs. With `bits`
    = 64 this is reached with probability 2^-64.
    """
    while True:
        drawn = entropy.bits(bits)
        expected = floor_dyadic(value, 2 * bits) & ((1 << bits) - 1)
        if drawn != expected:
            return drawn < expected
        bits *= 2


def _check_chance(chance: int, width: int) -> None:
    if not 0 <= chance <= 1 << width:
        raise ValueError(f"a chance is an integer from 0 to 2^{width}")


class Die:
    """Side k comes up with probability exactly chances[k].

    >>> from epsilons.noise.entropy import system
    >>> Die([Fraction(0), Fraction(1), Fraction(0)]).roll(system(), 3).tolist()
    [1, 1, 1]
    """

    def __init__(self, chances: Sequence[Fraction]) -> None:
        if any(chance < 0 for chance in chances) or sum(chances) != 1:
            raise ValueError("the chances of a die are not negative and sum to 1")
        # U belongs to side k if k cuts are at or below it. A cut at 1 is never reached: no side above it comes up.
        self._cuts = [cut for cut in accumulate(chances) if cut < 1]
        self._bits = 8 if len(chances) <= _SIDES_FOR_A_BYTE else 16
        self._dtype: type[np.unsignedinteger[Any]] = np.uint8 if self._bits == 8 else np.uint32
        self._open = int(np.iinfo(self._dtype).max)
        self._floors = np.array([cut * (1 << _WORD) // 1 for cut in self._cuts], dtype=np.uint64)
        self._table = self._decide_prefixes()

    def roll(self, entropy: Entropy, size: int) -> Sides:
        """The sides that come up in `size` independent rolls."""
        rolled = np.empty(size, self._dtype)
        for start in range(0, size, _CHUNK):
            part = rolled[start : start + _CHUNK]
            raw = entropy.bytes(len(part) * self._bits // 8)
            prefixes = np.frombuffer(raw, np.uint8 if self._bits == 8 else "<u2")
            if self._bits == 8:
                part[:] = np.frombuffer(raw.translate(self._table.tobytes()), np.uint8)
            else:
                part[:] = self._table[prefixes]
            undecided = np.flatnonzero(part == self._open)
            if len(undecided):
                part[undecided] = self._refine(entropy, prefixes[undecided].astype(np.uint64))
        return rolled

    def _decide_prefixes(self) -> Sides:
        """For each value of the first bits the side, or `_open` where a cut lies strictly inside its interval."""
        size = 1 << self._bits
        scaled = [cut * size for cut in self._cuts]
        starts = np.array([-(-cut // 1) for cut in scaled], dtype=np.int64)
        table = np.searchsorted(starts, np.arange(size), side="right").astype(self._dtype)
        table[[int(cut) for cut in scaled if cut.denominator != 1]] = self._open
        return table

    def _refine(self, entropy: Entropy, prefixes: NDArray[np.uint64]) -> NDArray[np.int64]:
        words = prefixes << np.uint64(_WORD - self._bits) | entropy.words(len(prefixes)) >> np.uint64(self._bits)
        sides = np.searchsorted(self._floors, words, side="right")
        for place in np.flatnonzero(np.searchsorted(self._floors, words, side="left") != sides):
            sides[place] = self._break_tie(entropy, int(words[place]))
        return sides

    def _break_tie(self, entropy: Entropy, prefix: int, bits: int = _WORD) -> int:
        """The side of a U whose first `bits` bits are known: draws until the interval they leave has no cut inside."""
        while True:
            scale = 1 << bits
            low = bisect_right(self._cuts, Fraction(prefix, scale))
            if low == len(self._cuts) or Fraction(prefix + 1, scale) <= self._cuts[low]:
                return low
            prefix, bits = prefix << _WORD | entropy.bits(_WORD), bits + _WORD
