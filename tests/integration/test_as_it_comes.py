"""Files of many habits, registered as a new user would: `init` with what one knows, `check`, `register`, a question.

Everyone here is public, so that answers are exact: what was read is compared with what was written.
"""

from __future__ import annotations

import csv
import io
import json
import tomllib
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from epsilons.cli.app import main
from support.workbooks import write_workbook

PEOPLE = [
    ("007", 1234.5, date(1980, 12, 24), "Ulm", "01067"), ("08", 20.25, date(1990, 1, 31), "Köln; Süd", "89073"),
    ("9", 0.5, date(2001, 2, 3), "Genf", "00501"), ("10", 99.75, date(1965, 5, 6), 'say "so"', "1067"),
    ("11", 1.0, date(1999, 12, 31), "Zürich", "00008"),
]  # fmt: skip
NAMES = ("id", "wage", "born", "town", "code", "privacy")


def spell(comma: bool, days: str) -> list[list[str]]:
    """The people as text, with a decimal comma or point, and days in this format."""
    return [
        [
            one,
            f"{wage:,.2f}".translate({44: ".", 46: ","}) if comma else str(wage),
            born.strftime(days),
            *texts,
            "public",
        ]
        for one, wage, born, *texts in PEOPLE
    ]


def lines(separator: str, rows: list[list[str]], end: str = "\r\n") -> str:
    file = io.StringIO()
    csv.writer(file, delimiter=separator, lineterminator=end).writerows([NAMES, *rows])
    return file.getvalue()


def plain(separator: str, encoding: str, comma: bool, days: str, mark: bytes = b"") -> Callable[[Path], None]:
    return lambda path: (path.write_bytes(mark + lines(separator, spell(comma, days)).encode(encoding)), None)[1]


def ragged(path: Path) -> None:
    rows = lines(",", spell(False, "%Y-%m-%d"), "\n").splitlines()
    path.write_text("\n".join([rows[0], rows[1] + ",more,and more", *rows[2:], ",", "", ',"x']) + "\n")


def with_ends(path: Path) -> None:
    """Excel's own word for the separator, one more at the end of every line, empty lines at the end of the file."""
    rows = lines(";", spell(False, "%Y-%m-%d"), "\r\n")
    path.write_bytes(("sep=;\r\n" + rows.replace("\r\n", ";\r\n") + ";;;;;;\r\n\r\n").encode())


def late_keys(path: Path) -> None:
    rows = [dict(zip(NAMES, (one, wage, str(born), *more, "public"), strict=True)) for one, wage, born, *more in PEOPLE]
    rows[0].pop("town"), rows[-1].update(new={"a": 1})
    path.write_text("".join(json.dumps(dict(reversed(row.items()))) + "\n" for row in rows) + "no object\n")


def workbook(path: Path) -> None:
    rows = [[*person, "public"] for person in PEOPLE]
    write_workbook(path, {"Notes": [["about"]], "People": [list(NAMES), *rows]})


TYPED = ["--type", "wage=float", "--type", "born=date"]
TEXTS = [f"--type={name}=text" for name in ("id", "town", "code", "privacy")]
GERMAN = [
    "--dialect",
    "separator=;",
    "--dialect",
    "decimal=,",
    "--dialect",
    "thousands=.",
    "--dialect",
    "dates=%d.%m.%Y",
]
HABITS: dict[str, tuple[str, Callable[[Path], None], list[str]]] = {
    "German": ("leute.csv", plain(";", "utf-8", True, "%d.%m.%Y"), [*TYPED, *GERMAN]),
    "Latin-1": ("a.csv", plain(",", "latin-1", False, "%Y-%m-%d"), [*TYPED, "--dialect", "encoding=latin-1"]),
    "CP1252": ("a.csv", plain(";", "cp1252", True, "%d.%m.%Y"), [*TYPED, *GERMAN, "--dialect", "encoding=cp1252"]),
    "semicolons, by the first line": ("a.csv", plain(";", "utf-8", False, "%Y-%m-%d"), TYPED),
    "a mark of UTF-8": ("a.csv", plain(",", "utf-8", False, "%Y-%m-%d", b"\xef\xbb\xbf"), TYPED),
    "UTF-16, tabs, American days": (
        "utf16.csv", plain("\t", "utf-16", False, "%m/%d/%Y"),
        [*TYPED, "--dialect", "separator=\t", "--dialect", "encoding=utf-16", "--dialect", "dates=%m/%d/%Y"],
    ),
    "tabs": ("a.tsv", plain("\t", "utf-8", False, "%Y-%m-%d"), TYPED),
    "ragged lines and broken quotes": ("a.csv", ragged, TYPED),
    "a separator named, and one at the end of lines": ("a.csv", with_ends, TYPED),
    "JSON with late keys": ("a.ndjson", late_keys, [*TYPED, *TEXTS]),
    "Excel with days": ("a.xlsx", workbook, [*TYPED, "--table", "People"]),
    "bars": ("a.csv", plain("|", "utf-8", False, "%Y-%m-%d"), TYPED),
}  # fmt: skip


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def register_and_ask(source: str, given: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """What a new user types; the private facts of `check --steward`."""
    init = ["init", source, "--person", "id", "--preferences", "privacy", "--level", "public=public", "--version", "1"]
    for command in ([*init, *given], ["check", "people.toml"], ["register", "people.toml"]):
        assert main(command) == 0, capsys.readouterr().err
    capsys.readouterr()

    def ask(*command: str) -> Any:
        assert main([*command, "--share", "0.1", "--json"]) == 0, capsys.readouterr().err
        return json.loads(capsys.readouterr().out)["release"]["value"]

    wages = sum(wage for _, wage, *_ in PEOPLE)
    assert ask("sum", "people.toml", "wage", "--bounds", "0,2000") == pytest.approx(wages, abs=1e-4)
    assert ask("count", "people.toml", "--where", "born >= '1990-01-01'") == 3
    assert ask("count", "people.toml", "--where", "town IN ('Zürich', 'Genf')") == 2
    assert ask("count", "people.toml", "--where", "town = 'Köln; Süd'") == 1
    assert [ask("count", "people.toml", "--where", f"code = '{code}'") for code in ("01067", "00501", "501")] == [
        1,
        1,
        0,
    ]
    checked = main(["check", "people.toml", "--steward", "--json"])
    private = dict(json.loads(capsys.readouterr().out)["private"])
    assert main(["register", "people.toml"]) == checked  # of a server, whose rows may be others now, a refusal
    return private


@pytest.mark.parametrize("habit", HABITS)
def test_a_file_of_this_habit(habit: str, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name, write, given = HABITS[habit]
    write(home / name)
    private = register_and_ask(name, given, capsys)
    assert private["unread"] == {"wage": int("ragged" in habit), "born": 0}
    broken = {"lines with cells too many or too few": 3, "lines with quotes out of place": 1}
    assert {name: count for name, count in private["lines"].items() if count} == (broken if "ragged" in habit else {})
    assert private["without_id"] == ("late keys" in habit) + 2 * ("ragged" in habit) + ("end of lines" in habit)


def test_a_wrong_dialect_is_counted_for_the_steward(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "a.csv").write_text(lines(";", spell(True, "%d.%m.%Y")), encoding="utf-8")
    given = ["--person", "id", "--preferences", "privacy", "--level", "public=public", *TYPED]
    assert main(["init", "a.csv", *given]) == 0
    assert main(["check", "people.toml", "--steward", "--json"]) == 0
    out = capsys.readouterr().out
    assert json.loads(out)["private"]["unread"] == {"wage": 5, "born": 5}


@pytest.mark.integration
def test_a_table_of_a_server(postgres_server: str, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    psycopg = pytest.importorskip("psycopg")
    pytest.importorskip("adbc_driver_postgresql")
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute("CREATE TABLE folk (id text, wage numeric, born date, town text, code text, privacy text)")
        insert = "INSERT INTO folk VALUES (%s, %s, %s, %s, %s, 'public')"
        connection.cursor().executemany(insert, PEOPLE)
        try:
            address = postgres_server.replace("postgres:@", "postgres:secret@")
            assert register_and_ask(address, ["--table", "folk"], capsys)["unread"] == {"wage": 0}
        finally:
            connection.execute("DROP TABLE folk")
    # The source is gone, the snapshot is asked; the address is kept without its password.
    assert main(["mean", "people.toml", "wage", "--bounds", "0,2000", "--share", "0.1"]) == 0
    assert b"secret" not in b"".join(path.read_bytes() for path in home.glob("folk.ledger*") if path.is_file())


def test_init_proposes_by_the_first_line_and_loses_nothing(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "a.csv").write_bytes(lines(";", spell(True, "%d.%m.%Y")).replace("town", "größe").encode("cp1252"))
    monkeypatch.setattr("epsilons.cli.commands.init._terminal", lambda: True)
    dialect = ["no", "", "", "", "no", ".", "%d.%m", ""]  # two wrong answers are asked for again
    types = ["no type", "float", "date", "", ""]
    levels = ["high", "standard=20", "standard=0.2, public=public, mine=0.3", "yours", "mine"]
    answers = [*dialect, *types, *levels, "0,2000", "none", "3"]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(answers) + "\n"))
    assert main(["init", "a.csv", "--person", "id", "--preferences", "privacy"]) == 0, capsys.readouterr().err
    made = tomllib.loads((home / "people.toml").read_text())
    written = {"separator": ";", "encoding": "cp1252", "decimal": ",", "thousands": ".", "dates": "%d.%m.%Y"}
    assert made["dialect"] == written
    assert made["types"] == {"wage": "float", "born": "date"}
    assert made["preferences"]["levels"] == {"standard": 0.2, "public": "public", "mine": 0.3}
    assert made["preferences"]["default"] == "mine"
    told = capsys.readouterr().err
    assert "Level 'standard' is 20, above the ceiling of 10." in told
    assert "'yours' is none of these levels." in told
    assert (made["bounds"], made["rows_per_person"]) == ({"wage": [0, 2000]}, 3)


def type_in(monkeypatch: pytest.MonkeyPatch, *answers: str) -> None:
    monkeypatch.setattr("epsilons.cli.commands.init._terminal", lambda: True)
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(answers) + "\n"))


def test_init_asks_for_the_columns_of_json_lines(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "a.jsonl").write_text('{"id": "007"}\n{"id": "008", "wage": 5, "privacy": "public"}\n')
    columns = ["id wage", "wage=money", "wage=float", "id=text wage=float, privacy=text"]
    type_in(monkeypatch, "", *columns, "public=public", "public", "", "")
    assert main(["init", "a.jsonl", "--person", "id", "--preferences", "privacy"]) == 0, capsys.readouterr().err
    told = capsys.readouterr().err
    assert "Unknown type 'money' of column 'wage'." in told
    assert "Column 'id' is not among them. It was named before." in told
    made = tomllib.loads((home / "people.toml").read_text())
    assert made["types"] == {"id": "text", "wage": "float", "privacy": "text"}
    assert made["preferences"]["default"] == "public"
    assert main(["register", "people.toml"]) == 0


def test_a_column_of_epsilons_needs_no_levels(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "a.csv").write_text("id;wage;wish\n" + "".join(f"{i};{i};0,{1 + i % 2}\n" for i in range(40)))
    given = ["init", "a.csv", "--person", "id", "--preferences", "wish", "--version", "1"]
    assert main(given) != 0
    assert "--level strict=0.05 --level open=1, or --type wish=float for one of epsilons" in capsys.readouterr().err
    assert main([*given, "--type", "wish=float", "--yes"]) == 0
    (home / "people.toml").rename(home / "typed.toml")
    type_in(monkeypatch, "", "float", "numbers", "0,40", "")
    assert main(given) == 0, capsys.readouterr().err
    for made in ("people.toml", "typed.toml"):
        assert tomllib.loads((home / made).read_text())["types"]["wish"] == "float"
        assert tomllib.loads((home / made).read_text())["preferences"] == {"column": "wish"}
    assert main(["register", "people.toml"]) == 0, capsys.readouterr().err
    capsys.readouterr()
    assert main(["check", "people.toml", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [level["epsilon"] for level in told["levels"]] == [0.1, 0.2]


def test_init_asks_about_many_columns_at_once(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "a.csv").write_text(",".join(["id", *(f"q{i}" for i in range(3_000)), "privacy"]) + "\n")
    type_in(monkeypatch, "", "q9=much", "q3001=int", "q9=int, Q2999=float", "id", "privacy", "low=1", "", "0,5", "", "")
    assert main(["init", "a.csv"]) == 0, capsys.readouterr().err
    told = capsys.readouterr().err
    assert len(told) < 4_000
    assert "Unknown type 'much' of column 'q9'." in told
    assert "There is no column 'q3001'." in told
    made = tomllib.loads((home / "people.toml").read_text())
    assert (made["types"], made["bounds"]) == ({"q9": "int", "q2999": "float"}, {"q9": [0, 5]})


def test_init_asks_again_how_a_file_is_written_where_that_cannot_be(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "a.csv").write_bytes(lines(";", spell(True, "%d.%m.%Y")).replace("town", "größe").encode("cp1252"))
    # A comma for the thousands beside a decimal comma; a file in CP1252 is not UTF-8.
    first, again = ["no", "", "utf-8", "", ",", ".", "", "y"], ["", "cp1252", "", "", ""]
    type_in(monkeypatch, *first, *again, "float", "date", "", "", "0,2000", "")
    given = ["--person", "id", "--preferences", "privacy", "--level", "public=public"]
    assert main(["init", "a.csv", *given]) == 0, capsys.readouterr().err
    told = " ".join(capsys.readouterr().err.split())
    assert "'thousands' of the dialect is not one." in told
    assert "A file does not begin with the names of its columns." in told
    made = tomllib.loads((home / "people.toml").read_text())
    written = {"separator": ";", "encoding": "cp1252", "decimal": ",", "thousands": ".", "dates": "%d.%m.%Y"}
    assert (made["dialect"], made["bounds"]) == (written, {"wage": [0, 2000]})


def test_init_asks_again_how_a_file_is_written_where_it_has_not_the_columns_that_were_named(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "a.csv").write_text(lines(";", spell(True, "%d.%m.%Y")))
    first, again = ["no", "|", "", "", ".", "", ""], [";", "", "", "", ""]
    type_in(monkeypatch, *first, *again, "float", "date", "", "", "0,2000", "")
    given = ["--person", "id", "--preferences", "privacy", "--level", "public=public"]
    assert main(["init", "a.csv", *given]) == 0, capsys.readouterr().err
    assert "There is no column 'id'." in capsys.readouterr().err
    made = tomllib.loads((home / "people.toml").read_text())
    assert made["dialect"] == {"separator": ";", "decimal": ",", "thousands": ".", "dates": "%d.%m.%Y"}


def test_init_proposes_tabs_by_a_file_s_name(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--person", "id", "--preferences", "privacy", "--level", "public=public", "--force"]
    for separator, proposed, answer in (("\t", "tab", ""), (",", ",", ""), (",", ",", ",")):
        (home / "a.tsv").write_text(lines(separator, spell(False, "%Y-%m-%d")))
        type_in(monkeypatch, "no", answer, *[""] * 4, *[""] * 4, "")
        assert main(["init", "a.tsv", *given]) == 0, capsys.readouterr().err
        assert f"tab (Enter: {proposed})" in capsys.readouterr().err
        made = tomllib.loads((home / "people.toml").read_text())
        assert made.get("dialect") == ({"separator": ","} if separator == "," else None)


@pytest.mark.parametrize(
    "wrong",
    [
        ["--level", "strict=much"], ["--level", "strict"], ["--public", "nowhere"], ["--person", "nowhere"],
        ["--preferences", "nowhere"], ["--delta", "2"], ["--level", "strict=1", "--renews", "open=year"],
        ["--bounds", "nowhere=0,1"], ["--out", "nowhere/people.toml"],
    ],
)  # fmt: skip
def test_init_asks_nothing_before_what_was_said_can_be(
    wrong: list[str], home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "a.csv").write_text(lines(",", spell(False, "%Y-%m-%d")))
    type_in(monkeypatch, "")  # the columns' names are known once it is said how the file is written
    assert main(["init", "a.csv", *wrong]) != 0
    assert "What does" not in capsys.readouterr().err
    assert not (home / "people.toml").exists()


def test_what_cannot_be_by_the_types_is_refused_before_the_rest_is_asked(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "a.csv").write_text(lines(",", spell(False, "%Y-%m-%d")))
    given = ["init", "a.csv", "--person", "id", "--preferences", "privacy"]
    for wrong in (["--public", "wage"], ["--bounds", "town=0,1", "--type", "town=text"]):
        type_in(monkeypatch, "", *(["float", "", "", ""] if "--public" in wrong else []))
        assert main([*given, *wrong]) != 0
        assert "Levels as the column names them" not in capsys.readouterr().err


def test_levels_are_asked_again_where_one_is_to_be_renewed_that_is_not_there(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "a.csv").write_text(lines(",", spell(False, "%Y-%m-%d")))
    type_in(monkeypatch, "", *[""] * 4, "strict=0.1", "strict=0.1, open=1", "", "")
    given = ["--person", "id", "--preferences", "privacy", "--renews", "open=year"]
    assert main(["init", "a.csv", *given]) == 0, capsys.readouterr().err
    assert tomllib.loads((home / "people.toml").read_text())["renews"] == {"open": "year"}


@pytest.mark.parametrize(
    ("separator", "told", "written"),
    [
        (",", "separator ',', encoding 'utf-8', decimal '.', thousands 'none', dates '2026-12-31'", {}),
        (
            ";",
            "separator ';', encoding 'utf-8', decimal ',', thousands 'none', dates '%d.%m.%Y'",
            {"separator": ";", "decimal": ",", "dates": "%d.%m.%Y"},
        ),
    ],
)
def test_one_yes_takes_all_that_is_proposed(
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    separator: str,
    told: str,
    written: dict[str, str],
) -> None:
    (home / "a.csv").write_text(separator.join(["id", "wage", "privacy"]) + "\n")
    levels = "low = 0.1 middle=0.5 high=public"  # blanks are as good as commas
    type_in(monkeypatch, "", "float", levels, "", "0,2000", "")
    assert main(["init", "a.csv", "--person", "id", "--preferences", "privacy"]) == 0, capsys.readouterr().err
    assert f"By the first line text is written so: {told}. Is that right? [Y/n]" in capsys.readouterr().err
    made = tomllib.loads((home / "people.toml").read_text())
    assert made.get("dialect", {}) == written
    assert made["types"] == {"wage": "float"}
    assert made["preferences"]["levels"] == {"low": 0.1, "middle": 0.5, "high": "public"}
    assert made["bounds"] == {"wage": [0, 2000]}


def test_init_off_a_terminal_writes_what_it_knows_and_says_what_it_does_not(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "a.csv").write_bytes(lines(";", spell(True, "%d.%m.%Y")).replace("town", "größe").encode("cp1252"))
    given = ["init", "a.csv", "--person", "id", "--preferences", "privacy", "--level", "public=public"]
    assert main([*given, "--type", "wage=float"]) == 0
    told, text = " ".join(capsys.readouterr().err.split()), (home / "people.toml").read_text()
    assert "separator ';'" in told
    assert "Guessed, and left as a comment: decimal ',', dates '%d.%m.%Y'." in told
    assert "which no first line can tell: born, größe, code." in told
    made = tomllib.loads(text)
    assert made["dialect"] == {"separator": ";", "encoding": "cp1252"}
    assert made["types"] == {"wage": "float"}
    # What is a comment becomes what is meant by taking its sign away.
    edited = text.replace("# decimal", "decimal").replace("# dates", "dates").replace('# "größe" =', '"größe" =')
    guessed = {"separator": ";", "encoding": "cp1252", "decimal": ",", "dates": "%d.%m.%Y"}
    assert tomllib.loads(edited)["dialect"] == guessed
    assert tomllib.loads(edited)["types"] == {"wage": "float", "größe": "text"}
    # Scripts take the guess, or a part of it, by a word.
    for more, wanted in ((["--yes"], guessed), (["--yes", "--dialect", "decimal=."], guessed | {"decimal": "."})):
        assert main([*given, "--force", *more]) == 0
        assert "Guessed" not in capsys.readouterr().err
        assert tomllib.loads((home / "people.toml").read_text())["dialect"] == wanted


def test_flags_of_a_dialect_are_the_words_that_are_answers(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "a.csv").write_text(lines("\t", spell(False, "%Y-%m-%d")))
    parts = ["separator=tab", "thousands=none", "dates=2026-12-31"]
    register_and_ask("a.csv", [*TYPED, *(flag for part in parts for flag in ("--dialect", part))], capsys)
    made = tomllib.loads((home / "people.toml").read_text())
    assert made["dialect"] == {"separator": "\t", "thousands": "", "dates": ""}


def test_another_dialect_is_another_version(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "a.csv").write_text(lines(";", spell(True, "%d.%m.%Y")), encoding="utf-8")
    register_and_ask("a.csv", [*TYPED, *GERMAN], capsys)
    declared = (home / "people.toml").read_text().replace('thousands = "."\n', "")
    (home / "people.toml").write_text(declared)
    assert main(["count", "people.toml"]) != 0
    assert "dialect's thousands . → none" in capsys.readouterr().err
    assert main(["register", "people.toml"]) != 0
    assert "with another dialect" in capsys.readouterr().err
