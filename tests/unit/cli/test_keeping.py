"""`epsilons ledger backup`, `restore`, `move` and `retire`, as typed: on files, on PostgreSQL, between the two."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import epsilons as eps
import epsilons.ledger
from epsilons.cli import app
from epsilons.storage import show_address
from support.ledger_servers import fresh


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.integration)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], str]:
    """Addresses where nothing stands; files are in folders of their own."""
    made: dict[str, str] = {}

    def find(name: str) -> str:
        if name not in made and request.param == "postgresql" and name != "there":
            made[name] = fresh(request.getfixturevalue("postgres_server"))
        (tmp_path / name).mkdir(exist_ok=True)
        return made.setdefault(name, f"sqlite:///{tmp_path}/{name}/pay.ledger")

    return find


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def begin(url: str) -> None:
    table = pa.table({"id": list(range(50)), "wage": [20.0] * 50})
    eps.Dataset.register(table, name="pay", person="id", preferences=1.0, ledger=url, bounds={"wage": (0, 100)}).close()


def count(url: str, share: float) -> tuple[int | None, float]:
    """The number of the release, which a repeated question does not change, and its value."""
    with eps.Dataset.open("pay", ledger=url) as people:
        answer = people.count(share=share)
    return answer.number, float(answer.value)


def test_a_ledger_is_kept_by_commands_alone(
    place: Callable[[str], str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*arguments: str, status: int = 0) -> Any:
        assert app.main(["ledger", *arguments]) == status
        seen = capsys.readouterr()
        return json.loads(seen.out) if "--json" in arguments else " ".join(f"{seen.out}{seen.err}".split())

    url = place("first")
    begin(url)
    first = count(url, 0.1)
    backup = str(tmp_path / "pay.backup")
    assert run("backup", backup, url).startswith("Copied up to line ")
    assert stat.S_IMODE((tmp_path / "pay.backup").stat().st_mode) == 0o600
    # Nobody is there to be asked; nothing was lost so far.
    assert "Say --yes as well." in run("restore", backup, url, status=2)
    assert run("restore", backup, url, "--yes") == "Restored. Nothing was lost."
    # To another database and back; the snapshot stays where it is, and the old copy refuses whatever it is asked.
    for before, after in ((url, place("there")), (place("there"), place("back"))):
        assert run("move", after, before) == f"Moved to {show_address(after)}."
        assert count(after, 0.1) == first
        assert run("verify", after, "--json")["snapshots"] == {"pay": True}
        for asked in (("show",), ("verify",), ("adopt", "--accept-loss", "--yes"), ("backup", f"{backup}.late")):
            assert "has moved; this is the old copy" in run(*asked, before, status=7)
    url, backup = place("back"), str(tmp_path / "later.backup")
    run("backup", backup, url)
    assert count(url, 0.2)[0] == 2
    told = run("restore", backup, url, "--yes", "--json")
    assert (told["counts_as_spent"], told["everything"]) == (None, True)
    with closing(epsilons.ledger.open(url, create=False)) as book:
        assert set(book.remaining().nano.values()) == {0}
        assert len(book.history()) == 1
    assert "for good: say --yes" in run("retire", url, status=2)
    assert run("retire", url, "--yes", "--json")["state"] == "retired"
    assert count(url, 0.1) == first
    assert "This ledger is retired." in run("move", place("never"), url, status=7)
