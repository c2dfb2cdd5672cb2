"""Questions as commands: what comes from the roster, and what a relation is told to be."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

import epsilons as eps
from epsilons.accuracy.relation import LevelAnswer, Relation
from epsilons.cli import app, output
from epsilons.cli.commands.statistics import list_flags
from epsilons.dataset import Dataset
from epsilons.dataset.answers import as_table
from epsilons.display import show_errors
from support.gateways import Servers, open_office

#: Typed in the steward's folder, and in one whose file names a server.
both = pytest.mark.parametrize("registered", ["here", "server"], indirect=True)


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    made = Servers()
    yield made
    made.close()


@pytest.fixture
def registered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> Path:
    """Forty people, of whom every fourth is strict; the file of the steward."""
    shared = os.environ["XDG_STATE_HOME"]
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    table = {"id": range(40), "level": ["open" if n % 4 else "strict" for n in range(40)], "wage": [1.0] * 40}
    pa.parquet.write_table(pa.table({name: list(column) for name, column in table.items()}), "wages.parquet")
    Path("people.toml").write_text(
        'name = "wages"\nsource = "wages.parquet"\nperson = "id"\nledger = "sqlite:///a.ledger"\n'
        '[preferences]\ncolumn = "level"\nlevels = { strict = 0.1, open = 1.0 }\n[bounds]\nwage = [0, 100]\n'
    )
    assert app.main(["register", "people.toml"]) == 0
    capsys.readouterr()
    if getattr(request, "param", "here") == "server":
        (tmp_path / "office").mkdir()
        monkeypatch.setenv("XDG_STATE_HOME", shared)  # servers are forked from one process, which has that state
        assert app.main(["ledger", "adopt", "people.toml"]) == 0
        open_office(tmp_path, tmp_path / "office", request.getfixturevalue("servers"), "wages")
        monkeypatch.chdir(tmp_path / "office")
        capsys.readouterr()
    return tmp_path / "people.toml"


@both
@pytest.mark.usefixtures("registered")
def test_what_comes_from_the_roster_was_not_asked_before(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["count", "people.toml", "--where", "level = 'strict'"]) == 0
    seen = capsys.readouterr()
    assert "10 to 10" in seen.out
    assert "comes from the roster" in seen.out
    assert "Asked before" not in seen.err
    assert app.main(["count", "people.toml", "--where", "level = 'strict'", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["interval"], told["stored"]) == ([10, 10], False)
    for planned in (["plan", "people.toml", "count"], ["count", "people.toml", "--dry-run"]):
        assert app.main([*planned, "--where", "level = 'strict'"]) == 0
        assert capsys.readouterr().out.startswith("Free. It comes from the roster")


@both
def test_a_budget_is_told_before_and_after_registering(
    registered: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert app.main(["budget", "people.toml", "--questions", "200", "--column", "wage"]) == 0
    after = capsys.readouterr().out
    assert "Budget for 200 questions" in after
    assert app.main(["budget", "people.toml", "--questions", "200", "--column", "wage", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    monkeypatch.chdir(registered.parent)
    anew = Path("people.toml").read_text().replace("a.ledger", "b.ledger").replace('name = "wages"', 'name = "w"')
    Path("new.toml").write_text(anew)
    assert app.main(["budget", "new.toml", "--questions", "200", "--column", "wage", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == told
    assert not Path("b.ledger").exists()
    assert app.main(["budget", "new.toml", "--column", "nobody"]) != 0


def test_an_answer_says_which_groups_have_no_error() -> None:
    answer = eps.histogram(["north", "south"] * 50, 1.0, categories=["north", "south"])
    some, none = (
        replace(answer, error={"north": 2.5, "south": None}),
        replace(answer, error=dict.fromkeys(answer.value)),
    )
    assert "error ± 2.5, none for south. No error there: it is not clear" in output._explain(some, False)
    assert ": ± 2.5, none for south (" in str(as_table(some))
    assert output._explain(none, False).startswith(f"By {answer.mechanism}. No error: it is not clear")
    assert ": no error is known (" in str(as_table(none))
    assert show_errors(dict.fromkeys("abcdefgh") | {"a": 1.0}) == "± 1, none for b, c, d, e, f, g and 1 more"


@both
@pytest.mark.usefixtures("registered")
def test_a_command_says_how_good_a_model_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["linear-regression", "people.toml", "wage", "id", "--bounds", "id=0,40", "--share", "0.05"]) == 0
    assert "R2 " in capsys.readouterr().out


@both
def test_a_relation_is_bought_once_and_told_as_flags(registered: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["relation", "people.toml", "wage"]) == 0
    first = capsys.readouterr()
    assert "no level's expected mean is further than" in " ".join(first.out.split())
    # A spread that nobody gave is no word to take for a later answer.
    assert "--spread" not in first.err
    assert "Asked before" not in first.err
    assert app.main(["relation", "people.toml", "wage", "--json"]) == 0
    again = capsys.readouterr()
    told = json.loads(again.out)
    assert told["stored"]
    assert "Asked before" in again.err
    assert told["distance"] == pytest.approx(told["bound"] * told["spread"])
    # The flags as they stand there ask what Python asks with `assume=relation`, and promise no more.
    flags = first.err.split(": ")[-1].split()
    assert float(flags[1]) * told["spread"] == pytest.approx(told["distance"], rel=1e-3)
    assert flags[-2:] == ["--missing", "center"]
    assert app.main(["plan", "people.toml", "mean", "wage", *flags, "--json"]) == 0
    with Dataset.from_toml(registered) as people:
        found = people.relation("wage")
        planned = people.plan("mean", "wage", assume=found, missing="center")
    shown = json.loads(capsys.readouterr().out)["rows"]
    assert [row["mechanism"] for row in shown] == [row.mechanism for row in planned.rows]
    assert shown[0]["error"] == pytest.approx(planned.best.error, rel=1e-3)
    assert app.main(["mean", "people.toml", "wage", *flags]) == 0
    assert "missing values at the centre" in " ".join(capsys.readouterr().out.split())


def test_flags_of_a_relation_promise_no_more_than_it() -> None:
    for away in (1.23, 4.56, 7.89, 0.003):
        rows = (LevelAnswer("a", 70, away, 0.5, 3.3, 0.1), LevelAnswer("b", 50, 0.0, 0.5, 4.62, 0.2))
        found = Relation(rows, 15.199512, given="values spread by about 15.2 (given)")
        (_, assume), (_, spread) = (flag.split() for flag in list_flags(found))
        assert found.distance <= float(assume) * float(spread) <= 1.001 * found.distance
