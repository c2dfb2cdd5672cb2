"""A dataset file declares what `Dataset` takes, and nothing else."""

import re
from pathlib import Path
from typing import Any

import pyarrow.csv
import pyarrow.parquet
import pytest

import epsilons as eps
from epsilons.dataset.declared import arguments_of, lasting_arguments
from epsilons.dataset.preview import look_over
from support.small_tables import people_table

WHOLE = """
source = "data/wages.parquet"
person = "id"
version = "2026-11"
rows_per_person = 2
neighbors = "replace"
ledger = "sqlite:///wages.ledger"
complete = ["age"]

[preferences]
column = "privacy"
default = "strict"
levels = { strict = 0.05, standard = 0.2, open = 1, public = "public" }

[bounds]
wage = [0, 100]
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    pyarrow.parquet.write_table(people_table(300), tmp_path / "data" / "wages.parquet")
    return tmp_path


def write(home: Path, text: str) -> Path:
    path = home / "people.toml"
    path.write_text(text)
    return path


def registered(home: Path, text: str) -> eps.Dataset:
    """As `epsilons register` does it, and then opened by the file."""
    path = write(home, text)
    eps.Dataset.register(**lasting_arguments(path, reading=True)).close()
    return eps.Dataset.from_toml(path)


def test_a_file_opens_what_it_declares(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    with pytest.raises(eps.errors.LedgerError, match="no ledger at sqlite:"):
        eps.Dataset.from_toml(write(home, WHOLE))
    with registered(home, WHOLE) as people:
        about = people.describe()
        assert (about.people, about.rows_per_person, about.neighbors) == (300, 2, "replace")
        assert [level.name for level in about.levels] == ["strict", "standard", "open", "public"]
        assert ("wage", "number", "in [0, 100]") in about.columns
        assert ("age", "number", "complete") in about.columns
        assert people.mean("wage", share=0.5).guarantee.neighbors == "replace"
    assert (home / "wages.ledger").exists()


def test_preferences_of_every_kind(home: Path) -> None:
    head = 'source = "data/wages.parquet"\nperson = "id"\nledger = "memory"\n[preferences]\n'
    with eps.Dataset.from_toml(write(home, head + "everyone = 0.5")) as people:
        assert [level.epsilon for level in people.describe().levels] == [0.5]
    wishes = people_table(300).select(["id", "privacy"])
    pyarrow.csv.write_csv(wishes, home / "wishes.csv")
    other = 'file = "wishes.csv"\nperson = "id"\ncolumn = "privacy"\ntypes = { id = "int" }\n'
    levels = 'levels = { strict = 0.1, standard = 0.2, open = 1, public = "public" }'
    with eps.Dataset.from_toml(write(home, head + other + levels)) as people:
        assert people.describe().levels[0].epsilon == 0.1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("source", "sauce"), "Unknown key 'sauce' in people.toml"),
        (('person = "id"', ""), "has no 'person'"),
        (("[bounds]", "[bounds"), "is not TOML"),
        (("wage = [0, 100]", "wage = 100"), "are not a pair"),
        (('public = "public"', 'public = "open"'), "is not an epsilon"),
        (('column = "privacy"', ""), "which column holds"),
        (('column = "privacy"', 'pillar = "privacy"'), r"Unknown key 'pillar' in \[preferences\]"),
        (('ledger = "sqlite:///wages.ledger"', "ledger = 7"), "by its address"),
        (('source = "data/wages.parquet"', "source = []"), "a path, or a list"),
        (('default = "strict"', 'default = "none"'), "not one of the levels"),
        (("levels = {", "levels = 3 #"), "names with epsilons"),
    ],
)
def test_what_means_nothing_is_named(home: Path, change: tuple[str, str], words: str) -> None:
    path = write(home, WHOLE.replace(*change))
    with pytest.raises(eps.EpsilonsError, match=words):
        arguments_of(path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(eps.DataError, match="There is no file"):
        arguments_of(tmp_path / "nothing.toml")


def test_paths_are_relative_to_the_file(home: Path) -> None:
    found: dict[str, Any] = arguments_of(write(home, WHOLE))
    assert found["source"] == str(home / "data/wages.parquet")
    assert found["ledger"] == f"sqlite:///{home / 'wages.ledger'}"
    again = arguments_of(write(home, WHOLE.replace("sqlite:///wages", "sqlite:////elsewhere/wages")))
    assert again["ledger"] == "sqlite:////elsewhere/wages.ledger"


@pytest.mark.parametrize(
    ("old", "new", "words", "hint"),
    [
        ("[0, 100]", "[100, 0]", "'wage' are reversed", "wage = [0, 100]"),
        ("[0, 100]", "[5, 5]", "'wage' are reversed or empty", "wage = [0, 100]"),
        ("[0, 100]", '["a", 100]', "'wage' are not a pair of numbers", "wage = [0, 100]"),
        ("rows_per_person = 2", 'threads = "many"', "threads", "threads = 2"),
        ("rows_per_person = 2", 'memory = "lots"', "memory", 'memory = "2GB"'),
    ],
)
def test_a_mistake_in_a_file_names_its_line(home: Path, old: str, new: str, words: str, hint: str) -> None:
    with pytest.raises(eps.DataError) as caught:
        eps.Dataset.from_toml(write(home, WHOLE.replace(old, new)))
    assert words in caught.value.what
    assert caught.value.hint == hint


def test_a_source_that_is_gone_is_named_to_whoever_registers_it(home: Path) -> None:
    with pytest.raises(eps.DataError) as caught:
        registered(home, WHOLE.replace("wages.parquet", "none.parquet"))
    assert "none.parquet" in caught.value.what
    assert caught.value.hint.startswith("the file at its place, to register it again")
    registered(home, WHOLE).close()
    (home / "data" / "wages.parquet").unlink()
    with pytest.raises(eps.DataError, match=r"no file.*wages\.parquet.*What is registered is asked without its source"):
        lasting_arguments(home / "people.toml", reading=True)
    with eps.Dataset.from_toml(home / "people.toml") as people:
        people.count()


def test_limits_of_the_engine_may_be_declared(home: Path) -> None:
    limits = 'threads = 1\nmemory = "500 MB"\nrows_per_person = 2'
    registered(home, WHOLE.replace("rows_per_person = 2", limits)).close()


def test_a_file_that_says_something_else_than_was_registered_is_refused(home: Path) -> None:
    registered(home, WHOLE).close()
    changes = {
        "[0, 100]": "[0, 50]", "2026-11": "2026-12", '["age"]': '["wage"]', "strict = 0.05": "strict = 0.5",
        "rows_per_person = 2": "rows_per_person = 3", '"replace"': '"absent"', 'person = "id"': 'person = "age"',
    }  # fmt: skip
    for old, new in changes.items():
        with pytest.raises(eps.errors.LedgerError, match="something else") as caught:
            eps.Dataset.from_toml(write(home, WHOLE.replace(old, new)))
        # Nobody is sent to a registration that would be refused.
        for_life = old[:6] in ("rows_p", '"repla', "person")
        assert ("epsilons register" in caught.value.hint) != for_life
        assert ("cannot be settled anew; or a new ledger" in caught.value.hint) == for_life
    eps.Dataset.from_toml(write(home, WHOLE)).close()


def test_bounds_of_a_column_without_a_type_hint_at_its_type(home: Path) -> None:
    pyarrow.csv.write_csv(people_table(300), home / "data" / "wages.csv")
    with pytest.raises(eps.DataError) as caught:
        registered(home, WHOLE.replace("wages.parquet", "wages.csv"))
    assert caught.value.what == "Column 'wage' holds text, not numbers."
    assert caught.value.hint == "types={'wage': 'float'} for numbers in a CSV file; or no bounds of it"


CSV = WHOLE.replace("wages.parquet", "wages.csv") + '\n[types]\nid = "int"\nwage = "float"\nage = "int"\n'
#: What may be settled anew, and how it is told.
ANEW = [
    ('age = "int"', 'age = "float"', "type of age int → float"),
    ("wages.csv", "same.csv", r"source \[\S*wages\.csv\] → \[\S*same\.csv\]"),
    ('column = "privacy"', 'column = "wish"', "preferences' column privacy → wish"),
    ('default = "strict"', 'default = "open"', "preferences' default strict → open"),
    ("[0, 100]", "[0, 50]", r"bounds of wage \[0, 100\] → \[0, 50\]"),
    ("complete", 'keys = { region = ["north"] }\ncomplete', r"keys of region none → \[north\]"),
    ('["age"]', '["age", "wage"]', r"complete \[age\] → \[age, wage\]"),
    ("complete", "ceiling = 5\ncomplete", "ceiling 10 → 5"),
]


def test_what_is_settled_anew_is_named_and_until_then_refused(home: Path) -> None:
    table = people_table(300)
    table = table.append_column("wish", table["privacy"])
    for name in ("wages.csv", "same.csv"):
        pyarrow.csv.write_csv(table, home / "data" / name)
    registered(home, CSV).close()
    for turn, (old, new, told) in enumerate(ANEW):
        text = CSV.replace(old, new, 1)
        with pytest.raises(eps.errors.LedgerError, match=told):
            eps.Dataset.from_toml(write(home, text))
        seen = look_over(**lasting_arguments(write(home, text.replace("2026-11", f"v{turn}")), reading=True))
        assert len(seen.enrolment.settled) == 1
        assert re.match(f"{told}; (stored answers|questions|who had more)", seen.enrolment.settled[0])
        # Lines are wrapped wherever a path allows it.
        assert "".join(f"Settled anew: {seen.enrolment.settled[0]}.".split()) in "".join(str(seen).split())
    given = lasting_arguments(write(home, text.replace("2026-11", "new")), reading=True)
    with eps.Dataset.register(**given) as people:
        assert people.enrolment is not None
        assert people.enrolment.settled == ("ceiling 10 → 5; who had more comes down; stored answers stay",)


def test_a_label_stands_for_all_that_is_part_of_every_question(home: Path) -> None:
    """Else the same question would be charged anew under the same citation."""
    registered(home, WHOLE).close()
    path = write(home, WHOLE.replace('["age"]', '["age", "wage"]'))
    with pytest.raises(
        eps.errors.LedgerError, match=r"already, with other complete columns.*version='2026-11, revised"
    ):
        eps.Dataset.register(**lasting_arguments(path, reading=True))
    unlabelled = WHOLE.replace('version = "2026-11"\n', "").replace("[0, 100]", "[0, 50]")
    for complete, version in (('["age"]', "2026-11"), ('["wage"]', "3"), ('["wage"]', "3")):
        with registered(home, unlabelled.replace('["age"]', complete)) as people:
            assert people.describe().version == version


def test_levels_of_a_file_are_those_of_the_ledger_whoever_redefined_them(home: Path) -> None:
    registered(home, WHOLE).close()
    other = 'name = "health"\n' + WHOLE.replace("open = 1", "open = 0.5")
    with pytest.raises(eps.errors.LedgerError, match=r"'open' is 1 there, 0\.5 here"):
        registered(home, other)
    arguments = lasting_arguments(write(home, other), reading=True)
    with eps.Dataset.register(**arguments, redefine=True) as people:
        assert people.enrolment is not None
        assert people.enrolment.settled == ("level open 1 → 0.5; stored answers stay",)
    said = r"level open 0\.5 → 1\. Levels mean what was registered last.*the levels as the ledger has them"
    with pytest.raises(eps.errors.LedgerError, match=said):
        eps.Dataset.from_toml(write(home, WHOLE))
    eps.Dataset.from_toml(write(home, WHOLE.replace("open = 1", "open = 0.5"))).close()


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("wages", "wages"),
        ("warehouse.wages", "warehouse.wages"),
        ("hdfs:///private/wages.parquet", "hdfs:///private/wages.parquet"),
        ("s3a://bucket/wages", "s3a://bucket/wages"),
        ("wages.parquet", "{home}/wages.parquet"),
        ("data/wages", "{home}/data/wages"),
        ("/data/wages.parquet", "/data/wages.parquet"),
    ],
)
def test_a_cluster_finds_tables_by_name_and_files_by_path(home: Path, source: str, found: str) -> None:
    text = f'source = "{source}"\nengine = "spark"\nperson = "id"\n[preferences]\neveryone = 0.5'
    assert arguments_of(write(home, text))["source"] == found.format(home=home.resolve())
