"""The page of figures says what a run held: all of a figure or nothing, and a failure whenever there was one."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from support.figures import END, FIGURES, NOT_RUN, START, FigurePage, renew

ROOT = Path(__file__).parents[2]
EMPTY = f"before\n{START}\n{END}\nafter\n"
DRAWS, PLANTED = "figure_3_draws", "figure_3_planted"


def run(
    tests: dict[str, tuple[str, str, int]], chosen: list[str] | None = None, page: Path | None = None
) -> FigurePage:
    """A run of {address: (figure, outcome, size)}, or of those of them that were chosen."""
    figures, items = FigurePage(page), {}
    for address, (figure, _, _) in tests.items():
        mark = SimpleNamespace(args=(figure,))
        items[address] = SimpleNamespace(
            nodeid=address,
            get_closest_marker=lambda name, mark=mark: mark if name == "figure" else None,
            extra_keyword_matches=set(),
            user_properties=[],
        )
    figures.pytest_collection_modifyitems(list(items.values()))  # type: ignore[arg-type]
    for address in tests if chosen is None else chosen:
        figure, outcome, size = tests[address]
        assert items[address].extra_keyword_matches == {figure}
        properties = [*items[address].user_properties, ("size", size)]
        for when in ("setup", "call", "teardown"):
            ends = when == "call" and outcome != "skipped"
            figures.pytest_runtest_logreport(
                SimpleNamespace(
                    user_properties=properties,
                    when=when,
                    failed=ends and outcome == "failed",
                    skipped=when == "setup" and outcome == "skipped",
                )
            )
            if outcome == "skipped":
                break
    return figures


def finish(figures: FigurePage, *arguments: str, **more: Any) -> None:
    figures.pytest_sessionfinish(SimpleNamespace(config=SimpleNamespace(args=list(arguments), **more)))  # type: ignore[arg-type]


TESTS = {"a": (DRAWS, "passed", 2), "b": (DRAWS, "passed", 1_000), "c": (PLANTED, "passed", 1)}


def test_sizes_add_up_once_all_tests_of_a_figure_were_run() -> None:
    pairs = f"1,002 {FIGURES[DRAWS].unit}"
    assert run(TESTS).results() == {DRAWS: (pairs, "all hold"), PLANTED: ("1 planted bugs", "all caught")}
    assert run(TESTS, ["a", "c"]).results() == {PLANTED: ("1 planted bugs", "all caught")}
    assert run(TESTS | {"b": (DRAWS, "skipped", 0)}, ["a", "b"]).results() == {}


def test_a_failure_is_said_also_when_the_run_stopped_there() -> None:
    broken = TESTS | {"b": (DRAWS, "failed", 0)}
    for chosen in (["a", "b"], ["b"]):
        assert run(broken, chosen).results()[DRAWS][1] == "**does not hold**: 1 of 2 tests failed"


def test_rows_that_were_not_run_stay_as_they_were() -> None:
    once = renew(EMPTY, {DRAWS: ("8 pairs", "all hold")})
    assert once.startswith("before\n")
    assert once.endswith("\nafter\n")
    assert renew(once, {}) == once
    assert once.count(NOT_RUN[1]) == len(FIGURES) - 1
    twice = renew(once, {PLANTED: ("30 planted bugs", "all caught")})
    assert "| 8 pairs | all hold |" in twice
    assert "| 30 planted bugs | all caught |" in twice
    assert "| 9 pairs | **does not hold** |" in renew(twice, {DRAWS: ("9 pairs", "**does not hold**")})


def test_a_page_is_written_by_a_run_that_was_given_one_and_not_by_a_single_test(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(EMPTY)
    finish(run(TESTS))
    finish(run(TESTS, page=page), "tests/unit/test_figures.py::test_one")
    finish(run(TESTS, page=page), "tests", workerinput={})
    assert page.read_text() == EMPTY
    finish(run(TESTS, page=page), "tests")
    assert "| 1 planted bugs | all caught |" in page.read_text()


def test_every_figure_has_a_soak_test_a_row_and_a_command() -> None:
    files = [path.read_text() for path in (ROOT / "tests").rglob("test_*.py")]
    marked = {name for text in files for name in re.findall(r'mark\.figure\("(\w+)"\)', text)}
    assert marked == set(FIGURES)
    page = (ROOT / "docs" / "reliability.md").read_text()
    assert renew(page, {}) == page, "the rows' texts are out of date; run one of the commands"
    assert [line for line in page.splitlines() if "ARGS=" in line and re.search(r"figure_\w+", line)] != []
    assert "--figures=docs/reliability.md" in (ROOT / "Makefile").read_text()


def test_a_test_of_an_unknown_figure_is_refused() -> None:
    with pytest.raises(AssertionError, match="no such figure"):
        run({"a": ("figure_0", "passed", 1)})
