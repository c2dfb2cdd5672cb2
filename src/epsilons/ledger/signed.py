"""A witness behind HTTP, and what both sides sign (Ed25519).

A ledger signs what it hands over with a key that follows from its salt, which its clients have and nobody else; the
first head of a ledger says by which key it is known. The witness signs every answer, with the sender's nonce in it: who
listens in on the way can neither make up a head nor show an old one again.
"""

import hashlib
import http.client
import json
import ssl
import time
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from epsilons.errors import EpsilonsError
from epsilons.ledger.heads import Line, Row
from epsilons.ledger.journal import to_json
from epsilons.ledger.kept import LEDGER, Kept
from epsilons.noise import system
from epsilons.storage import is_loopback
from epsilons.storage.exchange import Exchange, TooLongError

_LEDGER, _HEAD = b"epsilons ledger of a witness 1", b"epsilons head 1\n"
_NONCE_BYTES = 16
#: To connect and to answer; and how long an answer is waited for in all.
_SECONDS, _PATIENCE = 10.0, 30.0
_LARGEST_REPLY = 1 << 20


class SigningKey:
    """A private key, and what it signs."""

    def __init__(self, secret: bytes) -> None:
        self._key = Ed25519PrivateKey.from_private_bytes(secret)
        self.public = self._key.public_key().public_bytes_raw().hex()

    @classmethod
    def of_ledger(cls, salt: bytes) -> "SigningKey":
        return cls(hashlib.sha256(_LEDGER + salt).digest())

    def sign(self, document: Mapping[str, Any]) -> dict[str, str]:
        told = to_json(document)
        return {"told": told, "signature": self._key.sign(_HEAD + told.encode()).hex()}


def read_signed(content: Any, key: str) -> dict[str, Any] | None:
    """What was signed by a key, or None."""
    try:
        told, signature = content["told"], bytes.fromhex(content["signature"])
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(key)).verify(signature, _HEAD + told.encode())
        document = json.loads(told)
    except (KeyError, TypeError, ValueError, AttributeError, InvalidSignature, RecursionError):
        return None
    return document if isinstance(document, dict) else None


class SignedWitness:
    """The service at an address, as it signs for one ledger."""

    def __init__(self, address: str, key: str, ledger: str, salt: bytes, kept: Kept = LEDGER) -> None:
        self.address, self._key, self._ledger, self._kept = address, key, ledger, kept
        self._mine, self._http = SigningKey.of_ledger(salt), Requests(address, kept)

    def read(self, asked: tuple[int, str] | None = None) -> tuple[Row | None, Row | None]:
        told = self._ask("read", {"line": None if asked is None else list(asked)})
        return self._read_row(told["head"]), self._read_row(told["line"])

    def list_before(self, number: int) -> list[Row]:
        return [row for one in self._ask("list", {"before": number})["rows"] if (row := self._read_row(one))]

    def _read_row(self, given: Any) -> Row | None:
        match given:
            case None:
                return None
            case [int(number), int(seq), str(digest), int(most), int(loss)]:
                return Row(number, seq, digest, most, loss)
        raise unreadable(self._kept)

    def add(self, after: Line | None, lines: Sequence[Line], loss: bool = False) -> Line | None:
        told = self._ask("heads", {"after": after, "lines": list(lines), "loss": loss})
        return read_line(told["head"], self._kept)

    def close(self) -> None:
        self._http.close()

    def _ask(self, route: str, asked: Mapping[str, Any]) -> dict[str, Any]:
        nonce = system().bytes(_NONCE_BYTES).hex()
        signed = self._mine.sign({"ledger": self._ledger, "nonce": nonce, **asked})
        reply = self._http.ask("POST", f"/v1/ledgers/{self._ledger}/{route}", {**signed, "key": self._mine.public})
        told = read_signed(reply, self._key)
        if told is None or (told.get("ledger"), told.get("nonce")) != (self._ledger, nonce):
            name = self._kept.name
            raise self._kept.error(
                f"The answer of the witness at {self.address} is not signed by the key that the {name} names.",
                rule=f"Heads are believed of this {name}'s witness alone.",
                suggest=f"ask its operator; if its key is lost for good, {self._kept.alone}",
            )
        return told


def ask_key(address: str, kept: Kept = LEDGER) -> str:
    """The key that a witness signs with, as it says itself."""
    requests = Requests(address, kept)
    try:
        key = requests.ask("GET", "/v1/key").get("key")
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(str(key)))
    except ValueError:
        raise kept.wrong(f"There is no witness at {address}.", suggest="the address of `epsilons witness`") from None
    finally:
        requests.close()
    return str(key)


class Requests:
    """JSON to and from a witness. What it got no answer to is sent again: nothing here does harm twice."""

    def __init__(self, address: str, kept: Kept = LEDGER) -> None:
        self._address, self._kept, parts = address, kept, urlsplit(address)
        if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
            rule = "Off this machine a witness is spoken to over HTTPS."
            raise kept.wrong(f"{address} is plain HTTP.", rule=rule, suggest="https://...")
        self._exchange = Exchange(address)

    def close(self) -> None:
        self._exchange.close()

    def ask(self, method: str, path: str, document: Mapping[str, Any] | None = None) -> dict[str, Any]:
        body = None if document is None else json.dumps(document).encode()
        give_up, wait = time.monotonic() + _PATIENCE, 0.05
        while True:
            try:
                status, content = self._exchange.ask(
                    method, path, body, most=_LARGEST_REPLY, connect=_SECONDS, every=_SECONDS, until=give_up
                )
            except TooLongError:
                raise unreadable(self._kept) from None
            except ssl.SSLCertVerificationError as error:
                what = f"The certificate of the witness at {self._address} does not hold: {error.verify_message}."
                raise self._kept.unreached(what) from None
            except (OSError, http.client.HTTPException):
                status, content = 503, b""
            if status < 500:
                break
            if time.monotonic() + wait > give_up:
                what = f"No answer from the witness at {self._address} within {_PATIENCE:g} s."
                raise self._kept.unreached(what)
            time.sleep(wait)
            wait = min(2 * wait, 1.0)
        try:
            found = json.loads(content)
        except (ValueError, RecursionError):
            found = None
        if status != 200 or not isinstance(found, dict):
            raise self._kept.wrong(f"The witness at {self._address} refused with status {status}.")
        return found


def read_line(given: Any, kept: Kept = LEDGER) -> Line | None:
    """A line as it is written in JSON; whoever sent it need not be honest."""
    if given is None:
        return None
    match given:
        case [int(seq), str(digest), int(most)]:
            return Line(seq, digest, most)
    raise unreadable(kept)


def unreadable(kept: Kept) -> EpsilonsError:
    return kept.error("The answer of a witness cannot be read.", suggest="ask its operator")
