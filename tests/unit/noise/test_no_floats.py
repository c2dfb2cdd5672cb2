"""No float and no foreign generator in the code that draws: checked on the syntax trees of its files."""

import ast
from pathlib import Path

import pytest

import epsilons.noise

ROOM = Path(epsilons.noise.__file__).parent
FILES = sorted(ROOM.glob("*.py"))
# Probabilities for teaching; no draw looks at them.
FLOAT_FILES = {"pmf.py"}
# `/` divides balls (interval arithmetic) here, and nothing anywhere else.
BALL_FILES = {"laplace.py", "weighing.py", "heavy.py"}
GENERATORS = {"random", "secrets", "uuid", "math", "cmath", "statistics"}
# The type of `SegmentSampler.probabilities`, in annotations only.
FLOAT_TYPES_ALLOWED = {"segments.py": 1}


def offences(name: str, source: str) -> list[str]:
    found = []
    float_types = 0
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                roots = {alias.name.split(".")[0] for alias in names}
                found += [f"import {root}" for root in roots & GENERATORS]
            case ast.ImportFrom(module=str(module)):
                if module.split(".")[0] in GENERATORS or "random" in module:
                    found.append(f"from {module}")
            case ast.Attribute(attr="random"):
                found.append("random")
            case ast.Name(id="float") if name not in FLOAT_FILES:
                found.append("float")
            case ast.Constant(value=float() | complex()) if name not in FLOAT_FILES:
                found.append("float literal")
            case ast.Attribute(attr=attr) if attr.startswith("float") and name not in FLOAT_FILES:
                float_types += 1
            case ast.BinOp(op=ast.Div()) if name not in FLOAT_FILES | BALL_FILES:
                found.append("division")
    if float_types > FLOAT_TYPES_ALLOWED.get(name, 0):
        found.append("float type")
    return found


def test_the_files_are_there() -> None:
    assert {"entropy.py", "coins.py", "laplace.py", "segments.py"} <= {f.name for f in FILES}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_no_float_decides_a_draw(file: Path) -> None:
    assert offences(file.name, file.read_text()) == []


@pytest.mark.parametrize(
    "planted",
    [
        "import random",
        "import numpy.random as r\nr = numpy.random",
        "from numpy.random import default_rng",
        "from random import choice",
        "import math",
        "x = np.random.default_rng()",
        "x = float(3)",
        "x = 0.5",
        "x = a.astype(np.float64)",
        "x = 1 / 2",
    ],
)
def test_the_check_sees_planted_floats(planted: str) -> None:
    assert offences("coins.py", planted)
