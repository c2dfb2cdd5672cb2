"""A question costs the same whoever is in the data: worlds that differ in one person make an engine do the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from unittest.mock import patch

import pytest

from epsilons.engines import duckdb
from epsilons.engines.duckdb import DuckDB
from epsilons.summaries.sql import Prepared
from support.work import (
    CHOOSING,
    CONDITIONS,
    ENDLESS_NOTE,
    PRIVATE,
    ROWS,
    Change,
    compare_times,
    duckdb_seconds,
    duckdb_work,
    make_world,
    prepared,
    questions,
    shortcuts,
    work_for,
)

WORLDS = {"ordinary": make_world()} | {name: make_world(**private) for name, private in PRIVATE.items()}


@pytest.fixture(scope="module")
def worlds() -> Iterator[dict[str, Prepared]]:
    with ExitStack() as stack:
        yield {name: stack.enter_context(prepared(DuckDB(table, threads=1))) for name, table in WORLDS.items()}


@pytest.mark.parametrize("asked", questions(), ids=lambda text: text[:40])
def test_a_question_makes_the_engine_do_the_same_in_every_world(worlds: dict[str, Prepared], asked: str) -> None:
    expected = work_for(worlds["ordinary"], questions()[asked], duckdb_work)
    for one in expected:
        assert one.left_out == ()
        assert one.rows[0] == ("TABLE_SCAN", ROWS)
        assert "Filters:" not in one.plan
    for name in PRIVATE:
        assert work_for(worlds[name], questions()[asked], duckdb_work) == expected, name


@pytest.mark.parametrize("asked", [*CHOOSING, "regions where", "sample where"])
def test_one_person_more_is_one_row_more(worlds: dict[str, Prepared], asked: str) -> None:
    ask = questions(CHOOSING)[asked]
    for expected, *others in zip(*(work_for(on, ask, duckdb_work) for on in worlds.values()), strict=True):
        for one in others:
            assert (one.plan, one.left_out) == (expected.plan, ())
            pairs = list(zip(one.rows, expected.rows, strict=True))
            assert all(kind == other and abs(rows - most) <= 1 for (kind, rows), (other, most) in pairs)


def seen(worlds: dict[str, Prepared], change: Change = lambda tree: tree) -> set[str]:
    """By what the worlds differ, or what is left out in one of them."""
    found = set()
    for ask in (questions()[name] for name in ("mean", "median", *CONDITIONS[:3])):
        for ordinary, *others in zip(*(work_for(on, ask, duckdb_work, change) for on in worlds.values()), strict=True):
            found |= {"left out" for one in (ordinary, *others) if one.left_out}
            found |= {"plan" for one in others if one.plan != ordinary.plan}
            found |= {"rows" for one in others if one.rows != ordinary.rows}
    return found


def test_conditions_that_stop_early_are_seen(worlds: dict[str, Prepared]) -> None:
    some = {name: worlds[name] for name in ("ordinary", "the only diagnosis, a long note")}
    assert seen(some) == set()
    assert seen(some, shortcuts) == {"left out"}


def test_an_engine_that_looks_at_values_before_it_plans_is_seen() -> None:
    with ExitStack() as stack:
        stack.enter_context(patch.object(duckdb, "_LOOKING", ""))
        names = ("ordinary", "the largest age", "no age, no number", "a wage beyond all bounds")
        looking = {name: stack.enter_context(prepared(DuckDB(WORLDS[name], threads=1))) for name in names}
        assert "plan" in seen(looking)
        assert seen(looking, shortcuts) >= {"plan", "rows", "left out"}


@pytest.mark.soak
def test_time_does_not_tell_the_worlds_apart() -> None:
    with ExitStack() as stack:
        tables = [make_world(note=ENDLESS_NOTE, hiv=hiv) for hiv in ("no", "yes")]
        pair = [stack.enter_context(prepared(DuckDB(table, threads=1))) for table in tables]
        assert 0.8 < compare_times(pair, duckdb_seconds, lambda tree: tree) < 1.25
        assert compare_times(pair, duckdb_seconds, shortcuts) > 2
