"""People with numbers, days and times at every awkward place, and the groups they are in, found the slow way."""

from __future__ import annotations

from collections import Counter
from datetime import date, datetime, timedelta
from itertools import pairwise
from typing import Any

import pyarrow as pa

import epsilons as eps

_N = 400
AGES = [(i * 7) % 90 - 5 if i % 11 else None for i in range(_N)]
WAGES = [(i % 37) / 2 if i % 13 else float("nan") for i in range(_N)]
DAYS = [date(2023, 12, 20) + timedelta((i * 17) % 500) if i % 9 else None for i in range(_N - 4)]
DAYS += [date(1899, 12, 31), date(1, 1, 1), date(9999, 12, 31), date(2024, 2, 29)]
TIMES = [datetime(2023, 12, 31, 23) + timedelta(minutes=37 * i) if i % 8 else None for i in range(_N - 1)]
TIMES += [datetime(1950, 1, 1, 0, 0)]
TABLE = pa.table(
    {"id": list(range(_N)), "age": AGES, "wage": WAGES, "day": DAYS, "at": pa.array(TIMES, pa.timestamp("us"))}
)


def _among(values: list[Any], edges: list[Any]) -> dict[Any, int]:
    return {
        f"{low} to {high}": sum(value is not None and low <= value < high for value in values)
        for low, high in pairwise(edges)
    }


def _by_label(values: list[Any], call: Any, labels: list[Any]) -> dict[Any, int]:
    found = Counter(call(value) for value in values if value is not None)
    return {label: found[label] for label in labels}


def _week(day: date) -> str:
    return "{}-W{:02}".format(*day.isocalendar()[:2])


def _month(day: date) -> str:
    return f"{day:%Y-%m}"


def _quarter(day: date) -> str:
    return f"{day.year}-Q{(day.month + 2) // 3}"


_NAMES = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
_FIRST, _LAST = date(2023, 12, 25), date(2025, 1, 7)
_ALL = [_FIRST + timedelta(i) for i in range((_LAST - _FIRST).days + 1)]
_MONTHS = list(dict.fromkeys(map(_month, _ALL)))
_QUARTERS = ["2023-Q4", "2024-Q1", "2024-Q2", "2024-Q3", "2024-Q4", "2025-Q1"]
_LEAP = ["2024-02-27", "2024-02-28", "2024-02-29", "2024-03-01"]
_WEEKS = list(dict.fromkeys(map(_week, _ALL)))
_NOON = [datetime(2024, 1, 2, 12), datetime(2024, 1, 5, 6, 30)]

#: (column, keys, the groups and how many are in each).
CASES: list[tuple[str, Any, dict[Any, int]]] = [
    ("age", eps.ranges(0, 18, 65), _among(AGES, [0, 18, 65])),
    ("age", eps.ranges(-3.5, 17.5), _among(AGES, [-3.5, 17.5])),
    ("age", eps.ranges(-(10**30), 3, 10**30), _among(AGES, [-(10**30), 3, 10**30])),
    ("wage", eps.ranges(0, 0.5, 7.25, 18), _among(WAGES, [0, 0.5, 7.25, 18])),
    ("day", eps.ranges(date(2024, 1, 31), date(2024, 2, 29)), _among(DAYS, [date(2024, 1, 31), date(2024, 2, 29)])),
    ("at", eps.ranges(*_NOON), _among(TIMES, _NOON)),
    ("day", eps.days("2024-02-27", "2024-03-01"), _by_label(DAYS, str, _LEAP)),
    ("day", eps.weeks(_FIRST, _LAST), _by_label(DAYS, _week, _WEEKS)),
    ("day", eps.months(_FIRST, str(_LAST)), _by_label(DAYS, _month, _MONTHS)),
    ("at", eps.months(_FIRST, "2024-02-01"), _by_label(TIMES, _month, _MONTHS[:3])),
    ("day", eps.quarters(_FIRST, _LAST), _by_label(DAYS, _quarter, _QUARTERS)),
    ("day", eps.years(_FIRST, _LAST), _by_label(DAYS, lambda day: str(day.year), ["2023", "2024", "2025"])),
    ("day", eps.weekdays(), _by_label(DAYS, lambda day: _NAMES[day.weekday()], _NAMES)),
    ("at", eps.weekdays(), _by_label(TIMES, lambda at: _NAMES[at.weekday()], _NAMES)),
    ("at", eps.hours(), _by_label(TIMES, lambda at: at.hour, list(range(24)))),
]
