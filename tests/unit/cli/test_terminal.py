"""Nothing that others wrote reaches a terminal as a command: names, questions, ids and paths are shown, not obeyed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet
import pytest

import epsilons as eps
from epsilons import display
from epsilons.cli import output
from epsilons.cli.app import main
from epsilons.errors import DataError, printable
from support.gateways import Servers, open_office

#: Escapes of seven and of eight bits, a title, a carriage return, a backspace, text turned around, a line of its own.
HOSTILE = "\x1b[2J\x9b31m\x1b]0;owned\x07\r\b\x7f\u202enimda\u2066\u200b\u2028"
COLUMN, LEVEL, ANALYST, KEY = f"wage{HOSTILE}", f"strict{HOSTILE}", f"ann{HOSTILE}", f"north{HOSTILE}"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    rows = {"id": ["a", "b", "c"], COLUMN: [10.0, 20.0, 30.0], "region": [KEY, "south", KEY], "privacy": [LEVEL] * 3}
    pa.parquet.write_table(pa.table(rows), tmp_path / "wages.parquet")
    text = {"source": "wages.parquet", "person": "id", "ledger": "sqlite:///people.ledger", "version": "1"}
    lines = [f"{name} = {display.toml_value(value)}" for name, value in text.items()]
    tables = {"preferences": {"column": "privacy", "levels": {LEVEL: 1.0}}, "bounds": {COLUMN: [0, 100]}}
    for name, table in tables.items():
        lines += [f"[{name}]", *(f"{display.toml_key(key)} = {display.toml_value(one)}" for key, one in table.items())]
    (tmp_path / "people.toml").write_text("\n".join(lines))
    return tmp_path / "people.toml"


def told(file: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[str]:
    """What commands print, one after the other, refusals too."""
    where = f"region = '{KEY}'"
    for command in (
        ["check", str(file)],
        ["check", str(file), "--json"],
        ["register", str(file)],
        ["plan", str(file), "mean", COLUMN],
        ["mean", str(file), COLUMN, "--where", where, "--share", "0.1", "--analyst", ANALYST],
        ["count", str(file), "--by", f"region={KEY},south", "--share", "0.1", "--verbose"],
        ["histogram", str(file), "region", "--categories", f"{KEY},south", "--share", "0.1"],
        ["mean", str(file), f"none{HOSTILE}"],
        ["mean", str(file), COLUMN, "--where", f"{COLUMN} like me"],
        ["mean", str(file), COLUMN, "--mechanism", f"best{HOSTILE}"],
        ["ledger", "history", "people.ledger"],
        ["ledger", "history", "people.ledger", "--json"],
        ["ledger", "show", "people.ledger"],
        ["ledger", "person", f"a{HOSTILE}", "people.ledger"],
        ["person", "statement", str(file), "a"],
        ["person", "level", str(file), "a", LEVEL],
        ["person", "level", str(file), f"a{HOSTILE}", f"none{HOSTILE}"],
        ["ledger", "show", f"nowhere{HOSTILE}"],
        ["init", f"nowhere{HOSTILE}.csv"],
        [f"mean{HOSTILE}"],
        ["check", f"{file}{HOSTILE}"],
    ):
        main(command)
        yield "".join(capsys.readouterr())


def strange(text: str) -> set[str]:
    return {one for one in text if one != "\n" and not one.isprintable()}


def test_no_command_prints_a_control_character(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    everything = "\n".join(told(file, capsys))
    assert strange(everything) == set()
    # All of it was there, as text.
    for name in ("wage", "strict", "ann", "north"):
        assert f"{name}\\x1b[2J\\x9b31m" in everything
        assert f"{name}\\u001b[2J\\u009b31m" in everything


def test_nor_does_one_whose_answer_comes_from_a_server(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Who wrote the names there may be somebody else than who types here."""
    assert main(["register", str(file)]) == 0
    (file.parent / "office").mkdir()
    where, asked = f"region = '{KEY}'", str(file.parent / "office" / "people.toml")
    with closing(Servers()) as servers:
        open_office(file.parent, file.parent / "office", servers, "people")
        for command in (
            ["plan", asked, "mean", COLUMN],
            ["mean", asked, COLUMN, "--where", where, "--share", "0.1"],
            ["count", asked, "--by", f"region={KEY},south", "--share", "0.1", "--verbose"],
            ["histogram", asked, "region", "--categories", f"{KEY},south", "--share", "0.1"],
            ["sql", asked, f'SELECT COUNT(*) AS "n{HOSTILE}" FROM people', "--share", "0.1"],
            ["batch", asked, f'count --where "{where}"', "--share", "0.1"],
            ["mean", asked, f"none{HOSTILE}"],
            ["mean", asked, COLUMN, "--where", f"{COLUMN} like me"],
            ["mean", asked, COLUMN, "--mechanism", f"best{HOSTILE}"],
            ["ledger", "show", asked],
            ["ledger", "answers", asked],
            ["ledger", "answers", "1", asked],
        ):
            main(command)
            main([*command, "--json"])
    everything = "".join(capsys.readouterr())
    assert strange(everything) == set()
    for name in ("wage", "strict", "north"):
        assert f"{name}\\x1b[2J\\x9b31m" in everything
        assert f"{name}\\u001b[2J\\u009b31m" in everything


def test_without_the_one_place_that_prints_it_would(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The planted bug: as it is."""
    as_it_is = {"printable": lambda text, keep="": str(text)}
    with patch.multiple(output, **as_it_is), patch.multiple(display, **as_it_is):
        assert "\x1b" in next(told(file, capsys))


def test_json_keeps_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    document = {HOSTILE: [HOSTILE + "\U000e0001", "Ünïcode ß 東", 1.5]}
    output.print_json(document)
    text = capsys.readouterr().out
    assert strange(text) == set()
    assert json.loads(text) == document
    assert "Ünïcode ß 東" in text


def test_errors_and_what_objects_say_of_themselves() -> None:
    table = pa.table({"id": [1, 2], COLUMN: [1.0, 2.0], "region": [KEY, "south"], "privacy": [LEVEL] * 2})
    preferences = eps.Preferences.from_levels("privacy", {LEVEL: 1.0})
    shown: list[Any] = [DataError(f"what {HOSTILE}", rule=f"rule {HOSTILE}", suggest=f"hint {HOSTILE}")]
    for label in ("name", "version"):  # they are kept for good, and quoted by others
        with pytest.raises(DataError, match=f"^{label} is not a label"):
            eps.Dataset(table, person="id", preferences=preferences, ledger="memory", **{label: f"1{HOSTILE}"})
    with eps.Dataset(table, person="id", preferences=preferences, ledger="memory") as people:
        shown += [people, people.plan("mean", COLUMN, bounds=(0, 9)), people.count(by={"region": [KEY]}, share=0.1)]
        shown.append(people.apply(lambda data, epsilon: HOSTILE, columns=[COLUMN], name=f"mine{HOSTILE}", share=0.1))
        shown += [people.history(), people.remaining(), shown[-1].guarantee]
        for wrong in ({"column": "none"}, {"column": COLUMN, "where": HOSTILE}):
            with pytest.raises(eps.EpsilonsError) as refused:
                people.mean(**wrong, bounds=(0, 9))
            shown.append(refused.value)
        for one in shown:
            assert strange(str(one)) == set(), one
            assert strange(getattr(one, "_repr_html_", str)()) == set(), one


def test_ordinary_text_stays_as_it_is() -> None:
    text = "Ünïcode ß 東 “quoted” − × 1,000"
    assert printable(text) == text
    assert printable("two\nlines", keep="\n") == "two\nlines"
    assert printable("two\nlines\t") == "two\\nlines\\t"
