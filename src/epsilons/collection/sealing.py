"""Sealing a share to one aggregator: HPKE (RFC 9180) with X25519, HKDF-SHA256 and AES-256-GCM.

The aggregator that a share is for, the collection, the round, the level and the report's id are part of what is sealed
(HPKE's info): a share moved to another report, round or collection cannot be opened.
"""

import hashlib
import os
from pathlib import Path
from typing import Any, Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

from epsilons.errors import ProtocolError
from epsilons.noise import system
from epsilons.storage.files import write_private

_SUITE = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_256_GCM)
KEY_BYTES = 32
#: What sealing adds to a share: the sender's public key and a tag.
SEALED_BYTES = 32 + 16
ID_BYTES = 16
_PURPOSE = b"epsilons report 1"


def purpose(collection: bytes, place: int, round_number: int, level: int, report: bytes) -> bytes:
    """What a share is for, so that it serves for nothing else."""
    return b"".join((_PURPOSE, collection, bytes((place, round_number, level)), report))


class SealingKey:
    """The public half, which owners seal to."""

    def __init__(self, key: X25519PublicKey) -> None:
        self._key = key

    @classmethod
    def from_text(cls, text: Any) -> Self:
        try:
            return cls(X25519PublicKey.from_public_bytes(bytes.fromhex(text)))
        except (TypeError, ValueError):
            raise ProtocolError("This is not an aggregator's key.", rule="64 hexadecimal digits.") from None

    def seal(self, share: bytes, what_for: bytes) -> bytes:
        """So that only the owner of the other half reads it, and only for this."""
        return _SUITE.encrypt(share, self._key, info=what_for)

    def __str__(self) -> str:
        return self._key.public_bytes_raw().hex()


class OpeningKey:
    """The private half, which an aggregator keeps in a file that only it can read."""

    def __init__(self, key: X25519PrivateKey) -> None:
        self._key = key

    @classmethod
    def fresh(cls) -> Self:
        return cls.from_bytes(system().bytes(KEY_BYTES))

    @classmethod
    def from_bytes(cls, raw: bytes) -> Self:
        return cls(X25519PrivateKey.from_private_bytes(raw))

    @property
    def public(self) -> SealingKey:
        return SealingKey(self._key.public_key())

    def open(self, sealed: bytes, what_for: bytes) -> bytes | None:
        """The share; None if it was sealed to another key, for another purpose, or damaged."""
        try:
            return _SUITE.decrypt(sealed, self._key, info=what_for)
        except (InvalidTag, ValueError):
            return None


def keep_secret(path: str | os.PathLike[str]) -> bytes:
    """The 32 secret bytes in a file that only its owner reads; made there if there is no such file."""
    try:
        write_private(path, system().bytes(KEY_BYTES).hex() + "\n")
    except FileExistsError:
        pass
    except OSError as error:
        raise ProtocolError(f"A secret cannot be written: {error.strerror}.", suggest="another place") from None
    return read_secret(path)


def read_secret(path: str | os.PathLike[str]) -> bytes:
    try:
        raw = bytes.fromhex(Path(path).read_text(encoding="ascii").strip())
    except OSError as error:
        raise ProtocolError(f"A secret cannot be read: {error.strerror}.", suggest="another path") from None
    except ValueError:
        raw = b""
    if len(raw) != KEY_BYTES:
        raise ProtocolError("This file holds no secret.", rule="64 hexadecimal digits.", suggest="another file")
    return raw


def fingerprint(key: str) -> str:
    """A key in a form that two people can compare by voice."""
    digits = hashlib.sha256(key.encode()).hexdigest()[:16]
    return " ".join(digits[start : start + 4] for start in range(0, 16, 4))
