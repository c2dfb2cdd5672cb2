"""Rollbacks while processes ask: the witness, a process of its own, lets none of them go on with an older copy.

Every client keeps a head of its own, as a user of another machine would: the witness is all that they share.
"""

from __future__ import annotations

import os
import pickle
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

import epsilons.ledger
from epsilons.errors import LedgerError
from epsilons.guarantee import NANO
from epsilons.ledger import moving
from support.ledger_clients import run
from support.ledger_copies import put_back
from support.ledger_recount import balances
from support.ledger_servers import fresh
from support.ledgers import person
from support.witnesses import running

CLIENTS = 8
#: Where clients are killed: before and after the commit, before the witness and before their own head.
PLACES = ("reserving", "witnessing", "anchoring", "reserved", "touching", "touched", "storing", "stored")


def roll_back_once(url: str, folder: Path, luck: Random, turn: int) -> None:
    """One rollback under 8 clients, 2 of them killed meanwhile; the newest copy is let through again."""
    flags = folder / f"turn {turn}"
    flags.mkdir()
    killed = luck.sample(range(CLIENTS), 2)
    jobs = [
        {
            "work": "ask again", "url": url, "anchor": str(folder / f"head {n}"), "name": n, "flags": str(flags),
            "questions": [f"{turn} of {n}"], "fault": luck.choice(PLACES), "armed": n in killed and f"{turn} of {n}",
        }
        for n in range(CLIENTS)
    ]  # fmt: skip
    rolling = {
        "work": "roll back", "url": url, "anchor": str(folder / "rolling"), "flags": str(flags),
        "names": list(range(CLIENTS)),  # also those that are to be killed: one that is late would be refused instead
    }  # fmt: skip
    ((*told, _),) = run([[*jobs, rolling]])
    for n, one in enumerate(told):
        after = [words for words in one["notes"] if words[0] == "refused"]
        assert one["end"] == ("killed" if n in killed else "ended"), one
        assert after == ([] if n in killed else [["refused", "as it is"], ["refused", "opened anew"]]), one
    for who in range(CLIENTS + 1):  # the last one is new
        with pytest.raises(LedgerError, match="older than"):
            epsilons.ledger.open(url, witness=folder / (f"head {who}" if who < CLIENTS else f"new {turn}"))
    put_back(url, pickle.loads((flags / "newest").read_bytes()))
    book = epsilons.ledger.open(url, witness=folder / "head 0")
    recount = book.verify()
    assert balances(book.export()) == {c.id: (c.granted, c.spent, c.reserved, c.people) for c in recount.cohorts}
    released = {words[2] for one in told for words in one["notes"] if words[0] == "released"}
    assert released <= {stored.answer.hex() for stored in book.answers()}
    book.close()


def begin(url: str, address: str) -> None:
    book = epsilons.ledger.open(url, witness=address)
    book.settle_terms("absent", 1)
    book.enroll([person("ann"), person("bob")], [10**6 * NANO, None])
    book.close()


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.integration)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgresql":
        return fresh(request.getfixturevalue("postgres_server"))
    return f"sqlite:///{tmp_path}/people.ledger"


def test_a_rollback_is_refused_to_every_client(url: str, tmp_path: Path) -> None:
    with running(tmp_path) as (address, _):
        begin(url, address)
        roll_back_once(url, tmp_path, Random(16), 0)


@pytest.mark.soak
@pytest.mark.figure("figure_16")
@pytest.mark.parametrize("piece", range(5))
def test_a_hundred_of_a_hundred_rollbacks_are_refused(
    url: str, piece: int, tmp_path: Path, record_property: Callable[[str, int], None]
) -> None:
    """The witness is killed and started again in between."""
    port = 0
    for turn in range(10):
        with running(tmp_path, port) as (address, _):
            if turn == 0:
                begin(url, address)
            port = int(address.rsplit(":", 1)[1])
            roll_back_once(url, tmp_path, Random(), turn)
    record_property("size", 10)


def test_another_user_of_the_computer_reads_nothing() -> None:
    """Of the witness, the ledger, its backups and what they replace, in a folder that everybody can enter."""
    folder = Path(tempfile.mkdtemp(prefix="epsilons-test-"))
    try:
        folder.chmod(0o755)
        (folder / "for everybody").touch(0o644)
        with running(folder) as (address, _):
            url = f"sqlite:///{folder}/people.ledger"
            begin(url, address)
            with closing(epsilons.ledger.open(url)) as book:
                moving.back_up(book, str(folder / "a.backup"))
            moving.restore(str(folder / "a.backup"), url)[0].close()
            moving.move(url, f"{url}.new").close()
            own = {one.name: stat.S_IMODE(one.stat().st_mode) for one in folder.iterdir() if one.is_file()}
            assert own.keys() >= {"witness.store", "witness.store-wal", "witness.key", "people.ledger"}
            assert own.keys() >= {"a.backup", "people.ledger.replaced-1", "people.ledger.new"}
            assert {mode for name, mode in own.items() if name != "for everybody"} == {0o600}
            if os.geteuid() != 0 or shutil.which("setpriv") is None:
                pytest.skip("only root can become another user here")
            as_other = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "cat")
            read = [
                name
                for name in own
                if subprocess.run([*as_other, folder / name], capture_output=True, check=False).returncode == 0
            ]
            assert read == ["for everybody"]
    finally:
        shutil.rmtree(folder)
