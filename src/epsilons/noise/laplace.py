"""Discrete Laplace noise: the difference of two geometric integers, drawn one binary digit at a time.

For independent G, G' with P(G = k) = (1 - q) q^k, q = exp(-s):

    P(G - G' = k) = (1 - q)^2 sum_{j>=0} q^(j + |k|) q^j = (1 - q)/(1 + q) q^|k|.

(Ghosh, Roughgarden, Sundararajan 2009, "Universally Utility-Maximizing Privacy Mechanisms", call it the two-sided
geometric.) Added to an integer statistic of sensitivity r it is s*r-differentially private.

The digits. G >= 0 is geometric with P(G = k) proportional to exp(-s k), s > 0 the inverse scale. Write k in binary:
with digits b_i below position m, and H = floor(k / 2^m),

    exp(-s k) = prod_{i<m} exp(-s 2^i)^(b_i)  *  exp(-s 2^m)^H,

a product with one factor for each digit and one for H, over all combinations of their values. Hence the digits and H
are independent, digit i is 1 with probability 1 / (1 + exp(2^i s)), and H is again geometric, with ratio exp(-2^m s).
(Dwork, Kenthapadi, McSherry, Mironov, Naor 2006, "Our Data, Ourselves", draw the exponential distribution this way.)
Each digit is one coin of a real chance: the first 64 bits of a uniform number against the first 64 bits of the chance,
deeper only where they agree (`coins.break_tie`).

m is the smallest with exp(-2^m s) < 2^-64. Then H is 0 unless a word is 0, and the number of digits, and so the time,
does not depend on the value drawn, except where a word equals its threshold (probability 2^-64 per word). The sampler
of Canonne, Kamath and Steinke 2020 ("The Discrete Gaussian for Differential Privacy", Algorithm 2) is exact as well but
takes longer for larger values, which shows them to a stopwatch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from epsilons.noise.coins import below, break_tie
from epsilons.noise.entropy import Entropy, as_ball, certain_floor, draw_below, working_precision

if TYPE_CHECKING:
    from flint import arb

# exp(-x) < 2^-64 for x >= 45, since 64 log 2 = 44.36...
_NEGLIGIBLE = 45
_FIRST_PRECISION = 128
_CHUNK_WORDS = 1 << 17
# Digits that fit an int64 without touching its sign.
_INT64_DIGITS = 63

Whole = NDArray[np.int64] | NDArray[np.object_]


def discrete_laplace(entropy: Entropy, inverse_scale: Fraction) -> int:
    """One integer k with probability proportional to exp(-|k| * inverse_scale), exactly."""
    first, second = geometrics(entropy, digits_of(inverse_scale), 2)
    return first - second


def discrete_laplace_many(entropy: Entropy, inverse_scale: Fraction, size: int) -> Whole:
    """`size` independent draws: int64 for scales up to about 2^56, Python integers above."""
    plan = digits_of(inverse_scale)
    first = geometric_many(entropy, plan, size)
    # Both lie in 0..2^63-1 while they are int64, so the difference does as well.
    return first - geometric_many(entropy, plan, size)


@dataclass(frozen=True)
class Digits:
    """What one inverse scale needs: a 64-bit threshold for each of `count` digits, and one, 0, for "H >= 1"."""

    inverse_scale: Fraction
    count: int
    thresholds: NDArray[np.uint64]

    def chance(self, position: int) -> Callable[[], arb]:
        """The real number behind thresholds[position]: P(digit = 1), or P(H >= 1) at the last position."""
        exponent = self.inverse_scale * (1 << position)
        if position == self.count:
            return lambda: as_ball(-exponent).exp()
        return lambda: 1 / (1 + as_ball(exponent).exp())

    def beyond(self, entropy: Entropy, word: int) -> int:
        """H, given the first 64 bits that decide whether it is at least 1: the successes before a failure."""
        if word > 0:
            return 0
        chance = self.chance(self.count)
        successes, again = 0, break_tie(entropy, chance)
        while again:
            successes, again = successes + 1, below(entropy, chance)
        return successes


@lru_cache(maxsize=1024)
def digits_of(inverse_scale: Fraction) -> Digits:
    """The digits for one inverse scale, kept for the next draw."""
    if inverse_scale <= 0:
        raise ValueError("an inverse scale is positive")
    from flint import arb

    count = 0
    while inverse_scale.numerator << count < _NEGLIGIBLE * inverse_scale.denominator:
        count += 1
    # All digits at one precision, which decides nearly every floor; those left become finer together. That ends, since
    # the chances are transcendental (see `floor_dyadic`).
    thresholds, precision = [0] * (count + 1), _FIRST_PRECISION
    undecided: Sequence[int] = range(count)
    while undecided:
        with working_precision(precision):
            exponent, one = as_ball(inverse_scale), arb((1, 64))
            floors = [certain_floor(one / (1 + (exponent * (1 << position)).exp())) for position in undecided]
        left = []
        for position, floor in zip(undecided, floors, strict=True):
            if floor is None:
                left.append(position)
            else:
                thresholds[position] = floor
        undecided, precision = left, 2 * precision
    words = np.array(thresholds, dtype=np.uint64)
    words.flags.writeable = False
    return Digits(inverse_scale, count, words)


def geometrics(entropy: Entropy, plan: Digits, size: int) -> list[int]:
    """A few independent geometric integers, for the price of one call."""
    words = entropy.words((plan.count + 1) * size).reshape(plan.count + 1, size)
    ones = _compare(entropy, plan, words[:-1])
    drawn = zip(ones.T, words[-1], strict=True)
    return [_as_int(digits) + (plan.beyond(entropy, int(word)) << plan.count) for digits, word in drawn]


def geometric_many(entropy: Entropy, plan: Digits, size: int) -> Whole:
    """`size` independent geometric integers: int64 while the digits fit it, else Python integers.

    (An H above 0 that leaves int64, of probability below 2^-64, turns the array into Python integers too.)
    """
    chunk = max(1, _CHUNK_WORDS // (plan.count + 1))
    starts = range(0, max(size, 1), chunk)
    return np.concatenate([_geometric_chunk(entropy, plan, min(chunk, size - start)) for start in starts])


def truncated_geometric(entropy: Entropy, plan: Digits, bound: int) -> int:
    """A geometric integer given that it is below `bound`.

    Its digits below position w are those of a geometric given that it is below 2^w; with 2^(w-1) < bound <= 2^w they
    are drawn again until they stay below `bound`. Each attempt is accepted with probability (1-q^bound)/(1-q^(2^w)),
    above 1/2 because the lower half of 0..2^w-1 has at least half the mass; the number of attempts is independent of
    the value accepted.
    """
    width = (bound - 1).bit_length()
    while True:
        if width <= plan.count:
            value = _as_int(_compare(entropy, plan, entropy.words(width)[:, None])[:, 0])
        else:
            (value,) = geometrics(entropy, plan, 1)
        if value < bound:
            return value


def truncated_geometric_many(entropy: Entropy, plan: Digits, bounds: NDArray[np.int64]) -> NDArray[np.int64]:
    """`truncated_geometric` once for every bound."""
    return draw_below(bounds, lambda masks: _masked_chunks(entropy, plan, masks))


def _masked_chunks(entropy: Entropy, plan: Digits, masks: NDArray[np.int64]) -> NDArray[np.int64]:
    """Geometric integers cut to the digits of their mask; fewer words where no mask needs the high digits."""
    width = int(masks.max()).bit_length()
    if width > plan.count:
        # H can be any integer, but only its digits within the mask matter.
        return np.asarray(geometric_many(entropy, plan, len(masks)) & masks, dtype=np.int64)
    chunk = max(1, _CHUNK_WORDS // width)
    values = np.empty(len(masks), dtype=np.int64)
    for start in range(0, len(masks), chunk):
        size = min(chunk, len(masks) - start)
        words = entropy.words(width * size).reshape(width, size)
        values[start : start + size] = _as_integers(_compare(entropy, plan, words))
    return values & masks


def _geometric_chunk(entropy: Entropy, plan: Digits, size: int) -> Whole:
    words = entropy.words((plan.count + 1) * size).reshape(plan.count + 1, size)
    ones = _compare(entropy, plan, words[:-1])
    values: Whole
    if plan.count <= _INT64_DIGITS:
        values = _as_integers(ones)
    else:
        # Groups of digits, put together as Python integers.
        values = np.zeros(size, dtype=np.object_)
        for start in range(0, plan.count, _INT64_DIGITS):
            values += _as_integers(ones[start : start + _INT64_DIGITS]).astype(np.object_) << start
    zeros = np.flatnonzero(words[-1] == 0)
    if not len(zeros):
        return values
    # 2^count * H where H may be above 0; in Python integers, back to int64 if they all fit.
    exact = values.astype(np.object_)
    for index in zeros:
        exact[index] += plan.beyond(entropy, 0) << plan.count
    fits = plan.count <= _INT64_DIGITS and max(exact) < 1 << 63
    return exact.astype(np.int64) if fits else exact


def _compare(entropy: Entropy, plan: Digits, words: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """words[i, j] against digit i's chance: True where the j-th integer has digit i. Ties are broken exactly."""
    thresholds = plan.thresholds[: len(words), None]
    ones = words < thresholds
    ties = words == thresholds
    if ties.any():
        for position, index in np.argwhere(ties):
            ones[position, index] = break_tie(entropy, plan.chance(int(position)))
    return ones


def _as_int(ones: NDArray[np.bool_]) -> int:
    return int.from_bytes(np.packbits(ones, bitorder="little").tobytes(), "little")


def _as_integers(ones: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Digits by row, lowest first, into one integer per column; at most 63 rows."""
    octets = np.packbits(ones, axis=0, bitorder="little")
    values = np.zeros((ones.shape[1], 8), dtype=np.uint8)
    values[:, : len(octets)] = octets.T
    return values.view("<i8")[:, 0].astype(np.int64, copy=False)
