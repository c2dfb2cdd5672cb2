"""The command line as a user has it: a file, questions, plans, errors, exit status; the same behind a server.

What analysts type is typed twice: in the steward's folder, and in one without data, whose files name a server.
"""

import contextlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import click
import pyarrow as pa
import pyarrow.parquet
import pytest

from epsilons.cli import app
from epsilons.statistics.catalogue import CATALOGUE
from support.gateways import Servers, key_for
from support.lengths import short_and_long
from support.small_tables import people_table

LEVELS = ("--level", "strict=0.05", "--level", "standard=0.2", "--level", "open=1", "--level", "public=public")


#: What analysts type.
ASKING = {*(name.replace("_", "-") for name in CATALOGUE), "plan", "relation", "budget", "sql", "batch"}
ASKING_LEDGERS = {"show", "answers"}
#: For what stewards type, which is the same wherever analysts are.
steward = pytest.mark.parametrize("home", ["here"], indirect=True, scope="module")


@dataclass(frozen=True)
class Office:
    """Where analysts of a steward's folder are: a folder of their own, and servers for its files."""

    folder: Path
    servers: Servers


#: {the steward's folder: the analysts'}, where these ask a server.
OFFICES: dict[Path, Office] = {}


def open_office(home: Path, file: str) -> None:
    """Serve a dataset file; in the analysts' folder a file of that name asks the server."""
    office, name = OFFICES[home], Path(file).stem
    gateway = home / f"{name}-gateway.toml"
    gateway.write_text(f'store = "sqlite:///{name}.store"\ndatasets = ["{file}"]\n')
    key = office.folder / f"{name}.key"
    key.touch(0o600)
    key.write_text(key_for(gateway, "office"))
    url, _ = office.servers.start(gateway)
    (office.folder / file).write_text(f'server = "{url}"\nname = "wages"\nkey = "{name}.key"\n')


@pytest.fixture(scope="module", params=["here", "server"])
def home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("steward")
    pyarrow.parquet.write_table(people_table(), path / "wages.parquet")
    init = ("init", "wages.parquet", "--person", "id", "--preferences", "privacy", "--bounds", "wage=0,100")
    for command in ((*init, *LEVELS), ("register", "people.toml")):
        done = run(path, *command)
        assert done.returncode == 0, done.stderr
    if request.param == "here":
        yield path
        return
    OFFICES[path] = Office(tmp_path_factory.mktemp("office"), Servers())
    open_office(path, "people.toml")
    yield path
    OFFICES.pop(path).servers.close()


def place_of(home: Path, *command: str) -> Path:
    """The folder in which a command is typed."""
    asks = command[0] in ASKING or (command[0] == "ledger" and command[1] in ASKING_LEDGERS)
    return OFFICES[home].folder if asks and home in OFFICES else home


def another(home: Path, name: str) -> str:
    """The same dataset in a ledger of its own."""
    (home / f"{name}.toml").write_text((home / "people.toml").read_text().replace("wages.ledger", f"{name}.ledger"))
    done = run(home, "register", f"{name}.toml", "--yes")
    assert done.returncode == 0, done.stderr
    if home in OFFICES:
        open_office(home, f"{name}.toml")
    return f"{name}.toml"


def releases(home: Path, file: str = "people.toml") -> int:
    return len(document(home, "ledger", "history", file))


@dataclass
class Done:
    """How a command went."""

    returncode: int
    stdout: str
    stderr: str


def run(home: Path, *arguments: str) -> Done:
    """In this process, since starting one takes longer than most commands."""
    out, notes = io.StringIO(), io.StringIO()
    with contextlib.chdir(place_of(home, *arguments)), redirect_stdout(out), redirect_stderr(notes):
        status = app.main(list(arguments))
    return Done(status, out.getvalue(), notes.getvalue())


@steward
def test_the_installed_command_does_the_same(home: Path) -> None:
    command = Path(sys.executable).parent / "epsilons"
    asked = ("count", "people.toml", "--share", "0.01")
    telling = {**os.environ, "PYTHONPROFILEIMPORTTIME": "1"}
    done = subprocess.run(
        [command, *asked], cwd=home, env=telling, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    loaded = set(re.findall(r"\| +(\w+)$", done.stderr, re.MULTILINE))
    assert {"duckdb", "sqlglot"} <= loaded
    assert not {"pyarrow", "pandas", "sqlalchemy", "scipy", "matplotlib"} & loaded, "they take longer than the question"
    again = run(home, *asked).stdout
    assert "charged when first asked" in again, "it is the stored answer, and says so"
    assert re.sub(r"[\s─]+", " ", again).replace(" when first asked", "") == re.sub(r"[\s─]+", " ", done.stdout)


def document(home: Path, *arguments: str) -> Any:
    done = run(home, *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@steward
def test_a_first_file_holds_public_facts_only(home: Path) -> None:
    text = (home / "people.toml").read_text()
    assert 'source = "wages.parquet"' in text
    assert "wage = [0.0, 100.0]" in text or "wage = [0, 100]" in text
    assert "# age = [0, 100]" in text
    again = run(home, "init", "wages.parquet", "--person", "id", "--preferences", "privacy", *LEVELS)
    assert again.returncode == 4
    assert "people.toml is there already" in again.stderr
    unasked = run(home, "init", "wages.parquet", "--out", "other.toml")
    assert unasked.returncode == 4
    assert "--person" in unasked.stderr
    assert not (home / "other.toml").exists()


@steward
def test_a_check_says_what_is_there_and_charges_nothing(home: Path) -> None:
    before, seen = releases(home), document(home, "check", "people.toml")
    assert seen["people"] == 2000
    assert (seen["enrolment"]["known"], seen["enrolment"]["joined"]) == (2000, 0)
    assert any("No bounds: age" in hint for hint in seen["hints"])
    shown = run(home, "check", "people.toml")
    assert "strict" in shown.stdout
    assert shown.stderr == ""
    assert releases(home) == before


def test_a_plan_and_a_dry_run_are_free(home: Path) -> None:
    before = releases(home)
    plan = document(home, "plan", "people.toml", "mean", "wage", "--share", "0.1")
    assert plan["rows"][0]["mechanism"] == "weighted"
    dry = document(home, "mean", "people.toml", "wage", "--share", "0.1", "--dry-run")
    assert dry["rows"] == plan["rows"]
    assert releases(home) == before


def test_a_dry_run_shows_the_question_as_the_command_asks_it_whatever_was_answered_before(home: Path) -> None:
    file, few = another(home, "informed"), ("--where", "age >= 55", "--share", "0.1")
    asked = ("mean", file, "wage", *few)
    before = document(home, *asked, "--dry-run")
    assert run(home, *asked, "--dry-run").stderr == ""
    counted = document(home, "count", file, "--where", "age >= 55", "--share", "0.5")["release"]
    assert document(home, *asked, "--dry-run")["guesses"] == before["guesses"]
    assert document(home, "plan", file, "mean", "wage", *few)["guesses"] == before["guesses"]
    told = run(home, *asked, "--dry-run")
    assert "from release" not in told.stdout
    flag = re.search(r"Past answers suggest (--density [0-9.]+) \(release 1\)", told.stderr)
    assert flag is not None
    assert float(flag[1].split()[1]) == pytest.approx(counted["value"] / 2000, rel=0.01)
    (guess, *_) = document(home, *asked, *flag[1].split(), "--dry-run")["guesses"]
    assert guess["source"] == "given"


QUESTIONS = [
    ("count", "--where", "age >= 65"),
    ("count", "--of", "rows", "--by", "region=north,south"),
    ("sum", "wage"),
    ("mean", "wage", "--by", "region=north,south", "--where", "union = 'yes'"),
    ("variance", "wage"),
    ("median", "age", "--bounds", "0,120", "--step", "1"),
    ("quantile", "wage", "0.9"),
    ("min", "age", "--bounds", "0,120"),
    ("max", "age", "--bounds", "0,120"),
    ("histogram", "wage", "--edges", "0,10,20,100"),
    ("kth-largest", "age", "3", "--bounds", "0,120"),
    ("kth-largest", "age", "--bounds", "0,120", "--mechanism", "sample", "--threshold", "mean"),
    ("linear-regression", "wage", "age", "--bounds", "age=15,90", "--where", "union = 'yes'"),
    ("logistic-regression", "union", "age,wage", "--bounds", "age=15,90", "--classes", "no,yes"),
    ("sum", "wage", "--mechanism", "sample", "--rescale"),
    ("histogram", "region", "--categories", 'north,"south"'.replace('"', "")),
    ("mean", "wage", "--by", 'age=["20","30"]'.replace('"', "")),
]


def asked_of_people(question: tuple[str, ...]) -> tuple[str, ...]:
    return question[0], "people.toml", *question[1:], "--share", "0.01"


#: For the long run only: others have the same options, and the examples of help texts ask every statistic.
ALIKE = (QUESTIONS[0], QUESTIONS[2], QUESTIONS[6], QUESTIONS[8], QUESTIONS[10], QUESTIONS[13], QUESTIONS[15])


@pytest.mark.parametrize(
    "question",
    [pytest.param(one, id=" ".join(one[:2]), marks=[pytest.mark.soak] * (one in ALIKE)) for one in QUESTIONS],
)
def test_every_question_answers_in_words_and_in_json(home: Path, question: tuple[str, ...]) -> None:
    found = document(home, *asked_of_people(question))
    assert found["release"]["guarantee"]["neighbors"] == "absent"
    again = run(home, *asked_of_people(question))
    assert again.returncode == 0, again.stderr
    assert all(len(line) <= 80 for line in again.stdout.splitlines())
    assert re.search(r"strict +0.05 ", again.stdout)
    assert "personalized DP: nobody loses more than is charged" in again.stdout


@pytest.mark.parametrize(
    "question", [*QUESTIONS[::4], *(pytest.param(one, marks=pytest.mark.soak) for one in QUESTIONS)]
)
def test_more_words_have_every_caveat_and_the_document_stays(home: Path, question: tuple[str, ...]) -> None:
    asked = asked_of_people(question)
    found = document(home, *asked)
    verbose = run(home, *asked, "--verbose").stdout
    assert all(len(line) <= 80 for line in verbose.splitlines())
    assert found["release"]["guarantee"]["caveats"][-1] in " ".join(verbose.split())
    assert document(home, *asked)["release"] == found["release"]


def test_number_interval_and_condition_stand_on_one_line(home: Path) -> None:
    asked = ("mean", "people.toml", "wage", "--share", "0.01", "--where", "age < 90", "--assume", "unrelated")
    found = document(home, *asked)
    low, high = found["interval"]
    where, head, _, line = run(home, *asked).stdout.splitlines()[:4]
    assert where == f"where {found['where']}" == "where age < 90"
    assert head.split() == ["mean", "of", "wage", "95%", "interval", "holds"]
    shown = [f"{number:,.4g}" for number in (found["release"]["value"], low, high)]
    said = f"{shown[0]} {shown[1]} to {shown[2]} if preferences and values are unrelated"
    assert " ".join(line.split()) == said
    nothing = run(home, *asked[:-1], "nothing").stdout.splitlines()[3]
    assert nothing.endswith("however preferences and values relate")
    # A condition that is too long for that follows the table.
    _, head, _, line, *below = run(home, *asked[:-2]).stdout.splitlines()[:7]
    assert (head.split(), len(line.split())) == (["mean", "of", "wage", "95%", "interval"], 4)
    said = r"The interval holds if no level's expected mean, weighted by how many of it count, is further than [0-9.]+"
    assert re.fullmatch(rf"{said} from everyone's\.", " ".join(" ".join(below).split()))
    for planned in (("plan", "people.toml", "mean", *asked[2:]), (*asked, "--dry-run")):
        assert run(home, *planned).stdout.startswith("where age < 90\nPlan for a mean")
        assert document(home, *planned)["where"] == "age < 90"


def test_without_an_interval_the_condition_stands_with_the_error(home: Path) -> None:
    asked = ("median", "people.toml", "wage", "--share", "0.01", "--for-interval", "0", "--assume", "unrelated")
    median = run(home, *asked).stdout
    assert "holds" not in median
    assert re.search(
        r"error ± [0-9.,]+ by the plan's guesses if preferences and values are unrelated\. No interval:",
        " ".join(median.split()),
    )


@steward
def test_the_dataset_file_names_the_ledger(home: Path) -> None:
    run(home, "count", "people.toml", "--share", "0.01")
    assert document(home, "ledger", "show", "people.toml")["ledger"]
    assert run(home, "ledger", "history", "people.toml").stdout == run(home, "ledger", "history", "wages.ledger").stdout


def test_groups_are_columns(home: Path) -> None:
    by = ("--by", "region=north,south", "--by", "union=yes,no", "--share", "0.01")
    lines = run(home, "mean", "people.toml", "wage", *by).stdout.splitlines()
    assert lines[0].split()[:5] == ["region", "union", "mean", "of", "wage"]
    assert [line.split()[:2] for line in lines[2:6]] == [[a, b] for a in ("north", "south") for b in ("yes", "no")]
    lines = run(home, "histogram", "people.toml", "wage", "--edges", "0,10,100", *by).stdout.splitlines()
    assert lines[0].split()[:4] == ["region", "union", "wage", "rows"]
    assert [line.split()[2] for line in lines[2:4]] == ["0–10", "10–100"]


def test_small_and_many_levels_share_a_line(tmp_path: Path) -> None:
    table = people_table(600)
    chosen = pyarrow.array([0.5] * 300 + [1.0] * 200 + [round(0.01 * (1 + place), 2) for place in range(100)])
    pyarrow.parquet.write_table(table.append_column("chosen", chosen), tmp_path / "wages.parquet")
    head = 'source = "wages.parquet"\nperson = "id"\nledger = "memory"\n'
    (tmp_path / "people.toml").write_text(head + '[preferences]\ncolumn = "chosen"\n')
    shown = run(tmp_path, "count", "people.toml").stdout.split("\n\n")[1].splitlines()
    assert [line.split()[0] for line in shown] == ["level", "───────────────", "0.5", "1", "98"]
    assert shown[-1].split()[1:4] == ["other", "levels", "0.01…0.99"]


SQL = ("sql", "people.toml", "SELECT region, AVG(wage) AS pay, COUNT(*) FROM people GROUP BY region")
KEYS = ("--keys", "region=north,south", "--share", "0.02")


def test_sql_on_the_command_line(home: Path) -> None:
    found = document(home, *SQL, *KEYS)
    assert set(found["answers"]) == {"pay", "count"}
    low, high = found["answers"]["pay"]["interval"][0]
    assert low < found["answers"]["pay"]["release"]["value"][0][1] < high
    assert [granted for granted, _ in found["charges"]] == [level["epsilon"] for level in found["left"]]
    refused = run(home, "sql", "people.toml", "SELECT wage FROM people")
    assert refused.returncode == 5
    assert "outside GROUP BY" in refused.stderr


def test_answers_of_sql_show_their_conditions(home: Path) -> None:
    asked = "SELECT AVG(wage), COUNT(*) FROM people WHERE age >= 30"
    assert run(home, "sql", "people.toml", asked, "--share", "0.01").stdout.startswith('where "age" >= 30\n')


def test_a_dry_run_of_sql_is_free_and_says_what_it_would_charge(home: Path) -> None:
    another(home, "dry")
    asked = (SQL[0], "dry.toml", SQL[2], *KEYS)
    assert releases(home, "dry.toml") == 0
    shown = run(home, *asked, "--dry-run")
    assert shown.returncode == 0, shown.stderr
    assert "strict: charges 0.001, leaves 0.049 of 0.05" in shown.stdout
    plan = document(home, *asked, "--dry-run")
    assert releases(home, "dry.toml") == 0
    done = document(home, *asked)
    assert done["charges"] == [[granted, pytest.approx(spent, abs=1e-9)] for granted, spent in plan["charges"]]
    assert releases(home, "dry.toml") == 2


@pytest.mark.parametrize(("columns", "wide"), [("60", True), ("40", False)])
def test_answers_of_sql_fit_the_terminal(home: Path, columns: str, wide: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    shown = run(home, *SQL, *KEYS).stdout
    assert all(len(line) <= int(columns) for line in shown.splitlines())
    table, below = shown.split("\n\n")[:2]
    lines = table.partition("Intervals hold if ")[0].splitlines()
    assert len(lines) == (4 if wide else 6)
    assert "\n".join(lines).count(" to ") == 4
    assert re.search(r"strict +0.05 +0.001 ", below)


def test_a_name_in_square_brackets_is_no_markup(home: Path) -> None:
    done = run(home, "sql", "people.toml", 'SELECT COUNT(*) AS "[red]n[/red]" FROM people', "--share", "0.001")
    assert "[red]n[/red]" in done.stdout


def test_a_stored_answer_is_said_to_be_one(home: Path) -> None:
    asked = ("count", "people.toml", "--where", "age >= 33", "--share", "0.001")
    assert run(home, *asked).stderr == ""
    assert "nothing was charged again" in run(home, *asked).stderr
    assert run(home, *asked, "--fresh").stderr == ""


@steward
@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("--level", "strict=-1"), 3, "not an epsilon"),
        (("--level", "strict=much"), 3, "not an epsilon"),
        (("--level", "strict"), 4, "--level strict=0.05"),
        (("--level", "strict=1", "--bounds", "wage=3,1"), 5, "Column 'wage': Bounds (3, 1) are reversed"),
        (("--level", "strict=1", "--bounds", "region=1,3"), 4, "holds text"),
        (("--level", "strict=1", "--out", "nowhere/people.toml"), 4, "cannot be written"),
    ],
)
def test_a_first_file_is_not_written_with_a_mistake(
    home: Path, arguments: tuple[str, ...], status: int, words: str
) -> None:
    init = ("init", "wages.parquet", "--out", "first.toml", "--person", "id", "--preferences", "privacy")
    done = run(home, *init, *arguments)
    assert (done.returncode, done.stdout) == (status, "")
    assert words in done.stderr
    assert not (home / "first.toml").exists()


@steward
def test_bounds_that_are_no_pair_are_asked_for_again(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("epsilons.cli.commands.init._terminal", lambda: True)
    monkeypatch.setattr("sys.stdin", io.StringIO("many\n9,1\n0,50\n\nno\n2\n"))
    init = ("init", "wages.parquet", "--out", "asked.toml", "--person", "id", "--preferences", "privacy")
    done = run(home, *init, *LEVELS)
    assert done.returncode == 0, done.stderr
    assert "two numbers with a comma" in done.stderr
    assert "The lower bound comes first" in done.stderr
    assert tomllib.loads((home / "asked.toml").read_text())["bounds"] == {"wage": [0, 50]}
    assert tomllib.loads((home / "asked.toml").read_text())["rows_per_person"] == 2


@steward
def test_levels_are_asked_for_with_what_an_empty_answer_does(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("epsilons.cli.commands.init._terminal", lambda: True)
    monkeypatch.setattr(
        "sys.stdin",
        io.StringIO("open\nstrict=0.05, standard = 0.3,none=0\nstrict=0.05, standard = 0.3, public=public\n\n\n\n\n"),
    )
    done = run(home, "init", "wages.parquet", "--out", "levels.toml", "--person", "id", "--preferences", "privacy")
    assert done.returncode == 0, done.stderr
    assert "(Enter: strict=0.05, standard=0.2, open=1, public=public)" in done.stderr
    assert "'open' is not a name and a value. As strict=0.05" in done.stderr
    assert "'0' is not an epsilon. A number above 0, or public. As" in done.stderr
    levels = tomllib.loads((home / "levels.toml").read_text())["preferences"]["levels"]
    assert levels == {"strict": 0.05, "standard": 0.3, "public": "public"}


@steward
def test_a_first_file_of_a_csv_declares_what_has_bounds_as_numbers(home: Path) -> None:
    """And what was left text leads on to where it is declared and registered again."""
    (home / "few.csv").write_text("id,Wage,age,privacy\n" + "".join(f"{n},{n},{n},strict\n" for n in range(30)))
    init = ("init", "few.csv", "--out", "few.toml", "--person", "id", "--preferences", "privacy", *LEVELS)
    assert run(home, *init, "--bounds", "wage=0,100", "--version", "1").returncode == 0
    made = (home / "few.toml").read_text()
    assert tomllib.loads(made)["types"] == {"Wage": "float"}
    assert run(home, "register", "few.toml").returncode == 0
    refused = run(home, "mean", "few.toml", "age", "--bounds", "0,100").stderr
    assert 'age = "float" under [types]' in refused
    assert "registered (again, as a new version)" in refused
    declared = made.replace('Wage = "float"', 'Wage = "float"\nage = "float"')
    (home / "few.toml").write_text(declared)
    refused = run(home, "register", "few.toml").stderr
    assert "registered already, with other types of columns" in refused
    assert 'version = "1, revised"' in refused
    (home / "few.toml").write_text(declared.replace('version = "1"', 'version = "1, revised"'))
    assert run(home, "register", "few.toml").returncode == 0
    assert run(home, "mean", "few.toml", "age", "--bounds", "0,100").returncode == 0


@steward
def test_bounds_keep_their_digits(home: Path) -> None:
    init = ("init", "wages.parquet", "--out", "digits.toml", "--person", "id", "--preferences", "privacy")
    assert run(home, *init, *LEVELS, "--bounds", "wage=-0.125,123456789.25").returncode == 0
    assert tomllib.loads((home / "digits.toml").read_text())["bounds"]["wage"] == [-0.125, 123456789.25]


@steward
def test_names_with_spaces_and_letters_of_any_kind(home: Path) -> None:
    table = people_table().rename_columns(["id", "Größe in cm", "age", "union", "Stadt (Ort)", "privacy"])
    pyarrow.parquet.write_table(table, home / "maße.parquet")
    init = ("init", "maße.parquet", "--out", "maße.toml", "--person", "id", "--preferences", "privacy", *LEVELS)
    assert run(home, *init, "--bounds", "Größe in cm=0,100").returncode == 0
    spaced = run(home, *init, "--out", "my people.toml")
    assert spaced.stderr.endswith("Next: epsilons check 'my people.toml'\n")
    assert run(home, "register", "maße.toml").returncode == 0
    assert run(home, "mean", "maße.toml", "größe in cm", "--share", "0.01").returncode == 0
    query = 'SELECT "Stadt (Ort)" AS ort, AVG("Größe in cm") FROM people GROUP BY "Stadt (Ort)"'
    done = run(home, "sql", "maße.toml", query, "--keys", "Stadt (Ort)=north,south", "--share", "0.01")
    assert done.returncode == 0, done.stderr
    assert "mean_Größe in cm" in done.stdout


@steward
def test_a_file_opens_from_another_directory(home: Path, tmp_path: Path) -> None:
    done = run(tmp_path, "count", str(home / "people.toml"), "--share", "0.001")
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == []


@steward
def test_an_empty_table_has_nobody(home: Path) -> None:
    pyarrow.parquet.write_table(people_table().slice(0, 0), home / "empty.parquet")
    (home / "empty.toml").write_text((home / "people.toml").read_text().replace("wages.", "empty."))
    done = run(home, "register", "empty.toml")
    assert done.returncode == 4
    assert "There are no people" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("mean", "people.toml"), 2, "Missing argument"),
        (("mean", "people.toml", "wage", "--bounds", "many"), 2, "two numbers"),
        (("mean", "nothing.toml", "wage"), 4, "There is no file"),
        (("mean", "people.toml", "salary"), 4, "There is no column"),
        (("mean", "people.toml", "age"), 5, "needs bounds"),
        (("mean", "people.toml", "wage", "--where", "wage = 1; DROP TABLE x"), 5, "condition"),
        (("mean", "people.toml", "wage", "--by", "region"), 5, "no registered keys"),
        (("mean", "people.toml", "wage", "--by", "region="), 5, "is empty"),
        (("mean", "people.toml", "wage", "--by", "region=north,"), 5, "is empty"),
        (("mean", "people.toml", "region", "--json"), 4, "holds text"),
        (("plan", "people.toml", "quantile", "wage"), 5, "needs its q"),
        (("mean", "people.toml", "wage", "--share", "2"), 5, "share"),
        (("mean", "people.toml", "wage", "--mechanism", "magic"), 5, "Unknown mechanism"),
        (("plan", "people.toml", "mean", "wage", "--bounds", "many"), 2, "two numbers"),
        (("plan", "people.toml", "mean", "wage", "--mechanism", "exponential"), 5, "cannot serve a mean"),
        (("plan", "people.toml", "linear-regression", "wage"), 5, "Features are given as a list"),
        (("kth-largest", "people.toml", "wage", "0"), 5, "0 for K is not allowed"),
        (("mean", "people.toml", "wage", "--gama", "3"), 2, "--gamma"),
        (("mean", "people.toml", "wage", "--privacy", "group"), 5, "Group privacy takes --group-epsilons"),
        (("median", "people.toml", "wage", "--gamma", "99"), 5, "gamma"),
        (("linear-regression", "people.toml", "wage", "age"), 5, "Column 'age' has no bounds"),
    ],
)
def test_a_mistake_has_its_own_status(home: Path, arguments: tuple[str, ...], status: int, words: str) -> None:
    done = run(home, *arguments)
    assert done.returncode == status
    assert words in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


def test_nothing_left_to_spend_has_a_status_of_its_own(home: Path) -> None:
    another(home, "poor")
    assert run(home, "count", "poor.toml", "--share", "1", "--mechanism", "stretching").returncode == 0
    done = run(home, "mean", "poor.toml", "wage")
    assert done.returncode == 6
    assert "Nobody has anything left" in done.stderr


@steward
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_can_complete(home: Path, shell: str) -> None:
    done = run(home, "completion", shell)
    assert done.returncode == 0
    assert "_EPSILONS_COMPLETE" in done.stdout


def lines_of(text: str) -> list[str]:
    """Commands as they stand in a help text or on a page."""
    return [line.strip() for line in text.replace("\\\n", "").splitlines() if line.strip().startswith("epsilons ")]


#: Commands whose help texts are about one dataset file.
EXAMPLES = (
    "batch",
    "budget",
    "check",
    "correlation",
    "count",
    "covariance",
    "histogram",
    "kth-largest",
    "linear-regression",
    "logistic-regression",
    "max",
    "mean",
    "median",
    "min",
    "mode",
    "plan",
    "quantile",
    "relation",
    "sql",
    "sum",
    "top",
    "variance",
)


def test_the_examples_of_help_texts_run_as_pasted(home: Path) -> None:
    another(home, "rich")
    for name in EXAMPLES:
        text = run(home, name, "--help").stdout
        (example,) = lines_of(text.split("Example:")[1].split("Options:")[0])
        done = run(home, *shlex.split(example.replace("people.toml", "rich.toml"))[1:])
        assert done.returncode == 0, (example, done.stderr)
        assert done.stdout


@pytest.mark.parametrize("people", short_and_long(5_000, 20_000))
def test_the_page_on_commands_runs_as_pasted(tmp_path: Path, people: int) -> None:
    pyarrow.parquet.write_table(people_table(people), tmp_path / "wages.parquet")
    page = (Path(__file__).parents[2] / "docs" / "commands.md").read_text()
    commands = [line for block in re.findall(r"```sh\n(.*?)```", page, re.DOTALL) for line in lines_of(block)]
    assert len(commands) == 17
    for command in commands:
        done = run(tmp_path, *shlex.split(command)[1:])
        assert done.returncode == 0, (command, done.stderr)


def steward_table(ids: Iterable[int], said: Mapping[int, str]) -> pa.Table:
    """People of three levels, as the page has them, and what some of them say instead."""
    usual = {number: ("strict", "standard", "open")[number % 3] for number in ids} | dict(said)
    wages = [float(20 + number % 60) for number in usual]
    return pa.table(
        {"id": list(usual), "wage": wages, "age": [18 + n % 70 for n in usual], "privacy": list(usual.values())}
    )


def test_registering_step_by_step_prints_what_the_page_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command of the section, with what happens between them; only drawn numbers, dates and hashes differ."""
    monkeypatch.setenv("COLUMNS", "80")
    page = (Path(__file__).parents[2] / "docs" / "commands.md").read_text()
    (section,) = re.findall(r"## Registering, step by step\n(.*?)\n## ", page, re.DOTALL)
    shown = re.findall(r"```text\n(.*?)```", section, re.DOTALL)
    (declared, bounds) = page.split("```toml\n")[1].split("```")[0].split("[types]")  # those of a CSV file
    file, declared = tmp_path / "people.toml", declared + bounds[bounds.index("[bounds]") :]

    def write(ids: Iterable[int], name: str = "wages", said: Mapping[int, str] = MappingProxyType({})) -> None:
        pyarrow.parquet.write_table(steward_table(ids, said), tmp_path / f"{name}.parquet")

    def declare(**changes: str) -> None:
        lines = {"source": "wages.parquet", "version": "2026-12", "open": "1"} | changes
        text = declared.replace("2026-11", lines["version"]).replace("open = 1", f"open = {lines['open']}")
        file.write_text(text.replace("wages.parquet", lines["source"]))

    new_words = {34: "open", 35: "strict", 36: "standard"}
    write(range(2_000))
    declare(version="2026-11")
    meanwhile: list[Callable[[], Any]] = [
        lambda: None,
        lambda: run(tmp_path, "mean", "people.toml", "wage", "--share=0.4", "--mechanism=minimum"),
        lambda: (write({*range(2_100)} - {30, 31}, said=new_words), declare()),
        lambda: (write(range(2_700), "more"), declare(source="more.parquet", version="2027-01")),
        lambda: declare(),
        lambda: declare(open="2"),
        lambda: run(tmp_path, "count", "people.toml"),
    ]
    for change, block in zip(meanwhile, shown, strict=True):
        change()
        commands = re.findall(r"^\$ epsilons (.*)$", block, re.MULTILINE)
        done = [(command, run(tmp_path, *shlex.split(command))) for command in commands]
        found = "".join(f"$ epsilons {command}\n{one.stdout}{one.stderr}" for command, one in done)
        if "ledger answers" in block:
            assert sorted(undrawn(found)) == sorted(undrawn(block))
        else:
            assert found == block


def undrawn(text: str) -> list[str]:
    """The words of a text, without numbers, hashes and lines of tables."""
    return re.findall(r"[^\s─]+", re.sub(r"[0-9a-f]{64}|[\d.,-]*\d", "#", text))


@steward
def test_charges_that_will_be_forgotten_are_pointed_out(home: Path) -> None:
    text = (home / "people.toml").read_text()
    lines = [line for line in text.splitlines() if not line.startswith("ledger")]
    (home / "forgetful.toml").write_text("\n".join(lines))
    done = run(home, "count", "forgetful.toml")
    assert (done.returncode, "names no ledger" in done.stderr) == (7, True)
    (home / "forgetful.toml").write_text("\n".join(['ledger = "memory"', *lines]))
    done = run(home, "count", "forgetful.toml")
    assert done.returncode == 0
    assert "forgotten when it ends" in done.stderr
    assert "ledger in memory" in done.stdout
    assert "forgotten" not in run(home, "count", "people.toml", "--share", "0.01").stderr


def test_looser_wishes_wait_for_an_act_that_names_how_many(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(people_table(200), tmp_path / "wages.parquet")
    init = ("init", "wages.parquet", "--person", "id", "--preferences", "privacy", "--bounds", "wage=0,100")
    assert run(tmp_path, *init, *LEVELS).returncode == 0
    loose = (tmp_path / "people.toml").read_text()
    assert "strict = 0.05" in loose
    (tmp_path / "people.toml").write_text(loose.replace("strict = 0.05", "strict = 0.001"))
    assert run(tmp_path, "register", "people.toml").returncode == 0
    strict = document(tmp_path, "ledger", "show", "people.toml")["levels"][0]
    (tmp_path / "people.toml").write_text(loose)
    checked = run(tmp_path, "check", "people.toml", "--json")
    assert checked.returncode == 7, "as registering would"
    seen = json.loads(checked.stdout)["enrolment"]
    assert seen["pending"] == strict["people"] > 0
    for former in ("register", "sync"):
        refused = run(tmp_path, former, "people.toml")
        assert refused.returncode == 7
        assert f"'strict' 0.001 → 0.05), for {seen['pending']} people" in " ".join(refused.stderr.split())
        assert f"--loosen {seen['pending']}" in refused.stderr
    done = document(tmp_path, "register", "people.toml", "--loosen", str(seen["pending"]))
    assert (done["loosened"], done["tightened"]) == (seen["pending"], 0)
    assert document(tmp_path, "ledger", "show", "people.toml")["levels"][0]["epsilon"] == 0.05


@steward
def test_a_person_says_a_level_withdraws_and_is_told(home: Path) -> None:
    file = another(home, "persons")
    assert "Noted" in run(home, "person", "level", file, "17", "strict").stdout
    assert document(home, "person", "statement", file, "17")["granted"] == 0.05
    told = run(home, "person", "withdraw", file, "17", "18", "77777")
    assert "Withdrawn: 3 people." in told.stdout
    assert "on no roster so far: their word holds when they join one. Is" in told.stderr
    told = run(home, "person", "level", file, "77778", "strict")
    assert "join one, unless its preferences or its ceiling is stricter" in " ".join(told.stderr.split())
    assert run(home, "person", "withdraw", file, "17", "19").stdout == (
        "Withdrawn: 1 person. 1 person had withdrawn before.\n"
    )
    assert run(home, "person", "withdraw", file, "17").stdout == "1 person had withdrawn before.\n"
    assert "Withdrawn: not used any more." in run(home, "person", "statement", file, "17").stdout
    for wrong, status in ((("level", file, "17", "loose"), 3), (("level", file, "x", "strict"), 3)):
        assert run(home, "person", *wrong).returncode == status
    assert run(home, "person", "statement", file, "99999999").returncode == 7


#: What only a steward does, as an analyst would type it.
STEWARDS = (
    ("check", "people.toml"), ("register", "people.toml"), ("sync", "people.toml"),
    ("ledger", "history", "people.toml"), ("ledger", "verify", "people.toml"), ("ledger", "adopt", "people.toml"),
    ("ledger", "forget", "people.toml"), ("ledger", "person", "1", "people.toml"),
    ("ledger", "quota", "office", "people.toml"), ("ledger", "export", "people.toml"),
    ("ledger", "witness", "sqlite:///witness.store", "people.toml"), ("ledger", "backup", "copy", "people.toml"),
    ("ledger", "restore", "people.toml", "people.toml", "--yes"), ("ledger", "move", "new.ledger", "people.toml"),
    ("ledger", "retire", "people.toml", "--yes"),
    ("person", "statement", "people.toml", "1"), ("person", "level", "people.toml", "1", "strict"),
    ("person", "withdraw", "people.toml", "1"),
)  # fmt: skip
#: What takes no dataset file.
WITHOUT_FILES = {"audit", "collect", "completion", "demo", "init", "keys", "papers", "serve", "witness"}


def test_every_command_is_one_of_analysts_of_stewards_or_takes_no_dataset() -> None:
    """So that a new one is typed against a server as well, or refused there."""
    context = click.Context(app.epsilons)
    known: set[tuple[str, ...]] = set()
    for name in set(app.epsilons.list_commands(context)) - WITHOUT_FILES:
        found = app.epsilons.get_command(context, name)
        below = found.list_commands(context) if isinstance(found, click.Group) else []
        known |= {(name, one) for one in below} or {(name,)}
    asking = {(name,) for name in ASKING} | {("ledger", name) for name in ASKING_LEDGERS}
    stewards = {command[:2] if command[0] in ("ledger", "person") else command[:1] for command in STEWARDS}
    assert known == asking | stewards
    assert {(name,) for name in EXAMPLES} == (asking | {("check",)}) - {("ledger", one) for one in ASKING_LEDGERS}


@pytest.mark.parametrize("home", ["server"], indirect=True, scope="module")
def test_what_only_the_steward_does_says_so_and_where(home: Path) -> None:
    office = OFFICES[home].folder
    for command in STEWARDS:
        done = run(office, *command)
        assert (done.returncode, done.stdout) == (4, ""), command
        assert "the steward runs this command on the server, with the file that declares the dataset" in done.stderr
    assert {file.suffix for file in office.iterdir()} == {".toml", ".key"}, "an analyst holds nothing else"
    shown = run(home, "ledger", "show", "people.toml")
    assert re.search(r"strict +0.05 ", shown.stdout)
    assert [one["name"] for one in document(home, "ledger", "show", "people.toml")["levels"]] == [
        "strict",
        "standard",
        "open",
    ]
    quota = ("ledger", "quota", "office", "people.toml", "--questions", "0", "--epsilon", "0.5")
    assert document(home, *quota)[-1]["questions"] == 0
    refused = run(home, "count", "people.toml", "--where", "age >= 81", "--share", "0.01")
    assert (refused.returncode, "quota does not reach" in refused.stderr) == (7, True)
    assert "office" in run(home, "ledger", "quota", "office", "people.toml").stdout, "lifted"
    assert run(home, "count", "people.toml", "--where", "age >= 81", "--share", "0.01").returncode == 0


@steward
def test_a_file_that_no_longer_says_what_was_registered_is_refused(home: Path) -> None:
    file = another(home, "changed")
    text = (home / file).read_text()
    (home / file).write_text(text.replace("wage = [0, 100]", "wage = [0, 50]").replace("[0.0, 100.0]", "[0.0, 50.0]"))
    refused = run(home, "count", file)
    assert refused.returncode == 7
    assert "says something else than was registered: bounds" in " ".join(refused.stderr.split())
    (home / file).write_text(text)
    assert run(home, "count", file).returncode == 0


def test_a_stored_answer_says_so(home: Path) -> None:
    query = ("sql", "people.toml", "SELECT AVG(wage), COUNT(*) FROM people WHERE age >= 21", "--share", "0.02")
    first, again = (document(home, *query) for _ in range(2))
    assert (first.pop("stored"), again.pop("stored")) == (False, True)
    assert first == again
    assert "charged when first asked" in run(home, *query).stdout
    one = ("count", "people.toml", "--where", "age >= 22", "--share", "0.01")
    assert [document(home, *one)["stored"] for _ in range(2)] == [False, True]


@steward
def test_a_stored_answer_tells_what_it_charged_people_who_stand_elsewhere_now(home: Path) -> None:
    file = another(home, "redefined")
    asked = ("count", file, "--where", "age > 33", "--share", "0.5", "--mechanism", "minimum")
    assert "strict" in run(home, *asked).stdout
    text = (home / file).read_text()
    (home / file).write_text(re.sub(r"(strict|standard|open) = [0-9.]+", r"\1 = 0.04", text))
    assert run(home, "register", file).returncode == 0
    again = run(home, "ledger", "answers", "1", file).stdout
    assert "Nobody is charged" not in again
    assert re.search(r"strict +0\.05 +0\.025 +nobody is there now", again)


def test_stored_answers_are_shown_again_for_free(home: Path) -> None:
    question = ("mean", "people.toml", "wage", "--where", "age > 33", "--by", "region=north,south", "--share", "0.01")
    first = run(home, *question).stdout
    day = json.loads(run(home, *question, "--json").stdout)["release"]["at"][:10]
    number = json.loads(run(home, "ledger", "answers", "people.toml", "--json").stdout)[-1]["release"]["number"]
    assert f"release {number} of {day}.\n" in first
    history = run(home, "ledger", "history", "people.toml", "--json").stdout
    listed = run(home, "ledger", "answers", "people.toml").stdout
    assert max(map(len, listed.splitlines())) <= 80
    assert day in listed
    again = run(home, "ledger", "answers", str(number), "people.toml")
    assert again.returncode == 0, again.stderr
    # The table of the answer, its condition in normal form, and where it is found.
    assert again.stdout.startswith('where "age" >= 34\n')
    assert first.split("\n\n")[0].split("\n", 1)[1] in again.stdout
    assert f"release {number} of {day}.\n" in again.stdout
    whole = json.loads(run(home, "ledger", "answers", str(number), "people.toml", "--json").stdout)
    assert whole["release"] == json.loads(run(home, *question, "--json").stdout)["release"]
    assert run(home, "ledger", "history", "people.toml", "--json").stdout == history
    wrong = run(home, "ledger", "answers", "999999", "people.toml")
    assert (wrong.returncode, "no release of this number" in wrong.stderr) == (7, True)
    assert run(home, "ledger", "answers", "first", "people.toml").returncode == 2


def test_output_that_cannot_be_written_is_said_and_the_answer_kept(home: Path) -> None:
    asked, notes = ("count", "people.toml", "--share", "0.01", "--where", "age >= 24"), io.StringIO()
    with contextlib.suppress(OSError), open("/dev/full", "w") as full:
        with contextlib.chdir(place_of(home, *asked)), redirect_stdout(full), redirect_stderr(notes):
            assert app.main(list(asked)) == 1
            sys.stdout.close()  # what the command put in its place
        assert "could not be written" in notes.getvalue()
    assert document(home, *asked)["stored"]


@steward
@pytest.mark.soak
def test_output_that_cannot_be_written_is_no_traceback(home: Path) -> None:
    command = Path(sys.executable).parent / "epsilons"
    asked = [command, "count", "people.toml", "--share", "0.01", "--where", "age >= 23"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(asked, cwd=home, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=120)
    assert done.returncode == 1
    assert "could not be written" in done.stderr
    assert "Traceback" not in done.stderr
    assert document(home, *map(str, asked[1:]))["stored"]


def test_many_levels_are_not_listed(tmp_path: Path) -> None:
    """A column of something else, named by mistake, shows nobody's value."""
    table = people_table(500)
    wages = pyarrow.array([round(7.25 + place / 100, 2) for place in range(500)])
    pyarrow.parquet.write_table(table.append_column("pay", wages), tmp_path / "wages.parquet")
    head = 'source = "wages.parquet"\nperson = "id"\nledger = "sqlite:///pay.ledger"\nceiling = 100\n'
    (tmp_path / "people.toml").write_text(head + '[preferences]\ncolumn = "pay"\n')
    shown = run(tmp_path, "check", "people.toml")
    assert shown.returncode == 0
    assert "levels: is the column of preferences the right one?" in shown.stdout
    assert "7.26" not in shown.stdout
    assert document(tmp_path, "check", "people.toml")["levels"] is None
    (tmp_path / "people.toml").write_text(head.replace("ceiling = 100\n", "") + '[preferences]\ncolumn = "pay"\n')
    refused = run(tmp_path, "check", "people.toml")
    assert refused.returncode == 3
    assert "Registering would be refused: An epsilon is above the ceiling of 10." in refused.stdout
    assert "7.26" not in refused.stdout + refused.stderr
    assert json.loads(run(tmp_path, "check", "people.toml", "--json").stdout)["levels"] == []
    refused = run(tmp_path, "register", "people.toml")
    assert (refused.returncode, "ceiling" in refused.stderr, "7.26" in refused.stderr) == (3, True, False)
