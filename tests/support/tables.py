"""Small tables with hostile contents, prepared without a ledger, and neighbours of them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from epsilons.arguments.options import TABLES
from epsilons.arguments.reading import read_plan
from epsilons.dataset.facts import TableFacts
from epsilons.dataset.gathering import StagedRows, read_held
from epsilons.dataset.people import TablePeople
from epsilons.dataset.question import TableQuestion, parse_question
from epsilons.dataset.rows import Preparation, prepare, stage
from epsilons.engines.duckdb import DuckDB
from epsilons.ledger.departures import Departures
from epsilons.ledger.identity import digests
from epsilons.ledger.order import as_sorted
from epsilons.ledger.values import Moves
from epsilons.mechanisms.base import Mechanism, list_mechanisms
from epsilons.preferences import roster_of
from epsilons.statistics.base import Question
from epsilons.statistics.catalogue import find_statistic
from epsilons.summaries.sql import check_asked
from support.hostile import FLOATS, INTS
from support.small_worlds import at_max

SCHEMA = pa.schema(
    {
        "id": pa.string(),
        "x": pa.float64(),
        "k": pa.int64(),
        "g": pa.string(),
        "b": pa.bool_(),
        "f": pa.float32(),
        "day": pa.date32(),
        "at": pa.timestamp("us"),
    }
)
#: Ids that are easily taken for one another, and none of them twice; nobody is called None.
IDS = ["1", "01", "1 1", "é", "e", "ID", "i d", "", "👪", "x" * 300, "'", '"; --', "NULL", "a\tb", "%", "ß"]
WORDS: list[str | None] = [None, "", "a", "b", "A", "'", "é", "a\0b".replace("\0", "")]
#: Days at the ends of a calendar, around a leap day, and in a week of two years.
DAYS = [
    date(1, 1, 1),
    date(1582, 10, 10),
    date(1969, 12, 31),
    date(2024, 2, 29),
    date(2024, 12, 30),
    date(9999, 12, 31),
]
TIMES = [
    datetime.min, datetime(1899, 12, 31, 23, 59, 59, 999_999), datetime(2024, 3, 31, 2, 30), datetime(9999, 12, 31, 23),
]  # fmt: skip
SALT = bytes(range(16))
Record = dict[str, Any]


class Bench:
    """One engine for many tables of the same columns: `people` makes each of them ready to be asked."""

    def __init__(self) -> None:
        self.engine = DuckDB(SCHEMA.empty_table(), threads=1)
        self._epoch = itertools.count(1)

    def prepare(self, records: Sequence[Record], grants: Mapping[str, float], rows: int) -> Preparation:
        """`grants` is the roster, {id: epsilon}; whoever has no record is on it all the same."""
        table = pa.Table.from_pylist(list(records), SCHEMA)
        self.engine._connection.register("raw", table)
        roster = roster_of(list(grants.values()))
        everyone = digests(list(grants), SALT)
        order = np.argsort(as_sorted(everyone))
        standing = Moves(
            next(self._epoch), 1, as_sorted(everyone)[order], roster.codes[order].astype(np.int64), Departures.of([])
        )
        person = self.engine.schema["id"]
        stage(self.engine)
        found = StagedRows(self.engine, person).by_person({})
        ids = found["id"].combine_chunks()
        known = digests(ids, SALT)
        order = np.argsort(as_sorted(known))
        held = read_held(found).take(order)
        return prepare(self.engine, person, ids.take(pa.array(order)), held, known[order], standing, rows, SALT)

    def people(
        self, records: Sequence[Record], grants: Mapping[str, float], rows: int, meaning: TableQuestion
    ) -> TablePeople:
        """What a question sees."""
        prepared = self.prepare(records, grants, rows)
        levels = roster_of(list(grants.values())).levels
        places = np.array(prepared.cohorts, np.int64)  # a cohort is a level here
        return TablePeople(prepared, meaning.column, meaning.where, meaning.by, levels, places)

    def close(self, people: TablePeople) -> None:
        self.engine.drop(people.preparation.prepared.name)

    def terms(self, neighbors: str = "absent", rows: int = 1, complete: Sequence[str] = ()) -> TableFacts:
        return TableFacts(self.engine.schema, "id", neighbors, rows, frozenset(complete), {})


def question_of(facts: TableFacts, statistic: str, column: str | None = None, **arguments: Any) -> TableQuestion:
    """A call of a dataset's method, as a question of its table."""
    return parse_question(read_plan(find_statistic(statistic), TABLES, arguments, column), facts)


#: What is asked, in the words of a call.
ASKED: list[dict[str, Any]] = [
    {"statistic": "count"},
    {"statistic": "count", "of": "rows"},
    {"statistic": "count", "column": "b"},
    {"statistic": "count", "column": "x"},
    {"statistic": "sum", "column": "x", "bounds": (0.0, 100.0)},
    {"statistic": "sum", "column": "k", "bounds": (-50.0, 7.5)},
    {"statistic": "mean", "column": "x", "bounds": (-1.0, 1.0)},
    {"statistic": "mean", "column": "k", "bounds": (0.0, 100.0)},
    {"statistic": "mean", "column": "b", "bounds": (0.0, 1.0)},
    {"statistic": "variance", "column": "x", "bounds": (0.0, 100.0)},
    {"statistic": "histogram", "column": "x", "edges": (0.0, 1.0, 50.0, 100.0)},
    {"statistic": "histogram", "column": "k", "edges": (0.0, 50.0, 100.0), "outside": "clip"},
    {"statistic": "histogram", "column": "g", "categories": ("a", "b", "é")},
    {"statistic": "median", "column": "x", "bounds": (0.0, 100.0), "step": 5},
    {"statistic": "quantile", "column": "f", "q": 0.3, "bounds": (-1.0, 2.0), "step": 0.125},
    {"statistic": "min", "column": "x", "bounds": (0.0, 100.0), "step": 20},
    {"statistic": "max", "column": "k", "bounds": (-50.0, 50.0), "step": 10},
    {"statistic": "kth_largest", "column": "x", "k": 2, "bounds": (0.0, 1.0), "step": 0.25},
    {"statistic": "quantile", "column": "x", "q": [0.25, 0.5, 0.9], "bounds": (0.0, 100.0), "step": 20},
    {"statistic": "histogram", "column": "day", "edges": {"weekdays": []}},
    {"statistic": "histogram", "column": "day", "edges": {"months": ["2023-12-01", "2024-03-31"]}},
    {"statistic": "histogram", "column": "at", "edges": {"hours": []}},
    {"statistic": "covariance", "column": "x", "other": "k", "bounds": {"x": (0.0, 100.0), "k": (-1.0, 1.0)}},
    {"statistic": "correlation", "column": "f", "other": "x", "bounds": {"x": (-1.0, 1.0), "f": (0.0, 2.0)}},
]
WHERE = [
    None,
    None,
    None,
    None,
    None,
    None,
    "k >= 1",
    "x < 50 OR g = 'a'",
    "NOT (x > 1)",
    "g IS NOT NULL",
    "g LIKE 'a%'",
    "b = TRUE",
    "MONTH(day) = 2",
    "WEEKDAY(day) IN ('Saturday', 'Sunday') OR YEAR(day) > 2024",
    "NOT WEEK(day) = '2024-W01'",
    "HOUR(at) BETWEEN 9 AND 23 OR at < '2024-01-01 00:00:00'",
]
BY: list[dict[str, Any] | None] = [
    None, None, None, None, {"g": ["a", "b"]}, {"b": [True, False]}, {"k": [0, 1, 2**63 - 1]},
    {"g": ["a"], "b": [False, True]}, {"day": {"quarters": ["2023-12-31", "2024-12-31"]}},
    {"day": {"weekdays": []}}, {"x": {"ranges": [-1, 1, 100]}}, {"at": {"weeks": ["2023-12-25", "2024-01-07"]}},
]  # fmt: skip


def hostile_record(random: np.random.Generator, name: str | None) -> Record:
    """A row of anything that its columns can hold."""

    def one(pool: Sequence[Any], plain: Sequence[Any]) -> Any:
        luck = random.random()
        chosen = plain if luck < 0.6 else pool  # rows that no condition keeps show nothing
        return None if luck > 0.95 else chosen[int(random.integers(len(chosen)))]

    x = one(FLOATS, [-1.0, 0.0, 1.0, 100.0])
    with np.errstate(over="ignore", under="ignore"):
        single = None if x is None else float(np.float32(x))
    words, truths = one(WORDS, ["a", "b"]), one([True, False], [True, False])
    day = one(DAYS, [date(2023, 12, 31), date(2024, 1, 1), date(2024, 2, 29)])
    at = one(TIMES, [datetime(2023, 12, 31, 23, 59), datetime(2024, 1, 1), datetime(2024, 2, 29, 9)])
    numbers = {"x": x, "k": one(INTS, [0, 1, 100]), "f": single}
    return {"id": name, "g": words, "b": truths, "day": day, "at": at, **numbers}


@dataclass(frozen=True)
class Pair:
    """One question to one mechanism, and two tables that differ in one person's rows and in their order."""

    mechanism: Mechanism
    question: Question
    meaning: TableQuestion
    rows: int
    grants: dict[str, float]
    person: str
    one: tuple[Record, ...]
    other: tuple[Record, ...]

    @property
    def level(self) -> int:
        """The level of the person who differs."""
        return int(roster_of(list(self.grants.values())).codes[list(self.grants).index(self.person)])


def some_question(random: np.random.Generator) -> dict[str, Any]:
    """Any question in the words of a call; a model is asked of no groups."""
    asked = dict(ASKED[int(random.integers(len(ASKED)))])
    asked |= {"where": WHERE[int(random.integers(len(WHERE)))], "by": BY[int(random.integers(len(BY)))]}
    asked |= {"by": None} if find_statistic(asked["statistic"]).model else {}
    if asked["statistic"] == "count" and "of" not in asked and random.random() < 0.5:
        asked["of"] = "people"
    return asked


def make_pair(bench: Bench, random: np.random.Generator, ask: Mapping[str, Any] | None = None) -> Pair:
    """Any mechanism that serves, this question or any; people with no row or too many of them, and rows of nobody."""
    count, rows = int(random.integers(1, 7)), int(random.choice([1, 1, 2, 3]))
    names = [str(name) for name in random.choice(IDS, count, replace=False)]
    grants = {name: float(random.choice([0.1, 0.5, 1.0, 3.0, math.inf])) for name in names}
    person = names[0]
    grants[person] = float(random.choice([0.1, 1.0, 3.0]))
    relation = str(random.choice(["absent", "replace"]))
    terms = bench.terms(relation, rows, ["x"] if random.random() < 0.3 else [])
    while True:
        meaning = question_of(terms, **(some_question(random) if ask is None else ask))
        question = Question(meaning.question.statistic, relation)
        levels = roster_of(list(grants.values())).levels
        makers = [at_max(name, question.statistic) for name in sorted(list_mechanisms())]
        serving = [mechanism for mechanism in makers if mechanism.refuses(question, levels) is None]
        if serving:
            break

    def some(name: str | None, most: int, least: int = 0) -> list[Record]:
        made = [hostile_record(random, name) for _ in range(int(random.integers(least, most + 1)))]
        return made + made[:1] * int(random.random() < 0.3)  # a row that stands there twice

    others = [record for name in names[1:] for record in some(name, rows + 2)] + some(None, 2)
    mine = some(person, rows + 2, 1)
    changed = some(person, rows + 2) if relation == "replace" else []

    def mixed(records: list[Record]) -> tuple[Record, ...]:
        return tuple(records[place] for place in random.permutation(len(records)))

    mechanism = serving[int(random.integers(len(serving)))]
    return Pair(mechanism, question, meaning, rows, grants, person, mixed(others + mine), mixed(others + changed))


def checked(bench: Bench, pair: Pair) -> None:
    """That the question may be asked at all is decided without the rows."""
    empty = bench.people((), pair.grants, pair.rows, pair.meaning)
    check_asked(replace(empty.preparation.prepared, rows=1), pair.question.statistic, pair.meaning.column)
    bench.close(empty)
