"""Neighbouring tables cannot be told apart by what is refused, by its words, or by what it costs.

The short form asks 200 questions of 5 pairs of tables, the long one (soak) four questions of each of 5,000 pairs, that
are files of text, sheets and tables of a server as well.
`tests/integration/test_spark.py` asks Spark as well.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from fractions import Fraction
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

import epsilons as eps
from support.forms import Forms, compare_files
from support.refusals import compare, some_call_of_an_error, some_call_of_days


def test_two_hundred_questions_tell_no_neighbours_apart() -> None:
    refused, answered = compare(5, 40, 7)
    assert refused > 40
    assert answered > 40


def test_questions_of_days_and_of_two_columns_tell_no_neighbours_apart() -> None:
    refused, answered = compare(3, 40, 8, draw=some_call_of_days)
    assert refused > 20
    assert answered > 20


def test_neighbouring_files_are_told_apart_no_more_than_tables(tmp_path: Path) -> None:
    for place, form in enumerate(Forms(tmp_path).all()):
        refused, answered = compare(1, 12, 9 + place, [form])
        assert refused > 0
        assert answered > 0


def test_what_follows_from_a_rough_count_tells_neighbours_apart_by_what_it_released_alone() -> None:
    refused, answered = compare(6, 4, 5, draw=some_call_of_an_error)
    assert refused > 5
    assert answered > 5


@pytest.mark.integration
def test_neighbouring_tables_of_a_server_are_not_told_apart(tmp_path: Path, postgres_server: str) -> None:
    assert min(compare(2, 8, 11, [Forms(tmp_path, postgres_server).table])) > 0


@pytest.mark.soak
@pytest.mark.figure("figure_7_duckdb")
def test_twenty_thousand_questions_tell_no_neighbours_of_five_thousand_apart(
    tmp_path: Path, postgres_server: str, record_property: Callable[[str, Any], None]
) -> None:
    folders, seeds = [tmp_path / str(part) for part in range(10)], [secrets.randbits(32) for _ in range(10)]
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as processes:
        found = list(processes.map(compare_files, folders, [postgres_server] * 10, seeds))
    refused, answered = (sum(each) for each in zip(*found, strict=True))
    assert refused + answered == 20_000
    assert min(refused, answered) > 4_000
    record_property("size", 5_000)


def test_a_refusal_that_depends_on_a_value_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted bug: a mean that speaks up when a value is out of bounds."""
    from epsilons.dataset.people import TablePeople

    tally = TablePeople.tally

    def strict(self: TablePeople, statistic: Any) -> Any:
        found = tally(self, statistic)
        if found[0].sum() % 2:
            raise eps.DataError("A value is out of bounds.")
        return found

    monkeypatch.setattr(TablePeople, "tally", strict)
    with pytest.raises(AssertionError, match="seed 7"):
        compare(5, 40, 7)


@pytest.mark.parametrize("planted", ["share", "words", "refusal", "error of the count"])
def test_a_plan_that_looks_beyond_what_a_rough_count_released_would_be_noticed(
    planted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted bugs: something of a question that is sized by a rough count follows from who really counts."""
    from epsilons.dataset.attempt import Attempt
    from epsilons.dataset.people import TablePeople

    buy, read, odd = Attempt._count_roughly, Attempt.read, [0]

    def peek(self: Attempt, sketch: Any) -> Any:
        asked, places = self.asked, sketch.spendable.places(self.preparation.cohorts)
        people = TablePeople(self.preparation, asked.column, asked.where, asked.by, sketch.spendable.levels, places)
        odd[0] = int(people.tally(sketch.question.statistic)[0].sum()) % 2
        made = read(self, sketch)
        if planted == "error of the count" and made.statistic == "count of rows":
            return replace(made, error=made.error * (1 + odd[0]))
        return made

    def count_roughly(self: Attempt) -> Any:
        found, rough = buy(self)
        if planted == "refusal" and odd[0]:
            raise eps.PlanError("An odd number of people count.")
        if planted == "share" and found.options.share is not None:
            taken = found.options.share * (1 - Fraction(odd[0], 8))
            return replace(found, options=replace(found.options, share=taken)), rough
        return found, replace(rough, fraction=rough.fraction / (1 + odd[0])) if planted == "words" else rough

    monkeypatch.setattr(Attempt, "read", peek)
    monkeypatch.setattr(Attempt, "_count_roughly", count_roughly)
    with pytest.raises(AssertionError, match="seed 5"):
        compare(12, 6, 5, draw=lambda random: some_call_of_an_error(random, ["mean"]))
