"""Where this user's ledgers stand, and what was registered in them: no budget starts anew in silence.

A ledger that was deleted, moved or emptied would be made again at its address with nothing spent, and the same table in
a second ledger gives the same people a second budget. So every ledger whose head is kept in the usual place leaves its
id, its address and its datasets in one small file beside the heads, for its user alone. A ledger in the place of one
that is gone is made only after `forget`, which says what follows from it.
"""

import hashlib
import json
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from epsilons.errors import Argument, LedgerError
from epsilons.ledger.values import LedgerGoneError
from epsilons.storage import show_address, split_address, sqlite_path
from epsilons.storage.files import hold_lock, read_own, replace_private

#: Where a ledger stands in a database of PostgreSQL, unless its address names another schema.
SCHEMA = "epsilons"
#: So many bytes at either end of a source's file are hashed.
_END = 1 << 16
_ANEW = "A new ledger in its place would let everyone's budget start anew."


@dataclass(frozen=True)
class Places:
    """The file of known places; `folder` is where heads are kept."""

    folder: Path

    def refuse_if_gone(self, url: str) -> None:
        """Where no ledger stands now, none may have stood before."""
        if _find(self._read(), _spellings(url)) is not None:
            raise LedgerGoneError("The ledger that stood at this address is gone.", rule=_ANEW, suggest=_instead(url))

    def remember(self, url: str, ledger: str, note: bool = True) -> None:
        """This ledger stands at this address; refused if another one stood there."""
        names = _spellings(url)
        found = _find(self._read(), names)
        if found is not None and found != ledger:
            what = "Another ledger stands at this address than before."
            raise LedgerError(what, rule="Its accounts know nothing of what was spent.", suggest=_instead(url))
        if note and (found is None or not set(names) <= set(self._read()[ledger]["places"])):
            with self._changing() as known:
                _add(known, ledger, places=names)

    def forget(self, url: str) -> bool:
        """Whether a ledger was known there; it is no longer. One that is known nowhere else is forgotten altogether."""
        with self._changing() as known:
            names = _spellings(url)
            found = _find(known, names)
            if found is not None:
                known[found]["places"] = [one for one in known[found]["places"] if one not in names]
                if not known[found]["places"]:
                    del known[found]
        return found is not None

    def note_dataset(self, ledger: str, name: str, files: Mapping[str, str]) -> None:
        """A dataset was registered from these files: {path: what `mark_content` says}."""
        with self._changing() as known:
            _add(known, ledger, datasets=[name], sources=[*files, *files.values()])

    def refuse_second(self, ledger: str, name: str, files: Mapping[str, str]) -> None:
        """Refuse what another ledger knows, by its name, or by the paths or the content of its files."""
        for other in (about for id, about in self._read().items() if id != ledger):
            shared = [path for path, content in files.items() if {path, content} & set(other["sources"])]
            if shared or name in other["datasets"]:
                what = f"{shared[0] if shared else repr(name)} was registered in another ledger before"
                where = f": {other['places'][-1]}." if other["places"] else "."
                rule = "A second ledger gives the same people a second budget."
                hint = ("that ledger; if these are other people, ", Argument("confirm", True))
                raise LedgerError(what + where, rule=rule, suggest=hint)

    @property
    def _path(self) -> Path:
        return self.folder / "places"

    def _read(self) -> dict[str, Any]:
        try:
            content = json.loads(read_own(self._path))
            return {id: {key: list(map(_check_text, about[key])) for key in _NOTHING} for id, about in content.items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            what, rule = f"{self._path} cannot be read.", "It says where ledgers stood, so that none starts anew."
            raise LedgerError(what, rule=rule, suggest="put the file back, or move it away") from None

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Any]]:
        try:
            with hold_lock(self._path):
                known = self._read()
                yield known
                replace_private(self._path, json.dumps(known))
        except OSError:
            what, rule = f"{self._path} cannot be written.", "It says where ledgers stand, so that none starts anew."
            raise LedgerError(what, rule=rule, suggest=("a writable place for ", Argument("witness"))) from None


_NOTHING = ("places", "datasets", "sources")


def _check_text(given: Any) -> str:
    if not isinstance(given, str):
        raise TypeError("text")
    return given


def mark_content(path: str) -> str:
    """By what a file is known again under whatever name and date: its size, and a hash of its first and last bytes."""
    with open(path, "rb") as file:
        hashed, size = hashlib.sha256(file.read(_END)), os.fstat(file.fileno()).st_size
        file.seek(max(0, size - _END))
        hashed.update(file.read(_END))
    return f"{size} bytes, {hashed.hexdigest()[:32]}"


def _find(known: dict[str, Any], names: Sequence[str]) -> str | None:
    return next((id for id, about in known.items() if set(names) & set(about["places"])), None)


def _add(known: dict[str, Any], ledger: str, **more: Sequence[str]) -> None:
    about = known.setdefault(ledger, {name: [] for name in _NOTHING})
    for name, new in more.items():
        about[name] = list(dict.fromkeys([*about[name], *new]))


def _spellings(url: str) -> list[str]:
    """One address however it is written: a file by its absolute path, and where links lead; a schema of a database.

    Nothing is looked up: a server that has two names, or is reached through a pooler, stands at two addresses.
    """
    path = sqlite_path(url)
    if path is not None:
        return list(dict.fromkeys(f"sqlite:///{one}" for one in (os.path.abspath(path), os.path.realpath(path))))
    address = split_address(url)
    if address is None:
        return [url]
    named, options = address
    asked: dict[str, Any] = {"host": named["host"] or "localhost", "port": named["port"] or 5432, "schema": SCHEMA}
    host, port, schema = (options.get(name, usual) for name, usual in asked.items())
    hosts = ",".join(map(_one_spelling, host.split(",")))
    return [f"postgresql://{hosts}:{port}/{named['dbname']}?schema={schema}"]


def _one_spelling(host: str) -> str:
    """A server's name as the driver understands it: folders of sockets, and this machine, have several."""
    if host.startswith("/"):
        return os.path.realpath(host)
    plain = host.strip("[]").rstrip(".").lower() or "localhost"
    with suppress(ValueError):
        return "localhost" if ip_address(plain).is_loopback else str(ip_address(plain))
    return plain


def _instead(url: str) -> str:
    forget = shlex.join(["epsilons", "ledger", "forget", show_address(url), "--yes"])
    anew = f"`{forget}` if everyone's budget shall start anew"
    return f"the newest copy of that ledger, or another address; {anew}"
