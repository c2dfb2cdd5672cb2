"""A proof that an owner's vector holds a single 1 and else 0, checked on shares, that shows nothing else.

The owner thinks of the polynomial f of degree below N with f(1) = u, a random word, and f(w^i) = cell i - 1, where w is
a root of unity of order N, larger than the number of cells m; f is 0 at the points that remain. All cells are 0 or 1
exactly if f^2 - f is divisible by Z(x) = (x^N - 1)/(x - 1). The owner sends u and the quotient q by its values at N
other points, shared like the cells. For a point t, drawn after the reports are in, each aggregator publishes three
linear functions of its share: the sum of the cells, f(t) and q(t). The report is accepted if they add up to values with

    sum = 1   and   f(t)^2 - f(t) = q(t) Z(t).

Sound:   otherwise f^2 - f - qZ is a polynomial other than 0, of degree at most 2N - 2, and t is none of its roots but
         with probability below 2N/p: 2^-59 for ten options, 2^-49 for ten thousand.
Secret:  f(t) = u L(t) + ... with L(t) != 0 unless t^N = 1, so f(t) is uniform for every answer; q(t) follows.
         Each aggregator speaks once, before it hears the others, so no aggregator can steer what another one shows.

It is the proof system of Prio (Corrigan-Gibbs, Boneh 2017, section 4.2) in the form of Boneh, Boyle, Corrigan-Gibbs,
Gilboa, Ishai 2019, "Zero-Knowledge Proofs on Secret-Shared Data via Fully Linear PCPs", section 4. Owners who follow
the protocol find f at the other points without any transform: there L_j is a rotation of L_0.

Arithmetic is modulo the prime p = 2^64 - 2^32 + 1, on arrays of 64-bit words: 2^64 = 2^32 - 1 and 2^96 = -1 mod p, so
a product of two words is reduced by one subtraction and one addition. p - 1 = 2^32 * 3 * 5 * 17 * 257 * 65537, so
there are subgroups of roots of unity of many orders.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

P = 2**64 - 2**32 + 1
#: 7 generates the whole multiplicative group, so 7 times a proper subgroup is disjoint from it.
GENERATOR = 7

Words = NDArray[np.uint64]

_P, _LOW, _HALF = np.uint64(P), np.uint64(2**32 - 1), np.uint64(32)
_WORDS_AT_ONCE = 1 << 21
#: What an aggregator publishes of each report: the sum of its cells, f(t), q(t).
SHOWN = 3


def to_words(numbers: Iterable[int]) -> Words:
    """Python integers, also negative ones, as words."""
    return np.array([int(number) % P for number in numbers], dtype=np.uint64)


def to_integers(words: Words) -> list[int]:
    """The integers nearest to 0 that the words stand for: from -(p-1)/2 to (p-1)/2."""
    return [word - P if word > P // 2 else word for word in words.tolist()]


def add(a: Words, b: Words) -> Words:
    # In b's complement nothing overflows: a + b = a - (p - b).
    return sub(a, np.where(b == 0, b, _P - b))


def sub(a: Words, b: Words) -> Words:
    difference: Words = a - b
    # A borrow left 2^64 too much, of which p is what belongs there.
    return np.where(a < b, difference + _P, difference)


def mul(a: Words, b: Words | np.uint64) -> Words:
    a0, a1, b0, b1 = a & _LOW, a >> _HALF, b & _LOW, b >> _HALF
    outer, inner = a0 * b1, a1 * b0
    low = a0 * b0
    middle = (low >> _HALF) + (outer & _LOW) + (inner & _LOW)
    low = (low & _LOW) | (middle << _HALF)
    high = a1 * b1 + (outer >> _HALF) + (inner >> _HALF) + (middle >> _HALF)
    # low + high*2^64 = low + (high mod 2^32)*(2^32 - 1) - (high >> 32).
    borrowed = high >> _HALF
    rest = low - borrowed
    rest = np.where(low < borrowed, rest - _LOW, rest)
    more = (high & _LOW) * _LOW
    product = rest + more
    product = np.where(product < more, product + _LOW, product)
    return np.asarray(np.where(product >= _P, product - _P, product))


def total(words: Words, axis: int = 0) -> Words:
    """The sum along an axis of fewer than 2^31 words."""
    high = np.asarray((words >> _HALF).sum(axis=axis, dtype=np.uint64))
    low = np.asarray((words & _LOW).sum(axis=axis, dtype=np.uint64))
    # As arrays of one dimension at least: numpy warns of wrapping words only outside of them.
    return add(mul(np.atleast_1d(high), np.uint64(2**32)), np.atleast_1d(low) % _P).reshape(high.shape)


def dot(rows: Words, weights: Words) -> Words:
    chunk = max(1, _WORDS_AT_ONCE // max(1, len(weights)))
    parts = [total(mul(rows[start : start + chunk], weights), axis=1) for start in range(0, len(rows), chunk)]
    return np.concatenate(parts) if parts else np.zeros(0, np.uint64)


def in_range(words: Words) -> bool:
    """Whether every word is one of 0..p-1."""
    return bool((words < _P).all())


def inverse(number: int) -> int:
    return pow(number, -1, P)


@cache
def subgroup_order(least: int) -> int:
    """The smallest order of a subgroup with at least so many elements."""
    chosen = (itertools.combinations((3, 5, 17, 257, 65537), count) for count in range(6))
    odds = map(math.prod, itertools.chain.from_iterable(chosen))
    return min(2**32, *(odd << (max(1, -(-least // odd)) - 1).bit_length() for odd in odds))


def powers(base: int, count: int, first: int = 1) -> list[int]:
    """first, first*base, first*base^2, ..."""
    return list(itertools.accumulate(range(count - 1), lambda power, _: power * base % P, initial=first))


def round_challenge(challenge: bytes, round_number: int) -> bytes:
    """Each round's proofs have a point of their own."""
    return challenge + bytes((round_number,))


@dataclass(frozen=True)
class ReportShape:
    """What a report looks like: `cells` words of the answer, u, then `order` words of q."""

    cells: int

    @cached_property
    def order(self) -> int:
        """N."""
        return subgroup_order(self.cells + 1)

    @property
    def words(self) -> int:
        """The length of a share."""
        return self.cells + 1 + self.order

    @cached_property
    def _root(self) -> int:
        """An element that generates the subgroup of order N."""
        return pow(GENERATOR, (P - 1) // self.order, P)

    @cached_property
    def _rotated(self) -> Words:
        """L_0 at the other points y_i = 7 w^i; L_j(y_i) is its entry i - j."""
        scale = (pow(GENERATOR, self.order, P) - 1) * inverse(self.order)
        return to_words(scale * inverse(y - 1) for y in self._others)

    @cached_property
    def _others(self) -> list[int]:
        return powers(self._root, self.order, GENERATOR)

    @cached_property
    def _by_vanishing(self) -> Words:
        """1/Z(y_i) = (y_i - 1)/(7^N - 1)."""
        scale = inverse(pow(GENERATOR, self.order, P) - 1)
        return to_words(scale * (y - 1) for y in self._others)

    def prove(self, answers: NDArray[np.int64], blinds: Words) -> Words:
        """One row per owner, from the cell of each and a uniform word of each: the answer with its proof."""
        rows = np.zeros((len(answers), self.words), np.uint64)
        rows[np.arange(len(answers)), answers] = 1
        rows[:, self.cells] = blinds
        turned = (np.arange(self.order)[None, :] - (answers[:, None] + 1)) % self.order
        f = add(mul(self._rotated[None, :], blinds[:, None]), self._rotated[turned])
        rows[:, self.cells + 1 :] = mul(sub(mul(f, f), f), self._by_vanishing)
        return rows

    def query(self, challenge: bytes) -> Query:
        """The point that a challenge stands for, and the weights of the linear functions there."""
        t = self._point(challenge)
        order, root = self.order, self._root
        whole = pow(t, order, P)
        scale = (whole - 1) * inverse(order)
        lagrange = [scale * x * inverse(t - x) for x in powers(root, self.cells + 1)]
        shift = pow(GENERATOR, order, P)
        scale = (whole - shift) * inverse(order * shift)
        others = [scale * y * inverse(t - y) for y in self._others]
        vanishing = (whole - 1) * inverse(t - 1) % P
        # In a share the cells stand before u.
        return Query(self.cells, to_words([*lagrange[1:], lagrange[0]]), to_words(others), vanishing)

    def _point(self, challenge: bytes) -> int:
        """Uniform among the points that are neither roots of unity nor of the other coset, where q is given."""
        shift = pow(GENERATOR, self.order, P)
        for number in range(1 << 16):
            t = int.from_bytes(hashlib.sha256(b"epsilons point" + number.to_bytes(2) + challenge).digest()[:8])
            if 0 < t < P and pow(t, self.order, P) not in (1, shift):
                return t
        raise AssertionError("a hash that avoids almost all points")


@dataclass(frozen=True)
class Query:
    """Three linear functions of a share, and what must hold of their sums."""

    cells: int
    lagrange: Words
    others: Words
    vanishing: int

    def show(self, shares: Words) -> Words:
        """What an aggregator publishes: a row of three words per report."""
        first = self.cells + 1
        f, q = dot(shares[:, :first], self.lagrange), dot(shares[:, first:], self.others)
        return np.stack((total(shares[:, : self.cells], axis=1), f, q), axis=1)

    def accept(self, shown: Words) -> NDArray[np.bool_]:
        """Which reports are one answer each, from the sums over all aggregators of what they published."""
        one, f, q = shown.T
        return np.asarray((one == 1) & (sub(mul(f, f), f) == mul(q, np.uint64(self.vanishing))))
