"""`epsilons batch`, and the yes with a price that commands ask for on a terminal before they spend."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
import pytest
from pyarrow import parquet

import epsilons as eps
from epsilons.accuracy.relation import holds
from epsilons.cli import output
from epsilons.cli.app import main
from support.gateways import Servers, open_office

QUESTIONS = ["mean wage --by region", "count --where 'age >= 65'", "quantile wage 0.25,0.75", "covariance wage age"]


#: Typed in the steward's folder, and in one whose file names a server.
both = pytest.mark.parametrize("home", ["here", "server"], indirect=True)


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    made = Servers()
    yield made
    made.close()


@pytest.fixture
def home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> Path:
    """The steward's folder, from which analysts type unless they ask a server."""
    monkeypatch.chdir(tmp_path)
    rows = 300
    table = pa.table(
        {
            "id": list(range(rows)),
            "wage": [float(i * 37 % 101) for i in range(rows)],
            "age": [15 + i * 7 % 70 for i in range(rows)],
            "region": [("north", "south")[i % 2] for i in range(rows)],
            "level": [("strict", "open")[i % 3 > 0] for i in range(rows)],
        }
    )
    parquet.write_table(table, "people.parquet")
    Path("people.toml").write_text(
        'source = "people.parquet"\nperson = "id"\nversion = "1"\nledger = "sqlite:///people.ledger"\n'
        '[preferences]\ncolumn = "level"\n[preferences.levels]\nstrict = 0.2\nopen = 2\n'
        '[bounds]\nwage = [0, 100]\nage = [15, 90]\n[keys]\nregion = ["north", "south"]\n'
    )
    assert main(["register", "people.toml"]) == 0
    capsys.readouterr()
    if getattr(request, "param", "here") == "server":
        (tmp_path / "office").mkdir()
        open_office(tmp_path, tmp_path / "office", request.getfixturevalue("servers"), "people")
        monkeypatch.chdir(tmp_path / "office")
    return tmp_path


def charged(home: Path) -> int:
    with eps.Dataset.from_toml(home / "people.toml") as people:
        return people.count_charged()


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """A terminal at which somebody gives these answers, one after the other."""
    answers: list[bool] = []
    monkeypatch.setattr(output, "on_terminal", lambda: True)
    monkeypatch.setattr(click, "confirm", lambda *_, **__: answers.pop(0))
    return answers


@both
def test_a_batch_is_that_of_the_library(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("questions.txt").write_text("# for the report\n\n" + "\n".join(QUESTIONS[1:]) + "\n")
    typed = ["batch", "people.toml", QUESTIONS[0], "--from", "questions.txt", "--share", "0.2"]
    assert main([*typed, "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["share"] == pytest.approx(0.2)
    assert charged(home) == 0
    assert main([*typed, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    with eps.Dataset.from_toml(home / "people.toml") as people, people.batch(share=0.2) as ask:
        ask.mean("wage", by={"region": ["north", "south"]})
        ask.count(where="age >= 65")
        ask.quantile("wage", (0.25, 0.75))
        ask.covariance("wage", "age")
    numbers = [one.release.number for one in ask]
    assert [one["release"]["number"] for one in told["answers"].values()] == numbers
    assert charged(home) == len(QUESTIONS)
    assert main(["batch", "people.toml", *QUESTIONS, "--share", "0.2"]) == 0
    shown = capsys.readouterr()
    assert "stored answer" in shown.err
    for words in ("north", "0.75", "95% interval", "charged when first asked", "strict"):
        assert words in shown.out
    told_when = " ".join(shown.out.split())
    for release in (one.release for one in ask):
        when = holds(release.assumption)
        if release.models:
            assert f"hold {when}." in told_when.replace("The interval holds", "Intervals hold")
        elif release.error:
            assert when in told_when


@both
@pytest.mark.parametrize(
    ("question", "status", "words"),
    [
        ("modus wage", 2, "begins with a statistic"),
        ("'mean", 2, "begins with a statistic"),
        ("", 2, "begins with a statistic"),
        ("mean wage --json", 2, "--json is said of the whole batch"),
        ("mean wage --dry-run", 2, "--dry-run is said of the whole batch"),
        ("mean wage --share 0.1", 5, "A batch splits one share"),
        ("mean nothing", 4, "There is no column"),
        ("mean wage --nothing", 2, "No such option"),
    ],
)
def test_a_wrong_question_charges_nobody(
    home: Path, capsys: pytest.CaptureFixture[str], question: str, status: int, words: str
) -> None:
    assert main(["batch", "people.toml", "count", question]) == status
    assert words in capsys.readouterr().err
    assert charged(home) == 0


COMMANDS: list[list[str]] = [
    ["mean", "people.toml", "wage", "--share", "0.1"],
    ["sql", "people.toml", "SELECT AVG(wage) FROM people", "--share", "0.1"],
    ["batch", "people.toml", *QUESTIONS[:2], "--share", "0.1"],
    ["relation", "people.toml", "wage"],
]


@both
@pytest.mark.parametrize("place", range(len(COMMANDS)))
def test_on_a_terminal_the_price_comes_before_the_charge(
    home: Path, terminal: list[bool], capsys: pytest.CaptureFixture[str], place: int
) -> None:
    command, free = COMMANDS[place], charged(home)
    terminal.append(False)
    assert main(command) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert "error" in told.err
    assert "strict" in told.err
    assert "Nothing was charged." in told.err
    assert charged(home) == free
    terminal.append(True)
    assert main(command) == 0
    assert charged(home) > free
    # What is stored costs nothing, and --yes asks nothing: an answer that nobody gives would raise.
    assert main(command) == 0
    assert main([*command, "--yes", *(["--fresh"] if command[0] != "batch" else [])]) == 0
    assert terminal == []


@both
def test_what_is_free_is_not_asked_for(home: Path, terminal: list[bool]) -> None:
    assert main(["count", "people.toml", "--by", "level=strict,open"]) == 0
    assert main(["mean", "people.toml", "wage", "--dry-run"]) == 0
    assert main(["batch", "people.toml", "count --by level=strict,open"]) == 0
    assert charged(home) == 0
    assert terminal == []


@both
def test_nobody_is_asked_where_there_is_no_terminal(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> bool:
        raise AssertionError("asked")

    monkeypatch.setattr(click, "confirm", refuse)
    assert main(COMMANDS[0]) == 0
    assert charged(home) == 1
