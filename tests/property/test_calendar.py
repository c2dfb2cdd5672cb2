"""Parts of a calendar in conditions and histograms: as found one person at a time, on arrays and on a table."""

from __future__ import annotations

import json
import operator
from datetime import date, datetime, timedelta
from itertools import product
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from sqlglot import exp

import epsilons as eps
from epsilons.engines.base import SOURCE
from epsilons.engines.conditions import parse
from epsilons.engines.duckdb import DuckDB
from epsilons.engines.trees import met
from support.spans import CASES, DAYS, TABLE, TIMES

_SIGNS = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_NAMES = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
#: What is compared, by the part and the literal: (what a value has, what the literal says), both in order.
_READ: dict[str, Any] = {
    "DAY": lambda day: day.day,
    "WEEK": lambda day: day.isocalendar()[1],
    "MONTH": lambda day: day.month,
    "QUARTER": lambda day: (day.month - 1) // 3 + 1,
    "YEAR": lambda day: day.year,
    "WEEKDAY": lambda day: day.weekday(),
    "HOUR": lambda at: at.hour,
}
_PERIODS: dict[str, Any] = {
    "DAY": lambda day: (day.year, day.month, day.day),
    "WEEK": lambda day: day.isocalendar()[:2],
    "MONTH": lambda day: (day.year, day.month),
    "QUARTER": lambda day: (day.year, (day.month - 1) // 3 + 1),
}
#: The literals of a part, each with what it stands for.
_LITERALS: dict[str, list[tuple[str, Any, Any]]] = {
    "DAY": [("29", _READ, 29), ("'2024-02-29'", _PERIODS, (2024, 2, 29))],
    "WEEK": [("1", _READ, 1), ("52.5", _READ, 52.5), ("'2024-W01'", _PERIODS, (2024, 1)), ("99", _READ, 99)],
    "MONTH": [("2", _READ, 2), ("'2024-02'", _PERIODS, (2024, 2)), ("-1", _READ, -1)],
    "QUARTER": [("4", _READ, 4), ("'2023-Q4'", _PERIODS, (2023, 4))],
    "YEAR": [("2024", _READ, 2024), ("2023.5", _READ, 2023.5), ("1", _READ, 1)],
    "WEEKDAY": [(f"'{name}'", _READ, place) for place, name in enumerate(_NAMES) if place in (0, 4, 6)],
    "HOUR": [("0", _READ, 0), ("17", _READ, 17), ("24", _READ, 24)],
}
_ROWS = TABLE.append_column("place", pa.array(range(len(TABLE))))


@pytest.fixture(scope="module")
def engine() -> Any:
    made = DuckDB(_ROWS, threads=1)
    yield made
    made.close()


def meeting(engine: Any, text: str) -> list[int]:
    tree = exp.select("place").from_(SOURCE).where(met(parse(text, engine.schema).tree())).order_by("place")
    return [row["place"] for row in engine.run(tree).to_pylist()]


def _leaves() -> Any:
    for (word, literals), (name, values) in product(_LITERALS.items(), (("day", DAYS), ("at", TIMES))):
        if word == "HOUR" and name == "day":
            continue
        for literal, reading, meant in literals:
            yield f"{word}({name})", literal, [None if v is None else reading[word](v) for v in values], meant


def test_every_part_and_sign_is_what_the_calendar_says(engine: Any) -> None:
    tried = 0
    for called, literal, found, meant in _leaves():
        for sign, test in _SIGNS.items():
            wanted = [place for place, part in enumerate(found) if part is not None and test(part, meant)]
            others = [place for place, part in enumerate(found) if part is not None and not test(part, meant)]
            text = f"{called} {sign} {literal}"
            assert meeting(engine, text) == wanted, text
            assert meeting(engine, f"NOT {text}") == others, text
            normal = parse(text, engine.schema)
            values = _ROWS[called.partition("(")[2][:-1]].to_pylist()
            assert [place for place, value in enumerate(values) if normal.holds(value)] == wanted, text
            if "FALSE" not in normal.text:
                assert parse(normal.text, engine.schema).text == normal.text
            tried += 1
    assert tried > 200


def test_lists_ranges_and_the_spelling_of_the_standard(engine: Any) -> None:
    same = [
        ("MONTH(day) IN (2, 3)", "EXTRACT(MONTH FROM day) = 3 OR 2 = month(day)"),
        ("NOT WEEKDAY(day) IN ('Saturday', 'Sunday')", "weekday(day) <> 'Sunday' AND weekday(DAY) <> 'Saturday'"),
        ("HOUR(at) BETWEEN 9 AND 17", "HOUR(at) >= 9 AND HOUR(at) < 18"),
        ("MONTH(day) = '2024-02'", "day >= '2024-02-01' AND day < '2024-03-01'"),
        ("YEAR(at) = 2024", "at >= '2024-01-01 00:00:00' AND at < '2025-01-01 00:00:00'"),
        ("QUARTER(day) BETWEEN '2024-Q1' AND '2024-Q2'", "MONTH(day) >= '2024-01' AND MONTH(day) <= '2024-06'"),
        ("HOUR(at) < 24", "at IS NOT NULL"),
    ]
    for one, other in same:
        assert parse(one, engine.schema).text == parse(other, engine.schema).text
        assert meeting(engine, one) == meeting(engine, other) != []


def test_the_last_day_that_there_is_is_in_its_periods_and_in_no_other() -> None:
    """Files say "for ever" by 9999-12-31; days beyond it are in no year that can be named."""
    days = [date.max, date(9999, 1, 1), date(9998, 12, 31), date(2024, 2, 29), None]
    connection = duckdb.connect()
    rows = connection.from_arrow(pa.table({"place": range(5), "day": pa.array(days, pa.date32())}))
    beyond = rows.union(connection.sql("SELECT 5 AS place, DATE '12000-01-01' AS day"))
    made = DuckDB(beyond.project("place, day, CAST(day AS TIMESTAMP) + INTERVAL 86399999999 MICROSECOND AS at"))
    for name, (word, literal, whole) in product(
        ("day", "at"),
        [
            ("YEAR", "9999", [0, 1]), ("QUARTER", "'9999-Q4'", [0]), ("MONTH", "'9999-12'", [0]),
            ("WEEK", "'9999-W52'", [0]), ("DAY", "'9999-12-31'", [0]),
        ],
    ):  # fmt: skip
        before = [place for place in (0, 1, 2, 3) if place not in whole]
        wanted = {
            "=": whole, "<>": [*before, 5], "<": before, "<=": sorted([*whole, *before]), ">": [5], ">=": [*whole, 5],
        }  # fmt: skip
        for sign, found in wanted.items():
            if (word, sign) in (("YEAR", "<="), ("YEAR", ">")):
                continue  # every year, and none
            assert meeting(made, f"{word}({name}) {sign} {literal}") == found, (word, name, sign)
            others = [place for place in (0, 1, 2, 3, 5) if place not in found]
            assert meeting(made, f"NOT {word}({name}) {sign} {literal}") == others, (word, name, sign)
    made.close()


@pytest.mark.parametrize("case", [place for place, case in enumerate(CASES) if case[0] in ("day", "at")])
def test_histograms_by_the_calendar(case: int) -> None:
    column, edges, wanted = CASES[case]
    values = TABLE[column]
    for given in (values, values.to_pylist(), values.to_numpy()):
        assert eps.histogram(given, eps.PUBLIC, edges=edges).value == wanted
    with eps.Dataset(TABLE, person="id", preferences=eps.PUBLIC, ledger="memory") as people:
        whole = people.histogram(column, edges=edges)
        assert whole.value == wanted
        some = people.histogram(column, edges=edges, where="age < 40", by={"age": eps.ranges(0, 18, 40)}).value
        rows = TABLE.to_pylist()
        young = people.histogram(column, edges=edges, where="age >= 0 AND age < 18").value
        assert {key[1]: n for key, n in some.items() if key[0] == "0 to 18"} == young
        assert sum(young.values()) <= sum(row["age"] is not None and 0 <= row["age"] < 18 for row in rows)
        assert people.histogram(column, edges=json.loads(json.dumps(edges, default=str))).number == whole.number


def test_a_plain_histogram_keeps_the_key_by_which_its_answer_is_found() -> None:
    from epsilons.statistics.histogram import Histogram

    assert (
        Histogram.of([0, 1], None, "drop").identity() == "Histogram(edges=(0.0, 1.0), categories=None, outside='drop')"
    )
    months = Histogram.of(eps.months("2026-01-01", "2026-02-28"), None, "drop")
    assert months.identity() != Histogram.of(None, months.categories, "drop").identity()


def test_what_is_no_histogram_by_the_calendar() -> None:
    months, days = eps.months("2026-01-01", "2026-03-01"), [date(2026, 1, 2), None]
    for values, edges, words in [
        ([1, 2], months, "hold no dates"),
        (["2026-01-01", "b"], eps.ranges("a", "b"), "An edge is not"),
        (pa.array(days), eps.hours(), "hold no times"),
        (pa.array(days), eps.ranges(datetime(2026, 1, 1, 12), datetime(2026, 1, 3)), "An edge is not a date"),
        (days, eps.ranges(0, 18), "of dates or times"),
        (days, {"halves": [1]}, "unknown kind"),
        (days, eps.months("2026-03-01", "2026-01-01"), "not in order"),
    ]:
        with pytest.raises((eps.PlanError, eps.DataError), match=words):
            eps.histogram(values, eps.PUBLIC, edges=edges)
    with pytest.raises(eps.PlanError, match="no ends to clip"):
        eps.histogram(days, eps.PUBLIC, edges=months, outside="clip")
    with pytest.raises(eps.PlanError, match="needs edges or categories"):
        eps.histogram(days, eps.PUBLIC, edges=months, categories=["a"])
    # A time or a text among days is nobody's fault that a message could name: it is in no bin, or in its own.
    assert eps.histogram([*days, "x", float("nan"), datetime(2026, 2, 1, 9)], eps.PUBLIC, edges=months).value == {
        "2026-01": 1, "2026-02": 1, "2026-03": 0,
    }  # fmt: skip


def test_a_part_of_a_public_column_concerns_those_alone() -> None:
    born = [date(1990, 1, 1) + timedelta(40 * i) for i in range(60)]
    table = pa.table({"id": list(range(60)), "born": born, "wage": [float(i) for i in range(60)]})
    with eps.Dataset(
        table, person="id", preferences=dict.fromkeys(range(60), 1.0), ledger="memory", public=["born"]
    ) as people:
        free = people.count(where="MONTH(born) = 3")
        assert free.value == sum(day.month == 3 for day in born)
        assert set(free.charges.values()) == {0}
