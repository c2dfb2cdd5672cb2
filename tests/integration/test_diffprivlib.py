"""The real diffprivlib, in the environment that `make bench-models` makes for it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / "build" / "diffprivlib" / "bin" / "python"


@pytest.mark.integration
@pytest.mark.skipif(not PYTHON.exists(), reason="diffprivlib has no environment here: make bench-models sets one up")
def test_tools_and_models_of_diffprivlib_are_personalized(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    X = random.uniform(0, 10, (500, 2))
    facts = {"low": [0, 0], "high": [10, 10], "wages": [0, 40], "epsilons": [1.0], "models": 2}
    np.savez(tmp_path / "people.npz", X=X, y=X @ (1.0, 2.0), **{name: np.asarray(fact) for name, fact in facts.items()})
    done = subprocess.run(
        [str(PYTHON), str(ROOT / "benchmarks" / "peer_diffprivlib.py"), str(tmp_path / "people.npz")],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert set(document["errors"]) == {"1.0"}
    # Their sensitivity of zero for bounds (0, 100): if it was repaired, the page on models must say so.
    assert document["noise"] < 1e-6
