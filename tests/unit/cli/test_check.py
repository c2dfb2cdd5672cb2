"""`epsilons check`: what registering would change or be refused for, in the command line's own words."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import epsilons as eps
from epsilons.cli import app
from epsilons.cli.errors import STATUS
from epsilons.dataset.preview import look_over

LEVELS = {"strict": 0.1, "open": 1.0}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    write(tmp_path)
    return tmp_path / "people.toml"


def write(home: Path, first: int = 0, levels: dict[str, float] = LEVELS, public: str = "[]") -> None:
    """Forty people from the number `first` on, of whom every fourth is strict."""
    ids = range(first, first + 40)
    table = {"id": ids, "level": ["open" if n % 4 else "strict" for n in ids], "wage": [1.0 * n for n in range(40)]}
    pa.parquet.write_table(pa.table({name: list(column) for name, column in table.items()}), home / "wages.parquet")
    named = ", ".join(f"{name} = {epsilon}" for name, epsilon in levels.items())
    (home / "people.toml").write_text(
        'name = "wages"\nsource = "wages.parquet"\nperson = "id"\nledger = "sqlite:///a.ledger"\n'
        f'public = {public}\n[preferences]\ncolumn = "level"\nlevels = {{ {named} }}\n[bounds]\nwage = [0, 100]\n'
    )


def run(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> str:
    assert app.main(list(arguments)) == status
    return " ".join(capsys.readouterr().out.split())


def test_it_names_the_flags_that_registering_would_ask_for(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "refused" not in run(capsys, "check", "people.toml")
    run(capsys, "register", "people.toml")
    write(tmp_path, first=10)
    told = run(capsys, "check", "people.toml", status=7)
    assert "Registering would be refused: Of 40 people, 10 are new to this ledger and 30 known." in told
    assert "if these people are new, --yes" in told
    (refused,) = json.loads(run(capsys, "check", "people.toml", "--json", status=7))["refused"]
    assert refused.endswith("--yes")
    assert app.main(["register", "people.toml"]) == 7
    assert " ".join(refused.split()) in " ".join(capsys.readouterr().err.split())
    run(capsys, "register", "people.toml", "--yes")
    write(tmp_path, first=10, levels=LEVELS | {"strict": 0.2})
    told = run(capsys, "check", "people.toml", status=7)
    assert "Levels would mean more than before ('strict' 0.1 → 0.2), for 10 people." in told
    assert "Try: --loosen 10, or everything as it was" in told
    assert "The source gives 10 people a larger epsilon: registering with --loosen 10 grants it." in told
    assert "confirm=" not in told
    assert "loosen=" not in told


def test_it_shows_what_would_hold_and_not_what_the_source_asks_for(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, "register", "people.toml")
    with eps.Dataset.from_toml("people.toml") as people:
        people.set_level({1: "strict", 2: 8.0})
        people.withdraw([3])
    write(tmp_path)
    file.write_text("ceiling = 2\n" + file.read_text())
    seen = json.loads(run(capsys, "check", "people.toml", "--json"))
    shown = {(level["name"], level["epsilon"]): level["people"] for level in seen["levels"]}
    assert shown == {("strict", 0.1): 11, ("open", 1.0): 27, ("2", 2.0): 1}
    assert (seen["people"], seen["withdrawn"]) == (39, 1)
    told = run(capsys, "check", "people.toml")
    assert "Withdrawn: 1 person, not used." in told
    assert "Settled anew: ceiling 10 → 2; who had more comes down" in told
    assert "Settled anew: ceiling 10 → 2; who had more comes down" in run(capsys, "register", "people.toml")
    with eps.Dataset.from_toml("people.toml") as people:
        assert {(one.name, one.epsilon): one.people for one in people.describe().levels} == shown
    named = json.loads(run(capsys, "ledger", "show", "people.toml", "--json"))["levels"]
    assert [(level["name"], level["people"]) for level in named] == [("strict", 11), ("open", 27), (None, 1)]
    assert " open 1 27 1 1 0 " in run(capsys, "ledger", "show", "people.toml")


def test_how_many_own_words_a_looser_source_goes_against_is_told_before_and_after(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, "register", "people.toml")
    run(capsys, "person", "level", "people.toml", "1", "strict")
    write(tmp_path, levels=LEVELS | {"wide": 2.0})
    table = pa.parquet.read_table(tmp_path / "wages.parquet")
    wide = pa.array(["wide" if one == "open" else one for one in table["level"].to_pylist()])
    pa.parquet.write_table(table.set_column(1, "level", wide), tmp_path / "wages.parquet")
    told = "The source gives 30 people a larger epsilon, 1 of them against their own word: "
    seen = run(capsys, "check", "people.toml")
    assert f"{told}registering with --loosen 30 grants it." in seen
    assert "looser, waiting, against an own word 1 " in seen
    assert app.main(["register", "people.toml", "--loosen", "29"]) == 7
    assert "30 people would have a larger epsilon than before. 1 of them said something stricter themselves." in (
        capsys.readouterr().err
    )
    assert app.main(["register", "people.toml"]) == 0
    assert f"{told}epsilons register people.toml --loosen 30" in capsys.readouterr().err
    assert "own words that give way to the source 1" in run(capsys, "register", "people.toml", "--loosen", "30")


def test_after_a_loss_a_level_grants_nothing_until_it_is_granted_anew(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, "register", "people.toml")
    for head in (tmp_path / "state").rglob("*.json"):
        head.unlink()
    run(capsys, "ledger", "adopt", "people.toml", "--accept-loss", "--yes")
    assert "every level they choose counts as spent" in run(capsys, "person", "level", "people.toml", "1", "open")
    assert app.main(["count", "people.toml", "--share", "0.1"]) == 6
    told = run(capsys, "person", "level", "people.toml", "1", "open", "--anew")
    assert "Left: 1." in told
    assert "Granted anew on" in told
    account = json.loads(run(capsys, "person", "statement", "people.toml", "1", "--json"))
    assert account["anew"]["charged_before"] == 0


def test_levels_of_a_second_dataset_are_told_as_flags(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, "register", "people.toml")
    write(tmp_path, levels={"strict": 0.1, "open": 2.0})
    file.write_text(file.read_text().replace('name = "wages"', 'name = "health"'))
    told = run(capsys, "check", "people.toml", status=7)
    assert "'open' is 1 there, 2 here" in told
    assert "levels = { strict = 0.1, open = 1.0 } under [preferences]" in told
    assert "if they shall mean this in all of them, --redefine" in told
    assert "Levels would mean more than before ('open' 1 → 2), for 30 people." in told
    assert "Try: --loosen 30, or everything as it was" in told
    assert app.main(["register", "people.toml"]) == 7
    assert app.main(["register", "people.toml", "--redefine", "--loosen", "30"]) == 0
    write(tmp_path)  # wages as it was registered: who reads that open is 1 is not taken to say 2
    capsys.readouterr()
    assert app.main(["person", "level", "people.toml", "4", "open"]) == 7
    refused = capsys.readouterr().err
    assert "people.toml says something else than the ledger: level open 2 → 1." in refused
    assert app.main(["count", "people.toml"]) == 7
    assert capsys.readouterr().err == refused
    for said in ("level people.toml 4 strict", "level people.toml 5 0.5", "withdraw people.toml 6"):
        run(capsys, "person", *said.split())


def test_in_python_it_speaks_python(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "register", "people.toml")
    write(tmp_path, first=10)
    asked: dict[str, Any] = {"name": "wages", "person": "id", "ledger": f"sqlite:///{tmp_path}/a.ledger"}
    seen = look_over("wages.parquet", **asked, preferences=eps.Preferences.from_levels("level", LEVELS))
    (refused,) = seen.refused
    assert refused.endswith("confirm=True")
    assert refused in " ".join(str(seen).split())


def test_nothing_is_written_and_the_columns_are_told_as_they_are_afterwards(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, public='["level"]')
    before = files(tmp_path)
    seen = json.loads(run(capsys, "check", "people.toml", "--json"))
    assert files(tmp_path) == before
    run(capsys, "register", "people.toml")
    before = files(tmp_path)
    run(capsys, "check", "people.toml")
    assert files(tmp_path) == before
    with eps.Dataset.from_toml("people.toml") as people:
        known = [dict(zip(("name", "holds", "known"), column, strict=True)) for column in people.describe().columns]
    assert known == seen["columns"]
    assert known[1]["known"] == "public"


def files(home: Path) -> dict[Path, bytes]:
    """What lies there, but for what SQLite keeps beside a file while it is open."""
    found = (path for path in home.rglob("*") if path.is_file() and not path.name.endswith(("-wal", "-shm")))
    return {path: path.read_bytes() for path in found}


def test_public_columns_are_told_and_refused_where_they_cannot_be(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "Public, as the roster is" not in run(capsys, "check", "people.toml")
    write(tmp_path, public='["level"]')
    told = "Public, as the roster is: level. What they say of everybody may be known by all"
    assert told in run(capsys, "check", "people.toml")


def test_a_place_that_others_may_open_is_refused_before_anything_is_registered(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (around := tmp_path / "a.ledger.snapshots").mkdir(0o755)
    (refused,) = json.loads(run(capsys, "check", "people.toml", "--json", status=4))["refused"]
    assert app.main(["register", "people.toml"]) == 4
    assert refused.endswith(f"chmod 700 {around}")
    assert not (tmp_path / "a.ledger").exists()
    around.chmod(0o700)
    run(capsys, "register", "people.toml")
    around.chmod(0o755)
    assert app.main(["count", "people.toml"]) == 4
    assert f"chmod 700 {around}\n" in capsys.readouterr().err
    around.chmod(0o700)
    (place,) = around.iterdir()
    place.chmod(0o755)
    file.write_text('version = "2"\n' + file.read_text())
    (refused,) = json.loads(run(capsys, "check", "people.toml", "--json", status=4))["refused"]
    assert refused.startswith("Others may open the snapshots of this ledger.")
    assert refused.endswith(f"chmod 700 {place}")
    assert app.main(["register", "people.toml"]) == 4
    place.chmod(0o700)
    with eps.Dataset.open("wages", ledger=f"sqlite:///{tmp_path}/a.ledger") as people:
        assert people.describe().version == "1"


def test_a_label_that_is_used_already_is_told_like_every_refusal(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text('version = "1"\n' + file.read_text())
    run(capsys, "register", "people.toml")
    told = file.read_text()
    write(tmp_path, first=10)
    file.write_text(told)
    refused = json.loads(run(capsys, "check", "people.toml", "--json", status=7))["refused"]
    assert [one.split(".")[0] for one in refused] == [
        "Version '1' of 'wages' is registered already, and the source may hold other rows",
        "Of 40 people, 10 are new to this ledger and 30 known",
    ]
    assert app.main(["register", "people.toml"]) == 7
    file.write_text(told.replace('version = "1"', "rows_per_person = 2").replace("[bounds]", "[keys]\n[bounds]"))
    (other_cap, _) = json.loads(run(capsys, "check", "people.toml", "--json", status=7))["refused"]
    assert other_cap.endswith("rows_per_person = 1")


def test_levels_that_are_new_or_dropped_are_named_and_so_is_a_number_for_a_label(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "Settled anew" not in run(capsys, "register", "people.toml")
    with eps.Dataset.from_toml("people.toml") as people:
        people.set_level({1: "strict"})
    anew = "Settled anew: version {} → {}; its questions are new ones, and charged."
    for levels, version, told in (
        (LEVELS | {"vip": 3.0}, 2, "Settled anew: level vip: new, 3; stored answers stay."),
        (LEVELS, 3, "Settled anew: level vip: no longer in this file; the ledger keeps it."),
    ):
        write(tmp_path, levels=levels)
        assert app.main(["count", "people.toml"]) == 7  # until it is registered
        capsys.readouterr()
        for command in ("check", "register"):
            said = run(capsys, command, "people.toml")
            assert told in said
            assert anew.format(version - 1, version) in said
    assert app.main(["person", "level", "people.toml", "2", "vip"]) == 3
    assert "Unknown privacy level 'vip'. Try: strict, open, public, or a number" in capsys.readouterr().err
    run(capsys, "person", "level", "people.toml", "2", "public")


def test_the_hint_that_loosens_runs_as_pasted_where_many_preferences_name_nobody(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def prefer(level: str, levels: dict[str, float]) -> None:
        write(tmp_path, levels=levels)
        table = pa.table({"id": range(60), "level": [level] * 60})
        pa.parquet.write_table(table, tmp_path / "levels.parquet")
        file.write_text(file.read_text().replace("[preferences]", '[preferences]\nfile = "levels.parquet"'))

    prefer("strict", LEVELS)
    run(capsys, "register", "people.toml", "--yes")
    prefer("open", LEVELS)
    assert app.main(["register", "people.toml", "--yes"]) == 0
    (told,) = re.findall("epsilons (register .*--loosen.*)", capsys.readouterr().err)
    assert told == "register people.toml --loosen 60 --yes"
    run(capsys, *told.split())
    prefer("open", LEVELS | {"open": 2.0})
    told = run(capsys, "check", "people.toml", status=7)
    assert "The source gives 60 people a larger epsilon: registering with --loosen 60 and --yes grants it." in told
    assert app.main(["register", "people.toml"]) == 7
    assert "Try: --loosen 60 and --yes, or everything as it was" in capsys.readouterr().err


def test_matters_of_the_file_are_listed_with_all_others(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, "register", "people.toml")

    def refusals() -> list[str]:
        """What check tells, with the exit status that registering has."""
        status = app.main(["register", "people.toml"])
        capsys.readouterr()
        told = json.loads(run(capsys, "check", "people.toml", "--json", status=status))
        assert STATUS[told["code"]] == status
        return [one.split(".")[0] for one in told["refused"]]

    write(tmp_path, first=10, levels={"strict": 0.1, "open": 20})
    above, new = "Level 'open' is 20, above the ceiling of 10", "Of 40 people, 10 are new to this ledger and 30 known"
    assert refusals() == [above, "Levels would mean more than before ('open' 1 → 20), for 23 people", new]
    assert app.main(["register", "people.toml"]) == 3
    write(tmp_path, first=10, levels={"strict": 20})
    assert refusals() == ["Level 'strict' is 20, above the ceiling of 10", "Column 'level' holds unknown levels", new]
    seen = json.loads(run(capsys, "check", "people.toml", "--json", status=3))
    assert (seen["levels"], seen["enrolment"]["known"], seen["enrolment"]["tightened"]) == ([], 30, 0)
    assert "Preferences cannot be read: levels are not shown" in run(capsys, "check", "people.toml", status=3)
    assert app.main(["register", "people.toml"]) == 3
    told = file.read_text()
    file.write_text(told.replace('ledger = "sqlite:///a.ledger"', ""))
    assert refusals()[0] == "people"  # .toml names no ledger
    assert len(refusals()) == 3
    assert app.main(["register", "people.toml"]) == 7
    (tmp_path / "a.ledger").rename(tmp_path / "b.ledger")
    write(tmp_path)
    assert refusals() == ["The ledger that stood at this address is gone"]
    assert app.main(["register", "people.toml"]) == 7
