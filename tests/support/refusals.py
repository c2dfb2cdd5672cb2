"""Neighbouring tables cannot be told apart by what is refused, by its words, or by what it costs.

A question is put together at random, and often wrong; both tables of a pair are asked it, on every engine.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import epsilons as eps
from epsilons.arguments.checks import ASSUMPTIONS
from epsilons.dataset import attempt
from epsilons.ledger import opening
from epsilons.mechanisms.base import Mechanism, list_mechanisms
from epsilons.noise.entropy import Entropy
from epsilons.release.answer import Release, make_release
from epsilons.statistics.base import Answer, Question
from epsilons.summaries import People
from epsilons.testing import seeded
from support.tables import IDS, SCHEMA, hostile_record

COLUMNS = ["x", "k", "g", "b", "f", "id", "day", "at", "X", "nothing", "", 7, None, "x; --"]
BOUNDS = [
    (0, 100),
    (-1.0, 1.0),
    (0, 1e-40),
    (5, 5),
    (3, 1),
    (0, math.nan),
    (-math.inf, 1),
    None,
    "ab",
    (0,),
    (-1e30, 1e30),
]
CONDITIONS = [
    "k >= 1",
    "x < 50 OR g = 'a'",
    "g LIKE '%a'",
    "b = TRUE",
    "x IS NULL",
    "k = 'a'",
    "x + 1 > 2",
    "",
    "g = g",
    7,
    "MONTH(day) = 2",
    "WEEKDAY(day) IN ('Sunday', 'Monday')",
    "QUARTER(day) = '2024-Q1' OR YEAR(day) < 1900",
    "MONTH(day) = 'May'",
    "HOUR(day) = 3",
    "HOUR(at) >= 9 AND WEEK(at) = 1",
    "at < '2024-01-01 00:00:00'",
    "at = 'noon'",
    "YEAR(x) = 2024",
]
KEYS: list[Any] = [
    {"g": ["a", "b"]},
    {"b": [True]},
    {"k": [0, 2**63 - 1]},
    {"g": [1]},
    {"x": [0.5]},
    {},
    {"g": []},
    {"g": ["a", "a"]},
]
KEYS += [
    {"day": eps.weekdays()},
    {"day": eps.months("2023-12-01", "2024-02-29")},
    {"day": eps.hours()},
    {"at": eps.hours()},
]
KEYS += [{"x": eps.ranges(0, 1, 50)}, {"x": eps.ranges(1, 0)}, {"g": eps.weekdays()}, {"day": {"months": ["x"]}}]
KEYS += [{"at": eps.hours()}, {"nothing": [1]}, {"g": "ab"}, [("g", ["a"])], {"g": ["a"], "k": [10**30]}]
MORE: dict[str, list[Any]] = {
    "where": CONDITIONS,
    "by": KEYS,
    "missing": ["exclude", "center", "zero"],
    "complete": [True, False, "yes"],
    "share": [0.001, 0.01, 0.002, 0, 2, math.nan, "a"],
    "error": [1e3, 1e-9, -1, "a"],
    "mechanism": [*sorted(list_mechanisms()), "auto", "wild"],
    "threshold": ["max", "mean", "best", 0.001, 1e9, "high"],
    "rescale": [True, False],
    "assume": ["unrelated", "nothing", 0.5, "much"],
    "for_interval": [0, 0.6, 1, "a"],
    "spread": [10, -1, "a"],
    "density": [0.3, 7],
    "location": [30, "a"],
    "privacy": ["personalized", "individual", "group", "none"],
    "colour": ["red"],
}  # fmt: skip


#: (method, positional, named).
Call = tuple[str, list[Any], dict[str, Any]]
PAIRS = ("covariance", "correlation")
#: Bins of a calendar, and what is none.
SPANS: list[Any] = [{"edges": eps.weekdays()}, {"edges": eps.years("2023-01-01", "2024-12-31")}, {"edges": {"days": 7}}]


def some_call(random: np.random.Generator) -> Call:
    """Anything from sensible to nonsense."""

    def one(pool: list[Any]) -> Any:
        return pool[int(random.integers(len(pool)))]

    method = str(
        random.choice(
            [*PAIRS, "count", "sum", "mean", "variance", "median", "quantile", "min", "max", "kth_largest", "histogram"]
        )
    )
    given: list[Any] = (
        []
        if method == "count" and random.random() < 0.6
        else [one(["x", "x", "k", "k", "g", "b", "f"]) if random.random() < 0.85 else one(COLUMNS)]
    )
    if method == "quantile":
        given.append(one([0.5, 0.3, 0, 1, 2, None, [0.25, 0.75], [0.5, 0.5], [], [0.9, 0.1, 0.5]]))
    if method in PAIRS:
        given = ["x", one(["k", "f"])] if random.random() < 0.8 else [*given, one(COLUMNS)]
    if method == "kth_largest":
        given.append(one([1, 2, 50, 0, 1.5]))
    named: dict[str, Any] = {}
    if method == "histogram":
        named = one(
            [{"edges": [0, 1, 50]}, {"categories": ["a", "b"]}, {"categories": [1, 0]}, {"edges": [1, 0]}, {}, *SPANS]
        )
        given = ["day"] if named in SPANS and random.random() < 0.9 else given
    elif method in PAIRS:
        named["bounds"] = {str(name): one(BOUNDS[:2]) if random.random() < 0.9 else one(BOUNDS) for name in given}
    elif method != "count":
        named["bounds"] = one(BOUNDS[:2]) if random.random() < 0.8 else one(BOUNDS)
        if method in ("median", "quantile", "min", "max", "kth_largest"):
            named["step"] = one([1, 0.5, 1, 0.5, 0, 1e-20])
    for name in random.choice(list(MORE), int(random.integers(3)), replace=False):
        named[str(name)] = one(MORE[str(name)])
    if "error" not in named:
        named.setdefault("share", 0.001)
    return method, given, dict(named)


def some_call_of_days(random: np.random.Generator) -> Call:
    """Likewise, with a calendar, two columns or several quantiles in it."""
    while True:
        method, given, named = call = some_call(random)
        asked_of = {str(name): named[name] for name in ("where", "by", "edges") if name in named}
        several = any(isinstance(one, list) for one in given)
        if several or method in PAIRS or "day" in repr(asked_of) or "ranges" in repr(asked_of):
            return call


def some_call_of_an_error(
    random: np.random.Generator, methods: Sequence[str] = (*PAIRS, "mean", "sum", "count", "variance")
) -> Call:
    """A sensible question of a condition, whose share follows from an error to reach, and often from a rough count."""
    method = str(random.choice(methods))
    given = ["x", "k"] if method in PAIRS else [] if method == "count" else ["x"]
    named: dict[str, Any] = {"where": str(random.choice(["k >= 1", "x < 50 OR g = 'a'", "g LIKE '%a'", "b = TRUE"]))}
    named["error"] = float(random.choice([0.3, 3.0, 30.0, 300.0, 1000.0]))
    if given:
        named["bounds"] = dict.fromkeys(given, (0, 100)) if method in PAIRS else (0, 100)
    return method, given, named


@contextmanager
def same_rough_counts() -> Iterator[Callable[[], None]]:
    """Within it rough counts release in every world what they did in the first; what it gives begins another world.

    How many are bought, the share of what follows, its charge, its words and its refusal may depend on what they
    released, and on nothing else of the table. Noise alike does not make counts alike, so worlds would rightly differ;
    where their answers are alike nothing may differ at all. Each world still draws its own first, and states the error
    of the one that it releases by itself.
    """
    released: list[Answer] = []
    within, made = 0, 0
    buy = attempt.Attempt._count_roughly

    def begin() -> None:
        nonlocal made
        made = 0

    def count_roughly(self: attempt.Attempt) -> Any:
        nonlocal within
        within += 1
        try:
            return buy(self)
        finally:
            within -= 1

    def make_alike(mechanism: Mechanism, *rest: Any) -> Release:
        def draw(question: Question, people: People, entropy: Entropy) -> Answer:
            nonlocal made
            own, made = type(mechanism).draw(mechanism, question, people, entropy), made + 1
            released.extend([own] if made > len(released) else [])
            return released[made - 1]

        with pytest.MonkeyPatch.context() as patched:
            if within:
                patched.setitem(vars(mechanism), "draw", draw)
            return make_release(mechanism, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attempt.Attempt, "_count_roughly", count_roughly)
        patch.setattr(attempt, "make_release", make_alike)
        yield begin


def outcome(people: eps.Dataset, conditions: set[str], method: str, given: list[Any], named: dict[str, Any]) -> str:
    """Everything about a call that an analyst sees and that is no number drawn with noise.

    Of two columns the released sums decide whether an error is stated. Where one is, its condition is added to
    `conditions`; where none is, nothing rests on a condition.
    """
    try:
        release = getattr(people, method)(*given, **named, entropy=seeded(1))
    except eps.EpsilonsError as error:
        seen: Any = [type(error).__name__, str(error), repr(error.__cause__)]
    else:
        shown = release.to_dict()
        keys = [key for key, _ in shown["value"]] if isinstance(shown["value"], list) else None
        bars = None if shown["models"] is None else [kind for kind, _ in shown["models"]]
        details = sorted(shown.pop("details"))
        shown["guarantee"].pop("roster")  # each of the tables has a ledger of its own, whose id it tells
        shown.pop("at")  # they are asked one after the other
        if method not in ("min", "max", "kth_largest"):  # it follows from what was released: only its shape is compared
            shown["error"] = [key for key, _ in shown["error"]] if isinstance(shown["error"], list) else "one number"
        if method in ("count", "histogram"):  # their conditions are told at the shares that were released, so by words
            number = r"\d[\d.e+-]*"
            shown["assumption"] = re.sub(f"{number}( to {number})?", "#", shown["assumption"])
        if method in PAIRS:
            told = shown.pop("assumption")
            conditions.update([told] if release.error is not None else [])
            assert release.error is not None or told == ASSUMPTIONS["nothing"]
        seen = [{**shown, "value": keys, "models": bars}, details]
    left = {str(granted): epsilon for granted, epsilon in people.remaining().epsilons.items()}
    past = [[line.kind, line.state, line.description, sorted(line.charges.items())] for line in people.history()]
    return json.dumps([seen, left, past[-1:], len(past)], default=repr)


#: What an engine reads: the rows of a table as a source of its own, in the words of `eps.Dataset`.
Source = Callable[[pa.Table], Mapping[str, Any]]


def as_it_is(table: pa.Table) -> Mapping[str, Any]:
    """For DuckDB."""
    return {"source": table, "threads": 1}


def compare(
    tables: int,
    calls: int,
    seed: int,
    engines: Sequence[Source] = (as_it_is,),
    draw: Callable[[np.random.Generator], Call] = some_call,
    one_each: bool = False,
) -> tuple[int, int]:
    """(refused, answered) over so many calls to both tables of so many pairs, on each engine, or on one of them."""
    random = np.random.default_rng(seed)
    refused = answered = 0
    for place in range(tables):
        names = [str(name) for name in random.choice(IDS, 6, replace=False)]
        grants = {name: float(random.choice([0.5, 1.0, 3.0, math.inf])) for name in names[1:]} | {names[0]: 1.0}
        rows, relation = int(random.choice([1, 2])), str(random.choice(["absent", "replace"]))
        others = [hostile_record(random, name) for name in names[1:] for _ in range(int(random.integers(1, 4)))]
        mine, yours = ([hostile_record(random, names[0]) for _ in range(3)] for _ in range(2))
        salts = seeded((seed << 32) + place)  # which rows are kept follows from them: a failure repeats itself
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(opening, "entropy", SimpleNamespace(system=lambda salts=salts: salts))
            worlds = [
                eps.Dataset(
                    **engine(pa.Table.from_pylist(records, SCHEMA)),
                    person="id",
                    preferences=grants,
                    rows_per_person=rows,
                    neighbors=relation,
                    version="1",
                    ledger="memory",
                    ceiling=1e6,
                )
                for engine in ([engines[int(random.integers(len(engines)))]] if one_each else engines)
                for records in (others + mine, others[::-1] + (yours if relation == "replace" else []))
            ]
        for _ in range(calls):
            call = draw(random)
            conditions: set[str] = set()
            told: list[str] = []
            with same_rough_counts() as begin:
                for people in worlds:
                    begin()
                    told.append(outcome(people, conditions, *call))
            one, *more = told
            assert all(one == other for other in more), f"seed {seed}, pair {place}: {call}"
            assert len(conditions) <= 1, f"seed {seed}, pair {place}: {call}"
            answered += '"format"' in one
            refused += '"format"' not in one
        for people in worlds:
            people.close()
    return refused, answered
