"""The ground of every draw: where random bits come from, and the exact chances that they are compared with.

Bits come from AES-256 in counter mode under a key that only this release knows; the plainest draw from them are
integers below a bound, uniform by rejection.

Chances are real numbers rounded exactly: e to a rational power and simple expressions of such. Arb (Johansson 2017,
"Arb: efficient arbitrary-precision midpoint-radius interval arithmetic") returns a ball that provably holds the true
value. A decision is taken only when every point of the ball gives the same one, so a result never depends on the
precision at which it was found; more precision only makes a decision possible.
"""

from __future__ import annotations

import builtins
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers import CipherContext
    from flint import arb

#: The chance of a certain event: chances are integers out of 2^64.
ALWAYS: Final = 1 << 64

_GUARD_BITS = 32
_DOUBLINGS = 12

# flint keeps one precision for the whole process, shared by all threads, and its own `workprec` manager
# forgets the outer precision when one manager is entered twice. Someone else's change of the precision
# could not make a result wrong (see above) but could keep a loop from ending, so ours take turns.
_precision_lock = threading.RLock()

_KEY_BYTES = 32


class Entropy:
    """A stream of random bits, never handing out the same bit twice.

    Without a key it is keyed by the operating system and `private`; with a key, which its owner knows, it is not. The
    counter starts at zero under every key, which is sound because a fresh key is used once.

    A process forked while a private stream is open would repeat its parent's bits, so the child takes a new key from
    the operating system before its first draw. One stream belongs to one thread.
    """

    def __init__(self, key: builtins.bytes | None = None) -> None:
        self._keyed = key is not None
        self._open(os.urandom(_KEY_BYTES) if key is None else key)

    @property
    def private(self) -> bool:
        """Whether nobody knows the key; `is_private` is what counts."""
        return not self._keyed

    def _open(self, key: builtins.bytes) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        if len(key) != _KEY_BYTES:
            raise ValueError(f"an entropy key has {_KEY_BYTES} bytes")
        self._pid = os.getpid()
        self._stream: CipherContext = Cipher(algorithms.AES(key), modes.CTR(builtins.bytes(16))).encryptor()

    def bytes(self, n: int) -> builtins.bytes:
        """`n` random bytes. `words` and `bits` draw through here."""
        if not self._keyed and self._pid != os.getpid():
            self._open(os.urandom(_KEY_BYTES))
        return self._stream.update(builtins.bytes(n))

    def words(self, n: int) -> NDArray[np.uint64]:
        """`n` uniform 64-bit integers; read-only."""
        return np.frombuffer(self.bytes(8 * n), dtype="<u8").astype(np.uint64, copy=False)

    def bits(self, n: int) -> int:
        """A uniform integer of `n` bits, 0 <= value < 2^n."""
        return int.from_bytes(self.bytes((n + 7) // 8), "little") >> (-n % 8)


def system() -> Entropy:
    """Private entropy under a fresh key from the operating system: one per release, kept nowhere."""
    return Entropy()


def is_private(source: object) -> bool:
    """Whether a source is one of ours, under a key that nobody knows; its own word does not count."""
    return type(source) is Entropy and source.private


def uniform(entropy: Entropy, bound: int) -> int:
    """Exactly uniform on 0..bound-1: draw just enough bits to reach bound - 1, again if they reach further.

    Every value is equally likely in each attempt, so also in the accepted one; an attempt is accepted with probability
    above 1/2, independently of the value accepted.
    """
    while (value := entropy.bits((bound - 1).bit_length())) >= bound:
        pass
    return value


def uniform_many(entropy: Entropy, bounds: NDArray[np.int64]) -> NDArray[np.int64]:
    """`uniform` once for every bound."""
    return draw_below(bounds, lambda masks: entropy.words(len(masks)).view(np.int64) & masks)


def draw_below(bounds: NDArray[np.int64], draw: Callable[[NDArray[np.int64]], NDArray[np.int64]]) -> NDArray[np.int64]:
    """One draw within the bits of each bound's mask, again for those that reach the bound or beyond."""
    masks = low_masks(bounds)
    values = np.zeros(len(bounds), dtype=np.int64)
    # A bound of 1 leaves nothing to draw.
    pending = np.flatnonzero(bounds > 1)
    while len(pending):
        values[pending] = draw(masks[pending])
        pending = pending[values[pending] >= bounds[pending]]
    return values


def low_masks(bounds: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each bound the mask of the bits that reach bound - 1, found by smearing its top bit downwards."""
    masks = bounds - 1
    for shift in (1, 2, 4, 8, 16, 32):
        masks = masks | (masks >> shift)
    return masks


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


def as_ball(value: Fraction) -> arb:
    """The ball around a rational, at flint's current precision."""
    from flint import arb, fmpq

    return arb(fmpq(value.numerator, value.denominator))


def certain_floor(ball: arb) -> int | None:
    """floor(x) if it is the same for every x >= 0 in the ball, else None."""
    whole = ball.floor().unique_fmpz()
    if whole is not None:
        return int(whole)
    # A ball around a tiny number may reach below 0, where the number itself cannot be.
    return 0 if ball < 1 else None


def floor_dyadic(value: Callable[[], arb], bits: int = 64) -> int:
    """floor(value * 2^bits) of a number value >= 0, exactly.

    `value()` is evaluated at flint's current precision, which doubles until the ball has one floor. That ends for every
    number that is no multiple of 2^-bits, and for such a multiple if its ball becomes a point. All numbers of this
    package are transcendental: a sum of exponentials of distinct rationals with rational coefficients is never 0
    (Lindemann-Weierstrass).
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
