"""The head outside the database: an older copy, a fork or an edited ledger is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest

import epsilons.ledger
from epsilons.errors import BudgetExceeded, LedgerError
from epsilons.ledger.ledger import Ledger
from support.ledger_copies import Copy, copied, flip_a_bit, put_back
from support.ledger_recount import balances
from support.ledger_servers import fresh
from support.ledgers import key, nano, person


class Place:
    """A ledger and its head."""

    def __init__(self, address: str, folder: Path) -> None:
        self.address, self.head = address, folder / "state" / "head.json"
        self.books: list[Ledger] = []

    def open(self, **more: Any) -> Ledger:
        self.books.append(epsilons.ledger.open(self.address, **{"witness": self.head, **more}))
        return self.books[-1]

    def close(self) -> None:
        while self.books:
            self.books.pop().close()

    def copy(self) -> Copy:
        return copied(self.address)

    def put_back(self, kept: Copy) -> None:
        put_back(self.address, kept)


@pytest.fixture
def place(lasting: str, tmp_path: Path) -> Iterator[Place]:
    here = Place(lasting, tmp_path)
    book = here.open()
    book.settle_terms("absent", 1)
    book.enroll([person("ann")], [nano("1")])
    yield here
    here.close()


def charge(book: Ledger, name: str) -> int:
    return book.reserve(key(name), {1: nano("0.1")}, epoch=1, kind="count").number


def test_the_head_follows_every_change(place: Place) -> None:
    book = place.open()
    charge(book, "one")
    seen = json.loads(place.head.read_text())
    assert (seen["ledger"], seen["seq"], seen["hash"]) == (book.id, book.verify().entries, book.verify().head)
    charge(place.open(), "two")
    charge(book, "three")
    assert place.open().verify().releases == 3


def test_an_older_copy_is_refused(place: Place) -> None:
    kept = place.copy()
    charge(place.open(), "one")
    place.put_back(kept)
    for adopt in (False, True):
        with pytest.raises(LedgerError, match="has diverged"):
            place.open(adopt=adopt)


def test_an_older_file_is_refused(tmp_path: Path) -> None:
    """The same, as a steward would do it: the file itself."""
    place = Place(f"sqlite:///{tmp_path}/people.ledger", tmp_path)
    book = place.open(witness=None)
    book.settle_terms("absent", 1)
    place.close()
    shutil.copy(tmp_path / "people.ledger", tmp_path / "backup")
    place.open(witness=None).enroll([person("ann")], [nano("1")])
    place.close()
    shutil.copy(tmp_path / "backup", tmp_path / "people.ledger")
    with pytest.raises(LedgerError, match="has diverged"):
        place.open(witness=None)


def test_an_older_copy_is_refused_while_running(place: Place) -> None:
    kept = place.copy()
    book = place.open()
    charge(book, "one")
    place.put_back(kept)
    with pytest.raises(LedgerError, match="has diverged"):
        charge(book, "two")


def test_a_fork_is_refused(place: Place) -> None:
    kept = place.copy()
    charge(place.open(), "one")
    head = place.head.read_text()
    place.head.unlink()
    place.put_back(kept)
    fork = place.open(adopt=True)
    for name in ("two", "three", "four"):
        charge(fork, name)
    place.head.write_text(head)
    with pytest.raises(LedgerError, match="has diverged"):
        place.open()


def test_a_database_ahead_of_its_head_is_fine(place: Place) -> None:
    head = place.head.read_text()
    charge(place.open(), "one")
    place.head.write_text(head)
    book = place.open()
    assert json.loads(place.head.read_text())["seq"] == book.verify().entries


def test_another_machine_may_go_on_in_between(place: Place, tmp_path: Path) -> None:
    here = place.open()
    there = place.open(witness=tmp_path / "there" / "head.json", adopt=True)
    for turn in range(3):
        charge(here, f"here {turn}")
        charge(there, f"there {turn}")
    assert here.verify().releases == there.verify().releases == 6


def test_a_moved_ledger_is_refused_until_it_is_adopted(place: Place) -> None:
    place.head.unlink()
    with pytest.raises(LedgerError, match="not where it is kept"):
        place.open()
    place.open(adopt=True)
    assert place.open().verify().people == 1


def test_a_new_ledger_does_not_take_the_place_of_a_lost_one(tmp_path: Path) -> None:
    place = Place(f"sqlite:///{tmp_path}/people.ledger", tmp_path)
    place.open()
    place.close()
    (tmp_path / "people.ledger").unlink()
    with pytest.raises(LedgerError, match="gone"):
        place.open()


def edit_last_line(book: Ledger, **value: Any) -> None:
    (column,) = value
    with book._database.write() as connection:
        last = "(SELECT max(seq) FROM journal)"
        assert connection.execute(f"UPDATE journal SET {column} = :{column} WHERE seq = {last}", value).rowcount == 1


def test_an_edited_line_under_the_head_is_refused(place: Place) -> None:
    book = place.open()
    charge(book, "one")
    edit_last_line(book, hash="x" * 64)
    with pytest.raises(LedgerError):
        place.open()


@pytest.mark.parametrize("how", ["a gap", "another hash", "another body"])
def test_the_head_never_follows_a_broken_chain(place: Place, how: str) -> None:
    """Otherwise somebody's edit would leave a head behind that the honest ledger never reaches."""
    head = place.head.read_text()
    book = place.open()
    charge(book, "one")
    honest = place.copy()
    place.head.write_text(head)
    broken = {"a gap": {"seq": 1000}, "another hash": {"hash": "0" * 64}, "another body": {"body": "{}"}}[how]
    edit_last_line(book, **broken)
    with pytest.raises(LedgerError, match="has diverged"):
        place.open()
    assert place.head.read_text() == head
    place.head.unlink()
    with pytest.raises(LedgerError, match="has diverged"):
        place.open(adopt=True)
    assert not place.head.exists()
    place.head.write_text(head)
    place.put_back(honest)
    assert place.open().verify().releases == 1


@pytest.mark.parametrize("content", ["", "{", "[]", '{"seq": 1}', '{"ledger": "x", "seq": 1, "hash": "y"}'])
def test_a_broken_head_is_refused(place: Place, content: str) -> None:
    place.head.write_text(content)
    with pytest.raises(LedgerError):
        place.open()


def test_memory_has_no_anchor(tmp_path: Path) -> None:
    with pytest.raises(LedgerError):
        epsilons.ledger.open(None, witness=tmp_path / "head")
    with pytest.raises(LedgerError):
        epsilons.ledger.open(None, accept_loss=True)


# Where the head is kept ---------------------------------------------------------------------------------------------


def test_the_usual_place_is_the_users_state_directory(
    lasting: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    book = epsilons.ledger.open(lasting)
    head = tmp_path / "state" / "epsilons" / "ledgers" / f"{book.id}.json"
    assert json.loads(head.read_text())["seq"] == 1
    book.settle_terms("absent", 1)
    assert json.loads(head.read_text())["seq"] == 2
    book.close()
    head.unlink()
    with pytest.raises(LedgerError, match="not where it is kept"):
        epsilons.ledger.open(lasting)
    epsilons.ledger.open(lasting, adopt=True).close()
    epsilons.ledger.open(lasting).close()


@pytest.mark.parametrize(
    ("platform", "named", "folder"),
    [
        ("linux", "", ".local/state"),
        ("linux", "not/absolute", ".local/state"),
        ("darwin", "", "Library/Application Support"),
    ],
)
def test_without_the_variable_it_is_below_the_home_directory(
    platform: str, named: str, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", named)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("sys.platform", platform)
    epsilons.ledger.open(f"sqlite:///{tmp_path}/people.ledger").close()
    (head,) = (tmp_path / folder).glob("epsilons/ledgers/*.json")
    assert json.loads(head.read_text())["seq"] == 1


def test_a_ledger_in_memory_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    epsilons.ledger.open().close()
    epsilons.ledger.open(f"sqlite:///{tmp_path}/people.ledger", witness=False).close()
    assert not (tmp_path / "state").exists()


# Accepting a loss ---------------------------------------------------------------------------------------------------


def lose(place: Place) -> None:
    """A release is stored, one is under way, and the ledger is put back to before the second was stored."""
    book = place.open()
    for name in ("kept", "under way", "reserved"):
        number = charge(book, name)
        if name != "reserved":
            book.mark_read(number)
        if name == "kept":
            book.store(number, b"1")
    kept = place.copy()
    book.store(2, b"2")
    place.put_back(kept)


def test_accepting_a_loss_spends_everybodys_grant(place: Place) -> None:
    lose(place)
    with pytest.raises(LedgerError, match="has diverged"):
        place.open()
    book = place.open(accept_loss=True)
    assert book.remaining().epsilons == {1.0: 0.0}
    with pytest.raises(BudgetExceeded):
        book.allowance(Fraction(1, 10))
    with pytest.raises(LedgerError):
        charge(book, "another")
    assert [line["kind"] for line in book.export()][-1] == "loss"
    assert [past.state for past in book.history()] == ["stored", "lost", "lost"]
    recount = book.verify()
    assert balances(book.export()) == {c.id: (c.granted, c.spent, c.reserved, c.people) for c in recount.cohorts}
    # From here on it is an ordinary ledger again.
    assert place.open().verify() == recount


def test_after_a_loss_stored_answers_stay_and_others_are_not_drawn_a_second_time(place: Place) -> None:
    lose(place)
    book = place.open(accept_loss=True)
    kept = book.find(key("kept"))
    assert kept is not None
    assert kept.answer == b"1"
    assert book.find(key("under way")) is None
    for number in (2, 3):
        with pytest.raises(LedgerError, match="under way"):
            book.mark_read(number)
        with pytest.raises(LedgerError, match="under way"):
            book.store(number, b"again")
        with pytest.raises(LedgerError, match="stands"):
            book.refund(number)
    told = str(book.statement(person("ann")))
    assert "Records were lost, so 0.7 more counts as spent." in told
    assert "at a loss of at most 0.3 of 1 granted" in told


def test_after_a_loss_whoever_joins_may_have_been_charged_before(place: Place) -> None:
    lose(place)
    book = place.open(accept_loss=True)
    book.enroll([person("bob"), person("cy"), person("dora")], [nano("1"), None, nano("2")])
    assert book.remaining().epsilons == {1.0: 0.0, 2.0: 0.0}
    book.withdraw([person("eve")])
    # A larger grant is spent, too, until they know of the loss and consent anew.
    book.set_grants([person("bob")], [nano("1.5")])
    with pytest.raises(BudgetExceeded):
        book.allowance(Fraction(1))
    book.set_grants([person("bob")], [nano("1.5")], anew=True)
    assert list(book.allowance(Fraction(1)).nano.values()) == [nano("1.5")]
    book.verify()


def test_nothing_is_accepted_where_nothing_was_lost(place: Place, tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="nothing was lost"):
        place.open(accept_loss=True)
    with pytest.raises(LedgerError, match="has no head"):
        place.open(accept_loss=True, witness=False)
    another = epsilons.ledger.open(f"sqlite:///{tmp_path}/another.ledger", witness=tmp_path / "another")
    another.close()
    with pytest.raises(LedgerError, match="another ledger's"):
        place.open(accept_loss=True, witness=tmp_path / "another")
    assert place.open().remaining().epsilons == {1.0: 1.0}


def test_a_ledger_without_a_head_may_be_taken_for_a_loss(place: Place) -> None:
    place.head.unlink()
    book = place.open(accept_loss=True)
    assert book.remaining().epsilons == {1.0: 0.0}
    assert place.open().verify().entries == book.verify().entries


# A hundred of them --------------------------------------------------------------------------------------------------


def lived(book: Ledger, name: str, turns: int) -> None:
    """Some history: questions and changes of mind."""
    for turn in range(turns):
        may = book.allowance(Fraction(1, 100))
        held = book.reserve(key(f"{name} {turn}"), may.nano, epoch=may.epoch, kind="count", analyst=name)
        book.mark_read(held.number)
        book.store(held.number, b"%d" % turn)
        book.set_grants([person(f"{name} {turn}"), person("ann")], [nano("1"), nano("2") + turn])


def refused(place: Place) -> bool:
    try:
        book = place.open()
    except LedgerError:
        return True
    try:
        book.verify()
    except LedgerError:
        return True
    return False


def put_to_the_test(place: Place, luck: Random, each: int) -> None:
    """Restored, forked and edited ledgers, and an honest one in between that must be let through."""
    for attempt in range(each):
        place.close()
        place.put_back(honest := place.copy())
        assert not refused(place)
        # Restored: as it was before the latest changes.
        lived(place.open(), f"restored {attempt}", luck.randrange(1, 3))
        newest = place.copy()
        place.put_back(honest)
        assert refused(place), f"restored {attempt}"
        # Forked: as it was, and then another history, shorter or longer than the real one.
        head = place.head.read_text()
        place.head.unlink()
        lived(place.open(adopt=True), f"forked {attempt}", luck.randrange(1, 4))
        place.head.write_text(head)
        assert refused(place), f"forked {attempt}"
        # Edited: one bit of the real one.
        place.put_back(newest)
        assert not refused(place)
        where = flip_a_bit(place.address, luck)
        assert refused(place), f"edited {attempt}: {where}"
        place.put_back(newest)


def test_restored_forked_and_edited_ledgers_are_refused(place: Place) -> None:
    put_to_the_test(place, Random(5), each=4)


@pytest.mark.soak
@pytest.mark.figure("figure_5")
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_hundred_of_a_hundred_are_refused(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest, record_property: Callable[[str, int], None]
) -> None:
    address = f"sqlite:///{tmp_path}/people.ledger"
    if kind == "postgresql":
        address = fresh(request.getfixturevalue("postgres_server"))
    here = Place(address, tmp_path)
    book = here.open()
    book.settle_terms("absent", 1)
    book.enroll([person("ann")], [nano("1")])
    put_to_the_test(here, Random(), each=34)
    here.close()
    record_property("size", 3 * 34)
