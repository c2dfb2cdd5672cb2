"""Sealing a share to one aggregator: HPKE (RFC 9180) with X25519, HKDF-SHA256 and AES-256-GCM.

The aggregator that a share is for, the collection, the round, the level and the report's id are part of what is sealed
(HPKE's info): a share moved to another report, round or collection cannot be opened.

An aggregator stores no open share either: it seals what it keeps by AES-256-GCM, for the same purpose, under a key that
follows from its opening key. A store without that key shows nothing.
"""

import hashlib
import os
from typing import Any, Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from epsilons.errors import ProtocolError
from epsilons.noise import system
from epsilons.storage.files import check_private, read_own, write_private

_SUITE = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_256_GCM)
KEY_BYTES = 32
#: What sealing adds to a share: the sender's public key and a tag.
SEALED_BYTES = 32 + 16
ID_BYTES = 16
_PURPOSE = b"epsilons report 1"
_AT_REST = b"epsilons share at rest 1"
_NONCE_BYTES = 12
_SECRET_FILE_BYTES = 1_000


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
    """The private half, which an aggregator keeps in a file that only it can read.

    `unused`: nobody has sealed anything to it, so that a store may begin with it. A store that began with an older key
    would take the same reports once more, and add fresh noise to them.
    """

    def __init__(self, key: X25519PrivateKey, *, unused: bool = False) -> None:
        self._key, self.unused = key, unused
        self._at_rest = AESGCM(self.derive(_AT_REST))

    @classmethod
    def fresh(cls) -> Self:
        return cls(X25519PrivateKey.from_private_bytes(system().bytes(KEY_BYTES)), unused=True)

    @classmethod
    def from_bytes(cls, raw: bytes) -> Self:
        return cls(X25519PrivateKey.from_private_bytes(raw))

    @property
    def public(self) -> SealingKey:
        return SealingKey(self._key.public_key())

    def derive(self, what_for: bytes) -> bytes:
        """Another secret, that follows from this one and serves for this alone."""
        return HKDF(hashes.SHA256(), KEY_BYTES, salt=None, info=what_for).derive(self._key.private_bytes_raw())

    def open(self, sealed: bytes, what_for: bytes) -> bytes | None:
        """The share; None if it was sealed to another key, for another purpose, or damaged."""
        try:
            return _SUITE.decrypt(sealed, self._key, info=what_for)
        except (InvalidTag, ValueError):
            return None

    def keep(self, share: bytes, what_for: bytes) -> bytes:
        """An opened share as the aggregator stores it."""
        nonce = system().bytes(_NONCE_BYTES)
        return nonce + self._at_rest.encrypt(nonce, share, what_for)

    def recall(self, kept: bytes, what_for: bytes) -> bytes | None:
        """The inverse of `keep`; None if it was kept for something else, or damaged."""
        try:
            return self._at_rest.decrypt(kept[:_NONCE_BYTES], kept[_NONCE_BYTES:], what_for)
        except (InvalidTag, ValueError):
            return None

    def save(self, path: str | os.PathLike[str]) -> None:
        """To a new file that only its owner reads."""
        _write_secret(path, self._key.private_bytes_raw())


def keep_secret(path: str | os.PathLike[str]) -> bytes:
    """The 32 secret bytes in a file that only its owner reads; made there if there is no such file."""
    if not os.path.lexists(path):
        _write_secret(path, system().bytes(KEY_BYTES))
    return read_secret(path)


def _write_secret(path: str | os.PathLike[str], secret: bytes) -> None:
    try:
        write_private(path, secret.hex() + "\n")
    except OSError as error:
        raise ProtocolError(f"A secret cannot be written: {error.strerror}.", suggest="another place") from None


def read_secret(path: str | os.PathLike[str]) -> bytes:
    """From a file that nobody else can read."""
    check_private(path, ProtocolError)
    try:
        raw = bytes.fromhex(read_own(path, _SECRET_FILE_BYTES).decode("ascii").strip())
    except OSError as error:
        what = f"A secret cannot be read: {error.strerror or error}."
        raise ProtocolError(what, suggest="another path") from None
    except ValueError:
        raw = b""
    if len(raw) != KEY_BYTES:
        raise ProtocolError("This file holds no secret.", rule="64 hexadecimal digits.", suggest="another file")
    return raw


def fingerprint(key: str) -> str:
    """A key in a form that two people can compare by voice."""
    digits = hashlib.sha256(key.encode()).hexdigest()[:16]
    return " ".join(digits[start : start + 4] for start in range(0, 16, 4))
