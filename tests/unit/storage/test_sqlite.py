"""How the database is used: durable, alone while writing, silent about what it holds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import event, text

import epsilons.ledger
from epsilons.errors import LedgerError
from epsilons.ledger.opening import OWNER
from epsilons.storage.sqlite import Sqlite
from support.ledgers import nano, person


def test_a_commit_waits_for_the_disk(tmp_path: Path) -> None:
    database = Sqlite(f"{tmp_path}/people.ledger", OWNER)
    with database.write() as connection:
        assert connection.execute(text("PRAGMA journal_mode")).scalar_one() == "wal"
        assert connection.execute(text("PRAGMA synchronous")).scalar_one() == 2
    database.close()


def test_a_writer_takes_the_lock_first(tmp_path: Path) -> None:
    book = epsilons.ledger.open(f"sqlite:///{tmp_path}/people.ledger")
    seen: list[str] = []
    engine = book._database._engine  # type: ignore[attr-defined]
    event.listen(engine, "before_cursor_execute", lambda *given: seen.append(given[2]))
    book.settle_terms("absent", 1)
    begins = [statement for statement in seen if statement.startswith("BEGIN")]
    # A look first, then the change, then a look at what the head is now.
    assert begins == ["BEGIN", "BEGIN IMMEDIATE", "BEGIN"]
    book.close()


def test_a_ledger_in_memory_does_not_survive_a_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    book = epsilons.ledger.open()
    monkeypatch.setattr("epsilons.storage.base.os.getpid", lambda: -1)
    with pytest.raises(LedgerError, match="belongs to the process"):
        book.cohorts()


def test_a_ledger_in_a_file_opens_its_own_connection_after_a_fork(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = Sqlite(f"{tmp_path}/people.ledger", OWNER)
    before = database._engine
    with monkeypatch.context() as patch:
        patch.setattr("epsilons.storage.base.os.getpid", lambda: -1)
        with database.read() as connection:
            assert connection.engine.pool is not before.pool
    database.close()
    before.dispose()


def test_two_ledgers_in_memory_are_apart() -> None:
    one, two = epsilons.ledger.open(), epsilons.ledger.open()
    one.enroll([person("ann")], [nano("1")])
    assert two.cohorts() == ()
    assert one.id != two.id


def test_importing_the_room_does_not_load_the_database() -> None:
    program = "import sys, json, epsilons.ledger; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "sqlalchemy" not in json.loads(done.stdout)


def test_a_read_only_place_is_refused_in_our_words(tmp_path: Path) -> None:
    with pytest.raises(LedgerError):
        epsilons.ledger.open(f"sqlite:///{tmp_path}/missing/people.ledger")
    (tmp_path / "file").write_text("")
    with pytest.raises(LedgerError, match=r"cannot be (written|read)"):
        epsilons.ledger.open(f"sqlite:///{tmp_path}/people.ledger", anchor=tmp_path / "file" / "head")
