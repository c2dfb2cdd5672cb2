"""Tests never touch the heads of whoever runs them: whichever way they would, it is noticed before it happens."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from epsilons import ledger
from support import own_state

START = [sys.executable, "-c", "raise SystemExit(3)"]


def open_a_ledger(folder: Path) -> None:
    ledger.open(f"sqlite:///{folder}/a.ledger").close()


@pytest.mark.parametrize(
    "way", [open_a_ledger, lambda _: subprocess.run(START, check=True)], ids=["here", "in a child"]
)
def test_without_a_folder_of_its_own_a_test_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: Callable[[Path], None]
) -> None:
    monkeypatch.delenv("XDG_STATE_HOME")
    before = [os.path.lexists(place) and os.stat(place).st_mtime_ns for place in own_state.REAL]
    with pytest.raises(AssertionError, match="its user's own state"):
        way(tmp_path)
    assert own_state.noticed
    own_state.noticed.clear()
    assert [os.path.lexists(place) and os.stat(place).st_mtime_ns for place in own_state.REAL] == before


def test_with_one_it_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_a_ledger(tmp_path)
    assert subprocess.run(START, check=False).returncode == 3
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "b").mkdir()
    open_a_ledger(tmp_path / "b")
    assert subprocess.run(START, check=False, env={"HOME": str(tmp_path)}).returncode == 3
    assert list(tmp_path.rglob("*.json"))
    assert not own_state.noticed
