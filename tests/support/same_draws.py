"""The quick run draws the same noise every time, as it tries the same inputs every time.

Thousands of tests ask real questions. Each of them may be wrong by chance once in a million runs, or, by an oversight,
once in a hundred; either way whoever sees it must see it again. So what the operating system would give depends on the
test alone: not on its neighbours, nor on the worker that runs it. Children that a test starts draw afresh. Only keys of
draws are fixed: names of ledgers and files stay new, since what one run left on the machine is there in the next.
`--fresh-draws`, and the long run, leave all randomness to the operating system.
"""

from __future__ import annotations

import hashlib
import itertools
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest

_KEY_BYTES = 32
_system = os.urandom


def named(name: str) -> Callable[[int], bytes]:
    """A source of bytes that follow from a name; a forked child has others than its parent."""
    parent, calls = os.getpid(), itertools.count()

    def give(n: int) -> bytes:
        if n != _KEY_BYTES:
            return _system(n)
        child = "" if os.getpid() == parent else f" of process {os.getpid()}"
        return hashlib.shake_256(f"{name}{child}, call {next(calls)}".encode()).digest(n)

    return give


@contextmanager
def drawing_by(name: str) -> Iterator[None]:
    with patch("os.urandom", named(name)):
        yield


class SameDraws:
    """Names every test's draws after the test, and those of what several tests share after that.

    What they share may be made again in a process that ran other tests in between, and then has a name of its own: its
    ledger is another one.
    """

    def __init__(self) -> None:
        self._made: Counter[str] = Counter()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        with drawing_by(item.nodeid):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Any:
        if fixturedef.scope == "function":
            return (yield)
        name = f"{fixturedef.baseid}::{fixturedef.argname}[{getattr(request, 'param_index', 0)}]"
        self._made[name] += 1
        with drawing_by(f"{name}, time {self._made[name]}"):
            return (yield)
