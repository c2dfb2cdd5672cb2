"""Where random bits come from: AES-256 in counter mode under a key that only this release knows.

Also the plainest draw from them: integers below a bound, uniform by rejection.
"""

import builtins
import hashlib
import os
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers import CipherContext

_KEY_BYTES = 32


class Entropy:
    """A stream of random bits, never handing out the same bit twice.

    Without a key it is keyed by the operating system and `private`; with a key, which whoever chose it knows,
    it is not. The counter starts at zero under every key, which is sound because a fresh key is used once.

    A process forked while a private stream is open would repeat its parent's bits, so the child takes a
    new key from the operating system before its first draw. One stream belongs to one thread.
    """

    def __init__(self, key: builtins.bytes | None = None) -> None:
        self.private = key is None
        self._open(os.urandom(_KEY_BYTES) if key is None else key)

    def _open(self, key: builtins.bytes) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        if len(key) != _KEY_BYTES:
            raise ValueError(f"an entropy key has {_KEY_BYTES} bytes")
        self._pid = os.getpid()
        self._stream: CipherContext = Cipher(algorithms.AES(key), modes.CTR(builtins.bytes(16))).encryptor()

    def bytes(self, n: int) -> builtins.bytes:
        """`n` random bytes. `words` and `bits` draw through here."""
        if self.private and self._pid != os.getpid():
            self._open(os.urandom(_KEY_BYTES))
        return self._stream.update(builtins.bytes(n))

    def words(self, n: int) -> NDArray[np.uint64]:
        """`n` uniform 64-bit integers; read-only."""
        return np.frombuffer(self.bytes(8 * n), dtype="<u8").astype(np.uint64, copy=False)

    def bits(self, n: int) -> int:
        """A uniform integer of `n` bits, 0 <= value < 2^n."""
        return int.from_bytes(self.bytes((n + 7) // 8), "little") >> (-n % 8)


def system() -> Entropy:
    """Private entropy under a fresh key from the operating system. One per release; nobody keeps it."""
    return Entropy()


def from_seed(seed: int) -> Entropy:
    """Entropy that repeats itself. Reachable for users only as `epsilons.testing.seeded`."""
    return Entropy(hashlib.sha256(b"epsilons seeded entropy %d" % seed).digest())


def uniform(entropy: Entropy, bound: int) -> int:
    """Exactly uniform on 0..bound-1: draw just enough bits to reach bound - 1, again if they reach further.

    Every value is equally likely in each attempt, so also in the accepted one; an attempt is accepted with
    probability above 1/2, independently of the value accepted.
    """
    width = (bound - 1).bit_length()
    while True:
        value = entropy.bits(width)
        if value < bound:
            return value


def uniform_many(entropy: Entropy, bounds: NDArray[np.int64]) -> NDArray[np.int64]:
    """`uniform` once for every bound."""
    masks = low_masks(bounds)
    values = np.zeros(len(bounds), dtype=np.int64)
    # A bound of 1 leaves nothing to draw.
    pending = np.flatnonzero(bounds > 1)
    while len(pending):
        values[pending] = entropy.words(len(pending)).view(np.int64) & masks[pending]
        pending = pending[values[pending] >= bounds[pending]]
    return values


def low_masks(bounds: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each bound the mask of the bits that reach bound - 1, found by smearing its top bit downwards."""
    masks = bounds - 1
    for shift in (1, 2, 4, 8, 16, 32):
        masks = masks | (masks >> shift)
    return masks
