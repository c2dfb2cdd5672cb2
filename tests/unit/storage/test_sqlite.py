"""How the database is used: durable, alone while writing, silent about what it holds."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

import epsilons.ledger
from epsilons.errors import LedgerError
from epsilons.ledger.opening import OWNER
from epsilons.storage.base import spread
from epsilons.storage.sqlite import Sqlite
from support.ledgers import nano, person


def test_a_commit_waits_for_the_disk(tmp_path: Path) -> None:
    database = Sqlite(f"{tmp_path}/people.ledger", OWNER)
    with database.write() as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
        assert connection.execute("PRAGMA synchronous").fetchone()[0] == 2
    database.close()


def test_a_writer_takes_the_lock_first(tmp_path: Path) -> None:
    book = epsilons.ledger.open(f"sqlite:///{tmp_path}/people.ledger")
    seen: list[str] = []
    (driver,) = book._database._idle
    driver.set_trace_callback(seen.append)
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
    with database.read():
        pass
    (before,) = database._idle
    with monkeypatch.context() as patch:
        patch.setattr("epsilons.storage.base.os.getpid", lambda: -1)
        with database.read() as connection:
            assert connection is not before
        database.close()
    # The one before is its own process's, and as good as it was.
    assert before.execute("SELECT 1").fetchone()[0] == 1
    before.close()


def test_few_connections_are_kept_however_many_read_at_once(tmp_path: Path) -> None:
    database = Sqlite(f"{tmp_path}/people.ledger", OWNER)
    with ExitStack() as all_at_once:
        drivers = {all_at_once.enter_context(database.read()) for _ in range(7)}
    assert len(drivers) == 7
    assert len(database._idle) == 4
    assert set(database._idle) < drivers
    database.close()


def test_who_has_a_file_open_is_refused_once_another_stands_in_its_place(tmp_path: Path) -> None:
    """What is written to a file that was put aside, or removed, is seen by nobody else."""
    path, there = tmp_path / "people.ledger", "Another file stands where this ledger was opened"
    with closing(Sqlite(str(path), OWNER)) as database, ExitStack() as several:
        with database.write() as connection:
            connection.execute("CREATE TABLE ledger (letter TEXT)")
        for _ in range(3):
            several.enter_context(database.read())
        several.close()
        database.copy(str(tmp_path / "other"))
        for part in ("", "-wal", "-shm"):
            path.with_name(path.name + part).rename(tmp_path / f"aside{part}")
        (tmp_path / "other").rename(path)
        for enter in [database.write, *[database.read] * 7]:
            with pytest.raises(LedgerError, match=there):
                several.enter_context(enter())
        with closing(Sqlite(str(path), OWNER)) as anew, anew.write() as connection:
            connection.execute("INSERT INTO ledger VALUES ('a')")
        for part in tmp_path.glob("people.ledger*"):
            part.unlink()
        with pytest.raises(LedgerError, match=there), database.write():
            pass
        assert not path.exists()
        # The very file is welcome again.
        (tmp_path / "aside").rename(path)
        with database.write() as connection:
            connection.execute("INSERT INTO ledger VALUES ('b')")


def test_a_list_stands_for_all_its_values() -> None:
    with closing(Sqlite(None, OWNER)) as database, database.write() as connection:
        connection.execute("CREATE TABLE letters (id INTEGER, letter TEXT)")
        connection.insert_many("letters", [(number, chr(97 + number)) for number in range(9)])
        for some in ([1, 3, 77], [2], []):
            names, values = spread("id", some)
            found = connection.execute(f"SELECT letter FROM letters WHERE id IN ({names}) ORDER BY id", values)
            assert [row["letter"] for row in found] == [chr(97 + number) for number in some if number < 9]


def test_two_ledgers_in_memory_are_apart() -> None:
    one, two = epsilons.ledger.open(), epsilons.ledger.open()
    one.enroll([person("ann")], [nano("1")])
    assert two.cohorts() == ()
    assert one.id != two.id


def test_a_ledger_in_a_file_loads_no_driver_of_another_database_and_no_arrow(tmp_path: Path) -> None:
    program = f"""
import json, sys
from fractions import Fraction
import epsilons.ledger
assert "sqlite3" not in sys.modules
book = epsilons.ledger.open("sqlite:///{tmp_path}/people.ledger", witness=False)
book.settle_terms("absent", 1)
book.enroll([bytes(16)], [10**9])
may = book.allowance(Fraction(1, 10))
book.store(book.mark_read(book.reserve(bytes(32), may.nano, epoch=may.epoch, kind="count").number).number, b"1")
print(json.dumps(sorted(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not {"psycopg", "pyarrow"} & set(json.loads(done.stdout))


def test_a_read_only_place_is_refused_in_our_words(tmp_path: Path) -> None:
    with pytest.raises(LedgerError):
        epsilons.ledger.open(f"sqlite:///{tmp_path}/missing/people.ledger")
    (tmp_path / "file").write_text("")
    with pytest.raises(LedgerError, match=r"cannot be (written|read)"):
        epsilons.ledger.open(f"sqlite:///{tmp_path}/people.ledger", witness=tmp_path / "file" / "head")
