"""The copy that questions are asked of: packed where that pays, and the same answers whatever was done to it."""

import numpy as np
import pyarrow as pa
import pytest
from sqlglot import exp

import epsilons as eps
from epsilons.dataset import rows as copies
from epsilons.engines.duckdb import DuckDB
from epsilons.ledger.order import as_sorted
from epsilons.testing import seeded

PEOPLE = 5_000


def wages() -> pa.Table:
    random = np.random.default_rng(3)
    return pa.table(
        {
            "id": np.arange(PEOPLE),
            "rough": random.normal(50, 15, PEOPLE),
            "smooth": random.integers(0, 9, PEOPLE).astype(float),
            "region": ["north", "south", "east", "west"] * (PEOPLE // 4),
            "epsilon": random.choice([0.5, 1.0, 2.0], PEOPLE),
        }
    )


def packing(engine: DuckDB, name: str) -> dict[str, set[str]]:
    rows = engine._connection.execute(
        f"SELECT column_name, compression FROM pragma_storage_info('{name}') WHERE segment_type <> 'VALIDITY'"
    ).fetchall()
    return {column: {kind for other, kind in rows if other == column} for column, _ in rows}


def test_floats_that_hardly_repeat_stay_as_they_are_and_all_else_is_packed() -> None:
    table = wages()
    large = pa.concat_tables([table] * 30)
    engine = DuckDB(large.set_column(1, "rough", pa.array(np.random.default_rng(4).normal(50, 15, len(large)))))
    engine.stage("staged")
    engine.keep("copy", exp.select("*").from_("staged"))
    found = packing(engine, "copy")
    assert found["rough"] == {"Uncompressed"}
    for name in ("smooth", "region", "epsilon", "id"):
        assert "Uncompressed" not in found[name], name
    engine.close()


def answers(people: eps.Dataset) -> list[object]:
    manner = {"entropy": seeded(5), "fresh": True, "share": 0.1}
    asked = [
        people.mean("rough", bounds=(0, 100), mechanism="sample", threshold="mean", **manner),
        people.median("rough", bounds=(0, 100), mechanism="sample", threshold="mean", **manner),
        people.mean("rough", bounds=(0, 100), by={"region": ["west", "north"]}, **manner),
    ]
    people.set_level(dict.fromkeys(range(100), 0.25))
    asked.append(people.mean("rough", bounds=(0, 100), mechanism="sample", threshold="mean", **manner))
    return [answer.value for answer in asked]


def test_digests_in_a_file_flip_the_same_coins(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one salt for both: in memory and in a file the same people are sampled, also after changes of mind."""
    found = []
    for most in (1 << 24, 0):
        monkeypatch.setattr(copies, "_MUCH", most)
        ledger = eps.ledger.open()
        ledger.salt = bytes(16)
        people = eps.Dataset(wages(), person="id", preferences=eps.Preferences.from_column("epsilon"), ledger=ledger)
        assert isinstance(people._preparation.digests, np.memmap) is (most == 0)
        found.append(answers(people))
        people.close()
    assert found[0] == found[1]


@pytest.mark.parametrize("alike", [False, True])
def test_cohorts_are_found_by_digest_also_when_the_first_half_is_shared(alike: bool) -> None:
    random = np.random.default_rng(6)
    known = random.integers(0, 256, (2_000, 16), np.uint8)
    if alike:
        known[:1_000, :8] = known[1_000:, :8]
    known = known[np.lexsort(known.T[::-1])]
    cohorts = random.choice([3, 7, 1_000], len(known))
    asked = random.permutation(len(known))[:500]
    found = copies.find_cohorts(known[np.sort(asked)], as_sorted(known), cohorts)
    assert found.tolist() == cohorts[np.sort(asked)].tolist()
    places, listed = copies.as_codes(found)
    assert listed == (3, 7, 1_000)
    assert [listed[place] for place in places] == found.tolist()
