"""Groups by ranges and by the calendar: as found one person at a time, and refused where they are none."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import epsilons as eps
from epsilons.arguments.spans import MOST_SPANS, read_spans
from epsilons.cli.app import main
from epsilons.dataset.documents import Asked, write_arguments
from support.spans import CASES, TABLE


@pytest.fixture(scope="module")
def people() -> Any:
    with eps.Dataset(TABLE, person="id", preferences=eps.PUBLIC, ledger="memory", bounds={"age": (-5, 90)}) as made:
        yield made


@pytest.mark.parametrize("case", range(len(CASES)))
def test_groups_are_those_found_one_by_one(people: Any, case: int) -> None:
    column, keys, wanted = CASES[case]
    assert people.count(by={column: keys}).value == wanted
    assert sum(wanted.values()) > 0
    document = {"statistic": "count", "arguments": write_arguments({"by": {column: keys}})}
    sent = json.loads(json.dumps(document))
    assert (
        Asked(people, sent, "ann", "1").ask()["release"]["value"] == people.count(by={column: keys}).to_dict()["value"]
    )


def test_with_other_keys_other_statistics_and_a_condition(people: Any) -> None:
    both = people.count(by={"age": eps.ranges(0, 18, 65), "day": eps.weekdays()}, where="day >= '2024-01-01'").value
    rows = [row for row in TABLE.to_pylist() if row["day"] is not None and row["age"] is not None]
    rows = [row for row in rows if row["day"].year >= 2024 and 18 <= row["age"] < 65]
    assert both["18 to 65", "Sunday"] == sum(row["day"].weekday() == 6 for row in rows)
    medians = people.median("age", by={"age": eps.ranges(0, 18, 65)}).value
    assert 0 <= medians["0 to 18"] < 18 <= medians["18 to 65"] < 65
    grouped = people.histogram("age", edges=[0, 18, 65], by={"day": eps.years("2024-01-01", "2024-12-31")}).value
    assert sum(grouped.values()) > 100


def test_periods_go_by_their_names_as_well_as_by_days() -> None:
    for named, by_days in (
        (eps.months("2025-11", "2026-02"), eps.months("2025-11-30", "2026-02-01")),
        (eps.weeks("2026-W01", "2026-W03"), eps.weeks("2025-12-31", "2026-01-12")),
        (eps.quarters("2025-Q4", "2026-Q1"), eps.quarters("2025-12-31", "2026-03-31")),
        (eps.years("2025", "2026"), eps.years("2025-06-01", "2026-06-01")),
        (eps.years(2025, 2026), eps.years("2025-06-01", "2026-06-01")),
        (eps.days("2025-12-31", "2026-01-01"), eps.days(date(2025, 12, 31), date(2026, 1, 1))),
    ):
        assert read_spans("day", named) == read_spans("day", by_days)


def test_days_of_a_column_of_times_are_not_the_midnights_that_are_called_alike(people: Any) -> None:
    """Neither has the stored answer of the other."""
    days = ["2024-01-01", "2024-01-02"]
    midnights, whole = people.count(by={"at": days}), people.count(by={"at": eps.days(*days)})
    assert midnights.number != whole.number
    at = [row["at"] for row in TABLE.to_pylist() if row["at"] is not None]
    assert whole.value == {day: sum(str(one.date()) == day for one in at) for day in days}
    assert midnights.value == {day: sum(str(one) == f"{day} 00:00:00" for one in at) for day in days}
    assert whole.value != midnights.value
    assert people.count(by={"at": eps.days(*days)}).number == whole.number


def test_words_of_keys_are_read_as_the_column_has_them() -> None:
    table = {"id": list(range(6)), "ok": [True, True, True, True, False, None], "age": [1, 17, 18, 19, 40, 65]}
    with eps.Dataset(pa.table(table), person="id", preferences=eps.PUBLIC, ledger="memory") as asked:
        for word, truth in (("y", True), ("Yes", True), ("T", True), ("1", True), ("n", False), ("f", False)):
            assert asked.key("ok", word) is truth
            assert asked.count(by={"ok": [asked.key("ok", word)]}).value == {truth: 4 if truth else 1}
        with pytest.raises(eps.PlanError, match="'ja' is no truth"):
            asked.key("ok", "ja")
        assert [asked.key("age", word) for word in ("18", "17.5")] == [18, 17.5]
        assert asked.count(by={"age": eps.ranges(0, asked.key("age", "17.5"), 65)}).value == {
            "0 to 17.5": 2, "17.5 to 65": 3,
        }  # fmt: skip
        with pytest.raises(eps.PlanError, match="'many' is not a number"):
            asked.key("age", "many")


@pytest.mark.parametrize(
    ("by", "words"),
    [
        ({"age": eps.ranges(18)}, "not in order"),
        ({"age": eps.ranges(18, 0)}, "not in order"),
        ({"age": eps.ranges(0, "b")}, "not in order"),
        ({"age": eps.ranges("a", "b")}, "An edge is not a value"),
        ({"age": eps.ranges(0, float("inf"))}, "An edge is not a value"),
        ({"age": {"halves": [1, 2]}}, "unknown kind"),
        ({"age": {}}, "unknown kind"),
        ({"age": {"ranges": 3}}, "unknown kind"),
        ({"age": eps.weekdays()}, "holds number"),
        ({"day": eps.hours()}, "holds date"),
        ({"age": eps.months("2026-01-01", "2026-02-01")}, "An edge is not a value"),
        ({"day": eps.months("soon", "2026-02-01")}, "not in order"),
        ({"day": eps.months("2026-01", "2026-13")}, "not in order"),
        ({"day": eps.years("2026-01", "2026-02")}, "not in order"),
        ({"day": ["week"]}, r"The column holds date\. Its periods are words such as months"),
        ({"day": eps.months("2026-03-01", "2026-02-01")}, "not in order"),
        ({"day": eps.days("1900-01-01", "2026-01-01")}, f"are too many.*{MOST_SPANS:,}"),
        ({"day": eps.years(2026, True)}, "not in order"),
        ({"day": eps.months(2026, 2027)}, "not in order"),
        ({"day": {"weekdays": [1]}}, "unknown kind"),
        ({"day": eps.years("9990-01-01", "9999-12-31")}, "not in order"),
        ({"day": {"months": ["2026-01-01"]}}, "not in order"),
    ],
)
def test_what_is_no_range(people: Any, by: Any, words: str) -> None:
    with pytest.raises((eps.PlanError, eps.DataError), match=words):
        people.count(by=by)


def test_keys_are_declared_once_and_asked_by_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    parquet.write_table(TABLE, "people.parquet")
    Path("people.toml").write_text(
        'source = "people.parquet"\nperson = "id"\nversion = "1"\nledger = "sqlite:///people.ledger"\n'
        '[preferences]\neveryone = "public"\n'
        "[keys]\nage = { ranges = [0, 18, 65] }\nday = { years = [2023-01-01, 2025-12-31] }\n"
    )
    assert main(["register", "people.toml"]) == 0, capsys.readouterr().err

    def ask(*by: str) -> Any:
        capsys.readouterr()
        assert main(["count", "people.toml", *by, "--json"]) == 0, capsys.readouterr().err
        return json.loads(capsys.readouterr().out)["release"]["value"]

    asked = [CASES[0][2], CASES[11][2]]
    registered = [ask("--by", "age"), ask("--by", "day")]
    typed = [ask("--by", "age=ranges(0, 18, 65)"), ask("--by", "day=years(2023-01-01,2025-12-31)")]
    for told in (registered, typed):
        assert [
            [count for _, count in groups] if isinstance(groups, list) else list(groups.values()) for groups in told
        ] == [list(groups.values()) for groups in asked]
    with eps.Dataset.from_toml("people.toml") as people:
        assert people.count(by=["age"]).value == asked[0]
        assert ("age", "number", "keys 0 to 18, 18 to 65") in people.describe().columns


def test_a_histogram_by_the_calendar_is_asked_by_a_command_a_document_and_a_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from epsilons.service.pages.asking import read_question

    monkeypatch.chdir(tmp_path)
    parquet.write_table(TABLE, "people.parquet")
    Path("people.toml").write_text(
        'source = "people.parquet"\nperson = "id"\nversion = "1"\nledger = "sqlite:///people.ledger"\n'
        '[preferences]\neveryone = "public"\n[keys]\nat = { weekdays = [] }\n'
    )
    assert main(["register", "people.toml"]) == 0, capsys.readouterr().err
    capsys.readouterr()
    written = ["histogram", "people.toml", "day", "--edges", "years(2023-12-25, 2025-01-07)", "--json"]
    assert main(written) == 0, capsys.readouterr().err
    wanted = json.loads(capsys.readouterr().out)["release"]["value"]
    assert dict(wanted) == CASES[11][2]
    with eps.Dataset.from_toml("people.toml") as people:
        fields = {"statistic": "histogram", "column": "day", "cells": "years(2023-12-25, 2025-01-07)"}
        assert Asked(people, read_question(fields, people), "ann", "1").ask()["release"]["value"] == wanted
        declared = read_question({"statistic": "histogram", "column": "at"}, people)
        assert dict(Asked(people, declared, "ann", "2").ask()["release"]["value"]) == CASES[13][2]
        grouped = read_question({"statistic": "count", "by": "age", "keys": "ranges(0,18,65)", "and_by": "at"}, people)
        assert grouped["arguments"]["by"] == {"age": {"ranges": [0, 18, 65]}, "at": {"weekdays": []}}
    assert main(["histogram", "people.toml", "day", "--edges", "years(2023"]) == 2
    assert "numbers with commas" in capsys.readouterr().err
