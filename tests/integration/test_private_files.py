"""Whatever commands write is its owner's alone, whoever else is on the computer, and however open the owner's umask is.

What a user makes public, and what is no secret (a question, terms that go to everybody), is named here.
"""

from __future__ import annotations

import os
import shlex
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from epsilons.cli.app import main
from epsilons.storage.base import watchers

#: Written by the user, or for everybody.
PUBLIC = {"wages.csv", "gateway.toml", "ward.toml"}
COMMANDS = [
    "init wages.csv --person id --preferences privacy --level strict=0.1 --level open=1 --bounds wage=0,100 "
    "--type id=int --type wage=float --type privacy=text --rows-per-person 1 --yes",
    "register people.toml",
    "mean people.toml wage --share 0.1",
    'median people.toml wage --share 0.1 --where "wage > 30"',
    "person level people.toml 7 strict",
    "count people.toml --share 0.1",
    "register people.toml",
    "ledger backup people.backup people.toml",
    "ledger export people.toml --output journal.jsonl",
    "ledger restore people.backup people.toml --yes",
    "ledger verify people.toml",
    "ledger move moved/people.ledger people.toml",
    "keys add gateway.toml office",
    "collect design ward.toml --question Recurrence? --option small --option large --sampling 0.45",
    "collect respond ward.toml --answer small --round 1 --state mine",
]


def list_open(folder: Path) -> Iterator[Path]:
    """What others can read, write or enter below a folder that they can enter."""
    for one in folder.iterdir():
        mode = one.lstat().st_mode
        if mode & 0o077 and not stat.S_ISDIR(mode):
            yield one
        elif mode & 0o077:
            yield from list_open(one)


@pytest.fixture
def open_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that everybody may enter, for all that is written, by a user who would let others read and write it."""
    for name in ("home", "tmp", "home/moved"):
        (tmp_path / name).mkdir(0o755)
    monkeypatch.chdir(tmp_path / "home")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home" / "state"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    before = os.umask(0)
    yield tmp_path
    os.umask(before)


def test_another_user_reads_nothing_that_a_command_writes(open_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seen: set[str] = set()

    def look(place: str) -> None:
        assert {one.name for one in list_open(open_home)} <= PUBLIC, place
        seen.update(str(one.relative_to(open_home)) for one in open_home.rglob("*"))

    rows = [f"{n},{20 + n % 50},{'strict' if n % 2 else 'open'}" for n in range(60)]
    # One with a quote too many: the file is mended in a copy.
    Path("wages.csv").write_text("\n".join(["id,wage,privacy", *rows[:-1], '59,"30,open', ""]))
    Path("gateway.toml").write_text('store = "sqlite:///gateway.store"\ndatasets = ["people.toml"]\n')
    watchers.append(look)
    try:
        for line in COMMANDS:
            assert main(shlex.split(line)) == 0, (line, capsys.readouterr().err)
            look(line)
    finally:
        watchers.remove(look)
    names = {Path(one).name for one in seen}
    wanted = {"people.toml", "wages.ledger-wal", "people.backup", "journal.jsonl", "wages.ledger.replaced-1", "mine"}
    assert names >= wanted | {"gateway.store", "places", "nonce"}
    assert any(one.startswith("tmp/epsilons-held-") for one in seen)


def test_another_user_reads_nothing_of_a_server(open_home: Path) -> None:
    command = [sys.executable, "-m", "epsilons", "serve", "--demo", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        assert server.stdout.readline().startswith("http://")
        found = {one.name for one in open_home.rglob("*")}
        opened = {one.name for one in list_open(open_home)}
        server.terminate()
    assert found >= {"gateway.store", "wages.ledger", "snapshots"}
    assert not opened
