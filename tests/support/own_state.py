"""Tests have a state folder of their own: the heads of ledgers that whoever runs them keeps are never touched.

The variable that names the folder is set before anything else (`tests/conftest.py`). Here it is noticed where a test
goes round it: opens the real folder in this process, or starts another one that would.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

_HOME = os.path.expanduser("~")
#: Where the library keeps heads unless it is told otherwise, on any system.
REAL = tuple(
    os.path.join(_HOME, *parts, "epsilons") for parts in ((".local", "state"), ("Library", "Application Support"))
)
#: What was noticed; whoever reads it empties it.
noticed: list[str] = []


def watch() -> None:
    """From here on, and in all that is forked from here."""
    sys.addaudithook(_look)


def _look(event: str, arguments: tuple[Any, ...]) -> None:
    if event in ("open", "os.mkdir"):
        path = arguments[0]
        if not isinstance(path, int) and os.fsdecode(path).startswith(REAL):
            _refuse(f"{event} of {os.fsdecode(path)!r}")
    elif event == "subprocess.Popen" and _would_use_the_real_one(os.environ if arguments[3] is None else arguments[3]):
        _refuse(f"{arguments[1]} is started without XDG_STATE_HOME")


def _would_use_the_real_one(environment: Mapping[Any, Any]) -> bool:
    plain = {os.fsdecode(name): os.fsdecode(value) for name, value in environment.items()}
    return not os.path.isabs(plain.get("XDG_STATE_HOME", "")) and plain.get("HOME", _HOME) == _HOME


def _refuse(what: str) -> None:
    noticed.append(what)
    raise AssertionError(f"A test would touch its user's own state: {what}.")
