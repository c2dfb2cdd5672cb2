"""One coin per person: a pseudorandom function of the person's digest, under a key that only this release knows.

A coin depends on nothing but the key and the person, so removing one person moves nobody else's coin, the order of rows
does not matter, and a retried task sees the same coins. AES-256 on the 16 bytes of a digest is the function: distinct
people have distinct blocks, and a fresh key makes the blocks' images as good as independent (they differ from truly
random ones only in never colliding, which n people can tell with a chance below n^2/2^129).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilons.noise.entropy import Entropy

#: A chance of 1.
ALWAYS = 1 << 64
_BLOCK = 16
_CHUNK = 1 << 18


def keep_people(
    entropy: Entropy, digests: NDArray[np.uint8], codes: NDArray[Any], chances: Sequence[int]
) -> NDArray[np.bool_]:
    """Which people stay: person i of level `codes[i]` does with chance `chances[level]` / 2^64; code -1 never does.

    A chance of 1 does not look at the coin: its limit, 2^64, would overflow to 0.
    """
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    # One block per person and no chaining: counter mode's block function, with the digest as the counter.
    cipher = Cipher(algorithms.AES(entropy.bytes(32)), modes.ECB()).encryptor()
    limit = np.array([*(min(chance, ALWAYS - 1) for chance in chances), 0], np.uint64)
    certain = np.array([*(chance >= ALWAYS for chance in chances), False])
    kept = np.empty(len(codes), bool)
    room = np.empty(_CHUNK * _BLOCK + _BLOCK, np.uint8)
    for start in range(0, len(codes), _CHUNK):
        code = codes[start : start + _CHUNK]
        block = np.ascontiguousarray(digests[start : start + _CHUNK]).reshape(-1)
        filled = cipher.update_into(block.data, room.data)
        coin = room[:filled].view("<u8").reshape(-1, 2)[:, 0]
        kept[start : start + _CHUNK] = (coin < limit[code]) | certain[code]
    return kept
