"""Made-up people and questions for the tests of the ledger."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from fractions import Fraction

from epsilons.guarantee import NANO

#: Asks a question to the end and gives the number of the release.
Ask = Callable[..., int]


def person(name: str) -> bytes:
    return hashlib.sha256(name.encode()).digest()[:16]


def key(name: str) -> bytes:
    return hashlib.sha256(name.encode()).digest()


def nano(epsilon: str) -> int:
    return int(Fraction(epsilon) * NANO)
