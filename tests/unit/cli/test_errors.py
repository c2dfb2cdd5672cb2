"""Arguments in messages as the command line writes them, and real mistakes: no Python is left in what a user reads."""

import contextlib
import io
import re
import shlex
import tomllib
from contextlib import closing, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import click
import pyarrow.csv
import pyarrow.parquet
import pytest

from epsilons.cli import app
from epsilons.cli.errors import Refusal, parameters_of, write_argument
from epsilons.errors import Argument, BudgetExceeded, PlanError
from epsilons.preferences import PUBLIC
from support.gateways import Servers, key_for
from support.small_tables import people_table

FILE = """
name = "wages"
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
PYTHON = re.compile(r"\beps\.|\bpeople\.\w+\(|\w=[({']|\b(share|error|step|bounds|missing|types|fresh|gamma|q|k)=|None")


def of(place: str) -> dict[str, click.Parameter]:
    """What is taken where an argument is written: by questions, by `init`, in a group; a file takes no flags."""
    if place == "question":
        return parameters_of(app.load("statistics").values())
    if place in ("collect", "ledger"):
        group = app.load(place)[place]
        assert isinstance(group, click.Group)
        return parameters_of(group.commands.values())
    return parameters_of([app.load("init")["init"]] if place == "init" else [])


@pytest.mark.parametrize(
    ("place", "name", "value", "text"),
    [
        ("question", "bounds", (0, 100), "--bounds 0,100"),
        ("question", "bounds", (0.1 + 0.2, 1e6), "--bounds 0.3,1000000"),
        ("question", "bounds", {"wage": (0, 100), "age": (15, 90)}, "--bounds wage=0,100 --bounds age=15,90"),
        ("question", "bounds", ..., "--bounds"),
        ("question", "by", {"region": ["north", "south"]}, "--by region=north,south"),
        ("question", "keys", {"region": ["north"]}, "--keys region=north"),
        ("question", "edges", [0, 10, 20], "--edges 0,10,20"),
        ("question", "categories", ["north", "south"], "--categories north,south"),
        ("question", "share", 0.1, "--share 0.1"),
        ("question", "missing", "center", "--missing center"),
        ("question", "fresh", True, "--fresh"),
        ("question", "rescale", False, "--no-rescale"),
        ("question", "q", 0.9, "0.9 for Q"),
        ("question", "features", ["age", "schooling"], "age,schooling for FEATURES"),
        ("question", "k", ..., "K"),
        ("question", "types", {"id": "int"}, 'id = "int" under [types]'),
        ("question", "complete", ["age"], 'complete = ["age"]'),
        ("question", "complete", True, "--complete"),
        ("file", "complete", ["age"], 'complete = ["age"]'),
        ("file", "version", "2026-11", 'version = "2026-11"'),
        ("file", "rows_per_person", 3, "rows_per_person = 3"),
        ("file", "allow_individual", True, "allow_individual = true"),
        ("file", "ledger", None, "no ledger"),
        ("file", "types", {"id": "int", "two words": "float"}, 'id = "int"; "two words" = "float" under [types]'),
        ("file", "types", ..., "[types]"),
        ("file", "bounds", {"wage": (0, 100)}, "wage = [0, 100] under [bounds]"),
        ("file", "default", "strict", 'default = "strict" under [preferences]'),
        ("file", "default", PUBLIC, 'default = "public" under [preferences]'),
        ("file", "levels", {"a": 0.05, "all": PUBLIC}, 'levels = { a = 0.05, all = "public" } under [preferences]'),
        ("file", "column", ..., "column under [preferences]"),
        ("file", "ceiling", 10.0, "ceiling = 10.0"),
        ("file", "public", ["region"], 'public = ["region"]'),
        ("file", "keys", {"region": ["north"]}, 'region = ["north"] under [keys]'),
        ("file", "name", "wages", 'name = "wages"'),
        ("file", "measure", "pure", 'measure = "pure"'),
        ("init", "types", {"id": "int"}, "--type id=int"),
        ("init", "levels", {"strict": 0.05, "open": 1}, "--level strict=0.05 --level open=1"),
        ("init", "bounds", {"wage": (1.0, 3.0)}, "--bounds wage=1,3"),
        ("init", "person", "id", "--person id"),
        ("collect", "options", ["small", "large"], "--option small --option large"),
        ("collect", "levels", {"strict": 0.1}, "--level strict=0.1"),
        ("collect", "epsilon", 1, "--epsilon 1"),
        ("collect", "resolution", 8, "--h3 8"),
        ("collect", "level", 0.95, "--level 0.95"),
        ("collect", "population", ..., "population"),
        ("collect", "density", 0.5, "density 0.5"),
        ("ledger", "witness", ..., "--witness"),
        ("ledger", "ledger", "sqlite:///people.ledger", "--ledger sqlite:///people.ledger"),
    ],
)  # fmt: skip
def test_an_argument_is_a_flag_or_a_line_of_the_file(place: str, name: str, value: Any, text: str) -> None:
    written = write_argument(Argument(name, value), of(place))
    assert written == text
    if " = " in written and ";" not in written:
        assert tomllib.loads(written.partition(" under ")[0])


def test_a_refusal_writes_arguments_and_leaves_text_as_it_is() -> None:
    hint = ("leave ", Argument("spread"), " out, or ", Argument("share", 0.1))
    refused = Refusal(PlanError("There is no column 'share=0.1'.", suggest=hint), of("question"))
    assert refused.message == "There is no column 'share=0.1'. Try: leave --spread out, or --share 0.1"
    assert (refused.exit_code, Refusal(BudgetExceeded("No."), {}).exit_code) == (5, 6)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("steward")
    pyarrow.parquet.write_table(people_table(), path / "wages.parquet")
    pyarrow.csv.write_csv(people_table(), path / "wages.csv")
    (path / "people.toml").write_text(FILE)
    with contextlib.chdir(path), redirect_stdout(io.StringIO()):
        assert app.main(["register", "people.toml"]) == 0
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
    return status, message


MISTAKES = (
    ("mean people.toml wage --mechanism magic", "auto"),
    ("mean people.toml wage --by region", "--by region=north,south"),
    ("mean people.toml wage --by region=", 'region=["north",""]'),
    ("mean people.toml age", "--bounds 0,100"),
    ("mean people.toml wage --bounds 9,1", "--bounds 1,9"),
    ("mean people.toml wage --bounds 1,1", "--bounds"),
    ("mean people.toml wage --bounds 0,inf", "--bounds 0,100"),
    ("mean people.toml region", 'region = "float" under [types]'),
    ("median people.toml wage --step -1", "--step 1"),
    ("median people.toml wage --gamma 99", "--gamma 3"),
    ("quantile people.toml wage 2", "0.9 for Q"),
    ("quantile people.toml wage 1e-12", ""),
    ("kth-largest people.toml wage 0", "2 for K"),
    ("histogram people.toml region", "--edges 0,10,20"),
    ("histogram people.toml region --categories north,north", "--categories north,south"),
    ("histogram people.toml wage --edges 3,2,1", "--edges 0,10,20"),
    ("histogram people.toml region --categories north --outside clip", "--outside drop"),
    ("count people.toml --missing center", "--missing"),
    ("mean people.toml wage --missing center --by region=north", "--missing exclude"),
    ("mean people.toml wage --missing center --where 'age > 3'", ""),
    ("mean people.toml wage --by region=north,north", "--by region=north,south"),
    ("mean people.toml wage --share 2", "--share 0.1"),
    ("mean people.toml wage --share 0.1 --error 1", "--share 0.1, or --error 0.5"),
    ("mean people.toml wage --error -1", "--error 0.5"),
    ("mean people.toml wage --error 0.0001", "--error 1."),
    ("mean people.toml wage --spread -1", "leave --spread out"),
    ("plan people.toml linear-regression wage", "for FEATURES"),
    ("plan people.toml mean", ""),
    ("linear-regression people.toml wage age", "--bounds age="),
    ("sql people.toml 'SELECT AVG(age) FROM people'", "--bounds age=0,100"),
    ("sql people.toml 'SELECT AVG(wage) FROM people' --bounds wage=9,1", "--bounds wage=1,9"),
    ("sql people.toml 'SELECT region, COUNT(*) FROM people GROUP BY region'", "--keys region=north,south"),
    ("sql people.toml 'SELECT AVG(wage) FROM people' --share 3", "--share 0.1"),
    (
        "init wages.parquet --out n.toml --person id --preferences privacy --level strict=1 --bounds wage=3,1",
        "--bounds wage=1,3",
    ),
    (
        "init wages.csv --out n.toml --person id --preferences privacy --level strict=1 --type wage=date "
        "--bounds wage=0,1",
        "--type wage=float",
    ),
    ("count people.toml --where 'region >= 5'", "columns that [types] does not declare are text"),
    ("mean people.toml salary", ""),
    ("mean nowhere.toml wage", "epsilons init"),
    ("plan people.toml quantile wage", "0.9 for Q"),
    ("linear-regression people.toml wage age --bounds age", "--bounds wage=0,100"),
    ("sql people.toml 'SELECT wage FROM people'", ""),
    ("init wages.parquet --out new.toml", "--person id"),
    ("init wages.parquet --out new.toml --person id --preferences privacy", "--level strict=0.05 --level open=1"),
    ("init wages.parquet --out new.toml --person id --preferences privacy --level strict", "--level strict=0.05"),
    ("init wages.parquet --out new.toml --person id --preferences privacy --type id", "--type age=int"),
    (
        "init wages.parquet --out a.toml --person id --preferences privacy --level a=1 --type id=int",
        "leave --type out",
    ),
    ("collect design a.toml --question x --level strict", "--level strict=0.1"),
    ("collect design a.toml --question x --sampling 1.5", "--sampling 0.45"),
    ("collect design a.toml --question x --epsilon 1 --h3 99 --box 1 2 3 4", "--h3 8"),
    ("collect plan --error 0.1 --count 3 --share 0.5", "--count 100"),
    ("ledger show nowhere.ledger", ""),
)


@pytest.mark.parametrize(("line", "hint"), MISTAKES)
def test_a_mistake_is_explained_without_python(home: Path, line: str, hint: str) -> None:
    _, message = refusal(home, *shlex.split(line))
    assert hint in message.partition("Try: ")[2]
    assert not PYTHON.search(message), message


def test_a_mistake_is_explained_alike_where_a_server_is_asked(home: Path, tmp_path: Path) -> None:
    """By the same words and flags, though the server does not know who reads them."""
    (home / "gateway.toml").write_text('store = "sqlite:///gateway.store"\ndatasets = ["people.toml"]\n')
    key = tmp_path / "key"
    key.touch(0o600)
    key.write_text(key_for(home / "gateway.toml", "office"))
    with closing(Servers()) as servers:
        url, _ = servers.start(home / "gateway.toml")
        (tmp_path / "people.toml").write_text(f'server = "{url}"\nname = "wages"\nkey = "key"\n')
        asked = [shlex.split(line) for line, _ in MISTAKES if " people.toml" in line]
        assert len(asked) > 30
        assert [refusal(tmp_path, *one) for one in asked] == [refusal(home, *one) for one in asked]


@pytest.mark.parametrize(
    ("old", "new", "status", "hint"),
    [
        ("wage = [0, 100]", "wage = [100, 0]", 4, "wage = [0, 100]"),
        ('source = "wages.parquet"', 'source = "nowhere.parquet"', 4, 'source = "other.parquet"'),
        ("complete = []", 'complete = "age"', 4, 'complete = ["age"]'),
        ('version = "1"', "version = 1", 4, 'version = "2026-11"'),
        ('source = "wages.parquet"', 'source = "wages.csv"', 4, 'wage = "float" under [types]'),
        ('person = "id"', 'person = "wage"', 4, "person, if one of these says whose row it is: 'id', "),
        ("[bounds]", '[types]\nid = "int"\n[bounds]', 4, "leave [types] out"),
        ("rows_per_person = 1", "rows_per_person = 2", 7, "rows_per_person = 1"),
        ('"absent"', '"replace"', 7, 'neighbors = "absent"'),
        ('"absent"', '"present"', 7, 'neighbors = "absent" or neighbors = "replace"'),
        ("levels =", "# levels =", 3, "levels = { strict = 0.05, open = 1 } under [preferences]"),
        ('column = "privacy"', 'column = "age"', 3, "another column under [preferences]"),
        ("standard = 0.2, ", "", 3, "levels under [preferences]"),
        ("sqlite:///wages.ledger", "mysql://there", 7, 'ledger = "sqlite:///people.ledger"'),
    ],
)
def test_a_file_hints_at_its_lines(home: Path, old: str, new: str, status: int, hint: str) -> None:
    (home / "bad.toml").write_text(FILE.replace(old, new))
    found, message = refusal(home, "register", "bad.toml")
    assert (found, PYTHON.search(message)) == (status, None)
    assert hint in message.partition("Try: ")[2]


def test_preferences_in_a_second_file_are_hinted_at_as_lines_of_the_dataset_file(home: Path) -> None:
    given = ("wages.parquet", "--out", "two.toml", "--person", "id", "--preferences", "wages.csv")
    found, message = refusal(home, "init", *given)
    assert found == 4
    assert "wages.csv is a file, not a column." in message
    assert 'file = "wages.csv", person = "id" and column = "level" under [preferences]' in message
    assert not (home / "two.toml").exists()
