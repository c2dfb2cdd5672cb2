"""Arithmetic modulo the prime p = 2^64 - 2^32 + 1, on arrays of 64-bit words.

Since 2^64 = 2^32 - 1 and 2^96 = -1 modulo p, a product of two words is reduced by one subtraction and one addition.
p - 1 = 2^32 * 3 * 5 * 17 * 257 * 65537, so there are subgroups of roots of unity of many orders.
"""

from __future__ import annotations

import itertools
import math
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

P = 2**64 - 2**32 + 1
#: 7 generates the whole multiplicative group, so 7 times a proper subgroup is disjoint from it.
GENERATOR = 7

Words = NDArray[np.uint64]

_P = np.uint64(P)
_LOW = np.uint64(2**32 - 1)
_HALF = np.uint64(32)
_WORDS_AT_ONCE = 1 << 21


def to_words(numbers: Any) -> Words:
    """Python integers, also negative ones, as words."""
    return np.array([int(number) % P for number in numbers], dtype=np.uint64)


def to_integers(words: Words) -> list[int]:
    """The integers nearest to 0 that the words stand for: from -(p-1)/2 to (p-1)/2."""
    return [word - P if word > P // 2 else word for word in words.tolist()]


def add(a: Words, b: Words) -> Words:
    """a + b."""
    # In b's complement nothing overflows: a + b = a - (p - b).
    return sub(a, np.where(b == 0, b, _P - b))


def sub(a: Words, b: Words) -> Words:
    """a - b."""
    difference: Words = a - b
    # A borrow left 2^64 too much, of which p is what belongs there.
    return np.where(a < b, difference + _P, difference)


def mul(a: Words, b: Words | np.uint64) -> Words:
    """a * b."""
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
    """The inner product of every row with the weights."""
    chunk = max(1, _WORDS_AT_ONCE // max(1, len(weights)))
    parts = [total(mul(rows[start : start + chunk], weights), axis=1) for start in range(0, len(rows), chunk)]
    return np.concatenate(parts) if parts else np.zeros(0, np.uint64)


def in_range(words: Words) -> bool:
    """Whether every word is one of 0..p-1."""
    return bool((words < _P).all())


def inverse(number: int) -> int:
    """1 / number."""
    return pow(number, -1, P)


@cache
def subgroup_order(least: int) -> int:
    """The smallest order of a subgroup with at least so many elements."""
    best = 2**32
    for count in range(6):
        for primes in itertools.combinations((3, 5, 17, 257, 65537), count):
            odd = math.prod(primes)
            twos = max(0, (max(1, -(-least // odd)) - 1).bit_length())
            best = min(best, odd << twos)
    return best


def root_of_unity(order: int) -> int:
    """An element that generates the subgroup of this order."""
    return pow(GENERATOR, (P - 1) // order, P)


def powers(base: int, count: int, first: int = 1) -> list[int]:
    """first, first*base, first*base^2, ..."""
    found = [first]
    for _ in range(count - 1):
        found.append(found[-1] * base % P)
    return found
