"""Reports on their way: framing, and what an aggregator says of each.

A request carries reports one after the other: id (16 bytes), round, level, the sealed share's length (4 bytes, little-
endian), the sealed share.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from epsilons.collection.sealing import ID_BYTES

_HEAD = struct.Struct(f"<{ID_BYTES}sBBI")
HEAD_BYTES = _HEAD.size

#: In one request. What is refused is listed in the reply, so countless tiny reports would cost more than they weigh.
MOST_REPORTS = 10_000

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


@dataclass(frozen=True)
class Report:
    """One owner's sealed share for one aggregator. Id, round and level are public."""

    id: bytes
    round_number: int
    level: int
    sealed: bytes


def write_reports(reports: Iterable[Report]) -> bytes:
    """Many reports as one body."""
    parts = []
    for report in reports:
        parts += [_HEAD.pack(report.id, report.round_number, report.level, len(report.sealed)), report.sealed]
    return b"".join(parts)


def read_reports(body: bytes) -> list[Report] | None:
    """The inverse of `write_reports`; None if the body is anything else, or more reports than one request may carry."""
    reports: list[Report] = []
    start = 0
    while start < len(body):
        if start + HEAD_BYTES > len(body) or len(reports) == MOST_REPORTS:
            return None
        report, round_number, level, length = _HEAD.unpack_from(body, start)
        start += HEAD_BYTES
        if start + length > len(body):
            return None
        reports.append(Report(report, round_number, level, body[start : start + length]))
        start += length
    return reports


def join_ids(ids: Sequence[bytes]) -> bytes:
    """Ids one after the other."""
    return b"".join(ids)


def split_ids(body: bytes) -> list[bytes] | None:
    """The inverse of `join_ids`; None unless they are distinct and in order."""
    if len(body) % ID_BYTES:
        return None
    ids = [body[start : start + ID_BYTES] for start in range(0, len(body), ID_BYTES)]
    return ids if all(one < two for one, two in pairwise(ids)) else None
