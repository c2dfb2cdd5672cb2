"""After registering nothing asks the source: it may be gone, or hold anything, and every answer stays as it was."""

from __future__ import annotations

import datetime
import hashlib
import itertools
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import epsilons as eps
from epsilons.cli import app
from epsilons.errors import DataError
from epsilons.statistics.catalogue import CATALOGUE
from support.lengths import short_and_long
from support.small_tables import people_table

PEOPLE = 120
NOON = datetime.datetime(2026, 11, 2, 12, tzinfo=datetime.UTC)
LEVELS = {"strict": 0.5, "standard": 1.0, "open": 2.0, "public": eps.PUBLIC}
KEYS = {"region": ["north", "south", "east"]}
FILE = """
name = "wages"
source = "wages.parquet"
person = "id"
version = "1"
ledger = "sqlite:///wages.ledger"

[preferences]
column = "privacy"
levels = { strict = 0.5, standard = 1, open = 2, public = "public" }

[bounds]
wage = [0, 100]
age = [0, 120]
"""

#: What each statistic needs to be asked; a new one needs a line.
ASKED: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "count": ((), {"where": "age >= 40"}),
    "sum": (("wage",), {"by": KEYS}),
    "mean": (("wage",), {"where": "region = 'north'"}),
    "variance": (("wage",), {}),
    "median": (("wage",), {}),
    "quantile": (("wage",), {"q": 0.25}),
    "min": (("age",), {}),
    "max": (("age",), {}),
    "kth_largest": (("age",), {"k": 3}),
    "histogram": (("region",), {"categories": KEYS["region"]}),
    "mode": (("region",), {"among": KEYS["region"]}),
    "top": (("region",), {"k": 1, "among": KEYS["region"], "total": "wage"}),
    "covariance": (("wage",), {"other": "age"}),
    "correlation": (("wage",), {"other": "age"}),
    "linear_regression": (("wage",), {"features": ["age"]}),
    "logistic_regression": (("union",), {"features": ["age"], "classes": ["no", "yes"]}),
}


def in_a_batch(people: eps.Dataset) -> list[Any]:
    with people.batch(share=0.04) as ask:
        pending = [ask.count(), ask.mean("wage"), ask.median("age")]
    return [one.release.to_dict() for one in pending]


QUESTIONS: dict[str, Callable[[eps.Dataset], Any]] = {
    **{
        name: lambda people, name=name: getattr(people, name)(*ASKED[name][0], share=0.04, **ASKED[name][1]).to_dict()  # type: ignore[misc]
        for name in ASKED
    },
    "batch": in_a_batch,
    "sql": lambda people: str(people.sql("SELECT COUNT(*), AVG(wage) FROM people WHERE age > 30", share=0.04)),
    "relation": lambda people: str(people.relation("wage", share=0.04)),
    "plan": lambda people: str(people.plan("mean", "wage", share=0.04)),
    "apply": lambda people: people.apply(lambda data, epsilon: len(data), columns=["age"], share=0.04).to_dict(),
    "describe": lambda people: str(people.describe().levels),
    "statement": lambda people: str(people.statement(3)),
    "level": lambda people: people.set_level({3: "strict"}),
    "withdraw": lambda people: people.withdraw([5]),
    "after a change": lambda people: people.count(share=0.04).to_dict(),
}


def test_every_statistic_is_asked() -> None:
    assert set(ASKED) == set(CATALOGUE)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path]]:
    """(a folder with a source and its ledger, registered; a copy of it all)."""
    root = tmp_path_factory.mktemp("poisoned")
    home, kept = root / "home", root / "kept"
    home.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(home / "state"))
        pa.parquet.write_table(people_table(PEOPLE), home / "wages.parquet")
        (home / "people.toml").write_text(FILE)
        assert app.main(["register", str(home / "people.toml")]) == 0
        shutil.copytree(home, kept)
        yield home, kept


def put_back(world: tuple[Path, Path]) -> Path:
    home, kept = world
    shutil.rmtree(home)
    shutil.copytree(kept, home)
    return home


def ask_everything(home: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """With the same random bits every time, and no way to the source."""
    counter = itertools.count()

    def known(size: int) -> bytes:
        return hashlib.shake_256(b"%d" % next(counter)).digest(size)

    def closed(*_given: Any, **_named: Any) -> Any:
        raise AssertionError("the source was opened")

    with monkeypatch.context() as patch:
        patch.setattr("epsilons.noise.entropy.os.urandom", known)
        patch.setattr("epsilons.ledger.journal.now", lambda: NOON)
        patch.setattr("epsilons.dataset.registering.open_table", closed)
        patch.setattr("epsilons.dataset.preferences.open_table", closed)
        with eps.Dataset.from_toml(home / "people.toml") as people:
            return {name: ask(people) for name, ask in QUESTIONS.items()}


def _other_rows(source: Path) -> None:
    pa.parquet.write_table(people_table(3 * PEOPLE, seed=9), source)


def _folder(source: Path) -> None:
    source.unlink()
    source.mkdir()


def _endless(source: Path) -> None:
    source.unlink()
    os.mkfifo(source)


POISONS: dict[str, Callable[[Path], None]] = {
    "deleted": Path.unlink,
    "truncated": lambda source: os.truncate(source, 100),
    "emptied": lambda source: os.truncate(source, 0),
    "replaced": _other_rows,
    "nonsense": lambda source: source.write_bytes(os.urandom(2_000)) and None,
    "unreadable": lambda source: source.chmod(0),
    "a folder": _folder,
    "a pipe that nobody writes to": _endless,
}


@pytest.mark.parametrize("poisons", short_and_long(["replaced"], list(POISONS)))
def test_whatever_becomes_of_the_source_every_answer_stays(
    world: tuple[Path, Path], poisons: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = ask_everything(put_back(world), monkeypatch)
    for name in poisons:
        home = put_back(world)
        POISONS[name](home / "wages.parquet")
        found = ask_everything(home, monkeypatch)
        assert {key: (value, expected[key]) for key, value in found.items() if value != expected[key]} == {}, name


@pytest.mark.parametrize("poison", POISONS)
def test_no_poison_keeps_a_dataset_from_opening(world: tuple[Path, Path], poison: str) -> None:
    home = put_back(world)
    POISONS[poison](home / "wages.parquet")
    with eps.Dataset.from_toml(home / "people.toml") as people:
        assert people.describe().people == PEOPLE


def test_commands_ask_nothing_of_the_source(world: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    home = put_back(world)
    (home / "wages.parquet").unlink()
    file = str(home / "people.toml")
    for arguments in (
        ["count", file], ["mean", file, "wage"], ["sql", file, "SELECT COUNT(*) FROM people"], ["plan", file, "count"],
        ["person", "statement", file, "3"], ["ledger", "show", file], ["ledger", "verify", file],
    ):  # fmt: skip
        assert app.main(arguments) == 0, (arguments, capsys.readouterr().err)


# The snapshot -------------------------------------------------------------------------------------------------------


def snapshot(home: Path) -> Path:
    (of_the_ledger,) = (home / "wages.ledger.snapshots").iterdir()
    (found,) = of_the_ledger.iterdir()
    return found


def _flip(folder: Path) -> None:
    digests = folder / "digests"
    digests.write_bytes(bytes([digests.read_bytes()[0] ^ 1]) + digests.read_bytes()[1:])


HARM: dict[str, tuple[Callable[[Path], Any], str]] = {
    "missing": (shutil.rmtree, "is gone"),
    "changed": (_flip, "is not the registered one"),
    "others may read it": (lambda folder: folder.chmod(0o755), "Others may open the snapshot"),
    "others may enter it": (lambda folder: folder.chmod(0o710), "Others may open the snapshot"),
    "others may list it": (lambda folder: folder.parent.chmod(0o755), "Others may open the snapshot"),
}


@pytest.mark.parametrize("harm", HARM)
def test_a_snapshot_that_is_not_as_it_was_is_not_asked(world: tuple[Path, Path], harm: str) -> None:
    home = put_back(world)
    change, said = HARM[harm]
    change(snapshot(home))
    with pytest.raises(DataError, match=said):
        eps.Dataset.from_toml(home / "people.toml")


def test_a_folder_that_moved_with_ledger_and_snapshot_is_asked_as_before(
    world: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, moved = put_back(world), tmp_path / "moved"
    with eps.Dataset.from_toml(home / "people.toml") as people:
        before = people.count(share=0.1)
    shutil.copytree(home, moved)
    shutil.rmtree(home / "wages.ledger.snapshots")
    monkeypatch.setenv("XDG_STATE_HOME", str(moved / "state"))
    with eps.Dataset.from_toml(moved / "people.toml") as people:
        assert people.count(share=0.1).value == before.value
        assert people.verify() == {"wages": True}
    (moved / "linked").mkdir()
    (moved / "linked" / "wages.ledger").symlink_to(moved / "wages.ledger")
    with eps.Dataset.open("wages", ledger=f"sqlite:///{moved}/linked/wages.ledger") as people:
        assert people.count(share=0.1).value == before.value


def test_verifying_hashes_the_snapshots_that_can_be_reached(
    world: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    home = put_back(world)
    file = str(home / "people.toml")
    with eps.Dataset.from_toml(file) as people:
        assert people.verify() == {"wages": True}
        (kept,) = [one for one in snapshot(home).iterdir() if one.name.startswith("rows")]
        content, times = bytearray(kept.read_bytes()), kept.stat()
        content[len(content) // 2] ^= 1
        kept.write_bytes(content)
        os.utime(kept, ns=(times.st_atime_ns, times.st_mtime_ns))
        with pytest.raises(DataError, match=r"The snapshot of 'wages' is not the registered one"):
            people.verify()
        assert app.main(["ledger", "verify", file]) == 4
        assert "The snapshot of 'wages'" in capsys.readouterr().err
        shutil.rmtree(snapshot(home))
        assert people.verify() == {"wages": False}
    assert app.main(["ledger", "verify", file]) == 0
    assert "Snapshots that could not be reached: wages." in capsys.readouterr().out
    assert app.main(["ledger", "verify", file, "--json"]) == 0
    assert '"wages": false' in capsys.readouterr().out
