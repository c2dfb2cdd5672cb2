"""A witness holds every client of a ledger to one head: what was put back, forked or left out is refused to all."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import epsilons.ledger
from epsilons.errors import BudgetExceeded, LedgerError, ProtocolError
from epsilons.ledger import heads, signed, witness
from epsilons.ledger.heads import Heads, Line, Row
from epsilons.service.witness import WitnessApp, begin
from epsilons.storage.base import watchers
from support.ledger_copies import copied, put_back
from support.ledger_recount import balances
from support.ledgers import key, nano, person
from support.witnesses import ADDRESS, Clients, Direct, ask, call, running


def test_a_backup_restored_is_refused_to_every_client(clients: Clients) -> None:
    """Two users, a backup restored: 1.9 of 1.0 was spent where each user kept a head alone."""
    one, two = clients.open("one"), clients.open("two")
    ask(one, "first")
    kept = copied(clients.address)
    ask(one, "nearly all", Fraction(9, 10))
    put_back(clients.address, kept)
    # The second never saw what was lost, and neither did a newcomer: no matter.
    with pytest.raises(LedgerError, match=r"older than its (witness|last)"):
        ask(two, "again", Fraction(9, 10))
    for who in ("one", "two", "a newcomer", "steward"):
        with pytest.raises(LedgerError, match="older than its witness"):
            clients.open(who)
        with pytest.raises(LedgerError, match="older than its witness"):
            clients.open(who, witness=False)  # no client can leave it out


def test_a_fork_is_refused_to_whoever_comes_second(clients: Clients, tmp_path: Path) -> None:
    kept = copied(clients.address)
    ask(clients.open("one"), "one history")
    newest = copied(clients.address)
    put_back(clients.address, kept)
    with pytest.raises(LedgerError, match="older than its witness"):
        clients.open("two")
    put_back(clients.address, newest)
    book = clients.open("two")
    ask(book, "the same history goes on")
    book.verify()


def test_what_one_client_adds_the_others_go_on_from(clients: Clients) -> None:
    books = [clients.open(f"client {n}") for n in range(4)]
    for turn in range(8):
        ask(books[turn % 4], f"{turn}", Fraction(1, 100))
    recount = books[0].verify()
    assert recount.releases == 8
    assert balances(books[1].export()) == {c.id: (c.granted, c.spent, c.reserved, c.people) for c in recount.cohorts}


def test_no_data_is_read_before_the_witness_has_the_head(clients: Clients) -> None:
    """Commit, then the head, then data: a client that ends in between leaves the charge, and the next one goes on."""
    book = clients.open("one")
    may = book.allowance(Fraction(1, 10))

    class EndsError(Exception):
        pass

    def end(place: str) -> None:
        if place == "witnessing":
            raise EndsError

    watchers.append(end)
    try:
        with pytest.raises(EndsError):
            book.reserve(key("q"), may.nano, epoch=may.epoch, kind="count")
    finally:
        watchers.remove(end)
    other = clients.open("two")
    assert other.remaining().nano == {nano("1"): nano("0.9")}
    held = other.find(key("q"))
    assert held is not None
    other.mark_read(held.number)
    other.store(held.number, b"1")
    assert len(other.history()) == 1


def test_the_witness_is_a_term(clients: Clients) -> None:
    book = clients.open("one")
    (line,) = [json.loads(line["body"]) for line in book.export() if line["kind"] == "witness"]
    with pytest.raises(LedgerError, match="This ledger's witness is"):
        clients.open("two", witness="https://elsewhere.example.org")
    # An edit of the term is seen by whoever recounts.
    with book._database.write() as connection:
        connection.execute("UPDATE ledger SET witness = NULL")
    with pytest.raises(LedgerError, match="does not add up"):
        clients.open("three", adopt=True).verify()
    with book._database.write() as connection:
        connection.execute("UPDATE ledger SET witness = :kept", {"kept": line["witness"]})
    book.verify()


def test_a_loss_costs_what_the_lost_part_can_have_charged(clients: Clients) -> None:
    book = clients.open("one")
    ask(book, "kept", Fraction(1, 10))
    kept = copied(clients.address)
    ask(book, "lost", Fraction(2, 10))
    book.set_grants([person("bob")], [nano("0.5")])
    ask(book, "lost too", Fraction(1, 10))
    put_back(clients.address, kept)
    book = clients.open("two", accept_loss=True)
    # .2 and .1 of 1: nobody can have been charged more than .3 in the lost part, Bob, who was public, included.
    assert {c.granted: (c.spent, c.left) for c in book.cohorts()} == {
        nano("1"): (nano("0.4"), nano("0.6")),
        None: (nano("0.3"), None),
    }
    book.set_grants([person("bob")], [nano("0.5")])
    assert sorted(c.left or 0 for c in book.cohorts()) == [nano("0.2"), nano("0.6")]
    book.verify()
    # Every client is held to what became of it, and the newest copy of before is no longer welcome.
    ask(clients.open("three"), "goes on")


def test_a_second_loss_counts_the_first(clients: Clients) -> None:
    """A copy of before the first loss is put back after it: both lost parts count."""
    book = clients.open("one")
    old = copied(clients.address)
    ask(book, "a", Fraction(1, 10))
    put_back(clients.address, old)
    book = clients.open("two", accept_loss=True)
    assert book.remaining().nano == {nano("1"): nano("0.9")}
    ask(book, "b", Fraction(2, 10))
    put_back(clients.address, old)
    with pytest.raises(LedgerError, match="older than its witness"):
        clients.open("three")
    book = clients.open("three", accept_loss=True)
    assert book.remaining().nano == {nano("1"): nano("0.7")}
    book.verify()


def test_nothing_is_accepted_where_nothing_was_lost(clients: Clients) -> None:
    with pytest.raises(LedgerError, match="nothing was lost"):
        clients.open("one", accept_loss=True)


def test_who_had_it_open_is_held_to_a_witness_that_is_named_later(tmp_path: Path, lasting: str) -> None:
    """Before, whoever had the ledger open charged on without it: 1.8 of 1.0 were spent after a rollback."""
    clients = Clients(lasting, tmp_path, None)
    one, two = (clients.open(who, adopt=True) for who in ("one", "two"))
    one.set_witness(f"sqlite:///{tmp_path}/w.store")
    kept = copied(clients.address)
    ask(two, "nearly all", Fraction(9, 10))
    put_back(clients.address, kept)
    for book in (one, two):
        with pytest.raises(LedgerError, match=r"older than its (witness|last)"):
            ask(book, "again", Fraction(9, 10))
    with pytest.raises(LedgerError, match="older than its witness"):
        clients.open("new")
    clients.close()


def test_a_witness_that_was_all_but_settled_is_settled_by_the_next_attempt(tmp_path: Path, lasting: str) -> None:
    """The process ends when the witness has a line, and the ledger knows of no witness yet."""
    clients = Clients(lasting, tmp_path, None)
    book, kept = clients.open("steward"), f"sqlite:///{tmp_path}/w.store"

    class EndsError(Exception):
        pass

    def end(place: str) -> None:
        if place == "enrolling":
            raise EndsError

    watchers.append(end)
    try:
        with pytest.raises(EndsError):
            book.set_witness(kept)
    finally:
        watchers.remove(end)
    ask(book, "goes on")
    book.set_witness(kept)
    ask(clients.open("new"), "and on")
    clients.close()


# The service ---------------------------------------------------------------------------------------------------------


def test_another_witness_takes_over_while_the_first_is_reached(
    service: WitnessApp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Heads(f"sqlite:///{tmp_path}/second.store")
    Direct.apps["https://second"] = WitnessApp(store, begin(store, tmp_path / "second.key"))
    clients = Clients(f"sqlite:///{tmp_path}/a.ledger", tmp_path, ADDRESS)
    book = clients.open("one")
    book.set_witness("https://second")
    kept = copied(clients.address)
    ask(book, "after")
    put_back(clients.address, kept)
    with pytest.raises(LedgerError, match="witness at https://second"):
        clients.open("two")
    clients.close()
    store.close()


def test_a_ledger_without_a_witness_gets_one_later(service: WitnessApp, tmp_path: Path) -> None:
    book = epsilons.ledger.open(f"sqlite:///{tmp_path}/a.ledger", witness=tmp_path / "head")
    book.settle_terms("absent", 1)
    book.enroll([person("ann")], [nano("1")])
    book.close()
    with pytest.raises(LedgerError, match="witness is none"):
        epsilons.ledger.open(f"sqlite:///{tmp_path}/a.ledger", witness=ADDRESS)
    book = epsilons.ledger.open(f"sqlite:///{tmp_path}/a.ledger", witness=tmp_path / "head")
    book.set_witness(ADDRESS)
    ask(book, "one")
    book.close()
    book = epsilons.ledger.open(f"sqlite:///{tmp_path}/a.ledger", witness=ADDRESS)  # on another machine: no head here
    assert book.verify().releases == 1
    book.close()


def test_a_witness_that_lost_its_store_does_not_begin_in_silence(service: WitnessApp, tmp_path: Path) -> None:
    clients = Clients(f"sqlite:///{tmp_path}/a.ledger", tmp_path, ADDRESS)
    fresh_store = Heads(f"sqlite:///{tmp_path}/fresh.store")
    with pytest.raises(ProtocolError, match="belongs to another store"):
        begin(fresh_store, tmp_path / "witness.key")
    # The same key all the same: the ledger is not known, and only a loss of everything goes on.
    Direct.apps[ADDRESS] = WitnessApp(fresh_store, service._key)
    with pytest.raises(LedgerError, match="does not know this ledger"):
        clients.open("one")
    book = clients.open("one", accept_loss=True)
    with pytest.raises(BudgetExceeded):
        ask(book, "more")
    clients.open("two").verify()
    clients.close()
    fresh_store.close()


@pytest.mark.parametrize("what", ["key", "nonce", "ledger", "not signed", "no line"])
def test_answers_of_others_are_not_believed(
    service: WitnessApp, tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clients = Clients(f"sqlite:///{tmp_path}/a.ledger", tmp_path, ADDRESS)
    honest = service._key.sign

    def other(document: Any) -> dict[str, str]:
        if what in ("nonce", "ledger"):
            return honest({**document, what: "0" * 32})
        if what == "no line":
            return honest({**document, "head": ["1", 2, 3]})
        return signed.SigningKey(bytes(32)).sign(document) if what == "key" else {"told": "{}", "signature": "00"}

    monkeypatch.setattr(service._key, "sign", other)
    with pytest.raises(LedgerError, match=r"not signed by the key|cannot be read"):
        clients.open("two")
    clients.close()


def test_heads_of_a_ledger_are_taken_of_its_clients_alone(service: WitnessApp, tmp_path: Path) -> None:
    clients = Clients(f"sqlite:///{tmp_path}/a.ledger", tmp_path, ADDRESS)
    book = clients.open("one")
    stranger = signed.SignedWitness(ADDRESS, service._key.public, book.id, b"not the salt")
    row, _ = stranger.read()
    assert row is not None
    head = row.line
    assert stranger.add(head, [Line(head.seq + 1, "0" * 64, head.most)]) == head
    assert stranger.add(head, [Line(1, "0" * 64, head.most)], loss=True) == head
    ask(book, "goes on")
    clients.close()


def good(ledger: str, **more: Any) -> dict[str, Any]:
    mine = signed.SigningKey(bytes(32))
    return {**mine.sign({"ledger": ledger, "nonce": "1", **more}), "key": mine.public}


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"", 400),
        (b"[]", 401),
        (b"{" * 100_000, 400),
        (json.dumps({"told": "{}", "signature": "zz", "key": "zz"}).encode(), 401),
        (json.dumps(good("1" * 32, after=None, lines=[])).encode(), 401),
        (json.dumps(good("0" * 32)).encode(), 422),
        (json.dumps(good("0" * 32, after=None, lines=[["1", "0" * 64, 0]])).encode(), 422),
        (json.dumps(good("0" * 32, after=None, lines=[[1, "0", 0]])).encode(), 422),
        (json.dumps(good("0" * 32, after=None, lines=[[True, "0" * 64, 0]])).encode(), 422),
        (json.dumps(good("0" * 32, after=None, lines=[[1 << 63, "0" * 64, 0]])).encode(), 422),
        (json.dumps(good("0" * 32, after=None, lines=7)).encode(), 422),
        (json.dumps(good("0" * 32, after=None, lines=[[1, "0" * 64, 0]])).encode(), 200),
        (b" " * (2 << 20), 413),
    ],
)
def test_requests_that_make_no_sense_are_refused(service: WitnessApp, content: bytes, status: int) -> None:
    assert call(service, "POST", f"/v1/ledgers/{'0' * 32}/heads", content)[0] == status


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/key", 200), ("POST", "/v1/key", 405), ("GET", "/", 404), ("GET", "/v1/ledgers/x/read", 404),
        ("GET", f"/v1/ledgers/{'0' * 32}/read", 405),
    ],
)  # fmt: skip
def test_routes(service: WitnessApp, method: str, path: str, status: int) -> None:
    assert call(service, method, path)[0] == status


def test_heads_go_forward_only(tmp_path: Path) -> None:
    store = Heads(f"sqlite:///{tmp_path}/h.store")
    one, two, three = (Line(n, f"{n}" * 64, 10 * n) for n in (1, 2, 3))
    add: Callable[..., Any] = lambda *given, **more: store.add("a", *given, **more)  # noqa: E731
    assert add(None, [one]) == one
    assert add(None, [two]) == one  # whoever is late is told the head
    assert add(one, []) == one
    assert add(one, [three, two]) == one
    assert add(one, [Line(2, "2" * 64, 9)]) == one  # what was charged does not become less
    assert add(one, [two, three]) == three
    assert add(three, [Line(3, "4" * 64, 30)]) == three
    assert add(three, [two], loss=True) == three  # nor by a loss
    lost = Line(2, "5" * 64, 30)
    assert add(three, [lost], loss=True) == lost
    assert store.read("a", (3, three.digest)) == (Row(4, *lost, 1), Row(3, *three, 0))
    assert store.read("a", (3, lost.digest)) == (Row(4, *lost, 1), None)
    assert [row.line for row in store.list_before("a", 4)] == [three, two, one]
    assert store.read("b", (3, three.digest)) == (None, None)
    assert add(lost, [Line(n, "6" * 64, 30) for n in range(3, 3 + heads.MOST_LINES + 1)]) == lost
    store.close()


def test_a_path_is_no_address_and_passwords_stay_out(tmp_path: Path) -> None:
    assert [witness.is_address(one) for one in ("https://a", "postgresql://a/b", "head.json", tmp_path, None)] == [
        True, True, False, False, False,
    ]  # fmt: skip
    assert witness.is_same("sqlite:///a", f"sqlite:///{os.getcwd()}/a")
    assert not witness.is_same("https://a", "sqlite:///a")
    with pytest.raises(LedgerError, match="password"):
        witness.settle("postgresql://me:secret@host/base")
    with pytest.raises(LedgerError, match="plain HTTP"):
        witness.settle("http://elsewhere.example.org")
    with pytest.warns(DeprecationWarning, match="witness"):
        epsilons.ledger.open(f"sqlite:///{tmp_path}/a.ledger", anchor=tmp_path / "head").close()


def test_a_witness_that_is_killed_is_only_slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a process, or stopped; without it no data is read, and what was charged stays charged."""

    def wait_in_vain(name: str) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(signed, "_PATIENCE", 1.0)
            with pytest.raises(LedgerError, match="No answer from the witness"):
                book.reserve(key(name), may.nano, epoch=may.epoch, kind="count")

    with running(tmp_path) as (address, process):
        clients = Clients(f"sqlite:///{tmp_path}/a.ledger", tmp_path, address)
        book = clients.open("one")
        ask(book, "one")
        modes = {one.name: one.stat().st_mode & 0o777 for one in tmp_path.glob("witness.*")}
        assert set(modes.values()) == {0o600}
        may = book.allowance(Fraction(1, 10))
        process.send_signal(signal.SIGSTOP)
        start = time.monotonic()
        wait_in_vain("two")
        assert time.monotonic() - start < 8
    wait_in_vain("three")
    with running(tmp_path, int(address.rsplit(":", 1)[1])):
        assert (ask(book, "two"), ask(book, "three")) == (2, 3)
        assert len(book.history()) == 3
        clients.close()
