"""What passes between owners and aggregators: shares, the reports that carry them, ids, refusals.

A vector's shares are additive over the prime field: all of them together are the vector, fewer are noise. One
aggregator, named by the report's id, gets its share word by word; each of the others gets a seed of 32 bytes that a
stream cipher (AES-256 in counter mode) expands to its share. A seed's key stream belongs to one aggregator, round and
report of one collection: the cipher's key is a hash of all of these and the seed.

A request carries reports one after the other: id (16 bytes), round, level, the sealed share's length (4 bytes, little-
endian), the sealed share.
"""

import hashlib
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from epsilons.collection.proof import P, Words, in_range, sub
from epsilons.collection.sealing import ID_BYTES
from epsilons.errors import ProtocolError
from epsilons.noise import Entropy

SEED_BYTES = 32
_DOMAIN = b"epsilons share 1"
_HEAD = struct.Struct(f"<{ID_BYTES}sBBI")

#: In one request. What is refused is listed in the reply, so countless tiny reports would cost more than they weigh.
MOST_REPORTS = 1_000

STORED = "stored"
#: Why a report is refused; nothing of it is kept.
UNREADABLE = "unreadable"
REPLAYED = "replayed"
CLOSED = "closed"
UNKNOWN_OWNER = "not-in-round-one"
REASONS = {
    UNREADABLE: "It was sealed to another key or for another collection, or it is damaged.",
    REPLAYED: "Another report has this id.",
    CLOSED: "This round is not open.",
    UNKNOWN_OWNER: "Round one has no report with this id and level.",
}


# Why an aggregator refuses a request; it stores nothing then.


class UnknownCollectionError(ProtocolError):
    """The collection was not opened here, or it has no such round or level."""


class OutOfOrderError(ProtocolError):
    """The step comes too early, too late, or a second time with other contents."""


class MalformedError(ProtocolError):
    """The message is not what the protocol says."""


class UnavailableError(ProtocolError):
    """The store cannot be reached just now; the same request may be sent again."""


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
    while not in_range(words):
        kept = words[words < np.uint64(P)]
        words = np.concatenate([kept, stream.words(count - len(kept))])
    return words


def split_vector(vector: Words, purposes: Sequence[bytes], explicit: int, seeds: Sequence[bytes]) -> list[bytes]:
    """One vector's shares, a piece of bytes per aggregator; `seeds` are those of the others, in their order."""
    rest, pieces = vector, [*seeds[:explicit], b"", *seeds[explicit:]]
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


@dataclass(frozen=True)
class Report:
    """One owner's sealed share for one aggregator. Id, round and level are public."""

    id: bytes
    round_number: int
    level: int
    sealed: bytes


def write_reports(reports: Iterable[Report]) -> bytes:
    return b"".join(_HEAD.pack(one.id, one.round_number, one.level, len(one.sealed)) + one.sealed for one in reports)


def read_reports(body: bytes) -> list[Report] | None:
    """The inverse of `write_reports`; None if the body is anything else, or more reports than one request may carry."""
    reports: list[Report] = []
    start = 0
    while start < len(body):
        if start + _HEAD.size > len(body) or len(reports) == MOST_REPORTS:
            return None
        report, round_number, level, length = _HEAD.unpack_from(body, start)
        start += _HEAD.size
        if start + length > len(body):
            return None
        reports.append(Report(report, round_number, level, body[start : start + length]))
        start += length
    return reports


def read_ids(body: bytes) -> list[bytes]:
    """Ids that stand one after the other, distinct and in order."""
    ids = [body[start : start + ID_BYTES] for start in range(0, len(body), ID_BYTES)]
    if len(body) % ID_BYTES or not all(one < two for one, two in pairwise(ids)):
        raise MalformedError("This is not a list of ids.", rule=f"{ID_BYTES} bytes each, distinct and in order.")
    return ids
