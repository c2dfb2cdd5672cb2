"""How a key is written: "eps_", 160 random bits in 32 letters and digits, 6 more that a mistyped key does not have."""

import base64
import hashlib
import re

from epsilons.noise import system

_PREFIX, _BYTES, _CHECKED = "eps_", 20, 6
_SHAPE = re.compile(rf"{_PREFIX}[a-z2-7]{{{_BYTES * 8 // 5 + _CHECKED}}}")


def make_key() -> str:
    """A new key, from the system's randomness."""
    secret = base64.b32encode(system().bytes(_BYTES)).decode().lower()
    return _PREFIX + secret + _checksum(secret)


def _checksum(secret: str) -> str:
    return base64.b32encode(hashlib.sha256(secret.encode()).digest()).decode().lower()[:_CHECKED]


def is_key(text: str) -> bool:
    """Whether it is written as a key: a mistyped one is known without a look at any store."""
    secret = text.removeprefix(_PREFIX)[:-_CHECKED]
    return _SHAPE.fullmatch(text) is not None and text.endswith(_checksum(secret))
