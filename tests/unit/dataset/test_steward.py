"""Private facts for the steward: exact, marked as such, and asked for by nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

import epsilons
import epsilons as eps
from epsilons.dataset.preferences import check_id_column
from epsilons.dataset.preview import look_over
from epsilons.dataset.rows import stage
from epsilons.dataset.steward import PRIVATE, steward_facts
from epsilons.engines.base import open_table

LINES = [
    "1,50,x,2024-01-31",
    "1,5e1,,2024-02-30",
    "1,nan,y,",
    "2,-3,z,never",
    "2.5,200,z,",
    ",7,,2024-01-01",
    "3,word,a,",
]
TYPES = {"id": "int", "wage": "float", "note": "text", "day": "date"}


def test_rows_cut_cells_that_do_not_parse_and_values_out_of_bounds(tmp_path: Path) -> None:
    csv, lines = tmp_path / "people.csv", tmp_path / "people.ndjson"
    csv.write_text("id,wage,note,day\n" + "\n".join(LINES) + "\n")
    rows = [dict(zip(TYPES, line.split(","), strict=True)) for line in LINES]
    lines.write_text("".join(json.dumps({k: v or None for k, v in row.items()}) + "\n" for row in rows))
    for path in (csv, lines):
        engine = open_table(path, types=TYPES)
        stage(engine)
        facts = steward_facts(engine, check_id_column(engine, "id"), 1, {"wage": (0, 100), "id": (1, 2)})
        assert facts.cut == 2  # person 1 has three rows; those without a person are nobody's
        assert facts.without_id == 2  # one cell is empty, one did not parse
        assert facts.unread == {"id": 1, "wage": 1, "day": 2}
        assert facts.outside == {"wage": 2, "id": 1}
        assert facts.to_dict()["private"] == PRIVATE
        assert "not for publication" in " ".join(str(facts).split())
        assert "2 rows" in str(facts)
        engine.close()


def test_a_table_with_types_of_its_own_and_without_bounds() -> None:
    engine = open_table(pa.table({"id": ["a", "a", "b"], "yes": [True, False, None]}))
    stage(engine)
    person = check_id_column(engine, "id")
    facts = {"private": PRIVATE, "cut": 0, "without_id": 0, "unread": {}, "outside": {}, "lines": {}, "words": {}}
    assert steward_facts(engine, person, 2, {}).to_dict() == facts
    assert steward_facts(engine, person, 1, {"yes": (0.5, 1.0)}).outside == {"yes": 1}
    engine.close()


def test_only_the_stewards_check_asks_for_them() -> None:
    source = Path(epsilons.__file__).parent
    users = {
        path.relative_to(source).as_posix() for path in source.rglob("*.py") if "steward_facts" in path.read_text()
    }
    assert users <= {"dataset/steward.py", "dataset/preview.py"}


def test_a_check_shows_them_only_if_the_steward_says_so(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("id,wage,note,day\n" + "\n".join(LINES) + "\n")
    asked: dict[str, Any] = {"name": "wages", "person": "id", "types": TYPES, "bounds": {"wage": (0, 100)}}
    asked |= {"ledger": f"sqlite:///{tmp_path / 'a.ledger'}", "preferences": 1.0}
    plain, told = (look_over(path, **asked, steward=steward) for steward in (False, True))
    assert plain.private is None
    assert "private" not in plain.to_dict()
    assert "Private" not in str(plain)
    assert "Rows without a value of 'id' are nobody's, and are left out." in str(plain)
    assert "Rows without an id: 2." in str(told)
    assert told.to_dict()["private"]["outside"] == {"wage": 2}
    assert "The cap leaves out 2 rows." in str(told)
    assert {**told.to_dict(), "private": None} == {**plain.to_dict(), "private": None}
    assert list(tmp_path.iterdir()) == [path]


def test_words_that_are_no_level_are_shown_to_the_steward_alone(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    said = ["strict", "keine Angabe", "open", "", "Strict", "keine Angabe", "x" * 900]
    path.write_text("id,privacy\n" + "".join(f"{number},{word}\n" for number, word in enumerate(said)))
    levels = eps.Preferences.from_levels("privacy", {"strict": 0.1, "open": 1})
    asked: dict[str, Any] = {"name": "wages", "person": "id", "preferences": levels}
    asked |= {"ledger": f"sqlite:///{tmp_path / 'a.ledger'}"}
    plain, told = (look_over(path, **asked, steward=steward) for steward in (False, True))
    assert "keine Angabe" not in str(plain) + json.dumps(plain.to_dict())
    assert told.to_dict()["private"]["words"] == {"keine Angabe": 2, "Strict": 1, "x" * 900: 1}
    assert "'keine Angabe'" in str(told)
    assert "x" * 41 not in str(told)
    # Numbers in a column, one epsilon for all, and a column that is none: nothing stands in place of a level.
    for other in (eps.Preferences.from_column("privacy", 1.0), 1.0):
        assert look_over(path, **{**asked, "preferences": other}, steward=True).to_dict()["private"]["words"] == {}
