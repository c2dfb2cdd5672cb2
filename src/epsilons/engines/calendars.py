"""Parts of a calendar in conditions: what a date or a time is in, as a whole number that every row has.

    MONTH(day) = 11      every November          MONTH(day) = '2026-11'     that one
    WEEKDAY(day) IN ('Saturday', 'Sunday')       HOUR(at) BETWEEN 9 AND 17

A number is a part that comes round again, and is compared here. A period that goes by its name ('2026-11', '2026-W47',
'2026-Q4', '2026-11-15'), or a year, is a range of the column itself: `conditions` compares the column with its ends. No
part can fail on a value: what is missing has none, and meets no comparison.
"""

from dataclasses import dataclass
from datetime import MAXYEAR, date, datetime
from typing import NamedTuple

from sqlglot import exp

from epsilons.arguments.spans import WEEKDAYS
from epsilons.engines.base import DATE, NUMBER, TIME, Column
from epsilons.engines.trees import Canonical, Comparison, cast, column, whole


class Part(NamedTuple):
    """A part of a calendar: the least and largest number, what names its periods, how it is written, of which columns.

    `periods` is the word of `spans` whose labels name them; "" where none do.
    """

    low: int
    high: int
    periods: str
    written: str
    families: tuple[str, ...] = (DATE, TIME)


PARTS = {
    "DAY": Part(1, 31, "days", "15 or '2026-11-15'"),
    "WEEK": Part(1, 53, "weeks", "47 or '2026-W47'"),
    "MONTH": Part(1, 12, "months", "11 or '2026-11'"),
    "QUARTER": Part(1, 4, "quarters", "4 or '2026-Q4'"),
    "YEAR": Part(1, MAXYEAR, "", "2026"),
    "WEEKDAY": Part(1, 7, "", "'Monday'"),
    "HOUR": Part(0, 23, "", "9", (TIME,)),
}


@dataclass(frozen=True)
class PartComparison(Comparison):
    """A part of a column's date or time against numbers; weekdays, Monday first, go by their names."""

    word: str = ""

    @classmethod
    def of(cls, found: Comparison, word: str) -> "PartComparison":
        """What was found about a column of the part's numbers."""
        return cls(found.column, found.sign, found.values, word)

    @property
    def called(self) -> str:
        return f"{self.word}({super().called})"

    def _write(self, value: Canonical) -> str:
        return f"'{WEEKDAYS[int(str(value)) - 1]}'" if self.word == "WEEKDAY" else super()._write(value)

    def holds(self, value: Canonical | None) -> bool:
        return super().holds(_part_of(value, self.word) if isinstance(value, date) else None)

    def compared(self) -> exp.Expr:
        return extract(self.word, self.column.name)


def number_column(kind: Column, word: str) -> Column:
    """A column of a part's numbers: what they are compared as."""
    return Column(kind.name, NUMBER, PARTS[word].low, PARTS[word].high)


def extract(word: str, name: str) -> exp.Expr:
    """The part of each row; null where nothing is there."""
    if word != "WEEKDAY":
        return cast(exp.Extract(this=exp.var(word), expression=column(name)), "INT")
    # Engines count weekdays from different days: here by the days since a Monday.
    monday = cast(exp.Literal.string("1970-01-05"), "DATE")
    since = exp.paren(exp.DateDiff(this=cast(column(name), "DATE"), expression=monday, unit=exp.var("DAY")))
    # Days before it count down: their rest would be negative.
    rest = exp.paren(exp.Add(this=exp.Mod(this=since, expression=whole(7)), expression=whole(7)))
    return cast(exp.Add(this=exp.paren(exp.Mod(this=rest, expression=whole(7))), expression=whole(1)), "INT")


def _part_of(value: date, word: str) -> int:
    if word == "HOUR":
        return value.hour if isinstance(value, datetime) else 0
    if word == "WEEK":
        return value.isocalendar().week
    return {"DAY": value.day, "MONTH": value.month, "QUARTER": (value.month + 2) // 3, "WEEKDAY": value.isoweekday()}[
        word
    ]
