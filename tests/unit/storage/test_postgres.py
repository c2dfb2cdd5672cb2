"""What is PostgreSQL's own: addresses, turns, broken connections, forks."""

from __future__ import annotations

import builtins
import socket
import threading
import time
from contextlib import ExitStack, closing
from typing import Any

import pytest

import epsilons.ledger
from epsilons.cli.app import main
from epsilons.errors import LedgerError
from epsilons.ledger.opening import OWNER
from epsilons.storage import postgres, show_address
from epsilons.storage.postgres import Postgres
from support.ledger_servers import fresh
from support.ledgers import key, nano, person
from support.wages import dataset

pytestmark = pytest.mark.integration


@pytest.fixture
def url(postgres_server: str) -> str:
    return fresh(postgres_server)


@pytest.mark.parametrize(
    "bad",
    [
        "postgresql://",
        "postgresql://host",
        "postgresql://host/db?schema=a;b",
        "postgresql://host/db?schema=a&schema=b",
        "postgresql://host:port/db",
    ],
)
def test_an_address_names_a_database_and_perhaps_a_schema(bad: str) -> None:
    with pytest.raises(LedgerError, match="no ledger at such an address"):
        epsilons.ledger.open(bad)


def test_a_server_that_is_not_there_is_refused_in_our_words(tmp_path: Any) -> None:
    with pytest.raises(LedgerError, match="could not be reached") as refusal:
        epsilons.ledger.open(f"postgresql://secret:word@/people?host={tmp_path}")
    assert "secret" not in str(refusal.value)
    assert refusal.value.__cause__ is None


def test_a_server_that_says_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    assert postgres._split_address("postgresql://host/db?tcp_user_timeout=7", OWNER)[0]["tcp_user_timeout"] == "7"
    monkeypatch.setitem(postgres._DEADLINES, "connect_timeout", "2")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        start = time.monotonic()
        with pytest.raises(LedgerError, match="could not be reached"):
            epsilons.ledger.open(f"postgresql://127.0.0.1:{silent.getsockname()[1]}/people", witness=False)
        assert time.monotonic() - start < 20


def test_without_the_driver_the_extra_is_named(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(name: str, *rest: Any) -> Any:
        if name == "psycopg":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(LedgerError, match=r"epsilons\[postgres\]"):
        epsilons.ledger.open(url)


def test_two_ledgers_in_one_database_are_apart(postgres_server: str) -> None:
    one, two = (epsilons.ledger.open(fresh(postgres_server)) for _ in range(2))
    one.enroll([person("ann")], [nano("1")])
    assert two.cohorts() == ()
    assert one.id != two.id
    assert one.salt != two.salt
    one.close()
    two.close()


def test_the_tables_stand_in_a_schema_of_their_own(postgres_server: str) -> None:
    database = Postgres(postgres_server, OWNER)
    assert database.schema == "epsilons"
    for begin in (database.read, database.write):
        with begin() as connection:
            assert connection.execute("SHOW search_path").fetchone()[0] == "epsilons"
    # No longer than the transaction: behind a pooler the next one may be somebody else's.
    (driver,) = database._idle
    assert driver.execute("SHOW search_path").fetchone() != ("epsilons",)
    database.close()


def test_a_commit_waits_for_the_disk_and_a_writer_takes_its_turn_first(url: str) -> None:
    book = epsilons.ledger.open(url)
    with book._database.write() as connection:
        for setting in ("synchronous_commit", "fsync"):
            assert connection.execute(f"SHOW {setting}").fetchone()[0] == "on"
        assert connection.execute("SHOW transaction_isolation").fetchone()[0] == "read committed"
        mine = "pid = pg_backend_pid() AND locktype = 'advisory' AND granted"
        assert connection.execute(f"SELECT count(*) FROM pg_locks WHERE {mine}").fetchone()[0] == 1
    with book._database.read() as connection:
        assert connection.execute("SHOW transaction_isolation").fetchone()[0] == "repeatable read"
        assert connection.execute("SHOW transaction_read_only").fetchone()[0] == "on"
        assert connection.execute(f"SELECT count(*) FROM pg_locks WHERE {mine}").fetchone()[0] == 0
    book.close()


def test_a_server_that_does_not_wait_for_the_disk_is_refused(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("epsilons.storage.postgres._WRITE", "BEGIN; SELECT 1, 'off'")
    with pytest.raises(LedgerError, match="does not wait for the disk"):
        epsilons.ledger.open(url)


def test_a_writer_waits_for_the_one_before(url: str) -> None:
    book, other = epsilons.ledger.open(url), epsilons.ledger.open(url)
    order: list[str] = []

    def second() -> None:
        other.enroll([person("ann")], [nano("1")])
        order.append("second")

    with book._database.write() as connection:
        waiting = threading.Thread(target=second)
        waiting.start()
        while not connection.execute(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        ).fetchone()[0]:
            pass
        order.append("first")
    waiting.join()
    assert order == ["first", "second"]
    book.close()
    other.close()


def test_a_writer_that_hangs_loses_its_change_and_the_next_goes_on(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    book, other = epsilons.ledger.open(url), epsilons.ledger.open(url)
    with monkeypatch.context() as patch:
        read, write = book._database._begin
        brief = write.replace(f"'{postgres.STILL_SECONDS}s'", "'200ms'")
        assert brief != write
        patch.setattr(book._database, "_begin", (read, brief))
        hanging = book._database.write()
        connection = hanging.__enter__()
    connection.execute("UPDATE ledger SET epoch = 7")
    other.enroll([person("ann")], [nano("1")])
    with pytest.raises(LedgerError, match="connection to the ledger's database broke"):
        hanging.__exit__(None, None, None)
    assert book.epoch == 1
    assert book.verify().people == 1
    book.close()
    other.close()


def test_a_guard_holds_against_a_client_that_takes_no_turn(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The charge is judged in the UPDATE itself: a change that slipped in between reading and charging is seen."""
    book = epsilons.ledger.open(url)
    book.settle_terms("absent", 1)
    book.enroll([person("ann")], [nano("1")])
    database = Postgres(url, OWNER)
    real = postgres.Connection.executemany

    def slip_in(connection: postgres.Connection, sql: str, rows: Any) -> None:
        if "INTO charges" in sql:
            with closing(database._connect()) as rude:
                rude.execute(f"UPDATE {database.schema}.cohorts SET spent = granted, reserved = 0 WHERE id = 1")
        real(connection, sql, rows)

    monkeypatch.setattr(postgres.Connection, "executemany", slip_in)
    with pytest.raises(LedgerError, match="changed since this question was planned"):
        book.reserve(key("one"), {1: 1}, epoch=1, kind="count")
    assert book.cohorts()[0].left == 0
    assert book.history() == ()
    book.close()


def end_session(other: Postgres, session: int) -> None:
    """As a restart of the server would."""
    with other.read() as connection:
        assert connection.execute("SELECT pg_terminate_backend(:session, 5000)", {"session": session}).fetchone()[0]


def test_a_connection_that_broke_while_it_was_idle_does_not_matter(url: str) -> None:
    book, other = epsilons.ledger.open(url), Postgres(url, OWNER)
    for driver in book._database._idle:
        end_session(other, driver.info.backend_pid)
    assert book.cohorts() == ()
    book.settle_terms("absent", 1)
    other.close()
    book.close()


def test_a_process_has_few_connections_and_threads_wait_for_one(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    database = Postgres(url, OWNER)
    monkeypatch.setattr("epsilons.storage.postgres.TURN_SECONDS", 0.01)
    with ExitStack() as all_at_once:
        for _ in range(2 * postgres.CONNECTIONS):
            all_at_once.enter_context(database.read())
        with pytest.raises(LedgerError, match="could not be reached"), database.read():
            pass
    assert len(database._idle) == postgres.CONNECTIONS
    with database.read() as connection:
        assert connection.execute("SELECT 1").fetchone()[0] == 1
    database.close()


def test_a_broken_connection_is_said_and_the_next_question_goes_on(url: str) -> None:
    book = epsilons.ledger.open(url)
    book.settle_terms("absent", 1)
    book.enroll([person("ann")], [nano("1")])
    other = Postgres(url, OWNER)

    def broken() -> None:
        with book._database.write() as connection:
            end_session(other, connection.execute("SELECT pg_backend_pid()").fetchone()[0])
            connection.execute("SELECT 1").fetchone()[0]

    with pytest.raises(LedgerError, match="connection to the ledger's database broke") as refusal:
        broken()
    assert refusal.value.__cause__ is None
    book.reserve(key("one"), {1: 1}, epoch=1, kind="count")
    assert book.verify().releases == 1
    other.close()
    book.close()


def test_a_ledger_opens_its_own_connections_after_a_fork(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    database = Postgres(url, OWNER)
    with database.read():
        pass
    (before,) = database._idle
    with monkeypatch.context() as patch:
        patch.setattr("epsilons.storage.base.os.getpid", lambda: -1)
        with database.read() as connection:
            assert connection._driver is not before
        database.close()
    # The one before is its own process's, and as good as it was.
    assert before.execute("SELECT 1").fetchone() == (1,)
    before.close()


SECRETS = ("ann", "p@ss?word", "hunter2", "key-word", "/etc/pass", "p%40ss%3Fword")
ADDRESSES = {
    "postgresql://ann:p%40ss%3Fword@host:5433/db": "postgresql://host:5433/db",
    "postgres://host/db?password=hunter2&user=ann": "postgresql://host/db",
    "postgresql+psycopg://ann@host/db?sslpassword=key-word&passfile=/etc/pass&schema=city": (
        "postgresql://host/db?schema=city"
    ),
    "postgresql:///db?host=/run/socket&options=hunter2": "postgresql:///db",
    "sqlite:////home/me@work/people.ledger": "sqlite:////home/me@work/people.ledger",
}


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_is_shown_without_its_secrets(address: str) -> None:
    assert show_address(address) == ADDRESSES[address]
    assert not any(secret in show_address(address) for secret in SECRETS)


def test_a_password_in_an_address_is_printed_nowhere(
    url: str, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not by what describes a dataset, nor by refusals, logs and what commands print."""
    secret = f"{url}&password=hunter2&sslpassword=hunter2"
    with caplog.at_level("DEBUG"), dataset(ledger=secret) as people:
        shown = [str(people), people._repr_html_(), repr(people), repr(people.ledger), str(people.describe().to_dict())]
        people.count(where="age > 30")
    assert main(["ledger", "show", secret]) == 0
    for wrong in (
        secret.replace("&", "&schema=a;b&", 1),
        "postgresql://ann:hunter2@/db?host=/nowhere&password=hunter2",
    ):
        assert main(["ledger", "show", wrong]) == 7
        with pytest.raises(LedgerError) as refused:
            dataset(ledger=wrong)
        shown += [str(refused.value), repr(refused.value)]
    shown += [caplog.text, *capsys.readouterr()]
    assert not any("hunter2" in text for text in shown)
