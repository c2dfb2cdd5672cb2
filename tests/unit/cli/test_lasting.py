"""Accounts that last, by commands: what `init` writes, `register` settles and `budget` compares."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

import epsilons as eps
from epsilons.cli import app
from support.gateways import Servers, open_office

INIT = ["init", "wages.parquet", "--person", "id", "--preferences", "privacy", "--level", "strict=0.1"]
INIT += ["--level", "open=1", "--level", "all=public", "--bounds", "wage=0,100", "--rows-per-person", "1"]
LASTING = ["--measure", "zcdp", "--delta", "1e-6", "--renews", "open=year", "--public", "region"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    words = ["strict", "open", "all"]
    rows = {"id": range(60), "wage": [1.0 * n for n in range(60)], "privacy": [words[n % 3] for n in range(60)]}
    rows |= {"region": ["north" if n % 2 else "south" for n in range(60)]}
    pa.parquet.write_table(pa.table({name: list(column) for name, column in rows.items()}), "wages.parquet")
    return tmp_path


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    made = Servers()
    yield made
    made.close()


@pytest.fixture(params=["here", "server"])
def place(home: Path, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> Path:
    """What `LASTING` says; the folder in which analysts type: the steward's, or one whose file names a server."""
    assert app.main([*INIT, *LASTING]) == 0
    assert app.main(["check", "people.toml"]) == 0
    assert app.main(["register", "people.toml"]) == 0
    capsys.readouterr()
    if request.param == "here":
        return home
    (home / "office").mkdir()
    open_office(home, home / "office", request.getfixturevalue("servers"), "wages")
    return home / "office"


def test_what_init_is_told_is_registered_and_asked(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with contextlib.chdir(place):
        assert app.main(["mean", "people.toml", "wage", "--where", "region = 'north'", "--json"]) == 0
    assert "zcdp delta 1/1000000" in capsys.readouterr().out
    with eps.Dataset.from_toml("people.toml") as people:
        assert people.count(by="region").value == {"north": 30, "south": 30}
        assert people.statement(1).term is not None
        assert people.statement(0).term is None
    with contextlib.chdir(place):
        assert app.main(["budget", "people.toml", "--questions", "50"]) == 0
    assert "zcdp" in capsys.readouterr().out


def test_rho_is_named_wherever_it_is_shown(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the part of what was granted: an epsilon of .1 beside a charge of .00003 would say nothing."""
    asked = ["mean", "people.toml", "wage", "--mechanism", "weighted"]
    for command in (
        asked, [*asked, "--dry-run"], ["plan", "people.toml", "count"],
        ["sql", "people.toml", "SELECT SUM(wage) FROM people"],
        ["batch", "people.toml", "mean wage", "count"], ["batch", "people.toml", "mean wage", "count", "--dry-run"],
        ["ledger", "show", "people.toml"], ["ledger", "answers", "1", "people.toml"],
    ):  # fmt: skip
        with contextlib.chdir(place):
            assert app.main(command) == 0, command
        told = " ".join(capsys.readouterr().out.split())
        assert "in rho, which adds up where epsilons do not; in brackets: of the grant. Delta: 1e-06." in told, command
        assert re.search(r"\([\d.]+%\)", told), command
    assert app.main(["ledger", "history", "people.toml"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "charged in rho" in told
    assert re.search(r"\([\d.]+%\) of 0\.1", told)
    with eps.Dataset.from_toml("people.toml") as people:
        for shown in (people.describe(), people.remaining(), people.ledger.history(), people.answers()[1].sheets()[1]):
            assert "in rho, which adds up" in " ".join(str(shown).split()), type(shown)
        tiny, measure = people.batch(share=1e-3), people.remaining().measure
        tiny.count()
        whole = measure.amount(measure.units(10**8))
        assert tiny.plan().charges[0.1] == pytest.approx(1e-3 * whole, rel=1e-5), "not to 9 digits, as epsilons are"


def test_people_who_are_gone_are_not_counted(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(INIT) == 0
    assert app.main(["register", "people.toml"]) == 0
    pa.parquet.write_table(pa.parquet.read_table("wages.parquet").slice(0, 30), "wages.parquet")
    assert app.main(["register", "people.toml", "--yes"]) == 0
    assert app.main(["person", "withdraw", "people.toml", "1"]) == 0
    for named in ("people.toml", "wages.ledger"):
        capsys.readouterr()
        assert app.main(["ledger", "show", named]) == 0
        assert "Public: 10. Withdrawn: 1. On no roster now, and not counted: 30." in capsys.readouterr().out
        assert app.main(["ledger", "show", named, "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert [level["people"] for level in told["levels"]] == [10, 9]


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
