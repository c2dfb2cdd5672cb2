"""`epsilons ledger`: what it prints, for people and for programs."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sqlite3
import sys
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import epsilons.ledger
from epsilons.cli import app
from epsilons.cli.commands.ledger import command
from epsilons.cli.commands.person import read_ids
from epsilons.errors import PreferenceError
from epsilons.ledger.identity import digests
from epsilons.ledger.ledger import Ledger
from epsilons.storage import show_address
from support.ledger_recount import balances
from support.ledger_servers import fresh
from support.ledgers import key, nano


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.integration)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgresql":
        return fresh(request.getfixturevalue("postgres_server"))
    return f"sqlite:///{tmp_path}/people.ledger"


@pytest.fixture
def book(url: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("COLUMNS", "160")
    made = epsilons.ledger.open(url)
    made.settle_terms("absent", 1, allow_individual=True)
    made.enroll(digests([1, 2, "ann", "2"], made.salt), [nano("0.1"), nano("1"), None, nano("1")])
    made.withdraw(digests(["gone"], made.salt))
    yield made
    made.close()


def ask(book: Ledger, name: str, **more: Any) -> None:
    may = book.allowance(Fraction(1, 10))
    held = book.reserve(key(name), may.nano, epoch=may.epoch, kind="mean", description=name, **more)
    book.mark_read(held.number)
    book.store(held.number, b"1")


def run(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> Any:
    assert app.main(["ledger", *arguments]) == status
    seen = capsys.readouterr()
    return json.loads(seen.out) if "--json" in arguments and not status else seen.err if status else seen.out


def test_show_says_what_is_left(book: Ledger, url: str, capsys: pytest.CaptureFixture[str]) -> None:
    told = run(capsys, "show", url, "--json")
    assert told["levels"][0] == {
        "name": None,
        "epsilon": 0.1,
        "people": 1,
        "left": 0.1,
        "least": 0.1,
        "nothing_left": 0,
        "questions_left": None,
    }
    ask(book, "mean of [wage]", analyst="office")
    book.set_quota("office", questions=3)
    told = run(capsys, "show", url, "--json")
    assert told["ledger"] == book.id
    unnamed = {"name": None, "nothing_left": 0, "questions_left": 9}
    assert told["levels"] == [
        {**unnamed, "epsilon": 0.1, "people": 1, "left": 0.09, "least": 0.09},
        {**unnamed, "epsilon": 1.0, "people": 2, "left": 0.9, "least": 0.9},
    ]
    assert (told["public"], told["withdrawn"], told["not_dp_since"]) == (1, 1, None)
    assert told["quotas"] == [
        {"analyst": "office", "epsilon": None, "questions": 3, "used_epsilon": 0.1, "used_questions": 1}
    ]
    words = run(capsys, "show", "--ledger", url)
    assert re.search(r"\n2 levels +3 +0\.09…0\.9 +0\.09 +0 +9\n", words)
    assert "Public: 1. Withdrawn: 1." in words
    assert "for fairness only, no privacy budget" in words
    assert "Not DP" not in words


def test_the_mark_of_individual_privacy_is_on_everything(
    book: Ledger, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ask(book, "before")
    ask(book, "individual", individual=True)
    for arguments in (["show", url], ["history", url], ["person", "1", url]):
        assert "Not DP since release 2." in run(capsys, *arguments)
        told = run(capsys, *arguments, "--json")
        assert (told if isinstance(told, dict) else told[-1])["not_dp_since"] == 2


def test_history_shows_the_grants_in_force(book: Ledger, url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "history", url, "--json") == []
    run(capsys, "history", url)
    ask(book, "one [b]", analyst="office")
    book.set_grants(digests([1], book.salt), [nano("0.05")])
    ask(book, "two")
    told = run(capsys, "history", url, "--json")
    assert [line["release"] for line in told] == [1, 2]
    assert told[0]["charges"] == [{"epsilon": 0.1, "charged": 0.01}, {"epsilon": 1.0, "charged": 0.1}]
    assert told[1]["charges"][0] == {"epsilon": 0.05, "charged": 0.005}
    assert told[0]["analyst"] == "office"
    words = run(capsys, "history", url)
    assert "one [b]" in words
    assert "0.005 of 0.05, 0.1 of 1" in words


def test_a_person_is_found_as_a_number_and_as_text(book: Ledger, url: str, capsys: pytest.CaptureFixture[str]) -> None:
    ask(book, "one")
    (told,) = run(capsys, "person", "1", url, "--json")
    assert (told["id_read_as"], told["granted"], told["left"], told["state"]) == ("number", 0.1, 0.09, "active")
    assert told["uses"][0].items() >= {"release": 1, "kind": "mean", "charged": 0.01, "granted": 0.1}.items()
    (told,) = run(capsys, "person", "ann", url, "--json")
    assert (told["id_read_as"], told["granted"], told["state"], told["while_public"]) == ("text", None, "public", [1])
    assert [one["id_read_as"] for one in run(capsys, "person", "2", url, "--json")] == ["number", "text"]
    assert run(capsys, "person", "1", "--ledger", url) == (
        "Used in 1 question (1 × mean), at a loss of at most 0.01 of 0.1 granted (10%).\nLeft: 0.09.\n"
    )
    assert run(capsys, "person", "gone", url).endswith("Withdrawn: not used any more.\n")
    assert "no account here" in run(capsys, "person", "nobody", url, status=7)
    assert "no account here" in run(capsys, "person", "007", url, status=7)


def test_a_person_is_found_by_the_kind_of_ids_that_was_settled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As by `epsilons person statement`: in the ledger's kind and spelling of ids, and no other."""
    monkeypatch.chdir(tmp_path)
    for name, ids in {"texts": ["1", "Ann"], "numbers": np.array([1, 2**63], np.uint64)}.items():
        write(tmp_path, name, ids)
        assert app.main(["register", f"{name}.toml"]) == 0
    capsys.readouterr()
    for typed, name, kind in (("1", "texts", "text"), (" aNN", "texts", "text"), (str(2**63), "numbers", "number")):
        (told,) = run(capsys, "person", typed, f"{name}.toml", "--json")
        assert told.pop("id_read_as") == kind
        assert app.main(["person", "statement", f"{name}.toml", typed, "--json"]) == 0
        assert json.loads(capsys.readouterr().out) == told
    for wrong, status in (("ann", 3), ("-7", 7), ("9" * 30, 3)):
        told = run(capsys, "person", "--", wrong, "numbers.toml", status=status)
        assert app.main(["person", "statement", "numbers.toml", "--", wrong]) == status
        assert capsys.readouterr().err == told


def write(home: Path, name: str, ids: Any, ledger: str = "") -> None:
    """A small table of these people, and the file that declares it."""
    pyarrow.parquet.write_table(pa.table({"id": ids, "wage": [1.0] * len(ids)}), home / f"{name}.parquet")
    (home / f"{name}.toml").write_text(
        f'name = "{name}"\nsource = "{name}.parquet"\nperson = "id"\nledger = "sqlite:///{ledger or name}.ledger"\n'
        "[preferences]\neveryone = 1\n"
    )


def test_a_dataset_file_is_answered_about_its_own_dataset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "wages", ["ann", "bob"], ledger="city")
    write(tmp_path, "health", ["ann", "bob", "cy"], ledger="city")
    for line in (["register", "wages.toml"], ["count", "wages.toml", "--share", "0.5"]):
        assert app.main(line) == 0
    capsys.readouterr()
    alone = run(capsys, "show", "wages.toml", "--json")
    assert alone["dataset"] is None
    assert app.main(["ledger", "show", "wages.toml"]) == 0
    assert "alone" not in capsys.readouterr().err
    assert app.main(["register", "health.toml", "--yes"]) == 0
    assert app.main(["count", "health.toml", "--share", "0.1"]) == 0
    capsys.readouterr()
    people = {"wages.toml": [2], "health.toml": [3], "city.ledger": [3]}
    releases = {"wages.toml": [1], "health.toml": [2], "city.ledger": [1, 2]}
    for place in people:
        told = run(capsys, "show", place, "--json")
        assert told["dataset"] == (place.removesuffix(".toml") if place.endswith(".toml") else None)
        assert [level["people"] for level in told["levels"]] == people[place]
        assert [line["release"] for line in run(capsys, "history", place, "--json")] == releases[place]
        assert [line["release"]["number"] for line in run(capsys, "answers", place, "--json")] == releases[place]
    for name in ("show", "history", "answers"):
        assert app.main(["ledger", name, "wages.toml"]) == 0
        note = (
            f"about wages alone. The ledger holds 2 datasets: epsilons ledger {name} sqlite:///{tmp_path}/city.ledger"
        )
        assert note in capsys.readouterr().err
        assert app.main(["ledger", name, "city.ledger"]) == 0
        assert "alone" not in capsys.readouterr().err
    assert "health, version 1, release 2" in run(capsys, "answers", "2", "wages.toml")
    write(tmp_path, "an other", ["ann"], ledger="city")
    for line in (["count"], ["ledger", "show"], ["person", "withdraw"]):
        assert app.main([*line, "an other.toml", *(["ann"] if line[0] == "person" else [])]) == 7
        told = capsys.readouterr().err
        assert "No dataset is registered as 'an other'" in told
        assert told.endswith("Try: `epsilons register 'an other.toml'`, by the steward\n")
    assert app.main(["register", "an other.toml", "--yes"]) == 0
    assert capsys.readouterr().err.splitlines()[-2].endswith("Next: epsilons plan 'an other.toml' count")
    file = tmp_path / "an other.toml"
    file.write_text(file.read_text().replace("sqlite:///city.ledger", "memory"))
    for line in (["ledger", "show", file.name], ["person", "withdraw", file.name, "ann"]):
        assert app.main(line) == 7
        assert "The ledger of an other.toml is in memory." in capsys.readouterr().err


def test_verify_and_export(book: Ledger, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ask(book, "one")
    told = run(capsys, "verify", url, "--json")
    assert told == {"entries": 7, "releases": 1, "people": 5, "head": book.verify().head, "snapshots": {}}
    assert run(capsys, "verify", url).startswith("The ledger adds up: 7 lines, 1 release, 5 people.")
    document = run(capsys, "export", url, "--json")
    lines = [json.loads(line) for line in run(capsys, "export", url).splitlines()]
    assert run(capsys, "export", url, "--output", str(tmp_path / "out")) == ""
    written = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
    assert document == lines == written
    assert balances(lines) == {c.id: (c.granted, c.spent, c.reserved, c.people) for c in book.cohorts()}
    exported = json.dumps(lines)
    assert not any(bytes(row).hex() in exported for row in book.members().digests)
    assert book.salt.hex() not in exported


def test_what_does_not_add_up_ends_with_a_status(book: Ledger, url: str, capsys: pytest.CaptureFixture[str]) -> None:
    with book._database.write() as connection:
        connection.execute("UPDATE segments SET newest = 77")
    assert "does not add up" in run(capsys, "verify", url, status=7)


def hinted(capsys: pytest.CaptureFixture[str], name: str, url: str, *more: str) -> list[str]:
    """The command of a refusal, as it would be pasted; the address of a database is shown without its secrets."""
    (hint,) = re.findall("`epsilons ledger (.*?)`", run(capsys, name, url, *more, status=7))
    return [url if one == show_address(url) else one for one in shlex.split(hint)]


def test_adopt_takes_a_ledger_as_it_is(
    book: Ledger, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another machine"))
    assert run(capsys, *hinted(capsys, "show", url)).startswith("Adopted. The head is line 4: ")
    assert run(capsys, "adopt", url, "--json")["accepted_loss"] is False
    run(capsys, "show", url)
    elsewhere = str(tmp_path / "a head.json")
    run(capsys, *hinted(capsys, "show", url, "--anchor", elsewhere))
    run(capsys, "show", url, "--anchor", elsewhere)


def test_a_loss_is_accepted_on_purpose_only(
    book: Ledger, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another machine"))
    unsaid = "What people said since this copy was made, levels and withdrawals, is lost, too. "
    assert f"{unsaid}Say --yes" in " ".join(run(capsys, "adopt", url, "--accept-loss", status=2).split())
    assert app.main(["ledger", "adopt", url, "--accept-loss", "--yes"]) == 0
    told = capsys.readouterr()
    assert "Everyone's grant counts as spent" in told.out
    assert f"{unsaid}Ask them again, also those who were told that they had withdrawn." in " ".join(told.err.split())
    assert [level["left"] for level in run(capsys, "show", url, "--json")["levels"]] == [0, 0]
    assert "nothing was lost" in run(capsys, "adopt", url, "--accept-loss", "--yes", status=7)
    (head,) = (tmp_path / "another machine" / "epsilons" / "ledgers").glob("*.json")
    head.write_text(json.dumps(json.loads(head.read_text()) | {"seq": 99}))
    assert "Everyone's grant counts as spent" in run(capsys, *hinted(capsys, "show", url))


def test_the_ledger_is_named_somehow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "Which ledger?" in run(capsys, "show", status=2)
    assert "--ledger people.toml" in run(capsys, "adopt", "--accept-loss", "--yes", status=2)
    assert "no ledger at sqlite:" in run(capsys, "show", "missing.ledger", status=7)
    assert not (tmp_path / "missing.ledger").exists()
    epsilons.ledger.open("sqlite:///people.ledger").close()
    run(capsys, "show", "people.ledger")
    monkeypatch.setenv("EPSILONS_LEDGER", "people.ledger")
    run(capsys, "show")


def declare_people(folder: Path) -> None:
    """The dataset file of the examples, registered: ids 0 to 29, a ledger beside it, and a backup of it."""
    (folder / "people.csv").write_text("id,wage\n" + "".join(f"{number},{number}\n" for number in range(30)))
    (folder / "people.toml").write_text(
        'source = "people.csv"\nperson = "id"\nledger = "sqlite:///wages.ledger"\n[types]\nid = "int"\nwage = "float"\n'
        "[bounds]\nwage = [0, 100]\n[preferences]\neveryone = 0.5\n"
    )
    assert app.main(["register", "people.toml"]) == 0
    assert app.main(["ledger", "backup", "wages.backup", "people.toml"]) == 0


def test_the_examples_work_as_pasted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One after the other on one dataset; `move` on another one, since it refuses a ledger that was retired."""
    late = ["restore", "retire"]
    early = sorted(set(command.commands) - {*late, "move"})
    for folder, names in (("one", [*early, *late]), ("another", ["move"])):
        (tmp_path / folder).mkdir()
        monkeypatch.chdir(tmp_path / folder)
        Path("people.csv").write_text("id\n" + "".join(f"{number}\n" for number in range(30)))
        Path("people.toml").write_text(
            'source = "people.csv"\nperson = "id"\nledger = "sqlite:///wages.ledger"\n'
            '[types]\nid = "int"\n[preferences]\neveryone = 0.5\n'
        )
        assert app.main(["register", "people.toml"]) == 0
        for name in names:
            text = command.commands[name].get_help(click.Context(command.commands[name], info_name=name))
            (line,) = text.split("Example:\n")[1].split("\n\n")[0].splitlines()
            example = shlex.split(line)
            assert example[:3] == ["epsilons", "ledger", name]
            assert app.main(example[1:]) == 0, name
            assert "Traceback" not in capsys.readouterr().err
    assert sys.modules["epsilons.cli.commands.ledger"].command is command


def test_a_dataset_file_that_names_no_ledger_is_told_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "people.csv").write_text("id\n1\n")
    path = tmp_path / "noledger.toml"
    path.write_text('source = "people.csv"\nperson = "id"\n[preferences]\neveryone = 0.5\n')
    told = " ".join(run(capsys, "show", str(path), status=7).split())
    assert "noledger.toml names no ledger." in told
    assert 'ledger = "sqlite:///people.ledger" in the file' in told


@pytest.mark.parametrize("typed", ["1_7", "17.0", "\uff1017", "+17", " 17", ""])
def test_an_id_is_a_number_only_as_it_would_be_written(typed: str) -> None:
    assert read_ids(["017", "-5"], "number") == [17, -5]
    with pytest.raises(PreferenceError, match="not a whole number"):
        read_ids([typed], "number")


def test_no_command_takes_an_edited_ledger_for_true(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text("id,epsilon\nann,1\nbob,2\n")
    Path("people.toml").write_text(
        'name = "people"\nsource = "people.csv"\nperson = "id"\nledger = "sqlite:///people.ledger"\n'
        '[types]\nepsilon = "float"\n[preferences]\ncolumn = "epsilon"\n'
    )
    assert app.main(["register", "people.toml"]) == 0
    with closing(sqlite3.connect("people.ledger")) as edited, edited:
        edited.execute("UPDATE cohorts SET spent = 1")
    for line in (
        "ledger show", "ledger history", "ledger answers", "ledger person ann", "person statement people.toml ann",
        "person level people.toml ann 0.5", "person withdraw people.toml ann", "check", "register", "count",
    ):  # fmt: skip
        assert app.main([*line.split(), *(["people.toml"] if "people.toml" not in line else [])]) == 7, line
        assert "this ledger was edited or damaged" in capsys.readouterr().err, line
    assert app.main(["ledger", "export", "people.toml"]) == 0  # what was changed can be looked for


def test_who_may_only_read_a_ledger_can_verify_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An auditor, who has no head here and leaves nothing behind."""
    url, kept = f"sqlite:///{tmp_path}/a.ledger", f"sqlite:///{tmp_path}/w.store"
    with closing(epsilons.ledger.open(url, witness=kept)) as book:
        book.settle_terms("absent", 1)
        backup = tmp_path / "older"
        book.copy(str(backup))
        book.set_quota("office", questions=3)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "auditor"))
    monkeypatch.setattr("epsilons.cli.ledgers._may_write", lambda path: False)
    for part in tmp_path.glob("a.ledger*"):
        part.chmod(0o400)
    before = {one.name: one.stat().st_mtime_ns for one in tmp_path.iterdir() if not one.name.startswith("w.store")}
    assert "The ledger adds up" in run(capsys, "verify", url)
    now = {one.name: one.stat().st_mtime_ns for one in tmp_path.iterdir() if not one.name.startswith("w.store")}
    assert now == before
    # An older copy is refused to auditors, too.
    assert "older than its witness" in run(capsys, "verify", f"sqlite:///{backup}", status=7)


def test_who_may_only_read_verifies_one_state_of_a_ledger_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever writes may write the log back between the file and its log are copied: the two would not fit."""
    url = f"sqlite:///{tmp_path}/a.ledger"
    monkeypatch.setattr("epsilons.cli.ledgers._may_write", lambda path: False)
    copyfile, written = shutil.copyfile, list[str]()
    with closing(epsilons.ledger.open(url)) as book:
        book.settle_terms("absent", 1)

        def copy(path: str, there: str) -> None:
            copyfile(path, there)
            if not path.endswith("-wal") and len(written) < 80:
                for n in range(40):
                    written.append(f"office {len(written)} {n}")
                    book.set_quota(written[-1], questions=3)
                book._database.forget()

        monkeypatch.setattr(shutil, "copyfile", copy)
        assert "The ledger adds up" in run(capsys, "verify", url)


@pytest.mark.integration
@pytest.mark.parametrize("witnessed", [False, True])
def test_who_may_only_select_from_a_ledger_can_verify_it(
    tmp_path: Path, postgres_server: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    witnessed: bool,
) -> None:  # fmt: skip
    """An auditor with a role of their own: held to the witness, or from the first time on to a head of their own."""
    url, kept = fresh(postgres_server), f"sqlite:///{tmp_path}/w.store"
    schema = url.rsplit("schema=", 1)[1]
    with closing(epsilons.ledger.open(url, witness=kept if witnessed else None)) as book:
        book.settle_terms("absent", 1)
        book.set_quota("office", questions=3)
        with book._database.write() as connection:
            connection.execute(f"CREATE ROLE auditor_{schema} LOGIN")
            connection.execute(f'GRANT USAGE ON SCHEMA "{schema}" TO auditor_{schema}')
            connection.execute(f'GRANT SELECT ON ALL TABLES IN SCHEMA "{schema}" TO auditor_{schema}')
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "auditor"))
    auditor = url.replace("://postgres:@", f"://auditor_{schema}:@")
    assert auditor != url
    if not witnessed:
        assert "ledger adopt" in run(capsys, "verify", auditor, status=7)
        assert "Adopted" in run(capsys, "adopt", auditor)
    assert "The ledger adds up" in run(capsys, "verify", auditor)
    with closing(epsilons.ledger.open(url)) as book, book._database.write() as connection:
        connection.execute("UPDATE quotas SET questions = 4")
    assert "edited or damaged" in run(capsys, "verify", auditor, status=7)
