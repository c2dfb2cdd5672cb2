"""Questions as commands: what comes from the roster, and what a relation is told to be."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from epsilons.cli import app
from epsilons.dataset import Dataset


@pytest.fixture
def registered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Forty people, of whom every fourth is strict."""
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


@pytest.mark.usefixtures("registered")
def test_a_relation_is_bought_once_and_told_as_flags(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["relation", "people.toml", "wage"]) == 0
    first = capsys.readouterr()
    assert "no level's expected mean is further than" in " ".join(first.out.split())
    assert "--spread 25" in first.err
    assert "Asked before" not in first.err
    assert app.main(["relation", "people.toml", "wage", "--json"]) == 0
    again = capsys.readouterr()
    told = json.loads(again.out)
    assert told["stored"]
    assert "Asked before" in again.err
    assert told["distance"] == pytest.approx(told["bound"] * told["spread"])
    assert f"--assume {told['bound']:.4g} " in first.err
    # The flags as they stand there ask what Python asks with `assume=relation`.
    flags = first.err.split(": ")[-1].split()
    assert ["--missing", "center"] == flags[-2:]
    assert app.main(["plan", "people.toml", "mean", "wage", *flags, "--json"]) == 0
    with Dataset.from_toml("people.toml") as people:
        found = people.relation("wage")
        planned = people.plan("mean", "wage", assume=found, missing="center")
    shown = json.loads(capsys.readouterr().out)["rows"]
    assert [row["mechanism"] for row in shown] == [row.mechanism for row in planned.rows]
    assert shown[0]["error"] == pytest.approx(planned.best.error, rel=1e-3)
