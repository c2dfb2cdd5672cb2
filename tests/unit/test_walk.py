"""Questions take a short way through the package: no more files and hops than `make walk` allows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("way", ["named", "auto", "table"])
def test_a_question_takes_no_longer_way_than_its_limit(way: str) -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "walk.py"), way]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_longer_way_is_found() -> None:
    program = (
        f"import sys; sys.path.insert(0, {str(ROOT / 'benchmarks')!r}); import walk; "
        "walk.LIMITS['eps.mean, auto'] = (26, 20); sys.exit(walk.print_way('auto', False))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "over the limit of 26 files and 20 hops" in done.stdout
