"""The stubs of made functions and methods are those of the catalogue."""

import importlib.util
import inspect
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import epsilons as eps
from epsilons.dataset.batch import Batch
from epsilons.statistics.catalogue import CATALOGUE

ROOT = Path(__file__).parents[2]


def signatures() -> ModuleType:
    spec = importlib.util.spec_from_file_location("signatures", ROOT / "tools" / "signatures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_stubs_are_current() -> None:
    for path, text in signatures().written():
        assert path.read_text() == text, "make signatures"


def test_methods_are_named_and_documented() -> None:
    for name in CATALOGUE:
        for owner in (eps.Dataset, Batch):
            method = getattr(owner, name)
            assert method.__name__ == name
            assert method.__qualname__ == f"{owner.__name__}.{name}"
            assert "self" in inspect.signature(method).parameters
            shown = [argument for argument in inspect.signature(method).parameters if argument != "self"]
            assert all(f"\n{argument}: " in method.__doc__ for argument in shown)
            assert inspect.signature(method).parameters["entropy"].kind is inspect.Parameter.KEYWORD_ONLY


#: Lines that a type checker accepts, and lines that it refuses.
ACCEPTED = """
eps.mean([1.0], 0.5, bounds=(0, 1), mechanism="weighted", share=0.5, threshold="max")
eps.plan("quantile", 0.5, q=0.9, bounds=(0, 1), people=10, error=0.1, assume="nothing")
people.quantile("wage", 0.9, bounds=(0, 100), by={"region": ["north"]}, error=0.5)
people.plan("linear_regression", "wage", features=["age"], bounds={"wage": (0, 100)}, share=0.2)
people.batch().median("wage", name="middle", where="age > 18")
"""
REFUSED = """
eps.mean([1.0], 0.5, bounds=(0, 1), shaer=0.5)
eps.mean([1.0], 0.5, bounds=(0, 1), assume="something")
eps.mean([1.0], 0.5, bounds=(0, 1), where="age > 18")
eps.plan("mean", 0.5, bounds=(0, 1), peolpe=10)
people.mean("wage", bounds=(0, 100), neighbors="replace")
people.mean("wage", bounds=(0, 100), fresh="yes")
people.mean("wage", bounds=100)
people.plan("mean", "wage", bound=(0, 100))
people.batch().mean("wage", share=0.5)
people.batch().mean("wage", name=3)
"""


def test_a_type_checker_knows_every_option_and_refuses_others(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    head = ["import epsilons as eps", "", "def ask(people: eps.Dataset) -> None:"]
    lines = [*head, *(f"    {line}" for line in (ACCEPTED + REFUSED).splitlines())]
    program = tmp_path / "asking.py"
    program.write_text("\n".join(lines) + "\n")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-pretty", str(program)],
        cwd=ROOT,
        env={**os.environ, "MYPYPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    refused = {lines[int(line.split(":")[1]) - 1].strip() for line in done.stdout.splitlines() if ": error:" in line}
    assert refused == set(REFUSED.split("\n")) - {""}, done.stdout + done.stderr
