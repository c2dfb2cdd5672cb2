"""Additive shares of owners' vectors over the prime field: all of them together are the vector, fewer are noise.

One aggregator, named by the report's id, gets its share word by word; each of the others gets a seed of 32 bytes that a
stream cipher (AES-256 in counter mode) expands to its share. A seed's key stream belongs to one aggregator, round and
report of one collection: the cipher's key is a hash of all of these and the seed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from epsilons.collection.field import P, Words, in_range, sub
from epsilons.noise import Entropy

SEED_BYTES = 32
_DOMAIN = b"epsilons share 1"


def explicit_place(report: bytes, aggregators: int) -> int:
    """The aggregator that gets its share word by word: spread over all, since that one carries the load."""
    return int.from_bytes(report[:4], "big") % aggregators


def uniform_words(entropy: Entropy, count: int) -> Words:
    """Exactly uniform on 0..p-1: words from p on are drawn again."""
    words = entropy.words(count).copy()
    while len(again := np.flatnonzero(words >= np.uint64(P))):
        words[again] = entropy.words(len(again))
    return words


def expand(seed: bytes, what_for: bytes, count: int) -> Words:
    """The share that a seed stands for: the words of its key stream that are below p."""
    # `Entropy` under a key is AES-256 in counter mode from zero; the hash is this seed's own key.
    stream = Entropy(hashlib.sha256(_DOMAIN + what_for + seed).digest())
    words = stream.words(count)
    if in_range(words):
        return words
    kept = words[words < np.uint64(P)]
    while len(kept) < count:
        more = stream.words(count - len(kept))
        kept = np.concatenate([kept, more[more < np.uint64(P)]])
    return kept


def split(vector: Words, purposes: Sequence[bytes], explicit: int, seeds: Sequence[bytes]) -> list[bytes]:
    """One vector's shares, a piece of bytes per aggregator; `seeds` are those of the others, in their order."""
    rest, given = vector, iter(seeds)
    pieces = [b"" if place == explicit else next(given) for place in range(len(purposes))]
    for place, seed in enumerate(pieces):
        if place != explicit:
            rest = sub(rest, expand(seed, purposes[place], len(vector)))
    pieces[explicit] = rest.astype("<u8").tobytes()
    return pieces


def read_share(piece: bytes, what_for: bytes, count: int) -> Words | None:
    """A share's words from what an aggregator was given; None if it is no share of so many words."""
    if len(piece) == SEED_BYTES:
        return expand(piece, what_for, count)
    if len(piece) != 8 * count:
        return None
    words = np.frombuffer(piece, dtype="<u8").astype(np.uint64, copy=False)
    return words if in_range(words) else None
