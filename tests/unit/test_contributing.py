"""The worked example in CONTRIBUTING.md is a real mechanism: it registers, answers and keeps its promise.

The tests that find a new mechanism by themselves pass with it, as the page says.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import pytest

import epsilons as eps
from epsilons.audit import all_datasets, enumerate_losses
from epsilons.mechanisms.base import create, registered
from epsilons.preferences import roster_of
from epsilons.statistics.count import Count
from epsilons.statistics.people import ArrayPeople
from epsilons.statistics.base import Question

exec(compile(SOURCE, "quartile.py", "exec"), {"__name__": "epsilons.mechanisms.quartile"})
assert "quartile" in registered()
people = [0.1] * 20 + [0.5] * 60 + [1.0] * 20
answer = eps.count([1] * 100, people, mechanism="quartile")
assert answer.charges == {0.1: 0.0, 0.5: 0.5, 1.0: 0.5}, answer.charges
assert any(row.mechanism == "quartile" for row in eps.plan("count", people).rows)

roster = roster_of([0.1, 0.5, 0.5, 0.5, 1.0])
mechanism, question = create("quartile", Count()), Question(Count())
verdict = enumerate_losses(
    lambda values: mechanism.distribution(question, ArrayPeople.of(values, roster)),
    all_datasets([0, 1], 5),
    [1e-12, 0.5, 0.5, 0.5, 0.5],
    domain=[0, 1],
    neighbors="replace",
    log=True,
)
assert verdict.holds, str(verdict)

plans = ["tests/unit/planner/test_plan.py", "-k", "rows_stand_best_first"]
losses = ["tests/unit/mechanisms/test_losses.py", "-k", "quartile and (count or mean or granted or digit)"]
for chosen in (plans, losses):
    assert pytest.main(["-q", "-p", "no:cacheprovider", *chosen]) == pytest.ExitCode.OK, chosen
"""


def test_the_worked_example_is_a_real_mechanism() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (source,) = re.findall(r"```python\n(.*?)```", text, flags=re.S)
    program = f"SOURCE = {source!r}\n{PROGRAM}"
    command = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr + done.stdout
