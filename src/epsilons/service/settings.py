"""A gateway as a file: where it listens, where it remembers, which datasets it serves.

    store = "sqlite:///gateway.store"
    datasets = ["people.toml"]
    host = "127.0.0.1"
    port = 8000
    workers = 2
    certificate = "server.pem"
    certificate_key = "server.key"
    address = "https://stats.example.org"

Paths are relative to the file. Plain HTTP is spoken on the machine itself only. The address is where others find it,
for the links that people are given and the code that pages offer; without one, that of the server itself.
"""

import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from epsilons.arguments.checks import check_whole
from epsilons.dataset.declared import resolve_address
from epsilons.errors import DataError
from epsilons.storage import is_loopback
from epsilons.storage.exchange import is_web_address

_KEYS = ("store", "datasets", "host", "port", "workers", "certificate", "certificate_key", "address")


@dataclass(frozen=True)
class Settings:
    """What stands in a gateway's file."""

    store: str
    datasets: tuple[str, ...]
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    certificate: str | None = None
    certificate_key: str | None = None
    address: str | None = None

    @property
    def public_address(self) -> str:
        """Where others find it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return self.address or f"{'https' if self.certificate else 'http'}://{host}:{self.port}"

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "Settings":
        """The settings of a file; nothing else is opened."""
        where = Path(path)
        try:
            given = tomllib.loads(where.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise DataError(f"There is no file {where}.", suggest="one with store and datasets") from None
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
            raise DataError(f"{where.name} is not TOML.", suggest='store = "sqlite:///gateway.store"') from None
        for name in sorted(set(given) - set(_KEYS)):
            raise DataError(f"Unknown key {name!r} in {where.name}.", suggest=", ".join(_KEYS))
        here = where.resolve().parent
        for name in ("host", "certificate", "certificate_key", "address"):
            if not isinstance(given.get(name, ""), str):
                raise DataError(f"{name!r} is not text.", suggest=f'{name} = "..."')
        https = {name: str(here / given[name]) for name in ("certificate", "certificate_key") if name in given}
        store = resolve_address(given.get("store"), here)
        if store is None:
            rule, hint = "It keeps hashes of keys, and replies.", 'store = "sqlite:///gateway.store"'
            raise DataError(f"{where.name} has no store.", rule=rule, suggest=hint)
        listed, host = _list_files(given.get("datasets"), here), given.get("host", "127.0.0.1")
        found = cls(store, listed, host, _port(given), _workers(given), **https, address=_address(given))
        if len(https) == 1:
            raise DataError("A certificate goes with its key.", suggest='certificate_key = "server.key"')
        if not https and not is_loopback(found.host):
            rule = "Off this machine keys and answers are sent over HTTPS."
            hint = "certificate and certificate_key; or 127.0.0.1 behind a proxy on this machine that speaks HTTPS"
            raise DataError(f"Plain HTTP is not spoken at {found.host}.", rule=rule, suggest=hint)
        return found


def _list_files(given: Any, here: Path) -> tuple[str, ...]:
    if not isinstance(given, list) or not given or not all(isinstance(one, str) for one in given):
        raise DataError("Datasets are listed by their files.", suggest='datasets = ["people.toml"]')
    return tuple(str(here / one) for one in given)


def _address(given: dict[str, Any]) -> str | None:
    """Without a slash at its end: paths are put behind it."""
    if "address" not in given:
        return None
    found: str = given["address"].rstrip("/")
    parts = urlsplit(found if is_web_address(found) else "")
    if parts.path or not (parts.scheme == "https" or is_loopback(parts.hostname or "")):
        rule = "Personal links are made of it, and open an account for whoever reads them."
        raise DataError("An address begins with https://.", rule=rule, suggest='address = "https://stats.example.org"')
    return found


def _port(given: dict[str, Any]) -> int:
    wrong = DataError("A port is a number from 0 to 65535.", rule="0 takes any free one.", suggest="port = 8000")
    return check_whole(given.get("port", 8000), least=0, most=65535, refusal=wrong)


def _workers(given: dict[str, Any]) -> int:
    rule = "Each is a process that opens every dataset."
    wrong = DataError("Workers are a number from 1 to 64.", rule=rule, suggest="workers = 2")
    return check_whole(given.get("workers", 1), least=1, most=64, refusal=wrong)
