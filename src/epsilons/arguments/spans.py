"""Keys that are ranges or parts of a calendar: what a caller writes, and what it stands for.

    by={"age": eps.ranges(0, 18, 65)}                      [0, 18) and [18, 65)
    by={"day": eps.months("2026-01", "2026-12")}           twelve months, by their names or by days in them
    by={"day": eps.weekdays()}                             Monday to Sunday

They are plain values, a word with a list, so that a dataset file, a command and a server's document can hold them:
`{ ranges = [0, 18, 65] }`. A plain list stays a list of keys.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from itertools import pairwise
from typing import Any, NamedTuple

from epsilons.errors import PlanError

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MOST_SPANS = 1_000
#: Parts that come round again, and what they are called in their order.
PARTS: dict[str, tuple[Any, ...]] = {"weekdays": WEEKDAYS, "hours": tuple(range(24))}


class Spans(NamedTuple):
    """Groups of a column: their labels, and where each begins and the last ends; or the part of a calendar they are."""

    labels: tuple[Any, ...]
    edges: tuple[Any, ...] = ()
    part: str = ""


def ranges(*edges: Any) -> dict[str, list[Any]]:
    """Groups between neighbouring edges, numbers or dates: each from its first edge on, to below the next one.

    >>> ranges(0, 18, 65)
    {'ranges': [0, 18, 65]}
    """
    return {"ranges": list(edges)}


def days(first: Any, last: Any) -> dict[str, list[Any]]:
    """Each day from the first to the last."""
    return {"days": [first, last]}


def weeks(first: Any, last: Any) -> dict[str, list[Any]]:
    """Each week, Monday to Sunday, from that of the first day to that of the last."""
    return {"weeks": [first, last]}


def months(first: Any, last: Any) -> dict[str, list[Any]]:
    """Each month from that of the first day to that of the last."""
    return {"months": [first, last]}


def quarters(first: Any, last: Any) -> dict[str, list[Any]]:
    """Each quarter of a year from that of the first day to that of the last."""
    return {"quarters": [first, last]}


def years(first: Any, last: Any) -> dict[str, list[Any]]:
    """Each year from that of the first day to that of the last."""
    return {"years": [first, last]}


def weekdays() -> dict[str, list[Any]]:
    """The days of the week, Monday first."""
    return {"weekdays": []}


def hours() -> dict[str, list[Any]]:
    """The hours of the day, 0 to 23."""
    return {"hours": []}


def _after_month(day: date, months: int) -> date:
    place = day.year * 12 + day.month - 1 + months
    return date(place // 12, place % 12 + 1, 1)


def _week(day: date) -> str:
    year, week, _ = day.isocalendar()
    return f"{year}-W{week:02}"


#: The first day of what a day is in, the first day after it, and what it is called.
_PERIODS: dict[str, tuple[Callable[[date], date], Callable[[date], date], Callable[[date], str]]] = {
    "days": (lambda day: day, lambda day: day + timedelta(1), str),
    "weeks": (lambda day: day - timedelta(day.weekday()), lambda day: day + timedelta(7), _week),
    "months": (lambda day: day.replace(day=1), lambda day: _after_month(day, 1), lambda day: f"{day:%Y-%m}"),
    "quarters": (
        lambda day: date(day.year, (day.month - 1) // 3 * 3 + 1, 1),
        lambda day: _after_month(day, 3),
        lambda day: f"{day.year}-Q{(day.month + 2) // 3}",
    ),
    "years": (lambda day: date(day.year, 1, 1), lambda day: date(day.year + 1, 1, 1), lambda day: str(day.year)),
}


_WRITTEN = re.compile(rf"({'|'.join(('ranges', *_PERIODS, *PARTS))})\(([^()]*)\)")


def spans_written(text: str) -> dict[str, list[str]] | None:
    """What commands and forms write as `months(2026-01-01,2026-12-31)`; None for any other text.

    >>> spans_written("ranges(0, 18, 65)")
    {'ranges': ['0', '18', '65']}
    """
    found = _WRITTEN.fullmatch(text.strip())
    return None if found is None else {found[1]: [edge.strip() for edge in found[2].split(",") if edge.strip()]}


def read_spans(name: str, given: Mapping[str, Any]) -> Spans:
    """What the keys of a column stand for, where they are not a list."""
    word, values = next(iter(given.items())) if len(given) == 1 else ("", None)
    if word in PARTS and values == []:
        return Spans(PARTS[word], part=word)
    if not isinstance(values, (list, tuple)) or word not in ("ranges", *_PERIODS):
        known = ", ".join(("ranges", *_PERIODS, *PARTS))
        rule = f"A list of keys, or one of: {known}."
        raise PlanError(f"Keys of column {name!r} are of an unknown kind.", rule=rule, suggest="eps.ranges(0, 18, 65)")
    try:
        edges = tuple(values) if word == "ranges" else tuple(_edges(word, *(_day(word, edge) for edge in values)))
        rising = len(edges) > 1 and all(low < high for low, high in pairwise(edges))
    except (TypeError, ValueError, OverflowError):
        rising = False
    if not rising or len(edges) - 1 > MOST_SPANS:
        rule = f"Edges rise, from the first to the last, and are of one kind; at most {MOST_SPANS:,} groups."
        hint = "eps.ranges(0, 18, 65)" if word == "ranges" else f'eps.{word}("2026-01-01", "2026-12-31")'
        wrong = "too many" if rising else "not in order"
        raise PlanError(f"The {word} of column {name!r} are {wrong}.", rule=rule, suggest=hint)
    called = _PERIODS[word][2] if word != "ranges" else None
    labels = [called(low) if called else f"{low} to {high}" for low, high in pairwise(edges)]
    return Spans(tuple(labels), edges)


#: What is put behind the label of a period for its first day, as ISO 8601 writes it.
_FIRST = {"days": "", "weeks": "-1", "months": "-01", "years": "-01-01"}


def read_period(word: str, label: str) -> tuple[date, date | None] | None:
    """(its first day, the first day after it) of a day, week, month, quarter or year by its label; None if it is none.

    No day comes after the last one that there is, 9999-12-31, by which files say "for ever".

    >>> read_period("months", "2026-11")
    (datetime.date(2026, 11, 1), datetime.date(2026, 12, 1))
    """
    _, after, called = _PERIODS[word]
    year, _, place = label.partition("-Q")
    try:
        text = f"{year}-{3 * int(place) - 2:02}-01" if word == "quarters" else label + _FIRST[word]
        first = date.fromisoformat(text)
    except ValueError:
        return None
    if called(first) != label:
        return None
    try:
        return first, after(first)
    except (ValueError, OverflowError):
        return first, None


def _day(word: str, value: Any) -> date:
    """A day, or that with which a period begins: in months, "2026-11" is as good as one of its days; in years 2026."""
    if word == "years" and type(value) is int:
        value = f"{value:04}"
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    period = read_period(word, value) if isinstance(value, str) else None
    return period[0] if period else date.fromisoformat(value)


def _edges(word: str, first: date, last: date) -> list[date]:
    start, after, _ = _PERIODS[word]
    found = [start(first)]
    while found[-1] <= last and len(found) <= MOST_SPANS + 1:
        found.append(after(found[-1]))
    return found
