"""The worked examples in CONTRIBUTING.md lead to a green build.

Both are written into a copy of the project as the page says, and whatever finds them by itself is run there: the
linters, and the tests that walk the registry of mechanisms or the catalogue of statistics. The long form (soak) does so
for each of them alone and for both; the short one runs ruff, the new tests and those of signatures.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COPIED = (
    "src",
    "tests",
    "tools",
    "docs",
    "pyproject.toml",
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    ".mypy_cache",
)
MECHANISM, STATISTIC, STATISTIC_TEST = re.findall(
    r"```python\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), flags=re.S
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy to which examples can be added, with what Python and mypy know already of files that stay as they are."""
    for name in COPIED:
        source, target = ROOT / name, tmp_path / name
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("_site"))
        elif source.exists():
            shutil.copy(source, target)
    return tmp_path


def run(project: Path, *command: str) -> None:
    """With the copy's own source; what was printed shows where it fails."""
    environment = {**os.environ, "PYTHONPATH": f"{project / 'src'}{os.pathsep}{project / 'tests'}"}
    for name in [name for name in environment if name.startswith(("PYTEST_", "COVERAGE_"))]:
        del environment[name]  # what this run tells its workers is not for others
    done = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, check=False, cwd=project, env=environment
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]


def run_tests(project: Path, *chosen: str) -> None:
    run(project, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:randomly", *chosen)


def check_style(project: Path, *files: Path) -> None:
    names = [str(file) for file in files]
    run(project, "-m", "ruff", "check", *names)
    run(project, "-m", "ruff", "format", "--check", *names)


def add_mechanism(project: Path) -> list[Path]:
    """The files that are new."""
    file = project / "src/epsilons/mechanisms/quartile.py"
    file.write_text(MECHANISM, encoding="utf-8")
    return [file]


def add_statistic(project: Path) -> list[Path]:
    """The files that are new, and the one that changed."""
    file = project / "src/epsilons/statistics/range_count.py"
    file.write_text(STATISTIC, encoding="utf-8")
    test = project / "tests/unit/statistics/test_range_count.py"
    test.write_text(STATISTIC_TEST, encoding="utf-8")
    catalogue = project / "src/epsilons/statistics/catalogue.py"
    lines = catalogue.read_text(encoding="utf-8")
    catalogue.write_text(
        lines.replace('    "regression",\n', '    "regression",\n    "range_count",\n'), encoding="utf-8"
    )
    return [file, test, catalogue]


def ask_mechanism(project: Path) -> None:
    run(
        project,
        "-c",
        "import epsilons as eps\n"
        "people = [0.1] * 20 + [0.5] * 60 + [1.0] * 20\n"
        "answer = eps.count([1] * 100, people, mechanism='quartile')\n"
        "assert answer.charges == {0.1: 0.0, 0.5: 0.5, 1.0: 0.5}, answer.charges\n"
        "assert 'quartile' in [row.mechanism for row in eps.plan('count', people).rows]",
    )


def build_mechanism(project: Path) -> tuple[list[str], list[str]]:
    """(files of tests, words that choose among their tests)."""
    check_style(project, *add_mechanism(project))
    run(project, "tools/signatures.py")
    ask_mechanism(project)
    whole = [*sorted(path.name for path in (project / "tests/unit/planner").glob("test_*.py")), "test_signatures.py"]
    walking = ["tests/unit/mechanisms", "tests/property/test_mechanisms.py"]
    return ["tests/unit/planner", "tests/unit/test_signatures.py", *walking], ["quartile", *whole]


def build_statistic(project: Path) -> tuple[list[str], list[str]]:
    """As for a mechanism."""
    check_style(project, *add_statistic(project))
    run(project, "tools/signatures.py")
    run(project, "-m", "mypy", "--strict", "src/epsilons/statistics/range_count.py")
    walking = [
        "tests/property/test_parity.py",
        "tests/property/test_fronts.py",
        "tests/unit/planner",
        "tests/unit/test_arrays.py",
    ]
    own = ["tests/unit/statistics/test_range_count.py", "tests/unit/test_signatures.py"]
    return [*own, *walking], ["range_count", "test_signatures.py"]


def test_the_worked_examples_pass_ruff_and_the_tests_that_find_them_first(project: Path) -> None:
    check_style(project, *add_mechanism(project), *add_statistic(project))
    run(project, "tools/signatures.py")
    ask_mechanism(project)
    own = ["tests/unit/statistics/test_range_count.py", "tests/unit/test_signatures.py"]
    walking = ["tests/unit/mechanisms/test_losses.py", "tests/unit/planner/test_plan.py"]
    run_tests(project, *own, *walking, "-k", "quartile or range_count or (test_signatures.py and not type_checker)")


@pytest.mark.soak
@pytest.mark.parametrize("builds", [[build_mechanism], [build_statistic], [build_mechanism, build_statistic]])
def test_the_worked_examples_lead_to_a_green_build(
    project: Path, builds: list[Callable[[Path], tuple[list[str], list[str]]]]
) -> None:
    built = [build(project) for build in builds]
    files, words = (list(dict.fromkeys(itertools.chain(*parts))) for parts in zip(*built, strict=True))
    run_tests(project, *files, "-k", f"({' or '.join(words)}) and not spark")
