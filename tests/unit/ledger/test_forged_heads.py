"""A witness takes what clients hand it; so whoever opens a ledger looks whether its journal says the same.

Here one client has a program of its own: it put an older copy of the ledger back, which holds the key to the witness.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from epsilons.errors import BudgetExceeded, LedgerError
from epsilons.ledger import journal, losses
from epsilons.ledger.heads import Line
from epsilons.ledger.opening import find_database
from epsilons.ledger.witness import TableWitness, Witness, find_witness
from epsilons.storage.base import Connection
from support.ledger_copies import copied, put_back
from support.ledgers import nano, person
from support.witnesses import Clients, ask

AT = "2026-11-02T12:00:00.000000+00:00"


class Forger:
    """Adds lines to an older copy, and hands the witness whatever it likes."""

    def __init__(self, connection: Connection) -> None:
        settled, salt, ledger = connection.execute("SELECT witness, salt, id FROM ledger").fetchone()
        found = find_witness(settled, ledger, bytes(salt))
        assert found is not None
        self.connection, self.witness, self.ledger = connection, found, str(ledger)
        self.since = journal.head(connection)[0]
        head, _ = found.read()
        assert head is not None
        self.head = head.line

    def stand(self, most: int | None = None) -> Line:
        """The last line of the copy, as a witness would have it."""
        seq, digest = journal.head(self.connection)
        return Line(seq, digest, self.head.most if most is None else most)

    def write(self) -> Line:
        """A line that changes nobody's account."""
        name = f"analyst {journal.head(self.connection)[0]}"
        self.connection.execute(
            "INSERT INTO quotas (analyst, used_nano, used_questions) VALUES (:name, 0, 0)", {"name": name}
        )
        journal.append(self.connection, "quota", AT, {"analyst": name, "nano": None, "questions": None})
        return self.stand()

    def lose(self, since: int | None = None) -> Line:
        """A loss that counts for nothing."""
        losses.write_off(self.connection, AT, None, self.since if since is None else since, 0)
        return self.stand()

    def hand(self, line: Line, loss: bool = False) -> None:
        assert self.witness.add(self.head, [line], loss) == line
        self.head = line

    def insert(self, line: Line) -> None:
        """As a role may that has INSERT alone."""
        assert isinstance(self.witness, TableWitness)
        head, _ = self.witness.read()
        assert head is not None
        with self.witness._heads.database.write() as connection:
            row = {"ledger": self.ledger, "number": head.number + 1, **line._asdict()}
            connection.execute("INSERT INTO heads VALUES (:ledger, :number, :seq, :digest, :most, 0, '')", row)


def go_back(by: Forger) -> None:
    by.hand(by.stand(), loss=True)


def go_on_for_longer(by: Forger) -> None:
    while by.stand().seq <= by.head.seq:
        by.write()
    by.hand(by.stand())


def lose_for_nothing(by: Forger) -> None:
    by.hand(by.lose(), loss=True)


def lose_twice(by: Forger) -> None:
    """The witness knows the line that the second loss goes on from, as it was charged for all that was lost."""
    by.hand(by.stand(), loss=True)
    by.hand(by.lose(), loss=True)


def lose_what_never_was(by: Forger) -> None:
    """The same by a line that nobody can look up in the copy."""
    by.hand(Line(1, "0" * 64, by.head.most), loss=True)
    by.hand(by.write())
    by.hand(by.lose(by.stand().seq), loss=True)


def lose_the_loss(by: Forger) -> None:
    """A loss that goes on from itself."""
    by.hand(by.lose(by.since + 1), loss=True)


def insert_an_older_line(by: Forger) -> None:
    by.insert(by.stand())


def insert_a_smaller_sum(by: Forger) -> None:
    """Less was charged than was, and the loss is no larger than that."""
    left, _ = by.witness.read(journal.head(by.connection))
    assert left is not None
    _, row = by.witness.read((left.seq, left.digest))
    assert row is not None
    by.insert(Line(by.head.seq + 1, "0" * 64, row.most))
    by.head = Line(by.head.seq + 1, "0" * 64, row.most)
    by.hand(by.lose()._replace(most=row.most), loss=True)


HANDED = [go_back, go_on_for_longer, lose_for_nothing, lose_twice, lose_what_never_was, lose_the_loss]
INSERTED = [insert_an_older_line, insert_a_smaller_sum]


def put_an_older_copy_back(clients: Clients, forge: Callable[[Forger], None]) -> None:
    book = clients.open("one")
    ask(book, "kept")
    kept = copied(clients.address)
    ask(book, "lost", Fraction(8, 10))
    put_back(clients.address, kept)
    with closing(find_database(clients.address, create=False)) as database, database.write() as connection:
        forger = Forger(connection)
        forge(forger)
        forger.witness.close()


def check_refused(clients: Clients) -> None:
    for who in ("a newcomer", "one"):
        with pytest.raises(LedgerError, match="older than its witness"):
            clients.open(who)
    # There is a way on, at no less than its price.
    book = clients.open("steward", accept_loss=True)
    assert book.remaining().nano[nano("1")] <= nano("0.1")
    book.verify()
    for who in ("a newcomer", "one", "two"):
        clients.open(who).verify()


@pytest.mark.parametrize("forge", [*HANDED, *INSERTED])
def test_heads_that_no_journal_has_are_refused_to_every_client(tmp_path: Path, forge: Any) -> None:
    clients = Clients(f"sqlite:///{tmp_path}/a.ledger", tmp_path, f"sqlite:///{tmp_path}/w.store")
    put_an_older_copy_back(clients, forge)
    check_refused(clients)
    clients.close()


def test_so_they_are_on_every_database_and_by_the_service(clients: Clients) -> None:
    put_an_older_copy_back(clients, go_on_for_longer)
    check_refused(clients)


def test_who_saw_the_lost_part_goes_on_from_a_loss_that_was_accepted(clients: Clients) -> None:
    """Before, their own head held them to what was lost, for good."""
    books = {who: clients.open(who) for who in ("one", "two", "three")}
    ask(books["one"], "kept")
    first = copied(clients.address)
    ask(books["two"], "lost", Fraction(2, 10))
    put_back(clients.address, first)
    clients.open("steward", accept_loss=True)
    for who, name in (("one", "a"), ("two", "b")):
        ask(clients.open(who), name, Fraction(1, 10))
    # Of the first lost part the third one hears only after a second.
    second = copied(clients.address)
    ask(clients.open("two"), "lost again", Fraction(1, 10))
    put_back(clients.address, second)
    clients.open("one", accept_loss=True)
    book = clients.open("three")
    assert book.remaining().nano == {nano("1"): nano("0.4")}
    assert ask(book, "c", Fraction(1, 10))
    for who in ("one", "two", "three", "a newcomer"):
        assert clients.open(who).verify().releases == 4


def test_who_saw_a_fork_that_nobody_counted_stays_refused(tmp_path: Path) -> None:
    """A loss that was accepted before says nothing of what was lost since."""
    clients = Clients(f"sqlite:///{tmp_path}/a.ledger", tmp_path, f"sqlite:///{tmp_path}/w.store")
    kept = copied(clients.address)
    ask(clients.open("one"), "lost", Fraction(2, 10))
    put_back(clients.address, kept)
    ask(clients.open("steward", accept_loss=True), "goes on")
    again = copied(clients.address)
    ask(clients.open("one"), "lost again", Fraction(2, 10))
    put_back(clients.address, again)
    for who in ("one", "steward", "a newcomer"):
        with pytest.raises(LedgerError, match="older than its witness"):
            clients.open(who)
    clients.close()


def test_where_the_witness_is_gone_another_takes_over_at_the_price_of_everything(tmp_path: Path) -> None:
    first, second = (f"sqlite:///{tmp_path}/{name}.store" for name in ("first", "second"))
    clients = Clients(f"sqlite:///{tmp_path}/a.ledger", tmp_path, first)
    ask(clients.open("one"), "before")
    (tmp_path / "first.store").rename(tmp_path / "gone.store")
    for part in tmp_path.glob("first.store-*"):
        part.unlink()
    with pytest.raises(LedgerError, match="does not know this ledger"):
        clients.open("one")
    with pytest.raises(LedgerError, match="witness is"):
        clients.open("one", witness=second)
    book = clients.open("one", witness=second, accept_loss=True)
    with pytest.raises(BudgetExceeded):
        book.allowance(Fraction(1, 10))
    book.set_grants([person("ann")], [nano("1")], anew=True)
    ask(clients.open("a newcomer"), "after")
    kinds = [line["kind"] for line in book.export()]
    assert kinds.index("loss") < len(kinds) - 1 - kinds[::-1].index("witness")
    assert json.loads(str([*book.export()][kinds.index("loss")]["body"]))["floor"] == losses.UNKNOWN
    book.verify()
    clients.close()


def test_many_rows_are_looked_at_page_by_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("epsilons.ledger.heads.MOST_LINES", 3)
    clients = Clients(f"sqlite:///{tmp_path}/a.ledger", tmp_path, f"sqlite:///{tmp_path}/w.store")
    book = clients.open("one")
    asked: list[int] = []
    list_before = TableWitness.list_before
    monkeypatch.setattr(
        TableWitness, "list_before", lambda self, number: asked.append(number) or list_before(self, number)
    )
    for n in range(4):
        ask(book, f"{n}", Fraction(1, 100))
    clients.open("a newcomer").verify()
    assert len(asked) > 3
    asked.clear()
    clients.open("one")  # nothing came since the line that it knows itself
    assert asked == []
    clients.close()


def test_a_witness_is_asked_by_what_it_serves(clients: Clients) -> None:
    """A row is found by its line, and by no other line of that number."""
    book = clients.open("one")
    ask(book, "one")
    with book.reading() as connection:
        forger = Forger(connection)
        witness: Witness = forger.witness
        seq, digest = journal.head(connection)
        head, row = witness.read((seq, digest))
        assert head == row
        assert witness.read((seq, "0" * 64))[1] is None
        assert head is not None
        assert [row.number for row in witness.list_before(head.number)] == [*range(head.number - 1, 0, -1)]
        witness.close()
