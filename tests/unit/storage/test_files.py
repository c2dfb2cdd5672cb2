"""Files of our own are for nobody else, folders of killed processes are swept, and another's file is left alone."""

from __future__ import annotations

import hashlib
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import epsilons.ledger
from epsilons.cli.app import main
from epsilons.collection import Store
from epsilons.collection.sealing import keep_secret
from epsilons.engines.duckdb import DuckDB
from epsilons.errors import EpsilonsError, LedgerError, ProtocolError
from epsilons.storage import files
from epsilons.storage.base import watchers
from support.ledgers import nano, person
from support.wages import wages


@pytest.fixture(params=[0o000, 0o022, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def modes(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): stat.filemode(path.stat().st_mode) for path in sorted(folder.rglob("*")) if path
    }


def test_everything_is_its_owners_alone(tmp_path: Path, umask: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ledger, log, index, head, lock, folders, store, key, journal: while they are open, and from the first moment."""
    monkeypatch.setenv("XDG_STATE_HOME", f"{tmp_path}/state/of/mine")
    address = f"sqlite:///{tmp_path}/people.ledger"
    made: set[str] = set()

    def look(place: str) -> None:
        made.update(modes(tmp_path))
        assert set(modes(tmp_path).values()) <= {"-rw-------", "drwx------"}, place

    watchers.append(look)
    try:
        with closing(epsilons.ledger.open(address)) as ledger, closing(Store(f"sqlite:///{tmp_path}/one.store")):
            ledger.enroll([person("ann")], [nano("1")])
            keep_secret(tmp_path / "one.key")
            if umask == 0:
                (tmp_path / "journal.jsonl").touch(0o644)  # of an earlier export
            assert main(["ledger", "export", address, "--output", f"{tmp_path}/journal.jsonl"]) == 0
            look("all of it")
    finally:
        watchers.remove(look)
    names = {Path(name).name for name in made}
    assert {"people.ledger", "people.ledger-wal", "people.ledger-shm", "one.store-wal", "one.key"} <= names
    assert {"state", "of", "mine", "ledgers", "journal.jsonl", f"{ledger.id}.json", f"{ledger.id}.json.lock"} <= names


def test_a_folder_that_was_there_keeps_its_mode(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir(0o755)
    files.make_folder(there / "new" / "newer")
    assert modes(tmp_path) == {"there": "drwxr-xr-x", "there/new": "drwx------", "there/new/newer": "drwx------"}


# Folders of dead processes --------------------------------------------------------------------------------------------

#: A process that spills, and is then killed or goes on.
HOLDING = """
import sys, time
from epsilons.engines.duckdb import DuckDB
from support.wages import wages
engine = DuckDB(wages())
open(engine._spill + "/rows", "w").write("ann earns 31")
print(engine._spill, flush=True)
time.sleep(600)
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def holding(here: Path) -> tuple[subprocess.Popen[str], Path]:
    tests, command = Path(__file__).parents[2], [sys.executable, "-c", HOLDING]
    surroundings = {**os.environ, "TMPDIR": str(here)}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=surroundings, cwd=tests)
    assert process.stdout is not None
    folder = Path(process.stdout.readline().strip())
    process.stdout.close()
    return process, folder


def test_what_a_killed_process_spilled_is_removed_by_the_next_one_and_a_living_one_keeps_its_own(here: Path) -> None:
    killed, left_behind = holding(here)
    try:
        assert modes(here)[left_behind.name] == "drwx------"
        first = DuckDB(wages())
        assert (left_behind / "rows").exists(), "a living process has lost its rows"
        assert Path(first._spill).exists()
    finally:
        killed.send_signal(signal.SIGKILL)
        killed.wait()
    assert (left_behind / "rows").exists()
    second = DuckDB(wages())
    assert not left_behind.exists()
    assert Path(first._spill).exists(), "this process sweeps itself"
    first.close()
    second.close()
    assert list(here.iterdir()) == []


def test_only_our_own_folders_are_swept(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of another user, of another name, half made, a link into someone's home: all stay."""
    home, link = here / "home", here / "epsilons-held-link"
    home.mkdir()
    (home / "letter").write_text("dear")
    link.symlink_to(home)
    for name in ("epsilons-new-half", "epsilons-demo-other", "something"):
        (here / name).mkdir()
    (here / "epsilons-held-file").write_text("a file")
    others = here / "epsilons-held-others"
    others.mkdir()
    before = sorted(here.rglob("*"))
    with monkeypatch.context() as patch:
        patch.setattr("epsilons.storage.files.os.geteuid", lambda: -1)
        files.release_folder(files.claim_folder())
    assert sorted(here.rglob("*")) == before
    files.release_folder(files.claim_folder())
    assert sorted(here.rglob("*")) == [path for path in before if path != others]


def test_a_forked_child_leaves_its_parents_folder_alone(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = files.claim_folder()
    held = files._held[folder]
    with monkeypatch.context() as patch:
        patch.setattr("epsilons.storage.files.os.getpid", lambda: -1)
        patch.setattr("epsilons.storage.files.os.close", lambda handle: None)
        files.release_folder(folder)
    assert Path(folder).exists()
    files._held[folder] = held
    files.release_folder(folder)
    assert not Path(folder).exists()


# Another's file ------------------------------------------------------------------------------------------------------


def contents(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def foreign(folder: Path) -> Iterator[Path]:
    """A database of another program, a text, and the tables of an aggregator."""
    database = folder / "other.sqlite"
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("CREATE TABLE letters (text)")
        connection.execute("INSERT INTO letters VALUES ('dear')")
        connection.commit()
    yield database
    text = folder / "notes.txt"
    text.write_text("source = 'wages.parquet'\n" * 200)
    yield text
    Store(f"sqlite:///{folder}/one.store").close()
    yield folder / "one.store"


def test_a_file_of_someone_else_is_refused_and_not_touched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in foreign(tmp_path):
        before = contents(tmp_path)
        for command in (["show"], ["history"], ["verify"], ["person", "17"], ["export"], ["adopt"]):
            assert main(["ledger", *command, str(path)]) == 7
            assert "something else than a ledger; nothing in it was changed" in " ".join(
                capsys.readouterr().err.split()
            )
        for options in ({}, {"create": False}, {"accept_loss": True}):
            with pytest.raises(LedgerError, match="something else than a ledger"):
                epsilons.ledger.open(f"sqlite:///{path}", **options)  # type: ignore[arg-type]
        kept = {name: digest for name, digest in contents(tmp_path).items() if not name.endswith(("-wal", "-shm"))}
        assert kept == before


def test_a_ledger_is_no_store_and_an_empty_file_is_no_ledger_yet(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/people.ledger"
    (tmp_path / "people.ledger").touch()
    with pytest.raises(LedgerError, match="There is no ledger at sqlite:"):
        epsilons.ledger.open(address, create=False)
    assert (tmp_path / "people.ledger").stat().st_size == 0
    with closing(epsilons.ledger.open(address)) as ledger:
        assert ledger.cohorts() == ()
        with pytest.raises(ProtocolError, match="something else than a store"):
            Store(address)
    with pytest.raises(EpsilonsError, match="could not be reached"):
        epsilons.ledger.open(f"sqlite:///{tmp_path}/nowhere/people.ledger")


# Faults --------------------------------------------------------------------------------------------------------------


def test_no_variable_stops_a_process() -> None:
    """`EPSILONS_FAULT` did, in production too."""
    program = "from epsilons import ledger; ledger.open().settle_terms('absent', 1); print('done')"
    surroundings = {**os.environ, "EPSILONS_FAULT": "enrolling"}
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, env=surroundings)
    _, status = os.waitpid(child.pid, os.WUNTRACED)
    if os.WIFSTOPPED(status):
        child.kill()
    child.returncode = 0
    assert child.stdout is not None
    assert (os.WIFSTOPPED(status), child.stdout.read()) == (False, b"done\n")
    child.stdout.close()
    assert watchers == []
