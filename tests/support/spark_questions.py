"""A table with odd people in it, questions about it, and its answers with frozen noise: the same on every engine."""

from __future__ import annotations

from datetime import date, timedelta
from itertools import cycle, islice
from typing import Any

import numpy as np
import pyarrow as pa

import epsilons as eps
from epsilons.testing import seeded
from support.hostile import FLOATS

PEOPLE = 120
_random = np.random.default_rng(11)
_rows = _random.integers(1, 6, PEOPLE)
_who = np.repeat(np.arange(PEOPLE), _rows)
NAMES = [f"person {i}" for i in range(PEOPLE - 6)] + ["ü", "y\u0308", "🙂", "", "%", "it's \\"]
#: A year of days by weeks and a bit, a week of two years, the change of calendars, the ends of both, and none.
_DAYS = [date(2023, 12, 28) + timedelta(8 * i) for i in range(45)]
_DAYS += [date(1582, 10, 4), date(1582, 10, 15), date(1, 1, 1), date(1969, 12, 31), date(9999, 12, 31), None]
TABLE = pa.table({
    "id": pa.array([None if i % 50 == 49 else NAMES[p] for i, p in enumerate(_who)]),
    "wage": pa.array([None if i % 13 == 0 else v for i, v in enumerate(_random.normal(50, 30, len(_who)).tolist())]),
    "odd": pa.array(list(islice(cycle([*FLOATS, None]), len(_who)))),
    "region": pa.array(_random.choice(["north", "south", "weird"], len(_who))),
    "level": pa.array(_random.choice(["strict", "open", "public"], PEOPLE)[_who]),
    "tags": pa.array([[1]] * len(_who)),
    "day": pa.array([_DAYS[i % len(_DAYS)] for i in range(len(_who))]),
})  # fmt: skip
NAMED = eps.Preferences.from_levels("level", {"strict": 0.5, "open": 2.0, "public": eps.PUBLIC})

QUESTIONS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("mean", ("wage",), {"bounds": (0, 100)}),
    ("count", (), {"of": "people", "where": "wage > 40 AND odd IS NOT NULL"}),
    ("sum", ("odd",), {"bounds": (-10, 100), "by": {"region": ["south", "north", "nowhere"]}}),
    ("variance", ("wage",), {"bounds": (0, 100), "where": "region <> 'weird'"}),
    ("histogram", ("region",), {"categories": ["north", "south", "nowhere"]}),
    ("histogram", ("odd",), {"edges": [0, 1, 50, 100], "by": {"region": ["north"]}}),
    ("median", ("wage",), {"bounds": (0, 100), "by": {"region": ["north", "south"]}}),
    ("max", ("odd",), {"bounds": (0, 100), "step": 0.5}),
    ("mean", ("wage",), {"bounds": (0, 100), "mechanism": "sample", "where": "region = 'north'"}),
    ("median", ("odd",), {"bounds": (0, 100), "mechanism": "sample"}),
    ("count", (), {"where": "WEEKDAY(day) IN ('Saturday', 'Sunday') OR MONTH(day) = 10"}),
    ("mean", ("wage",), {"bounds": (0, 100), "by": {"day": eps.quarters("2023-10-01", "2024-12-31")}}),
    ("histogram", ("day",), {"edges": eps.weekdays(), "where": "NOT WEEK(day) = '2024-W01'"}),
    ("quantile", ("wage", [0.25, 0.5, 0.9]), {"bounds": (0, 100), "where": "YEAR(day) < 2024 OR wage > 0"}),
    ("covariance", ("wage", "odd"), {"bounds": {"wage": (0, 100), "odd": (0, 50)}, "where": "QUARTER(day) <= 3"}),
    ("correlation", ("wage", "odd"), {"bounds": {"wage": (0, 100), "odd": (0, 50)}}),
    ("covariance", ("wage", "odd"), {"bounds": {"wage": (0, 100), "odd": (0, 50)}, "mechanism": "sample"}),
]


def answers(source: Any, rows: int, ask: Any = None) -> list[Any]:
    """Everything a table says with frozen noise, under a ledger whose salt is always the same."""
    with salted_dataset(source, rows) as people:
        return [asked(people, question, seed) for seed, question in enumerate(ask or QUESTIONS)]


def salted_dataset(source: Any, rows: int) -> eps.Dataset:
    """Under a ledger with a fixed salt and id: who is sampled depends on the one, and releases name the other."""
    ledger = eps.ledger.open()
    ledger.salt, ledger.id = bytes(16), "0" * 32
    return eps.Dataset(source, person="id", preferences=NAMED, rows_per_person=rows, version="1", ledger=ledger)


def asked(people: eps.Dataset, question: tuple[str, tuple[Any, ...], dict[str, Any]], seed: int) -> Any:
    name, given, options = question
    answer = getattr(people, name)(*given, **options, share=0.05, entropy=seeded(seed)).to_dict()
    return {**answer, "at": "some day"}
