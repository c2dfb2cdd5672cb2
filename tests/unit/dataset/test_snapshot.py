"""The snapshot: what was registered and nothing else, read only, for its owner alone, and never half of one."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from sqlglot import exp

from epsilons.dataset import snapshot
from epsilons.dataset.rows import COHORT, PERSON, follow
from epsilons.dataset.snapshot import (
    Stamp,
    open_snapshot,
    remove_snapshot,
    sweep_snapshots,
    verify_snapshot,
)
from epsilons.engines.base import OTHER, SOURCE
from epsilons.engines.duckdb import DuckDB
from epsilons.errors import DataError
from epsilons.ledger.identity import digests
from epsilons.storage import base
from support.changing import PLACES
from support.snapshots import SALT, codes_of, moves_of, opened, register, rows_each, rows_of

PEOPLE = 40
NOT_REGISTERED = "not the registered one"


def table() -> pa.Table:
    """Three rows each, columns of every family, one that cannot be asked about."""
    count = 3 * PEOPLE
    return pa.table({
        "id": [f"person {place // 3}" for place in range(count)],
        "wage": [place * 1.25 if place % 7 else None for place in range(count)],
        "big": pa.array([place * 10**30 for place in range(count)], pa.decimal128(38)),
        "yes": [place % 2 == 0 for place in range(count)],
        "day": pa.array(range(count), pa.date32()),
        "at": pa.array(range(count), pa.timestamp("us")),
        "tags": [["a"]] * count,
    })  # fmt: skip


@pytest.fixture
def stamp(tmp_path: Path) -> Stamp:
    return register(table(), tmp_path / "place" / "first", rows=2)


def test_it_holds_the_capped_rows_and_the_digests_in_the_order_of_numbers(stamp: Stamp, tmp_path: Path) -> None:
    source = tmp_path / "people.parquet"
    parquet.write_table(table().drop_columns(["tags"]), source)
    other = register(source, tmp_path / "other", rows=2)
    source.unlink()  # nothing is asked of the source any more
    for one in (stamp, other):
        engine, people = opened(one)
        assert set(rows_each(engine).values()) == {2}
        ids = {row[PERSON]: row["id"] for row in rows_of(engine)}
        assert sorted(ids) == list(range(PEOPLE))
        assert (digests([ids[place] for place in range(PEOPLE)], SALT) == people).all()
        given = [{**row, PERSON: None} for row in table().drop_columns(["tags"]).to_pylist()]
        assert all({**row, PERSON: None} in given for row in rows_of(engine))
        assert PERSON not in engine.schema
        engine.close()


def test_columns_that_cannot_be_asked_about_are_still_known_by_name(stamp: Stamp) -> None:
    engine, _ = opened(stamp)
    assert engine.schema["tags"].family == OTHER
    with pytest.raises(DataError, match="Column 'tags' of type list cannot be asked about"):
        engine.schema.askable("tags")
    engine.close()


def test_it_is_for_its_owner_alone_and_no_hash_can_be_tried(stamp: Stamp, tmp_path: Path) -> None:
    folder = Path(stamp["folder"])
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in folder.rglob("*"))
    assert [path.name for path in folder.parent.iterdir()] == ["first"]
    nonce = (folder / "nonce").read_bytes()
    assert nonce.hex() not in json.dumps(stamp)
    # The same rows again: every hash is another one, by its own nonce.
    again = register(table(), tmp_path / "again", rows=2)
    digest = [file["whole"] for one in (stamp, again) for file in one["files"] if file["name"] == "digests"]
    assert len(set(digest)) == 2
    # The engine may number the same people otherwise.
    one, other = ((where / "digests").read_bytes() for where in (folder, tmp_path / "again"))
    assert sorted(one[at : at + 16] for at in range(0, len(one), 16)) == sorted(
        other[at : at + 16] for at in range(0, len(other), 16)
    )


def test_nothing_can_be_written_and_several_processes_read_at_once(stamp: Stamp) -> None:
    engine, _ = opened(stamp, threads=1)
    assert isinstance(engine, DuckDB)
    for text in ("INSERT INTO attached.rows SELECT * FROM attached.rows", "SET threads = 2", "ATTACH 'x.duckdb' AS x"):
        with pytest.raises(Exception, match=r"read-only|locked|disabled"):
            engine._connection.execute(text)
    code = (
        "import json, sys; from support.snapshots import opened, rows_of\n"
        "engine, people = opened(json.loads(sys.argv[1])); print(len(rows_of(engine)), len(people))"
    )
    assert run(code, json.dumps(stamp)) == [f"{2 * PEOPLE} {PEOPLE}"]
    assert len(rows_of(engine)) == 2 * PEOPLE
    engine.close()


# --- what it is compared by -----------------------------------------------------------------------------------------


def flip(path: Path, place: int) -> None:
    """Change one byte, and let nothing else show it."""
    facts = path.stat()
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))


def touch(path: Path) -> None:
    os.utime(path, ns=(1, 1))


HARM: dict[str, Callable[[Path], Any]] = {
    "a byte at the beginning": lambda folder: flip(folder / "rows.duckdb", 5000),
    "a byte at the end": lambda folder: flip(folder / "rows.duckdb", -1),
    "a byte in the middle of a copy": lambda folder: (
        flip(folder / "rows.duckdb", 150_000),
        touch(folder / "rows.duckdb"),
    ),
    "digests swapped": lambda folder: flip(folder / "digests", 3),
    "another nonce": lambda folder: (folder / "nonce").write_bytes(bytes(32)),
    "no nonce": lambda folder: (folder / "nonce").unlink(),
    "no digests": lambda folder: (folder / "digests").unlink(),
    "shorter": lambda folder: os.truncate(folder / "digests", 16),
    "a log that would be replayed": lambda folder: (folder / "rows.duckdb.wal").write_bytes(b""),
    "a folder more": lambda folder: ((folder / "more").mkdir(), (folder / "more" / "file").write_text("")),
}


@pytest.mark.parametrize("harm", HARM)
def test_whatever_was_changed_is_refused(stamp: Stamp, harm: str) -> None:
    assert next(file["size"] for file in stamp["files"] if file["name"] == "rows.duckdb") > 300_000
    HARM[harm](Path(stamp["folder"]))
    for look in (opened, verify_snapshot):
        with pytest.raises(DataError, match=NOT_REGISTERED) as refused:
            look(stamp)
        assert "register" in str(refused.value)


def test_only_verifying_sees_a_byte_in_the_middle_whose_file_looks_the_same(tmp_path: Path) -> None:
    stamp = register(pa.table({"id": np.arange(10_000)}), tmp_path / "many")
    flip(tmp_path / "many" / "digests", 80_000)
    opened(stamp)[0].close()
    with pytest.raises(DataError, match=NOT_REGISTERED):
        verify_snapshot(stamp)


def test_a_copy_of_all_of_it_is_as_good(stamp: Stamp, tmp_path: Path) -> None:
    shutil.copytree(stamp["folder"], tmp_path / "backup")
    shutil.rmtree(stamp["folder"])
    with pytest.raises(DataError, match=r"is gone[\s\S]*register"):
        opened(stamp)
    shutil.copytree(tmp_path / "backup", stamp["folder"])
    engine, people = opened(stamp)
    assert (len(rows_of(engine)), len(people)) == (2 * PEOPLE, PEOPLE)
    engine.close()
    verify_snapshot(stamp)


# --- how it comes about ---------------------------------------------------------------------------------------------


KILLED = """
import os, signal, sys
import pyarrow as pa
from epsilons.storage import base
from support.changing import PLACES
from support.snapshots import SALT, codes_of, moves_of, opened, register, rows_each, rows_of
for place in sys.argv[2:]:
    if (child := os.fork()) == 0:
        base.watchers.append(lambda at: os.kill(os.getpid(), signal.SIGKILL) if at == place else None)
        register(pa.table({"id": [1, 2]}), f"{sys.argv[1]}/{place}")
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), sorted(os.listdir(sys.argv[1])))
"""


def run(code: str, *arguments: str, **environment: str) -> list[str]:
    """What a process of its own prints."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment}
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.splitlines()


def test_a_killed_registration_leaves_what_the_next_one_sweeps(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir(0o700)
    printed = run(KILLED, str(place), "snapshot written", "snapshot complete", "snapshot kept", TMPDIR=str(tmp_path))
    assert [line.split()[0] for line in printed] == ["-9"] * 3
    assert [line.count("epsilons-held-") for line in printed] == [1, 1, 0]  # each sweeps what the one before it left
    assert "'snapshot kept'" in printed[2]
    kept = register(table(), place / "kept")
    assert sorted(path.name for path in place.iterdir()) == ["kept", "snapshot kept"]
    sweep_snapshots(str(place), lambda: {os.path.basename(kept["folder"])})
    assert [path.name for path in place.iterdir()] == ["kept"]
    verify_snapshot(kept)


def test_a_living_registration_is_not_swept_nor_what_is_no_snapshot(tmp_path: Path) -> None:
    register(table(), tmp_path / "mine")
    (tmp_path / "foreign").mkdir()
    sweep_snapshots(str(tmp_path), tuple)
    sweep_snapshots(str(tmp_path / "nowhere"), tuple)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["foreign", "mine"]


def test_nothing_is_left_of_a_registration_that_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: str, content: bytes) -> None:
        raise OSError("a private value")

    with monkeypatch.context() as patch:
        patch.setattr(snapshot, "_write", full)
        with pytest.raises(DataError, match="could not be written") as refused:
            register(table(), tmp_path / "place" / "new")
    assert refused.value.__context__ is None
    assert list((tmp_path / "place").iterdir()) == []
    made = register(table(), tmp_path / "place" / "new")
    with pytest.raises(DataError, match="something at the snapshot's place"):
        register(table(), tmp_path / "place" / "new")
    verify_snapshot(made)
    remove_snapshot(made, os.path.dirname(made["folder"]))
    assert list((tmp_path / "place").iterdir()) == []


def test_nobody_above_the_cap_is_checked_on_what_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted bug: the engine writes every row twice."""
    write = DuckDB.write

    def twice(self: DuckDB, tree: exp.Query, folder: str) -> None:
        write(self, exp.union(tree, tree.copy(), distinct=False), folder)

    monkeypatch.setattr(DuckDB, "write", twice)
    with pytest.raises(DataError, match=r"were not capped, .*; nothing was kept"):
        register(table(), tmp_path / "place" / "new", rows=2)
    assert list((tmp_path / "place").iterdir()) == []
    register(table(), tmp_path / "place" / "new", rows=6)


# --- its rows' cohorts ----------------------------------------------------------------------------------------------


def test_a_snapshot_of_an_older_release_is_registered_again(stamp: Stamp) -> None:
    older = {name: value for name, value in stamp.items() if name != "cohorts"}
    with pytest.raises(DataError, match=r"of an older release.*register"):
        opened(older)  # type: ignore[arg-type]


def test_every_row_has_its_cohort_as_it_was_and_as_it_is(stamp: Stamp) -> None:
    written = open_snapshot(stamp, 2, 0)
    asked = follow(written, moves_of(written.digests[:0], 0))
    assert (asked.cohorts, asked.prepared.rows, asked.prepared.name) == ((5, 6, 7), 2 * PEOPLE, SOURCE)
    assert codes_of(asked) == {place: place % 3 for place in range(PEOPLE)}
    assert asked.places.tolist() == [place % 3 for place in range(PEOPLE)]
    assert "tags" not in asked.prepared.schema
    assert not {PERSON, COHORT} & set(asked.prepared.schema)
    # Ten people went elsewhere, as did others who have no rows here; then all of them, and then nobody.
    strangers = digests(list(range(25)), SALT)
    ten = moves_of(np.concatenate([written.digests[:10], strangers]), [9, 6] * 5 + [11] * 25, epoch=2)
    renewed = follow(written, ten, asked)
    assert renewed.cohorts == (5, 6, 7, 9)
    expected = {place: place % 3 for place in range(PEOPLE)} | {place: (3, 1)[place % 2] for place in range(10)}
    assert codes_of(renewed) == expected
    assert renewed.places.tolist() == [expected[place] for place in range(PEOPLE)]
    assert set(renewed.prepared.schema) == set(asked.prepared.schema)
    all_ = follow(written, moves_of(written.digests, 9, epoch=3), renewed)
    assert {all_.cohorts[code] for code in codes_of(all_).values()} == {9}
    assert follow(written, moves_of(written.digests[:0], 0, epoch=4), all_).prepared.name == SOURCE
    written.engine.close()


def test_watchers_are_told_each_step_once(tmp_path: Path) -> None:
    seen: list[str] = []
    base.watchers.append(seen.append)
    try:
        register(table(), tmp_path / "new")
    finally:
        base.watchers.remove(seen.append)
    assert seen == [*PLACES, "snapshot kept"]
