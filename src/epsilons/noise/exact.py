"""Real numbers rounded exactly: interval arithmetic, made finer until the answer is certain.

The numbers here are e to a rational power and simple expressions of such. Arb (Johansson 2017, "Arb:
efficient arbitrary-precision midpoint-radius interval arithmetic") returns a ball that provably holds the
true value. A decision is taken only when every point of the ball gives the same one, so a result never
depends on the precision at which it was found; more precision only makes a decision possible.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from flint import arb

NANO: Final = 10**9
ALWAYS: Final = 1 << 64
"""The chance of a certain event: chances are integers out of 2^64."""

_GUARD_BITS = 32
_DOUBLINGS = 12

# flint keeps one precision for the whole process, shared by all threads, and its own `workprec` manager
# forgets the outer precision when one manager is entered twice. Someone else's change of the precision
# could not make a result wrong (see above) but could keep a loop from ending, so ours take turns.
_precision_lock = threading.RLock()


@contextmanager
def working_precision(bits: int) -> Iterator[None]:
    """Set flint's precision for the `with` block and put it back, whatever happens inside. Nests."""
    import flint

    with _precision_lock:
        outer = flint.ctx.prec
        flint.ctx.prec = bits
        try:
            yield
        finally:
            flint.ctx.prec = outer


def as_ball(value: Fraction) -> "arb":
    """The ball around a rational, at flint's current precision."""
    from flint import arb, fmpq

    return arb(fmpq(value.numerator, value.denominator))


def certain_floor(ball: "arb") -> int | None:
    """floor(x) if it is the same for every x >= 0 in the ball, else None."""
    whole = ball.floor().unique_fmpz()
    if whole is not None:
        return int(whole)
    # A ball around a tiny number may reach below 0, where the number itself cannot be.
    return 0 if ball < 1 else None


def floor_dyadic(value: "Callable[[], arb]", bits: int = 64) -> int:
    """floor(value * 2^bits) of a number value >= 0, exactly.

    `value()` is evaluated at flint's current precision, which doubles until the ball has one floor. That ends
    for every number that is no multiple of 2^-bits, and for such a multiple if its ball becomes a point.
    All of this room's numbers are transcendental: a sum of exponentials of distinct rationals with
    rational coefficients is never 0 (Lindemann-Weierstrass).
    """
    from flint import arb

    precision = bits + _GUARD_BITS
    for _ in range(_DOUBLINGS):
        with working_precision(precision):
            whole = certain_floor(value() * arb((1, bits)))
        if whole is not None:
            return whole
        precision *= 2
    raise ArithmeticError("a number could not be told from a multiple of 2^-bits; is it exactly one?")


def keep_chance(epsilon_nano: int, threshold_nano: int) -> int:
    """Chance, out of 2^64, that Sample keeps a person of epsilon e at threshold t.

    (exp(e) - 1) / (exp(t) - 1) for e < t, else 1 (Jorgensen et al. 2015, Definition 9), rounded down: a
    person is never kept more often than their epsilon allows. For e >= t the result is 2^64, which does not
    fit a word; `bernoulli` and `binomial` take it as certainty.
    """
    if epsilon_nano < 0 or threshold_nano <= 0:
        raise ValueError("an epsilon is not negative and a threshold is positive")
    if epsilon_nano >= threshold_nano:
        return ALWAYS
    if epsilon_nano == 0:
        return 0
    epsilon, threshold = Fraction(epsilon_nano, NANO), Fraction(threshold_nano, NANO)
    return floor_dyadic(lambda: as_ball(epsilon).expm1() / as_ball(threshold).expm1())
