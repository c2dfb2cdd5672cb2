"""How far apart two laws are, where a delta is allowed or an account counts rho.

P and Q are (epsilon, delta)-close if no event E has P[E] > e^epsilon Q[E] + delta. So every event gives a lower bound,

    epsilon >= log((P[E] - delta)/Q[E]),

and the largest of them over the events "the loss log P/Q is at least t" is the least epsilon: the hockey-stick
divergence says no more (Balle, Barthe, Gaboardi 2018, arXiv:1807.01647). What is returned here is certain: rounding and
what lies between the points of a grid make it smaller, never larger. rho-zCDP says D_a(P||Q) <= a rho at all a > 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

import numpy as np

from epsilons.noise.entropy import as_ball, working_precision
from epsilons.noise.pmf import gaussian_log_normaliser
from epsilons.statistics.base import Floats

#: Orders at which Renyi divergences are looked at; near 1 it is the relative entropy.
_ORDERS = (1.001, 1.01, 1.1, 1.5, 2.0, 3.0, 4.0, 8.0, 16.0, 32.0, 64.0, 256.0)
#: What the last bits of sums of positive numbers may add, far below anything that an audit speaks of.
_ROUNDING = 1e-9
#: Deviations up to which chances are summed one by one; wider noise is integrated.
_NARROW = 2_000
#: Events for every standard deviation of the loss, deviations that they reach, and events in all.
_STEPS, _FAR, _MOST = 50, 12, 4_000
Bracket = tuple[float, float]


def least_epsilon(p: Floats, q: Floats, delta: float) -> float:
    """Of listed laws, by natural logarithms of chances: the least epsilon of P and Q, in either direction."""
    return max(_one_way(p, q, delta), _one_way(q, p, delta))


def _one_way(p: Floats, q: Floats, delta: float) -> float:
    here = p > -np.inf
    with np.errstate(invalid="ignore"):
        order = np.argsort(-(p[here] - q[here]), kind="stable")
    return _best_event(np.cumsum(np.exp(p[here][order])), np.cumsum(np.exp(q[here][order])), delta)


def _best_event(likely: Floats, unlikely: Floats, delta: float) -> float:
    """The largest log((P[E] - delta)/Q[E]) over nested events; 0 where none is telling."""
    above = likely * (1 - _ROUNDING) - delta * (1 + _ROUNDING)
    if np.any((above > 0) & (unlikely == 0)):
        return math.inf
    with np.errstate(divide="ignore"):
        found = np.log(np.maximum(above, 1e-300)) - np.log(unlikely * (1 + _ROUNDING))
    return float(max(0.0, np.where(above > 0, found, -np.inf).max(initial=0.0)))


def least_rho(p: Floats, q: Floats) -> float:
    """Of listed laws: the least rho that allows for the Renyi divergences at some orders, in either direction."""
    if np.any((p > -np.inf) != (q > -np.inf)):
        return math.inf
    here = p > -np.inf
    one, other = p[here], q[here]
    return max(0.0, *(_renyi(*pair, order) / order for order in _ORDERS for pair in ((one, other), (other, one))))


def _renyi(p: Floats, q: Floats, order: float) -> float:
    inside = order * p + (1 - order) * q
    top = inside.max()
    total = float(np.exp(inside - top).sum()) * (1 - 1e-12)
    return (float(top) + math.log(total)) / (order - 1) - 1e-12 / (order - 1)


# Sums with Gaussian noise --------------------------------------------------------------------------------------------


def gaussian_rho(moved: Sequence[tuple[int, Fraction]]) -> Fraction:
    """Of sums that move so far under discrete Gaussian noises of such variances, exactly.

    D_a = a/2 sum_k move_k^2/variance_k: whole moves shift a discrete Gaussian along its own lattice (Canonne, Kamath,
    Steinke 2020, arXiv:2004.00010v6, Proposition 5).
    """
    return sum((move**2 / variance for move, variance in moved), Fraction(0)) / 2


@lru_cache(maxsize=4096)
def gaussian_epsilon(moved: tuple[tuple[int, Fraction], ...], delta: float) -> float:
    """A lower bound of the least epsilon between the two laws of such sums, close to it; the law is symmetric.

    The loss is a sum of one loss for each noise. Each is put into bins, rounded down; the sum of bins is an event of
    the whole, whose chances under P and Q are convolutions.
    """
    moved = tuple((abs(move), variance) for move, variance in moved if move)
    deviation = math.sqrt(2 * gaussian_rho(moved))
    if not moved:
        return 0.0
    width = max(deviation / _STEPS, (2 * _FAR + deviation) * deviation / _MOST)
    likely, unlikely = np.ones(1), np.ones(1)
    for move, variance in moved:
        one, other = _binned(move, variance, width)
        likely, unlikely = np.convolve(likely, one), np.convolve(unlikely, other)
    above, below = (np.cumsum(side[::-1]) for side in (likely, unlikely))
    return _best_event(above, np.maximum(below, 1e-300), delta)


def _binned(move: int, variance: Fraction, width: float) -> tuple[Floats, Floats]:
    """Chances of bins of the loss (2 k move - move^2)/(2 variance) at k: at least, around `move`; at most, around 0."""
    tail, ratio = tail_of(variance), float(move**2 / variance)
    reach = _FAR * math.sqrt(ratio) + ratio / 2
    bins = np.arange(math.floor(-reach / width), math.ceil(reach / width) + 1)
    edges = [math.floor(edge) for edge in (bins * width / ratio + 0.5) * float(move)]
    sides = []
    for centre, first, last in ((move, 0, 1), (0, 1, 0)):
        found = [(1.0, 1.0), *(tail(edge - centre) for edge in edges[1:]), (0.0, 0.0)]
        sides.append([max(0.0, here[first] - beyond[last]) for here, beyond in pairwise(found)])
    return np.array(sides[0]), np.array(sides[1])


@lru_cache(maxsize=64)
def tail_of(variance: Fraction) -> Callable[[int], Bracket]:
    """Between which numbers the chance lies that a discrete Gaussian noise is so large or larger."""
    narrow = variance <= _NARROW**2
    above = _summed_tail(variance) if narrow else _integrated_tail(variance)

    def tail(least: int) -> Bracket:
        if least > 0:
            return above(least)
        low, high = above(1 - least)
        return 1 - high, 1 - low

    return tail


def _summed_tail(variance: Fraction) -> Callable[[int], Bracket]:
    """Chances added up from the far end on, positive all of them: right to a part of 1e-10."""
    far = 40 * math.isqrt(math.ceil(variance)) + 40
    logs = -(np.arange(far + 1, dtype=np.float64) ** 2) / (2 * float(variance)) - gaussian_log_normaliser(variance)
    above = np.cumsum(np.exp(logs)[::-1])[::-1].tolist()

    def tail(least: int) -> Bracket:
        found = above[least] if least <= far else 0.0
        return found * (1 - 1e-10), found * (1 + 1e-10)

    return tail


def _integrated_tail(variance: Fraction) -> Callable[[int], Bracket]:
    """The integral and half of the first term, but for what a trapezoid errs by.

    The rule errs by at most an eighth of the variation of the slope. Beyond one deviation the density is convex: the
    rule is too large, by at most -f'(j)/8. Before it, the slope varies by 2/(sigma sqrt(e)) in all.
    """
    from flint import arb

    with working_precision(128):
        sigma, root = as_ball(variance).sqrt(), as_ball(2 * variance).sqrt()
        whole = (root * arb.pi().sqrt()).log()  # but for a part of exp(-2 pi^2 variance)

    def tail(least: int) -> Bracket:
        with working_precision(128):
            away = as_ball(Fraction(least))
            first = (-(away * away) / as_ball(2 * variance) - whole).exp()
            found = (away / root).erfc() / 2 + first / 2
            slack = first * away / as_ball(8 * variance)
            if least * least < variance:
                off = (-whole).exp() / (6 * sigma)
                return float((found - off).lower()), float((found + off).upper())
            return float(found.lower()), float((found + slack).upper())

    return tail
