"""The benchmark of the peers as a command: what it prints for epsilons alone, and how results become a page.

No environment is made and no network used. The short form asks epsilons in this process, the long one (soak) as the
benchmark does, in processes of their own.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import re
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PEERS = ROOT / "benchmarks" / "peers"
PAGE = ROOT / "docs" / "peers.md"
TASKS = ["count", "sum", "mean", "mean by region", "median"]
MODULES = (
    "answering", "ask_epsilons", "conversation", "environments", "figures", "made_up_people", "results_page", "run",
)  # fmt: skip


@pytest.fixture(scope="module")
def bench() -> Any:
    """The benchmark's modules, which import each other by their bare names."""
    sys.path.insert(0, str(PEERS))
    try:
        yield SimpleNamespace(**{name: importlib.import_module(name) for name in MODULES})
    finally:
        sys.path.remove(str(PEERS))
        for name in MODULES:
            sys.modules.pop(name, None)


def run(cache: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", str(PEERS / "run.py"), "--cache", str(cache), *arguments],
        cwd=ROOT,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )


# The command --------------------------------------------------------------------------------------------------------


ALONE = ("--quick", "--only", "epsilons", "--json")


def converse_here(bench: Any) -> Any:
    """A conversation with a library that answers in this process."""

    def converse(library: Any, job: Any, limits: Any, say: Any) -> Any:
        assert library.script.name == "ask_epsilons.py"
        told = bench.conversation.Told(ready=1.0, memory=1)
        for task, ask in bench.ask_epsilons.load(job).items():
            told.seconds[task], told.answers[task] = bench.answering._repeat(ask, job)
            say(f"{task}: answered")
        return told

    return converse


@pytest.mark.soak
def test_epsilons_alone_as_a_command(tmp_path: Path) -> None:
    done = run(tmp_path, *ALONE)
    assert done.returncode == 0, done.stderr
    # On a busy machine there may be no time for a second answer.
    everything_is_answered(json.loads(done.stdout), done.stderr, tmp_path, answers=1)


def test_epsilons_alone_answers_everything_and_makes_no_environment(
    bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench.run, "converse", converse_here(bench))
    monkeypatch.setattr(bench.run, "LEAST_FOR_ERRORS", 2)
    monkeypatch.setattr(bench.answering, "PATIENCE", math.inf)
    monkeypatch.setattr(bench.run.signal, "signal", lambda *_: None)
    assert bench.run.main(["--cache", str(tmp_path), *ALONE]) == 0
    told = capsys.readouterr()
    everything_is_answered(json.loads(told.out), told.err, tmp_path, answers=2)


def everything_is_answered(document: Any, notes: str, cache: Path, answers: int) -> None:
    assert [(figure["rows"], figure["task"]) for figure in document["figures"]] == [(2_000, task) for task in TASKS]
    assert [(figure["rows"], figure["task"]) for figure in document["personal"]] == [
        (rows, task) for rows in (1_000, 2_000) for task in TASKS
    ]
    for figure in (*document["figures"], *document["personal"]):
        assert figure["library"] == "epsilons"
        assert figure["reason"] is None
        assert figure["seconds"] > 0
        assert figure["answers"] >= answers
    errors = {figure["task"]: figure["error"] for figure in document["figures"]}
    # Laplace noise at epsilon 1 passes 40 times its scale with chance e^-40: these are the right answers, roughly.
    assert errors["count"] < 40
    assert errors["sum"] < 40 * 100
    assert errors["mean"] < 40 * 100 / 2_000 * 2
    (ready,) = document["ready"]
    assert ready["seconds"] > 0
    assert not (cache / "environments").exists()
    assert "[epsilons, 2,000 rows] median: " in notes


def test_part_of_a_run_is_never_written(bench: Any, capsys: pytest.CaptureFixture[str]) -> None:
    before = PAGE.read_text(encoding="utf-8")
    for arguments in (["--quick"], ["--only", "epsilons"]):
        with pytest.raises(SystemExit) as ended:
            bench.run.main(["--write", *arguments])
        assert ended.value.code == 2
        assert "--write needs a whole run" in capsys.readouterr().err
    assert PAGE.read_text(encoding="utf-8") == before


# Pins ---------------------------------------------------------------------------------------------------------------


def test_every_peer_lists_exact_versions_and_itself_first(bench: Any) -> None:
    own = {
        "ask_opendp": "opendp",
        "ask_diffprivlib": "diffprivlib",
        "ask_pipelinedp": "pipeline-dp",
        "ask_smartnoise": "smartnoise-sql",
        "ask_tumult": "tmlt.analytics",
    }
    scripts = {script.stem: script for script in PEERS.glob("ask_*.py") if script.stem != "ask_epsilons"}
    assert set(scripts) == set(own)
    for name, script in scripts.items():
        pins = bench.environments.pins_of(script)
        assert all(re.fullmatch(r"[a-z0-9.-]+==[0-9.]+", pin) for pin in pins)
        assert pins[0].startswith(f"{own[name]}==")
        assert len({pin.partition("==")[0] for pin in pins}) == len(pins)


# A library that misbehaves ------------------------------------------------------------------------------------------

MISBEHAVING = """
    import os, sys, time
    sys.path.insert(0, {peers!r})
    from answering import answer

    def broken():
        raise ValueError("no such\\nthing")

    def hang():
        if os.fork() == 0:
            os.setpgid(0, 0)
            open({child!r}, "w").write(str(os.getpid()))
        time.sleep(600)

    def load(job):
        print("noise on stdout")
        return dict(zip({tasks!r}, [lambda: 7.0, broken, hang, lambda: os._exit(3), "its reason"]))

    answer(load)
"""


def library(bench: Any, folder: Path, code: str, **names: Any) -> Any:
    script = folder / "library.py"
    script.write_text(textwrap.dedent(code).format(peers=str(PEERS), tasks=TASKS, **names), encoding="utf-8")
    return bench.conversation.Library(Path(sys.executable), script, os.environ, folder / "left", folder / "log")


def test_errors_hangs_and_deaths_are_reasons_and_nothing_is_left_running(bench: Any, tmp_path: Path) -> None:
    child = tmp_path / "child"
    job = bench.answering.Job("none", 1, 1.0, tuple(TASKS), 0.0, 2)
    limits = bench.conversation.Limits(ready=60, task=3, library=120)
    said: list[str] = []
    told = bench.conversation.converse(
        library(bench, tmp_path, MISBEHAVING, child=str(child)), job, limits, said.append
    )
    assert told.answers == {"count": [7.0]}
    assert told.reasons == {
        "sum": "ValueError: no such thing",
        "mean": "took more than 3 s",
        "mean by region": "its process ended with status 3",
        "median": "its reason",
    }
    assert "noise on stdout" in (tmp_path / "log").read_text(encoding="utf-8")
    assert any(line.startswith("count: ") for line in said)
    assert gone(int(child.read_text()))


def gone(process: int) -> bool:
    """Whether a process has ended, perhaps after a moment."""
    status = Path(f"/proc/{process}/status")
    for _ in range(100):
        try:
            if "State:\tZ" in status.read_text():
                return True
        except OSError:
            return True
        time.sleep(0.05)
    return False


def test_a_library_that_cannot_start_gives_its_reason_for_every_task(bench: Any, tmp_path: Path) -> None:
    code = """
        import sys
        sys.path.insert(0, {peers!r})
        from answering import CannotError, answer

        def load(job):
            raise CannotError("something is missing")

        answer(load)
    """
    job = bench.answering.Job("none", 1, 1.0, tuple(TASKS), 0.0, 2)
    told = bench.conversation.converse(library(bench, tmp_path, code), job, bench.conversation.Limits(), print)
    assert told.reasons == dict.fromkeys(TASKS, "something is missing")


# What follows from the figures --------------------------------------------------------------------------------------


def test_the_error_is_over_all_answers_and_groups(bench: Any) -> None:
    assert bench.figures.rmse([1.0, 5.0], 2.0) == pytest.approx(5**0.5)
    assert bench.figures.rmse([{"a": 1.0, "b": 4.0}], {"a": 1.0, "b": 2.0}) == pytest.approx(2**0.5)


def test_only_fast_tasks_go_on_to_the_next_size(bench: Any) -> None:
    figure = bench.figures.Figure
    figures = [
        figure("OpenDP", 100, "count", 5.9, 3, 1.0),
        figure("OpenDP", 100, "sum", 6.0, 3, 1.0),
        figure("OpenDP", 100, "mean", reason="failed"),
        figure("other", 100, "median", 0.1, 3, 1.0),
    ]
    assert bench.figures.tasks_for_next_size(figures, "OpenDP", 100, 10, 60) == ["count"]


# The page -----------------------------------------------------------------------------------------------------------


def measured(bench: Any) -> Any:
    figure, ready = bench.figures.Figure, bench.figures.Ready
    figures = [
        figure("epsilons", 1_000, "count", 0.01, 100, 1.5),
        figure("epsilons", 1_000, "sum", 0.02, 100, 141.0),
        figure("epsilons", 1_000, "mean", 0.02, 100, 0.1),
        figure("slow", 1_000, "count", 0.2, 9, 1.4),
        figure("slow", 1_000, "sum", 0.1, 9, 140.0),
        figure("slow", 1_000, "mean", 0.01, 9, 0.1),
        figure("slow", 1_000, "median", reason="it has | none"),
    ]
    personal = [figure("epsilons", 1_000, "count", 0.02, 9, 10.0), figure("slow", 1_000, "count", 0.2, 9, 28.0)]
    return bench.figures.Measured(figures, [ready("slow", "1.2", 1_000, 2.5, 3_000_000)], personal)


FACTS = {
    "date": "2026-11-15",
    "epsilons": "0.1.0",
    "python": "3.11.7",
    "cores": 2,
    "epsilon": 1.0,
    "seconds": 10.0,
    "load": [0.5, 2.0],
}


def test_the_page_shows_ratios_and_says_where_the_aim_is_missed(bench: Any) -> None:
    text = "\n".join(bench.results_page.markdown(measured(bench), FACTS))
    assert "at least 10 times as fast in 1 of 3 comparisons. In 2 it was not, and in 1 of them it was slower:" in text
    assert "- slow, mean, 1,000 rows: 0.5×\n- slow, sum, 1,000 rows: 5×" in text
    assert "| slow | 200 ms (20×) | 100 ms **(5×)** | 10 ms **(0.5×)** | not asked | none |" in text
    assert "| slow | 1.4 (9) | 140 (9) | 0.1 (9) | not asked | none |" in text
    assert "| slow | 1.2 | 2.5 s | 3 MB |" in text
    assert "- slow, median: `it has / none`" in text
    assert "| 1,000 | count | 10 (9) | 28 (9) | 2.8× | 20 ms |" in text
    assert "busy" not in text
    busy = {**FACTS, "load": [9.0, 2.0]}
    assert "The machine was busy" in "\n".join(bench.results_page.markdown(measured(bench), busy))


def test_a_whole_success_is_said_plainly(bench: Any) -> None:
    kept = [figure for figure in measured(bench).figures if figure.task == "count"]
    text = "\n".join(bench.results_page.markdown(bench.figures.Measured(kept, [], []), FACTS))
    assert "at least 10 times as fast as every peer in all 1 comparisons" in text


def test_results_go_between_the_markers_and_leave_the_rest(bench: Any, tmp_path: Path) -> None:
    page = tmp_path / "peers.md"
    page.write_text(PAGE.read_text(encoding="utf-8"), encoding="utf-8")
    bench.results_page.write_page(page, ["first"])
    bench.results_page.write_page(page, ["second"])
    text = page.read_text(encoding="utf-8")
    start, end = bench.results_page.START, bench.results_page.END
    assert f"{start}\n\nsecond\n\n{end}" in text
    assert "first" not in text.partition(start)[2].partition(end)[0]
    before = PAGE.read_text(encoding="utf-8")
    assert text.partition(start)[0] == before.partition(start)[0]
    assert text.partition(end)[2] == before.partition(end)[2]
    (tmp_path / "bare.md").write_text("nothing", encoding="utf-8")
    with pytest.raises(ValueError, match="no place for results"):
        bench.results_page.write_page(tmp_path / "bare.md", ["lost"])


def test_the_page_shows_results_with_their_circumstances(bench: Any) -> None:
    shown = PAGE.read_text(encoding="utf-8").partition(bench.results_page.START)[2].partition(bench.results_page.END)[0]
    assert re.search(
        r"Of \d{4}-\d\d-\d\d: epsilons [\d.]+, Python [\d.]+, \d+ cores, epsilon 1 for each answer, ", shown
    )
    assert "| library | count | sum | mean | mean by region | median |" in shown
    assert re.search(r"at least 10 times as fast (in \d+ of \d+|as every peer in all \d+) comparisons", shown)
    # A reason comes from elsewhere; where this machine keeps its files does not belong on the page.
    assert not re.search(r"/(tmp|home|root|work|usr)/", shown)
