"""Heavy-tailed noise on a grid: scale * Z, where Z has a density proportional to 1/(1 + |z|^gamma).

Nissim, Raskhodnikova and Smith 2007 ("Smooth sensitivity and sampling in private data analysis") need noise whose
density changes little when it is shifted and also when it is stretched; a Laplace density, stretched, changes without
bound in its tails, this one does not. |Z|^g / (1 + |Z|^g) has the Beta(1/g, 1 - 1/g) distribution, so

    P(|Z| > z) = I_w(1 - 1/g, 1/g),  w = 1/(1 + z^g),

the regularised incomplete beta function, which Arb encloses.

Why a draw is exact. Rounded to the nearest grid point, scale*Z lies h or more points away from its centre iff |Z| >
(h - 1/2)/scale. Let T_h be the probability of that, V uniform on [0, 1), and the side fair: the distance is the number
of h >= 1 with V < T_h, found by bisection, and beyond the end of the grid it is the end. Of V we know b bits, an
integer R with R <= V*2^b < R + 1, and of T_h integers low <= T_h*2^b < high + 1. So

    R < low   proves  V < T_h,
    R > high  proves  V > T_h.

Otherwise the same V gets further bits and T_h finer integers; no bit of V is ever drawn again.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from epsilons.noise.entropy import Entropy, as_ball, working_precision

if TYPE_CHECKING:
    from flint import arb

_WORD = 64
# One bit of a word is the side, the others begin V.
_FIRST_BITS = _WORD - 1
_LAST = (1 << _FIRST_BITS) - 1
# Arb's incomplete beta function loses some 50 bits where z is about 1.
_GUARD_BITS = 96
# At 1 nano-epsilon cosh(epsilon) - 1 has 60 leading zeros.
_SHIFT_BITS = 320
#: Of larger epsilons gamma = 2 uses no more: noise is nothing by then, and their exponentials would fill memories.
_ENOUGH = Fraction(32)


def largest_shift(gamma: Fraction, epsilon: Fraction, stretch: Fraction) -> Fraction:
    """No more than the largest shift that, with any stretch up to e^stretch, costs epsilon; in units of the narrower.

    Along the way from Z to d + e^b Z on which shift and scale grow together, the log-density at z changes at a rate of
    a G(z) + b (z G(z) - 1), a = d b/(e^b - 1) and G(z) = g z^(g-1)/(1 + z^g). The largest a for which no z makes that
    more than epsilon has a^g (g-1)^(g-1) = (epsilon + b) (epsilon - (g-1) b)^(g-1), and d is its least over b = 0 and
    b = stretch. For gamma = 2 the loss itself is known: cosh(loss) = (1 + k^2 + d^2)/(2k) with k = e^b. Proofs:
    docs/theory.md, "smooth".

    >>> round(float(largest_shift(Fraction(2), Fraction(1), Fraction(1, 2))), 6)  # 2 sinh(1/2)
    1.042191
    >>> round(float(largest_shift(Fraction(3), Fraction(1), Fraction(3, 10))), 4)
    0.4353
    """
    if gamma < 2:
        raise ValueError("gamma is 2 or more")
    if (gamma - 1) * stretch >= epsilon:
        return Fraction(0)
    with working_precision(_SHIFT_BITS):
        e, b, g = as_ball(epsilon), as_ball(stretch), as_ball(gamma)
        if gamma == 2:
            cosh = as_ball(min(epsilon, _ENOUGH)).cosh()
            shifts = [(2 * k * cosh - k * k - 1).sqrt() for k in (as_ball(Fraction(1)), b.exp())]
        else:
            steepest = (g - 1) ** ((g - 1) / g)
            along = ((e + b) * (e - (g - 1) * b) ** (g - 1)) ** (1 / g) / steepest
            shifts = [e / steepest, along * b.expm1() / b]
        return min(_round_down(shift) for shift in shifts)


def _round_down(ball: arb) -> Fraction:
    """A fraction of at most 64 binary digits that the ball lies above; 0 for one that may lie below 0."""
    mantissa, exponent = ball.lower().man_exp()
    digits, power = int(mantissa), int(exponent)
    extra = max(digits.bit_length() - 64, 0)
    return max(Fraction(digits >> extra) * Fraction(2) ** (power + extra), Fraction(0))


def tail(z: Fraction, gamma: Fraction) -> arb:
    """P(|Z| > z) for z > 0, at flint's current precision.

    Each branch gives Arb the smaller of the two ends of the beta distribution, where it is fast and sharp.
    """
    inverse = as_ball(Fraction(gamma.denominator, gamma.numerator))
    power = as_ball(z) ** as_ball(gamma)
    odds = (1 + power) ** -1
    if z >= 1:
        return odds.beta_lower(1 - inverse, inverse, True)
    return 1 - (power * odds).beta_lower(inverse, 1 - inverse, True)


def edge(distance: int, scale: Fraction) -> Fraction:
    """The least |Z| that takes scale*Z, rounded to the nearest whole number, `distance` >= 1 or more away from 0."""
    return Fraction((2 * distance - 1) * scale.denominator, 2 * scale.numerator)


@dataclass(frozen=True)
class _Tails:
    """T_h as integers, for one scale and gamma."""

    scale: Fraction
    gamma: Fraction

    def bracket(self, distance: int, bits: int) -> tuple[int, int]:
        """(low, high) with low <= T_h * 2^bits < high + 1."""
        from flint import arb

        with working_precision(bits + _GUARD_BITS):
            ball = tail(edge(distance, self.scale), self.gamma) * arb((1, bits))
            low, high = ball.lower().floor().unique_fmpz(), ball.upper().floor().unique_fmpz()
        # A ball that is not finite, or a bound that reaches outside [0, 1], says no more than 0 <= T_h <= 1.
        return max(int(low), 0) if low is not None else 0, int(high) if high is not None else 1 << bits

    def find(self, entropy: Entropy, known: int, most: int) -> int:
        """How many h from 1 to `most` have V < T_h; `known` are the first bits of V."""
        bits, least = _FIRST_BITS, 0
        while least < most:
            middle = (least + most + 1) // 2
            low, high = self.bracket(middle, bits)
            if known < low:
                least = middle
            elif known > high:
                most = middle - 1
            else:
                known = known << bits | entropy.bits(bits)
                bits *= 2
        return least

    def find_many(self, entropy: Entropy, known: NDArray[np.int64], most: int) -> NDArray[np.int64]:
        """`find` for many V at once: sorted, so that every T_h looked at splits a whole stretch of them."""
        order = np.argsort(known, kind="stable")
        values, found = known[order], np.empty(len(known), dtype=np.int64)
        stretches = [(0, len(values), 0, most)]
        while stretches:
            start, stop, least, most = stretches.pop()
            if start == stop or least == most:
                found[start:stop] = least
                continue
            middle = (least + most + 1) // 2
            low, high = self.bracket(middle, _FIRST_BITS)
            inside = values[start:stop]
            far = start + int(np.searchsorted(inside, min(low, _LAST), side="left"))
            near = start + int(np.searchsorted(inside, min(high, _LAST), side="right"))
            for index in range(far, near):
                found[index] = self.find(entropy, int(values[index]), most)
            stretches += [(start, far, middle, most), (near, stop, least, middle - 1)]
        distances = np.empty_like(found)
        distances[order] = found
        return distances


def draw_on_grid(entropy: Entropy, centre: int, scale: Fraction, gamma: Fraction, points: int) -> int:
    """centre + scale*Z, rounded to the nearest of the grid points 0..points-1; beyond an end it is the end."""
    _check(gamma, centre, scale, points)
    if scale == 0:
        return centre
    word = entropy.bits(_WORD)
    right = word >> _FIRST_BITS
    distance = _Tails(scale, gamma).find(entropy, word & _LAST, points - 1 - centre if right else centre)
    return centre + distance if right else centre - distance


def draw_many_on_grid(
    entropy: Entropy, centre: int, scale: Fraction, gamma: Fraction, points: int, size: int
) -> NDArray[np.int64]:
    """`size` independent draws of `draw_on_grid`, just as exact: for simulations and audits."""
    _check(gamma, centre, scale, points)
    cells = np.full(size, centre, dtype=np.int64)
    if scale == 0:
        return cells
    words, tails = entropy.words(size), _Tails(scale, gamma)
    known, right = (words & np.uint64(_LAST)).astype(np.int64), words > np.uint64(_LAST)
    cells[right] += tails.find_many(entropy, known[right], points - 1 - centre)
    cells[~right] -= tails.find_many(entropy, known[~right], centre)
    return cells


def _check(gamma: Fraction, centre: int = 0, scale: Fraction = Fraction(1), points: int = 1) -> None:
    if gamma <= 1 or scale < 0 or not 0 <= centre < points:
        raise ValueError("gamma is larger than 1, a scale is not negative, and the centre is one of the points")
