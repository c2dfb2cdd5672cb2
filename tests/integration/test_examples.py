"""Notebooks, examples and the first five minutes of every user run as they stand."""

from __future__ import annotations

import contextlib
import io
import json
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from epsilons.cli.app import main

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
SCRIPTS = sorted((ROOT / "examples").glob("*.py"))
STARTS = sorted((ROOT / "docs").glob("start-*.md"))


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder of its own, with a state of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def test_there_is_one_for_each_user() -> None:
    assert {file.stem for file in NOTEBOOKS} == {"steward", "analyst", "researcher", "collector"}
    assert {file.stem for file in STARTS} == {f"start-{file.stem}" for file in NOTEBOOKS} | {"start-person"}


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_notebook_runs_from_top_to_bottom(file: Path) -> None:
    notebook = json.loads(file.read_text(encoding="utf-8"))
    assert notebook["nbformat"] == 4
    namespace: dict[str, object] = {"__name__": "__main__"}
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        for number, cell in enumerate(notebook["cells"], 1):
            if cell["cell_type"] == "code":
                assert cell["outputs"] == [], "answers differ from run to run, and are not kept"
                exec(compile("".join(cell["source"]), f"{file.name}, cell {number}", "exec"), namespace)
    assert said.getvalue()


@pytest.mark.parametrize("file", SCRIPTS, ids=lambda file: file.stem)
def test_an_example_runs(file: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    runpy.run_path(str(file), run_name="__main__")
    assert capsys.readouterr().out
    assert [path for path in tmp_path.iterdir() if path.name != "state"] == []


def _commands(page: Path) -> list[str]:
    """Each command as typed: a line, or several where quotes are open or the line goes on."""
    blocks = re.findall(r"^```sh\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    found: list[str] = []
    open_quotes = False
    for line in (line for block in blocks for line in block.replace("\\\n", " ").splitlines() if line.strip()):
        if open_quotes:
            found[-1] += "\n" + line
        else:
            found.append(line)
        open_quotes = found[-1].count('"') % 2 == 1
    return found


def _make_table(command: str, place: Path) -> None:
    """A made-up table, printed by a few lines of Python into a file."""
    words, _, file = command.rpartition(">")
    program, *arguments = shlex.split(words)
    assert program == "python"
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=True)
    (place / file.strip()).write_text(done.stdout, encoding="utf-8")


@pytest.mark.parametrize("page", STARTS, ids=lambda page: page.stem)
def test_the_first_five_minutes_work_as_typed(page: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every command of the page, in order, on a table as it shows; what `>>` collects is collected."""
    draw = np.random.default_rng(1)
    rows = [
        f"{one},{draw.integers(18, 70)},{draw.choice(['north', 'south'])},{draw.integers(100, 1900)},{level}"
        for one, level in enumerate(draw.choice(["strict", "standard", "open"], 600), 1)
    ]
    (tmp_path / "wages.csv").write_text("\n".join(["id,age,region,wage,privacy", *rows, ""]))
    for command in _commands(page):
        if command.startswith("python"):
            _make_table(command, tmp_path)
            continue
        words, _, collected = command.partition(">>")
        program, *arguments = shlex.split(words, comments=True)
        assert program == "epsilons"
        assert main(arguments) == 0, f"{command}: {capsys.readouterr().err}"
        if collected:
            with open(collected.strip(), "a", encoding="utf-8") as file:
                file.write(capsys.readouterr().out)
    if page.stem == "start-steward":
        said = capsys.readouterr().out
        assert "mean of wage" in said
        assert "Used in 1 question (1 × mean)" in said
