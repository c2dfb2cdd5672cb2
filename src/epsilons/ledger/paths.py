"""Paths that a ledger keeps: from its own folder where they lie below that, so that all of it may move or be copied.

Kept so are the folder of a snapshot, the files of a source, and a file of preferences. Outside of the ledger's tables
every path is absolute.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

_R = TypeVar("_R", bound=Any)
#: What a path begins with that is one from the ledger's folder.
_HERE = "./"


def keep(given: _R, home: str) -> _R:
    """What is to be registered, as a ledger that lies in the folder `home` keeps it; "" if it has none."""
    shorten = partial(_shorten, os.path.join(home, "") if home else None)
    return replace(given, about=_change(given.about, shorten), stamp=_change(given.stamp, shorten))


def find(kept: _R, home: str) -> _R:
    """A registration as it is kept, with paths from where the ledger lies now."""
    lengthen = partial(_lengthen, home)
    return replace(kept, about=_change(kept.about, lengthen), stamp=_change(kept.stamp, lengthen))


def _shorten(below: str | None, path: str) -> str:
    if "://" in path:  # a server
        return path
    real = os.path.realpath(path)
    return _HERE + real.removeprefix(below) if below and real.startswith(below) else path


def _lengthen(home: str, path: str) -> str:
    return os.path.join(home, path.removeprefix(_HERE)) if path.startswith(_HERE) else path


def _change(kept: Mapping[str, Any], change: Callable[[str], str]) -> dict[str, Any]:
    """The same with other paths, wherever there are any."""
    told = dict(kept)
    if "folder" in told:
        told["folder"] = change(told["folder"])
    if told.get("origin"):
        told["origin"] = list(map(change, told["origin"]))
    if told.get("source"):
        files = [[change(path), *facts] for path, *facts in told["source"]["files"]]
        told["source"] = {**told["source"], "files": files}
    if told.get("preferences", {}).get("file"):
        told["preferences"] = {**told["preferences"], "file": list(map(change, told["preferences"]["file"]))}
    return told
