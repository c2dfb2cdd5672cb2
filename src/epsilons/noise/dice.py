"""Dice with exact rational chances, rolled for many people at once.

A roll is a uniform number U in [0, 1), of which only as many bits are drawn as decide the side: one byte (two for a
die of many sides), looked up in a table; for the few whose byte does not decide, 64 bits in all; and for those who
still stand on a cut, of probability 2^-64 each, as many more as it takes. So the law is exact, and ten million rolls
need hardly more than ten million random bytes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilons.noise.entropy import Entropy

_WORD = 64
_CHUNK = 1 << 20
#: Up to so many sides one byte decides nearly every roll.
_SIDES_FOR_A_BYTE = 16

Sides = NDArray[np.unsignedinteger[Any]]


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
        floors = [cut.numerator * (1 << _WORD) // cut.denominator for cut in self._cuts]
        self._floors = np.array(floors, dtype=np.uint64)
        self._table = self._decide_prefixes()

    def roll(self, entropy: Entropy, size: int) -> Sides:
        """The sides that come up in `size` independent rolls."""
        rolled = np.empty(size, self._dtype)
        for start in range(0, size, _CHUNK):
            part = rolled[start : start + _CHUNK]
            raw = entropy.bytes(len(part) * self._bits // 8)
            if self._bits == 8:
                part[:] = np.frombuffer(raw.translate(self._table.tobytes()), np.uint8)
            else:
                part[:] = self._table[np.frombuffer(raw, "<u2")]
            undecided = np.flatnonzero(part == self._open)
            if len(undecided):
                prefixes = np.frombuffer(raw, np.uint8 if self._bits == 8 else "<u2")[undecided]
                part[undecided] = self._refine(entropy, prefixes.astype(np.uint64))
        return rolled

    def _decide_prefixes(self) -> Sides:
        """For each value of the first bits the side, or `_open` where a cut lies strictly inside its interval."""
        size = 1 << self._bits
        table = np.zeros(size, self._dtype)
        scaled = [cut * size for cut in self._cuts]
        starts = np.array([-(-cut.numerator // cut.denominator) for cut in scaled], dtype=np.int64)
        table[:] = np.searchsorted(starts, np.arange(size), side="right")
        for cut in scaled:
            if cut.denominator != 1:
                table[int(cut)] = self._open
        return table

    def _refine(self, entropy: Entropy, prefixes: NDArray[np.uint64]) -> NDArray[np.int64]:
        rest = _WORD - self._bits
        words = prefixes << np.uint64(rest) | entropy.words(len(prefixes)) >> np.uint64(self._bits)
        sides = np.searchsorted(self._floors, words, side="right")
        for place in np.flatnonzero(np.searchsorted(self._floors, words, side="left") != sides):
            sides[place] = self._settle(entropy, int(words[place]))
        return sides

    def _settle(self, entropy: Entropy, prefix: int, bits: int = _WORD) -> int:
        """The side of a U whose first `bits` bits are known: draws until the interval they leave has no cut inside."""
        while True:
            scale = 1 << bits
            low = bisect_right(self._cuts, Fraction(prefix, scale))
            if low == len(self._cuts) or Fraction(prefix + 1, scale) <= self._cuts[low]:
                return low
            prefix, bits = prefix << _WORD | entropy.bits(_WORD), bits + _WORD
