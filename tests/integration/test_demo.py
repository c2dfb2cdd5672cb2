"""The demo as its users run it: a command, its document and its report."""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import re
import shlex
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from epsilons.demo import __main__ as command
from epsilons.demo.people import GROUPS, Population, make_preferences
from epsilons.demo.questions import DemoResult, LedgerSummary
from epsilons.demo.report import write_report
from epsilons.mechanisms.base import list_mechanisms

Ran = tuple[Population, tuple[DemoResult, ...], LedgerSummary]


class Page(HTMLParser):
    """What the tests look at: elements, attributes, ids and plain text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        self.text += data

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def example() -> str:
    """The example of the help text, as the command prints it."""
    asked = [sys.executable, "-W", "error", "-m", "epsilons.demo", "--help"]
    told = subprocess.run(asked, capture_output=True, text=True, timeout=120, check=True).stdout
    found = told.split("example:")[1].strip()
    assert found.startswith("python -m epsilons.demo ")
    return found


@pytest.fixture(scope="module")
def once(example: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Ran, dict[str, Any], str, str]:
    """(what it found, document, report, stderr) of one run of the example, in this process."""
    folder, state = tmp_path_factory.mktemp("demo"), tmp_path_factory.mktemp("state")
    words, file = shlex.split(example)[3:-2], shlex.split(example)[-1]
    kept: list[Ran] = []
    ask, notes = command._ask, io.StringIO()

    def keep(console: Console, out: Path) -> Ran:
        kept.append(ask(console, out))
        return kept[0]

    with contextlib.chdir(folder), open(file, "w", encoding="utf-8") as out, pytest.MonkeyPatch.context() as patch:
        patch.setattr(command, "_ask", keep)
        patch.setenv("XDG_STATE_HOME", str(state))
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(notes):
            assert command.main(words) == 0
    assert list(state.iterdir()) == [], "its wages would be known, and refused to the next demo and to the user"
    return kept[0], *_files(folder), notes.getvalue()


def _files(folder: Path) -> tuple[dict[str, Any], str]:
    assert sorted(path.name for path in folder.iterdir()) == ["wages.html", "wages.json"]
    document, report = ((folder / name).read_text(encoding="utf-8") for name in ("wages.json", "wages.html"))
    return json.loads(document), report


@pytest.fixture(scope="module")
def made(once: tuple[Ran, dict[str, Any], str, str]) -> tuple[dict[str, Any], str, str]:
    """(document, report, stderr)."""
    return once[1:]


@pytest.fixture(scope="module")
def ran(once: tuple[Ran, dict[str, Any], str, str]) -> Ran:
    """What the demo finds out before it prints: the same however it is printed."""
    return once[0]


def printed(ran: Ran, monkeypatch: pytest.MonkeyPatch, encoding: str) -> str:
    """The tables of a run on a stream that knows one encoding and forgives nothing."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="strict")
    monkeypatch.setattr(command, "_ask", lambda notes, out: ran)
    monkeypatch.setattr(sys, "stdout", stream)
    assert command.main([]) == 0
    stream.flush()
    return bytes(stream.buffer.getvalue()).decode(encoding)  # type: ignore[attr-defined]


def test_the_example_of_the_help_works(made: tuple[dict[str, Any], str, str]) -> None:
    assert made[0]["report"] == "wages.html"


@pytest.mark.soak
def test_the_example_of_the_help_works_as_pasted(example: str, tmp_path: Path) -> None:
    pasted = example.replace("python", shlex.quote(sys.executable), 1)
    surroundings = {**os.environ, "PYTHONWARNINGS": "error"}
    done = subprocess.run(
        pasted, shell=True, cwd=tmp_path, env=surroundings, stderr=subprocess.PIPE, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert _files(tmp_path)[0]["report"] == "wages.html"


def test_stderr_is_quiet_when_it_is_not_a_terminal(made: tuple[dict[str, Any], str, str]) -> None:
    assert made[2] == ""


def test_the_document_says_who_was_asked(made: tuple[dict[str, Any], str, str]) -> None:
    document = made[0]
    assert document["data"]["people"] == 28_155
    assert document["preferences"]["simulated"] is True
    sizes = {group["name"]: group["people"] for group in document["preferences"]["groups"]}
    assert sizes == {"conservative": 15_204, "moderate": 10_417, "liberal": 2_534}


def test_every_mechanism_answers_something_with_error_and_price(made: tuple[dict[str, Any], str, str]) -> None:
    questions = {question["statistic"]: question for question in made[0]["questions"]}
    assert list(questions) == ["count", "mean", "median", "max", "histogram"]
    seen = set()
    for question in questions.values():
        errors = [answer["predicted_error"] for answer in question["answers"]]
        assert question["best"] == question["answers"][0]["mechanism"]
        if question["statistic"] == "max":
            assert set(errors) == {None}
        else:
            # Answers that cannot have an interval come last.
            ranks = [(one["interval"] is None, one["predicted_error"] or math.inf) for one in question["answers"]]
            assert ranks == sorted(ranks)
        for answer in question["answers"]:
            seen.add(answer["mechanism"])
            assert answer["private"] is True
            assert 0 < answer["people_used"] <= 1
            assert 0 <= answer["charged"]["lowest"] <= answer["charged"]["highest"] <= 0.1
            assert answer["true_error_for_comparison_only"] >= 0
    assert seen == set(list_mechanisms())


def test_true_errors_are_what_was_predicted(made: tuple[dict[str, Any], str, str]) -> None:
    """Within 20 times the predicted root mean square: a Laplace error passes that once in 10^12."""
    for question in made[0]["questions"]:
        for answer in question["answers"]:
            if answer["predicted_error"] is not None:
                assert answer["true_error_for_comparison_only"] <= 20 * answer["predicted_error"]


def test_the_truth_is_the_truth(made: tuple[dict[str, Any], str, str]) -> None:
    truths = {question["statistic"]: question["truth_for_comparison_only"] for question in made[0]["questions"]}
    assert truths["count"] == 2_524
    assert math.isclose(truths["mean"], 595.1125771621381)
    assert truths["median"] == 522
    assert truths["max"] == 18
    assert sum(row[2] for row in truths["histogram"]) == 28_155


def test_the_ledger_says_what_is_left(made: tuple[dict[str, Any], str, str]) -> None:
    """Five questions at a tenth each: nobody paid more than half, and what was charged is what is missing."""
    document = made[0]
    books = document["ledger"]
    assert books["share"] == 0.1
    assert books["releases"] == 5
    assert books["same_question_again_is_free"] is True
    assert len(books["levels"]) == 100
    best = [question["answers"][0]["charged"] for question in document["questions"]]
    for row in books["levels"]:
        assert row["granted"] * 0.5 <= row["left"] + 1e-7
        assert row["left"] < row["granted"]
    strictest, most_open = books["levels"][0], books["levels"][-1]
    assert math.isclose(strictest["granted"] - strictest["left"], sum(charged["lowest"] for charged in best))
    assert math.isclose(most_open["granted"] - most_open["left"], sum(charged["highest"] for charged in best))
    for group in books["groups"]:
        least, most = group["questions_like_the_last_one_left"]
        assert 5 <= least <= most
        assert 0.5 <= group["average_left"] / group["average_granted"] + 1e-7 <= 1


def test_the_report_needs_nothing_from_elsewhere(made: tuple[dict[str, Any], str, str]) -> None:
    text = made[1]
    page = Page(text)
    assert re.findall(r"https?:", text) == []
    assert re.findall(r"@import|url\((?!#)", text) == []
    assert not {tag for tag, _ in page.elements} & {"script", "link", "img", "iframe", "object", "embed", "image"}
    for _, attributes in page.elements:
        for name in ("src", "href", "xlink:href"):
            assert attributes.get(name, "#").startswith("#")


def test_the_report_has_its_charts_each_in_words_too(made: tuple[dict[str, Any], str, str]) -> None:
    page = Page(made[1])
    charts = page.all("svg")
    assert len(charts) == 7
    for chart in charts:
        assert chart["role"] == "img"
        assert len(chart["aria-label"]) > 60
    # Of the charts those of a mean, a histogram and its errors rest on a condition, in dollars or as a share.
    assert sum(" if no level's expected " in chart["aria-label"] for chart in charts) == 3
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    used = re.findall(r'(?:href="#|url\(#)([^")]+)', made[1])
    assert set(used) <= set(ids)


def test_the_report_has_promise_caveats_prices_and_words(made: tuple[dict[str, Any], str, str]) -> None:
    document, text, _ = made
    page = Page(text)
    assert page.all("html") == [{"lang": "en"}]
    plain = re.sub(r"\s+", " ", page.text)
    assert document["guarantee"]["neighbors"] == "absent"
    for sentence in (document["guarantee"]["in_words"], *document["guarantee"]["caveats"]):
        assert sentence in plain
    assert "The roster (who was asked, with which preference) is public and is not protected." in plain
    assert "The preferences are simulated" in plain
    assert "A demo may look; an analyst could not." in plain
    for heading in ("Who paid what", "What is left", "What is promised, and what is not", "Glossary"):
        assert heading in plain
    for question in document["questions"]:
        assert question["question"] in plain
    predicted = [one for one in document["questions"] if one["answers"][0]["predicted_error"] is not None]
    assert plain.count("Errors and intervals hold if no level's expected ") == len(predicted) > 2


def test_tables_fit_and_have_no_colours_in_a_pipe(
    ran: Ran, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = printed(ran, monkeypatch, "utf-8")
    assert "\x1b" not in text
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "weighted *" in text
    assert "true error" in text
    assert "…" not in text
    assert re.search(r"conservative +0\.105 +0\.03\d +0\.07\d .* 5", text)
    assert "epsilons-demo.html" in text
    assert capfd.readouterr().err == ""


def test_a_terminal_without_greek_is_no_error(ran: Ran, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "weighted *" in printed(ran, monkeypatch, "ascii")


def test_a_report_that_cannot_be_written_is_said_plainly(
    ran: Ran, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def run(notes: Console, out: Path) -> Ran:
        write_report(out, *ran)
        return ran

    monkeypatch.setattr(command, "_ask", run)
    assert command.main(["--out", "no/such/folder/report.html"]) == 1
    said = capfd.readouterr()
    assert said.out == ""
    assert said.err.startswith("The report cannot be written to no/such/folder/report.html")
    assert "Traceback" not in said.err


def test_preferences_follow_the_recipe_and_never_change() -> None:
    epsilons, groups = make_preferences(10_000)
    again, _ = make_preferences(10_000)
    assert np.array_equal(epsilons, again)
    for place, group in enumerate(GROUPS):
        chosen = epsilons[groups == place]
        assert len(chosen) == round(group.share * 10_000)
        assert chosen.min() >= group.low
        assert chosen.max() <= group.high
        assert np.allclose(chosen * 100, np.round(chosen * 100))
