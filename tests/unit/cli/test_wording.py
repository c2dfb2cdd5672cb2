"""Real errors of the library, as a user of the command line meets them: no word of Python is left in a hint."""

import contextlib
import io
import re
import tomllib
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet
import pytest

from epsilons import errors
from epsilons.cli import app
from epsilons.cli.wording import reworded
from support.small_tables import people_table

FILE = """
source = "wages.parquet"
person = "id"
version = "1"
rows_per_person = 1
neighbors = "absent"
complete = []
ledger = "sqlite:///wages.ledger"

[preferences]
column = "privacy"
levels = { strict = 0.05, standard = 0.2, open = 1, public = "public" }

[bounds]
wage = [0, 100]
"""
#: name=value, calls and names as Python writes them; lines of TOML have spaces around the sign.
PYTHON = re.compile(r"\beps\.|\bpeople\.\w+\(|\w=[\[({\"']|\b(share|error|step|bounds|missing|types|fresh|q)=")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("steward")
    pyarrow.parquet.write_table(people_table(), path / "wages.parquet")
    pyarrow.csv.write_csv(people_table(), path / "wages.csv")
    (path / "people.toml").write_text(FILE)
    with contextlib.chdir(path), redirect_stdout(io.StringIO()):
        assert app.main(["count", "people.toml", "--share", "0.01"]) == 0
    return path


def refusal(home: Path, *arguments: str) -> tuple[int, str]:
    out, notes = io.StringIO(), io.StringIO()
    with contextlib.chdir(home), redirect_stdout(out), redirect_stderr(notes):
        status = app.main(list(arguments))
    assert status != 0
    assert out.getvalue() == ""
    message = notes.getvalue()
    assert message.startswith("epsilons: ")
    assert not PYTHON.search(message.partition("Try: ")[2]), message
    return status, message


@pytest.mark.parametrize(
    ("question", "hint"),
    [
        (("mean", "age"), "--bounds 0,100"),
        (("mean", "wage", "--bounds", "9,1"), "--bounds 1,9"),
        (("mean", "wage", "--bounds", "1,1"), "--bounds with room between them"),
        (("mean", "wage", "--bounds", "0,inf"), "--bounds 0,100"),
        (("mean", "region"), 'region = "float" under [types]'),
        (("median", "wage", "--step", "-1"), "--step 1"),
        (("quantile", "wage", "2"), "0.9"),
        (("quantile", "wage", "1e-12"), "epsilons min or epsilons max"),
        (("histogram", "region"), "--edges 0,10,20, or --categories north,south"),
        (("histogram", "region", "--categories", "north,north"), "--categories north,south"),
        (("histogram", "wage", "--edges", "3,2,1"), "--edges 0,10,20"),
        (("histogram", "region", "--categories", "north", "--outside", "clip"), "--edges, or --outside drop"),
        (("count", "--missing", "center"), "leave --missing out"),
        (("mean", "wage", "--missing", "center", "--by", "region=north"), "--missing exclude"),
        (("mean", "wage", "--by", "region=north,north"), "--by region=north,south"),
        (("mean", "wage", "--share", "2"), "--share 0.1"),
        (("mean", "wage", "--share", "0.1", "--error", "1"), "--share 0.1, or --error 0.5"),
        (("mean", "wage", "--error", "-1"), "--error 0.5"),
        (("mean", "wage", "--error", "0.0001"), "--error 0."),
        (("mean", "wage", "--spread", "-1"), "leave --spread out"),
        (("mean", "wage", "--mechanism", "magic"), "auto"),
        (("sql", "SELECT AVG(age) FROM people"), "--bounds age=0,100"),
        (("sql", "SELECT AVG(wage) FROM people", "--bounds", "wage=9,1"), "--bounds wage=1,9"),
        (("sql", "SELECT region, COUNT(*) FROM people GROUP BY region"), "--keys region=north,south"),
        (("sql", "SELECT AVG(wage) FROM people", "--share", "3"), "--share 0.1"),
    ],
    ids=lambda part: " ".join(part) if isinstance(part, tuple) else "",
)
def test_a_question_hints_at_flags(home: Path, question: tuple[str, ...], hint: str) -> None:
    _, message = refusal(home, question[0], "people.toml", *question[1:])
    assert hint in message.partition("Try: ")[2]


def test_plans_hint_at_flags(home: Path) -> None:
    assert "--q 0.9" in refusal(home, "plan", "people.toml", "quantile", "wage")[1]
    assert "epsilons mean people.toml wage" in refusal(home, "plan", "people.toml", "mean")[1]


def test_a_first_file_hints_at_its_flags(home: Path) -> None:
    init = ("--out", "new.toml", "--person", "id", "--preferences", "privacy", "--level", "strict=1")
    typed = refusal(home, "init", "wages.parquet", *init, "--type", "id=int")[1]
    assert typed.endswith("Try: leave --type out\n")
    assert "--type wage=float for numbers" in refusal(home, "init", "wages.csv", *init, "--bounds", "wage=0,1")[1]


def test_an_argument_that_a_message_begins_with_is_a_flag(home: Path) -> None:
    _, message = refusal(home, "mean", "people.toml", "wage", "--missing", "center", "--where", "age > 3")
    assert message.startswith("epsilons: --missing center needs")


@pytest.mark.parametrize(
    ("old", "new", "status", "hint"),
    [
        ("complete = []", 'complete = "age"', 4, 'complete = ["age"]'),
        ('version = "1"', "version = 1", 4, 'version = "2026-11"'),
        ("wage = [0, 100]", "wage = [100, 0]", 4, "wage = [0, 100]"),
        ('source = "wages.parquet"', 'source = "wages.csv"', 4, 'wage = "float" under [types]'),
        ('person = "id"', 'person = "wage"', 4, 'id = "int" under [types]'),
        ("[bounds]", '[types]\nid = "int"\n[bounds]', 4, "leave [types] out"),
        ("rows_per_person = 1", "rows_per_person = 2", 7, 'neighbors = "absent", rows_per_person = 1'),
        ('"absent"', '"present"', 7, 'neighbors = "absent" or neighbors = "replace"'),
        ("levels =", "# levels =", 3, "levels = { strict = 0.05, open = 1 }"),
        ('column = "privacy"', 'column = "age"', 3, 'column = "epsilon" under [preferences]'),
        ("standard = 0.2, ", "", 3, "levels under [preferences]"),
        ("sqlite:///wages.ledger", "mysql://there", 7, 'ledger = one of "sqlite:///people.ledger"'),
    ],
)
def test_a_file_hints_at_its_lines(home: Path, old: str, new: str, status: int, hint: str) -> None:
    assert old in FILE
    (home / "bad.toml").write_text(FILE.replace(old, new))
    assert refusal(home, "check", "bad.toml")[0] == status
    message = refusal(home, "count", "bad.toml")[1]
    assert hint in message.partition("Try: ")[2]


@pytest.mark.parametrize("line", ['complete = ["age"]', 'version = "2026-11"', 'neighbors = "absent"'])
def test_lines_that_are_hinted_at_are_toml(line: str) -> None:
    assert tomllib.loads(line)


def test_what_the_user_typed_stays_as_it_is() -> None:
    error = errors.DataError("There is no column 'share=0.1'.", rule="share=1", suggest="the column's name")
    assert str(reworded(error)) == str(error)
    assert type(reworded(errors.BudgetExceeded("No."))) is errors.BudgetExceeded
