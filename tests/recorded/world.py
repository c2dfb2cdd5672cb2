"""Where recorded cases happen: a directory of their own, fixed randomness where none can be given, shared tables.

A ledger draws a salt from the operating system when it is made. People's digests hang on it, and so do the coins of a
sample of a table. While a table is opened, the operating system's 32 bytes are therefore the same ones every time.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

from epsilons.dataset.attempt import Attempt

_system = os.urandom


def _fixed(size: int) -> bytes:
    """The same key every time; other sizes (names of ledgers and files) stay as they are."""
    return hashlib.sha256(b"recorded").digest() if size == 32 else _system(size)


def fixed_randomness() -> Any:
    return patch("os.urandom", _fixed)


class World:
    """A directory, and the tables that were opened in it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        #: What was left in a table's ledger, and asked of it, after the last case: nobody else asks.
        self.known: dict[str, Any] = {}
        self._open: dict[str, tuple[Any, sqlite3.Connection]] = {}

    def table(self, name: str, make: Callable[[str], Any]) -> tuple[Any, sqlite3.Connection]:
        """(dataset, its ledger's file); `make` gets the ledger's address, the first time."""
        if name not in self._open:
            path = self.directory / f"{len(self._open)}.ledger"
            with fixed_randomness():
                dataset = make(f"sqlite:///{path}")
            self._open[name] = dataset, sqlite3.connect(path)
        return self._open[name]

    def close(self) -> None:
        for dataset, books in self._open.values():
            books.close()
            dataset.close()


@contextlib.contextmanager
def world() -> Iterator[World]:
    """A world that leaves nothing behind; heads of ledgers go into it as well.

    A ledger in a file takes no seed. Here it must, since what it writes down is recorded too: its tables are told that
    no question has one.
    """
    with tempfile.TemporaryDirectory(prefix="epsilons-recorded-") as directory:
        surroundings = {"XDG_STATE_HOME": f"{directory}/state", "COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1"}
        with patch.dict(os.environ, surroundings), patch.object(Attempt, "seeded", False):
            here = World(Path(directory))
            try:
                yield here
            finally:
                here.close()
