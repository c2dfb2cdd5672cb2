"""The command line as a user has it: a file, questions, plans, errors, exit status."""

import contextlib
import io
import json
import re
import shlex
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pyarrow.parquet
import pytest

from epsilons.cli import app
from small_tables import people_table

LEVELS = ("--level", "strict=0.05", "--level", "standard=0.2", "--level", "open=1", "--level", "public=public")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("steward")
    pyarrow.parquet.write_table(people_table(), path / "wages.parquet")
    init = ("init", "wages.parquet", "--person", "id", "--preferences", "privacy", "--bounds", "wage=0,100")
    done = run(path, *init, *LEVELS)
    assert done.returncode == 0, done.stderr
    return path


@dataclass
class Done:
    """How a command went."""

    returncode: int
    stdout: str
    stderr: str


def run(home: Path, *arguments: str) -> Done:
    """In this process, since starting one takes longer than most commands."""
    out, notes = io.StringIO(), io.StringIO()
    with contextlib.chdir(home), redirect_stdout(out), redirect_stderr(notes):
        status = app.main(list(arguments))
    return Done(status, out.getvalue(), notes.getvalue())


def test_the_installed_command_does_the_same(home: Path) -> None:
    command = Path(sys.executable).parent / "epsilons"
    asked = ("count", "people.toml", "--share", "0.01")
    done = subprocess.run([command, *asked], cwd=home, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout == run(home, *asked).stdout


def document(home: Path, *arguments: str) -> Any:
    done = run(home, *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_first_file_holds_public_facts_only(home: Path) -> None:
    text = (home / "people.toml").read_text()
    assert 'source = "wages.parquet"' in text
    assert "wage = [0.0, 100.0]" in text or "wage = [0, 100]" in text
    assert "# age = [0, 100]" in text
    again = run(home, "init", "wages.parquet", "--person", "id", "--preferences", "privacy", *LEVELS)
    assert again.returncode == 4
    assert "Nothing is written over" in again.stderr
    unasked = run(home, "init", "wages.parquet", "--out", "other.toml")
    assert unasked.returncode == 4
    assert "--person" in unasked.stderr
    assert not (home / "other.toml").exists()


def test_a_check_says_what_is_there_and_charges_nothing(home: Path) -> None:
    before = document(home, "check", "people.toml")
    assert before["people"] == 2000
    assert any("No bounds: age" in hint for hint in before["hints"])
    shown = run(home, "check", "people.toml")
    assert "strict" in shown.stdout
    assert shown.stderr == ""
    assert document(home, "check", "people.toml")["releases"] == before["releases"]


def test_a_plan_and_a_dry_run_are_free(home: Path) -> None:
    before = document(home, "check", "people.toml")["releases"]
    plan = document(home, "plan", "people.toml", "mean", "wage", "--share", "0.1")
    assert plan["rows"][0]["mechanism"] == "weighted"
    dry = document(home, "mean", "people.toml", "wage", "--share", "0.1", "--dry-run")
    assert dry["rows"] == plan["rows"]
    assert document(home, "check", "people.toml")["releases"] == before


@pytest.mark.parametrize(
    "question",
    [
        ("count", "--where", "age >= 65"),
        ("count", "--of", "rows", "--by", "region=north,south"),
        ("sum", "wage"),
        ("mean", "wage", "--by", "region=north,south", "--where", "union = 'yes'"),
        ("variance", "wage"),
        ("median", "age", "--bounds", "0,120", "--step", "1"),
        ("quantile", "wage", "0.9"),
        ("min", "age", "--bounds", "0,120"),
        ("max", "age", "--bounds", "0,120"),
        ("histogram", "wage", "--edges", "0,10,20,100"),
        ("histogram", "region", "--categories", 'north,"south"'.replace('"', "")),
        ("mean", "wage", "--by", 'age=["20","30"]'.replace('"', "")),
    ],
    ids=lambda question: " ".join(question[:2]),
)
def test_every_question_answers_in_words_and_in_json(home: Path, question: tuple[str, ...]) -> None:
    asked = (question[0], "people.toml", *question[1:], "--share", "0.01")
    found = document(home, *asked)
    assert found["release"]["guarantee"]["neighbors"] == "absent"
    again = run(home, *asked)
    assert again.returncode == 0, again.stderr
    assert "charged" in again.stdout
    assert "personalized DP" in again.stdout
    assert document(home, *asked)["release"] == found["release"]


def test_sql_on_the_command_line(home: Path) -> None:
    query = "SELECT region, AVG(wage) AS wage, COUNT(*) FROM people GROUP BY region"
    found = document(home, "sql", "people.toml", query, "--keys", "region=north,south", "--share", "0.02")
    assert set(found) == {"wage", "count"}
    refused = run(home, "sql", "people.toml", "SELECT wage FROM people")
    assert refused.returncode == 5
    assert "outside GROUP BY" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("mean", "people.toml"), 2, "Missing argument"),
        (("mean", "people.toml", "wage", "--bounds", "many"), 2, "two numbers"),
        (("mean", "nothing.toml", "wage"), 4, "There is no file"),
        (("mean", "people.toml", "salary"), 4, "There is no column"),
        (("mean", "people.toml", "age"), 5, "needs bounds"),
        (("mean", "people.toml", "wage", "--where", "wage = 1; DROP TABLE x"), 5, "condition"),
        (("mean", "people.toml", "wage", "--by", "region"), 5, "no keys"),
        (("mean", "people.toml", "wage", "--share", "2"), 5, "share"),
        (("mean", "people.toml", "wage", "--mechanism", "magic"), 5, "Unknown mechanism"),
    ],
)
def test_a_mistake_has_its_own_status(home: Path, arguments: tuple[str, ...], status: int, words: str) -> None:
    done = run(home, *arguments)
    assert done.returncode == status
    assert words in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


def test_nothing_left_to_spend_has_a_status_of_its_own(home: Path) -> None:
    (home / "poor.toml").write_text((home / "people.toml").read_text().replace("wages.ledger", "poor.ledger"))
    assert run(home, "count", "poor.toml", "--share", "1", "--mechanism", "stretching").returncode == 0
    done = run(home, "mean", "poor.toml", "wage")
    assert done.returncode == 6
    assert "Nobody has anything left" in done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_can_complete(home: Path, shell: str) -> None:
    done = run(home, "completion", shell)
    assert done.returncode == 0
    assert "_EPSILONS_COMPLETE" in done.stdout


def lines_of(text: str) -> list[str]:
    """Commands as they stand in a help text or on a page."""
    return [line.strip() for line in text.splitlines() if line.strip().startswith("epsilons ")]


def own_commands() -> list[str]:
    context = click.Context(app.epsilons)
    return [name for name in app.epsilons.list_commands(context) if name in QUESTIONS]


QUESTIONS = (
    "check",
    "count",
    "histogram",
    "max",
    "mean",
    "median",
    "min",
    "plan",
    "quantile",
    "sql",
    "sum",
    "variance",
)


def test_the_examples_of_help_texts_run_as_pasted(home: Path) -> None:
    (home / "rich.toml").write_text((home / "people.toml").read_text().replace("wages.ledger", "rich.ledger"))
    assert own_commands() == list(QUESTIONS)
    for name in QUESTIONS:
        text = run(home, name, "--help").stdout
        (example,) = lines_of(text.split("Example:")[1].split("Options:")[0])
        done = run(home, *shlex.split(example.replace("people.toml", "rich.toml"))[1:])
        assert done.returncode == 0, (example, done.stderr)
        assert done.stdout


def test_the_page_on_commands_runs_as_pasted(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(people_table(20_000), tmp_path / "wages.parquet")
    page = (Path(__file__).parents[2] / "docs" / "commands.md").read_text()
    commands = [line for block in re.findall(r"```sh\n(.*?)```", page, re.DOTALL) for line in lines_of(block)]
    assert len(commands) == 8
    for command in commands:
        done = run(tmp_path, *shlex.split(command)[1:])
        assert done.returncode == 0, (command, done.stderr)
