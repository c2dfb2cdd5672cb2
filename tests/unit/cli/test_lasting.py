"""Accounts that last, by commands: what `init` writes, `register` settles and `budget` compares."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

import epsilons as eps
from epsilons.cli import app

INIT = ["init", "wages.parquet", "--person", "id", "--preferences", "privacy", "--level", "strict=0.1"]
INIT += ["--level", "open=1", "--level", "all=public", "--bounds", "wage=0,100", "--rows-per-person", "1"]
LASTING = ["--measure", "zcdp", "--delta", "1e-6", "--renews", "open=year", "--public", "region"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    words = ["strict", "open", "all"]
    rows = {"id": range(60), "wage": [1.0 * n for n in range(60)], "privacy": [words[n % 3] for n in range(60)]}
    rows |= {"region": ["north" if n % 2 else "south" for n in range(60)]}
    pa.parquet.write_table(pa.table({name: list(column) for name, column in rows.items()}), "wages.parquet")
    return tmp_path


def test_what_init_is_told_is_registered_and_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main([*INIT, *LASTING]) == 0
    assert app.main(["check", "people.toml"]) == 0
    assert app.main(["register", "people.toml"]) == 0
    capsys.readouterr()
    assert app.main(["mean", "people.toml", "wage", "--where", "region = 'north'", "--json"]) == 0
    assert "zcdp delta 1/1000000" in capsys.readouterr().out
    with eps.Dataset.from_toml("people.toml") as people:
        assert people.count(by="region").value == {"north": 30, "south": 30}
        assert people.statement(1).term is not None
        assert people.statement(0).term is None
    assert app.main(["budget", "people.toml", "--questions", "50"]) == 0
    assert "zcdp" in capsys.readouterr().out


@pytest.mark.parametrize("more", [[], LASTING[:4]], ids=["pure", "zcdp"])
def test_a_person_chooses_a_level_by_its_name(more: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main([*INIT, *more]) == 0
    assert app.main(["register", "people.toml"]) == 0
    assert app.main(["person", "level", "people.toml", "1", "strict"]) == 0
    assert "strict" in capsys.readouterr().out
    with eps.Dataset.from_toml("people.toml") as people:
        assert people.statement(1).measure.grant(people.statement(1).granted) == pytest.approx(0.1, abs=1e-6)


def test_without_them_a_file_is_as_before(home: Path) -> None:
    assert app.main(INIT) == 0
    declared = (home / "people.toml").read_text()
    assert not any(word in declared for word in ("measure", "delta", "renews", "public ="))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--measure", "zcdp"], "--measure zcdp and --delta 1e-06, or neither"),
        (["--delta", "1e-6"], "--measure zcdp and --delta 1e-06, or neither"),
        (["--measure", "zcdp", "--delta", "0.5"], "--delta 1e-06"),
        (["--renews", "open=decade"], "--renews strict=year"),
        (["--renews", "all=year"], "--renews strict=year"),
        (["--renews", "open"], "--renews open=year"),
        (["--public", "wage"], "cannot be public"),
        (["--public", "id"], "cannot be public"),
    ],
)
def test_what_cannot_be_kept_is_refused_before_anything_is_written(
    home: Path, given: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.main([*INIT, *given]) != 0
    assert told in " ".join(capsys.readouterr().err.split())
    assert not (home / "people.toml").exists()
