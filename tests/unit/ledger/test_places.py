"""Known places: a ledger that is gone is not made anew in silence, and a second one needs the steward's word."""

from __future__ import annotations

import contextlib
import stat
from pathlib import Path

import pytest

import epsilons.ledger
from epsilons.cli import app
from epsilons.errors import LedgerError
from epsilons.ledger.opening import find_places
from support.ledgers import person


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "epsilons" / "ledgers"


def lose(address: str) -> None:
    """Delete a ledger, wherever it is."""
    book = epsilons.ledger.open(address)
    if not address.startswith("sqlite"):
        with book._database.write() as connection:
            connection.execute(f"DROP SCHEMA {book._database.schema} CASCADE")
    book.close()
    if address.startswith("sqlite"):
        for path in Path(address.removeprefix("sqlite:///")).parent.glob("people.ledger*"):
            path.unlink()


def test_a_ledger_that_is_gone_is_not_made_anew_until_it_is_forgotten(
    lasting: str, capsys: pytest.CaptureFixture[str]
) -> None:
    epsilons.ledger.open(lasting).close()
    lose(lasting)
    for create in (True, False):
        gone = r"stood at this address is gone.*start anew.*newest copy.*`epsilons ledger forget \S+ --yes`"
        with pytest.raises(LedgerError, match=gone):
            epsilons.ledger.open(lasting, create=create)
    if lasting.startswith("sqlite"):
        assert not Path(lasting.removeprefix("sqlite:///")).exists()
    assert app.main(["ledger", "forget", lasting]) == 2
    assert "everyone's budget start anew: say --yes" in capsys.readouterr().err
    assert app.main(["ledger", "forget", lasting, "--yes"]) == 0
    assert "lets everyone's budget start anew" in capsys.readouterr().out
    epsilons.ledger.open(lasting).close()
    assert app.main(["ledger", "forget", lasting, "--yes"]) == 0
    assert "A ledger stands there and stays as it is" in capsys.readouterr().out
    assert app.main(["ledger", "forget", lasting + "x", "--yes"]) == 0
    assert "None was known there." in capsys.readouterr().out


def test_one_place_has_many_spellings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "people.ledger"
    epsilons.ledger.open(f"sqlite:///{path}").close()
    lose(f"sqlite:///{path}")
    (tmp_path / "link").symlink_to(tmp_path)
    monkeypatch.chdir(tmp_path)
    for spelling in (
        "people.ledger",
        "./people.ledger",
        f"{tmp_path}/link/people.ledger",
        f"{tmp_path}//people.ledger",
    ):
        with pytest.raises(LedgerError, match="is gone"):
            epsilons.ledger.open(f"sqlite:///{spelling}")
    places = find_places()
    places.remember("postgresql://ann:secret@server/city", "a" * 32)
    same = "postgres://bob@server:5432/city?schema=epsilons"
    with pytest.raises(LedgerError, match="is gone") as refused:
        places.refuse_if_gone(same)
    assert "bob" not in str(refused.value)
    places.refuse_if_gone("postgresql://server/city?schema=other")
    assert "secret" not in (places.folder / "places").read_text()


@pytest.mark.parametrize(
    ("known", "same", "other"),
    [
        ("localhost/city", ["127.0.0.1/city", "[::1]:5432/city", "/city", "LocalHost./city?port=5432"], ":5433/city"),
        (
            "/city?host=/sockets",
            ["/city?host=//sockets", "/city?host=/sockets/", "/city?host=/a/../sockets"],
            "/city?host=/a",
        ),
        ("server/city?schema=a", ["SERVER/city?schema=a", "bob@server.:5432/city?schema=a"], "server/city"),
        ("/city?host=a,127.0.0.1", ["/city?host=A,localhost"], "/city?host=a"),
    ],
)
def test_a_server_is_known_however_it_is_written(known: str, same: list[str], other: str) -> None:
    places = find_places()
    places.remember(f"postgresql://{known}", "a" * 32)
    for spelling in same:
        with pytest.raises(LedgerError, match="is gone"):
            places.refuse_if_gone(f"postgresql://{spelling}")
        with pytest.raises(LedgerError, match="Another ledger stands"):
            places.remember(f"postgresql://{spelling}", "b" * 32)
        places.remember(f"postgres://{spelling}", "a" * 32)
    places.refuse_if_gone(f"postgresql://{other}")
    assert places.forget(f"postgresql://{same[0]}")
    places.refuse_if_gone(f"postgresql://{known}")


def test_another_ledger_at_a_known_place_is_refused(tmp_path: Path) -> None:
    first, second = tmp_path / "people.ledger", tmp_path / "other.ledger"
    for path in (first, second):
        epsilons.ledger.open(f"sqlite:///{path}").close()
    second.replace(first)
    with pytest.raises(LedgerError, match="Another ledger stands at this address than before"):
        epsilons.ledger.open(f"sqlite:///{first}")


def test_other_anchors_keep_their_rules(tmp_path: Path, state: Path) -> None:
    address = f"sqlite:///{tmp_path}/people.ledger"
    epsilons.ledger.open(address, witness=False).close()
    assert not state.exists()
    lose_file = Path(address.removeprefix("sqlite:///"))
    lose_file.unlink()
    epsilons.ledger.open(address, witness=tmp_path / "head").close()
    lose_file.unlink()
    with pytest.raises(LedgerError, match="whose head is kept here is gone"):
        epsilons.ledger.open(address, witness=tmp_path / "head")
    epsilons.ledger.open(address, witness=False).close()


def test_what_is_known_is_its_owners_alone_and_must_be_readable(tmp_path: Path, state: Path) -> None:
    address = f"sqlite:///{tmp_path}/people.ledger"
    epsilons.ledger.open(address).close()
    assert stat.S_IMODE((state / "places").stat().st_mode) == 0o600
    (state / "places").write_text("{")
    with pytest.raises(LedgerError, match="cannot be read"):
        epsilons.ledger.open(address)


def test_a_second_ledger_of_a_name_or_a_file_is_told_so() -> None:
    places = find_places()
    places.remember("sqlite:////city/wages.ledger", "a" * 32)
    places.note_dataset("a" * 32, "wages", {"/city/wages.parquet": "7 bytes, abc"})
    second = r"registered in another ledger before: sqlite:////city/wages\.ledger\. A second ledger.*confirm=True"
    seen = {"/city/wages.parquet": "8 bytes, def"}, {"/city/link.parquet": "7 bytes, abc"}
    for name, files in (("wages", {}), *(("pay", one) for one in seen)):
        with pytest.raises(LedgerError, match=second):
            places.refuse_second("b" * 32, name, files)
        places.refuse_second("a" * 32, name, files)
    places.refuse_second("b" * 32, "pay", {"/city/pay.parquet": "8 bytes, def"})
    assert places.forget("sqlite:////city/wages.ledger")
    places.refuse_second("b" * 32, "wages", seen[0])


def test_a_copy_that_is_refused_is_not_where_the_ledger_stands(tmp_path: Path) -> None:
    here, stale = tmp_path / "people.ledger", tmp_path / "stale.ledger"
    with contextlib.closing(epsilons.ledger.open(f"sqlite:///{here}")) as book:
        book.enroll([person("ann")], [10**9])
    stale.write_bytes(here.read_bytes())
    with contextlib.closing(epsilons.ledger.open(f"sqlite:///{here}")) as book:
        book.enroll([person("bob")], [10**9])
        find_places().note_dataset(book.id, "wages", {})
    with pytest.raises(LedgerError, match="older than its last recorded state"):
        epsilons.ledger.open(f"sqlite:///{stale}")
    with pytest.raises(LedgerError, match=rf"registered in another ledger before: sqlite:///{here}\."):
        find_places().refuse_second("another", "wages", {})
